"""The container of glTF files: chunks, JSON and accessors, with every size and number checked before it is used."""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote

import numpy as np
from jaxtyping import Float

from poise.errors import ParseError
from poise.formats.named_files import RefusedNameError, named_bytes
from poise.motion.motion import SEPARATOR
from poise.types import Array

Json = dict[str, Any]

_COMPONENTS = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
_WIDTHS = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}
_DRACO = "KHR_draco_mesh_compression"
_JSON_CHUNK, _BINARY_CHUNK = b"JSON", b"BIN\0"


class Container:
    """An opened glTF file: its JSON, and its arrays on demand. Any inconsistency is a ParseError."""

    def __init__(self, path: Path, data: bytes | None = None) -> None:
        self.path = path
        data = path.read_bytes() if data is None else data
        self.bytes = len(data)
        text, self._binary = self._chunks(data) if data.startswith(b"glTF") else (data, None)
        self.json: Json = self._parsed(text)
        self._buffers: dict[int, bytes] = {}
        self._arrays: dict[int, Array] = {}

    def fail(self, message: str) -> NoReturn:
        raise ParseError(message, path=self.path)

    def objects(self, key: str, within: Json | None = None) -> list[Json]:
        """A list of JSON objects, empty if absent."""
        found = (self.json if within is None else within).get(key, [])
        if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
            self.fail(f"{key!r} must be a list of objects")
        return found

    def record(self, key: str, within: Json) -> Json:
        """A JSON object, empty if absent."""
        found = within.get(key, {})
        if not isinstance(found, dict):
            self.fail(f"{key!r} must be an object")
        return found

    def integer(self, key: str, within: Json, *, below: int, default: int | None = None) -> int:
        """A whole number from 0 up to but excluding `below`."""
        found = within.get(key, default)
        if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found < below:
            self.fail(f"{key!r} is {found!r:.40}; expected a whole number from 0 to {below - 1}")
        return found

    def integers(self, key: str, within: Json, *, below: int) -> list[int]:
        """A list of whole numbers from 0 up to but excluding `below`, empty if absent."""
        found = within.get(key, [])
        if not isinstance(found, list):
            self.fail(f"{key!r} must be a list of numbers")
        return [self.integer(key, {key: entry}, below=below) for entry in found]

    def numbers(
        self, key: str, within: Json, *, count: int, default: tuple[float, ...] | None = None
    ) -> Array:
        """A list of `count` finite numbers."""
        found = within.get(key, default)
        is_list = isinstance(found, (list, tuple)) and len(found) == count
        if not is_list or not all(isinstance(x, (int, float)) and abs(x) < 1e30 for x in found or ()):
            self.fail(f"{key!r} must be {count} numbers")
        return np.array(found, dtype=np.float64)

    def array(self, number: int, *, kind: str) -> Float[Array, "count width"]:
        """The values of an accessor as float64, one row per element; normalised integers become -1 to 1 or 0 to 1."""
        if number not in self._arrays:
            self._arrays[number] = self._decoded(self.objects("accessors")[number], number)
        values = self._arrays[number]
        if values.shape[1] != _WIDTHS[kind]:
            self.fail(f"accessor {number} has {values.shape[1]} numbers per element; expected {kind}")
        return values

    def _decoded(self, accessor: Json, number: int) -> Array:
        component = self.integer("componentType", accessor, below=6000)
        kind = accessor.get("type")
        if component not in _COMPONENTS or not isinstance(kind, str) or kind not in _WIDTHS:
            self.fail(f"accessor {number} has the unknown type {kind!r:.20} of {component}")
        if "sparse" in accessor or "bufferView" not in accessor:
            self.fail(f"accessor {number} is sparse or has no data; that is not supported")
        dtype, width = np.dtype(_COMPONENTS[component]), _WIDTHS[kind]
        data, stride = self.view(self.integer("bufferView", accessor, below=len(self.objects("bufferViews"))))
        start = self.integer("byteOffset", accessor, below=max(1, len(data)), default=0)
        count = self.integer("count", accessor, below=self.bytes + len(data) + 1)
        size, stride = dtype.itemsize * width, stride or dtype.itemsize * width
        if stride < size or count == 0 or start + stride * (count - 1) + size > len(data):
            self.fail(f"accessor {number} needs {count} elements; its buffer view has only {len(data)} bytes")
        with np.errstate(invalid="ignore"):  # for values that are not finite
            rows = np.ndarray((count, width), dtype, data, start, (stride, dtype.itemsize)).astype(np.float64)
        if not np.all(np.isfinite(rows)):
            self.fail(f"accessor {number} holds values that are not finite")
        return _normalised(rows, dtype) if accessor.get("normalized") is True else rows

    def view(self, number: int) -> tuple[memoryview, int]:
        """The bytes of a buffer view and the stride between elements, 0 if they are contiguous."""
        view = self.objects("bufferViews")[number]
        if packed := [
            name for name in self.record("extensions", view) if name.endswith("meshopt_compression")
        ]:
            self.fail(
                f"its data are compressed by {packed[0]}; unpack them with: gltfpack -i IN.glb -o OUT.glb -noq -kn"
            )
        data = self.buffer(self.integer("buffer", view, below=len(self.objects("buffers"))))
        start = self.integer("byteOffset", view, below=len(data) + 1, default=0)
        length = self.integer("byteLength", view, below=len(data) - start + 1)
        return memoryview(data)[start : start + length], self.integer(
            "byteStride", view, below=256, default=0
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What Poise does not read of the file."""
        if _DRACO not in str(self.json.get("extensionsUsed")):
            return ()
        return (
            "its meshes are compressed by Draco: pictures show a mannequin; files are written with the meshes",
        )

    def buffer(self, number: int) -> bytes:
        """The bytes of a buffer, read once."""
        if number not in self._buffers:
            uri = self.objects("buffers")[number].get("uri")
            if uri is not None and not isinstance(uri, str):
                self.fail(f"buffer {number} has an address that is not text")
            if uri is None and (number != 0 or self._binary is None):
                self.fail(f"buffer {number} has neither an address nor a binary chunk")
            self._buffers[number] = (self._binary or b"") if uri is None else self._fetched(uri)
        return self._buffers[number]

    def _fetched(self, uri: str) -> bytes:
        """A buffer from a data address or from a file beside this one; never from elsewhere."""
        if uri.startswith("data:"):
            try:
                return base64.b64decode(uri.partition(",")[2], validate=True)
            except (binascii.Error, ValueError):
                self.fail("a buffer's data address is not base64")
        try:
            return named_bytes(self.path.parent, unquote(uri))
        except RefusedNameError as error:
            self.fail(f"the buffer {error}")

    def _chunks(self, data: bytes) -> tuple[bytes, bytes | None]:
        """The JSON and the binary chunk of a GLB."""
        if len(data) < 20:
            self.fail(f"a GLB needs at least 20 bytes; this has {len(data)}")
        version, length = struct.unpack_from("<II", data, 4)
        if version != 2:
            self.fail(f"GLB version {version}; expected 2")
        if length > len(data):
            self.fail(f"truncated: the header says {length} bytes, the file has {len(data)}")
        chunks: list[tuple[bytes, bytes]] = []
        at = 12
        while at + 8 <= length and len(chunks) < 2:
            size, kind = struct.unpack_from("<I4s", data, at)
            if at + 8 + size > length:
                self.fail(f"chunk {kind!r} at byte {at} says {size} bytes and ends past the file")
            chunks.append((kind, data[at + 8 : at + 8 + size]))
            at += 8 + size
        if not chunks or chunks[0][0] != _JSON_CHUNK:
            self.fail("the first chunk is not JSON")
        return chunks[0][1], next((body for kind, body in chunks[1:] if kind == _BINARY_CHUNK), None)

    def _parsed(self, text: bytes) -> Json:
        try:
            found = json.loads(text.decode("utf-8-sig"), parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            self.fail(f"the JSON cannot be read: {str(error)[:80]}")
        if not isinstance(found, dict):
            self.fail("the JSON is not an object")
        asset = found.get("asset")
        if not isinstance(asset, dict) or not str(asset.get("version", "")).startswith("2."):
            self.fail("not a glTF 2 document: asset.version is not 2.x; export it as glTF 2.0")
        return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number JSON knows")


def _normalised(rows: Array, dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "f":
        return rows
    return np.maximum(rows / np.iinfo(dtype).max, -1.0)


def credited(asset: Json, credits: Sequence[str]) -> Json:
    """A file's `asset` with these credits added to its copyright."""
    held = asset.get("copyright")
    named = dict.fromkeys((*(held.split(SEPARATOR) if isinstance(held, str) and held else ()), *credits))
    return {**asset, "copyright": SEPARATOR.join(named)} if named else asset


def glb_of(document: Json, binary: bytes) -> bytes:
    """The bytes of a GLB: a header, the JSON chunk and, if not empty, the binary chunk."""
    text = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
    chunks = [(_JSON_CHUNK, text + b" " * (-len(text) % 4))]
    chunks += [(_BINARY_CHUNK, binary + bytes(-len(binary) % 4))] if binary else []
    body = b"".join(struct.pack("<I4s", len(data), kind) + data for kind, data in chunks)
    return struct.pack("<4sII", b"glTF", 2, 12 + len(body)) + body
