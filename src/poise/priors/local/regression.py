"""Local regression: Gaussian processes from control signals to poses, one per neighbourhood of the examples.

Chai and Hodgins (2005, section 5) fit a model to the examples around each query. Here overlapping neighbourhoods cover
the library, each with its own Gaussian process. A query blends those around it by weights that fade to zero before a
neighbourhood drops out, so that nothing jumps. They are fitted when a query first comes near, or all in advance
(`fit_everywhere`), so that no frame of a performance has to wait.

Each limb has its own kernel (Matern 3/2). The weights of a limb's own markers, other markers, their velocities and
heights, and the noise are those that predict held-out parts of the recordings best, on a few neighbourhoods of the
examples. The errors on held-out parts have a covariance, estimated at neighbourhoods spread over the library: the S of
the solver's exact finish.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.spatial.distance import cdist

from poise.gp.covariance import MATERN32
from poise.gp.regression import Groups, Regression, held_out_errors, profiles
from poise.library.coherent import lloyd
from poise.priors.poses import SAME_BONES, Limb
from poise.types import Array

FIGURE = 1000  # the kind of signal that identifies performers
OTHERS = 0.03  # initial weight of other limbs' markers
STEPS = (8.0, 3.0)  # factors by which each weight is tried larger and smaller, round by round
NOISE = 0.01  # initial noise, of the signal's variance
REACH = 4.0  # initial width, in typical distances between examples
WHOLE = 2100  # largest number of examples in a single neighbourhood
MEMBERS = 300  # examples per neighbourhood of a larger library
SPACING = 150  # examples per neighbourhood centre: each is in about two neighbourhoods
ANCHORS = 150  # examples of the performer from all over the library, added to every neighbourhood
MANY = 200  # number of neighbourhoods above which they have that size; with fewer, they are larger
BLENDED = 2  # neighbourhoods blended for a query
TRIALS = 6  # neighbourhoods on which a kernel is chosen
TRIAL_MEMBERS = 1680  # examples in all of them together
MOST_MEMBERS = 280  # examples in one of them
SURVEYED = 24  # neighbourhoods whose error covariances are estimated; others use the nearest
WHOLE_SHARE = 0.5  # of the mean of those covariances in each one
DIAGONAL_SHARE = 0.3  # of a covariance that is only its diagonal: few blocks are held out
BETA = 3e-4  # radians (or metres) squared, added to every variance
THREADS = 4  # largest number of threads for fitting
UNTOUCHED = 0.5  # factor on the covariance between joints that move no marker and those that do

Covariance = Float[Array, "outputs outputs"]
Numbers = Int[Array, "_"]

# --- kernels ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Signal:
    """The meaning of control signal columns: units (a marker's position, its velocity ...), by owner and kind."""

    unit: Int[Array, "columns"]  # the unit of each column
    owner: Int[Array, "units"]  # the marker of each unit; -1 if it belongs to none
    kind: Int[Array, "units"]  # the quantity of that marker


@dataclass(frozen=True, eq=False)
class Data:
    """Control signals and outputs of examples; those of one block are held out together."""

    inputs: Float[Array, "examples columns"]
    outputs: Float[Array, "examples outputs"]
    blocks: Int[Array, "examples"]

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, members: Numbers) -> Data:
        return Data(self.inputs[members], self.outputs[members], self.blocks[members])


class _Trial:
    """A neighbourhood for the choice of kernels: squared distances by group of units, ready to be weighted."""

    def __init__(self, data: Data, components: Numbers, signal: Signal, groups: Sequence[Numbers]) -> None:
        outputs = data.outputs[:, components]
        self._outputs, self._blocks = outputs - outputs.mean(axis=0), several(data.blocks)
        columns = [data.inputs[:, np.isin(signal.unit, units)] for units in groups]
        self.squares = np.stack([cdist(own, own, "sqeuclidean") for own in columns])

    def error(self, logs: Array) -> float:
        """The squared error on held-out blocks."""
        K = np.tensordot(np.exp(logs[:-1]), self.squares, 1)
        profiles(MATERN32, K, math.exp(logs[-1]))
        return float(np.sum(held_out_errors(K, self._outputs, self._blocks) ** 2))


