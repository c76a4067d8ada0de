"""Each action does what it is asked: speeds, turns, heights, points, hands; and styles change how it looks."""

import numpy as np
import pytest

from performer_measures import runs
from poise.motion.world import joint_transforms
from poise.performer import PERFORMERS, STYLES, act, acted

Array = np.ndarray


def positions(motion, joint: str) -> Array:
    return joint_transforms(motion)[0][:, motion.skeleton.index(joint)]


def speed_of(motion) -> float:
    way = np.linalg.norm(np.diff(motion.root_positions[:, [0, 2]], axis=0), axis=1).sum()
    return float(way / (motion.seconds - 1 / motion.fps))


def strides_a_second(performance) -> float:
    strikes = [run[0] for run in runs(performance.grounded("left"))][1:]
    return performance.motion.fps * (len(strikes) - 1) / (strikes[-1] - strikes[0])


# --- walking and running -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "speed"),
    [("walk", 0.5), ("walk", 1.3), ("walk", 2.0), ("run", 2.3), ("run", 3.5), ("run", 6.0)],
)
def test_the_speed_is_the_one_asked_for(action: str, speed: float) -> None:
    motion = act(action, speed=speed, seconds=8.0, fps=60.0)
    assert motion.root_positions[-1, 2] - motion.root_positions[0, 2] == pytest.approx(speed * 8.0, rel=0.02)


def test_faster_means_quicker_and_longer_strides() -> None:
    slow, fast = (acted("walk", speed=speed, seconds=8.0, fps=60.0) for speed in (0.8, 1.8))
    assert strides_a_second(fast) > 1.3 * strides_a_second(slow)
    assert 1.8 / strides_a_second(fast) > 1.2 * 0.8 / strides_a_second(slow)


def test_a_comfortable_walk_is_like_the_published_one() -> None:
    performance = acted("walk", speed=1.35, seconds=8.0)
    assert strides_a_second(performance) == pytest.approx(0.93, abs=0.06)  # Grieve and Gear 1966
    assert np.mean(performance.grounded("left")) == pytest.approx(0.62, abs=0.05)
    height = performance.motion.root_positions[:, 1]
    assert 0.03 < np.ptp(height) < 0.07  # Murray 1964: 4.8 cm


def test_turning_left_goes_left_and_faces_where_it_goes() -> None:
    motion = act("walk", speed=1.2, turn=0.5, seconds=4.0, fps=60.0)
    step = np.diff(motion.root_positions[-60:, [0, 2]], axis=0).mean(axis=0)
    assert np.arctan2(step[0], step[1]) == pytest.approx(0.5 * 3.5, abs=0.15)
    left, right = positions(motion, "LeftUpLeg")[-1], positions(motion, "RightUpLeg")[-1]
    facing = np.cross(left - right, [0.0, 1.0, 0.0])[[0, 2]]
    assert np.dot(facing, step) / np.linalg.norm(facing) / np.linalg.norm(step) > 0.95


def test_a_path_is_followed() -> None:
    points = [(0.0, 0.0), (0.0, 3.0), (2.0, 5.0)]
    motion = act("walk", path=points, speed=1.4, seconds=4.6, fps=60.0)
    for x, z in points:
        apart = np.linalg.norm(motion.root_positions[:, [0, 2]] - [x, z], axis=1)
        assert apart.min() < 0.12, (x, z)


@pytest.mark.parametrize(("action", "first", "last"), [("walk_to_run", 1.3, 3.4), ("run_to_walk", 3.4, 1.3)])
def test_gaits_change_on_the_way(action: str, first: float, last: float) -> None:
    performance = acted(action, slow=1.3, fast=3.4, seconds=6.0)
    motion, frames = performance.motion, 150
    flies = ~(performance.grounded("left") | performance.grounded("right"))
    assert speed_of(motion[:frames]) == pytest.approx(first, rel=0.1)
    assert speed_of(motion[-frames:]) == pytest.approx(last, rel=0.1)
    assert flies[:frames].any() == (first > 2.0)
    assert flies[-frames:].any() == (last > 2.0)


def test_left_and_right_are_alike_over_many_strides() -> None:
    motion = act("walk", seconds=16.0, fps=60.0)
    knees = [motion.rotations[:, motion.skeleton.index(f"{side}Leg"), 1] for side in ("Left", "Right")]
    assert np.mean(knees[0]) == pytest.approx(np.mean(knees[1]), abs=0.01)
    assert np.std(knees[0]) == pytest.approx(np.std(knees[1]), rel=0.05)


# --- the other actions ---------------------------------------------------------------------------------------------


def test_a_jump_reaches_its_height_and_distance() -> None:
    performance = acted("jump", height=0.4, distance=0.6)
    low, high = (act("jump", height=height).root_positions[:, 1].max() for height in (0.2, 0.4))
    assert high - low == pytest.approx(0.2, abs=0.02)
    landings = [
        positions(performance.motion, "LeftToeBase")[run[0], 2] for run in runs(performance.grounded("left"))
    ]
    assert landings[1] - landings[0] == pytest.approx(0.6, abs=0.02)


@pytest.mark.parametrize("foot", ["left", "right"])
def test_a_hop_is_on_one_foot(foot: str) -> None:
    performance = acted("hop", foot=foot)
    other = "left" if foot == "right" else "right"
    assert performance.grounded(foot).any()
    assert not performance.grounded(other).any()


