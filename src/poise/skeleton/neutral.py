"""The neutral pose of a body: upright, facing +Z, legs straight down, arms straight out to the sides.

It defines the meaning of each joint's own axes (which way a knee bends, where the front of the head is), for any rest
pose of the file. If the rest pose stands like a person (T, A or I pose), only its limbs are straightened, which fixes
every axis. Otherwise, as for the stick along X that bone-aligned rigs leave in BVH files, it does not determine a
limb's twist about its own length; then the mean of recorded rotations does, if given.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.skeleton.roles import SIDES, path
from poise.skeleton.skeleton import Skeleton, read_only
from poise.types import Array

LEFT, UP, FORWARD = np.eye(3)
_NEARLY_AXES = np.radians(40.0)  # largest angle between bone-aligned and body axes in the neutral pose
_DOWN_AND_FORWARD = np.array([0.0, -np.sin(np.radians(20.0)), np.cos(np.radians(20.0))])


@dataclass(frozen=True, eq=False)
class Neutral:
    """Rotations of the neutral pose; `twist_known` is false if limbs may be twisted about their own length."""

    rotations: Float[Array, "joints 4"]
    world: Float[Array, "joints 3 3"]
    positions: Float[Array, "joints 3"]
    twist_known: bool

    def local(self, joint: int, direction: Float[Array, "*n 3"]) -> Float[Array, "*n 3"]:
        """A direction of the neutral body (left, up, forward) in the joint's own axes."""
        turned: Array = np.asarray(direction) @ self.world[joint]
        return turned


def neutral_pose(skeleton: Skeleton, samples: Float[Array, "frames joints 4"] | None = None) -> Neutral:
    """The neutral pose; `samples` are recorded rotations, used if the rest pose does not stand like a person."""
    upright = stands_at_rest(skeleton)
    local = np.tile(np.eye(3), (len(skeleton), 1, 1))
    if samples is not None and not upright:
        local = rotations.matrix_from_quaternion(rotations.mean(samples))
    world = _straightened(skeleton, local, keep_trunk=upright)
    local = world.copy()
    local[1:] = np.swapaxes(world[skeleton.parents[1:]], -1, -2) @ world[1:]
    return Neutral(
        rotations=read_only(rotations.quaternion_from_matrix(local)),
        world=read_only(world),
        positions=read_only(_positions(skeleton, world)),
        twist_known=upright or samples is not None,
    )


def stands_at_rest(skeleton: Skeleton) -> bool:
    """Whether in the rest pose both legs point away from the trunk, and left and right are on their sides."""
    roles = skeleton.roles
    needed = {"pelvis", "head", "left_thigh", "right_thigh", "left_foot", "right_foot"}
    if not needed <= set(roles):
        return False
    places = _positions(skeleton, np.tile(np.eye(3), (len(skeleton), 1, 1)))
    up = _unit(places[skeleton.index("head")] - places[skeleton.index("pelvis")])
    legs = [_unit(places[skeleton.index(f"{s}_foot")] - places[skeleton.index(f"{s}_thigh")]) for s in SIDES]
    across = places[skeleton.index("left_thigh")] - places[skeleton.index("right_thigh")]
    return bool(all(leg @ up < -0.7 for leg in legs) and np.linalg.norm(np.cross(up, across)) > 1e-9)


# --- construction --------------------------------------------------------------------------------------------------


def _straightened(
    skeleton: Skeleton, local: Float[Array, "joints 3 3"], *, keep_trunk: bool
) -> Float[Array, "joints 3 3"]:
    """World rotations of the base pose with the pelvis facing +Z and limbs (and trunk) straightened."""
    base_world = local.copy()
    for joint, parent in enumerate(skeleton.parents.tolist()):
        if parent >= 0:
            base_world[joint] = base_world[parent] @ local[joint]
    places = _positions(skeleton, base_world)
    frames = _known_frames(skeleton, base_world, places, trunk=not keep_trunk)
    bones = _bone_targets(skeleton, trunk=not keep_trunk)
    feet = {skeleton.index(role) for role in ("left_foot", "right_foot") if role in skeleton.roles}
    world = np.empty_like(local)
    for joint, parent in enumerate(skeleton.parents.tolist()):
        turned = local[joint] if parent < 0 else world[parent] @ local[joint]
        if joint in frames:
            turned = frames[joint]
        elif joint in bones:
            end, direction = bones[joint]
            bone = turned @ base_world[joint].T @ (places[end] - places[joint])
            if np.linalg.norm(bone) > 0.0:
                shortest = rotations.quaternion_between(bone, direction)
                turned = rotations.matrix_from_quaternion(shortest) @ turned
        world[joint] = turned if keep_trunk or joint in feet else nearest_axes(turned, within=_NEARLY_AXES)
    return world


