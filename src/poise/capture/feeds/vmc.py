"""VMC in: the bones of a humanoid, and trackers, over OSC from VSeeFace, Warudo, VirtualMotionCapture or Poise itself.

A frame may come in several datagrams. It is complete when all of the previous frame has come again, or a bone comes
twice (without bones, a tracker).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from poise.capture.feeds import GoOn, LiveFrame, Ready, listening
from poise.capture.feeds.humanoid import ABOVE, BONES, mirrored_place, mirrored_turn
from poise.capture.feeds.osc import gathered
from poise.geometry import rotations
from poise.types import Array

Placed = tuple[Array, Array]

PORT = 39539
_ROLES = {bone: role for role, bone in BONES.items()}
_BONE, _ROOT, _TIME = "/VMC/Ext/Bone/Pos", "/VMC/Ext/Root/Pos", "/VMC/Ext/T"
_TRACKERS = ("/VMC/Ext/Tra/Pos", "/VMC/Ext/Con/Pos", "/VMC/Ext/Hmd/Pos")


def frames(where: str, go_on: GoOn, ready: Ready) -> Iterator[LiveFrame]:
    """Frames by our roles, and by the serial numbers of trackers."""
    for new in gathered(listening(where, PORT, go_on, ready), _placed, _ends):
        yield _frame(new)


def _ends(key: tuple[str, str], new: Collection[tuple[str, str]]) -> bool:
    """Whether a frame ends when this comes twice: a bone, or a tracker if there are no bones."""
    return key[0] == _BONE or (key[0] in _TRACKERS and all(kind != _BONE for kind, _ in new))


def _placed(message: Any) -> tuple[tuple[str, str], Placed] | None:
    """The address and name of a message, and its position and rotation in our world."""
    if message.address == _TIME and message.params:
        return (_TIME, ""), (np.array([float(message.params[0])]), np.zeros(4))
    if message.address in (_BONE, _ROOT, *_TRACKERS) and len(message.params) >= 8:
        name, *numbers = message.params[:8]
        x, y, z, qx, qy, qz, qw = (float(number) for number in numbers)
        turn = mirrored_turn(np.array([qw, qx, qy, qz]))
        return (message.address, str(name)), (mirrored_place(np.array([x, y, z])), turn)
    return None


def _frame(new: dict[tuple[str, str], Placed]) -> LiveFrame:
    bones = {name: placed for (kind, name), placed in new.items() if kind == _BONE}
    root = next((placed for (kind, _), placed in new.items() if kind == _ROOT), None)
    worlds: dict[str, Placed] = {}
    for bone in bones:
        _place(bone, bones, root, worlds)
    found = {_ROLES[bone]: placed for bone, placed in worlds.items() if bone in _ROLES}
    found |= {name: placed for (kind, name), placed in new.items() if kind in _TRACKERS}
    seconds = float(new[_TIME, ""][0][0]) if (_TIME, "") in new else None
    places = {name: at for name, (at, _) in found.items()}
    return LiveFrame(places, {name: turn for name, (_, turn) in found.items()}, seconds)


def _place(bone: str, bones: dict[str, Placed], root: Placed | None, worlds: dict[str, Placed]) -> Placed:
    """World position of a bone, and its rotation from the T-pose."""
    if bone not in worlds:
        above = ABOVE.get(bone)
        while above is not None and above not in bones:
            above = ABOVE.get(above)
        base = root if above is None else _place(above, bones, root, worlds)
        at, turn = bones[bone]
        if base is not None:
            at = base[0] + rotations.rotate(base[1], at)
            turn = rotations.multiply(base[1], turn)
        worlds[bone] = at, turn
    return worlds[bone]
