"""A timeline as a keyframe script: keys as paths of handles, pins and planted feet as held positions, styles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from jaxtyping import Bool, Float

from poise.apps.keyframing_script import (
    MODEL,
    HandlePath,
    HeldHandle,
    Script,
    StyleChange,
    TurnPath,
    or_unknown,
)
from poise.errors import InvalidValueError
from poise.geometry.splines import smoothstep
from poise.motion.contacts import foot_contacts, hand_contacts
from poise.motion.motion import Motion
from poise.motion.world import joint_positions
from poise.skeleton.pose_space import Handle as Point
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Pose
from poise.studio.messages import (
    Contact,
    Easing,
    Feet,
    Key,
    LockContact,
    Pin,
    SceneHandle,
    StyleKey,
    Timeline,
    Vec3,
)
from poise.studio.solving import HEADING, feet_of, point_of, points_of, taken_sides, vec3
from poise.studio.state import State, empty_timeline
from poise.types import Array

SOFT, SOFT_TURN = 0.02, 0.1  # metres and radians: tolerances of soft handles
STYLE_BLEND = 0.4  # seconds of a transition between styles
SHORTEST = 2  # frames: shortest contact that can be pinned


def script_of(state: State) -> Script:
    """The constraints of every frame from the keys, pins, pinned handles and feet of a state."""
    timeline = state.timeline
    keyed = {key.handle for key in timeline.keys}
    placed = dict.fromkeys(key.handle for key in timeline.keys if key.position is not None)
    paths = [path_of(state, handle) for handle in placed]
    end = (timeline.frames - 1) / timeline.fps
    pins = [
        HeldHandle(
            point_of(state.handle(pin.handle)),
            pin.first / timeline.fps,
            pin.last / timeline.fps,
            _place(state, pin),
        )
        for pin in timeline.pins
        if pin.last > pin.first
    ]
    pins += [
        HeldHandle(point, 0.0, end, np.array(at))
        for point, at in _held(state, keyed | {pin.handle for pin in timeline.pins})
    ]
    return Script(
        name="timeline", duration=end, fps=timeline.fps, paths=paths, pins=pins,
        changes=[StyleChange(name=MODEL)], models={}, floor=None if state.feet == "free" else 0.0,
        turns=_turns(state), heading=None if _turns(state) or not state.bearing.heading else state.anchors.get(HEADING),
        keeps_heading=state.bearing.heading, keeps_balance=state.bearing.balance and state.feet != "free",
    )  # fmt: skip


def state_of(script: Script, state: State) -> State:
    """A state with the handles, keys and pins of a script on its timeline, replacing the previous ones."""
    if script.models or script.constraints:
        raise InvalidValueError(
            "the studio opens keys and pins of a script; this one has styles or constraints: use `poise keyframe`"
        )
    given: list[HandlePath | TurnPath | HeldHandle] = [*script.paths, *script.turns, *script.pins]
    handles = [each.handle for each in given]
    own = {point.joint: _handle(point, script, state.pose) for point in handles}
    keys = [key for name in own for key in _script_keys(script, name)]
    pins = [
        Pin(
            handle=pin.handle.joint, first=round(pin.start * script.fps), last=round(pin.end * script.fps),
            position=None if pin.at is None else vec3(pin.at),
        )
        for pin in script.pins
    ]  # fmt: skip
    timeline = msgspec.structs.replace(
        empty_timeline(), fps=script.fps, frames=len(script.times), keys=keys, pins=pins
    )
    feet: Feet = "free" if script.floor is None else "above"
    return state.with_(
        handles=tuple(own.values()), timeline=timeline, feet=feet, layers=None, smooth=False, look_at=None
    )


def _handle(point: Point, script: Script, pose: Pose) -> SceneHandle:
    """A handle held only by its keys and pins, with the script's tolerance."""
    soft = {path.handle.joint: path.tolerance for path in script.paths}.get(point.joint)
    turn = {path.handle.joint: path.tolerance for path in script.turns}.get(point.joint)
    joint, (place,) = pose.skeleton.names[pose.skeleton.index(point.joint)], points_of(pose, [point])
    return SceneHandle(
        id=point.joint, joint=joint, offset=point.offset, position=vec3(place), pinned=False, hard=soft is None,
        tolerance=soft or SOFT, turn_tolerance=turn or SOFT_TURN,
    )  # fmt: skip


def _script_keys(script: Script, handle: str) -> list[Key]:
    """The keys of one handle: position and rotation of one frame are one key."""
    found: dict[int, Key] = {}
    paths: list[HandlePath | TurnPath] = [*script.paths, *script.turns]
    for path in [path for path in paths if path.handle.joint == handle]:
        values, velocities, names = (
            (path.points, path.tangents, ("position", "tangent"))
            if isinstance(path, HandlePath)
            else (path.turns, path.spins, ("rotation", "spin"))
        )
        for time, value, velocity, ease in zip(path.times, values, velocities, path.eases, strict=True):
            frame = round(time * script.fps)
            known = found.get(frame) or Key(handle=handle, frame=frame, easing=msgspec.convert(ease, Easing))
            given = (tuple(value.tolist()), vec3(velocity) if np.isfinite(velocity).all() else None)
            found[frame] = msgspec.structs.replace(known, **dict(zip(names, given, strict=True)))
    return list(found.values())


