"""A session posed by messages: handles, feet, undo, mirror, what cannot be reached."""

from dataclasses import dataclass
from itertools import count

import numpy as np
import pytest

from poise.errors import InvalidValueError, PoiseError, UnknownNameError
from poise.priors.latent.prior import LatentPrior
from poise.skeleton.kinematics import world_transforms
from poise.solvers.bearing import heading_of
from poise.solvers.constraints import CONSTRAINTS
from poise.solvers.measured import MeasuredConstraint, PoseView
from poise.solvers.problem import Problem
from poise.solvers.solution import Solution
from poise.studio import messages as said
from poise.studio import solving
from poise.studio.models import ModelStore
from poise.studio.session import OutOfOrderError, Session
from poise.studio.solving import HEADING, Poser

NUMBERS = count(1)


def joint(session: Session, role: str) -> np.ndarray:
    pose = session.state.pose
    positions, _ = world_transforms(pose.skeleton, pose.root_position, pose.rotations)
    return positions[pose.skeleton.index(role)]


def joints(session: Session) -> np.ndarray:
    pose = session.state.pose
    return np.asarray(world_transforms(pose.skeleton, pose.root_position, pose.rotations)[0])


def handle(session: Session, role: str, **options: object) -> said.SceneHandle:
    session.answer(said.PutHandle(handle=said.SceneHandle(id=role, joint=role, **options)))
    return session.state.handle(role)


def drag(
    session: Session, role: str, by: tuple[float, float, float], *, moments: int = 10
) -> said.SolvedPose:
    start = np.array(session.state.handle(role).position)
    for moment in range(1, moments + 1):
        at = start + np.array(by) * moment / moments
        last = moment == moments
        answer = session.answer(said.Drag(seq=next(NUMBERS), handle=role, position=tuple(at), last=last))
    pose = answer[-1]
    assert isinstance(pose, said.SolvedPose)
    return pose


def test_a_new_session_stands_on_the_floor(session: Session) -> None:
    assert abs(min(joint(session, role)[1] for role in ("left_toes", "right_toes"))) < 0.06
    kinds = [type(message) for message in session.greet(resumed=False)]
    assert kinds == [said.Welcome, said.Models, said.BodyShown, said.SceneChanged, said.SolvedPose]


@pytest.mark.parametrize("model", ["reach", "both", "plain"])
def test_a_dragged_hand_arrives_and_the_feet_stay(session: Session, model: str) -> None:
    session.answer(said.ChooseModel(model=model))
    feet = [joint(session, role) for role in ("left_foot", "right_foot")]
    handle(session, "left_hand")
    pose = drag(session, "left_hand", (0.1, 0.15, 0.1))
    assert pose.status == "reached"
    np.testing.assert_allclose(
        joint(session, "left_hand"), session.state.handle("left_hand").position, atol=2e-3
    )
    np.testing.assert_allclose(
        [joint(session, role) for role in ("left_foot", "right_foot")], feet, atol=3e-3
    )


