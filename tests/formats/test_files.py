"""Files written whole or not at all."""

import contextlib
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import poise
from poise import performer
from poise.errors import ParseError, PoiseError
from poise.formats import files
from poise.formats.files import (
    FileAccessError,
    existing_file,
    finish_replacing,
    replacing,
    replacing_together,
    try_lock,
)
from poise.formats.tables import read_table


def test_parts_of_a_writer_that_was_killed_are_removed(tmp_path: Path) -> None:
    left, living = (tmp_path / f".a.bvh.{name}.part" for name in ("left", "living"))
    for part in (left, living):
        part.touch()
    with living.open("r+b") as writer:
        assert try_lock(writer.fileno())
        with replacing(tmp_path / "a.bvh") as file:
            file.write("whole")
    assert {path.name for path in tmp_path.iterdir()} == {"a.bvh", living.name}
    assert (tmp_path / "a.bvh").read_text() == "whole"


def test_many_writers_of_one_file_leave_one_whole_file(tmp_path: Path) -> None:
    texts = [str(number) * 5000 for number in range(10)]

    def write(text: str) -> None:
        for _ in range(30):
            with replacing(tmp_path / "a.txt") as file:
                file.write(text)

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(write, texts))
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() in texts


def test_a_name_that_is_too_long_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileAccessError, match="cannot be read: File name too long"):
        existing_file(tmp_path / ("x" * 2000))


def test_of_two_files_both_or_none_are_replaced_wherever_the_writer_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair, replace = [tmp_path / "a.asf", tmp_path / "a.amc"], files.os.replace
    for ends_at in (1, 2, 3, 4):
        for path in pair:
            path.write_text("old")
        left = iter(range(ends_at - 1, -10, -1))

        def until_the_end(source: Path, target: Path, left=left) -> None:  # type: ignore[no-untyped-def]
            if next(left) <= 0:
                raise KeyboardInterrupt
            replace(source, target)

        monkeypatch.setattr(files.os, "replace", until_the_end)
        with contextlib.suppress(KeyboardInterrupt), replacing_together(*pair) as opened:
            for file in opened:
                file.write("new")
        monkeypatch.setattr(files.os, "replace", replace)
        finish_replacing(*pair)
        assert {path.read_text() for path in pair} == {"old" if ends_at == 1 else "new"}
    with replacing_together(*pair) as opened:
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.amc", "a.asf"]


@pytest.mark.parametrize("names", [["../victim", "x"], [".a.asf.1.part/../../victim", "x"], [1, 2], {}, "x"])
def test_a_note_names_nothing_but_parts_of_its_own_files(tmp_path: Path, names: object) -> None:
    victim, folder = tmp_path / "victim", tmp_path / "pair"
    victim.write_text("safe")
    folder.mkdir()
    (folder / ".a.asf.1.part").mkdir()
    (folder / ".a.asf.1.pair").write_text(json.dumps(names))
    with contextlib.suppress(FileAccessError):
        finish_replacing(folder / "a.asf", folder / "a.amc")
    assert victim.read_text() == "safe"
    assert not (folder / "a.asf").exists()


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "[" * 40 + "]" * 40,
        "x = " + "[" * 100_000 + "]" * 100_000,
        "[" + ".".join("a" * 40) + "]",
        "[" + ".".join("a" * 100_000) + "]",
        "x = " + "{y = " * 5000 + "1" + "}" * 5000,
    ],
)
@pytest.mark.parametrize("extension", [".toml", ".json"])
def test_settings_that_are_nested_too_deep_are_refused(tmp_path: Path, text: str, extension: str) -> None:
    path = tmp_path / f"deep{extension}"
    path.write_text(text if extension == ".toml" else '{"x": ' + "[" * len(text) + "]" * len(text) + "}")
    with pytest.raises(ParseError, match=r"nested deeper|cannot be read|not a file|recursion"):
        read_table(path)


def test_settings_that_are_too_long_are_refused(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text("# " + "x" * 8_000_000)
    with pytest.raises(ParseError, match="at most 8,000,000"):
        read_table(tmp_path / "long.toml")
    (tmp_path / "odd.toml").write_text("x = " + "9" * 5000)
    with pytest.raises(ParseError, match=r"odd\.toml"):
        read_table(tmp_path / "odd.toml")


@pytest.mark.parametrize("extension", ["bvh", "amc", "trc", "glb"])
def test_names_that_are_too_long_are_refused_in_words(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"{'a' * 300}.{extension}"
    walk = performer.act("walk", seconds=0.1, fps=30)
    with pytest.raises(PoiseError):
        poise.write(poise.virtual_markers(walk) if extension == "trc" else walk, path)
    for name in (path, f"{path}#run"):
        with pytest.raises(PoiseError):
            poise.read(name)
