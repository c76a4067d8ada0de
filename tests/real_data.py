"""Real recordings for tests; where there are none, the test is skipped and says so."""

from pathlib import Path

import pytest

from poise.motion.recordings import find_recordings


def recordings(collection: str, pattern: str = "*.bvh") -> list[Path]:
    """The files of a collection ("cmu", "bandai", "optical"), in order; skips the test if it is not there."""
    folder = find_recordings()
    if folder is None:
        pytest.skip("no real recordings: neither POISE_MOCAP nor ../shared/mocap leads to any")
    files = sorted((folder / collection).glob(pattern))
    if not files:
        pytest.skip(f"no {collection} recordings in {folder}")
    return files


def recording(collection: str, name: str) -> Path:
    """One file of a collection; skips the test if the collection is not there."""
    return next(file for file in recordings(collection, "*") if file.name == name)
