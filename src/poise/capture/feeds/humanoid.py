"""Unity's humanoid, of VMC and Rokoko: the names of its bones, its left-handed world, and a motion of its frames.

Unity's world has Y up and Z forward, and is left-handed. Poise's world is right-handed with left at +X, so X is
mirrored.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from poise.capture.feeds import LiveFrame
from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.skeleton.skeleton import Pose, Skeleton
from poise.types import Array

_LIMBS = {
    "shoulder": "Shoulder", "upper_arm": "UpperArm", "forearm": "LowerArm", "hand": "Hand",
    "thigh": "UpperLeg", "shin": "LowerLeg", "foot": "Foot", "toes": "Toes",
}  # fmt: skip
BONES = {"pelvis": "Hips", "spine": "Spine", "chest": "Chest", "neck": "Neck", "head": "Head"} | {
    f"{side}_{part}": side.capitalize() + bone for side in ("left", "right") for part, bone in _LIMBS.items()
}
"""Our roles to Unity's bones."""

ABOVE = {"Spine": "Hips", "Chest": "Spine", "UpperChest": "Chest", "Neck": "UpperChest", "Head": "Neck"} | {
    f"{side}{bone}": above if above in ("Hips", "UpperChest") else f"{side}{above}"
    for side in ("Left", "Right")
    for bone, above in {
        "Shoulder": "UpperChest", "UpperArm": "Shoulder", "LowerArm": "UpperArm", "Hand": "LowerArm",
        "UpperLeg": "Hips", "LowerLeg": "UpperLeg", "Foot": "LowerLeg", "Toes": "Foot",
    }.items()
}  # fmt: skip
"""The parent of each bone; if it is missing, the next ancestor."""


def mirrored_place(place: Float[Array, "3"]) -> Float[Array, "3"]:
    """A point in Unity's left-handed world, or one of it in ours."""
    return np.asarray(place * np.array([-1.0, 1.0, 1.0]))


def mirrored_turn(turn: Float[Array, "4"]) -> Float[Array, "4"]:
    """A rotation (wxyz) in Unity's left-handed world, or one of it in ours."""
    return np.asarray(turn * np.array([1.0, 1.0, -1.0, -1.0]))


LONGEST_GAP = 10.0  # seconds between two frames of one take
_ROLES = {bone: role for role, bone in BONES.items()}


class BodyRecording:
    """Frames are added as they arrive; those without the bones of the first are left out."""

    def __init__(self) -> None:
        self._roles: list[str] = []
        self._poses: list[Pose] = []
        self._times: list[float] = []

    def __len__(self) -> int:
        return len(self._poses)

    def add(self, frame: LiveFrame) -> Pose | None:
        """The pose of one more frame; None if it lacks the pelvis, or a bone of the first."""
        if not self._roles and "pelvis" in frame.turns:
            self._roles = [role for role in BONES if role in frame.turns]
            self._parents = [_above(role, self._roles) for role in self._roles]
        if not self._roles or not set(self._roles) <= set(frame.turns):
            return None
        turns, places = (
            np.array([part[role] for role in self._roles]) for part in (frame.turns, frame.places)
        )
        above = [max(parent, 0) for parent in self._parents]
        if not self._poses:
            offsets = rotations.rotate(rotations.conjugate(turns[above]), places - places[above])
            names = tuple(BONES[role] for role in self._roles)
            self._skeleton = Skeleton(names, np.array(self._parents), offsets, ("ZYX",) * len(names))
        own = rotations.multiply(rotations.conjugate(turns[above]), turns)
        own[0] = turns[0]
        self._poses.append(Pose(self._skeleton, places[0], own))
        self._times.append(np.nan if frame.seconds is None else frame.seconds)
        return self._poses[-1]

    def motion(self, fps: float, *, name: str = "") -> Motion:
        """The frames at an even rate, the latest at each moment; unchanged if their times do not increase."""
        if not self._poses:
            raise InvalidValueError("no frame with a whole body arrived; check the port and the sender")
        kept, times = self._poses, np.array(self._times)
        gaps = np.diff(times)
        if len(gaps) and np.all((gaps > 0.0) & (gaps < LONGEST_GAP)):
            moments = np.arange(times[0], times[-1] + 0.5 / fps, 1.0 / fps)
            latest = np.maximum(np.searchsorted(times, moments + 0.5 / fps) - 1, 0)
            kept = [self._poses[number] for number in latest.tolist()]
        turns = rotations.continuous(np.array([pose.rotations for pose in kept]))
        return Motion(self._skeleton, fps, np.array([pose.root_position for pose in kept]), turns, name=name)


def _above(role: str, roles: list[str]) -> int:
    """The number of the joint that a role's joint hangs on; -1 for the first."""
    bone = ABOVE.get(BONES[role])
    while bone is not None and _ROLES.get(bone) not in roles:
        bone = ABOVE.get(bone)
    return -1 if bone is None else roles.index(_ROLES[bone])
