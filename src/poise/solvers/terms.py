"""The terms of sequences that need constraints or priors of poses: hard and soft rows, Gaussians asked frame by frame.

The base class and the terms that need neither are in `priors.terms`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
from jaxtyping import Float

from poise.compiled import compiled
from poise.priors.blend import Chart, weighed
from poise.priors.forms import FREE_ROOT
from poise.priors.prior import Information, Prior
from poise.priors.terms import System, Term, Unknowns, WindowGaussian
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.solvers import dual_step
from poise.solvers.constraints import ROWS, Kind
from poise.solvers.problem import Problem
from poise.solvers.rows import Body, evaluate
from poise.solvers.solution import STATUSES, Residual, Solution
from poise.types import Array

STIFF = (
    1e-3  # metres, radians: tolerance of hard constraints in the steps; stiffer ones allow short steps only
)
EXACT = 0.1  # of the tolerance of hard constraints: where their finish ends
AT_ONCE = 64  # frames whose rows are linearised together


class Constraints(Term):
    """The constraints of every frame: soft ones by their tolerance, hard ones stiff, and met exactly at the end."""

    def __init__(self, problems: Sequence[Problem], *, stiff: float = STIFF) -> None:
        self.problems, self._stiff = problems, stiff

    def cost(self, now: Unknowns) -> float:
        """Half the weighted squares of the errors."""
        return 0.5 * sum(
            float(errors**2 @ _weights(problem, errors, self._stiff))
            for problem, q in zip(self.problems, now.q, strict=True)
            for errors, _ in [problem.errors(q)]
        )

    def add(self, now: Unknowns, system: System) -> None:
        """Add the rows; freedoms that a frame has pinned or given are held."""
        own = slice(0, system.freedoms)
        for frame, problem in enumerate(self.problems):
            system.held[frame, own] |= ~problem.free
            if len(problem.rows):
                errors, jacobian = problem.errors(now.q[frame])
                weighed = jacobian.T * _weights(problem, errors, self._stiff)
                system.right[frame, own] += weighed @ errors
                system.bands[0][frame, own, own] += weighed @ jacobian

    def finish(
        self, q: Float[Array, "frames size"], metric: System, prior: Prior, steps: int
    ) -> list[Solution]:
        """Meet every frame's hard constraints exactly, in place, by the smallest change in a metric."""
        found = []
        for frame, problem in enumerate(self.problems):
            precision = metric.bands[0][frame, : metric.freedoms, : metric.freedoms]
            precision = precision + np.eye(len(precision)) / FREE_ROOT
            covariance = np.linalg.inv(precision) * np.outer(problem.free, problem.free)
            status, taken, _ = problem.finish(q[frame], covariance, share=EXACT)
            measure = partial(_left, problem, q[frame])
            found.append(
                Solution(q[frame], problem.space, measure, STATUSES[status], steps + taken, 0.0, prior)
            )
        return found


class Rows(Term):
    """Soft rows of the same kinds in every frame, each frame with parameters and variances of its own.

    A row with infinite variance is not used. Blocks farther off than `outlier` standard deviations count less and
    less (the loss of Geman and McClure): r^2 / (1 + r^2 / outlier^2) for a block's squared errors r^2.
    """

    def __init__(self, template: Problem, frames: int, *, outlier: float = np.inf) -> None:
        self._body, self._integers, self._outlier = template.body, template.integers, outlier
        self._counts = np.array([ROWS[Kind(kind)] for kind in self._integers[:, 0]])
        self.floats = np.repeat(template.floats[None], frames, axis=0)
        self.variances = np.full((frames, len(template.rows)), np.inf)

    def cost(self, now: Unknowns) -> float:
        """Half the squared errors over their variances."""
        return 0.5 * sum(cost for _, _, _, _, cost in self._linearised(now.q))

    def add(self, now: Unknowns, system: System) -> None:
        """Add the rows of all frames, with outliers weighted by their present errors."""
        own = slice(0, system.freedoms)
        for some, errors, jacobians, weights, _ in self._linearised(now.q):
            weighed = np.swapaxes(jacobians * weights[..., None], 1, 2)
            system.right[some, own] += (weighed @ errors[..., None])[..., 0]
            system.bands[0][some, own, own] += weighed @ jacobians

    def _linearised(
        self, q: Float[Array, "frames size"]
    ) -> Iterable[tuple[slice, Array, Array, Array, float]]:
        """Errors, Jacobians and weights of the rows, and twice their cost, for some frames at once."""
        for first in range(0, len(q), AT_ONCE):
            some = slice(first, first + AT_ONCE)
            variances = self.variances[some]
            errors = np.empty(variances.shape)
            jacobians = np.empty((*variances.shape, q.shape[1] - 1))
            _evaluate_all(
                np.ascontiguousarray(q[some]),
                self._body,
                self._integers,
                self.floats[some],
                errors,
                jacobians,
            )
            squares = np.add.reduceat(errors**2 / variances, self._integers[:, 3], axis=1)
            less = 1.0 / (1.0 + squares / self._outlier**2)
            weights = np.repeat(less**2, self._counts, axis=1) / variances
            yield some, errors, jacobians, weights, float((squares * less).sum())


