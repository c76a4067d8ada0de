"""Convert the rows of a BVH file to root positions and quaternions, block by block while reading."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from io import BufferedReader
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from poise.errors import ParseError
from poise.formats.bvh_header import Header, Node
from poise.formats.number_rows import NumberRows
from poise.geometry import rotations
from poise.types import Array

_STILL = 1e-3  # of the longest bone: positions that vary by less count as constant
_MOST_BYTES_PER_BYTE = 40  # largest size of a pose relative to its text, in a real recording
_ALWAYS_ALLOWED_BYTES = 1 << 28
_WHOLE_BODY = 10  # joints; fewer may all be still


@dataclass
class BvhFrames:
    """A skeleton and its frames in the file's units, built from the rows."""

    names: tuple[str, ...]
    parents: Int[Array, "joints"]
    offsets: Float[Array, "joints 3"]
    orders: tuple[str, ...]
    root_positions: Float[Array, "frames 3"]
    rotations: Float[Array, "frames joints 4"]
    warnings: list[str] = field(default_factory=list)


def read_frames(file: BufferedReader, header: Header, *, path: Path) -> BvhFrames:
    """Read all frames after the header, with corrections noted."""
    if header.columns == 0:
        raise ParseError("no joint has a channel, so there is no motion", path=path)
    size = path.stat().st_size
    expected = _expected_frames(header, size=size)
    _check_memory(expected, header, path=path, size=size)
    table = _Table(header, room=expected)
    file.seek(header.first_row_byte)
    rows = NumberRows(file, columns=header.columns, line=header.first_row_line, path=path)
    for block in rows:
        _check_memory(rows.rows, header, path=path, size=size)
        table.add(block)
    rows.check_end(declared=header.frames)
    if rows.rows == 0:
        raise ParseError(
            f"no frames: {header.frames} are declared, but the file has none",
            path=path,
            line=header.first_row_line,
        )
    return table.frames()


