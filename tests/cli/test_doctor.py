"""`poise doctor`: what is installed, what is missing, how fast."""

from importlib import metadata

import pytest

from cli.conftest import Program
from poise.cli.doctor import optional_packages


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
    assert "missing ezc3d: pip install 'poise[c3d]'" in poise("doctor").out


def test_extras_for_developers_are_left_out() -> None:
    assert "studio" in optional_packages()
    assert "bench" not in optional_packages()
