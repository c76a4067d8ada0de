"""How functions of the compiled core are compiled: one place for Numba's options."""

import hashlib
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
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
        _depend_on_callees(dispatcher, function)
        _ignore_unreadable_index(dispatcher._cache._cache_file)
        _name_by_content(dispatcher._cache._cache_file)
    return cast(Function, dispatcher)


def _depend_on_callees(dispatcher: Any, function: Function) -> None:
    """Code of functions from other modules is part of a function's own: it is compiled again when their files change.

    Numba looks at the file that a function stands in alone, and would keep what its callees did before. A plain
    function that others answer in compiled code (see `priors.forms`) says by `answered_in` in which folder.
    """
    file, names = dispatcher._cache._cache_file, dict(dispatcher.py_func.__globals__)
    rooms = [
        one for one in names.values() if isinstance(one, ModuleType) and one.__name__.startswith("poise")
    ]
    callees = [value for known in (names, *map(vars, rooms)) for value in list(known.values())]
    others = [
        one for one in callees if isinstance(one, type(dispatcher)) and one.__module__ != function.__module__
    ]
    stamps = {
        str(one._cache._cache_file._source_stamp) for one in others if hasattr(one._cache, "_cache_file")
    }
    folders = {
        one.answered_in for one in callees if isinstance(one, FunctionType) and hasattr(one, "answered_in")
    }
    everything = repr((file._source_stamp, sorted(stamps), [_stamp(folder) for folder in sorted(folders)]))
    file._source_stamp = hashlib.sha256(everything.encode()).hexdigest()


@cache
def _stamp(folder: Path) -> list[tuple[str, int, int]]:
    """All modules in a folder, with when they were changed and how long they are."""
    found = [(path.name, path.stat()) for path in sorted(folder.rglob("*.py"))]
    return [(name, one.st_mtime_ns, one.st_size) for name, one in found]


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
