"""Functions compile wherever Poise is installed."""

import os
import pickle
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest
from numba import njit
from numba.core.caching import CompileResultCacheImpl

from poise.compiled import compiled, is_kept, kernels_compiled, work_clock


def twice(x: int) -> int:
    return 2 * x


def test_a_function_that_cannot_be_cached_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompileResultCacheImpl, "_locator_classes", [])  # as where no folder can be written
    faster = compiled(twice)
    assert faster(21) == 42
    assert faster.signatures


def test_a_cache_that_names_a_module_which_has_moved_counts_as_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("before_the_upgrade")
    gone = type("Gone", (), {"__module__": module.__name__})
    monkeypatch.setitem(sys.modules, module.__name__, module)
    module.Gone = gone  # type: ignore[attr-defined]
    faster = compiled(twice)
    index = Path(faster._cache._cache_file._index_path)
    assert faster(21) == 42
    version = pickle.loads(index.read_bytes())
    index.write_bytes(pickle.dumps(version) + pickle.dumps((None, {gone(): "twice.1.nbc"})))
    monkeypatch.delitem(sys.modules, module.__name__)
    assert compiled(twice)(21) == 42


def test_two_processes_that_compile_at_once_never_share_a_file() -> None:
    """Each sees an empty cache, as before the other has saved; what the first one named is still what it saved."""
    whole = compiled(twice)
    file = whole._cache._cache_file
    file.flush()
    assert not is_kept(whole)
    assert whole(21) == 42
    assert is_kept(whole)
    first = file._load_index()
    file.flush()
    assert compiled(twice)(2.5) == 5.0
    second = file._load_index()
    assert not set(first.values()) & set(second.values())
    file._save_index(first)
    again = compiled(twice)
    assert again(21) == 42
    assert again.stats.cache_hits


def test_constant_arguments_share_one_version() -> None:
    inner = compiled(twice)
    assert njit(lambda x: inner(1) + inner(2) + inner(x))(3) == 12
    assert len(inner.signatures) == 1


def test_a_change_of_a_callee_reaches_its_callers(tmp_path: Path) -> None:
    (tmp_path / "caller.py").write_text(
        "from callee import inner\nfrom poise.compiled import compiled\n\n\n"
        "@compiled\ndef outer(x: float) -> float:\n    return inner(x) + 1.0\n\n\nprint(outer(1.0))\n"
    )
    answers = []
    for factor in (2.0, 30.0):
        (tmp_path / "callee.py").write_text(
            "from poise.compiled import compiled\n\n\n"
            f"@compiled\ndef inner(x: float) -> float:\n    return {factor} * x\n"
        )
        ran = subprocess.run(
            [sys.executable, "caller.py"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        answers.append(float(ran.stdout))
    assert answers == [3.0, 31.0]


@pytest.mark.slow
def test_a_change_of_an_answer_reaches_those_who_ask(tmp_path: Path) -> None:
    (tmp_path / "asking.py").write_text(
        "from pathlib import Path\nfrom poise.compiled import compiled\n\n\n"
        "def asked(x: float) -> float:\n    raise NotImplementedError\n\n\n"
        "asked.answered_in = Path(__file__).parent / 'answers'\n\n\n"
        "@compiled\ndef outer(x: float) -> float:\n    return asked(x) + 1.0\n"
    )
    (tmp_path / "answers").mkdir()
    answers, paths = [], os.pathsep.join([str(tmp_path), *sys.path])
    for factor in (2.0, 30.0):
        (tmp_path / "answers" / "own.py").write_text(
            "from asking import asked, outer\nfrom numba.extending import overload\n\n"
            f"overload(asked)(lambda x: lambda x: {factor} * x)\nprint(outer(1.0))\n"
        )
        ran = subprocess.run(
            [sys.executable, "answers/own.py"], cwd=tmp_path, env={**os.environ, "PYTHONPATH": paths},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        answers.append(float(ran.stdout))
    assert answers == [3.0, 31.0]


def test_the_work_clock_stands_still_while_a_kernel_is_compiled() -> None:
    kernel, before = njit(lambda x: x + 1.0), kernels_compiled()
    worked, waited = work_clock(), time.perf_counter()
    kernel(1.0)
    worked, waited = work_clock() - worked, time.perf_counter() - waited
    assert kernels_compiled() > before
    assert worked < 0.5 * waited


SHIPPED = """\
from poise.compiled import compiled, kernels_compiled


@compiled
def twice(x: float) -> float:
    return 2 * x


print(twice(1.5), kernels_compiled())
"""


def test_kernels_that_came_with_a_package_are_read_at_another_place_and_time(tmp_path: Path) -> None:
    """As from a wheel that was unpacked into a folder that its user may not write."""
    made, installed = tmp_path / "made", tmp_path / "installed"
    for folder in (made, installed):
        folder.mkdir()
        (folder / "module.py").write_text(SHIPPED)
    answer = [_run(made), _run(made)]
    assert answer == ["3.0 1", "3.0 0"]
    shutil.copytree(made / "__pycache__", installed / "__pycache__")
    os.utime(installed / "module.py", (0, 0))
    assert _run(installed, home=tmp_path) == "3.0 0"
    (installed / "module.py").write_text(SHIPPED.replace("2 * x", "x + x"))
    assert _run(installed, home=tmp_path) == "3.0 1"


def _run(folder: Path, home: Path | None = None) -> str:
    """What the module prints; with a `home`, kernels are kept there, as where the module's folder is read-only."""
    here = (
        {"XDG_CACHE_HOME": str(home), "NUMBA_CACHE_LOCATOR_CLASSES": "UserWideCacheLocator"} if home else {}
    )
    environment = {name: text for name, text in os.environ.items() if name != "NUMBA_CACHE_DIR"} | here
    command = [sys.executable, "-c", "import module"]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return ran.stdout.strip()
