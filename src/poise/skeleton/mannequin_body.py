"""What the mannequin's parts ask about a skeleton: sizes, sides, roles, and mean directions over example poses."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from jaxtyping import Float

from poise.skeleton.skeleton import Skeleton
from poise.types import Array

UP = np.array([0.0, 1.0, 0.0])
_MAX_EXAMPLES = 64


class MannequinBody:
    """A skeleton seen in a few example poses, with the root at the origin; without examples, in its rest pose."""

    def __init__(self, skeleton: Skeleton, rotations: Float[Array, "frames joints 4"] | None) -> None:
        from poise.skeleton.kinematics import world_transforms

        rotations = _examples(skeleton, rotations)
        self.skeleton = skeleton
        self.positions, self.matrices = world_transforms(skeleton, np.zeros((len(rotations), 3)), rotations)
        self.role_of = {skeleton.index(role): role for role in skeleton.roles}
        self.lengths = np.linalg.norm(skeleton.offsets, axis=-1)

    @cached_property
    def stature(self) -> float:
        """The height in metres that fractions are of; a skeleton that is no person has that of its bones' reach."""
        height = self.skeleton.height
        return height if np.isfinite(height) and height > 0 else float(self.lengths[1:].sum()) or 1.0

    def joint(self, role: str) -> int | None:
        """The number of the joint with this role, if any has it."""
        return self.skeleton.index(role) if role in self.skeleton.roles else None

    def first(self, *roles: str) -> int | None:
        """The joint of the first of these roles that any joint has."""
        return next((joint for role in roles if (joint := self.joint(role)) is not None), None)

    def region(self, joint: int) -> str:
        """The role of the nearest joint at or above this one that has a role, or ""."""
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
        """Joint numbers from one joint down to another below it, both included; empty when it is not below."""
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
        """The mean over the examples of world vectors seen in a joint's frame."""
        return np.asarray(np.einsum("fji,fj->i", self.matrices[:, joint], vectors) / len(vectors))

    def towards(self, joint: int, target: int) -> Float[Array, "3"]:
        """Where another joint lies on average, in a joint's frame."""
        return self.local(joint, self.positions[:, target] - self.positions[:, joint])

    @cached_property
    def left(self) -> Float[Array, "frames 3"]:
        """The body's left in the world, per example."""
        for role in ("thigh", "upper_arm", "shoulder"):
            a, b = self.joint(f"left_{role}"), self.joint(f"right_{role}")
            if a is not None and b is not None:
                return np.asarray(self.positions[:, a] - self.positions[:, b])
        return np.tile([1.0, 0.0, 0.0], (len(self.positions), 1))

    @cached_property
    def forward(self) -> Float[Array, "frames 3"]:
        """Where the body faces in the world, per example."""
        top, bottom = self.first("neck", "head"), self.joint("pelvis")
        if top is None or bottom is None:
            return np.cross(self.left, UP)
        return np.cross(self.left, self.positions[:, top] - self.positions[:, bottom])


def _examples(skeleton: Skeleton, rotations: Float[Array, "frames joints 4"] | None) -> Array:
    if rotations is None or len(rotations) == 0:
        return np.tile([1.0, 0.0, 0.0, 0.0], (1, len(skeleton), 1))
    chosen = np.linspace(0, len(rotations) - 1, min(len(rotations), _MAX_EXAMPLES)).astype(np.int64)
    return rotations[chosen]
