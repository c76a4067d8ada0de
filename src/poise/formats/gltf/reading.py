"""Read the skeleton and the animation of GLB and glTF files from any program."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.errors import UnknownNameError
from poise.formats.files import existing_file
from poise.formats.gltf.container import Container, Json
from poise.formats.gltf.nodes import Local, NodeTree, joints_of, node_tree
from poise.formats.registry import glb_of_character
from poise.formats.rigs import (
    from_world,
    hung_as_in_metarig,
    is_flat,
    joined_by_skin,
    limbs_joined,
    nearest_rotation,
    notes_on,
)
from poise.geometry import rotations as turning
from poise.motion.motion import SEPARATOR, Motion, Origin
from poise.types import Array

World = tuple[Float[Array, "_ 3"], Float[Array, "_ 3 3"]]  # one row stands for all frames

_FURTHEST = 1e6  # metres
_PATHS = {"translation": "VEC3", "rotation": "VEC4", "scale": "VEC3"}
_USUAL_RATES = (24.0, 25.0, 30.0, 50.0, 60.0, 90.0, 100.0, 120.0, 240.0)
_DEFAULT_RATE = 30.0
_MOST_VALUES = 4_000_000  # frames times nodes: limit for a small file


def read(path: str | os.PathLike[str], *, animation: str | None = None) -> Motion:
    """Read the skeleton and one animation of a file: the named one, else the first; without any, the stored pose.

    Joints are those of the largest skin, or without skins the nodes. Rest rotations are removed, so that in the rest
    pose every joint's frame is aligned with the world's.
    """
    rig = open_rig(path)
    with np.errstate(all="ignore"):  # numbers in the file may overflow; the result is checked instead
        return _motion(rig, animation)


def character(path: str | os.PathLike[str]) -> Motion:
    """The body in a file in the pose of its nodes, ignoring animations."""
    rig = open_rig(path)
    with np.errstate(all="ignore"):
        return _motion(rig, "")


def animations(path: str | os.PathLike[str]) -> list[str]:
    """The names of the animations that move the body."""
    rig = open_rig(path)
    return list(_animations_of(rig.file, rig.needed))


@dataclass(frozen=True, eq=False)
class GltfRig:
    """A file with the nodes of its body's joints, and their rotations in the rest pose."""

    file: Container
    tree: NodeTree
    joints: list[int]
    parents: list[int]
    """For each joint the index of its parent joint; the root has -1."""
    skin: int | None
    bind: Float[Array, "joints 4"]

    @property
    def needed(self) -> set[int]:
        """The joints and all their ancestors."""
        return self.tree.with_above(self.joints)


def open_rig(path: str | os.PathLike[str]) -> GltfRig:
    """The body in a file."""
    found = existing_file(path)
    file = Container(found, glb_of_character(found))
    tree = node_tree(file)
    joints, skin = joints_of(file, tree)
    metarig = hung_as_in_metarig(tree.names, tree.parents, joints)
    if metarig is None:
        number = {joint: k for k, joint in enumerate(joints)}
        above = tree.nearest_above(set(joints))
        metarig = limbs_joined(tree.names, joints, [number.get(above[joint], -1) for joint in joints])
    joints, parents = metarig
    with np.errstate(all="ignore"):
        if skin is not None and is_flat(parents):
            worlds = node_worlds(tree, tree.locals, tree.with_above(joints))
            places = np.stack([worlds[joint][0][0] for joint in joints])
            joints, parents = joined_by_skin(
                tree.names, joints, parents, places, _carried_together(file, joints, skin)
            )
        return GltfRig(file, tree, joints, parents, skin, _bind_rotations(file, tree, joints, skin))


def _carried_together(file: Container, joints: list[int], skin: int) -> Float[Array, "joints joints"]:
    """The skin that two joints carry together: the sums over vertices of the products of their weights."""
    place = {joint: k for k, joint in enumerate(joints)}
    listed = file.integers("joints", file.objects("skins")[skin], below=len(file.objects("nodes")))
    number = np.array([place.get(joint, len(joints)) for joint in listed])
    shared, accessors = np.zeros((len(joints) + 1, len(joints) + 1)), len(file.objects("accessors"))
    for node in file.objects("nodes"):
        if node.get("skin") != skin or "mesh" not in node:
            continue
        mesh = file.objects("meshes")[file.integer("mesh", node, below=len(file.objects("meshes")))]
        for part in file.objects("primitives", mesh):
            worn = file.record("attributes", part)
            if not {"JOINTS_0", "WEIGHTS_0"} <= worn.keys():
                continue
            slots, weights = (
                file.array(file.integer(name, worn, below=accessors), kind="VEC4")
                for name in ("JOINTS_0", "WEIGHTS_0")
            )
            if len(slots) != len(weights) or not np.all((slots >= 0) & (slots < len(listed))):
                file.fail("a mesh names joints that its skin does not have")
            carriers = number[slots.astype(np.int64)]
            for first in range(4):
                for second in range(4):
                    np.add.at(
                        shared,
                        (carriers[:, first], carriers[:, second]),
                        weights[:, first] * weights[:, second],
                    )
    return shared[:-1, :-1]


