"""Random edits of every kind with Auto on: each is keyed, undone and done again, saved, and there after a reload."""

from collections.abc import Callable

import numpy as np
import pytest

from poise.performer.bodies import Body
from poise.priors.gaussian import GaussianPrior
from poise.priors.style.prior import StylePrior
from poise.priors.universal.prior import UniversalPrior
from poise.studio import messages as said
from poise.studio.hands import SHAPES
from poise.studio.messages import Hands
from poise.studio.models import ModelStore
from poise.studio.session import Session
from poise.studio.state import State

EASE, FRAMES = 12, 90
JOINTS = ("left_hand", "right_hand", "left_foot", "right_foot", "head", "pelvis", "chest", "left_forearm")
Edit = Callable[[Session, np.random.Generator], said.ClientMessage]


@pytest.fixture
def models(priors: dict[str, StylePrior | GaussianPrior]) -> ModelStore:
    models = ModelStore()
    models.add(UniversalPrior(Body().skeleton), "people")
    models.add(priors["reach"], "reach")
    return models


def near(
    session: Session, joint: str, rng: np.random.Generator, way: float = 0.15
) -> tuple[float, float, float]:
    x, y, z = (session.state.pose.positions[joint] + rng.uniform(-way, way, 3)).tolist()
    return x, max(y, 0.05), z


def turn(rng: np.random.Generator, most: float = 0.5) -> tuple[float, float, float, float]:
    axis, angle = rng.normal(size=3), rng.uniform(0.1, most) / 2.0
    x, y, z = (np.sin(angle) * axis / np.linalg.norm(axis)).tolist()
    return float(np.cos(angle)), x, y, z


def dragged(session: Session, rng: np.random.Generator) -> said.ClientMessage:
    joint = str(rng.choice(JOINTS))
    session.answer(
        said.PutHandle(handle=said.SceneHandle(id=joint, joint=joint, pinned=bool(rng.random() < 0.6)))
    )
    for _ in range(2):
        session.answer(
            said.Drag(seq=session.seq + 1, handle=joint, position=near(session, joint, rng), ease=EASE)
        )
    place = near(session, joint, rng)
    return said.Drag(seq=session.seq + 1, handle=joint, position=place, last=True, ease=EASE)


def typed(session: Session, rng: np.random.Generator) -> said.ClientMessage:
    joint = str(rng.choice(JOINTS))
    handle = said.SceneHandle(id=joint, joint=joint, position=near(session, joint, rng))
    return said.PutHandle(handle=handle, ease=EASE)


def nudged(session: Session, rng: np.random.Generator) -> said.ClientMessage:
    """An arrow key moves a handle by a centimetre."""
    joint = str(rng.choice(JOINTS))
    session.answer(said.PutHandle(handle=said.SceneHandle(id=joint, joint=joint)))
    x, y, z = session.state.pose.positions[joint].tolist()
    return said.Drag(seq=session.seq + 1, handle=joint, position=(x + 0.01, y, z), last=True, ease=EASE)


def turned(session: Session, rng: np.random.Generator) -> said.ClientMessage:
    joint = str(rng.choice(["left_upper_arm", "right_thigh", "chest", "head", "pelvis"]))
    return said.TurnJoints(seq=session.seq + 1, joints=[joint], turn=turn(rng), last=True, ease=EASE)


def oriented(session: Session, rng: np.random.Generator) -> said.ClientMessage:
    joint = str(rng.choice(["left_hand", "right_hand", "head"]))
    place = near(session, joint, rng, 0.02)
    handle = said.SceneHandle(id=joint, joint=joint, position=place, rotation=turn(rng))
    return said.PutHandle(handle=handle, ease=EASE)


def mirrored(_session: Session, _rng: np.random.Generator) -> said.ClientMessage:
    return said.Mirror(ease=EASE)


def looked(_session: Session, rng: np.random.Generator) -> said.ClientMessage:
    x, y, z = rng.uniform((-1.5, 0.8, 0.8), (1.5, 1.9, 2.0)).tolist()
    return said.SetLookAt(target=(x, y, z), ease=EASE)


def shaped(_session: Session, rng: np.random.Generator) -> said.ClientMessage:
    left, right = (SHAPES[number] for number in rng.integers(len(SHAPES), size=2))
    return said.SetHands(hands=Hands(left={left: 1.0}, right={right: 1.0}), ease=EASE)


def pasted(session: Session, rng: np.random.Generator) -> said.ClientMessage:
    session.answer(said.CopyPose())
    frame = session.state.timeline.frame
    session.answer(said.SetFrame(frame=int(rng.integers(FRAMES))))
    session.answer(said.CopyPose())
    session.answer(said.SetFrame(frame=frame))
    return said.TakePose(seq=session.seq + 1, mirrored=bool(rng.random() < 0.5), last=True, ease=EASE)


EDITS: dict[str, Edit] = {
    each.__name__: each
    for each in (dragged, typed, nudged, turned, oriented, mirrored, looked, shaped, pasted)
}


def kept(state: State) -> tuple[object, ...]:
    """What an edit may change and undo brings back."""
    motion = state.motion
    frames = None if motion is None else (motion.root_positions.tobytes(), motion.rotations.tobytes())
    pose = state.pose.root_position.tobytes(), state.pose.rotations.tobytes()
    return state.timeline.poses, state.handles, state.hands, state.look_at, pose, frames


@pytest.mark.parametrize("count", [30, pytest.param(200, marks=pytest.mark.slow)])
def test_every_edit_is_keyed_undoable_and_saved(session: Session, models: ModelStore, count: int) -> None:
    rng, done = np.random.default_rng(count), dict.fromkeys(EDITS, 0)
    for number in range(count):
        name = list(EDITS)[number % len(EDITS)]
        frame = int(rng.integers(FRAMES))
        session.answer(said.SetFrame(frame=frame))
        message = EDITS[name](session, rng)
        with session.lock:  # no frame is solved meanwhile
            before, undos = session.history.now, session.history.undos
            session.answer(message)
            words, state = f"edit {number}, {name} at frame {frame}", session.history.now
            assert session.history.undos == undos + 1, words
            assert frame in [key.frame for key in state.timeline.poses], words
            assert state.motion is not None
            np.testing.assert_allclose(
                state.motion[frame].world[0], state.pose.world[0], atol=1e-6, err_msg=words
            )
            session.answer(said.Undo())
            assert kept(session.history.now) == kept(before), words
            session.answer(said.Redo())
            assert kept(session.history.now) == kept(state), words
        done[name] += 1
        if session.history.undos > 40:  # as a person does who does not come back
            assert session.autosave.flush()
    assert min(done.values()) >= count // len(EDITS)
    assert session.autosave.flush()
    again = Session(models, session.uploads, session.autosave, token=session.token)
    assert again.restore()
    try:
        now, then = again.state, session.history.now
        assert now.timeline.poses == then.timeline.poses
        assert now.hands == then.hands
        assert now.motion is not None
        assert then.motion is not None
        for key in then.timeline.poses:
            found = now.motion[key.frame].world[0]
            np.testing.assert_allclose(found, then.motion[key.frame].world[0], atol=1e-5)
    finally:
        again.close()
