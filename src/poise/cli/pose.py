"""One pose: `poise pose` from handles, `poise image` from a photo, `poise correct` to teach a habit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import Height, Onto, OptionalOutput
from poise.errors import InvalidValueError

if TYPE_CHECKING:
    from poise.capture.image_files import Shot
    from poise.capture.photos import Explanation

POSE = App(
    name="pose",
    help_epilogue="""\
Handles are joints or roles (left_hand, head, ...); targets are in metres, Y up.
The extension selects the output: .bvh .amc .glb, or .png for a picture.

Examples:
  poise pose --handle left_hand=0.4,1.3,0.3 --handle head=0,1.6,0.1 -o pose.png
  poise pose walk.poise --handle LeftHand=0.4,1.3,0.3 -o pose.png
  poise pose walk.poise --handle left_hand=0.4,1.3,0.3 \\
      --handle right_foot=-0.1,0.1,0.4 --look-at 0,1.5,3 -o pose.glb
  poise pose --handle pelvis=0,1.6,0 --no-floor -o jump.png
  poise pose --handle left_hand=0.4,1.3,0.3 --uncertainty --suggest -o pose.png
  poise pose walk.poise --constraints balance.toml -o pose.png
""",
)


@POSE.default
def pose(
    model: Annotated[
        Path | None, Parameter(help="A model written by poise learn. Default: the universal prior.")
    ] = None,
    *,
    handle: Annotated[tuple[str, ...], Parameter(help="NAME=x,y,z in metres; repeat for more.")] = (),
    look_at: Annotated[str | None, Parameter(help="x,y,z that the head looks at.")] = None,
    floor: Annotated[
        bool, Parameter(negative="--no-floor", help="Stand on the floor (Y = 0), feet not below it.")
    ] = True,
    heading: Annotated[
        bool, Parameter(negative="--no-heading", help="Face forward (Z) unless the handles turn the body.")
    ] = True,
    balance: Annotated[
        bool, Parameter(negative="--no-balance", help="Keep the balance and let idle arms hang.")
    ] = True,
    apart: Annotated[
        bool, Parameter(negative="--no-apart", help="Keep arms and legs out of the body and of each other.")
    ] = True,
    constraints: Annotated[
        Path | None, Parameter(help="A TOML file with further [[constraints]] of any kind.")
    ] = None,
    exact: Annotated[float, Parameter(help="Metres within which handles are met.")] = 1e-3,
    output: OptionalOutput = None,
    corrections: Annotated[
        Path | None, Parameter(help="Apply the corrections in a file written by poise correct.")
    ] = None,
    uncertainty: Annotated[
        bool,
        Parameter(
            help="Draw other poses that meet the handles, pale behind the pose (.png). With a motion "
            "file, write the uncertainty of every joint (.uncertainty.json)."
        ),
    ] = False,
    suggest: Annotated[bool, Parameter(help="Name the handle to add next.")] = False,
    json: Annotated[bool, Parameter(help="Print the solution as JSON.")] = False,
    onto: Onto = None,
) -> None:
    """Find the most likely pose that puts the handles where they should be."""
    from poise.apps import posing
    from poise.priors.model_file import load
    from poise.solvers.given import constraints_from

    handles = dict(posing.handle_from_text(text) for text in handle)
    target = posing.point_from_text(look_at) if look_at is not None else None
    others = posing.read_constraints(constraints) if constraints is not None else []
    solution = posing.pose(
        [*constraints_from(handles), *others],
        load(model),
        look_at=target,
        floor=floor,
        heading=heading,
        balance=balance,
        apart=apart,
        tolerance=exact,
        corrections=corrections,
    )
    if output is not None:
        posing.save_pose(solution, output, handles, uncertainty=uncertainty, onto=onto)
    if json:
        terminal.print_json(posing.report(solution))
        return
    print(solution)
    print(f"likelihood: higher than {solution.percentile:.0f} % of the reference poses")
    roles = [role for role, joint in solution.space.skeleton.roles.items() if {role, joint} & set(handles)]
    for words in (*posing.judged(solution, held=roles, on_floor=floor), posing.nearest_in_words(solution)):
        if words:
            print(words)
    if suggest:
        print(posing.suggested(solution))
    if output is not None:
        print(f"{output}: {terminal.file_size(output)}")


CORRECT = App(
    name="correct",
    help_epilogue="""\
Pose a body, fix the pose in any program, and pass both files. Similar poses are
then corrected in the same way. The model does not change: corrections are a
layer on top of it, in their own file.

Examples:
  poise correct habits.json solved.bvh fixed.bvh
  poise correct habits.json --undo
  poise pose --handle right_hand=-0.3,1.2,0.4 --corrections habits.json \\
      -o pose.bvh
""",
)


@CORRECT.default
def correct(
    file: Annotated[Path, Parameter(help="The file of corrections. It is created if it does not exist.")],
    solved: Annotated[Path | None, Parameter(help="The solved pose: a motion file.")] = None,
    fixed: Annotated[Path | None, Parameter(help="The corrected pose: a motion file.")] = None,
    *,
    undo: Annotated[bool, Parameter(help="Undo the last correction.")] = False,
) -> None:
    """Add a correction for similar poses, or undo the last one."""
    from poise.apps.learning import read_motion
    from poise.formats.files import alone_with
    from poise.solvers.corrections import Corrections

    if not undo and (solved is None or fixed is None):
        raise InvalidValueError("give the solved and the fixed pose, or --undo; see poise correct --help")
    pair = [read_motion(path)[0] for path in (solved, fixed) if path is not None]
    with alone_with(file):
        known = Corrections.load(file) if file.exists() else Corrections()
        known = known.without_last() if undo else known.added(*pair)
        known.save(file)
    print(f"{file}: {len(known)} correction{'' if len(known) == 1 else 's'}")


IMAGE = App(
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


@IMAGE.default
def image(
    *files: Annotated[
        Path, Parameter(help="[A model written by poise learn and] the photo, or a .toml of several views.")
    ],
    point: Annotated[tuple[str, ...], Parameter(help="NAME=column,row; repeat for more.")] = (),
    person: Annotated[int | None, Parameter(help="Which person, from 1, if no points are given.")] = None,
    height: Height = None,
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
