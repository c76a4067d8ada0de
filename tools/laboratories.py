"""Fits a body to every take of a folder, and writes what was understood of its markers as a table.

    python tools/laboratories.py FOLDER [FOLDER ...] --output docs/results/notes/laboratories.md

The height that a take shows is that of its highest head marker, divided by the share of the height at which its place
is on the default body. Run on recordings that you have: none is part of Poise.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from poise.capture.markers import RUN_UP, fit_body, template
from poise.capture.matching import MatchedTake, read_take
from poise.capture.tracking import MarkerTracker
from poise.errors import PoiseError
from poise.priors.broad import BroadPrior
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import Pose

FRAMES = 60  # from the start of a take, solved
STANDING = 90  # percentile of a head marker's heights over a take
LOWEST = 0.12  # metres: a floor at height 0 has its lowest marker below this
HEADER = """\
# Marker sets of laboratories

See [fill gaps, solve markers](../../markers.md).

    python tools/laboratories.py FOLDER ... --output docs/results/notes/laboratories.md

fits a body to every take of folders and writes this table. The height from the head is that of the
highest head marker whose place is known, divided by the share of the height at which that place is
on the default body. The rms is that of frames 11 to 60. "Left out" are points that a model
computed. A take that is not solved has its error. Takes with left and right swapped are refused.
Recordings are not part of Poise.

| Take | Marker set | Markers | Left out | Body (m) | From the head (m) | Off (cm) | rms (mm) |
|---|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Fit:
    """What was understood of one take, or why it was not."""

    name: str
    known: str = ""
    markers: str = ""
    computed: int = 0
    height: float = np.nan
    shown: float = np.nan
    rms: float = np.nan
    refused: str = ""

    @property
    def row(self) -> str:
        """A row of the table."""
        if self.refused:
            return f"| {self.name} | {self.known} | | {self.computed} | | | | {self.refused} |"
        shown = "no head marker" if np.isnan(self.shown) else f"{self.shown:.2f}"
        off = "" if np.isnan(self.shown) else f"{100 * (self.height - self.shown):+.1f}"
        return (
            f"| {self.name} | {self.known} | {self.markers} | {self.computed} | {self.height:.2f} | {shown} | "
            f"{off} | {1000 * self.rms:.1f} |"
        )


def fit(path: Path, mapping: Path | None = None) -> Fit:
    """One take: matched, its body fitted, and some of its frames solved."""
    found = Fit(path.name)
    try:
        take = read_take(path, template(), mapping=mapping)
        known = next((line for line in take.matched if line.startswith("marker set: ")), "")
        left = next((line for line in take.matched if line.startswith("left out") and "computed" in line), "")
        found = replace(
            found,
            known=known.removeprefix("marker set: ")
            or ("by geometry" if "geometry" in take.matched[0] else "by name"),
            markers=str(len(take.layout)),
            computed=int(left.split()[2]) if left else 0,
        )
        calibration = fit_body(take)
        chosen = take.markers.points[:FRAMES]
        space = PoseSpace(calibration.skeleton)
        tracker = MarkerTracker(BroadPrior(space), calibration, fps=take.markers.fps)
        gaps = np.concatenate([tracker.step(points).markers - points for points in chosen][RUN_UP:])
        return replace(
            found,
            height=calibration.skeleton.height,
            shown=shown_height(take),
            rms=float(np.sqrt(np.nanmean(np.square(gaps).sum(axis=-1)))),
        )
    except PoiseError as error:
        return replace(found, refused=str(error).split(". ")[0].replace("|", "/")[:160])


def shown_height(take: MatchedTake) -> float:
    """The height of the person by the highest head marker whose place is known; NaN without one."""
    body, points = template(), take.markers.points
    positions, turns = Pose(body, np.zeros(3), neutral_pose(body).rotations).world
    floor = float(np.nanmin(points[..., 1]))
    floor = 0.0 if abs(floor) < LOWEST else floor - 0.03
    best = np.nan
    for number, (label, handle) in enumerate(take.layout.items()):
        heights = points[:, number, 1]
        if handle.joint == "Head" and label not in take.loose and np.isfinite(heights).any():
            at = body.index(handle.joint)
            below = positions[:, 1].max() - (positions[at] + turns[at] @ np.array(handle.offset))[1]
            share = 1.0 - below / body.height
            best = np.nanmax([best, (np.nanpercentile(heights, STANDING) - floor) / share])
    return float(best)


def main() -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--output", type=Path, required=True)
    given = parser.parse_args()
    files = [
        path
        for folder in given.folders
        for path in ([folder] if folder.is_file() else sorted(folder.rglob("*")))
        if path.suffix.lower() in (".c3d", ".trc")
    ]
    rows = []
    for path in files:
        rows.append(fit(path).row)
        print(rows[-1], flush=True)
    given.output.write_text(HEADER + "\n".join(rows) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
