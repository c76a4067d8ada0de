"""Location of real recordings for tests, benchmarks and the evaluation; none are part of Poise.

They are searched in POISE_MOCAP, else in ../shared/mocap beside the project. Archives found there are unpacked once
into Poise's cache folder.
"""

from __future__ import annotations

import os
import tarfile
import tempfile
from pathlib import Path

from poise.errors import PoiseError
from poise.motion.cache import cache_folder

COLLECTIONS = {"cmu": "cmu-bvh.tar.xz", "bandai": "bandai-styles-bvh.tar.xz", "optical": "optical.tar.xz"}
"""The folder of each collection, and its archive."""

_PROJECT = Path(__file__).parents[3]


def find_recordings() -> Path | None:
    """The folder with those of `cmu`, `bandai` and `optical` that are present, or None if there is none."""
    source = _source()
    if any((source / name).is_dir() for name in COLLECTIONS):
        return source
    archives = {name: source / file for name, file in COLLECTIONS.items() if (source / file).is_file()}
    cache = cache_folder() / "mocap"
    for name, archive in archives.items():
        stamp, size = cache / f"{name}.size", str(archive.stat().st_size)
        if (cache / name).is_dir() and stamp.is_file() and stamp.read_text() == size:
            continue
        cache.mkdir(parents=True, exist_ok=True)
        # Unpacked to a temporary folder first, so that a collection in the cache is always complete.
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            try:
                with tarfile.open(archive) as contents:
                    contents.extractall(folder, filter="data")
                if (cache / name).exists():  # the old one is removed with the temporary folder
                    (cache / name).rename(Path(folder) / "old")
                (Path(folder) / name).rename(cache / name)
            except (tarfile.TarError, OSError) as error:
                raise PoiseError(f"cannot unpack {archive} into {cache}: {error}") from error
        stamp.write_text(size)
    return cache if archives else None


def find_file(name: str) -> Path | None:
    """A file beside the collections, or None if it does not exist."""
    return path if (path := _source() / name).is_file() else None


def _source() -> Path:
    given = os.environ.get("POISE_MOCAP")
    return Path(given) if given else _PROJECT.parent / "shared" / "mocap"
