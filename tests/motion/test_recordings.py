"""Real recordings are found where they are named, unpacked once, and missed without an error."""

import tarfile
from pathlib import Path

import pytest

from poise.errors import PoiseError
from poise.motion import recordings
from poise.motion.recordings import find_recordings


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POISE_MOCAP", str(tmp_path / "mocap"))
    monkeypatch.setenv("POISE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "mocap").mkdir()


def pack(folder: Path, text: str) -> None:
    clips = folder / "packed" / "cmu"
    clips.mkdir(parents=True, exist_ok=True)
    (clips / "01_01.bvh").write_text(text)
    with tarfile.open(folder / "mocap" / "cmu-bvh.tar.xz", "w:xz") as archive:
        archive.add(clips, "cmu")


def test_none_where_there_is_nothing() -> None:
    assert find_recordings() is None


def test_folders_are_used_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "mocap" / "optical").mkdir()
    assert find_recordings() == tmp_path / "mocap"


def test_beside_the_project_where_nothing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POISE_MOCAP")
    monkeypatch.setattr(recordings, "_PROJECT", tmp_path / "project")
    assert find_recordings() is None
    (tmp_path / "shared" / "mocap" / "cmu").mkdir(parents=True)
    assert find_recordings() == tmp_path / "shared" / "mocap"


def test_archives_are_unpacked_once_into_the_cache(tmp_path: Path) -> None:
    pack(tmp_path, "first")
    folder = find_recordings()
    assert folder == tmp_path / "cache" / "mocap"
    clip = folder / "cmu" / "01_01.bvh"
    assert clip.read_text() == "first"
    clip.write_text("touched")
    find_recordings()
    assert clip.read_text() == "touched"


def test_another_archive_is_unpacked_again(tmp_path: Path) -> None:
    pack(tmp_path, "first")
    find_recordings()
    pack(tmp_path, "second, and longer " * 20)
    folder = find_recordings()
    assert folder is not None
    assert (folder / "cmu" / "01_01.bvh").read_text().startswith("second")
    assert sorted(path.name for path in folder.iterdir()) == ["cmu", "cmu.size"]


def test_a_broken_archive_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "mocap" / "cmu-bvh.tar.xz").write_bytes(b"not an archive")
    with pytest.raises(PoiseError, match="cannot unpack"):
        find_recordings()
    assert list((tmp_path / "cache" / "mocap").iterdir()) == []
