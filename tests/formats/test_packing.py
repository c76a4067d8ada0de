"""glTF files in several parts, and compressed ones: packed into one GLB with plain data."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import poise
from bodies import person, stepping
from poise.errors import ParseError
from poise.formats.gltf import packing
from poise.formats.gltf.container import Container, glb_of
from poise.formats.gltf.meshes import read_mesh
from poise.formats.registry import glb_of_character

Json = dict[str, Any]


def _document(path: Path) -> tuple[Json, bytes]:
    file = Container(path)
    return file.json, file.buffer(0)


@pytest.fixture
def character(tmp_path: Path) -> Path:
    return poise.write(stepping(person()), tmp_path / "whole.glb")


def _in_parts(character: Path, folder: Path) -> Path:
    document, data = _document(character)
    folder.mkdir()
    (folder / "my data.bin").write_bytes(data)
    document["buffers"][0]["uri"] = "my%20data.bin"
    (folder / "character.gltf").write_text(json.dumps(document))
    return folder / "character.gltf"


def test_a_gltf_with_its_data_beside_it_is_a_character_like_the_glb(character: Path, tmp_path: Path) -> None:
    parts = _in_parts(character, tmp_path / "parts")
    whole, apart = poise.read(character), poise.read(parts)
    np.testing.assert_array_equal(apart.rotations, whole.rotations)
    np.testing.assert_array_equal(read_mesh(parts).vertices, read_mesh(character).vertices)
    assert glb_of_character(parts).startswith(b"glTF")
    assert glb_of_character(character) == character.read_bytes()


def test_a_motion_is_written_into_a_character_in_parts(character: Path, tmp_path: Path) -> None:
    parts = _in_parts(character, tmp_path / "parts")
    document = json.loads(parts.read_text())
    del document["scenes"][0]["extras"]  # as from another program
    parts.write_text(json.dumps(document))
    motion = poise.read(parts)
    assert motion.origin.character == str(parts)
    written = poise.write(motion, tmp_path / "moved.glb")
    np.testing.assert_allclose(poise.read(written).rotations, motion.rotations, atol=1e-6)
    assert len(read_mesh(written).vertices) == len(read_mesh(character).vertices)


def test_a_picture_beside_a_gltf_is_put_inside_and_one_elsewhere_is_not(
    character: Path, tmp_path: Path
) -> None:
    from PIL import Image

    parts = _in_parts(character, tmp_path / "parts")
    Image.new("RGB", (2, 2), (255, 0, 0)).save(parts.with_name("red.png"))
    document = json.loads(parts.read_text())
    document["images"] = [{"uri": "red.png"}, {"uri": "../red.png"}, {"uri": "missing.png"}]
    parts.write_text(json.dumps(document))
    (tmp_path / "packed.glb").write_bytes(glb_of_character(parts))
    packed = Container(tmp_path / "packed.glb")
    first, *others = packed.objects("images")
    assert bytes(packed.view(first["bufferView"])[0]) == parts.with_name("red.png").read_bytes()
    assert all("bufferView" not in one for one in others)


def _with_meshopt(character: Path, made: Path) -> Path:
    """The character with its skin's matrices compressed by meshopt."""
    meshopt = pytest.importorskip("meshoptimizer")
    document, data = _document(character)
    number = document["accessors"][document["skins"][0]["inverseBindMatrices"]]["bufferView"]
    view = document["bufferViews"][number]
    start, length = view.get("byteOffset", 0), view["byteLength"]
    rows = np.frombuffer(data[start : start + length], np.float32).reshape(-1, 16)
    small = bytes(meshopt.encode_vertex_buffer(rows, len(rows), 64))
    extension = {
        "buffer": 0, "byteOffset": len(data), "byteLength": len(small), "byteStride": 64, "count": len(rows),
        "mode": "ATTRIBUTES", "filter": "NONE",
    }  # fmt: skip
    view["extensions"] = {"EXT_meshopt_compression": extension}
    document |= {
        "extensionsUsed": ["EXT_meshopt_compression"],
        "extensionsRequired": ["EXT_meshopt_compression"],
    }
    document["buffers"][0]["byteLength"] += len(small)
    made.write_bytes(glb_of(document, data[: document["buffers"][0]["byteLength"] - len(small)] + small))
    return made


def test_data_compressed_by_meshopt_are_unpacked(character: Path, tmp_path: Path) -> None:
    packed = _with_meshopt(character, tmp_path / "small.glb")
    np.testing.assert_array_equal(poise.read(packed).rotations, poise.read(character).rotations)
    np.testing.assert_array_equal(read_mesh(packed).vertices, read_mesh(character).vertices)
    assert b"meshopt" not in glb_of_character(packed)


