"""Keys and pins over a recording: they change the recorded pose as little as possible, and fade to both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from poise.errors import InvalidValueError
from poise.skeleton.skeleton import Pose
from poise.studio.hands import hands_at
from poise.studio.layers import Correction
from poise.studio.messages import BodyKey, EaseKeys, Key, KeyPlace, MoveKeys, SceneHandle, Timeline
from poise.studio.solving import Poser, following, planted
from poise.studio.state import Placed, State

MET = 1e-3  # metres and radians: largest residual at which the shown pose meets a key
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
        old = state.timeline
        keys, before = keys_at(timeline, frame), keys_at(old, frame)
        posed, others = ([key.ease for key in each.poses if key.frame == frame] for each in (timeline, old))
        if not keys:
            layers = layers if posed else layers.without(frame)
            continue
        pose = changed.pose
        if frame != timeline.frame or not all(_is_met(changed, key) for key in keys):
            fewer = len(keys) + len(posed) < len(before) + len(others)
            start = (state.layers.base if fewer else state.layers.motion)[frame]
            pose = meeting(changed, keys, start, poser)
        ease = max([*posed, *(key.ease for key in keys)])
        made = Correction.between(layers.base[frame], pose, frame=frame, ease=ease)
        layers = layers.with_correction(made)
    return changed.with_(layers=layers)


def at_frame(state: State, frame: int) -> State:
    """A frame of the motion as the next pose to edit: handles and planted feet are at the body's positions.

    At a key of the whole body the handles are pinned that were pinned then.
    """
    assert state.motion is not None
    pose = state.motion[frame]
    pinned = next((set(key.handles) for key in state.timeline.poses if key.frame == frame), None)
    handles = tuple(
        following(handle if pinned is None else handle.with_(pinned=handle.id in pinned), pose)
        for handle in state.handles
    )
    return state.with_(
        placed=Placed(pose), handles=handles, anchors=planted(pose), by_hand=False, hands=hands_at(state, frame)
    )  # fmt: skip


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


def _as_shown(state: State, key: Key) -> SceneHandle:
    """The handle of a key, where the shown pose has what the key sets."""
    handle = state.handle(key.handle).with_(position=key.position, rotation=key.rotation)
    return following(handle, state.pose)


def _is_met(state: State, key: Key) -> bool:
    """Whether the shown pose meets a key: then it is used unchanged."""
    handle = state.handle(key.handle)
    if (handle.position, handle.rotation) == (key.position, key.rotation):
        return True  # after the last drag
    there = _as_shown(state, key)
    gaps = [(key.position, there.position), (key.rotation, there.rotation)]
    return all(np.allclose(goal, at, atol=MET) for goal, at in gaps if goal is not None and at is not None)


def meeting(state: State, keys: Sequence[Key], start: Pose, poser: Poser) -> Pose:
    """The least change of a pose that meets the keys of its frame, with the feet in place."""
    targets = [{"position": key.position, "rotation": key.rotation, "pinned": True} for key in keys]
    handles = [state.handle(key.handle).with_(**goal) for key, goal in zip(keys, targets, strict=True)]
    asked = state.with_(placed=Placed(start), handles=tuple(handles), anchors=planted(start))
    asked = asked.with_(look_at=None, constraints="")
    return poser.over(asked, start).placed.pose


def posed(state: State, pose: Pose) -> State:
    """A state with a pose made by hand: handles and planted feet are at the body's positions."""
    handles = tuple(following(handle, pose) for handle in state.handles)
    return state.with_(placed=Placed(pose), handles=handles, anchors=planted(pose), by_hand=True)


def corrected(state: State, ease: int) -> State:
    """Key the shown pose for the whole body at its frame, over the motion that is there."""
    assert state.layers is not None
    timeline, frame, layers = state.timeline, state.timeline.frame, state.layers
    pinned = [handle.id for handle in state.handles if handle.pinned]
    key = BodyKey(frame=frame, ease=ease, handles=pinned, hands=state.hands)
    poses = [*(each for each in timeline.poses if each.frame != frame), key]
    keys = list(timeline.keys)
    for number, own in enumerate(keys):
        if own.frame == frame and timeline.clip:
            there = _as_shown(state, own)
            keys[number] = own.with_(position=there.position, rotation=there.rotation)
    timeline = timeline.with_(keys=keys, poses=sorted(poses, key=lambda each: each.frame))
    made = Correction.between(layers.base[frame], state.pose, frame=frame, ease=ease)
    return state.with_(timeline=timeline, layers=layers.with_correction(made), by_hand=False)


