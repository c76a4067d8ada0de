"""Constraints written in Python with NumPy: a residual of a pose, and its Jacobian where one is given.

The compiled core cannot call Python. It takes such a constraint as rows that are linear around a pose q0, e(q) = -C(q0)
- J (q - q0), and `Problem` renews them between compiled solves, until what was solved is true of the constraint itself.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.skeleton.pose_space import Handle, PoseSpace
from poise.solvers.constraints import Block, Constraint, Kind
from poise.types import Array

DIFFERENCE = 1e-6  # metres and radians, for Jacobians by differences


@dataclass(frozen=True, eq=False)
class PoseView:
    """A pose as a constraint sees it: places and rotations by joint or role, in the world, with their Jacobians.

    A Jacobian's columns are the freedoms: the root's translation, its rotation, then three for every moving joint.
    """

    space: PoseSpace
    q: Float[Array, "size"]

    def position(self, handle: Handle | str) -> Float[Array, "3"]:
        """Where a handle is."""
        given = Handle(handle) if isinstance(handle, str) else handle
        joint, (places, turns) = self.space.skeleton.index(given.joint), self._forward
        return places[joint] + turns[joint] @ np.asarray(given.offset)

    def position_jacobian(self, handle: Handle | str) -> Float[Array, "3 freedoms"]:
        """How a handle moves with the freedoms."""
        return self.space.handle_positions(self.q, self.space.handles([handle]))[1]

    def rotation(self, joint: str) -> Float[Array, "3 3"]:
        """How a joint is turned: its columns are the joint's axes."""
        return self._forward[1][self.space.skeleton.index(joint)]

    def rotation_jacobian(self, joint: str) -> Float[Array, "3 freedoms"]:
        """How a joint turns with the freedoms, as a rotation vector in the world."""
        return self.space.handle_orientations(self.q, self.space.handles([joint]))[1]

    @property
    def centre_of_mass(self) -> Float[Array, "3"]:
        """Where the body's centre of mass is."""
        return self.space.centre_of_mass(self.q)[0]

    @property
    def centre_of_mass_jacobian(self) -> Float[Array, "3 freedoms"]:
        """How it moves with the freedoms."""
        return self.space.centre_of_mass(self.q)[1]

    @cached_property
    def _forward(self) -> tuple[Array, Array]:
        return self.space.forward(self.q)


@dataclass(frozen=True, eq=False)
class MeasuredConstraint(Constraint):
    """A condition C(q) = 0 in Python, or C(q) >= 0 where `inequality` says so; hard or soft as every constraint."""

    inequality: ClassVar[bool] = False

    @abstractmethod
    def residual(self, pose: PoseView) -> Float[Array, "rows"]:
        """C: zero where the constraint is met, in its unit; as many rows at every pose."""

    def jacobian(self, pose: PoseView) -> Float[Array, "rows freedoms"]:
        """dC over the freedoms; by differences unless a constraint knows better."""
        steps = DIFFERENCE * np.eye(pose.space.freedoms)
        ahead, behind = (
            np.stack([self._checked(PoseView(pose.space, pose.space.integrate(pose.q, way))) for way in ways])
            for ways in (steps, -steps)
        )
        return (ahead - behind).T / (2.0 * DIFFERENCE)

    @property
    def _fixed(self) -> tuple[object, ...]:
        return (self,)

    def blocks(self, space: PoseSpace) -> list[Block]:
        """Its rows around the pose at the references; `Problem` renews them."""
        return self.around(space, np.concatenate([[0.0, 0.0, 0.0, 1.0], np.zeros(space.size - 4)]))

    def around(self, space: PoseSpace, q: Float[Array, "size"]) -> list[Block]:
        """Its rows, linear around a pose."""
        pose = PoseView(space, q)
        residual = self._checked(pose)
        jacobian = np.asarray(self.jacobian(pose), dtype=np.float64)
        if jacobian.shape != (len(residual), space.freedoms) or not np.all(np.isfinite(jacobian)):
            raise InvalidValueError(
                f"{self.label}: the Jacobian must be {len(residual)} x {space.freedoms} finite numbers; "
                f"got shape {jacobian.shape}"
            )
        return [
            Block(Kind.LINEAR, 0, (-value, *row, *q), inequality=self.inequality)
            for value, row in zip(residual, jacobian, strict=True)
        ]

    def _checked(self, pose: PoseView) -> Float[Array, "rows"]:
        residual = np.atleast_1d(np.asarray(self.residual(pose), dtype=np.float64))
        if residual.ndim != 1 or not np.all(np.isfinite(residual)):
            raise InvalidValueError(
                f"{self.label}: the residual must be finite numbers in a row; got {residual.tolist()}"
            )
        return residual
