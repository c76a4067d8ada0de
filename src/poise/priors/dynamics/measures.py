"""What relates frames to each other: similarities, local linearity, and phases that are learned.

Distances and similarities of frames (Urtasun et al. 2008, section 4): squared distances for local linearity,
similarities for back-constraints, by pose, by phase on the unit circle (Eqs. 7, 8), or by transition (Eqs. 6, 9).
Both may be multiplied or added (section 4.3). Multiplied distances are small if any factor is (a transition between
different poses), added distances only if all are; added similarities are large if any is, multiplied if all are.

The locally linear prior predicts each latent coordinate from its neighbours (Eqs. 4, 5). The weights follow from
squared distances alone (Roweis and Saul 2000, kernelised): the Gram matrix of frame i's neighbours, relative to i, is
C_jk = (D_ij + D_ik - D_jk) / 2. Each latent dimension may have its own distances, neighbours and weights.

A phase may be learned along with the model, as proposed in the paper's fourth footnote. In every sequence the detected
phase is changed smoothly, phi = phi_0 + H w: H are cubic B-splines with a knot about every quarter of a second, and w
has a prior around zero. A back-constrained circle follows: its kernel is relative to the detected phases, B(phi) =
k(c(phi), c(phi_0)) M with c the cosine or the sine, so that d x / d phi = -+ B'(c) b sin or cos of phi.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse
from scipy.interpolate import BSpline
from scipy.linalg import block_diag
from scipy.sparse.linalg import spsolve
from scipy.spatial.distance import cdist

from poise.errors import InvalidValueError
from poise.types import Array

POSE_WIDTH = 1.0  # of the median distance between poses: width of a pose back-constraint
CIRCLE_WIDTH = 0.6  # of the unit circle's radius: width of a phase back-constraint
TRANSITION_FRAMES = 2.0  # frames: width of a transition point in time
TRANSITION_PHASE = 0.7  # radians: width of a transition point in phase, for multiplied similarities
KEPT = 0.47  # factor on the root of a similarity at a transition, for multiplied similarities
TRACE = 1e-3  # fraction of the pose distance that is kept between frames at the same moment of a transition
NEIGHBOURS = 8
REGULARISED = 1e-2  # of the trace of C, added to its diagonal: there may be more neighbours than dimensions
LEAST_TRACE = 1e-3  # smallest trace of C in the regularisation: nearly coincident frames share weights
LEAST_DEVIATION = (
    0.1  # of the latent space's unit: smallest deviation, so that an axis does not shrink to nothing
)
KNOT_FRAMES = 8  # at 30 Hz, between knots of a learned phase

PerFrame = Float[Array, "frames"]
Pairs = Float[Array, "frames frames"]
Sets = Sequence[Int[Array, "_points"]]


def pose_distances(
    scaled: Float[Array, "frames features"], others: Float[Array, "others features"]
) -> Float[Array, "frames others"]:
    """Squared distances between poses, per feature."""
    return np.asarray(cdist(scaled, others, "sqeuclidean") / scaled.shape[1])


def circle_coordinate(radians: PerFrame, part: str) -> PerFrame:
    """The cosine or the sine of a phase."""
    return np.asarray(np.cos(radians) if part == "cos" else np.sin(radians))


def circle_distances(coordinate: PerFrame, others: Float[Array, "others"]) -> Float[Array, "frames others"]:
    """Squared differences of one coordinate, the cosine or the sine of a phase (Eqs. 7, 8)."""
    return np.asarray((coordinate[:, None] - others) ** 2)


def transition_distances(times: PerFrame, sets: Sets) -> Pairs:
    """1 - exp(-zeta (t_i - t_j)^2) for frames at the same transition (Eq. 6), one elsewhere.

    Times are counted from the nearest point of the transition, so that the same moment of a step has the same time. A
    small part of every distance is kept, so that among frames at the same moment those with similar poses are nearest.
    """
    distances = np.ones((len(times), len(times)))
    for since, near in _moments(times, sets):
        gaps = (since[:, None] - since) ** 2
        distances[np.ix_(near, near)] = 1.0 - (1.0 - TRACE) * np.exp(-gaps / (2.0 * TRANSITION_FRAMES**2))
    return distances


def same_transition(times: PerFrame, sets: Sets) -> Bool[Array, "frames frames"]:
    """Mask of pairs of frames at the same transition."""
    same = np.zeros((len(times), len(times)), dtype=bool)
    for _, near in _moments(times, sets):
        same[np.ix_(near, near)] = True
    return same


def _moments(times: PerFrame, sets: Sets) -> Iterator[tuple[Float[Array, "_near"], Int[Array, "_near"]]]:
    """Per set, the frames near one of its points, and their times relative to it."""
    for points in sets:
        gaps = times[:, None] - times[points]
        since = np.take_along_axis(gaps, np.abs(gaps).argmin(axis=1)[:, None], axis=1)[:, 0]
        near = np.flatnonzero(np.abs(since) <= TRANSITION_FRAMES)
        yield since[near], near


def similarity(squared: Float[Array, "frames others"], width: float) -> Float[Array, "frames others"]:
    """The RBF kernel of squared distances."""
    return np.exp(-0.5 * squared / width**2)


def transition_bumps(times: PerFrame, sets: Sets) -> Float[Array, "frames sets"]:
    """Per set, the sum of RBFs in time about its points: K_trans = bumps bumps' is Eq. 9."""
    bumps = [
        similarity((times[:, None] - times[points]) ** 2, TRANSITION_FRAMES).sum(axis=1) for points in sets
    ]
    return np.column_stack([*bumps, np.empty((len(times), 0))])


