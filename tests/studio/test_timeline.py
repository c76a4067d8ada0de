"""Keys, pins and styles on the timeline."""

import threading
import time
from collections import deque

import numpy as np
import pytest

from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.motion.hands import shown_joints
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.skeleton import Pose
from poise.studio import jobs, timeline_script
from poise.studio import messages as said
from poise.studio.models import ModelStore
from poise.studio.panels import timeline
from poise.studio.session import Session
from poise.studio.solving import point_of, points_of
from running_studio import Heard

FRAMES = 16


@pytest.fixture
def animated(session: Session, unchecked_shapes: None) -> Session:
    del unchecked_shapes
    session.answer(said.SetTimeline(fps=12.0, frames=FRAMES))
    session.answer(said.PutHandle(handle=said.SceneHandle(id="hand", joint="left_hand")))
    return session


def key(
    session: Session, frame: int, by: tuple[float, float, float] = (0.0, 0.0, 0.0)
) -> list[said.ServerMessage]:
    at = np.array(session.state.handle("hand").position) + by
    return session.answer(said.PutKey(key=said.Key(handle="hand", frame=frame, position=tuple(at.tolist()))))


def hand_at(session: Session, frame: int) -> np.ndarray:
    assert session.motion is not None
    return points_of(session.motion[frame], [point_of(session.state.handle("hand"))])[0]


def test_a_key_gives_a_motion_that_goes_through_it(animated: Session) -> None:
    start = np.array(animated.state.handle("hand").position)
    key(animated, 0)
    key(animated, 10, (0.1, 0.2, 0.1))
    answer = key(animated, FRAMES - 1, (0.0, 0.1, 0.0))
    moved = next(message for message in answer if isinstance(message, said.MotionRange))
    assert moved.first == 10
    assert moved.path_handles == ["hand"]
    assert len(moved.world) == moved.frames * shown_joints(animated.state.pose.skeleton) * 7 * 4
    np.testing.assert_allclose(hand_at(animated, 10), start + np.array([0.1, 0.2, 0.1]), atol=5e-3)
    np.testing.assert_allclose(hand_at(animated, FRAMES - 1), start + np.array([0.0, 0.1, 0.0]), atol=5e-3)


def test_a_dragged_key_changes_only_the_frames_between_its_neighbours(animated: Session) -> None:
    for frame in (0, 5, 10, FRAMES - 1):
        key(animated, frame, (0.0, 0.01 * frame, 0.0))
    before = animated.motion
    at = np.array(animated.state.handle("hand").position) + np.array([0.1, 0.2, 0.1])
    dragged = said.Key(handle="hand", frame=5, position=tuple(at.tolist()))
    answer = animated.answer(said.DragKey(seq=1, key=dragged))
    moved = answer[-1]
    assert isinstance(moved, said.MotionRange)
    assert (moved.first, moved.frames, moved.fine) == (0, 11, False)
    assert before is not None
    assert animated.motion is not None
    np.testing.assert_array_equal(animated.motion.rotations[11:], before.rotations[11:])
    assert not np.allclose(animated.motion.rotations[5], before.rotations[5])


def test_scrubbing_shows_the_frame_and_is_no_step_of_undo(animated: Session) -> None:
    key(animated, 0)
    key(animated, 10, (0.1, 0.2, 0.1))
    steps = animated.history.undos
    animated.answer(said.SetFrame(frame=10))
    assert animated.motion is not None
    np.testing.assert_array_equal(animated.state.pose.rotations, animated.motion.rotations[10])
    assert animated.history.undos == steps


def test_undo_takes_a_key_back_and_the_motion_with_it(animated: Session) -> None:
    key(animated, 0)
    key(animated, 10, (0.1, 0.2, 0.1))
    lifted = hand_at(animated, 10)
    answer = animated.answer(said.Undo())
    assert any(isinstance(message, said.MotionRange) for message in answer)
    assert len(animated.state.timeline.keys) == 1
    assert np.linalg.norm(hand_at(animated, 10) - lifted) > 0.1


def test_the_whole_is_smoothed_in_the_background(animated: Session) -> None:
    heard = Heard(animated)
    key(animated, 0)
    key(animated, 10, (0.1, 0.2, 0.1))
    smooth = heard.wait_for(said.MotionRange, lambda message: message.fine)
    assert (smooth.first, smooth.frames, smooth.unmet) == (0, FRAMES, [])
    jerks = [
        np.abs(np.diff(animated.motion.root_positions, n=2, axis=0)).max() for _ in (0,) if animated.motion
    ]
    assert jerks[0] < 0.05


