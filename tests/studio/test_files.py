"""Scenes saved and opened, exports read back, poses sent live, and the embedded models."""

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import msgspec
import numpy as np
import pytest

from poise.errors import ParseError, PoiseError
from poise.formats import read, write
from poise.motion.motion import Motion
from poise.performer import act
from poise.priors.model_file import save
from poise.studio import messages as said
from poise.studio.autosave import Autosave
from poise.studio.defaults import Lesson, embedded, recipes
from poise.studio.models import ModelStore
from poise.studio.panels.clips import put_on_timeline
from poise.studio.session import Session
from running_studio import PATIENCE, Heard, kept, running, wait_until


def posed(session: Session) -> Session:
    session.answer(said.PutHandle(handle=said.SceneHandle(id="hand", joint="left_hand")))
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
    heard = Heard(session)
    session.answer(said.OpenClip(upload=upload.id))
    assert heard.wait_for(said.MotionRange).frames == 10
    motion = read(exported(session, "bvh", whole=True))
    assert len(motion) == 10


def reopened(session: Session, path: Path) -> Heard:
    heard = Heard(session)
    session.answer(said.OpenScene(upload=session.uploads.keep(path, owner=session.token).id))
    heard.wait_for(said.SceneChanged)
    return heard


def test_a_scene_is_saved_and_opened(session: Session) -> None:
    posed(session)
    session.answer(said.SetLookAt(target=(0.5, 1.5, 2.0)))
    path = exported(session, "scene")
    before = session.state
    session.answer(said.Reset())
    reopened(session, path)
    assert session.state.handles == before.handles
    assert session.state.look_at == before.look_at
    np.testing.assert_allclose(session.state.pose.rotations, before.pose.rotations, atol=1e-9)


def test_a_scene_holds_its_motion_its_model_and_its_photo(
    session: Session, models: ModelStore, tmp_path: Path
) -> None:
    import matplotlib.image

    matplotlib.image.imsave(tmp_path / "me.png", np.full((30, 20, 3), 0.5))
    own = session.models.add(models["walk"].prior, "mine alone")
    session.answer(said.ChooseModel(model=own.id))
    session.answer(said.OpenPhoto(upload=kept(session, tmp_path / "me.png"), width=20, height=30))
    session.answer(said.MovePoint(seq=1, point=said.PhotoPoint(joint="head", pixel=(5.0, 6.0)), last=True))
    put_on_timeline(session, act("walk", seconds=2.0, fps=30), "walk.bvh")
    path = exported(session, "scene")
    other = Session(models, session.uploads, session.autosave)
    state = other.files.opened(path, other.state)
    assert other.models[state.model].name == "mine alone"
    assert session.motion is not None
    assert state.motion is not None
    np.testing.assert_array_equal(state.motion.rotations, session.motion.rotations)
    assert state.photo is not None
    assert state.photo.points[0].pixel == (5.0, 6.0)
    assert other.uploads.find(state.photo.upload, owner=other.token).name == "me.png"


def test_a_linked_file_stays_when_a_scene_or_poses_have_its_name(session: Session, tmp_path: Path) -> None:
    """Files named on the command line are links in the person's folder; nothing is written through them."""
    import matplotlib.image

    matplotlib.image.imsave(tmp_path / "me.png", np.full((30, 20, 3), 0.5))
    session.answer(said.OpenPhoto(upload=kept(session, tmp_path / "me.png"), width=20, height=30))
    scene = exported(session, "scene")
    other, mine = Session(session.models, session.uploads, session.autosave), tmp_path / "mine"
    mine.mkdir()
    for name in ("me.png", "library.poses"):
        (mine / name).write_bytes(b"my own")
        other.uploads.link(mine / name, owner=other.token)
    state = other.files.opened(scene, other.state)
    assert state.photo is not None
    restored = other.uploads.find(state.photo.upload, owner=other.token).path
    assert restored.read_bytes() == (tmp_path / "me.png").read_bytes()
    other.answer(said.KeepPose(name="mine"))
    other.answer(said.ExportPoses())
    assert [(mine / name).read_bytes() for name in ("me.png", "library.poses")] == [b"my own"] * 2


def test_scenes_of_the_first_version_and_of_newer_ones_are_opened(session: Session, tmp_path: Path) -> None:
    scene = json.loads(msgspec.json.encode(session.files.saved(posed(session).state)))
    newer = scene | {"version": 9, "readBy": 2, "weather": "fine"}
    newer["timeline"] = scene["timeline"] | {"tempo": 3}
    first = {
        name: scene[name] for name in scene if name not in ("readBy", "models", "motion", "smooth", "photo")
    }
    for number, content in enumerate((newer, first | {"version": 1})):
        path = tmp_path / f"{number}.scene"
        path.write_text(json.dumps(content))
        assert session.files.opened(path, session.state).handles == session.state.handles