def choose_kernel(
    data: Data, signal: Signal, limb: Limb, trials: Sequence[Numbers]
) -> tuple[Float[Array, "units"], float]:
    """The weight of each unit and the noise, by coordinate descent on held-out blocks.

    Units of one kind of signal, of a limb's own markers or of the others, have a common weight. First all kinds of
    signal weigh the same over typical distances, others' markers less.
    """
    mine = np.where(signal.owner >= 0, limb.own[np.maximum(signal.owner, 0)], True)
    groups, shares = [], []
    for kind in np.unique(signal.kind):
        for own, share in ((True, 1.0), (False, OTHERS)):
            units = np.flatnonzero((signal.kind == kind) & (mine == own))
            if len(units):
                groups.append(units)
                shares.append(share)
    parts = [_Trial(data[own], limb.components, signal, groups) for own in trials]

    def misfit(logs: Array) -> float:  # of logarithms, so that no neighbourhood dominates
        return sum(math.log(max(part.error(logs), 1e-300)) for part in parts)

    typical = [max(np.mean([part.squares[g].mean() for part in parts]), 1e-9) for g in range(len(groups))]
    weights = np.array(shares) / np.array(typical) / np.sum(shares) / REACH**2
    logs = np.log(np.append(weights, NOISE))
    best = misfit(logs)
    for factor in STEPS:
        step = math.log(factor)
        together = np.append(np.full(len(groups), 0.7 * step), 0.0)
        for move in (together, *(step * np.eye(len(groups) + 1))):  # all weights, each weight, and the noise
            for sign in (1.0, -1.0):
                error = misfit(logs + sign * move)
                if error < best:
                    best, logs = error, logs + sign * move
                    break
    chosen = np.zeros(len(signal.owner))
    for units, log in zip(groups, logs, strict=False):
        chosen[units] = math.exp(log)
    return chosen, math.exp(logs[-1])


def several(blocks: Int[Array, "examples"]) -> Int[Array, "examples"]:
    """Blocks to hold out; if all examples belong to one block, eight parts of it."""
    return blocks if np.any(blocks != blocks[0]) else np.arange(len(blocks)) * 8 // len(blocks)


# --- neighbourhoods ---------------------------------------------------------------------------------------------------


class Cover:
    """Neighbourhoods of examples by their centres; members are looked up on demand."""

    def __init__(
        self, inputs: Float[Array, "examples columns"], signal: Signal, own: Numbers, seed: int
    ) -> None:
        kinds, spread = signal.kind[signal.unit], inputs.var(axis=0)
        self.scales = np.empty(inputs.shape[1])
        for kind in np.unique(kinds):  # each by its spread, so that units do not matter
            same = kinds == kind
            self.scales[same] = 1.0 / math.sqrt(max(float(spread[same].sum()), 1e-12))
        self._scaled = np.asarray(inputs * self.scales, dtype=np.float32)
        self._squares = np.einsum("ij,ij->i", self._scaled, self._scaled)
        count = 1 if len(inputs) <= WHOLE else round(len(inputs) / SPACING)
        self._own, self.centres = own, self._scaled.mean(axis=0, keepdims=True)
        if count > 1:  # centres that cover the examples evenly: k-means on a sample
            rng, total = np.random.default_rng(seed), len(inputs)
            sample = self._scaled[rng.choice(total, min(total, 60 * count), replace=False)]
            start = sample[rng.choice(len(sample), count, replace=False)]
            self.centres = lloyd(sample, start.astype(np.float64), rounds=12)
        more = max(1.0, MANY / count) ** (1 / 3)  # fewer neighbourhoods may be larger
        self._near, self._anchors = round(more * MEMBERS), round(more**2 * ANCHORS)

    def __len__(self) -> int:
        return len(self.centres)

    def members(self, number: int) -> Numbers:
        """The examples of a neighbourhood and the anchors, in order."""
        count = len(self._scaled)
        if len(self) == 1 or count <= self._near:
            return np.arange(count)
        distances = self._squares - 2.0 * self._scaled @ self.centres[number]
        near = np.argpartition(distances, self._near)[: self._near]
        return np.union1d(near, self._own[_spread(len(self._own), self._anchors)])

    def around(self, x: Float[Array, "columns"]) -> tuple[Numbers, Float[Array, "_"]]:
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


