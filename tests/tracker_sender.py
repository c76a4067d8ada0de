"""A replayer of trackers: sends positions and rotations as SlimeVR, an OpenXR program or a VMC sender does."""

from __future__ import annotations

import json
import socket
from itertools import count
from typing import Any

import numpy as np

from poise.capture.feeds.slimevr import ROLES
from poise.geometry import rotations

Array = np.ndarray
_NUMBERS = {role: number for number, role in ROLES.items()}
_PATHS = {"left_hand": "/user/hand/left", "pelvis": "/user/vive_tracker_htcx/role/waist"}


class TrackerSender:
    """Sends frames in the form of a feed: positions and rotations (wxyz) in our world, by role."""

    def __init__(self, feed: str, names: tuple[str, ...], fps: float = 30.0) -> None:
        self._form, self._names, self._fps = getattr(self, f"_{feed}"), names, fps
        self._count = count()

    def send(self, values: Array, port: int) -> None:
        """Send one frame to this machine; a tracker with NaN is left out."""
        seen = [
            (name, value) for name, value in zip(self._names, values, strict=True) if np.isfinite(value).all()
        ]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for data in self._form(seen, next(self._count) / self._fps):
                sender.sendto(data, ("127.0.0.1", port))

    def _slimevr(self, seen: list[tuple[str, Array]], _seconds: float) -> list[bytes]:
        """One bundle; Unity's world is mirrored."""
        messages = []
        for name, value in seen:
            turn = value[3:] * np.array([1.0, 1.0, -1.0, -1.0])
            y, x, z = np.degrees(rotations.euler_from_quaternion(turn, "YXZ"))
            tracker = f"/tracking/trackers/{_NUMBERS[name]}"
            messages.append((f"{tracker}/position", (-value[0], value[1], value[2])))
            messages.append((f"{tracker}/rotation", (x, y, z)))
        return [_bundle(messages)]

    def _openxr(self, seen: list[tuple[str, Array]], seconds: float) -> list[bytes]:
        """-Z is forward."""
        frame: dict[str, Any] = {"time": seconds, "right_hand": None}
        for name, value in seen:
            x, y, z, qw, qx, qy, qz = value.tolist()
            position = {"x": -x, "y": y, "z": -z}
            orientation = {"x": -qx, "y": qy, "z": -qz, "w": qw}
            frame[_PATHS.get(name, name)] = {"position": position, "orientation": orientation}
        return [json.dumps(frame).encode()]

    def _vmc(self, seen: list[tuple[str, Array]], _seconds: float) -> list[bytes]:
        """A datagram for each tracker; Unity's world is mirrored."""
        found = []
        for name, (x, y, z, qw, qx, qy, qz) in seen:
            found.append(_bundle([("/VMC/Ext/Tra/Pos", (name, -x, y, z, qx, -qy, -qz, qw))]))
        return found


def _bundle(messages: list[tuple[str, tuple[Any, ...]]]) -> bytes:
    from pythonosc.osc_bundle_builder import IMMEDIATELY, OscBundleBuilder
    from pythonosc.osc_message_builder import OscMessageBuilder

    bundle = OscBundleBuilder(IMMEDIATELY)
    for address, values in messages:
        builder = OscMessageBuilder(address)
        for value in values:
            builder.add_arg(value if isinstance(value, str) else float(value))
        bundle.add_content(builder.build())
    return bytes(bundle.build().dgram)
