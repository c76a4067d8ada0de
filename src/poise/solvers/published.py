"""The papers' own ways to solve, to compare with: the solver itself (`run`) reaches the same poses much faster.

`PublishedRun` is multi-variate Gaussian IK (Huang et al. 2017): Eq. 17 with the schedule of section 4.5. Every step
minimises |J d - e|^2 + lambda_1 |d|^2 + lambda_2 / 2 (q + d - m)' S^-1 (q + d - m), within the joint limits (section
4.6). lambda_2 = |e| lambda_0: the prior fades as the targets get closer. Poise's own solver sets lambda_2 to 0 at once
and finishes exactly (decision 0008).

`ReferenceRun` solves with a style over (x, q) together (Grochow et al. 2004, section 6.2): "lbfgs" adds every
constraint to L_IK as a soft one, "sqp" keeps hard ones as constraints (Eqs. 7, 8). Both minimise Eq. 3, each feature by
itself, from the active pose that suits the handles best.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
LBFGS, SQP = "lbfgs", "sqp"
REFERENCES = {LBFGS: "L-BFGS-B", SQP: "SLSQP"}
ITERATIONS = 500


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


class ReferenceRun:
    """Solve one problem, with a guide that has an objective, by one of the paper's optimisers; the root is given."""

    def __init__(self, guide: Guide, problem: Problem, method: str) -> None:
        if problem.root != "given":
            raise InvalidValueError(f"the reference method {method!r} needs a given root: pass root='given'")
        self.guide, self.problem, self.method, self.loss = guide, problem, method, np.inf
        rows = problem.rows
        self._soft = (rows[:, dual_step.VARIANCE] > 0.0) | (method == LBFGS)
        variances = np.where(
            rows[:, dual_step.VARIANCE] > 0.0, rows[:, dual_step.VARIANCE], problem.settings.tolerance**2
        )
        self._weights = np.where(self._soft, 1.0 / variances, 0.0)
        self._one_sided = rows[:, dual_step.INEQUALITY] == 1.0
        self._maps = problem.space.size - ROOT_SIZE

    def __call__(self, q: Array, before: Sequence[Array] = ()) -> tuple[int, int, Array]:
        from scipy.optimize import minimize  # only now: it takes half a second

        del before
        first = self.guide.starts(q, self.problem.targets, free_root=False)[0]
        _, x = self.guide.moving(first.state)
        start = np.concatenate([x, self.problem.start(first.q)[ROOT_SIZE:]])
        lower, upper = self.problem.limits[:, ROOT_FREEDOMS:].copy()
        held = ~self.problem.free[ROOT_FREEDOMS:]
        lower[held], upper[held] = start[-self._maps :][held], start[-self._maps :][held]
        free = [(None, None)] * len(x)
        found = minimize(
            self._loss_and_gradient,
            start,
            args=(q,),
            jac=True,
            method=REFERENCES[self.method],
            bounds=[*free, *zip(lower, upper, strict=True)],
            constraints=self._constraints(q, len(x)) if self.method == SQP else (),
            options={"maxiter": ITERATIONS},
        )
        q[ROOT_SIZE:] = found.x[-self._maps :]
        self.loss = self.guide.objective(q, found.x[: -self._maps])[0]
        errors, _ = self.problem.errors(q)
        hard = self.problem.rows[:, dual_step.VARIANCE] == 0.0
        missed = np.abs(self._violations(errors)[hard]).max(initial=0.0)
        return (
            (core.REACHED if missed <= self.problem.settings.tolerance else core.OUT_OF_TIME),
            int(found.nit),
            errors,
        )

    # --- private ---------------------------------------------------------------------------------------------------

    def _loss_and_gradient(self, unknowns: Array, given: Array) -> tuple[float, Array]:
        q = self._with_maps(given, unknowns)
        value, in_x, in_maps = self.guide.objective(q, unknowns[: -self._maps])
        errors, jacobian = self.problem.errors(q)
        missing = self._violations(errors)
        value += float(0.5 * self._weights @ missing**2)
        in_maps = in_maps - (self._weights * missing) @ jacobian[:, ROOT_FREEDOMS:]
        return value, np.concatenate([in_x, in_maps])

    def _constraints(self, given: Array, latent: int) -> list[dict[str, Any]]:
        """The hard rows in SLSQP's form: equalities are zero, inequalities not negative."""

        def of(rows: Array) -> tuple[Any, Any]:
            none = np.zeros((int(rows.sum()), latent))
            return (
                lambda unknowns: -self.problem.errors(self._with_maps(given, unknowns))[0][rows],
                lambda unknowns: np.hstack(
                    [none, self.problem.errors(self._with_maps(given, unknowns))[1][rows, ROOT_FREEDOMS:]]
                ),
            )

        kinds = {"eq": ~self._soft & ~self._one_sided, "ineq": ~self._soft & self._one_sided}
        return [
            {"type": kind, "fun": of(rows)[0], "jac": of(rows)[1]}
            for kind, rows in kinds.items()
            if rows.any()
        ]

    def _violations(self, errors: Float[Array, "rows"]) -> Float[Array, "rows"]:
        return np.where(self._one_sided, np.maximum(errors, 0.0), errors)

    def _with_maps(self, given: Array, unknowns: Array) -> Array:
        return np.concatenate([given[:ROOT_SIZE], unknowns[-self._maps :]])
