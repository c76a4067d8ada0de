"""A learned style: the scaled Gaussian process latent variable model, and its reduction to the features of a frame.

The model and its predictions are Eqs. 3 to 6 of Grochow et al. (2004). For a frame it is reduced to its pose, and its
motion if previous frames are known. With those given, angle, velocity and acceleration of one degree of freedom are all
linear in it (section 4). Each is an observation theta ~ t_g(x) of precision p_g (for velocity t = previous + predicted
velocity / rate). Together

    sum_g p_g (theta - t_g)^2 = P (theta - m(x))^2 + sum of squared contrasts,      P = sum p_g,  m = sum p_g t_g / P,

and the contrasts, the disagreements of the observations, depend on x alone. So a style with motion has the same form
as one without (see `local_gaussian`), with another mean and precision and more residuals in x; only the shifts from
previous frames (`ObservedFrame`) change from frame to frame. Features that a sequence's first frames do not have are
not observed.

Features y(q) of a pose are the paper's (section 4). Joint angles are the exponential maps of q; vertical orientation is
the second row of the root's rotation matrix, since our up axis is Y (the paper's is Z). Velocity and acceleration of
both are differences to previous frames. The paper takes them per frame; here they are scaled to frames of 1/30 s, so
that recordings of any frame rate agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.errors import InvalidValueError, UnknownNameError
from poise.geometry import rotations
from poise.gp.covariance import KERNELS, Kernel
from poise.gp.process import Posterior, projected
from poise.priors.latent.local_gaussian import LatentArrays
from poise.priors.prior import Prior
from poise.schema import Check, Declared, Indices, Numbers, choice, flag, record
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import read_only
from poise.types import Array

REFERENCE_SECONDS = 1.0 / 30.0  # frame duration that is the unit of time of velocity and acceleration
STILL_SHARE = 0.01  # of the typical deviation of its kind: a feature that varies less counts as still
STILL_DEVIATION = 1e-4  # the same threshold in the feature's own unit
ALL, ACTIVE = SPEAKERS = ("all", "active")
_BLOCK = 4096  # points of a likelihood map predicted at once
_CARRIED = (0.0, 1.0, 5.0)  # variances from previous frames in y, y - y1 and y - 2 y1 + y2
_SETTLING = 100  # steps to the steady-state variance of a long sequence
_LEARNED = ("mean", "scales", "latents", "active", "recorded", "learning_curve")

LOGS = Numbers(axes="parameters", least=-40.0, most=40.0)
"""The parameters of a kernel."""
HEADER: Mapping[str, Check] = {
    "kernel": choice(*KERNELS),
    "features": record({"up": flag, "velocity": flag, "acceleration": flag}),
    "speakers": choice(*SPEAKERS),
}
LONGEST = {"latent": 64, "active": 4000}


def declared(header: Mapping[str, Any], lengths: Mapping[str, int]) -> Declared:
    """The arrays of a model with this header, for a body with this many maps."""
    wanted = header["features"]
    pose = lengths["maps"] + 3 * wanted["up"]
    features = str(pose * (1 + wanted["velocity"] + wanted["acceleration"]))
    return {
        "kernel": LOGS,
        "annealed": LOGS,
        "mean": Numbers(axes=features),
        "scales": Numbers(axes=features, least=1e-9, most=1e9),
        "latents": Numbers(axes="poses latent"),
        "active": Indices(axes="active", below="poses", distinct=True),
        "recorded": Numbers(axes=f"poses {features}"),
        "learning_curve": Numbers(axes="steps", least=-1e15, most=1e15, empty=True),
    }


Q = Float[Array, "size"]

# --- features ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Features:
    """The choice of features: y = [angles, up], then optionally their velocity and acceleration."""

    space: PoseSpace
    up: bool = True
    velocity: bool = True
    acceleration: bool = False

    @property
    def pose_count(self) -> int:
        """The number of features that depend on one frame alone: y[:pose_count]."""
        return self.space.size - ROOT_SIZE + (3 if self.up else 0)

    @property
    def dimension(self) -> int:
        """D, the length of y."""
        return self.pose_count * (1 + self.velocity + self.acceleration)

    @property
    def groups(self) -> Int[Array, "features"]:
        """Per feature its kind: 0 angle, 1 up, 2 and 3 their velocities, 4 and 5 their accelerations."""
        ups = 3 if self.up else 0
        one = np.repeat([0, 1], [self.pose_count - ups, ups])
        wanted = [0, *([2] if self.velocity else []), *([4] if self.acceleration else [])]
        return np.concatenate([one + first for first in wanted])

    def of_frames(self, q: Float[Array, "frames size"], fps: float) -> Float[Array, "frames features"]:
        """Features along one clip, extrapolated before its first frame with the first known velocity."""
        pose = self.of_poses(q)
        rate = frame_rate(fps)
        velocity, acceleration = np.zeros_like(pose), np.zeros_like(pose)
        velocity[1:] = np.diff(pose, axis=0) * rate
        acceleration[2:] = np.diff(pose, n=2, axis=0) * rate**2
        if len(pose) > 1:
            velocity[0] = velocity[1]
        if len(pose) > 2:
            acceleration[:2] = acceleration[2]
        return self._wanted(pose, velocity, acceleration)

    def of_pose(
        self,
        q: Q,
        previous: Q | None = None,
        before_previous: Q | None = None,
        *,
        fps: float = 1.0 / REFERENCE_SECONDS,
    ) -> Float[Array, "features"]:
        """Features of a pose after the previous frames; without those, it is at rest."""
        rate, now = frame_rate(fps), self.of_poses(q)
        velocity, acceleration = np.zeros_like(now), np.zeros_like(now)
        if previous is not None:
            before = self.of_poses(previous)
            velocity = (now - before) * rate
            if before_previous is not None:
                acceleration = (now - 2.0 * before + self.of_poses(before_previous)) * rate**2
        return self._wanted(now, velocity, acceleration)

    def jacobian(
        self,
        q: Q,
        previous: Q | None = None,
        before_previous: Q | None = None,
        *,
        fps: float = 1.0 / REFERENCE_SECONDS,
    ) -> Float[Array, "features freedoms"]:
        """dy/dd of `of_pose`, d the tangent of q; previous frames are constants (section 4)."""
        maps = self.space.size - ROOT_SIZE
        pose = np.zeros((self.pose_count, self.space.freedoms))
        pose[:maps, ROOT_FREEDOMS:] = np.eye(maps)
        if self.up:  # R exp(d): the change of row r is r x d
            pose[maps:, 3:ROOT_FREEDOMS] = rotations.skew(rotations.matrix_from_quaternion(q[3:7])[1])
        rate = frame_rate(fps)
        velocity = pose * (rate if previous is not None else 0.0)
        known = previous is not None and before_previous is not None
        acceleration = pose * (rate**2 if known else 0.0)
        return self._wanted(pose.T, velocity.T, acceleration.T).T

    def of_poses(self, q: Float[Array, "*frames size"]) -> Float[Array, "*frames pose"]:
        """The features that depend on a pose alone: y[:pose_count]."""
        if q.shape[-1] != self.space.size:
            raise InvalidValueError(f"pose vectors must have {self.space.size} numbers; got {q.shape[-1]}")
        angles = q[..., ROOT_SIZE:]
        if not self.up:
            return angles
        return np.concatenate([angles, rotations.matrix_from_quaternion(q[..., 3:7])[..., 1, :]], axis=-1)

    def _wanted(self, pose: Array, velocity: Array, acceleration: Array) -> Array:
        parts = [pose, *([velocity] if self.velocity else []), *([acceleration] if self.acceleration else [])]
        return np.concatenate(parts, axis=-1)


def frame_rate(fps: float) -> float:
    """Frames per unit of time of velocities and accelerations."""
    if not (np.isfinite(fps) and fps > 0):
        raise InvalidValueError(f"features need a positive frame rate; got {fps}")
    return fps * REFERENCE_SECONDS


class TrainingFeatures:
    """Features y of frames: those of the pose, and possibly others."""

    features: Features
    y: Float[Array, "frames features"]

    @cached_property
    def mean(self) -> Float[Array, "features"]:
        """The mean of every feature (mu of Grochow et al. 2004, Eq. 2)."""
        return np.asarray(self.y.mean(axis=0))

    @cached_property
    def floors(self) -> Float[Array, "features"]:
        """The deviation below which a feature counts as still: a share of the typical one of its kind."""
        deviations, groups = self.y.std(axis=0), self.features.groups
        squares = np.bincount(groups, deviations[: len(groups)] ** 2) / np.maximum(np.bincount(groups), 1)
        floors = np.full(len(deviations), STILL_DEVIATION)
        floors[: len(groups)] = np.maximum(STILL_SHARE * np.sqrt(squares[groups]), STILL_DEVIATION)
        return floors

    @cached_property
    def varying(self) -> Bool[Array, "features"]:
        """Mask of the features that vary; only these are learned."""
        return np.asarray(self.y.std(axis=0) > self.floors)

    @cached_property
    def centred(self) -> Float[Array, "frames varying"]:
        """The varying features minus their mean."""
        return np.ascontiguousarray((self.y - self.mean)[:, self.varying])

    def all_scales(self, scales: Float[Array, "varying"]) -> Float[Array, "features"]:
        """Scales of all features; a still one counts as if it varied by its floor, so that it is stiff but finite."""
        every = 1.0 / self.floors
        every[self.varying] = scales
        return every


# --- the model --------------------------------------------------------------------------------------------------------


@runtime_checkable
class LatentSpace(Protocol):
    """Latent points of poses and their likelihoods: of a learned model, or of the prior that has one."""

    @property
    def latents(self) -> Float[Array, "poses latent"]:
        """The latent points of the training poses."""

    @property
    def active(self) -> Int[Array, "active"]:
        """The indices of the active poses."""

    def likelihood_map(self, x: Float[Array, "points latent"]) -> Float[Array, "points"]:
        """Log-likelihood (up to a constant) of latent points."""


@runtime_checkable
class LatentPoses(Prior, LatentSpace, Protocol):
    """A prior with poses at latent points: the studio and `poise latent` show any, from outside too."""

    def pose_at(self, x: Float[Array, "latent"]) -> Float[Array, "maps"]:
        """The pose at a latent point."""

    def up_at(self, x: Float[Array, "latent"]) -> Float[Array, "3"]:
        """The up direction there, in the root's frame."""


