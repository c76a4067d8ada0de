"""Write a motion into a character's own GLB or VRM as another animation; everything else is unchanged.

The bytes of the file's buffer are kept; the new keys are appended. Nodes keep their pose; a joint with a matrix gets
translation, rotation and scale instead, because glTF animates only those.
"""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, SkeletonError
from poise.formats.gltf.container import Container, Json, credited, glb_of
from poise.formats.gltf.nodes import Local
from poise.formats.gltf.reading import GltfRig, open_rig
from poise.formats.rigs import nearest_rotation
from poise.geometry import rotations as turning
from poise.motion.motion import Motion
from poise.motion.world import joint_transforms
from poise.types import Array

_FLOAT = 5126
_STILL = (
    1e-6  # metres, and quaternion components: a joint that deviates less from its node's pose is not animated
)


def glb_with(motion: Motion, character: Path) -> bytes:
    """The character's file with this motion as its first animation."""
    rig = open_rig(character)
    names = tuple(rig.tree.names[joint] for joint in rig.joints)
    if motion.skeleton.names != names:
        raise SkeletonError(
            f"{character.name} has other joints than the motion; transfer the motion with poise.retarget"
        )
    document, binary = copy.deepcopy(rig.file.json), bytearray(_whole_buffer(rig.file))
    keys = _Keys(document, binary)
    times = keys.accessor((np.arange(len(motion)) / motion.fps)[:, None], "SCALAR", bounds=True)
    channels: list[Json] = []
    samplers: list[Json] = []
    for node, path, values in _tracks(rig, motion):
        _as_parts(document["nodes"][node], rig.tree.locals[node])
        output = keys.accessor(values, "VEC3" if path == "translation" else "VEC4")
        channels.append({"sampler": len(samplers), "target": {"node": node, "path": path}})
        samplers.append({"input": times, "output": output, "interpolation": "LINEAR"})
    animation = {"name": motion.name or "Motion", "channels": channels, "samplers": samplers}
    document["asset"] = credited(document["asset"], motion.origin.credits)
    document["animations"] = [animation, *document.get("animations", [])]
    return glb_of(document, bytes(binary))


def _tracks(rig: GltfRig, motion: Motion) -> list[tuple[int, str, Array]]:
    """Node, property and values of everything that moves, as local transforms of the nodes."""
    places, turns = joint_transforms(motion)
    number = {node: joint for joint, node in enumerate(rig.joints)}
    bind = turning.matrix_from_quaternion(rig.bind)
    worlds: dict[int, tuple[Array, Array]] = {}
    tracks: list[tuple[int, str, Array]] = []
    for node in (node for node in rig.tree.order if node in rig.needed):
        local, parent = rig.tree.locals[node], rig.tree.parents[node]
        above = worlds.get(parent, (np.zeros((1, 3)), np.eye(3)[None]))
        if node not in number:
            own = turning.matrix_from_quaternion(local.rotation)
            worlds[node] = _below(above, local.translation, own * local.scale[:, None, :])
            continue
        joint = number[node]
        inverse = np.linalg.inv(above[1])
        place = np.einsum("...ij,...j->...i", inverse, places[:, joint] - above[0])
        turn = turning.multiply(
            turning.conjugate(nearest_rotation(above[1])),
            turning.quaternion_from_matrix(turns[:, joint] @ bind[joint]),
        )
        tracks += _moving(node, local, place, turning.continuous(turning.normalize(turn)))
        axes = turning.matrix_from_quaternion(turn) * local.scale[:, None, :]
        worlds[node] = places[:, joint], above[1] @ axes
    return tracks


def _below(above: tuple[Array, Array], place: Array, axes: Array) -> tuple[Array, Array]:
    return above[0] + np.einsum("...ij,...j->...i", above[1], place), above[1] @ axes


def _moving(node: int, local: Local, place: Array, turn: Array) -> list[tuple[int, str, Array]]:
    """The tracks of one node; none for properties that stay at the node's pose."""
    size = max(1.0, float(np.abs(place).max()))
    found: list[tuple[int, str, Array]] = []
    if np.abs(place - local.translation).max() > _STILL * size:
        found.append((node, "translation", place))
    if turning.geodesic_distance(turn, local.rotation).max() > _STILL:
        found.append((node, "rotation", np.roll(turn, -1, axis=-1)))
    return found


def _as_parts(node: Json, local: Local) -> None:
    """Replace a node's matrix by translation, rotation and scale."""
    if node.pop("matrix", None) is not None:
        node["translation"] = local.translation[0].tolist()
        node["rotation"] = np.roll(local.rotation[0], -1).tolist()
        node["scale"] = local.scale[0].tolist()


class _Keys:
    """Appends arrays to a buffer, with their views and accessors."""

    def __init__(self, document: Json, binary: bytearray) -> None:
        self.document, self.binary = document, binary
        self.views = document.setdefault("bufferViews", [])
        self.accessors = document.setdefault("accessors", [])

    def accessor(self, values: Float[Array, "count width"], kind: str, *, bounds: bool = False) -> int:
        """Add an array of single-precision numbers; return its accessor's index."""
        data = np.ascontiguousarray(values, dtype="<f4")
        self.binary += bytes(-len(self.binary) % 4)
        self.views.append({"buffer": 0, "byteOffset": len(self.binary), "byteLength": data.nbytes})
        self.binary += data.tobytes()
        entry: Json = {
            "bufferView": len(self.views) - 1, "componentType": _FLOAT, "count": len(data), "type": kind,
        }  # fmt: skip
        limits = {"min": data.min(axis=0).tolist(), "max": data.max(axis=0).tolist()} if bounds else {}
        self.accessors.append(entry | limits)
        self.document["buffers"] = [{**self.document["buffers"][0], "byteLength": len(self.binary)}]
        return len(self.accessors) - 1


def _whole_buffer(file: Container) -> bytes:
    """The single buffer of a GLB."""
    buffers = file.objects("buffers")
    if len(buffers) != 1 or "uri" in buffers[0]:
        raise InvalidValueError(
            f"{file.path.name} has its data in other files; save the character as one GLB first"
        )
    return file.buffer(0)[: file.integer("byteLength", buffers[0], below=2**40)]
