"""Read the skeleton and the animation of GLB and glTF files from any program."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.errors import UnknownNameError
from poise.formats.files import existing_file
from poise.formats.gltf.container import Container, Json
from poise.formats.gltf.humanoid import humanoid_roles
from poise.formats.gltf.nodes import Local, NodeTree, joints_of, node_tree
from poise.formats.gltf.sampling import animated, animations_of, timeline, tracks_of
from poise.formats.registry import glb_of_character
from poise.formats.rigs import from_world, hung_as_in_metarig, limbs_joined, nearest_rotation, notes_on
from poise.geometry import rotations as turning
from poise.motion.motion import SEPARATOR, Motion, Origin
from poise.types import Array

World = tuple[Float[Array, "_ 3"], Float[Array, "_ 3 3"]]  # one row stands for all frames

_FURTHEST = 1e6  # metres


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
    return list(animations_of(rig.file, rig.needed))


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
    joints, parents = hung_as_in_metarig(tree.names, tree.parents, joints) or limbs_joined(
        tree.names, *_hung(tree, joints)
    )
    with np.errstate(all="ignore"):
        return GltfRig(file, tree, joints, parents, skin, _bind_rotations(file, tree, joints, skin))


def _hung(tree: NodeTree, joints: list[int]) -> tuple[list[int], list[int]]:
    """The joints, and for each the index of its nearest ancestor."""
    number = {joint: k for k, joint in enumerate(joints)}
    above = tree.nearest_above(set(joints))
    return joints, [number.get(above[joint], -1) for joint in joints]


def _motion(rig: GltfRig, wanted: str | None) -> Motion:
    file, tree, joints, bind = rig.file, rig.tree, rig.joints, rig.bind
    about, needed = _about(file), rig.needed
    animation, notes = _chosen(file, animations_of(file, needed), wanted)
    tracks = tracks_of(file, animation, needed)
    when = timeline(file, tracks, fps=about["fps"], nodes=len(needed))
    worlds = node_worlds(tree, animated(tree, tracks, when), needed)
    places, turns = _stacked(worlds, joints, when.frames)
    _check_range(file, places, turns)
    names = tuple(tree.names[joint] for joint in joints)
    roles = humanoid_roles(file, dict(zip(joints, names, strict=True)))
    skeleton, roots, rotations, warnings = from_world(
        names, rig.parents, bind, places, turns, orders=about["orders"], roles=roles
    )
    if about["written_by_us"]:
        root = _bind_root(file, tree, rig.skin, joints[0])
        skeleton = skeleton.with_offsets(np.concatenate([root[None], skeleton.offsets[1:]]))
    origin = Origin(
        path=str(file.path), format="gltf", units_reason="glTF is in metres", frames_in_file=when.frames,
        notes=(*file.notes, *notes), warnings=warnings, character=_as_character(rig, ours=about["written_by_us"]),
        credits=about["credits"],
    )  # fmt: skip
    return Motion(skeleton, when.fps, roots, rotations, name=about["name"], origin=origin)


def _chosen(file: Container, known: dict[str, Json], wanted: str | None) -> tuple[Json, tuple[str, ...]]:
    """The requested animation, the first, or an empty one; and notes on the others."""
    if wanted == "" or (wanted is None and not known):
        return {}, ()
    name = next(iter(known)) if wanted is None else wanted
    if name not in known:
        raise UnknownNameError("animation", name, known or ["(the file has none)"])
    return known[name], notes_on(list(known), name, file.path)


def _as_character(rig: GltfRig, *, ours: bool) -> str:
    """The file itself, if it has its own mesh on this skeleton."""
    return str(rig.file.path) if rig.skin is not None and not ours else ""


def _about(file: Container) -> dict[str, Any]:
    """Poise's own notes in the scene's extras; for other files, only the file's name."""
    scenes = file.objects("scenes")
    extras = scenes[0].get("extras") if scenes else None
    note = extras.get("poise") if isinstance(extras, dict) else None
    found = note if isinstance(note, dict) else {}
    fps, name, orders = found.get("fps"), found.get("name"), found.get("orders")
    rate = float(fps) if isinstance(fps, (int, float)) and 1e-3 < fps < 1e5 else None
    valid = isinstance(orders, list) and all(isinstance(o, str) and set(o) <= set("XYZ") for o in orders)
    held = file.json["asset"].get("copyright")
    return {
        "credits": tuple(held.split(SEPARATOR)) if isinstance(held, str) and held else (),
        "written_by_us": bool(found), "fps": rate, "orders": orders if valid else [],
        "name": name if isinstance(name, str) else Path(file.path).stem,
    }  # fmt: skip


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


def _check_range(file: Container, places: Array, turns: Array) -> None:
    if not (np.all(np.abs(places) < _FURTHEST) and np.all(np.isfinite(turns))):
        file.fail("joints have zero scale, or are further away than a million metres")


def _bind_rotations(
    file: Container, tree: NodeTree, joints: list[int], skin: int | None
) -> Float[Array, "joints 4"]:
    """The world rotation of each joint in the bind pose; without a skin, in the pose of the nodes."""
    worlds = node_worlds(tree, tree.locals, tree.with_above(joints))
    resting = _stacked(worlds, joints, 1)[1][0]
    if skin is None:
        return resting
    number = {joint: k for k, joint in enumerate(joints)}
    bound = resting.copy()
    for joint, matrix in inverse_binds(file, skin).items():
        if joint in number:
            bound[number[joint]] = turning.conjugate(nearest_rotation(matrix[None, :3, :3])[0])
    return _stood_up(bound, resting, worlds.get(tree.parents[joints[0]]))


def _stood_up(
    bound: Float[Array, "joints 4"], resting: Float[Array, "joints 4"], above: World | None
) -> Float[Array, "joints 4"]:
    """The bind pose in the world: a mesh bound lying down, below a node that rotates it upright, is upright.

    The bind matrices do not contain that node, but the joints' own nodes show it: they are rotated as they were bound,
    or as an animation starts.
    """
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


def _bind_root(file: Container, tree: NodeTree, skin: int | None, root: int) -> Float[Array, "3"]:
    """The root's position in the bind pose; without a mesh, that of its node."""
    if skin is None:
        return tree.locals[root].translation[0]
    matrix = inverse_binds(file, skin).get(root, np.eye(4))
    return -np.linalg.solve(matrix[:3, :3], matrix[:3, 3])
