"""Control signals: observations as numbers that do not depend on the position in the room.

The torso's markers, fitted to their positions on a mean pose, give a frame close to the root's (T(z, z_0) of Chai and
Hodgins 2005, Eq. 2). Every marker's position and velocity are expressed in it. The up direction and each marker's
height are kept, so that a foot on the floor differs from one in the air. The same is computed for every example of the
library, so that a bending torso bends its frame in both.

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
from poise.geometry.alignment import rigid_fits
from poise.priors.local.examples import LAG, Examples
from poise.priors.local.regression import Signal
from poise.priors.poses import Limb, limbs_of, moved_maps
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import Handle, Handles, PoseSpace
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
        skeleton, trunk = examples.space.skeleton, {0}
        for role in TRUNK:
            above = skeleton.index(role) if role in skeleton.roles else 0
            while above > 0:
                trunk.add(above)
                above = int(skeleton.parents[above])
        carriers = [
            int(joint) if np.any(offset) else int(max(skeleton.parents[joint], 0))
            for joint, offset in zip(handles.joints, handles.offsets, strict=True)
        ]
        on_trunk = np.array([carrier in trunk for carrier in carriers])
        on_trunk = on_trunk if np.any(on_trunk) else np.ones(len(handles), dtype=np.bool_)
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
    torso, relative = rotations.quaternion_from_matrix(turn), rotations.quaternion_from_expmap(seen[3:])
    return np.concatenate([turn @ seen[:3] + place, rotations.multiply(torso, relative)])


# --- orientation sensors ----------------------------------------------------------------------------------------------

TURN, SPIN, TOP = range(3)  # kinds of signal
ROOT_OUTPUTS = 4  # of the root: its height, and its velocity in its own frame
TURNED_BY = 0.005  # radians: noise added to the examples' sensors, as in real ones, against overfitting
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
        kind = np.repeat([TURN, SPIN, TOP], [len(others), len(self.joints), 1])
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
        known = np.isfinite(spun).all(axis=(-2, -1))[..., None]  # angular velocities; NaN stays NaN
        whole = np.where(known[..., None], spun, np.eye(3))
        turned = rotations.expmap_from_quaternion(rotations.quaternion_from_matrix(whole)) / lag
        spins = np.where(known, turned, np.nan).reshape(count, -1)
        return np.concatenate([seen, spins, turns[:, 0, 1]], axis=1)

    def of_examples(self, examples: Examples) -> tuple[Array, Array]:
        """Control signals of a library, and the outputs to predict: the root's height and velocity, and the pose."""
        now, before = (self.space.forward(q)[1] for q in (examples.q, examples.before))
        rng, shaken = np.random.default_rng(0), []
        for turns in (now[:, self.joints], before[:, self.joints]):
            noise = rotations.matrix_from_expmap(TURNED_BY * rng.standard_normal(turns.shape[:-1]))
            shaken.append(turns @ noise)
        inputs = self.signals(*shaken)
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


# --- recent and missing signals ---------------------------------------------------------------------------------------


FILLED_FROM = 400  # examples from which missing signals are predicted
CAUTION = 1.0  # ridge of that prediction, of the examples' mean spread


class Recent:
    """The most recent observations with their times, from which velocities follow."""

    def __init__(self) -> None:
        self.clock, self.step = 0.0, 0.0  # seconds: time of the last frame, and since the one before
        self._seen: list[tuple[float, Array]] = []

    def forget(self) -> None:
        """Forget the observations; the clock keeps running."""
        self._seen = []

    def note(self, values: Array, *, step: float, at: float | None) -> None:
        """Store a frame, `step` seconds after the last unless its time `at` is given."""
        earlier, self.clock = self.clock, at if at is not None else self.clock + step
        self.step = max(self.clock - earlier, 0.0)
        lately = [entry for entry in self._seen if 0.0 <= self.clock - entry[0] < 1.5 * LAG]
        self._seen = [*lately, (self.clock, values)]

    def exchange(self, first: int, second: int) -> None:
        """Swap two rows in all stored observations."""
        for _, values in self._seen:
            values[[first, second]] = values[[second, first]]

    def before(self) -> tuple[float, Array] | None:
        """The stored frame nearest to the examples' lag before the last: its age in seconds, and the observation."""
        earlier = self._seen[:-1]
        if not earlier:
            return None
        when, then = min(earlier, key=lambda entry: abs(entry[0] - (self.clock - LAG)))
        return max(self.clock - when, 1e-6), then


class Filler:
    """Fills in missing control signals by a linear model through the examples that agree with the others."""

    def __init__(self, inputs: Float[Array, "examples columns"], scales: Float[Array, "columns"]) -> None:
        self._scales = scales
        self._inputs = np.asarray(inputs * scales, dtype=np.float32)
        self._squares = self._inputs**2

    def __call__(self, x: Float[Array, "columns"]) -> Float[Array, "columns"]:
        known = np.isfinite(x)
        if np.all(known):
            return x
        values = np.where(known, x * self._scales, 0.0).astype(np.float32)
        distances = self._squares @ known.astype(np.float32) - 2.0 * self._inputs @ values
        chosen = np.argpartition(distances, min(FILLED_FROM, len(distances) - 1))[:FILLED_FROM]
        apart = np.maximum(distances[chosen] + values @ values, 0.0).astype(np.float64)
        shares = 1.0 / (apart + apart.mean() * 0.1 + 1e-9)
        near, shares = self._inputs[chosen].astype(np.float64), shares / shares.sum()
        typical = shares @ near
        spread = np.sqrt(shares)[:, None] * (near - typical)
        seen = spread[:, known]
        gram = seen.T @ seen
        gram[np.diag_indices_from(gram)] += CAUTION * np.trace(gram) / len(seen) + 1e-12
        weights = np.linalg.solve(gram, (values - typical)[known])
        return np.where(known, x, (typical + (seen @ weights) @ spread) / self._scales)
