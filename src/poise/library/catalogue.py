"""The catalogue of a library: one SQLite file with its clips, their sources and their shards.

A clip's row is committed after its shard is on disk, so everything in the catalogue always exists.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from poise.bounds import FARTHEST, FASTEST, SLOWEST, checked_depth, checked_text
from poise.errors import InvalidValueError, ParseError, PoiseError, UnknownNameError
from poise.formats.files import not_a_link
from poise.library.shards import Canonical
from poise.schema import Check, mapping, real, record, row, several, text, whole
from poise.skeleton.skeleton import Skeleton

VERSION = 1
FILE = "catalogue.sqlite"
_BUSY_S = 30.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS skeletons (key TEXT PRIMARY KEY, description TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS clips (
    name TEXT PRIMARY KEY, variant TEXT NOT NULL, performer TEXT NOT NULL, tags TEXT NOT NULL,
    skeleton TEXT NOT NULL REFERENCES skeletons (key), fps REAL NOT NULL, frames INTEGER NOT NULL,
    source TEXT NOT NULL, source_sha256 TEXT NOT NULL, frames_sha256 TEXT NOT NULL, shard TEXT NOT NULL,
    shard_sha256 TEXT NOT NULL, provenance TEXT NOT NULL, UNIQUE (source_sha256, variant)
);
CREATE TABLE IF NOT EXISTS refused (source TEXT PRIMARY KEY, reason TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS damaged (clip TEXT PRIMARY KEY);
"""


@dataclass(frozen=True)
class Clip:
    """A row of the catalogue. `variant` is empty for the recording itself, else "mirrored" or a speed."""

    name: str
    variant: str
    performer: str
    tags: tuple[str, ...]
    skeleton: str
    fps: float
    frames: int
    source: str
    source_sha256: str
    frames_sha256: str
    shard: str
    shard_sha256: str
    provenance: Mapping[str, Any]
    """The reader's decisions (format, units, notes, warnings), and later changes."""

    @property
    def seconds(self) -> float:
        """The duration."""
        return self.frames / self.fps


_COLUMNS = tuple(field.name for field in fields(Clip))
_AS_JSON = ("tags", "provenance")


