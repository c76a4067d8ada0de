"""What people reach: measured by role, the same on every rig, and named where a pose is beyond it."""

import numpy as np
import pytest

from bodies import person
from poise.geometry import rotations
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton import Pose
from poise.skeleton.limits import limit_of, table
from poise.skeleton.ranges import MOVEMENTS, beyond_people, edges, measured
from poise.skeleton.roles import SIDES
from poise.solvers.constraints import LookAt, Position
from poise.solvers.posture import Manner, Posture
from poise.solvers.solution import Solution

SOLE = ("foot", "toes")


def turned(body, **turns):
    q = np.tile(rotations.IDENTITY, (len(body), 1))
    for role, degrees in turns.items():
        q[body.index(role)] = rotations.quaternion_from_expmap(np.radians(np.array(degrees, dtype=float)))
    return Pose(body, np.zeros(3), q)


def standing(prior: UniversalPrior) -> Pose:
    return prior.space.pose_from_q(prior.space.standing(prior.mean))


def solved(prior: UniversalPrior, behind: bool) -> Solution:
    """A gaze behind the body, or hips that are low over soles with handles; feet and heading stay."""
    pose, height = standing(prior), prior.space.skeleton.height
    feet = {
        f"{side}_{part}": tuple(pose.positions[f"{side}_{part}"].tolist()) for side in SIDES for part in SOLE
    }
    manner = Manner(planted=tuple((role, feet[role]) for role in feet if "foot" in role), keeps_heading=True)
    x, y, z = pose.positions["pelvis"].tolist()
    low = [Position("pelvis", (x, y - 0.24 * height, z + 0.05)), *(Position(*each) for each in feet.items())]
    return Posture(prior).solve([LookAt("head", (-0.8, 1.6, -3.0))] if behind else low, manner)


@pytest.fixture(scope="module", params=["typical", "other"])
def prior(request: pytest.FixtureRequest) -> UniversalPrior:
    return UniversalPrior.of_people() if request.param == "typical" else UniversalPrior(person())


def test_a_chain_is_measured_as_a_whole_and_right_limbs_as_left_ones() -> None:
    pose = turned(
        person(), neck=[0, 30, 0], head=[0, 45, 0], left_thigh=[-70, 0, 20], right_thigh=[-70, 0, -20]
    )
    angles = measured(pose.skeleton, pose.world[1])
    assert angles["neck", ""] == pytest.approx([0.0, 75.0, 0.0], abs=1e-6)
    assert angles["thigh", "left"] == pytest.approx(angles["thigh", "right"], abs=1e-6)


@pytest.mark.parametrize(
    ("turns", "words"),
    [
        ({"neck": [0, 60, 0], "head": [0, 69, 0]}, "head turned by 129 degrees; people reach 80"),
        (
            {"left_shin": [60, 0, 0], "left_foot": [-70, 0, 0]},
            "left ankle bent up by 70 degrees; people reach 38",
        ),
        ({"right_shin": [-40, 0, 0]}, "right knee bent forwards by 40 degrees; people reach 10"),
        ({"right_forearm": [0, -50, 0]}, "right elbow bent backwards by 50 degrees; people reach 15"),
    ],
)
def test_what_is_beyond_people_is_named_with_how_far(turns: dict[str, list[float]], words: str) -> None:
    assert str(beyond_people(turned(person(), **turns))[0]) == words


def test_a_straight_knee_leaves_the_ankle_less() -> None:
    bent, straight = (turned(person(), left_shin=[knee, 0, 0], left_foot=[-42, 0, 0]) for knee in (80, 0))
    assert beyond_people(bent) == []
    assert str(beyond_people(straight)[0]) == "left ankle bent up by 42 degrees; people reach 27"


def test_usual_poses_are_within_people(prior: UniversalPrior) -> None:
    assert beyond_people(standing(prior)) == []


def test_a_gaze_behind_does_not_turn_the_head_like_an_owl(prior: UniversalPrior) -> None:
    solution = solved(prior, behind=True)
    neck = measured(solution.space.skeleton, solution.pose.world[1])["neck", ""]
    assert abs(neck[1]) < 90.0
    assert solution.beyond_people == []


def test_an_ankle_that_soles_with_handles_spend_is_within_people_or_named(prior: UniversalPrior) -> None:
    solution = solved(prior, behind=False)
    angles = measured(solution.space.skeleton, solution.pose.world[1])
    named = [each.part for each in solution.beyond_people]
    for side in SIDES:
        assert (angles["foot", side][0] < -50.0) == (f"{side} ankle" in named)
    assert len(set(named)) <= 1


@pytest.mark.parametrize(
    ("turns", "words"),
    [
        ({"left_upper_arm": [85, 0, 0]}, None),
        ({"left_upper_arm": [0, -20, -75], "left_forearm": [0, -20, 0]}, None),
        ({"left_upper_arm": [0, -110, -75]}, "left arm drawn across by"),
        ({"left_thigh": [-115, 0, 0]}, "left hip bent forward by 115 degrees; people reach 90"),
        ({"left_thigh": [-115, 0, 0], "left_shin": [100, 0, 0]}, None),
    ],
)
def test_an_end_of_a_range_depends_on_another_angle(turns: dict[str, list[float]], words: str | None) -> None:
    found = beyond_people(turned(person(), **turns))
    assert str(found[0]).startswith(words) if words else found == []


def test_the_ends_of_ranges_change_with_the_pose_as_their_slopes_say(prior: UniversalPrior) -> None:
    space, rng = prior.space, np.random.default_rng(0)
    q = space.standing(prior.mean + 0.5 * rng.normal(size=len(prior.mean)))
    step = 1e-5 * rng.normal(size=space.freedoms)
    step[:6] = 0.0
    before, after = (
        {edge.name: edge for edge in edges(space, one, nearer=3.0)} for one in (q, space.integrate(q, step))
    )
    assert len(before) > 20
    for name, edge in before.items():
        assert after[name].excess - edge.excess == pytest.approx(edge.slope @ step, abs=1e-7)


def test_random_reaches_stay_within_people(prior: UniversalPrior) -> None:
    rng, posture, height = np.random.default_rng(3), Posture(prior), prior.space.skeleton.height
    for _ in range(10):
        x, y, z = rng.uniform([-0.35, 0.1, -0.2], [0.0, 1.1, 0.4]) * height
        solution = posture.solve(
            [Position("right_hand", (x, y, z)), LookAt("head", (0.0, y, -3.0))], Manner()
        )
        assert beyond_people(solution.pose, slack=5.0) == []


def test_the_table_has_every_part_and_says_where_it_is_from() -> None:
    assert "NSF EIA-0196217" in table()["database"]
    for part in MOVEMENTS:
        limit, published = limit_of(part), table()["parts"][part]["published"]
        assert np.all(limit[:, 0] < 0.0)
        assert np.all(limit[:, 1] > 0.0)
        assert published is not None
