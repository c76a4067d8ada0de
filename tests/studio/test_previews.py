"""While a handle is dragged with Auto on, the frames between the keys are shown as they will be."""

import numpy as np
import pytest

from poise.motion.hands import shown_joints
from poise.performer.bodies import Body
from poise.priors.universal.prior import UniversalPrior
from poise.studio import messages as said
from poise.studio.messages import Vec3
from poise.studio.models import ModelStore
from poise.studio.session import Session
from running_studio import Heard, wait_until

FRAMES = (0, 22, 45, 67, 89)


@pytest.fixture
def models() -> ModelStore:
    models = ModelStore()
    models.add(UniversalPrior(Body().skeleton), "people")
    return models


@pytest.fixture
def keyed(session: Session) -> Session:
    """A person with five whole poses in three seconds, at the one in the middle."""
    session.answer(said.PutHandle(handle=said.SceneHandle(id="hand", joint="right_hand")))
    for number, frame in enumerate(FRAMES):
        session.answer(said.SetFrame(frame=frame))
        drag(session, (0.05 * number, 0.1 * (-1) ** number, 0.12), seq=number + 1, last=True)
    session.answer(said.SetFrame(frame=45))
    wait_until(lambda: session.jobs.idle)
    return session


def drag(session: Session, way: Vec3, *, seq: int, last: bool) -> None:
    x, y, z = session.state.handle("hand").position or (0.0, 0.0, 0.0)
    place = x + way[0], y + way[1], z + way[2]
    session.answer(said.Drag(seq=seq, handle="hand", position=place, last=last, ease=12))


def shown(heard: Heard, session: Session) -> dict[int, np.ndarray]:
    """The newest of every frame that was sent."""
    found = {}
    for message in list(heard.messages):
        if isinstance(message, said.MotionRange):
            world = np.frombuffer(message.world, "<f4")
            frames = world.reshape(message.frames, shown_joints(session.state.pose.skeleton), 7)
            found |= {message.first + number: frame for number, frame in enumerate(frames)}
    return found


def test_the_frames_around_a_dragged_key_follow_before_the_hand_lets_go(keyed: Session) -> None:
    steps, before, heard = keyed.history.undos, keyed.motion, Heard(keyed)
    drag(keyed, (0.0, 0.15, 0.1), seq=10, last=False)
    wait_until(lambda: keyed.jobs.idle)
    frames = shown(heard, keyed)
    assert min(frames) > 22
    assert max(frames) < 67
    assert set(range(30, 60)) <= set(frames)
    assert not [message for message in heard.messages if isinstance(message, said.Progress)]
    hand = keyed.state.pose.skeleton.index("right_hand")
    np.testing.assert_allclose(frames[45][hand, :3], keyed.state.pose.positions["right_hand"], atol=1e-5)
    assert keyed.motion is before
    assert keyed.history.undos == steps
    drag(keyed, (0.0, 0.0, 0.0), seq=11, last=True)
    assert keyed.history.undos == steps + 1


def test_a_drag_that_is_given_up_shows_the_motion_as_it_was(keyed: Session) -> None:
    assert keyed.motion is not None
    head = keyed.state.pose.skeleton.index("right_hand")
    before, heard = keyed.motion.positions["right_hand"], Heard(keyed)
    drag(keyed, (0.0, 0.2, 0.1), seq=10, last=False)
    wait_until(lambda: keyed.jobs.idle)
    changed = shown(heard, keyed)
    for message in keyed.answer(said.Undo()):
        keyed.post(message)
    for frame, now in shown(heard, keyed).items():
        np.testing.assert_allclose(now[head, :3], before[frame], atol=1e-5)
    assert any(np.abs(each[head, :3] - before[frame]).max() > 0.01 for frame, each in changed.items())


def test_a_path_above_the_poses_is_followed_while_its_key_is_dragged(keyed: Session) -> None:
    assert keyed.motion is not None
    x, y, z = keyed.motion.positions["left_hand"][30].tolist()
    keyed.answer(said.PutHandle(handle=said.SceneHandle(id="left", joint="left_hand")))
    keyed.answer(said.PutKey(key=said.Key(handle="left", frame=28, position=(x, y, z))))
    keyed.answer(said.PutKey(key=said.Key(handle="left", frame=40, position=(x, y, z))))
    wait_until(lambda: keyed.jobs.idle)
    heard, key = Heard(keyed), said.Key(handle="left", frame=40, position=(x, y + 0.1, z))
    keyed.answer(said.DragKey(seq=10, key=key))
    wait_until(lambda: keyed.jobs.idle)
    hand = keyed.state.pose.skeleton.index("left_hand")
    np.testing.assert_allclose(shown(heard, keyed)[40][hand, :3], (x, y + 0.1, z), atol=5e-3)
    undos = keyed.history.undos
    keyed.answer(said.DragKey(seq=11, key=key, last=True))
    assert keyed.history.undos == undos + 1


def test_nothing_is_previewed_without_auto(keyed: Session) -> None:
    heard = Heard(keyed)
    x, y, z = keyed.state.handle("hand").position or (0.0, 0.0, 0.0)
    keyed.answer(said.Drag(seq=10, handle="hand", position=(x, y + 0.1, z)))
    wait_until(lambda: keyed.jobs.idle)
    assert shown(heard, keyed) == {}