@dataclass(frozen=True, eq=False)
class LatentModel:
    """A learned style. Scales are such that scaled features have a variance of one on average.

    `recorded` are the features of all poses minus their mean; `speakers` says which poses enter a prediction: all, or
    the active ones alone as in the paper (see `gp.sparse.projected`).
    """

    features: Features
    kernel: Kernel
    mean: Float[Array, "features"]
    scales: Float[Array, "features"]
    latents: Float[Array, "poses latent"]
    active: Int[Array, "active"]
    recorded: Float[Array, "poses features"]
    annealed: Kernel
    learning_curve: Float[Array, "steps"]
    speakers: str = ALL

    def __post_init__(self) -> None:
        for name in _LEARNED:
            kind = np.int64 if name == "active" else np.float64
            object.__setattr__(self, name, read_only(getattr(self, name), dtype=kind))
        if self.speakers not in SPEAKERS:
            raise UnknownNameError("choice of poses that speak", self.speakers, SPEAKERS)
        D, N = self.features.dimension, len(self.latents)
        if self.mean.shape != (D,) or self.scales.shape != (D,) or self.recorded.shape != (N, D):
            raise InvalidValueError(
                f"a style of {D} features and {N} poses needs a mean and scales ({D},) and poses ({N}, {D}); "
                f"got {self.mean.shape}, {self.scales.shape}, {self.recorded.shape}"
            )

    def __reduce__(self) -> tuple[type[LatentModel], tuple[Any, ...]]:
        """Rebuild the model from its fields in another process: unpickled arrays would not be read-only."""
        return LatentModel, tuple(getattr(self, field.name) for field in fields(self))

    @property
    def dimensions(self) -> int:
        """The number of dimensions of the latent space."""
        return self.latents.shape[1]

    @cached_property
    def active_latents(self) -> Float[Array, "active latent"]:
        """x of the active set."""
        return read_only(self.latents[self.active])

    @cached_property
    def outputs(self) -> Float[Array, "active features"]:
        """Features of the active set minus their mean."""
        return read_only(self.recorded[self.active])

    @cached_property
    def posterior(self) -> Posterior:
        """The posterior process of the poses under the kernel."""
        if self.speakers == ACTIVE:
            return Posterior.given(self.kernel, self.active_latents, self.outputs)
        return projected(self.kernel, self.active_latents, self.latents, self.recorded)

    @property
    def inverse(self) -> Float[Array, "active active"]:
        """The inverse kernel matrix of the active set, or its replacement if all poses enter."""
        return self.posterior.inverse

    @property
    def weights(self) -> Float[Array, "active features"]:
        """f(x) = mean + k(x) weights."""
        return self.posterior.weights

    def with_kernel(self, kernel: Kernel) -> LatentModel:
        """The same poses at the same latent points under another kernel, for annealing (section 6.2)."""
        return replace(self, kernel=kernel)

    def without(self, left_out: Bool[Array, "poses"]) -> LatentModel:
        """The same style without some of its poses."""
        kept = ~left_out
        active = (np.cumsum(kept) - 1)[self.active[kept[self.active]]]
        return replace(self, latents=self.latents[kept], recorded=self.recorded[kept], active=active)

    def predict(self, x: Float[Array, "*points latent"]) -> Float[Array, "*points features"]:
        """f(x), the predicted features at x (Eq. 4)."""
        return (self.mean + self.posterior.mean(x.reshape(-1, self.dimensions))).reshape(*x.shape[:-1], -1)

    def variance(self, x: Float[Array, "*points latent"]) -> Float[Array, "*points"]:
        """sigma^2(x), the predicted variance of scaled features at x (Eqs. 5, 6)."""
        return self.posterior.variance(x.reshape(-1, self.dimensions)).reshape(x.shape[:-1])

    def likelihood_map(self, x: Float[Array, "points latent"]) -> Float[Array, "points"]:
        """-D/2 ln sigma^2(x) - |x|^2 / 2, the log-likelihood of latent points (Fig. 1)."""
        blocks = np.split(x, range(_BLOCK, len(x), _BLOCK))
        logs = np.log(np.concatenate([self.variance(block) for block in blocks]))
        return -0.5 * self.features.dimension * logs - 0.5 * np.einsum("na,na->n", x, x)

    def arrays(self) -> dict[str, Array]:
        """The learned arrays, by name."""
        kernels = {"kernel": self.kernel.logs, "annealed": self.annealed.logs}
        return {**kernels, **{name: getattr(self, name) for name in _LEARNED}}

    def header(self) -> dict[str, Any]:
        """The kernel's kind, the features, and the poses that enter a prediction."""
        chosen = self.features
        wanted = {"up": chosen.up, "velocity": chosen.velocity, "acceleration": chosen.acceleration}
        return {"kernel": self.kernel.kind, "features": wanted, "speakers": self.speakers}

    @classmethod
    def restored(
        cls, space: PoseSpace, *, arrays: Mapping[str, Array], header: Mapping[str, Any]
    ) -> LatentModel:
        """Create the model from the contents of `arrays` and `header`."""
        wanted = {name: bool(header["features"][name]) for name in ("up", "velocity", "acceleration")}
        return cls(
            features=Features(space, **wanted),
            kernel=Kernel.of(header["kernel"], arrays["kernel"]),
            annealed=Kernel.of(header["kernel"], arrays["annealed"]),
            speakers=header["speakers"],
            **{name: arrays[name] for name in _LEARNED},
        )


