"""The latent points as functions of free parameters, and where learning starts.

A back-constrained dimension is x = B b + b_0, where B are the leading directions of the similarity's kernel matrix:
Eq. 3 in whitened coordinates, so that L-BFGS sees all directions at a similar scale. Other dimensions are their own
parameters. If the phase is learned too, its changes are the last parameters (see `measures`).

Learning starts with circles at their phases, axes along the pose variation that the phase does not explain. If the
model has transitions between activities, axes start along the differences between activities. Otherwise performers,
who may differ more than activities do, would lie between one performer's walking and running. If no axis is left for
the styles of one activity, they share the last axis: they start together, or separated in one direction or the other,
because learning rarely moves one past another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from poise.errors import UnknownNameError
from poise.gp.latent import principal_latents
from poise.priors.dynamics import measures
from poise.priors.dynamics.flow import Latents, waves
from poise.priors.dynamics.measures import CircleBasis, LocalWeights, circle_coordinate
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

Parameters = Float[Array, "parameters"]


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
            across = measures.same_transition(clips.times, clips.transitions) & others
        return tuple(
            measures.local_weights(self._distances(each), across=across if each.transitions else None)
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
            return measures.warp_design(self.sequences.lengths)
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
                own, gradient[:, number] = measures.local_loss(weights, latents[:, number])
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
        of_pose = measures.POSE_WIDTH * float(np.sqrt(np.median(squared)))
        kernel = measures.similarity(
            squared[:, self.centres], measures.CIRCLE_WIDTH if dimension.part else of_pose
        )
        if dimension.transitions == ADDED:
            bumps = measures.transition_bumps(clips.times, clips.transitions)
            kernel = kernel + bumps @ bumps[self.centres].T
        elif dimension.transitions == MULTIPLIED:
            radians = clips.phases[self.structure.phases[0]]
            shares = measures.transition_shares(radians, clips.transitions)
            kernel = kernel * np.outer(shares, shares[self.centres])
        return kernel

    def _distances(self, dimension: Dimension) -> Float[Array, "frames frames"]:
        if dimension.part:
            coordinate = self._circle(dimension)
            squared = measures.circle_distances(coordinate, coordinate)
        else:
            squared = measures.pose_distances(self.sequences.scaled, self.sequences.scaled)
        if dimension.transitions:
            beside = measures.transition_distances(self.sequences.times, self.sequences.transitions)
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
