"""The base of a prior that learns arrays from poses; everything else of a prior follows from what it declares."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
from jaxtyping import Float

from poise.motion.motion import Motion
from poise.priors.poses import common_frames, limits_of, motion_hash, upright
from poise.priors.predicting import MeanPoseGuide
from poise.priors.prior import Guide
from poise.priors.registry import PriorOptions, Stored
from poise.savable import Savable
from poise.schema import CLIPS, QUANTILES, Indices, Numbers, Schema
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import JointLimits, Skeleton
from poise.types import Array, MapsGaussian, Points, PoseVector, ShareProgress

Own = TypeVar("Own", bound="LearnedPrior")

SAMPLED = 2000  # training poses whose log densities give the percentiles, at most


class LearnedPrior(Savable, ABC):
    """A prior with `kind`, `about` and the arrays in `stored`, which `fit` sets as attributes; `mean` is one of them.

    A subclass says how it fits, predicts and scores exponential maps, the coordinates of a pose without its root.
    """

    kind: ClassVar[str]
    about: ClassVar[str]
    stored: ClassVar[Mapping[str, Numbers | Indices]]
    Options: type[PriorOptions] = PriorOptions
    schema: ClassVar[Schema]
    mean: Float[Array, "maps"]

    def __init_subclass__(cls) -> None:
        if "stored" in vars(cls):
            declared = {**cls.stored, "quantiles": QUANTILES}
            cls.schema = Schema({"clips": CLIPS}, lambda _header, _lengths: declared)

    def __init__(self, space: PoseSpace, limits: JointLimits | None = None) -> None:
        self.space, self.limits = space, limits
        self.quantiles, self.clips = np.zeros(101), tuple[tuple[str, str], ...]()

    @abstractmethod
    def fit(self, maps: Float[Array, "poses maps"], **options: Any) -> None:
        """Learn from training poses, and set the stored arrays."""

    @abstractmethod
    def predict(self, handles: Handles, targets: Points) -> MapsGaussian:
        """Mean and covariance of a pose whose handles are at these targets in the root's frame."""

    @abstractmethod
    def density(self, maps: Float[Array, "maps"]) -> float:
        """The log density of a pose, up to a constant."""

    @classmethod
    def learn(
        cls: type[Own],
        motions: Sequence[Motion],
        *,
        progress: ShareProgress = lambda _: None,
        **options: Any,
    ) -> Own:
        """Learn from clips of one topology."""
        skeleton, quaternions = common_frames(motions)
        space = PoseSpace.of_rotations(skeleton, quaternions)
        maps = space.q_from_frames(np.zeros((len(quaternions), 3)), quaternions)[:, ROOT_SIZE:]
        prior = cls(space, limits_of(space, maps))
        prior.fit(maps, **options)
        sample = maps[:: -(-len(maps) // SAMPLED)]
        prior.quantiles = np.percentile([prior.density(pose) for pose in sample], np.arange(101))
        prior.clips = tuple((motion.name, motion_hash(motion)) for motion in motions)
        progress(1.0)
        return prior

    def on_body(self: Own, skeleton: Skeleton) -> Own:
        """The same poses on a skeleton of the same topology and other limb lengths."""
        other = copy.copy(self)
        other.space = self.space.on_body(skeleton)
        return other

    def guide(self, handles: Handles, *, fps: float | None = None) -> Guide:
        """The guide of its predictions."""
        del fps
        return _LearnedGuide(self, handles)

    def known_poses(self) -> tuple[Float[Array, "poses maps"], Float[Array, "poses 3"]]:
        """The mean pose, upright."""
        return upright(self.mean[None])

    def log_likelihood(self, q: PoseVector) -> float:
        """The log density of a pose."""
        return self.density(self.space.checked(q)[ROOT_SIZE:])

    def percentile(self, q: PoseVector) -> float:
        """The percentage of training poses that are less likely than this one."""
        return float(np.interp(self.log_likelihood(q), self.quantiles, np.arange(101)))

    @property
    def summary(self) -> str:
        """A short description of the learned model."""
        return f"{self.about}, of {len(self.clips)} clips"

    def arrays(self) -> dict[str, Array]:
        """The stored arrays, by name."""
        return {**{name: getattr(self, name) for name in self.stored}, "quantiles": self.quantiles}

    def header(self) -> dict[str, Any]:
        """The clips it was learned from."""
        return {"clips": self.clips}

    @classmethod
    def restored(cls: type[Own], stored: Stored) -> Own:
        """Create the prior from the contents of a file."""
        prior = cls(stored.space, stored.limits)
        for name, array in stored.arrays.items():
            setattr(prior, name, array)
        prior.clips = tuple(map(tuple, stored.header["clips"]))
        return prior


class _LearnedGuide(MeanPoseGuide):
    """The predictions of a learned prior."""

    def __init__(self, prior: LearnedPrior, handles: Handles) -> None:
        super().__init__(prior, handles)
        self._prior = prior

    def __call__(self, targets: Points) -> MapsGaussian:
        """Mean and covariance of the pose."""
        return self._prior.predict(self.handles, targets)
