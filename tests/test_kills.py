"""A few kills of commands, so that nothing is lost by one; all kinds, the studio too, are killed by `make kills`."""

import subprocess
import sys
from pathlib import Path

import pytest

KILLS = Path(__file__).parents[1] / "fuzz" / "kills.py"
COMMANDS = ("learn", "convert", "convert pairs", "library build", "perform UDP", "perform video")


@pytest.mark.slow
def test_nothing_is_lost_or_mixed_or_left_behind_by_a_kill() -> None:
    command = [sys.executable, str(KILLS), "--count", "12", "--seed", "7", "--only", *COMMANDS]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count(" 0 failures") == len(COMMANDS)
