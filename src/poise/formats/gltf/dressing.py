"""A GLB from what a child process read in another format: the joints in their pose, and their meshes.

For each mesh `n` the child writes `n.points` (bind pose, in metres, Y up), `n.corners` (point indices), `n.faces`
(corners per face), `n.influences` (rows of point, joint, weight), `n.moves` (a matrix per joint from the bind pose to
the joint's pose), `n.looks` (a material per face, or -1), and if present `n.normals`, `n.places` (texture coordinates)
and `n.colours`, one per corner. `looks` is JSON: the name, colour and picture of each material. Picture `k` is
`picture.k`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from poise.errors import ParseError
from poise.formats.gltf.container import INDICES, PICTURES, VERTICES, Document, Json
from poise.formats.gltf.meshes import normals_of
from poise.formats.rigs import nearest_rotation
from poise.geometry import rotations as turning
from poise.types import Array

Found = Mapping[str, Any]

_SLOTS = 4  # joints per vertex in a GLB


def dressed(file: Path, found: Found) -> bytes:
    """The GLB of a character; raise a ParseError if its meshes are inconsistent."""
    document, parents = Document(), found["parents"].tolist()
    worlds = found["frames"][0].copy()  # without scale, which is in the matrices of the meshes
    worlds[:, :3, :3] = turning.matrix_from_quaternion(nearest_rotation(worlds[:, :3, :3]))
    for joint, (name, parent) in enumerate(zip(found["names"], parents, strict=True)):
        local = worlds[joint] if parent < 0 else np.linalg.solve(worlds[parent], worlds[joint])
        turn = np.roll(turning.quaternion_from_matrix(local[:3, :3]), -1)
        turn = turn / np.linalg.norm(turn)
        node: Json = {"name": str(name), "translation": local[:3, 3].tolist(), "rotation": turn.tolist()}
        below = [child for child, above in enumerate(parents) if above == joint]
        document.nodes.append(node | ({"children": below} if below else {}))
    document.roots.append(parents.index(-1))
    looks, pictures = json.loads(str(found["looks"])), dict[int, int]()
    for look in looks:
        number = look["picture"]
        data = found[f"picture.{number}"].tobytes() if number >= 0 else b""
        kind = next((kind for head, kind in PICTURES.items() if data.startswith(head)), None)
        surface: Json = {"baseColorFactor": look["colour"], "metallicFactor": 0.0, "roughnessFactor": 0.8}
        if kind is not None:
            if number not in pictures:
                pictures[number] = document.picture(data, kind)
            texture = {"index": pictures[number]}
            surface |= {"baseColorTexture": texture, "baseColorFactor": [1.0, 1.0, 1.0, 1.0]}
        entry = {"name": look["name"], "pbrMetallicRoughness": surface, "doubleSided": True}
        document.parts.setdefault("materials", []).append(entry)
    for number in range(int(found["meshes"])):
        named = (name.partition(".") for name in found)
        mesh = {rest: found[f"{head}.{rest}"] for head, _, rest in named if head == str(number)}
        if not _sound(mesh, len(worlds), len(looks)):
            raise ParseError("a mesh names points, joints or materials that it does not have", path=file)
        _add_mesh(document, mesh, np.linalg.solve(worlds, mesh["moves"]))
    return document.glb({}, ())


def _sound(mesh: Found, joints: int, looks: int) -> bool:
    """Whether all numbers are finite and all indices in range."""
    points, corners, carried = mesh["points"], mesh["corners"], mesh["influences"]
    per_corner = [mesh[name] for name in ("normals", "places", "colours") if name in mesh]
    limits = [(values, 0, len(points)) for values in (corners, carried[:, 0])]
    limits += [(carried[:, 1], 0, joints), (mesh["looks"], -1, looks)]
    return bool(
        all(np.all(np.isfinite(values)) for values in (points, carried, mesh["moves"], *per_corner))
        and all(np.all((values >= low) & (values < high)) for values, low, high in limits)
        and all(len(values) == len(corners) for values in per_corner)
        and len(mesh["looks"]) == len(mesh["faces"])
        and mesh["faces"].sum() == len(corners)
        and np.all(mesh["faces"] >= 0)
        and np.all(np.abs(np.linalg.det(mesh["moves"][:, :3, :3])) > 1e-18)
    )


def _add_mesh(document: Document, mesh: Found, binds: Float[Array, "joints 4 4"]) -> None:
    """One mesh and its skin, a primitive for each material."""
    triangles, faces = _triangles(mesh["faces"])
    if not len(triangles):
        return
    # One corner for each group of equal ones, and for every corner the index of its group.
    names = [name for name in ("normals", "places", "colours") if name in mesh]
    rows = np.column_stack([mesh["corners"], *(mesh[name] for name in names)]).astype(np.float32)
    packed = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.strides[0])))[:, 0]
    _, first, group = np.unique(packed, return_index=True, return_inverse=True)
    used = np.zeros(len(first), dtype=bool)
    used[group[triangles]] = True
    vertices, number = first[used], (np.cumsum(used) - 1)[group]
    attributes = {
        name: document.accessor(values, kind, target=VERTICES, bounds=name == "POSITION")
        for name, (values, kind) in _attributes(mesh, vertices).items()
    }
    looks, primitives = mesh["looks"][faces], []
    for look in np.unique(looks).tolist():
        order = number[triangles[looks == look]].astype(np.uint32).reshape(-1)
        indices = document.accessor(order, "SCALAR", target=INDICES)
        look_of = {"material": look} if look >= 0 else {}
        primitives.append({"attributes": attributes, "indices": indices} | look_of)
    columns = np.ascontiguousarray(binds.transpose(0, 2, 1), dtype=np.float32)
    skin = {"inverseBindMatrices": document.accessor(columns, "MAT4"), "joints": list(range(len(binds)))}
    skins, meshes = (document.parts.setdefault(name, []) for name in ("skins", "meshes"))
    name = str(mesh["name"])
    document.roots.append(len(document.nodes))
    document.nodes.append({"name": name, "mesh": len(meshes), "skin": len(skins)})
    skins.append(skin)
    meshes.append({"name": name, "primitives": primitives})


def _triangles(
    counts: Int[Array, "faces"],
) -> tuple[Int[Array, "triangles 3"], Int[Array, "triangles"]]:
    """The corners of the faces' triangles (fans about the first corner), and the face of each."""
    first, each = np.cumsum(counts) - counts, np.maximum(counts - 2, 0)
    faces = np.repeat(np.arange(len(counts)), each)
    step = np.arange(len(faces)) - np.repeat(np.cumsum(each) - each, each)
    return first[faces, None] + np.stack([np.zeros_like(step), step + 1, step + 2], axis=-1), faces


