"""Initial guess for a whole motion: simulations from training points, of which the closest to the targets is kept.

The paper samples the model from each training point and keeps the closest (section 5.2). Over a longer motion a
simulation loses the beat. Here many run in parallel at different paces, and at regular intervals the closest ones are
continued and the others dropped (a particle filter). The root path is then aligned: at each frame the whole path is
rotated and shifted over the floor to fit the constraints around that time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from poise.geometry import rotations
from poise.priors.dynamics.sequences import RATE
from poise.priors.dynamics.simulation import resampled, simulate, start_points
from poise.priors.terms import Targets, Unknowns
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import Handles
from poise.types import Array

if TYPE_CHECKING:
    from poise.priors.dynamics.prior import DynamicsPrior

PARTICLES = 100
CHUNK = 24  # frames at 30 Hz between two selections of the closest simulations
KEPT = 0.15  # fraction of the simulations that are continued
REMEMBERED = 75  # frames at 30 Hz over which the distance to the targets is measured
PACE_SPREAD = 0.12  # relative spread of the simulations' paces
PACE_JITTER = 0.05  # relative change of pace when a simulation is continued
AROUND = 0.6  # seconds: window around a frame whose targets align its root


def motion_start(
    prior: DynamicsPrior, targets: Targets, *, frames: int, fps: float, rng: np.random.Generator
) -> Unknowns:
    """Return poses and latent points near the targets."""
    path = _closest_path(prior, targets, int(np.ceil(frames / fps * RATE)) + 2, rng)
    x = resampled(path, fps)[:frames]
    q = prior.poses_of(prior.predict_all(x), fps=fps)
    return Unknowns(_led(prior, q, targets, fps), np.ascontiguousarray(x))


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
    end = paths.shape[1]
    first = max(0, end - REMEMBERED)
    recent = targets.within(first / RATE, (end - 0.5) / RATE)
    if len(recent) == 0:
        return np.zeros(len(paths))
    features = prior.predict_all(paths[:, first:].reshape(-1, paths.shape[2])).reshape(
        len(paths), end - first, -1
    )
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


def _led(
    prior: DynamicsPrior, q: Float[Array, "frames size"], targets: Targets, fps: float
) -> Float[Array, "frames size"]:
    """Rotate and shift the path over the floor at each frame, to fit the targets around it."""
    if len(targets) == 0:
        return q
    times = np.arange(len(q)) / fps
    at = np.clip(np.rint(targets.times * fps).astype(np.int64), 0, len(q) - 1)
    gaps = (times[:, None] - targets.times) / AROUND
    nearness = np.exp(-0.5 * gaps**2) + 1e-6 / (1.0 + gaps**2)
    turns, shifts = level_fits(_handle_places(prior, q, at, targets.handles), targets.points, nearness)
    out = q.copy()
    out[:, :3] = _moved(q[:, :3], turns, shifts)
    about_up = rotations.quaternion_from_expmap(np.multiply.outer(turns, np.array([0.0, 1.0, 0.0])))
    out[:, 3:ROOT_SIZE] = rotations.multiply(about_up, q[:, 3:ROOT_SIZE])
    return out


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


def _moved(
    points: Float[Array, "n 3"], turns: Float[Array, "n"], shifts: Float[Array, "n 3"]
) -> Float[Array, "n 3"]:
    sine, cosine = np.sin(turns), np.cos(turns)
    x, y, z = points.T
    return np.column_stack([cosine * x + sine * z, y, cosine * z - sine * x]) + shifts
