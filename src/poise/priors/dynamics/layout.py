"""The latent points as functions of free parameters, and where learning starts.

A back-constrained dimension is x = B b + b_0, where B are the leading directions of the similarity's kernel matrix:
Eq. 3 in whitened coordinates, so that L-BFGS sees all directions at a similar scale. Other dimensions are their own
parameters. If the phase is learned too, its changes are the last parameters.

Learning starts with circles at their phases, axes along the pose variation that the phase does not explain. If the
model has transitions between activities, axes start along the differences between activities. Otherwise performers,
who may differ more than activities do, would lie between one performer's walking and running. If no axis is left for
the styles of one activity, they share the last axis: they start together, or separated in one direction or the other,
because learning rarely moves one past another.

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
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse
from scipy.interpolate import BSpline
from scipy.linalg import block_diag
from scipy.sparse.linalg import spsolve
from scipy.spatial.distance import cdist

from poise.errors import InvalidValueError, UnknownNameError
from poise.gp.latent import principal_latents
from poise.priors.dynamics.flow import Latents, waves
from poise.priors.dynamics.sequences import Sequences
from poise.priors.dynamics.structure import ADDED, BACK, LOCAL, MULTIPLIED, Dimension, Structure
from poise.types import Array

RADIUS = 1.5  # radius of a circle, in the latent space's unit: the width of the pose kernel
SMOOTHING = 100.0  # of a locally linear axis: weight of agreement with neighbours against staying in place
STYLES_APART = 0.5  # initial distance between styles of one activity, relative to that between activities
HARMONICS = 3  # of the phase, whose mean poses are removed before an axis is found
CENTRES = 400  # largest number of frames used as centres of a back-constraint's kernel
DIRECTIONS = 60  # largest number of directions of a back-constraint's kernel
LEAST_SHARE = 1e-4  # smallest variance of a direction, relative to the leading one
WARP_DEVIATION = 0.3  # radians: prior standard deviation of a phase change
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

Parameters = Float[Array, "parameters"]
PerFrame = Float[Array, "frames"]
Pairs = Float[Array, "frames frames"]
Sets = Sequence[Int[Array, "_points"]]


@dataclass(frozen=True, eq=False)
class Layout:
    """Bases of back-constrained dimensions and local weights of locally linear ones; free dimensions have neither."""

    structure: Structure
    sequences: Sequences

    def __post_init__(self) -> None:
        for name in self.structure.phases:
            if name not in self.sequences.phases:
                raise UnknownNameError("phase", name, tuple(self.sequences.phases))

    @cached_property
    def bases(self) -> tuple[Float[Array, "frames directions"] | None, ...]:
        """Per dimension, the basis of its coordinate: the similarity's leading directions, and last a constant."""
        kernels = [
            self._similarity(each) if each.means == BACK else None for each in self.structure.dimensions
        ]
        return tuple(
            None if k is None else np.column_stack([k @ _mixing(k[self.centres]), np.ones(len(k))])
            for k in kernels
        )

    @cached_property
    def local(self) -> tuple[LocalWeights | None, ...]:
        """Per dimension, its neighbours and their weights; some are of other activities at the same transition."""
        clips = self.sequences
        across = None
        if self.structure.uses_transitions and not self.structure.published:
            others = clips.activity_of[:, None] != clips.activity_of
            across = same_transition(clips.times, clips.transitions) & others
        return tuple(
            local_weights(self._distances(each), across=across if each.transitions else None)
            if each.means == LOCAL
            else None
            for each in self.structure.dimensions
        )

    @cached_property
    def centres(self) -> Int[Array, "centres"]:
        """Frames used as kernel centres of back-constraints: all, or evenly spaced ones."""
        frames = len(self.sequences.y)
        return np.unique(np.linspace(0, frames - 1, min(frames, CENTRES)).round().astype(np.int64))

    @cached_property
    def warp(self) -> Float[Array, "frames weights"]:
        """Design matrix from the learned phase changes to the phase of every frame; no columns if none are learned."""
        if self.structure.learned_phase:
            return warp_design(self.sequences.lengths)
        return np.empty((len(self.sequences.y), 0))

    @property
    def sizes(self) -> list[int]:
        """The number of parameters of each dimension, then of each phase."""
        frames = len(self.sequences.y)
        of_dimensions = [frames if basis is None else basis.shape[1] for basis in self.bases]
        return [*of_dimensions, *[self.warp.shape[1]] * len(self.structure.phases)]

    @cached_property
    def starts(self) -> list[Parameters]:
        """Initial parameters: the least squares of `_first_guesses`, with phases as detected."""
        found = []
        for guess in _first_guesses(self.structure, self.sequences, self.local):
            parts = []
            for column, basis in zip(guess.T, self.bases, strict=True):
                if basis is None:
                    parts.append(column)
                    continue
                size = basis.shape[1]
                gram = basis.T @ basis + 1e-4 * len(basis) / size * np.eye(size)
                parts.append(np.linalg.solve(gram, basis.T @ column))
            unmoved = np.zeros(self.warp.shape[1] * len(self.structure.phases))
            found.append(np.concatenate([*parts, unmoved]))
        return found

    def phases(self, parameters: Parameters) -> dict[str, Float[Array, "frames"]]:
        """All phases, with the learned changes applied."""
        _, moved = self._apart(parameters)
        found = dict(self.sequences.phases)
        return found | {name: found[name] + self.warp @ own for name, own in moved.items()}

    def latents(self, parameters: Parameters) -> Latents:
        """The latent points of these parameters."""
        parts, _ = self._apart(parameters)
        bases = self._bases_at(parameters)
        columns = [part if basis is None else basis @ part for part, basis in zip(parts, bases, strict=True)]
        return np.ascontiguousarray(np.column_stack(columns))

    def spread_back(self, parameters: Parameters, in_latents: Latents) -> Parameters:
        """The gradient by the parameters, from that by the latent points."""
        bases = zip(in_latents.T, self._bases_at(parameters), strict=True)
        own = [column if basis is None else basis.T @ column for column, basis in bases]
        (parts, moved), phases = self._apart(parameters), self.phases(parameters)
        in_phases = {name: np.zeros(self.warp.shape[1]) for name in moved}
        for number, (each, ring) in enumerate(zip(self.structure.dimensions, self._rings, strict=True)):
            if ring is not None and self.structure.learned_phase:
                radians = phases[each.source]
                turning = -np.sin(radians) if each.part == "cos" else np.cos(radians)
                slope = ring.slope(circle_coordinate(radians, each.part)) @ parts[number]
                in_phases[each.source] += self.warp.T @ (in_latents[:, number] * slope * turning)
        return np.concatenate([*own, *in_phases.values()])

    def phase_loss(self, parameters: Parameters) -> tuple[float, Parameters]:
        """The negative log-prior of the phase changes, and its gradient."""
        value, gradient = 0.0, np.zeros_like(parameters)
        if count := self.warp.shape[1] * len(self.structure.phases):
            weights = parameters[-count:]
            value = 0.5 * float(weights @ weights) / WARP_DEVIATION**2
            gradient[-count:] = weights / WARP_DEVIATION**2
        return value, gradient

    def local_loss(self, latents: Latents) -> tuple[float, Latents]:
        """The locally linear prior of all dimensions that use it (Eq. 5), and its gradient."""
        value, gradient = 0.0, np.zeros_like(latents)
        for number, weights in enumerate(self.local):
            if weights is not None:
                own, gradient[:, number] = local_loss(weights, latents[:, number])
                value += own
        return value, gradient

    def _apart(self, parameters: Parameters) -> tuple[list[Array], dict[str, Float[Array, "weights"]]]:
        """The parameters of every dimension, and the changes of every phase."""
        parts = np.split(parameters, np.cumsum(self.sizes)[:-1])
        count = len(self.structure.dimensions)
        return parts[:count], dict(zip(self.structure.phases, parts[count:], strict=True))

    def _bases_at(self, parameters: Parameters) -> tuple[Array | None, ...]:
        if not self.structure.learned_phase:
            return self.bases
        phases = self.phases(parameters)
        return tuple(
            basis if ring is None else ring.at(circle_coordinate(phases[each.source], each.part))
            for each, basis, ring in zip(self.structure.dimensions, self.bases, self._rings, strict=True)
        )

    @cached_property
    def _rings(self) -> tuple[CircleBasis | None, ...]:
        """Per dimension, the basis of a back-constrained cosine or sine at any phase."""
        return tuple(
            CircleBasis(self._circle(each)[self.centres], _mixing(self._similarity(each)[self.centres]))
            if each.part and each.means == BACK
            else None
            for each in self.structure.dimensions
        )

    def _circle(self, dimension: Dimension) -> Float[Array, "frames"]:
        return circle_coordinate(self.sequences.phases[dimension.source], dimension.part)

    def _similarity(self, dimension: Dimension) -> Float[Array, "frames centres"]:
        squared, clips = self._distances(replace(dimension, transitions="")), self.sequences
        of_pose = POSE_WIDTH * float(np.sqrt(np.median(squared)))
        kernel = similarity(squared[:, self.centres], CIRCLE_WIDTH if dimension.part else of_pose)
        if dimension.transitions == ADDED:
            bumps = transition_bumps(clips.times, clips.transitions)
            kernel = kernel + bumps @ bumps[self.centres].T
        elif dimension.transitions == MULTIPLIED:
            radians = clips.phases[self.structure.phases[0]]
            shares = transition_shares(radians, clips.transitions)
            kernel = kernel * np.outer(shares, shares[self.centres])
        return kernel

    def _distances(self, dimension: Dimension) -> Float[Array, "frames frames"]:
        if dimension.part:
            coordinate = self._circle(dimension)
            squared = circle_distances(coordinate, coordinate)
        else:
            squared = pose_distances(self.sequences.scaled, self.sequences.scaled)
        if dimension.transitions:
            beside = transition_distances(self.sequences.times, self.sequences.transitions)
            squared = squared + beside if dimension.transitions == ADDED else squared * beside
        return squared


