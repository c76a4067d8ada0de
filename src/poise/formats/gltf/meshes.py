"""The meshes of a glTF character, skinned to its joints, with one colour per vertex, for drawing in any pose."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from poise.errors import ParseError
from poise.formats.gltf.container import Container, Json
from poise.formats.gltf.reading import GltfRig, inverse_binds, node_worlds, open_rig
from poise.formats.images import check_size, quiet_open
from poise.formats.rigs import nearest_rotation
from poise.geometry import rotations as turning
from poise.types import Array

_TRIANGLES = 4
_GREY = (0.6, 0.6, 0.6)


@dataclass(frozen=True, eq=False)
class SkinnedMesh:
    """Vertices with up to four slots each; a slot is a joint and a matrix from the bind pose to its frame."""

    vertices: Float[Array, "vertices 3"]
    triangles: Int[Array, "triangles 3"]
    colours: Float[Array, "vertices 3"]
    """Linear, 0 to 1."""
    slots: Int[Array, "vertices 4"]
    weights: Float[Array, "vertices 4"]
    slot_joints: Int[Array, "slots"]
    slot_matrices: Float[Array, "slots 3 4"]

    def posed(
        self, positions: Float[Array, "joints 3"], matrices: Float[Array, "joints 3 3"]
    ) -> tuple[Float[Array, "vertices 3"], Float[Array, "vertices 3"]]:
        """Vertices and normals in the world, from the joints' world transforms."""
        turned = matrices[self.slot_joints] @ self.slot_matrices
        turned[:, :, 3] += positions[self.slot_joints]
        blended = np.einsum("vk,vkij->vij", self.weights, turned[self.slots])
        placed = np.einsum("vij,vj->vi", blended[:, :, :3], self.vertices) + blended[:, :, 3]
        return placed, normals_of(placed, self.triangles)


@dataclass(frozen=True, eq=False)
class NodeSkin:
    """The slots of a node's mesh: for each a joint, and a matrix from the bind pose to its frame."""

    node: int
    joints: Int[Array, "slots"]
    matrices: Float[Array, "slots 3 4"]


def read_skins(path: str | os.PathLike[str]) -> list[NodeSkin]:
    """The skin of each mesh of a character, for viewers that draw it from its own file."""
    return _skins(open_rig(path))


def read_mesh(path: str | os.PathLike[str], *, coloured: bool = True) -> SkinnedMesh:
    """All meshes of a character on its joints, skinned or attached to one; raise a ParseError if there are none.

    Colours take longest, because they are read from pictures; without them all vertices are grey.
    """
    rig = open_rig(path)
    file, parts = rig.file, list[SkinnedMesh]()
    for skin in _skins(rig):
        entry, meshes = file.objects("nodes")[skin.node], file.objects("meshes")
        mesh = meshes[file.integer("mesh", entry, below=len(meshes))]
        surfaces = file.objects("primitives", mesh)
        found = [_primitive(file, one, len(skin.joints), coloured=coloured) for one in surfaces]
        parts += [SkinnedMesh(*own, skin.joints, skin.matrices) for own in found if own is not None]
    if not parts:
        file.fail("the file has no mesh on its joints")
    vertices = np.cumsum([0, *(len(part.vertices) for part in parts)])
    slots = np.cumsum([0, *(len(part.slot_joints) for part in parts)])
    return SkinnedMesh(
        np.concatenate([part.vertices for part in parts]),
        np.concatenate([part.triangles + first for part, first in zip(parts, vertices, strict=False)]),
        np.concatenate([part.colours for part in parts]),
        np.concatenate([part.slots + first for part, first in zip(parts, slots, strict=False)]),
        np.concatenate([part.weights for part in parts]),
        np.concatenate([part.slot_joints for part in parts]),
        np.concatenate([part.slot_matrices for part in parts]),
    )


def _skins(rig: GltfRig) -> list[NodeSkin]:
    worlds = node_worlds(rig.tree, rig.tree.locals, set(range(len(rig.tree.names))))
    nodes = enumerate(rig.file.objects("nodes"))
    found = [_skin_of(rig, worlds, node, entry) for node, entry in nodes if "mesh" in entry]
    return [skin for skin in found if skin is not None]


def _skin_of(rig: GltfRig, worlds: dict[int, tuple[Array, Array]], node: int, entry: Json) -> NodeSkin | None:
    file = rig.file
    above = rig.tree.nearest_above(set(rig.joints))
    if "skin" in entry:
        skin = file.integer("skin", entry, below=len(file.objects("skins")))
        listed = file.integers("joints", file.objects("skins")[skin], below=len(rig.tree.names))
        binds = inverse_binds(file, skin)
        carriers = [(one, binds.get(one, np.eye(4))) for one in listed]
    else:
        carriers = [(node, np.eye(4))]
    anchors = [one if one in rig.joints else above[one] for one, _ in carriers]
    if all(anchor < 0 for anchor in anchors):
        return None
    anchors = [anchor if anchor >= 0 else rig.joints[0] for anchor in anchors]
    number = {joint: k for k, joint in enumerate(rig.joints)}
    matrices = np.tile(np.eye(4), (len(carriers), 1, 1))
    for k, (anchor, (one, bind)) in enumerate(zip(anchors, carriers, strict=True)):
        # From the carrier's frame to the joint's (aligned with the world at rest), in the current pose.
        (at, axes), (place, own) = worlds[anchor], worlds[one]
        turn = turning.matrix_from_quaternion(nearest_rotation(axes))[0]
        rested = turning.matrix_from_quaternion(rig.bind[number[anchor]])
        matrices[k, :3, :3] = rested @ turn.T @ own[0]
        matrices[k, :3, 3] = rested @ turn.T @ (place[0] - at[0])
        matrices[k] = matrices[k] @ bind
    return NodeSkin(node, np.array([number[anchor] for anchor in anchors]), matrices[:, :3])


