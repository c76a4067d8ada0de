"""Measurements of a skeleton for the mannequin's parts: sizes, sides, roles, and mean directions over example poses."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from jaxtyping import Float

from poise.skeleton.skeleton import Skeleton
from poise.types import Array

UP = np.array([0.0, 1.0, 0.0])
_MAX_EXAMPLES = 64


class MannequinBody:
    """A skeleton in a few example poses, with the root at the origin; without examples, in its rest pose."""

    def __init__(self, skeleton: Skeleton, rotations: Float[Array, "frames joints 4"] | None) -> None:
        from poise.skeleton.kinematics import world_transforms

        rotations = _examples(skeleton, rotations)
        self.skeleton = skeleton
        self.positions, self.matrices = world_transforms(skeleton, np.zeros((len(rotations), 3)), rotations)
        self.role_of = {skeleton.index(role): role for role in skeleton.roles}
        self.lengths = np.linalg.norm(skeleton.offsets, axis=-1)

    @cached_property
    def stature(self) -> float:
        """The stature in metres; for a skeleton that is not a person, the total length of its bones."""
        height = self.skeleton.height
        return height if np.isfinite(height) and height > 0 else float(self.lengths[1:].sum()) or 1.0

    def joint(self, role: str) -> int | None:
        """The index of the joint with this role, if there is one."""
        return self.skeleton.index(role) if role in self.skeleton.roles else None

    def first(self, *roles: str) -> int | None:
        """The joint of the first of these roles that the skeleton has."""
        return next((joint for role in roles if (joint := self.joint(role)) is not None), None)

    def region(self, joint: int) -> str:
        """The role of the nearest joint with a role at or above this one, or ""."""
        while joint >= 0:
            if joint in self.role_of:
                return self.role_of[joint]
            joint = int(self.skeleton.parents[joint])
        return ""

    def tone(self, joint: int) -> str:
        """The side a joint is on."""
        side = self.region(joint).split("_")[0]
        if side in ("left", "right"):
            return side
        name = self.skeleton.names[joint].casefold()
        return next((word for word in ("left", "right") if word in name), "centre")

    def path(self, top: int, bottom: int) -> list[int]:
        """Joint indices from one joint down to a descendant, both included; empty if it is not a descendant."""
        found = [bottom]
        while found[-1] != top:
            parent = int(self.skeleton.parents[found[-1]])
            if parent < 0:
                return []
            found.append(parent)
        return found[::-1]

    def below(self, joint: int) -> list[int]:
        """Every joint below this one."""
        found: list[int] = list(self.skeleton.children[joint])
        for child in found:
            found.extend(self.skeleton.children[child])
        return found

    def local(self, joint: int, vectors: Float[Array, "frames 3"]) -> Float[Array, "3"]:
        """The mean over the examples of world vectors in a joint's frame."""
        return np.asarray(np.einsum("fji,fj->i", self.matrices[:, joint], vectors) / len(vectors))

    def towards(self, joint: int, target: int) -> Float[Array, "3"]:
        """The mean position of another joint in a joint's frame."""
        return self.local(joint, self.positions[:, target] - self.positions[:, joint])

    @cached_property
    def left(self) -> Float[Array, "frames 3"]:
        """The body's left direction in the world, per example."""
        for role in ("thigh", "upper_arm", "shoulder"):
            a, b = self.joint(f"left_{role}"), self.joint(f"right_{role}")
            if a is not None and b is not None:
                return np.asarray(self.positions[:, a] - self.positions[:, b])
        return np.tile([1.0, 0.0, 0.0], (len(self.positions), 1))

    @cached_property
    def forward(self) -> Float[Array, "frames 3"]:
        """The body's forward direction in the world, per example."""
        top, bottom = self.first("neck", "head"), self.joint("pelvis")
        if top is None or bottom is None:
            return np.cross(self.left, UP)
        return np.cross(self.left, self.positions[:, top] - self.positions[:, bottom])


def _examples(skeleton: Skeleton, rotations: Float[Array, "frames joints 4"] | None) -> Array:
    if rotations is None or len(rotations) == 0:
        return np.tile([1.0, 0.0, 0.0, 0.0], (1, len(skeleton), 1))
    chosen = np.linspace(0, len(rotations) - 1, min(len(rotations), _MAX_EXAMPLES)).astype(np.int64)
    return rotations[chosen]
