"""The package's public face: every name it promises is there, typed and listed."""

import importlib.metadata

import pytest

import poise


@pytest.mark.parametrize("name", poise.__all__)
def test_every_promised_name_is_there_and_listed(name: str) -> None:
    assert getattr(poise, name) is not None
    assert name in dir(poise)


def test_the_version_is_the_installed_one() -> None:
    assert poise.__version__ == importlib.metadata.version("poise")


def test_other_names_are_errors() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'frobnicate'"):
        _ = poise.frobnicate
