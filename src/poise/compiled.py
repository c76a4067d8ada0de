"""Numba options of the compiled core, in one place, and where its kernels are kept.

Kernels are made for x86-64-v3, so that they serve on every such processor, and are found by the content of their
sources. A wheel may bring them ready (`make wheels`): they lie where Numba keeps kernels, in `__pycache__`.
"""

import hashlib
import pickle
import re
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar, cast

import numba
from llvmlite import binding
from numba import njit, types
from numba.core import caching, event

Function = TypeVar("Function", bound=Callable[..., object])

_COMPILED = re.compile(rb"poise\.compiled import|overload")
_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "no_cfunc_wrapper": True,  # nothing is called from C; without the wrapper, compiling is a tenth faster
}

config: Any = numba.config
V3 = "x86-64-v3"
_V3_FEATURES = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
if config.CPU_NAME is None and all(map(binding.get_host_cpu_features().get, _V3_FEATURES)):
    config.CPU_NAME, config.CPU_FEATURES = V3, ""


def compiled(function: Function) -> Function:
    """Compile on first call and cache on disk, with float64 semantics (no fastmath: it changes bits between machines).

    If no cache folder is writable, as in some containers, the function is compiled at every start.
    """
    return _compiled(function, {})


def compiled_sums(function: Function) -> Function:
    """Compile like `compiled`, with sums in any order, as BLAS takes them: for products with large matrices."""
    return _compiled(function, {"fastmath": {"reassoc", "contract"}})


def inlined(function: Function) -> Function:
    """Copy a function into the compiled functions of its module that call it, instead of compiling it separately."""
    return cast(Function, njit(inline="always", **_OPTIONS)(function))


def is_kept(function: Callable[..., object]) -> bool:
    """Whether kernels of a compiled function are kept from an earlier use, or came with the package."""
    file = getattr(getattr(function, "_cache", None), "_cache_file", None)
    return file is None or any(one._load_index() for one in (file, getattr(file, "shipped", None)) if one)


def _compiled(function: Function, options: dict[str, Any]) -> Function:
    try:
        return _dispatcher(function, options, cache=True)
    except RuntimeError:
        return _dispatcher(function, options, cache=False)


def _dispatcher(function: Function, options: dict[str, Any], *, cache: bool) -> Function:
    dispatcher: Any = njit(cache=cache, **_OPTIONS, **options)(function)
    _ignore_constants(dispatcher)
    if cache:
        file = dispatcher._cache._cache_file
        _depend_on_callees(dispatcher, function)
        _ignore_unreadable_index(file)
        _name_by_content(file)
        if not config.CACHE_DIR:
            _use_shipped(file, Path(function.__code__.co_filename).parent / "__pycache__")
    return cast(Function, dispatcher)


def _ignore_constants(dispatcher: Any) -> None:
    """Compile a function once for all values of a constant argument; Numba would compile it for each value."""
    template, plain = dispatcher.get_call_template, cast(Callable[..., Any], types.unliteral)

    def of_plain_types(args: Any, kws: Any) -> Any:
        return template(tuple(map(plain, args)), {name: plain(kind) for name, kind in kws.items()})

    dispatcher.get_call_template = of_plain_types


def _depend_on_callees(dispatcher: Any, function: Function) -> None:
    """Recompile a function when the files of the functions it calls change: their code is inlined into its own.

    Numba checks only the file of the function itself and would keep the old code of its callees. A plain function
    that is implemented by compiled code elsewhere (see `priors.forms`) names that folder in `answered_in`.
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
def _stamp(folder: Path) -> str:
    """A hash of every module with compiled code in a folder."""
    sources = [path.read_bytes() for path in sorted(folder.rglob("*.py"))]
    return hashlib.sha256(b"".join(filter(_COMPILED.search, sources))).hexdigest()


def _use_shipped(file: Any, folder: Path) -> None:
    """Read kernels beside the sources where the user's are kept elsewhere: an installed package may be read-only."""
    if Path(file._cache_path) == folder:
        return
    shipped = cast(Any, caching).IndexDataCacheFile(
        str(folder), file._index_name.removesuffix(".nbi"), file._source_stamp
    )
    _ignore_unreadable_index(shipped)
    own, file.shipped = file.load, shipped
    file.load = lambda key: own(key) or shipped.load(key)


def _ignore_unreadable_index(file: Any) -> None:
    """Ignore a cache index that cannot be read: after an upgrade it may name moved modules, and Numba would raise."""
    load_index = file._load_index

    def readable() -> dict[Any, str]:
        try:
            return cast(dict[Any, str], load_index())
        except (ImportError, AttributeError, EOFError, pickle.UnpicklingError):
            return {}

    file._load_index = readable


def _name_by_content(file: Any) -> None:
    """Name cache files by content: Numba numbers them, and two concurrent processes may reuse one number."""

    def save(key: Any, data: Any) -> None:
        number = int(hashlib.sha256(repr(key).encode()).hexdigest()[:12], 16)
        file._save_data(name := file._data_name(number), data)
        file._save_index({**file._load_index(), key: name})

    file.save = save


class _Spent(threading.local):
    """What this thread has spent on compiling kernels, or on reading them from the cache."""

    depth, begun, seconds = 0, 0.0, 0.0


_SPENT = _Spent()


class _Preparing(event.Listener):
    """Hears of every kernel that is compiled or read."""

    compiled = 0  # kernels of all threads; reading one is no compilation

    def on_start(self, event: Any) -> None:
        if event.kind == "numba:compile":
            self.compiled += 1
            return
        _SPENT.depth += 1
        if _SPENT.depth == 1:
            _SPENT.begun = time.perf_counter()

    def on_end(self, event: Any) -> None:
        if event.kind == "numba:compile":
            return
        _SPENT.depth -= 1
        if _SPENT.depth == 0:
            _SPENT.seconds += time.perf_counter() - _SPENT.begun


_PREPARING = _Preparing()
for _kind in ("numba:compiler_lock", "numba:compile"):
    cast(Any, event).register(_kind, _PREPARING)


def work_clock() -> float:
    """Seconds, like `time.perf_counter`; it stands still while this thread compiles kernels or reads them."""
    return time.perf_counter() - _SPENT.seconds


def kernels_compiled() -> int:
    """How many kernels this process has compiled; those read from the cache do not count."""
    return _PREPARING.compiled
