"""Parts of scenes: motions, models and pictures, as files named by their content.

The same motion or model is on disk once, however many scenes use it, and a file whose content does not match its name
is refused.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import cast
from weakref import WeakKeyDictionary

import numpy as np

from poise.errors import InvalidValueError, ParseError
from poise.formats.files import make_folder
from poise.motion.motion import Motion
from poise.priors.model_file import Storable, load, save
from poise.priors.prior import Prior
from poise.skeleton.skeleton import Skeleton

MOTION, MODEL = ".motion", ".poise"
NEW_FOR = 3600.0  # seconds
_NAME = re.compile(r"[0-9a-f]{32}\.[a-z0-9]{1,8}")
_CHUNK = 1 << 20


class Parts:
    """A folder of parts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._names: WeakKeyDictionary[Motion | Prior, str] = WeakKeyDictionary()

    def motion(self, motion: Motion) -> str:
        """Store a motion; return its name."""
        return self._known(motion, MOTION, lambda path: path.write_bytes(_bytes_of(motion)))

    def model(self, prior: Prior) -> str:
        """Store a model; return its name."""
        return self._known(prior, MODEL, lambda path: save(cast(Storable, prior), path))

    def file(self, path: Path) -> str:
        """Store a copy of a file; return its name."""
        return self._put(path.suffix.lower(), lambda copy: copy.write_bytes(path.read_bytes()))

    def path(self, name: str) -> Path:
        """The path of a part."""
        if not _NAME.fullmatch(name) or not (self.folder / name).is_file():
            raise InvalidValueError(f"its part {name[:50]!r} is missing")
        return self.folder / name

    def take(self, name: str, read: Callable[[int], bytes], most: int) -> int:
        """Store a part from elsewhere; return its size, which must not exceed `most`."""
        size = 0

        def copied(path: Path) -> None:
            nonlocal size
            with path.open("wb") as file:
                while chunk := read(_CHUNK):
                    size += len(chunk)
                    if size > most:
                        raise InvalidValueError(f"it unpacks to more than {most / 1e6:.0f} MB")
                    file.write(chunk)

        if not _NAME.fullmatch(name) or self._put(Path(name).suffix, copied) != name:
            raise InvalidValueError(f"its part {name[:50]!r} is damaged")
        return size

    def read_motion(self, name: str, skeleton: Skeleton) -> Motion:
        """Load a motion."""
        motion = _motion_of(self.path(name), skeleton)
        self._names[motion] = name
        return motion

    def read_model(self, name: str) -> Prior:
        """Load a model."""
        prior = load(self.path(name))
        self._names[prior] = name
        return prior

    def tidy(self, needed: Iterable[str]) -> None:
        """Remove what no scene needs, unless it is so new that its scene may be about to be written."""
        kept = set(needed)
        for path in self.folder.glob("*.*"):
            if path.name not in kept and time.time() - path.stat().st_mtime > NEW_FOR:
                path.unlink(missing_ok=True)

    def _known(self, value: Motion | Prior, suffix: str, write: Callable[[Path], object]) -> str:
        name = self._names.get(value)
        if name is None or not (self.folder / name).is_file():
            name = self._names[value] = self._put(suffix, write)
        return name

    def _put(self, suffix: str, write: Callable[[Path], object]) -> str:
        """Write a part under a temporary name and rename it when complete."""
        make_folder(self.folder)
        aside = self.folder / f".{secrets.token_hex(8)}{suffix}"
        try:
            write(aside)
            with aside.open("rb") as file:
                name = hashlib.file_digest(file, "sha256").hexdigest()[:32] + suffix
            aside.replace(self.folder / name)
        finally:
            aside.unlink(missing_ok=True)
        return name


def _bytes_of(motion: Motion) -> bytes:
    from safetensors.numpy import save as to_bytes

    arrays = {"root_positions": motion.root_positions, "rotations": motion.rotations}
    kept = {name: np.ascontiguousarray(array, dtype="<f8") for name, array in arrays.items()}
    return to_bytes(kept, {"fps": repr(motion.fps), "name": motion.name})


def _motion_of(path: Path, skeleton: Skeleton) -> Motion:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            about, frames = (
                file.metadata(),
                [file.get_tensor(name) for name in ("root_positions", "rotations")],
            )
        fps = float(about["fps"])
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ParseError(f"not a motion of a scene: {error}", path=path) from error
    if any(array.dtype != np.float64 for array in frames) or not 0.0 < fps <= 10_000.0:
        raise ParseError(f"not a motion of a scene: {frames[0].dtype} at {fps} Hz", path=path)
    return Motion(skeleton, fps, frames[0], frames[1], name=about.get("name", ""))
