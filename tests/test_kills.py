"""A few kills of each kind, so that nothing is lost by one; the long run is `make kills`."""

import subprocess
import sys
from pathlib import Path

KILLS = Path(__file__).parents[1] / "fuzz" / "kills.py"


def test_nothing_is_lost_or_mixed_or_left_behind_by_a_kill() -> None:
    command = [sys.executable, str(KILLS), "--count", "14", "--seed", "7"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("0 failures") == 7
