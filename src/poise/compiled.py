"""How functions of the compiled core are compiled: one place for Numba's options."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., object])

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,  # nothing is called from C; without that wrapper, compiling takes a tenth less
}


def compiled(function: Function) -> Function:
    """Compile on first call and cache on disk; float64 semantics kept (no fastmath: it changes bits between runs).

    Where no folder can be written to cache in, as in some containers, it is compiled at every start.
    """
    try:
        return _compiled(function, cache=True)
    except RuntimeError:
        return _compiled(function, cache=False)


def _compiled(function: Function, *, cache: bool) -> Function:
    return cast(Function, njit(cache=cache, **_OPTIONS)(function))