def transition_shares(radians: PerFrame, sets: Sets) -> PerFrame:
    """Per frame the factor on its similarities (times the other frame's): small at the phase of a transition.

    An axis that is a function of such similarities narrows at transitions, whatever poses they join. Different
    transitions are separated there by the phase, each at the mean phase of its points.
    """
    places = [np.angle(np.exp(1j * radians[points]).mean()) for points in sets if len(points)]
    apart = np.angle(np.exp(1j * (radians[:, None] - np.array(places))))
    return np.asarray(1.0 - (1.0 - KEPT) * similarity(apart**2, TRANSITION_PHASE).max(axis=1))


# --- local linearity --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LocalWeights:
    """The neighbours of each frame and their weights, which sum to one."""

    neighbours: Int[Array, "frames near"]
    weights: Float[Array, "frames near"]

    def left_over(self, coordinate: PerFrame) -> PerFrame:
        """x_i minus the prediction from its neighbours."""
        return coordinate - np.einsum("nk,nk->n", self.weights, coordinate[self.neighbours])

    def smoothed(self, coordinate: PerFrame, strength: float) -> PerFrame:
        """Smooth a coordinate: trade off closeness to it and, weighted by `strength`, agreement with neighbours."""
        count, near = self.weights.shape
        entries = (self.weights.ravel(), (np.repeat(np.arange(count), near), self.neighbours.ravel()))
        left = sparse.eye_array(count, format="csr") - sparse.csr_array(entries, shape=(count, count))
        system = sparse.eye_array(count) + strength * (left.T @ left)
        return np.asarray(spsolve(system.tocsc(), coordinate))


def local_weights(
    squared: Pairs, *, neighbours: int = NEIGHBOURS, across: Bool[Array, "frames frames"] | None = None
) -> LocalWeights:
    """The nearest neighbours of each frame and the weights that reconstruct it from them (Eq. 4).

    Of the frames marked in `across`, which lead into another activity, up to half of the neighbours are taken.
    """
    count = len(squared)
    near = min(neighbours, count - 1)
    if near < 1:
        raise InvalidValueError("a locally linear prior needs at least two frames")
    apart = squared.copy()
    np.fill_diagonal(apart, np.inf)
    if across is not None and near > 1:
        half = near // 2
        leading = np.where(across, apart, np.inf)
        first = np.argpartition(leading, half - 1, axis=1)[:, :half]
        taken = np.isfinite(np.take_along_axis(leading, first, axis=1))
        apart[across & (across.sum(axis=1) > half)[:, None]] = np.inf
        apart[np.repeat(np.arange(count), half)[taken.ravel()], first[taken]] = -1.0
    chosen = np.sort(np.argpartition(apart, near - 1, axis=1)[:, :near], axis=1)
    to_each = np.take_along_axis(squared, chosen, axis=1)
    between = squared[chosen[:, :, None], chosen[:, None, :]]
    gram = 0.5 * (to_each[:, :, None] + to_each[:, None, :] - between)
    trace = np.einsum("nkk->n", gram)
    np.einsum("nkk->nk", gram)[:] += REGULARISED * np.maximum(trace, LEAST_TRACE)[:, None]
    weights = np.linalg.solve(gram, np.ones((count, near, 1)))[:, :, 0]
    return LocalWeights(chosen, weights / weights.sum(axis=1, keepdims=True))


def local_loss(local: LocalWeights, coordinate: PerFrame) -> tuple[float, PerFrame]:
    """-ln p(x | w) of one latent dimension at its maximum-likelihood deviation (Eq. 5), and its gradient."""
    left = local.left_over(coordinate)
    count = len(left)
    variance = float(left @ left) / count + LEAST_DEVIATION**2
    gradient = left / variance
    np.add.at(gradient, local.neighbours.ravel(), (-local.weights * (left / variance)[:, None]).ravel())
    return 0.5 * count * np.log(variance), gradient


# --- learned phases ---------------------------------------------------------------------------------------------------


def warp_design(lengths: tuple[int, ...]) -> Float[Array, "frames weights"]:
    """H: the splines of every sequence, in its own frames."""
    parts = []
    for length in lengths:
        inner = np.linspace(0.0, length - 1.0, max(1, round((length - 1) / KNOT_FRAMES)) + 1)
        knots = np.concatenate([[inner[0]] * 3, inner, [inner[-1]] * 3])
        parts.append(BSpline.design_matrix(np.arange(length, dtype=np.float64), knots, 3).todense())
    return np.asarray(block_diag(*parts))


@dataclass(frozen=True, eq=False)
class CircleBasis:
    """The basis of a back-constrained cosine or sine, at phases other than the detected ones."""

    centres: Float[Array, "centres"]
    mixing: Float[Array, "centres directions"]

    def at(self, coordinate: PerFrame) -> Float[Array, "frames directions_and_constant"]:
        """B at these cosines or sines; its last direction is constant."""
        kernel = similarity(circle_distances(coordinate, self.centres), CIRCLE_WIDTH)
        return np.column_stack([kernel @ self.mixing, np.ones(len(coordinate))])

    def slope(self, coordinate: PerFrame) -> Float[Array, "frames directions_and_constant"]:
        """B', the derivative by the coordinate."""
        kernel = similarity(circle_distances(coordinate, self.centres), CIRCLE_WIDTH)
        apart = (coordinate[:, None] - self.centres) / CIRCLE_WIDTH**2
        return np.column_stack([-(apart * kernel) @ self.mixing, np.zeros(len(coordinate))])
