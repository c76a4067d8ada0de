"""A motion from a feed that has a whole body: bones as the sender's, turned as it says."""

from __future__ import annotations

import numpy as np

from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.performance.feeds import LiveFrame
from poise.performance.unity import ABOVE, BONES
from poise.skeleton.skeleton import Skeleton

_ROLES = {bone: role for role, bone in BONES.items()}


class BodyRecording:
    """Frames are added as they come; those without the bones of the first are left out."""

    def __init__(self) -> None:
        self.frames: list[LiveFrame] = []

    def add(self, frame: LiveFrame) -> None:
        """One more frame, if it has the pelvis and all that the first had."""
        wanted = self.frames[0].turns if self.frames else {"pelvis": None}
        if set(wanted) <= set(frame.turns):
            self.frames.append(frame)

    def motion(self, fps: float, *, name: str = "") -> Motion:
        """The frames at an even rate, the nearest in time to each moment; without times, they are as even as told."""
        if not self.frames:
            raise InvalidValueError(
                "no frame with a whole body came; check the port, and that the sender sends"
            )
        roles = [role for role in BONES if role in self.frames[0].turns]
        parents = [_above(role, roles) for role in roles]
        kept = self._even(fps)
        turns = np.array([[frame.turns[role] for role in roles] for frame in kept])
        places = np.array([[frame.places[role] for role in roles] for frame in kept])
        above = [max(parent, 0) for parent in parents]
        own = rotations.multiply(rotations.conjugate(turns[:, above]), turns)
        own[:, 0] = turns[:, 0]
        offsets = rotations.rotate(rotations.conjugate(turns[0, above]), places[0] - places[0, above])
        skeleton = Skeleton(
            tuple(BONES[role] for role in roles), np.array(parents), offsets, ("ZYX",) * len(roles)
        )
        return Motion(skeleton, fps, places[:, 0], rotations.continuous(own), name=name)

    def _even(self, fps: float) -> list[LiveFrame]:
        times = np.array([np.nan if frame.seconds is None else frame.seconds for frame in self.frames])
        if len(times) < 2 or not np.all(np.diff(times) > 0):
            return self.frames
        moments = np.arange(times[0], times[-1] + 0.5 / fps, 1.0 / fps)
        return [self.frames[int(np.abs(times - moment).argmin())] for moment in moments]


def _above(role: str, roles: list[str]) -> int:
    """The number of the joint that a role's joint hangs on; -1 for the first."""
    bone = ABOVE.get(BONES[role])
    while bone is not None and _ROLES.get(bone) not in roles:
        bone = ABOVE.get(bone)
    return -1 if bone is None else roles.index(_ROLES[bone])
