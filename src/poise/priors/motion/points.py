"""The motion prior from oriented points at some frames, such as feet where they stand.

The network's base is the neutral pose, which goes from where one point has it to where the next one has it; the points
themselves, and which feet stand, are given beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy.interpolate import CubicSpline

from poise.geometry import rotations
from poise.motion.contacts import foot_joints
from poise.motion.gaps import runs
from poise.motion.motion import Motion
from poise.priors.motion.carrying import HANDLES_AT, Carrier, Change, Frames, given_handles, neutral_points
from poise.priors.motion.layout import HANDLES
from poise.priors.motion.network import LONGEST, RATE, KeyedFrames, expected, lines
from poise.priors.motion.prior import Between, MotionPrior
from poise.priors.terms import Targets, Term, Unknowns
from poise.priors.universal.layout import JOINTS
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.roles import SIDES
from poise.types import Array

HEEL, TOES = 0, 1
_UPRIGHT = np.array([1.0, 0.0, 1.0, 0.0])


@dataclass(frozen=True, eq=False)
class BetweenStances:
    """A model of one motion: from stance to stance as the motion prior expects it."""

    prior: MotionPrior
    expected: Between
    space: PoseSpace

    def motion_start(
        self, targets: Targets, *, frames: int, fps: float, rng: np.random.Generator
    ) -> Unknowns:
        """The expected motion."""
        del targets, frames, fps, rng
        motion = self.expected.motion
        return Unknowns(self.space.q_from_frames(motion.root_positions, motion.rotations))

    def motion_terms(self, targets: Targets, *, frames: int, fps: float) -> Sequence[Term]:
        """The Gaussian around it."""
        del targets, frames, fps
        return self.prior.terms(self.expected, self.space)


def stepping(space: PoseSpace, targets: Targets, *, frames: int, fps: float) -> BetweenStances | None:
    """How people move between these stances; None without a foot whose heel and toes stand.

    A foot is flat from when its toes are down until half of the time that they are; then the heel rises.
    """
    if not {f"{side}_foot" for side in SIDES} <= set(space.skeleton.roles):
        return None
    prior = MotionPrior(space.skeleton)
    rest, upright = neutral_points(prior.carrier)
    at = np.rint(targets.times * fps).astype(int)
    seen, standing = np.full((frames, len(HANDLES), 7), np.nan), np.zeros((frames, 2), dtype=np.bool_)
    for number, side in enumerate(SIDES):
        points = np.full((frames, 2, 3), np.nan)
        for point, joint in enumerate(foot_joints(space.skeleton, side)):
            own = targets.handles.joints == joint
            points[at[own], point] = targets.points[own]
        down, foot = np.isfinite(points).all(axis=-1), HANDLES.index(f"{side.capitalize()}Foot")
        standing[:, number] = down.any(axis=-1)
        lever = rest[JOINTS.index(f"{side.capitalize()}ToeBase")] - rest[HANDLES_AT[foot]]
        for stance in runs(standing[:, number]):
            flat = stance.start + np.flatnonzero(down[stance, TOES])
            if len(flat) and down[stance, HEEL].any():
                flat = flat[: max(1, len(flat) // 2)]
                ahead = np.nanmean(points[stance, TOES], axis=0) - np.nanmean(points[stance, HEEL], axis=0)
                yaw = np.arctan2(ahead[0], ahead[2]) - np.arctan2(lever[0], lever[2])
                turn = rotations.quaternion_from_expmap(np.array([0.0, yaw, 0.0]))
                seen[flat, foot, :3] = points[flat, TOES] - rotations.rotate(turn, lever)
                seen[flat, foot, 3:] = rotations.multiply(turn, upright[foot])
    found = through_points(prior, seen, standing, fps=fps)
    return None if found is None else BetweenStances(prior, found, space)


def through_points(
    prior: MotionPrior,
    seen: Float[Array, "frames handles 7"],
    standing: Bool[Array, "frames 2"],
    *,
    fps: float,
) -> Between | None:
    """The motion through canonical points (NaN where they are not given), with feet that are known to stand or not.

    None if no point is given: then nothing says where the body is.
    """
    carrier = prior.carrier
    grid = np.arange(0.0, len(seen) - 1 + 1e-9, fps / RATE)
    nearest, count = np.rint(grid).astype(int), len(grid)
    path = _path(carrier, seen, grid)
    if path is None or count < 2:
        return None
    roots, yaws = path
    base = Frames(roots, np.tile(carrier.still, (count, 1, 1)))
    base.turns[:, 0] = rotations.multiply(yaws, base.turns[:, 0])
    every = np.ones(count, dtype=np.bool_)
    handles = given_handles(carrier, roots, yaws, seen[nearest])
    contacts = np.concatenate([np.ones((count, 2)), standing[nearest]], axis=-1)
    timeline = KeyedFrames(base, every, ~every, handles, np.zeros((count, 3)), contacts)
    half = LONGEST // 2
    windows = [(first, min(first + LONGEST, count)) for first in range(0, max(count - half, 1), half)]
    found = expected(timeline, carrier, prior.weights, windows)

    when = np.minimum(np.arange(len(seen)) * (RATE / fps), count - 1)

    def curve(part: Array) -> Array:
        return np.asarray(CubicSpline(np.arange(count), part)(when))

    neutral = carrier.neutral(curve(roots), rotations.normalize(curve(base.turns[:, 0])))
    motion = Motion(prior.skeleton, fps, *carrier.added(neutral, Change(*map(curve, found.residual))))
    parts = (found.contacts, found.root_spread, found.point_spread, found.turn_spread)
    return Between(
        motion, np.zeros(0, dtype=np.int64), *(lines(when, np.arange(count), part) for part in parts)
    )


def _path(
    carrier: Carrier, seen: Float[Array, "frames handles 7"], grid: Float[Array, "steps"]
) -> tuple[Float[Array, "steps 3"], Float[Array, "steps 4"]] | None:
    """The neutral body's root and heading: the mean over the points of the lines between where each of them has it."""
    rest, upright = neutral_points(carrier)
    roots, yaws = [], []
    for number, at in enumerate(HANDLES_AT):
        known = np.flatnonzero(np.isfinite(seen[:, number]).all(axis=-1))
        if len(known):
            level = (
                rotations.multiply(seen[known, number, 3:], rotations.conjugate(upright[number])) * _UPRIGHT
            )
            yaw = rotations.normalize(level + np.array([1e-12, 0.0, 0.0, 0.0]))
            root = seen[known, number, :3] - rotations.rotate(yaw, rest[at])
            roots.append(lines(grid, known, root))
            yaws.append(np.interp(grid, known, np.unwrap(2.0 * np.arctan2(yaw[:, 2], yaw[:, 0]))))
    if not roots:
        return None
    half = np.angle(np.exp(1j * np.array(yaws)).mean(axis=0)) / 2
    none = np.zeros(len(grid))
    turned = np.stack([np.cos(half), none, np.sin(half), none], axis=-1)
    return np.mean(roots, axis=0), rotations.continuous(turned)
