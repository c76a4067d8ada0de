"""What the studio suggests while the hand rests: a handle, other poses, an action that fits."""

from threading import Event

import numpy as np
import pytest

from poise.errors import PoiseError
from poise.performer import act
from poise.priors.universal.prior import UniversalPrior
from poise.studio import messages as said
from poise.studio.models import ModelStore
from poise.studio.panels.advice import _LOOKING
from poise.studio.session import Session
from running_studio import wait_until


def asked(session: Session, *, others: bool = False) -> tuple[said.LeftOpen, list[said.ServerMessage]]:
    """What is answered, and where what follows arrives."""
    heard: list[said.ServerMessage] = []
    session.outlet = heard.append
    (answer,) = session.answer(said.AskAdvice(others=others))
    assert isinstance(answer, said.LeftOpen)
    return answer, heard


def pin(session: Session, role: str, place: np.ndarray | None = None) -> None:
    position = None if place is None else tuple(float(value) for value in place)
    session.answer(said.PutHandle(handle=said.SceneHandle(id=role, joint=role, position=position)))


def test_without_a_solve_or_a_model_nothing_is_suggested(session: Session) -> None:
    assert asked(session)[0] == said.LeftOpen(joint=None, share=0.0, others=[])
    session.answer(said.ChooseModel(model="plain"))
    pin(session, "left_hand", session.state.pose.positions["left_hand"] + 0.05)
    assert asked(session)[0].joint is None


def test_the_handle_that_settles_most_settles_it(session: Session) -> None:
    session.answer(said.ChooseModel(model="both"))
    pin(session, "left_hand", session.state.pose.positions["left_hand"] + (0.05, 0.2, 0.1))
    answer, _ = asked(session, others=True)
    assert answer.joint is not None
    assert 0.05 < answer.share < 1.0
    before = np.frombuffer(b"".join(answer.others), "<f4").reshape(len(answer.others), -1, 7)[..., :3]
    hand = session.state.pose.skeleton.index("left_hand")
    assert np.ptp(before[:, hand], axis=0).max() < 0.05  # what is pinned stays
    pin(session, answer.joint)
    after = np.frombuffer(b"".join(asked(session, others=True)[0].others), "<f4").reshape(
        before.shape[0], -1, 7
    )
    assert after[..., :3].std(axis=0).sum() < before.std(axis=0).sum()


def test_nothing_is_suggested_while_a_handle_is_out_of_reach(session: Session) -> None:
    session.answer(said.ChooseModel(model="both"))
    pin(session, "left_hand", np.array([0.0, 9.0, 0.0]))
    assert asked(session)[0].joint is None


def looks_like(heard: list[said.ServerMessage]) -> said.LooksLike:
    wait_until(lambda: bool(heard))
    (found,) = heard
    assert isinstance(found, said.LooksLike)
    return found


@pytest.mark.parametrize(("frame", "model"), [(5, "walk"), (22, "walk")])
def test_an_action_is_recognised_by_its_handles(session: Session, frame: int, model: str) -> None:
    session.answer(said.ChooseModel(model="both"))
    positions = act("walk", seconds=2.0, fps=20)[frame].positions
    session.answer(said.SetFeet(feet="free"))
    for role in ("left_foot", "right_foot", "left_hand", "head"):
        pin(session, role, positions[role])
    _, heard = asked(session)
    assert looks_like(heard).model == model
    session.answer(said.ChooseModel(model=model))
    _, heard = asked(session)
    assert looks_like(heard).model is None  # it is in use


def test_what_has_changed_by_then_is_not_judged(session: Session) -> None:
    pin(session, "left_hand")
    changed = Event()
    _LOOKING.submit(changed.wait)
    _, heard = asked(session)
    session.answer(said.SetFeet(feet="free"))
    changed.set()
    _LOOKING.submit(int).result()
    assert heard == []


def test_another_kind_of_pose_is_taken_and_stays(session: Session, models: ModelStore) -> None:
    """A hand near the floor: a kneel, a crouch and a bend are offered by their shares, and one can be had."""
    session.answer(said.ChooseModel(model=models.add(UniversalPrior(), "people").id))
    pin(session, "left_hand", np.array([0.2, 0.25, 0.35]))
    answer, _ = asked(session, others=True)
    assert answer.kinds
    assert answer.kinds == sorted(answer.kinds, reverse=True)
    assert 0.0 < sum(answer.kinds) <= 1.0
    joints = len(session.state.pose.skeleton)
    wanted = np.frombuffer(answer.others[0], "<f4").reshape(-1, 7)[:joints, :3]
    before = np.linalg.norm(session.state.pose.world[0] - wanted, axis=1).mean()
    session.answer(said.TakeKind(number=0))
    after = np.linalg.norm(session.state.pose.world[0] - wanted, axis=1).mean()
    assert after < 0.5 * before
    session.answer(said.Undo())
    assert [handle.joint for handle in session.state.handles] == [
        session.state.pose.skeleton.roles["left_hand"]
    ]


def test_a_kind_that_nobody_offered_is_refused(session: Session, models: ModelStore) -> None:
    session.answer(said.ChooseModel(model=models.add(UniversalPrior(), "people").id))
    pin(session, "left_hand", session.state.pose.positions["left_hand"])
    with pytest.raises(PoiseError, match="kind of pose"):
        session.answer(said.TakeKind(number=90))
