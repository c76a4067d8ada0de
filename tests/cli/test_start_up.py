"""The program starts quickly, fails in one line and leaves quietly. Run as users run it: in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from poise.cli import main
from poise.library import datasets

HEAVY = {"numba", "scipy", "matplotlib", "numpy", "pooch", "requests", "cyclopts", "rich"}


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        timeout=600,
        check=False,
    )


def poise(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return python("-c", "import sys; from poise.cli import main; sys.exit(main())", *arguments, **environment)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], []])
def test_nothing_heavy_is_imported_to_say_what_there_is(arguments: list[str]) -> None:
    script = f"""if True:
        import sys
        from poise.cli import main
        main({arguments!r})
        print(*sys.modules, file=sys.stderr)
    """
    done = python("-c", script)
    assert "poise" in done.stdout
    assert not HEAVY & set(done.stderr.split())


def test_importing_the_package_imports_nothing_heavy() -> None:
    done = python("-c", "import poise, sys; print(*sys.modules)")
    assert "poise" in done.stdout.split()
    assert not HEAVY & set(done.stdout.split())


def test_the_first_page_of_the_studio_waits_for_nothing_that_only_some_work_needs() -> None:
    done = python("-c", "import poise.studio.panels, sys; print(*sys.modules)")
    assert "poise.studio.panels" in done.stdout.split()
    assert not {"scipy.signal", "scipy.stats", "scipy.optimize"} & set(done.stdout.split())


def test_help_starts_within_its_budget() -> None:
    def seconds() -> float:
        """Of the processor: another program's time does not count."""
        before = os.times()
        assert poise("--help").returncode == 0
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    assert any(seconds() < 0.4 for _ in range(5))


def test_a_missing_file_is_one_line_and_code_2() -> None:
    done = poise("info", "nowhere.bvh")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("poise: ")
    assert done.stderr.count("\n") == 1
    assert "nowhere.bvh" in done.stderr


@pytest.mark.parametrize(("arguments", "environment"), [(["--debug"], {}), ([], {"POISE_DEBUG": "1"})])
def test_debug_shows_where_a_mistake_arose(arguments: list[str], environment: dict[str, str]) -> None:
    done = poise("info", "nowhere.bvh", *arguments, **environment)
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_a_reader_that_leaves_early_is_no_error() -> None:
    script = "import sys; from poise.cli import main; sys.exit(main(['data', 'list']))"
    with subprocess.Popen(
        [sys.executable, "-u", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        complaints = process.stderr.read()
    assert process.returncode == 1
    assert "Traceback" not in complaints
    assert "BrokenPipe" not in complaints


def test_running_the_module_is_running_the_program(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "poise", "--version"], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stdout.startswith("poise ")


def test_an_interrupt_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(datasets, "catalogue", interrupted)
    assert main(["data", "list"]) == 130
    assert capsys.readouterr() == ("", "")


def test_an_unknown_command_suggests_a_known_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inof", "walk.bvh"]) == 2
    message = capsys.readouterr().err
    assert message.startswith("poise: ")
    assert message.count("\n") == 1
    assert "did you mean info" in message
