"""Plots of reports: Table 1 and Fig. 6 of Huang et al. 2017 with our methods, accuracy, and speed beside the peers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from poise.errors import InvalidValueError
from poise.evaluation.report import PROTOCOLS, Report, Request, Row, Step
from poise.pictures.plots import Axes, LogFormatter, Plot
from poise.types import silent

PAPER_MS: Mapping[str, float] = {
    "gaussian-10": 1.1, "gaussian-100": 3.1, "dls": 0.55, "gp": 2.31, "transpose": 0.33, "style": 24.78,
}  # fmt: skip
"""Huang et al. 2017, Table 1: average milliseconds on one core of a 2.93 GHz Xeon."""

INK, GRID = "#1f2933", "#d9dfe6"
LEARNED, FROM_DATA, CLASSIC, PEER = "#c2185b", "#e08e2b", "#4c78a8", "#9aa5b1"
_SEARCHES = {
    "coherent": LEARNED, "coherent-exact": INK, "graph": PEER, "faiss": FROM_DATA, "exhaustive": CLASSIC,
}  # fmt: skip
IMAGE_COLOURS = {"style": LEARNED, "gaussian": FROM_DATA, "dls": CLASSIC}
_TINY = 1e-12  # what a logarithmic axis shows for zero


def draw_report(request: Request, report: Report, folder: Path, step: Step = silent) -> list[Path]:
    """All plots and pictures of a report, as PNG files in a folder."""
    protocol = PROTOCOLS[report.protocol]
    if protocol.draw is None and not protocol.figures:
        raise InvalidValueError(f"the protocol {report.protocol} draws nothing")
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    if protocol.figures:
        step("plots")
        for name, figure in protocol.figures.items():
            files.append(saved(globals()[figure](report), folder / f"{name}.png"))
    return files if protocol.draw is None else [*files, *protocol.draw(request, report, folder, step)]


def accuracy_figure(report: Report) -> Plot:
    """Pose errors: degrees per joint, and joint positions in centimetres."""
    figure, (left, right) = panels(f"Accuracy on {report.split}", columns=2)
    _bars(left, report.rows, "deg_per_joint", "degrees per joint")
    _bars(right, report.rows, "mpjpe_cm", "mean joint position error, cm", names=False)
    return figure


def errors_figure(report: Report) -> Plot:
    """The paper's Fig. 6: mean squared errors in the joint space and at the targets."""
    title = f"Errors on {report.split}, as Fig. 6 of Huang et al. 2017"
    figure, (left, right) = panels(title, columns=2)
    _bars(left, report.rows, "mse_rad2", "joint space, mean squared error in rad²", log=True)
    _bars(right, report.rows, "handle_mse_m2", "targets, mean squared distance in m²", log=True, names=False)
    right.axvline(1e-4, color=INK, linewidth=0.8, linestyle=":")
    right.annotate("10 mm", (1e-4, -0.6), xytext=(3, 0), textcoords="offset points", fontsize=8, va="center")
    return figure


def search_figure(report: Report) -> Plot:
    """Time per frame and frames compared, against the size of the library."""
    figure, (left, right) = panels(f"Searching libraries of different sizes, {report.split}", columns=2)
    for axes, metric, label in (
        (left, "ms_per_frame", "milliseconds per frame, one thread"),
        (right, "visited", "frames looked at"),
    ):
        for method, colour in _SEARCHES.items():
            rows = sorted(
                (row for row in report.rows if row["method"] == method), key=lambda row: row["size"]
            )
            sizes = [float(row["size"]) / 1000 for row in rows]
            if rows:
                axes.plot(sizes, [float(row[metric]) for row in rows], "o-", color=colour, label=method)
        axes.set(xlabel="thousands of frames in the library", ylabel=label, yscale="log", xlim=(0, None))
        axes.grid(color=GRID)
    left.legend(frameon=False)
    return figure


def reduction_figure(report: Report) -> Plot:
    """Fig. 5 of Chai and Hodgins 2005: the reconstruction error of poses by number of dimensions and method."""
    figure, (axes,) = panels(f"Poses by few numbers, {report.split}", columns=1)
    colours = {"local": LEARNED, "mixture": FROM_DATA, "pca": CLASSIC}
    for row in report.rows:
        method = str(row["method"])
        given = [key for key in row if key.startswith("deg_at_")]
        if curve := {int(key.removeprefix("deg_at_")): float(row[key]) for key in given}:
            colour = colours.get(method, PEER)
            axes.plot(*zip(*sorted(curve.items()), strict=True), "o-", color=colour, label=method)
    axes.axhline(1.0, color=INK, linewidth=0.8, linestyle=":")
    axes.set(xlabel="dimensions", ylabel="degrees per joint", xlim=(0, None), ylim=(0, None))
    axes.grid(color=GRID)
    axes.legend(frameon=False)
    return figure


