"""What the tests check calls of Poise with: the annotated types and array shapes, by beartype and jaxtyping.

In every test each function's calls number 1, 2, 4, 8 and so on are checked: a check takes longer than most functions
do, and a test that calls one ten thousand times calls it with the same few shapes.
"""

from collections import Counter
from collections.abc import Callable
from functools import wraps
from inspect import isclass
from pathlib import Path
from typing import Any

import jaxtyping
import numpy as np
from beartype import BeartypeConf, beartype
from jaxtyping import AbstractArray

from source_trees import SOURCE, source_files

_jaxtyped, _calls = jaxtyping.jaxtyped, Counter[str]()
_check = beartype(conf=BeartypeConf(is_pep484_tower=True))
_CHECKERS: dict[tuple[Any, ...], Callable[..., Any]] = {}


def begin_a_test() -> None:
    """Count the calls of each function from one again."""
    _calls.clear()


def check_some_calls(**options: Any) -> Callable[[Any], Any]:
    """In place of `jaxtyping.jaxtyped`, which the import hook puts on every class and function.

    Constructors are left to their own checks, which say more and take array-likes.
    """

    def decorate(thing: Any) -> Any:
        return (
            thing if isclass(thing) or thing.__name__ == "__init__" else _some_calls_checked(thing, options)
        )

    return decorate


def _some_calls_checked(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    """A checker is made at a function's first call: a process calls a part of them, and all would take seconds."""
    name, checked = f"{function.__module__}.{function.__qualname__}", list[Callable[..., Any]]()

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        _calls[name] += 1
        if _calls[name] & (_calls[name] - 1):  # not a power of two
            return function(*args, **kwargs)
        if not checked:
            checked.append(_jaxtyped(**options)(function))
        return checked[0](*args, **kwargs)

    return call


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function within another is made again at every call of that one, and shares the checker of the first."""
    key = (function.__module__, function.__qualname__, *function.__annotations__.items())
    if "<locals>" not in function.__qualname__:
        return _checked(function)
    if key not in _CHECKERS:
        _CHECKERS[key] = _checked(function)
    return _CHECKERS[key]


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    returned = function.__annotations__.get("return")
    is_array = isinstance(returned, type) and issubclass(returned, AbstractArray)
    return _scalars_as_arrays(_check(function)) if is_array else _check(function)


def _scalars_as_arrays(checked: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy returns a scalar where an array of no axes is meant. jaxtyping hands a result over as the last keyword."""

    def check_call(*args: Any, **kwargs: Any) -> Any:
        name, result = kwargs.popitem()
        return checked(
            *args, **kwargs, **{name: np.asarray(result) if isinstance(result, np.generic) else result}
        )

    return check_call


def checked_modules() -> list[str]:
    """Every module but the compiled ones: Numba cannot compile a function that a checker has wrapped."""
    files = (file for file in source_files() if file.name != "__init__.py" and not _is_compiled(file))
    return [".".join(file.relative_to(SOURCE.parent).with_suffix("").parts) for file in files]


def _is_compiled(file: Path) -> bool:
    source = file.read_text(encoding="utf-8")
    return "from numba import" in source or "@compiled" in source