def _motion(rig: GltfRig, wanted: str | None) -> Motion:
    file, tree, joints, needed = rig.file, rig.tree, rig.joints, rig.needed
    scenes = file.objects("scenes")
    extras = scenes[0].get("extras") if scenes else None
    note = extras.get("poise") if isinstance(extras, dict) else None
    about: Json = note if isinstance(note, dict) else {}  # Poise's own notes
    fps, name, orders = about.get("fps"), about.get("name"), about.get("orders") or []
    rate = float(fps) if isinstance(fps, (int, float)) and 1e-3 < fps < 1e5 else None
    valid = isinstance(orders, list) and all(isinstance(o, str) and set(o) <= set("XYZ") for o in orders)
    held = file.json["asset"].get("copyright")

    known, animation, notes = _animations_of(file, needed), Json(), file.notes
    if wanted != "" and (known or wanted is not None):
        chosen = next(iter(known)) if wanted is None else wanted
        if chosen not in known:
            raise UnknownNameError("animation", chosen, known or ["(the file has none)"])
        animation, notes = known[chosen], (*notes, *notes_on(list(known), chosen, file.path))
    tracks = _tracks_of(file, animation, needed)
    seconds, fps = _timeline(file, tracks, fps=rate, nodes=len(needed))
    worlds = node_worlds(tree, _animated(tree, tracks, seconds, fps), needed)
    places, turns = _stacked(worlds, joints, len(seconds))
    if not (np.all(np.abs(places) < _FURTHEST) and np.all(np.isfinite(turns))):
        file.fail("joints have zero scale, or are further away than a million metres")
    names = tuple(tree.names[joint] for joint in joints)
    roles = _humanoid_roles(file, dict(zip(joints, names, strict=True)))
    skeleton, roots, rotations, warnings = from_world(
        names, rig.parents, rig.bind, places, turns, orders=orders if valid else [], roles=roles
    )
    if about:  # the root has its place in the bind pose, without a mesh that of its node
        root = tree.locals[joints[0]].translation[0]
        if rig.skin is not None:
            matrix = inverse_binds(file, rig.skin).get(joints[0], np.eye(4))
            root = -np.linalg.solve(matrix[:3, :3], matrix[:3, 3])
        skeleton = skeleton.with_offsets(np.concatenate([root[None], skeleton.offsets[1:]]))
    origin = Origin(
        path=str(file.path), format="gltf", units_reason="glTF is in metres", frames_in_file=len(seconds),
        notes=notes, warnings=warnings, character=str(file.path) if rig.skin is not None and not about else "",
        credits=tuple(held.split(SEPARATOR)) if isinstance(held, str) and held else (),
    )  # fmt: skip
    own = name if isinstance(name, str) else Path(file.path).stem
    return Motion(skeleton, fps, roots, rotations, name=own, origin=origin)


def node_worlds(tree: NodeTree, locals_: list[Local], needed: set[int]) -> dict[int, World]:
    """World positions and (scaled) axes of nodes, per frame, or once for nodes that do not move."""
    found: dict[int, World] = {}
    for node in tree.order:
        if node not in needed:
            continue
        local = locals_[node]
        axes = turning.matrix_from_quaternion(local.rotation) * local.scale[:, None, :]
        place = local.translation
        if (parent := tree.parents[node]) >= 0:
            above_place, above_axes = found[parent]
            place = above_place + np.einsum("...ij,...j->...i", above_axes, place)
            axes = above_axes @ axes
        found[node] = place, axes
    return found


def _stacked(worlds: dict[int, World], joints: list[int], frames: int) -> tuple[Array, Array]:
    """World positions (frames, joints, 3) and rotations (frames, joints, 4) of the joints."""
    places, turns = np.empty((frames, len(joints), 3)), np.empty((frames, len(joints), 4))
    for number, joint in enumerate(joints):
        place, axes = worlds[joint]
        places[:, number] = place
        turns[:, number] = nearest_rotation(axes) if np.all(np.isfinite(axes)) else np.nan
    return places, turns


