"""`poise image MODEL PHOTO --point NAME=column,row ...`: a whole-body pose from points in a photo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.errors import InvalidValueError

if TYPE_CHECKING:
    from poise.capture.image_files import Shot

app = App(
    name="image",
    help_epilogue="""\
A point is where a joint or a role (left_hand, head, ...) is seen: its column
and row in pixels, from the top left corner. Three or four make a pose; more
make it surer. What one photo leaves open, such as whether an arm points to
the camera or away, comes out as alternatives, the likeliest first.

The camera is known from a file (--camera), else its field of view is taken
from --fov, from the photo's EXIF data or to be 50 degrees, and where it is
comes out with the pose. Several photos, each with a camera: name a .toml
file with [[views]] instead of the photo. docs/image.md tells both formats.

Examples:
  poise image pitch.poise photo.jpg --point LeftHand=412,233 \\
      --point RightHand=620,180 --point LeftFoot=390,700 -o pose.glb --overlay check.png
  poise image box.poise photo.jpg --camera camera.toml --point head=480,120 \\
      --point left_hand=300,310 --point right_foot=515,690 --json
  poise image box.poise views.toml -o pose.bvh
""",
)


@app.default
def image(
    model: Annotated[Path, Parameter(help="A model written by poise learn.")],
    photo: Annotated[Path, Parameter(help="The photo, or a .toml file of several views.")],
    *,
    point: Annotated[tuple[str, ...], Parameter(help="NAME=column,row; may be given many times.")] = (),
    camera: Annotated[Path | None, Parameter(help="A camera file, where the camera is known.")] = None,
    fov: Annotated[float | None, Parameter(help="Vertical field of view in degrees, if not.")] = None,
    pitch: Annotated[float | None, Parameter(help="Degrees that the camera looks down, if known.")] = None,
    alternatives: Annotated[int, Parameter(help="How many alternatives to give at most.")] = 3,
    output: Annotated[
        Path | None,
        Parameter(name=("--output", "-o"), help="The best pose: .bvh .glb .png; others are numbered."),
    ] = None,
    overlay: Annotated[Path | None, Parameter(help="A picture: over the photo, and from the side.")] = None,
    json: Annotated[bool, Parameter(help="Print the alternatives as JSON.")] = False,
) -> None:
    """Find the likeliest poses that explain points in a photo."""
    from poise.apps import image as app
    from poise.capture.photos import pose_from_shots
    from poise.priors.model_file import load

    shots = _shots(photo, point, camera)
    if fov is not None and shots[0].camera is not None:
        raise InvalidValueError("the camera file tells the field of view; leave --fov out")
    prior = load(model)
    with terminal.working("solving"):
        found = pose_from_shots(prior, shots, fov=fov, pitch=pitch, alternatives=alternatives)
    files = app.save_alternatives(found, output) if output is not None else []
    if overlay is not None:
        files.append(app.save_overlay(shots[0], found, overlay))
    if json:
        terminal.print_json(app.report(found))
        return
    for number, one in enumerate(found, start=1):
        print(f"{number}: {app.described(one, found[0])}")
    for file in files:
        print(f"{file}: {terminal.file_size(file)}")


def _shots(photo: Path, points: tuple[str, ...], camera: Path | None) -> list[Shot]:
    from poise.capture.image_files import Shot, point_from_text, read_photo, read_views
    from poise.formats.camera_file import read_camera

    if photo.suffix.lower() == ".toml":
        if points or camera is not None:
            raise InvalidValueError(
                "a file of views has its own points and cameras; leave --point and --camera out"
            )
        return read_views(photo)
    pixels = dict(point_from_text(text) for text in points)
    return [Shot(read_photo(photo), pixels, read_camera(camera) if camera is not None else None)]
