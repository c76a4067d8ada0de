"""Writes GLB: joints as nodes, a mannequin skinned to them, and the animation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.formats.files import existing_file, replacing
from poise.formats.gltf.container import credited, glb_of
from poise.formats.gltf.into import glb_with
from poise.formats.registry import SKINS
from poise.geometry import rotations as turning
from poise.motion.motion import Motion
from poise.skeleton.skeleton import Pose, Skeleton
from poise.types import Array

Json = dict[str, Any]

_FLOAT, _SHORT, _INT = 5126, 5123, 5125
VERTICES, INDICES = 34962, 34963  # targets of a buffer view
_STILL_RADIANS = 1e-7  # smaller changes are not animated


def write(value: Motion | Pose, path: str | os.PathLike[str], *, mannequin: bool = True) -> Path:
    """Write a motion or a single pose as GLB; return the path.

    The motion of a character with a mesh is written into the character's own file. Otherwise, with a mannequin, the
    nodes are in the first pose and only moving joints are animated; without one the file has the bare skeleton in its
    rest pose and its animation.
    """
    if not isinstance(value, Motion | Pose):
        raise InvalidValueError(f"a GLB file holds a motion of a skeleton; got {type(value).__name__}")
    motion = value if isinstance(value, Motion) else _still(value)
    _check(motion)
    target = check_name(Path(path))
    if motion.origin.character and mannequin:
        content = glb_with(motion, existing_file(motion.origin.character))
    elif target.suffix.lower() == ".vrm":
        raise InvalidValueError(
            f"a VRM is a character's own file; transfer the motion to one, such as avatar.vrm, to write {target.name}",
            settings=("onto",),
        )
    else:
        content = _bare_glb(motion, mannequin=mannequin)
    with replacing(target, "wb") as file:
        file.write(content)
    return target


def check_name(path: Path) -> Path:
    """Return the path if it is the name of a binary file; raise otherwise."""
    if path.suffix.lower() not in (".glb", ".vrm"):
        raise InvalidValueError(
            f"Poise writes glTF as one binary file: name it {path.with_suffix('.glb').name}"
        )
    return path


def _bare_glb(motion: Motion, *, mannequin: bool) -> bytes:
    document = Document()
    joints = _add_nodes(document, motion, rest=not mannequin)
    if mannequin:
        body = SKINS["mannequin"](motion.skeleton, rotations=motion.rotations)
        _add_mannequin(document, motion.skeleton, body, joints)
    _add_animation(document, motion, joints, rest=not mannequin)
    return document.glb(_about(motion), motion.origin.credits)


def _still(pose: Pose) -> Motion:
    return Motion(pose.skeleton, 30.0, pose.root_position[None], pose.rotations[None])


def _check(motion: Motion) -> None:
    if len(motion) == 0:
        raise InvalidValueError("a motion without frames cannot be written as GLB")
    if not (np.all(np.isfinite(motion.root_positions)) and np.all(np.isfinite(motion.rotations))):
        raise InvalidValueError("a motion with NaN or infinite values cannot be written as GLB")


def _about(motion: Motion) -> Json:
    """Data that glTF cannot store but a round trip needs."""
    return {
        "name": motion.name,
        "fps": motion.fps,
        "frames": len(motion),
        "orders": list(motion.skeleton.orders),
    }


@dataclass
class Document:
    """A glTF document under construction: its JSON parts, and one binary buffer for all accessors."""

    nodes: list[Json] = field(default_factory=list)
    roots: list[int] = field(default_factory=list)
    parts: dict[str, list[Json]] = field(default_factory=dict)
    accessors: list[Json] = field(default_factory=list)
    views: list[Json] = field(default_factory=list)
    binary: bytearray = field(default_factory=bytearray)

    def accessor(
        self,
        values: Array,
        kind: str,
        *,
        target: int | None = None,
        bounds: bool = False,
        normalized: bool = False,
    ) -> int:
        """Add an array, one row per element; return the accessor's index."""
        component = {"f": _FLOAT, "H": _SHORT, "I": _INT}[values.dtype.char]
        view: Json = {"buffer": 0, "byteOffset": len(self.binary), "byteLength": values.nbytes}
        self.views.append(view | ({"target": target} if target else {}))
        self.binary += values.tobytes() + bytes(-values.nbytes % 4)
        entry: Json = {
            "bufferView": len(self.views) - 1,
            "componentType": component,
            "count": len(values),
            "type": kind,
        }
        if normalized:
            entry["normalized"] = True
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
            document |= {
                "accessors": self.accessors,
                "bufferViews": self.views,
                "buffers": [{"byteLength": len(self.binary)}],
            }
        return glb_of(document, bytes(self.binary))


def _add_nodes(document: Document, motion: Motion, *, rest: bool) -> list[int]:
    """Add one node per joint, in the first pose or the rest pose; return their indices."""
    skeleton = motion.skeleton
    turns = np.tile(turning.IDENTITY, (len(skeleton), 1)) if rest else turning.canonical(motion.rotations[0])
    places = skeleton.offsets.copy()
    if not rest:
        places[0] = motion.root_positions[0]
    for joint, name in enumerate(skeleton.names):
        node: Json = {"name": name, "translation": _floats(places[joint])}
        if turning.geodesic_distance(turns[joint], turning.IDENTITY) > _STILL_RADIANS:
            node["rotation"] = _floats(_xyzw(turning.normalize(turns[joint])))
        if skeleton.children[joint]:
            node["children"] = list(skeleton.children[joint])
        document.nodes.append(node)
    document.roots.append(0)
    return list(range(len(skeleton)))


