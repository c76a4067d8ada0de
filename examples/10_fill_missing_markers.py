"""Fill the gaps of an optical recording: fit a body to the markers, learn how it moves, follow it through the gaps.

    python examples/10_fill_missing_markers.py                  # virtual markers of the performer, some hidden
    python examples/10_fill_missing_markers.py take.c3d         # your own take

Writes out/markers.png, a report of gaps, fills and their uncertainty, and prints what was matched and filled. Of the
performer's markers it is known where they were: the last line compares.
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import poise

HIDDEN = ("LFIN", "LWRA", "LWRB", "RKNE", "RSHN", "STRN")
FRAMES = slice(60, 105)


def main(paths: list[str], output: Path = Path("out/markers.png")) -> float | None:
    truth = None
    if paths:
        take = poise.capture.read_take(Path(paths[0]), poise.capture.template())
    else:
        take, truth = _performed()
    capture = poise.capture.solve(take)
    filled = poise.capture.fill_gaps(capture)
    for name, value in poise.capture.summary(capture, filled).items():
        print(f"{name}: {value}")
    print(poise.capture.save_report(capture, output))
    if truth is None:
        return None
    off = np.linalg.norm(filled.points - truth, axis=2)[~filled.measured]
    print(f"filled points are {1000 * off.mean():.1f} mm from where they were, on average")
    return float(off.mean())


def _performed() -> tuple[Any, np.ndarray]:
    """A walk with virtual markers, six of them hidden for a second and a half; and where they were."""
    markers = poise.virtual_markers(
        poise.performer.act("walk", performer="maya", seconds=4.0, fps=30, seed=5)
    )
    points = markers.points.copy()
    points[FRAMES, [markers.index(label) for label in HIDDEN]] = np.nan
    gappy = replace(markers, points=points)
    return poise.capture.match(gappy, poise.capture.template()), np.asarray(markers.points)


if __name__ == "__main__":
    main(sys.argv[1:])
