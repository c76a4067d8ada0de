"""Files written whole or not at all."""

import os
from pathlib import Path

from poise.formats.files import replacing, try_lock


def test_parts_of_a_writer_that_was_killed_are_removed(tmp_path: Path) -> None:
    left, living, new = (tmp_path / f".a.bvh.{name}.part" for name in ("left", "living", "new"))
    for part in (left, living, new):
        part.touch()
    for part in (left, living):
        os.utime(part, (0, 0))
    with living.open("r+b") as writer:
        assert try_lock(writer.fileno())
        with replacing(tmp_path / "a.bvh") as file:
            file.write("whole")
    assert {path.name for path in tmp_path.iterdir()} == {"a.bvh", living.name, new.name}
    assert (tmp_path / "a.bvh").read_text() == "whole"
