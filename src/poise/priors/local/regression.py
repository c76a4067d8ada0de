"""Local regression: neighbourhoods of examples, with kernels chosen limb by limb on held-out recordings.

Local regression: Gaussian processes from control signals to poses, one per neighbourhood of the examples.

Chai and Hodgins (2005, section 5) fit a model to the examples around each query. Here overlapping neighbourhoods cover
the library, each with its own Gaussian process. A query blends those around it by weights that fade to zero before a
neighbourhood drops out, so that nothing jumps. They are fitted when a query first comes near, or all in advance
(`fit_everywhere`), so that no frame of a performance has to wait.

Each limb has its own kernel (Matern 3/2, see `kernels`). The errors of the processes on held-out parts of the
recordings have a covariance, estimated at neighbourhoods spread over the library: the S of the solver's exact finish.

Kernels of local regression, limb by limb, chosen by their prediction error on held-out recordings.

The weights of a limb's own markers, other markers, their velocities and heights, and the noise are those that predict
held-out parts of the recordings best, on a few neighbourhoods of the examples.
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

# --- kernels ----------------------------------------------------------------------------------------------------------


FIGURE = 1000  # the kind of signal that identifies performers
OTHERS = 0.03  # initial weight of other limbs' markers
STEPS = (8.0, 3.0)  # factors by which each weight is tried larger and smaller, round by round
NOISE = 0.01  # initial noise, of the signal's variance
REACH = 4.0  # initial width, in typical distances between examples


@dataclass(frozen=True, eq=False)
class Signal:
    """The meaning of control signal columns: units (a marker's position, its velocity ...), by owner and kind."""

    unit: Int[Array, "columns"]  # the unit of each column
    owner: Int[Array, "units"]  # the marker of each unit; -1 if it belongs to none
    kind: Int[Array, "units"]  # the quantity of that marker

    @property
    def columns(self) -> int:
        """The number of columns."""
        return len(self.unit)

    def with_figure(self, columns: int) -> Signal:
        """The same with `columns` more columns that identify the performer."""
        if columns == 0:
            return self
        unit = np.append(self.unit, np.full(columns, len(self.owner)))
        return Signal(unit, np.append(self.owner, -1), np.append(self.kind, FIGURE))


@dataclass(frozen=True, eq=False)
class Data:
    """Control signals and outputs of examples; those of one block are held out together."""

    inputs: Float[Array, "examples columns"]
    outputs: Float[Array, "examples outputs"]
    blocks: Int[Array, "examples"]

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, members: Int[Array, "_"]) -> Data:
        return Data(self.inputs[members], self.outputs[members], self.blocks[members])


def choose_kernel(
    data: Data, signal: Signal, limb: Limb, trials: Sequence[Int[Array, "_"]]
) -> tuple[Float[Array, "units"], float]:
    """The weight of each unit and the noise, by coordinate descent on held-out blocks."""
    groups = _groups(signal, limb)
    parts = [
        _Trial(data.inputs[own], data.outputs[np.ix_(own, limb.components)], data.blocks[own], groups, signal)
        for own in trials
    ]
    logs = _first_logs(groups, parts)
    best = _misfit(parts, logs)
    for factor in STEPS:
        for move in _moves(len(groups), math.log(factor)):
            for sign in (1.0, -1.0):
                error = _misfit(parts, logs + sign * move)
                if error < best:
                    best, logs = error, logs + sign * move
                    break
    weights = np.zeros(len(signal.owner))
    for group, log in zip(groups, logs, strict=False):
        weights[group.units] = math.exp(log)
    return weights, math.exp(logs[-1])


