"""One door for all formats: chosen by name, content or extension, with clear refusals and whole files only."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest

import poise
from bvh_text import bvh_text, saved
from poise.errors import InvalidValueError, ParseError, PoiseError, UnknownNameError
from poise.formats import FORMATS, registry
from poise.formats.files import FileAccessError, replacing
from poise.motion import Motion

TEXT = bvh_text("1 2 3 10 20 30 40 50 60", "1 2 3 10 20 30 40 50 60")


@pytest.fixture
def motion(tmp_path: Path) -> Motion:
    return poise.read(saved(tmp_path, TEXT))


@pytest.mark.parametrize("name", ["clip.bvh", "clip.BVH", "clip", "clip.txt", "clip.c3d"])
def test_content_decides(tmp_path: Path, name: str) -> None:
    assert poise.read(saved(tmp_path, TEXT, name)).origin.format == "bvh"


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"HIERARCHY\nROOT", "bvh"),
        (b"\xef\xbb\xbf\r\n  hierarchy\r\n", "bvh"),
        (b"# made by hand\n:version 1.10\n", "acclaim"),
        (b"#!OML:ASF\n:FULLY-SPECIFIED\n:DEGREES\n1\n", "acclaim"),
        (b"PathFileType\t4\t(X/Y/Z)\tclip.trc\n", "trc"),
        (b"\x02\x50\x29\x00", "c3d"),
        (b"glTF\x02\x00\x00\x00", "gltf"),
        (b"Kaydara FBX Binary  \x00", "fbx"),
        (b"; FBX 7.4.0 project file", "fbx"),
        (b"PXR-USDC\x00", "usd"),
        (b"#usda 1.0", "usd"),
    ],
)
def test_every_format_is_known_by_its_content_alone(head: bytes, name: str) -> None:
    assert [known.name for known in FORMATS.values() if known.sniff(head)] == [name]


def test_every_format_can_be_read() -> None:
    assert all(callable(known.function("read")) for known in FORMATS.values() if not known.only_written)


def test_a_given_format_decides(tmp_path: Path) -> None:
    assert poise.read(saved(tmp_path, TEXT, "x.dat"), format="BVH").origin.warnings == ()
    with pytest.raises(PoiseError):
        poise.read(saved(tmp_path, TEXT), format="trc")


def test_refusals_say_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(FileAccessError, match=r"missing\.bvh does not exist"):
        poise.read(tmp_path / "missing.bvh")
    with pytest.raises(FileAccessError, match="is a folder"):
        poise.read(tmp_path)
    with pytest.raises(ParseError, match=r"empty\.bvh: the file is empty"):
        poise.read(saved(tmp_path, "", "empty.bvh"))
    with pytest.raises(ParseError, match=r"known: \.bvh, \.amc"):
        poise.read(saved(tmp_path, "hello", "hello.txt"))
    with pytest.raises(UnknownNameError, match="did you mean bvh"):
        poise.read(saved(tmp_path, TEXT), format="bvv")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_pipes_and_devices_are_refused_before_anybody_waits_for_them(tmp_path: Path, motion: Motion) -> None:
    os.mkfifo(tmp_path / "pipe.bvh")
    with pytest.raises(FileAccessError, match="is a pipe or a device"):
        poise.read(tmp_path / "pipe.bvh")
    with pytest.raises(FileAccessError, match="is a pipe or a device"):
        poise.write(motion, tmp_path / "pipe.bvh")


def test_writing_to_a_link_writes_what_it_points_to(tmp_path: Path, motion: Motion) -> None:
    link = tmp_path / "link.bvh"
    link.symlink_to(saved(tmp_path, "old", "real.bvh"))
    poise.write(motion, link)
    assert link.is_symlink()
    assert (tmp_path / "real.bvh").read_text().startswith("HIERARCHY")


def test_a_missing_file_names_its_neighbours(tmp_path: Path) -> None:
    saved(tmp_path, TEXT, "run.bvh")
    with pytest.raises(FileAccessError, match=r"beside it: run\.bvh"):
        poise.read(tmp_path / "run.amc")


def test_unknown_options_list_the_valid_ones(tmp_path: Path, motion: Motion) -> None:
    with pytest.raises(UnknownNameError, match="did you mean units"):
        poise.read(saved(tmp_path, TEXT), unit="cm")
    with pytest.raises(UnknownNameError, match="decimal"):
        poise.write(motion, tmp_path / "out.bvh", decimal=3)


def test_writing_goes_by_the_extension(tmp_path: Path, motion: Motion) -> None:
    assert poise.write(motion, tmp_path / "out.BVH") == tmp_path / "out.BVH"
    assert len(poise.read(tmp_path / "out.BVH")) == 2
    poise.write(motion, tmp_path / "out.txt", format="bvh")
    assert (tmp_path / "out.txt").read_text().startswith("HIERARCHY")
    with pytest.raises(UnknownNameError, match=r"extension '\.xyz'"):
        poise.write(motion, tmp_path / "out.xyz")
    with pytest.raises(FileAccessError, match="cannot write"):
        poise.write(motion, tmp_path / "nowhere" / "out.bvh")


def test_formats_that_cannot_be_written_say_so(
    tmp_path: Path, motion: Motion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FORMATS._entries, "units", registry.Format("units", (".unit",)))
    with pytest.raises(InvalidValueError, match="cannot write units files"):
        poise.write(motion, tmp_path / "out.unit")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = saved(tmp_path, "old", "out.bvh")
    with pytest.raises(TypeError), replacing(target) as file:
        file.writelines(["new", 5])
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_written_files_have_the_usual_permissions(tmp_path: Path, motion: Motion) -> None:
    plain = saved(tmp_path, "x", "plain.txt")
    poise.write(motion, tmp_path / "out.bvh")
    assert stat.S_IMODE(os.stat(tmp_path / "out.bvh").st_mode) == stat.S_IMODE(plain.stat().st_mode)
    os.chmod(tmp_path / "out.bvh", 0o640)
    poise.write(motion, tmp_path / "out.bvh")
    assert stat.S_IMODE(os.stat(tmp_path / "out.bvh").st_mode) == 0o640


def test_reading_a_path_given_as_text(tmp_path: Path) -> None:
    motion = poise.read(str(saved(tmp_path, TEXT)))
    assert motion.name == "clip"
    np.testing.assert_array_equal(motion.rotations[0], motion.rotations[1])


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("Frame Time: 0.0333333", "Frame Time: 1500", "between 1 and 10,000 frames a second"),
        ("Frame Time: 0.0333333", "Frame Time: 0.00001", "between 1 and 10,000 frames a second"),
        ("1 2 3 10", "9e9 2 3 10", "places must be within 10 km"),
    ],
)
def test_implausible_recordings_are_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in TEXT
    with pytest.raises(ParseError, match=words):
        poise.read(saved(tmp_path, TEXT.replace(old, new)))
