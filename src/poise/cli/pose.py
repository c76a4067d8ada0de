"""One pose: `poise pose` from handles, `poise image` from a photo, `poise correct` to teach a habit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from poise.cli import terminal
from poise.cli.main import MISSED, OK
from poise.cli.options import Height, Onto, OptionalOutput, about, command, files_of
from poise.errors import InvalidValueError


@command("""\
Handles are joints or roles (left_hand, head, ...), or left_palm,
left_fingertips, left_sole, right_palm, ...; targets are in metres, Y up.
The extension selects the output: .bvh .amc .glb, or .png for a picture.
If a handle is missed by more than 1 cm, the exit code is 1.

Examples:
  poise pose --handle left_hand=0.4,1.3,0.3 --handle head=0,1.6,0.1 -o pose.png
  poise pose walk.poise --handle LeftHand=0.4,1.3,0.3 -o pose.png
  poise pose walk.poise --handle left_hand=0.4,1.3,0.3 \\
      --handle right_foot=-0.1,0.1,0.4 --look-at 0,1.5,3 -o pose.glb
  poise pose --handle pelvis=0,1.6,0 --no-floor -o jump.png
  poise pose --handle left_hand=0.4,1.3,0.3 --uncertainty --suggest -o pose.png
  poise pose walk.poise --constraints balance.toml -o pose.png
""")
def pose(
    model: Annotated[
        Path | None, about("A model written by poise learn. Default: the universal prior.")
    ] = None,
    *,
    handle: Annotated[tuple[str, ...], about("NAME=x,y,z in metres; repeat for more.")] = (),
    look_at: Annotated[str | None, about("x,y,z that the head looks at.")] = None,
    floor: Annotated[
        bool, about("Stand on the floor (Y = 0), no part below it.", negative="--no-floor")
    ] = True,
    heading: Annotated[
        bool, about("Face forward (Z) unless the handles turn the body.", negative="--no-heading")
    ] = True,
    balance: Annotated[
        bool, about("Keep the balance and let idle arms hang.", negative="--no-balance")
    ] = True,
    apart: Annotated[
        bool, about("Keep arms and legs out of the body and of each other.", negative="--no-apart")
    ] = True,
    constraints: Annotated[
        Path | None, about("A TOML file with further [[constraints]] of any kind.")
    ] = None,
    exact: Annotated[float, about("Metres within which handles are met.")] = 1e-3,
    output: OptionalOutput = None,
    corrections: Annotated[
        Path | None, about("Apply the corrections in a file written by poise correct.")
    ] = None,
    uncertainty: Annotated[
        bool,
        about(
            "Draw other poses that meet the handles, pale behind the pose (.png). With a motion "
            "file, write the uncertainty of every joint (.uncertainty.json)."
        ),
    ] = False,
    suggest: Annotated[bool, about("Name the handle to add next.")] = False,
    json: Annotated[bool, about("Print the solution as JSON.")] = False,
    onto: Onto = None,
) -> int:
    """Find the most likely pose that puts the handles where they should be."""
    from poise.apps import posing
    from poise.priors.model_file import load
    from poise.solvers.given import constraints_from

    handles = dict(posing.handle_from_text(text) for text in handle)
    target = posing.point_from_text(look_at) if look_at is not None else None
    others = posing.read_constraints(constraints) if constraints is not None else []
    asked, prior = [*constraints_from(handles), *others], load(model)
    terminal.compiled_first()
    solution = posing.pose(
        asked, prior, look_at=target, floor=floor, heading=heading,
        balance=balance, apart=apart, tolerance=exact, corrections=corrections,
    )  # fmt: skip
    if output is not None:
        posing.save_pose(solution, output, handles, uncertainty=uncertainty, onto=onto)
    code = MISSED if posing.missed(solution) else OK
    if json:
        terminal.print_json(posing.report(solution))
        return code
    print(solution)
    print(f"likelihood: higher than {solution.percentile:.0f} % of the reference poses")
    for words in (*posing.judged(solution, asked, on_floor=floor), posing.nearest_in_words(solution)):
        if words:
            print(words)
    if suggest:
        print(posing.suggested(solution))
    if output is not None:
        print(f"{output}: {terminal.file_size(output)}")
    return code


@command("""\
Pose a body, fix the pose in any program, and pass both files. Similar poses are
then corrected in the same way. The model does not change: corrections are a
layer on top of it, in their own file.

