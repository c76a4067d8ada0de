"""Characters with a mesh of their own, and keyframe scripts, opened in a session."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from poise.errors import PoiseError
from poise.formats import read, write
from poise.formats.gltf.meshes import read_mesh
from poise.motion.motion import Motion
from poise.skeleton.kinematics import world_transforms
from poise.solvers.bearing import heading_of
from poise.studio import messages as said
from poise.studio.models import ModelStore
from poise.studio.session import Session
from running_studio import SCRIPT, Heard, foreign, kept


@pytest.fixture
def hero(session: Session, tmp_path: Path) -> said.BodyShown:
    """The body that the page is shown after a character was opened."""
    heard = Heard(session)
    session.answer(said.OpenClip(upload=kept(session, foreign(tmp_path / "hero.glb"))))
    return heard.wait_for(said.BodyShown)


def test_a_character_opens_as_itself_and_faces_us(
    session: Session, hero: said.BodyShown, tmp_path: Path
) -> None:
    assert hero.character.endswith("/hero.glb")
    assert session.poser.entry_of(session.state).name == "hero"
    assert heading_of(session.state.pose)[2] > 0.9
    mesh, (skin,) = read_mesh(tmp_path / "hero.glb"), hero.skins
    matrices = np.frombuffer(skin.matrices, "<f4").reshape(-1, 3, 4)
    np.testing.assert_array_equal(np.frombuffer(skin.joints, "<u2"), mesh.slot_joints[: len(matrices)])
    np.testing.assert_allclose(matrices, mesh.slot_matrices[: len(matrices)], atol=1e-6)


@pytest.mark.usefixtures("hero")
def test_a_characters_pose_goes_into_its_own_file(session: Session) -> None:
    session.answer(said.PutHandle(handle=said.SceneHandle(id="hand", joint="right_hand")))
    x, y, z = session.state.handle("hand").position or (0.0, 0.0, 0.0)
    session.answer(said.Drag(seq=1, handle="hand", position=(x + 0.2, y - 0.1, z + 0.2), last=True))
    heard = Heard(session)
    session.answer(said.Export(format="glb", whole=False))
    written = session.uploads.find(heard.wait_for(said.FileReady).address.split("/")[1]).path
    back, pose = read(written), session.state.pose
    assert isinstance(back, Motion)
    assert back.origin.character
    expected = world_transforms(pose.skeleton, pose.root_position, pose.rotations)[0]
    found = world_transforms(back.skeleton, back.root_positions, back.rotations)[0][0]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_exports_leave_the_opened_file_as_it_is(session: Session, tmp_path: Path) -> None:
    """A file named on the command line is linked, and an export has its name; neither may write into it."""
    file = foreign(tmp_path / "hero.glb")
    before, heard = file.read_bytes(), Heard(session)
    session.answer(said.OpenClip(upload=session.uploads.link(file, owner=session.token).id))
    heard.wait_for(said.BodyShown)
    exported = []
    for _ in range(2):
        heard = Heard(session)
        session.answer(said.Export(format="glb", whole=False))
        upload = session.uploads.find(heard.wait_for(said.FileReady).address.split("/")[1])
        exported.append(upload.path.read_bytes())
    assert file.read_bytes() == before
    assert exported[0] == exported[1] != before


@pytest.mark.slow
def test_a_usd_character_opens_as_itself_and_its_pose_goes_out_with_its_mesh(
    session: Session, tmp_path: Path
) -> None:
    pytest.importorskip("pxr")
    clip = read(foreign(tmp_path / "hero.glb"))
    assert isinstance(clip, Motion)
    heard = Heard(session)
    session.answer(said.OpenClip(upload=kept(session, write(clip, tmp_path / "hero.usdc"))))
    body = heard.wait_for(said.BodyShown)
    assert body.character.endswith("/hero.usdc.glb")
    assert body.skins
    assert session.poser.entry_of(session.state).name == "hero"
    heard = Heard(session)
    session.answer(said.Export(format="glb", whole=False))
    written = session.uploads.find(heard.wait_for(said.FileReady).address.split("/")[1]).path
    assert len(read_mesh(written).triangles) == len(read_mesh(tmp_path / "hero.glb").triangles)
    pose, back = session.state.pose, read(written)
    assert isinstance(back, Motion)
    expected = world_transforms(pose.skeleton, pose.root_position, pose.rotations)[0]
    found = world_transforms(back.skeleton, back.root_positions, back.rotations)[0][0]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_scene_keeps_its_character(
    session: Session, hero: said.BodyShown, models: ModelStore, tmp_path: Path
) -> None:
    session.files.write(session.state, tmp_path / "one.scene")
    other = Session(models, session.uploads, session.autosave)
    other.begin_with(other.files.opened(tmp_path / "one.scene", other.state))
    assert other.body().character.endswith("/hero.glb")
    assert other.body().skins == hero.skins
    other.answer(said.ChooseModel(model=models.first.id))
    assert other.body().character == ""


def test_a_keyframe_script_opens_as_keys_and_pins(session: Session, tmp_path: Path) -> None:
    (tmp_path / "keys.toml").write_text(SCRIPT)
    session.answer(said.OpenScript(upload=kept(session, tmp_path / "keys.toml")))
    timeline = session.state.timeline
    assert (timeline.frames, timeline.fps) == (21, 20.0)
    assert [(key.handle, key.frame) for key in timeline.keys] == [
        ("right_hand", 0),
        ("right_hand", 20),
        ("head", 10),
    ]
    assert timeline.keys[1].easing == "out"
    assert [(pin.handle, pin.first, pin.last) for pin in timeline.pins] == [("left_foot", 4, 20)]
    motion = session.state.motion
    assert motion is not None
    np.testing.assert_allclose(motion.positions["right_hand"][0], (-0.3, 1.0, 0.2), atol=5e-3)


def test_a_script_with_styles_is_refused(session: Session, tmp_path: Path) -> None:
    (tmp_path / "keys.toml").write_text(SCRIPT + '[styles]\nsneaky = "sneaky.poise"\n')
    with pytest.raises(PoiseError, match="poise keyframe"):
        session.answer(said.OpenScript(upload=kept(session, tmp_path / "keys.toml")))
