"""How functions of the compiled core are compiled: one place for Numba's options."""

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Compile on first call and cache on disk; float64 semantics kept (no fastmath: it changes bits between runs)."""
    try:
        return _compiled(function, cache=True)
    except (
        RuntimeError
    ):  # no folder to cache in can be written, as in some containers: compile at every start
        return _compiled(function, cache=False)


def _compiled(function: Function, *, cache: bool) -> Function:
    return cast(Function, njit(cache=cache, nogil=True, error_model="numpy")(function))
