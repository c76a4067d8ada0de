"""Writes GLB: joints as nodes, a mannequin skinned to them, and the animation."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, SkeletonError
from poise.formats.files import existing_file, replacing
from poise.formats.gltf.container import INDICES, VERTICES, Document, Json, credited, glb_of
from poise.formats.gltf.reading import ROLE_OF_BONE, GltfRig, open_rig
from poise.formats.registry import SKINS
from poise.formats.rigs import nearest_rotation, rest_places
from poise.geometry import rotations as turning
from poise.motion.carrying import check_person
from poise.motion.keys import KeyedCurve, KeyedMotion
from poise.motion.motion import Motion
from poise.motion.world import joint_transforms
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.roles import subtree
from poise.skeleton.skeleton import Pose
from poise.types import Array

_ANIMATION = "VRMC_vrm_animation"
_STILL_RADIANS = 1e-7  # smaller changes are not animated
_STILL = 1e-6  # metres, and quaternion components: smaller deviations from a node's pose are not animated


def write(
    value: Motion | Pose,
    path: str | os.PathLike[str],
    *,
    mannequin: bool = True,
    keyed: KeyedMotion | None = None,
) -> Path:
    """Write a motion or a single pose as GLB; return the path.

    The motion of a character with a mesh is written into the character's own file. Otherwise, with a mannequin, the
    nodes are in the first pose and only moving joints are animated; without one the file has the bare skeleton in its
    rest pose and its animation. A VRMA has the joints from the pelvis on, in a T-pose, with their animation. Curves
    of few keys (`keyed`, of this motion) are written as cubic splines instead of a key at every frame.
    """
    if not isinstance(value, Motion | Pose):
        raise InvalidValueError(f"a GLB file holds a motion of a skeleton; got {type(value).__name__}")
    motion = value if isinstance(value, Motion) else Motion.of_poses([value])
    motion = motion if keyed is None else keyed.source  # whose curves are fitted again, in the nodes' axes
    if len(motion) == 0:
        raise InvalidValueError("a motion without frames cannot be written as GLB")
    target = check_name(Path(path))
    if motion.origin.character and mannequin and target.suffix.lower() != ".vrma":
        content = glb_with(motion, existing_file(motion.origin.character), keyed)
    elif target.suffix.lower() == ".vrma":
        content = _vrma(motion, keyed)
    elif target.suffix.lower() == ".vrm":
        raise InvalidValueError(
            f"a VRM is a character's own file; transfer the motion to one, such as avatar.vrm, to write {target.name}",
            settings=("onto",),
        )
    else:
        document, skeleton = Document(), motion.skeleton
        turns, places = np.tile(turning.IDENTITY, (len(skeleton), 1)), skeleton.offsets.copy()
        if mannequin:
            turns, places[0] = turning.canonical(motion.rotations[0]), motion.root_positions[0]
        for joint, name in enumerate(skeleton.names):
            node: Json = {"name": name, "translation": _floats(places[joint])}
            if turning.geodesic_distance(turns[joint], turning.IDENTITY) > _STILL_RADIANS:
                node["rotation"] = _floats(_xyzw(turning.normalize(turns[joint])))
            if skeleton.children[joint]:
                node["children"] = list(skeleton.children[joint])
            document.nodes.append(node)
        document.roots.append(0)
        if mannequin:
            _add_mannequin(document, motion)
        _add_animation(document, motion, keyed, rest=not mannequin)
        orders = list(skeleton.orders)  # data that glTF cannot store but a round trip needs
        about = {"name": motion.name, "fps": motion.fps, "frames": len(motion), "orders": orders}
        content = document.glb(about, motion.origin.credits)
    with replacing(target, "wb") as file:
        file.write(content)
    return target


def check_name(path: Path) -> Path:
    """Return the path if it is the name of a binary file; raise otherwise."""
    if path.suffix.lower() not in (".glb", ".vrm", ".vrma"):
        raise InvalidValueError(
            f"Poise writes glTF as one binary file: name it {path.with_suffix('.glb').name}"
        )
    return path


def _add_mannequin(document: Document, motion: Motion) -> None:
    """Add the mesh in the rest pose, bound to the joints, one primitive and one material per tone."""
    body, bind = SKINS["mannequin"](motion.skeleton, rotations=motion.rotations), rest_places(motion.skeleton)
    inverse = np.tile(np.eye(4, dtype=np.float32), (len(bind), 1, 1))
    inverse[:, :3, 3] = -bind
    columns = np.ascontiguousarray(inverse.transpose(0, 2, 1))  # glTF stores matrices by columns
    primitives, materials = list[Json](), list[Json]()
    for tone in np.unique(body.tones[body.triangles[:, 0]]).tolist():
        chosen = np.flatnonzero(body.tones == tone)
        number = np.full(len(body.vertices), -1)
        number[chosen] = np.arange(len(chosen))
        triangles = number[body.triangles[body.tones[body.triangles[:, 0]] == tone]]
        slots = np.zeros((len(chosen), 4), np.uint16)  # 16 bits, which pymomentum expects
        slots[:, 0] = body.joints[chosen]
        weights = np.zeros((len(chosen), 4), np.float32)
        weights[:, 0] = 1.0
        normals = body.normals[chosen] / np.linalg.norm(body.normals[chosen], axis=-1, keepdims=True)
        positions = body.vertices[chosen] + bind[body.joints[chosen]]
        attributes = {
            "POSITION": document.accessor(positions.astype(np.float32), "VEC3", target=VERTICES, bounds=True),
            "NORMAL": document.accessor(normals.astype(np.float32), "VEC3", target=VERTICES),
            "JOINTS_0": document.accessor(slots, "VEC4", target=VERTICES),
            "WEIGHTS_0": document.accessor(weights, "VEC4", target=VERTICES),
        }
        indices = document.accessor(triangles.reshape(-1).astype(np.uint32), "SCALAR", target=INDICES)
        primitives.append({"attributes": attributes, "indices": indices, "material": len(primitives)})
        name, sign = list(body.palette.items())[tone]
        colour = np.array(sign)
        light = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
        surface = {"baseColorFactor": [*_floats(light), 1.0], "metallicFactor": 0.0, "roughnessFactor": 0.55}
        materials.append({"name": name.capitalize(), "pbrMetallicRoughness": surface})
    inverse_binds = document.accessor(columns, "MAT4")
    skin = {"inverseBindMatrices": inverse_binds, "joints": list(range(len(bind))), "skeleton": 0}
    document.parts["materials"] = materials
    document.parts["meshes"] = [{"name": "Mannequin", "primitives": primitives}]
    document.parts["skins"] = [skin]
    document.nodes.append({"name": "Mannequin", "mesh": 0, "skin": 0})
    document.roots.append(len(document.nodes) - 1)


def _add_animation(document: Document, motion: Motion, keyed: KeyedMotion | None, *, rest: bool) -> None:
    """Add keys for the root's position, which also sets the duration, and for each rotating joint."""
    if len(motion) == 1 and not rest:
        return
    turns = turning.continuous(turning.normalize(motion.rotations))
    base = np.broadcast_to(turning.IDENTITY if rest else turns[0], turns.shape)  # the pose of the nodes
    moving = np.flatnonzero(turning.geodesic_distance(turns, base).max(axis=0) > _STILL_RADIANS).tolist()
    tracks = [Track(0, "translation", motion.root_positions, 0)]
    tracks += [Track(joint, "rotation", _xyzw(turns[:, joint]), joint) for joint in moving]
    document.parts["animations"] = [_animation(document, motion, tracks, keyed)]


