"""Functions for worker processes that die, or refuse, at item number three."""

import os
import signal
import time
from pathlib import Path

import numpy as np

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


def note_and_wait(task: tuple[str, int]) -> int:
    """Leaves its process's number in a folder and takes its time."""
    (Path(task[0]) / str(os.getpid())).touch()
    time.sleep(60.0)
    return task[1]


def faults_of_arrays(_number: int) -> int:
    """The page faults of a hundred arrays of a megabyte, made and freed one after the other."""
    import resource

    np.ones(2**17)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(100):
        np.ones(2**17)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
