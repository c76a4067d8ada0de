"""Foot contacts: a foot stands when it is low and slow, with hysteresis, at thresholds that scale with the body.

Each foot has two points, the heel (below and behind the ankle) and the base of the toes. Lengths scale with stature
and speeds with the square root of gravity times leg length, as walking does (Alexander 1989, "Optimization and gaits
in the locomotion of vertebrates"), so that the thresholds suit all body sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.errors import SkeletonError
from poise.motion.motion import Motion
from poise.motion.world import derivative, joint_transforms
from poise.skeleton.measure import leg_length
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Skeleton, read_only
from poise.types import Array

if TYPE_CHECKING:
    from poise.skeleton.pose_space import Handle


_ENTER_HEIGHT, _LEAVE_HEIGHT = 0.020, 0.035  # of stature, above the point's standing height
_ENTER_SPEED, _LEAVE_SPEED = 0.12, 0.25  # of the square root of gravity times leg length
_HEEL = (0.0, -0.035, -0.040)  # relative to the ankle: left, up and forward, of stature
_STANDING = 0.035  # of stature: largest height of a standing foot's point above the lowest one
_EXPECTILE = 0.02  # weight of a point above the floor's plane relative to one below it
_TELLING_WAY = 0.2  # metres: smallest spread of the feet for an estimate of the floor's slope
_STEEPEST = 0.06
_SHORTEST = 0.06  # seconds: shortest contact, or break in one
_SLOW = 30.0  # Hz: up to this rate, a mean over 50 ms would hide brief contacts
_HAND_STILL, _BODY_MOVES = 0.025, 0.05  # as the speeds above: a hand at rest, and a body that moves meanwhile
_HAND_SHORTEST = 0.2  # seconds: shortest contact of a hand, a knee or the seat
_KNEE, _SEAT, _LAP = (
    0.05,
    0.36,
    0.12,
)  # of stature: highest knee on the floor, highest hips of a body that sits, over the knees
_GRAVITY = 9.81


@dataclass(frozen=True, eq=False)
class Contacts:
    """Per frame, which feet (left, right) and which of their points (heel, toes) stand; and the floor's height."""

    feet: Bool[Array, "frames 2"]
    points: Bool[Array, "frames 2 2"]
    floor: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "feet", read_only(self.feet, dtype=np.bool_))
        object.__setattr__(self, "points", read_only(self.points, dtype=np.bool_))

    @property
    def left(self) -> Bool[Array, "frames"]:
        """Whether the left foot stands."""
        return self.feet[:, 0]

    @property
    def right(self) -> Bool[Array, "frames"]:
        """Whether the right foot stands."""
        return self.feet[:, 1]

    def landings(self, side: int) -> Int[Array, "landings"]:
        """The landing frames of the left (0) or right (1) foot, without a contact that is there at the start."""
        feet = self.feet[:, side]
        return np.flatnonzero(feet[1:] & ~feet[:-1]) + 1


def foot_contacts(motion: Motion, *, floor: float | None = None, brief: bool = False) -> Contacts:
    """Which feet stand on the floor in each frame; by default the floor's height is estimated from the motion.

    With `brief`, velocities at 30 frames a second or fewer are not averaged: the short contacts of a run are found,
    but noise may interrupt others.
    """
    points = foot_positions(motion)
    ground = _ground_below(points) if floor is None else np.full(points.shape[:-1], floor)
    stature = motion.skeleton.height
    above = points[..., 1] - ground
    lowest = np.percentile(above, 5.0, axis=0)  # the standing height of each point, if plausible for a foot
    height = above - np.minimum(lowest, lowest.min() + _STANDING * stature)
    standing = resting(
        height < _ENTER_HEIGHT * stature, height > _LEAVE_HEIGHT * stature, derivative(points, motion.fps),
        fps=motion.fps, leg=leg_length(motion.skeleton), brief=brief,
    )  # fmt: skip
    feet = standing[..., 0] | standing[..., 1]
    return Contacts(feet, standing, _floor_of(points) if floor is None else floor)


def resting(
    near: Bool[Array, "frames *n"],
    far: Bool[Array, "frames *n"],
    velocity: Float[Array, "frames *n 3"],
    *,
    fps: float,
    leg: float,
    brief: bool = False,
) -> Bool[Array, "frames *n"]:
    """Where points rest on something: from near and slow until far or fast; velocities are relative to it.

    `leg` is the length of the body's legs. Short breaks are closed, then short contacts are dropped.
    """
    if not (brief and fps <= _SLOW):
        velocity = _smoothed(velocity, fps)
    speed, scale = np.linalg.norm(velocity, axis=-1), np.sqrt(_GRAVITY * max(leg, 1e-6))
    found = _held(near & (speed < _ENTER_SPEED * scale), far | (speed > _LEAVE_SPEED * scale))
    flat = found.reshape(len(found), -1)
    for fill in (True, False):
        runs = [_without_short_runs(column, fill, round(_SHORTEST * fps)) for column in flat.T]
        flat = np.stack(runs, axis=-1)
    return flat.reshape(found.shape)


