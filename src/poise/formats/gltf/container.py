"""The container of glTF files: chunks, JSON and accessors, with every size and number checked before it is used."""

from __future__ import annotations

import base64
import binascii
import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
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
DRACO = "KHR_draco_mesh_compression"
PICTURES = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg"}
_FLOAT, _SHORT, _INT = 5126, 5123, 5125
VERTICES, INDICES = 34962, 34963  # targets of a buffer view
_MOST_ZEROS = 10_000_000  # rows of an accessor without a view
_JSON_CHUNK, _BINARY_CHUNK = b"JSON", b"BIN\0"


class Container:
    """An opened glTF file: its JSON, and its arrays on demand. Any inconsistency is a ParseError."""

    def __init__(self, path: Path, data: bytes | None = None) -> None:
        self.path = path
        data = path.read_bytes() if data is None else data
        self.bytes = len(data)
        self.is_binary = data.startswith(b"glTF")
        text, self._binary = self._chunks(data) if self.is_binary else (data, None)
        try:
            found = json.loads(text.decode("utf-8-sig"), parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            self.fail(f"the JSON cannot be read: {str(error)[:80]}")
        if not isinstance(found, dict):
            self.fail("the JSON is not an object")
        asset = found.get("asset")
        if not isinstance(asset, dict) or not str(asset.get("version", "")).startswith("2."):
            self.fail("not a glTF 2 document: asset.version is not 2.x; export it as glTF 2.0")
        self.json: Json = found
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
        """All values of an accessor: those in its view, else zeros, with its sparse ones in their places."""
        component = self.integer("componentType", accessor, below=6000)
        kind = accessor.get("type")
        if component not in _COMPONENTS or not isinstance(kind, str) or kind not in _WIDTHS:
            self.fail(f"accessor {number} has the unknown type {kind!r:.20} of {component}")
        dtype, width, sparse = (
            np.dtype(_COMPONENTS[component]),
            _WIDTHS[kind],
            self.record("sparse", accessor),
        )
        if "bufferView" in accessor:
            count = self.integer("count", accessor, below=2**40)
            rows = self._rows(accessor, dtype, width, count, f"accessor {number}")
        else:
            if not sparse:
                advice = (
                    "; it is compressed by Draco: install the package DracoPy" if DRACO in self.used else ""
                )
                self.fail(f"accessor {number} has no data{advice}")
            rows = np.zeros((self.integer("count", accessor, below=_MOST_ZEROS), width))
        if sparse:
            indices, values = self.record("indices", sparse), self.record("values", sparse)
            own = _COMPONENTS.get(self.integer("componentType", indices, below=6000), "<u4")
            count = self.integer("count", sparse, below=len(rows) + 1)
            places = self._rows(indices, np.dtype(own), 1, count, f"accessor {number}")[:, 0]
            if not np.all((places >= 0) & (places < len(rows))):
                self.fail(f"accessor {number} has sparse values beyond its end")
            rows[places.astype(np.int64)] = self._rows(values, dtype, width, count, f"accessor {number}")
        if not np.all(np.isfinite(rows)):
            self.fail(f"accessor {number} holds values that are not finite")
        normalised = accessor.get("normalized") is True and dtype.kind != "f"
        return np.maximum(rows / np.iinfo(dtype).max, -1.0) if normalised else rows

    def _rows(self, place: Json, dtype: np.dtype[Any], width: int, count: int, what: str) -> Array:
        data, stride = self.view(self.integer("bufferView", place, below=len(self.objects("bufferViews"))))
        start = self.integer("byteOffset", place, below=max(1, len(data)), default=0)
        size, stride = dtype.itemsize * width, stride or dtype.itemsize * width
        if not 0 < count <= self.bytes + len(data):
            self.fail(
                f"'count' of {what} is {count}; expected a whole number from 1 to {self.bytes + len(data)}"
            )
        if stride < size or start + stride * (count - 1) + size > len(data):
            self.fail(f"{what} needs {count} elements; its buffer view has only {len(data)} bytes")
        with np.errstate(invalid="ignore"):  # for values that are not finite
            return np.ndarray((count, width), dtype, data, start, (stride, dtype.itemsize)).astype(np.float64)

    @property
    def used(self) -> str:
        """The extensions that the file uses, as text."""
        return str(self.json.get("extensionsUsed"))

    def view(self, number: int) -> tuple[memoryview, int]:
        """The bytes of a buffer view and the stride between elements, 0 if they are contiguous."""
        view = self.objects("bufferViews")[number]
        data = self.buffer(self.integer("buffer", view, below=len(self.objects("buffers"))))
        start = self.integer("byteOffset", view, below=len(data) + 1, default=0)
        length = self.integer("byteLength", view, below=len(data) - start + 1)
        stride = self.integer("byteStride", view, below=256, default=0)
        return memoryview(data)[start : start + length], stride

    @property
    def notes(self) -> tuple[str, ...]:
        """What Poise does not read of the file."""
        said = (
            "its meshes are compressed by Draco: pictures show a mannequin; files are written with the meshes"
        )
        return (said,) if DRACO in self.used else ()

    def buffer(self, number: int) -> bytes:
        """The bytes of a buffer, read once: a chunk, a data address or a file beside this one; never from elsewhere."""
        if number not in self._buffers:
            uri = self.objects("buffers")[number].get("uri")
            if uri is not None and not isinstance(uri, str):
                self.fail(f"buffer {number} has an address that is not text")
            if uri is None and (number != 0 or self._binary is None):
                self.fail(f"buffer {number} has neither an address nor a binary chunk")
            try:
                if uri is None:
                    self._buffers[number] = self._binary or b""
                elif uri.startswith("data:"):
                    self._buffers[number] = base64.b64decode(uri.partition(",")[2], validate=True)
                else:
                    self._buffers[number] = named_bytes(self.path.parent, unquote(uri))
            except RefusedNameError as error:
                self.fail(f"the buffer {error}")
            except (binascii.Error, ValueError):
                self.fail("a buffer's data address is not base64")
        return self._buffers[number]

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


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number JSON knows")


@dataclass
class Document:
    """A glTF document under construction: its JSON parts, and one binary buffer for all accessors."""

    nodes: list[Json] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)
    parts: dict[str, Any] = field(default_factory=dict)
    accessors: list[Json] = field(default_factory=list)
    views: list[Json] = field(default_factory=list)
    binary: bytearray = field(default_factory=bytearray)

    def accessor(self, values: Array, kind: str, *, target: int | None = None, bounds: bool = False) -> int:
        """Add an array, one row per element; return the accessor's index."""
        component = {"f": _FLOAT, "H": _SHORT, "I": _INT}[values.dtype.char]
        view: Json = {"buffer": 0, "byteOffset": len(self.binary), "byteLength": values.nbytes}
        self.views.append(view | ({"target": target} if target else {}))
        self.binary += values.tobytes() + bytes(-values.nbytes % 4)
        entry: Json = {
            "bufferView": len(self.views) - 1, "componentType": component, "count": len(values), "type": kind,
        }  # fmt: skip
        if bounds:
            flat = values.reshape(len(values), -1)
            entry |= {"min": flat.min(axis=0).tolist(), "max": flat.max(axis=0).tolist()}
        self.accessors.append(entry)
        return len(self.accessors) - 1

    def picture(self, data: bytes, kind: str) -> int:
        """Add a PNG or JPEG; return the index of its texture."""
        images, textures = (self.parts.setdefault(name, []) for name in ("images", "textures"))
        self.views.append({"buffer": 0, "byteOffset": len(self.binary), "byteLength": len(data)})
        self.binary += data + bytes(-len(data) % 4)
        images.append({"bufferView": len(self.views) - 1, "mimeType": kind})
        textures.append({"source": len(images) - 1})
        return len(textures) - 1

    def glb(self, about: Json, credits: Sequence[str]) -> bytes:
        """The whole file: a header, the JSON chunk and, if not empty, the binary chunk."""
        scene: Json = {"nodes": self.roots, "extras": {"poise": about}}
        document: Json = {
            "asset": credited({"version": "2.0", "generator": "Poise"}, credits),
            "scene": 0, "scenes": [scene], "nodes": self.nodes, **self.parts,
        }  # fmt: skip
        if self.binary:
            buffers = [{"byteLength": len(self.binary)}]
            document |= {"accessors": self.accessors, "bufferViews": self.views, "buffers": buffers}
        return glb_of(document, bytes(self.binary))


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