def _add_mannequin(document: Document, skeleton: Skeleton, body: Any, joints: list[int]) -> None:
    """Add the mesh in the rest pose, bound to the joints, one primitive and one material per tone."""
    bind = _rest_positions(skeleton)
    inverse = np.tile(np.eye(4, dtype=np.float32), (len(skeleton), 1, 1))
    inverse[:, :3, 3] = -bind
    columns = np.ascontiguousarray(inverse.transpose(0, 2, 1))  # glTF stores matrices by columns
    used = np.unique(body.tones[body.triangles[:, 0]]).tolist()
    document.parts["materials"] = [_material(*list(body.palette.items())[tone]) for tone in used]
    primitives = [_primitive(document, body, bind, tone, material=k) for k, tone in enumerate(used)]
    document.parts["meshes"] = [{"name": "Mannequin", "primitives": primitives}]
    skin = {
        "inverseBindMatrices": document.accessor(columns, "MAT4"),
        "joints": joints,
        "skeleton": joints[0],
    }
    document.parts["skins"] = [skin]
    document.nodes.append({"name": "Mannequin", "mesh": 0, "skin": 0})
    document.roots.append(len(document.nodes) - 1)


def _primitive(
    document: Document, body: Any, bind: Float[Array, "joints 3"], tone: int, *, material: int
) -> Json:
    chosen = np.flatnonzero(body.tones == tone)
    number = np.full(len(body.vertices), -1)
    number[chosen] = np.arange(len(chosen))
    triangles = number[body.triangles[body.tones[body.triangles[:, 0]] == tone]]
    joints = np.zeros((len(chosen), 4), np.uint16)  # 16 bits, which pymomentum expects
    joints[:, 0] = body.joints[chosen]
    weights = np.zeros((len(chosen), 4), np.float32)
    weights[:, 0] = 1.0
    normals = body.normals[chosen] / np.linalg.norm(body.normals[chosen], axis=-1, keepdims=True)
    positions = body.vertices[chosen] + bind[body.joints[chosen]]
    attributes = {
        "POSITION": document.accessor(positions.astype(np.float32), "VEC3", target=VERTICES, bounds=True),
        "NORMAL": document.accessor(normals.astype(np.float32), "VEC3", target=VERTICES),
        "JOINTS_0": document.accessor(joints, "VEC4", target=VERTICES),
        "WEIGHTS_0": document.accessor(weights, "VEC4", target=VERTICES),
    }
    indices = document.accessor(triangles.reshape(-1).astype(np.uint32), "SCALAR", target=INDICES)
    return {"attributes": attributes, "indices": indices, "material": material}


def _material(tone: str, sign: tuple[float, float, float]) -> Json:
    colour = np.array(sign)
    light = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    surface = {"baseColorFactor": [*_floats(light), 1.0], "metallicFactor": 0.0, "roughnessFactor": 0.55}
    return {"name": tone.capitalize(), "pbrMetallicRoughness": surface}


def _add_animation(document: Document, motion: Motion, joints: list[int], *, rest: bool) -> None:
    """Add keys at every frame for the root's position, which also sets the duration, and for each rotating joint."""
    if len(motion) == 1 and not rest:
        return
    turns = turning.continuous(turning.normalize(motion.rotations))
    times = document.accessor((np.arange(len(motion)) / motion.fps).astype(np.float32), "SCALAR", bounds=True)
    tracks = [(joints[0], "translation", motion.root_positions)]
    tracks += [
        (joints[joint], "rotation", _xyzw(turns[:, joint])) for joint in _moving_joints(turns, rest=rest)
    ]
    channels, samplers = [], []
    for number, (node, path, values) in enumerate(tracks):
        kind = "VEC3" if path == "translation" else "VEC4"
        output = document.accessor(np.ascontiguousarray(values, dtype=np.float32), kind)
        samplers.append({"input": times, "output": output, "interpolation": "LINEAR"})
        channels.append({"sampler": number, "target": {"node": node, "path": path}})
    name = motion.name or "Motion"
    document.parts["animations"] = [{"name": name, "channels": channels, "samplers": samplers}]


def _moving_joints(turns: Float[Array, "frames joints 4"], *, rest: bool) -> list[int]:
    """Joints that leave the pose of their node."""
    base = np.broadcast_to(turning.IDENTITY if rest else turns[0], turns.shape)
    return [
        int(joint)
        for joint in np.flatnonzero(turning.geodesic_distance(turns, base).max(axis=0) > _STILL_RADIANS)
    ]


def _rest_positions(skeleton: Skeleton) -> Float[Array, "joints 3"]:
    """Joint positions with all rotations at identity and the root at its own offset."""
    places = skeleton.offsets.copy()
    for joint in range(1, len(skeleton)):
        places[joint] += places[skeleton.parents[joint]]
    return places


def _xyzw(q: Float[Array, "*n 4"]) -> Float[Array, "*n 4"]:
    return np.roll(q, -1, axis=-1)


def _floats(values: Float[Array, "n"]) -> list[float]:
    """Numbers with single-precision digits, which every reader keeps."""
    return [float(str(np.float32(value))) for value in values]