class Catalogue:
    """The rows, read and written one transaction at a time."""

    def __init__(self, folder: Path) -> None:
        self.path = not_a_link(folder / FILE)
        self._connection = sqlite3.connect(self.path, timeout=_BUSY_S)
        with self._reporting(), self._connection:
            self._connection.executescript(_SCHEMA)
        stated = self._fact("version") or "0"
        version = int(stated) if stated.isdecimal() and len(stated) < 10 else VERSION + 1
        if version > VERSION:
            newer = f"written by a newer Poise (library version {version} > {VERSION}); upgrade Poise"
            raise ParseError(newer, path=self.path)
        if version == 0:
            self._state(version=str(VERSION))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def clips(self) -> list[Clip]:
        """All clips with valid rows, ordered by name."""
        return [clip for _, clip in self._read() if isinstance(clip, Clip)]

    def broken(self) -> dict[int, str]:
        """The invalid rows by number, with the reason for each."""
        return {number: clip for number, clip in self._read() if isinstance(clip, str)}

    def clip(self, name: str) -> Clip:
        """The clip with this name; raise an error with close matches if there is none."""
        found = self._rows(f"SELECT {', '.join(_COLUMNS)} FROM clips WHERE name = ?", name)
        if not found:
            raise UnknownNameError("clip", name, [clip.name for clip in self.clips()])
        return _clip(found[0], self.path)

    def add(self, clip: Clip, skeleton: Skeleton) -> None:
        """Add a clip whose shard is on disk; replace one of the same name, and clear an earlier refusal."""
        values = tuple(json.dumps(value) if name in _AS_JSON else value for name, value in vars(clip).items())
        marks = ", ".join("?" * len(_COLUMNS))
        self._change(
            ("INSERT OR IGNORE INTO skeletons VALUES (?, ?)", [(clip.skeleton, skeleton_text(skeleton))]),
            (f"INSERT OR REPLACE INTO clips ({', '.join(_COLUMNS)}) VALUES ({marks})", [values]),
            ("DELETE FROM refused WHERE source = ?", [(clip.source,)]),
            ("DELETE FROM damaged WHERE clip = ?", [(clip.name,)]),
        )

    def remove(self, names: Sequence[str]) -> None:
        """Remove clips."""
        each = [(name,) for name in names]
        self._change(("DELETE FROM clips WHERE name = ?", each), ("DELETE FROM damaged WHERE clip = ?", each))

    def drop(self, numbers: Iterable[int]) -> None:
        """Remove rows by number."""
        self._change(("DELETE FROM clips WHERE rowid = ?", [(number,) for number in numbers]))

    @property
    def damaged(self) -> frozenset[str]:
        """The clips with damaged shards that no build has read again since."""
        return frozenset(row[0] for row in self._rows("SELECT clip FROM damaged"))

    @damaged.setter
    def damaged(self, names: Iterable[str]) -> None:
        each = [(name,) for name in names]
        self._change(("DELETE FROM damaged", [()]), ("INSERT INTO damaged VALUES (?)", each))

    def refuse(self, source: str, reason: str) -> None:
        """Record why a file is not in the library."""
        self._change(("INSERT OR REPLACE INTO refused VALUES (?, ?)", [(source, reason)]))

    def refused(self) -> dict[str, str]:
        """Files that could not be added, and why."""
        return dict(self._rows("SELECT source, reason FROM refused ORDER BY source"))

    def skeleton(self, key: str) -> Skeleton:
        """A clip's own skeleton."""
        found = self._rows("SELECT description FROM skeletons WHERE key = ?", key)
        if not found:
            raise CatalogueError(f"the skeleton {key} is missing", path=self.path)
        return skeleton_from_text(found[0][0], self.path)

    @property
    def canonical(self) -> Canonical | None:
        """The canonical skeleton of all clips; None before the first clip."""
        found = self._fact("canonical")
        if found is None:
            return None
        skeleton = skeleton_from_text(found, self.path)
        usual = _parsed(self._fact("usual") or "[]", several(_QUATERNION), "usual", self.path)
        if len(usual) != len(skeleton):
            raise CatalogueError(f"{len(usual)} usual rotations of {len(skeleton)} joints", path=self.path)
        return Canonical(skeleton, np.array(usual))

    @canonical.setter
    def canonical(self, given: Canonical) -> None:
        self._state(canonical=skeleton_text(given.skeleton), usual=json.dumps(given.usual.tolist()))

    @property
    def poses_sha256(self) -> str:
        """The checksum of the file of all poses."""
        return self._fact("poses_sha256") or ""

    @poses_sha256.setter
    def poses_sha256(self, digest: str) -> None:
        self._state(poses_sha256=digest)

    def _state(self, **facts: str) -> None:
        self._change(("INSERT OR REPLACE INTO facts VALUES (?, ?)", list(facts.items())))

    def _change(self, *statements: tuple[str, Sequence[tuple[Any, ...]]]) -> None:
        """Execute each statement for all of its rows, in one transaction."""
        with self._reporting(), self._connection as change:
            for statement, rows in statements:
                change.executemany(statement, rows)

    def _fact(self, name: str) -> str | None:
        found = self._rows("SELECT value FROM facts WHERE name = ?", name)
        if found and not isinstance(found[0][0], str):
            raise CatalogueError(f"the fact {name} is not text", path=self.path)
        return found[0][0] if found else None

    def _rows(self, query: str, *values: str) -> list[Any]:
        with self._reporting():
            return self._connection.execute(query, values).fetchall()

    def _read(self) -> Iterator[tuple[int, Clip | str]]:
        """The number of every row, and its clip or what is wrong with it."""
        for number, *cells in self._rows(f"SELECT rowid, {', '.join(_COLUMNS)} FROM clips ORDER BY name"):
            try:
                yield number, _clip(cells, self.path)
            except ParseError as error:
                yield number, str(error)

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """Convert SQLite's errors to Poise's, with the file's name."""
        try:
            yield
        except (sqlite3.DatabaseError, UnicodeError, OverflowError) as error:
            raise CatalogueError(f"the catalogue cannot be used: {error}", path=self.path) from error


