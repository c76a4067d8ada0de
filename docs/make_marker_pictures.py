"""Draws the pictures of markers.md from a complete take of 41 markers; where there is none, it says so.

    python docs/make_marker_pictures.py [TAKE.c3d]      135_02.c3d of the optical recordings, if none is named

Half of its markers lose a few stretches after the first third; the report shows how they are filled. The recording
stays where it is.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from poise.capture.markers import save_report, solve, template
from poise.capture.matching import read_take
from poise.motion.recordings import find_recordings

FOLDER = Path(__file__).parent / "images" / "markers"
WIDTH = 1200
GAPS = (8, 40, 120, 300)  # frames


def main(path: str) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    take = read_take(Path(path), template())
    points, rng = take.markers.points.copy(), np.random.default_rng(1)
    frames, count = points.shape[:2]
    for marker in rng.permutation(count)[: count // 2]:
        for length in rng.choice(GAPS, size=2, replace=False).tolist():
            start = int(rng.integers(frames // 3, frames - length))
            points[start : start + length, marker] = np.nan
    report = save_report(
        solve(replace(take, markers=replace(take.markers, points=points))), FOLDER / "report.png"
    )
    with Image.open(report) as picture:
        scaled = picture.resize(
            (WIDTH, round(picture.height * WIDTH / picture.width)), Image.Resampling.LANCZOS
        )
    scaled.save(report, optimize=True)


def take_of_recordings() -> Path | None:
    recordings = find_recordings()
    take = recordings / "optical" / "135_02.c3d" if recordings else None
    return take if take is not None and take.is_file() else None


if __name__ == "__main__":
    if take := (sys.argv[1] if sys.argv[1:] else take_of_recordings()):
        main(str(take))
    else:
        print("there are no optical recordings (see docs/data-sets.md); name a C3D take")
