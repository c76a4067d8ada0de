"""Palms, fingertips and soles, on bodies of several kinds."""

import numpy as np
import pytest

import poise
from poise.errors import UnknownNameError
from poise.performer import PERFORMERS
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton import Pose, Skeleton
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.pose_space import Handle, PoseSpace
from poise.skeleton.surfaces import surfaces_of

BODIES = [UniversalPrior.of_people().space.skeleton, *(body.skeleton for body in PERFORMERS.values())]


@pytest.mark.parametrize("body", BODIES, ids=len)
def test_palms_face_down_and_soles_are_on_the_floor_in_the_neutral_pose(body: Skeleton) -> None:
    neutral = neutral_pose(body)
    floor = neutral.positions[:, 1].min()
    for name, at in surfaces_of(body).items():
        joint = body.index(at.joint)
        assert (neutral.world[joint] @ np.array(at.facing))[1] < -0.99, name
        place = neutral.positions[joint] + neutral.world[joint] @ np.array(at.offset)
        if name.endswith("sole"):
            assert abs(place[1] - floor) < 1e-6
        else:
            away = place - neutral.positions[body.index(f"{name.partition('_')[0]}_hand")]
            assert 0.03 * body.height < np.linalg.norm(away) < 0.14 * body.height


def test_a_thumb_says_which_way_the_palm_faces() -> None:
    body = BODIES[0]
    turned = list(body.offsets)
    names = [name for name in body.names if "Thumb" in name]
    for name in names:
        x, y, z = body.offsets[body.index(name)]
        turned[body.index(name)] = np.array([x, z, -y])
    other = body.with_offsets(np.array(turned))
    for side in ("left", "right"):
        here, there = (surfaces_of(one)[f"{side}_palm"] for one in (body, other))
        facing = neutral_pose(body).world[body.index(here.joint)] @ np.array(there.facing)
        assert abs(facing[2]) > 0.9, "a thumb that points up belongs to a palm that faces forward or back"


def test_surfaces_are_handles_like_joints() -> None:
    body = BODIES[0]
    space = PoseSpace(body)
    own = surfaces_of(body)["right_palm"]
    q = space.q_from_pose(Pose.rest(body))
    places, _ = space.handle_positions(q, space.handles(["right_palm", Handle("right_hand", own.offset)]))
    np.testing.assert_allclose(places[0], places[1], atol=1e-12)
    assert Handle("RightHand", own.offset).surface(body) == ("right_palm", own)
    assert Handle("right_hand").surface(body) is None


def test_other_names_are_still_refused() -> None:
    with pytest.raises(UnknownNameError, match="right_palm"):
        poise.pose({"right_plam": (0.0, 1.0, 0.3)})
