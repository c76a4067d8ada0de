"""How functions of the compiled core are compiled: one place for Numba's options."""

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """Compile on first call and cache on disk; float64 semantics kept (no fastmath: it changes bits between runs)."""
    return cast(Function, njit(cache=True, nogil=True, error_model="numpy")(function))