def test_punches_go_forward_with_the_hand_they_belong_to() -> None:
    for punch, hand in (("jab", "Left"), ("cross", "Right"), ("hook", "Left"), ("uppercut", "Right")):
        motion = act("box", combination=punch, seconds=1.2)
        reach = [np.ptp(positions(motion, f"{side}Hand")[:, 2]) for side in ("Left", "Right")]
        assert (reach[0] > reach[1]) == (hand == "Left"), punch
        assert max(reach) > 0.15, punch


def test_southpaws_mirror_the_orthodox() -> None:
    orthodox = act("box", combination="cross", seconds=1.2)
    southpaw = act("box", combination="cross", seconds=1.2, stance="southpaw")
    right, left = positions(orthodox, "RightHand")[:, 2].max(), positions(southpaw, "LeftHand")[:, 2].max()
    assert left == pytest.approx(right, abs=0.03)


@pytest.mark.parametrize("hand", ["left", "right"])
def test_a_throw_whips_from_pelvis_to_hand(hand: str) -> None:
    motion = act("throw", hand=hand)
    side = hand.capitalize()
    speeds = [
        np.linalg.norm(np.diff(positions(motion, joint), axis=0), axis=1) * motion.fps
        for joint in ("Hips", f"{side}Arm", f"{side}ForeArm", f"{side}Hand")
    ]
    peaks = [int(speed.argmax()) for speed in speeds]
    assert peaks[1] <= peaks[2] <= peaks[3]
    assert speeds[3].max() > 8.0 > speeds[0].max()


def test_a_kick_swings_the_foot_forward_and_up() -> None:
    motion = act("kick", foot="left")
    foot = positions(motion, "LeftFoot")
    assert np.linalg.norm(np.diff(foot, axis=0), axis=1).max() * motion.fps > 6.0
    assert foot[:, 1].max() > 0.45


def test_fingertips_come_to_the_points() -> None:
    points = [(0.3, 1.4, 0.45), (-0.3, 0.8, 0.4), (-0.1, 1.9, 0.2)]
    motion = act("reach", points=points, seconds=3 * 1.9)
    for (x, y, z), side in zip(points, ("Left", "Right", "Right"), strict=True):
        apart = np.linalg.norm(positions(motion, f"{side}Hand_end") - [x, y, z], axis=1)
        assert apart.min() < 0.02, (x, y, z)


@pytest.mark.parametrize("height", [0.35, 0.45, 0.6])
def test_sitting_ends_on_the_seat_and_standing_up_starts_there(height: float) -> None:
    body = PERFORMERS["alex"]
    for style in ("neutral", "sneaky"):
        seated = [act("sit", height=height, style=style)[-1], act("stand_up", height=height, style=style)[0]]
        hips = [pose.root_position[1] - (body.pelvis_height - body.hip_height) for pose in seated]
        np.testing.assert_allclose(hips, height + 0.05 * body.height, atol=0.02)
    assert act("stand_up", height=height).root_positions[-1, 1] > 0.96 * body.pelvis_height


def test_a_wave_lifts_one_hand_above_the_shoulder_and_swings_it() -> None:
    motion = act("wave", hand="left")
    hand, head = positions(motion, "LeftHand_end"), positions(motion, "Head")
    assert np.mean(hand[:, 1] > head[:, 1]) > 0.4
    assert positions(motion, "RightHand_end")[:, 1].max() < 1.0
    swings = np.diff(np.sign(np.diff(hand[120:300, 0])))
    assert np.count_nonzero(swings) >= 4


# --- styles --------------------------------------------------------------------------------------------------------


def test_styles_show_in_posture_pace_and_amplitude() -> None:
    walks = {name: acted("walk", style=name, seconds=6.0, fps=60.0) for name in STYLES}
    lean = {name: _trunk_lean(walk.motion) for name, walk in walks.items()}
    pace = {name: speed_of(walk.motion) for name, walk in walks.items()}
    swing = {name: _arm_swing(walk.motion) for name, walk in walks.items()}
    hips = {name: float(walk.motion.root_positions[:, 1].mean()) for name, walk in walks.items()}
    lift = {name: positions(walk.motion, "LeftLeg")[:, 1].max() for name, walk in walks.items()}
    assert lean["proud"] < lean["neutral"] < lean["tired"] < lean["sneaky"]
    assert lean["old"] > lean["tired"]
    assert pace["old"] < pace["tired"] < pace["neutral"] < pace["energetic"]
    assert swing["tired"] < swing["neutral"] < swing["energetic"]
    assert hips["sneaky"] < hips["old"] < hips["neutral"]
    assert lift["sneaky"] > lift["old"]


def test_style_sets_the_tempo_of_gestures() -> None:
    quick, slow = act("throw", style="energetic"), act("throw", style="old")
    peaks = [
        np.linalg.norm(np.diff(positions(motion, "RightHand"), axis=0), axis=1).argmax() / motion.fps
        for motion in (quick, slow)
    ]
    assert peaks[0] < peaks[1] - 0.3


def _trunk_lean(motion) -> float:
    trunk = positions(motion, "Neck") - motion.root_positions
    return float(np.degrees(np.arctan2(trunk[:, 2], trunk[:, 1])).mean())


def _arm_swing(motion) -> float:
    return float(np.ptp((positions(motion, "LeftHand") - motion.root_positions)[60:, 2]))
