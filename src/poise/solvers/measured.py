"""Constraints written in Python with NumPy: a residual of a pose, and optionally its Jacobian.

The compiled core cannot call Python. It sees such a constraint as rows linearised at a pose q0, e(q) = -C(q0)
- J (q - q0). `Problem` relinearises them between compiled solves until the solution agrees with the constraint.
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
from poise.types import Array, PoseVector

DIFFERENCE = 1e-6  # metres and radians: step of finite-difference Jacobians


@dataclass(frozen=True, eq=False)
class PoseView:
    """A pose as a constraint sees it: world positions and rotations by joint or role, with their Jacobians.

    A Jacobian's columns are the degrees of freedom: root translation, root rotation, then three per moving joint.
    """

    space: PoseSpace
    q: PoseVector

    def position(self, handle: Handle | str) -> Float[Array, "3"]:
        """World position of a handle."""
        given = Handle(handle) if isinstance(handle, str) else handle
        (joint, offset), (places, turns) = given.on(self.space.skeleton), self._forward
        return places[joint] + turns[joint] @ np.asarray(offset)

    def position_jacobian(self, handle: Handle | str) -> Float[Array, "3 freedoms"]:
        """Jacobian of a handle's position."""
        return self.space.handle_positions(self.q, self.space.handles([handle]))[1]

    def rotation(self, joint: str) -> Float[Array, "3 3"]:
        """World rotation of a joint: the matrix columns are the joint's axes."""
        return self._forward[1][self.space.skeleton.index(joint)]

    def rotation_jacobian(self, joint: str) -> Float[Array, "3 freedoms"]:
        """Jacobian of a joint's rotation, as a rotation vector in the world."""
        return self.space.handle_orientations(self.q, self.space.handles([joint]))[1]

    @property
    def centre_of_mass(self) -> Float[Array, "3"]:
        """World position of the body's centre of mass."""
        return self.space.centre_of_mass(self.q)[0]

    @property
    def centre_of_mass_jacobian(self) -> Float[Array, "3 freedoms"]:
        """Jacobian of the centre of mass."""
        return self.space.centre_of_mass(self.q)[1]

    @cached_property
    def _forward(self) -> tuple[Array, Array]:
        return self.space.forward(self.q)


@dataclass(frozen=True, eq=False)
class MeasuredConstraint(Constraint):
    """A condition C(q) = 0 in Python, or C(q) >= 0 if `inequality` is true; hard or soft like every constraint."""

    inequality: ClassVar[bool] = False

    @abstractmethod
    def residual(self, pose: PoseView) -> Float[Array, "rows"]:
        """Return C in its unit, zero where the constraint is met; the number of rows is the same at every pose."""

    def jacobian(self, pose: PoseView) -> Float[Array, "rows freedoms"]:
        """Return dC over the degrees of freedom; by finite differences unless overridden."""
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
        """The rows linearised at the reference pose; `Problem` updates them."""
        return self.around(space, np.concatenate([[0.0, 0.0, 0.0, 1.0], np.zeros(space.size - 4)]))

    def around(self, space: PoseSpace, q: PoseVector) -> list[Block]:
        """The rows linearised at the pose `q`."""
        pose = PoseView(space, q)
        residual = self._checked(pose)
        jacobian = np.asarray(self.jacobian(pose), dtype=np.float64)
        if jacobian.shape != (len(residual), space.freedoms) or not np.all(np.isfinite(jacobian)):
            raise InvalidValueError(
                f"{self.label}: the Jacobian must be {len(residual)} x {space.freedoms} finite numbers; "
                f"got shape {jacobian.shape}"
            )
        rows = zip(residual, jacobian, strict=True)
        return [Block(Kind.LINEAR, 0, (-value, *row, *q), inequality=self.inequality) for value, row in rows]

    def _checked(self, pose: PoseView) -> Float[Array, "rows"]:
        found = np.atleast_1d(np.asarray(self.residual(pose), dtype=np.float64))
        if found.ndim != 1 or not np.all(np.isfinite(found)):
            raise InvalidValueError(
                f"{self.label}: the residual must be one row of finite numbers; got {found.tolist()}"
            )
        return found
