"""`poise doctor`: what is installed, what is missing, how fast."""

from importlib import metadata
from pathlib import Path

import pytest

from cli.conftest import Program
from poise.cli.program import optional_packages
from poise.errors import installing


def test_it_reports_versions_extras_and_speed(poise: Program) -> None:
    run = poise("doctor")
    assert run.code == 0
    assert f"numba {metadata.version('numba')}" in run.out
    assert "poses a second" in run.out


def test_a_missing_package_is_named_with_its_remedy(poise: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = metadata.version

    def version(name: str) -> str:
        if name == "ezc3d":
            raise metadata.PackageNotFoundError(name)
        return installed(name)

    monkeypatch.setattr(metadata, "version", version)
    assert f"missing ezc3d: {installing('c3d')}" in poise("doctor").out


def test_a_damaged_model_in_the_cache_is_named(
    poise: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POISE_CACHE", str(tmp_path))
    assert "cache    healthy" in poise("doctor").out
    (tmp_path / "walk.poise").write_bytes(b"not a model")
    assert f"damaged, delete: {tmp_path / 'walk.poise'}" in poise("doctor").out


def test_a_cache_that_cannot_be_written_is_reported(
    poise: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("POISE_CACHE", str(tmp_path / "file" / "cache"))
    assert "set POISE_CACHE to another folder" in poise("doctor").out


def test_extras_for_developers_are_left_out() -> None:
    assert "studio" in optional_packages()
    assert "bench" not in optional_packages()
