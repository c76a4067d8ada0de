"""The paper's own ways to solve with a style (Grochow et al. 2004, section 6.2): L-BFGS and SQP over (x, q) together.

"lbfgs" adds every constraint to L_IK as a soft one, "sqp" keeps hard ones as constraints (Eqs. 7, 8). Both minimise
Eq. 3 as it stands, each feature by itself, from the active pose that suits the handles best. They are here to be
compared with: the solver itself (`style_run`) reaches the same poses in a fraction of the time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize

from poise.errors import InvalidValueError
from poise.priors.style.prior import StylePrior, up_aims
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import Handles
from poise.solvers import core, dual_step
from poise.solvers.map_run import in_root_frame
from poise.solvers.problem import Problem

Array = np.ndarray

LBFGS, SQP = "lbfgs", "sqp"
REFERENCES = {LBFGS: "L-BFGS-B", SQP: "SLSQP"}
STEPS = 500


class ReferenceRun:
    """One problem with a style, by one of the paper's optimisers; the root is given."""

    def __init__(self, prior: StylePrior, problem: Problem, method: str) -> None:
        if problem.root != "given":
            raise InvalidValueError(f"the reference method {method!r} solves poses of a given root only")
        self.prior, self.problem, self.method, self.loss = prior, problem, method, np.inf
        self._blocks = problem.position_blocks
        handles = Handles(problem.integers[self._blocks, 1].copy(), problem.floats[self._blocks, :3].copy())
        self._prediction = prior.prepare(handles)
        rows = problem.rows
        self._soft = (rows[:, dual_step.VARIANCE] > 0.0) | (method == LBFGS)
        variances = np.where(
            rows[:, dual_step.VARIANCE] > 0.0, rows[:, dual_step.VARIANCE], problem.settings.tolerance**2
        )
        self._weights = np.where(self._soft, 1.0 / variances, 0.0)
        self._one_sided = rows[:, dual_step.INEQUALITY] == 1.0
        self._latent, self._style = prior.model.dimensions, prior.stages()[-1]

    def __call__(self, q: Array) -> tuple[int, int, Array]:
        targets = self.problem.floats[self._blocks, 3:6]
        number = self._prediction.nearest(in_root_frame(q, targets), 1)[0] if len(targets) else 0
        x = self.prior.model.active_latents[number]
        start = np.concatenate([x, self.problem.start(self._posed(q, x))[ROOT_SIZE:]])
        lower, upper = self.problem.limits[:, ROOT_FREEDOMS:].copy()
        held = ~self.problem.free[ROOT_FREEDOMS:]
        lower[held], upper[held] = start[self._latent :][held], start[self._latent :][held]
        free = [(None, None)] * self._latent
        found = minimize(
            self._loss_and_gradient,
            start,
            args=(q,),
            jac=True,
            method=REFERENCES[self.method],
            bounds=[*free, *zip(lower, upper, strict=True)],
            constraints=self._constraints(q) if self.method == SQP else (),
            options={"maxiter": STEPS},
        )
        q[ROOT_SIZE:] = found.x[self._latent :]
        self.loss = self.pose_loss(q, found.x[: self._latent])[0]
        errors, _ = self.problem.errors(q)
        hard = self.problem.rows[:, dual_step.VARIANCE] == 0.0
        missed = np.abs(self._violations(errors)[hard]).max(initial=0.0)
        return (
            (core.REACHED if missed <= self.problem.settings.tolerance else core.OUT_OF_TIME),
            int(found.nit),
            errors,
        )

    def pose_loss(
        self, q: Float[Array, "size"], x: Float[Array, "latent"]
    ) -> tuple[float, Float[Array, "latent"], Float[Array, "maps"]]:
        """L_IK (Eq. 3) of a pose, its gradient in x (Eq. 17) and in the pose's maps (Eq. 16)."""
        model, style = self.prior.model, self._style
        k, dk = (one[0] for one in model.kernel.slopes_in_x(x[None], model.active_latents))
        solved = style.inverse @ k
        variance = float(model.variance(x))
        in_variance = model.kernel.diagonal_slopes(x[None])[0] - 2.0 * dk.T @ solved
        gaps = q[ROOT_SIZE:] - self.prior.mean - k @ style.weights
        left = up_aims(model, q) - k @ style.checks
        misfit = float(style.precisions @ gaps**2 + left @ left)
        pull = style.precisions * gaps / variance
        in_x = x + 0.5 * (style.features - misfit / variance) / variance * in_variance
        in_x -= dk.T @ (style.weights @ pull + style.checks @ left / variance)
        value = 0.5 * (misfit / variance + style.features * np.log(variance) + float(x @ x))
        return value, in_x, pull

    # --- private ---------------------------------------------------------------------------------------------------

    def _loss_and_gradient(self, unknowns: Array, given: Array) -> tuple[float, Array]:
        q = self._with_maps(given, unknowns)
        value, in_x, in_maps = self.pose_loss(q, unknowns[: self._latent])
        errors, jacobian = self.problem.errors(q)
        missing = self._violations(errors)
        value += float(0.5 * self._weights @ missing**2)
        in_maps = in_maps - (self._weights * missing) @ jacobian[:, ROOT_FREEDOMS:]
        return value, np.concatenate([in_x, in_maps])

    def _constraints(self, given: Array) -> list[dict[str, Any]]:
        """The hard rows as SLSQP takes them: equalities are zero, inequalities not negative."""

        def of(rows: Array) -> tuple[Any, Any]:
            none = np.zeros((int(rows.sum()), self._latent))
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
        return np.concatenate([given[:ROOT_SIZE], unknowns[self._latent :]])

    def _posed(self, q: Array, x: Float[Array, "latent"]) -> Array:
        return np.concatenate([q[:ROOT_SIZE], self.prior.pose_at(x)])
