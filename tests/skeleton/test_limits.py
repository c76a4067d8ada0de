"""Joint limits: from data they hold the data, by hand they are what was said, and people's hold people."""

import numpy as np
import pytest

import poise
from bodies import bone_aligned_axes, moving, person, with_other_axes
from poise.errors import InvalidValueError, SkeletonError, UnknownNameError
from poise.geometry import rotations
from poise.motion import limits_from_motion
from poise.skeleton.limits import clamped, excess, human_limits, limits_by_hand, limits_from_rotations
from real_data import recordings


def turned(body, **turns):
    q = np.tile(rotations.IDENTITY, (len(body), 1))
    for role, degrees in turns.items():
        q[body.index(role)] = rotations.quaternion_from_expmap(np.radians(np.array(degrees, dtype=float)))
    return q


# --- from data -----------------------------------------------------------------------------------------------------


def test_limits_from_motion_hold_every_frame_with_the_margin_to_spare():
    motion = moving(person(), size=0.8)
    limits = limits_from_motion(motion, margin=0.1)
    assert excess(limits, motion.rotations).max() == 0.0
    tight = limits_from_motion(motion, margin=0.0)
    moving_joints = ~motion.skeleton.is_end_site
    np.testing.assert_allclose((limits.upper - tight.upper)[moving_joints], 0.1)
    assert excess(tight, motion.rotations).max() < 1e-12


def test_references_are_the_mean_rotations():
    motion = moving(person())
    np.testing.assert_allclose(limits_from_motion(motion).references, rotations.mean(motion.rotations))


def test_several_motions_are_held_together():
    first, second = moving(person(), seed=1), moving(person(), seed=2)
    limits = limits_from_motion([first, second], margin=0.01)
    assert excess(limits, first.rotations).max() == 0.0
    assert excess(limits, second.rotations).max() == 0.0


def test_no_motion_and_unlike_motions_are_refused():
    with pytest.raises(InvalidValueError, match="at least one motion"):
        limits_from_motion([])
    with pytest.raises(InvalidValueError, match="at least one frame"):
        limits_from_rotations([])
    with pytest.raises(SkeletonError, match="toes_end"):
        limits_from_motion([moving(person()), moving(person(leave_out=("left_toes_end",)))])


# --- by hand -------------------------------------------------------------------------------------------------------


def test_limits_by_hand_are_in_degrees_per_joint_or_role():
    limits = limits_by_hand(person(), {"left_shin": [(0, 150), (0, 0), (-5, 5)]})
    shin = person().index("left_shin")
    np.testing.assert_allclose(np.degrees(limits.upper[shin]), [150, 0, 5])
    np.testing.assert_allclose(np.degrees(limits.lower[shin]), [0, 0, -5])
    assert np.all(limits.upper[person().index("right_shin")] == np.pi)


def test_limits_by_hand_change_a_base():
    base = human_limits(person())
    limits = limits_by_hand(person(), {"head": [(-1, 1), (-2, 2), (-3, 3)]}, base=base)
    head, hand = person().index("head"), person().index("left_hand")
    np.testing.assert_allclose(np.degrees(limits.upper[head]), [1, 2, 3])
    np.testing.assert_array_equal(limits.upper[hand], base.upper[hand])


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("wrong", [[(1, -1), (0, 0), (0, 0)], [(0, 1), (0, 1)], [(0, 1, 2)] * 3])
def test_wrong_boxes_are_refused(wrong):
    with pytest.raises(InvalidValueError, match="three \\(lower, upper\\) pairs"):
        limits_by_hand(person(), {"head": wrong})


def test_unknown_joints_suggest():
    with pytest.raises(UnknownNameError, match="left_shin"):
        limits_by_hand(person(), {"left_shim": [(0, 1)] * 3})


# --- people --------------------------------------------------------------------------------------------------------

