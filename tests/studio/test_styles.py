"""The prior switched, blended, and its latent space dragged in."""

import numpy as np
import pytest

from made_once import learned
from poise.errors import InvalidValueError, UnknownNameError
from poise.motion.hands import shown_joints
from poise.motion.motion import Motion
from poise.performer import act
from poise.priors.dynamics.prior import DynamicsPrior
from poise.priors.local.prior import LocalGuide, LocalPrior
from poise.priors.style.prior import StylePrior
from poise.skeleton import Skeleton
from poise.skeleton.pose_space import Handle, Handles
from poise.studio import messages as said
from poise.studio.panels import clips
from poise.studio.panels.clips import put_on_timeline
from poise.studio.session import Session
from poise.studio.solving import points_of
from running_studio import Heard, wait_until


def pose_of(answer: list[said.ServerMessage]) -> said.SolvedPose:
    return next(message for message in answer if isinstance(message, said.SolvedPose))


def held_hand(session: Session) -> np.ndarray:
    session.answer(said.PutHandle(handle=said.SceneHandle(id="hand", joint="left_hand")))
    x, y, z = session.state.handle("hand").position or (0.0, 0.0, 0.0)
    session.answer(said.Drag(seq=1, handle="hand", position=(x + 0.05, y + 0.1, z + 0.1), last=True))
    return np.array(session.state.handle("hand").position)


def hand(session: Session) -> np.ndarray:
    return points_of(session.state.pose, [Handle("left_hand")])[0]


def test_another_prior_keeps_the_handles_and_shows_the_ghost(session: Session) -> None:
    wanted = held_hand(session)
    before = session.state.pose
    for model in ("walk", "both", "plain", "reach"):
        answer = session.answer(said.ChooseModel(model=model))
        assert isinstance(answer[0], said.Ghost)
        assert len(answer[0].world) == shown_joints(before.skeleton) * 7 * 4
        assert pose_of(answer).status == "reached"
        np.testing.assert_allclose(hand(session), wanted, atol=2e-3)
    assert session.state.model == "reach"


def test_plain_kinematics_has_no_likelihood(session: Session) -> None:
    assert pose_of(session.answer(said.ChooseModel(model="walk"))).percentile is not None
    plain = pose_of(session.answer(said.ChooseModel(model="plain")))
    assert (plain.percentile, plain.log_likelihood, plain.latent) == (None, None, None)


