"""A take is written as it comes, so that an interruption loses nothing that was performed.

A line of JSON with the skeleton, then a row of numbers (little-endian float64) per frame: its time, the root's
position and every joint's rotation (wxyz). The journal is deleted when the take has been saved; a remaining one
belongs to an interrupted take, which the next performance recovers.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from poise.errors import ParseError, PoiseError
from poise.formats import write
from poise.formats.files import FileAccessError, make_folder, try_lock
from poise.motion.motion import Motion
from poise.skeleton.skeleton import Pose, Skeleton
from poise.solvers.solution import Solution

SUFFIX = ".journal"
LONGEST_HEAD = 1_000_000  # bytes
MOST_FPS = 240.0
_FLAGS = (
    os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | getattr(os, "O_BINARY", 0)
)  # bytes, on Windows too


class Head(msgspec.Struct):
    """The header of a journal; without a frame rate it follows from the times."""

    names: list[str]
    parents: list[int]
    offsets: list[tuple[float, float, float]]
    orders: list[str]
    roles: Mapping[str, str]
    fps: Annotated[float, Meta(ge=1.0, le=10_000.0)] | None = None


class Journal:
    """The journal of a future file, or of none; it is created at the first frame."""

    def __init__(self, output: Path | None, *, fps: float | None = None) -> None:
        self._path = None if output is None else journal_of(output)
        self._fps = fps
        self._file: int | None = None
        self._waiting = b""

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def add(self, frame: Solution | Pose, at: float) -> None:
        """Add a frame; it is written at once, or on a full disk as soon as there is space."""
        if self._path is None:
            return
        pose = frame if isinstance(frame, Pose) else frame.pose
        if self._file is None:
            make_folder(self._path.parent)
            try:
                self._file = os.open(self._path, _FLAGS, 0o600)
            except OSError as error:
                raise FileAccessError(f"cannot write {self._path}: {error.strerror or error}") from error
            try_lock(self._file)
            body = pose.skeleton
            head = Head(
                list(body.names), body.parents.tolist(), body.offsets.tolist(), list(body.orders),
                dict(body.role_overrides), self._fps,
            )  # fmt: skip
            self._waiting = msgspec.json.encode(head) + b"\n"
        row = np.concatenate([[at], pose.root_position, pose.rotations.ravel()])
        self._write(row.astype("<f8").tobytes())

    def close(self, *, saved: bool = False) -> None:
        """Close it; the journal of a saved take is deleted."""
        if self._file is not None and self._path is not None:
            self._write(b"")
            os.close(self._file)
            self._file = None
            if saved:
                self._path.unlink(missing_ok=True)

    def _write(self, data: bytes) -> None:
        """Write the pending data, then this; on a full disk the rest is written later."""
        assert self._file is not None
        self._waiting += data
        with suppress(OSError):
            self._waiting = self._waiting[os.write(self._file, self._waiting) :]


def brought_back(output: Path) -> tuple[Path, int] | None:
    """Recover an interrupted take of an earlier performance: its new file, and its frames."""
    journal = journal_of(output)
    begun = journal.is_file() and journal.stat().st_size > 0  # an empty one was interrupted before its header
    if not begun or (motion := cut_off(journal)) is None:
        return None
    tried = (output.with_stem(f"{output.stem}-recovered{number or ''}") for number in count())
    target = next(path for path in tried if not path.exists())
    write(motion, target)
    journal.unlink(missing_ok=True)
    return target, len(motion)


def journal_of(output: Path) -> Path:
    """The path of a take's journal."""
    return output.with_name(output.name + SUFFIX)


def cut_off(path: Path) -> Motion | None:
    """The take of a journal that no process writes; None if there is none, or if it is empty."""
    try:
        with path.open("r+b") as file:
            if not try_lock(file.fileno()):
                return None
            head, rows = file.readline(LONGEST_HEAD), file.read()
    except OSError:
        return None
    try:
        return _motion(msgspec.json.decode(head, type=Head), rows, path.name.removesuffix(SUFFIX))
    except (msgspec.DecodeError, PoiseError, ValueError) as error:
        raise ParseError(f"not a journal of a performance: {error}", path=path) from error


def _motion(head: Head, rows: bytes, name: str) -> Motion | None:
    skeleton = Skeleton(
        tuple(head.names), np.array(head.parents), np.array(head.offsets), tuple(head.orders), role_overrides=head.roles
    )  # fmt: skip
    width = 4 + 4 * len(skeleton)
    whole = len(rows) // (8 * width)  # the last row may be incomplete
    table = np.frombuffer(rows, "<f8", whole * width).reshape(whole, width)
    table = table[np.isfinite(table).all(axis=1)]
    if not len(table):
        return None
    span = float(table[-1, 0] - table[0, 0])
    fps = head.fps or float(np.clip(round((len(table) - 1) / span) if span > 0 else 30.0, 1.0, MOST_FPS))
    return Motion(skeleton, fps, table[:, 1:4], table[:, 4:].reshape(len(table), -1, 4), name=name)
