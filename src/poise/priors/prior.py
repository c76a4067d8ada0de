"""What every prior offers: a learned model of poses that scores a pose and gives the solver its local shape."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import JointLimits, Skeleton

Array = np.ndarray


@runtime_checkable
class Prediction(Protocol):
    """A prior made ready for one set of handles; cheap to ask at every frame."""

    def __call__(
        self, targets: Float[Array, "handles 3"]
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """Mean and covariance of the exponential maps, given where the handles should be in the root's frame."""
        ...

    def place_root(self, targets: Float[Array, "handles 3"]) -> tuple[Float[Array, "3"], Float[Array, "4"]]:
        """A root position and orientation from which the prior's poses come closest to targets in the world."""
        ...


@runtime_checkable
class Prior(Protocol):
    """A learned model of poses of one skeleton."""

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

    def prepare(self, handles: Handles) -> Prediction:
        """Ready to predict poses from the positions of these handles."""
        ...

    def log_likelihood(self, q: Float[Array, "size"]) -> float:
        """The log density of a pose (its root left out)."""
        ...

    def percentile(self, q: Float[Array, "size"]) -> float:
        """The share of training poses, in percent, that are less likely than this one (a style judges each unseen)."""
        ...
