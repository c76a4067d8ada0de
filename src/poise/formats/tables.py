"""Declarative tables: a dataclass declares the contents of a table; one reader takes it from TOML, JSON or options.

A field's annotation declares valid values: `float`, `int`, `bool`, `str`, `Path` (relative to the file),
`Literal[...]`, an array such as `Float[Array, "keys 2"]`, another dataclass, `tuple[T, ...]`, `dict[str, T]`, or a
union of these; `None` marks optional fields. `Annotated` adds a `Range`, the valid words (`Among`), the name in the
file (`Named`), a custom reader (`Read`) and a help text. A dataclass checks conditions between fields itself and
raises `FieldError`.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from jaxtyping import AbstractArray

from poise.bounds import checked_depth, checked_text, is_number
from poise.errors import InvalidValueError, ParseError, UnknownNameError
from poise.formats.files import existing_file
from poise.formats.named_files import RefusedNameError, named_file

T = TypeVar("T")

TYPED = Path("constraints")  # path of tables that were typed, not read: they cannot name files
MOST_NAMES = 100  # dotted names in a key; they take quadratic time
_STRINGS_AND_COMMENTS = re.compile(r""""(?:[^"\\\n]|\\.)*"?|'[^'\n]*'?|\#[^\n]*""")


@dataclass(frozen=True)
class Range:
    """Bounds of a number; `above` is exclusive."""

    least: float = -np.inf
    most: float = np.inf
    above: float = -np.inf

    def __contains__(self, value: float) -> bool:
        return self.least <= value <= self.most and value > self.above

    def __str__(self) -> str:
        if np.isfinite(self.least) and np.isfinite(self.most):
            return f"from {self.least:g} to {self.most:g}"
        bounds = {"above": self.above, "of at least": self.least, "of at most": self.most}
        return " and ".join(f"{word} {bound:g}" for word, bound in bounds.items() if np.isfinite(bound))


@dataclass(frozen=True, eq=False)
class Among:
    """The valid words."""

    words: Collection[str]


@dataclass(frozen=True)
class Named:
    """The name of a field in a file, if it differs from its own."""

    name: str


@dataclass(frozen=True)
class Read:
    """The reader of a field that needs more than its own key."""

    function: Callable[[Table, str], Any]


class FieldError(InvalidValueError):
    """A value inconsistent with others in its table; `key` is its position, such as pins[2].to."""

    def __init__(self, key: str, message: str) -> None:
        self.key, self.message = key, message
        super().__init__(f"{key}: {message}")


def read_table(path: Path, text: str | None = None) -> Table:
    """The top table of a TOML file, of a JSON file (by extension), or of a text in its place."""
    as_json = path.suffix.lower() == ".json"
    try:
        given = existing_file(path).read_text(encoding="utf-8-sig") if text is None else text
        content = checked_text(given)
        if not as_json and content.count(".") > MOST_NAMES:
            bare = _STRINGS_AND_COMMENTS.sub("", content)
            if max(part.count(".") for part in re.split(r"[,=\n\[\]{}]", bare)) > MOST_NAMES:
                raise InvalidValueError(f"more than {MOST_NAMES} dotted names in a key")
        values = checked_depth(json.loads(content) if as_json else tomllib.loads(content))
    except UnicodeDecodeError as error:
        raise ParseError(f"not UTF-8 text; {'JSON' if as_json else 'TOML'} must be", path=path) from error
    except json.JSONDecodeError as error:
        raise ParseError(f"not JSON: {error.msg}", path=path, line=error.lineno) from error
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        words = str(error).partition(" (at ")[0]
        raise ParseError(f"not TOML: {words}", path=path, line=int(found[1]) if found else None) from error
    except (ValueError, RecursionError, InvalidValueError) as error:
        raise ParseError(f"not a file that can be read: {error}", path=path) from error
    if not isinstance(values, dict):
        raise ParseError(f"expected a table with names and values; got {values!r}", path=path)
    return Table(values, path)


