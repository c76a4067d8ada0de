"""Distances and similarities of frames (Urtasun et al. 2008, section 4): squared distances for local linearity,
similarities for back-constraints, by pose, by phase on the unit circle (Eqs. 7, 8), or by transition (Eqs. 6, 9).

Both may be multiplied or added (section 4.3). Multiplied distances are small if any factor is (a transition between
different poses), added distances only if all are; added similarities are large if any is, multiplied if all are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.spatial.distance import cdist

from poise.types import Array

POSE_WIDTH = 1.0  # of the median distance between poses: width of a pose back-constraint
CIRCLE_WIDTH = 0.6  # of the unit circle's radius: width of a phase back-constraint
TRANSITION_FRAMES = 2.0  # frames: width of a transition point in time
TRANSITION_PHASE = 0.7  # radians: width of a transition point in phase, for multiplied similarities
KEPT = 0.47  # factor on the root of a similarity at a transition, for multiplied similarities
TRACE = 1e-3  # fraction of the pose distance that is kept between frames at the same moment of a transition


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
    """Squared differences of one coordinate, the cosine or the sine of a phase (Eqs. 7, 8)."""
    return np.asarray((coordinate[:, None] - others) ** 2)


def transition_distances(
    times: Float[Array, "frames"], sets: Sequence[Int[Array, "_points"]]
) -> Float[Array, "frames frames"]:
    """1 - exp(-zeta (t_i - t_j)^2) for frames at the same transition (Eq. 6), one elsewhere.

    Times are counted from the nearest point of the transition, so that the same moment of a step has the same time. A
    small part of every distance is kept, so that among frames at the same moment those with similar poses are nearest.
    """
    distances = np.ones((len(times), len(times)))
    for since, near in _moments(times, sets):
        gaps = (since[:, None] - since) ** 2
        distances[np.ix_(near, near)] = 1.0 - (1.0 - TRACE) * np.exp(-gaps / (2.0 * TRANSITION_FRAMES**2))
    return distances


def same_transition(
    times: Float[Array, "frames"], sets: Sequence[Int[Array, "_points"]]
) -> Bool[Array, "frames frames"]:
    """Mask of pairs of frames at the same transition."""
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
    """Per set, the sum of RBFs in time about its points: K_trans = bumps bumps' is Eq. 9."""
    bumps = [
        similarity((times[:, None] - times[points]) ** 2, TRANSITION_FRAMES).sum(axis=1) for points in sets
    ]
    return np.column_stack([*bumps, np.empty((len(times), 0))])


def transition_shares(
    radians: Float[Array, "frames"], sets: Sequence[Int[Array, "_points"]]
) -> Float[Array, "frames"]:
    """Per frame the factor on its similarities (times the other frame's): small at the phase of a transition.

    An axis that is a function of such similarities narrows at transitions, whatever poses they join. Different
    transitions are separated there by the phase, each at the mean phase of its points.
    """
    places = [np.angle(np.exp(1j * radians[points]).mean()) for points in sets if len(points)]
    apart = np.angle(np.exp(1j * (radians[:, None] - np.array(places))))
    return np.asarray(1.0 - (1.0 - KEPT) * similarity(apart**2, TRANSITION_PHASE).max(axis=1))


def _moments(
    times: Float[Array, "frames"], sets: Sequence[Int[Array, "_points"]]
) -> Iterator[tuple[Float[Array, "_near"], Int[Array, "_near"]]]:
    """Per set, the frames near one of its points, and their times relative to it."""
    for points in sets:
        since = _since_nearest(times, times[points])
        near = np.flatnonzero(np.abs(since) <= TRANSITION_FRAMES)
        yield since[near], near


def _since_nearest(times: Float[Array, "frames"], points: Float[Array, "points"]) -> Float[Array, "frames"]:
    gaps = times[:, None] - points
    return np.asarray(np.take_along_axis(gaps, np.abs(gaps).argmin(axis=1)[:, None], axis=1)[:, 0])