def path_of(state: State, handle: str) -> HandlePath:
    """The curve through a handle's keys; constant before the first and after the last."""
    timeline, own = state.timeline, state.handle(handle)
    frames, points = _through(timeline, [(key.frame, key.position) for key in _keys_of(timeline, handle)])
    given = {key.frame: key.tangent for key in _keys_of(timeline, handle)}
    return HandlePath(
        point_of(own), frames / timeline.fps, points, or_unknown([given.get(int(frame)) for frame in frames]),
        _eases(timeline, handle, frames), tolerance=None if own.hard else own.tolerance,
    )  # fmt: skip


def turn_path_of(state: State, handle: str) -> TurnPath | None:
    """The rotations of a handle over time, if its keys have them; without keys it keeps its rotation."""
    timeline, own = state.timeline, state.handle(handle)
    keys = _keys_of(timeline, handle)
    turns = [(key.frame, key.rotation) for key in keys] if keys else [(0, own.rotation)]
    if all(turn is None for _, turn in turns) or not (keys or own.pinned):
        return None
    frames, quaternions = _through(timeline, turns)
    given = {key.frame: key.spin for key in keys}
    return TurnPath(
        point_of(own), frames / timeline.fps, quaternions,
        or_unknown([given.get(int(frame)) for frame in frames]), _eases(timeline, handle, frames),
        tolerance=None if own.hard else own.turn_tolerance,
    )  # fmt: skip


def weights_of(timeline: Timeline, model: str) -> tuple[list[str], Float[Array, "frames styles"]]:
    """The models by id, and each frame's weights over them; without a lane all frames use one model."""
    keys = sorted(timeline.styles, key=lambda key: key.frame)
    names = list(dict.fromkeys(weight.model for key in keys for weight in key.weights)) or [model]
    weights = (
        np.ones((timeline.frames, 1)) if not keys else np.tile(_shares(keys[0], names), (timeline.frames, 1))
    )
    times = np.arange(timeline.frames) / timeline.fps
    for key in keys[1:]:
        share = smoothstep((times - key.frame / timeline.fps) / STYLE_BLEND)[:, None]
        weights = (1.0 - share) * weights + share * _shares(key, names)
    return names, weights


def touched_range(timeline: Timeline, key: Key) -> tuple[int, int]:
    """The range of frames that a key affects: from the previous key to the next."""
    frames = sorted(
        {other.frame for other in timeline.keys if other.handle == key.handle and other.frame != key.frame}
    )
    before = [frame for frame in frames if frame < key.frame]
    after = [frame for frame in frames if frame > key.frame]
    return (before[-1] if before else 0), (after[0] + 1 if after else timeline.frames)


def with_key(timeline: Timeline, key: Key) -> Timeline:
    """Replace the key of the same handle and frame, or add it."""
    others = [old for old in timeline.keys if (old.handle, old.frame) != (key.handle, key.frame)]
    return msgspec.structs.replace(
        timeline, keys=sorted([*others, key], key=lambda each: (each.handle, each.frame))
    )


def with_pins(timeline: Timeline, pins: Sequence[Pin]) -> Timeline:
    """Add pins, replacing overlapping ones of their handles."""

    def overlap(old: Pin) -> bool:
        return any(
            old.handle == pin.handle and old.first <= pin.last and pin.first <= old.last for pin in pins
        )

    return msgspec.structs.replace(
        timeline, pins=[*(old for old in timeline.pins if not overlap(old)), *pins]
    )


def without_handle(timeline: Timeline, handle: str) -> Timeline:
    """Remove everything of a removed handle."""
    keys = [key for key in timeline.keys if key.handle != handle]
    return msgspec.structs.replace(
        timeline, keys=keys, pins=[pin for pin in timeline.pins if pin.handle != handle]
    )


def _turns(state: State) -> list[TurnPath]:
    paths = [turn_path_of(state, handle.id) for handle in state.handles]
    return [path for path in paths if path is not None]


def _keys_of(timeline: Timeline, handle: str) -> list[Key]:
    return sorted((key for key in timeline.keys if key.handle == handle), key=lambda key: key.frame)


def _eases(timeline: Timeline, handle: str, frames: Float[Array, "keys"]) -> tuple[str, ...]:
    eases = {key.frame: key.easing for key in timeline.keys if key.handle == handle}
    return tuple(eases.get(int(frame), "none") for frame in frames)


