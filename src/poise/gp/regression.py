"""Regression by Gaussian processes: groups of outputs, each with its own input weights.

Columns of inputs come in units, such as the three coordinates of a point; a group of outputs has the kernel

    k(x, x') = g(sum_u w_u |x_u - x'_u|^2),

with the profile g of some kind and noise on the diagonal (relevance determination: Rasmussen and Williams 2006,
section 5.1). The parameters are those that predict held-out blocks of the data best: neighbouring frames are so
similar that leaving out one at a time would select a process that only repeats them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg.lapack import dpotrf, dpotrs

from poise.compiled import compiled
from poise.gp.covariance import profile_of, squared_distances
from poise.gp.process import inverse_of
from poise.types import Array

REACHES = (0.5, 2.0, 8.0)  # candidates for the width of a kernel, over the typical distance between inputs
NOISES = (
    1e-3,
    1e-2,
    1e-1,
    3e-1,
)  # candidates for the noise variance of outputs, over the signal's
ENOUGH = 120  # largest number of samples on which width and noise are chosen


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of outputs and their kernels; outputs are sorted by group for the compiled prediction."""

    kind: int  # of the kernels, as numbered in `covariance`
    unit: Int[Array, "columns"]  # the unit of each column of the inputs
    weights: Float[Array, "groups units"]  # of squared distances
    noise: Float[Array, "groups"]
    order: Int[Array, "outputs"]  # outputs, group by group
    ends: Int[Array, "groups"]  # end of each group in that order

    @classmethod
    def of(
        cls,
        kind: int,
        unit: Int[Array, "columns"],
        outputs: Sequence[Int[Array, "_own"]],
        *,
        weights: Float[Array, "groups units"],
        noise: Float[Array, "groups"] | float = 0.0,
    ) -> Groups:
        """Create groups from the outputs of each, their weights and noise."""
        ends = np.cumsum([len(own) for own in outputs])
        return cls(kind, unit, weights, noise + np.zeros(len(ends)), np.concatenate(outputs), ends)

    def matrices(self, inputs: Float[Array, "n columns"]) -> Iterator[tuple[Array, Float[Array, "n n"]]]:
        """Yield each group's outputs, and the kernel matrix of inputs with its noise."""
        outputs = np.split(self.order, self.ends[:-1])
        for own, weights, noise in zip(outputs, self.weights, self.noise, strict=True):
            K = weighed_squares(inputs, weights[self.unit])
            profiles(self.kind, K, noise)
            yield own, K

    def held_out(
        self,
        inputs: Float[Array, "n columns"],
        outputs: Float[Array, "n outputs"],
        blocks: Int[Array, "n"],
    ) -> Float[Array, "n outputs"]:
        """Errors of each group on every block when fitted to all others."""
        errors = np.empty_like(outputs)
        for own, K in self.matrices(inputs):
            errors[:, own] = held_out_errors(K, outputs[:, own], blocks)
        return errors

    def through(
        self,
        inputs: Float[Array, "n columns"],
        outputs: Float[Array, "n outputs"],
        *,
        centre: Float[Array, "outputs"],
    ) -> Regression:
        """The processes through samples, relative to their centre."""
        coefficients = [solved(K, outputs[:, own] - centre[own]) for own, K in self.matrices(inputs)]
        return Regression(
            self, np.ascontiguousarray(inputs.T), np.ascontiguousarray(np.hstack(coefficients).T), centre
        )


@dataclass(frozen=True, eq=False)
class Regression:
    """Groups of outputs given samples: mean(x) = centre + sum_j k(x, x_j) coefficients_j."""

    groups: Groups
    columns: Float[Array, "columns n"]  # of the inputs x_j
    coefficients: Float[Array, "outputs n"]  # group by group
    centre: Float[Array, "outputs"]

    def add(
        self, x: Float[Array, "columns"], mean: Float[Array, "outputs"], *, share: float = 1.0
    ) -> Float[Array, "n"]:
        """Add a share of the prediction at x to `mean`; return the distances of x from the inputs."""
        groups, distances = self.groups, np.empty(self.columns.shape[1])
        add_prediction(
            groups.kind, share, x, self.columns, groups.unit, groups.weights, self.coefficients, groups.order,
            groups.ends, self.centre, mean, distances,
        )  # fmt: skip
        return distances


