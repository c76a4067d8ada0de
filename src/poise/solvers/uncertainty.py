"""What the constraints leave open: the Gaussian of a solved pose on their tangent, and which handle would say most.

A guide's Gaussian around the solved pose, with precision P, and the rows J of the constraints with variances V give the
posterior covariance (P + J' V^-1 J)^-1 of the freedoms (Laplace's approximation). Forward kinematics carries it over to
joints. A prior without an opinion on the root leaves it as free as `FREE_ROOT`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_factor, cho_solve

from poise.errors import InvalidValueError
from poise.priors.forms import FREE_ROOT
from poise.priors.prior import Guide
from poise.skeleton.kernels import ROOT_FREEDOMS
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import Skeleton
from poise.solvers import dual_step
from poise.solvers.problem import Problem
from poise.solvers.rows import evaluate

Array = np.ndarray

MEASURED = 0.005  # metres to which a handle places its joint
LOOSEST = 1e-2  # per radian squared: a joint without any evidence may be anywhere within its turn
OPEN = 0.002  # metres: a joint less open than this need not be suggested
HELD = (  # share of joints that are within so many deviations of where they are said to be, on held-out recordings
    (0.25, 0.68), (0.5, 1.20), (0.75, 1.85), (0.9, 2.60), (0.95, 3.20), (0.99, 4.40),
)  # fmt: skip


class Suggestion(NamedTuple):
    """A joint, and the share of what is open that a handle on it would settle."""

    joint: str
    share: float


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

    def __array__(self, dtype: object = None, copy: bool | None = None) -> Array:
        return np.array(self._values, dtype=dtype, copy=copy)  # type: ignore[call-overload]


class Uncertainty:
    """The Gaussian of a pose given its constraints, over all freedoms of its space."""

    def __init__(
        self, space: PoseSpace, q: Float[Array, "size"], covariance: Float[Array, "freedoms freedoms"]
    ) -> None:
        self.space, self.q, self.covariance = space, q, covariance

    @classmethod
    def of(
        cls,
        guide: Guide,
        problem: Problem,
        q: Float[Array, "size"],
        floats: Float[Array, "blocks parameters"],
    ) -> Uncertainty:
        """Around a solved pose; `floats` are the constraints' parameters that it was solved for."""
        points, _ = problem.space.handle_positions(q, problem.handles)
        precision = guide.around(q, points).precision
        precision[np.diag_indices_from(precision)] += _loosest(problem.space.freedoms)
        rows, weights = _rows(problem, q, floats)
        free = np.flatnonzero(problem.free)
        kept = (precision + rows.T @ (weights[:, None] * rows))[np.ix_(free, free)]
        covariance = np.zeros_like(precision)
        covariance[np.ix_(free, free)] = cho_solve(cho_factor(kept), np.eye(len(free)))
        return cls(problem.space, q, covariance)

    @cached_property
    def places(self) -> Float[Array, "axes axes"]:
        """The covariance of all joints' places."""
        _, jacobian = self.space.handle_positions(self.q, self._joints)
        return jacobian @ self.covariance @ jacobian.T

    @cached_property
    def turns(self) -> Float[Array, "joints 3 3"]:
        """The covariance of each joint's rotation in the world, as a rotation vector."""
        _, jacobian = self.space.handle_orientations(self.q, self._joints)
        parts = jacobian.reshape(len(self.space.skeleton), 3, -1)
        return parts @ self.covariance @ parts.transpose(0, 2, 1)

    @property
    def deviation(self) -> Deviations:
        """How far each joint may be off, in metres: one standard deviation per axis."""
        return Deviations(self.space.skeleton, np.sqrt(np.diag(self.places).reshape(-1, 3).mean(axis=1)))

    def radii(self, share: float = 0.95) -> Deviations:
        """How far each joint is off at most in this share of cases, in metres, as measured on held-out recordings."""
        shares, multiples = np.array([(0.0, 0.0), *HELD]).T
        if not 0.0 < share <= shares[-1]:
            raise InvalidValueError(f"a share between 0 and {shares[-1]:g} is expected; got {share:g}")
        return Deviations(
            self.space.skeleton, np.interp(share, shares, multiples) * np.asarray(self.deviation)
        )

    @property
    def turn_deviation(self) -> Deviations:
        """How far each joint's rotation in the world may be off, in radians: one standard deviation per axis."""
        return Deviations(self.space.skeleton, np.sqrt(np.trace(self.turns, axis1=1, axis2=2) / 3))

    def samples(self, count: int, rng: np.random.Generator) -> Float[Array, "count size"]:
        """Poses that the constraints leave open, drawn at random; they meet them to first order."""
        steps = rng.multivariate_normal(
            np.zeros(len(self.covariance)), self.covariance, size=count, method="eigh"
        )
        return np.stack([self.space.integrate(self.q, step) for step in steps])

    def suggestions(self, joints: Sequence[str] | None = None) -> list[Suggestion]:
        """Which joint to give a handle next, best first: the share of all deviations that it would take away."""
        skeleton, places = self.space.skeleton, self.places
        moving = ~skeleton.is_end_site
        names = joints if joints is not None else [skeleton.names[j] for j in np.flatnonzero(moving)]
        variances = np.diag(places).reshape(-1, 3).sum(axis=1)
        total, found = np.sqrt(variances[moving]).sum(), []
        for name in names:
            j = skeleton.index(name)
            own = slice(3 * j, 3 * j + 3)
            settled = np.linalg.solve(places[own, own] + MEASURED**2 * np.eye(3), places[own])
            left = variances - np.sum(places[own] * settled, axis=0).reshape(-1, 3).sum(axis=1)
            found.append(Suggestion(name, 1.0 - float(np.sqrt(np.maximum(left[moving], 0.0)).sum() / total)))
        return sorted(found, key=lambda one: -one.share)

    @cached_property
    def _joints(self) -> Handles:
        count = len(self.space.skeleton)
        return Handles(np.arange(count), np.zeros((count, 3)))


def _loosest(freedoms: int) -> Float[Array, "freedoms"]:
    return np.where(np.arange(freedoms) < ROOT_FREEDOMS, 1.0 / FREE_ROOT, LOOSEST)


def _rows(problem: Problem, q: Array, floats: Array) -> tuple[Array, Array]:
    """The Jacobian and the inverse variances of the constraints' rows; inequalities that hold say nothing."""
    errors, jacobian = np.empty(len(problem.rows)), np.empty((len(problem.rows), problem.space.freedoms))
    evaluate(q, problem.body, (problem.integers, floats), errors, jacobian)
    variances = np.maximum(problem.rows[:, dual_step.VARIANCE], problem.settings.tolerance**2)
    idle = (problem.rows[:, dual_step.INEQUALITY] == 1.0) & (errors < -problem.settings.tolerance)
    return jacobian, np.where(idle, 0.0, 1.0 / variances)
