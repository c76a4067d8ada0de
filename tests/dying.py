"""Functions for worker processes that die, or refuse, at item number three."""

import os
import signal
from pathlib import Path

from poise.errors import PoiseError


def die_once(task: tuple[str, int]) -> int:
    """Kills its own process the first time that it meets number three."""
    place, number = task
    mark = Path(place) / "died"
    if number == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def always_die(task: tuple[str, int]) -> int:
    if task[1] == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return task[1]


def refuse_three(task: tuple[str, int]) -> int:
    if task[1] == 3:
        raise PoiseError("three is refused")
    return task[1]
