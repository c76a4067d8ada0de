"""Uncertainty of a solved pose given its constraints, and the handle that would reduce it most.

A guide's Gaussian around the solved pose, with covariance S, and the rows J of the constraints with variances V give
the posterior covariance S - S J' (J S J' + V)^-1 J S of the degrees of freedom (Laplace's approximation), by one
system the size of the rows. Forward kinematics propagates it to the joints. It is widened according to held-out frames
(`held_out`): the more, the farther the handles are from where the guide expected them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from poise.compiled import compiled
from poise.priors.evidence import HeldOut
from poise.priors.prior import STIFFEST
from poise.skeleton.kernels import ROOT_FREEDOMS
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import Skeleton
from poise.solvers import dual_step
from poise.solvers.problem import Problem
from poise.solvers.rows import evaluate
from poise.solvers.run import Runner, are_alike
from poise.types import Array, PoseVector

MEASURED = 0.002  # metres: standard deviation of a joint that gets a handle
CLOSE = 0.01  # metres: smaller standard deviations count little; both chosen on held-out frames
APART = 1.5  # distance of an alternative, in standard deviations
ROUNDS = 8  # largest number of steps back to the constraints
OPEN = 0.002  # metres: joints with a smaller standard deviation are not suggested


class Suggestion(NamedTuple):
    """A joint, and the fraction of the uncertainty that a handle on it would remove."""

    joint: str
    share: float


class PoseMode(NamedTuple):
    """A representative pose of one kind that the constraints leave possible, and the probability of that kind."""

    share: float
    q: PoseVector


class Deviations(Mapping[str, float]):
    """A number per joint, by its name or role."""

    def __init__(self, skeleton: Skeleton, values: Float[Array, "joints"]) -> None:
        self._skeleton, self._values = skeleton, values

    def __getitem__(self, joint: str) -> float:
        return float(self._values[self._skeleton.index(joint)])

    def __iter__(self) -> Iterator[str]:
        return iter(self._skeleton.names)

    def __len__(self) -> int:
        return len(self._skeleton)

    def __repr__(self) -> str:
        return f"Deviations({', '.join(f'{name} {value:.3g}' for name, value in self.items())})"

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Array:
        return np.array(self._values, dtype=dtype, copy=copy)  # type: ignore[call-overload]


class Uncertainty:
    """The Gaussian of a pose given its constraints, over all degrees of freedom, calibrated on held-out frames."""

    def __init__(
        self,
        space: PoseSpace,
        q: PoseVector,
        covariance: Float[Array, "freedoms freedoms"],
        *,
        record: HeldOut,
        squares: float,
        rows: float,
        met: Callable[[PoseVector], PoseVector] = lambda q: q,
        modes: Callable[[], list[PoseMode]] = list,
    ) -> None:
        """`squares` and `rows` measure the novelty of the handles, by which the prior's covariance was widened.

        `met` moves a pose to the constraints; `modes` finds other kinds of poses that meet them.
        """
        self.space, self.q, self.covariance = space, q, covariance
        self.record, self.squares, self.rows, self._met, self._modes = record, squares, rows, met, modes

    @classmethod
    def of(
        cls,
        runner: Runner,
        q: PoseVector,
        floats: Float[Array, "blocks parameters"],
        record: HeldOut,
    ) -> Uncertainty:
        """The uncertainty around a solved pose; `floats` are the constraint parameters that it was solved for."""
        gap, covariance = runner.spread(q)
        np.einsum("ii->i", covariance)[ROOT_FREEDOMS:] += 1.0 / STIFFEST * runner.problem.free[ROOT_FREEDOMS:]
        _, rows, noise = _rows(runner.problem, q, floats)
        squares, count = novelty(covariance, gap, rows, noise)
        covariance *= record.widening(squares, count) ** 2
        met = partial(_met, runner.problem, floats, covariance.copy())
        condition(covariance, rows, noise)
        return cls(
            runner.problem.space, q, covariance, record=record, squares=squares, rows=count, met=met,
            modes=partial(_modes, runner, q, floats),
        )  # fmt: skip

    @cached_property
    def modes(self) -> tuple[PoseMode, ...]:
        """Poses of different kinds that meet the constraints, the likeliest first; only this one if there is one kind.

        The solved pose is the mean of all kinds, so with several it lies between them.
        """
        found = self._modes()
        return tuple(found) if len(found) > 1 else (PoseMode(1.0, self.q),)

    @property
    def kinds(self) -> list[PoseMode]:
        """The modes that are unlike this pose."""
        return [mode for mode in self.modes if not are_alike(self.space, mode.q, self.q)]

    @property
    def widening(self) -> float:
        """Factor by which the prior's standard deviations were widened."""
        return self.record.widening(self.squares, self.rows)

    @cached_property
    def places(self) -> Float[Array, "axes axes"]:
        """The joint covariance of all joint positions."""
        jacobian = self._jacobian
        return jacobian @ self.covariance @ jacobian.T

    @cached_property
    def turns(self) -> Float[Array, "joints 3 3"]:
        """The covariance of each joint's rotation in the world, as a rotation vector."""
        _, jacobian = self.space.handle_orientations(self.q, self._joints)
        parts = jacobian.reshape(len(self.space.skeleton), 3, -1)
        return parts @ self.covariance @ parts.transpose(0, 2, 1)

    @cached_property
    def deviation(self) -> Deviations:
        """Uncertainty of each joint's position, in metres: one standard deviation per axis."""
        return Deviations(self.space.skeleton, np.sqrt(variances(self._jacobian, self.covariance)))

    def radii(self, share: float = 0.95) -> Deviations:
        """Bound on each joint's position error in this share of cases, in metres, calibrated on held-out recordings."""
        multiple = self.record.multiple(share)
        return Deviations(self.space.skeleton, multiple * np.asarray(self.deviation))

    @property
    def turn_deviation(self) -> Deviations:
        """Uncertainty of each joint's world rotation, in radians: one standard deviation per axis."""
        return Deviations(self.space.skeleton, np.sqrt(np.trace(self.turns, axis1=1, axis2=2) / 3))

    def samples(self, count: int, rng: np.random.Generator) -> Float[Array, "count size"]:
        """Poses drawn at random from the posterior; they meet the constraints to first order."""
        none = np.zeros(len(self.covariance))
        steps = rng.multivariate_normal(none, self.covariance, size=count, method="eigh")
        return np.stack([self.space.integrate(self.q, step) for step in steps])

    def alternatives(self, count: int = 4) -> list[PoseVector]:
        """Poses unlike this one that meet the constraints: of other kinds, then at the ends of principal components.

        A principal component of the joint positions moves joints together (a swinging elbow, a crouching or bending
        body). Each pose lies `APART` standard deviations out, one on either side.
        """
        kinds = [mode.q for mode in self.kinds]
        axes = np.repeat(~self.space.skeleton.is_end_site, 3)
        values, ways = np.linalg.eigh(self.places[np.ix_(axes, axes)])
        kept = np.flatnonzero(values > OPEN**2)[::-1][: (count + 1) // 2]
        steps = self.covariance @ self._jacobian[axes].T @ (ways[:, kept] / np.sqrt(values[kept]))
        both = [sign * APART * step for step in steps.T for sign in (1.0, -1.0)]
        ends = both[: max(0, count - len(kinds))]
        return [*kinds[:count], *(self._met(self.space.integrate(self.q, step)) for step in ends)]

    def suggestions(self, joints: Sequence[str] | None = None) -> list[Suggestion]:
        """Joints to give a handle next, best first, with the fraction of all deviations that it would remove.

        The best lowers their geometric mean most: a handle that determines several joints is better than one that
        halves the widest. A joint that the handles determine already is left out, unless it is named.
        """
        skeleton, places = self.space.skeleton, self.places
        moving, variances = ~skeleton.is_end_site, np.diag(places).reshape(-1, 3).sum(axis=1)
        open_joints = [skeleton.names[j] for j in np.flatnonzero(moving) if variances[j] > 3 * OPEN**2]
        total, found = np.sqrt(variances[moving]).sum(), []
        for name in joints if joints is not None else open_joints or skeleton.names[:1]:
            own, moved = self.moved_by(name)
            left = variances - np.sum(places[own] * moved, axis=0).reshape(-1, 3).sum(axis=1)
            deviations = np.sqrt(np.maximum(left[moving], 0.0))
            share = 1.0 - float(deviations.sum() / total)
            found.append((float(np.log(deviations + CLOSE).sum()), Suggestion(name, share)))
        return [one for _, one in sorted(found, key=lambda pair: pair[0])]

    def moved_by(self, joint: str) -> tuple[slice, Float[Array, "3 axes"]]:
        """The axes of a joint, and the expected movement of all joints per metre that a handle moves it along them."""
        j, places = self.space.skeleton.index(joint), self.places
        own = slice(3 * j, 3 * j + 3)
        return own, np.linalg.solve(places[own, own] + MEASURED**2 * np.eye(3), places[own])

    @cached_property
    def _joints(self) -> Handles:
        count = len(self.space.skeleton)
        return Handles(np.arange(count), np.zeros((count, 3)))

    @cached_property
    def _jacobian(self) -> Float[Array, "axes freedoms"]:
        return self.space.handle_positions(self.q, self._joints)[1]


@compiled
def novelty(covariance: Array, gap: Array, rows: Array, noise: Array) -> tuple[float, float]:
    """Squared Mahalanobis distance of the rows from what was expected, and the effective number of rows.

    Rows that only place the root carry no information about the pose and do not count.
    """
    gram, missed = _factor(covariance, rows, noise)[1], np.dot(rows, gap)
    across, squares, left = rows[:, :ROOT_FREEDOMS].copy(), 0.0, float(len(rows))
    for a in range(len(rows)):
        for c in range(a):
            missed[a] -= gram[a, c] * missed[c]
            across[a] -= gram[a, c] * across[c]
        missed[a] *= gram[a, a]
        across[a] *= gram[a, a]
        squares += missed[a] ** 2
        for i in range(ROOT_FREEDOMS):
            left -= across[a, i] ** 2 * covariance[i, i]
    return squares, max(left, 0.0)


@compiled
def condition(covariance: Array, rows: Array, noise: Array) -> None:
    """Condition a covariance on these rows, in place."""
    spread, gram = _factor(covariance, rows, noise)
    for a in range(len(rows)):
        for c in range(a):
            spread[a] -= gram[a, c] * spread[c]
        spread[a] *= gram[a, a]
    covariance -= np.dot(spread.T, spread)


@compiled
def _factor(covariance: Array, rows: Array, noise: Array) -> tuple[Array, Array]:
    """J S, and the factor of J S J' + V from `dual_step.cholesky`."""
    spread, gram = np.empty(rows.shape), np.empty((len(rows), len(rows)))
    dual_step.spread_rows(rows, covariance, spread, gram)
    for r in range(len(rows)):
        gram[r, r] += noise[r]
    dual_step.cholesky(gram)
    return spread, gram


@compiled
def variances(jacobian: Array, covariance: Array) -> Array:
    """Variance of the position of each point of a Jacobian, averaged over its axes."""
    count, freedoms = jacobian.shape
    found, members = np.zeros(count // 3), np.empty(freedoms, dtype=np.int64)
    for r in range(count):
        size, total = 0, 0.0
        for i in range(freedoms):
            weight = jacobian[r, i]
            if weight != 0.0:
                across = 0.5 * weight * covariance[i, i]
                for m in range(size):
                    across += jacobian[r, members[m]] * covariance[i, members[m]]
                total += 2.0 * weight * across
                members[size] = i
                size += 1
        found[r // 3] += max(total, 0.0) / 3
    return found


def _modes(runner: Runner, q: Array, floats: Array) -> list[PoseMode]:
    """The kinds of poses that meet the constraints with these parameters."""
    own = runner.problem.floats.copy()
    runner.problem.floats[:] = floats
    try:
        return [PoseMode(share, one.q) for share, one in runner.modes(q)]
    finally:
        runner.problem.floats[:] = own


def _met(problem: Problem, floats: Array, covariance: Array, q: Array) -> Array:
    """Move a pose to the constraints by the most likely change."""
    for _ in range(ROUNDS):
        errors, rows, noise = _rows(problem, q, floats)
        if len(errors) == 0 or np.abs(errors).max() < problem.settings.tolerance:
            break
        spread = rows @ covariance
        q = problem.space.integrate(q, spread.T @ np.linalg.solve(spread @ rows.T + np.diag(noise), errors))
    return q


def _rows(problem: Problem, q: Array, floats: Array) -> tuple[Array, Array, Array]:
    """Errors, Jacobian and variances of the constraint rows, without inequalities that hold."""
    errors, jacobian = np.empty(len(problem.rows)), np.empty((len(problem.rows), problem.space.freedoms))
    evaluate(q, problem.body, (problem.integers, floats), errors, jacobian)
    noise = np.maximum(problem.rows[:, dual_step.VARIANCE], problem.settings.tolerance**2)
    idle = (problem.rows[:, dual_step.INEQUALITY] == 1.0) & (errors < -problem.settings.tolerance)
    return (errors[~idle], jacobian[~idle], noise[~idle]) if idle.any() else (errors, jacobian, noise)