def _bind_rotations(
    file: Container, tree: NodeTree, joints: list[int], skin: int | None
) -> Float[Array, "joints 4"]:
    """The world rotation of each joint in the bind pose; without a skin, in the pose of the nodes.

    A mesh bound lying down, below a node that rotates it upright, is upright. The bind matrices do not contain that
    node, but the joints' own nodes show it: they are rotated as they were bound, or as an animation starts.
    """
    worlds = node_worlds(tree, tree.locals, tree.with_above(joints))
    resting = _stacked(worlds, joints, 1)[1][0]
    if skin is None:
        return resting
    number = {joint: k for k, joint in enumerate(joints)}
    bound = resting.copy()
    for joint, matrix in inverse_binds(file, skin).items():
        if joint in number:
            bound[number[joint]] = turning.conjugate(nearest_rotation(matrix[None, :3, :3])[0])
    above = worlds.get(tree.parents[joints[0]])
    if above is None or not np.all(np.isfinite(above[1])):
        return bound
    raised = turning.multiply(nearest_rotation(above[1])[0], bound)
    lying, standing = (turning.geodesic_distance(one, resting).mean() for one in (bound, raised))
    return raised if standing < 0.5 * lying else bound


def inverse_binds(file: Container, skin: int) -> dict[int, Float[Array, "4 4"]]:
    """Per joint node, the matrix from the bind pose to the joint; empty if the file has none."""
    entry = file.objects("skins")[skin]
    if "inverseBindMatrices" not in entry:
        return {}
    listed = file.integers("joints", entry, below=len(file.objects("nodes")))
    number = file.integer("inverseBindMatrices", entry, below=len(file.objects("accessors")))
    matrices = file.array(number, kind="MAT4").reshape(-1, 4, 4).transpose(0, 2, 1)
    if len(matrices) < len(listed):
        file.fail(f"{len(listed)} joints have {len(matrices)} inverse bind matrices")
    if not np.all(np.abs(np.linalg.det(matrices[:, :3, :3])) > 1e-18):
        file.fail("an inverse bind matrix is singular")
    return dict(zip(listed, matrices[: len(listed)], strict=True))


# --- animations: their frame times, and every node's transform at each of them -------------------------------------


@dataclass(frozen=True, eq=False)
class _Track:
    """One channel: keys in time and the values of one property of one node."""

    node: int
    path: str
    times: Float[Array, "keys"]
    values: Float[Array, "rows width"]
    interpolation: str


def _animations_of(file: Container, nodes: set[int]) -> dict[str, Json]:
    """The animations that move any of these nodes, by name, or by number if unnamed."""
    found: dict[str, Json] = {}
    for number, animation in enumerate(file.objects("animations")):
        name = animation.get("name")
        name = name if isinstance(name, str) and name and name not in found else f"animation {number + 1}"
        if _channels(file, animation, nodes):
            found[name] = animation
    return found


def _tracks_of(file: Container, animation: Json, nodes: set[int]) -> list[_Track]:
    """The channels of an animation that move these nodes; one per node and property."""
    found, accessors = [], len(file.objects("accessors"))
    for (node, path), sampler in _channels(file, animation, nodes).items():
        times = file.array(file.integer("input", sampler, below=accessors), kind="SCALAR")[:, 0]
        values = file.array(file.integer("output", sampler, below=accessors), kind=_PATHS[path])
        interpolation = sampler.get("interpolation", "LINEAR")
        if interpolation not in ("LINEAR", "STEP", "CUBICSPLINE"):
            file.fail(f"unknown interpolation {interpolation!r:.20}")
        if len(values) != len(times) * (3 if interpolation == "CUBICSPLINE" else 1):
            file.fail(f"an animation has {len(times)} times and {len(values)} values for them")
        if np.any(np.diff(times) <= 0) or times[0] < 0:
            file.fail("the times of an animation must start at 0 or later and increase")
        if path == "rotation":
            keys = values[1::3] if interpolation == "CUBICSPLINE" else values
            if not np.all(np.linalg.norm(keys, axis=-1) > 1e-6):
                file.fail("a rotation in the animation has no length")
            values = np.roll(values, 1, axis=-1)
        found.append(_Track(node, path, times, values, interpolation))
    return found


def _channels(file: Container, animation: Json, nodes: set[int]) -> dict[tuple[int, str], Json]:
    samplers = file.objects("samplers", animation)
    count = len(file.objects("nodes"))
    wanted: dict[tuple[int, str], Json] = {}
    for channel in file.objects("channels", animation):
        target = file.record("target", channel)
        path = target.get("path")
        if "node" not in target or not isinstance(path, str) or path not in _PATHS:
            continue
        node = file.integer("node", target, below=count)
        if node in nodes:
            wanted[node, path] = samplers[file.integer("sampler", channel, below=len(samplers))]
    return wanted