class LocalRegression:
    """Neighbourhoods of examples, fitted on demand or all at once, and their common kernels."""

    def __init__(
        self,
        data: Data,
        cover: Cover,
        *,
        groups: Groups,
        touched: Bool[Array, "outputs"],
        figure: Float[Array, "figures"],
    ) -> None:
        self.cover, self.groups, self._data, self._figure = cover, groups, data, figure
        self._places: dict[int, tuple[Regression, int]] = {}  # fitted processes, and the surveyed covariance
        self._surveyed = _spread(len(cover), SURVEYED)
        with _workers() as pool:
            wrong = np.stack(list(pool.map(self._held_out, self._surveyed.tolist())))
        wrong = (1.0 - WHOLE_SHARE) * wrong + WHOLE_SHARE * wrong.mean(axis=0)
        # From few held-out blocks, so made robust: shrunk to the diagonal, with a lower bound on variances.
        follow = np.where(touched[:, None] == touched[None, :], 1.0, UNTOUCHED) * (1.0 - DIAGONAL_SHARE)
        np.fill_diagonal(follow, 1.0)
        self._covariances = [follow * covariance + BETA * np.eye(len(covariance)) for covariance in wrong]

    @property
    def scales(self) -> Float[Array, "columns"]:
        """The weight of each column of control signals."""
        return self.cover.scales[: len(self.cover.scales) - len(self._figure)]

    @property
    def fitted(self) -> int:
        """The number of fitted neighbourhoods."""
        return len(self._places)

    def fit_everywhere(self, progress: Callable[[float], None] = lambda _: None) -> None:
        """Fit every neighbourhood now, so that no frame of a performance has to wait for one."""
        with _workers() as pool:
            for number, _ in enumerate(pool.map(self._place, range(len(self.cover)))):
                progress((number + 1) / len(self.cover))

    def __call__(self, x: Float[Array, "columns"]) -> tuple[Float[Array, "outputs"], Covariance]:
        """Mean and covariance of the outputs at control signals."""
        x = np.append(x, self._figure)
        around, shares = self.cover.around(x)
        size = len(self.groups.order)
        mean, covariance = np.zeros(size), np.zeros((size, size))
        for number, share in zip(around, shares, strict=True):
            fitted, surveyed = self._place(int(number))
            fitted.add(x, mean, share=share)
            covariance += share * self._covariances[surveyed]
        return mean, covariance

    def _place(self, number: int) -> tuple[Regression, int]:
        """A neighbourhood, fitted at first use; its error covariance is that of the nearest surveyed one."""
        if number not in self._places:
            data, centres = self._data[self.cover.members(number)], self.cover.centres
            fitted = self.groups.through(data.inputs, data.outputs, centre=data.outputs.mean(axis=0))
            nearest = np.argmin(((centres[self._surveyed] - centres[number]) ** 2).sum(axis=1))
            self._places[number] = fitted, int(nearest)
        return self._places[number]

    def _held_out(self, number: int) -> Covariance:
        """The error covariance of a neighbourhood's processes on held-out blocks."""
        data = self._data[self.cover.members(number)]
        centred = data.outputs - data.outputs.mean(axis=0)
        wrong = self.groups.held_out(data.inputs, centred, several(data.blocks))
        return np.asarray(wrong.T @ wrong / len(wrong))


def fit(
    data: Data,
    *,
    signal: Signal,
    limbs: Sequence[Limb],
    touched: Bool[Array, "outputs"],
    figures: tuple[Float[Array, "examples figures"], Float[Array, "figures"]] | None = None,
    seed: int = 0,
    progress: Callable[[float], None] = lambda _: None,
) -> LocalRegression:
    """Fit to examples. `touched` outputs move a marker; `figures` are those of the performers and of the user."""
    whose, figure = figures or (np.empty((len(data), 0)), np.empty(0))
    data = replace(data, inputs=np.hstack([data.inputs, whose]))
    if len(figure):  # one more unit, that identifies the performer
        unit = np.append(signal.unit, np.full(len(figure), len(signal.owner)))
        signal = Signal(unit, np.append(signal.owner, -1), np.append(signal.kind, FIGURE))
    own = np.flatnonzero(np.linalg.norm(whose - figure, axis=1) < SAME_BONES)  # the performer's own examples;
    own = own if len(own) else np.arange(len(whose))  # all, if no performer in the library has these bones
    cover = Cover(data.inputs, signal, own, seed)
    chosen = _spread(len(cover), TRIALS)
    most, trials, kernels = min(MOST_MEMBERS, TRIAL_MEMBERS // len(chosen)), [], []
    for number in chosen:
        members = cover.members(int(number))
        trials.append(members[:: max(1, -(-len(members) // most))])
    for number, limb in enumerate(limbs):
        kernels.append(choose_kernel(data, signal, limb, trials))
        progress((number + 1) / len(limbs))
    weights, noise = (np.array(parts) for parts in zip(*kernels, strict=True))
    outputs = [limb.components for limb in limbs]
    groups = Groups.of(MATERN32, signal.unit, outputs, weights=weights, noise=noise)
    return LocalRegression(data, cover, groups=groups, touched=touched, figure=figure)


def _workers() -> ThreadPoolExecutor:
    """Threads for compiled code, which releases the GIL."""
    return ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1))


def _spread(count: int, wanted: int) -> Array:
    return np.unique(np.linspace(0, count - 1, min(count, wanted)).round().astype(int))
