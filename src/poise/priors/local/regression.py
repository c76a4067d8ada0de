"""Local regression: Gaussian processes from control signals to poses, one per neighbourhood of the examples.

Chai and Hodgins (2005, section 5) fit a model to the examples around each query. Here the library is covered by
neighbourhoods that overlap, each with a Gaussian process of its own, fitted once; a query blends those around it by
weights that fade to zero before a neighbourhood drops out, so that nothing jumps. What a frame costs does not depend on
the size of the library, and what a library costs grows in proportion to it.

Each limb has its own kernel (Matern 3/2). How much its own markers, the others', their velocities and heights count,
and how noisy it is, are those that predict held-out pieces of the recordings best. The same held-out residuals give the
covariance of what the regression gets wrong, neighbourhood by neighbourhood: the S of the solver's exact finish.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.spatial.distance import cdist

from poise.compiled import compiled
from poise.priors.process import held_out_errors, held_out_from

Array = np.ndarray

MEMBERS = 1400  # examples of a neighbourhood
SPACING = 700  # examples to a neighbourhood's centre: each is in about two
BLENDED = 2  # neighbourhoods that answer a query
TRIALS = 2  # neighbourhoods on which a kernel is chosen
TRIAL_MEMBERS = 280
OTHERS = 0.03  # how much the markers of other limbs count, to begin with
STEPS = (8.0, 3.0)  # factors by which each weight is tried larger and smaller, round after round
NOISE = 0.01  # of the signal's variance, to begin with
REACH = 4.0  # typical distances between examples over which they are alike, to begin with
DIAGONAL_SHARE = 0.3  # of a covariance that is only its diagonal: few pieces of recordings are held out
WHOLE_SHARE = 0.5  # of the covariance over all neighbourhoods in each
BETA = 3e-4  # radians (or metres) squared, added to every variance
UNTOUCHED = 0.5  # how much joints that move no marker follow those that do, of what the residuals say


@dataclass(frozen=True, eq=False)
class Signal:
    """What the columns of control signals are: units (a marker's place, its velocity ...), by owner and kind."""

    unit: Int[Array, "columns"]  # the unit of each column
    owner: Int[Array, "units"]  # the marker that each unit is of; -1 for what belongs to no marker
    kind: Int[Array, "units"]  # what it is of that marker

    @property
    def columns(self) -> int:
        """How many numbers there are."""
        return len(self.unit)


@dataclass(frozen=True, eq=False)
class Limb:
    """Components of poses that are predicted together, and the markers that are their own."""

    components: Int[Array, "components"]
    own: Bool[Array, "markers"]


@dataclass(frozen=True, eq=False)
class Kernel:
    """A limb's kernel: the weight of each unit's squared distance, and the noise on the diagonal."""

    weights: Float[Array, "units"]
    noise: float


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """Examples around a centre, the weights of their kernels, and how wrong they were about held-out ones."""

    inputs: Float[Array, "members columns"]
    weights: Float[Array, "members outputs"]  # columns limb after limb
    mean: Float[Array, "outputs"]
    covariance: Float[Array, "outputs outputs"]


@dataclass(frozen=True, eq=False)
class LocalRegression:
    """Neighbourhoods of examples and the kernels that they share."""

    signal: Signal
    limbs: tuple[Limb, ...]
    kernels: tuple[Kernel, ...]
    scales: Float[Array, "columns"]  # by which columns are multiplied before neighbourhoods are looked for
    centres: Float[Array, "neighbourhoods columns"]
    neighbourhoods: tuple[Neighbourhood, ...]

    def __call__(
        self, x: Float[Array, "columns"]
    ) -> tuple[Float[Array, "outputs"], Float[Array, "outputs outputs"]]:
        """Mean and covariance of the outputs at control signals."""
        around, shares = self._around(x)
        order, ends, unit_weights = self._compiled
        mean, covariance = np.zeros(len(order)), np.zeros((len(order), len(order)))
        for number, share in zip(around, shares, strict=True):
            place = self.neighbourhoods[number]
            add_prediction(
                share, x, place.inputs, self.signal.unit, unit_weights, place.weights, order, ends, place.mean, mean
            )  # fmt: skip
            covariance += share * place.covariance
        return mean, covariance

    def _around(self, x: Array) -> tuple[Array, Array]:
        """The nearest neighbourhoods and their shares, which are zero where the next one takes over."""
        gaps = self.centres - x * self.scales
        distances = np.sqrt(np.einsum("ij,ij->i", gaps, gaps))
        if len(distances) <= BLENDED:
            near = np.argsort(distances)
            reach = 1.5 * distances[near[-1]] + 1e-12
        else:
            near = np.argpartition(distances, BLENDED)[: BLENDED + 1]
            near = near[np.argsort(distances[near])]
            near, reach = near[:-1], distances[near[-1]] + 1e-12
        shares = (1.0 - distances[near] / reach) ** 2
        total = shares.sum()
        return near, shares / total if total > 0 else np.full(len(near), 1.0 / len(near))

    @cached_property
    def _compiled(self) -> tuple[Array, Array, Array]:
        order = np.concatenate([limb.components for limb in self.limbs])
        ends = np.cumsum([len(limb.components) for limb in self.limbs])
        return order, ends, np.stack([kernel.weights for kernel in self.kernels])


def fit(
    inputs: Float[Array, "examples columns"],
    outputs: Float[Array, "examples outputs"],
    *,
    signal: Signal,
    limbs: Sequence[Limb],
    blocks: Int[Array, "examples"],
    touched: Bool[Array, "outputs"],
    seed: int = 0,
    progress: Callable[[float], None] = lambda _: None,
) -> LocalRegression:
    """Regression through examples; those of one block are held out together. `touched` outputs move a marker."""
    rng = np.random.default_rng(seed)
    scales = _scales(inputs, signal)
    scaled = np.asarray(inputs * scales, dtype=np.float32)
    count = 1 if len(inputs) <= MEMBERS + SPACING else round(len(inputs) / SPACING)
    centres = _centres(scaled, count, rng)
    most = len(inputs) if count == 1 else MEMBERS
    members = [_nearest(scaled, centre, most) for centre in centres]
    trials = [_thinned(members[k], TRIAL_MEMBERS) for k in _spread(len(members), TRIALS)]
    kernels = []
    for number, limb in enumerate(limbs):
        kernels.append(_choose_kernel(inputs, outputs, signal, limb, blocks, trials))
        progress(0.5 * (number + 1) / len(limbs))
    places, residuals = [], []
    for number, own in enumerate(members):
        place, wrong = _neighbourhood(inputs[own], outputs[own], signal, limbs, kernels, blocks[own])
        places.append(place)
        residuals.append(wrong)
        progress(0.5 + 0.5 * (number + 1) / len(members))
    places = _with_covariances(places, residuals, touched)
    return LocalRegression(
        signal, tuple(limbs), tuple(kernels), scales, np.asarray(centres, dtype=np.float64), tuple(places)
    )


@compiled
def add_prediction(
    share: float,
    x: Array,
    inputs: Array,
    unit: Array,
    unit_weights: Array,
    weights: Array,
    order: Array,
    ends: Array,
    centre: Array,
    mean: Array,
) -> None:
    """Add a neighbourhood's prediction times its share: a Matern 3/2 kernel per limb over weighted units."""
    units, limbs = unit_weights.shape[1], len(unit_weights)
    squares, sums = np.empty(units), np.zeros(len(mean))
    for j in range(len(inputs)):
        squares[:] = 0.0
        for c in range(len(x)):
            gap = x[c] - inputs[j, c]
            squares[unit[c]] += gap * gap
        begin = 0
        for limb in range(limbs):
            apart = 0.0
            for u in range(units):
                apart += unit_weights[limb, u] * squares[u]
            root = math.sqrt(3.0 * apart)
            kernel = (1.0 + root) * math.exp(-root)
            for i in range(begin, ends[limb]):
                sums[i] += kernel * weights[j, i]
            begin = ends[limb]
    for i in range(len(mean)):
        mean[order[i]] += share * (centre[order[i]] + sums[i])


def _scales(inputs: Array, signal: Signal) -> Array:
    """Each kind of signal counts in proportion to its spread, so that no unit of measure matters."""
    kinds = signal.kind[signal.unit]
    spread = inputs.var(axis=0)
    scales = np.empty(inputs.shape[1])
    for kind in np.unique(kinds):
        own = kinds == kind
        scales[own] = 1.0 / math.sqrt(max(float(spread[own].sum()), 1e-12))
    return scales


def _centres(scaled: Array, count: int, rng: np.random.Generator) -> Array:
    """Centres that cover the examples evenly: k-means on a sample."""
    if count == 1:
        return scaled.mean(axis=0, keepdims=True)
    sample = scaled[rng.choice(len(scaled), min(len(scaled), 60 * count), replace=False)]
    start = sample[rng.choice(len(sample), count, replace=False)]
    return _lloyd(sample, start)


def _lloyd(sample: Array, centres: Array, rounds: int = 12) -> Array:
    """Lloyd's rounds of k-means; a centre that loses all its examples stays where it is."""
    for _ in range(rounds):
        labels = np.argmin((centres**2).sum(axis=1) - 2.0 * sample @ centres.T, axis=1)
        sums = np.zeros_like(centres)
        np.add.at(sums, labels, sample)
        counts = np.bincount(labels, minlength=len(centres))
        centres = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
    return centres


def _nearest(scaled: Array, centre: Array, count: int) -> Array:
    distances = ((scaled - centre) ** 2).sum(axis=1)
    if len(scaled) <= count:
        return np.arange(len(scaled))
    return np.sort(np.argpartition(distances, count)[:count])


def _thinned(members: Array, count: int) -> Array:
    return members[:: max(1, -(-len(members) // count))]


def _spread(count: int, wanted: int) -> Array:
    return np.unique(np.linspace(0, count - 1, min(count, wanted)).round().astype(int))


def _choose_kernel(
    inputs: Array, outputs: Array, signal: Signal, limb: Limb, blocks: Array, trials: Sequence[Array]
) -> Kernel:
    """Weights and noise by descent along one coordinate after the other, on held-out pieces of the recordings."""
    groups = _groups(signal, limb)
    parts = [
        _Trial(inputs[own], outputs[np.ix_(own, limb.components)], blocks[own], groups, signal)
        for own in trials
    ]
    logs = _first_logs(groups, parts)
    best = sum(part.error(logs) for part in parts)
    for factor in STEPS:
        for move in _moves(len(groups), math.log(factor)):
            for sign in (1.0, -1.0):
                error = sum(part.error(logs + sign * move) for part in parts)
                if error < best:
                    best, logs = error, logs + sign * move
                    break
    weights = np.zeros(len(signal.owner))
    for group, log in zip(groups, logs, strict=False):
        weights[group.units] = math.exp(log)
    return Kernel(weights, math.exp(logs[-1]))


@dataclass(frozen=True, eq=False)
class _Group:
    """Units that share a weight: one kind of signal, of a limb's own markers or of the others."""

    units: Array
    own: bool


def _groups(signal: Signal, limb: Limb) -> list[_Group]:
    mine = np.where(signal.owner >= 0, limb.own[np.maximum(signal.owner, 0)], True)
    groups = []
    for kind in np.unique(signal.kind):
        for own in (True, False):
            units = np.flatnonzero((signal.kind == kind) & (mine == own))
            if len(units):
                groups.append(_Group(units, own))
    return groups


class _Trial:
    """A neighbourhood on which kernels are tried: squared distances by group, ready to be weighted."""

    def __init__(
        self, inputs: Array, outputs: Array, blocks: Array, groups: Sequence[_Group], signal: Signal
    ) -> None:
        self._outputs, self._blocks = outputs - outputs.mean(axis=0), _several(blocks)
        self.squares = np.stack(
            [cdist(*2 * (inputs[:, np.isin(signal.unit, group.units)],), "sqeuclidean") for group in groups]
        )

    def error(self, logs: Array) -> float:
        """The squared error on held-out blocks."""
        distances = np.sqrt(np.tensordot(np.exp(logs[:-1]), self.squares, 1))
        kernel = matern(distances) + math.exp(logs[-1]) * np.eye(len(distances))
        return float(np.sum(held_out_errors(kernel, self._outputs, self._blocks) ** 2))


def matern(distances: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """The Matern 3/2 kernel at unit reach."""
    scaled = math.sqrt(3.0) * distances
    return np.asarray((1.0 + scaled) * np.exp(-scaled))


def _first_logs(groups: Sequence[_Group], parts: Sequence[_Trial]) -> Array:
    """To begin with: every kind of signal counts the same, others' less, over a few typical distances."""
    shares = np.array([1.0 if group.own else OTHERS for group in groups])
    typical = np.array(
        [max(np.mean([part.squares[g].mean() for part in parts]), 1e-9) for g in range(len(groups))]
    )
    weights = shares / typical / shares.sum() / REACH**2
    return np.log(np.append(weights, NOISE))


def _moves(groups: int, step: float) -> list[Array]:
    """All weights together, each weight, and the noise."""
    together = np.append(np.full(groups, 0.7 * step), 0.0)
    return [together, *(step * np.eye(groups + 1))]


def _several(blocks: Array) -> Array:
    return blocks if np.any(blocks != blocks[0]) else np.arange(len(blocks)) * 8 // len(blocks)


def _neighbourhood(
    inputs: Array,
    outputs: Array,
    signal: Signal,
    limbs: Sequence[Limb],
    kernels: Sequence[Kernel],
    blocks: Array,
) -> tuple[Neighbourhood, Array]:
    """The processes of one neighbourhood, and what they get wrong on held-out pieces."""
    mean, blocks = outputs.mean(axis=0), _several(blocks)
    weights, wrong = [], np.empty_like(outputs)
    for limb, kernel in zip(limbs, kernels, strict=True):
        scaled = inputs * np.sqrt(kernel.weights[signal.unit])
        matrix = matern(cdist(scaled, scaled)) + kernel.noise * np.eye(len(inputs))
        centred = outputs[:, limb.components] - mean[limb.components]
        inverse = np.linalg.inv(matrix)
        weights.append(inverse @ centred)
        wrong[:, limb.components] = held_out_from(inverse, weights[-1], blocks)
    size = outputs.shape[1]
    return Neighbourhood(inputs.copy(), np.hstack(weights), mean, np.empty((size, size))), wrong


def _with_covariances(
    places: Sequence[Neighbourhood], residuals: Sequence[Array], touched: Array
) -> list[Neighbourhood]:
    """Covariances of held-out residuals: partly a neighbourhood's own, partly of all, and made safe to use."""
    own = [wrong.T @ wrong / len(wrong) for wrong in residuals]
    whole = np.mean(own, axis=0)
    follow = np.where(touched[:, None] == touched[None, :], 1.0, UNTOUCHED)
    np.fill_diagonal(follow, 1.0)
    finished = []
    for place, covariance in zip(places, own, strict=True):
        mixed = (1.0 - WHOLE_SHARE) * covariance + WHOLE_SHARE * whole
        mixed = (1.0 - DIAGONAL_SHARE) * follow * mixed + DIAGONAL_SHARE * np.diag(np.diag(mixed))
        np.fill_diagonal(mixed, np.diag(mixed) + BETA)
        finished.append(Neighbourhood(place.inputs, place.weights, place.mean, mixed))
    return finished
