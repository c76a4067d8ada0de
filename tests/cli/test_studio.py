"""`poise studio`: addresses, tokens, ports, and what is refused."""

import socket
from pathlib import Path

import pytest

from poise.cli import main
from poise.errors import InvalidValueError, installing
from poise.performer import act
from poise.priors.gaussian import GaussianPrior
from poise.studio.launch import prepared
from poise.studio.listening import PORT, listen
from poise.studio.models import ModelStore
from poise.studio.security import is_loopback


@pytest.fixture(scope="module")
def models() -> ModelStore:
    models = ModelStore()
    models.add(GaussianPrior.learn([act("walk", seconds=1.0, fps=20)], clusters=3), "walk")
    return models


def test_on_loopback_no_token_is_needed(models: ModelStore) -> None:
    with prepared(models, host="127.0.0.1", port=0, token=None) as ready:
        assert ready.address.startswith("http://127.0.0.1:")
        assert "token" not in ready.address
        ready.studio.close()


def test_elsewhere_a_token_is_made_up(models: ModelStore) -> None:
    with prepared(models, host="0.0.0.0", port=0, token=None) as ready:
        assert len(ready.address.partition("?token=")[2]) > 16
        ready.studio.close()


def test_a_port_that_is_taken_gives_way_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr("poise.studio.listening.PORT", port)
        with listen("127.0.0.1", None) as listener:
            assert listener.getsockname()[1] != port
        with pytest.raises(InvalidValueError, match="cannot listen"):
            listen("127.0.0.1", port)
    assert PORT == 8420


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--port", "99999"], "a port is a number from 0 to 65535"),
        (["nothing.bvh", "--no-open"], "nothing.bvh does not exist"),
    ],
)
def test_mistakes_are_one_line(arguments: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["studio", *arguments]) == 2
    assert why in capsys.readouterr().err


def test_a_missing_extra_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import builtins

    real = builtins.__import__

    def without_starlette(name: str, *rest: object, **options: object) -> object:
        if name == "poise.studio" and rest and "launch" in (rest[2] or ()):  # type: ignore[operator]
            raise ModuleNotFoundError("No module named 'starlette'", name="starlette")
        return real(name, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without_starlette)
    assert main(["studio", str(Path("walk.bvh"))]) == 2
    assert installing("studio") in capsys.readouterr().err


@pytest.mark.parametrize(
    ("host", "loopback"), [("localhost", True), ("::1", True), ("0.0.0.0", False), ("poise", False)]
)
def test_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


def test_without_its_page_no_address_is_offered(
    models: ModelStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("poise.studio.launch.PAGE", tmp_path)
    monkeypatch.setattr("poise.studio.launch.embedded", lambda **_: models)
    assert main(["studio", "--no-open"]) == 2
    shown = capsys.readouterr()
    assert "make page" in shown.err
    assert "http" not in shown.out
