"""Training poses for all priors: frames of one topology, joint limits of the data, fingerprints, handles."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.motion.motion import Motion
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import JointLimits, Skeleton
from poise.types import Array

Ready = TypeVar("Ready")
Prepared = dict[tuple[bytes, bytes], Ready]  # cache of prepared results, by handles

LIMIT_MARGIN = 0.1  # radians: smallest margin of the joint limits beyond the range of the data
SAME_BONES = 0.005  # metres: largest total bone difference of one performer
LIMIT_SHARE = 0.5  # margin as a share of the range of the data, since other bodies move differently


def common_frames(motions: Sequence[Motion]) -> tuple[Skeleton, Float[Array, "frames joints 4"]]:
    """The skeleton of clips of one topology, and all their joint rotations; with the first clip's limb lengths."""
    if not motions or sum(len(motion) for motion in motions) < 2:
        raise InvalidValueError("learning needs at least two frames of motion")
    skeleton = motions[0].skeleton
    for motion in motions[1:]:
        if not motion.skeleton.same_topology(skeleton):
            raise InvalidValueError(
                f"{motion.name or 'a clip'} has another skeleton than {motions[0].name or 'the first'}"
            )
    return skeleton, np.concatenate([motion.rotations for motion in motions])


def pose_space_of(motions: Sequence[Motion]) -> PoseSpace:
    """The pose space of clips of one topology, with the first clip's limb lengths."""
    return PoseSpace.of_rotations(*common_frames(motions))


def limits_of(space: PoseSpace, maps: Float[Array, "poses maps"]) -> JointLimits:
    """Joint limits from data: its range, widened at each end."""
    lower, upper = np.zeros((len(space.skeleton), 3)), np.zeros((len(space.skeleton), 3))
    least, most = maps.min(axis=0), maps.max(axis=0)
    margin = LIMIT_MARGIN + LIMIT_SHARE * (most - least)
    lower[space.moving], upper[space.moving] = (least - margin).reshape(-1, 3), (most + margin).reshape(-1, 3)
    return JointLimits(space.references, lower, upper)


def motion_hash(motion: Motion) -> str:
    """A fingerprint of a motion's frames, by which a model names its training clips."""
    digest = hashlib.sha256(motion.rotations.tobytes())
    digest.update(motion.root_positions.tobytes())
    return digest.hexdigest()


def handle_positions(
    space: PoseSpace, maps: Float[Array, "poses maps"], handles: Handles
) -> Float[Array, "poses handles 3"]:
    """Positions of the handles in each pose, in the root's frame."""
    return space.points_in_root_frame(maps, handles)


def prepared_for(
    handles: Handles, made: Prepared[Ready], make: Callable[[Handles], Ready], *, most: int
) -> Ready:
    """Return the cached result for these handles, made now if needed; the cache is cleared beyond `most` entries."""
    key = (handles.joints.tobytes(), handles.offsets.tobytes())
    if key not in made:
        if len(made) >= most:
            made.clear()
        made[key] = make(handles)
    return made[key]


def upright(maps: Float[Array, "poses maps"]) -> tuple[Float[Array, "poses maps"], Float[Array, "poses 3"]]:
    """Poses with an upright root, in the form of `Prior.known_poses`."""
    return np.asarray(maps), np.tile([0.0, 1.0, 0.0], (len(maps), 1))
