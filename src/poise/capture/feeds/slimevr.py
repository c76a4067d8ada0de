"""SlimeVR in: its trackers over OSC, as it sends them to VRChat (VRChat's "OSC trackers").

A tracker has a position and Euler angles in degrees in Unity's world, turned about Z, then X, then Y. SlimeVR numbers
its trackers by what wears them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from poise.capture.feeds import GoOn, LiveFrame, Ready, listening
from poise.capture.feeds.humanoid import mirrored_place, mirrored_turn
from poise.capture.feeds.osc import gathered
from poise.geometry import rotations
from poise.types import Array

PORT = 9000
ROLES = {
    "head": "head", "1": "pelvis", "2": "left_foot", "3": "right_foot", "4": "left_thigh", "5": "right_thigh",
    "6": "chest", "7": "left_upper_arm", "8": "right_upper_arm",
}  # fmt: skip
_FIRST = "/tracking/trackers/"


def frames(where: str, go_on: GoOn, ready: Ready) -> Iterator[LiveFrame]:
    """Frames by our roles; the time is that of arrival."""
    begun = time.perf_counter()
    for new in gathered(listening(where, PORT, go_on, ready), _read, lambda _key, _new: True):
        places = {role: mirrored_place(value) for (role, what), value in new.items() if what == "position"}
        turned = {role: np.radians(value) for (role, what), value in new.items() if what == "rotation"}
        turns = {
            role: mirrored_turn(rotations.quaternion_from_euler(value[[1, 0, 2]], "YXZ"))
            for role, value in turned.items()
        }
        yield LiveFrame(places, turns, time.perf_counter() - begun)


def _read(message: Any) -> tuple[tuple[str, str], Array] | None:
    """The role of a tracker, whether it is a position or a rotation, and the numbers."""
    number, _, what = message.address.removeprefix(_FIRST).partition("/")
    if number not in ROLES or what not in ("position", "rotation") or len(message.params) != 3:
        return None
    return (ROLES[number], what), np.array([float(value) for value in message.params])
