"""Motions: acted, from keys, from contacts, simulated by a model; edited by a handle, and without foot slide."""

from __future__ import annotations

import ast
import inspect
from contextlib import suppress
from math import degrees
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from poise.cli import terminal
from poise.cli.options import (
    AS_FOUND,
    Json,
    KeyedOutput,
    MotionModel,
    Onto,
    OptionalOutput,
    Output,
    ReadingOptions,
    WayPicture,
    about,
    command,
    draw_way,
    files_of,
    write_motion,
)
from poise.errors import InvalidValueError, PoiseError

if TYPE_CHECKING:
    from poise.motion.motion import Motion


@command("""\
The parameters of an action are options too; --list shows them. The extension
selects the output: .bvh .amc .glb, or .png .gif .mp4 for a picture.

Examples:
  poise act --list
  poise act walk -o walk.bvh
  poise act run --speed 3.5 --turn 0.4 -o run.gif
  poise act throw --style old --performer maya --seed 7 -o throw.glb
""")
def act(
    action: Annotated[str | None, about("The action; --list shows all of them.")] = None,
    *,
    output: OptionalOutput = None,
    style: Annotated[str, about("The style of the motion.")] = "neutral",
    performer: Annotated[str | None, about("The performer.")] = None,
    seconds: Annotated[float | None, about("Duration. Each action has its own default.")] = None,
    fps: Annotated[float, about("Frames per second.")] = 120.0,
    seed: Annotated[int, about("The random seed of small irregularities.")] = 0,
    list_: Annotated[bool, about("Show actions, styles and performers.", "--list")] = False,
    **parameters: Annotated[str, about("Parameters of the action: --speed 1.5 --turn 0.3 ...")],
) -> None:
    """Write a motion of the procedural performer."""
    if list_:
        from poise.performer import ACTIONS, PERFORMERS, STYLES

        rows = []
        for name, own in ACTIONS.items():
            settings = [each for each in inspect.signature(own.direct).parameters if each != "stage"]
            rows.append((name, own.summary, " ".join(f"--{each.replace('_', '-')}" for each in settings)))
        terminal.print_table(("action", "what", "its own options"), rows)
        print()
        terminal.print_facts("", [("styles", ", ".join(STYLES)), ("performers", ", ".join(PERFORMERS))])
        return
    if action is None or output is None:
        raise InvalidValueError(
            "name an action and a file to write: poise act walk -o walk.bvh (or poise act --list)"
        )
    from poise.apps.outputs import save
    from poise.performer import act as motion_of

    given: dict[str, Any] = dict(parameters)
    for name, text in parameters.items():
        with suppress(SyntaxError, ValueError):  # a number, or several (0.3,1.2,0.4), if the text spells them
            given[name] = ast.literal_eval(text)
    if performer is not None:
        given["performer"] = performer
    with terminal.working(f"acting {action}"):
        motion = motion_of(action, style=style, seconds=seconds, fps=fps, seed=seed, **given)
    with terminal.counting(f"writing {output.name}") as report:
        save(motion, output, progress=report)
    print(f"{output}: {motion.name}, {len(motion)} frames at {motion.fps:g} Hz, {terminal.file_size(output)}")


