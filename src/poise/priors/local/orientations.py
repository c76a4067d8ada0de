"""Control signals of orientation sensors: rotations of a few segments relative to the root's.

Chai and Hodgins (2005, section 9) propose a few inertial sensors instead of markers. One is on the root: relative to
it, the others' rotations and angular velocities do not depend on the performer's heading; the up direction is kept.
Sensors do not measure position. So the root's height and velocity are predicted with the pose, and its position is
integrated from that velocity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.priors.limbs import Limb, limbs_of, moved_maps
from poise.priors.local.examples import LAG, Examples
from poise.priors.local.kernels import Signal
from poise.skeleton.pose_space import Handle, Handles, PoseSpace
from poise.types import Array

TURN, SPIN, UP = range(3)  # kinds of signal
ROOT_OUTPUTS = 4  # of the root: its height, and its velocity in its own frame
SHAKEN = 0.005  # radians: noise added to the examples' sensors, as in real ones, against overfitting
_BESIDE = (0.0, 0.1, 0.0)  # a point that rotates with its joint, as the sensor does


@dataclass(frozen=True, eq=False)
class Sensors:
    """The segments with a sensor; the first is the root's."""

    space: PoseSpace
    joints: Int[Array, "sensors"]

    @classmethod
    def on(cls, space: PoseSpace, names: Sequence[str]) -> Sensors:
        """Sensors on joints or roles of these names."""
        joints = np.array([space.skeleton.index(name) for name in names], dtype=np.int64)
        if len(joints) < 2 or joints[0] != 0 or len(set(joints.tolist())) < len(joints):
            raise InvalidValueError(
                "sensors must be on different segments: the root (pelvis) first, and at least one more; "
                f"got {', '.join(names) or 'none'}"
            )
        return cls(space, joints)

    @property
    def signal(self) -> Signal:
        """The meaning of the columns."""
        others = np.arange(1, len(self.joints))
        owner = np.concatenate([others, np.arange(len(self.joints)), [-1]])
        kind = np.repeat([TURN, SPIN, UP], [len(others), len(self.joints), 1])
        return Signal(np.repeat(np.arange(len(owner)), np.where(kind == TURN, 9, 3)), owner, kind)

    def signals(
        self,
        turns: Float[Array, "frames sensors 3 3"],
        before: Float[Array, "frames sensors 3 3"],
        *,
        lag: float = LAG,
    ) -> Float[Array, "frames columns"]:
        """Control signals from orientations in the world, now and `lag` seconds before."""
        count, root = len(turns), turns[:, :1].swapaxes(-1, -2)
        seen = (root @ turns[:, 1:]).reshape(count, -1)
        spun = root @ (turns @ before.swapaxes(-1, -2)) @ root.swapaxes(-1, -2)
        return np.concatenate([seen, _turns_per_second(spun, lag).reshape(count, -1), turns[:, 0, 1]], axis=1)

    def of_examples(self, examples: Examples) -> tuple[Array, Array]:
        """Control signals of a library, and the outputs to predict: the root's height and velocity, and the pose."""
        now, before = (self.space.forward(q)[1] for q in (examples.q, examples.before))
        rng = np.random.default_rng(0)
        inputs = self.signals(*(_shaken(turns[:, self.joints], rng) for turns in (now, before)))
        velocity = np.einsum("fba,fb->fa", now[:, 0], (examples.q[:, :3] - examples.before[:, :3]) / LAG)
        return inputs, np.hstack([examples.q[:, 1:2], velocity, examples.maps])

    @property
    def limbs(self) -> list[Limb]:
        """The root, and groups of joints that rotate, or hang from, the same sensors, each with those sensors."""
        return [
            Limb(np.arange(ROOT_OUTPUTS), np.ones(len(self.joints), dtype=np.bool_)),
            *limbs_of(self.space, self._handles, first=ROOT_OUTPUTS),
        ]

    @property
    def touched(self) -> Bool[Array, "outputs"]:
        """Mask of the outputs that rotate a sensor; the root's do not."""
        return np.concatenate([np.zeros(ROOT_OUTPUTS, dtype=np.bool_), moved_maps(self.space, self._handles)])

    @property
    def _handles(self) -> Handles:
        names = self.space.skeleton.names
        return self.space.handles([Handle(names[joint], _BESIDE) for joint in self.joints])


def _shaken(turns: Float[Array, "frames sensors 3 3"], rng: np.random.Generator) -> Array:
    return turns @ rotations.matrix_from_expmap(SHAKEN * rng.standard_normal(turns.shape[:-1]))


def _turns_per_second(spun: Float[Array, "frames sensors 3 3"], lag: float) -> Array:
    """Rotations over a lag as angular velocities; NaN stays NaN."""
    known = np.isfinite(spun).all(axis=(-2, -1))
    whole = np.where(known[..., None, None], spun, np.eye(3))
    turned = rotations.expmap_from_quaternion(rotations.quaternion_from_matrix(whole)) / lag
    return np.where(known[..., None], turned, np.nan)
