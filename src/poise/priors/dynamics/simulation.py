"""Motions and poses out of a motion model: simulation from point to point, and completion of features.

Simulate motion from latent point to latent point by the mixed dynamics (Urtasun et al. 2008, 4.4 and 5.1).

Many paths are simulated at once. A plan gives the wanted activity over time; without one the mixture decides alone.

Latent points of unseen poses with missing features, and completion of those features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, UnknownNameError
from poise.geometry.splines import smoothstep
from poise.gp.latent import PlacingLoss, place_new
from poise.priors.dynamics.flow import NO_SURFACE, advanced, mixed
from poise.priors.dynamics.prior import DynamicsPrior
from poise.priors.dynamics.sequences import RATE
from poise.types import Array

Inference = Literal["guided", "plain"]
GUIDED: Inference = "guided"
PLAIN: Inference = "plain"
BLEND_SECONDS = 1.0  # duration of the transition between two activities


@dataclass(frozen=True, eq=False)
class Paths:
    """Latent paths, with the variance of the dynamics at each step."""

    latents: Float[Array, "paths frames latent"]
    variances: Float[Array, "paths frames"]
    shares: Float[Array, "paths frames activities"]


def simulate(
    prior: DynamicsPrior,
    start: Float[Array, "paths latent"],
    *,
    before: Float[Array, "paths latent"] | None = None,
    frames: int,
    wishes: Float[Array, "frames activities"] | None = None,
    pace: Float[Array, "paths"] | float = 1.0,
    rng: np.random.Generator | None = None,
    inference: Inference | None = None,
) -> Paths:
    """Simulate paths of `frames` frames from starting points: the mean, or a sample if a generator is given.

    "guided": points stay on the surface of a latent space with a topology, every phase advances, and wishes lead home.
    "plain": the dynamics alone decide (Eq. 2), as for models learned as published. A `pace` of 2 goes twice as far per
    frame along the same path.
    """
    guided = (inference or (PLAIN if prior.structure.published else GUIDED)) == GUIDED
    if frames < 1:
        raise InvalidValueError(f"a simulation needs at least one frame; got {frames}")
    flows, surface = prior.flows, prior.surface if guided else NO_SURFACE
    size, rate = start.shape[1], np.broadcast_to(np.asarray(pace, dtype=np.float64), (len(start),))[:, None]
    latents = np.empty((len(start), frames, size))
    variances, shares = np.zeros((len(start), frames)), np.zeros((len(start), frames, len(flows)))
    latents[:, 0] = start
    previous, radians = start if before is None else before, surface.phases_of(start)
    for frame in range(frames - 1):
        x = latents[:, frame]
        asked = None if wishes is None else wishes[frame]
        mean, variances[:, frame + 1], shares[:, frame + 1] = mixed(
            flows, x, previous, wishes=asked, homing=guided, rng=rng
        )
        after = x + rate * (mean - x)
        if guided:
            radians = radians + rate * advanced(flows, x, previous, shares[:, frame + 1])
        if rng is not None:
            drawn = np.sqrt(variances[:, frame + 1])[:, None] * rng.normal(size=after.shape)
            after, radians = after + drawn, radians + surface.along(radians, drawn)
        latents[:, frame + 1], previous = surface.at(radians, after), x
    shares[:, 0], variances[:, 0] = shares[:, min(1, frames - 1)], variances[:, min(1, frames - 1)]
    return Paths(latents, variances, shares)


def plan(
    prior: DynamicsPrior, activities: Sequence[str], *, frames: int, blend: float = BLEND_SECONDS
) -> Float[Array, "frames activities"]:
    """Shares of the activities over time: each for an equal part, with smooth transitions."""
    names = prior.frames.activity_names
    for name in activities:
        if name not in names:
            raise UnknownNameError("activity", name, names)
    shares = np.zeros((frames, len(names)))
    shares[:, names.index(activities[0])] = 1.0
    seconds = np.arange(frames) / RATE
    part = frames / RATE / len(activities)
    for number, name in enumerate(activities[1:], start=1):
        risen = smoothstep((seconds - number * part) / blend + 0.5)[:, None]
        shares *= 1.0 - risen
        shares[:, [names.index(name)]] += risen
    return shares


def start_points(
    prior: DynamicsPrior, frames: Sequence[int] | Array
) -> tuple[Float[Array, "n latent"], Float[Array, "n latent"]]:
    """Training points to start from, and their predecessors (themselves, at the start of a sequence)."""
    chosen = np.asarray(frames, dtype=np.int64)
    latents, firsts = prior.model.latents, {first for first, _ in prior.frames.bounds()}
    before = np.array([frame if frame in firsts else frame - 1 for frame in chosen], dtype=np.int64)
    return latents[chosen], latents[before]


def resampled(latents: Float[Array, "frames latent"], fps: float) -> Float[Array, "more latent"]:
    """A latent path at another frame rate: a cubic spline through its points."""
    from scipy.interpolate import CubicSpline

    if len(latents) < 4 or fps == RATE:
        return latents
    times = np.arange(len(latents)) / RATE
    count = int(np.floor(times[-1] * fps + 1e-6)) + 1
    return np.asarray(CubicSpline(times, latents)(np.arange(count) / fps))


# --- completion -------------------------------------------------------------------------------------------------------


def place_features(prior: DynamicsPrior, y: Float[Array, "poses features"]) -> Float[Array, "poses latent"]:
    """Return the latent point of each pose, from its known features (missing ones are NaN)."""
    process, mean = prior.process, prior.all_mean
    if y.shape[1] != len(mean):
        raise InvalidValueError(
            f"poses must have {len(mean)} features, with NaN for missing ones; got {y.shape[1]}"
        )
    known = ~np.isnan(y)
    if not known.any(axis=1).all():
        raise InvalidValueError("every feature of a pose is missing; at least one must be known")
    latents = np.empty((len(y), prior.model.dimensions))
    for pattern in np.unique(known, axis=0):
        alike = np.all(known == pattern, axis=1)
        seen = replace(process, weights=np.ascontiguousarray(process.weights[:, pattern]))
        loss = PlacingLoss(seen, prior.all_scales[pattern])
        latents[alike] = place_new(loss, (y[alike] - mean)[:, pattern])[0]
    return latents


def complete(prior: DynamicsPrior, y: Float[Array, "poses features"]) -> Float[Array, "poses features"]:
    """Fill in missing features with the model's prediction at the latent point of the known ones."""
    expected = prior.predict_all(place_features(prior, y))
    return np.where(np.isnan(y), expected, y)
