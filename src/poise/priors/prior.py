"""What every prior offers: a learned model of poses, and for any handles a guide that a solve goes by.

A prior knows poses. Made ready for a set of handles and a frame rate it becomes a `Guide`, which is all that solvers
know of it: where to start, its Gaussian around a pose over all freedoms, and how its state follows the pose. A state is
what a guide keeps beside a pose: a latent point, a prediction, those of several parts; solvers only hand it back.
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

LOOSE_JOINT = 100.0  # radians squared: a joint without any evidence may be anywhere within its turn
_NO_STATE = np.empty(0)
ALL = -1  # as many steps as the solver's settings allow
STIFFEST = (
    2e3  # per radian squared: no frame of a sequence is surer of a joint than about a degree, or it could pop
)


@dataclass(frozen=True)
class Plan:
    """How a solve goes through a guide's stages: rounds, each with the steps it may take in every stage.

    A cold solve goes through `smooth` from every start, and through `finer` from those that are still apart; a tracked
    one through `tracked` from the state of the frame before. Without `tracked`, all solves are cold.
    """

    finer: tuple[Steps, ...]
    smooth: tuple[Steps, ...] = ()
    tracked: tuple[Steps, ...] = ()
    dragged: tuple[Steps, ...] = ()


class Start(NamedTuple):
    """Where a solve may start."""

    q: Float[Array, "size"]
    state: State


class Information(NamedTuple):
    """A Gaussian around a pose q over all freedoms: the precision P and the pull P (m - q). Parts of a blend add up."""

    pull: Float[Array, "freedoms"]
    precision: Float[Array, "freedoms freedoms"]


class Facing(NamedTuple):
    """How joints are asked to be turned: rotations in the world, or points to look at along an axis of their own."""

    turned: Int[Array, "turned"]
    turns: Float[Array, "turned 3 3"]
    looking: Int[Array, "looking"]
    axes: Float[Array, "looking 3"]
    at: Float[Array, "looking 3"]


class Asked(NamedTuple):
    """What a solve is asked beside its targets."""

    before: Sequence[Float[Array, "size"]] = ()
    """The frames before, the newest first."""
    facing: Facing | None = None
    points: Float[Array, "handles 3"] | None = None
    """Where the handles are to be, in the frame of a root that is given."""


class Guide(ABC):
    """A prior made ready for one set of handles and a frame rate: all that a solve knows of it."""

    plan: Plan
    space: PoseSpace
    together: float = (
        -1.0
    )  # how close the states of two starts, as the compiled loop moves them, are the same
    solving: str = (
        "map"  # how it is solved unless another way is asked for; methods as published have their own
    )

    @property
    def predictor(self) -> Any:
        """What predicts poses in compiled code (see `predicting`), if anything does."""
        return None

    def blank(self) -> State:
        """Room for a prediction of the predictor."""
        raise InvalidValueError("this model has no predictor")

    def ask(self, asked: Asked) -> None:  # noqa: B027  # most guides go by the targets alone
        """Take in what the next solve is asked; each guide goes by what it understands."""

    @abstractmethod
    def starts(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], *, free_root: bool
    ) -> list[Start]:
        """Poses to start from for handles at these targets, the most promising first; their root is q's or placed."""

    def modes(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], *, free_root: bool
    ) -> list[tuple[float, Start]]:
        """Starts for poses of different kinds, each with how likely handles make its kind; empty: it knows one kind."""
        del q, targets, free_root
        return []

    @abstractmethod
    def resumed(self, q: Float[Array, "size"], targets: Float[Array, "handles 3"]) -> State:
        """The state that goes with a pose, wherever it came from."""

    @abstractmethod
    def forms(self, q: Float[Array, "size"], state: State, steps: Steps) -> tuple[tuple[Any, ...], Steps]:
        """The stages as the compiled loop takes them (see `forms`), and the steps of each."""

    def moving(self, state: State) -> tuple[State, Float[Array, "state"]]:
        """A state to go on with, and the part of it that the compiled loop moves, in place."""
        return state, _NO_STATE

    def onward(self, q: Float[Array, "size"], state: State) -> Float[Array, "size"]:
        """The pose from which the next tracked solve starts, given the last pose and its state."""
        del state
        return q

    def follow(self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], state: State) -> State:
        """The state after a round has led to a pose; the same object where another round would change nothing."""
        del q, targets
        return state

    def alternative(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], state: State
    ) -> Start | None:
        """Another start for a tracked frame, where the handles suit one far from its state."""
        del q, targets, state
        return None

    def loss(self, q: Float[Array, "size"], state: State) -> float:
        """The negative log density of a pose, up to a constant: what ranks several that a solve has found."""
        del q, state
        return 0.0

    def latents(self, state: State) -> tuple[Float[Array, "latent"], ...]:
        """Where a state lies in the latent space of every style that takes part."""
        del state
        return ()

    def objective(
        self, q: Float[Array, "size"], x: Float[Array, "state"]
    ) -> tuple[float, Float[Array, "state"], Float[Array, "maps"]]:
        """The negative log density of a pose and a state, with its gradients: what general optimisers minimise."""
        del q, x
        raise InvalidValueError(
            "this model has no objective over a latent point; 'lbfgs' and 'sqp' need a style"
        )

    @abstractmethod
    def expectation(
        self, q: Float[Array, "size"], state: State
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """Mean and covariance of the exponential maps at a pose and its state."""

    # --- as a part of a blend, or a frame of a sequence -----------------------------------------------------------

    @abstractmethod
    def gaussian(self, q: Float[Array, "size"], state: State, *, stage: int = -1) -> Information:
        """The Gaussian around a pose over all freedoms; zero precision where it has no opinion."""

    @abstractmethod
    def pulled(self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], state: State) -> State:
        """The state after the blend has moved the pose; `gaussian` was asked before."""

    @abstractmethod
    def misfit(self, q: Float[Array, "size"], state: State) -> float:
        """How unlikely a pose is, as a negative log density up to a constant."""

    def around(self, q: Float[Array, "size"], points: Float[Array, "handles 3"]) -> Information:
        """The Gaussian around a pose whose handles are at these points, nowhere stiffer than `STIFFEST`."""
        pull, precision = self.gaussian(q, self.resumed(q, points))
        maps = slice(ROOT_FREEDOMS, None)
        softer = np.linalg.inv(np.eye(len(q) - ROOT_SIZE) + precision[maps, maps] / STIFFEST)
        pull[maps], precision[maps, maps] = softer @ pull[maps], softer @ precision[maps, maps]
        return Information(pull, 0.5 * (precision + precision.T))

    def spread(
        self, q: Float[Array, "size"], state: State
    ) -> tuple[Float[Array, "freedoms"], Float[Array, "freedoms freedoms"]]:
        """From a pose to the mean of the Gaussian around it, and its covariance; what has no opinion is loose."""
        pull, precision = self.gaussian(q, state)
        precision[np.diag_indices_from(precision)] += np.where(
            np.arange(len(pull)) < ROOT_FREEDOMS, 1.0 / FREE_ROOT, 1.0 / LOOSE_JOINT
        )
        covariance = np.linalg.inv(precision)
        return covariance @ pull, covariance

    def change(
        self, q: Float[Array, "size"], recorded: Float[Array, "handles 3"], targets: Float[Array, "handles 3"]
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """Mean and covariance of the maps of a recorded pose whose handles move from where they were to targets."""
        before, _ = self.expectation(q, self.resumed(q, recorded))
        after, covariance = self.expectation(q, self.resumed(q, targets))
        return q[ROOT_SIZE:] + after - before, covariance


@runtime_checkable
class Prior(Protocol):
    """A learned model of poses of one skeleton."""

    @property
    def kind(self) -> str:
        """The name it is registered by."""
        ...

    @property
    def space(self) -> PoseSpace:
        """The coordinates it was learned in."""
        ...

    @property
    def limits(self) -> JointLimits | None:
        """The joint limits it was learned with."""
        ...

    @property
    def mean(self) -> Float[Array, "maps"]:
        """The pose it knows best, as exponential maps: where a solve starts when nothing else is known."""
        ...

    def on_body(self, skeleton: Skeleton) -> Prior:
        """The same poses on a skeleton of the same topology and other limb lengths."""
        ...

    def guide(self, handles: Handles, *, fps: float | None = None) -> Guide:
        """Made ready for these handles, and for frames that follow each other at this rate."""
        ...

    def known_poses(self) -> tuple[Float[Array, "poses maps"], Float[Array, "poses 3"]]:
        """Poses to start from where there are no positions to go by, and how each leans (up in its root's frame)."""
        ...

    def log_likelihood(self, q: Float[Array, "size"]) -> float:
        """The log density of a pose (its root left out)."""
        ...

    def percentile(self, q: Float[Array, "size"]) -> float:
        """The share of training poses, in percent, that are less likely than this one (a style judges each unseen)."""
        ...