def fit(
    inputs: Float[Array, "n columns"],
    outputs: Float[Array, "n outputs"],
    *,
    groups: Groups,
    blocks: Int[Array, "n"],
    centre: Float[Array, "outputs"],
) -> Regression:
    """Fit with the width and noise, the same for all groups, that predict held-out blocks best.

    Weights are for distances over the width. If all samples are of one block, each is held out by itself.
    """
    few = slice(None, None, -(-len(inputs) // ENOUGH))
    known, wanted, apart = inputs[few], outputs[few] - centre, blocks[few]
    apart = apart if np.any(apart != apart[0]) else np.arange(len(apart))
    distances = np.sqrt(weighed_squares(known, np.ones(known.shape[1])))
    typical = float(np.median(distances[distances > 0])) if np.any(distances > 0) else 1.0
    candidates = [
        replace(
            groups, weights=groups.weights / (reach * typical) ** 2, noise=np.full(len(groups.ends), noise)
        )
        for reach in REACHES
        for noise in NOISES
    ]
    best = min(candidates, key=lambda one: float(np.sum(one.held_out(known, wanted, apart) ** 2)))
    return best.through(inputs, outputs, centre=centre)


def spacing(inputs: Float[Array, "n columns"]) -> float:
    """The median distance of samples from their nearest neighbours."""
    distances = np.sqrt(weighed_squares(inputs, np.ones(inputs.shape[1])))
    np.fill_diagonal(distances, np.inf)
    nearest = distances.min(axis=1)
    return float(np.median(nearest)) if np.any(np.isfinite(nearest) & (nearest > 0)) else 1.0


def weighed_squares(
    inputs: Float[Array, "n columns"], weights: Float[Array, "columns"]
) -> Float[Array, "n n"]:
    """Squared distances between inputs with weighted columns, by one matrix product."""
    scaled = (inputs - inputs.mean(axis=0)) * np.sqrt(weights)
    return squared_distances(scaled, scaled)


def held_out_errors(
    K: Float[Array, "n n"], outputs: Float[Array, "n outputs"], blocks: Int[Array, "n"]
) -> Float[Array, "n outputs"]:
    """Errors of a process on each block when fitted to all others, from one inverse (Rasmussen 2006, 5.12)."""
    try:
        inverse, _ = inverse_of(K)
    except np.linalg.LinAlgError:  # by rounding, if inputs coincide
        inverse = np.linalg.inv(K)
    order, errors = np.argsort(blocks, kind="stable"), inverse @ outputs
    starts = np.append(np.unique(blocks[order], return_index=True)[1], len(blocks))
    leave_out(np.ascontiguousarray(inverse), errors, order, starts)
    return errors


def solved(K: Float[Array, "n n"], outputs: Float[Array, "n outputs"]) -> Float[Array, "n outputs"]:
    """K^-1 outputs, by the Cholesky factor."""
    factor, failed = dpotrf(K, lower=1)
    return np.linalg.solve(K, outputs) if failed else np.asarray(dpotrs(factor, outputs, lower=1)[0])


@compiled
def profiles(kind: int, squares: Array, noise: float) -> None:
    """Turn weighted squared distances of samples into their kernel matrix with noise, in place."""
    for i in range(len(squares)):
        for j in range(i):
            squares[i, j] = squares[j, i] = profile_of(kind, squares[i, j], 1.0)[0]
        squares[i, i] = 1.0 + noise


@compiled
def leave_out(inverse: Array, errors: Array, order: Array, starts: Array) -> None:
    """Turn a kernel matrix's inverse times outputs into errors, block by block; `order` sorts by block."""
    for block in range(len(starts) - 1):
        members = order[starts[block] : starts[block + 1]]
        count = len(members)
        own, right = np.empty((count, count)), np.empty((count, errors.shape[1]))
        for i in range(count):
            right[i] = errors[members[i]]
            for j in range(count):
                own[i, j] = inverse[members[i], members[j]]
        found = np.linalg.solve(own, right)
        for i in range(count):
            errors[members[i]] = found[i]


@compiled
def add_prediction(
    kind: int,
    share: float,
    x: Array,
    columns: Array,
    unit: Array,
    weights: Array,
    coefficients: Array,
    order: Array,
    ends: Array,
    centre: Array,
    mean: Array,
    distances: Array,
) -> None:
    """See `Regression.add`; row i of `coefficients` is of the output order[i]. Loops over samples vectorise."""
    (groups, units), count, begin = weights.shape, columns.shape[1], 0
    squares, k, sums = np.zeros((units, count)), np.empty(count), np.empty(len(mean))
    for c in range(len(x)):
        own, row, square = x[c], columns[c], squares[unit[c]]
        for j in range(count):
            square[j] += (own - row[j]) ** 2
    _weighed(np.ones(units), squares, distances)
    for j in range(count):
        distances[j] = math.sqrt(distances[j])
    for group in range(groups):
        _weighed(weights[group], squares, k)
        for j in range(count):
            k[j] = profile_of(kind, k[j], 1.0)[0]
        np.dot(coefficients[begin : ends[group]], k, sums[begin : ends[group]])
        begin = ends[group]
    for i in range(begin):
        mean[order[i]] += share * sums[i]
    for i in range(len(mean)):
        mean[i] += share * centre[i]


@compiled
def _weighed(weights: Array, squares: Array, out: Array) -> None:
    """The weighted sum of rows."""
    out[:] = 0.0
    for u in range(len(weights)):
        weight, row = weights[u], squares[u]
        for j in range(len(out)):
            out[j] += weight * row[j]
