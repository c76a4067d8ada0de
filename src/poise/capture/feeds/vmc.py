"""VMC in: the bones of a humanoid, and trackers, over OSC from VSeeFace, Warudo, VirtualMotionCapture or Poise itself.

A frame may come in several datagrams. It is complete when every bone of the previous frame has arrived again, or one
arrives twice.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from poise.capture.feeds import DAMAGED, GoOn, LiveFrame, Ready, listening
from poise.capture.feeds.humanoid import ABOVE, BONES, mirrored_place, mirrored_turn
from poise.errors import MissingExtraError
from poise.geometry import rotations
from poise.types import Array

Placed = tuple[Array, Array]

PORT = 39539
MOST = 500  # bones and trackers of a frame
_ROLES = {bone: role for role, bone in BONES.items()}
_BONE, _ROOT, _TIME = "/VMC/Ext/Bone/Pos", "/VMC/Ext/Root/Pos", "/VMC/Ext/T"
_TRACKERS = ("/VMC/Ext/Tra/Pos", "/VMC/Ext/Con/Pos", "/VMC/Ext/Hmd/Pos")


def frames(where: str, go_on: GoOn, ready: Ready) -> Iterator[LiveFrame]:
    """Frames by our roles, and by the serial numbers of trackers."""
    try:
        from pythonosc.osc_packet import ParseError
    except ModuleNotFoundError as error:
        raise MissingExtraError("python-osc", extra="studio", purpose="VMC in") from error
    new: dict[tuple[str, str], Placed] = {}
    known: set[tuple[str, str]] = set()
    for data in listening(where, PORT, go_on, ready):
        try:
            messages = list(_messages(data))
        except (*DAMAGED, ParseError):
            continue
        for kind, name, placed in messages:
            if len(new) > MOST or ((kind, name) in new and kind == _BONE):
                yield _frame(new)
                known, new = set(new), {}
            new[kind, name] = placed
        if known and known <= set(new):  # complete: no need to wait for the next frame
            yield _frame(new)
            new = {}


def _messages(data: bytes) -> Iterator[tuple[str, str, Placed]]:
    """The positions in a datagram: the address, a name, and position and rotation in our world."""
    from pythonosc.osc_packet import OscPacket

    for message in [timed.message for timed in OscPacket(data).messages]:
        if message.address == _TIME and message.params:
            yield _TIME, "", (np.array([float(message.params[0])]), np.zeros(4))
        if message.address in (_BONE, _ROOT, *_TRACKERS) and len(message.params) >= 8:
            name, *numbers = message.params[:8]
            x, y, z, qx, qy, qz, qw = (float(number) for number in numbers)
            turn = mirrored_turn(np.array([qw, qx, qy, qz]))
            yield message.address, str(name), (mirrored_place(np.array([x, y, z])), turn)


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