def _known_frames(
    skeleton: Skeleton, world: Float[Array, "joints 3 3"], places: Float[Array, "joints 3"], *, trunk: bool
) -> dict[int, Float[Array, "3 3"]]:
    """World rotations of the joints that a pair of limbs and the trunk fully determine: the pelvis, and the chest."""
    roles = skeleton.roles
    found: dict[int, Array] = {}
    triples: list[tuple[str, str, tuple[str, ...]]] = [("pelvis", "thigh", ("chest", "neck", "head"))]
    if trunk:
        triples.append(("chest", "upper_arm", ("neck", "head")))
    for role, limb, tops in triples:
        top = next((name for name in tops if name in roles and name != role), None)
        if role in roles and top and f"left_{limb}" in roles and f"right_{limb}" in roles:
            joint = skeleton.index(role)
            # The first joint off the midline on the way to a limb: its position is fixed to the joint itself.
            ends = []
            for end in (skeleton.index(f"{side}_{limb}") for side in SIDES):
                way = path(skeleton, joint, end)[1:]
                ends.append(next((step for step in way if np.linalg.norm(skeleton.offsets[step]) > 0), end))
            left, up = places[ends[0]] - places[ends[1]], places[skeleton.index(top)] - places[joint]
            if np.any(up) and np.linalg.norm(np.cross(left, up)) > 1e-6 * np.linalg.norm(
                left
            ) * np.linalg.norm(up):
                up = _unit(up)
                forward = _unit(np.cross(left, up))
                axes = np.stack([np.cross(up, forward), up, forward], axis=-1)
                found[joint] = nearest_axes(axes).T @ world[joint]
    return found


def _bone_targets(skeleton: Skeleton, *, trunk: bool) -> dict[int, tuple[int, Array]]:
    """Per joint, the end joint of its bone and that bone's direction in the neutral pose."""
    wanted: list[tuple[str, str, Array]] = []
    for side, out in (("left", LEFT), ("right", -LEFT)):
        wanted += [(f"{side}_upper_arm", f"{side}_forearm", out), (f"{side}_forearm", f"{side}_hand", out)]
        wanted += [(f"{side}_thigh", f"{side}_shin", -UP), (f"{side}_shin", f"{side}_foot", -UP)]
        if trunk:
            wanted += [
                (f"{side}_foot", f"{side}_toes", _DOWN_AND_FORWARD),
                (f"{side}_shoulder", f"{side}_upper_arm", out),
            ]
    if trunk:
        wanted += [("spine", "chest", UP), ("neck", "head", UP)]
    roles = skeleton.roles
    targets = {}
    for top, end, direction in wanted:
        if top in roles and end in roles:
            first, last = skeleton.index(top), skeleton.index(end)
            if np.any(skeleton.offsets[path(skeleton, first, last)[1:]] != 0):
                targets[first] = (last, direction)
    return targets


def _positions(skeleton: Skeleton, world: Float[Array, "joints 3 3"]) -> Float[Array, "joints 3"]:
    """Joint positions with the root at the origin."""
    places = np.zeros((len(skeleton), 3))
    for joint, parent in enumerate(skeleton.parents.tolist()):
        if parent >= 0:
            places[joint] = places[parent] + world[parent] @ skeleton.offsets[joint]
    return places


def nearest_axes(matrix: Float[Array, "3 3"], *, within: float = np.radians(15.0)) -> Float[Array, "3 3"]:
    """The signed permutation matrix close to an orthogonal matrix; the matrix itself if none is close."""
    snapped = np.round(matrix)
    axes_match = snapped @ snapped.T
    close = np.all(np.sum(snapped * matrix, axis=0) >= np.cos(within))
    return snapped if np.array_equal(axes_match, np.eye(3)) and close else matrix


def _unit(v: Array) -> Array:
    return v / max(float(np.linalg.norm(v)), 1e-12)
