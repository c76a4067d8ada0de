"""Safetensors files larger than memory: mapped for reading, streamed for writing, replaced atomically."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from poise.bounds import LONGEST_TEXT, checked_depth
from poise.errors import InvalidValueError, ParseError
from poise.formats.files import existing_file, not_a_link, replacing
from poise.types import Array

_TYPES = {"F32": np.float32, "F64": np.float64, "I32": np.int32, "I64": np.int64, "BOOL": np.bool_}
_NAMES = {np.dtype(kind): name for name, kind in _TYPES.items()}
_LARGEST_HEADER = 2 * LONGEST_TEXT  # the header of a library's file is text within text
Stream = tuple[tuple[int, ...], np.dtype[Any], Iterable[Array]]
"""The shape and type of an array, and its rows in blocks."""


def write_tensors(path: Path, arrays: Mapping[str, Array | Stream], header: Mapping[str, Any]) -> str:
    """Write arrays, whole or in blocks, and a JSON header, flushed to disk; return the file's SHA-256."""
    streams: dict[str, Stream] = {}
    for name, given in arrays.items():
        whole = given if isinstance(given, tuple) else np.ascontiguousarray(given)
        streams[name] = whole if isinstance(whole, tuple) else (whole.shape, whole.dtype, (whole,))
    # Wide numbers first, so that every array starts at a multiple of its own width.
    order = sorted(streams, key=lambda name: -streams[name][1].itemsize)
    fields: dict[str, Any] = {"__metadata__": {"poise": json.dumps(header)}}
    at = 0
    for name in order:
        shape, kind, _ = streams[name]
        end = at + int(np.prod(shape)) * kind.itemsize
        fields[name] = {"dtype": _NAMES[kind], "shape": list(shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(fields).encode()
    text += b" " * (-len(text) % 8)
    digest = hashlib.sha256()
    with replacing(path, "wb") as file:
        for data in itertools.chain(
            [len(text).to_bytes(8, "little") + text],
            (
                np.ascontiguousarray(block, dtype=streams[name][1]).tobytes()
                for name in order
                for block in streams[name][2]
            ),
        ):
            digest.update(data)
            file.write(data)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def map_tensors(path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays of a file, memory-mapped and read-only, and its header; data are read on access only."""
    size = existing_file(not_a_link(path)).stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if not 0 < length <= min(size - 8, _LARGEST_HEADER):
            raise ParseError("not a safetensors file, or truncated", path=path)
        try:
            fields = checked_depth(json.loads(file.read(length)))
        except (ValueError, RecursionError, InvalidValueError) as error:
            raise ParseError(f"a safetensors file with a damaged header: {error}", path=path) from error
        whole = np.memmap(file, np.uint8, "r")
    if not isinstance(fields, dict):
        raise ParseError("a safetensors file with a damaged header", path=path)
    arrays: dict[str, Array] = {}
    try:
        header = json.loads(fields.pop("__metadata__", {}).get("poise", "null"))
        for name, field in fields.items():
            first, end = (8 + length + int(place) for place in field["data_offsets"])
            shape, kind = tuple(int(n) for n in field["shape"]), np.dtype(_TYPES[field["dtype"]])
            fits = 0 <= first <= end <= size and end - first == math.prod(shape) * kind.itemsize
            if not fits or min(shape, default=1) < 0:
                raise ValueError(f"{size} bytes; expected {end}")
            arrays[name] = np.asarray(whole[first:end].view(kind).reshape(shape))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise ParseError(f"not a library file, or damaged: {error}", path=path) from error
    if not isinstance(header, dict):
        raise ParseError("a safetensors file, but not a library file", path=path)
    return arrays, header


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file."""
    with existing_file(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