def test_data_compressed_by_draco_are_unpacked(character: Path, tmp_path: Path) -> None:
    draco = pytest.importorskip("DracoPy")
    document, data = _document(character)
    file, primitive = Container(character), document["meshes"][0]["primitives"][0]
    faces = file.array(primitive["indices"], kind="SCALAR").reshape(-1, 3).astype(np.uint32)
    columns = {
        "JOINTS_0": file.array(primitive["attributes"]["JOINTS_0"], kind="VEC4").astype(np.uint16),
        "WEIGHTS_0": file.array(primitive["attributes"]["WEIGHTS_0"], kind="VEC4").astype(np.float32),
        "NORMAL": file.array(primitive["attributes"]["NORMAL"], kind="VEC3").astype(np.float32),
    }
    points = file.array(primitive["attributes"]["POSITION"], kind="VEC3").astype(np.float32)
    small = draco.encode(
        points, faces, preserve_order=True, quantization_bits=20,
        generic_attributes={10 + k: values for k, values in enumerate(columns.values())},
    )  # fmt: skip
    numbers = {one["attribute_type"]: one["unique_id"] for one in draco.decode(small).attributes}
    names = {"POSITION": numbers[0]} | {name: 10 + k for k, name in enumerate(columns)}
    document["bufferViews"].append({"buffer": 0, "byteOffset": len(data), "byteLength": len(small)})
    extension = {"bufferView": len(document["bufferViews"]) - 1, "attributes": names}
    primitive["extensions"] = {"KHR_draco_mesh_compression": extension}
    for accessor in (primitive["indices"], *(primitive["attributes"][name] for name in names)):
        del document["accessors"][accessor]["bufferView"]
    document["extensionsUsed"] = ["KHR_draco_mesh_compression"]
    document["buffers"][0]["byteLength"] = len(data) + len(small)
    (tmp_path / "small.glb").write_bytes(glb_of(document, data + small))
    found = read_mesh(tmp_path / "small.glb")
    np.testing.assert_allclose(found.vertices, read_mesh(character).vertices, atol=1e-4)
    assert not any("Draco" in note for note in poise.read(tmp_path / "small.glb").origin.notes)


def test_compressed_data_are_refused_with_the_package_that_is_missing(
    character: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "find_spec", lambda _name: None)
    document, data = _document(character)
    document["bufferViews"][0]["extensions"] = {"EXT_meshopt_compression": {}}
    (tmp_path / "small.glb").write_bytes(glb_of(document, data))
    with pytest.raises(
        ParseError, match=r"EXT_meshopt_compression: install the package meshoptimizer.*gltfpack"
    ):
        poise.read(tmp_path / "small.glb")


def test_damaged_compressed_data_are_refused(character: Path, tmp_path: Path) -> None:
    packed = _with_meshopt(character, tmp_path / "small.glb")
    content = bytearray(packed.read_bytes())
    (length,) = struct.unpack_from("<I", content, 12)
    content[20 + length + 8 + Container(character).json["buffers"][0]["byteLength"]] = (
        7  # the encoder's header
    )
    packed.write_bytes(bytes(content))
    with pytest.raises(ParseError, match="compressed data"):
        poise.read(packed)


def test_sparse_values_are_read_in_their_places(character: Path, tmp_path: Path) -> None:
    document, data = _document(character)
    number = document["meshes"][0]["primitives"][0]["attributes"]["POSITION"]
    accessor = document["accessors"][number]
    before = Container(character).array(number, kind="VEC3")
    values = np.array([3], "<u2").tobytes() + b"\0\0" + np.array([1.0, 2.0, 3.0], "<f4").tobytes()
    document["bufferViews"].append({"buffer": 0, "byteOffset": len(data), "byteLength": len(values)})
    view = len(document["bufferViews"]) - 1
    accessor["sparse"] = {
        "count": 1,
        "indices": {"bufferView": view, "componentType": 5123},
        "values": {"bufferView": view, "byteOffset": 4},
    }
    document["buffers"][0]["byteLength"] = len(data) + len(values)
    (tmp_path / "sparse.glb").write_bytes(glb_of(document, data + values))
    found = Container(tmp_path / "sparse.glb").array(number, kind="VEC3")
    np.testing.assert_array_equal(found[3], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(np.delete(found, 3, axis=0), np.delete(before, 3, axis=0))
    del accessor["bufferView"]  # zeros, but for the sparse values
    (tmp_path / "zeros.glb").write_bytes(glb_of(document, data + values))
    assert np.count_nonzero(Container(tmp_path / "zeros.glb").array(number, kind="VEC3")) == 3
