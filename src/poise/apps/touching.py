"""Hands that touch go on touching: the floor, each other, a leg or the head, on a body of other proportions.

The nearer a hand of the source is to one of these, the more the place it has there, scaled, counts against the place
that rotations alone give it; arms then follow by the smallest change that meets it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from poise.apps.planting import following, metric_of
from poise.geometry import rotations
from poise.geometry.splines import smoothstep
from poise.motion.motion import Motion
from poise.motion.world import joint_transforms
from poise.skeleton.roles import SIDES, path
from poise.skeleton.skeleton import Skeleton
from poise.solvers.constraints import transform
from poise.types import Array, Progress

# Distances from the wrist, of stature: nearer than the first it touches, farther than the second it does not.
_FLOOR, _LIMB, _HEAD, _HAND = (0.04, 0.07), (0.055, 0.085), (0.09, 0.12), (0.07, 0.11)


def touched(
    motion: Motion,
    source: Motion,
    *,
    ratio: float,
    floors: tuple[float, float],
    progress: Progress = lambda _done, _all: None,
) -> Motion:
    """The motion with hands where the source's touch something; `floors` are heights in the source and here."""
    theirs, (ours, turns) = joint_transforms(source)[0], joint_transforms(motion)
    goals = {}
    for side in SIDES:
        pulls = list(_pulls(source.skeleton, theirs, motion.skeleton, ours, side, ratio, floors))
        total = sum(weight for weight, _ in pulls)
        if np.any(total > 0):
            pull = sum(weight[:, None] * way for weight, way in pulls) / np.maximum(total, 1.0)[:, None]
            hand = motion.skeleton.index(f"{side}_hand")
            goals[motion.skeleton.names[hand]] = (
                ours[:, hand] + pull, rotations.quaternion_from_matrix(turns[:, hand]),
            )  # fmt: skip
    if not goals:
        return motion
    return following(
        motion,
        lambda frame: [
            c for name, (at, turn) in goals.items() for c in transform(name, at[frame], turn[frame])
        ],
        _arm_metric(motion.skeleton),
        progress,
    )


def _pulls(
    source: Skeleton,
    theirs: Float[Array, "frames _ 3"],
    target: Skeleton,
    ours: Float[Array, "frames joints 3"],
    side: str,
    ratio: float,
    floors: tuple[float, float],
) -> Iterator[tuple[Float[Array, "frames"], Float[Array, "frames 3"]]]:
    """For everything a hand may touch: how much it does, and the way to where it would touch it."""
    stature, other = source.height, next(one for one in SIDES if one != side)
    hand, own = theirs[:, source.index(f"{side}_hand")], ours[:, target.index(f"{side}_hand")]

    def nearness(distance: Array, reach: tuple[float, float]) -> Float[Array, "frames"]:
        near, far = (stature * part for part in reach)
        return smoothstep((far - distance) / (far - near))

    up = np.array([0.0, 1.0, 0.0])
    height = hand[:, 1] - floors[0]
    yield nearness(height, _FLOOR), (ratio * height + floors[1] - own[:, 1])[:, None] * up
    apart = hand - theirs[:, source.index(f"{other}_hand")]
    here = own - ours[:, target.index(f"{other}_hand")]
    yield nearness(np.linalg.norm(apart, axis=-1), _HAND), 0.5 * (ratio * apart - here)
    bones = [(f"{one}_thigh", f"{one}_shin", _LIMB) for one in SIDES] + [("head", "head", _HEAD)]
    for top, end, reach in bones:
        ends = [theirs[:, source.index(role)] for role in (top, end)]
        part = _nearest_part(hand, *ends)
        away = hand - ends[0] - part * (ends[1] - ends[0])
        first, last = (ours[:, target.index(role)] for role in (top, end))
        at = first + part * (last - first)
        yield nearness(np.linalg.norm(away, axis=-1), reach), at + ratio * away - own


def _nearest_part(
    point: Float[Array, "frames 3"], first: Float[Array, "frames 3"], last: Float[Array, "frames 3"]
) -> Float[Array, "frames 1"]:
    """How far along a bone its nearest point to another point is, from 0 to 1."""
    bone = last - first
    along = np.sum((point - first) * bone, axis=-1) / np.maximum(np.sum(bone * bone, axis=-1), 1e-12)
    return np.clip(along, 0.0, 1.0)[:, None]


def _arm_metric(skeleton: Skeleton) -> Float[Array, "freedoms"]:
    arms = [
        path(skeleton, skeleton.index(f"{side}_upper_arm"), skeleton.index(f"{side}_hand")) for side in SIDES
    ]
    return metric_of(skeleton, {joint for arm in arms for joint in arm})
