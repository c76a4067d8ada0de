"""`poise evaluate PROTOCOL`: measure every method the same way, on the performer or on recordings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.main import sentence
from poise.cli.options import about, flags_of
from poise.evaluation import report as reporting
from poise.evaluation.report import ABOUT, PROTOCOLS, Request
from poise.evaluation.splits import ABOUT_SPLITS
from poise.formats.tables import checked

_splits = "\n".join(f"  {name:<13} {about_split}" for name, about_split in ABOUT_SPLITS.items())
evaluate = App(
    name="evaluate",
    help="Measure all methods under the same protocol: errors and time.",
    help_epilogue=f"""\
Splits:
{_splits}
All but performer need recordings (POISE_MOCAP names their folder).
`poise evaluate PROTOCOL --help` lists the methods and options of a protocol.
Every kind of model is a method of handles, image and markers.

Examples:
  poise evaluate handles
  poise evaluate handles --split walk --stride 4 --json walk.json --plots walk
  poise evaluate handles --train a.bvh b.bvh --test c.bvh
  poise evaluate image --split boxing --stride 40 --plots boxing
  poise evaluate markers --split optical --stride 4 --plots markers
  poise evaluate markers --test take.c3d --methods spline,style
  poise evaluate performance --split boxing --stride 4
  poise evaluate cameras --split boxing --plots cameras
  poise evaluate cameras --split walk --cameras 1 --markers 19
  poise evaluate video --recording Pose2Sim/Demo_SinglePerson
  poise evaluate reduction --split walk --plots reduction
  poise evaluate search --split everything --plots search
  poise evaluate topology --split gaits --plots topology
  poise evaluate animate --split strides --json animate.json
  poise evaluate speed --plots speed
""",
)


@evaluate.default
def evaluate_late(
    protocol: Annotated[str, Parameter(show=False)],
    *arguments: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
) -> None:
    """Measure by a protocol that was registered after the program started; anything else is a mistake."""
    command_of(protocol)(list(arguments), exit_on_error=False, print_error=False)


def command_of(name: str) -> App:
    """A protocol as a command: the common options, and its own."""
    protocol = PROTOCOLS.named(name)
    flags = flags_of({name: protocol.Options}, of="")
    nothing = flags()

    def run(
        *,
        split: Annotated[str, about("The clips for training and testing.")] = "performer",
        train: Annotated[
            list[Path] | None, about("Clips to learn from, instead of a split.", consume_multiple=True)
        ] = None,
        test: Annotated[list[Path] | None, about("Clips to test on.", consume_multiple=True)] = None,
        methods: Annotated[str, about("Names, separated by commas. Default: the usual ones.")] = "",
        options: Any = nothing,
        json: Annotated[Path | None, about("Also write the report to this file.")] = None,
        plots: Annotated[Path | None, about("Also draw plots and pictures into this folder.")] = None,
    ) -> None:
        given = {key: value for key, value in vars(options).items() if value is not None}
        chosen = checked(protocol.Options, given, what=f"the protocol {name}")
        request = Request(name, split, train or (), test or (), reporting.names_from_text(methods), chosen)
        with terminal.steps() as step:
            report = reporting.evaluate(
                request, lambda what, done, total: step(f"{name}: {what} ({done}/{total})")
            )
        columns = list(dict.fromkeys(column for row in report.rows for column in row))
        terminal.print_table(
            columns, [[_cell(row.get(column, "")) for column in columns] for row in report.rows]
        )
        known = ", ".join(f"{package} {number}" for package, number in reporting.versions().items())
        terminal.note(f"{reporting.machine()}; {known}")
        if left_out := protocol.left_out():
            terminal.warn(left_out)
        if json is not None:
            report.write(json)
        if plots is not None:
            from poise.evaluation.plots import draw_report

            with terminal.steps() as step:
                files = draw_report(request, report, plots, step)
            print("\n".join(map(str, files)))

    run.__annotations__["options"] = Annotated[flags, Parameter(name="*")]
    valid = f"Methods: {', '.join(protocol.methods)}." if protocol.methods else ""
    made = App(name=name, help=sentence(protocol.about), help_epilogue=valid)
    made.default(run)
    return made


def _cell(value: float | str) -> str:
    if isinstance(value, str | int):
        return str(value)
    return f"{value:.3f}" if 0.001 <= abs(value) < 1000 else f"{value:.3g}"


def __getattr__(name: str) -> App:
    """The command of a protocol, created on demand: its module may import much."""
    if name in PROTOCOLS:
        return command_of(name)
    raise AttributeError(name)


for _name in PROTOCOLS:
    evaluate.command(
        f"poise.cli.evaluate:{_name}", name=_name, help=sentence(ABOUT.get(_name) or PROTOCOLS[_name].about)
    )