def _primitive(
    file: Container, entry: Json, carriers: int, *, coloured: bool
) -> tuple[Array, Array, Array, Array, Array] | None:
    """Vertices, triangles, colours, slots and weights; None for lines and points."""
    if entry.get("mode", _TRIANGLES) != _TRIANGLES:
        return None
    attributes, accessors = file.record("attributes", entry), len(file.objects("accessors"))

    def array(name: str, kind: str, within: Json = attributes) -> Array | None:
        return file.array(file.integer(name, within, below=accessors), kind=kind) if name in within else None

    vertices = array("POSITION", "VEC3")
    if vertices is None:
        return None
    indices = array("indices", "SCALAR", entry)
    order = np.arange(len(vertices)) if indices is None else indices[:, 0]
    slots, weights = array("JOINTS_0", "VEC4"), array("WEIGHTS_0", "VEC4")
    places = array("TEXCOORD_0", "VEC2")
    if slots is None or weights is None or carriers == 1:
        slots, weights = np.zeros((len(vertices), 4)), np.tile([1.0, 0.0, 0.0, 0.0], (len(vertices), 1))
    given = [len(one) for one in (slots, weights, places) if one is not None]
    limits = ((order, len(vertices)), (slots, carriers))
    inside = all(np.all((numbers >= 0) & (numbers < count)) for numbers, count in limits)
    if not inside or set(given) != {len(vertices)}:
        file.fail("a mesh names vertices or joints that it does not have")
    weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
    colours = _colours(file, entry, places, len(vertices)) if coloured else np.tile(_GREY, (len(vertices), 1))
    if "COLOR_0" in attributes:
        kind = file.objects("accessors")[file.integer("COLOR_0", attributes, below=accessors)].get("type")
        tints = array("COLOR_0", kind) if kind in ("VEC3", "VEC4") else None
        if tints is not None and len(tints) == len(vertices):
            colours = colours * tints[:, :3]
    triangles = order[: len(order) // 3 * 3].reshape(-1, 3).astype(np.int64)
    return vertices, triangles, colours, slots.astype(np.int64), weights


def _colours(file: Container, entry: Json, places: Array | None, count: int) -> Float[Array, "vertices 3"]:
    """The material's colour at every vertex, from its picture if that can be read."""
    from PIL import Image

    materials = file.objects("materials")
    if "material" not in entry:
        return np.tile(_GREY, (count, 1))
    material = materials[file.integer("material", entry, below=len(materials))]
    surface = file.record("pbrMetallicRoughness", material)
    factor = file.numbers("baseColorFactor", surface, count=4, default=(1.0, 1.0, 1.0, 1.0))[:3]
    reference, picture = file.record("baseColorTexture", surface), None
    if "index" in reference:
        textures, images = file.objects("textures"), file.objects("images")
        texture = textures[file.integer("index", reference, below=len(textures))]
        image = images[file.integer("source", texture, below=len(images))] if "source" in texture else {}
        if "bufferView" in image:
            data = file.view(file.integer("bufferView", image, below=len(file.objects("bufferViews"))))[0]
            with (
                suppress(ParseError, Image.DecompressionBombError, OSError, SyntaxError, ValueError),
                quiet_open(io.BytesIO(data)) as opened,
            ):
                check_size(*opened.size, file.path)
                picture = np.asarray(opened.convert("RGB"), dtype=np.float64) / 255.0
    if picture is None or places is None:
        return np.tile(factor, (count, 1))
    picture = np.where(picture <= 0.04045, picture / 12.92, ((picture + 0.055) / 1.055) ** 2.4)
    height, width = picture.shape[:2]
    column, row = (np.floor(places % 1.0 * [width, height])).astype(np.int64).T
    return factor * picture[np.minimum(row, height - 1), np.minimum(column, width - 1)]


def normals_of(
    vertices: Float[Array, "vertices 3"], triangles: Int[Array, "triangles 3"]
) -> Float[Array, "vertices 3"]:
    """Vertex normals: the area-weighted mean over the adjacent triangles."""
    corners = vertices[triangles]
    normals = np.zeros_like(vertices)
    faces = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    for corner in range(3):
        np.add.at(normals, triangles[:, corner], faces)
    return normals / np.maximum(np.linalg.norm(normals, axis=-1, keepdims=True), 1e-12)
