"""Live cameras at the pace of whoever watches: for tests that no machine is too slow for."""

import threading
import time
from collections import defaultdict
from typing import Any

import pytest

from poise.vision import live

PATIENCE = 120.0  # seconds: machines may be busy


def in_turn(monkeypatch: pytest.MonkeyPatch, *, pause: float = 0.0, silent: float = PATIENCE) -> None:
    """A camera gives its next picture a pause after the one before was taken; it is silent after so many seconds."""
    turns: dict[int, threading.Semaphore] = defaultdict(lambda: threading.Semaphore(1))
    read, take = live.read_or_note, live._Reader.take

    def read_in_turn(source: Any, notes: list[str]) -> Any:
        turns[id(source)].acquire()
        time.sleep(pause)
        return read(source, notes)

    def let_it_read(reader: Any) -> Any:
        turns[id(reader._source)].release()
        return take(reader)

    monkeypatch.setattr(live, "SILENT", silent)
    monkeypatch.setattr(live, "read_or_note", read_in_turn)
    monkeypatch.setattr(live._Reader, "take", let_it_read)
