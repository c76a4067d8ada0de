"""Undo and redo without limit, in memory that does not grow: states far from the present wait on disk.

A state is pickled into a file of our own that nobody else can open; the skeletons that many states share stay in memory
and are written as numbers. What a solver would go on from is made again from the pose.
"""

from __future__ import annotations

import pickle
import tempfile
from collections import OrderedDict
from typing import Any

from poise.errors import InvalidValueError
from poise.skeleton.skeleton import Skeleton
from poise.studio.state import Placed, State

NEAR = 50  # states that are kept in memory


class History:
    """Where a session has been."""

    def __init__(self, state: State, *, near: int = NEAR) -> None:
        self._near, self._store = near, _Store()
        self._places: list[int | None] = [
            None
        ]  # where on disk each state is; None where it is only in memory
        self._recent: OrderedDict[int, State] = OrderedDict({0: state})
        self._at = 0

    @property
    def now(self) -> State:
        """The state that stands."""
        return self._recent[self._at]

    @property
    def undos(self) -> int:
        """How many steps back there are."""
        return self._at

    @property
    def redos(self) -> int:
        """How many steps forward there are."""
        return len(self._places) - 1 - self._at

    def push(self, state: State) -> None:
        """One more step; what was undone is forgotten."""
        for gone in range(self._at + 1, len(self._places)):
            self._recent.pop(gone, None)
        del self._places[self._at + 1 :]
        self._places.append(None)
        self._at += 1
        self._remember(self._at, state)

    def amend(self, state: State) -> None:
        """The state that stands, in other words: no step of its own."""
        self._places[self._at] = None
        self._remember(self._at, state)

    def back(self) -> State:
        """One step back, as far as there is one."""
        if self._at == 0:
            raise InvalidValueError("there is nothing to undo")
        return self._go(self._at - 1)

    def forward(self) -> State:
        """One step forward again."""
        if self.redos == 0:
            raise InvalidValueError("there is nothing to redo")
        return self._go(self._at + 1)

    def rest(self) -> None:
        """Nobody is looking: everything but the state that stands goes to disk."""
        self._recent.move_to_end(self._at)
        self._leave(1)

    def close(self) -> None:
        """Removes what is on disk."""
        self._store.close()

    def _go(self, number: int) -> State:
        place = self._places[number]
        if number not in self._recent:
            assert place is not None
            self._remember(number, self._store.read(place))
        self._at = number
        self._recent.move_to_end(number)
        return self._recent[number]

    def _remember(self, number: int, state: State) -> None:
        """Keeps a state at hand."""
        self._recent[number] = state
        self._recent.move_to_end(number)
        self._leave(self._near)

    def _leave(self, most: int) -> None:
        """So many states at hand; those not looked at for longest go to disk."""
        while len(self._recent) > most:
            old, left = self._recent.popitem(last=False)
            if self._places[old] is None:
                self._places[old] = self._store.write(left)


class _Store:
    """States in a temporary file, one after the other."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the history
        self._shared: list[Skeleton] = []

    def write(self, state: State) -> int:
        """Where it is from now on."""
        place = self._file.seek(0, 2)
        _Pickler(self._file, self._shared).dump(state.with_(placed=Placed(state.pose)))
        return place

    def read(self, place: int) -> State:
        """The state that was written there."""
        self._file.seek(place)
        found: State = _Unpickler(self._file, self._shared).load()
        return found

    def close(self) -> None:
        """Removes the file."""
        self._file.close()


class _Pickler(pickle.Pickler):
    def __init__(self, file: Any, shared: list[Skeleton]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._shared = shared

    def persistent_id(self, value: Any) -> int | None:
        """The number of what many states share."""
        if not isinstance(value, Skeleton):
            return None
        for number, known in enumerate(self._shared):
            if known is value:
                return number
        self._shared.append(value)
        return len(self._shared) - 1


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, shared: list[Skeleton]) -> None:
        super().__init__(file)
        self._shared = shared

    def persistent_load(self, number: int) -> Any:
        """What many states share."""
        return self._shared[number]
