"""Reads the skeleton and the animation of GLB and glTF files, whoever wrote them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.formats.files import existing_file
from poise.formats.gltf.container import Container
from poise.formats.gltf.nodes import Local, NodeTree, joints_of, nearest_rotation, node_tree
from poise.formats.gltf.sampling import animated, timeline, tracks_of
from poise.geometry import rotations as turning
from poise.motion.motion import Motion, Origin
from poise.skeleton.skeleton import Skeleton

Array = np.ndarray
World = tuple[Float[Array, "_ 3"], Float[Array, "_ 3 3"]]  # one row stands for all frames

_FURTHEST = 1e6  # metres
_STILL_RADIANS = 1e-5
_STRETCH = 1e-3  # metres by which a bone may change before it is worth a warning


def read(path: str | os.PathLike[str]) -> Motion:
    """The skeleton and the first animation of a file; a file without animation gives one frame, the pose it is in.

    Joints are those of the largest skin, or without skins the nodes. Rest rotations are folded away, so that in the
    rest pose every joint's frame is aligned with the world's.
    """
    file = Container(existing_file(path))
    with np.errstate(all="ignore"):  # numbers from elsewhere may overflow; the result is checked instead
        return _motion(file)


def _motion(file: Container) -> Motion:
    tree = node_tree(file)
    joints, skin = joints_of(file, tree)
    needed = tree.with_above(joints)
    about = _about(file)
    tracks = tracks_of(file, needed)
    when = timeline(file, tracks, fps=about["fps"], nodes=len(needed))
    worlds = _worlds(tree, animated(tree, tracks, when), needed)
    bind = _bind_rotations(file, tree, joints, skin)
    parents = _joint_parents(tree, joints)
    places, turns = _stacked(worlds, joints, when.frames)
    _check_range(file, places, turns)
    offsets, stretch = _offsets(places, turns, bind, parents)
    rotations = _relative(turns, bind, parents)
    orders = _orders(about["orders"], parents, rotations)
    rotations[:, [order == "" for order in orders]] = turning.IDENTITY
    if about["written_by_us"]:
        offsets[0] = _bind_root(file, tree, skin, joints[0])
    skeleton = Skeleton(tuple(tree.names[joint] for joint in joints), np.array(parents), offsets, orders)
    origin = Origin(
        path=str(file.path), format="gltf", units_reason="glTF is in metres",
        frames_in_file=when.frames, warnings=_warnings(stretch),
    )  # fmt: skip
    return Motion(
        skeleton, when.fps, places[:, 0], turning.continuous(rotations), name=about["name"], origin=origin
    )


def _about(file: Container) -> dict[str, Any]:
    """What our own writer noted in the scene's extras; from other files, nothing but the file's name."""
    scenes = file.objects("scenes")
    extras = scenes[0].get("extras") if scenes else None
    note = extras.get("poise") if isinstance(extras, dict) else None
    found = note if isinstance(note, dict) else {}
    fps, name, orders = found.get("fps"), found.get("name"), found.get("orders")
    rate = float(fps) if isinstance(fps, (int, float)) and 1e-3 < fps < 1e5 else None
    valid = isinstance(orders, list) and all(isinstance(o, str) and set(o) <= set("XYZ") for o in orders)
    return {
        "written_by_us": bool(found), "fps": rate, "orders": orders if valid else [],
        "name": name if isinstance(name, str) else Path(file.path).stem,
    }  # fmt: skip


def _worlds(tree: NodeTree, locals_: list[Local], needed: set[int]) -> dict[int, World]:
    """Positions and (scaled) axes of nodes in the world, over frames or, for what stands still, for one."""
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
        finite = np.where(np.isfinite(axes).all(axis=(1, 2), keepdims=True), axes, np.nan)
        turns[:, number] = nearest_rotation(finite) if np.all(np.isfinite(finite)) else np.nan
    return places, turns


def _check_range(file: Container, places: Array, turns: Array) -> None:
    if not (np.all(np.abs(places) < _FURTHEST) and np.all(np.isfinite(turns))):
        file.fail("joints are flattened, or further away than a million metres")


def _joint_parents(tree: NodeTree, joints: list[int]) -> list[int]:
    """For each joint the number of the nearest joint above it; the root has -1."""
    number = {joint: k for k, joint in enumerate(joints)}
    above = tree.nearest_above(set(joints))
    return [number.get(above[joint], -1) for joint in joints]


def _bind_rotations(
    file: Container, tree: NodeTree, joints: list[int], skin: int | None
) -> Float[Array, "joints 4"]:
    """The world rotation of each joint in the pose the mesh was bound in; without a skin, in the pose of the nodes."""
    resting = _stacked(_worlds(tree, tree.locals, tree.with_above(joints)), joints, 1)[1][0]
    if skin is None:
        return resting
    number = {joint: k for k, joint in enumerate(joints)}
    for joint, matrix in _inverse_binds(file, skin).items():
        if joint in number:
            resting[number[joint]] = turning.conjugate(nearest_rotation(matrix[None, :3, :3])[0])
    return resting


def _inverse_binds(file: Container, skin: int) -> dict[int, Float[Array, "4 4"]]:
    """Per joint node, the matrix from the mesh as bound to the joint; none where the file leaves them out."""
    entry = file.objects("skins")[skin]
    if "inverseBindMatrices" not in entry:
        return {}
    listed = file.integers("joints", entry, below=len(file.objects("nodes")))
    number = file.integer("inverseBindMatrices", entry, below=len(file.objects("accessors")))
    matrices = file.array(number, kind="MAT4").reshape(-1, 4, 4).transpose(0, 2, 1)
    if len(matrices) < len(listed):
        file.fail(f"{len(listed)} joints have {len(matrices)} inverse bind matrices")
    if not np.all(np.abs(np.linalg.det(matrices[:, :3, :3])) > 1e-18):
        file.fail("an inverse bind matrix flattens space")
    return dict(zip(listed, matrices[: len(listed)], strict=True))


def _bind_root(file: Container, tree: NodeTree, skin: int | None, root: int) -> Float[Array, "3"]:
    """Where the root was when the mesh was bound; without a mesh, where its node is."""
    if skin is None:
        return tree.locals[root].translation[0]
    matrix = _inverse_binds(file, skin).get(root, np.eye(4))
    return -np.linalg.solve(matrix[:3, :3], matrix[:3, 3])


def _offsets(
    places: Array, turns: Array, bind: Float[Array, "joints 4"], parents: list[int]
) -> tuple[Float[Array, "joints 3"], float]:
    """Offsets from the parents in the rest pose, and the most that any bone changes over the frames."""
    offsets, stretch = np.zeros((len(parents), 3)), 0.0
    for joint, parent in enumerate(parents):
        if parent >= 0:
            seen = turning.rotate(turning.conjugate(turns[:, parent]), places[:, joint] - places[:, parent])
            offsets[joint] = turning.rotate(bind[parent], seen[0])
            stretch = max(stretch, float(np.abs(seen - seen[0]).max()))
    return offsets, stretch


def _relative(
    turns: Array, bind: Float[Array, "joints 4"], parents: list[int]
) -> Float[Array, "frames joints 4"]:
    """Rotations relative to the parent, measured from the rest pose."""
    world = turning.multiply(turns, np.broadcast_to(turning.conjugate(bind), turns.shape))
    local = world.copy()
    for joint, parent in enumerate(parents):
        if parent >= 0:
            local[:, joint] = turning.multiply(turning.conjugate(world[:, parent]), world[:, joint])
    return turning.canonical(turning.normalize(local))


def _orders(noted: list[str], parents: list[int], rotations: Array) -> tuple[str, ...]:
    """The rotation channels of each joint: as noted, else none for tips that never turn and ZYX for the others."""
    if len(noted) == len(parents):
        return tuple(noted)
    turned = turning.geodesic_distance(rotations, np.broadcast_to(turning.IDENTITY, rotations.shape)).max(
        axis=0
    )
    inner = {0, *parents}
    tips = [joint not in inner for joint in range(len(parents))]
    return tuple(
        "" if tip and angle < _STILL_RADIANS else "ZYX" for tip, angle in zip(tips, turned, strict=True)
    )


def _warnings(stretch: float) -> tuple[str, ...]:
    if stretch < _STRETCH:
        return ()
    return (
        f"bones change length by up to {100 * stretch:.1f} cm in the file; the first frame's lengths are kept",
    )
