"""A motion made of keys: the timeline as a keyframe script, and its solution.

Keys are paths of handles, pins and planted feet held positions. The frames are solved one after the other in parts, and
then all together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import msgspec
import numpy as np
from jaxtyping import Bool, Float

from poise.apps.keyframing import keyframe_in, plan
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
from poise.motion.contacts import foot_contacts, hand_contacts, low_contacts
from poise.motion.motion import Motion
from poise.motion.world import joint_positions
from poise.priors.prior import Prior
from poise.skeleton.pose_space import Handle as Point
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Pose
from poise.solvers.sequence import common_space, frame_by_frame
from poise.solvers.solution import MotionSolution
from poise.studio.layers import Layers, held, joined
from poise.studio.messages import (
    POSES,
    Contact,
    Easing,
    Key,
    LockContact,
    Pin,
    SceneHandle,
    StyleKey,
    Timeline,
    Vec3,
)
from poise.studio.models import PLAIN, ModelStore
from poise.studio.solving import HEADING, Poser, feet_of, point_of, points_of, taken_sides, vec3
from poise.studio.state import State, empty_timeline, handles_on
from poise.types import Array

SOFT, SOFT_TURN = 0.02, 0.1  # metres and radians: tolerances of soft handles
STYLE_BLEND = 0.4  # seconds of a transition between styles
SHORTEST = 2  # frames: shortest contact that can be pinned

AT_ONCE = 30  # frames that are solved while the page waits
PUT_IN = 16  # parts, about, in which a solved motion is put into the timeline; each copies all of it
SMOOTHED = 900  # largest number of frames solved as a whole, which takes memory for each
Span = tuple[int, int]
"""The first of a range of frames and the one after its last."""


@dataclass(frozen=True, eq=False)
class TimelinePlan:
    """A timeline prepared for solving: the priors, and each frame's weights over them."""

    state: State
    priors: Sequence[Prior]
    weights: Float[Array, "frames styles"]

    @classmethod
    def of(cls, state: State, models: ModelStore, poser: Poser) -> TimelinePlan:
        """The models that the lane of styles names, or the one in use."""
        lane = state.timeline
        if state.model == PLAIN and not lane.styles:
            raise InvalidValueError("keyframing needs a learned model; choose a style or a gaussian")
        if state.weights and not lane.styles:
            return cls(state, [poser.prior_of(state)], np.ones((lane.frames, 1)))
        names, weights = weights_of(lane, state.model)
        skeleton = poser.prior_of(state).space.skeleton
        return cls(state, [models[name].prior.on_body(skeleton) for name in names], weights)

    def stretch(self, layers: Layers | None, span: Span) -> Layers:
        """The motion with the frames of a span solved in sequence, from the frame before them."""
        timeline = self.state.timeline
        if layers is not None and len(layers) == timeline.frames:
            whole = layers.base if layers.base.fps == timeline.fps else replace(layers.base, fps=timeline.fps)
        else:
            whole = held(self.state.pose, timeline.frames, timeline.fps)
        part = self.solved(whole[max(span[0] - 1, 0)], span)
        over = () if layers is None else layers.corrections
        return Layers(joined(whole, [part], span[0]), tuple(each for each in over if each.frame < len(whole)))

    def solved(
        self, after: Pose, span: Span, *, progress: Callable[[int], None] = lambda _done: None
    ) -> Motion:
        """The frames of a span alone, after the pose before them."""
        frames = plan(self._script, self.priors, self.weights, span=span)
        space, fps = common_space(self.priors).space, self.state.timeline.fps
        q = frame_by_frame(self.priors, frames, space, fps=fps, after=after, progress=progress)
        return Motion(space.skeleton, fps, *space.frames_from_q(q))

    @cached_property
    def _script(self) -> Script:
        return script_of(self.state)

    def all_together(self, progress: Callable[[int, int], None]) -> MotionSolution:
        """Solve all frames together, for a smooth motion."""
        return keyframe_in(self._script, self.priors, self.weights, progress=progress)


def is_made_of_keys(timeline: Timeline) -> bool:
    """Whether a timeline has anything that makes a motion."""
    return bool(timeline.keys or timeline.pins)


