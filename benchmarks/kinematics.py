"""Kinematics of one pose against pinocchio called from Python, and of a whole motion, on a body of 31 moving joints."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from benchmarks.table import Row, best_seconds
from poise.geometry import rotations
from poise.skeleton import Skeleton
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.pose_space import PoseSpace

JOINTS = 31
HANDLES = ("j6", "j12", "j18", "j24", "j30")
FRAMES = 10_000
CALLS, REPEATS = (
    100,
    200,
)  # blocks shorter than a time slice, and many, so that a busy machine leaves some undisturbed

Array = np.ndarray


def run() -> list[Row]:
    """Times per pose with one thread, the same pose and the same five handles on both sides, checked to agree."""
    space = PoseSpace(_skeleton())
    q = _random_q(space, np.random.default_rng(0))
    return [*_forward(space, q), _handles(space, q), _batch(space, np.random.default_rng(1))]


def _forward(space: PoseSpace, q: Array) -> list[Row]:
    model, their_q = _pinocchio_model(space.skeleton), _pinocchio_q(q)
    data = model.createData()

    def as_array() -> Array:
        pin.forwardKinematics(model, data, their_q)
        return np.array([placement.translation for placement in data.oMi])[1:]

    np.testing.assert_allclose(space.forward(q)[0], as_array(), atol=1e-9)
    ours, arrays, inside = (
        seconds * 1e6
        for seconds in best_seconds(
            lambda: space.forward(q),
            as_array,
            lambda: pin.forwardKinematics(model, data, their_q),
            repeats=REPEATS,
            number=CALLS,
        )
    )
    return [
        Row("all joints of one pose, as arrays", ours, "us", peer=arrays, peer_name="pinocchio"),
        Row("the same, pinocchio's left inside it", ours, "us", peer=inside, peer_name="pinocchio"),
    ]


def _handles(space: PoseSpace, q: Array) -> Row:
    model, their_q = _pinocchio_model(space.skeleton), _pinocchio_q(q)
    data, handles = model.createData(), space.handles(HANDLES)
    joints = [model.getJointId(name) for name in HANDLES]

    def theirs() -> tuple[Array, Array]:
        pin.computeJointJacobians(model, data, their_q)
        points = np.array([data.oMi[joint].translation for joint in joints])
        rows = [pin.getJointJacobian(model, data, joint, pin.LOCAL_WORLD_ALIGNED)[:3] for joint in joints]
        return points, np.concatenate(rows)

    np.testing.assert_allclose(space.handle_positions(q, handles)[0], theirs()[0], atol=1e-9)
    our_seconds, their_seconds = best_seconds(
        lambda: space.handle_positions(q, handles), theirs, repeats=REPEATS, number=CALLS
    )
    return Row(
        "five handles of one pose and their Jacobian",
        our_seconds * 1e6,
        "us",
        peer=their_seconds * 1e6,
        peer_name="pinocchio",
    )


def _batch(space: PoseSpace, rng: np.random.Generator) -> Row:
    quaternions = rotations.normalize(rng.normal(size=(FRAMES, JOINTS, 4)))
    roots = rng.normal(size=(FRAMES, 3))
    (seconds,) = best_seconds(lambda: world_transforms(space.skeleton, roots, quaternions))
    return Row(f"all joints of {FRAMES:,} frames", FRAMES / seconds, "frames/s", note="one thread")


def _skeleton() -> Skeleton:
    """A trunk and limbs: five chains of six joints from one root, every joint free to turn."""
    rng = np.random.default_rng(31)
    parents = np.array([-1, *(0 if joint % 6 == 1 else joint - 1 for joint in range(1, JOINTS))])
    names = tuple(f"j{joint}" for joint in range(JOINTS))
    return Skeleton(names, parents, rng.normal(scale=0.2, size=(JOINTS, 3)), ("ZYX",) * JOINTS)


def _random_q(space: PoseSpace, rng: np.random.Generator) -> Array:
    maps = rng.normal(scale=0.5, size=space.size - 7)
    return np.concatenate([rng.normal(size=3), rotations.normalize(rng.normal(size=4)), maps])


def _pinocchio_model(skeleton: Skeleton) -> pin.Model:
    model = pin.Model()
    ids = [model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), skeleton.names[0])]
    for joint in range(1, len(skeleton)):
        placement = pin.SE3(np.eye(3), skeleton.offsets[joint])
        parent = ids[skeleton.parents[joint]]
        ids.append(model.addJoint(parent, pin.JointModelSpherical(), placement, skeleton.names[joint]))
    return model


def _pinocchio_q(q: Array) -> Array:
    turns = rotations.quaternion_from_expmap(q[7:].reshape(-1, 3))
    return np.concatenate([q[:3], np.roll(q[3:7], -1), np.roll(turns, -1, axis=-1).ravel()])
