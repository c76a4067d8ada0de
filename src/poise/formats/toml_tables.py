"""Reads small TOML files key by key: every mistake is told with the key it is in, and no key goes unread."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from poise.errors import ParseError, UnknownNameError
from poise.formats.files import existing_file

Array = np.ndarray


def read_toml(path: Path) -> Table:
    """The top table of a file; a file that is not TOML is an error with its line."""
    try:
        values = tomllib.loads(existing_file(path).read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ParseError("not a text file in UTF-8, as TOML is", path=path) from error
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"\(at line (\d+), column (\d+)\)", str(error))
        words = str(error).partition(" (at ")[0]
        raise ParseError(f"not TOML: {words}", path=path, line=int(found[1]) if found else None) from error
    return Table(values, path)


class Table:
    """A TOML table being read; `place` is how it is written in the file, such as handles.left_foot."""

    def __init__(self, values: dict[str, Any], path: Path, place: str = "") -> None:
        self.path, self.place, self._values = path, place, values
        self._read: list[str] = []

    def error(self, key: str, message: str) -> ParseError:
        """An error that names the key."""
        return ParseError(f"{self._named(key)}: {message}", path=self.path)

    def has(self, key: str) -> bool:
        """Whether the key is there."""
        self._note(key)
        return key in self._values

    def is_flag(self, key: str) -> bool:
        """Whether the key is there and holds true or false."""
        return isinstance(self._values.get(key), bool)

    def names(self) -> Iterator[str]:
        """All its keys, for tables whose keys are the user's own names."""
        return iter(self._values)

    def number(
        self,
        key: str,
        default: float | None = None,
        *,
        least: float = -np.inf,
        most: float = np.inf,
        positive: bool = False,
    ) -> float:
        """A finite number within bounds; without a default it must be there."""
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise self.error(key, f"expected a number; got {value!r}")
        if not least <= value <= most or (positive and value <= 0):
            bounds = f"from {least:g} to {most:g}" if np.isfinite([least, most]).all() else ""
            wanted = "above 0" if positive else bounds or f"{least:g} or more"
            raise self.error(key, f"expected a number {wanted}; got {value:g}")
        return float(value)

    def length(self, key: str) -> int:
        """How many values a list has; 0 for anything else."""
        value = self._value(key, None)
        return len(value) if isinstance(value, list) else 0

    def vector(self, key: str, size: int = 3) -> Array:
        """So many finite numbers."""
        return self._numbers(key, self._value(key, None), size)

    def matrix(self, key: str, rows: int, columns: int) -> Array:
        """So many rows of so many finite numbers."""
        value = self._value(key, None)
        if not isinstance(value, list) or len(value) != rows:
            raise self.error(key, f"expected {rows} rows of {columns} numbers; got {value!r}")
        return np.array([self._numbers(key, row, columns) for row in value])

    def word(self, key: str, default: str | None = None, *, among: Iterable[str] = ()) -> str:
        """A piece of text, one of several where these are given."""
        value, valid = self._value(key, default), tuple(among)
        if not isinstance(value, str) or not value:
            raise self.error(key, f"expected text in quotes; got {value!r}")
        if valid and value not in valid:
            raise self.error(key, str(UnknownNameError("choice", value, valid)))
        return value

    def flag(self, key: str, *, default: bool = False) -> bool:
        """true or false."""
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self.error(key, f"expected true or false; got {value!r}")
        return value

    def table(self, key: str) -> Table:
        """A table inside; an empty one where there is none."""
        value = self._value(key, {})
        if not isinstance(value, dict):
            raise self.error(key, f"expected a table [{self._named(key)}]; got {value!r}")
        return Table(value, self.path, self._named(key))

    def tables(self, key: str) -> list[Table]:
        """A list of tables; empty where there is none."""
        value = self._value(key, [])
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise self.error(key, f"expected a list of tables; got {value!r}")
        return [
            Table(entry, self.path, f"{self._named(key)}[{number}]")
            for number, entry in enumerate(value, start=1)
        ]

    def done(self) -> None:
        """Refuse what has not been asked for: a misspelt key would do nothing, silently."""
        for key in self._values:
            if key not in self._read:
                raise self.error(key, str(UnknownNameError("key", key, self._read)))

    # --- private ---------------------------------------------------------------------------------------------------

    def _named(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key

    def _note(self, key: str) -> None:
        if key not in self._read:
            self._read.append(key)

    def _value(self, key: str, default: Any) -> Any:
        self._note(key)
        if key not in self._values and default is None:
            raise self.error(key, "is missing")
        return self._values.get(key, default)

    def _numbers(self, key: str, value: Any, size: int) -> Array:
        numeric = isinstance(value, list) and all(
            isinstance(number, int | float) and not isinstance(number, bool) for number in value
        )
        if not numeric or len(value) != size or not np.all(np.isfinite(value)):
            raise self.error(key, f"expected {size} finite numbers; got {value!r}")
        return np.array(value, dtype=np.float64)
