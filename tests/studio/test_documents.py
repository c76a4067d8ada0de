"""Work on recordings is not lost: an edit changes its neighbourhood, undo brings all back, and so does a restart."""

from pathlib import Path

import numpy as np
import pytest

from poise.errors import PoiseError
from poise.formats import write
from poise.motion.motion import Motion
from poise.performer import act
from poise.skeleton.kinematics import world_transforms
from poise.studio import messages as said
from poise.studio.autosave import Autosave
from poise.studio.models import ModelStore
from poise.studio.panels.clips import put_on_timeline
from poise.studio.session import Session
from real_data import recording
from running_studio import Heard, kept

EASE = 10
CLIPS = (
    ("cmu", "02_01.bvh"),
    ("cmu", "06_02.bvh"),
    ("cmu", "14_02.bvh"),
    ("cmu", "35_01.bvh"),
    ("cmu", "124_01.bvh"),
    ("bandai", "dataset-1_bow_angry_001.bvh"),
    ("bandai", "dataset-1_walk_normal_001.bvh"),
    ("optical", "85_02.bvh"),
)


@pytest.fixture
def walk() -> Motion:
    return act("walk", seconds=4.0, fps=30)


def opened(session: Session, path: Path) -> Motion:
    heard = Heard(session)
    session.answer(said.OpenClip(upload=kept(session, path)))
    heard.wait_for(said.MotionRange)
    assert session.motion is not None
    return session.motion


def edited(session: Session, frame: int, *, joint: str = "left_hand", by: float = 0.08) -> None:
    """A hand dragged at a frame and keyed there, as the page does."""
    session.answer(said.SetFrame(frame=frame))
    session.answer(said.PutHandle(handle=said.SceneHandle(id="hand", joint=joint)))
    x, y, z = session.state.handle("hand").position or (0.0, 0.0, 0.0)
    goal = (x + by, y + by, z)
    for seq, last in ((1, False), (2, True)):
        session.answer(said.Drag(seq=session.seq + seq, handle="hand", position=goal, last=last))
    session.answer(said.PutKey(key=said.Key(handle="hand", frame=frame, position=goal, ease=EASE)))


def same(one: Motion | None, other: Motion | None, frames: slice = slice(None)) -> None:
    assert one is not None
    assert other is not None
    np.testing.assert_array_equal(one.rotations[frames], other.rotations[frames])
    np.testing.assert_array_equal(one.root_positions[frames], other.root_positions[frames])


def only_near(before: Motion, after: Motion | None, frame: int) -> None:
    assert after is not None
    same(before, after, slice(0, max(frame - EASE, 0)))
    same(before, after, slice(frame + EASE + 1, None))
    assert not np.array_equal(before.rotations[frame], after.rotations[frame])


def positions(motion: Motion | None) -> np.ndarray:
    assert motion is not None
    return world_transforms(motion.skeleton, motion.root_positions, motion.rotations)[0]


def test_a_key_over_a_recording_changes_only_the_frames_about_it(session: Session, walk: Motion) -> None:
    put_on_timeline(session, walk, "walk.bvh")
    edited(session, 60)
    only_near(walk, session.motion, 60)
    goal = np.array(session.state.timeline.keys[0].position)
    hand = walk.skeleton.index("left_hand")
    assert np.linalg.norm(positions(session.motion)[60, hand] - goal) < 2e-3
    steps = np.linalg.norm(np.diff(positions(session.motion), n=2, axis=0), axis=-1)
    usual = np.linalg.norm(np.diff(positions(walk), n=2, axis=0), axis=-1)
    assert steps.max() < 3.0 * usual.max()
    assert session.state.timeline.clip == "walk.bvh"


def test_a_hand_that_is_dragged_over_a_recording_leaves_the_rest_of_the_body_nearly_as_it_was(
    session: Session, walk: Motion
) -> None:
    put_on_timeline(session, walk, "walk.bvh")
    edited(session, 60, by=0.15)
    before, after = positions(walk)[60], positions(session.motion)[60]
    arm = set(walk.skeleton.chain("left_hand")) - set(walk.skeleton.chain("chest"))
    rest = [
        joint
        for joint in range(len(walk.skeleton))
        if joint not in arm and "Left" not in walk.skeleton.names[joint]
    ]
    assert np.linalg.norm(after - before, axis=1)[rest].max() < 0.07  # a third of what the hand went
    feet = [walk.skeleton.index(role) for role in ("left_foot", "right_foot")]
    assert np.linalg.norm(after - before, axis=1)[feet].max() < 1e-3


