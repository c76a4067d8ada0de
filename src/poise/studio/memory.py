"""A server that runs for days gives memory back: what was needed for a moment does not stay with the process.

The allocator of glibc learns from large arrays that come and go: it soon takes arrays of up to 32 MB from its heap,
where one small thing that lives on keeps all below it from going back. Local models and smoothed timelines need such
arrays for a moment, and a studio that was used grew by all of them.
"""

from __future__ import annotations

import ctypes

_ARENAS, _FROM_SYSTEM, _TRIM = -8, -3, -1  # M_ARENA_MAX, M_MMAP_THRESHOLD, M_TRIM_THRESHOLD of malloc.h
MEGABYTE = 1 << 20


def give_memory_back() -> bool:
    """Lets the system have every array of a megabyte and more as soon as it is done with; whether that is possible."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False  # not glibc: nothing to mend
    settings = {_ARENAS: 2, _FROM_SYSTEM: MEGABYTE, _TRIM: 4 * MEGABYTE}
    return all(mallopt(name, value) for name, value in settings.items())
