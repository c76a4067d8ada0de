"""Scenes saved and opened, exports read back, poses sent live, and the embedded models."""

from pathlib import Path

import numpy as np
import pytest

from poise.errors import ParseError, PoiseError
from poise.formats import read, write
from poise.motion.motion import Motion
from poise.performer import act
from poise.priors.model_file import save
from poise.studio import messages as said
from poise.studio.defaults import Lesson, embedded, from_files
from poise.studio.scene_files import opened, saved
from poise.studio.session import Session
from running_studio import Heard


def posed(session: Session) -> Session:
    session.answer(said.PutHandle(handle=said.Handle(id="hand", joint="left_hand")))
    x, y, z = session.state.handle("hand").position or (0.0, 0.0, 0.0)
    session.answer(said.Drag(seq=1, handle="hand", position=(x, y + 0.2, z + 0.1), last=True))
    return session


def exported(session: Session, form: said.ExportFormat, *, whole: bool = False) -> Path:
    heard = Heard(session)
    session.answer(said.Export(format=form, whole=whole))
    ready = heard.wait_for(said.FileReady)
    return session.uploads.find(ready.address.split("/")[1]).path


@pytest.mark.parametrize("form", ["bvh", "glb"])
def test_a_pose_is_exported_and_read_back(session: Session, form: said.ExportFormat) -> None:
    posed(session)
    motion = read(exported(session, form))
    assert isinstance(motion, Motion)
    np.testing.assert_allclose(motion.root_positions[0], session.state.pose.root_position, atol=1e-4)


def test_a_pose_is_drawn(session: Session) -> None:
    assert exported(posed(session), "png").read_bytes().startswith(b"\x89PNG")


def test_a_timeline_is_exported_whole(session: Session, tmp_path: Path) -> None:
    clip = write(act("walk", seconds=0.5, fps=20), tmp_path / "walk.bvh")
    dropped = session.uploads.folder(session.token) / "walk.bvh"
    dropped.write_bytes(clip.read_bytes())
    upload = session.uploads.keep(dropped, owner=session.token)
    answer = session.answer(said.OpenClip(upload=upload.id))
    assert any(isinstance(message, said.MotionRange) and message.frames == 10 for message in answer)
    motion = read(exported(session, "bvh", whole=True))
    assert len(motion) == 10


def test_a_scene_is_saved_and_opened(session: Session) -> None:
    posed(session)
    session.answer(said.SetLookAt(target=(0.5, 1.5, 2.0)))
    path = exported(session, "scene")
    before = session.state
    session.answer(said.Reset())
    session.answer(said.OpenScene(upload=session.uploads.keep(path, owner=session.token).id))
    assert session.state.handles == before.handles
    assert session.state.look_at == before.look_at
    np.testing.assert_allclose(session.state.pose.rotations, before.pose.rotations, atol=1e-9)


def test_what_is_no_scene_says_so(session: Session, tmp_path: Path) -> None:
    good = saved(session.state)
    broken = {
        "not JSON": b"{",
        "not a scene": b"{}",
        "newer": good.replace(b'"version": 1', b'"version": 9'),
        "another body": good.replace(b'"Hips"', b'"Nose"'),
        "too few turns": good.replace(b'"turns": [', b'"turns": [], "x": ['),
    }
    for name, content in broken.items():
        path = tmp_path / "bad.scene"
        path.write_bytes(content)
        with pytest.raises(ParseError, match=r"bad\.scene"):
            opened(path, session.models, session.state)
        assert content != good, name


def test_poses_go_out_live(session: Session) -> None:
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(5)
        address = f"127.0.0.1:{receiver.getsockname()[1]}"
        scene = session.answer(said.StreamOut(to=address))[0]
        assert isinstance(scene, said.SceneChanged)
        assert scene.scene.streaming == address
        assert b"/VMC/Ext/Bone/Pos" in receiver.recv(65536)
        posed(session)
        assert b"LeftHand" in receiver.recv(65536)
        stopped = session.answer(said.StreamOut(to=None))[0]
        assert isinstance(stopped, said.SceneChanged)
        assert stopped.scene.streaming is None
    with pytest.raises(PoiseError, match="HOST:PORT"):
        session.answer(said.StreamOut(to="nowhere:"))


def test_the_embedded_models_are_learned_once() -> None:
    told: list[str] = []
    lessons = (Lesson("old kick", "kick", "old"),)
    models = embedded(lessons=lessons, step=lambda what, _share: told.append(what))
    assert [model.id for model in models.described()] == [
        "old-kick",
        "walk-in-time",
        "everything",
        "nearest-of-everything",
        "plain",
    ]
    assert told[-1] == "ready"
    again = embedded(lessons=lessons)
    first, second = models["old-kick"].prior, again["old-kick"].prior
    np.testing.assert_array_equal(first.mean, second.mean)


def test_models_and_clips_can_be_named(priors: dict[str, object], tmp_path: Path) -> None:
    save(priors["both"], tmp_path / "both.poise")  # type: ignore[arg-type]
    clip = write(act("kick", seconds=1.0, fps=20), tmp_path / "kick.bvh")
    models = from_files([tmp_path / "both.poise", clip])
    assert [model.id for model in models.described()] == ["both", "kick", "kick-gaussian", "plain"]
