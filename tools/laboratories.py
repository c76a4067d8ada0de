"""Fits a body to every take of a folder, and writes what was understood of its markers as a table.

    python tools/laboratories.py FOLDER [FOLDER ...] --output docs/results/laboratories.md

The height that a take shows is that of its highest head marker, divided by the share of the height at which its place
is on the default body. Run on recordings that you have: none is part of Poise.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from poise.capture.markers import fit_body, template
from poise.capture.matching import MatchedTake, read_take
from poise.capture.tracking import LEARNING_FPS, MarkerTracker
from poise.errors import PoiseError
from poise.priors.broad import BroadPrior
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import Pose

FRAMES = 60  # of a take's middle, solved
STANDING = 90  # percentile of a head marker's heights over a take
LOWEST = 0.12  # metres: a floor at height 0 has its lowest marker below this
HEADER = """\
# Marker sets of laboratories

`python tools/laboratories.py FOLDER ... --output docs/results/laboratories.md` fits a body to every
take of folders and writes this table. The height from the head is that of the highest head marker,
divided by the share of the height at which its place is on the default body. The last column is the
error where the take is not solved. Recordings are not part of Poise.

| take | marker set | markers | left out | body, m | from the head, m | off, cm | rms, mm |
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
        stride = max(1, int(take.markers.fps / LEARNING_FPS))
        first = max(0, (len(take) - FRAMES * stride) // 2)
        chosen = take.markers.points[first : first + FRAMES * stride : stride]
        space, fps = PoseSpace(calibration.skeleton), take.markers.fps / stride
        tracker = MarkerTracker(BroadPrior(space), calibration, fps=fps)
        gaps = np.concatenate([tracker.step(points).markers - points for points in chosen])
        return replace(
            found,
            height=calibration.skeleton.height,
            shown=shown_height(take),
            rms=float(np.sqrt(np.nanmean(np.square(gaps).sum(axis=-1)))),
        )
    except PoiseError as error:
        return replace(found, refused=str(error).split(". ")[0].replace("|", "/")[:160])


def shown_height(take: MatchedTake) -> float:
    """The height of the person by the highest marker of the head; NaN without one."""
    body, points = template(), take.markers.points
    positions, turns = Pose(body, np.zeros(3), neutral_pose(body).rotations).world
    floor = float(np.nanmin(points[..., 1]))
    floor = 0.0 if abs(floor) < LOWEST else floor - 0.03
    best = np.nan
    for number, handle in enumerate(take.layout.values()):
        heights = points[:, number, 1]
        if handle.joint == "Head" and np.isfinite(heights).any():
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
