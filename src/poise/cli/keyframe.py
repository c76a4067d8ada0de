"""`poise keyframe [MODEL] SCRIPT -o FILE`: a motion from the paths of a few handles."""

from __future__ import annotations

from math import degrees
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import Onto, OptionalOutput, write_motion
from poise.errors import InvalidValueError, PoiseError

if TYPE_CHECKING:
    from poise.priors.prior import Prior

app = App(
    name="keyframe",
    help_epilogue="""\
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
""",
)


@app.default
def keyframe(
    *files: Annotated[
        Path, Parameter(help="[A model written by poise learn and] the keyframe script, a TOML file.")
    ],
    output: OptionalOutput = None,
    keys_from: Annotated[Path | None, Parameter(help="Write the script, with keys from this clip.")] = None,
    handle: Annotated[
        tuple[str, ...], Parameter(help="A joint or role to take keys from; repeat for more.")
    ] = (),
    heading: Annotated[
        bool, Parameter(negative="--no-heading", help="Face the walking direction unless a key sets it.")
    ] = True,
    balance: Annotated[
        bool, Parameter(negative="--no-balance", help="Keep the weight over keyed feet.")
    ] = True,
    live: Annotated[bool, Parameter(help="Solve again whenever the script is saved, until Ctrl-C.")] = False,
    onto: Onto = None,
) -> None:
    """Make a motion from the paths of a few handles, by a model or, without one, by the universal prior."""
    if not 1 <= len(files) <= 2:
        raise InvalidValueError(f"give a script, or a model and a script; got {len(files)} files")
    model, script = (None, files[0]) if len(files) == 1 else files
    if keys_from is not None:
        _write_script(script, keys_from, handle)
        return
    if output is None:
        raise InvalidValueError("name the file to write: -o motion.bvh, .glb or .gif")
    from poise.apps.keyframing import watched
    from poise.priors.model_file import load

    prior = load(model)
    if not live:
        _solve(prior, script, output, onto, heading=heading, balance=balance)
        return
    terminal.note(f"watching {script}; Ctrl-C ends")
    for _ in watched(script):
        try:
            _solve(prior, script, output, onto, heading=heading, balance=balance)
        except PoiseError as error:
            terminal.warn(str(error))


def _write_script(script: Path, clip: Path, handles: tuple[str, ...]) -> None:
    from poise.apps.keyframing_keys import script_text
    from poise.apps.learning import read_motion
    from poise.formats.files import replacing

    if script.exists():
        raise InvalidValueError(f"{script} exists; --keys-from writes a new script and replaces none")
    text = script_text(read_motion(clip), handles)
    with replacing(script) as file:
        file.write(text)
    print(f"{script}: {text.count('time =')} keys and {text.count('[[pins]]')} pins of {', '.join(handles)}")


def _solve(
    prior: Prior, script: Path, output: Path, onto: Path | None, *, heading: bool, balance: bool
) -> None:
    from poise.apps.keyframing import keyframe

    with terminal.counting("solving") as report:
        made = keyframe(prior, script, heading=heading, balance=balance, progress=report)
    written = write_motion(made.motion, output, onto=onto)
    for miss in made.misses():
        terminal.warn(miss)
    turned = f", turned within {degrees(made.worst_turn):.1f} degrees" if made.angles else ""
    print(f"{written}, handles within {1000 * made.worst:.1f} mm of their paths{turned}")
