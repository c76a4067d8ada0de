"""The soak of the studio ends with all that it has started."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SOAK = Path(__file__).parents[1] / "fuzz" / "soak.py"
PATIENCE = 60.0  # seconds, on a busy machine


def children(process: int) -> list[int]:
    """The processes that a process has started."""
    listed = Path(f"/proc/{process}/task/{process}/children")
    return [int(number) for number in listed.read_text(encoding="ascii").split()]


def runs(process: int) -> bool:
    """Whether a process runs: one that has ended may wait for whoever adopted it."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="reads /proc")
def test_a_killed_soak_leaves_no_studio_running(tmp_path: Path) -> None:
    soak = subprocess.Popen([sys.executable, SOAK, "--pages", "0", "--out", tmp_path])
    until = time.monotonic() + PATIENCE
    while not (tmp_path / "soak.csv").exists():  # the studio listens
        assert time.monotonic() < until
        time.sleep(0.1)
    (studio,) = children(soak.pid)
    soak.kill()
    soak.wait()
    try:
        while runs(studio):
            assert time.monotonic() < until
            time.sleep(0.1)
    finally:
        if runs(studio):
            os.kill(studio, signal.SIGKILL)