@dataclass(frozen=True, eq=False)
class _Group:
    """Units with a common weight: one kind of signal, of a limb's own markers or of the others."""

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
    """A neighbourhood for the choice of kernels: squared distances by group, ready to be weighted."""

    def __init__(
        self, inputs: Array, outputs: Array, blocks: Array, groups: Sequence[_Group], signal: Signal
    ) -> None:
        self._outputs, self._blocks = outputs - outputs.mean(axis=0), several(blocks)
        self.squares = np.stack(
            [cdist(*2 * (inputs[:, np.isin(signal.unit, group.units)],), "sqeuclidean") for group in groups]
        )

    def error(self, logs: Array) -> float:
        """The squared error on held-out blocks."""
        K = np.tensordot(np.exp(logs[:-1]), self.squares, 1)
        profiles(MATERN32, K, math.exp(logs[-1]))
        return float(np.sum(held_out_errors(K, self._outputs, self._blocks) ** 2))


def _misfit(parts: Sequence[_Trial], logs: Array) -> float:
    """The sum of log errors, so that no neighbourhood dominates."""
    return sum(math.log(max(part.error(logs), 1e-300)) for part in parts)


def _first_logs(groups: Sequence[_Group], parts: Sequence[_Trial]) -> Array:
    """Initial logarithms: equal weights for all kinds of signal, less for others' markers, over typical distances."""
    shares = np.array([1.0 if group.own else OTHERS for group in groups])
    typical = np.array(
        [max(np.mean([part.squares[g].mean() for part in parts]), 1e-9) for g in range(len(groups))]
    )
    weights = shares / typical / shares.sum() / REACH**2
    return np.log(np.append(weights, NOISE))


def _moves(groups: int, step: float) -> list[Array]:
    """Search directions: all weights together, each weight, and the noise."""
    together = np.append(np.full(groups, 0.7 * step), 0.0)
    return [together, *(step * np.eye(groups + 1))]


def several(blocks: Int[Array, "examples"]) -> Int[Array, "examples"]:
    """Blocks to hold out; if all examples belong to one block, eight parts of it."""
    return blocks if np.any(blocks != blocks[0]) else np.arange(len(blocks)) * 8 // len(blocks)


# --- neighbourhoods ---------------------------------------------------------------------------------------------------


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


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """The processes through examples around a centre, and their held-out error covariance."""

    regression: Regression
    surveyed: int  # index of its error covariance


