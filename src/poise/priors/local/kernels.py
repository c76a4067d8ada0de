"""Kernels of local regression, limb by limb, chosen by their prediction error on held-out recordings.

The weights of a limb's own markers, other markers, their velocities and heights, and the noise are those that predict
held-out parts of the recordings best, on a few neighbourhoods of the examples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial.distance import cdist

from poise.gp.covariance import MATERN32
from poise.gp.regression import held_out_errors, profiles
from poise.priors.limbs import Limb
from poise.types import Array

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
