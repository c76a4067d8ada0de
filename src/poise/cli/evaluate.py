"""`poise evaluate PROTOCOL`: measure every method the same way, on the performer or on recordings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from poise.cli import terminal
from poise.cli.options import Jobs, Scheduler

if TYPE_CHECKING:
    from poise.evaluation.handles import Row

app = App(
    name="evaluate",
    help_epilogue="""\
Protocols: handles (the root and five positions of an unseen clip in, the
pose out), image (3, 4 and 6 points of a frame in one photo in, the pose
out; methods style, gaussian, dls), markers (markers of a take hidden after
its first third, and filled; methods spline, pca, style, gaussian; takes are
C3D, TRC or motion files, or the split optical), performance (a few markers
in, the whole body out), cameras (the same, filmed by simulated cameras, two with
nine markers unless asked: pictures in, the whole body out), reduction (how many
dimensions poses need), search
(nearest frames during a performance; methods graph, faiss, exhaustive),
topology (walks and runs in one latent space, seven models; splits gaits,
other-gaits, many-gaits), animate (the foot contacts of an unseen clip in, the
motion out; methods dynamics, style, dls), speed (one problem, our methods and the
installed peers).
Splits: performer (needs no recordings), walk, boxing, pitch, sport,
locomotion, gaits, other-gaits, many-gaits, strides, everything (under
POISE_MOCAP). Methods: transpose, dls, sdls, ccd, fabrik, nearest, gp,
gaussian-N for any number of clusters, style (three dimensions, 100 active
poses), local; for performance also lwr, pca, mixture and local-pca, and
orientations and orientations-nearest (six inertial sensors instead of
markers); for reduction pca, mixture, gplvm and local.

Examples:
  poise evaluate handles
  poise evaluate handles --split walk --stride 4 --json walk.json --plots walk
  poise evaluate handles --train a.bvh b.bvh --test c.bvh --methods dls,gaussian-100
  poise evaluate image --split boxing --stride 40 --plots boxing
  poise evaluate markers --split optical --stride 4 --plots markers
  poise evaluate markers --test take.c3d --methods spline,style
  poise evaluate performance --split boxing --stride 4
  poise evaluate cameras --split boxing --plots cameras
  poise evaluate cameras --split walk --cameras 1 --markers 19
  poise evaluate reduction --split walk --plots reduction
  poise evaluate search --split everything --plots search
  poise evaluate topology --split gaits --plots topology
  poise evaluate animate --split strides --json animate.json
  poise evaluate speed --plots speed
""",
)


@app.default
def evaluate(
    protocol: Annotated[str, Parameter(help="What is measured: see below.")],
    *,
    split: Annotated[str, Parameter(help="Which clips are learned from and tested on.")] = "performer",
    train: Annotated[
        list[Path] | None, Parameter(help="Clips to learn from, instead of a split.", consume_multiple=True)
    ] = None,
    test: Annotated[list[Path] | None, Parameter(help="Clips to test on.", consume_multiple=True)] = None,
    methods: Annotated[str, Parameter(help="Names with commas between; all by default.")] = "",
    stride: Annotated[int, Parameter(help="Test on every Nth frame.")] = 1,
    independent: Annotated[bool, Parameter(help="Start every frame anew, not from the one before.")] = False,
    free_root: Annotated[bool, Parameter(help="Solve the root too, from six handles.")] = False,
    cameras: Annotated[int, Parameter(help="How many cameras film, in `cameras`.")] = 2,
    markers: Annotated[int, Parameter(help="How many markers are worn, in `cameras`: 9 or 19.")] = 9,
    jobs: Jobs = 1,
    scheduler: Scheduler = "",
    json: Annotated[Path | None, Parameter(help="Also write the report to this file.")] = None,
    plots: Annotated[Path | None, Parameter(help="Also draw plots and pictures into this folder.")] = None,
) -> None:
    """Measure methods the same way: errors, reached targets, time."""
    from poise.engine import Engine
    from poise.evaluation.machine import machine, versions
    from poise.evaluation.report import Request, evaluate

    request = Request(
        protocol,
        split,
        train or (),
        test or (),
        _names(methods),
        stride,
        independent,
        free_root,
        cameras,
        markers,
    )
    with terminal.steps() as step:
        report = evaluate(
            request,
            lambda what, done, total: step(f"{protocol}: {what} ({done}/{total})"),
            engine=Engine(jobs, scheduler),
        )
    terminal.print_table(*_table(report.rows))
    terminal.note(f"{machine()}; " + ", ".join(f"{name} {number}" for name, number in versions().items()))
    if protocol == "speed":
        _say_who_is_missing()
    if json is not None:
        report.write(json)
    if plots is not None:
        from poise.evaluation.plots import draw_report

        with terminal.steps() as step:
            files = draw_report(request, report, plots, step)
        print("\n".join(str(file) for file in files))


def _say_who_is_missing() -> None:
    from poise.evaluation.speed import missing_peers

    if missing := missing_peers():
        terminal.warn(
            f"not installed, so not measured: {', '.join(missing)} (the extra poise[bench], or make speed)"
        )


def _names(methods: str) -> list[str]:
    return [name.strip() for name in methods.split(",") if name.strip()]


def _table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    return columns, [[_cell(row.get(column, "")) for column in columns] for row in rows]


def _cell(value: float | str) -> str:
    if isinstance(value, str | int):
        return str(value)
    return f"{value:.3f}" if 0.001 <= abs(value) < 1000 else f"{value:.3g}"
