"""Pack a glTF file into one GLB: buffers and pictures beside it go inside, and compressed data are unpacked.

`EXT_meshopt_compression` (Kapoulkine 2022) is unpacked by the package meshoptimizer and `KHR_draco_mesh_compression` by
DracoPy, in a process of their own, if they are installed.
"""

from __future__ import annotations

import base64
import binascii
import copy
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np

from poise.formats.apart import arrays_of
from poise.formats.files import existing_file, scratch_folder
from poise.formats.gltf.container import DRACO, PICTURES, Container, Json, glb_of
from poise.formats.named_files import MOST_BYTES, RefusedNameError, named_bytes

_MESHOPT = ("EXT_meshopt_compression", "KHR_meshopt_compression")
_TYPES = {5120: "i1", 5121: "u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}


def glb(path: str | os.PathLike[str]) -> bytes:
    """The file as one GLB with plain data; a GLB that is that already, byte by byte."""
    file = Container(existing_file(path))
    outside = any("uri" in entry for key in ("buffers", "images") for entry in file.objects(key))
    draco = DRACO in file.used and find_spec("DracoPy") is not None
    extended = [file.record("extensions", view) for view in file.objects("bufferViews")]
    meshopt = any(name in extension for name in _MESHOPT for extension in extended)
    if not (outside or draco or meshopt) and file.is_binary:
        return file.path.read_bytes()
    return _Packing(file).packed(draco=draco)


class _Packing:
    """The parts of a file as one document and one buffer."""

    def __init__(self, file: Container) -> None:
        self.file, self.document, self.binary = file, copy.deepcopy(file.json), bytearray()
        self.views: list[Json] = []

    def packed(self, *, draco: bool) -> bytes:
        """The GLB; data compressed by Draco stay as they are unless `draco`."""
        document, jobs = self.document, dict[str, Any]()
        for number, view in enumerate(self.file.objects("bufferViews")):
            self._job(number, view, jobs)
        primitives = [one for mesh in document.get("meshes", ()) for one in mesh.get("primitives", ())]
        shrunk = [one for one in primitives if DRACO in one.get("extensions", {})] if draco else []
        for number, one in enumerate(shrunk):
            within = self.file.record(DRACO, one["extensions"])
            packed = self.file.integer("bufferView", within, below=len(self.views))
            jobs[f"draco {number}"] = np.frombuffer(bytes(self.file.view(packed)[0]), np.uint8)
        found = _unpacked(self.file, jobs)
        for name, data in found.items():
            if name.startswith("view "):
                place = self.views[int(name.split()[1])]
                place |= self._add(data.tobytes())
        for number, one in enumerate(shrunk):
            self._take(
                one,
                {
                    name.split()[2]: data
                    for name, data in found.items()
                    if name.startswith(f"draco {number} ")
                },
            )
        for image in document.get("images", ()):
            self._picture(image)
        removed = {*_MESHOPT, *([DRACO] if draco else [])}
        for key in ("extensionsUsed", "extensionsRequired"):
            if kept := [name for name in document.pop(key, ()) if name not in removed]:
                document[key] = kept
        document["bufferViews"] = self.views
        document["buffers"] = [{"byteLength": len(self.binary)}]
        return glb_of({key: value for key, value in document.items() if value != []}, bytes(self.binary))

    def _job(self, number: int, view: Json, jobs: dict[str, Any]) -> None:
        """Add a buffer view, plain at once, compressed by meshopt as a job for the process that unpacks it."""
        plain = {
            key: value for key, value in view.items() if key not in ("extensions", "buffer", "byteOffset")
        }
        self.views.append(plain)
        within = self.file.record("extensions", view)
        name = next((name for name in _MESHOPT if name in within), None)
        if name is None:
            plain |= self._add(bytes(self.file.view(number)[0]))
            return
        if find_spec("meshoptimizer") is None:
            self.file.fail(
                f"its data are compressed by {name}: install the package meshoptimizer, or unpack them with: "
                "gltfpack -i IN.glb -o OUT.glb -noq -kn"
            )
        packed = self.file.record(name, within)
        buffer = self.file.buffer(
            self.file.integer("buffer", packed, below=len(self.file.objects("buffers")))
        )
        start = self.file.integer("byteOffset", packed, below=len(buffer) + 1, default=0)
        length = self.file.integer("byteLength", packed, below=len(buffer) - start + 1)
        stride = self.file.integer("byteStride", packed, below=257)
        count = self.file.integer("count", packed, below=MOST_BYTES // max(stride, 1))
        how = f"{packed.get('mode', 'ATTRIBUTES')} {packed.get('filter', 'NONE')} {count} {stride}"
        jobs[f"view {number} {how}"] = np.frombuffer(buffer, np.uint8)[start : start + length]

    def _add(self, data: bytes) -> Json:
        """Append bytes to the buffer; return their place."""
        self.binary += bytes(-len(self.binary) % 4)
        place = {"buffer": 0, "byteOffset": len(self.binary), "byteLength": len(data)}
        self.binary += data
        return place

    def _take(self, primitive: Json, arrays: dict[str, Any]) -> None:
        """Give the accessors of a primitive the values that Draco unpacked, in their own type."""
        accessors = self.document["accessors"]
        extension = primitive["extensions"].pop(DRACO)
        wanted = {
            name: (primitive["attributes"].get(name), f"{key}")
            for name, key in extension["attributes"].items()
        }
        for accessor, key in [*wanted.values(), (primitive.get("indices"), "faces")]:
            if not isinstance(accessor, int) or not 0 <= accessor < len(accessors) or key not in arrays:
                self.file.fail("a mesh compressed by Draco lacks what its accessors describe")
            entry = accessors[accessor]
            kind = _TYPES.get(entry.get("componentType"), "<f4")
            values = np.ascontiguousarray(arrays[key].astype(kind))
            entry |= {
                "bufferView": len(self.views),
                "byteOffset": 0,
                "count": values.size if key == "faces" else len(values),
            }
            self.views.append(self._add(values.tobytes()))
        if not primitive["extensions"]:
            del primitive["extensions"]

    def _picture(self, image: Json) -> None:
        """Put a picture beside the file, or in a data address, into the buffer; one that may not be read stays out."""
        uri = image.get("uri")
        if not isinstance(uri, str):
            return
        try:
            if uri.startswith("data:"):
                data = base64.b64decode(uri.partition(",")[2], validate=True)
            else:
                data = named_bytes(self.file.path.parent, unquote(uri))
        except (RefusedNameError, binascii.Error, ValueError):
            return
        kind = next((kind for head, kind in PICTURES.items() if data.startswith(head)), None)
        if kind is not None:
            del image["uri"]
            image |= {"bufferView": len(self.views), "mimeType": kind}
            self.views.append(self._add(data))


def _unpacked(file: Container, jobs: dict[str, Any]) -> dict[str, Any]:
    """What a process of its own makes of compressed data: for a view its bytes, for a mesh its faces and attributes."""
    if not jobs:
        return {}
    with scratch_folder() as folder:
        packed = Path(folder) / "packed.npz"
        np.savez(packed, **jobs)
        return arrays_of("gltf", packed, reason="its compressed data are damaged", said_of=file.path)
