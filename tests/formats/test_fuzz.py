"""A short run of the fuzzer, so that it and the readers stay sound; the long run is fuzz/fuzz_formats.py itself."""

import argparse
import contextlib
import json
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
    result = fuzz("--count", "500", "--seed", "12345", folder=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "500 inputs, 0 failures" in result.stdout


@pytest.mark.slow
def test_a_run_that_is_resumed_gives_the_same_counts_as_one(tmp_path: Path) -> None:
    fuzz("--count", "50", "--seed", "7", folder=tmp_path / "one")
    for count in ("20", "50"):
        fuzz("--count", count, "--seed", "7", "--resume", folder=tmp_path / "two")
    one, two = (json.loads((tmp_path / name / "fuzz_formats-7.json").read_text()) for name in ("one", "two"))
    assert one["next"] == 50
    assert set(one["outcomes"]) == {"bvh", "acclaim", "trc", "gltf", "amass", "mesh", "c3d"}
    assert one["outcomes"] == two["outcomes"]


# --- the fuzzer sees what it should --------------------------------------------------------------------------------


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FUZZER.parent))
    module = import_module("running")
    monkeypatch.setattr(module, "LONGEST_SECONDS", 0.2)
    monkeypatch.setattr(module, "LAST_SECONDS", 0.5)
    return module


def refuse() -> None:
    raise PoiseError("no")


def break_down() -> None:
    raise KeyError("missing")


def mislead() -> None:
    raise AssertionError("not finite")


def grumble() -> None:
    warnings.warn("overflow", RuntimeWarning, stacklevel=2)


def dawdle() -> None:
    end = time.process_time() + 5
    while time.process_time() < end:
        with contextlib.suppress(Exception):
            sum(range(1000))


@pytest.mark.parametrize(
    ("case", "outcome", "what"),
    [
        (lambda: None, "taken", ""),
        (lambda: "refused", "refused", ""),
        (mislead, "wrong", "not finite"),
        (refuse, "refused", ""),
        (break_down, "exception", "KeyError"),
        (grumble, "exception", "RuntimeWarning"),
        (dawdle, "hang", "took more than"),
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
    assert running.attempt(lambda: None) == ("growth", "memory grew by 600 MB")


def test_the_fuzzer_ends_code_that_cannot_be_interrupted(running: ModuleType, tmp_path: Path) -> None:
    def case(_generator: np.random.Generator, _folder: Path) -> None:
        signal.signal(signal.SIGPROF, signal.SIG_IGN)
        dawdle()

    options = argparse.Namespace(count=1, first=0, seconds=60.0, seed=0, save=tmp_path, resume=False)
    assert running.run({"kind": case}, options) == 1
    counts = json.loads(next(tmp_path.glob("*.json")).read_text())
    assert counts["outcomes"]["kind"] == {"hang": 1}


def test_the_fuzzer_survives_a_crash_and_saves_what_caused_it(running: ModuleType, tmp_path: Path) -> None:
    def case(generator: np.random.Generator, folder: Path) -> None:
        value = int(generator.integers(0, 5))
        (folder / "input").write_text(str(value))
        if value == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    options = argparse.Namespace(count=20, first=0, seconds=60.0, seed=0, save=tmp_path, resume=False)
    failures = running.run({"kind": case}, options)
    assert 0 < failures < 20
    counts = json.loads(next(tmp_path.glob("*.json")).read_text())
    assert counts["outcomes"]["kind"] == {"crash": failures, "taken": 20 - failures}
    assert [path.read_text() for path in tmp_path.glob("*/input")] == ["0"] * failures
