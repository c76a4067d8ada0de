"""The cache is where the user says, else where each platform keeps such things."""

import sys
from pathlib import Path

import pytest

from poise.motion.cache import cache_folder


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POISE_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)


def test_a_folder_of_the_users_choice_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    monkeypatch.setenv("POISE_CACHE", str(tmp_path / "chosen"))
    assert cache_folder() == tmp_path / "chosen"


@pytest.mark.parametrize(
    ("platform", "folder"),
    [("linux", ".cache/poise"), ("darwin", "Library/Caches/poise"), ("win32", "AppData/Local/poise")],
)
def test_without_a_choice_it_follows_the_platform(
    platform: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    assert cache_folder() == tmp_path / folder


def test_the_platforms_own_variable_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert cache_folder() == tmp_path / "caches" / "poise"
