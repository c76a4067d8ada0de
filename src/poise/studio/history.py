"""Undo and redo in bounded memory and on bounded disk: states far from the present are on disk.

A state is pickled into a private database; skeletons, which many states share, stay in memory and are written as
numbers, and a motion is written once. The solver's warm start is recreated from the pose. Beyond a limit, the oldest
states are dropped. On a full disk states stay in memory, and the oldest are dropped when there are too many.
"""

from __future__ import annotations

import logging
import pickle
import secrets
import sqlite3
from collections import Counter, OrderedDict
from io import BytesIO
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from poise.errors import InvalidValueError
from poise.motion.motion import Motion
from poise.skeleton.skeleton import Skeleton
from poise.studio.state import Placed, State

NEAR = 50  # states kept in memory
MOST_WAITING = 4  # times as many if the disk is full
MOST_BYTES = 100_000_000  # of motions in memory
MOST_ON_DISK = 50_000_000  # bytes of states and motions of a session
_LOG = logging.getLogger("poise.studio")


class History:
    """The history of a session."""

    def __init__(self, state: State, folder: Path, *, near: int = NEAR) -> None:
        self._near, self._store = near, _Store(folder)
        self._places: list[int | None] = [None]  # number of each state on disk; None: only in memory
        self._recent: OrderedDict[int, State] = OrderedDict({0: state})
        self._first = self._at = 0

    @property
    def now(self) -> State:
        """The current state."""
        return self._recent[self._at]

    @property
    def undos(self) -> int:
        """The number of steps back."""
        return self._at - self._first

    @property
    def redos(self) -> int:
        """The number of steps forward."""
        return len(self._places) - 1 - self._at

    def push(self, state: State) -> None:
        """Add a step; undone steps are dropped."""
        self._cut(self._at + 1)
        self._places.append(None)
        self._at += 1
        self._remember(self._at, state)
        while self._store.size > MOST_ON_DISK and self._first < self._at:
            self._forget(self._first)

    def join(self) -> None:
        """The last two steps become one."""
        if self.undos < 2:
            return  # what was before them is forgotten
        self._store.drop(self._places[self._at - 1])
        self._recent.pop(self._at - 1, None)
        self._recent[self._at - 1] = self._recent.pop(self._at)
        del self._places[self._at - 1]
        self._at -= 1

    def amend(self, state: State) -> None:
        """Replace the current state without a step of its own."""
        self._store.drop(self._places[self._at])
        self._places[self._at] = None
        self._remember(self._at, state)

    def back(self) -> State:
        """One step back, if there is one."""
        if self.undos == 0:
            raise InvalidValueError("there is nothing to undo")
        return self._go(self._at - 1)

    def forward(self) -> State:
        """One step forward again."""
        if self.redos == 0:
            raise InvalidValueError("there is nothing to redo")
        return self._go(self._at + 1)

    def rest(self) -> None:
        """Move everything but the current state to disk while the session is idle."""
        self._recent.move_to_end(self._at)
        self._leave(1)
        self._store.rest()

    def close(self) -> None:
        """Remove the file on disk."""
        self._store.close()

    def _go(self, number: int) -> State:
        if number not in self._recent:
            place = self._places[number]
            assert place is not None
            self._remember(number, self._store.read(place))
        self._at = number
        self._recent.move_to_end(number)
        return self._recent[number]

    def _remember(self, number: int, state: State) -> None:
        """Keep a state in memory."""
        for other in self._recent.values():
            if other.layers is not None and other.layers is not state.layers:
                other.layers.rest()
        self._recent[number] = state
        self._recent.move_to_end(number)
        self._leave(self._near)

    def _leave(self, most: int) -> None:
        """Limit the states and bytes in memory; the least recently used go to disk."""
        while len(self._recent) > most or (len(self._recent) > 1 and self._bytes() > MOST_BYTES):
            old, left = next(iter(self._recent.items()))
            try:
                if self._places[old] is None:
                    self._places[old] = self._store.write(left)
            except sqlite3.Error as error:
                if len(self._recent) <= MOST_WAITING * self._near:
                    return
                _LOG.warning("steps of undo are forgotten: %s", error)
                self._forget(old)
            self._recent.pop(old, None)

    def _bytes(self) -> int:
        bases = {id(state.layers.base): state.layers.base for state in self._recent.values() if state.layers}
        return sum(base.rotations.nbytes + base.root_positions.nbytes for base in bases.values())

    def _forget(self, number: int) -> None:
        """Drop a state that could not be stored, and those beyond it."""
        if number > self._at:
            self._cut(number)
            return
        for place in self._places[self._first : number + 1]:
            self._store.drop(place)
        self._first = number + 1
        for gone in [other for other in self._recent if other < self._first]:
            del self._recent[gone]

    def _cut(self, number: int) -> None:
        """Drop all states from a number on."""
        for place in self._places[number:]:
            self._store.drop(place)
        for gone in [other for other in self._recent if other >= number]:
            del self._recent[gone]
        del self._places[number:]


