"""Whole poses as keys: the frames between are filled at once, and everything about the keys can be edited."""

import numpy as np
import pytest

from poise.errors import PoiseError
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.performer import act
from poise.skeleton.skeleton import Pose
from poise.studio import messages as said
from poise.studio import pose_to_pose
from poise.studio.layers import changed_frames
from poise.studio.panels import timeline
from poise.studio.session import Session
from poise.studio.state import Placed
from running_studio import Heard, wait_until
from small_motion import small_weights

WALK = act("walk", seconds=3.0, fps=10.0)
FRAMES = (0, 7, 14, 20, 28)


@pytest.fixture(autouse=True)
def _random_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = small_weights()
    monkeypatch.setattr("poise.priors.motion.prior.shipped", lambda: weights)


@pytest.fixture
def posed(session: Session) -> Session:
    """Five poses of a walk as keys."""
    session.answer(said.SetTimeline(fps=10.0, frames=30))
    for frame in FRAMES:
        key(session, frame, WALK[frame])
    wait_until(lambda: session.jobs.idle)
    return session


def key(session: Session, frame: int, pose: Pose) -> None:
    session.answer(said.SetFrame(frame=frame))
    own = session.state.pose.skeleton
    shown = Pose(own, pose.root_position, pose.rotations)
    session.commit(session.state.with_(placed=Placed(shown), by_hand=True), ease=4)


def motion_of(session: Session) -> Motion:
    assert session.motion is not None
    return session.motion


def frames_of(session: Session) -> list[int]:
    return [key.frame for key in session.state.timeline.poses]


def body(*frames: int) -> list[said.KeyPlace]:
    return [said.KeyPlace(handle=None, frame=frame) for frame in frames]


def poses_at(session: Session, *frames: int) -> np.ndarray:
    return motion_of(session).rotations[list(frames)]


def test_keys_are_met_to_the_last_digit_and_the_prior_moves_between(posed: Session) -> None:
    motion = motion_of(posed)
    assert frames_of(posed) == list(FRAMES)
    assert posed.state.smooth
    np.testing.assert_array_equal(motion.rotations[list(FRAMES)], WALK.rotations[list(FRAMES)])
    np.testing.assert_array_equal(motion.root_positions[29], motion.root_positions[28])  # held after the last
    keys = [(pose_to_pose.PoseKey(at / 10, WALK[at]), WALK[at]) for at in FRAMES]
    lines = pose_to_pose.straight(keys, motion.skeleton, fps=10.0)
    assert rotations.geodesic_distance(motion.rotations[:29], lines.rotations).max() > 0.01


def test_a_key_changes_the_frames_up_to_the_keys_beside_it_at_once(posed: Session) -> None:
    before = motion_of(posed)
    posed.answer(said.SetFrame(frame=14))
    turn = said.TurnJoints(seq=posed.seq + 1, joints=["head"], turn=(0.98, 0.0, 0.2, 0.0), last=True, ease=4)
    shown = [message for message in posed.answer(turn) if isinstance(message, said.MotionRange)]
    assert (shown[0].first, shown[0].first + shown[0].frames) == (8, 20)
    first, end = changed_frames(before, motion_of(posed))
    assert 7 < first < end <= 20
    posed.answer(said.Undo())
    assert changed_frames(before, motion_of(posed)) == (0, 0)


def test_keys_move_copy_mirror_and_stretch(posed: Session) -> None:
    was = poses_at(posed, *FRAMES)
    posed.answer(said.MoveKeys(keys=body(7), by=2))
    assert frames_of(posed) == [0, 9, 14, 20, 28]
    np.testing.assert_array_equal(poses_at(posed, 9)[0], was[1])
    posed.answer(said.MoveKeys(keys=body(0, 9), by=17, copies=True))
    assert frames_of(posed) == [0, 9, 14, 17, 20, 26, 28]
    np.testing.assert_array_equal(poses_at(posed, 17, 26), was[:2])
    posed.answer(said.MoveKeys(keys=body(14), mirrored=True))
    side = WALK.skeleton.index("left_upper_arm")
    assert rotations.geodesic_distance(poses_at(posed, 14)[0, side], was[2, side]) > 0.01
    for _ in range(3):
        posed.answer(said.Undo())
    posed.answer(said.MoveKeys(keys=body(*FRAMES), stretch=0.5))
    assert frames_of(posed) == [0, 4, 7, 10, 14]
    np.testing.assert_array_equal(poses_at(posed, 0, 4, 7, 10, 14), was)
    posed.answer(said.RemoveKeys(keys=body(4, 10)))
    assert frames_of(posed) == [0, 7, 14]
    with pytest.raises(PoiseError, match="two keys would be on one frame"):
        posed.answer(said.MoveKeys(keys=body(0, 7), stretch=0.01))


def test_a_breakdown_keeps_its_share_of_the_time(posed: Session) -> None:
    posed.answer(said.EaseKeys(keys=body(14), kind="breakdown"))
    posed.answer(said.MoveKeys(keys=body(20), by=6))
    assert frames_of(posed) == [0, 7, 17, 26, 28]
    assert posed.state.timeline.poses[2].kind == "breakdown"
    arm = poses_at(posed, 17)
    posed.answer(said.MoveKeys(keys=body(26), mirrored=True))
    np.testing.assert_array_equal(poses_at(posed, 17), arm)


