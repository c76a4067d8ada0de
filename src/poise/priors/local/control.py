"""Control signals: markers as numbers that do not depend on the position in the room.

The torso's markers, fitted to their positions on a mean pose, give a frame close to the root's (T(z, z_0) of Chai and
Hodgins 2005, Eq. 2). Every marker's position and velocity are expressed in it. The up direction and each marker's
height are kept, so that a foot on the floor differs from one in the air. The same is computed for every example of the
library, so that a bending torso bends its frame in both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.geometry.alignment import rigid_fits
from poise.priors.limbs import Limb, limbs_of, moved_maps
from poise.priors.local.examples import LAG, Examples
from poise.priors.local.kernels import Signal
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

PLACE, VELOCITY, HEIGHT, UP, LIFT = range(5)  # kinds of signal: the last two belong to no marker
SHAKEN = 2e-4  # metres: noise added to the examples' markers, so that models do not fit tiny differences
TRUNK = ("spine", "chest", "left_shoulder", "right_shoulder")


@dataclass(frozen=True, eq=False)
class Torso:
    """The markers on the trunk and their positions in the root's frame; with fewer than three it is kept upright."""

    markers: Bool[Array, "markers"]
    shape: Float[Array, "torso_markers 3"]

    def frames(self, points: Float[Array, "frames markers 3"]) -> tuple[Array, Array]:
        """Rotations and positions of the torso from its markers."""
        turns, shifts, _ = rigid_fits(points[:, self.markers], self.shape)
        back = turns.transpose(0, 2, 1)
        return back, -np.einsum("fab,fb->fa", back, shifts)


@dataclass(frozen=True, eq=False)
class Control:
    """The control signals of one marker set on one body."""

    handles: Handles
    torso: Torso

    @classmethod
    def of(cls, examples: Examples, handles: Handles) -> Control:
        """The control signals for these markers on the body of the examples."""
        if len(handles) == 0:
            raise InvalidValueError("a performance needs at least one marker; got none")
        on_trunk = trunk_markers(examples.space.skeleton, handles)
        at_rest = examples.space.points_in_root_frame(examples.mean[None], handles)[0]
        return cls(handles, Torso(on_trunk, at_rest[on_trunk]))

    @property
    def signal(self) -> Signal:
        """The meaning of the columns."""
        count = len(self.handles)
        markers = np.arange(count)
        owner = np.concatenate([markers, markers, markers, [-1, -1]])
        kind = np.repeat([PLACE, VELOCITY, HEIGHT, UP, LIFT], [count, count, count, 1, 1])
        sizes = np.repeat([3, 3, 1, 3, 1], [count, count, count, 1, 1])
        return Signal(np.repeat(np.arange(len(owner)), sizes), owner, kind)

    def signals(
        self, points: Float[Array, "frames markers 3"], velocities: Float[Array, "frames markers 3"]
    ) -> tuple[Float[Array, "frames columns"], Array, Array]:
        """Control signals, with the torso rotations and positions that they are relative to."""
        turns, places = self.torso.frames(points)
        return self.seen(points, velocities, turns=turns, places=places), turns, places

    def seen(
        self,
        points: Float[Array, "frames markers 3"],
        velocities: Float[Array, "frames markers 3"],
        *,
        turns: Float[Array, "frames 3 3"],
        places: Float[Array, "frames 3"],
    ) -> Float[Array, "frames columns"]:
        """Control signals relative to given frames."""
        count = len(points)
        local = np.einsum("fba,fmb->fma", turns, points - places[:, None]).reshape(count, -1)
        moving = np.einsum("fba,fmb->fma", turns, velocities).reshape(count, -1)
        return np.concatenate([local, moving, points[:, :, 1], turns[:, 1, :], places[:, 1:2]], axis=1)

    def of_examples(self, examples: Examples) -> tuple[Array, Array]:
        """Control signals of a library, and the outputs to predict: the root relative to the torso, and the pose."""
        rng = np.random.default_rng(0)
        now, before = (
            points + SHAKEN * rng.standard_normal(points.shape) for points in examples.markers(self.handles)
        )
        inputs, turns, places = self.signals(now, (now - before) / LAG)
        return inputs, np.hstack([roots_seen(examples.q, turns, places), examples.maps])

    def limbs(self, space: PoseSpace) -> list[Limb]:
        """The root, and groups of joints that move, or hang from, the same markers, each with those markers."""
        return [
            Limb(np.arange(ROOT_FREEDOMS), np.ones(len(self.handles), dtype=np.bool_)),
            *limbs_of(space, self.handles, first=ROOT_FREEDOMS),
        ]


def touched_outputs(space: PoseSpace, handles: Handles) -> Bool[Array, "outputs"]:
    """Mask of the elements of [root 6, exponential maps] that move a marker."""
    return np.concatenate([np.ones(ROOT_FREEDOMS, dtype=np.bool_), moved_maps(space, handles)])


def trunk_markers(skeleton: Skeleton, handles: Handles) -> Bool[Array, "markers"]:
    """Mask of the markers carried by the trunk; all of them if there are none."""
    trunk = {0}
    for role in TRUNK:
        if role in skeleton.roles:
            above = skeleton.index(role)
            while above > 0:
                trunk.add(above)
                above = int(skeleton.parents[above])
    carriers = [
        int(joint) if np.any(offset) else int(max(skeleton.parents[joint], 0))
        for joint, offset in zip(handles.joints, handles.offsets, strict=True)
    ]
    on_trunk = np.array([carrier in trunk for carrier in carriers])
    return on_trunk if np.any(on_trunk) else np.ones(len(handles), dtype=np.bool_)


def roots_seen(
    q: Float[Array, "frames size"], turns: Float[Array, "frames 3 3"], places: Float[Array, "frames 3"]
) -> Float[Array, "frames 6"]:
    """Roots relative to torsos: position, and rotation as an exponential map."""
    back = rotations.conjugate(rotations.quaternion_from_matrix(turns))
    seen = np.einsum("fba,fb->fa", turns, q[:, :3] - places)
    return np.hstack([seen, rotations.expmap_from_quaternion(rotations.multiply(back, q[:, 3:ROOT_SIZE]))])


def root_from_seen(
    seen: Float[Array, "6"], turn: Float[Array, "3 3"], place: Float[Array, "3"]
) -> Float[Array, "7"]:
    """A root in the world, from its position and rotation relative to a torso in the world."""
    quaternion = rotations.multiply(
        rotations.quaternion_from_matrix(turn), rotations.quaternion_from_expmap(seen[3:])
    )
    return np.concatenate([turn @ seen[:3] + place, quaternion])