@command("""\
The script is a TOML file: duration, fps, floor, keys for a few handles,
pins, and the style at each time. Times are in seconds, places in metres,
Y up. A handle follows its path from its first key to its last and is free
before and after. docs/keyframing.md describes all of it.

  duration = 2.0
  floor = true
  [handles.right_hand]
  keys = [ { time = 0.0, at = [-0.2, 1.0, 0.2] },
           { time = 1.2, at = [-0.5, 1.5, 0.3], tangent = [0, 0, 1.0] } ]
  [handles.head]
  keys = [ { time = 0.5, rotation = [0, 30, 0] } ]   # degrees about x, y, z
  [[pins]]
  handle = "left_foot"
  at = [0.1, 0.07, 0.0]

--keys-from writes a script from a recording, with keys of the named handles,
for you to edit.

Examples:
  poise keyframe pitch.poise pitch.toml --keys-from pitch.bvh \\
      --handle left_foot --handle right_foot --handle right_hand
  poise keyframe pitch.poise sidearm.toml -o sidearm.glb
  poise keyframe walk.poise sneak.toml -o sneak.gif --live
  poise keyframe wave.toml -o wave.glb     # by the universal prior
""")
def keyframe(
    *files: Annotated[Path, about("[A model written by poise learn and] the keyframe script, a TOML file.")],
    output: OptionalOutput = None,
    keys_from: Annotated[Path | None, about("Write the script, with keys from this clip.")] = None,
    handle: Annotated[tuple[str, ...], about("A joint or role to take keys from; repeat for more.")] = (),
    heading: Annotated[
        bool, about("Face the walking direction unless a key sets it.", negative="--no-heading")
    ] = True,
    balance: Annotated[bool, about("Keep the weight over keyed feet.", negative="--no-balance")] = True,
    live: Annotated[bool, about("Solve again whenever the script is saved, until Ctrl-C.")] = False,
    onto: Onto = None,
) -> None:
    """Make a motion from the paths of a few handles, by a model or, without one, by the universal prior."""
    model, script = files_of(files, "a script, or a model and a script")
    if keys_from is not None:
        from poise.apps.keyframing import script_text
        from poise.formats import read_motion
        from poise.formats.files import replacing

        if script.exists():
            raise InvalidValueError(f"{script} exists; --keys-from writes a new script and replaces none")
        text = script_text(read_motion(keys_from), handle)
        with replacing(script) as file:
            file.write(text)
        keys, pins = text.count("time ="), text.count("[[pins]]")
        print(f"{script}: {keys} keys and {pins} pins of {', '.join(handle)}")
        return
    if output is None:
        raise InvalidValueError("name the file to write: -o motion.bvh, .glb or .gif")
    from poise.apps import keyframing as app
    from poise.priors.model_file import load

    prior = load(model)
    if live:
        terminal.note(f"watching {script}; Ctrl-C ends")
        terminal.stay()
    for _ in app.watched(script) if live else [None]:
        try:
            with terminal.counting("solving") as report:
                made = app.keyframe(prior, script, heading=heading, balance=balance, progress=report)
            written = write_motion(made.motion, output, onto=onto)
        except PoiseError as error:
            if not live:
                raise
            terminal.warn(str(error))
            continue
        for miss in made.misses():
            terminal.warn(miss)
        turned = f", turned within {degrees(made.worst_turn):.1f} degrees" if made.angles else ""
        print(f"{written}, handles within {1000 * made.worst:.1f} mm of their paths{turned}")


@command("""\
The script is a TOML file: fps, and keys with a time in seconds and a pose (a
file beside the script, and a frame), or places of handles in metres. Poses
are met exactly, feet that stand stay in place. Handles, pins and constraints
of keyframe scripts can be added. docs/keyframing.md describes all of it.

  fps = 30
  loop = false
  [[keys]]
  time = 0.0
  pose = "crouch.bvh:12"
  hold = 0.2                  # seconds
  ease = "in-out"             # from here to the next key
  [[keys]]
  time = 0.8
  pose = "throw.bvh:30"

Examples:
  poise inbetween keys.toml -o out.bvh
  poise inbetween keys.toml -o out.gif
  poise inbetween keys.toml -o out.bvh --variants 4   # out.bvh, out-1.bvh ...
""")
def inbetween(
    script: Annotated[Path, about("The keys, a TOML file.")],
    *,
    output: Output,
    variants: Annotated[int, about("How many motions to make.")] = 1,
    onto: Onto = None,
) -> None:
    """Make the motion between poses, as people move."""
    from poise.apps import keyframing as app

    if not 1 <= variants <= 64:
        raise InvalidValueError(f"--variants takes 1 to 64; got {variants}")
    for variant in range(variants):
        with terminal.working("solving" if variants == 1 else f"solving {variant + 1} of {variants}"):
            made = app.inbetween(script, variant=variant)
        file = output.with_stem(f"{output.stem}-{variant}") if variant else output
        for miss in made.misses():
            terminal.warn(miss)
        print(write_motion(made.motion, file, onto=onto))


