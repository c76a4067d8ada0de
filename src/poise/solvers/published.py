"""Multi-variate Gaussian IK as published: Eq. 17 with the schedule of section 4.5 (Huang et al. 2017).

Every step minimises |J d - e|^2 + lambda_1 |d|^2 + lambda_2 / 2 (q + d - m)' S^-1 (q + d - m), within the joint limits
(section 4.6). lambda_2 = |e| lambda_0: the prior fades as the targets get closer. Poise's own solver sets lambda_2
to 0 at once and finishes exactly (decision 0008).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.priors.prior import Guide, State
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.solvers import core, dual_step
from poise.solvers.problem import Problem
from poise.types import Array

STEPS = 200
LONGEST = 0.4  # radians or metres: longer steps are shortened, since J is linearised at the start


class PublishedRun:
    """Solve one problem by the published iteration, from the given pose."""

    def __init__(self, guide: Guide, problem: Problem) -> None:
        if not hasattr(guide, "balance"):
            raise InvalidValueError("the method 'huang2017' needs a gaussian model learned with it")
        self.guide, self.problem, self.balance = guide, problem, guide.balance
        self._precision = np.zeros((problem.space.freedoms,) * 2)
        self._hard = problem.rows[:, dual_step.VARIANCE] == 0.0
        self._one_sided = problem.rows[:, dual_step.INEQUALITY] == 1.0

    def __call__(self, q: Float[Array, "size"], before: Sequence[Array] = ()) -> tuple[int, int, Array]:
        """Move q to the solution; return status, steps and remaining errors."""
        del before
        state, step = self._predicted(q), 0
        for step in range(STEPS):
            errors, jacobian = self._lacking(q)
            if np.abs(errors[self._hard]).max(initial=0.0) <= self.problem.settings.tolerance:
                return core.REACHED, step, self.problem.errors(q)[0]
            q[:] = self.problem.pinned(
                self.problem.space.integrate(q, self._step(q, state.mean, errors, jacobian))
            )
            followed = self.guide.follow(q, self.problem.targets, state)
            state = state if followed is state else self._predicted(q)
        return core.OUT_OF_TIME, step + 1, self.problem.errors(q)[0]

    # --- private ---------------------------------------------------------------------------------------------------

    def _predicted(self, q: Array) -> State:
        state = self.guide.resumed(q, self.problem.targets)
        maps = slice(ROOT_FREEDOMS, None)
        self._precision[maps, maps] = np.linalg.inv(state.covariance[maps, maps])
        return state

    def _lacking(self, q: Array) -> tuple[Array, Array]:
        """Errors of the rows and their Jacobian, with zeros for inequalities that hold."""
        errors, jacobian = self.problem.errors(q)
        met = self._one_sided & (errors <= 0.0)
        return np.where(met, 0.0, errors), np.where(met[:, None], 0.0, jacobian)

    def _step(self, q: Array, mean: Array, errors: Array, jacobian: Array) -> Float[Array, "freedoms"]:
        """Eq. 17, kept within the joint limits."""
        free, limits, balance = self.problem.free, self.problem.limits, self.balance
        weight = balance.prior * float(np.linalg.norm(errors))
        gap = np.concatenate([np.zeros(ROOT_FREEDOMS), mean - q[ROOT_SIZE:]])
        normal = 2.0 * jacobian.T @ jacobian + weight * self._precision
        normal[np.diag_indices_from(normal)] += 2.0 * balance.step
        pull = 2.0 * jacobian.T @ errors + weight * self._precision @ gap
        step = np.zeros(len(free))
        step[free] = np.linalg.solve(normal[np.ix_(free, free)], pull[free])
        step *= min(1.0, LONGEST / max(float(np.abs(step).max()), 1e-12))
        at = np.concatenate([np.zeros(ROOT_FREEDOMS), q[ROOT_SIZE:]])
        return np.clip(at + step, limits[0], limits[1]) - at
