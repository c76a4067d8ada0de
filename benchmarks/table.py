"""The result of every benchmark: rows of one table, ours and, if there is one, a peer's from the same run."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One measurement. `ours` and `peer` are in the same `unit`; the smaller is the better unless it is a rate."""

    name: str
    ours: float
    unit: str
    peer: float | None = None
    peer_name: str = ""
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """Ours over the peer's: below 1, ours is faster (or smaller)."""
        return None if self.peer is None else self.ours / self.peer


def best_seconds(*functions: Callable[[], object], repeats: int = 7, number: int = 1) -> list[float]:
    """The best time per call of each function, measured in turns so that load affects all of them alike."""
    best = [float("inf")] * len(functions)
    for _ in range(repeats):
        for which, function in enumerate(functions):
            best[which] = min(best[which], _seconds_per_call(function, number))
    return best


def _seconds_per_call(function: Callable[[], object], number: int) -> float:
    start = time.perf_counter()
    for _ in range(number):
        function()
    return (time.perf_counter() - start) / number
