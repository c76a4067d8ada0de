"""Pose to pose: whole poses are keys, and the motion prior moves the body between them.

The pose of a key is that of the motion at its frame; a key says how the body goes on from there. Paths of handles and
pins are a layer above: they hold between the keys, and pass through the handles' places at the keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

import numpy as np

from poise.apps.inbetweening import PoseKey, passing, straight
from poise.apps.keyframing import through_script
from poise.apps.keyframing_script import HeldHandle
from poise.errors import InvalidValueError, PoiseError
from poise.motion.edit import mirror, place
from poise.motion.motion import Motion
from poise.motion.world import headings
from poise.priors.motion.prior import MotionPrior
from poise.skeleton.pose_space import Handle
from poise.skeleton.skeleton import Pose, Skeleton
from poise.studio.correcting import destinations
from poise.studio.correcting import moved as moved_keys
from poise.studio.hands import swapped
from poise.studio.layers import Layers, held, joined
from poise.studio.messages import POSES, BodyKey, MoveKeys, RangeEdit, Timeline
from poise.studio.solving import feet_of, place_of, turn_of
from poise.studio.state import State, handles_on
from poise.studio.timeline_script import SMOOTHED, script_of, with_key

STANDS = 0.005  # metres that a foot moves at most from key to key to count as standing
Poses = Mapping[int, Pose]
"""Poses by frame."""


def poses_of(state: State) -> dict[int, Pose]:
    """The poses of the whole-body keys."""
    return (
        {} if state.motion is None else {key.frame: state.motion[key.frame] for key in state.timeline.poses}
    )


def keyed(state: State, rest: State, ease: int) -> State:
    """Key the shown pose at its frame; the first key away from the start also keys the pose of `rest` there."""
    timeline, frame = state.timeline, state.timeline.frame
    poses = poses_of(state) if state.is_posed else {0: rest.pose}
    known = {key.frame: key for key in timeline.poses if state.is_posed}
    pinned = [handle.id for handle in state.handles if handle.pinned]
    key = known.get(frame, BodyKey(frame=frame, ease=ease)).with_(handles=pinned, hands=state.hands)
    keys = known or {0: BodyKey(frame=0, ease=ease, hands=rest.hands)}
    found = rekeyed(state, {**keys, frame: key}.values(), {**poses, frame: state.pose}, [frame])
    return found.with_(placed=state.placed)


def rekeyed(state: State, keys: Iterable[BodyKey], poses: Poses, reposed: Iterable[int] = ()) -> State:
    """With these whole-body keys: the frames around those that changed are filled at once, the others later.

    `reposed` are frames whose pose differs, though their key may not.
    """
    old = {key.frame: key for key in state.timeline.poses}
    new = {key.frame: key for key in sorted(keys, key=lambda key: key.frame)}
    timeline = state.timeline.with_(clip=POSES, poses=list(new.values()), styles=[])
    if not new:
        return state.with_(timeline=timeline.with_(clip=None), layers=None, smooth=True, by_hand=False)
    own = {frame: poses[frame] for frame in new}
    changed = {*reposed, *(at for at in {**old, **new} if old.get(at) != new.get(at))}
    base = held(next(iter(own.values())), timeline.frames, timeline.fps)
    if state.is_posed and state.motion is not None and len(state.motion) == timeline.frames:
        base = replace(state.motion, fps=timeline.fps)
    else:
        changed = set(new)
    if changed:
        first = max((at for at in new if at < min(changed)), default=min(new))
        last = min((at for at in new if at > max(changed)), default=max(new))
        near = {at: key for at, key in new.items() if first <= at <= last}
        ends = 0 if first == min(new) else first, timeline.frames - 1 if last == max(new) else last
        base = joined(base, [filled(near, own, timeline, ends)], ends[0])
    return state.with_(timeline=timeline, layers=Layers(base), smooth=False, by_hand=False)


def filled(keys: Mapping[int, BodyKey], poses: Poses, timeline: Timeline, span: tuple[int, int]) -> Motion:
    """The frames of a span through its keys, as the motion prior expects them; held before and after the keys."""
    skeleton = next(iter(poses.values())).skeleton
    through, fps = _through(keys, poses, timeline, span), timeline.fps
    if len(through) < 2:
        return held(poses[min(keys)], span[1] - span[0] + 1, fps)
    prior = prior_on(skeleton)
    made = passing(through, prior, fps=fps).motion if prior else straight(through, skeleton, fps=fps)
    return _met(made, keys, poses, span[0])


def prior_on(skeleton: Skeleton) -> MotionPrior | None:
    """The motion prior on a body; None if it does not know bodies of this kind."""
    try:
        prior = MotionPrior(skeleton)
        return prior if prior.carrier else None
    except PoiseError:
        return None


def moved(state: State, message: MoveKeys) -> State:
    """Move or copy keys to other frames; whole poses go with them, or their mirror images."""
    changed, _ = moved_keys(state, message)
    poses, carried = poses_of(state), {}
    chosen = {key.frame for key in message.keys if key.handle is None}
    for (handle, frame), (_, to) in destinations(state, message).items():
        if handle is None:
            pose = poses[frame]
            mirrored = message.mirrored and frame in chosen
            carried[to] = standing_as(pose, pose, mirrored=True) if mirrored else pose
    keys = changed.timeline.poses
    if message.mirrored:
        images = {
            to
            for (handle, at), (_, to) in destinations(state, message).items()
            if handle is None and at in chosen
        }
        keys = [key.with_(hands=swapped(key.hands)) if key.frame in images else key for key in keys]
    old = state.with_(timeline=changed.timeline.with_(poses=state.timeline.poses))
    return rekeyed(old, keys, {**poses, **carried}, carried)


def solved(state: State) -> Layers:
    """The whole motion: feet that stand are in place, and paths and pins of handles are followed between the keys."""
    assert state.layers is not None
    timeline, poses = state.timeline, poses_of(state)
    if prior_on(state.pose.skeleton) is None or not 1 < len(poses) <= timeline.frames <= SMOOTHED:
        return state.layers
    keys = {key.frame: key for key in timeline.poses}
    through = _through(keys, poses, timeline, (0, timeline.frames - 1))
    above = script_of(_with_knots(state, poses))
    pins = [*above.pins, *_standing(state, poses)]
    made = through_script(replace(above, pins=pins, keys=[key for key, _ in through]), None)
    return Layers(_met(made.motion, keys, poses, 0), unmet=made.unmet)


def range_edited(state: State, first: int, last: int, edit: RangeEdit) -> State:
    """Mirror or reverse the keys of a range of frames, or end it in its first pose."""
    poses, keys = poses_of(state), {key.frame: key for key in state.timeline.poses}
    inside = [at for at in keys if first <= at <= last]
    if not inside:
        raise InvalidValueError(f"there is no key of the whole body in frames {first} to {last}")
    assert state.motion is not None
    if edit == "cycle":
        start, end = state.motion[first], state.motion[last]
        keys = {first: BodyKey(frame=first), **keys, last: keys.get(last, BodyKey(frame=last))}
        return rekeyed(state, keys.values(), {**poses, first: start, last: standing_as(end, start)}, [last])
    part = Motion.of_poses([poses[at] for at in inside])
    if edit == "mirror":
        x, _, z = part.root_positions[0].tolist()
        image = place(mirror(part), at=(x, z), heading=float(headings(part[:1])[0]))
        keys |= {at: keys[at].with_(hands=swapped(keys[at].hands)) for at in inside}
        return rekeyed(state, keys.values(), {**poses, **dict(zip(inside, image, strict=True))}, inside)
    others = {at: key for at, key in keys.items() if at not in inside}
    turned = {first + last - at: keys[at].with_(frame=first + last - at) for at in inside}
    there = {first + last - at: poses[at] for at in inside}
    return rekeyed(state, {**others, **turned}.values(), {**poses, **there}, [*inside, *turned])


def standing_as(body: Pose, pose: Pose, *, mirrored: bool = False) -> Pose:
    """A pose, or its mirror image, at a body's position and heading."""
    now, other = Motion.of_poses([body]), Motion.of_poses([pose])
    x, _, z = body.root_position.tolist()
    return place(mirror(other) if mirrored else other, at=(x, z), heading=float(headings(now)[0]))[0]