Examples:
  poise correct habits.json solved.bvh fixed.bvh
  poise correct habits.json --undo
  poise pose --handle right_hand=-0.3,1.2,0.4 --corrections habits.json \\
      -o pose.bvh
""")
def correct(
    file: Annotated[Path, about("The file of corrections. It is created if it does not exist.")],
    solved: Annotated[Path | None, about("The solved pose: a motion file.")] = None,
    fixed: Annotated[Path | None, about("The corrected pose: a motion file.")] = None,
    *,
    undo: Annotated[bool, about("Undo the last correction.")] = False,
) -> None:
    """Add a correction for similar poses, or undo the last one."""
    from poise.formats import read_motion
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


@command("""\
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
""")
def image(
    *files: Annotated[
        Path, about("[A model written by poise learn and] the photo, or a .toml of several views.")
    ],
    point: Annotated[tuple[str, ...], about("NAME=column,row; repeat for more.")] = (),
    person: Annotated[int | None, about("Which person, from 1, if no points are given.")] = None,
    height: Height = None,
    camera: Annotated[Path | None, about("The camera file, if the camera is known.")] = None,
    fov: Annotated[float | None, about("Vertical field of view in degrees, if it is not.")] = None,
    pitch: Annotated[float | None, about("Degrees that the camera looks down, if known.")] = None,
    alternatives: Annotated[int, about("The largest number of alternatives.")] = 3,
    output: Annotated[OptionalOutput, about("The best pose: .bvh .glb .png; others are numbered.")] = None,
    overlay: Annotated[Path | None, about("A picture of the pose over the photo and from the side.")] = None,
    onto: Onto = None,
    json: Annotated[bool, about("Print the alternatives as JSON.")] = False,
) -> None:
    """Find the most likely poses for a photo, from points or from the person in it."""
    from poise.apps import image as app
    from poise.apps.outputs import save
    from poise.capture.photos import Shot, point_from_text, pose_from_shots, read_photo, read_views
    from poise.formats.camera_file import read_camera
    from poise.priors.model_file import load

    model, photo = files_of(files, "a photo, or a model and a photo")
    found, written = None, list[Path]()
    if photo.suffix.lower() == ".toml":
        if point or camera is not None:
            raise InvalidValueError(
                "a file of views has its own points and cameras; leave --point and --camera out"
            )
        shots = read_views(photo)
    elif point or camera is not None:
        pixels, picture = dict(map(point_from_text, point)), read_photo(photo)
        shots = [Shot(picture, pixels, read_camera(camera) if camera is not None else None)]
    else:
        picture = read_photo(photo)
        with terminal.working("finding the person"):
            found = app.find_in_photo(picture, number=person, fov=fov, height=height)
            explained = [] if model is None else app.explained(load(model), picture, found)
        shots = [Shot(picture, found.points)]
    if found is not None and model is None:
        if output is not None:
            written.append(save(found.pose, output, onto=onto))
        if overlay is not None:
            written.append(app.save_found(shots[0].photo, found, overlay))
        if json:
            terminal.print_json(app.report_found(found))
            return
        points = " ".join(f"--point {name}={x:.0f},{y:.0f}" for name, (x, y) in found.points.items())
        print(f"a person {found.pose.skeleton.height:.2f} m tall, {len(found.points)} points found: {points}")
    else:
        if found is None:
            if fov is not None and shots[0].camera is not None:
                raise InvalidValueError("the camera file gives the field of view; leave --fov out")
            prior = load(model)
            with terminal.working("solving"):
                explained = pose_from_shots(prior, shots, fov=fov, pitch=pitch, alternatives=alternatives)
        if output is not None:
            written += app.save_alternatives(explained, output, onto=onto)
        if overlay is not None:
            written.append(app.save_overlay(shots[0], explained, overlay))
        if json:
            terminal.print_json(app.report(explained))
            return
        for number, one in enumerate(explained, start=1):
            print(f"{number}: {app.described(one, explained[0])}")
    for file in written:
        print(f"{file}: {terminal.file_size(file)}")