def read_declared(declaration: type[T], path: Path) -> T:
    """Read a whole file as a declared dataclass."""
    return read_table(path).read(declaration)


class Table:
    """A table being read; `place` is its path in the file, such as handles.left_foot."""

    def __init__(self, values: Mapping[str, Any], path: Path, place: str = "") -> None:
        self.path, self.place, self.values = path, place, values
        self._asked: list[str] = []

    def read(self, declaration: type[T]) -> T:
        """Read a declared dataclass; raise on unknown keys."""
        given = {}
        for field, annotation in declared(declaration):
            extras, key = getattr(annotation, "__metadata__", ()), key_of(field, annotation)
            reader = next((extra.function for extra in extras if isinstance(extra, Read)), None)
            required = field.default is MISSING and field.default_factory is MISSING
            if required or self.has(key):
                given[field.name] = self.get(key, annotation) if reader is None else reader(self, key)
        self.done()
        try:
            return declaration(**given)
        except FieldError as error:
            raise self.error(error.key, error.message) from error
        except InvalidValueError as error:
            raise ParseError(
                f"{self.place}: {error}" if self.place else str(error), path=self.path
            ) from error

    def get(self, key: str, annotation: Any, default: Any = MISSING) -> Any:
        """One value of the annotated type; required if there is no default."""
        if not self.has(key):
            if default is MISSING:
                raise self.error(key, "is missing")
            return default
        return self._converted(key, self.values[key], annotation)

    def has(self, key: str) -> bool:
        """Whether the key exists."""
        if key not in self._asked:
            self._asked.append(key)
        return key in self.values

    def tables(self, key: str) -> list[Table]:
        """A list of tables, empty if absent."""
        value = self.values.get(key, []) if self.has(key) else []
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise self.error(key, f"expected a list of tables; got {value!r}")
        place = self._named(key)
        return [Table(entry, self.path, f"{place}[{number}]") for number, entry in enumerate(value, start=1)]

    def error(self, key: str, message: str) -> ParseError:
        """An error that names the key."""
        return ParseError(f"{self._named(key)}: {message}", path=self.path)

    def done(self) -> None:
        """Raise on keys that were not read: a misspelt key would be silently ignored."""
        for key in self.values:
            if key not in self._asked:
                raise self.error(key, str(UnknownNameError("key", key, self._asked)))

    def _named(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key

    def _converted(self, key: str, value: Any, annotation: Any) -> Any:
        options = [each for each in _choices(annotation) if each is not NoneType]
        chosen = next((each for each in options if _fits(value, each)), None)
        if get_origin(annotation) is Annotated or get_origin(chosen) is Annotated:
            bounded: Any = annotation if get_origin(annotation) is Annotated else chosen
            found = self._converted(key, value, get_args(bounded)[0])
            for extra in bounded.__metadata__:
                if isinstance(extra, Range) and found is not None and found not in extra:
                    raise self.error(key, f"expected a number {extra}; got {value:g}")
                if isinstance(extra, Among) and found not in extra.words:
                    raise self.error(key, str(UnknownNameError("choice", found, extra.words)))
            return found
        if chosen is None:
            expected = " or ".join(_in_words(each, self._named(key)) for each in options)
            raise self.error(key, f"expected {expected}; got {value!r}")
        origin, arguments = get_origin(chosen), get_args(chosen)
        if is_dataclass(chosen):
            return Table(value, self.path, self._named(key)).read(cast(type[Any], chosen))
        if origin is dict:
            inner = Table(value, self.path, self._named(key))
            return {name: inner.get(name, arguments[1]) for name in value}
        if origin is tuple:
            numbered = enumerate(value, start=1)
            return tuple(self._converted(f"{key}[{number}]", each, arguments[0]) for number, each in numbered)
        if origin is Literal and value not in arguments:
            raise self.error(key, str(UnknownNameError("choice", value, arguments)))
        if chosen is Path and self.path == TYPED:
            raise self.error(key, f"files can only be named in a script; got {value!r}")
        if chosen is Path:
            try:
                return named_file(self.path.parent, value)
            except RefusedNameError as error:
                raise self.error(key, str(error)) from error
        if _is_array(chosen):
            return np.array(value, dtype=np.float64).reshape(_shape(chosen, len(value)))
        return chosen(value) if chosen in (float, int) else value


def declared(declaration: type) -> list[tuple[Field[Any], Any]]:
    """The fields of a dataclass that a table may hold, each with its annotation."""
    hints = get_type_hints(declaration, include_extras=True)
    return [(field, hints[field.name]) for field in fields(declaration) if field.init]


def key_of(field: Field[Any], annotation: Any) -> str:
    """The name of a declared field in a file."""
    extras = getattr(annotation, "__metadata__", ())
    return next((extra.name for extra in extras if isinstance(extra, Named)), field.name.rstrip("_"))


def _choices(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _is_array(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, AbstractArray)


def _shape(annotation: Any, count: int) -> tuple[int, ...]:
    """The shape that an array must have; a named first axis may have any length."""
    first, *rest = annotation.dim_str.split()
    return (int(first) if first.isdigit() else count, *map(int, rest))


def _fits(value: Any, annotation: Any) -> bool:
    """Whether a value has the type of an annotation, ignoring bounds."""
    annotation = _parts(annotation)[0]
    origin = get_origin(annotation)
    if is_dataclass(annotation) or origin is dict:
        return isinstance(value, dict)
    if origin is tuple:
        return isinstance(value, list)
    if annotation is bool:
        return isinstance(value, bool)
    if annotation in (float, int):
        return is_number(value) and (annotation is float or value == int(value))
    if _is_array(annotation):
        return isinstance(value, list) and _has_shape(value, _shape(annotation, len(value)))
    return isinstance(value, str) and bool(value)


def _has_shape(value: Any, shape: tuple[int, ...]) -> bool:
    if not shape:
        return is_number(value)
    return (
        isinstance(value, list)
        and len(value) == shape[0]
        and all(_has_shape(row, shape[1:]) for row in value)
    )


def _in_words(annotation: Any, place: str) -> str:
    annotation = _parts(annotation)[0]
    if is_dataclass(annotation) or get_origin(annotation) is dict:
        return f"a table [{place}]"
    if get_origin(annotation) is tuple:
        inner = get_args(annotation)[0]
        return "a list of tables" if is_dataclass(inner) else f"a list, each {_in_words(inner, place)}"
    if _is_array(annotation):
        *rows, numbers = annotation.dim_str.split()
        words = f"{numbers} finite numbers" if numbers.isdigit() else "finite numbers"
        return f"{rows[0] if rows[0].isdigit() else 'several'} rows of {words}" if rows else words
    return {bool: "true or false", float: "a number", int: "a whole number"}.get(annotation, "text in quotes")


def checked(declaration: type[T], given: Mapping[str, Any], *, what: str) -> T:
    """A declared dataclass from values by name, as given by Python or a command line."""
    annotations = {field.name: annotation for field, annotation in declared(declaration)}
    for name in given:
        if name not in annotations:
            raise InvalidValueError(
                f"{what} has no option {name}; it takes {', '.join(annotations) or 'none'}"
            )
    for name, value in given.items():
        plain, *extras = _parts(annotations[name])
        for extra in extras:
            if isinstance(extra, Range) and value is not None and not (is_number(value) and value in extra):
                raise InvalidValueError(f"{what}: {name} must be a number {extra}; got {value!r:.40}")
        valid = [word for each in _choices(plain) if get_origin(each) is Literal for word in get_args(each)]
        if valid and value not in valid:
            raise UnknownNameError(f"{name} of {what},", value, valid)
    return declaration(**given)


def _parts(annotation: Any) -> tuple[Any, ...]:
    """An annotation without the extras of `Annotated`, then those extras."""
    return get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