class _Store:
    """States and the motions that they need, in a private database; created at the first state."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / f".{secrets.token_hex(8)}.history"
        self._database: sqlite3.Connection | None = None
        self.size = 0  # bytes of what it holds
        self.skeletons: list[Skeleton] = []
        self._places: WeakKeyDictionary[Motion, int] = WeakKeyDictionary()
        self._motions: WeakValueDictionary[int, Motion] = WeakValueDictionary()
        self._needed: Counter[int] = Counter()  # states that need a motion
        self._needs: dict[int, list[int]] = {}  # motions that a state needs

    def write(self, state: State) -> int:
        """Write a state; return its number."""
        place, needs = self._put(state.with_(placed=Placed(state.pose)))
        self._needs[place] = needs
        self._needed.update(needs)
        return place

    def read(self, place: int) -> State:
        """The state with this number."""
        found: State = self._loaded(place)
        return found

    def drop(self, place: int | None) -> None:
        """Remove a state, and motions that no other state needs."""
        if place is None:
            return
        needs = self._needs.pop(place)
        self._needed.subtract(needs)
        for gone in [place, *(motion for motion in needs if self._needed[motion] == 0)]:
            if gone in self._motions:
                self._places.pop(self._motions[gone], None)
            (length,) = (
                self._opened()
                .execute("SELECT length(content) FROM kept WHERE number = ?", (gone,))
                .fetchone()
            )
            self.size -= length
            self._opened().execute("DELETE FROM kept WHERE number = ?", (gone,))

    def place_of(self, motion: Motion) -> int:
        """The number of a motion; it is written at first use."""
        if motion not in self._places:
            frames = motion.root_positions, motion.rotations
            place, _ = self._put((motion.skeleton, motion.fps, *frames, motion.name))
            self._places[motion], self._motions[place] = place, motion
        return self._places[motion]

    def motion_at(self, place: int) -> Motion:
        """The motion with this number: the same object while it is in use."""
        motion = self._motions.get(place)
        if motion is None:
            motion = Motion(*self._loaded(place))
            self._places[motion], self._motions[place] = place, motion
        return motion

    def rest(self) -> None:
        """Close the database until it is used again."""
        if self._database is not None:
            self._database.close()
        self._database = None

    def close(self) -> None:
        """Removes the database."""
        self.rest()
        self._path.unlink(missing_ok=True)

    def _put(self, value: object) -> tuple[int, list[int]]:
        """Write a value atomically; return its number, and the motions that it needs."""
        content = BytesIO()
        pickler = _Pickler(content, self)
        pickler.dump(value)
        written = content.getvalue()
        place = self._opened().execute("INSERT INTO kept (content) VALUES (?)", (written,)).lastrowid
        assert place is not None
        self.size += len(written)
        return place, pickler.motions

    def _loaded(self, place: int) -> Any:
        found = self._opened().execute("SELECT content FROM kept WHERE number = ?", (place,)).fetchone()
        return _Unpickler(BytesIO(found[0]), self).load()

    def _opened(self) -> sqlite3.Connection:
        """The database; nobody else uses it, and it ends with its process."""
        if self._database is None:
            database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
            database.execute("PRAGMA journal_mode = MEMORY").fetchall()
            database.execute("PRAGMA synchronous = OFF")
            database.execute("CREATE TABLE IF NOT EXISTS kept (number INTEGER PRIMARY KEY, content BLOB)")
            self._database = database
        return self._database


class _Pickler(pickle.Pickler):
    def __init__(self, file: Any, store: _Store) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._store, self.motions = store, list[int]()

    def persistent_id(self, value: Any) -> tuple[str, int] | None:
        """The number of an object shared by many states."""
        if isinstance(value, Motion):
            self.motions.append(self._store.place_of(value))
            return "motion", self.motions[-1]
        if not isinstance(value, Skeleton):
            return None
        shared = self._store.skeletons
        if not any(known is value for known in shared):
            shared.append(value)
        return "skeleton", next(number for number, known in enumerate(shared) if known is value)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, store: _Store) -> None:
        super().__init__(file)
        self._store = store

    def persistent_load(self, name: tuple[str, int]) -> Any:
        """An object shared by many states."""
        kind, number = name
        return self._store.skeletons[number] if kind == "skeleton" else self._store.motion_at(number)
