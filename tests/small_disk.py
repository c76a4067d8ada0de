"""A disk of a megabyte, for tests: a real file system that can be filled and made read-only."""

import gc
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


class SmallDisk:
    """A mounted disk and what fills it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._filling = path / "filling"

    def fill(self) -> None:
        """Takes all the room there is."""
        file = os.open(self._filling, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            for size in (65536, 4096, 512, 1):
                with suppress(OSError):
                    while True:
                        os.write(file, bytes(size))
        finally:
            os.close(file)

    def make_room(self) -> None:
        """Gives it back."""
        self._filling.unlink()

    def write_protect(self, *, on: bool = True) -> None:
        """Makes it read-only, or no more."""
        gc.collect()  # nobody has a file open for writing
        _mount("-o", f"remount,{'ro' if on else 'rw'}", str(self.path))


@contextmanager
def small_disk(path: Path, *, size: str = "1m") -> Iterator[SmallDisk]:
    """A disk mounted there; where that is not permitted the test is skipped."""
    path.mkdir()
    try:
        _mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path))
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"a disk cannot be mounted here: {error}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def _mount(*options: str) -> None:
    subprocess.run(["mount", *options], check=True, capture_output=True)
