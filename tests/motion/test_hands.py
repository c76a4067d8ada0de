"""Hand shapes: fingers for bodies without any, bent towards the palm, and nothing else moved."""

import numpy as np
import pytest

from poise.errors import UnknownNameError
from poise.motion.carrying import finger_joints
from poise.motion.hands import HAND_SHAPES, as_array, in_shape, shown_joints, with_fingers
from poise.motion.motion import Motion
from poise.performer.bodies import Body
from poise.skeleton.skeleton import Pose, Skeleton

BODY = Body().skeleton
STILL = Motion.of_poses([Pose.rest(BODY, root_position=(0.0, 1.0, 0.0))])


def in_a(shape: str, body: Motion = STILL) -> Pose:
    shares = as_array({shape: 1.0})[None]
    return in_shape(body, {"left": shares, "right": shares})[0]


def tip(pose: Pose, side: str, finger: str) -> np.ndarray:
    """The end of a finger, from the wrist."""
    found = pose.positions[f"{side.capitalize()}Hand{finger.capitalize()}3_end"]
    return np.asarray(found - pose.positions[f"{side}_hand"])


def test_a_body_without_fingers_gets_some_after_its_own_joints() -> None:
    body = with_fingers(BODY)
    assert body.names[: len(BODY)] == BODY.names
    assert len(finger_joints(body)) == 30
    assert shown_joints(BODY) == len(BODY) + 30
    assert body.roles == BODY.roles
    assert with_fingers(body) is body
    assert with_fingers(Skeleton(("one",), np.array([-1]), np.zeros((1, 3)))).names == ("one",)


@pytest.mark.parametrize("side", ["left", "right"])
def test_shapes_differ_as_their_names_say(side: str) -> None:
    flat, fist, point, relaxed = (in_a(shape) for shape in ("flat", "fist", "point", "relaxed"))
    hand = BODY.height * 0.108
    for finger in ("index", "middle", "ring", "little"):
        reach = [float(np.linalg.norm(tip(pose, side, finger))) for pose in (flat, relaxed, fist)]
        assert reach[0] > reach[1] > reach[2]
        assert tip(fist, side, finger)[1] < -0.01  # palms face down in the rest pose
    assert np.linalg.norm(tip(flat, side, "middle")) == pytest.approx(hand, rel=0.1)
    assert np.linalg.norm(tip(point, side, "index")) > 0.9 * np.linalg.norm(tip(flat, side, "index"))
    assert np.linalg.norm(tip(point, side, "ring")) < 0.7 * np.linalg.norm(tip(flat, side, "ring"))
    assert tip(flat, side, "thumb")[2] > 0.04  # the thumb is in front
    assert np.linalg.norm(tip(fist, side, "thumb") - tip(fist, side, "index")) < 0.06


def test_both_hands_mirror_each_other_and_the_body_stays() -> None:
    for shape in HAND_SHAPES:
        pose = in_a(shape)
        np.testing.assert_allclose(
            tip(pose, "left", "thumb"), tip(pose, "right", "thumb") * (-1.0, 1.0, 1.0), atol=1e-9
        )
        np.testing.assert_array_equal(pose.rotations[: len(BODY)], STILL.rotations[0])


def test_shares_go_from_one_shape_to_another() -> None:
    shares = np.array([as_array({"flat": 1.0 - share, "fist": share}) for share in np.linspace(0.0, 1.0, 11)])
    moving = Motion(BODY, 30.0, np.tile(STILL.root_positions, (11, 1)), np.tile(STILL.rotations, (11, 1, 1)))
    made = in_shape(moving, {"left": shares})
    reach = np.array([np.linalg.norm(tip(pose, "left", "index")) for pose in made])
    assert np.all(np.diff(reach) < 0.0)
    still = np.array([tip(pose, "right", "index") for pose in made])
    np.testing.assert_allclose(still, np.broadcast_to(still[0], still.shape), atol=1e-12)


def test_own_fingers_are_bent_and_stay_as_they_are_without_a_shape() -> None:
    body = with_fingers(BODY)
    bent = np.tile([1.0, 0.0, 0.0, 0.0], (1, len(body), 1))
    bent[0, body.index("LeftHandIndex1")] = (np.cos(0.3), 0.0, 0.0, np.sin(0.3))
    recorded = Motion(body, 30.0, np.zeros((1, 3)), bent)
    assert in_shape(recorded, {}) is recorded
    fist = in_a("fist", recorded)
    assert fist.skeleton is body
    np.testing.assert_allclose(tip(fist, "left", "index"), tip(in_a("fist"), "left", "index"), atol=1e-9)


def test_an_unknown_shape_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownNameError, match="fist"):
        as_array({"fits": 1.0})
