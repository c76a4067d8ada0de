"""The interface of priors: a learned model of poses, which for any set of handles provides a guide for the solver.

Prepared for a set of handles and a frame rate, a prior becomes a `Guide`, the only part that solvers see: starts, a
Gaussian around a pose over all degrees of freedom, and the update of its state. A state is what a guide keeps besides
a pose: a latent point, a prediction, or those of several parts. Solvers only pass it back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int

from poise.errors import InvalidValueError
from poise.priors.forms import FREE_ROOT, fixed
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import JointLimits, Skeleton
from poise.types import Array, MapsGaussian, Points, PoseVector

State = Any
Steps = tuple[int, ...]

LOOSE_JOINT = 100.0  # radians squared: variance of a joint without any information
_ROOT = np.arange(ROOT_FREEDOMS)
ALL = -1  # as many steps as the solver's settings allow
STIFFEST = 2e3  # per radian squared: largest precision of a joint in a sequence (about a degree)


@dataclass(frozen=True)
class Plan:
    """The stages of a solve: rounds, each with the number of steps it may take in every stage.

    A cold solve goes through `smooth` from every start, and through `finer` from those that remain distinct; a tracked
    one through `tracked` from the state of the previous frame. Without `tracked`, all solves are cold.
    """

    finer: tuple[Steps, ...]
    smooth: tuple[Steps, ...] = ()
    tracked: tuple[Steps, ...] = ()
    dragged: tuple[Steps, ...] = ()


class Start(NamedTuple):
    """An initial guess of a solve."""

    q: PoseVector
    state: State


class Gaussian(NamedTuple):
    """A Gaussian around a pose q over all degrees of freedom: the gap m - q to its mean m, and its covariance.

    Where nothing is known the covariance is large: `FREE_ROOT` of the root's degrees of freedom unless it is `rooted`.
    """

    gap: Float[Array, "freedoms"]
    covariance: Float[Array, "freedoms freedoms"]
    rooted: bool = False

    def information(self) -> Information:
        """The same as precision and pull, which are zero where nothing is known."""
        precision = np.linalg.inv(self.covariance)
        precision = 0.5 * (precision + precision.T)
        if not self.rooted:
            precision[_ROOT, _ROOT] -= 1.0 / FREE_ROOT
        return Information(precision @ self.gap, precision)


class Information(NamedTuple):
    """A Gaussian around a pose q as precision P and pull P (m - q), which add where Gaussians are multiplied."""

    pull: Float[Array, "freedoms"]
    precision: Float[Array, "freedoms freedoms"]

    def gaussian(self) -> Gaussian:
        """The same as gap and covariance, which is large where nothing is known."""
        precision, known = self.precision.copy(), np.diag(self.precision) > 0.0
        precision[~known, ~known] += 1.0 / LOOSE_JOINT
        precision[_ROOT, _ROOT] += 1.0 / FREE_ROOT
        covariance = np.linalg.inv(precision)
        return Gaussian(covariance @ self.pull, 0.5 * (covariance + covariance.T))


class Facing(NamedTuple):
    """Orientation targets of joints: world rotations, or points to look at along an axis of the joint."""

    turned: Int[Array, "turned"]
    turns: Float[Array, "turned 3 3"]
    looking: Int[Array, "looking"]
    axes: Float[Array, "looking 3"]
    at: Float[Array, "looking 3"]


class Asked(NamedTuple):
    """The inputs of a solve besides its targets."""

    before: Sequence[PoseVector] = ()
    """Previous frames, newest first."""
    facing: Facing | None = None
    points: Points | None = None
    """Targets of the handles in the frame of a given root."""
    free_root: bool = False


class Guide(ABC):
    """A prior prepared for one set of handles and a frame rate: the only part that a solve sees.

    Its state at a pose is whatever it needs besides the pose: a prediction, a latent point, those of its parts. A guide
    says where to start, what state belongs to a pose, and one Gaussian around a pose in a state. All else is optional.
    """

    plan: Plan = Plan(finer=((ALL,),))
    space: PoseSpace
    together: float = -1.0  # distance below which the states of two starts count as the same
    faces: bool = False  # whether it uses orientation targets (`Asked.facing`)

    @abstractmethod
    def starts(self, q: PoseVector, targets: Points, *, free_root: bool) -> list[Start]:
        """Poses to start from for these targets, the most promising first; their root is q's or placed again."""

    @abstractmethod
    def resumed(self, q: PoseVector, targets: Points) -> State:
        """The state for a pose from any source."""

    @abstractmethod
    def gaussian(self, q: PoseVector, state: State, *, stage: int = -1) -> Gaussian:
        """The Gaussian around a pose in a state, at a stage of the plan (the last one is the finest)."""

    # --- what most guides can leave as it is -----------------------------------------------------------------------

    def method(self, root: str) -> str:
        """The method that solves its problems by default; guides of published methods have their own."""
        del root
        return "map"

    def ask(self, asked: Asked) -> None:  # noqa: B027  # most guides use the targets alone
        """Receive the inputs of the next solve; each guide uses those it supports."""

    def moved(self, q: PoseVector, targets: Points, state: State) -> State:
        """The state after a round has moved the pose; the same object if another round would change nothing."""
        del q, targets
        return state

    def score(self, q: PoseVector, state: State) -> float:
        """The negative log density of a pose up to a constant, by which several solutions are ranked."""
        gap, covariance, _ = self.gaussian(q, state)
        return float(0.5 * gap @ np.linalg.solve(covariance, gap))

    def misfit(self, q: PoseVector, state: State) -> float:
        """The score of a part of a blend, whose poses may be unlike those of every part."""
        return self.score(q, state)

    def modes(self, q: PoseVector, targets: Points, *, free_root: bool) -> list[tuple[float, Start]]:
        """Starts for poses of different kinds, each with the kind's probability; empty if there is only one kind."""
        del q, targets, free_root
        return []

    def onward(self, q: PoseVector, state: State) -> PoseVector:
        """The start pose of the next tracked solve, given the last pose and its state."""
        del state
        return q

    def alternative(self, q: PoseVector, targets: Points, state: State) -> Start | None:
        """Another start for a tracked frame, if the handles fit one far from its state."""
        del q, targets, state
        return None

    def latents(self, state: State) -> tuple[Float[Array, "latent"], ...]:
        """The latent points of a state, one per style that takes part."""
        del state
        return ()

    def objective(
        self, q: PoseVector, x: Float[Array, "state"]
    ) -> tuple[float, Float[Array, "state"], Float[Array, "maps"]]:
        """The negative log density of a pose and a state, with its gradients, for general optimisers."""
        del q, x
        raise InvalidValueError("'lbfgs' and 'sqp' need a style; this model has no latent point")

    # --- the compiled form, for speed ------------------------------------------------------------------------------

    @property
    def predictor(self) -> Any:
        """The compiled predictor of poses (see `predicting`), if there is one."""
        return None

    def forms(self, q: PoseVector, state: State, steps: Steps) -> tuple[tuple[Any, ...], Steps]:
        """The stages in the form of the compiled loop (see `forms`), and the steps of each."""
        stage = int(np.flatnonzero(steps)[-1])
        gap, covariance, rooted = self.gaussian(q, state, stage=stage)
        expected = self.space.integrate(q, gap)
        root = expected[:ROOT_SIZE] if rooted else None
        return fixed(expected[ROOT_SIZE:], covariance, root=root), (steps[stage],)

    def moving(self, state: State) -> tuple[State, Float[Array, "state"]]:
        """A copy of the state, and its part that the compiled loop moves in place, instead of `moved`."""
        return state, np.empty(0)

    # --- what follows from the Gaussian ----------------------------------------------------------------------------

    def expectation(self, q: PoseVector, state: State) -> MapsGaussian:
        """Mean and covariance of the maps, of the Gaussian around its own mean in this state."""
        maps = slice(ROOT_FREEDOMS, None)
        for _ in range(2):
            gap, covariance, _ = self.gaussian(q, state)
            q = np.concatenate([q[:ROOT_SIZE], q[ROOT_SIZE:] + gap[maps]])
        return q[ROOT_SIZE:], covariance[maps, maps]

    def around(self, q: PoseVector, points: Points) -> Information:
        """The Gaussian around a pose with its handles at these points, with precision limited to `STIFFEST`."""
        pull, precision = self.gaussian(q, self.resumed(q, points)).information()
        maps = slice(ROOT_FREEDOMS, None)
        softer = np.linalg.inv(np.eye(len(q) - ROOT_SIZE) + precision[maps, maps] / STIFFEST)
        pull[maps], precision[maps, maps] = softer @ pull[maps], softer @ precision[maps, maps]
        return Information(pull, 0.5 * (precision + precision.T))

    def change(self, q: PoseVector, recorded: Points, targets: Points) -> MapsGaussian:
        """Mean and covariance of the maps of a recorded pose whose handles move from their positions to targets."""
        before, _ = self.expectation(q, self.resumed(q, recorded))
        after, covariance = self.expectation(q, self.resumed(q, targets))
        return q[ROOT_SIZE:] + after - before, covariance


@runtime_checkable
class Prior(Protocol):
    """A learned model of poses of one skeleton."""

    @property
    def kind(self) -> str:
        """The name under which it is registered."""

    @property
    def space(self) -> PoseSpace:
        """The pose space it was learned in."""

    @property
    def limits(self) -> JointLimits | None:
        """The joint limits it was learned with."""

    @property
    def mean(self) -> Float[Array, "maps"]:
        """The mean pose as exponential maps: the default start of a solve."""

    def on_body(self, skeleton: Skeleton) -> Prior:
        """The same poses on a skeleton of the same topology and other limb lengths."""

    def guide(self, handles: Handles, *, fps: float | None = None) -> Guide:
        """Return the guide for these handles, and for frames that follow each other at this rate."""

    def known_poses(self) -> tuple[Float[Array, "poses maps"], Float[Array, "poses 3"]]:
        """Poses to start from without position targets, and the up direction of each in its root's frame."""

    def log_likelihood(self, q: PoseVector) -> float:
        """The log density of a pose (without its root)."""

    def percentile(self, q: PoseVector) -> float:
        """The percentage of training poses that are less likely than this one (a style evaluates each as held out)."""