@command("""\
The constraints are a TOML file: duration, fps, floor, contacts (a handle that
stays in place), paths of handles, keyframes (poses of recordings).
Times are in seconds, places in metres, Y up. docs/dynamics.md
describes the file.

  duration = 3.0
  [[contacts]]
  handle = "left_toes"
  from = 0.2
  to = 0.9
  at = [0.1, 0.02, 0.4]

--contacts-from writes this file from the foot contacts of a recording, for you
to edit. --wider and --longer change all contacts.

Examples:
  poise animate walks.poise steps.toml --contacts-from walk.bvh
  poise animate walks.poise steps.toml -o walk_again.gif
  poise animate walks.poise wide.toml --contacts-from walk.bvh --wider 0.1
  poise animate walks.poise wide.toml -o wide.glb --picture way.png
  poise animate steps.toml -o walk.bvh     # by the universal prior
""")
def animate(
    *files: Annotated[Path, about("[A model written by poise learn and] the constraint file, TOML.")],
    output: OptionalOutput = None,
    contacts_from: Annotated[
        Path | None, about("Write the constraint file, with this clip's foot contacts.")
    ] = None,
    wider: Annotated[
        float, about("With --contacts-from: widen steps by this many metres to each side.")
    ] = 0.0,
    longer: Annotated[float, about("With --contacts-from: scale the stride length by this factor.")] = 1.0,
    seed: Annotated[int, about("The random seed of the initial simulations.")] = 0,
    picture: WayPicture = None,
    onto: Onto = None,
) -> None:
    """Make a motion from constraints at any frames, by a model or, without one, by the universal prior."""
    from poise.apps import animate as app
    from poise.formats import read_motion
    from poise.formats.files import replacing
    from poise.priors.abilities import simulator_of
    from poise.priors.model_file import load

    model, constraints = files_of(files, "a constraint file, or a model and one")
    if contacts_from is not None:
        clip = read_motion(contacts_from)
        if not (contacts := app.contacts_in(clip)):
            raise InvalidValueError(f"no foot contact was found in {contacts_from.name}")
        along = clip.root_positions[-1] - clip.root_positions[0]
        contacts = app.changed(contacts, along=along, wider=wider, longer=longer)
        with replacing(constraints, "w") as file:
            file.write(app.contacts_text(contacts, frames=len(clip), fps=clip.fps))
        print(f"{constraints}: {len(contacts)} foot contacts over {clip.seconds:.2f} s")
        return
    if output is None:
        raise InvalidValueError("say where to write the motion: -o walk.bvh; or --contacts-from CLIP")
    prior = load(model)
    dynamics = simulator_of(prior)
    if picture is not None and dynamics is None:
        raise InvalidValueError(f"a {prior.kind} model has no latent path to draw; leave out --picture")
    with terminal.counting("animating") as report:
        found = app.animate(prior, constraints, seed=seed, progress=report)
    written = write_motion(found.motion, output, onto=onto)
    for miss in found.misses():
        terminal.warn(miss)
    print(written)
    if picture is not None and dynamics is not None:
        print(draw_way(dynamics, "animated", found.latents, picture))


@command("""\
The model starts at a training frame and continues by its dynamics. Activities
are those it was learned from (poise info MODEL names the clips): walk and
run, or names of your own. --to leads it from each activity into the next.
Without --to it continues with the most likely motion.

Examples:
  poise simulate gaits.poise --from run --seconds 6 -o run.gif
  poise simulate gaits.poise --from run --to walk --to run -o there_and_back.bvh
  poise simulate gaits.poise --from walk --pace 0.8 -o slow.glb
  poise simulate gaits.poise --from run --sample --seed 4 \\
      -o run_4.gif --picture path.png
""")
def simulate(
    model: MotionModel,
    *,
    output: Output,
    from_: Annotated[str | None, about("The activity to start in.", "--from")] = None,
    to: Annotated[tuple[str, ...], about("The activity to change to; repeat for more.")] = (),
    seconds: Annotated[float, about("How long.")] = 6.0,
    frame: Annotated[int | None, about("The training frame to start at.")] = None,
    pace: Annotated[float, about("The speed, as a ratio to the recording.")] = 1.0,
    sample: Annotated[bool, about("Draw a random motion instead of the mean.")] = False,
    seed: Annotated[int, about("The random seed.")] = 0,
    stay: Annotated[
        float | None,
        about("With --sample: the mean seconds before it changes its activity, not the clips' own."),
    ] = None,
    fps: Annotated[float, about("Frames a second.")] = 60.0,
    inference: Annotated[
        Literal["guided", "plain"] | None,
        about("guided: follow the surface and rhythm of the latent space; plain: use only the dynamics."),
    ] = None,
    picture: WayPicture = None,
    onto: Onto = None,
) -> None:
    """Let a motion model move on its own."""
    from poise.apps import simulating as app

    prior = app.load_dynamics(model)
    activities = [from_ or prior.frames.activity_names[0], *to] if from_ or to else []
    simulated = app.simulate(
        prior, activities=activities, seconds=seconds, frame=frame, pace=pace, seed=seed if sample else None,
        fps=fps, inference=inference, stay=stay,
    )  # fmt: skip
    print(write_motion(simulated.motion, output, onto=onto))
    if picture is not None:
        print(draw_way(prior, simulated.motion.name, simulated.latents, picture))


