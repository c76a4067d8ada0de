"""What makes frames alike (Urtasun et al. 2008, section 4): squared distances for local linearity, similarities for
back-constraints, by pose, by phase on the unit circle (Eqs. 7, 8), or by being points of transition (Eqs. 6, 9).

Both may be multiplied or added (section 4.3). Distances multiplied are small where any is (a transition between poses
that differ), distances added where all are; similarities added are large where any is, multiplied where all are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.spatial.distance import cdist

from poise.types import Array

POSE_WIDTH = 1.0  # of the median distance between poses: the reach of a pose back-constraint
CIRCLE_WIDTH = 0.6  # of the unit circle's radius: the reach of a phase back-constraint
TRANSITION_FRAMES = 2.0  # the reach in time of a transition point
TRANSITION_PHASE = 0.7  # radians, its reach where similarities are multiplied
KEPT = 0.3  # of a similarity's root at a transition, where similarities are multiplied
TRACE = 1e-3  # of their distance as poses, that frames at the same moment of a transition keep


def pose_distances(
    scaled: Float[Array, "frames features"], others: Float[Array, "others features"]
) -> Float[Array, "frames others"]:
    """Squared distances between poses, per feature."""
    return np.asarray(cdist(scaled, others, "sqeuclidean") / scaled.shape[1])


def circle_coordinate(radians: Float[Array, "frames"], part: str) -> Float[Array, "frames"]:
    """The cosine or the sine of a phase."""
    return np.asarray(np.cos(radians) if part == "cos" else np.sin(radians))


def circle_distances(
    coordinate: Float[Array, "frames"], others: Float[Array, "others"]
) -> Float[Array, "frames others"]:
    """Squared gaps of one coordinate, the cosine or the sine of a phase (Eqs. 7, 8)."""
    return np.asarray((coordinate[:, None] - others) ** 2)


def transition_distances(
    times: Float[Array, "frames"], sets: Sequence[Int[Array, "_points"]]
) -> Float[Array, "frames frames"]:
    """1 - exp(-zeta (t_i - t_j)^2) for frames at the same transition (Eq. 6), one elsewhere.

    Times of a transition are counted from its nearest point, so that the same moment of a step is the same time. A
    trace is left of every distance, so that of frames at the same moment those with like poses are nearest.
    """
    distances = np.ones((len(times), len(times)))
    for since, near in _moments(times, sets):
        gaps = (since[:, None] - since) ** 2
        distances[np.ix_(near, near)] = 1.0 - (1.0 - TRACE) * np.exp(-gaps / (2.0 * TRANSITION_FRAMES**2))
    return distances


def same_transition(
    times: Float[Array, "frames"], sets: Sequence[Int[Array, "_points"]]
) -> Bool[Array, "frames frames"]:
    """Which frames are at the same transition."""
    same = np.zeros((len(times), len(times)), dtype=bool)
    for _, near in _moments(times, sets):
        same[np.ix_(near, near)] = True
    return same


def similarity(squared: Float[Array, "frames others"], width: float) -> Float[Array, "frames others"]:
    """The RBF kernel of squared distances."""
    return np.exp(-0.5 * squared / width**2)


def transition_bumps(
    times: Float[Array, "frames"], sets: Sequence[Int[Array, "_points"]]
) -> Float[Array, "frames sets"]:
    """Per set, an RBF in time about each of its points, summed: K_trans = bumps bumps' is Eq. 9."""
    bumps = [
        similarity((times[:, None] - times[points]) ** 2, TRANSITION_FRAMES).sum(axis=1) for points in sets
    ]
    return np.column_stack([*bumps, np.empty((len(times), 0))])


def transition_shares(
    radians: Float[Array, "frames"], sets: Sequence[Int[Array, "_points"]]
) -> Float[Array, "frames"]:
    """Per frame what is kept of its similarities, times the other's share: little at the phase of a transition.

    An axis that is a function of such similarities narrows at transitions, whatever poses they join; what tells
    different transitions apart there is the phase, of each its points' mean.
    """
    places = [np.angle(np.exp(1j * radians[points]).mean()) for points in sets if len(points)]
    apart = np.angle(np.exp(1j * (radians[:, None] - np.array(places))))
    return np.asarray(1.0 - (1.0 - KEPT) * similarity(apart**2, TRANSITION_PHASE).max(axis=1))


def _moments(
    times: Float[Array, "frames"], sets: Sequence[Int[Array, "_points"]]
) -> Iterator[tuple[Float[Array, "_near"], Int[Array, "_near"]]]:
    """Per set, the frames near one of its points, and how long after it each is."""
    for points in sets:
        since = _since_nearest(times, times[points])
        near = np.flatnonzero(np.abs(since) <= TRANSITION_FRAMES)
        yield since[near], near


def _since_nearest(times: Float[Array, "frames"], points: Float[Array, "points"]) -> Float[Array, "frames"]:
    gaps = times[:, None] - points
    return np.asarray(np.take_along_axis(gaps, np.abs(gaps).argmin(axis=1)[:, None], axis=1)[:, 0])
