"""Memory that a studio no longer needs goes back to the system."""

import platform
from pathlib import Path

import numpy as np
import pytest

from poise.studio.memory import trim_memory

PIECES, PIECE = 1000, 60_000  # bytes: taken from the heap


def held() -> float:
    """Megabytes of this process alone."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1000 for line in lines if line.startswith("RssAnon"))


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be asked to")
def test_freed_memory_below_a_live_object_goes_back() -> None:
    pieces = [np.ones(PIECE, dtype=np.uint8) for _ in range(PIECES)]
    last = pieces[-1]
    del pieces
    before = held()
    trim_memory()
    assert held() < before - 0.8 * PIECES * PIECE / 1e6
    assert last.all()