class PosePriors(WindowGaussian):
    """The priors of every frame, by weight, as a Gaussian around its pose; asked again every few rounds."""

    def __init__(
        self,
        priors: Sequence[Prior],
        space: PoseSpace,
        handles: Sequence[Handles],
        weights: Sequence[Sequence[float]],
        *,
        every: int = 1,
    ) -> None:
        """`handles` are those with positions, by which a prior predicts, and `weights` those of priors, by frame.

        With `every` of 0, priors are asked by `ask` alone.
        """
        super().__init__(0, np.zeros((len(handles), space.size)), np.zeros(space.freedoms))
        made: dict[tuple[bytes, bytes], LocalGaussian] = {}
        self._asked = [
            made.setdefault((own.joints.tobytes(), own.offsets.tobytes()), LocalGaussian(priors, space, own))
            for own in handles
        ]
        self._weights, self._every = weights, every

    def update(self, now: Unknowns, number: int) -> bool:
        """Ask the priors around the present poses."""
        if self._every and number % self._every == 0:
            self.ask(now.q, range(len(now)))
        return False

    def ask(self, q: Float[Array, "frames size"], frames: Iterable[int]) -> None:
        """Ask the priors around the poses of some frames."""
        for frame in frames:
            self.mean[frame] = q[frame]
            self.pull[frame], self.precision[frame] = self._asked[frame](q[frame], self._weights[frame])


class LocalGaussian:
    """Several priors for one set of handles, by weight, as one Gaussian around poses of a common space."""

    def __init__(self, priors: Sequence[Prior], space: PoseSpace, handles: Handles) -> None:
        self._space, self._handles = space, handles
        self._parts = [(prior.guide(handles), Chart(prior.space, space)) for prior in priors]

    def __call__(self, q: Float[Array, "size"], weights: Sequence[float]) -> Information:
        """Pull and precision at a pose; zero without a prior of positive weight."""
        points, _ = self._space.handle_positions(q, self._handles)
        nothing = Information(np.zeros(len(q) - 1), np.eye(len(q) - 1) / FREE_ROOT)
        return weighed(
            [
                (1.0, nothing),
                *(
                    (weight, chart.seen(q, guide.around(chart.own(q), points)))
                    for (guide, chart), weight in zip(self._parts, weights, strict=True)
                    if weight > 0.0
                ),
            ]
        )


def _weights(problem: Problem, errors: Float[Array, "rows"], stiff: float) -> Float[Array, "rows"]:
    """One over the variance of each row; zero for inequalities that hold."""
    variance = problem.rows[:, dual_step.VARIANCE]
    hard = stiff**2 * problem.rows[:, dual_step.COMPLIANCE]
    weights = 1.0 / np.where(variance > 0.0, variance, hard)
    weights[(problem.rows[:, dual_step.INEQUALITY] == 1.0) & (errors <= 0.0)] = 0.0
    return np.asarray(weights)


def _left(problem: Problem, q: Float[Array, "size"]) -> tuple[Residual, ...]:
    return problem.residuals(problem.errors(q)[0])


@compiled
def _evaluate_all(
    q: Array, body: Body, integers: Array, floats: Array, errors: Array, jacobians: Array
) -> None:
    """The rows' errors and Jacobians of many frames."""
    for frame in range(len(q)):
        evaluate(q[frame], body, (integers, floats[frame]), errors[frame], jacobians[frame])