def test_a_hold_a_tempo_and_an_ease_pace_the_span_to_the_next_key(posed: Session) -> None:
    posed.answer(said.EaseKeys(keys=body(7), kind="hold", hold=3))
    held = motion_of(posed)
    for frame in (8, 9, 10):
        np.testing.assert_allclose(held.root_positions[frame], held.root_positions[7], atol=1e-9)
    assert posed.state.timeline.poses[1].hold == 3
    posed.answer(said.EaseKeys(keys=body(7), kind="extreme"))
    assert posed.state.timeline.poses[1].hold == 0
    even = motion_of(posed)
    posed.answer(said.EaseKeys(keys=body(20), easing="in"))
    slow = motion_of(posed)
    start = even.root_positions[20]
    gone = [np.linalg.norm(one.root_positions[23] - start) for one in (slow, even)]
    assert gone[0] < 0.8 * gone[1]
    posed.answer(said.EaseKeys(keys=body(20), easing="none", tempo=4.0))
    fast = motion_of(posed)
    assert np.abs(fast.rotations[21:28] - even.rotations[21:28]).max() > 1e-3


def test_a_range_is_mirrored_reversed_and_closed(posed: Session) -> None:
    was = poses_at(posed, *FRAMES)
    posed.answer(said.EditRange(first=7, last=20, edit="reverse"))
    assert frames_of(posed) == [0, 7, 13, 20, 28]
    np.testing.assert_array_equal(poses_at(posed, 7, 13, 20), was[[3, 2, 1]])
    posed.answer(said.EditRange(first=0, last=28, edit="cycle"))
    np.testing.assert_allclose(poses_at(posed, 28)[0, 1:], was[0, 1:], atol=1e-9)


def test_a_path_of_a_handle_is_followed_above_the_poses(posed: Session) -> None:
    hand = said.SceneHandle(id="hand", joint="right_hand", pinned=False)
    posed.answer(said.PutHandle(handle=hand))
    way = [motion_of(posed)[frame].positions["right_hand"] for frame in (15, 17, 19)]
    before = motion_of(posed)
    for frame, at, up in zip((15, 17, 19), way, (0.0, 0.06, 0.0), strict=True):
        x, y, z = np.add(at, (0.0, up, 0.0)).tolist()
        posed.answer(said.PutKey(key=said.Key(handle="hand", frame=frame, position=(x, y, z))))
    wait_until(lambda: posed.jobs.idle and posed.state.smooth)
    after = motion_of(posed)
    there = [after[frame].positions["right_hand"] for frame in (15, 17, 19)]
    np.testing.assert_allclose(there, np.add(way, [(0, 0, 0), (0, 0.06, 0), (0, 0, 0)]), atol=2e-3)
    np.testing.assert_array_equal(after.rotations[list(FRAMES)], before.rotations[list(FRAMES)])


def test_a_handle_that_was_pinned_at_a_key_is_pinned_there_again(posed: Session) -> None:
    posed.answer(said.SetFrame(frame=14))
    x, y, z = posed.state.pose.positions["right_hand"].tolist()
    hand = said.SceneHandle(id="hand", joint="right_hand", position=(x, y + 0.05, z))
    posed.answer(said.PutHandle(handle=hand, ease=4))
    posed.answer(said.SetFrame(frame=0))
    assert not posed.state.handle("hand").pinned
    posed.answer(said.SetFrame(frame=14))
    assert posed.state.handle("hand").pinned


def test_a_body_that_the_motion_prior_does_not_know_moves_on_lines(
    posed: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (pose_to_pose, timeline):
        monkeypatch.setattr(module, "prior_on", lambda _: None)
    heard = Heard(posed)
    posed.answer(said.EaseKeys(keys=body(7), tempo=2.0))
    wait_until(lambda: posed.jobs.idle)
    motion = motion_of(posed)
    middle = 0.5 * (motion.root_positions[20] + motion.root_positions[28])
    np.testing.assert_allclose(motion.root_positions[24], middle, atol=1e-9)
    posed.answer(said.EaseKeys(keys=body(7), tempo=1.0))
    remarks = [message.words for message in heard.messages if isinstance(message, said.Remark)]
    assert remarks == [timeline.STRAIGHT]  # said once


def test_without_poses_the_motion_is_gone_and_undo_brings_it_back(posed: Session) -> None:
    before = motion_of(posed)
    posed.answer(said.RemoveKeys(keys=body(*FRAMES)))
    assert posed.motion is None
    posed.answer(said.Undo())
    assert changed_frames(before, motion_of(posed)) == (0, 0)


def test_the_keys_are_saved_and_there_when_the_scene_is_opened(posed: Session) -> None:
    posed.answer(said.EaseKeys(keys=body(7), kind="hold", hold=2, tempo=0.5))
    kept = posed.autosave.find(posed.token)
    found = posed.files.opened(kept, posed.state)
    assert found.timeline.poses == posed.state.timeline.poses
    assert found.is_posed


def test_feet_that_stand_at_two_keys_stand_between_them(session: Session) -> None:
    session.answer(said.SetTimeline(fps=10.0, frames=21))
    session.answer(said.PutHandle(handle=said.SceneHandle(id="hips", joint="pelvis")))
    for frame, way in ((10, (0.06, -0.08, 0.02)), (20, (-0.06, -0.02, 0.0))):
        session.answer(said.SetFrame(frame=frame))
        x, y, z = np.add(session.state.pose.positions["pelvis"], way).tolist()
        session.answer(said.Drag(seq=session.seq + 1, handle="hips", position=(x, y, z), last=True, ease=4))
    wait_until(lambda: session.jobs.idle and session.state.smooth)
    places = np.array([pose.positions["left_foot"] for pose in motion_of(session)])
    assert frames_of(session) == [0, 10, 20]
    assert np.linalg.norm(places - places[0], axis=1).max() < 0.005
    hips = np.array([pose.root_position for pose in motion_of(session)])
    assert np.ptp(hips[:, 1]) > 0.04