@command("""\
The trajectory is a CSV file with rows time,x,y,z (seconds, metres). A smooth
curve connects them. With --relative they are offsets from the recording.

Examples:
  poise edit box.poise punch.bvh --handle left_hand --trajectory higher.csv \\
      -o higher.bvh
  poise edit box.poise punch.bvh --handle left_hand --trajectory up.csv \\
      --relative -o up.gif
""")
def edit(
    model: Annotated[Path, about("A model written by poise learn.")],
    clip: Annotated[Path, about("The motion to edit.")],
    *,
    handle: Annotated[str, about("The joint or role to move.")],
    trajectory: Annotated[Path, about("CSV file: time,x,y,z per row.")],
    output: Output,
    relative: Annotated[bool, about("Points are offsets from the recording.")] = False,
    reading: ReadingOptions = AS_FOUND,
) -> None:
    """Change the path of one handle in a clip."""
    from poise.apps.dragging import drag, read_path
    from poise.priors.model_file import load

    path, prior = read_path(trajectory, relative=relative), load(model)
    motion = reading.motion(clip)
    with terminal.counting("solving") as report:
        edited = drag(prior, motion, handle, path, progress=report)
    written = write_motion(edited.motion, output)
    if edited.unmet:
        worst = 1000 * float(np.max(edited.handle_distances))
        terminal.warn(
            f"{handle} could not reach its path in {len(edited.unmet)} frames; up to {worst:.0f} mm are missing"
        )
    print(written)


@command("""\
For motions from detectors, generators, retargeting and old takes. Frames that
repeat the one before are filled, jitter goes without lag, a floor that tilts
is levelled, a body that sinks into it is lifted, a path that slides is
corrected, feet rest where they touch the floor, and limbs stay out of the
body. What is sound hardly changes. The report compares before and after.

With --keys the result has few keys a curve instead of one at every frame, and
no joint is more than 1 cm or 2 degrees off: curves in a GLB, paths and
rotations of hands, feet, head and pelvis in a keyframe script (.toml); other
formats hold every frame of the curves.

Examples:
  poise repair tracked.bvh -o mended.bvh
  poise repair generated.glb -o mended.glb --picture compared.png
  poise repair tracked.bvh -o mended.glb --keys
""")
def repair(
    motion: Annotated[Path, about("The motion to mend.")],
    *,
    output: KeyedOutput,
    keys: Annotated[bool, about("Write few keys, within 1 cm and 2 degrees.", negative=())] = False,
    picture: Annotated[Path | None, about("Also draw both, one above the other (.png).")] = None,
    json: Json = False,
    reading: ReadingOptions = AS_FOUND,
) -> None:
    """Mend a motion of any origin, and report what was wrong."""
    _repair(motion, output, reading=reading, keys=keys, picture=picture, json=json)


def _repair(
    motion: Path,
    output: Path,
    *,
    reading: ReadingOptions,
    keys: bool = False,
    picture: Path | None = None,
    json: bool = False,
) -> None:
    from poise.apps import repairing as app
    from poise.apps.outputs import save_picture

    if output.suffix.lower() == ".toml" and not keys:
        raise InvalidValueError(f"{output.name} is a keyframe script, which holds keys: add --keys")
    source = reading.motion(motion)
    with terminal.counting("mending") as report:
        found = app.repair(source, progress=report)
    written = _few_keys(found.motion, output) if keys else write_motion(found.motion, output)
    if picture is not None:
        save_picture(app.compared(source, found.motion), picture)
    if json:
        conditions = {"before": found.before._asdict(), "after": found.after._asdict()}
        terminal.print_json({**conditions, "notes": list(found.notes)})
    else:
        print(found)
        print(written)


def _few_keys(motion: Motion, output: Path) -> str:
    """Write few keys of a motion, as curves or as a keyframe script; return what was written, in words."""
    from poise.apps.keyframing import EDITED, script_text
    from poise.formats.files import replacing
    from poise.formats.registry import writer_takes
    from poise.motion.keys import CLOSE, TURNED, few_keys

    if output.suffix.lower() == ".toml":
        handles = [role for role in EDITED if role in motion.skeleton.roles]
        text = script_text(motion, handles, close=CLOSE, turned=TURNED, fps=motion.fps)
        with replacing(output) as file:
            file.write(text)
            rows = text.count("time =")
        return f"{output}: {rows} keys of {len(handles)} handles, within 1 cm and 2 degrees of their paths"
    found, curves = few_keys(motion), writer_takes(output, "keyed")
    options: dict[str, Any] = {"keyed": found} if curves else {}
    written = write_motion(found.motion, output, **options)
    every = "" if curves else f"; {output.suffix} has no curves, so it holds every frame of them"
    return f"{found}\n{written}{every}"


@command("""\
What it did is part of poise repair, which takes the same options.

Examples:
  poise clean walk.bvh -o mended.bvh
  poise repair walk.bvh -o mended.bvh
""")
def clean(
    motion: Annotated[Path, about("The motion to mend.")],
    *,
    output: Output,
    reading: ReadingOptions = AS_FOUND,
) -> None:
    """The old name of poise repair, for one more version."""
    terminal.note("poise clean is the old name of poise repair, and goes with the next version")
    _repair(motion, output, reading=reading)
