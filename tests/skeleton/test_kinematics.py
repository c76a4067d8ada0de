"""The compiled kinematics against finite differences and against pinocchio's, on a 31-joint body."""

import numpy as np
import pytest

from poise.errors import InvalidValueError, UnknownNameError
from poise.geometry import rotations
from poise.skeleton import Pose, Skeleton
from poise.skeleton.kinematics import turns_in_world, world_transforms
from poise.skeleton.pose_space import Handle, PoseSpace

JOINTS = 31
HANDLES = (
    Handle("j5", (0.1, 0.2, 0.3)),
    Handle("j11"),
    Handle("j17"),
    Handle("j23"),
    Handle("j30", (0.0, 0.1, 0.0)),
)


def random_quaternions(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rotations.normalize(rng.normal(size=(*shape, 4)))


@pytest.fixture(scope="module")
def space() -> PoseSpace:
    rng = np.random.default_rng(31)
    parents = np.array([-1, *(j - 1 if j % 6 else 0 for j in range(1, JOINTS))])
    names = tuple(f"j{j}" for j in range(JOINTS))
    skeleton = Skeleton(names, parents, rng.normal(scale=0.2, size=(JOINTS, 3)), ("ZYX",) * JOINTS)
    moving = np.ones(JOINTS, dtype=bool)
    moving[[4, 15]] = False
    return PoseSpace(skeleton, references=random_quaternions(rng, JOINTS), moving=moving)


def random_q(space: PoseSpace, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    maps = rng.normal(scale=0.8, size=space.size - 7)
    return np.concatenate([rng.normal(size=3), random_quaternions(rng), maps])


def central_difference(space: PoseSpace, q: np.ndarray, function, step: float = 1e-6) -> np.ndarray:
    columns = []
    for direction in np.eye(space.freedoms) * step:
        ahead, behind = function(space.integrate(q, direction)), function(space.integrate(q, -direction))
        columns.append((ahead - behind).ravel() / (2 * step))
    return np.stack(columns, axis=1)


@pytest.mark.parametrize("seed", range(3))
def test_position_jacobian_meets_finite_differences(space: PoseSpace, seed: int) -> None:
    q, handles = random_q(space, seed), space.handles(HANDLES)
    _, jacobian = space.handle_positions(q, handles)
    numeric = central_difference(space, q, lambda at: space.handle_positions(at, handles)[0])
    np.testing.assert_allclose(jacobian, numeric, atol=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_orientation_jacobian_meets_finite_differences(space: PoseSpace, seed: int) -> None:
    q, handles = random_q(space, seed), space.handles(HANDLES)
    turns, jacobian = space.handle_orientations(q, handles)

    def angular(at: np.ndarray) -> np.ndarray:
        return rotations.expmap_from_matrix(
            space.handle_orientations(at, handles)[0] @ turns.transpose(0, 2, 1)
        )

    np.testing.assert_allclose(jacobian, central_difference(space, q, angular), atol=1e-7)


def test_centre_of_mass_jacobian_meets_finite_differences(space: PoseSpace) -> None:
    q = random_q(space, 5)
    _, jacobian = space.centre_of_mass(q)
    numeric = central_difference(space, q, lambda at: space.centre_of_mass(at)[0])
    np.testing.assert_allclose(jacobian, numeric, atol=1e-7)


def test_centre_of_mass_is_the_weighted_mean_of_segment_centres(space: PoseSpace) -> None:
    q = random_q(space, 6)
    positions, matrices = space.forward(q)
    share, centre = space.masses[:, 0], space.masses[:, 1:]
    expected = share @ (positions + np.einsum("jab,jb->ja", matrices, centre))
    np.testing.assert_allclose(space.centre_of_mass(q)[0], expected, atol=1e-12)
    assert share.sum() == pytest.approx(1.0)


def test_forward_kinematics_and_jacobian_agree_with_pinocchio(space: PoseSpace) -> None:
    pin = pytest.importorskip("pinocchio")
    model = pin.Model()
    ids = [model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "j0")]
    turns = rotations.matrix_from_quaternion(space.references)
    for j in range(1, JOINTS):
        placement = pin.SE3(turns[j], space.skeleton.offsets[j])
        parent = ids[space.skeleton.parents[j]]
        ids.append(model.addJoint(parent, pin.JointModelSpherical(), placement, f"j{j}"))
    q = random_q(space, 7)
    locals_ = np.tile(rotations.IDENTITY, (JOINTS, 1))
    locals_[space.moving] = rotations.quaternion_from_expmap(q[7:].reshape(-1, 3))
    xyzw = np.concatenate([q[:3], np.roll(q[3:7], -1), np.roll(locals_[1:], -1, axis=-1).ravel()])
    data = model.createData()
    pin.computeJointJacobians(model, data, xyzw)

    positions, matrices = space.forward(q)
    for j, identity in enumerate(ids):
        np.testing.assert_allclose(positions[j], data.oMi[identity].translation, atol=1e-9)
        np.testing.assert_allclose(matrices[j], data.oMi[identity].rotation, atol=1e-9)

    theirs = pin.getJointJacobian(model, data, ids[29], pin.LOCAL_WORLD_ALIGNED)[:3]
    _, ours = space.handle_positions(q, space.handles(["j29"]))
    for slot, joint in enumerate(space.moving):
        column = 6 + 3 * (joint - 1)
        right = rotations.right_jacobian(q[7 + 3 * slot : 10 + 3 * slot])
        np.testing.assert_allclose(
            ours[:, 6 + 3 * slot : 9 + 3 * slot], theirs[:, column : column + 3] @ right, atol=1e-9
        )


def test_batches_give_the_same_numbers_as_single_poses(space: PoseSpace) -> None:
    qs = np.stack([random_q(space, seed) for seed in range(5)])
    positions, matrices = space.forward(qs)
    for frame, q in enumerate(qs):
        one_positions, one_matrices = space.forward(q)
        assert np.array_equal(positions[frame], one_positions)
        assert np.array_equal(matrices[frame], one_matrices)


def test_pose_vectors_and_frames_are_two_forms_of_one_pose(space: PoseSpace) -> None:
    q = random_q(space, 8)
    q[7:] = rotations.expmap_from_quaternion(rotations.quaternion_from_expmap(q[7:].reshape(-1, 3))).ravel()
    q[3:7] = rotations.canonical(q[3:7])
    pose = space.pose_from_q(q)
    np.testing.assert_allclose(space.q_from_pose(pose), q, atol=1e-12)
    positions, matrices = world_transforms(space.skeleton, pose.root_position, pose.rotations)
    expected_positions, expected_matrices = space.forward(q)
    np.testing.assert_allclose(positions, expected_positions, atol=1e-12)
    np.testing.assert_allclose(matrices, expected_matrices, atol=1e-12)


def test_references_and_moving_joints_come_from_the_data() -> None:
    rng = np.random.default_rng(0)
    skeleton = Skeleton(("hips", "spine", "neck", "end"), np.array([-1, 0, 1, 2]), np.ones((4, 3)))
    quaternions = np.tile(rotations.IDENTITY, (50, 4, 1))
    mean = rotations.quaternion_from_expmap(np.array([0.0, 1.0, 0.0]))
    noise = rng.normal(scale=0.1, size=(50, 3))
    quaternions[:, 1] = rotations.multiply(mean, rotations.quaternion_from_expmap(noise - noise.mean(axis=0)))
    space = PoseSpace.of_rotations(skeleton, quaternions)
    assert space.moving.tolist() == [1]
    assert rotations.geodesic_distance(space.references[1], mean) < 0.01


def test_wrong_input_is_refused_with_words(space: PoseSpace) -> None:
    with pytest.raises(UnknownNameError, match="did you mean j1"):
        space.handles(["J1"])
    with pytest.raises(InvalidValueError, match="finite numbers"):
        space.pose_from_q(np.full(space.size, np.nan))
    with pytest.raises(InvalidValueError, match="rotations"):
        world_transforms(space.skeleton, np.zeros((2, 3)), np.zeros((2, 3, 4)))
    with pytest.raises(InvalidValueError, match="root position"):
        Pose(space.skeleton, np.zeros(3), np.zeros((2, 4)))


def test_turns_are_those_of_the_matrices(space: PoseSpace) -> None:
    qs = np.stack([random_q(space, seed) for seed in range(20)])
    qs[0, 7:] = 0.0
    _, quaternions = space.frames_from_q(qs)
    local = rotations.quaternion_from_expmap(qs[:, 7:].reshape(20, -1, 3))
    turned = rotations.multiply(space.references[space.moving], local)
    np.testing.assert_allclose(quaternions[:, space.moving], rotations.canonical(turned), atol=1e-14)
    np.testing.assert_array_equal(quaternions[:, 4], np.tile(space.references[4], (20, 1)))
    _, matrices = space.forward(qs)
    turns = turns_in_world(space.skeleton, quaternions)
    np.testing.assert_allclose(turns, rotations.quaternion_from_matrix(matrices), atol=1e-9)
    np.testing.assert_array_equal(turns_in_world(space.skeleton, quaternions[3]), turns[3])
