"""What stays on the machine: several studios share it, and nothing of it is lost by a clock, a kill or a full disk."""

import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest

from poise.errors import PoiseError
from poise.performer import act
from poise.studio import store as store_module
from poise.studio.autosave import Autosave
from poise.studio.scene_files import encoded
from poise.studio.session import Session
from poise.studio.store import FILE, MOST_SCENES, SavedPoses, Store

WALK = act("walk", seconds=0.2, fps=30)
KEEP = """
import sys
from poise.performer import act
from poise.studio.store import Store
walk, store = act("walk", seconds=0.2, fps=30), Store()
print("ready", flush=True)
sys.stdin.readline()
for number in range(40):
    store.add_pose(f"{sys.argv[1]} {number}", walk[0])
    store.put_scene(f"{sys.argv[1]} {number % 10}", store.motion(walk).encode())
    store.tidy()
"""


def tokens(store: Store) -> set[str]:
    """The scenes of numbered tokens that are there."""
    return {f"token {n}" for n in range(2 * MOST_SCENES) if store.scene(f"token {n}") is not None}


def test_only_the_newest_scenes_are_kept(tmp_path: Path, session: Session) -> None:
    store = Store(tmp_path)
    for number in range(MOST_SCENES + 5):
        store.put_scene(f"token {number}", b"{}")
    store.put_scene("token 0", store.motion(WALK).encode())  # used again
    store.model(session.models["both"].prior)
    store.tidy()
    assert tokens(store) == {"token 0", *(f"token {n}" for n in range(6, MOST_SCENES + 5))}
    rows = sqlite3.connect(tmp_path / FILE).execute("SELECT name FROM parts").fetchall()
    assert rows == [(store.motion(WALK),)]


def test_a_scene_saved_while_the_clock_was_ahead_removes_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, now = Store(tmp_path), time.time()
    for number in range(8):
        ahead = 30 * 86400.0 if number == 3 else 0.0
        monkeypatch.setattr(store_module.time, "time", lambda ahead=ahead: now + ahead)
        store.put_scene(f"token {number}", b"{}")
    store.close()
    again = Store(tmp_path)
    again.tidy()
    assert len(tokens(again)) == 8


def test_studios_that_share_a_folder_lose_nothing_of_each_other() -> None:
    command = [sys.executable, "-c", KEEP]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    studios = [subprocess.Popen([*command, name], **pipes) for name in ("one", "another")]
    for studio in studios:
        assert studio.stdout is not None
        assert studio.stdout.readline() == "ready\n"
    for studio in studios:
        studio.communicate("go\n", timeout=120)
    assert [studio.returncode for studio in studios] == [0, 0]
    store = Store()
    assert {saved.name for saved in store.poses} == {
        f"{of} {n}" for of in ("one", "another") for n in range(40)
    }
    for of in ("one", "another"):
        for number in range(10):
            found = store.scene(f"{of} {number}")
            assert found is not None
            motion = store.read_motion(found[-1].decode(), WALK.skeleton)
            np.testing.assert_array_equal(motion.rotations, WALK.rotations)


def test_files_of_earlier_versions_are_taken_over(tmp_path: Path, session: Session) -> None:
    made = Store(tmp_path / "made")
    made.add_pose("arm up", WALK[0])
    made.write_poses(tmp_path / "library.poses")
    saved = session.files.saved(session.state)
    (part,) = saved.parts
    parts = tmp_path / "scenes" / "parts"
    parts.mkdir(parents=True)
    (parts / part).write_bytes(session.files.store.part(part))
    scene = tmp_path / "scenes" / f"{store_module._hashed(session.token)}.scene"
    scene.write_bytes(encoded(saved))
    take = scene.with_suffix(".take.journal")
    take.touch()
    autosave = Autosave(tmp_path)
    assert autosave.has(session.token)
    assert [pose.name for pose in autosave.store.poses] == ["arm up"]
    assert autosave.store.part(part) == session.files.store.part(part)
    assert not any(path.exists() for path in (scene, parts / part, tmp_path / "library.poses", take))
    assert autosave.store.take_of(session.token).with_suffix(".take.journal").exists()
    again = Session(session.models, session.uploads, autosave, token=session.token)
    assert again.restore()
    autosave.close()


def test_a_file_of_poses_that_is_damaged_stays_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "library.poses").write_bytes(b"{")
    assert Store(tmp_path).poses == []
    assert (tmp_path / "library.poses").read_bytes() == b"{"


def test_a_damaged_store_is_put_aside(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(bytes(range(256)) * 32)
    store = Store(tmp_path)
    store.add_pose("arm up", WALK[0])
    assert [pose.name for pose in store.poses] == ["arm up"]
    (aside,) = tmp_path.glob("*.damaged-*")
    assert aside.read_bytes() == bytes(range(256)) * 32


def test_a_store_of_a_newer_poise_is_not_touched(tmp_path: Path) -> None:
    Store(tmp_path).add_pose("arm up", WALK[0])
    database = sqlite3.connect(tmp_path / FILE)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(PoiseError, match="newer"):
        Store(tmp_path).add_pose("arm down", WALK[0])
    autosave = Autosave(tmp_path)
    autosave.tidy()
    assert not autosave.has("token")


def test_a_scene_whose_writing_fails_changes_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put_scene("token", b"{}")

    def fail() -> None:
        with store.writing():
            store.put_scene("token", b"[]")
            store.add_pose("arm up", WALK[0])
            raise PoiseError("it broke off")

    with pytest.raises(PoiseError, match="broke off"):
        fail()
    assert (store.scene("token") or ())[-1] == b"{}"
    assert store.poses == []


def test_a_full_library_takes_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "MOST_POSES", 2)
    store = Store(tmp_path)
    for name in ("a", "b"):
        store.add_pose(name, WALK[0])
    with pytest.raises(PoiseError, match="room for 2"):
        store.add_pose("c", WALK[0])
    assert [pose.name for pose in store.poses] == ["b", "a"]
    store.write_poses(tmp_path / "mine.poses")
    assert msgspec.json.decode((tmp_path / "mine.poses").read_bytes(), type=SavedPoses).poses == store.poses
