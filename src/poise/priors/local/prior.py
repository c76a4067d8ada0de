"""The local prior: a library's examples, from which local regression predicts poses near any handles.

Its data are the examples themselves; models are built when it is prepared for a set of handles, on the current body.
For the solver it gives mean and covariance like every prior (after Chai and Hodgins 2005, section 5, whose subspaces
are too rigid for small libraries: see `regression`). The likelihood of a pose follows from the examples nearest to it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, UnknownNameError
from poise.formats.tables import Range
from poise.geometry import rotations
from poise.geometry.alignment import rigid_fits
from poise.library.poses import Poses
from poise.motion.motion import Motion
from poise.priors import registry
from poise.priors.clusters import influence
from poise.priors.local import regression
from poise.priors.local.control import Sensors
from poise.priors.local.control_guide import MarkerGuide, RegressedMarkers, SensorGuide
from poise.priors.local.examples import Examples
from poise.priors.local.regression import Data, Signal
from poise.priors.poses import (
    Prepared,
    common_frames,
    limbs_of,
    limits_of,
    motion_hash,
    moved_maps,
    prepared_for,
    upright,
)
from poise.priors.predicting import PredictingGuide
from poise.priors.registry import Stored
from poise.savable import Savable
from poise.schema import CLIPS, QUANTILES, Declared, Indices, Numbers, Schema, choice, flag, real
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import Handles
from poise.skeleton.skeleton import JointLimits, Skeleton, read_only
from poise.types import Array, ShareProgress

NEAREST = 60  # nearest examples that determine the likelihood of a pose
PREPARED = 8  # sets of handles whose predictions are cached
STARTS = 200  # largest number of examples that a solve without positions may start from
PLACES = 400  # examples tried when a root is placed
BETA = 1e-3  # radians squared, added to the covariance of the nearest examples
SAMPLED = 200  # examples whose log-likelihoods give the percentiles
OURS, PUBLISHED = "regression", "chai2005"


@dataclass(frozen=True)
class Units:
    """The units in which Eq. 9 weights markers (metres; chosen from the library if None) and angles (radians)."""

    markers: float | None = None
    angles: float = 1.0


@dataclass(frozen=True)
class LocalOptions(registry.PriorOptions):
    """The choice of local models."""

    method: Annotated[
        Literal["regression", "chai2005"] | None,
        "local regression, or local principal components as Chai and Hodgins 2005 published them",
    ] = None
    control_unit: Annotated[
        float | None,
        Range(above=0.0),
        "the metres that Eq. 9 of chai2005 counts markers in (default: chosen by the clips)",
    ] = None
    smoothness_unit: Annotated[
        float | None, Range(above=0.0), "the radians that Eq. 9 of chai2005 counts angles in (default 1)"
    ] = None


_PERFORMERS: Declared = {
    "bodies": Numbers(axes="bodies joints 3"), "whose": Indices(axes="examples", below="bodies"),
}  # fmt: skip


class LocalPrior(Savable):
    """Examples of poses, and local models of them for any handles."""

    kind = "local"
    about = (
        "the examples themselves; local models are made for the handles or markers at hand (poise perform)"
    )
    Options = LocalOptions
    schema = Schema(
        {"clips": CLIPS},
        lambda header, _lengths: {
            "poses": Numbers(axes="examples size"),
            "before": Numbers(axes="examples size"),
            "blocks": Indices(axes="examples"),
            "quantiles": QUANTILES,
            **(_PERFORMERS if header["performers"] else {}),
        },
        later={
            "performers": (flag, False),
            "method": (choice(OURS, PUBLISHED), OURS),
            "control_unit": (real(0.0, 1e6), 0.0),  # 0: chosen from the examples
            "smoothness_unit": (real(1e-6, 1e6), Units.angles),
        },
    )

    def __init__(self, examples: Examples, *, limits: JointLimits | None = None) -> None:
        if len(examples) < 2:
            raise InvalidValueError(f"a local model needs at least two examples; got {len(examples)}")
        self.examples, self.space = examples, examples.space
        self.limits: JointLimits | None = limits or limits_of(examples.space, examples.maps)
        self.quantiles = read_only(np.full(101, -np.inf))
        self.clips: tuple[tuple[str, str], ...] = ()
        self.method, self.units = OURS, Units()
        self._prepared: Prepared[PredictingGuide] = {}
        self._measure = influence(examples.space)

    @classmethod
    def learn(
        cls,
        motions: Sequence[Motion],
        *,
        method: str = OURS,
        control_unit: float | None = None,
        smoothness_unit: float = Units.angles,
        progress: Callable[[float], None] = lambda _: None,
    ) -> LocalPrior:
        """Learn from clips of one topology, on the body of the first; as published with `method="chai2005"`."""
        if method not in (OURS, PUBLISHED):
            raise UnknownNameError("method of local models", method, (OURS, PUBLISHED))
        common_frames(motions)
        prior = cls(Examples.of_motions(motions))
        prior.method, prior.units = method, Units(control_unit, smoothness_unit)
        prior.clips = tuple((motion.name, motion_hash(motion)) for motion in motions)
        prior._learn_quantiles(progress)
        return prior

    @classmethod
    def of_poses(cls, poses: Poses, performers: Sequence[Skeleton] = ()) -> LocalPrior:
        """Create it from the poses of a library, with the body of each clip's performer if known."""
        prior = cls(Examples.of_poses(poses, performers))
        prior.clips = tuple((name, "") for name in poses.names)
        prior._learn_quantiles(lambda _: None)
        return prior

    @classmethod
    def restored(cls, stored: Stored) -> LocalPrior:
        """Create the prior from the contents of `arrays` and `header`."""
        arrays, header = stored.arrays, stored.header
        examples = Examples.by_one(stored.space, arrays["poses"], arrays["before"], arrays["blocks"])
        if header["performers"]:
            if len(np.unique(arrays["whose"])) < len(arrays["bodies"]):
                raise InvalidValueError("every body must have an example")
            examples = replace(examples, whose=arrays["whose"], bodies=arrays["bodies"])
        prior = cls(examples, limits=stored.limits)
        prior.quantiles, prior.clips = read_only(arrays["quantiles"]), tuple(map(tuple, header["clips"]))
        prior.method = header["method"]
        prior.units = Units(header["control_unit"] or None, header["smoothness_unit"])
        return prior

    def arrays(self) -> dict[str, Array]:
        """The examples, in single precision, and the bodies that have any."""
        used, whose = np.unique(self.examples.whose, return_inverse=True)
        return {
            "poses": self.examples.q.astype(np.float32),
            "before": self.examples.before.astype(np.float32),
            "blocks": self.examples.blocks,
            "quantiles": self.quantiles,
            "bodies": self.examples.bodies[used],
            "whose": whose.ravel(),
        }

    def header(self) -> dict[str, Any]:
        """The clips it was learned from, and the choice of local models."""
        units = {"control_unit": self.units.markers or 0.0, "smoothness_unit": self.units.angles}
        return {"clips": self.clips, "performers": True, "method": self.method, **units}

    @property
    def summary(self) -> str:
        """A short description of the learned model."""
        return f"{len(self.examples)} examples of {self.examples.maps.shape[1]} rotational freedoms"

    @property
    def mean(self) -> Float[Array, "maps"]:
        """The mean pose of the examples."""
        return self.examples.mean

    def on_body(self, skeleton: Skeleton) -> LocalPrior:
        """The same poses on a skeleton of the same topology and other limb lengths."""
        prior = copy.copy(self)
        prior.examples = self.examples.on_body(skeleton)
        prior.space = prior.examples.space
        prior._prepared = {}
        return prior

    def guide(self, handles: Handles, *, fps: float | None = None) -> PredictingGuide:
        """Return the guide that predicts poses from the positions of these handles; frames are independent."""
        del fps
        make = partial(LocalGuide if self.method == OURS else registry.PUBLISHED_GUIDES[self.method], self)
        return prepared_for(handles, self._prepared, make, most=PREPARED)

    def marker_guide(self, handles: Handles, *, progress: ShareProgress = lambda _: None) -> MarkerGuide:
        """Return the guide for a performer's markers, their velocities, and missing ones."""
        ours = self.method == OURS
        make = RegressedMarkers if ours else registry.PUBLISHED_GUIDES[f"{self.method} markers"]
        return make(self, handles, progress=progress)

    def sensor_guide(self, names: Sequence[str], *, progress: ShareProgress = lambda _: None) -> SensorGuide:
        """Return the guide for inertial sensors on these segments, the root's first."""
        return SensorGuide(self, Sensors.on(self.space, names), progress=progress)

    @property
    def standing(self) -> Float[Array, "size"]:
        """The mean pose at the mean root position of the examples."""
        return np.concatenate([self.examples.q[:, :3].mean(axis=0), rotations.IDENTITY, self.mean])

    def known_poses(self) -> tuple[Float[Array, "poses maps"], Float[Array, "poses 3"]]:
        """A selection of the examples, upright."""
        return upright(self.examples.maps[:: -(-len(self.examples) // STARTS)])

    def log_likelihood(self, q: Float[Array, "size"]) -> float:
        """The log density of a pose under a Gaussian of the examples nearest to it."""
        return self._log_density(self.space.checked(q)[ROOT_SIZE:], np.inf)

    def percentile(self, q: Float[Array, "size"]) -> float:
        """The percentage of training poses that are less likely than this one."""
        return float(np.interp(self.log_likelihood(q), self.quantiles, np.arange(101)))

    def _log_density(self, maps: Float[Array, "maps"], left_out: float) -> float:
        """The log density without the examples of one block, for poses that are examples themselves."""
        gaps = np.where((self.examples.blocks == left_out)[:, None], np.inf, 0.0)
        distances = np.sum(((self.examples.maps - maps) * self._measure) ** 2 + gaps[:, :1], axis=1)
        count = min(NEAREST, int(np.isfinite(distances).sum()))
        near = self.examples.maps[np.argpartition(distances, count - 1)[:count]]
        factor = np.linalg.cholesky(np.cov(near.T, bias=True) + BETA * np.eye(len(maps)))
        scaled = np.linalg.solve(factor, maps - near.mean(axis=0))
        density = -0.5 * (scaled @ scaled + len(maps) * math.log(2 * math.pi))
        return float(density - np.log(np.diag(factor)).sum())

    def _learn_quantiles(self, progress: Callable[[float], None]) -> None:
        few = np.unique(np.linspace(0, len(self.examples) - 1, SAMPLED).astype(int))
        blocks, found = self.examples.blocks, []
        alone = len(np.unique(blocks)) == 1
        for number, k in enumerate(few):
            left_out = np.inf if alone else float(blocks[k])
            found.append(self._log_density(self.examples.maps[k], left_out))
            progress((number + 1) / len(few))
        self.quantiles = read_only(np.percentile(found, np.arange(101)))


class LocalGuide(PredictingGuide):
    """Local regression from the positions of one set of handles, in the root's frame, to poses."""

    def __init__(self, prior: LocalPrior, handles: Handles) -> None:
        super().__init__(prior.space, handles)
        examples = prior.examples
        self._mean = examples.mean
        self._spread = np.cov(examples.maps.T) + BETA * np.eye(examples.maps.shape[1])
        stride = -(-len(examples) // PLACES)
        self._shapes = examples.space.points_in_root_frame(examples.maps[::stride], handles)
        if len(handles) == 0:
            return
        places = examples.space.points_in_root_frame(examples.maps, handles)
        markers = np.arange(len(handles))
        signal = Signal(np.repeat(markers, 3), markers, np.zeros(len(handles), dtype=np.int64))
        self.regression = regression.fit(
            Data(places.reshape(len(places), -1), examples.maps, examples.blocks),
            signal=signal,
            limbs=limbs_of(examples.space, handles),
            touched=moved_maps(examples.space, handles),
            figures=examples.figures(),
        )

    def __call__(
        self, targets: Float[Array, "handles 3"]
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """Mean and covariance of the pose for these targets."""
        if targets.size == 0:
            return self._mean, self._spread
        return self.regression(np.ascontiguousarray(targets).ravel())

    def place_root(self, targets: Float[Array, "handles 3"]) -> tuple[Float[Array, "3"], Float[Array, "4"]]:
        """The root of the example whose handles fit best in a rigid alignment."""
        turns, shifts, distances = rigid_fits(self._shapes, targets)
        best = np.argmin(distances)
        return shifts[best], rotations.quaternion_from_matrix(turns[best])