# --- a style reduced to the features of a frame -----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ObservedFrame:
    """The terms that previous frames determine, in the form of the solver."""

    base: Float[Array, "maps"]  # m(x) = base + k(x) weights
    ups: Float[Array, "2 ups"]  # scales of the root's up features, and their offsets
    contrasts: Float[Array, "contrasts"]  # r(x) = contrasts - k(x) checks


@dataclass(frozen=True, eq=False)
class Observed:
    """A style under one kernel, for frames with a fixed number of known predecessors."""

    arrays: LatentArrays
    model: LatentModel
    rate: float
    precisions: Float[Array, "kinds pose"]

    def frame(self, before: Sequence[Float[Array, "size"]]) -> ObservedFrame:
        """The terms for the frame after these, newest first."""
        features, kinds = self.model.features, len(self.precisions)
        shifts = [np.zeros(features.pose_count)]
        if kinds > 1:
            poses = [features.of_poses(q) for q in before]
            shifts += [poses[0]] if features.velocity else []
            shifts += [2.0 * poses[0] - poses[1]] if len(shifts) < kinds else []
        parts = self.model.mean.reshape(-1, features.pose_count)
        powers = _powers(features)
        offsets = [  # the pose predicted by each kind of feature, without k(x)
            shift + part / self.rate**power for shift, part, power in zip(shifts, parts, powers, strict=False)
        ]
        maps = features.space.size - ROOT_SIZE
        total, mean, contrasts = _combined(self.precisions, offsets)
        ups = np.stack([np.sqrt(total[maps:]), mean[maps:]])
        return ObservedFrame(
            np.ascontiguousarray(mean[:maps]), ups, np.concatenate([np.empty(0), *contrasts])
        )


