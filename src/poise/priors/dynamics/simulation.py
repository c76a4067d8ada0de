"""Motions and poses out of a motion model: simulation from point to point, a start near targets, and completion.

Motion is simulated from latent point to latent point by the mixed dynamics (Urtasun et al. 2008, 4.4 and 5.1). Many
paths are simulated at once. A plan gives the wanted activity over time; without one the mixture decides alone. In a
sample the activity persists: it is a Markov state (`Switching`). The paper draws it again at every frame.

The initial guess for a whole motion is the simulation from training points that is closest to the targets. The paper
samples the model from each training point and keeps the closest (section 5.2). Over a longer motion a simulation loses
the beat. Here many run in parallel at different paces, and at regular intervals the closest ones are continued and the
others dropped (a particle filter). The root path is then aligned: at each frame the whole path is rotated and shifted
over the floor to fit the constraints around that time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from jaxtyping import Float, Int

from poise.errors import InvalidValueError, UnknownNameError
from poise.geometry import rotations
from poise.geometry.splines import smoothstep
from poise.gp.latent import PlacingLoss, place_new
from poise.priors.dynamics.flow import NO_SURFACE, Points, advanced, mixed
from poise.priors.dynamics.sequences import RATE
from poise.priors.terms import Targets, Unknowns
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import Handles
from poise.types import Array

if TYPE_CHECKING:
    from poise.priors.dynamics.prior import DynamicsPrior

Inference = Literal["guided", "plain"]
GUIDED: Inference = "guided"
PLAIN: Inference = "plain"
BLEND_SECONDS = 1.0  # duration of the transition between two activities

PARTICLES = 100
MOST_TARGETS = 1200  # that the search looks at
CHUNK = 24  # frames at 30 Hz between two selections of the closest simulations
KEPT = 0.15  # fraction of the simulations that are continued
REMEMBERED = 75  # frames at 30 Hz over which the distance to the targets is measured
PACE_SPREAD = 0.12  # relative spread of the simulations' paces
PACE_JITTER = 0.05  # relative change of pace when a simulation is continued
AROUND = 0.6  # seconds: window around a frame whose targets align its root


@dataclass(frozen=True, eq=False)
class Paths:
    """Latent paths, with the variance of the dynamics at each step."""

    latents: Float[Array, "paths frames latent"]
    variances: Float[Array, "paths frames"]
    shares: Float[Array, "paths frames activities"]


class Switching:
    """The activity of every path of a sample, as a Markov state.

    Clips show no change of activity, but every clip is one stay: the probability per frame of leaving an activity is
    one over the mean length of its clips. It is spread over the places where another activity's dynamics know the
    point too, in proportion to how well they do, so that paths change over through poses near each other. Then the
    share of the new activity rises smoothly, and the next change waits until it is there.
    """

    def __init__(
        self, prior: DynamicsPrior, x: Points, before: Points, *, stay: float | None, rng: np.random.Generator
    ) -> None:
        self._flows, self._rng, frames = prior.flows, rng, prior.frames
        doing = np.eye(len(prior.flows))[frames.activity_of]
        lengths = doing.sum(axis=0)
        clips = np.array([frames.activities.count(name) for name in frames.activity_names])
        leaving = clips / lengths if stay is None else np.full(len(clips), 1.0 / (stay * RATE))
        points = start_points(prior, np.arange(len(prior.latents)))
        known = np.stack([flow.familiarity(*points) for flow in prior.flows], axis=1)
        usual = doing.T @ known / lengths[:, None]
        self._rates = (leaving / max(1, len(clips) - 1))[
            :, None
        ] / usual  # where another activity is fully known
        np.fill_diagonal(self._rates, 0.0)
        self.now = self._before = mixed(prior.flows, x, before)[2].argmax(axis=1)
        self._risen = np.ones(len(x))

    def wishes(self, x: Points, before: Points) -> Float[Array, "n activities"]:
        """The activities' weights for the step from these points."""
        known = np.stack([flow.familiarity(x, before) for flow in self._flows], axis=1)
        reached = np.cumsum(self._rates[self.now] * known, axis=1)
        drawn = self._rng.random(len(x))
        leaves = (drawn < reached[:, -1]) & (self._risen >= 1.0)
        self._before = np.where(leaves, self.now, self._before)
        self.now = np.where(leaves, (reached <= drawn[:, None]).sum(axis=1), self.now)
        self._risen = np.where(leaves, 0.0, self._risen + 1.0 / (BLEND_SECONDS * RATE))
        share, each = smoothstep(self._risen)[:, None], np.eye(len(self._flows))
        return np.asarray((1.0 - share) * each[self._before] + share * each[self.now])


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
    stay: float | None = None,
) -> Paths:
    """Simulate paths of `frames` frames from starting points: the mean, or a sample if a generator is given.

    "guided": points stay on the surface of a latent space with a topology, every phase advances, wishes lead home, and
    a sample without wishes stays in an activity as long as the clips do (see `Switching`), or `stay` seconds on
    average. "plain": the dynamics alone decide (Eq. 2), as for models learned as published. A `pace` of 2 goes twice as
    far per frame along the same path.
    """
    guided = (inference or (PLAIN if prior.structure.published else GUIDED)) == GUIDED
    if frames < 1:
        raise InvalidValueError(f"a simulation needs at least one frame; got {frames}")
    flows, surface = prior.flows, prior.surface if guided else NO_SURFACE
    size, rate = start.shape[1], np.broadcast_to(np.asarray(pace, dtype=np.float64), (len(start),))[:, None]
    latents = np.empty((len(start), frames, size))
    variances, shares = np.zeros((len(start), frames)), np.zeros((len(start), frames, len(flows)))
    latents[:, 0] = start
    previous, radians, switching = start if before is None else before, surface.phases_of(start), None
    if guided and rng is not None and wishes is None and len(flows) > 1:
        switching = Switching(prior, start, previous, stay=stay, rng=rng)
    for frame in range(frames - 1):
        x = latents[:, frame]
        asked = None if wishes is None else wishes[frame]
        if switching is not None:
            asked = switching.wishes(x, previous)
        mean, variances[:, frame + 1], shares[:, frame + 1] = mixed(
            flows, x, previous, wishes=asked, homing=guided, rng=None if switching else rng
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
    seconds, part = np.arange(frames) / RATE, frames / RATE / len(activities)
    for number, name in enumerate(activities[1:], start=1):
        risen = smoothstep((seconds - number * part) / blend + 0.5)[:, None]
        shares *= 1.0 - risen
        shares[:, [names.index(name)]] += risen
    return shares


def start_points(prior: DynamicsPrior, frames: Sequence[int] | Array) -> tuple[Points, Points]:
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


# --- a start near targets ---------------------------------------------------------------------------------------------


def motion_start(
    prior: DynamicsPrior, targets: Targets, *, frames: int, fps: float, rng: np.random.Generator
) -> Unknowns:
    """Return poses and latent points near the targets; the path is rotated and shifted to those around each frame."""
    targets = targets.thinned(MOST_TARGETS)
    path = _closest_path(prior, targets, int(np.ceil(frames / fps * RATE)) + 2, rng)
    x = np.ascontiguousarray(resampled(path, fps)[:frames])
    q = prior.poses_of(prior.predict_all(x), fps=fps)
    if len(targets) == 0:
        return Unknowns(q, x)
    at = np.clip(np.rint(targets.times * fps).astype(np.int64), 0, len(q) - 1)
    gaps = ((np.arange(len(q)) / fps)[:, None] - targets.times) / AROUND
    nearness = np.exp(-0.5 * gaps**2) + 1e-6 / (1.0 + gaps**2)
    turns, shifts = level_fits(_handle_places(prior, q, at, targets.handles), targets.points, nearness)
    led = q.copy()
    led[:, :3] = _moved(q[:, :3], turns, shifts)
    about_up = rotations.quaternion_from_expmap(np.multiply.outer(turns, np.array([0.0, 1.0, 0.0])))
    led[:, 3:ROOT_SIZE] = rotations.multiply(about_up, q[:, 3:ROOT_SIZE])
    return Unknowns(led, x)


def _closest_path(
    prior: DynamicsPrior, targets: Targets, length: int, rng: np.random.Generator
) -> Float[Array, "frames latent"]:
    starts = np.linspace(0, len(prior.latents) - 1, PARTICLES).round().astype(np.int64)
    x, before = start_points(prior, starts)
    paces = np.exp(PACE_SPREAD * rng.normal(size=len(x)))
    paths = x[:, None]
    while paths.shape[1] < length:
        chunk = min(CHUNK, length - paths.shape[1])
        more = simulate(prior, paths[:, -1], before=before, frames=chunk + 1, pace=paces).latents
        paths = np.concatenate([paths, more[:, 1:]], axis=1)
        order = np.argsort(_misfits(prior, paths, targets), kind="stable")
        if paths.shape[1] >= length:
            return paths[order[0]]
        parents = order[: max(1, round(KEPT * len(order)))]
        chosen = parents[np.arange(PARTICLES) % len(parents)]
        jitter = np.where(np.arange(PARTICLES) < len(parents), 0.0, PACE_JITTER)
        paces = paces[chosen] * np.exp(jitter * rng.normal(size=PARTICLES))
        paths, before = paths[chosen], paths[chosen][:, -2]
    return paths[0]


def _misfits(
    prior: DynamicsPrior, paths: Float[Array, "paths frames latent"], targets: Targets
) -> Float[Array, "paths"]:
    """Distance of each path's handles from their recent targets, with the path placed as well as possible."""
    count, end, size = paths.shape
    first = max(0, end - REMEMBERED)
    recent = targets.within(first / RATE, (end - 0.5) / RATE)
    if len(recent) == 0:
        return np.zeros(count)
    features = prior.predict_all(paths[:, first:].reshape(-1, size)).reshape(count, end - first, -1)
    at = np.clip(np.rint(recent.times * RATE).astype(np.int64) - first, 0, end - first - 1)
    left = []
    for own in features:
        places = _handle_places(prior, prior.poses_of(own), at, recent.handles)
        turn, shift = level_fits(places, recent.points, np.ones((1, len(at))))
        placed = _moved(places, np.repeat(turn, len(at)), np.repeat(shift, len(at), axis=0))
        left.append(float(np.linalg.norm(placed - recent.points, axis=1).mean()))
    return np.array(left)


def _handle_places(
    prior: DynamicsPrior, q: Float[Array, "frames size"], at: Int[Array, "targets"], handles: Handles
) -> Float[Array, "targets 3"]:
    """World positions of handles, each at its own frame."""
    positions, matrices = prior.space.forward(q)
    turned = np.einsum("tab,tb->ta", matrices[at, handles.joints], handles.offsets)
    return np.asarray(positions[at, handles.joints] + turned)


def level_fits(
    sources: Float[Array, "points 3"], goals: Float[Array, "points 3"], weights: Float[Array, "fits points"]
) -> tuple[Float[Array, "fits"], Float[Array, "fits 3"]]:
    """Rotations about the vertical and shifts over the floor that best align points with goals, per row of weights."""
    shares = weights / weights.sum(axis=1, keepdims=True)
    ground, wanted = sources[:, [0, 2]], goals[:, [0, 2]]
    middle, goal = shares @ ground, shares @ wanted
    dot = shares @ (ground * wanted).sum(axis=1) - (middle * goal).sum(axis=1)
    cross = shares @ (ground[:, 1] * wanted[:, 0] - ground[:, 0] * wanted[:, 1])
    cross -= middle[:, 1] * goal[:, 0] - middle[:, 0] * goal[:, 1]
    turns = np.unwrap(np.arctan2(cross, dot))
    still = np.column_stack([middle[:, 0], np.zeros(len(turns)), middle[:, 1]])
    moved = _moved(still, turns, np.zeros((len(turns), 3)))
    shifts = np.column_stack([goal[:, 0] - moved[:, 0], np.zeros(len(turns)), goal[:, 1] - moved[:, 2]])
    return turns, shifts


def _moved(points: Array, turns: Array, shifts: Array) -> Float[Array, "n 3"]:
    """Points, each rotated about the vertical and shifted."""
    sine, cosine = np.sin(turns), np.cos(turns)
    x, y, z = points.T
    return np.column_stack([cosine * x + sine * z, y, cosine * z - sine * x]) + shifts


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