def _timeline(file: Container, tracks: list[_Track], *, fps: float | None, nodes: int) -> tuple[Array, float]:
    """The times of frames from the first key to the last, and their rate: as given, or that of the densest keys."""
    if not tracks:
        return np.zeros(1), fps or _DEFAULT_RATE
    start, end = min(t.times[0] for t in tracks), max(t.times[-1] for t in tracks)
    times = max((track.times for track in tracks), key=len)
    rate = fps or _DEFAULT_RATE  # also of sparse keys, set by hand
    if not fps and len(times) > 1 and (own := float(1.0 / np.median(np.diff(times)))) >= 10.0:
        near = min(_USUAL_RATES, key=lambda usual: abs(usual - own))
        rate = near if abs(near - own) < 0.01 * near else min(own, 1000.0)
    count = (end - start) * rate
    if not count * nodes <= max(_MOST_VALUES, 2 * file.bytes):
        file.fail(
            f"an animation of {end - start:g} s at {rate:g} Hz for {nodes} nodes is more than the file can hold"
        )
    return float(start) + np.arange(round(count) + 1) / rate, rate


def _animated(tree: NodeTree, tracks: list[_Track], seconds: Array, fps: float) -> list[Local]:
    """Every node's local transform; those with tracks at each time."""
    found = list(tree.locals)
    for track in tracks:
        cubic, turns, times = track.interpolation == "CUBICSPLINE", track.path == "rotation", track.times
        keys = values = track.values[1::3] if cubic else track.values
        on_keys = len(seconds) == len(times) and np.abs(seconds - times).max() < 1e-3 / fps
        if not on_keys and len(keys) > 1:
            at = np.clip(np.searchsorted(times, seconds, side="right") - 1, 0, len(times) - 2)
            span = times[at + 1] - times[at]
            t = np.clip((seconds - times[at]) / span, 0.0, 1.0)
            if track.interpolation == "STEP":
                values = keys[np.where(t >= 1.0, at + 1, at)]
            elif cubic:
                t, span = t[:, None], span[:, None]
                leaving, arriving = track.values[2::3][at] * span, track.values[0::3][at + 1] * span
                rise = t * t * (3.0 - 2.0 * t)
                bend = t * (1.0 - t) ** 2 * leaving - t * t * (1.0 - t) * arriving
                values = np.asarray(keys[at] + rise * (keys[at + 1] - keys[at]) + bend)
            elif turns:
                values = turning.slerp(turning.normalize(keys[at]), turning.normalize(keys[at + 1]), t)
            else:
                values = keys[at] + t[:, None] * (keys[at + 1] - keys[at])
        values = turning.normalize(values) if turns else values
        found[track.node] = replace(found[track.node], **{track.path: values})
    return found


# --- the humanoid map of VRM avatars and VRMA animations: the node of each bone -------------------------------------


_TRUNK = {"hips": "pelvis", "spine": "spine", "neck": "neck", "head": "head"}
_LIMBS = {
    "Shoulder": "shoulder", "UpperArm": "upper_arm", "LowerArm": "forearm", "Hand": "hand",
    "UpperLeg": "thigh", "LowerLeg": "shin", "Foot": "foot", "Toes": "toes",
}  # fmt: skip
ROLE_OF_BONE = _TRUNK | {
    f"{side}{bone}": f"{side}_{role}" for side in ("left", "right") for bone, role in _LIMBS.items()
}


def _humanoid_roles(file: Container, names: Mapping[int, str]) -> dict[str, str]:
    """Role to joint name from the humanoid map of VRM 0.0, VRMC_vrm-1.0 or VRMC_vrm_animation-1.0, if there is one."""
    extensions, listed = file.record("extensions", file.json), list[tuple[object, Json]]()
    for entry in file.objects("humanBones", file.record("humanoid", file.record("VRM", extensions))):
        listed.append((entry.get("bone"), entry))
    for name in ("VRMC_vrm", "VRMC_vrm_animation"):
        bones = file.record("humanBones", file.record("humanoid", file.record(name, extensions)))
        listed += [(bone, file.record(bone, bones)) for bone in bones]
    nodes: dict[str, int] = {}
    for bone, entry in listed:
        if isinstance(bone, str) and "node" in entry:
            node = file.integer("node", entry, below=len(file.objects("nodes")))
            nodes |= {bone: node} if node in names else {}
    found = {ROLE_OF_BONE[bone]: names[node] for bone, node in nodes.items() if bone in ROLE_OF_BONE}
    chest = next((nodes[bone] for bone in ("upperChest", "chest") if bone in nodes), None)
    return found if chest is None else found | {"chest": names[chest]}