def observed(
    model: LatentModel, correlation: Float[Array, "maps maps"], *, fps: float | None = None, known: int = 0
) -> Observed:
    """A style for frames with `known` predecessors at this frame rate; without a rate, for single poses.

    The precision of each kind of feature (pose, velocity, acceleration) about the pose is in units of 1 / sigma^2(x).
    For motion it is less than the scale says, because previous frames were themselves solved: their variance, here the
    steady state of a long sequence, adds to that of velocity and, five times, of acceleration. The residual of motion
    is treated as white noise in time, so that its sum over a second does not depend on the frame rate.
    """
    features, rate = model.features, 1.0 if fps is None else frame_rate(fps)
    count, maps = features.pose_count, features.space.size - ROOT_SIZE
    kinds = 1
    if fps is not None:
        kinds += int(features.velocity and known > 0) + int(features.acceleration and known > 1)
    powers = _powers(features)[:kinds]
    parts = [slice(kind * count, (kind + 1) * count) for kind in range(kinds)]
    alone = np.stack(
        [
            model.scales[part] ** 2 * rate ** max(2 * power - 1, 0)
            for part, power in zip(parts, powers, strict=True)
        ]
    )
    carried, settled = np.array([_CARRIED[power] for power in powers])[:, None], 1.0 / alone[0]
    for _ in range(_SETTLING):
        settled = 1.0 / (1.0 / (1.0 / alone + carried * settled)).sum(axis=0)
    precisions = 1.0 / (1.0 / alone + carried * settled)
    slopes = [model.weights[:, part] / rate**power for part, power in zip(parts, powers, strict=True)]
    total, weights, contrasts = _combined(precisions, slopes)
    scales = np.sqrt(total)
    checks = np.hstack([weights[:, maps:] * scales[maps:], *(-contrast for contrast in contrasts)])
    arrays = LatentArrays(
        model.kernel.number,
        model.kernel.parameters,
        model.active_latents,
        np.ascontiguousarray(model.inverse),
        np.ascontiguousarray(weights[:, :maps]),
        np.ascontiguousarray(total[:maps]),
        np.ascontiguousarray(checks),
        float(kinds * count),
        correlation / np.outer(scales[:maps], scales[:maps]),
        np.zeros((maps, maps)),
    )
    return Observed(arrays, model, rate, precisions)


def _powers(features: Features) -> list[int]:
    """The power of the frame rate in each kind of feature."""
    return [0, *([1] if features.velocity else []), *([2] if features.acceleration else [])]


def _combined(
    precisions: Float[Array, "kinds pose"], values: Sequence[Float[Array, "*active pose"]]
) -> tuple[Float[Array, "pose"], Float[Array, "*active pose"], list[Float[Array, "*active pose"]]]:
    """The joint precision and mean of observations, and the disagreement of each with those before it."""
    total, mean, contrasts = precisions[0], values[0], []
    for precision, value in zip(precisions[1:], values[1:], strict=True):
        joint = total + precision
        contrasts.append(np.sqrt(total * precision / joint) * (mean - value))
        total, mean = joint, (total * mean + precision * value) / joint
    return total, mean, contrasts
