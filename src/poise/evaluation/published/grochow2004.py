"""Style-based IK as published (Grochow et al. 2004, sections 4 and 6): L-BFGS and SQP over (x, q) together.

`poise.solve(..., method="lbfgs")` adds every constraint to L_IK as a soft one, "sqp" keeps hard ones as constraints
(Eqs. 7, 8). Both minimise Eq. 3 as written: each feature by itself, velocities and accelerations from the previous
frames, which are constants; without previous frames they have no misfit. For a blend they minimise Eq. 9, with one
latent point per style. They begin at the previous frame, or at the active pose that suits the handles best, take a few
steps under the annealed model, a few under the intermediate one, and end under the model itself (section 6.2). The
solver itself (`solvers.run`) reaches such poses much faster.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.priors.blend import Chart
from poise.priors.latent.model import frame_rate
from poise.priors.prior import Guide, Information
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.solvers import core, dual_step
from poise.solvers.problem import Problem
from poise.types import Array

LBFGS, SQP = "lbfgs", "sqp"
REFERENCES = {LBFGS: "L-BFGS-B", SQP: "SLSQP"}
STEPS = (60, 60, 500)  # at most, under the annealed model, the intermediate one and the model itself
SOFTENED = 0.5  # of the tolerance: deviation of a hard constraint that is softened
MEMORY = 60  # steps that L-BFGS remembers: stiff handles and motion need more than the usual ten
_TURN = slice(3, ROOT_FREEDOMS)


def lbfgs(problem: Problem, guide_of: Callable[[str], Guide]) -> ReferenceRun:
    """Every constraint is soft."""
    return ReferenceRun(guide_of("a style"), problem, LBFGS)


def sqp(problem: Problem, guide_of: Callable[[str], Guide]) -> ReferenceRun:
    """Hard constraints are kept."""
    return ReferenceRun(guide_of("a style"), problem, SQP)


class AnnealedStyle:
    """L_IK of one style (Eq. 3), under each of its models, from the annealed one to its own."""

    def __init__(self, guide: Any) -> None:
        prior: Any = getattr(guide, "prior", None)
        if not hasattr(prior, "kernels"):
            raise InvalidValueError("'lbfgs' and 'sqp' need a style; this model has no latent point")
        self._models = [prior.model.with_kernel(kernel) for kernel in prior.kernels]
        self._rate = None if guide.fps is None else frame_rate(guide.fps)
        self.follow(())

    @property
    def dimensions(self) -> int:
        """The number of dimensions of the latent space."""
        return int(self._models[0].dimensions)

    def follow(self, before: Sequence[Float[Array, "size"]]) -> None:
        """Take the previous frames, newest first (section 4); their motion counts if the frame rate is known."""
        features = self._models[0].features
        poses = [features.of_poses(q) for q in before[:2]] if self._rate is not None else []
        rate = self._rate or 1.0
        self._motion = [(1.0, np.zeros(features.pose_count))]
        if features.velocity and poses:
            self._motion.append((rate, poses[0]))
        if features.acceleration and len(poses) == 2:
            self._motion.append((rate**2, 2.0 * poses[0] - poses[1]))

    def __call__(
        self, q: Float[Array, "size"], x: Float[Array, "latent"], stage: int
    ) -> tuple[float, Float[Array, "latent"], Float[Array, "freedoms"]]:
        """L_IK, its gradient in x (Eq. 17), and that in the degrees of freedom of q (Eq. 16)."""
        model = self._models[stage]
        features, used = model.features, slice(len(self._motion) * model.features.pose_count)
        pose = features.of_poses(q)
        y = np.concatenate([rate * (pose - expected) for rate, expected in self._motion])
        slopes = model.kernel.slopes_in_x(x[None], model.active_latents)
        (variance,), (in_variance,) = model.posterior.variance_slopes(x[None], *slopes)
        (k, dk), weights = (one[0] for one in slopes), model.weights[:, used]
        gaps = model.scales[used] * (y - model.mean[used] - k @ weights)  # W (y - f(x))
        misfit, pull = float(gaps @ gaps) / variance, model.scales[used] * gaps / variance
        value = 0.5 * (misfit + features.dimension * np.log(variance) + float(x @ x))
        in_x = x + 0.5 * (features.dimension - misfit) / variance * in_variance - dk.T @ (weights @ pull)
        moved = zip(self._motion, pull.reshape(len(self._motion), -1), strict=True)
        in_pose = np.sum([rate * own for (rate, _), own in moved], axis=0)
        maps = len(q) - ROOT_SIZE
        in_q = np.concatenate([np.zeros(ROOT_FREEDOMS), in_pose[:maps]])
        if features.up:  # R exp(d): the change of row r is r x d
            in_q[_TURN] = in_pose[maps:] @ rotations.skew(pose[maps:])
        return float(value), in_x, in_q

    def stiffness(self, x: Float[Array, "latent"]) -> tuple[Float[Array, "latent"], Float[Array, "maps"]]:
        """The diagonal of L_IK's curvature, to scale the unknowns by."""
        model = self._models[-1]
        used = slice(len(self._motion) * model.features.pose_count)
        _, dk = model.kernel.slopes_in_x(x[None], model.active_latents)
        variance, scales = float(model.variance(x)), model.scales[used]
        in_x = 1.0 + np.sum((dk[0].T @ model.weights[:, used] * scales) ** 2, axis=1) / variance
        squares = (scales**2).reshape(len(self._motion), -1) / variance
        rates = np.array([rate**2 for rate, _ in self._motion])
        return in_x, (rates @ squares)[: model.features.space.size - ROOT_SIZE]


