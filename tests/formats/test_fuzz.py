"""A short run of the fuzzer, so that it and the readers stay sound; the long run is fuzz/fuzz_formats.py itself."""

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from poise.errors import PoiseError

FUZZER = Path(__file__).parents[2] / "fuzz" / "fuzz_formats.py"


def fuzz(*options: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(FUZZER), "--save", str(folder), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    result = fuzz("--count", "400", "--seed", "12345", "--c3d", "100", folder=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "400 inputs, 0 failures" in result.stdout
    assert "100 inputs, 0 failures" in result.stdout


def test_the_same_seed_gives_the_same_inputs(tmp_path: Path) -> None:
    first, second = (fuzz("--count", "40", "--seed", "7", "--c3d", "0", folder=tmp_path) for _ in range(2))
    tables = [[line for line in run.stderr.splitlines() if "│" in line] for run in (first, second)]
    counts = [[line.split("│")[1:6] for line in table] for table in tables]
    assert len(counts[0]) == 4
    assert counts[0] == counts[1]


# --- the fuzzer sees what it should --------------------------------------------------------------------------------


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FUZZER.parent))
    module = import_module("running")
    monkeypatch.setattr(module, "LONGEST_SECONDS", 0.2)
    return module


def refuse() -> None:
    raise PoiseError("no")


def break_down() -> None:
    raise KeyError("missing")


def grumble() -> None:
    warnings.warn("overflow", RuntimeWarning, stacklevel=2)


def dawdle() -> None:
    end = time.monotonic() + 5
    while time.monotonic() < end:
        with contextlib.suppress(Exception):
            sum(range(1000))


@pytest.mark.parametrize(
    ("case", "outcome", "what"),
    [
        (lambda: None, "taken", ""),
        (refuse, "refused", ""),
        (break_down, "failed", "KeyError"),
        (grumble, "failed", "RuntimeWarning"),
        (dawdle, "failed", "took more than"),
    ],
)
def test_the_fuzzer_notices(running: ModuleType, case: Callable[[], None], outcome: str, what: str) -> None:
    found, words = running.attempt(case)
    assert found == outcome
    assert what in words
    assert bool(words) == bool(what)


def test_the_fuzzer_notices_memory(running: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = iter([100 * 2**20, 700 * 2**20])
    monkeypatch.setattr(running, "peak_memory", lambda: next(peaks))
    assert running.attempt(lambda: None) == ("failed", "memory grew by 600 MB")


def test_the_fuzzer_survives_a_crash_and_saves_what_caused_it(running: ModuleType, tmp_path: Path) -> None:
    def case(generator: np.random.Generator, folder: Path) -> None:
        value = int(generator.integers(0, 5))
        (folder / "input").write_text(str(value))
        if value == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    options = argparse.Namespace(count=20, seconds=60.0, seed=0, save=tmp_path)
    failures = running.run({"kind": case}, options)
    assert 0 < failures < 20
    assert [path.read_text() for path in tmp_path.glob("*/input")] == ["0"] * failures
