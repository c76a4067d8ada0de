"""Keys and pins over a recording: they change the recorded pose as little as possible, and fade to both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

import msgspec
import numpy as np

from poise.errors import InvalidValueError
from poise.motion.motion import Motion
from poise.skeleton.skeleton import Pose
from poise.studio.layers import Correction, Layers, held
from poise.studio.messages import BodyKey, EaseKeys, Key, KeyPlace, Timeline
from poise.studio.solving import Poser, following, planted
from poise.studio.state import Placed, State

MET = 1e-3  # metres and radians: largest residual at which the shown pose meets a key
POSES = "poses"
"""The name of a timeline that is made of whole poses."""
ALWAYS = 36_000  # frames: such a pose holds until the next

Place = tuple[str | None, int]
AnyKey = TypeVar("AnyKey", Key, BodyKey)


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


def posed(state: State, pose: Pose) -> State:
    """A state with a pose made by hand: handles and planted feet are at the body's positions."""
    handles = tuple(following(handle, pose) for handle in state.handles)
    return state.with_(placed=Placed(pose), handles=handles, anchors=planted(pose), by_hand=True)


def keyed(state: State, rest: Pose, ease: int) -> State:
    """Key the shown pose for the whole body at its frame; without a motion, a static one is started."""
    timeline, frame = state.timeline, state.timeline.frame
    layers = state.layers
    if layers is None:
        layers, ease = Layers(held(rest, timeline.frames, timeline.fps)), ALWAYS
        timeline = msgspec.structs.replace(timeline, clip=POSES)
    ease = ALWAYS if timeline.clip == POSES else ease
    poses = [*(key for key in timeline.poses if key.frame != frame), BodyKey(frame=frame, ease=ease)]
    keys = [_followed(state, key) if key.frame == frame and timeline.clip else key for key in timeline.keys]
    timeline = msgspec.structs.replace(timeline, keys=keys, poses=sorted(poses, key=lambda key: key.frame))
    made = Correction.between(layers.base[frame], state.pose, frame=frame, ease=ease)
    return state.with_(timeline=timeline, layers=layers.with_correction(made), by_hand=False)


def moved(state: State, places: Iterable[KeyPlace], by: int) -> tuple[State, list[int]]:
    """Move keys to other frames, replacing those there; return also all changed frames."""
    timeline, chosen = state.timeline, _known(state.timeline, places)
    if any(not 0 <= frame + by < timeline.frames for _, frame in chosen):
        raise InvalidValueError(f"keys stay within frames 0 to {timeline.frames - 1}")
    there = {(handle, frame + by) for handle, frame in chosen}
    keys = [
        _at(key, by) if _of(key) in chosen else key for key in timeline.keys if _stays(key, chosen, there)
    ]
    poses = [
        _at(key, by) if _of(key) in chosen else key for key in timeline.poses if _stays(key, chosen, there)
    ]
    corrections = _moved_corrections(state.layers, [frame for handle, frame in chosen if handle is None], by)
    frames = sorted({frame for _, frame in chosen | there})
    return _with(state, keys, poses, corrections), frames


def eased(state: State, message: EaseKeys) -> State:
    """Change the number of frames over which keys fade, the easing to the next, or the tangents."""
    timeline, chosen, ease = state.timeline, _known(state.timeline, message.keys), message.ease
    fade = {} if ease is None else {"ease": ease}
    other: dict[str, object] = {**fade}
    if message.easing is not None:
        other["easing"] = message.easing
    if message.tangents is not None:
        other["tangent"] = other["spin"] = (0.0, 0.0, 0.0) if message.tangents == "flat" else None
    keys = [msgspec.structs.replace(key, **other) if _of(key) in chosen else key for key in timeline.keys]
    poses = [msgspec.structs.replace(key, **fade) if _of(key) in chosen else key for key in timeline.poses]
    found = _with(state, keys, poses, () if state.layers is None else state.layers.corrections)
    if found.layers is None:
        return found
    touched = {frame for _, frame in chosen}
    again = tuple(
        replace(each, ease=_ease_at(found.timeline, each)) if each.frame in touched else each
        for each in found.layers.corrections
    )
    return found.with_(layers=replace(found.layers, corrections=again))


def removed(state: State, places: Iterable[KeyPlace]) -> tuple[State, list[int]]:
    """Remove keys; return also their frames. The caller solves the remaining targets again."""
    timeline, chosen = state.timeline, _known(state.timeline, places)
    bodies = {frame for handle, frame in chosen if handle is None}
    corrections = [] if state.layers is None else state.layers.corrections
    kept = tuple(each for each in corrections if each.frame not in bodies)
    keys = [key for key in timeline.keys if _of(key) not in chosen]
    poses = [key for key in timeline.poses if _of(key) not in chosen]
    return _with(state, keys, poses, kept), sorted({frame for _, frame in chosen})


def _known(timeline: Timeline, places: Iterable[KeyPlace]) -> set[Place]:
    there = {_of(key) for key in timeline.keys} | {_of(key) for key in timeline.poses}
    chosen = {(place.handle, place.frame) for place in places}
    if missing := chosen - there:
        handle, frame = sorted(missing, key=str)[0]
        raise InvalidValueError(f"{handle or 'the body'} has no key at frame {frame}")
    return chosen


def _of(key: Key | BodyKey) -> Place:
    return (key.handle if isinstance(key, Key) else None), key.frame


def _at(key: AnyKey, by: int) -> AnyKey:
    return msgspec.structs.replace(key, frame=key.frame + by)


def _stays(key: Key | BodyKey, chosen: set[Place], there: set[Place]) -> bool:
    return _of(key) in chosen or _of(key) not in there


def _with(state: State, keys: list[Key], poses: list[BodyKey], corrections: Sequence[Correction]) -> State:
    timeline = msgspec.structs.replace(
        state.timeline,
        keys=sorted(keys, key=lambda key: (key.handle, key.frame)),
        poses=sorted(poses, key=lambda key: key.frame),
    )
    layers = None if state.layers is None else replace(state.layers, corrections=tuple(corrections))
    return state.with_(timeline=timeline, layers=layers)


def _moved_corrections(layers: Layers | None, frames: list[int], by: int) -> tuple[Correction, ...]:
    if layers is None:
        return ()
    away = {frame + by for frame in frames} - set(frames)
    found = [
        replace(each, frame=each.frame + by) if each.frame in frames else each
        for each in layers.corrections
        if each.frame not in away
    ]
    return tuple(sorted(found, key=lambda each: each.frame))


def _followed(state: State, key: Key) -> Key:
    handle = msgspec.structs.replace(state.handle(key.handle), position=key.position, rotation=key.rotation)
    there = following(handle, state.pose)
    return msgspec.structs.replace(key, position=there.position, rotation=there.rotation)


def _ease_at(timeline: Timeline, correction: Correction) -> int:
    poses = [key.ease for key in timeline.poses if key.frame == correction.frame]
    return max([*poses, *(key.ease for key in keys_at(timeline, correction.frame))], default=correction.ease)