def test_a_local_model_is_ready_before_it_is_chosen(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.models.add(LocalPrior.learn([act("walk", seconds=2.0, fps=20)]), "steps")
    made: list[int] = []
    make = LocalGuide.__init__

    def counted(self: LocalGuide, prior: LocalPrior, handles: Handles) -> None:
        make(self, prior, handles)
        made.append(len(handles))

    monkeypatch.setattr(LocalGuide, "__init__", counted)
    wanted = held_hand(session)
    wait_until(lambda: bool(made))
    before = len(made)
    session.answer(said.ChooseModel(model="steps"))
    assert 0 < before == len(made)
    np.testing.assert_allclose(hand(session), wanted, atol=2e-3)


def test_an_unknown_model_lists_those_there_are(session: Session) -> None:
    with pytest.raises(UnknownNameError, match="walk"):
        session.answer(said.ChooseModel(model="wlk"))


def test_styles_blend_by_weight(session: Session) -> None:
    wanted = held_hand(session)
    weights = [said.Weight(model="reach", weight=0.5), said.Weight(model="walk", weight=1.0)]
    answer = session.answer(said.Blend(weights=weights))
    scene = next(message for message in answer if isinstance(message, said.SceneChanged)).scene
    assert (scene.model, scene.weights) == ("walk", weights)
    np.testing.assert_allclose(hand(session), wanted, atol=2e-3)
    with pytest.raises(InvalidValueError, match="cannot be blended"):
        session.answer(said.Blend(weights=[said.Weight(model="plain", weight=1.0)]))


def test_the_map_holds_its_points_and_its_own_place(session: Session) -> None:
    answer = session.answer(said.AskLatentMap(model="reach"))[0]
    assert isinstance(answer, said.LatentMap)
    values = np.frombuffer(answer.values, "<f4").reshape(answer.height, answer.width)
    points = np.frombuffer(answer.points, "<f4").reshape(-1, 2)
    left, right, bottom, top = answer.extent
    assert np.isfinite(values).all()
    assert values.std() > 0
    assert np.all((points > [left, bottom]) & (points < [right, top]))
    assert np.frombuffer(answer.active, "u1").sum() == 20
    with pytest.raises(InvalidValueError, match="no latent space"):
        session.answer(said.AskLatentMap(model="both"))


def test_dragging_in_the_map_takes_the_pose_of_the_place(session: Session) -> None:
    place = (0.3, -0.2)
    hovered = session.answer(said.HoverLatent(seq=1, point=place))[0]
    assert isinstance(hovered, said.HoverPose)
    steps = session.history.undos
    session.answer(said.DragLatent(seq=2, point=(0.0, 0.0)))
    answer = session.answer(said.DragLatent(seq=3, point=place, last=True))
    assert session.history.undos == steps + 1
    ours = np.frombuffer(pose_of(answer).world, "<f4").reshape(-1, 7)
    theirs = np.frombuffer(hovered.world, "<f4").reshape(-1, 7)
    np.testing.assert_allclose(np.abs(ours[:, 3:]), np.abs(theirs[:, 3:]), atol=1e-5)


def test_dragging_in_the_map_can_hold_the_handles(session: Session) -> None:
    wanted = held_hand(session)
    before = session.state.pose.rotations
    pose = pose_of(session.answer(said.DragLatent(seq=2, point=(0.6, 0.4), hold=True, last=True)))
    assert pose.status == "reached"
    np.testing.assert_allclose(hand(session), wanted, atol=2e-3)
    assert not np.allclose(session.state.pose.rotations, before)


def test_other_models_have_no_space_to_drag_in(session: Session) -> None:
    session.answer(said.ChooseModel(model="both"))
    with pytest.raises(InvalidValueError, match="choose a style"):
        session.answer(said.DragLatent(seq=1, point=(0.0, 0.0)))


def other_names(session: Session, walk: Motion) -> None:
    """Add a model of a body whose joints have other names, as `other`."""
    other = Skeleton(
        tuple(f"x{name}" for name in walk.skeleton.names), walk.skeleton.parents, walk.skeleton.offsets,
        walk.skeleton.orders, role_overrides={role: f"x{name}" for role, name in walk.skeleton.roles.items()},
    )  # fmt: skip
    clip = Motion(other, walk.fps, walk.root_positions, walk.rotations)
    session.models.add(learned(StylePrior, [clip], dimensions=2, active=10, velocity=False), "other")


def test_the_motion_goes_along_onto_the_body_of_another_model(session: Session) -> None:
    walk = act("walk", seconds=1.0, fps=20)
    other_names(session, walk)
    put_on_timeline(session, walk)
    session.answer(said.SetFrame(frame=8))
    heard = Heard(session)
    session.answer(said.ChooseModel(model="other"))
    assert heard.wait_for(said.BodyShown).joints[0].name == "xHips"
    assert session.state.model == "other"
    assert (session.state.timeline.clip, session.state.timeline.frame) == (walk.name, 8)
    assert session.motion is not None
    for role in ("head", "left_hand", "right_foot"):
        np.testing.assert_allclose(session.motion.positions[role], walk.positions[role], atol=0.05)
    session.answer(said.Undo())
    assert session.state.model == "reach"
    assert session.motion.skeleton.names == walk.skeleton.names


def test_keys_of_poses_go_along_too(session: Session) -> None:
    other_names(session, act("walk", seconds=1.0, fps=20))
    session.answer(said.Mirror(ease=12))
    session.answer(said.SetFrame(frame=40))
    session.answer(said.Mirror(ease=12))
    wait_until(lambda: session.jobs.idle)
    session.answer(said.ChooseModel(model="other"))
    wait_until(lambda: session.jobs.idle)
    assert session.state.model == "other"
    assert session.state.is_posed
    assert [key.frame for key in session.state.timeline.poses] == [0, 40]


def test_a_motion_that_cannot_go_along_is_cleared_only_if_wanted(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    walk = act("walk", seconds=1.0, fps=20)
    other_names(session, walk)
    held_hand(session)
    put_on_timeline(session, walk)

    def refuse(*_args: object, **_named: object) -> None:
        raise InvalidValueError("it has no legs")

    monkeypatch.setattr(clips, "onto", refuse)
    heard = Heard(session)
    session.answer(said.ChooseModel(model="other"))
    assert heard.wait_for(said.AnotherBody) == said.AnotherBody(
        model="other", name="other", words="it has no legs"
    )
    assert session.motion is not None
    answer = session.answer(said.ChooseModel(model="other", clear=True))
    body = next(message for message in answer if isinstance(message, said.BodyShown))
    assert body.joints[0].name == "xHips"
    assert session.state.handles == ()
    back = session.answer(said.Undo())
    assert any(isinstance(message, said.BodyShown) for message in back)
    assert len(session.state.handles) == 1
    assert session.motion is not None


def test_a_model_of_walking_is_seen_as_a_cylinder(session: Session) -> None:
    walk = learned(DynamicsPrior, [act("walk", seconds=2.5, fps=20)])
    session.models.add(walk, "cycle")
    session.answer(said.ChooseModel(model="cycle"))
    answer = session.answer(said.AskLatentMap(model="cycle"))[0]
    assert isinstance(answer, said.LatentMap)
    assert answer.cylinder
    assert answer.extent[:2] == (-np.pi, np.pi)
    values = np.frombuffer(answer.values, "<f4").reshape(answer.height, answer.width)
    np.testing.assert_allclose(values[:, 0], values[:, -1], atol=1e-3)  # it closes
    points = np.frombuffer(answer.points, "<f4").reshape(-1, 2)
    view = session.models["cycle"].view
    assert view is not None
    for point in points[::10]:
        place = (float(point[0]), float(point[1]))
        np.testing.assert_allclose(view.seen(view.latent(place)), place, atol=1e-2)
    around = [
        session.answer(said.DragLatent(seq=n + 1, point=(x, 0.0)))[0] for n, x in enumerate((-3.14, 3.14))
    ]
    worlds = [np.frombuffer(pose.world, "<f4") for pose in around if isinstance(pose, said.SolvedPose)]
    np.testing.assert_allclose(worlds[0], worlds[1], atol=0.02)