def test_undo_and_redo_bring_every_frame_back_to_the_bit(session: Session, walk: Motion) -> None:
    put_on_timeline(session, walk, "walk.bvh")
    seen = [session.motion]
    for frame in (20, 60, 65):
        edited(session, frame)
        seen.append(session.motion)
    session.answer(said.SetTimeline(fps=30.0, frames=50))
    while session.history.undos > 1:
        answer = session.answer(said.Undo())
    same(session.motion, walk)
    assert session.state.timeline.keys == []
    assert any(isinstance(message, said.SceneChanged) and message.scene.moving for message in answer)
    while session.history.redos:
        session.answer(said.Redo())
    same(session.motion, seen[-1], slice(0, 50))
    session.answer(said.Undo())
    same(session.motion, seen[-1])
    while session.history.undos:
        session.answer(said.Undo())
    assert session.motion is None


def test_a_key_that_is_removed_leaves_the_recording_as_it_was(session: Session, walk: Motion) -> None:
    put_on_timeline(session, walk, "walk.bvh")
    edited(session, 60)
    session.answer(said.RemoveKey(handle="hand", frame=60))
    same(session.motion, walk)
    edited(session, 60)
    session.answer(said.RemoveHandle(id="hand"))
    same(session.motion, walk)


def test_a_key_over_a_recording_is_dragged_in_space(session: Session, walk: Motion) -> None:
    put_on_timeline(session, walk, "walk.bvh")
    edited(session, 60)
    session.answer(said.SetFrame(frame=0))
    before = session.motion
    x, y, z = session.state.timeline.keys[0].position or (0.0, 0.0, 0.0)
    moved = said.Key(handle="hand", frame=60, position=(x, y + 0.1, z), ease=EASE)
    (told,) = session.answer(said.DragKey(seq=session.seq + 1, key=moved))
    assert isinstance(told, said.MotionRange)
    assert (told.first, told.frames) == (60 - EASE, 2 * EASE + 1)
    session.answer(said.Undo())
    same(session.motion, before)
    session.answer(said.DragKey(seq=session.seq + 1, key=moved, last=True))
    only_near(walk, session.motion, 60)


def test_what_a_recording_cannot_have_is_said(session: Session, walk: Motion) -> None:
    put_on_timeline(session, walk, "walk.bvh")
    edited(session, 60)
    style = said.StyleKey(frame=3, weights=[said.Weight(model="walk", weight=1.0)])
    for message in (
        said.PutStyleKey(key=style),
        said.SolveTimeline(),
    ):
        with pytest.raises(PoiseError, match=r"made of keys|nothing on the timeline"):
            session.answer(message)


def test_a_clip_of_another_skeleton_is_opened_with_a_model_of_its_own(
    session: Session, walk: Motion, tmp_path: Path
) -> None:
    path = tmp_path / "other.bvh"
    text = write(walk, tmp_path / "walk.bvh").read_text()
    path.write_text(text.replace("ROOT Hips", "ROOT Middle"))
    motion = opened(session, path)
    assert motion.skeleton.names[0] == "Middle"
    assert session.models[session.state.model].name == "other"
    edited(session, 40)
    only_near(motion, session.motion, 40)


@pytest.mark.parametrize(
    ("collection", "name"), [pytest.param(*clip, marks=pytest.mark.slow) for clip in CLIPS]
)
def test_a_real_clip_survives_an_edit_an_undo_and_a_restart(
    session: Session, models: ModelStore, collection: str, name: str
) -> None:
    clip = opened(session, recording(collection, name))
    frame = len(clip) // 2
    edited(session, frame)
    only_near(clip, session.motion, frame)
    session.autosave.flush()
    other = Session(models, session.uploads, Autosave(), token=session.token)
    assert other.restore()
    assert np.abs(positions(other.motion) - positions(session.motion)).max() < 1e-5
    same(other.motion, session.motion)
    for _ in range(3):
        session.answer(said.Undo())
    same(session.motion, clip)
