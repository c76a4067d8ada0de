"""`poise correct`: corrections of one file from several processes at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from poise.cli import main
from poise.errors import PoiseError
from poise.formats import write
from poise.formats.files import alone_with
from poise.performer import act
from poise.solvers.corrections import Corrections


def test_corrections_made_at_once_are_all_kept(tmp_path: Path) -> None:
    walk = act("walk", seconds=0.2, fps=30)
    clips = [write(walk[n : n + 1], tmp_path / f"{n}.bvh") for n in range(4)]
    habits = tmp_path / "habits.json"

    def correct(number: int) -> int:
        return main(["correct", str(habits), str(clips[number % 4]), str(clips[(number + 1) % 4])])

    with ThreadPoolExecutor(6) as people:
        assert list(people.map(correct, range(6))) == [0] * 6
    assert len(Corrections.load(habits)) == 6
    assert main(["correct", str(habits), "--undo"]) == 0
    assert len(Corrections.load(habits)) == 5


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(PoiseError, match="No such file"), alone_with(tmp_path / "nowhere" / "habits.json"):
        pass
