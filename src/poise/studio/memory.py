"""Return memory to the system in a server that runs for days.

glibc's allocator adapts to large arrays that come and go: it soon takes arrays of up to 32 MB from its heap, where one
small live object keeps all memory below it. Local models and smoothed timelines need such arrays briefly, and a studio
in use grew by all of them.
"""

from __future__ import annotations

import asyncio
import ctypes
from contextlib import suppress

_ARENAS, _FROM_SYSTEM, _TRIM = -8, -3, -1  # M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD of malloc.h
MEGABYTE = 1 << 20
TRIM_EVERY = 10.0  # seconds


def give_memory_back() -> bool:
    """Return every freed array of a megabyte or more to the system at once; return whether that is possible."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False  # not glibc: nothing to do
    settings = {_ARENAS: 2, _FROM_SYSTEM: MEGABYTE, _TRIM: 4 * MEGABYTE}
    return all(mallopt(name, value) for name, value in settings.items())


def trim_memory() -> None:
    """Return freed memory between live objects to the system, which takes milliseconds."""
    with suppress(AttributeError, OSError, TypeError):  # not glibc
        ctypes.CDLL(None).malloc_trim(0)


async def keep_trimmed() -> None:
    """Trim the memory from time to time, until cancelled."""
    while True:
        await asyncio.sleep(TRIM_EVERY)
        await asyncio.to_thread(trim_memory)
