"""Poses of OpenXR or WebXR as JSON over UDP, one frame a datagram: a headset, its controllers and trackers.

    {"time": 1.25, "head": {"position": {"x": 0.0, "y": 1.6, "z": 0.1},
                            "orientation": {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}}, "left_hand": null}

Each is an XrPosef (in WebXR, an XRRigidTransform) in a space with the origin on the floor: metres, right-handed, Y up,
-Z forward. Names are our roles, or OpenXR's paths (`/user/hand/left`, `/user/vive_tracker_htcx/role/waist`). Poise's
world has +Z forward: it is turned by half a turn about Y.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from poise.capture.feeds import GoOn, LiveFrame, Ready, listening

PORT = 39541
_NAMES = {
    "left": "left_hand", "right": "right_hand", "waist": "pelvis", "left_shoulder": "left_upper_arm",
    "right_shoulder": "right_upper_arm", "left_elbow": "left_forearm", "right_elbow": "right_forearm",
    "left_knee": "left_shin", "right_knee": "right_shin",
}  # fmt: skip


class Vector(msgspec.Struct):
    """XrVector3f."""

    x: float
    y: float
    z: float


class Quaternion(Vector):
    """XrQuaternionf."""

    w: float


class XrPose(msgspec.Struct):
    """XrPosef."""

    position: Vector
    orientation: Quaternion


_FRAMES: msgspec.json.Decoder[dict[str, XrPose | float | None]] = msgspec.json.Decoder(
    dict[str, XrPose | float | None]
)


def frames(where: str, go_on: GoOn, ready: Ready) -> Iterator[LiveFrame]:
    """Frames by our roles; the time is that of the sender, in seconds."""
    for data in listening(where, PORT, go_on, ready):
        try:
            message = _FRAMES.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        seconds, places, turns = message.pop("time", None), {}, {}
        for path, pose in message.items():
            if isinstance(pose, XrPose):
                last = path.rpartition("/")[2]
                name, p, q = _NAMES.get(last, last), pose.position, pose.orientation
                places[name] = np.array([-p.x, p.y, -p.z])
                turns[name] = np.array([q.w, -q.x, q.y, -q.z])
        yield LiveFrame(places, turns, seconds if isinstance(seconds, float) else None)