def time_figure(report: Report) -> Plot:
    """The paper's Table 1: time per frame, whether the targets are reached, and the published times."""
    title = f"Time per frame on {report.split}, as Table 1 of Huang et al. 2017"
    figure, (axes,) = panels(title, columns=1)
    _bars(axes, report.rows, "ms_per_frame", "milliseconds per frame, one thread", log=True, labels=False)
    published = [PAPER_MS.get(str(row["method"])) for row in report.rows]
    known = [(ms, place) for place, ms in enumerate(published) if ms is not None]
    if known:
        axes.scatter(*zip(*known, strict=True), marker="D", s=34, color="white", edgecolor=INK, zorder=3)
    smallest = min(float(row["ms_per_frame"]) for row in report.rows)
    largest = max(*(float(row["ms_per_frame"]) for row in report.rows), *(ms for ms, _ in known), 1.0)
    axes.set_xlim(0.4 * smallest, 3 * largest)
    for place, row in enumerate(report.rows):
        text = f"{float(row['ms_per_frame']):.3f} ms, {float(row['reached_10mm']):.0%} within 10 mm"
        axes.annotate(
            text, (1.01, place), xycoords=("axes fraction", "data"), fontsize=8, va="center", color=INK
        )
    axes.annotate(
        "◇ published: one core of a 2.93 GHz Xeon", (0, 1.01), xycoords="axes fraction", fontsize=8, color=INK
    )
    return figure


def speed_figure(report: Report) -> Plot:
    """Cold poses and tracked frames of all solvers, each on a logarithmic axis."""
    figure, (left, right) = panels("One 66-freedom body, five targets, within 10 mm, one thread", columns=2)
    for axes, kind, text in (
        (left, "cold", "a pose from the rest pose, ms"),
        (right, "tracked", "a frame from the one before, ms"),
    ):
        _bars(axes, report.rows, f"ms_{kind}", text, log=True, names=axes is left)
        for place, row in enumerate(report.rows):
            if float(row[f"reached_{kind}"]) < 0.995:
                note, coordinates = (
                    f"  {float(row[f'reached_{kind}']):.0%} reached",
                    ("axes fraction", "data"),
                )
                axes.annotate(
                    note, (0.0, place), xycoords=coordinates, fontsize=7, va="center", color="white"
                )
    return figure


def image_figure(report: Report) -> Plot:
    """Errors, and the share of right poses among the first three, against the number of image points."""
    figure, (left, right) = panels(f"Poses from one photo on {report.split}", columns=2)
    for method in dict.fromkeys(str(row["method"]) for row in report.rows):
        rows = sorted((row for row in report.rows if row["method"] == method), key=lambda row: row["points"])
        points, colour = [int(row["points"]) for row in rows], IMAGE_COLOURS.get(method, PEER)
        for key, line, where in (
            ("mpjpe_root_cm", "o-", "from the root"),
            ("mpjpe_cm", "o:", "in the world"),
        ):
            left.plot(points, [row[key] for row in rows], line, color=colour, label=f"{method}, {where}")
        right.plot(points, [row["right_in_3"] for row in rows], "o-", color=colour, label=method)
    left.set(xlabel="points", ylabel="mean joint position error, cm", ylim=(0, None))
    right.set(xlabel="points", ylabel="right pose among the first three", ylim=(0, 1.02))
    right.axhline(0.9, color=INK, linewidth=0.8, linestyle=":")
    for axes in (left, right):
        axes.set_xticks(points)
        axes.grid(True, color=GRID, linewidth=0.6)
        axes.legend(fontsize=7, frameon=False)
    return figure


