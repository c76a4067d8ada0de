"""Handles on skin that touch props: palms on a wall lean and lunge, on a table they lie flat."""

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.surfaces import surfaces_of
from poise.studio import messages as said
from poise.studio.autosave import Autosave
from poise.studio.messages import Prop, SceneHandle
from poise.studio.models import ModelStore
from poise.studio.session import Session
from poise.studio.touching import face_near
from poise.studio.uploads import Uploads

WALL = Prop(id="wall", kind="box", position=(0.0, 0.0, 0.72), size=(1.6, 2.2, 0.2))
CHAIR = Prop(id="chair", kind="chair", position=(1.0, 0.0, 0.0), size=(0.5, 0.9, 0.5))


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    models, uploads, autosave = ModelStore(), Uploads(), Autosave(tmp_path)
    models.add(UniversalPrior(), "people")
    session = Session(models, uploads, autosave)
    session.answer(said.PutProp(seq=1, prop=WALL, last=True))
    yield session
    session.close()
    autosave.close()
    uploads.close()


def put(session: Session, name: str, at: tuple[float, float, float]) -> None:
    session.answer(said.PutHandle(handle=SceneHandle(id=name, joint=name)))
    handle = session.state.handle(name)
    session.answer(said.PutHandle(handle=handle.with_(position=at)))


def test_a_palm_is_at_an_offset_of_its_hand(session: Session) -> None:
    put(session, "left_palm", (0.2, 1.2, 0.4))
    handle = session.state.handle("left_palm")
    assert handle.joint == "LeftHand"
    assert handle.offset == pytest.approx(surfaces_of(session.state.pose.skeleton)["left_palm"].offset)


def test_palms_on_a_wall_lunge_and_do_not_step_again_for_centimetres(session: Session) -> None:
    for name, x in (("left_palm", 0.18), ("right_palm", -0.18)):
        put(session, name, (x, 1.25, 0.62))
    pose, anchors = session.state.pose, session.state.anchors
    for name in ("left_palm", "right_palm"):
        surface = surfaces_of(pose.skeleton)[name]
        facing = pose.world[1][pose.skeleton.index(surface.joint)] @ np.array(surface.facing)
        assert facing[2] > math.cos(math.radians(15.0))
    ahead, behind = pose.positions["left_foot"], pose.positions["right_foot"]
    assert ahead[2] - behind[2] > 0.2 * pose.skeleton.height
    put(session, "left_palm", (0.2, 1.27, 0.62))
    assert session.state.anchors["left_foot"] == anchors["left_foot"]


def test_a_palm_in_the_air_takes_no_step(session: Session) -> None:
    before = session.state.anchors["left_foot"]
    put(session, "left_palm", (0.2, 1.2, 0.4))
    assert session.state.anchors["left_foot"] == before


@pytest.mark.parametrize(
    ("place", "normal"),
    [
        ((0.3, 1.0, 0.62), (0.0, 0.0, -1.0)),
        ((0.3, 2.21, 0.7), (0.0, 1.0, 0.0)),
        ((1.1, 0.47, 0.1), (0.0, 1.0, 0.0)),
        ((0.3, 1.0, 0.5), None),
        ((1.1, 0.2, 0.1), None),
    ],
)
def test_faces_of_props(place: tuple[float, float, float], normal: tuple[float, float, float] | None) -> None:
    found = face_near([WALL, CHAIR], place)
    assert (found is None) == (normal is None)
    assert normal is None or found == pytest.approx(normal)


def test_faces_turn_with_their_prop() -> None:
    half = math.sqrt(0.5)
    turned = WALL.with_(rotation=(half, 0.0, half, 0.0))
    found = face_near([turned], (0.1, 1.0, 0.72))
    assert found is not None
    assert abs(found[0]) > 0.999