def test_what_is_no_scene_says_so(session: Session, tmp_path: Path) -> None:
    good = msgspec.json.format(msgspec.json.encode(session.files.saved(session.state)), indent=2)
    broken = {
        "not JSON": b"{",
        "not a scene": b"{}",
        "newer": good.replace(b'"version": 2', b'"version": 9').replace(b'"readBy": 2', b'"readBy": 9'),
        "another body": good.replace(b'"Hips"', b'"Nose"'),
        "too few turns": good.replace(b'"turns": [', b'"turns": [], "x": ['),
        "deep": b"[" * 100_000,
        "far away": good.replace(b'"root": [', b'"root": [1e30, 0, 0], "x": ['),
        "no part": good.replace(b'"motion": null', b'"motion": "../../etc/passwd"'),
    }
    for name, content in broken.items():
        path = tmp_path / "bad.scene"
        path.write_bytes(content)
        with pytest.raises(ParseError, match=r"bad\.scene"):
            session.files.opened(path, session.state)
        assert content != good, name


def test_a_damaged_scene_file_says_so(session: Session, tmp_path: Path) -> None:
    put_on_timeline(session, act("walk", seconds=1.0, fps=30), "walk.bvh")
    whole = exported(session, "scene").read_bytes()
    other = Session(session.models, session.uploads, Autosave(tmp_path / "elsewhere"))
    path = tmp_path / "bad.scene"
    for content in (
        whole[: len(whole) // 2],
        whole[:-30],
        _with_part(whole, b"nonsense"),
        _with_part(whole, None),
    ):
        path.write_bytes(content)
        with pytest.raises(ParseError, match=r"bad\.scene"):
            other.files.opened(path, other.state)


def _with_part(whole: bytes, content: bytes | None) -> bytes:
    """A scene whose motion is something else, or missing."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as source, zipfile.ZipFile(out, "w") as target:
        for name in source.namelist():
            if not name.endswith(".motion"):
                target.writestr(name, source.read(name))
            elif content is not None:
                target.writestr(name, content)
    return out.getvalue()


def test_a_model_is_written_renamed_and_opened(session: Session) -> None:
    heard = Heard(session)
    session.answer(said.ExportModel(model="walk"))
    ready = heard.wait_for(said.FileReady)
    assert ready.name == "walk.poise"
    path = session.uploads.find(ready.address.split("/")[1]).path
    session.answer(said.OpenModel(upload=kept(session, path)))
    told = heard.wait_for(said.Models, lambda message: message.models[-2].own)
    opened = told.models[-2]
    assert session.state.model == opened.id
    session.answer(said.RenameModel(model=opened.id, name="stroll"))
    assert session.models[opened.id].name == "stroll"
    with pytest.raises(PoiseError, match="came into this page"):
        session.answer(said.RenameModel(model="walk", name="mine"))
    with pytest.raises(PoiseError, match="not a learned model"):
        session.answer(said.ExportModel(model="plain"))


def test_poses_go_out_live(session: Session) -> None:
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(PATIENCE)
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
    lessons = (Lesson("old kick", "kick", "old"),)
    models = embedded(lessons=lessons)
    assert [model.id for model in models.described()] == [
        "people",
        "old-kick",
        "walk-in-time",
        "everything",
        "nearest-of-everything",
        "plain",
    ]
    again = embedded(lessons=lessons)
    first, second = models["old-kick"].prior, again["old-kick"].prior
    np.testing.assert_array_equal(first.mean, second.mean)


def test_models_that_are_named_come_before_the_embedded_ones(
    priors: dict[str, object], tmp_path: Path
) -> None:
    save(priors["both"], tmp_path / "both.poise")  # type: ignore[arg-type]
    models = embedded(named=[tmp_path / "both.poise"])
    assert [model.id for model in models.described()][:2] == ["both", "people"]
    save(priors["both"], tmp_path / "walk.poise")  # type: ignore[arg-type]
    names = [model.name for model in embedded(named=[tmp_path / "walk.poise"]).described()]
    assert names.count("walk") == 1


def test_files_that_are_named_wait_for_the_first_page_alone(models: ModelStore, tmp_path: Path) -> None:
    clip = write(act("kick", seconds=1.0, fps=20), tmp_path / "kick.bvh")
    with running(models, files=[clip]) as studio, studio.page() as page, studio.page() as other:
        (opening,) = page.hello().openings
        assert opening.name == "kick.bvh"
        page.say(said.OpenClip(upload=opening.upload))
        assert page.hear_until(said.MotionRange).frames == 20
        assert other.hello().openings == []
    assert clip.is_file()


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_learning_ahead_ends_with_the_studio_that_started_it(tmp_path: Path) -> None:
    studio = (
        "import subprocess, sys, time\n"
        "learning = subprocess.Popen([sys.executable, '-m', 'poise.studio.defaults'])\n"
        "print(learning.pid, flush=True); time.sleep(600)"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", studio], env=environment, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        usual = os.getpriority(os.PRIO_PROCESS, 0)
        wait_until(lambda: os.getpriority(os.PRIO_PROCESS, worker) > usual)  # it watches its parent by now
        parent.kill()
    wait_until(lambda: not Path(f"/proc/{worker}").exists())
    assert len(list(tmp_path.rglob("*.poise"))) < len(recipes())  # long before it had learned everything
