"""`poise pose [MODEL] --handle NAME=x,y,z ...`: a whole-body pose from a few handles."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import Onto, OptionalOutput

app = App(
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


@app.default
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
