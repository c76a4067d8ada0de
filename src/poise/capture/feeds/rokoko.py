"""Rokoko Studio's custom live stream, JSON version 3 over UDP: the joints of its first actor, by our roles.

Rotations are left out: they are relative to a rest pose that is not in the stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from poise.capture.feeds import DAMAGED, GoOn, LiveFrame, Ready, listening
from poise.capture.feeds.humanoid import BONES, mirrored_place
from poise.errors import InvalidValueError

PORT = 14043
_LZ4 = b"\x04\x22\x4d\x18"
_OTHER = {"Hips": "hip", "UpperLeg": "UpLeg", "LowerLeg": "Leg", "Toes": "Toe"}


def frames(where: str, go_on: GoOn, ready: Ready) -> Iterator[LiveFrame]:
    """Frames by our roles."""
    heard = False
    for data in listening(where, PORT, go_on, ready):
        if data.startswith(_LZ4) and not heard:
            raise InvalidValueError(
                "Rokoko's stream is compressed; turn LZ4 off in Rokoko Studio's custom stream"
            )
        try:
            frame = _frame(msgspec.json.decode(data)["scene"])
        except (*DAMAGED, msgspec.DecodeError, AttributeError):
            continue  # not a frame of an actor
        heard = True
        yield frame


def _frame(scene: dict[str, Any]) -> LiveFrame:
    body, places = scene["actors"][0]["body"], {}
    for role, bone in BONES.items():
        for unity, rokoko in _OTHER.items():
            if bone.endswith(unity):
                bone = bone.removesuffix(unity) + rokoko
                break
        if (joint := body.get(bone[0].lower() + bone[1:])) is not None:
            places[role] = mirrored_place(np.array([float(joint["position"][axis]) for axis in "xyz"]))
    if not places:
        raise KeyError("body")
    return LiveFrame(places, seconds=float(scene["timestamp"]))