def test_a_pinned_hand_stays_while_the_other_moves(animated: Session) -> None:
    animated.answer(said.PutHandle(handle=said.SceneHandle(id="other", joint="right_hand", pinned=False)))
    animated.answer(said.PutPin(pin=said.Pin(handle="other", first=0, last=FRAMES - 1)))
    held = np.array(animated.state.handle("other").position)
    key(animated, 0)
    key(animated, 10, (0.05, 0.15, 0.1))
    assert animated.motion is not None
    for frame in (0, 6, 10, FRAMES - 1):
        at = points_of(animated.motion[frame], [point_of(animated.state.handle("other"))])[0]
        np.testing.assert_allclose(at, held, atol=5e-3)
    animated.answer(said.RemovePin(handle="other", first=0))
    assert animated.state.timeline.pins == []


def test_keys_of_rotations_are_followed(animated: Session) -> None:
    heard = Heard(animated)
    hand = animated.state.handle("hand")
    joint = animated.state.pose.skeleton.index(hand.joint)

    def turn_at(frame: int) -> np.ndarray:
        motion = animated.motion
        assert motion is not None
        return world_transforms(motion.skeleton, motion.root_positions, motion.rotations)[1][frame, joint]

    start = rotations.quaternion_from_matrix(turned(animated.state.pose, joint))
    end = rotations.multiply(rotations.quaternion_from_expmap(np.array([0.0, 0.4, 0.0])), start)
    for frame, turn in ((0, start), (10, end)):
        wanted = said.Key(handle="hand", frame=frame, position=hand.position, rotation=tuple(turn.tolist()))
        animated.answer(said.PutKey(key=wanted))
    heard.wait_for(said.MotionRange, lambda message: message.fine)
    for frame, share, within in ((0, 0.0, 0.02), (5, 0.5, 0.1), (10, 1.0, 0.02), (FRAMES - 1, 1.0, 0.02)):
        between = rotations.quaternion_from_expmap(np.array([0.0, 0.4 * share, 0.0]))
        expected = rotations.matrix_from_quaternion(rotations.multiply(between, start))
        np.testing.assert_allclose(turn_at(frame), expected, atol=within)


def turned(pose: Pose, joint: int) -> np.ndarray:
    return world_transforms(pose.skeleton, pose.root_position, pose.rotations)[1][joint]


def test_styles_go_over_into_each_other() -> None:
    def style(frame: int, **weights: float) -> said.StyleKey:
        shares = [said.Weight(model=name, weight=weight) for name, weight in weights.items()]
        return said.StyleKey(frame=frame, weights=shares)

    lane = said.Timeline(
        fps=10.0,
        frames=20,
        frame=0,
        keys=[],
        pins=[],
        clip=None,
        styles=[style(0, reach=1.0), style(10, walk=1.0, reach=1.0)],
    )
    names, weights = timeline_script.weights_of(lane, "both")
    assert names == ["reach", "walk"]
    np.testing.assert_allclose(weights.sum(axis=1), 1.0)
    np.testing.assert_allclose(weights[9], [1.0, 0.0])
    np.testing.assert_allclose(weights[-1], [0.5, 0.5])
    assert 0.5 < weights[12, 0] < 1.0


def test_a_style_lane_is_solved(animated: Session) -> None:
    for frame, model in ((0, "reach"), (10, "walk")):
        style = said.StyleKey(frame=frame, weights=[said.Weight(model=model, weight=1.0)])
        animated.answer(said.PutStyleKey(key=style))
    answer = key(animated, 0)
    assert any(isinstance(message, said.MotionRange) for message in answer)
    animated.answer(said.RemoveStyleKey(frame=10))
    assert len(animated.state.timeline.styles) == 1


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (said.PutKey(key=said.Key(handle="hand", frame=FRAMES)), "frames 0 to 15"),
        (said.SetFrame(frame=FRAMES), "frames 0 to 15"),
        (said.PutKey(key=said.Key(handle="nobody", frame=0)), "no handle 'nobody'"),
        (said.RemoveKey(handle="hand", frame=3), "no key at frame 3"),
        (said.PutPin(pin=said.Pin(handle="hand", first=5, last=5)), "must end after it begins"),
        (said.RemovePin(handle="hand", first=5), "not pinned"),
        (said.SolveTimeline(), "nothing on the timeline"),
    ],
)
def test_mistakes_are_explained(animated: Session, message: said.ClientMessage, why: str) -> None:
    from poise.errors import PoiseError

    with pytest.raises(PoiseError, match=why):
        animated.answer(message)


def test_plain_kinematics_cannot_keyframe(animated: Session) -> None:
    animated.answer(said.ChooseModel(model="plain"))
    with pytest.raises(InvalidValueError, match="needs a learned model"):
        key(animated, 0)


def test_removing_a_handle_removes_its_keys(animated: Session) -> None:
    key(animated, 0)
    animated.answer(said.RemoveHandle(id="hand"))
    assert animated.state.timeline.keys == []


