"""What of a character's skin touches things: the soles of its feet, and its palms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from poise.errors import ParseError
from poise.formats.gltf.meshes import SkinnedMesh, read_mesh
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.motion.world import joint_transforms
from poise.skeleton.neutral import LEFT, neutral_pose
from poise.skeleton.roles import SIDES, subtree
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

_DIRECTIONS = 256  # in which the outermost points of a foot are kept
_OWN = 0.5  # least weight of the joint that a point is fixed to
_PALM = 0.46  # of a hand's length, from the wrist: the middle of the palm (Drillis and Contini 1966)
_UP = np.array([0.0, 1.0, 0.0])


@dataclass(frozen=True, eq=False)
class Sole:
    """Points of a foot's skin, each in the axes of one of the foot's joints."""

    foot: int
    joints: Int[Array, "points"]
    places: Float[Array, "points 3"]

    def depth(self, motion: Motion, turns: Float[Array, "frames 4"]) -> Float[Array, "frames"]:
        """How far the skin reaches below the ankle, if the foot has these rotations in the world."""
        positions, worlds = joint_transforms(motion)
        back = np.swapaxes(worlds[:, self.foot], -1, -2)
        up = rotations.rotate(rotations.conjugate(turns), _UP)  # in the foot's axes
        lowest = np.full(len(motion), np.inf)
        for joint in np.unique(self.joints):
            arm = np.einsum("fab,fb->fa", back, positions[:, joint] - positions[:, self.foot])
            upward = np.einsum("fa,fab->fb", up, back @ worlds[:, joint])
            heights = upward @ self.places[self.joints == joint].T + np.sum(up * arm, axis=-1)[:, None]
            lowest = np.minimum(lowest, heights.min(axis=1))
        return -lowest

    def lowest(self, motion: Motion) -> Float[Array, "frames"]:
        """The height of the lowest point in every frame."""
        positions, worlds = joint_transforms(motion)
        turns = rotations.quaternion_from_matrix(worlds[:, self.foot])
        return np.asarray(positions[:, self.foot, 1] - self.depth(motion, turns))


@dataclass(frozen=True, eq=False)
class TouchingSkin:
    """The soles (left, right), and how far the palms are from the wrists, in metres; None if the hands have no skin."""

    soles: tuple[Sole, Sole]
    palms: tuple[float, float] | None


def skin_of(body: Motion) -> TouchingSkin | None:
    """The skin of the character that a motion belongs to; None without a mesh on both feet."""
    skeleton = body.skeleton
    if not body.origin.character or not {f"{side}_foot" for side in SIDES} <= set(skeleton.roles):
        return None
    try:
        mesh = read_mesh(body.origin.character, coloured=False)
    except ParseError:
        return None
    if mesh.slot_joints.max() >= len(skeleton):
        return None
    left, right = (_sole(skeleton, mesh, side) for side in SIDES)
    return TouchingSkin((left, right), _palms(body, mesh)) if left is not None and right is not None else None


def _points(skeleton: Skeleton, mesh: SkinnedMesh, role: str) -> tuple[Int[Array, "n"], Float[Array, "n 3"]]:
    """The skin below a joint: for each point the joint that carries it most, and its place in that joint's axes."""
    most = mesh.weights.argmax(axis=1)[:, None]
    slot = np.take_along_axis(mesh.slots, most, axis=1)[:, 0]
    joints = mesh.slot_joints[slot]
    own = np.take_along_axis(mesh.weights, most, axis=1)[:, 0] >= _OWN
    chosen = np.flatnonzero(own & np.isin(joints, subtree(skeleton, skeleton.index(role))))
    moves = mesh.slot_matrices[slot[chosen]]
    places = np.einsum("vij,vj->vi", moves[:, :, :3], mesh.vertices[chosen]) + moves[:, :, 3]
    return joints[chosen], places


def _sole(skeleton: Skeleton, mesh: SkinnedMesh, side: str) -> Sole | None:
    """The outermost points of a foot; None without skin."""
    joints, places = _points(skeleton, mesh, f"{side}_foot")
    if not len(joints):
        return None
    step = np.arange(_DIRECTIONS) + 0.5
    high, turn = 1.0 - 2.0 * step / _DIRECTIONS, step * np.pi * (1.0 + np.sqrt(5.0))
    flat = np.sqrt(1.0 - high * high)
    ways = np.stack([flat * np.cos(turn), high, flat * np.sin(turn)])  # a Fibonacci sphere
    kept = [
        np.unique(own[(places[own] @ ways).argmax(axis=0)])
        for own in (np.flatnonzero(joints == joint) for joint in np.unique(joints))
    ]
    outer = np.concatenate(kept)
    return Sole(skeleton.index(f"{side}_foot"), joints[outer], places[outer])


def _palms(body: Motion, mesh: SkinnedMesh) -> tuple[float, float] | None:
    skeleton, lengths = body.skeleton, list[float]()
    neutral = neutral_pose(skeleton, body.rotations)
    resting = joint_transforms(Motion(skeleton, 1.0, np.zeros((1, 3)), neutral.rotations[None]))
    for side, out in zip(SIDES, (LEFT, -LEFT), strict=True):
        if f"{side}_hand" not in skeleton.roles:
            return None
        joints, places = _points(skeleton, mesh, f"{side}_hand")
        if not len(joints):
            return None
        at, turns = (values[0] for values in resting)
        spread = at[joints] + np.einsum("nij,nj->ni", turns[joints], places)
        lengths.append(_PALM * float(((spread - at[skeleton.index(f"{side}_hand")]) @ out).max()))
    return lengths[0], lengths[1]