def _expected_frames(header: Header, *, size: int) -> int:
    """The declared number, limited by the file's size: a number and its separator take two bytes."""
    return min(header.frames, (size - header.first_row_byte) // (2 * header.columns) + 1)


def _check_memory(frames: int, header: Header, *, path: Path, size: int) -> None:
    """Raise if a small file would need too much memory: many joints without channels, and a row for every number."""
    needed = frames * len(header.nodes) * rotations.IDENTITY.nbytes
    if needed > _ALWAYS_ALLOWED_BYTES + _MOST_BYTES_PER_BYTE * size:
        raise ParseError(
            f"{frames} frames of {len(header.nodes)} joints would take {needed / 1e9:.1f} GB, "
            f"far more than a recording of {size / 1e6:.1f} MB can hold",
            path=path,
        )


class _Table:
    """Rotations, positions of the possible root joints, and the range of all other positions."""

    def __init__(self, header: Header, *, room: int) -> None:
        self._nodes = header.nodes
        self._count = 0
        self._offsets = np.array([node.offset for node in header.nodes])
        self._low, self._high = self._offsets.copy(), self._offsets.copy()
        self._total = np.zeros_like(self._offsets)
        self._chain = _possible_roots(header.nodes)
        self._groups = _joints_by_order(header.nodes)
        self._placed, self._axes, self._columns = _position_channels(header.nodes)
        self._tracks = np.empty((room, len(self._chain), 3))
        self._rotations = np.empty((room, len(header.nodes), 4))
        self._widest = 0.0

    def add(self, rows: Float[Array, "rows columns"]) -> None:
        """Convert and store a block of rows."""
        start, self._count = self._count, self._count + len(rows)
        self._make_room()
        for order, (joints, columns) in self._groups.items():
            if order:
                self._widest = max(self._widest, float(np.abs(rows[:, columns]).max(initial=0.0)))
            turned = (
                rotations.quaternion_from_euler(np.radians(rows[:, columns]), order)
                if order
                else rotations.IDENTITY
            )
            self._rotations[start : self._count, joints] = turned
        self._add_positions(rows, self._tracks[start : self._count])

    def frames(self) -> BvhFrames:
        """All frames so far, with static roots merged and position channels converted to offsets."""
        tracks, turns = self._tracks[: self._count], self._rotations[: self._count]
        warnings = self._scale_warnings()
        if len(self._nodes) >= _WHOLE_BODY and 1.0 < self._widest <= 2 * np.pi:
            warnings.append(f"all angles are within {self._widest:.3g} degrees; are they radians?")
        first = 0
        while first + 1 < len(self._chain) and self._merges(first):
            tracks[:, first + 1] = tracks[:, first] + rotations.rotate(turns[:, first], tracks[:, first + 1])
            turns[:, first + 1] = rotations.canonical(
                rotations.multiply(turns[:, first], turns[:, first + 1])
            )
            name, child = self._nodes[first].name, self._nodes[first + 1].name
            warnings.append(f"the root {name!r} above {child!r} was merged into it")
            first += 1
            self._offsets[first] = 0.0  # the position channels give its position
        warnings += self._settle_offsets(first)
        return BvhFrames(
            names=tuple(node.name for node in self._nodes[first:]),
            parents=np.array([-1, *(node.parent - first for node in self._nodes[first + 1 :])]),
            offsets=self._offsets[first:],
            orders=tuple(node.order() for node in self._nodes[first:]),
            root_positions=np.ascontiguousarray(tracks[:, first]),
            rotations=np.ascontiguousarray(turns[:, first:]),
            warnings=warnings,
        )

    def _make_room(self) -> None:
        """Grow in place, if the system can, by half when there are more rows than declared."""
        if self._count > len(self._rotations):
            room = max(self._count, len(self._rotations) * 3 // 2)
            self._tracks.resize((room, *self._tracks.shape[1:]), refcheck=False)
            self._rotations.resize((room, *self._rotations.shape[1:]), refcheck=False)

    def _add_positions(
        self, rows: Float[Array, "rows columns"], tracks: Float[Array, "rows chain 3"]
    ) -> None:
        positions, where = rows[:, self._columns], (self._placed, self._axes)
        if self._count == len(rows):  # the first block: position channels replace the offset
            self._low[where] = self._high[where] = positions[0]
        self._low[where] = np.minimum(self._low[where], positions.min(axis=0))
        self._high[where] = np.maximum(self._high[where], positions.max(axis=0))
        self._total[where] += positions.sum(axis=0)
        tracks[:] = self._offsets[: len(self._chain)]
        followed = self._placed < len(self._chain)
        tracks[:, self._placed[followed], self._axes[followed]] = positions[:, followed]

    def _merges(self, first: int) -> bool:
        """Whether the root is replaced by its only child: the child moves within it, or it stays at the origin."""
        stays = max(np.abs(self._low[first]).max(), np.abs(self._high[first]).max()) <= self._tolerance
        return self._varies(first + 1) or bool(stays)

    def _varies(self, joint: int) -> bool:
        return bool(np.any(self._high[joint] - self._low[joint] > self._tolerance))

    @cached_property
    def _tolerance(self) -> float:
        bones = np.linalg.norm((self._low + self._high)[len(self._chain) :] / 2, axis=-1)
        return _STILL * float(bones.max(initial=0.0))

    def _settle_offsets(self, root: int) -> list[str]:
        """Convert position channels below the root to offsets: their mean, if it differs from the offset."""
        moving, means = [], self._offsets.copy()
        means[self._placed, self._axes] = self._total[self._placed, self._axes] / self._count
        for joint in sorted(set(self._placed[self._placed > root].tolist())):
            if self._varies(joint):
                moving.append(joint)
            if np.any(np.abs(means[joint] - self._offsets[joint]) > self._tolerance):
                self._offsets[joint] = means[joint]
        if not moving:
            return []
        more = ", ..." if len(moving) > 5 else ""
        names = ", ".join(self._nodes[joint].name for joint in moving[:5]) + more
        furthest = float((self._high - self._low)[moving].max())
        return [
            f"joints that move relative to their parents (by up to {furthest:.4g} units of the file) "
            f"are held at their mean offsets: {names}"
        ]

    def _scale_warnings(self) -> list[str]:
        scaled = [
            node.name for node in self._nodes if any(channel.kind == "scale" for channel in node.channels)
        ]
        return [f"scale channels are not used (joints: {', '.join(scaled[:5])})"] if scaled else []


def _possible_roots(nodes: tuple[Node, ...]) -> list[int]:
    """The root and, while each is an only child with position channels, the joints below it: 0, 1, 2, ..."""
    children = np.bincount([node.parent for node in nodes[1:]], minlength=len(nodes))
    chain = [0]
    while children[chain[-1]] == 1 and any(
        channel.kind == "position" for channel in nodes[chain[-1] + 1].channels
    ):
        chain.append(chain[-1] + 1)
    return chain


def _joints_by_order(nodes: tuple[Node, ...]) -> dict[str, tuple[Array, Array]]:
    """Per rotation order, the joints that have it and their columns."""
    joints: dict[str, list[int]] = {}
    for joint, node in enumerate(nodes):
        joints.setdefault(node.order(), []).append(joint)
    return {order: (np.array(found), _rotation_columns(nodes, found)) for order, found in joints.items()}


def _rotation_columns(nodes: tuple[Node, ...], joints: list[int]) -> Int[Array, "joints k"]:
    columns = [
        [channel.column for channel in nodes[joint].channels if channel.kind == "rotation"]
        for joint in joints
    ]
    return np.array(columns, dtype=np.int64)


def _position_channels(nodes: tuple[Node, ...]) -> tuple[Array, Array, Array]:
    """Joint, axis and column of every position channel."""
    found = [
        (joint, "XYZ".index(channel.axis), channel.column)
        for joint, node in enumerate(nodes)
        for channel in node.channels
        if channel.kind == "position"
    ]
    joints, axes, columns = np.array(found, dtype=np.int64).reshape(-1, 3).T
    return joints, axes, columns