def _mixing(kernel: Float[Array, "centres centres"]) -> Float[Array, "centres directions"]:
    """The coefficients that combine a kernel's columns into its leading directions (Nystroem), each scaled by the
    root of its variance."""
    values, vectors = np.linalg.eigh(kernel)
    leading = np.argsort(values)[::-1][:DIRECTIONS]
    leading = leading[values[leading] > LEAST_SHARE * values[leading[0]]]
    return np.asarray(vectors[:, leading] / np.sqrt(values[leading]))


# --- where learning starts --------------------------------------------------------------------------------------------


def _first_guesses(
    structure: Structure, sequences: Sequences, local: Sequence[LocalWeights | None]
) -> list[Latents]:
    """Initial latent points; several alternatives if styles share an axis with activities."""
    dimensions = structure.dimensions
    plain = [number for number, each in enumerate(dimensions) if not each.part]
    guess = np.empty((len(sequences.scaled), len(dimensions)))
    for number, each in enumerate(dimensions):
        if each.part:
            guess[:, number] = RADIUS * circle_coordinate(sequences.phases[each.source], each.part)
    guesses = []
    for axes in _axes(structure, sequences, len(plain)):
        guess[:, plain] = axes
        for number in plain:
            if (weights := local[number]) is not None and dimensions[number].transitions:
                guess[:, number] = weights.smoothed(guess[:, number], SMOOTHING)
        guesses.append(guess.copy())
    return guesses


