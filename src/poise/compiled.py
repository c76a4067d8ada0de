"""How functions of the compiled core are compiled: one place for Numba's options."""

import hashlib
import pickle
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
    dispatcher: Any = njit(cache=cache, **_OPTIONS)(function)
    if cache:
        _ignore_unreadable_index(dispatcher._cache._cache_file)
        _name_by_content(dispatcher._cache._cache_file)
    return cast(Function, dispatcher)


def _ignore_unreadable_index(file: Any) -> None:
    """An index from before an upgrade may name modules that have moved; Numba would fail on it at every call."""
    load_index = file._load_index

    def readable() -> dict[Any, str]:
        try:
            return cast(dict[Any, str], load_index())
        except (ImportError, AttributeError, EOFError, pickle.UnpicklingError):
            return {}

    file._load_index = readable


def _name_by_content(file: Any) -> None:
    """Numba counts a function's files. Two processes that compile at once would give one name to two signatures."""

    def save(key: Any, data: Any) -> None:
        number = int(hashlib.sha256(repr(key).encode()).hexdigest()[:12], 16)
        file._save_data(name := file._data_name(number), data)
        file._save_index({**file._load_index(), key: name})

    file.save = save