def destinations(state: State, message: MoveKeys) -> dict[Place, Place]:
    """Where keys go; on a timeline of poses a breakdown keeps its share of the time between the keys around it."""
    timeline, chosen = state.timeline, _known(state.timeline, message.keys)
    first = min(frame for _, frame in chosen)

    def moved_from(frame: int) -> int:
        return first + round((frame - first) * message.stretch) + message.by

    found = {(handle, frame): (handle, moved_from(frame)) for handle, frame in chosen}
    if any(not 0 <= frame < timeline.frames for _, frame in found.values()):
        raise InvalidValueError(f"keys stay within frames 0 to {timeline.frames - 1}")
    if len(set(found.values())) < len(found):
        raise InvalidValueError("two keys would be on one frame; move them further apart")
    if state.is_posed and not message.copies:
        firm = [key.frame for key in timeline.poses if key.kind != "breakdown"]
        after = [found.get((None, frame), (None, frame))[1] for frame in firm]
        for key in timeline.poses:
            if key.kind == "breakdown" and (None, key.frame) not in found and firm:
                found[None, key.frame] = None, round(float(np.interp(key.frame, firm, after)))
    return found


def moved(state: State, message: MoveKeys) -> tuple[State, list[int]]:
    """Move keys to other frames, replacing those there; return also all changed frames."""
    to = destinations(state, message)
    gone = set() if message.copies else set(to)
    there = set(to.values())

    def change(keys: Sequence[AnyKey]) -> list[AnyKey]:
        left = [key for key in keys if _of(key) not in gone | there]
        return left + [key.with_(frame=to[_of(key)][1]) for key in keys if _of(key) in to]

    timeline = state.timeline.with_(
        keys=sorted(change(state.timeline.keys), key=lambda key: (key.handle, key.frame)),
        poses=sorted(change(state.timeline.poses), key=lambda key: key.frame),
    )
    layers = state.layers
    if layers is not None:
        own = [each for each in layers.corrections if (None, each.frame) not in gone | there]
        own += [
            replace(each, frame=to[None, each.frame][1])
            for each in layers.corrections
            if (None, each.frame) in to
        ]
        layers = replace(layers, corrections=tuple(sorted(own, key=lambda each: each.frame)))
    frames = sorted({frame for _, frame in {*to, *there}})
    return state.with_(timeline=timeline, layers=layers), frames


def eased(state: State, message: EaseKeys) -> State:
    """Change the number of frames over which keys fade, the easing to the next, the tangents, or kinds of poses."""
    chosen = _known(state.timeline, message.keys)
    fade = {} if message.ease is None else {"ease": message.ease}
    other: dict[str, object] = {**fade}
    body: dict[str, object] = {**fade}
    if message.easing is not None:
        other["easing"] = body["easing"] = message.easing
    if message.tempo is not None:
        body["tempo"] = message.tempo
    if message.kind is not None or message.hold is not None:
        body["kind"] = kind = message.kind or "hold"
        body["hold"] = state.timeline.eased(message.hold) if kind == "hold" else 0
    if message.tangents is not None:
        other["tangent"] = other["spin"] = (0.0, 0.0, 0.0) if message.tangents == "flat" else None

    def change(key: AnyKey) -> AnyKey:
        if _of(key) not in chosen:
            return key
        return key.with_(**(other if isinstance(key, Key) else body))

    found = _with(state, change, () if state.layers is None else state.layers.corrections)
    if found.layers is None:
        return found

    def again(each: Correction) -> Correction:
        eases = [key.ease for key in found.timeline.poses if key.frame == each.frame]
        eases += [key.ease for key in keys_at(found.timeline, each.frame)]
        return replace(each, ease=max(eases, default=each.ease))

    touched = {frame for _, frame in chosen}
    made = [again(each) if each.frame in touched else each for each in found.layers.corrections]
    return found.with_(layers=replace(found.layers, corrections=tuple(made)))


def removed(state: State, places: Iterable[KeyPlace]) -> tuple[State, list[int]]:
    """Remove keys; return also their frames. The caller solves the remaining targets again."""
    chosen = _known(state.timeline, places)
    corrections = [] if state.layers is None else state.layers.corrections
    kept = [each for each in corrections if (None, each.frame) not in chosen]
    found = _with(state, lambda key: None if _of(key) in chosen else key, kept)
    return found, sorted({frame for _, frame in chosen})


def _known(timeline: Timeline, places: Iterable[KeyPlace]) -> set[Place]:
    there = {_of(key) for key in timeline.keys} | {_of(key) for key in timeline.poses}
    chosen = {(place.handle, place.frame) for place in places}
    if missing := chosen - there:
        handle, frame = sorted(missing, key=str)[0]
        raise InvalidValueError(f"{handle or 'the body'} has no key at frame {frame}")
    return chosen


def _of(key: Key | BodyKey) -> Place:
    return (key.handle if isinstance(key, Key) else None), key.frame


def _with(state: State, change: Callable[[Any], Any], corrections: Sequence[Correction]) -> State:
    """A state with all keys changed, or removed where the change is None, and with other corrections."""
    keys, poses = (
        [new for key in each if (new := change(key)) is not None]
        for each in (state.timeline.keys, state.timeline.poses)
    )
    timeline = state.timeline.with_(
        keys=sorted(keys, key=lambda key: (key.handle, key.frame)),
        poses=sorted(poses, key=lambda key: key.frame),
    )
    layers = None if state.layers is None else replace(state.layers, corrections=tuple(corrections))
    return state.with_(timeline=timeline, layers=layers)
