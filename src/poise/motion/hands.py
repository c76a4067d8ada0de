"""Hand shapes: relaxed, fist, flat and pointing hands, on the fingers that a body has or on fingers made for it.

Lengths of made fingers are proportions of the hand's segments (Buryanov and Kotiuk 2010). A finger bends about the axis
across the palm, the thumb towards the palm; the angles of the shapes are chosen by eye.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from poise.errors import UnknownNameError
from poise.geometry import rotations
from poise.motion.carrying import finger_joints
from poise.motion.motion import Motion
from poise.skeleton.neutral import FORWARD, neutral_pose
from poise.skeleton.roles import SIDES, subtree
from poise.skeleton.skeleton import Skeleton, kept_for_body, read_only
from poise.types import Array

Shares = Mapping[str, float]
"""Of shapes in a hand; the rest to one is the hand as it is, or relaxed where fingers are made."""

# Degrees by which the segments of a finger bend, from the hand outwards.
_STRAIGHT = (0, 0, 0)
_CURLED = {"middle": (88, 100, 62), "ring": (90, 100, 62), "little": (90, 98, 60)}
_BENDS: dict[str, dict[str, tuple[float, float, float]]] = {
    "relaxed": {
        "thumb": (8, 12, 15), "index": (18, 26, 14), "middle": (24, 32, 17),
        "ring": (28, 36, 19), "little": (30, 36, 19),
    },
    "fist": {"thumb": (38, 34, 52), "index": (84, 98, 60), **_CURLED},
    "flat": dict.fromkeys(("thumb", "index", "middle", "ring", "little"), _STRAIGHT),
    "point": {"thumb": (34, 34, 50), "index": (2, 4, 2), **_CURLED},
}  # fmt: skip
HAND_SHAPES = tuple(_BENDS)
RELAXED = "relaxed"

_LENGTH = 0.108  # of stature: a hand without an end (Drillis and Contini 1966)
# Of the hand's length: the place of the first joint along the hand and towards the thumb, and the segments' lengths.
_FINGERS: dict[str, tuple[tuple[float, float], tuple[float, float, float], float]] = {
    "thumb": ((0.14, 0.12), (0.245, 0.168, 0.135), 36.0),
    "index": ((0.50, 0.145), (0.211, 0.119, 0.104), 3.0),
    "middle": ((0.515, 0.035), (0.237, 0.140, 0.113), 0.0),
    "ring": ((0.49, -0.070), (0.220, 0.136, 0.113), -3.0),
    "little": ((0.45, -0.165), (0.174, 0.096, 0.105), -7.0),
}  # and the angle to the hand, towards the thumb, in degrees
_THUMB_BELOW = 20.0  # degrees of the thumb below the palm
_THUMB_ACROSS = np.array(
    [0.25, -0.75, 0.6]
)  # along the hand, to the thumb, out of the palm: where the thumb bends to


@kept_for_body
def with_fingers(skeleton: Skeleton) -> Skeleton:
    """The same body with three joints for each finger of a hand without any; they come last, their ends after them."""
    bare = [side for side in SIDES if _is_bare(skeleton, side)]
    if not bare:
        return skeleton
    names, parents = list(skeleton.names), skeleton.parents.tolist()
    offsets, orders = skeleton.offsets.tolist(), list(skeleton.orders)
    ends: list[tuple[str, int, list[float]]] = []
    for side in bare:
        hand = skeleton.index(f"{side}_hand")
        frame, length = _hand_frame(skeleton, side)
        for finger, ((along, across), lengths, angle) in _FINGERS.items():
            turn, below = np.radians(angle), np.radians(_THUMB_BELOW if finger == "thumb" else 0.0)
            way = np.array([np.cos(turn) * np.cos(below), np.sin(turn) * np.cos(below), np.sin(below)])
            offset, parent = length * np.array([along, across, 0.0]), hand
            for number, segment in enumerate(lengths, start=1):
                names.append(f"{side.capitalize()}Hand{finger.capitalize()}{number}")
                parents.append(parent)
                offsets.append((frame @ offset).tolist())
                orders.append("ZYX")
                parent, offset = len(names) - 1, length * segment * way
            ends.append((f"{names[-1]}_end", parent, (frame @ offset).tolist()))
    for name, parent, end in ends:
        names.append(name)
        parents.append(parent)
        offsets.append(end)
        orders.append("")
    roles = dict(skeleton.roles)
    return Skeleton(tuple(names), np.array(parents), np.array(offsets), tuple(orders), None, roles)


def shown_joints(skeleton: Skeleton) -> int:
    """The joints of the body with fingers that turn or are its own: without the ends of made fingers."""
    made = len(with_fingers(skeleton)) - len(skeleton)
    return len(skeleton) + made * 3 // 4


def in_shape(motion: Motion, hands: Mapping[str, Float[Array, "frames shapes"]]) -> Motion:
    """A motion with fingers, by side the shares of the shapes in every frame; other hands are as they are."""
    body = _hands_of(motion.skeleton)
    made = len(body.skeleton) - len(motion.skeleton)
    if not body.fingers or not (made or any(shares.any() for shares in hands.values())):
        return motion
    still = np.tile(rotations.IDENTITY, (len(motion), made, 1))
    turns = np.concatenate([motion.rotations, still], axis=1)
    for side, (joints, bends) in body.fingers.items():
        shares = hands.get(side, np.zeros((len(motion), len(HAND_SHAPES))))
        own = turns[:, joints]
        if joints[0] >= len(motion.skeleton):
            own = np.broadcast_to(bends[HAND_SHAPES.index(RELAXED)], own.shape)
        mixed = np.maximum(1.0 - shares.sum(axis=1), 0.0)[:, None, None] * own
        for number, bend in enumerate(bends):
            alike = np.where((bend * own).sum(axis=-1, keepdims=True) < 0.0, -1.0, 1.0)
            mixed = mixed + shares[:, number, None, None] * alike * bend
        turns[:, joints] = rotations.normalize(mixed)
    return Motion(body.skeleton, motion.fps, motion.root_positions, turns, motion.name, motion.origin)


def as_array(shares: Shares) -> Float[Array, "shapes"]:
    """Shares of shapes in their order."""
    if unknown := set(shares) - set(HAND_SHAPES):
        raise UnknownNameError("hand shape", min(unknown), HAND_SHAPES)
    return np.array([shares.get(shape, 0.0) for shape in HAND_SHAPES])


@dataclass(frozen=True, eq=False)
class _Hands:
    """A body with fingers; by side, their joints and, per shape, their rotations."""

    skeleton: Skeleton

    @cached_property
    def fingers(self) -> dict[str, tuple[Int[Array, "fingers"], Float[Array, "shapes fingers 4"]]]:
        """The joints of the fingers, and their rotations in each shape."""
        found = {}
        known = finger_joints(self.skeleton)
        neutral = neutral_pose(self.skeleton)
        for side in SIDES:
            own = {
                (name, part): joint for (at, name, part), joint in known.items() if at == side and part <= 3
            }
            if own:
                frame, _ = _hand_frame(self.skeleton, side)
                axes = neutral.world[self.skeleton.index(f"{side}_hand")] @ frame
                bends = [
                    [
                        self._bent(joint, name, bend[name][part - 1], axes)
                        for (name, part), joint in own.items()
                    ]
                    for bend in _BENDS.values()
                ]
                found[side] = np.array(list(own.values())), read_only(bends)
        return found

    def _bent(self, joint: int, finger: str, degrees: float, axes: Float[Array, "3 3"]) -> Float[Array, "4"]:
        """The rotation of a finger's joint that is bent from the neutral pose; `axes` are the hand's in the world."""
        neutral = neutral_pose(self.skeleton)
        bone = neutral.world[joint] @ self.skeleton.bone_end(joint)
        towards = axes @ (_THUMB_ACROSS if finger == "thumb" else np.array([0.0, 0.0, 1.0]))
        axis = np.cross(bone if bone.any() else axes[:, 0], towards)
        turn = rotations.quaternion_from_expmap(
            neutral.local(joint, axis / max(float(np.linalg.norm(axis)), 1e-12)) * np.radians(degrees)
        )
        return rotations.multiply(neutral.rotations[joint], turn)


@kept_for_body
def _hands_of(skeleton: Skeleton) -> _Hands:
    return _Hands(with_fingers(skeleton))


def _is_bare(skeleton: Skeleton, side: str) -> bool:
    if f"{side}_hand" not in skeleton.roles:
        return False
    below = subtree(skeleton, skeleton.index(f"{side}_hand"))[1:]
    return all(skeleton.is_end_site[joint] for joint in below)


def _hand_frame(skeleton: Skeleton, side: str) -> tuple[Float[Array, "3 3"], float]:
    """The hand's axes in its own frame, as columns (along it, towards the thumb, out of the palm), and its length."""
    hand, neutral = skeleton.index(f"{side}_hand"), neutral_pose(skeleton)
    known = {
        name: joint for (at, name, part), joint in finger_joints(skeleton).items() if at == side and part == 1
    }
    fingers = [neutral.positions[joint] for name, joint in known.items() if name != "thumb"]
    length = _LENGTH * skeleton.height
    if len(fingers) > 1:
        along = neutral.local(hand, np.mean(fingers, axis=0) - neutral.positions[hand])
        thumbwards = neutral.local(hand, fingers[0] - fingers[-1])
    else:
        end = skeleton.bone_end(hand)
        out = neutral.positions[hand] - neutral.positions[skeleton.index(f"{side}_forearm")]
        along = end if np.linalg.norm(end) > 0.25 * length else neutral.local(hand, out)
        length = float(np.linalg.norm(end)) if np.linalg.norm(end) > 0.6 * length else length
        thumbwards = neutral.local(hand, FORWARD)
    along = along / np.linalg.norm(along)
    across = thumbwards - along * (thumbwards @ along)
    across = across / np.linalg.norm(across)
    palm = np.cross(along, across) if side == "left" else np.cross(across, along)
    return np.stack([along, across, palm], axis=1), length