def hand_contacts(motion: Motion) -> Bool[Array, "frames 2"]:
    """Whether the left and the right hand hold on to something: they rest for a while and the body moves."""
    skeleton = motion.skeleton
    joints = [skeleton.index(f"{side}_hand") for side in SIDES]
    positions, _ = joint_transforms(motion)
    pace = np.linalg.norm(_smoothed(derivative(positions[:, [0, *joints]], motion.fps), motion.fps), axis=-1)
    scale = np.sqrt(_GRAVITY * max(leg_length(skeleton), 1e-6))
    still = _held(pace[:, 1:] < _HAND_STILL * scale, pace[:, 1:] > 2.0 * _HAND_STILL * scale)
    shortest = max(round(_HAND_SHORTEST * motion.fps), 1)
    runs = np.stack([_without_short_runs(hand, False, shortest) for hand in still.T], axis=-1)
    kept = np.zeros_like(runs)
    for column in range(
        runs.shape[1]
    ):  # the runs during which the body moves for a while, and the hand does not
        moves = (pace[:, 0] > _BODY_MOVES * scale) & (pace[:, 1 + column] < _HAND_STILL * scale)
        number = np.cumsum(np.diff(runs[:, column], prepend=False) & runs[:, column])
        telling = np.bincount(number[runs[:, column] & moves], minlength=number[-1] + 1)
        kept[:, column] = runs[:, column] & (telling[number] >= max(shortest // 2, 1))
    return kept


def low_contacts(motion: Motion) -> dict[str, Bool[Array, "frames"]]:
    """Whether the knees are on the floor and the seat on something, by role: they are low and slow for a while."""
    skeleton, found = motion.skeleton, {}
    positions, _ = joint_transforms(motion)
    stature, leg = skeleton.height, leg_length(skeleton)
    above = positions - np.array([0.0, floor_height(motion), 0.0])
    shortest = max(round(_HAND_SHORTEST * motion.fps), 1)
    knees = [role for role in ("left_shin", "right_shin") if role in skeleton.roles]
    for role in (*knees, "pelvis"):
        if role not in skeleton.roles or not knees:
            continue
        own = above[:, skeleton.index(role)]
        height = own[:, 1] / stature
        if role == "pelvis":  # sitting: about as high as the knees
            lift = height - above[:, [skeleton.index(knee) for knee in knees], 1].mean(axis=1) / stature
            near, far = (height < _SEAT) & (lift < _LAP), (height > 1.1 * _SEAT) | (lift > 1.3 * _LAP)
        else:
            near, far = height < _KNEE, height > 1.5 * _KNEE
        rests = resting(near, far, derivative(own, motion.fps), fps=motion.fps, leg=leg)
        found[role] = _without_short_runs(rests, False, shortest)
    return found


def floor_height(motion: Motion) -> float:
    """The height of the floor: that of the lowest foot at its lowest, without outliers."""
    return _floor_of(foot_positions(motion))


def foot_positions(motion: Motion) -> Float[Array, "frames 2 2 3"]:
    """Per frame and side (left, right), the heel and the base of the toes in the world."""
    joints = np.array([foot_joints(motion.skeleton, side) for side in SIDES])
    positions, turns = joint_transforms(motion)
    neutral = neutral_pose(motion.skeleton, motion.rotations)
    to_heel = motion.skeleton.height * np.array(_HEEL)
    points = positions[:, joints]
    for side, foot in enumerate(joints[:, 0].tolist()):
        points[:, side, 0] += turns[:, foot] @ neutral.local(foot, to_heel)
    return points


def foot_handles(skeleton: Skeleton) -> list[Handle]:
    """The same points as handles on their joints: left heel and toes, then right ones."""
    from poise.skeleton.pose_space import Handle

    neutral, found = neutral_pose(skeleton), []
    for side in SIDES:
        ankle, toes = foot_joints(skeleton, side)
        x, y, z = neutral.local(ankle, skeleton.height * np.array(_HEEL)).tolist()
        found += [Handle(skeleton.names[ankle], (x, y, z)), Handle(skeleton.names[toes])]
    return found


def foot_slide(motion: Motion, contacts: Contacts) -> Float[Array, "frames 2"]:
    """Foot slide: horizontal speed of each standing foot in metres per second (its slower point); zero in the air."""
    speed = np.linalg.norm(derivative(foot_positions(motion)[..., [0, 2]], motion.fps), axis=-1)
    slowest: Array = np.where(contacts.points, speed, np.inf).min(axis=-1)
    return np.where(contacts.feet, slowest, 0.0)


def foot_joints(skeleton: Skeleton, side: str) -> list[int]:
    """The ankle and the base of the toes, or the longest child of the foot; the ankle twice if there is none."""
    if f"{side}_foot" not in skeleton.roles:
        raise SkeletonError(
            f"foot contacts need the role '{side}_foot'; assign it with skeleton.with_roles(...)"
        )
    foot = skeleton.index(f"{side}_foot")
    if f"{side}_toes" in skeleton.roles:
        return [foot, skeleton.index(f"{side}_toes")]
    below = [child for child in skeleton.children[foot] if np.any(skeleton.offsets[child])]
    return [foot, max(below, key=lambda child: float(np.linalg.norm(skeleton.offsets[child])), default=foot)]


def _floor_of(points: Float[Array, "frames 2 2 3"]) -> float:
    return float(np.percentile(points[..., 1].min(axis=(1, 2)), 2.0))


def _ground_below(points: Float[Array, "frames 2 2 3"]) -> Float[Array, "frames 2 2"]:
    """The height of the floor below each point: a plane under the feet, since recordings are often slightly tilted.

    An expectile regression (Newey and Powell 1987) of the lowest point's height on its position, so that the plane is
    below nearly all points; the slope is zero if the feet do not travel far enough to estimate it.
    """
    flat = points.reshape(len(points), 4, 3)
    low = np.take_along_axis(flat, flat[..., 1].argmin(axis=1)[:, None, None], axis=1)[:, 0]
    middle = low.mean(axis=0)
    design = np.column_stack([np.ones(len(low)), low[:, 0] - middle[0], low[:, 2] - middle[2]])
    plane = np.array([low[:, 1].min(), 0.0, 0.0])
    for _ in range(20):
        weight = np.where(low[:, 1] < design @ plane, 1.0 - _EXPECTILE, _EXPECTILE) / len(low)
        hold = np.diag([0.0, 1.0, 1.0]) * weight.sum() * _TELLING_WAY**2
        plane = np.linalg.solve(design.T @ (weight[:, None] * design) + hold, design.T @ (weight * low[:, 1]))
    slope = np.clip(plane[1:], -_STEEPEST, _STEEPEST)
    ground: Array = plane[0] + (points[..., [0, 2]] - middle[[0, 2]]) @ slope
    return ground


def _smoothed(values: Float[Array, "frames *n"], fps: float) -> Float[Array, "frames *n"]:
    """A moving mean over 50 ms, so that the noise of fast cameras does not interrupt a contact."""
    half = round(0.025 * fps)
    if half == 0 or len(values) < 2:
        return values
    ends = (np.repeat(values[:1], half, axis=0), values, np.repeat(values[-1:], half, axis=0))
    total = np.cumsum(np.concatenate([np.zeros_like(values[:1]), *ends]), axis=0)
    width = 2 * half + 1
    mean: Array = (total[width:] - total[:-width]) / width
    return mean


def _held(on: Bool[Array, "frames *n"], off: Bool[Array, "frames *n"]) -> Bool[Array, "frames *n"]:
    """Hysteresis: true from a frame in `on` until one in `off`; before both, as at the first of either."""
    decided = on | off
    frames = np.arange(len(on)).reshape(-1, *[1] * (on.ndim - 1))
    last = np.maximum.accumulate(np.where(decided, frames, -1), axis=0)
    last = np.where(last < 0, np.argmax(decided, axis=0), last)
    held: Array = np.take_along_axis(on & ~off, last, axis=0)
    return held


def _without_short_runs(flags: Bool[Array, "frames"], fill: bool, shortest: int) -> Bool[Array, "frames"]:
    """Runs of `not fill` that are too short, and end inside the clip, become `fill`."""
    edges = np.flatnonzero(np.diff(flags)) + 1
    starts, ends = np.concatenate([[0], edges]), np.concatenate([edges, [len(flags)]])
    inside = (starts > 0) & (ends < len(flags))
    short = (ends - starts < shortest) & (flags[starts] != fill) & inside
    change = np.zeros(len(flags) + 1, dtype=np.int64)
    np.add.at(change, starts[short], 1)
    np.add.at(change, ends[short], -1)
    return np.where(np.cumsum(change[:-1]) > 0, fill, flags)