class Track(NamedTuple):
    """What a joint of a motion does to a property of a node, at every frame."""

    node: int
    path: str
    values: Float[Array, "frames components"]
    joint: int


def _animation(
    document: Document, motion: Motion, tracks: Sequence[Track], keyed: KeyedMotion | None
) -> Json:
    """An animation with keys at every frame, or with those of the curves."""
    every = np.arange(len(motion))
    channels, samplers, inputs = list[Json](), list[Json](), dict[bytes, int]()
    for node, path, values, joint in tracks:
        keys, sampled, kind = every, values, "LINEAR"
        if keyed is not None:
            keys = (keyed.root if path == "translation" else keyed.joints[joint]).frames
            curve, kind = KeyedCurve.along(values, keys), "CUBICSPLINE"
            slopes = curve.slopes * motion.fps
            sampled = np.stack([slopes, curve.values, slopes], axis=1).reshape(-1, values.shape[1])
        if keys.tobytes() not in inputs:
            times = (keys / motion.fps).astype("<f4")[:, None]
            inputs[keys.tobytes()] = document.accessor(times, "SCALAR", bounds=True)
        output = document.accessor(
            np.ascontiguousarray(sampled, dtype="<f4"), "VEC3" if path == "translation" else "VEC4"
        )
        channels.append({"sampler": len(samplers), "target": {"node": node, "path": path}})
        samplers.append({"input": inputs[keys.tobytes()], "output": output, "interpolation": kind})
    return {"name": motion.name or "Motion", "channels": channels, "samplers": samplers}


def _xyzw(q: Float[Array, "*n 4"]) -> Float[Array, "*n 4"]:
    return np.roll(q, -1, axis=-1)


def _floats(values: Float[Array, "n"]) -> list[float]:
    """Numbers with single-precision digits, which every reader keeps."""
    return [float(str(np.float32(value))) for value in values]