def _attributes(mesh: Found, vertices: Int[Array, "vertices"]) -> dict[str, tuple[Array, str]]:
    chosen = mesh["corners"][vertices]
    # The joints with the largest weights of each point, and weights that sum to 1; the root carries the rest.
    influences, points, joints = mesh["influences"], len(mesh["points"]), len(mesh["moves"])
    pairs, inverse = np.unique(influences[:, :2].astype(np.int64) @ (joints, 1), return_inverse=True)
    total = np.bincount(inverse, np.maximum(influences[:, 2], 0.0), minlength=len(pairs))
    order = np.lexsort((-total, pairs // joints))
    point, joint, weight = pairs[order] // joints, pairs[order] % joints, total[order]
    rank = np.arange(len(order)) - np.searchsorted(point, point)
    kept = (rank < _SLOTS) & (weight > 1e-6)
    slots, weights = np.zeros((points, _SLOTS), np.int64), np.zeros((points, _SLOTS))
    slots[point[kept], rank[kept]], weights[point[kept], rank[kept]] = joint[kept], weight[kept]
    weights[weights.sum(axis=1) == 0.0, 0] = 1.0
    weights = weights / weights.sum(axis=1, keepdims=True)
    if "normals" in mesh:
        normals = mesh["normals"][vertices]
        sizes = np.linalg.norm(normals, axis=-1, keepdims=True)
        normals = np.where(sizes > 1e-6, normals / np.maximum(sizes, 1e-6), (0.0, 1.0, 0.0))
    else:
        normals = normals_of(mesh["points"], mesh["corners"][_triangles(mesh["faces"])[0]])[chosen]
        normals[np.linalg.norm(normals, axis=-1) < 0.5] = (0.0, 1.0, 0.0)
    found = {
        "POSITION": (mesh["points"][chosen].astype(np.float32), "VEC3"),
        "NORMAL": (normals.astype(np.float32), "VEC3"),
        "JOINTS_0": (slots[chosen].astype(np.uint16), "VEC4"),
        "WEIGHTS_0": (weights[chosen].astype(np.float32), "VEC4"),
    }
    if "places" in mesh:  # glTF counts picture rows from the top
        places = mesh["places"][vertices] * (1.0, -1.0) + (0.0, 1.0)
        found["TEXCOORD_0"] = places.astype(np.float32), "VEC2"
    if "colours" in mesh:
        found["COLOR_0"] = np.clip(mesh["colours"][vertices], 0.0, 1.0).astype(np.float32), "VEC3"
    return found
