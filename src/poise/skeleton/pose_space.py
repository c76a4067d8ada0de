"""Pose vectors q and their kinematics: the coordinates of solvers and priors.

q = [root position 3, root quaternion wxyz 4, exponential maps 3 per moving joint]; each exponential map is about that
joint's own reference rotation (R = reference exp(e)), so that natural motion stays far from its singularity. The
tangent has one number less: the root's rotation changes by three numbers, in the root's own frame.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Real

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.errors import InvalidValueError, SkeletonError, UnknownNameError
from poise.geometry import rotations
from poise.skeleton import kernels
from poise.skeleton.kinematics import local_turns
from poise.skeleton.skeleton import Pose, Skeleton, read_only
from poise.skeleton.surfaces import Touchpoint, surfaces_of
from poise.types import Array

_BLOCK = 4096  # poses processed at once
SAME = 1e-6  # metres: offsets that differ by less are the same point
STILL_ANGLE = 0.001  # radians: a joint that varies by no more counts as still


@dataclass(frozen=True)
class Handle:
    """A point fixed to a joint (by joint name or role), at an offset in the joint's frame, in metres.

    `left_palm`, `left_fingertips`, `left_sole` and those of the right are points of the skin.
    """

    joint: str
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        offset = tuple(self.offset) if np.iterable(self.offset) else ()
        is_point = len(offset) == 3 and all(isinstance(part, Real) for part in offset)
        if not isinstance(self.joint, str) or not is_point:
            raise InvalidValueError(
                f"a handle is the name of a joint or role and an offset of three numbers; got {self!r:.80}"
            )
        object.__setattr__(self, "offset", offset)

    def on(self, skeleton: Skeleton) -> tuple[int, tuple[float, float, float]]:
        """The joint, and the offset there; a palm, fingertips or a sole are at an offset of their own."""
        if self.joint in skeleton.roles or self.joint in skeleton.names:
            return skeleton.index(self.joint), self.offset
        surfaces = surfaces_of(skeleton)
        if self.joint not in surfaces:
            raise UnknownNameError("joint or role", self.joint, (*skeleton.names, *skeleton.roles, *surfaces))
        own, (x, y, z) = surfaces[self.joint], self.offset
        return skeleton.index(own.joint), (x + own.offset[0], y + own.offset[1], z + own.offset[2])

    def surface(self, skeleton: Skeleton) -> tuple[str, Touchpoint] | None:
        """The name and the surface that this is, by its name or by its joint and offset; else None."""
        joint, offset = self.on(skeleton)
        for name, surface in surfaces_of(skeleton).items():
            if surface.joint == skeleton.names[joint] and math.dist(surface.offset, offset) < SAME:
                return name, surface
        return None


@dataclass(frozen=True, eq=False)
class Handles:
    """Handles resolved on one skeleton, in the form of the compiled core."""

    joints: Int[Array, "handles"]
    offsets: Float[Array, "handles 3"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "joints", read_only(self.joints, dtype=np.int64))
        object.__setattr__(self, "offsets", read_only(self.offsets))

    def __len__(self) -> int:
        return len(self.joints)


class PoseSpace:
    """The coordinates of one skeleton's poses: moving joints, their references, and kinematics."""

    def __init__(
        self,
        skeleton: Skeleton,
        *,
        references: Float[Array, "joints 4"] | None = None,
        moving: Bool[Array, "joints"] | None = None,
    ) -> None:
        self.skeleton = skeleton
        if references is None and skeleton.limits is not None:
            references = skeleton.limits.references
        count = len(skeleton)
        self.references = read_only(
            np.tile(rotations.IDENTITY, (count, 1)) if references is None else references
        )
        if self.references.shape != (count, 4):
            raise SkeletonError(f"{count} joints need references ({count}, 4); got {self.references.shape}")
        moves = ~skeleton.is_end_site if moving is None else np.asarray(moving) & ~skeleton.is_end_site
        moves[0] = False  # the root has its own position and quaternion
        self.moving = read_only(np.flatnonzero(moves), dtype=np.int64)
        slots = np.full(count, -1)
        slots[self.moving] = np.arange(len(self.moving))
        matrices = rotations.matrix_from_quaternion(self.references).reshape(count, 9)
        self._links = read_only(np.column_stack([skeleton.parents, slots]), dtype=np.int64)
        self._rest = read_only(np.hstack([skeleton.offsets, matrices]))

    @classmethod
    def of_rotations(cls, skeleton: Skeleton, quaternions: Float[Array, "frames joints 4"]) -> PoseSpace:
        """A space with references at the mean rotations of the data, or at those of the skeleton's limits.

        Joints that vary by no more than 0.001 rad do not move.
        """
        references = rotations.mean(quaternions)
        references[0] = rotations.IDENTITY
        if skeleton.limits is not None:
            moves = ~skeleton.is_end_site
            references[moves] = skeleton.limits.references[moves]
        angles = rotations.geodesic_distance(quaternions, quaternions[0])
        return cls(skeleton, references=references, moving=angles.max(axis=0) > STILL_ANGLE)

    def on_body(self, skeleton: Skeleton) -> PoseSpace:
        """The same coordinates on a skeleton of the same topology and other limb lengths."""
        if not skeleton.same_topology(self.skeleton):
            raise SkeletonError("the other skeleton must have the same joints with the same parents")
        return PoseSpace(skeleton, references=self.references, moving=self.is_moving)

    @cached_property
    def is_moving(self) -> Bool[Array, "joints"]:
        """Per joint, whether it has an exponential map in q."""
        moves = np.zeros(len(self.skeleton), dtype=np.bool_)
        moves[self.moving] = True
        return moves

    @property
    def size(self) -> int:
        """The length of q."""
        return kernels.ROOT_SIZE + 3 * len(self.moving)

    @property
    def freedoms(self) -> int:
        """The length of a tangent step."""
        return kernels.ROOT_FREEDOMS + 3 * len(self.moving)

    @property
    def tree(self) -> tuple[Int[Array, "joints 2"], Float[Array, "joints 12"]]:
        """The two arrays of the compiled core; see `kernels`."""
        return self._links, self._rest

    # --- poses in and out ------------------------------------------------------------------------------------------

    def q_from_pose(self, pose: Pose) -> Float[Array, "size"]:
        """The pose vector of a pose; joints that do not move here are left out."""
        return self.q_from_frames(pose.root_position, pose.rotations)

    def q_from_frames(
        self, root_positions: Float[Array, "*frames 3"], quaternions: Float[Array, "*frames joints 4"]
    ) -> Float[Array, "*frames size"]:
        """Pose vectors of one frame or many."""
        local = rotations.multiply(
            rotations.conjugate(self.references[self.moving]), quaternions[..., self.moving, :]
        )
        maps = rotations.expmap_from_quaternion(local)
        return np.concatenate(
            [root_positions, rotations.canonical(quaternions[..., 0, :]), maps.reshape(*maps.shape[:-2], -1)],
            axis=-1,
        )

    def pose_from_q(self, q: Float[Array, "size"]) -> Pose:
        """The pose of a pose vector; joints that do not move have their references."""
        root_position, quaternions = self.frames_from_q(self.checked(q))
        return Pose(self.skeleton, root_position, quaternions)

    def frames_from_q(
        self, q: Float[Array, "*frames size"]
    ) -> tuple[Float[Array, "*frames 3"], Float[Array, "*frames joints 4"]]:
        """Root positions and joint rotations of pose vectors."""
        q, shape = np.ascontiguousarray(q, dtype=np.float64), self.references.shape
        quaternions = np.empty((*q.shape[:-1], *shape))
        quaternions[:] = self.references
        local_turns(q.reshape(-1, self.size), self.references, self.moving, quaternions.reshape(-1, *shape))
        return q[..., :3].copy(), quaternions

    def standing(
        self, maps: Float[Array, "maps"], up: Float[Array, "3"] | Sequence[float] = (0.0, 1.0, 0.0)
    ) -> Float[Array, "size"]:
        """A pose of these maps with `up`, in its root's frame, vertical, and its lowest joint at height 0."""
        turn = rotations.quaternion_between(np.asarray(up), np.array([0.0, 1.0, 0.0]))
        q = np.concatenate([np.zeros(3), turn, maps])
        q[1] = -self.forward(q)[0][:, 1].min()
        return q

    def checked(self, q: Float[Array, "size"]) -> Float[Array, "size"]:
        """The pose vector as a contiguous array; raise if its shape or a number is invalid."""
        q = np.ascontiguousarray(q, dtype=np.float64)
        if q.shape != (self.size,) or not all_finite(q):
            raise InvalidValueError(
                f"a pose vector must have {self.size} finite numbers; got shape {q.shape}"
            )
        return q

    def integrate(self, q: Float[Array, "size"], step: Float[Array, "freedoms"]) -> Float[Array, "size"]:
        """The pose after a tangent step."""
        out = np.empty(self.size)
        kernels.integrate(self.checked(q), np.ascontiguousarray(step, dtype=np.float64), out)
        return out

    # --- kinematics ------------------------------------------------------------------------------------------------

    def handles(self, handles: Sequence[Handle | str]) -> Handles:
        """Resolve handles by joint or role name."""
        given = [Handle(handle) if isinstance(handle, str) else handle for handle in handles]
        places = [handle.on(self.skeleton) for handle in given]
        joints = np.array([joint for joint, _ in places], dtype=np.int64)
        offsets = np.array([offset for _, offset in places], dtype=np.float64).reshape(-1, 3)
        if not all_finite(offsets):
            raise InvalidValueError(f"a handle's offset must be finite; got {offsets.tolist()}")
        return Handles(joints, offsets)

    def forward(
        self, q: Float[Array, "*frames size"]
    ) -> tuple[Float[Array, "*frames joints 3"], Float[Array, "*frames joints 3 3"]]:
        """World positions and rotations of every joint, for one pose or many."""
        q = np.ascontiguousarray(q, dtype=np.float64)
        count = len(self.skeleton)
        positions, matrices = np.empty((*q.shape[:-1], count, 3)), np.empty((*q.shape[:-1], count, 3, 3))
        kernels.forward_many(
            q.reshape(-1, self.size),
            self._links,
            self._rest,
            positions.reshape(-1, count, 3),
            matrices.reshape(-1, count, 3, 3),
        )
        return positions, matrices

    def points_in_root_frame(
        self, maps: Float[Array, "poses maps"], handles: Handles
    ) -> Float[Array, "poses handles 3"]:
        """Positions of handles in the root's frame, for poses given by their exponential maps."""
        q = np.zeros((len(maps), self.size))
        q[:, 3] = 1.0
        q[:, kernels.ROOT_SIZE :] = maps
        return self.points(q, handles)

    def points(self, q: Float[Array, "poses size"], handles: Handles) -> Float[Array, "poses handles 3"]:
        """World positions of handles, for many poses."""
        found = np.empty((len(q), len(handles), 3))
        for first in range(0, len(q), _BLOCK):
            positions, matrices = self.forward(q[first : first + _BLOCK])
            turned = np.einsum("phab,hb->pha", matrices[:, handles.joints], handles.offsets)
            found[first : first + _BLOCK] = positions[:, handles.joints] + turned
        return found

    def handle_positions(
        self, q: Float[Array, "size"], handles: Handles
    ) -> tuple[Float[Array, "handles 3"], Float[Array, "3*handles freedoms"]]:
        """World positions of handles and their Jacobian."""
        points, jacobian = np.empty((len(handles), 3)), np.empty((3 * len(handles), self.freedoms))
        kernels.handle_points(q, self._links, self._rest, handles.joints, handles.offsets, points, jacobian)
        return points, jacobian

    def handle_orientations(
        self, q: Float[Array, "size"], handles: Handles
    ) -> tuple[Float[Array, "handles 3 3"], Float[Array, "3*handles freedoms"]]:
        """World rotations of handles, and the Jacobian of their angular velocity in the world."""
        turns, jacobian = np.empty((len(handles), 3, 3)), np.empty((3 * len(handles), self.freedoms))
        kernels.handle_turns(q, self._links, self._rest, handles.joints, turns, jacobian)
        return turns, jacobian

    def centre_of_mass(self, q: Float[Array, "size"]) -> tuple[Float[Array, "3"], Float[Array, "3 freedoms"]]:
        """The body's centre of mass in the world and its Jacobian."""
        centre, jacobian = np.empty(3), np.empty((3, self.freedoms))
        kernels.balance(q, self._links, self._rest, self.masses, centre, jacobian)
        return centre, jacobian

    @cached_property
    def masses(self) -> Float[Array, "joints 4"]:
        """Each joint's share of the body's mass and its centre in the joint's frame, for the compiled core."""
        from poise.skeleton.mass import segment_masses

        masses = segment_masses(self.skeleton)
        return read_only(np.column_stack([masses.fraction, masses.centre]))


def all_finite(numbers: Float[Array, "*shape"]) -> bool:
    """Whether all numbers are finite; decided by the sum of squares unless it overflows."""
    return math.isfinite(np.vdot(numbers, numbers)) or bool(np.isfinite(numbers).all())
