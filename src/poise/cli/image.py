"""`poise image [MODEL] PHOTO [--point NAME=column,row ...]`: a whole-body pose from a photo."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import Onto, OptionalOutput
from poise.errors import InvalidValueError

if TYPE_CHECKING:
    from poise.capture.image_files import Shot
    from poise.capture.image_poses import Explanation

app = App(
    name="image",
    help_epilogue="""\
Without points, Poise finds the person in the photo and their joints (--overlay
shows them). Without a model the body gets the person's size; with one, it is
the model's body, and there are alternatives. You can also give points by hand:

A point is the column and row of a joint or role (left_hand, head, ...), in
pixels from the top left corner. Three or four points are enough; more are
better. One photo is ambiguous: an arm may point towards the camera or away. So
there are alternatives, the most likely first.

--camera names the file of a known camera. Otherwise the field of view comes
from --fov, from the photo's EXIF data, or is 50 degrees, and the solver finds
its position. For several photos, name a .toml file with [[views]] instead of
the photo. docs/image.md describes both formats.

Examples:
  poise image photo.jpg -o pose.glb --overlay check.png
  poise image box.poise photo.jpg --person 2 -o pose.bvh
  poise image pitch.poise photo.jpg --point LeftHand=412,233 \\
      --point RightHand=620,180 --point LeftFoot=390,700 \\
      -o pose.glb --overlay check.png
  poise image box.poise photo.jpg --camera camera.toml --point head=480,120 \\
      --point left_hand=300,310 --point right_foot=515,690 --json
  poise image box.poise views.toml -o pose.bvh
""",
)


@app.default
def image(
    *files: Annotated[
        Path, Parameter(help="[A model written by poise learn and] the photo, or a .toml of several views.")
    ],
    point: Annotated[tuple[str, ...], Parameter(help="NAME=column,row; repeat for more.")] = (),
    person: Annotated[int | None, Parameter(help="Which person, from 1, if no points are given.")] = None,
    height: Annotated[float | None, Parameter(help="The person's height in metres, if known.")] = None,
    camera: Annotated[Path | None, Parameter(help="The camera file, if the camera is known.")] = None,
    fov: Annotated[float | None, Parameter(help="Vertical field of view in degrees, if it is not.")] = None,
    pitch: Annotated[float | None, Parameter(help="Degrees that the camera looks down, if known.")] = None,
    alternatives: Annotated[int, Parameter(help="The largest number of alternatives.")] = 3,
    output: Annotated[
        OptionalOutput, Parameter(help="The best pose: .bvh .glb .png; others are numbered.")
    ] = None,
    overlay: Annotated[
        Path | None, Parameter(help="A picture of the pose over the photo and from the side.")
    ] = None,
    onto: Onto = None,
    json: Annotated[bool, Parameter(help="Print the alternatives as JSON.")] = False,
) -> None:
    """Find the most likely poses for a photo, from points or from the person in it."""
    if not 1 <= len(files) <= 2:
        raise InvalidValueError(f"give a photo, or a model and a photo; got {len(files)} files")
    model, photo = (None, files[0]) if len(files) == 1 else files
    if not point and camera is None and photo.suffix.lower() != ".toml":
        _find(model, photo, person, height, fov, output, overlay, onto=onto, json=json)
        return
    _by_points(
        model, _shots(photo, point, camera), fov, pitch, alternatives, output, overlay, onto=onto, json=json
    )


def _find(
    model: Path | None, path: Path, person: int | None, height: float | None, fov: float | None,
    output: Path | None, overlay: Path | None, *, onto: Path | None, json: bool,
) -> None:  # fmt: skip
    """The person in a photo, with no point given."""
    from poise.apps import image as app
    from poise.apps.outputs import save
    from poise.capture.image_files import Shot, read_photo
    from poise.priors.model_file import load

    photo = read_photo(path)
    with terminal.working("finding the person"):
        found = app.find_in_photo(photo, number=person, fov=fov, height=height)
        explained = None if model is None else app.explained(load(model), photo, found)
    if explained is not None:
        _say(Shot(photo, found.points), explained, output, overlay, onto=onto, json=json)
        return
    files = [] if output is None else [save(found.pose, output, onto=onto)]
    if overlay is not None:
        files.append(app.save_found(photo, found, overlay))
    if json:
        terminal.print_json(app.report_found(found))
        return
    points = " ".join(f"--point {name}={x:.0f},{y:.0f}" for name, (x, y) in found.points.items())
    print(f"a person {found.pose.skeleton.height:.2f} m tall, {len(found.points)} points found: {points}")
    for file in files:
        print(f"{file}: {terminal.file_size(file)}")


def _by_points(
    model: Path | None, shots: list[Shot], fov: float | None, pitch: float | None, alternatives: int,
    output: Path | None, overlay: Path | None, *, onto: Path | None, json: bool,
) -> None:  # fmt: skip
    from poise.capture.photos import pose_from_shots
    from poise.priors.model_file import load

    if fov is not None and shots[0].camera is not None:
        raise InvalidValueError("the camera file gives the field of view; leave --fov out")
    prior = load(model)
    with terminal.working("solving"):
        found = pose_from_shots(prior, shots, fov=fov, pitch=pitch, alternatives=alternatives)
    _say(shots[0], found, output, overlay, onto=onto, json=json)


def _say(
    shot: Shot, found: list[Explanation], output: Path | None, overlay: Path | None,
    *, onto: Path | None, json: bool,
) -> None:  # fmt: skip
    from poise.apps import image as app

    files = app.save_alternatives(found, output, onto=onto) if output is not None else []
    if overlay is not None:
        files.append(app.save_overlay(shot, found, overlay))
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
