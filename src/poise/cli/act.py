"""`poise act ACTION -o FILE`: a motion without a recording."""

from __future__ import annotations

import ast
import inspect
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import OptionalOutput
from poise.errors import InvalidValueError

if TYPE_CHECKING:
    from poise.performer import Action

app = App(
    name="act",
    help_epilogue="""\
The parameters of an action are options too; --list shows them. The extension
selects the output: .bvh .amc .glb, or .png .gif .mp4 for a picture.

Examples:
  poise act --list
  poise act walk -o walk.bvh
  poise act run --speed 3.5 --turn 0.4 -o run.gif
  poise act throw --style old --performer maya --seed 7 -o throw.glb
""",
)


@app.default
def act(
    action: Annotated[str | None, Parameter(help="The action; --list shows all of them.")] = None,
    *,
    output: OptionalOutput = None,
    style: Annotated[str, Parameter(help="The style of the motion.")] = "neutral",
    performer: Annotated[str | None, Parameter(help="The performer.")] = None,
    seconds: Annotated[float | None, Parameter(help="Duration. Each action has its own default.")] = None,
    fps: Annotated[float, Parameter(help="Frames per second.")] = 120.0,
    seed: Annotated[int, Parameter(help="The random seed of small irregularities.")] = 0,
    list_: Annotated[bool, Parameter(name="--list", help="Show actions, styles and performers.")] = False,
    **parameters: Annotated[str, Parameter(help="Parameters of the action: --speed 1.5 --turn 0.3 ...")],
) -> None:
    """Write a motion of the procedural performer."""
    if list_:
        _list()
        return
    if action is None or output is None:
        raise InvalidValueError(
            "name an action and a file to write: poise act walk -o walk.bvh (or poise act --list)"
        )
    from poise.apps.outputs import save
    from poise.performer import act as perform

    given = {name: _value(text) for name, text in parameters.items()}
    if performer is not None:
        given["performer"] = performer
    with terminal.working(f"acting {action}"):
        motion = perform(action, style=style, seconds=seconds, fps=fps, seed=seed, **given)
    with terminal.counting(f"writing {output.name}") as report:
        save(motion, output, progress=report)
    print(f"{output}: {motion.name}, {len(motion)} frames at {motion.fps:g} Hz, {terminal.file_size(output)}")


def _list() -> None:
    from poise.performer import ACTIONS, PERFORMERS, STYLES

    terminal.print_table(
        ("action", "what", "its own options"),
        ((name, action.summary, _options(action)) for name, action in ACTIONS.items()),
    )
    print()
    terminal.print_facts("", [("styles", ", ".join(STYLES)), ("performers", ", ".join(PERFORMERS))])


def _options(action: Action) -> str:
    names = [name for name in inspect.signature(action.direct).parameters if name != "stage"]
    return " ".join(f"--{name.replace('_', '-')}" for name in names)


def _value(text: str) -> Any:
    """A number, or several (0.3,1.2,0.4), if the text spells them; else the text itself."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text