def _axes(structure: Structure, sequences: Sequences, count: int) -> list[Float[Array, "frames {count}"]]:
    """Alternative initial values of all axes."""
    doing, names = sequences.activity_of, sequences.activity_names
    beside = sequences.scaled
    for (
        source
    ) in structure.phases:  # less what the phase explains: the mean over sequences, as a Fourier series
        design = waves(sequences.phases[source], HARMONICS)
        beside = beside - design @ np.linalg.lstsq(design, beside, rcond=None)[0]
    telling = min(count, len(names) - 1) if structure.uses_transitions else 0
    means = _means(beside, doing)
    directions = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)[2][:telling]
    along = beside @ directions.T
    rest = beside - along @ directions
    axes = np.hstack([_unit(along), principal_latents(rest, count - telling)])
    if not 0 < telling == count or max(map(sequences.activities.count, names)) == 1:
        return [axes]
    within = rest - _means(rest, doing)[doing]
    styles = within @ np.linalg.svd(_means(within, sequences.sequence_of), full_matrices=False)[2][0]
    last = np.eye(count)[-1] * STYLES_APART * _unit(styles)[:, None]
    return [axes, axes + last, axes - last]


def _means(values: Array, group_of: Array) -> Float[Array, "groups features"]:
    """The mean of every group of frames."""
    member = np.eye(group_of.max() + 1)[group_of]
    return np.asarray(member.T @ values / member.sum(axis=0)[:, None])


def _unit(values: Float[Array, "frames *n"]) -> Float[Array, "frames *n"]:
    """Values scaled to unit standard deviation."""
    return np.asarray(values / np.maximum(values.std(axis=0), 1e-12))


# --- distances and similarities of frames -----------------------------------------------------------------------------


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
