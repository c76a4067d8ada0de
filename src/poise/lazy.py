"""Names of a package that are imported when they are first used."""

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from poise.errors import InvalidValueError, PoiseError, UnknownNameError


def lazily(package: str, homes: Mapping[str, str], *, explaining: bool = False) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package. `homes` maps modules to names; the names under "" are modules.

    With `explaining`, functions name a wrong argument when they fail (see `explained`).
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{home_of[name] or name}")
        value = getattr(module, name) if home_of[name] else module
        value = explained(value) if explaining and inspect.isfunction(value) else value
        setattr(sys.modules[package], name, value)
        return value

    return find


def explained(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function; an exception of Python's own becomes a PoiseError if an argument is not what was declared.

    Arguments are compared with their annotations only after a failure, so a call that succeeds costs nothing more.
    """

    @wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        try:
            return function(*arguments, **options)
        except PoiseError:
            raise
        except Exception as error:
            known = inspect.signature(function).parameters
            try:
                given = inspect.signature(function).bind(*arguments, **options).arguments
                hints = get_type_hints(function)
            except NameError:
                raise error from None
            except TypeError:  # Python's own refusal of the call
                misspelt = next((name for name in options if name not in known), None)
                if misspelt is None:
                    raise error from None
                raise TypeError(f"{error}: {UnknownNameError('argument', misspelt, known)}") from None
            for name, value in given.items():
                if name in hints and not _fits(value, hints[name]):
                    raise InvalidValueError(
                        f"`{name}` of poise.{function.__name__} must be {known[name].annotation}; got {value!r:.60}"
                    ) from error
            raise

    return called


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value may be what an annotation declares; what cannot be decided fits."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _fits(value, get_args(hint)[0])
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in get_args(hint))
    if origin is Literal:
        return value in get_args(hint)
    kind = NoneType if hint is None else origin or hint
    if kind is float:
        return isinstance(value, int | float) and abs(value) < float("inf")
    if not isinstance(kind, type):
        return True
    try:
        return isinstance(value, kind)
    except TypeError:  # a protocol that cannot be looked at
        return True
