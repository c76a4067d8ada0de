"""Multi-variate Gaussian IK as published (Huang et al. 2017): learn with `--kind gaussian --method huang2017`.

Poses are clustered by their angles, every cluster has its own covariance plus beta I (section 4.2), one Laplacian
kernel over all targets weights means and covariances alike (Eqs. 8 and 9), and poses are solved by Eq. 17 with the
schedule of section 4.5 (`PublishedRun`): every step minimises |J d - e|^2 + lambda_1 |d|^2 + lambda_2 / 2 (q + d - m)'
S^-1 (q + d - m), within the joint limits (section 4.6). lambda_2 = |e| lambda_0: the prior fades as the targets get
closer. Our own solver sets lambda_2 to 0 at once and finishes exactly; decision 0008 says why.

Eq. 9's weights may be negative, and its sum is then not a covariance; eigenvalues below beta are raised to beta. The
paper does not say how delta was chosen: here it is the candidate that predicts held-out clusters best. Its lambdas
were set by hand; ours were set on walks of CMU 16, so that all targets are reached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.geometry.alignment import closest_root
from poise.gp.covariance import LAPLACIAN
from poise.gp.regression import REACHES, Groups, weighed_squares
from poise.priors.clusters import BETA
from poise.priors.poses import handle_positions
from poise.priors.predicting import PredictingGuide
from poise.priors.prior import Guide, State
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import Handles
from poise.solvers import core, dual_step
from poise.solvers.problem import Problem
from poise.types import Array

if TYPE_CHECKING:
    from poise.priors.gaussian import GaussianPrior


NAME = "huang2017"
STEPS = 200
LONGEST = 0.4  # radians or metres: longer steps are shortened, since J is linearised at the start


class PublishedGuide(PredictingGuide):
    """Eq. 9 for one set of handles."""

    def __init__(self, prior: GaussianPrior, handles: Handles) -> None:
        super().__init__(prior.space, handles)
        self.balance = prior.balance
        self._means, self._covariances = prior.means, prior.covariances
        self._points = np.ascontiguousarray(handle_positions(prior.space, prior.means, handles))
        self._inputs = self._points.reshape(len(prior.means), -1)
        self._constant = prior.mean, prior.covariances.mean(axis=0) + np.cov(prior.means.T, bias=True)
        if len(handles):
            self.delta = self._best_delta(prior)
            self._inverse = np.linalg.inv(self._kernel(self._inputs, self._inputs))

    def method(self, root: str) -> str:
        """Its own."""
        del root
        return NAME

    def weights(self, targets: Float[Array, "handles 3"]) -> Float[Array, "clusters"]:
        """k' K^-1 of Eq. 9; elements may be negative."""
        return np.asarray(self._kernel(targets.reshape(1, -1), self._inputs)[0] @ self._inverse)

    def covariance(self, targets: Float[Array, "handles 3"]) -> Float[Array, "maps maps"]:
        """Sigma* of Eq. 9 unchanged; it need not be positive definite."""
        return np.einsum("k,kij->ij", self.weights(targets), self._covariances)

    def __call__(
        self, targets: Float[Array, "handles 3"]
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """Mean and covariance of Eq. 9, with eigenvalues of at least beta."""
        if targets.size == 0:
            return self._constant
        values, vectors = np.linalg.eigh(self.covariance(targets))
        return self.weights(targets) @ self._means, (vectors * np.maximum(values, BETA)) @ vectors.T

    def place_root(self, targets: Float[Array, "handles 3"]) -> tuple[Float[Array, "3"], Float[Array, "4"]]:
        """The root of the cluster whose handles fit best in a rigid alignment."""
        root = np.empty(ROOT_SIZE)
        closest_root(self._points, np.ascontiguousarray(targets), root, False)
        return root[:3], root[3:]

    def _kernel(self, x: Float[Array, "n columns"], y: Float[Array, "m columns"]) -> Float[Array, "n m"]:
        """Eq. 8."""
        return np.exp(-np.linalg.norm(x[:, None] - y[None], axis=-1) / self.delta)

    def _best_delta(self, prior: GaussianPrior) -> float:
        unit, columns = np.zeros(self._inputs.shape[1], dtype=np.int64), [np.arange(prior.means.shape[1])]
        distances = np.sqrt(weighed_squares(self._inputs, np.ones(len(unit))))
        typical = float(np.median(distances[distances > 0])) if np.any(distances > 0) else 1.0
        apart = prior.blocks if np.any(prior.blocks != prior.blocks[0]) else np.arange(len(prior.blocks))

        def error(delta: float) -> float:
            groups = Groups.of(LAPLACIAN, unit, columns, weights=np.full((1, 1), delta**-2), noise=1e-6)
            return float(np.sum(groups.held_out(self._inputs, prior.means, apart) ** 2))

        return min((reach * typical for reach in REACHES), key=error)


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
            errors, jacobian = self.problem.errors(q)
            met = self._one_sided & (errors <= 0.0)  # an inequality that holds lacks nothing
            errors, jacobian = np.where(met, 0.0, errors), np.where(met[:, None], 0.0, jacobian)
            if np.abs(errors[self._hard]).max(initial=0.0) <= self.problem.settings.tolerance:
                return core.REACHED, step, self.problem.errors(q)[0]
            move = self._step(q, state.maps[0], errors, jacobian)
            q[:] = self.problem.pinned(self.problem.space.integrate(q, move))
            followed = self.guide.moved(q, self.problem.targets, state)
            state = state if followed is state else self._predicted(q)
        return core.OUT_OF_TIME, step + 1, self.problem.errors(q)[0]

    # --- private ---------------------------------------------------------------------------------------------------

    def _predicted(self, q: Array) -> State:
        state = self.guide.resumed(q, self.problem.targets)
        maps = slice(ROOT_FREEDOMS, None)
        self._precision[maps, maps] = np.linalg.inv(state.covariance[maps, maps])
        return state

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


def run(problem: Problem, guide_of: Callable[[str], Guide]) -> PublishedRun:
    """The published iteration for a problem."""
    return PublishedRun(guide_of("a learned prior"), problem)
