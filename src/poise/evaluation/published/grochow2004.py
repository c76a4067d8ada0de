"""Style-based IK as published (Grochow et al. 2004, section 6.2): L-BFGS and SQP over (x, q) together.

`poise.solve(..., method="lbfgs")` adds every constraint to L_IK as a soft one, "sqp" keeps hard ones as constraints
(Eqs. 7, 8). Both minimise Eq. 3, each feature by itself, from the active pose that suits the handles best. The solver
itself (`solvers.run`) reaches the same poses much faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.priors.prior import Guide
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.solvers import core, dual_step
from poise.solvers.problem import Problem
from poise.types import Array

LBFGS, SQP = "lbfgs", "sqp"
REFERENCES = {LBFGS: "L-BFGS-B", SQP: "SLSQP"}
ITERATIONS = 500


def lbfgs(problem: Problem, guide_of: Callable[[str], Guide]) -> ReferenceRun:
    """Every constraint is soft."""
    return ReferenceRun(guide_of("a style"), problem, LBFGS)


def sqp(problem: Problem, guide_of: Callable[[str], Guide]) -> ReferenceRun:
    """Hard constraints are kept."""
    return ReferenceRun(guide_of("a style"), problem, SQP)


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
