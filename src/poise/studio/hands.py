"""The shapes of hands over time: from whole-body key to key, or as they are chosen where poses are no keys."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import get_args

import numpy as np
from jaxtyping import Float, Int

from poise.geometry.splines import smoothstep
from poise.motion.hands import as_array, in_shape
from poise.motion.motion import Motion
from poise.skeleton.skeleton import Pose
from poise.studio.layers import changed_frames
from poise.studio.messages import BodyKey, Hands, HandShape
from poise.studio.state import State
from poise.types import Array

Shapes = dict[str, Float[Array, "frames shapes"]]
SHAPES: tuple[HandShape, ...] = get_args(HandShape)
LEAST = 0.005  # shares below are not kept


def hands_over(state: State, frames: Int[Array, "frames"]) -> Shapes:
    """By hand, the shares of shapes in some frames."""
    keys = sorted(state.timeline.poses, key=lambda key: key.frame)
    if not keys or not (state.is_posed or state.is_recording):
        return {side: np.tile(shares, (len(frames), 1)) for side, shares in _arrays(state.hands).items()}
    weights = _from_key_to_key(keys, frames) if state.is_posed else _around_keys(keys, frames)
    of_keys = [_arrays(key.hands) for key in keys]
    return {side: weights @ np.array([shares[side] for shares in of_keys]) for side in ("left", "right")}


def hands_at(state: State, frame: int) -> Hands:
    """The shapes at a frame."""
    left, right = (
        {shape: float(share) for shape, share in zip(SHAPES, shares[0], strict=True) if share > LEAST}
        for shares in hands_over(state, np.array([frame])).values()
    )
    return Hands(left=left, right=right)


def shaped(pose: Pose, hands: Hands) -> Pose:
    """A pose with its fingers."""
    shares = {side: own[None] for side, own in _arrays(hands).items()}
    return in_shape(Motion.of_poses([pose]), shares)[0]


def shaped_motion(state: State, first: int, end: int) -> Motion:
    """Frames of a state's motion with their fingers."""
    assert state.motion is not None
    return in_shape(state.motion[first:end], hands_over(state, np.arange(first, end)))


def any_shape(state: State) -> bool:
    """Whether a shape was chosen anywhere."""
    return any(
        hands.left or hands.right for hands in (state.hands, *(key.hands for key in state.timeline.poses))
    )


def differing_frames(before: State | None, after: State) -> tuple[int, int]:
    """The first frame in which bodies or hands of two motions differ, and the one after the last; (0, 0) if none."""
    assert after.motion is not None
    old = None if before is None else before.motion
    first, end = changed_frames(old, after.motion)
    if before is None or old is None or (first, end) == (0, len(after.motion)):
        return first, end
    frames = np.arange(len(after.motion))
    one, other = hands_over(before, frames), hands_over(after, frames)
    found = np.flatnonzero(np.any([(one[side] != other[side]).any(axis=1) for side in one], axis=0))
    if not len(found):
        return first, end
    own = int(found[0]), int(found[-1]) + 1
    return own if end == 0 else (min(first, own[0]), max(end, own[1]))


def swapped(hands: Hands) -> Hands:
    """Those of the mirror image."""
    return Hands(left=hands.right, right=hands.left)


def _arrays(hands: Hands) -> Mapping[str, Float[Array, "shapes"]]:
    return {"left": as_array(hands.left), "right": as_array(hands.right)}  # type: ignore[arg-type]


def _from_key_to_key(keys: list[BodyKey], frames: Int[Array, "frames"]) -> Float[Array, "frames keys"]:
    """The share of each key: one at it and while it is held, none at the others."""
    weights = np.zeros((len(frames), len(keys)))
    weights[:, 0] = 1.0
    for number, (key, after) in enumerate(pairwise(keys)):
        begin = min(key.frame + key.hold, after.frame - 1)
        share = smoothstep((frames - begin) / (after.frame - begin))
        weights[:, number] = np.where(frames > begin, 1.0 - share, weights[:, number])
        weights[:, number + 1] = share
    return weights


def _around_keys(keys: list[BodyKey], frames: Int[Array, "frames"]) -> Float[Array, "frames keys"]:
    """The share of each key over a recording: it fades over its ease, or up to the next key."""
    places = [-np.inf, *(key.frame for key in keys), np.inf]
    found = []
    for key, before, after in zip(keys, places, places[2:], strict=False):
        reach = key.ease + 1
        fade = np.where(frames < key.frame, min(reach, key.frame - before), min(reach, after - key.frame))
        found.append(smoothstep(1.0 - np.abs(frames - key.frame) / fade))
    return np.stack(found, axis=1)