def _through(
    keys: Mapping[int, BodyKey], poses: Poses, timeline: Timeline, span: tuple[int, int]
) -> list[tuple[PoseKey, Pose]]:
    """The keys for the motion prior over a span, which begins and ends at rest in the first and the last of them."""
    frames, fps = sorted(keys), timeline.fps
    begins = [span[0], *frames[1:]]
    found = []
    for begin, at, after in zip(begins, frames, [*frames[1:], span[1] + 1], strict=True):
        key, last = keys[at], after > frames[-1]
        hold = after - 1 - begin if last else min(at + key.hold, after - 1) - begin
        made = PoseKey((begin - span[0]) / fps, poses[at], hold / fps, key.easing, key.tempo)
        found.append((made, poses[at]))
    return found


def _met(motion: Motion, keys: Mapping[int, BodyKey], poses: Poses, first: int) -> Motion:
    """A motion from a first frame on with the keys' poses to the last digit."""
    roots, turns = motion.root_positions.copy(), motion.rotations.copy()
    for at in keys:
        roots[at - first], turns[at - first] = poses[at].root_position, poses[at].rotations
    return motion.with_frames(roots, turns)


def _standing(state: State, poses: Poses) -> list[HeldHandle]:
    """Feet that are in one place at a key and at the next stand there between."""
    fps, busy = state.timeline.fps, {state.handle(name).joint for name in handles_on(state.timeline)}
    skeleton, found = state.pose.skeleton, []
    for role in feet_of(skeleton):
        if skeleton.names[skeleton.index(role)] not in busy:
            for (begin, one), (end, other) in pairwise(sorted(poses.items())):
                at = one.positions[role]
                if np.linalg.norm(other.positions[role] - at) < STANDS:
                    found.append(HeldHandle(Handle(role), begin / fps, end / fps, at))
    return found


def _with_knots(state: State, poses: Poses) -> State:
    """The paths of handles with a knot at every key of the whole body that they pass; no handle outside its path."""
    timeline = state.timeline
    for name in {key.handle for key in timeline.keys}:
        own, handle = [key for key in timeline.keys if key.handle == name], state.handle(name)
        for at, pose in poses.items():
            if min(key.frame for key in own) <= at <= max(key.frame for key in own):
                near = max((key for key in own if key.frame <= at), key=lambda key: key.frame)
                turn = None if near.rotation is None else turn_of(handle.joint, pose)
                there = near.with_(frame=at, position=place_of(handle, pose), rotation=turn)
                timeline = with_key(timeline, there)
    return state.with_(timeline=timeline)
