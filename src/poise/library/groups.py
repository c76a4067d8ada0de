"""Groups of runs that are alike, whichever clips they are from, and how far everything is from what stands for it.

A run's middle frame stands for its frames, and a group's centre for its runs. What is known about these distances
tells, from the distance of a query to a centre alone, which runs cannot be near it, and from that to a middle frame
which frames cannot.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from poise.library.k_means import divided
from poise.library.segments import Runs
from poise.types import Array


class FrameGroups(NamedTuple):
    """Group `g` has the runs `first[g]` up to `first[g + 1]`, renumbered so that they lie side by side."""

    centres: Float[Array, "groups columns"]
    radii: Float[Array, "groups"]  # of all frames of a group, from its centre
    first: Int[Array, "groups_and_end"]
    middles: Float[Array, "runs columns"]  # the rows of middle frames
    starts: Int[Array, "runs"]
    ends: Int[Array, "runs"]
    run_radii: Float[Array, "runs"]
    from_centre: Float[Array, "runs"]  # of a run's middle
    from_middle: Float[Array, "frames"]


def group_runs(runs: Runs, rows: Float[Array, "frames columns"]) -> FrameGroups:
    """Groups of at most a quarter of the root of the runs' number: a search compares about as many centres as runs."""
    middles = rows[runs.middles]
    parts = divided(middles, max(1, round(math.sqrt(len(runs)) / 4)), rng=np.random.default_rng(0))
    order, sizes = np.concatenate(parts), np.array([len(part) for part in parts])
    first = np.concatenate([[0], np.cumsum(sizes)])
    middles = middles[order]
    centres = np.add.reduceat(middles, first[:-1], axis=0) / sizes[:, None].astype(np.float32)
    from_centre = _distances(middles, centres, np.repeat(np.arange(len(parts)), sizes))
    from_middle = _distances(rows, rows, np.repeat(runs.middles, np.diff(runs.starts)))
    run_radii = np.maximum.reduceat(from_middle, runs.starts[:-1])[order]
    return FrameGroups(
        centres, np.maximum.reduceat(from_centre + run_radii, first[:-1]), first, middles,
        runs.starts[:-1][order], runs.starts[1:][order], run_radii, from_centre, from_middle,
    )  # fmt: skip


def _distances(
    rows: Float[Array, "rows columns"], others: Float[Array, "others columns"], which: Int[Array, "rows"]
) -> Float[Array, "rows"]:
    """How far each row is from its own among others."""
    distances = np.empty(len(rows), dtype=np.float32)
    for begin in range(0, len(rows), 4096):  # never all gaps in memory
        part = slice(begin, begin + 4096)
        distances[part] = np.linalg.norm(rows[part] - others[which[part]], axis=1)
    return distances