def _through(
    timeline: Timeline, keys: Sequence[tuple[int, tuple[float, ...] | None]]
) -> tuple[Float[Array, "keys"], Float[Array, "keys size"]]:
    """The frames and values of keys that have one, with the first from the start on and the last to the end."""
    known = [(frame, value) for frame, value in keys if value is not None]
    (first, start), (last, end) = known[0], known[-1]
    before = [(0, start)] if first > 0 else []
    after = [(timeline.frames - 1, end)] if last < timeline.frames - 1 else []
    whole = [*before, *known, *after]
    return np.array([float(frame) for frame, _ in whole]), np.array([value for _, value in whole])


def _shares(key: StyleKey, names: Sequence[str]) -> Float[Array, "styles"]:
    shares = np.zeros(len(names))
    for weight in key.weights:
        shares[names.index(weight.model)] += weight.weight
    return shares / shares.sum() if shares.sum() > 0 else np.full(len(names), 1.0 / len(names))


def _place(state: State, pin: Pin) -> Float[Array, "3"] | None:
    """The position of a pin: its own, on the handle's path, or in the scene."""
    if pin.position is None and any(key.handle == pin.handle for key in state.timeline.keys):
        return None
    position = pin.position or state.handle(pin.handle).position
    return None if position is None else np.array(position)


def _held(state: State, busy: set[str]) -> list[tuple[Point, Vec3]]:
    """What stands still all the time: pinned handles without keys, and planted feet without a handle."""
    still = [
        handle
        for handle in state.handles
        if handle.pinned and handle.position is not None and handle.id not in busy
    ]
    held = [(point_of(handle), handle.position) for handle in still if handle.position is not None]
    if state.feet != "planted":
        return held
    moving = [handle for handle in state.handles if handle.id in busy or handle.pinned]
    taken = taken_sides(state.pose.skeleton, moving)
    feet = [role for role in feet_of(state.pose.skeleton) if not role.startswith(tuple(taken))]
    return [*held, *((Point(role), state.anchors[role]) for role in feet if role in state.anchors)]


def contacts_of(motion: Motion) -> list[Contact]:
    """Standing feet and holding hands, as ranges of frames."""
    return [
        Contact(part=part, first=first, last=last)
        for part, touches in _touches(motion).items()
        for first, last in _runs(np.any(touches, axis=1))
    ]


def locked(state: State, motion: Motion, contact: LockContact) -> State:
    """Add pins that hold a foot's heel and toes, or a hand, during a contact."""
    if contact.last >= len(motion):
        raise InvalidValueError(f"the motion has frames 0 to {len(motion) - 1}; got {contact.last}")
    pins, places = [], joint_positions(motion)
    for joint, first, last in _held_joints(motion, contact):
        at = vec3(np.median(places[first : last + 1, motion.skeleton.index(joint)], axis=0))
        pins.append(Pin(handle=joint, first=first, last=last, position=at, ease=contact.ease))
        if all(handle.id != joint for handle in state.handles):
            state = state.with_handle(SceneHandle(id=joint, joint=joint, position=at, pinned=False))
    if not pins:
        raise InvalidValueError(
            f"{contact.part} touches nothing from frame {contact.first} to {contact.last}"
        )
    return state.with_(timeline=with_pins(state.timeline, pins))


def _touches(motion: Motion) -> dict[str, Bool[Array, "frames points"]]:
    """By role: per frame, the points of a foot (heel, toes) or hand in contact."""
    roles = motion.skeleton.roles
    found: dict[str, Array] = {}
    if all(f"{side}_foot" in roles for side in SIDES):
        points = foot_contacts(motion).points
        found |= {f"{side}_foot": points[:, number] for number, side in enumerate(SIDES)}
    if all(f"{side}_hand" in roles for side in SIDES):
        hands = hand_contacts(motion)
        found |= {f"{side}_hand": hands[:, number, None] for number, side in enumerate(SIDES)}
    return found


def _held_joints(motion: Motion, contact: LockContact) -> Iterator[tuple[str, int, int]]:
    """The joints of a contact, and the range of frames of each."""
    touches, part, first, last = _touches(motion), contact.part, contact.first, contact.last
    if part not in touches:
        raise InvalidValueError(f"{part!r} is not one of {', '.join(touches) or 'any feet or hands'}")
    toes = part.replace("_foot", "_toes")
    roles = [part, toes] if toes in motion.skeleton.roles else [part]
    for role, touching in zip(roles, touches[part].T, strict=False):
        for start, end in _runs(touching[first : last + 1]):
            if end - start >= SHORTEST:
                yield motion.skeleton.names[motion.skeleton.index(role)], first + start, first + end


def _runs(flags: Bool[Array, "frames"]) -> list[tuple[int, int]]:
    """The first and last frames of every run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]])))
    return [(int(start), int(end) - 1) for start, end in zip(edges[::2], edges[1::2], strict=True)]
