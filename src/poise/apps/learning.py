"""Reads motions and learns a model from them: what `poise learn` does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from poise.errors import InvalidValueError
from poise.formats import read
from poise.motion.motion import Motion


def read_motion(path: Path, **options: Any) -> Motion:
    """A motion from a file, with the reader's options; a file of markers has no skeleton and is refused."""
    motion = read(path, **options)
    if not isinstance(motion, Motion):
        raise InvalidValueError(f"{path.name} holds markers; this needs the motion of a skeleton")
    return motion
