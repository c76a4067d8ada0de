"""A short run of the fuzzer, so that it and the readers stay sound; the long run is fuzz/fuzz_formats.py itself."""

import importlib.util
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import poise
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
def fuzzer(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(FUZZER.parent))
    spec = importlib.util.spec_from_file_location("fuzz_formats", FUZZER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fuzz_formats", module)
    spec.loader.exec_module(module)
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
        try:
            time.sleep(0.01)
        except Exception:
            continue


@pytest.mark.parametrize(
    ("reader", "outcome", "what"),
    [
        (lambda: None, "read", ""),
        (refuse, "refused", ""),
        (break_down, "failed", "KeyError"),
        (grumble, "failed", "RuntimeWarning"),
        (dawdle, "failed", "took more than"),
    ],
)
def test_the_fuzzer_notices(
    fuzzer: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    reader: Callable[[], None],
    outcome: str,
    what: str,
) -> None:
    monkeypatch.setattr(poise, "read", lambda _path, **_options: reader(), raising=False)
    tally = fuzzer.Tally()
    found = fuzzer._read(Path("input.bvh"), "bvh", tally=tally)
    assert dict(tally.outcomes) == {outcome: 1}
    assert what in found
    assert bool(found) == bool(what)


def test_the_fuzzer_notices_memory(fuzzer: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = iter([100 * 2**20, 700 * 2**20])
    monkeypatch.setattr(fuzzer, "_peak_memory", lambda: next(peaks))
    monkeypatch.setattr(poise, "read", lambda _path, **_options: None, raising=False)
    assert fuzzer._read(Path("input.bvh"), "bvh", tally=fuzzer.Tally()) == "memory grew by 600 MB"
