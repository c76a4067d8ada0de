"""A style reduced to the features of a frame: its pose, and its motion if previous frames are known.

With those frames given, angle, velocity and acceleration of one degree of freedom are all linear in it (section 4).
Each is an observation theta ~ t_g(x) of precision p_g (for velocity t = previous + predicted velocity / rate).
Together

    sum_g p_g (theta - t_g)^2 = P (theta - m(x))^2 + sum of squared contrasts,      P = sum p_g,  m = sum p_g t_g / P,

and the contrasts, the disagreements of the observations, depend on x alone. So a style with motion has the same form
as one without (see `local_gaussian`), with another mean and precision and more residuals in x; only the shifts from
previous frames (`ObservedFrame`) change from frame to frame. Features that a sequence's first frames do not have are
not observed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.priors.latent.features import frame_rate
from poise.priors.latent.local_gaussian import LatentArrays
from poise.priors.latent.model import LatentModel
from poise.skeleton.kernels import ROOT_SIZE
from poise.types import Array

_CARRIED = (0.0, 1.0, 5.0)  # variances from previous frames in y, y - y1 and y - 2 y1 + y2
_SETTLING = 100  # steps to the steady-state variance of a long sequence


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
        maps = self.model.features.space.size - ROOT_SIZE
        total, mean, contrasts = _combined(self.precisions, self._offsets(before))
        ups = np.stack([np.sqrt(total[maps:]), mean[maps:]])
        return ObservedFrame(
            np.ascontiguousarray(mean[:maps]), ups, np.concatenate([np.empty(0), *contrasts])
        )

    def _offsets(self, before: Sequence[Float[Array, "size"]]) -> list[Float[Array, "pose"]]:
        """The pose predicted by each kind of feature, without k(x)."""
        features, mean = self.model.features, self.model.mean
        shifts = [np.zeros(features.pose_count)]
        if len(self.precisions) > 1:
            poses = [features.of_poses(q) for q in before]
            shifts += [poses[0]] if features.velocity else []
            shifts += [2.0 * poses[0] - poses[1]] if len(shifts) < len(self.precisions) else []
        powers = _powers(self.model, len(self.precisions))
        parts = mean.reshape(-1, features.pose_count)
        return [
            shift + part / self.rate**power for shift, part, power in zip(shifts, parts, powers, strict=False)
        ]


def observed(
    model: LatentModel,
    correlation: Float[Array, "maps maps"],
    *,
    fps: float | None = None,
    known: int = 0,
) -> Observed:
    """A style for frames with `known` predecessors at this frame rate; without a rate, for single poses."""
    rate = 1.0 if fps is None else frame_rate(fps)
    count, maps = model.features.pose_count, model.features.space.size - ROOT_SIZE
    kinds = 1 if fps is None else _kinds(model, known)
    powers = _powers(model, kinds)
    parts = [slice(kind * count, (kind + 1) * count) for kind in range(kinds)]
    precisions = _precisions([model.scales[part] for part in parts], powers, rate)
    slopes = [model.weights[:, part] / rate**power for part, power in zip(parts, powers, strict=True)]
    total, weights, contrasts = _combined(precisions, slopes)
    scales = np.sqrt(total)
    arrays = LatentArrays(
        model.kernel.number,
        model.kernel.parameters,
        model.active_latents,
        np.ascontiguousarray(model.inverse),
        np.ascontiguousarray(weights[:, :maps]),
        np.ascontiguousarray(total[:maps]),
        np.ascontiguousarray(
            np.hstack([weights[:, maps:] * scales[maps:], *(-contrast for contrast in contrasts)])
        ),
        float(kinds * count),
        correlation / np.outer(scales[:maps], scales[:maps]),
        np.zeros((maps, maps)),
    )
    return Observed(arrays, model, rate, precisions)


def _kinds(model: LatentModel, known: int) -> int:
    """The number of kinds (pose, velocity, acceleration) that a frame with this many predecessors has."""
    features = model.features
    return 1 + int(features.velocity and known > 0) + int(features.acceleration and known > 1)


def _powers(model: LatentModel, kinds: int) -> list[int]:
    """The power of the frame rate in each kind of feature."""
    wanted = [0, *([1] if model.features.velocity else []), *([2] if model.features.acceleration else [])]
    return wanted[:kinds]


def _precisions(
    scales: Sequence[Float[Array, "pose"]], powers: Sequence[int], rate: float
) -> Float[Array, "kinds pose"]:
    """Precision of each kind of feature about the pose, in units of 1 / sigma^2(x).

    For motion it is less than the scale says, because previous frames were themselves solved: their variance, here the
    steady state of a long sequence, adds to that of velocity and, five times, of acceleration. The residual of motion
    is treated as white noise in time, so that its sum over a second does not depend on the frame rate.
    """
    alone = np.stack(
        [scale**2 * rate ** max(2 * power - 1, 0) for scale, power in zip(scales, powers, strict=True)]
    )
    carried = np.array([_CARRIED[power] for power in powers])[:, None]
    settled = 1.0 / alone[0]
    for _ in range(_SETTLING):
        settled = 1.0 / (1.0 / (1.0 / alone + carried * settled)).sum(axis=0)
    return np.asarray(1.0 / (1.0 / alone + carried * settled))


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
