"""The catalogue of a library: one SQLite file that says which clips there are, where they came from and where they lie.

A clip's row is committed after its shard is on disk, so whatever the catalogue names exists, at every moment.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from poise.errors import ParseError, UnknownNameError
from poise.library.canonical import Canonical
from poise.skeleton.skeleton import Skeleton

VERSION = 1
FILE = "catalogue.sqlite"
_BUSY_S = 30.0
_SCHEMA = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS skeletons (key TEXT PRIMARY KEY, description TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS clips (
    name TEXT PRIMARY KEY,
    variant TEXT NOT NULL,
    performer TEXT NOT NULL,
    tags TEXT NOT NULL,
    skeleton TEXT NOT NULL REFERENCES skeletons (key),
    fps REAL NOT NULL,
    frames INTEGER NOT NULL,
    source TEXT NOT NULL,
    source_sha256 TEXT NOT NULL,
    frames_sha256 TEXT NOT NULL,
    shard TEXT NOT NULL,
    shard_sha256 TEXT NOT NULL,
    provenance TEXT NOT NULL,
    UNIQUE (source_sha256, variant)
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
    """What the reader decided (format, units, notes, warnings), and what was done since."""

    @property
    def seconds(self) -> float:
        """How long it lasts."""
        return self.frames / self.fps


_COLUMNS = tuple(field.name for field in fields(Clip))
_AS_JSON = ("tags", "provenance")


class Catalogue:
    """The rows, read and written one transaction at a time."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._connection = sqlite3.connect(self.path, timeout=_BUSY_S)
        with self._reporting(), self._connection:
            self._connection.executescript(_SCHEMA)
        self._check_version()

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def clips(self) -> list[Clip]:
        """All clips, in the order of their names."""
        return [_clip(row) for row in self._rows(f"SELECT {', '.join(_COLUMNS)} FROM clips ORDER BY name")]

    def clip(self, name: str) -> Clip:
        """The clip of this name; an unknown one lists close matches."""
        found = self._rows(f"SELECT {', '.join(_COLUMNS)} FROM clips WHERE name = ?", name)
        if not found:
            raise UnknownNameError("clip", name, [row[0] for row in self._rows("SELECT name FROM clips")])
        return _clip(found[0])

    def add(self, clip: Clip, skeleton: Skeleton) -> None:
        """Take in a clip whose shard is on disk; one of the same name makes way, and a reason to refuse it is over."""
        values = [_stored(name, value) for name, value in asdict(clip).items()]
        marks = ", ".join("?" * len(_COLUMNS))
        with self._reporting(), self._connection as change:
            change.execute(
                "INSERT OR IGNORE INTO skeletons VALUES (?, ?)", (clip.skeleton, skeleton_text(skeleton))
            )
            change.execute(f"INSERT OR REPLACE INTO clips ({', '.join(_COLUMNS)}) VALUES ({marks})", values)
            change.execute("DELETE FROM refused WHERE source = ?", (clip.source,))
            change.execute("DELETE FROM damaged WHERE clip = ?", (clip.name,))

    def remove(self, names: Sequence[str]) -> None:
        """Forget clips."""
        with self._reporting(), self._connection as change:
            for table, column in (("clips", "name"), ("damaged", "clip")):
                change.executemany(f"DELETE FROM {table} WHERE {column} = ?", [(name,) for name in names])

    @property
    def damaged(self) -> frozenset[str]:
        """The clips whose shards were found damaged, and which no build has read again since."""
        return frozenset(row[0] for row in self._rows("SELECT clip FROM damaged"))

    @damaged.setter
    def damaged(self, names: Iterable[str]) -> None:
        with self._reporting(), self._connection as change:
            change.execute("DELETE FROM damaged")
            change.executemany("INSERT INTO damaged VALUES (?)", [(name,) for name in names])

    def refuse(self, source: str, reason: str) -> None:
        """Remember why a file is not in the library."""
        with self._reporting(), self._connection as change:
            change.execute("INSERT OR REPLACE INTO refused VALUES (?, ?)", (source, reason))

    def refused(self) -> dict[str, str]:
        """Files that could not be taken in, and why."""
        return dict(self._rows("SELECT source, reason FROM refused ORDER BY source"))

    def skeleton(self, key: str) -> Skeleton:
        """A clip's own skeleton."""
        return skeleton_from_text(
            self._rows("SELECT description FROM skeletons WHERE key = ?", key)[0][0], self.path
        )

    @property
    def canonical(self) -> Canonical | None:
        """The skeleton all clips are carried over to; None before the first."""
        found = self._fact("canonical")
        if found is None:
            return None
        usual = np.array(json.loads(self._fact("usual") or "[]"))
        return Canonical(skeleton_from_text(found, self.path), usual)

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
        with self._reporting(), self._connection as change:
            change.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", list(facts.items()))

    def _fact(self, name: str) -> str | None:
        found = self._rows("SELECT value FROM facts WHERE name = ?", name)
        return found[0][0] if found else None

    def _rows(self, query: str, *values: str) -> list[Any]:
        with self._reporting():
            return self._connection.execute(query, values).fetchall()

    def _check_version(self) -> None:
        version = int(self._fact("version") or 0)
        if version > VERSION:
            raise ParseError(
                f"written by a newer Poise (library version {version} > {VERSION}); upgrade", path=self.path
            )
        if version == 0:
            self._state(version=str(VERSION))

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """SQLite's errors as Poise's, with the file's name."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            raise CatalogueError(f"the catalogue cannot be used: {error}", path=self.path) from error


class CatalogueError(ParseError):
    """A catalogue that is damaged, locked, or on a full disk."""


def skeleton_text(skeleton: Skeleton) -> str:
    """A skeleton as JSON, limits aside."""
    return json.dumps(
        {
            "names": skeleton.names,
            "parents": skeleton.parents.tolist(),
            "offsets": skeleton.offsets.tolist(),
            "orders": skeleton.orders,
            "roles": dict(skeleton.role_overrides),
        }
    )


def skeleton_from_text(text: str, path: Path) -> Skeleton:
    """The skeleton again."""
    try:
        given = json.loads(text)
        return Skeleton(
            given["names"],
            np.array(given["parents"]),
            np.array(given["offsets"]),
            tuple(given["orders"]),
            role_overrides=given["roles"],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ParseError(f"a skeleton in it is damaged: {error}", path=path) from error


def _stored(name: str, value: Any) -> Any:
    return json.dumps(value) if name in _AS_JSON else value


def _clip(row: Sequence[Any]) -> Clip:
    values = dict(zip(_COLUMNS, row, strict=True))
    values |= {name: json.loads(values[name]) for name in _AS_JSON}
    return Clip(**{**values, "tags": tuple(values["tags"])})