class Cover:
    """Neighbourhoods of examples by their centres; members are looked up on demand."""

    def __init__(
        self,
        inputs: Float[Array, "examples columns"],
        signal: Signal,
        own: Int[Array, "_"],
        seed: int,
    ) -> None:
        self.scales = _scales(inputs, signal)
        self._scaled = np.asarray(inputs * self.scales, dtype=np.float32)
        self._squares = np.einsum("ij,ij->i", self._scaled, self._scaled)
        count = 1 if len(inputs) <= WHOLE else round(len(inputs) / SPACING)
        self.centres = _centres(self._scaled, count, np.random.default_rng(seed))
        self._own = own
        more = max(1.0, MANY / count) ** (1 / 3)  # fewer neighbourhoods may be larger
        self._near, self._anchors = round(more * MEMBERS), round(more**2 * ANCHORS)

    def __len__(self) -> int:
        return len(self.centres)

    def members(self, number: int) -> Int[Array, "_"]:
        """The examples of a neighbourhood and the anchors, in order."""
        count = len(self._scaled)
        if len(self) == 1 or count <= self._near:
            return np.arange(count)
        distances = self._squares - 2.0 * self._scaled @ self.centres[number]
        near = np.argpartition(distances, self._near)[: self._near]
        return np.union1d(near, self._own[_spread(len(self._own), self._anchors)])

    def around(self, x: Float[Array, "columns"]) -> tuple[Int[Array, "_"], Float[Array, "_"]]:
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
        self._surveyed, wrong = self._survey()
        self._covariances = [_made_safe(covariance, touched) for covariance in wrong]
        self._places: dict[int, Neighbourhood] = {}

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

    def __call__(
        self, x: Float[Array, "columns"]
    ) -> tuple[Float[Array, "outputs"], Float[Array, "outputs outputs"]]:
        """Mean and covariance of the outputs at control signals."""
        x = np.append(x, self._figure)
        around, shares = self.cover.around(x)
        size = len(self.groups.order)
        mean, covariance = np.zeros(size), np.zeros((size, size))
        for number, share in zip(around, shares, strict=True):
            place = self._place(int(number))
            place.regression.add(x, mean, share=share)
            covariance += share * self._covariances[place.surveyed]
        return mean, covariance

    def _place(self, number: int) -> Neighbourhood:
        """A neighbourhood, fitted at first use."""
        if number not in self._places:
            self._places[number] = self._fit(number)
        return self._places[number]

    def _fit(self, number: int) -> Neighbourhood:
        """Fit the processes of one neighbourhood; its error covariance is that of the nearest surveyed one."""
        data, centres = self._data[self.cover.members(number)], self.cover.centres
        fitted = self.groups.through(data.inputs, data.outputs, centre=data.outputs.mean(axis=0))
        nearest = np.argmin(((centres[self._surveyed] - centres[number]) ** 2).sum(axis=1))
        return Neighbourhood(fitted, int(nearest))

    def _survey(self) -> tuple[Int[Array, "surveyed"], Float[Array, "surveyed outputs outputs"]]:
        """Neighbourhoods spread over the library, and the error covariance at each, partly averaged over all."""
        chosen = _spread(len(self.cover), SURVEYED)
        with _workers() as pool:
            wrong = np.stack(list(pool.map(lambda k: self._wrong(self.cover.members(int(k))), chosen)))
        return chosen, (1.0 - WHOLE_SHARE) * wrong + WHOLE_SHARE * wrong.mean(axis=0)

    def _wrong(self, members: Int[Array, "_"]) -> Float[Array, "outputs outputs"]:
        """The error covariance of a neighbourhood's processes on held-out blocks."""
        data = self._data[members]
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
    data, signal = replace(data, inputs=np.hstack([data.inputs, whose])), signal.with_figure(len(figure))
    cover = Cover(data.inputs, signal, _by_the_performer(whose, figure), seed)
    chosen = _spread(len(cover), TRIALS)
    most = min(MOST_MEMBERS, TRIAL_MEMBERS // len(chosen))
    trials = [_thinned(cover.members(int(k)), most) for k in chosen]
    kernels = []
    for number, limb in enumerate(limbs):
        kernels.append(choose_kernel(data, signal, limb, trials))
        progress((number + 1) / len(limbs))
    weights, noise = (np.array(parts) for parts in zip(*kernels, strict=True))
    outputs = [limb.components for limb in limbs]
    groups = Groups.of(MATERN32, signal.unit, outputs, weights=weights, noise=noise)
    return LocalRegression(data, cover, groups=groups, touched=touched, figure=figure)


def _by_the_performer(whose: Array, figure: Array) -> Int[Array, "_"]:
    """The performer's own examples; all of them if no performer in the library has these bones."""
    own = np.flatnonzero(np.linalg.norm(whose - figure, axis=1) < SAME_BONES)
    return own if len(own) else np.arange(len(whose))


def _workers() -> ThreadPoolExecutor:
    """Threads for compiled code, which releases the GIL."""
    return ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1))


def _made_safe(covariance: Array, touched: Array) -> Array:
    """A covariance from few held-out blocks, made robust: shrunk to its diagonal, with a lower bound on variances."""
    follow = np.where(touched[:, None] == touched[None, :], 1.0, UNTOUCHED) * (1.0 - DIAGONAL_SHARE)
    np.fill_diagonal(follow, 1.0)
    return np.asarray(follow * covariance + BETA * np.eye(len(covariance)))


def _scales(inputs: Array, signal: Signal) -> Array:
    """Scales of the columns: each kind of signal by its spread, so that units do not matter."""
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
    return lloyd(sample, start.astype(np.float64), rounds=12)


def _thinned(members: Array, count: int) -> Array:
    return members[:: max(1, -(-len(members) // count))]


def _spread(count: int, wanted: int) -> Array:
    return np.unique(np.linspace(0, count - 1, min(count, wanted)).round().astype(int))
