"""Hands that touch the floor, each other, a thigh or the head, and where that is on another body.

The palm touches what it is near and slow against for a while, as feet stand (`motion.contacts`). Its place on another
body is the same fraction of the same bone, at the same distance, scaled by the legs; on the floor, the same height.
Hands near each other keep the scaled way from one to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Bool, Float

from poise.geometry.splines import smoothstep
from poise.motion.contacts import resting
from poise.motion.gaps import runs
from poise.motion.motion import Motion
from poise.motion.world import derivative, joint_transforms
from poise.skeleton.measure import leg_length
from poise.skeleton.neutral import LEFT, neutral_pose
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

if TYPE_CHECKING:
    from poise.skeleton.pose_space import Handle

PALM = 0.05  # of stature, from the wrist

_FLOOR, _LIMB, _TRUNK, _HEAD, _HAND = (
    0.07,
    0.055,
    0.11,
    0.125,
    0.08,
)  # of stature: a palm that is nearer touches
_LEAVE = 1.25  # times that distance: a palm that is farther touches no more
_EASE, _CHANGE = 0.5, 0.15  # seconds in which a hand turns to what it touches, and from that to another thing


@dataclass(frozen=True, eq=False)
class PosedBody:
    """The joints and palms (left, right) of a motion, and the rotations of its pelvis."""

    skeleton: Skeleton
    positions: Float[Array, "frames joints 3"]
    palms: Float[Array, "2 frames 3"]
    turns: Float[Array, "frames 3 3"]

    @classmethod
    def of(cls, motion: Motion, palms: Sequence[Handle]) -> PosedBody:
        """Those of a motion."""
        positions, turns = joint_transforms(motion)
        joints = [motion.skeleton.index(palm.joint) for palm in palms]
        ways = [turns[:, joint] @ np.array(palm.offset) for joint, palm in zip(joints, palms, strict=True)]
        places = np.stack([positions[:, joint] + way for joint, way in zip(joints, ways, strict=True)])
        return cls(motion.skeleton, positions, places, turns[:, motion.skeleton.index("pelvis")])

    def at(self, role: str) -> Float[Array, "frames 3"]:
        """The positions of the joint with a role."""
        found: Array = self.positions[:, self.skeleton.index(role)]
        return found


@dataclass(frozen=True, eq=False)
class Touch:
    """A hand (0 is left) and one thing: when it touches it, and where its palm would be on another body."""

    hand: int
    thing: str
    touching: Bool[Array, "frames"]
    place: Callable[[PosedBody], Float[Array, "frames 3"]]


def palm_handles(
    skeleton: Skeleton, lengths: Sequence[float], samples: Float[Array, "frames joints 4"] | None = None
) -> list[Handle]:
    """The palms (left, right), at these distances from the wrists."""
    from poise.skeleton.pose_space import Handle

    neutral, found = neutral_pose(skeleton, samples), []
    for side, length, out in zip(SIDES, lengths, (LEFT, -LEFT), strict=True):
        hand = skeleton.index(f"{side}_hand")
        x, y, z = neutral.local(hand, length * out).tolist()
        found.append(Handle(skeleton.names[hand], (x, y, z)))
    return found


def hand_touches(source: Motion, *, ratio: float, floors: tuple[float, float]) -> list[Touch]:
    """Everything that hands touch; elsewhere lengths are `ratio` times as long. `floors` are heights here and there."""
    skeleton = source.skeleton
    there = PosedBody.of(source, palm_handles(skeleton, 2 * [PALM * skeleton.height], source.rotations))
    found = []
    for hand in range(2):
        for near in _near(there, hand, ratio, floors):
            close, far = (near.apart < near.reach * part * skeleton.height for part in (1.0, _LEAVE))
            touching = resting(
                close, ~far, derivative(near.away, source.fps), fps=source.fps, leg=leg_length(skeleton)
            )
            found += [Touch(hand, near.thing, touching, near.place)] if touching.any() else []
    return found


def palm_goals(
    touches: Sequence[Touch], start: PosedBody, now: PosedBody, fps: float
) -> Float[Array, "2 frames 3"]:
    """Where the palms go from where they start: to what they touch on the body as it is now, eased in between.

    Between touches, a palm is shifted as in the last and the next one, seen from the pelvis.
    """
    goals = start.palms.copy()
    for hand in {touch.hand for touch in touches}:
        own = [touch for touch in touches if touch.hand == hand]
        ways = [touch.place(now) - start.palms[hand] for touch in own]
        seen = [np.einsum("fba,fb->fa", now.turns, way) for way in ways]
        fading = [_eased(way, touch.touching, _CHANGE * fps) for touch, way in zip(own, seen, strict=True)]
        weights, shifts = zip(*fading, strict=True)
        mean = np.sum(shifts, axis=0) / np.maximum(np.sum(weights, axis=0), 1.0)[:, None]
        _, eased = _eased(mean, np.any([touch.touching for touch in own], axis=0), _EASE * fps)
        goals[hand] += np.einsum("fab,fb->fa", now.turns, eased)
    return goals


@dataclass(frozen=True, eq=False)
class _Near:
    """A hand and what it may touch: how far apart they are, and touch from how near (of stature)."""

    thing: str
    reach: float
    apart: Float[Array, "frames"]
    away: Float[Array, "frames 3"]  # from the thing's own point that is nearest
    place: Callable[[PosedBody], Float[Array, "frames 3"]]


def _near(there: PosedBody, hand: int, ratio: float, floors: tuple[float, float]) -> Iterator[_Near]:
    """Everything that a hand may touch."""
    palm = there.palms[hand]
    height = palm[:, 1] - floors[0]

    def on_the_floor(here: PosedBody) -> Float[Array, "frames 3"]:
        found = here.palms[hand].copy()
        found[:, 1] = ratio * height + floors[1]
        return found

    yield _Near("the floor", _FLOOR, height, palm, on_the_floor)
    apart = palm - there.palms[1 - hand]
    yield _Near(
        "the other hand", _HAND, np.linalg.norm(apart, axis=-1), apart,
        lambda here: here.palms.mean(axis=0) + 0.5 * ratio * apart,
    )  # fmt: skip
    bones = [(f"the {side} thigh", f"{side}_thigh", f"{side}_shin", _LIMB) for side in SIDES]
    trunk = (("the trunk", "pelvis", "head", _TRUNK), ("the head", "head", "head", _HEAD))
    for thing, top, end, reach in (*bones, *trunk):
        first, bone = there.at(top), there.at(end) - there.at(top)
        along = np.sum((palm - first) * bone, axis=-1) / np.maximum(np.sum(bone * bone, axis=-1), 1e-12)
        part = np.clip(along, 0.0, 1.0)[:, None]  # of the bone, where it is nearest
        away = palm - _between(there, top, end, part)

        def beside(
            here: PosedBody, top: str = top, end: str = end, part: Array = part, away: Array = ratio * away
        ) -> Float[Array, "frames 3"]:
            return _between(here, top, end, part) + away

        yield _Near(thing, reach, np.linalg.norm(away, axis=-1), away, beside)


def _between(body: PosedBody, top: str, end: str, part: Float[Array, "frames 1"]) -> Float[Array, "frames 3"]:
    return (1.0 - part) * body.at(top) + part * body.at(end)


def _eased(
    shift: Float[Array, "frames 3"], touching: Bool[Array, "frames"], ease: float
) -> tuple[Float[Array, "frames"], Float[Array, "frames 3"]]:
    """The weights and shifts of a palm: one and its own while it touches, else those of the last and next, fading."""
    weight, found = touching.astype(np.float64), np.where(touching[:, None], shift, 0.0)
    for gap in runs(~touching):
        ends, steps = (gap.start - 1, gap.stop), np.arange(1, gap.stop - gap.start + 1)
        inside = [0 <= end < len(touching) for end in ends]
        span = min(ease, len(steps) + 1) if all(inside) else ease
        for end, away in zip(np.array(ends)[inside], np.array([steps, steps[::-1]])[inside], strict=True):
            part = smoothstep(1.0 - away / span)
            weight[gap] += part
            found[gap] += part[:, None] * shift[end]
    return weight, found
