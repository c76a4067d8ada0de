"""Hand shapes in the studio: keyed with the pose, changed from key to key, undone, saved and exported."""

from pathlib import Path

import numpy as np
import pytest

from poise.formats import read
from poise.motion.hands import shown_joints, with_fingers
from poise.performer import act
from poise.studio import messages as said
from poise.studio.hands import hands_at
from poise.studio.messages import Hands
from poise.studio.panels.clips import put_on_timeline
from poise.studio.session import Session
from running_studio import Heard

FIST, FLAT = {"fist": 1.0}, {"flat": 1.0}


def shape(session: Session, hands: Hands, frame: int = 0, ease: int | None = 12) -> list[said.ServerMessage]:
    session.answer(said.SetFrame(frame=frame))
    return session.answer(said.SetHands(hands=hands, ease=ease))


def fingers(answer: list[said.ServerMessage], session: Session) -> np.ndarray:
    """Where the fingers of the last pose are."""
    world = [each.world for each in answer if isinstance(each, said.SolvedPose)][-1]
    placed = np.frombuffer(world, "<f4").reshape(-1, 7)
    assert len(placed) == shown_joints(session.state.pose.skeleton)
    return placed[len(session.state.pose.skeleton) :]


def test_a_shape_moves_fingers_alone_and_can_be_undone(session: Session) -> None:
    before = session.state
    fist = fingers(session.answer(said.SetHands(hands=Hands(left=FIST, right=FIST))), session)
    assert session.state.pose is before.pose
    back = fingers(session.answer(said.Undo()), session)
    assert np.abs(fist - back).max() > 0.02
    assert session.state.hands == Hands()
    assert np.array_equal(fingers(session.answer(said.Redo()), session), fist)


def test_shapes_are_keyed_with_the_pose_and_change_from_key_to_key(session: Session) -> None:
    shape(session, Hands(left=FLAT))
    shape(session, Hands(left=FIST), frame=30)
    assert [key.hands.left for key in session.state.timeline.poses] == [FLAT, FIST]
    assert hands_at(session.state, 0).left == FLAT
    assert hands_at(session.state, 60).left == FIST
    middle = hands_at(session.state, 15).left
    assert middle["flat"] == pytest.approx(0.5)
    assert middle["fist"] == pytest.approx(0.5)
    session.answer(said.SetFrame(frame=15))
    assert session.state.hands.left == middle


def test_the_frames_whose_hands_change_are_sent_again(session: Session) -> None:
    heard = Heard(session)
    shape(session, Hands(left=FLAT))
    shape(session, Hands(left=FLAT), frame=60)
    heard.wait_for(said.Progress, lambda one: one.share == 1.0)
    answer = shape(session, Hands(left=FIST), frame=60)
    (sent,) = [each for each in answer if isinstance(each, said.MotionRange)]
    assert (sent.first, sent.first + sent.frames) == (1, 90)


def test_a_mirrored_pose_has_the_hands_of_the_other_side(session: Session) -> None:
    session.answer(said.SetHands(hands=Hands(left=FIST)))
    session.answer(said.Mirror())
    assert session.state.hands == Hands(right=FIST)
    session.answer(said.CopyPose())
    session.answer(said.Reset())
    assert session.state.hands == Hands()
    session.answer(said.TakePose(seq=1, mirrored=True, last=True))
    assert session.state.hands == Hands(left=FIST)


def test_over_a_recording_a_shape_fades_to_both_sides(session: Session) -> None:
    walk = act("walk", seconds=2.0, fps=20)
    put_on_timeline(session, walk)
    shape(session, Hands(right=FIST), frame=20, ease=8)
    shares = [hands_at(session.state, frame).right.get("fist", 0.0) for frame in (11, 16, 20, 24, 29)]
    assert shares == [0.0, pytest.approx(shares[3]), 1.0, pytest.approx(shares[1]), 0.0]
    assert session.motion is not None
    np.testing.assert_allclose(session.motion.rotations, walk.rotations, atol=1e-12)


def test_shapes_are_saved_and_exported(session: Session, tmp_path: Path) -> None:
    shape(session, Hands(left=FIST))
    shape(session, Hands(left=FIST, right=FLAT), frame=30)
    path = tmp_path / "hands.scene"
    session.files.write(session.state, path)
    found = session.files.opened(path, session.state)
    assert found.hands == session.state.hands
    assert found.timeline.poses == session.state.timeline.poses
    heard = Heard(session)
    session.answer(said.Export(format="bvh", whole=True))
    ready = heard.wait_for(said.FileReady)
    written = read(session.uploads.find(ready.address.split("/")[-2], owner=session.token).path)
    assert set(written.skeleton.names) == set(with_fingers(session.state.pose.skeleton).names)