def test_a_pose_on_the_way_is_not_looked_for_in_the_style_while_the_hand_moves(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle(session, "left_hand")
    monkeypatch.setattr(solving, "REACH", 1.01)  # so that every moment is on the way
    monkeypatch.setattr(Poser, "_likelihood_of", lambda *_, **__: (0.0, 0.0, ""))
    searches, on_the_way, place, eased = [], [], LatentPrior.place, solving.eased

    def watched(problem: Problem, start: np.ndarray, goal: Solution, most: float) -> tuple[Solution, bool]:
        found = eased(problem, start, goal, most)
        on_the_way.append(found[0] is not goal)
        return found

    monkeypatch.setattr(LatentPrior, "place", lambda prior, q: searches.append(q) or place(prior, q))
    monkeypatch.setattr(solving, "eased", watched)
    drag(session, "left_hand", (0.1, 0.15, 0.1), moments=12)
    assert sum(on_the_way) >= 6
    assert len(searches) <= 2  # as the drag begins, and as it ends


def test_the_smooth_model_answers_while_dragging_and_the_fine_one_at_the_end(session: Session) -> None:
    handle(session, "left_hand")
    at = session.state.handle("left_hand").position
    assert at is not None
    first = session.answer(said.Drag(seq=next(NUMBERS), handle="left_hand", position=at))
    assert [(type(each), getattr(each, "fine", None)) for each in first] == [(said.SolvedPose, False)]
    last = session.answer(said.Drag(seq=next(NUMBERS), handle="left_hand", position=at, last=True))
    assert [(type(each), getattr(each, "fine", None)) for each in last] == [
        (said.SceneChanged, None),
        (said.SolvedPose, True),
    ]


def test_a_drag_does_not_jump(session: Session) -> None:
    handle(session, "right_hand")
    start = np.array(session.state.handle("right_hand").position)
    before = joint(session, "head")
    for moment in range(30):
        at = tuple(start + moment * np.array([0.0, 0.01, 0.004]))
        session.answer(said.Drag(seq=next(NUMBERS), handle="right_hand", position=at))
        now = joint(session, "head")
        assert np.linalg.norm(now - before) < 0.08
        before = now


def test_what_cannot_be_reached_is_said(session: Session) -> None:
    session.answer(said.SetBearing(bearing=said.Bearing(step=False)))
    handle(session, "left_hand")
    pose = drag(session, "left_hand", (3.0, 0.0, 0.0))
    assert pose.status in ("relaxed", "out_of_time")
    missed = [left for left in pose.residuals if not left.met]
    assert "left_hand" in [left.handle for left in missed]
    assert "LeftHand" in pose.words
    assert "mm off" in pose.words


def test_feet_step_after_a_hand_that_is_dragged_away(session: Session) -> None:
    feet = [joint(session, f"{side}_foot") for side in ("left", "right")]
    handle(session, "left_hand")
    pose = drag(session, "left_hand", (1.5, 0.0, 0.0), moments=40)
    assert pose.status == "reached"
    for side, before in zip(("left", "right"), feet, strict=True):
        foot = joint(session, f"{side}_foot")
        assert foot[0] > before[0] + 0.2
        assert abs(foot[1] - before[1]) < 3e-3
        np.testing.assert_allclose(foot, session.state.anchors[f"{side}_foot"], atol=3e-3)
    assert joint(session, "left_foot")[0] > joint(session, "right_foot")[0]  # no foot across the other


@pytest.mark.parametrize("model", ["reach", "both"])
def test_feet_stand_where_they_are_planted_while_no_step_helps(session: Session, model: str) -> None:
    session.answer(said.ChooseModel(model=model))
    handle(session, "left_hand")
    start, lacking = np.array(session.state.handle("left_hand").position), 0
    for way in np.linspace(0.0, 1.0, 40)[1:, None] * (1.2, 2.5, 0.0):
        (pose,) = session.answer(
            said.Drag(seq=next(NUMBERS), handle="left_hand", position=tuple(start + way))
        )
        lacking += not all(left.met for left in pose.residuals if left.handle)
        for side in ("left", "right"):
            anchor = session.state.anchors[f"{side}_foot"]
            np.testing.assert_allclose(joint(session, f"{side}_foot"), anchor, atol=3e-3)
    assert lacking > 20


@pytest.mark.parametrize("model", ["reach", "both"])
@pytest.mark.parametrize(
    ("role", "way"),
    [
        ("right_hand", (-0.05, 0.35, 0.2)),
        ("right_hand", (0.1, -0.2, 0.3)),
        ("right_hand", (-0.2, 0.5, -0.2)),
        ("left_hand", (0.4, 0.6, -0.4)),
        ("pelvis", (0.0, -0.4, 0.1)),
        ("head", (0.3, -0.5, 0.3)),
    ],
)
def test_no_joint_goes_much_further_than_the_hand(
    session: Session, model: str, role: str, way: tuple[float, float, float]
) -> None:
    session.answer(said.ChooseModel(model=model))
    session.answer(said.SetBearing(bearing=said.Bearing(step=False)))
    handle(session, role)
    start, moments, jumps = np.array(session.state.handle(role).position), 40, 0
    for moment in range(1, moments + 1):
        before = joints(session)
        at = tuple(start + moment / moments * np.array(way))
        (pose,) = session.answer(said.Drag(seq=next(NUMBERS), handle=role, position=at))
        went, allowed = (
            np.linalg.norm(joints(session) - before, axis=1).max(),
            3 * np.linalg.norm(way) / moments,
        )
        assert went <= allowed + 1e-6 or (pose.jumps and went < 2 * allowed)
        jumps += pose.jumps
    assert jumps <= 2
    before = joints(session)
    session.answer(said.Drag(seq=next(NUMBERS), handle=role, position=at, last=True))
    assert np.linalg.norm(joints(session) - before, axis=1).max() < 0.02


def test_a_pose_that_only_a_jump_reaches_is_shown_on_its_way(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle(session, "left_hand")
    monkeypatch.setattr(solving, "eased", lambda _problem, _start, goal, _most: (goal, True))
    assert drag(session, "left_hand", (0.0, 0.1, 0.0), moments=1).jumps


def test_hips_keep_their_heading_unless_they_are_turned(session: Session) -> None:
    session.answer(said.ChooseModel(model="both"))
    facing = np.array(session.state.anchors[HEADING])
    handle(session, "right_hand")
    drag(session, "right_hand", (0.5, 0.2, 0.1))
    assert heading_of(session.state.pose) @ facing > np.cos(np.radians(15.0))
    quarter = (np.cos(np.pi / 8), 0.0, np.sin(np.pi / 8), 0.0)
    handle(session, "pelvis")
    for last in (False, True):
        session.answer(said.Drag(seq=next(NUMBERS), handle="pelvis", rotation=quarter, last=last))
    assert np.array(session.state.anchors[HEADING]) @ facing < np.cos(np.radians(25.0))


def test_a_pinned_handle_stays_and_an_unpinned_one_follows(session: Session) -> None:
    handle(session, "right_hand", pinned=False)
    handle(session, "left_hand")
    held = joint(session, "left_hand")
    drag(session, "right_hand", (-0.05, 0.2, 0.1))
    np.testing.assert_allclose(joint(session, "left_hand"), held, atol=3e-3)
    drag(session, "left_hand", (0.0, 0.1, 0.1))
    np.testing.assert_allclose(
        session.state.handle("right_hand").position, joint(session, "right_hand"), atol=1e-9
    )


def test_a_soft_handle_gives_way_to_the_prior(session: Session) -> None:
    handle(session, "left_hand", hard=False, tolerance=0.3)
    drag(session, "left_hand", (0.2, 0.4, 0.1))
    wanted = np.array(session.state.handle("left_hand").position)
    assert np.linalg.norm(joint(session, "left_hand") - wanted) > 0.01


def test_a_handle_can_be_turned(session: Session) -> None:
    handle(session, "left_hand")
    turned = said.Drag(seq=next(NUMBERS), handle="left_hand", rotation=(0.9, 0.1, 0.0, 0.0), last=True)
    pose = session.answer(turned)[-1]
    assert isinstance(pose, said.SolvedPose)
    assert [left.unit for left in pose.residuals if left.handle == "left_hand"] == ["m", "rad"]
    assert np.isclose(np.linalg.norm(session.state.handle("left_hand").rotation), 1.0)


def test_a_dragged_foot_goes_and_then_stands_where_it_was_put(session: Session) -> None:
    handle(session, "left_foot", pinned=False)
    drag(session, "left_foot", (0.1, 0.0, 0.1))
    stands = joint(session, "left_foot")
    handle(session, "right_hand")
    drag(session, "right_hand", (0.0, 0.1, 0.0))
    np.testing.assert_allclose(joint(session, "left_foot"), stands, atol=3e-3)


def test_the_head_looks(session: Session) -> None:
    session.answer(said.SetLookAt(target=(1.0, 1.0, 1.0)))
    pose = session.answer(
        said.Drag(seq=next(NUMBERS), handle=said.LOOK_AT, position=(1.0, 1.5, 1.0), last=True)
    )[-1]
    assert isinstance(pose, said.SolvedPose)
    looking = next(left for left in pose.residuals if left.handle == said.LOOK_AT)
    assert looking.value < 0.15


def test_undo_and_redo_go_all_the_way(session: Session) -> None:
    begun = session.state.pose.rotations
    handle(session, "left_hand")
    for _ in range(3):
        drag(session, "left_hand", (0.02, 0.04, 0.0))
    ended = session.state.pose.rotations
    for _ in range(4):
        session.answer(said.Undo())
    assert session.state.handles == ()
    np.testing.assert_array_equal(session.state.pose.rotations, begun)
    with pytest.raises(InvalidValueError, match="nothing to undo"):
        session.answer(said.Undo())
    for _ in range(4):
        session.answer(said.Redo())
    np.testing.assert_array_equal(session.state.pose.rotations, ended)
    with pytest.raises(InvalidValueError, match="nothing to redo"):
        session.answer(said.Redo())


def test_undo_in_the_middle_of_a_drag_takes_it_back(session: Session) -> None:
    handle(session, "left_hand")
    before = session.state.pose.rotations
    at = tuple(np.array(session.state.handle("left_hand").position) + 0.1)
    session.answer(said.Drag(seq=next(NUMBERS), handle="left_hand", position=at))
    session.answer(said.Undo())
    np.testing.assert_array_equal(session.state.pose.rotations, before)
    assert len(session.state.handles) == 1


def test_mirrored_twice_is_the_same(session: Session) -> None:
    handle(session, "left_hand", offset=(0.02, 0.03, 0.0))
    drag(session, "left_hand", (0.1, 0.2, 0.1))
    before, held = session.state.pose, session.state.handles[0]
    session.answer(said.Mirror())
    assert session.state.handles[0].joint == "RightHand"
    image = session.answer(said.Mirror())[0]
    assert isinstance(image, said.SceneChanged)
    np.testing.assert_allclose(image.scene.handles[0].position, held.position, atol=1e-9)
    np.testing.assert_allclose(image.scene.handles[0].offset, held.offset, atol=1e-9)
    np.testing.assert_allclose(session.state.pose.rotations, before.rotations, atol=1e-9)


def test_reset_can_be_undone(session: Session) -> None:
    handle(session, "left_hand")
    session.answer(said.Reset())
    assert session.state.handles == ()
    session.answer(said.Undo())
    assert len(session.state.handles) == 1


def test_reset_keeps_the_handles_that_have_keys(session: Session) -> None:
    """Without them neither the motion nor a page that comes back could be shown."""
    for joint in ("left_hand", "right_hand"):
        handle(session, joint)
    session.answer(said.SetTimeline(fps=15.0, frames=30))
    session.answer(said.PutKey(key=said.Key(handle="left_hand", frame=3, position=(0.2, 1.0, 0.3))))
    session.answer(said.Reset())
    assert [kept.id for kept in session.state.handles] == ["left_hand"]
    assert any(isinstance(message, said.MotionRange) for message in session.greet(resumed=True))


def test_mistakes_leave_the_scene_as_it_was(session: Session) -> None:
    before = session.state
    with pytest.raises(UnknownNameError, match="did you mean left_hand"):
        session.answer(said.PutHandle(handle=said.SceneHandle(id="a", joint="left_hnd")))
    with pytest.raises(UnknownNameError, match="handle"):
        session.answer(said.Drag(seq=next(NUMBERS), handle="a", position=(0.0, 0.0, 0.0)))
    turned = said.SceneHandle(id="a", joint="Head_end", rotation=(1.0, 0.0, 0.0, 0.0))
    with pytest.raises(InvalidValueError, match="end of a bone"):
        session.answer(said.PutHandle(handle=turned))
    with pytest.raises(InvalidValueError, match="look-at"):
        session.answer(said.PutHandle(handle=said.SceneHandle(id=said.LOOK_AT, joint="head")))
    assert session.state is before


def test_what_comes_out_of_order_is_refused(session: Session) -> None:
    handle(session, "left_hand")
    session.answer(said.Drag(seq=10**6, handle="left_hand", position=(0.3, 1.0, 0.2)))
    with pytest.raises(OutOfOrderError, match="came after number 1000000"):
        session.answer(said.Drag(seq=5, handle="left_hand", position=(0.3, 1.0, 0.2)))


def test_there_are_only_so_many_handles(session: Session) -> None:
    for number in range(64):
        session.answer(said.PutHandle(handle=said.SceneHandle(id=str(number), joint="head", pinned=False)))
    with pytest.raises(InvalidValueError, match="at most 64 handles"):
        session.answer(said.PutHandle(handle=said.SceneHandle(id="more", joint="head")))


@dataclass(frozen=True, eq=False)
class SameHeight(MeasuredConstraint):
    """Two joints are at the same height."""

    first: str
    second: str
    kind = "same-height"

    def residual(self, pose: PoseView) -> list[float]:
        return [pose.position(self.first)[1] - pose.position(self.second)[1]]


@pytest.mark.slow
def test_constraints_of_plugins_are_offered_and_hold(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CONSTRAINTS._entries, SameHeight.kind, SameHeight)
    welcome = session.greet(resumed=False)[0]
    assert isinstance(welcome, said.Welcome)
    table = next(table for table in welcome.constraints if SameHeight.kind in table)
    assert table.splitlines()[:4] == ["[[constraints]]", 'kind = "same-height"', "first = ", "second = "]
    handle(session, "left_hand")
    text = table.replace("first = ", 'first = "left_hand"').replace("second = ", 'second = "right_hand"')
    session.answer(said.SetConstraints(text=text))
    drag(session, "left_hand", (0.1, 0.3, 0.1))
    positions = session.state.pose.positions
    assert positions["left_hand"][1] == pytest.approx(positions["right_hand"][1], abs=2e-3)
    assert session.files.saved(session.state).constraints == text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[constraints]]\nkind = "position"\nhandle = ', "not TOML"),
        ('[[constraints]]\nkind = "nothing"', "nothing"),
        (
            '[[constraints]]\nkind = "projection"\nhandle = "head"\ncamera = "a.toml"\npixel = [1, 1]',
            "files can only be named",
        ),
    ],
)
def test_wrong_constraints_leave_the_scene_as_it_was(session: Session, text: str, words: str) -> None:
    with pytest.raises(PoiseError, match=words):
        session.answer(said.SetConstraints(text=text))
    assert session.state.constraints == ""


def test_likelihoods_of_all_pages_share_the_processor(
    session: Session, models: ModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Poser, "rested", 0.0)
    monkeypatch.setattr(solving, "LIKELIHOOD_REST", 1e6)
    other = Session(models, session.uploads, session.autosave)
    shown = []
    for page, last in ((session, False), (other, False), (other, True)):
        at = handle(page, "left_hand").position
        shown += page.answer(said.Drag(seq=next(NUMBERS), handle="left_hand", position=at, last=last))
    known = [pose.percentile is not None for pose in shown if isinstance(pose, said.SolvedPose)]
    assert known == [True, False, True]
    other.close()