class CatalogueError(ParseError):
    """A catalogue that is damaged, locked, or on a full disk."""


def skeleton_text(skeleton: Skeleton) -> str:
    """A skeleton as JSON, without limits."""
    whole_skeleton = {
        "names": skeleton.names, "parents": skeleton.parents.tolist(), "offsets": skeleton.offsets.tolist(),
        "orders": skeleton.orders, "roles": dict(skeleton.role_overrides),
    }  # fmt: skip
    return json.dumps(whole_skeleton)


@lru_cache(maxsize=64)
def skeleton_from_text(text: Any, path: Path) -> Skeleton:
    """Create the skeleton from JSON."""
    given = _parsed(text, record(_SKELETON), "a skeleton", path)
    parents, offsets, orders = np.array(given["parents"]), np.array(given["offsets"]), tuple(given["orders"])
    try:
        return Skeleton(given["names"], parents, offsets, orders, role_overrides=given["roles"])
    except PoiseError as error:
        raise ParseError(f"a skeleton in it is damaged: {error}", path=path) from error


def _clip(row: Sequence[Any], path: Path) -> Clip:
    """The clip of a row, after checking every cell: a library may come from anyone."""
    values = dict(zip(_COLUMNS, row, strict=True))
    what = f"the clip {str(values['name'])[:100]!r}"
    for name in _AS_JSON:
        values[name] = _parsed(values[name], _CELLS[name], f"{what}.{name}", path)
    try:
        record(_CELLS)(values, what)
    except InvalidValueError as error:
        raise CatalogueError(str(error), path=path) from error
    return Clip(**{**values, "fps": float(values["fps"]), "tags": tuple(values["tags"])})


def _parsed(cell: Any, check: Check, what: str, path: Path) -> Any:
    """The values of a JSON cell, after a check."""
    try:
        text()(cell, what) if not isinstance(cell, str) else checked_text(cell)
        found = checked_depth(json.loads(cell))
        check(found, what)
    except (ValueError, RecursionError, InvalidValueError) as error:
        raise CatalogueError(f"{what} is damaged: {error}", path=path) from error
    return found


def _shard_name(value: Any, place: str) -> None:
    """Check for a file in the library's own folder of shards."""
    inside = isinstance(value, str) and re.fullmatch(r"shards[/\\][^/\\\0]{1,200}", value)
    if not inside or ".." in value:
        expected = f"{place} must be a file in the library's folder of shards"
        raise InvalidValueError(f"{expected}; got {value!r:.200}")


_QUATERNION = row(*(real(-1.001, 1.001),) * 4)
_SKELETON: Mapping[str, Check] = {
    "names": several(text(), least=1, most=10_000),
    "parents": several(whole(-1, 10_000), most=10_000),
    "offsets": several(row(*(real(-FARTHEST, FARTHEST),) * 3), most=10_000),
    "orders": several(text(3), most=10_000),
    "roles": mapping(text()),
}
_CELLS: Mapping[str, Check] = {
    **dict.fromkeys(("name", "variant", "performer", "skeleton"), text()),
    **dict.fromkeys(("source_sha256", "frames_sha256", "shard_sha256"), text(64)),
    "tags": several(text(), most=1000),
    "fps": real(SLOWEST, FASTEST),
    "frames": whole(1, 1_000_000_000),
    "source": text(10_000),
    "shard": _shard_name,
    "provenance": record({}),
}
