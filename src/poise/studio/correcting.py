"""Keys and pins over a recording: they change the recorded pose as little as possible, and fade to both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec
import numpy as np

from poise.motion.motion import Motion
from poise.skeleton.skeleton import Pose
from poise.studio.layers import Correction, Layers
from poise.studio.messages import Key, Timeline
from poise.studio.solving import Poser, following, planted
from poise.studio.state import Placed, State

MET = 1e-3  # metres and radians: largest residual at which the shown pose meets a key


def recorrected(
    state: State,
    timeline: Timeline,
    frames: Iterable[int],
    poser: Poser,
    report: Callable[[int], None] | None = None,
) -> State:
    """A state under a timeline with other keys at some frames, and the corrections that follow from them."""
    assert state.layers is not None
    layers, changed = state.layers, state.with_(timeline=timeline)
    for done, frame in enumerate(frames):
        if report is not None:
            report(done)
        fewer = _asks(timeline, frame) < _asks(state.timeline, frame)
        start = state.layers.base if fewer else state.layers.motion
        layers = _recorrected(changed, layers, frame, start, poser)
    return changed.with_(layers=layers)


def _recorrected(state: State, layers: Layers, frame: int, start: Motion, poser: Poser) -> Layers:
    keys = keys_at(state.timeline, frame)
    posed = [each.ease for each in state.timeline.poses if each.frame == frame]
    if not keys:
        return layers if posed else layers.without(frame)
    pose = state.pose if _shows(state, keys) else _solved(state, keys, start[frame], poser)
    ease = max([*posed, *(key.ease for key in keys)])
    return layers.with_correction(Correction.between(layers.base[frame], pose, frame=frame, ease=ease))


def at_frame(state: State, frame: int) -> State:
    """A frame of the recording as the next pose to edit: handles and planted feet are at the body's positions."""
    assert state.motion is not None
    pose = state.motion[frame]
    handles = tuple(following(handle, pose) for handle in state.handles)
    return state.with_(placed=Placed(pose), handles=handles, anchors=planted(pose), by_hand=False)


def keys_at(timeline: Timeline, frame: int) -> list[Key]:
    """The targets of handles at a frame: from their keys, else from the pins over it."""
    keys = [key for key in timeline.keys if key.frame == frame]
    keyed = {key.handle for key in keys}
    pins = [pin for pin in timeline.pins if pin.first <= frame <= pin.last and pin.handle not in keyed]
    return keys + [
        Key(handle=pin.handle, frame=frame, position=pin.position, ease=pin.ease)
        for pin in pins
        if pin.position is not None
    ]


def _asks(timeline: Timeline, frame: int) -> int:
    return len(keys_at(timeline, frame)) + sum(each.frame == frame for each in timeline.poses)


def _shows(state: State, keys: Sequence[Key]) -> bool:
    """Whether the shown pose is of this frame and meets its keys: then it is used unchanged."""
    return state.timeline.frame == keys[0].frame and all(_is_met(state, key) for key in keys)


def _is_met(state: State, key: Key) -> bool:
    handle = state.handle(key.handle)
    if (handle.position, handle.rotation) == (key.position, key.rotation):
        return True  # after the last drag
    there = following(
        msgspec.structs.replace(handle, position=key.position, rotation=key.rotation), state.pose
    )
    gaps = [(key.position, there.position), (key.rotation, there.rotation)]
    return all(
        np.allclose(goal, place, atol=MET) for goal, place in gaps if goal is not None and place is not None
    )


def _solved(state: State, keys: Sequence[Key], start: Pose, poser: Poser) -> Pose:
    """The least change of a pose that meets the keys of its frame, with the feet in place."""
    handles = tuple(
        msgspec.structs.replace(
            state.handle(key.handle), position=key.position, rotation=key.rotation, pinned=True
        )
        for key in keys
    )
    asked = state.with_(
        placed=Placed(start), handles=handles, look_at=None, constraints="", anchors=planted(start)
    )
    return poser.bent(asked, start).placed.pose
