"""`poise markers solve` and `poise markers fill`: a moving body, and a take without gaps, from recorded markers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import MarkerOutput, Onto, Output, Units, Up, warn_of, write_motion

if TYPE_CHECKING:
    from poise.capture.markers import Capture

app = App(
    name="markers",
    help_epilogue="""\
A take is a C3D or TRC file with labelled markers. The 41-marker set of CMU and
HDM05 and Plug-in Gait's names are known. Unknown labels are matched by
geometry, and the result is printed. A mapping file overrides it:

  [markers]            # a marker of the 41-marker set
  "Head1" = "LFHD"
  [joints]             # or only the joint it is attached to
  "Racket" = "right_hand"

Examples:
  poise markers solve take.c3d -o take.bvh
  poise markers solve take.c3d --style walk.poise -o take.glb
  poise markers fill take.c3d -o filled.c3d --report filled.png
  poise markers fill duo.c3d --subject Anna --map layout.toml -o anna.c3d
""",
)

Source = Annotated[Path, Parameter(help="The take: a C3D or TRC file.")]


@dataclass(frozen=True)
class MarkerOptions:
    """What solving and filling have in common."""

    style: Annotated[
        Path | None,
        Parameter(help="A model written by poise learn. Default: a style learned from the take."),
    ] = None
    subject: Annotated[
        str | None, Parameter(help="The person, if labels have the prefixes of several people.")
    ] = None
    map: Annotated[Path | None, Parameter(help="A mapping file from labels to markers or joints.")] = None
    units: Units = None
    up: Up = None
    report: Annotated[Path | None, Parameter(help="Also draw gaps, fills and uncertainty (.png).")] = None
    uncertainty: Annotated[
        bool, Parameter(help="Also write the uncertainty of each joint, per frame (.uncertainty.json).")
    ] = False
    json: Annotated[bool, Parameter(help="Print the result as JSON.")] = False

    def reading(self) -> dict[str, Any]:
        """How the take is read, where that is said."""
        given = {"units": self.units, "up": self.up}
        return {name: value for name, value in given.items() if value is not None}


@app.command
def solve(
    take: Source,
    *,
    output: Output,
    onto: Onto = None,
    options: Annotated[MarkerOptions, Parameter(name="*")] = MarkerOptions(),  # noqa: B008 - frozen
) -> None:
    """Fit a body to the markers and write its motion (.bvh, .glb, .gif, ...)."""
    from poise.capture import markers as takes

    capture = _capture(take, options)
    write_motion(capture.motion, output, onto=onto)
    _tell(capture, takes.summary(capture), output, options)


@app.command
def fill(
    take: Source,
    *,
    output: MarkerOutput,
    unsure: Annotated[bool, Parameter(help="Fill even gaps that are too uncertain.")] = False,
    options: Annotated[MarkerOptions, Parameter(name="*")] = MarkerOptions(),  # noqa: B008 - frozen
) -> None:
    """Fill the gaps of a take and write it again; what was measured stays as it is.

    Filled points have the residual 0, as C3D has it for points that were not
    measured; in a take whose own residuals are all 0, they have their standard
    deviation instead. What is too uncertain (over 100 mm) stays a gap.
    """
    from poise.apps import marker_files
    from poise.capture import markers as takes

    capture = _capture(take, options)
    filled = takes.fill_gaps(capture)
    markers = takes.filled_markers(capture, filled, unsure=unsure)
    marker_files.write_filled_take(take, markers, output, subject=options.subject, **options.reading())
    _tell(capture, takes.summary(capture, filled), output, options)


def _capture(take: Path, options: MarkerOptions) -> Capture:
    from poise.capture import marker_takes
    from poise.capture import markers as takes
    from poise.priors.model_file import load

    prior = load(options.style) if options.style is not None else None
    skeleton = prior.space.skeleton if prior is not None else takes.template()
    with terminal.working("reading"):
        found = marker_takes.read_take(
            take, skeleton, subject=options.subject, mapping=options.map, **options.reading()
        )
    warn_of(found.markers)
    for line in found.matched:
        terminal.note(line)
    with terminal.steps() as step:
        capture = takes.solve(
            found, prior=prior, progress=lambda what, done, total: step(f"{what} ({done}/{total})")
        )
    for note in capture.notes:
        terminal.warn(note)
    takes.check_fit(capture.rms, take.name)
    return capture


def _tell(capture: Capture, facts: dict[str, Any], output: Path, options: MarkerOptions) -> None:
    if options.report is not None:
        _draw(capture, options.report)
    if options.uncertainty:
        from poise.apps.outputs import save_deviations

        save_deviations(output, capture.motion, capture.deviation)
    if options.json:
        terminal.print_json(facts)
        return
    shown = {
        name: value for name, value in facts.items() if name not in ("matched", "notes", "flagged_frames")
    }
    terminal.print_facts(str(output), [(name, str(value)) for name, value in shown.items()])
    if facts.get("flagged_points"):
        terminal.warn(
            f"{facts['flagged_points']} points in {len(facts['flagged_frames'])} frames are too uncertain to fill"
        )


def _draw(capture: Capture, picture: Path) -> None:
    from poise.apps.marker_files import save_report

    with terminal.working(f"drawing {picture.name}"):
        save_report(capture, picture)
    terminal.note(f"{picture}: gaps, fills and uncertainty")