class ReferenceRun:
    """Solve one problem, with a style or a blend of styles, by one of the paper's optimisers."""

    def __init__(self, guide: Guide, problem: Problem, method: str) -> None:
        self.guide, self.problem, self.method, self.loss = guide, problem, method, np.inf
        self._parts: list[tuple[float, AnnealedStyle, Chart | None]]
        if hasattr(guide, "shared"):
            origin = np.concatenate([np.zeros(3), [1.0], np.zeros(problem.space.size - 4)])
            parts = guide.shared(guide.resumed(problem.start(origin), problem.targets))
            self._parts = [(weight, AnnealedStyle(part), chart) for weight, part, chart, _ in parts]
        else:
            self._parts = [(1.0, AnnealedStyle(guide), None)]
        rows = problem.rows
        self._soft = (rows[:, dual_step.VARIANCE] > 0.0) | (method == LBFGS)
        hard = (SOFTENED * problem.settings.tolerance) ** 2
        variances = np.where(rows[:, dual_step.VARIANCE] > 0.0, rows[:, dual_step.VARIANCE], hard)
        self._weights = np.where(self._soft, 1.0 / variances, 0.0)
        self._one_sided = rows[:, dual_step.INEQUALITY] == 1.0
        self._first = 0 if problem.root == "solved" else ROOT_FREEDOMS  # degree of freedom that is solved
        self._freedoms = problem.space.freedoms - self._first

    def __call__(self, q: Array, before: Sequence[Array] = ()) -> tuple[int, int, Array]:
        """Move q to the solution; return status, steps and remaining errors."""
        from scipy.optimize import minimize  # only now: it takes half a second

        problem, targets = self.problem, self.problem.targets
        for _, style, chart in self._parts:
            style.follow(before if chart is None else [chart.own(one) for one in before])
        if before:
            given, state = q.copy(), self.guide.resumed(before[0], targets)
        else:
            start = self.guide.starts(q, targets, free_root=problem.root == "solved")[0]
            given, state = problem.start(start.q), start.state
        moved = np.zeros(problem.space.freedoms)
        moved[ROOT_FREEDOMS:] = given[ROOT_SIZE:]
        lower, upper = problem.limits.copy()
        lower[~problem.free], upper[~problem.free] = moved[~problem.free], moved[~problem.free]
        unknowns = np.concatenate([*self.guide.latents(state), moved[self._first :]])
        latent = len(unknowns) - self._freedoms
        scales = self._scales(given, unknowns)
        lowest = np.concatenate([np.full(latent, -np.inf), lower[self._first :]]) / scales
        highest = np.concatenate([np.full(latent, np.inf), upper[self._first :]]) / scales
        taken = 0
        for stage, steps in enumerate(STEPS):

            def scaled(unknowns: Array, stage: int = stage) -> tuple[float, Array]:
                value, slope = self._loss_and_gradient(scales * unknowns, given, stage)
                return value, scales * slope

            found = minimize(
                scaled,
                unknowns / scales,
                jac=True,
                method=REFERENCES[self.method],
                bounds=list(zip(lowest, highest, strict=True)),
                constraints=self._constraints(given, scales) if self.method == SQP else (),
                options={"maxiter": steps} | ({"maxcor": MEMORY} if self.method == LBFGS else {}),
            )
            unknowns, taken = scales * found.x, taken + int(found.nit)
        q[:] = self._pose(given, unknowns)
        self.loss = self._style_loss(q, unknowns, -1)[0]
        errors, _ = problem.errors(q)
        hard = problem.rows[:, dual_step.VARIANCE] == 0.0
        missed = np.abs(self._violations(errors)[hard]).max(initial=0.0)
        return (core.REACHED if missed <= problem.settings.tolerance else core.OUT_OF_TIME), taken, errors

    # --- private ---------------------------------------------------------------------------------------------------

    def _style_loss(self, q: Array, unknowns: Array, stage: int) -> tuple[float, Array, Array]:
        """L_IK, or L_s of a blend (Eq. 9), and its gradients in all latent points and the degrees of freedom of q."""
        value, in_x, in_q, first = 0.0, [], np.zeros(self.problem.space.freedoms), 0
        for weight, style, chart in self._parts:
            x = unknowns[first : first + style.dimensions]
            own, slope, pull = style(q if chart is None else chart.own(q), x, stage)
            if (
                chart is not None
            ):  # its maps are about other references, and joints that are still there do not count
                none = np.zeros((len(pull), len(pull)))
                pulled, still = (chart.seen(q, Information(one, none)).pull for one in (pull, 0.0 * pull))
                pull = pulled - still
            value, in_q, first = value + weight * own, in_q + weight * pull, first + len(x)
            in_x.append(weight * slope)
        return value, np.concatenate(in_x), in_q

    def _loss_and_gradient(self, unknowns: Array, given: Array, stage: int = -1) -> tuple[float, Array]:
        q = self._pose(given, unknowns)
        value, in_x, in_q = self._style_loss(q, unknowns, stage)
        errors, jacobian = self.problem.errors(q)
        missing = self._violations(errors)
        value += float(0.5 * self._weights @ missing**2)
        in_q = in_q - (self._weights * missing) @ jacobian
        return value, np.concatenate([in_x, self._columns(in_q, unknowns)])

    def _scales(self, given: Array, unknowns: Array) -> Array:
        """Of each unknown, the change by which the loss grows by a half: angles, metres and latent points compare."""
        in_x, curved, first = [], np.full(self.problem.space.freedoms, 1.0), 0
        for weight, style, chart in self._parts:
            own, stiff = style.stiffness(unknowns[first : first + style.dimensions])
            if chart is None:
                curved[ROOT_FREEDOMS:] += stiff
            in_x.append(weight * own)
            first += len(own)
        curved += self._weights @ self.problem.errors(given)[1] ** 2
        return 1.0 / np.sqrt(np.concatenate([*in_x, curved[self._first :]]))

    def _constraints(self, given: Array, scales: Array) -> list[dict[str, Any]]:
        """The hard rows in SLSQP's form: equalities are zero, inequalities not negative."""

        def of(rows: Array) -> dict[str, Any]:
            def values(unknowns: Array) -> Array:
                return -self.problem.errors(self._pose(given, scales * unknowns))[0][rows]

            def slopes(unknowns: Array) -> Array:
                jacobian = self.problem.errors(self._pose(given, scales * unknowns))[1][rows]
                none = np.zeros((len(jacobian), len(unknowns) - self._freedoms))
                return np.hstack([none, self._columns(jacobian, scales * unknowns)]) * scales

            return {"fun": values, "jac": slopes}

        kinds = {"eq": ~self._soft & ~self._one_sided, "ineq": ~self._soft & self._one_sided}
        return [{"type": kind, **of(rows)} for kind, rows in kinds.items() if rows.any()]

    def _violations(self, errors: Float[Array, "rows"]) -> Float[Array, "rows"]:
        return np.where(self._one_sided, np.maximum(errors, 0.0), errors)

    def _pose(self, given: Array, unknowns: Array) -> Array:
        """The pose of the unknowns: a free root moves from the given one by a shift and a rotation vector."""
        q = given
        if self._first == 0:
            step = np.zeros(self.problem.space.freedoms)
            step[:ROOT_FREEDOMS] = unknowns[-self._freedoms :][:ROOT_FREEDOMS]
            q = self.problem.space.integrate(given, step)
        return np.concatenate([q[:ROOT_SIZE], unknowns[len(unknowns) - len(given) + ROOT_SIZE :]])

    def _columns(
        self, slopes: Float[Array, "*rows freedoms"], unknowns: Array
    ) -> Float[Array, "*rows solved"]:
        """Gradients in the degrees of freedom as those in the unknowns: exp(r + d) = exp(r) exp(J d)."""
        if self._first == 0:
            slopes = slopes.copy()
            turn = unknowns[-self._freedoms :][_TURN]
            slopes[..., _TURN] = slopes[..., _TURN] @ rotations.right_jacobian(turn)
        return slopes[..., self._first :]