def test_smoothing_is_overtaken_by_a_newer_edit(animated: Session) -> None:
    heard, edited = Heard(animated), threading.Event()
    for _ in range(jobs.AT_ONCE):  # no thread is free before the last edit
        jobs._POOL.submit(edited.wait)
    key(animated, 0)
    for step in range(5):
        key(animated, 10, (0.0, 0.02 * step, 0.0))
    edited.set()
    heard.wait_for(said.MotionRange, lambda message: message.fine)
    time.sleep(0.05)
    assert sum(isinstance(message, said.MotionRange) and message.fine for message in heard.messages) == 1


def test_a_task_rests_while_people_are_answered_and_longer_beside_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs.Jobs, "answered", deque(maxlen=64))
    assert jobs.rest(10.0, worked=0.02) == 0.0
    jobs.Jobs.answered.extend([9.8, 9.95, 9.97, 9.99])
    assert jobs.rest(10.0, worked=0.02) == pytest.approx(0.06)
    jobs.Jobs.answered.extend([9.99] * 60)
    assert 0.15 < jobs.rest(10.0, worked=0.02) <= 0.2
    assert jobs.rest(10.0, worked=5.0) == 1.0


def test_a_key_on_a_long_timeline_is_answered_at_once_and_solved_in_pieces(animated: Session) -> None:
    heard = Heard(animated)
    animated.answer(said.SetTimeline(fps=30.0, frames=3000))
    answer = key(animated, 1500)
    (shown,) = [message for message in answer if isinstance(message, said.MotionRange)]
    assert shown.frames <= 30
    assert shown.first <= 1500 < shown.first + shown.frames
    heard.wait_for(said.MotionRange, lambda piece: piece.first == 0)
    heard.wait_for(said.Progress, lambda step: step.task == "solveTimeline" and 0.0 < step.share < 1.0)
    animated.answer(said.Cancel(task="solveTimeline"))
    heard.wait_for(said.Progress, lambda step: step.task == "solveTimeline" and step.share == 1.0)
    assert animated.jobs.idle
    solved = [message for message in heard.messages if isinstance(message, said.MotionRange)]
    assert sum(piece.frames for piece in solved) < 3000
    assert animated.motion is not None
    assert len(animated.motion) == 3000
    with pytest.raises(InvalidValueError, match="no running task of the kind 'solveTimeline' to stop"):
        animated.answer(said.Cancel(task="solveTimeline"))


def test_a_long_motion_is_copied_few_times(animated: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    heard, copies, joined = Heard(animated), [], timeline.joined
    monkeypatch.setattr(timeline_script, "AT_ONCE", 2)
    monkeypatch.setattr(timeline, "SMOOTHED", 0)
    monkeypatch.setattr(timeline, "joined", lambda *given: copies.append(len(given[0])) or joined(*given))
    animated.answer(said.SetTimeline(fps=30.0, frames=120))
    answer = key(animated, 61)
    heard.wait_for(said.Progress, lambda step: step.task == "solveTimeline" and step.share == 1.0)
    pieces = [message for message in (*answer, *heard.messages) if isinstance(message, said.MotionRange)]
    rough = [
        frame
        for piece in pieces
        if not piece.fine
        for frame in range(piece.first, piece.first + piece.frames)
    ]
    assert sorted(rough) == list(range(120))
    assert len(copies) <= timeline_script.PUT_IN + 2


def test_a_long_task_lets_those_of_others_through(animated: Session, models: ModelStore) -> None:
    """With as many long ones as there are threads for tasks."""
    others = [Session(models, animated.uploads, animated.autosave) for _ in range(3)]
    for other in others[:2]:
        other.answer(said.SetTimeline(fps=30.0, frames=3000))
        other.answer(said.PutHandle(handle=said.SceneHandle(id="hand", joint="left_hand")))
        key(other, 1500)
    heard = Heard(others[2])
    others[2].answer(said.Export(format="bvh"))
    heard.wait_for(said.FileReady)
    assert not others[0].jobs.idle
    for other in others:
        other.close()


@pytest.mark.slow
def test_what_an_undo_brings_back_half_solved_is_solved_then(animated: Session) -> None:
    heard = Heard(animated)
    animated.answer(said.SetTimeline(fps=30.0, frames=200))
    key(animated, 0)
    key(animated, 190, (0.1, 0.2, 0.1))  # overtakes what the first left to do
    animated.answer(said.Undo())
    heard.wait_for(said.MotionRange, lambda message: message.fine)
    assert animated.state.smooth
    assert len(animated.state.timeline.keys) == 1
    solved = animated.motion
    animated.answer(said.Redo())
    animated.answer(said.Undo())
    assert animated.motion is not None
    assert solved is not None
    np.testing.assert_array_equal(animated.motion.rotations, solved.rotations)
