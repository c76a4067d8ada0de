"""Scenes kept for a studio that is killed, and for a new tab."""

import time

import numpy as np
import pytest

from full_disk import full_disk
from poise.errors import PoiseError
from poise.performer import act
from poise.studio import messages as said
from poise.studio.autosave import Autosave
from poise.studio.models import ModelStore
from poise.studio.panels.clips import put_on_timeline
from poise.studio.session import Session
from running_studio import PATIENCE


def again(session: Session, models: ModelStore) -> Session:
    """The same session in a studio that was started after the first was killed."""
    return Session(models, session.uploads, Autosave(), token=session.token)


def test_the_last_of_many_quick_edits_is_kept(session: Session, models: ModelStore) -> None:
    """Without anything that comes after it, as when the studio is killed."""
    for height in (1.0, 1.1, 1.2):
        session.answer(said.SetLookAt(target=(0.0, height, 2.0)))
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        other = again(session, models)
        if other.restore() and other.state.look_at == (0.0, 1.2, 2.0):
            return
        time.sleep(0.05)
    raise AssertionError("the last edit was not written")


def test_a_damaged_scene_is_passed_over(session: Session, models: ModelStore) -> None:
    session.answer(said.SetLookAt(target=(0.0, 1.0, 2.0)))
    session.autosave.flush()
    assert again(session, models).restore()
    store = session.autosave.store
    store.put_scene(session.token, b"{")
    assert not again(session, models).restore()
    session.autosave.tidy()
    assert store.scene(session.token) is not None  # it may be a newer Poise's


def test_a_disk_that_is_full_stops_nobody_and_is_tried_again(session: Session, models: ModelStore) -> None:
    with full_disk():
        session.answer(said.SetLookAt(target=(0.0, 1.0, 2.0)))
        session.autosave.flush()
        assert not again(session, models).restore()
    session.autosave.flush()
    assert again(session, models).restore()


def test_a_recording_its_corrections_and_its_model_come_back(session: Session, models: ModelStore) -> None:
    clip = act("walk", seconds=3.0, fps=30)
    session.models.add(models["walk"].prior, "my walk")
    put_on_timeline(session, clip, "walk.bvh")
    session.answer(said.SetFrame(frame=40))
    session.answer(said.PutHandle(handle=said.SceneHandle(id="hand", joint="left_hand")))
    x, y, z = session.state.handle("hand").position or (0.0, 0.0, 0.0)
    session.answer(said.PutKey(key=said.Key(handle="hand", frame=40, position=(x, y + 0.1, z), ease=9)))
    session.autosave.flush()
    other = again(session, models)
    assert other.restore()
    assert session.motion is not None
    assert other.motion is not None
    np.testing.assert_array_equal(other.motion.rotations, session.motion.rotations)
    np.testing.assert_array_equal(other.motion.root_positions, session.motion.root_positions)
    assert other.state.timeline == session.state.timeline
    assert "my walk" in [model.name for model in other.models.described()]
    told = [message for message in other.greet(resumed=True) if isinstance(message, said.MotionRange)]
    assert [(message.first, message.frames) for message in told] == [(0, 90)]


def test_a_new_tab_is_offered_what_was_kept(session: Session, models: ModelStore) -> None:
    put_on_timeline(session, act("walk", seconds=1.0, fps=30), "walk.bvh")
    session.autosave.flush()
    fresh = Session(models, session.uploads, Autosave())
    answer = fresh.greet(resumed=False, known=[session.token, "another"])
    (offered,) = [message for message in answer if isinstance(message, said.KeptScenes)]
    assert [kept.token for kept in offered.scenes] == [session.token]
    assert "walk.bvh, 1.0 s" in offered.scenes[0].words
    assert not any(isinstance(each, said.KeptScenes) for each in fresh.greet(resumed=False, known=[]))
    with pytest.raises(PoiseError, match="was not kept"):
        fresh.answer(said.OpenKept(token="another"))