def same_motion(one: Timeline, other: Timeline) -> bool:
    """Whether two timelines make the same motion."""
    one, other = (each.with_(frame=0, clip=None, poses=[]) for each in (one, other))
    return one == other


def about(frame: int, span: Span) -> Span:
    """The part of a span around a frame that is solved at once."""
    first, end = span
    start = min(max(frame - AT_ONCE // 2, first), max(end - AT_ONCE, first))
    return start, min(start + AT_ONCE, end)


def stretches(whole: Span, done: Span) -> list[Span]:
    """The rest of a span, in parts."""
    parts = [(whole[0], min(done[0], whole[1])), (max(done[1], whole[0]), whole[1])]
    return [
        (first, min(first + AT_ONCE, end)) for start, end in parts for first in range(start, end, AT_ONCE)
    ]


def script_of(state: State) -> Script:
    """The constraints of every frame from the keys, pins, pinned handles and feet of a state."""
    timeline = state.timeline
    keyed = {key.handle for key in timeline.keys}
    placed = dict.fromkeys(key.handle for key in timeline.keys if key.position is not None)
    paths = [path_of(state, handle) for handle in placed]
    turns = [path for handle in state.handles if (path := turn_path_of(state, handle.id)) is not None]
    end = (timeline.frames - 1) / timeline.fps
    pins: list[HeldHandle] = []
    for pin in timeline.pins:
        if pin.last > pin.first:
            handle = state.handle(pin.handle)
            at = pin.position or (None if pin.handle in keyed else handle.position)  # None: on its path
            first, last = pin.first / timeline.fps, pin.last / timeline.fps
            pins.append(HeldHandle(point_of(handle), first, last, None if at is None else np.array(at)))
    pins += [HeldHandle(point, 0.0, end, np.array(at)) for point, at in _held(state)]
    return Script(
        name="timeline", duration=end, fps=timeline.fps, paths=paths, pins=pins,
        changes=[StyleChange(name=MODEL)], models={}, floor=None if state.feet == "free" else 0.0,
        turns=turns, heading=None if turns or not state.bearing.heading else state.anchors.get(HEADING),
        keeps_heading=state.bearing.heading, keeps_balance=state.bearing.balance and state.feet != "free",
    )  # fmt: skip


def state_of(script: Script, state: State) -> State:
    """A state with the handles, keys and pins of a script on its timeline, replacing the previous ones."""
    if script.models or script.constraints:
        raise InvalidValueError(
            "the studio opens keys and pins of a script; this one has styles or constraints: use `poise keyframe`"
        )
    given: list[HandlePath | TurnPath | HeldHandle] = [*script.paths, *script.turns, *script.pins]
    own = {each.handle.joint: _handle(each.handle, script, state.pose) for each in given}
    keys = [key for name in own for key in _script_keys(script, name)]
    pins = [
        Pin(
            handle=pin.handle.joint, first=round(pin.start * script.fps), last=round(pin.end * script.fps),
            position=None if pin.at is None else vec3(pin.at),
        )
        for pin in script.pins
    ]  # fmt: skip
    timeline = empty_timeline().with_(fps=script.fps, frames=len(script.times), keys=keys, pins=pins)
    state = state.with_(feet="free" if script.floor is None else "above", layers=None, smooth=False)
    return state.with_(handles=tuple(own.values()), timeline=timeline, look_at=None)


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
    ways: list[tuple[HandlePath | TurnPath, Array, Array, str, str]]
    ways = [(path, path.points, path.tangents, "position", "tangent") for path in script.paths]
    ways += [(path, path.turns, path.spins, "rotation", "spin") for path in script.turns]
    for path, values, velocities, what, rate in ways:
        for time, value, velocity, ease in zip(path.times, values, velocities, path.eases, strict=True):
            if path.handle.joint == handle:
                frame, speed = (
                    round(time * script.fps),
                    vec3(velocity) if np.isfinite(velocity).all() else None,
                )
                key = found.get(frame) or Key(
                    handle=handle, frame=frame, easing=msgspec.convert(ease, Easing)
                )
                found[frame] = key.with_(**{what: tuple(value.tolist()), rate: speed})
    return list(found.values())


def path_of(state: State, handle: str) -> HandlePath:
    """The curve through a handle's keys; constant where two are alike, and beyond them unless whole poses say more."""
    timeline, own = state.timeline, state.handle(handle)
    keys = _keys_of(timeline, handle)
    frames, points = _through(timeline, [(key.frame, key.position) for key in keys])
    given = {key.frame: key.tangent for key in keys}
    return HandlePath(
        point_of(own), frames / timeline.fps, points, or_unknown([given.get(int(frame)) for frame in frames]),
        _eases(keys, frames), kind="monotone", tolerance=None if own.hard else own.tolerance,
    )  # fmt: skip


def turn_path_of(state: State, handle: str) -> TurnPath | None:
    """The rotations of a handle over time, if its keys have them; without keys it keeps its rotation."""
    timeline, own = state.timeline, state.handle(handle)
    keys = _keys_of(timeline, handle)
    turns = [(key.frame, key.rotation) for key in keys] if keys else [(0, own.rotation)]
    if all(turn is None for _, turn in turns) or not (keys or (own.pinned and not state.is_posed)):
        return None
    frames, quaternions = _through(timeline, turns)
    given = {key.frame: key.spin for key in keys}
    return TurnPath(
        point_of(own), frames / timeline.fps, quaternions,
        or_unknown([given.get(int(frame)) for frame in frames]), _eases(keys, frames), kind="monotone",
        tolerance=None if own.hard else own.turn_tolerance,
    )  # fmt: skip


def weights_of(timeline: Timeline, model: str) -> tuple[list[str], Float[Array, "frames styles"]]:
    """The models by id, and each frame's weights over them; without a lane all frames use one model."""
    keys = sorted(timeline.styles, key=lambda key: key.frame)
    names = list(dict.fromkeys(weight.model for key in keys for weight in key.weights)) or [model]
    first = _shares(keys[0], names) if keys else np.ones(1)
    weights = np.tile(first, (timeline.frames, 1))
    times = np.arange(timeline.frames) / timeline.fps
    for key in keys[1:]:
        share = smoothstep((times - key.frame / timeline.fps) / STYLE_BLEND)[:, None]
        weights = (1.0 - share) * weights + share * _shares(key, names)
    return names, weights


def touched_range(timeline: Timeline, handle: str, frame: int) -> tuple[int, int]:
    """The range of frames that a key affects: from the previous key to the next."""
    frames = [key.frame for key in timeline.keys if key.handle == handle]
    before, after = (each for each in frames if each < frame), (each for each in frames if each > frame)
    return max(before, default=0), min(after, default=timeline.frames - 1) + 1


def with_key(timeline: Timeline, key: Key) -> Timeline:
    """Replace the key of the same handle and frame, or add it."""
    keys = {(each.handle, each.frame): each for each in (*timeline.keys, key)}
    return timeline.with_(keys=[keys[place] for place in sorted(keys)])


def with_pins(timeline: Timeline, pins: Sequence[Pin]) -> Timeline:
    """Add pins, replacing overlapping ones of their handles."""
    kept = timeline.pins
    for new in pins:
        kept = [
            each
            for each in kept
            if each.handle != new.handle or each.last < new.first or new.last < each.first
        ]
    return timeline.with_(pins=[*kept, *pins])


def without_handle(timeline: Timeline, handle: str) -> Timeline:
    """Remove everything of a removed handle."""
    keys, pins = ([each for each in own if each.handle != handle] for own in (timeline.keys, timeline.pins))
    return timeline.with_(keys=keys, pins=pins)


def _keys_of(timeline: Timeline, handle: str) -> list[Key]:
    return sorted((key for key in timeline.keys if key.handle == handle), key=lambda key: key.frame)


def _eases(keys: Sequence[Key], frames: Float[Array, "keys"]) -> tuple[str, ...]:
    eases = {key.frame: key.easing for key in keys}
    return tuple(eases.get(int(frame), "none") for frame in frames)


def _through(
    timeline: Timeline, keys: Sequence[tuple[int, tuple[float, ...] | None]]
) -> tuple[Float[Array, "keys"], Float[Array, "keys size"]]:
    """The frames and values of keys that have one; without whole poses the first and last hold to the ends."""
    known = [(frame, value) for frame, value in keys if value is not None]
    ends = {} if timeline.clip == POSES else {0: known[0][1], timeline.frames - 1: known[-1][1]}
    whole = sorted({**ends, **dict(known)}.items())
    return np.array([float(frame) for frame, _ in whole]), np.array([value for _, value in whole])


def _shares(key: StyleKey, names: Sequence[str]) -> Float[Array, "styles"]:
    shares = np.zeros(len(names))
    for weight in key.weights:
        shares[names.index(weight.model)] += weight.weight
    return shares / shares.sum() if shares.sum() > 0 else np.full(len(names), 1.0 / len(names))


def _held(state: State) -> list[tuple[Point, Vec3]]:
    """What stands still all the time: pinned handles without keys, and planted feet without a handle."""
    if state.is_posed:  # the poses say where they are
        return []
    busy = handles_on(state.timeline)
    still = [handle for handle in state.handles if handle.pinned and handle.id not in busy]
    held = [(point_of(handle), handle.position) for handle in still if handle.position is not None]
    if state.feet != "planted":
        return held
    moving = [handle for handle in state.handles if handle.id in busy or handle.pinned]
    taken = taken_sides(state.pose.skeleton, moving)
    feet = [role for role in feet_of(state.pose.skeleton) if not role.startswith(tuple(taken))]
    return [*held, *((Point(role), state.anchors[role]) for role in feet if role in state.anchors)]


def contacts_of(motion: Motion) -> list[Contact]:
    """Standing feet, holding hands, kneeling knees and the seat, as ranges of frames."""
    return [
        Contact(part=part, first=first, last=last)
        for part, touches in _touches(motion).items()
        for first, last in _runs(np.any(touches, axis=1))
    ]


def locked(state: State, motion: Motion, contact: LockContact) -> State:
    """Add pins that hold a foot's heel and toes, or a hand, during a contact."""
    if contact.last >= len(motion):
        raise InvalidValueError(f"the motion has frames 0 to {len(motion) - 1}; got {contact.last}")
    touches, part, skeleton = _touches(motion), contact.part, motion.skeleton
    if part not in touches:
        raise InvalidValueError(f"{part!r} is not one of {', '.join(touches) or 'any feet or hands'}")
    toes = part.replace("_foot", "_toes")
    pins, places, ease = [], joint_positions(motion), state.timeline.eased(contact.ease)
    for role, touching in zip(dict.fromkeys((part, toes)), touches[part].T, strict=False):
        for start, end in _runs(touching[contact.first : contact.last + 1]):
            if role not in skeleton.roles or end - start < SHORTEST:
                continue
            first, last, joint = contact.first + start, contact.first + end, skeleton.index(role)
            at, name = vec3(np.median(places[first : last + 1, joint], axis=0)), skeleton.names[joint]
            pins.append(Pin(handle=name, first=first, last=last, position=at, ease=ease))
            if all(handle.id != name for handle in state.handles):
                state = state.with_handle(SceneHandle(id=name, joint=name, position=at, pinned=False))
    if not pins:
        raise InvalidValueError(
            f"{contact.part} touches nothing from frame {contact.first} to {contact.last}"
        )
    return state.with_(timeline=with_pins(state.timeline, pins))


def _touches(motion: Motion) -> dict[str, Bool[Array, "frames points"]]:
    """By role: per frame, the points of a foot (heel, toes), hand, knee or the seat in contact."""
    roles = motion.skeleton.roles
    found: dict[str, Array] = {}
    if all(f"{side}_foot" in roles for side in SIDES):
        points = foot_contacts(motion).points
        found |= {f"{side}_foot": points[:, number] for number, side in enumerate(SIDES)}
    if all(f"{side}_hand" in roles for side in SIDES):
        hands = hand_contacts(motion)
        found |= {f"{side}_hand": hands[:, number, None] for number, side in enumerate(SIDES)}
    if found:  # else nothing says where the floor is
        found |= {role: touches[:, None] for role, touches in low_contacts(motion).items()}
    return found


def _runs(flags: Bool[Array, "frames"]) -> list[tuple[int, int]]:
    """The first and last frames of every run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]])))
    return [(int(start), int(end) - 1) for start, end in zip(edges[::2], edges[1::2], strict=True)]
