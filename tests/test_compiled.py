"""Functions compile wherever Poise is installed."""

import pytest
from numba.core.caching import CompileResultCacheImpl

from poise.compiled import compiled


def twice(x: int) -> int:
    return 2 * x


def test_a_function_that_cannot_be_cached_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompileResultCacheImpl, "_locator_classes", [])  # as where no folder can be written
    faster = compiled(twice)
    assert faster(21) == 42
    assert faster.signatures
