"""The handles that belong to a limb: those that its joints move or, below the last handle, hang from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.gp.covariance import LAPLACIAN
from poise.gp.regression import Groups
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

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
    return [
        Limb(
            first + (3 * np.array(slots)[:, None] + np.arange(3)).ravel(),
            np.isin(np.arange(len(handles)), list(own)),
        )
        for own, slots in members.items()
    ]


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
    return np.repeat(moved_joints(space.skeleton, handles)[space.moving], 3)


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


def moved_joints(skeleton: Skeleton, handles: Handles) -> Bool[Array, "joints"]:
    """Mask of the joints that move a handle."""
    moves = np.zeros(len(skeleton), dtype=np.bool_)
    for joint, offset in zip(handles.joints, handles.offsets, strict=True):
        above = int(joint) if np.any(offset) else int(skeleton.parents[joint])
        while above >= 0:
            moves[above] = True
            above = int(skeleton.parents[above])
    return moves


def _chain(skeleton: Skeleton, joint: int) -> Iterator[int]:
    """A joint and its ancestors, up to the root."""
    while joint >= 0:
        yield joint
        joint = int(skeleton.parents[joint])
