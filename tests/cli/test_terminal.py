"""Progress lines: on every wait over two seconds, and none while a command waits for others."""

import time

import pytest

from poise.cli import terminal


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POISE_QUIET", raising=False)
    monkeypatch.setattr(terminal, "_FIRST_LINE", 0.1)
    monkeypatch.setattr(terminal, "_LINE_EVERY", 0.2)


def test_a_long_wait_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.waiting("pose"):
        time.sleep(0.5)
    assert capsys.readouterr().err.startswith("pose: ")


def test_a_short_wait_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.waiting("pose"):
        pass
    assert capsys.readouterr().err == ""


def test_a_command_with_progress_of_its_own_says_only_that(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.waiting("learn"), terminal.sharing("learning") as report:
        report(0.4)
        time.sleep(0.5)
    said = capsys.readouterr().err.splitlines()
    assert said
    assert all(line.startswith("learning, 40 %, ") for line in said)


def test_a_command_that_waits_for_others_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.waiting("serve"):
        terminal.stay()
        time.sleep(0.4)
    assert capsys.readouterr().err == ""


def test_quiet_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("POISE_QUIET", "1")
    with terminal.waiting("learn"), terminal.working("learning"):
        time.sleep(0.4)
    assert capsys.readouterr().err == ""
