"""The program run within the test's own process, and a clip of the performer for it to work on."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from poise.cli import main


@dataclass(frozen=True)
class Run:
    """What a command came to."""

    code: int
    out: str
    err: str


Program = Callable[..., Run]


@pytest.fixture
def poise(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("POISE_DEBUG", raising=False)

    def run(*arguments: object) -> Run:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        return Run(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A second of walking at 60 Hz, as BVH."""
    path = tmp_path_factory.mktemp("clips") / "walk.bvh"
    assert main(["act", "walk", "--seconds", "1", "--fps", "60", "-o", str(path)]) == 0
    return path
