"""Training poses for all priors: frames of one topology, limits, fingerprints, handles and their limbs.

The handles that belong to a limb: those that its joints move or, below the last handle, hang from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.errors import InvalidValueError
from poise.gp.covariance import LAPLACIAN
from poise.gp.regression import Groups
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


OTHER_HANDLES = 0.1  # weight of the squared distances of handles that do not belong to a joint's limb


@dataclass(frozen=True, eq=False)
class Limb:
    """Components of poses that are predicted together, and the handles that belong to them."""

    components: Int[Array, "components"]
    own: Bool[Array, "handles"]


def limbs_of(space: PoseSpace, handles: Handles, *, first: int = 0) -> list[Limb]:
    """Groups of joints that move, or hang from, the same handles, as pose components; maps start at `first`."""
    members: dict[frozenset[int], list[int]] = {}
    for slot, joint in enumerate(space.moving):
        members.setdefault(own_handles(space.skeleton, int(joint), handles), []).append(slot)
    found, numbers = [], np.arange(len(handles))
    for own, slots in members.items():
        components = first + (3 * np.array(slots)[:, None] + np.arange(3)).ravel()
        found.append(Limb(components, np.isin(numbers, list(own))))
    return found


def limb_groups(space: PoseSpace, handles: Handles) -> Groups:
    """A Laplacian kernel per limb (Huang et al. 2017, Eq. 8), in which its own handles have more weight.

    The paper's kernel takes all targets as one vector, so that a hand predicts a knee as much as an elbow.
    """
    limbs, unit = limbs_of(space, handles), np.repeat(np.arange(len(handles)), 3)
    weights = np.where([limb.own for limb in limbs], 1.0, OTHER_HANDLES)
    return Groups.of(LAPLACIAN, unit, [limb.components for limb in limbs], weights=weights)


def unmoved_apart(
    space: PoseSpace, handles: Handles, covariance: Float[Array, "maps maps"]
) -> Float[Array, "maps maps"]:
    """A covariance of poses in which joints that move no handle are independent of those that do."""
    moved = moved_maps(space, handles)
    return np.where(moved[:, None] == moved, covariance, 0.0)


def moved_maps(space: PoseSpace, handles: Handles) -> Bool[Array, "maps"]:
    """Mask of the pose components that move a handle."""
    moves, parents = np.zeros(len(space.skeleton), dtype=np.bool_), space.skeleton.parents
    for joint, offset in zip(handles.joints.tolist(), handles.offsets, strict=True):
        moves[list(_chain(space.skeleton, joint if np.any(offset) else int(parents[joint])))] = True
    return np.repeat(moves[space.moving], 3)


def own_handles(skeleton: Skeleton, joint: int, handles: Handles) -> frozenset[int]:
    """The handles that a joint moves or carries; if none, those of the nearest joint above it; or all."""
    carried = [number for number, place in enumerate(handles.joints) if joint in _chain(skeleton, int(place))]
    if carried:
        return frozenset(carried)
    for above in _chain(skeleton, joint):
        held = np.flatnonzero(handles.joints == above)
        if len(held):
            return frozenset(held.tolist())
    return frozenset(range(len(handles)))


def _chain(skeleton: Skeleton, joint: int) -> Iterator[int]:
    """A joint and its ancestors, up to the root."""
    while joint >= 0:
        yield joint
        joint = int(skeleton.parents[joint])