def scaling_figure(curves: Mapping[str, tuple[Sequence[int], Sequence[float]]]) -> Plot:
    """Time against a size, log-log, each with the slope of its last half."""
    figure, all_axes = panels("What a pose costs", columns=len(curves))
    for axes, (name, (sizes, milliseconds)) in zip(all_axes, curves.items(), strict=True):
        axes.loglog(sizes, milliseconds, "o-", color=LEARNED, markersize=4)
        half = len(sizes) // 2
        slope = np.polyfit(np.log(sizes), np.log(milliseconds), 1)[0]
        late = np.polyfit(np.log(sizes[half:]), np.log(milliseconds[half:]), 1)[0]
        axes.set_title(f"slope {slope:.2f}, at the end {late:.2f}", fontsize=9, color=INK, loc="left")
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.minorticks_off()
        axes.set_xlabel(name)
        axes.set_ylabel("ms per pose")
        axes.set_ylim(0.5 * min(milliseconds), 2 * max(milliseconds))
        axes.grid(True, which="both", color=GRID, linewidth=0.5)
    return figure


def markers_figure(report: Report) -> Plot:
    """Errors of filled markers against the share hidden for the rest of a take, and against the gap length."""
    figure, (left, right) = panels(f"Hidden markers, {report.split}", columns=2)
    shown = [row for row in report.rows if "hidden_percent" in row]
    for axes, key, text, to_the_end in (
        (left, "hidden_percent", "percent of the markers hidden for the rest of the take", True),
        (right, "gap_s", "seconds that gaps last, half of the markers hidden", False),
    ):
        rows = [row for row in shown if (row["gap_s"] == 0) == to_the_end]
        for method in dict.fromkeys(str(row["method"]) for row in rows):
            own = [row for row in rows if row["method"] == method]
            places = sorted({float(row[key]) for row in own})
            means = [np.mean([float(row["mean_mm"]) for row in own if row[key] == place]) for place in places]
            colour = {**IMAGE_COLOURS, "pca": CLASSIC}.get(method, PEER)
            axes.plot(places, means, "-", color=colour, label=method)
            dots = [row[key] for row in own], [row["mean_mm"] for row in own]  # every take
            axes.plot(*dots, ".", color=colour, markersize=4)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))  # none over many decades
        axes.set_xlabel(text)
        axes.grid(True, which="both", color=GRID, linewidth=0.5)
        axes.axhline(35.0, color=INK, linewidth=0.8, linestyle=":")
    left.set_ylabel("mean distance from what was measured, mm")
    right.set_xscale("log")
    right.xaxis.set_major_formatter("{x:g}")
    left.legend(frameon=False, fontsize=8)
    return figure


def _bars(
    axes: Axes,
    rows: Sequence[Row],
    metric: str,
    label: str,
    *,
    log: bool = False,
    names: bool = True,
    labels: bool = True,
) -> None:
    """One horizontal bar per method, with its value at the end."""
    values = np.maximum([float(row[metric]) for row in rows], _TINY if log else 0.0)
    methods = [str(row["method"]) for row in rows]
    if log:
        axes.set_xscale("log")
    bars = axes.barh(np.arange(len(rows)), values, color=[_colour(name) for name in methods], height=0.68)
    if labels:
        axes.bar_label(bars, [f"{value:.3g}" for value in values], padding=3, fontsize=8, color=INK)
    axes.set_yticks(np.arange(len(rows)), methods if names else [""] * len(rows))
    axes.set_ylim(len(rows) - 0.4, -0.8)
    axes.set_xlabel(label)
    axes.set_xlim((0.3 * values.min(), 6 * values.max()) if log else (0, 1.15 * max(values.max(), _TINY)))
    axes.grid(True, axis="x", color=GRID, linewidth=0.6)


def _colour(method: str) -> str:
    if method.startswith("gaussian") or method in ("style", "local"):
        return LEARNED
    if method in ("nearest", "gp", "lwr"):
        return FROM_DATA
    return PEER if method in ("pinocchio", "placo", "mink", "pink") else CLASSIC


def panels(title: str, *, columns: int) -> tuple[Plot, Any]:
    figure = Plot(
        figsize=(4.6 * columns + (2.6 if columns == 1 else 0.6), 4.2), dpi=150, layout="constrained"
    )
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, color=INK, fontweight="bold")
    axes = figure.subplots(1, columns, squeeze=False)[0]
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
        each.spines[["left", "bottom"]].set_color(GRID)
        each.tick_params(which="both", colors=INK, length=0, labelsize=9)
        each.xaxis.label.set_color(INK)
        each.set_axisbelow(True)
    return figure, axes


def saved(figure: Plot, path: Path) -> Path:
    """Write a figure; return its path."""
    figure.savefig(path)
    return path
