"""What an animator counts on: every edit is keyed where that is wished, and what stands on the timeline stands."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from poise.formats import read, write
from poise.performer import act
from poise.priors.universal.prior import UniversalPrior
from poise.solvers import bearing
from poise.studio import messages as said
from poise.studio.layers import held
from poise.studio.models import ModelStore
from poise.studio.panels.clips import put_on_timeline
from poise.studio.session import Session
from poise.studio.state import State
from poise.studio.timeline_script import path_of, turn_path_of
from running_studio import Heard, wait_until

TURN = (0.9659258, 0.2588190, 0.0, 0.0)


def place(session: Session) -> tuple[float, float, float]:
    x, y, z = session.state.pose.positions["right_hand"].tolist()
    return x, y, z


def typed(session: Session, ease: int | None) -> None:
    x, y, z = place(session)
    handle = said.SceneHandle(id="right_hand", joint="right_hand", position=(x, y + 0.1, z))
    session.answer(said.PutHandle(handle=handle, ease=ease))


def turned(session: Session, ease: int | None) -> None:
    handle = said.SceneHandle(id="right_hand", joint="right_hand", position=place(session), rotation=TURN)
    session.answer(said.PutHandle(handle=handle, ease=ease))


def dragged(session: Session, ease: int | None) -> None:
    """Also an arrow key: that is a drag of one step."""
    x, y, z = place(session)
    session.answer(
        said.Drag(seq=session.seq + 1, handle="right_hand", position=(x + 0.05, y, z), last=True, ease=ease)
    )


def mirrored(session: Session, ease: int | None) -> None:
    session.answer(said.Mirror(ease=ease))


def looked(session: Session, ease: int | None) -> None:
    session.answer(said.SetLookAt(target=(0.5, 1.2, 1.0), ease=ease))


def drawn_in_the_style(session: Session, ease: int | None) -> None:
    """A drag over the map of the style."""
    session.answer(said.DragLatent(seq=session.seq + 1, point=(0.3, 0.2), hold=False, last=True, ease=ease))


REACHES = {
    "far ahead": (-0.1, 1.0, 1.1), "to the side": (-1.1, 1.2, 0.1), "low ahead": (-0.2, 0.3, 0.6),
    "high": (-0.3, 2.1, 0.1), "across": (0.4, 1.1, 0.4), "near": (-0.25, 1.0, 0.2),
}  # fmt: skip


EDITS = [typed, turned, dragged, mirrored, looked, drawn_in_the_style]


def fresh(session: Session) -> None:
    session.answer(said.SetTimeline(fps=10.0, frames=6))


def recorded(session: Session) -> None:
    session.post(*put_on_timeline(session, act("reach", seconds=1.0, fps=10.0)))


@pytest.mark.parametrize("begin", [fresh, recorded])
@pytest.mark.parametrize("edit", EDITS)
def test_every_edit_is_keyed_as_one_step_of_undo(
    session: Session, begin: Callable[[Session], None], edit: Callable[[Session, int | None], None]
) -> None:
    begin(session)
    session.answer(said.SetFrame(frame=3))
    session.answer(said.PutHandle(handle=said.SceneHandle(id="right_hand", joint="right_hand")))
    before, undos = session.state, session.history.undos
    edit(session, None)
    assert session.state.timeline.poses == []
    session.answer(said.Undo())
    edit(session, 2)
    *first, key = session.state.timeline.poses
    assert (key.handles, key.frame, key.ease) == (["right_hand"], 3, 2)
    assert [each.frame for each in first] == ([] if begin is recorded else [0])  # where the body stood
    assert session.motion is not None
    held = session.motion[3].positions["right_hand"]
    np.testing.assert_allclose(held, session.state.pose.positions["right_hand"], atol=1e-6)
    if edit in (typed, turned, dragged):
        np.testing.assert_allclose(held, session.state.handle("right_hand").position, atol=2e-3)
    assert session.history.undos == undos + 1
    kept = session.autosave.find(session.token)
    opened = session.files.opened(kept, before)
    assert opened.timeline.poses == [*first, key]
    assert opened.motion is not None
    np.testing.assert_allclose(opened.motion[3].positions["right_hand"], held, atol=1e-6)
    edit(session, 2)  # another edit is another step
    assert session.history.undos == undos + 2
    session.answer(said.Undo())
    session.answer(said.Undo())
    assert shown(session.state) == shown(before)


def shown(state: State) -> tuple[object, ...]:
    return state.timeline.poses, state.handles, np.asarray(state.pose.rotations).tobytes()


def test_what_moves_along_is_keyed_too(session: Session) -> None:
    fresh(session)
    for side in ("left_hand", "right_hand"):
        session.answer(said.PutHandle(handle=said.SceneHandle(id=side, joint=side)))
    x, y, z = place(session)
    drag = said.Drag(
        seq=1, handle="right_hand", position=(x, y + 0.1, z), along=["left_hand"], last=True, ease=2
    )
    session.answer(drag)
    (key,) = session.state.timeline.poses
    assert key.handles == ["left_hand", "right_hand"]
    assert session.history.undos == 4  # the timeline, two handles, and the drag with its keys


def test_what_stands_at_two_keys_stands_between_them_and_after_the_last(session: Session) -> None:
    """A foot that steps and stays: with tangents of Catmull and Rom it slid by 34 cm after its last key."""
    session.answer(said.SetTimeline(fps=30.0, frames=90))
    foot = said.SceneHandle(id="foot", joint="left_foot", position=(0.1, 0.1, 0.0))
    places = {0: (0.1, 0.1, 0.0), 20: (0.1, 0.25, 0.4), 40: (0.1, 0.1, 0.8), 50: (0.1, 0.1, 0.8)}
    turns = {0: (1.0, 0.0, 0.0, 0.0), 20: TURN, 40: (1.0, 0.0, 0.0, 0.0), 50: (1.0, 0.0, 0.0, 0.0)}
    keys = [said.Key(handle="foot", frame=at, position=places[at], rotation=turns[at]) for at in places]
    timeline = session.state.timeline.with_(keys=keys)
    state = session.state.with_(handles=(foot,), timeline=timeline)
    times = np.arange(90) / 30.0
    path, turning = path_of(state, "foot").at(times), turn_path_of(state, "foot")
    np.testing.assert_allclose(path[[0, 20, 40, 50]], list(places.values()), atol=1e-12)
    assert np.abs(path[40:] - places[40]).max() < 1e-12
    assert np.all(np.diff(path[:41, 2]) >= -1e-12)  # ahead, and never back
    assert path[:, 2].max() <= 0.8 + 1e-12
    assert path[:, 1].min() >= 0.1 - 1e-12
    assert turning is not None
    np.testing.assert_allclose(turning.at(times)[40:], np.tile([1.0, 0.0, 0.0, 0.0], (50, 1)), atol=1e-12)
    speeds = np.linalg.norm(np.diff(path[:41], axis=0), axis=1)
    assert np.abs(np.diff(speeds)).max() < 0.02  # metres a frame: it does not jerk


def test_a_clip_lands_on_the_body_that_is_shown_whatever_was_opened_before(
    session: Session, tmp_path: Path
) -> None:
    clip = act("walk", seconds=0.5, fps=10)
    path = tmp_path / "other.bvh"
    path.write_text(write(clip, tmp_path / "walk.bvh").read_text().replace("ROOT Hips", "ROOT Middle"))
    upload, body, heard = (
        session.uploads.keep(path, owner=session.token).id,
        session.state.pose.skeleton,
        Heard(session),
    )
    session.answer(said.OpenClip(upload=upload))
    heard.wait_for(said.MotionRange, lambda _: session.jobs.idle)
    assert session.state.pose.skeleton.names[0] == "Middle"
    session.answer(said.ChooseModel(model="reach", clear=True))
    for _ in range(2):
        heard.messages.clear()
        session.answer(said.OpenClip(upload=upload, onto_body=True))
        heard.wait_for(said.SceneChanged, lambda _: session.jobs.idle)
        assert session.state.model == "reach"
        assert session.motion is not None
        assert session.motion.skeleton is body
        assert len(session.motion) == len(clip)


@pytest.mark.parametrize("fps", [10.0, 60.0])
def test_what_is_changed_fades_over_the_same_time_at_any_rate(session: Session, fps: float) -> None:
    clip = act("walk", seconds=1.5, fps=fps)
    put_on_timeline(session, clip)
    first, last = round(0.5 * fps), round(1.2 * fps)
    contacts = session.answer(said.AskContacts())[0]
    assert isinstance(contacts, said.ContactsFound)
    session.answer(said.EditRange(first=first, last=last, edit="reverse"))
    assert session.motion is not None
    gone = np.linalg.norm(session.motion.root_positions - clip.root_positions, axis=1)
    full = np.linalg.norm(clip.root_positions[last] - clip.root_positions[first])
    assert gone[first + round(0.1 * fps)] < 0.5 * full  # it is still on its way after a tenth of a second
    longest = max(contacts.contacts, key=lambda one: one.last - one.first)
    session.answer(said.Undo())
    session.answer(said.LockContact(part=longest.part, first=longest.first, last=longest.last))
    wait_until(lambda: session.jobs.idle)
    assert {pin.ease for pin in session.state.timeline.pins} == {round(0.4 * fps)}


def test_the_advice_says_what_to_do(session: Session) -> None:
    session.answer(said.PutHandle(handle=said.SceneHandle(id="hand", joint="right_hand")))
    advice = session.answer(said.AskAdvice())[0]
    assert isinstance(advice, said.LeftOpen)
    assert advice.joint is not None
    role = next(
        (role for role, name in session.state.pose.skeleton.roles.items() if name == advice.joint),
        advice.joint,
    )
    assert advice.words == f"Place the {role.replace('_', ' ')} next."


@pytest.mark.parametrize("whole", [False, True])
def test_the_pose_and_the_motion_go_out_as_usd(session: Session, whole: bool) -> None:
    pytest.importorskip("pxr")
    put_on_timeline(session, act("walk", seconds=0.3, fps=10.0))
    heard = Heard(session)
    session.answer(said.Export(format="usd", whole=whole))
    ready = heard.wait_for(said.FileReady)
    path = session.uploads.find(ready.address.split("/")[1]).path
    assert len(read(path)) == (3 if whole else 1)


def reach(session: Session, goal: tuple[float, float, float]) -> tuple[said.SolvedPose, State]:
    """The right hand is dragged there in steps of 5 cm, from the pose that is shown."""
    session.answer(said.PutHandle(handle=said.SceneHandle(id="right_hand", joint="right_hand")))
    start = np.array(place(session))
    steps = max(round(float(np.linalg.norm(goal - start)) / 0.05), 1)
    shown: said.ServerMessage | None = None
    for step in range(1, steps + 1):
        x, y, z = (start + step / steps * (goal - start)).tolist()
        drag = said.Drag(seq=session.seq + 1, handle="right_hand", position=(x, y, z), last=step == steps)
        shown = session.answer(drag)[-1]
    assert isinstance(shown, said.SolvedPose)
    return shown, session.state


def outside(session: Session) -> float:
    """How far the centre of mass is outside the support, in metres."""
    pose, space = session.state.pose, session.poser.prior_of(session.state).space
    return bearing.overhang(pose, space.centre_of_mass(space.q_from_pose(pose))[0])


@pytest.mark.parametrize("where", REACHES)
def test_a_drag_over_a_recording_is_as_good_as_without_one(
    session: Session, models: ModelStore, where: str
) -> None:
    session.answer(said.ChooseModel(model=models.add(UniversalPrior(), "people").id))
    goal, stood = REACHES[where], session.state
    free, alone = reach(session, goal)
    off = outside(session)
    session.begin_with(stood)
    put_on_timeline(session, held(stood.pose, 30, 30.0))
    session.answer(said.SetFrame(frame=15))
    over, both = reach(session, goal)
    assert (over.status == "reached") == (
        free.status == "reached"
    )  # what is out of reach may also be out of time
    np.testing.assert_allclose(
        both.pose.positions["right_hand"], alone.pose.positions["right_hand"], atol=2e-3
    )
    assert outside(session) < max(off, 0.0) + 0.02
    for foot in ("left_foot", "right_foot"):  # the same one has stepped, to the same place
        np.testing.assert_allclose(both.pose.positions[foot], alone.pose.positions[foot], atol=0.12)
    assert over.percentile is not None or where == "near"


def test_a_hand_that_moves_a_little_leaves_a_recording_as_it_is(session: Session, models: ModelStore) -> None:
    session.answer(said.ChooseModel(model=models.add(UniversalPrior(), "people").id))
    put_on_timeline(session, act("walk", seconds=1.0, fps=10.0))
    session.answer(said.SetFrame(frame=5))
    before = session.state.pose
    x, y, z = place(session)
    reach(session, (x + 0.03, y + 0.03, z))
    after = session.state.pose
    arm = bearing.below(before.skeleton, "right_upper_arm")
    others = [number for number in range(len(before.skeleton)) if number not in arm]
    assert np.abs(after.world[0][others] - before.world[0][others]).max() < 0.02


@pytest.mark.parametrize("where", REACHES)
@pytest.mark.parametrize("begin", [fresh, recorded])
def test_letting_go_moves_no_joint_by_more_than_a_centimetre(
    session: Session, models: ModelStore, begin: Callable[[Session], None], where: str
) -> None:
    session.answer(said.ChooseModel(model=models.add(UniversalPrior(), "people").id))
    begin(session)
    session.answer(said.PutHandle(handle=said.SceneHandle(id="right_hand", joint="right_hand")))
    start, goal = np.array(place(session)), np.array(REACHES[where])
    for share in (0.2, 0.4, 0.6):  # a hand that is fast, and rests before it lets go
        x, y, z = (start + share * (goal - start)).tolist()
        session.answer(said.Drag(seq=session.seq + 1, handle="right_hand", position=(x, y, z)))
    before = session.state.pose.world[0]
    session.answer(said.Drag(seq=session.seq + 1, handle="right_hand", position=(x, y, z), last=True))
    assert np.linalg.norm(session.state.pose.world[0] - before, axis=1).max() < 0.0101