def _vrma(motion: Motion, keyed: KeyedMotion | None) -> bytes:
    """A VRM animation (VRMC_vrm_animation-1.0): the person's bones by role, standing in a T-pose at rest."""
    check_person(motion)
    skeleton, document = motion.skeleton, Document()
    neutral, (places, turns) = neutral_pose(skeleton, motion.rotations), joint_transforms(motion)
    joints = subtree(skeleton, skeleton.index("pelvis"))
    number = {joint: node for node, joint in enumerate(joints)}
    rest = turning.quaternion_from_matrix(neutral.world)
    for joint in joints:
        place, turn = neutral.positions[joint], rest[joint]
        if joint != joints[0]:
            place, turn = skeleton.offsets[joint], neutral.rotations[joint]
        node: Json = {
            "name": skeleton.names[joint],
            "translation": _floats(place),
            "rotation": _floats(_xyzw(turn)),
        }
        below = [number[child] for child in skeleton.children[joint]]
        document.nodes.append(node | ({"children": below} if below else {}))
    document.roots.append(0)
    local = motion.rotations.copy()
    local[:, joints[0]] = turning.quaternion_from_matrix(turns[:, joints[0]])
    local = turning.continuous(turning.normalize(local))
    values = [Track(0, "translation", places[:, joints[0]], joints[0])]
    values += [Track(number[joint], "rotation", _xyzw(local[:, joint]), joint) for joint in joints]
    document.parts["animations"] = [_animation(document, motion, values, keyed)]
    bones = {bone: role for bone, role in ROLE_OF_BONE.items() if role in skeleton.roles}
    bones |= {"chest": "chest"} if "chest" in skeleton.roles else {}
    human = {bone: {"node": number[skeleton.index(role)]} for bone, role in bones.items()}
    document.parts["extensionsUsed"] = [_ANIMATION]
    document.parts["extensions"] = {_ANIMATION: {"specVersion": "1.0", "humanoid": {"humanBones": human}}}
    return document.glb({}, motion.origin.credits)


# --- a motion in a character's own file ------------------------------------------------------------------------------
#
# The bytes of the file's buffer are kept; the new keys are appended. Nodes keep their pose; a joint with a matrix gets
# translation, rotation and scale instead, because glTF animates only those.


def glb_with(motion: Motion, character: Path, keyed: KeyedMotion | None = None) -> bytes:
    """The character's file with this motion as its first animation."""
    rig = open_rig(character)
    names = tuple(rig.tree.names[joint] for joint in rig.joints)
    if motion.skeleton.names != names:
        raise SkeletonError(
            f"{character.name} has other joints than the motion; transfer the motion with poise.retarget"
        )
    file = rig.file
    buffers = file.objects("buffers")
    if len(buffers) != 1 or "uri" in buffers[0]:
        raise InvalidValueError(
            f"{character.name} has its data in other files; save the character as one GLB first"
        )
    document, held = copy.deepcopy(file.json), file.buffer(0)
    held = held[: file.integer("byteLength", buffers[0], below=2**40)]
    accessors, views = (document.setdefault(name, []) for name in ("accessors", "bufferViews"))
    keys = Document(accessors=accessors, views=views, binary=bytearray(held + bytes(-len(held) % 4)))
    tracks = _tracks(rig, motion)
    for node in {track.node for track in tracks}:
        entry, local = document["nodes"][node], rig.tree.locals[node]
        if entry.pop("matrix", None) is not None:  # as its parts, which can be animated
            entry["translation"] = local.translation[0].tolist()
            entry["rotation"] = np.roll(local.rotation[0], -1).tolist()
            entry["scale"] = local.scale[0].tolist()
    animation = _animation(keys, motion, tracks, keyed)
    document["asset"] = credited(document["asset"], motion.origin.credits)
    document["animations"] = [animation, *document.get("animations", [])]
    document["buffers"] = [{**document["buffers"][0], "byteLength": len(keys.binary)}]
    return glb_of(document, bytes(keys.binary))


def _tracks(rig: GltfRig, motion: Motion) -> list[Track]:
    """Node, property and values of everything that leaves the pose of its node, as local transforms of the nodes."""
    places, turns = joint_transforms(motion)
    number = {node: joint for joint, node in enumerate(rig.joints)}
    bind = turning.matrix_from_quaternion(rig.bind)
    worlds: dict[int, tuple[Array, Array]] = {}
    tracks: list[Track] = []
    for node in (node for node in rig.tree.order if node in rig.needed):
        local, parent = rig.tree.locals[node], rig.tree.parents[node]
        above = worlds.get(parent, (np.zeros((1, 3)), np.eye(3)[None]))
        if node not in number:
            axes = turning.matrix_from_quaternion(local.rotation) * local.scale[:, None, :]
            place = above[0] + np.einsum("...ij,...j->...i", above[1], local.translation)
            worlds[node] = place, above[1] @ axes
            continue
        joint = number[node]
        inverse = np.linalg.inv(above[1])
        place = np.einsum("...ij,...j->...i", inverse, places[:, joint] - above[0])
        turn = turning.multiply(
            turning.conjugate(nearest_rotation(above[1])),
            turning.quaternion_from_matrix(turns[:, joint] @ bind[joint]),
        )
        turn = turning.continuous(turning.normalize(turn))
        if np.abs(place - local.translation).max() > _STILL * max(1.0, float(np.abs(place).max())):
            tracks.append(Track(node, "translation", place, joint))
        if turning.geodesic_distance(turn, local.rotation).max() > _STILL:
            tracks.append(Track(node, "rotation", np.roll(turn, -1, axis=-1), joint))
        axes = turning.matrix_from_quaternion(turn) * local.scale[:, None, :]
        worlds[node] = places[:, joint], above[1] @ axes
    return tracks