POSSIBLE = {
    "knee bent": {"left_shin": [120, 0, 0], "right_shin": [120, 0, 0]},
    "thigh forward": {"left_thigh": [-110, 0, 0]},
    "leg out to the left": {"left_thigh": [0, 0, 40]},
    "leg out to the right": {"right_thigh": [0, 0, -40]},
    "elbow bent forward": {"left_forearm": [0, -130, 0], "right_forearm": [0, 130, 0]},
    "arm hanging": {"left_upper_arm": [0, 0, -85], "right_upper_arm": [0, 0, 85]},
    "arms ahead": {"left_upper_arm": [0, -90, 0], "right_upper_arm": [0, 90, 0]},
    "bowing": {"spine": [35, 0, 0], "chest": [35, 0, 0]},
    "looking left": {"head": [0, 60, 0]},
    "on tiptoe": {"left_foot": [40, 0, 0], "left_toes": [-50, 0, 0]},
}
IMPOSSIBLE = {
    "knee bent the wrong way": {"left_shin": [-60, 0, 0]},
    "elbow bent backward": {"left_forearm": [0, 60, 0]},
    "right elbow bent backward": {"right_forearm": [0, -60, 0]},
    "thigh far back": {"right_thigh": [80, 0, 0]},
    "legs crossed too far": {"left_thigh": [0, 0, -70]},
    "head turned round": {"head": [0, 150, 0]},
    "toes along the shin": {"left_foot": [-80, 0, 0]},
}


@pytest.mark.parametrize("pose", POSSIBLE)
def test_people_can(pose):
    assert excess(human_limits(person()), turned(person(), **POSSIBLE[pose])).max() == 0.0


@pytest.mark.parametrize("pose", IMPOSSIBLE)
def test_people_cannot(pose):
    assert excess(human_limits(person()), turned(person(), **IMPOSSIBLE[pose])).max() > np.radians(10)


@pytest.mark.parametrize("poses", [POSSIBLE, IMPOSSIBLE])
def test_a_rig_with_other_axes_has_the_same_limits(poses):
    body = person()
    posed = np.stack([turned(body, **turns) for turns in poses.values()])
    samples = moving(body, frames=200, size=0.2)
    axes = bone_aligned_axes(body)
    rig_samples = with_other_axes(samples, axes)
    motion = samples.with_frames(np.zeros((len(posed), 3)), posed)
    rig = with_other_axes(motion, axes)
    ours = excess(human_limits(body), posed)
    theirs = excess(human_limits(rig.skeleton, samples=rig_samples.rotations), rig.rotations)
    feet = [body.index(f"{side}_{part}") for side in ("left", "right") for part in ("foot", "toes")]
    ours[:, feet], theirs[:, feet] = (
        0.0,
        0.0,
    )  # their neutral angle is assumed where the rest pose does not show it
    np.testing.assert_allclose(theirs, ours, atol=1e-6)


def test_unknown_twist_only_widens():
    body = person()
    rig = with_other_axes(moving(body, frames=2, size=0.0), bone_aligned_axes(body)).skeleton
    limits = human_limits(rig)
    for part, bend in (("shin", 120), ("forearm", 130)):
        joint = rig.index(f"left_{part}")
        for axis in (1, 2):
            turn = np.zeros(3)
            turn[axis] = np.radians(bend)
            q = limits.references.copy()
            q[joint] = rotations.multiply(q[joint], rotations.quaternion_from_expmap(turn))
            assert excess(limits, q)[joint] == 0.0


def test_clamping_moves_into_the_box_and_leaves_the_rest():
    limits = human_limits(person())
    q = np.stack([turned(person(), **turns) for turns in {**POSSIBLE, **IMPOSSIBLE}.values()])
    inside = clamped(limits, q)
    assert excess(limits, inside).max() < 1e-9
    fine = excess(limits, q) == 0.0
    assert rotations.geodesic_distance(inside, q)[fine].max() < 1e-7


def test_the_root_is_free():
    limits = human_limits(person())
    np.testing.assert_allclose(limits.upper[0], np.pi)


@pytest.mark.parametrize("collection", ["cmu", "bandai"])
def test_real_people_are_within_human_limits(collection):
    outside = []
    for file in recordings(collection)[::40]:
        motion = poise.read(file)
        outside.append(
            excess(human_limits(motion.skeleton, samples=motion.rotations), motion.rotations[::5]) > 0.02
        )
    assert np.mean([frames.mean() for frames in outside]) < 0.01
