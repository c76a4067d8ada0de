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
from poise.priors.forms import FREE_ROOT
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import JointLimits, Skeleton
from poise.types import Array

State = Any
Steps = tuple[int, ...]

LOOSE_JOINT = 100.0  # radians squared: variance of a joint without any information
_NO_STATE = np.empty(0)
ALL = -1  # as many steps as the solver's settings allow
STIFFEST = (
    2e3  # per radian squared: largest precision of a joint in a sequence (about a degree), against pops
)


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

    q: Float[Array, "size"]
    state: State


class Information(NamedTuple):
    """A Gaussian around a pose q: precision P and pull P (m - q). Parts of a blend are added."""

    pull: Float[Array, "freedoms"]
    precision: Float[Array, "freedoms freedoms"]


class Facing(NamedTuple):
    """Orientation targets of joints: world rotations, or points to look at along an axis of the joint."""

    turned: Int[Array, "turned"]
    turns: Float[Array, "turned 3 3"]
    looking: Int[Array, "looking"]
    axes: Float[Array, "looking 3"]
    at: Float[Array, "looking 3"]


class Asked(NamedTuple):
    """The inputs of a solve besides its targets."""

    before: Sequence[Float[Array, "size"]] = ()
    """Previous frames, newest first."""
    facing: Facing | None = None
    points: Float[Array, "handles 3"] | None = None
    """Targets of the handles in the frame of a given root."""


class Guide(ABC):
    """A prior prepared for one set of handles and a frame rate: the only part that a solve sees."""

    plan: Plan
    space: PoseSpace
    together: float = -1.0  # distance below which the states of two starts count as the same
    solving: str = "map"  # the default method; guides of published methods have their own

    @property
    def predictor(self) -> Any:
        """The compiled predictor of poses (see `predicting`), if there is one."""
        return None

    def blank(self) -> State:
        """Allocate a prediction of the predictor."""
        raise InvalidValueError("this model has no predictor")

    def ask(self, asked: Asked) -> None:  # noqa: B027  # most guides use the targets alone
        """Receive the inputs of the next solve; each guide uses those it supports."""

    @abstractmethod
    def starts(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], *, free_root: bool
    ) -> list[Start]:
        """Poses to start from for these targets, the most promising first; their root is q's or placed again."""

    def modes(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], *, free_root: bool
    ) -> list[tuple[float, Start]]:
        """Starts for poses of different kinds, each with the kind's probability; empty if there is only one kind."""
        del q, targets, free_root
        return []

    @abstractmethod
    def resumed(self, q: Float[Array, "size"], targets: Float[Array, "handles 3"]) -> State:
        """The state for a pose from any source."""

    @abstractmethod
    def forms(self, q: Float[Array, "size"], state: State, steps: Steps) -> tuple[tuple[Any, ...], Steps]:
        """The stages in the form of the compiled loop (see `forms`), and the steps of each."""

    def moving(self, state: State) -> tuple[State, Float[Array, "state"]]:
        """A copy of the state, and its part that the compiled loop moves in place."""
        return state, _NO_STATE

    def onward(self, q: Float[Array, "size"], state: State) -> Float[Array, "size"]:
        """The start pose of the next tracked solve, given the last pose and its state."""
        del state
        return q

    def follow(self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], state: State) -> State:
        """The state after a round has moved the pose; the same object if another round would change nothing."""
        del q, targets
        return state

    def alternative(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], state: State
    ) -> Start | None:
        """Another start for a tracked frame, if the handles fit one far from its state."""
        del q, targets, state
        return None

    def loss(self, q: Float[Array, "size"], state: State) -> float:
        """The negative log density of a pose, up to a constant, by which several solutions are ranked."""
        del q, state
        return 0.0

    def latents(self, state: State) -> tuple[Float[Array, "latent"], ...]:
        """The latent points of a state, one per style that takes part."""
        del state
        return ()

    def objective(
        self, q: Float[Array, "size"], x: Float[Array, "state"]
    ) -> tuple[float, Float[Array, "state"], Float[Array, "maps"]]:
        """The negative log density of a pose and a state, with its gradients, for general optimisers."""
        del q, x
        raise InvalidValueError("'lbfgs' and 'sqp' need a style; this model has no latent point")

    @abstractmethod
    def expectation(
        self, q: Float[Array, "size"], state: State
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """Mean and covariance of the exponential maps at a pose and its state."""

    # --- as a part of a blend, or a frame of a sequence -----------------------------------------------------------

    @abstractmethod
    def gaussian(self, q: Float[Array, "size"], state: State, *, stage: int = -1) -> Information:
        """The Gaussian around a pose over all degrees of freedom; zero precision where there is no information."""

    @abstractmethod
    def pulled(self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], state: State) -> State:
        """The state after the blend has moved the pose; called after `gaussian`."""

    @abstractmethod
    def misfit(self, q: Float[Array, "size"], state: State) -> float:
        """The negative log density of a pose, up to a constant."""

    def around(self, q: Float[Array, "size"], points: Float[Array, "handles 3"]) -> Information:
        """The Gaussian around a pose with its handles at these points, with precision limited to `STIFFEST`."""
        pull, precision = self.gaussian(q, self.resumed(q, points))
        maps = slice(ROOT_FREEDOMS, None)
        softer = np.linalg.inv(np.eye(len(q) - ROOT_SIZE) + precision[maps, maps] / STIFFEST)
        pull[maps], precision[maps, maps] = softer @ pull[maps], softer @ precision[maps, maps]
        return Information(pull, 0.5 * (precision + precision.T))

    def spread(
        self, q: Float[Array, "size"], state: State
    ) -> tuple[Float[Array, "freedoms"], Float[Array, "freedoms freedoms"]]:
        """The gap from a pose to the mean of the Gaussian around it, and its covariance (large without information)."""
        pull, precision = self.gaussian(q, state)
        precision[np.diag_indices_from(precision)] += np.where(
            np.arange(len(pull)) < ROOT_FREEDOMS, 1.0 / FREE_ROOT, 1.0 / LOOSE_JOINT
        )
        covariance = np.linalg.inv(precision)
        return covariance @ pull, covariance

    def change(
        self, q: Float[Array, "size"], recorded: Float[Array, "handles 3"], targets: Float[Array, "handles 3"]
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
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
        ...

    @property
    def space(self) -> PoseSpace:
        """The pose space it was learned in."""
        ...

    @property
    def limits(self) -> JointLimits | None:
        """The joint limits it was learned with."""
        ...

    @property
    def mean(self) -> Float[Array, "maps"]:
        """The mean pose as exponential maps: the default start of a solve."""
        ...

    def on_body(self, skeleton: Skeleton) -> Prior:
        """The same poses on a skeleton of the same topology and other limb lengths."""
        ...

    def guide(self, handles: Handles, *, fps: float | None = None) -> Guide:
        """Return the guide for these handles, and for frames that follow each other at this rate."""
        ...

    def known_poses(self) -> tuple[Float[Array, "poses maps"], Float[Array, "poses 3"]]:
        """Poses to start from without position targets, and the up direction of each in its root's frame."""
        ...

    def log_likelihood(self, q: Float[Array, "size"]) -> float:
        """The log density of a pose (without its root)."""
        ...

    def percentile(self, q: Float[Array, "size"]) -> float:
        """The percentage of training poses that are less likely than this one (a style evaluates each as held out)."""
        ...
