"""The neutral pose: a T-pose facing +Z, whatever the rest pose and the joints' own axes."""

import numpy as np
import pytest

from bodies import bone_aligned_axes, moving, person, with_other_axes
from poise.geometry import rotations
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.neutral import FORWARD, LEFT, UP, nearest_axes, neutral_pose, stands_at_rest


def check_t_pose(skeleton, neutral, *, tolerance=1e-6):
    """Bones of the limbs along the body's axes, toes ahead of the ankles."""

    def bone(upper, lower):
        vector = neutral.positions[skeleton.index(lower)] - neutral.positions[skeleton.index(upper)]
        return vector / np.linalg.norm(vector)

    for side, out in (("left", LEFT), ("right", -LEFT)):
        for upper, lower, direction in (
            ("thigh", "shin", -UP),
            ("shin", "foot", -UP),
            ("upper_arm", "forearm", out),
            ("forearm", "hand", out),
        ):
            np.testing.assert_allclose(bone(f"{side}_{upper}", f"{side}_{lower}"), direction, atol=tolerance)
        assert bone(f"{side}_foot", f"{side}_toes") @ FORWARD > 0.8
    assert bone("pelvis", "head") @ UP > 0.99


def test_t_pose_is_its_own_neutral_pose():
    neutral = neutral_pose(person())
    assert neutral.twist_known
    np.testing.assert_allclose(
        rotations.geodesic_distance(neutral.rotations, rotations.IDENTITY), 0.0, atol=1e-7
    )


def posed_as_rest(body, **turns):
    """The skeleton whose rest pose is this one's pose with some joints turned, by exponential maps."""
    q = np.tile(rotations.IDENTITY, (len(body), 1))
    for role, expmap in turns.items():
        q[body.index(role)] = rotations.quaternion_from_expmap(np.array(expmap))
    positions, _ = world_transforms(body, np.zeros(3), q)
    offsets = positions - positions[body.parents]
    offsets[0] = body.offsets[0]
    return body.with_offsets(offsets)


@pytest.mark.parametrize(
    "turns",
    [
        {"left_upper_arm": [0, 0, -0.8], "right_upper_arm": [0, 0, 0.8]},  # an A-pose
        {"left_upper_arm": [0, 0, -1.5], "right_upper_arm": [0, 0, 1.5]},  # arms hanging
        {"left_thigh": [0, 0, 0.35], "right_thigh": [0, 0, -0.35]},  # legs apart, as in the CMU conversion
        {"pelvis": [0, 1.57, 0]},  # facing sideways
        {"pelvis": [1.57, 0, 0]},  # Z up
    ],
)
def test_other_standing_rest_poses_are_straightened(turns):
    body = posed_as_rest(person(), **turns)
    assert stands_at_rest(body)
    check_t_pose(body, neutral_pose(body))


def test_bone_aligned_rig_is_understood_from_its_motion():
    motion = moving(person(), frames=200, size=0.3)
    axes = bone_aligned_axes(motion.skeleton)
    rig = with_other_axes(motion, axes)
    assert not stands_at_rest(rig.skeleton)
    neutral = neutral_pose(rig.skeleton, rig.rotations)
    check_t_pose(rig.skeleton, neutral)
    turned = [
        joint for joint, name in enumerate(rig.skeleton.names) if "foot" not in name and "toes" not in name
    ]
    np.testing.assert_allclose(neutral.world[turned], axes[turned], atol=1e-6)


def test_bone_aligned_rig_without_motion_stands_but_its_twist_is_unknown():
    rig = with_other_axes(moving(person(), frames=2), bone_aligned_axes(person())).skeleton
    neutral = neutral_pose(rig)
    assert not neutral.twist_known
    check_t_pose(rig, neutral)


def test_rotations_and_world_agree():
    rig = with_other_axes(moving(person(), frames=50), bone_aligned_axes(person()))
    neutral = neutral_pose(rig.skeleton, rig.rotations)
    positions, world = world_transforms(rig.skeleton, np.zeros(3), neutral.rotations)
    np.testing.assert_allclose(world, neutral.world, atol=1e-9)
    np.testing.assert_allclose(positions, neutral.positions, atol=1e-9)


def test_local_directions_come_back_to_the_body():
    neutral = neutral_pose(posed_as_rest(person(), pelvis=[0.3, 1.0, 0.2]))
    for joint in range(len(neutral.world)):
        np.testing.assert_allclose(neutral.world[joint] @ neutral.local(joint, FORWARD), FORWARD, atol=1e-12)


def test_nearest_axes():
    nearly = rotations.matrix_from_expmap(np.array([0.1, 0.0, 0.1]))
    np.testing.assert_array_equal(nearest_axes(nearly), np.eye(3))
    far = rotations.matrix_from_expmap(np.array([0.5, 0.0, 0.0]))
    np.testing.assert_array_equal(nearest_axes(far), far)
