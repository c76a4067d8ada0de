"""A motion from the world transforms of a rig's joints, as other programs store them.

Rest rotations are removed: in the bind pose of a mesh, every joint's frame is aligned with the world's.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.errors import ParseError
from poise.geometry import rotations as turning
from poise.motion.motion import Motion, Origin
from poise.skeleton.roles import LIMB_ALIASES, MAIN_ROLES, SIDES, guess_roles, side_and_part
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

_FURTHEST = 1e6  # metres
_STILL_RADIANS = 1e-5
_FEWEST_FLAT, _MOST_FLAT = 12, 400  # joints of a person without a tree
_MIDDLE = 0.003  # of the width: joints this near to the middle have no side
_TRUNK = 0.3  # times their length: bones between joints in the middle
_ALIKE, _FAR = 0.01, 1e3  # least correlation of the skin of neighbours; and how much longer other bones seem
_TIP = re.compile(r"(end|leaf|nub|tip|site|top|effector)[\d_.\-]*(l|r|left|right)?$", re.IGNORECASE)
_STRETCH = 1e-3  # metres: smaller changes of bone length are not worth a warning


def motion_of_matrices(file: Path, found: Mapping[str, Any], *, format: str, animation: str | None) -> Motion:
    """The motion from a child process's arrays: names, parents, `bind` and `frames` as matrices in metres, Y up."""
    matrices, bind = found["frames"].astype(np.float64), found["bind"].astype(np.float64)
    names = tuple(str(name) for name in found["names"])
    shape = (len(names), 4, 4)
    if not names or matrices.shape[1:] != shape or bind.shape != shape:
        raise ParseError("the joints and their transforms are inconsistent", path=file)
    order, parents = limbs_joined(names, list(range(len(names))), found["parents"].tolist())
    names, matrices, bind = tuple(names[joint] for joint in order), matrices[:, order], bind[order]
    orders = str(found.get("orders", "")).split(",")
    with np.errstate(all="ignore"):
        turns = rotations_of(matrices[:, :, :3, :3])
        places = matrices[:, :, :3, 3]
        if not (np.all(np.abs(places) < _FURTHEST) and np.all(np.isfinite(turns))):
            raise ParseError("joints have zero scale, or are further away than a million metres", path=file)
        rested = rotations_of(bind[None, :, :3, :3])[0]
        rested = np.where(np.isfinite(rested), rested, turns[0])
        own = [orders[joint] for joint in order] if len(orders) == len(order) else ()
        skeleton, roots, relative, warnings = from_world(names, parents, rested, places, turns, orders=own)
    offsets = np.concatenate([bind[:1, :3, 3], skeleton.offsets[1:]])
    listed = [str(name) for name in found["animations"]]
    origin = Origin(
        path=str(file), format=format, metres_per_unit=float(found["metres"]), units=str(found["units"]),
        units_reason="the file says so", frames_in_file=len(places),
        notes=notes_on(listed, animation, file), warnings=(*warnings, *map(str, found["warnings"])),
        character=str(file) if found["dressed"] else "",
    )  # fmt: skip
    skeleton = skeleton.with_offsets(offsets) if np.all(np.isfinite(offsets)) else skeleton
    return Motion(skeleton, float(found["fps"]), roots, relative, name=file.stem, origin=origin)


def notes_on(animations: Sequence[str], chosen: str | None, file: Path) -> tuple[str, ...]:
    """Notes on a file's other animations."""
    if chosen == "" or len(animations) < 2:
        return ()
    name = animations[0] if chosen is None else chosen
    listed = ", ".join(animations)
    return (f"this is {name!r} of {len(animations)} animations ({listed}); choose one by {file.name}#NAME",)


def from_world(
    names: tuple[str, ...],
    parents: list[int],
    bind: Float[Array, "joints 4"],
    places: Float[Array, "frames joints 3"],
    turns: Float[Array, "frames joints 4"],
    *,
    orders: Sequence[str] = (),
    roles: Mapping[str, str] | None = None,
) -> tuple[Skeleton, Float[Array, "frames 3"], Float[Array, "frames joints 4"], tuple[str, ...]]:
    """The skeleton, root positions and rotations over the frames, and warnings; `orders` are channels, if known.

    If a joint with most of the body below it moves within its parent (a pelvis below a root that stays on the floor),
    the root moves with it.
    """
    offsets, strays = np.zeros((len(parents), 3)), np.zeros_like(places)
    world = turning.multiply(turns, np.broadcast_to(turning.conjugate(bind), turns.shape))
    relative = world.copy()
    for joint, parent in enumerate(parents):
        if parent >= 0:
            bone = places[:, joint] - places[:, parent]
            own = turning.rotate(turning.conjugate(turns[0, parent]), bone[0])
            offsets[joint] = turning.rotate(bind[parent], own)
            strays[:, joint] = bone - turning.rotate(turns[:, parent], own)
            relative[:, joint] = turning.multiply(turning.conjugate(world[:, parent]), world[:, joint])
    relative = turning.canonical(turning.normalize(relative))
    orders = tuple(orders)
    if len(orders) != len(names):  # ZYX, and none for end joints that never rotate
        still = np.broadcast_to(turning.IDENTITY, relative.shape)
        turned = turning.geodesic_distance(relative, still).max(axis=0)
        inner = {0, *parents}
        orders = tuple(
            "" if joint not in inner and angle < _STILL_RADIANS and _TIP.search(names[joint]) else "ZYX"
            for joint, angle in enumerate(turned)
        )
    relative[:, [order == "" for order in orders]] = turning.IDENTITY
    skeleton = Skeleton(names, np.array(parents), offsets, orders, role_overrides=roles or {})
    below, far = np.ones(len(parents), dtype=np.int64), np.linalg.norm(strays, axis=-1).max(axis=0)
    for joint in range(len(parents) - 1, 0, -1):
        below[parents[joint]] += below[joint]
    largest = int(np.argmax(np.where(far > _STRETCH, below, 0)))
    mover = largest if far[largest] > _STRETCH and 2 * below[largest] > len(parents) else -1
    roots, warnings = places[:, 0], []
    far[max(mover, 0)] = 0.0
    if mover >= 0:
        roots = roots + strays[:, mover]
        warnings.append(f"{names[mover]} moves within {names[parents[mover]]}, which moves with it here")
    if far.max() >= _STRETCH:
        stretch = f"bones change length by up to {100 * far.max():.1f} cm in the file"
        warnings.append(f"{stretch}; the first frame's lengths are kept")
    return skeleton, roots, turning.continuous(relative), tuple(warnings)


def hung_as_in_metarig(
    names: Sequence[str], above: Sequence[int], joints: list[int]
) -> tuple[list[int], list[int]] | None:
    """The deforming bones of a generated Rigify rig, parents first, and the parent index of each.

    Rigify attaches limbs, trunk and face in parallel to one root, or to controls; in its metarig they form a
    hierarchy. None for any other rig.
    """
    own = {names[node]: node for node in joints if names[node].startswith("DEF-")}
    if not {"DEF-spine", "DEF-thigh.L", "DEF-thigh.R"} <= own.keys():
        return None
    hung = {"thigh": "spine", "pelvis": "spine", "breast": "spine.003", "shoulder": "spine.003"}
    head, parents = max(name for name in own if name.startswith("DEF-spine")), {}
    for name, node in own.items():
        above_it = above[node]
        while above_it >= 0 and above_it not in own.values():
            above_it = above[above_it]
        if above_it < 0:  # then as in the metarig; for the face, the head
            part, _, side = name.removeprefix("DEF-").partition(".")
            limb = f"DEF-shoulder.{side}" if part == "upper_arm" else head
            above_it = own.get(f"DEF-{hung[part]}" if part in hung else limb, own["DEF-spine"])
        parents[node] = above_it
    parents[own["DEF-spine"]] = -1
    steps = dict.fromkeys(own.values(), 0)
    for node in steps:
        at = node
        while (at := parents[at]) >= 0 and steps[node] <= len(own):
            steps[node] += 1
    if max(steps.values()) > len(own):
        return None
    order = sorted(steps, key=lambda node: steps[node])
    number = {node: joint for joint, node in enumerate(order)}
    return order, [number.get(parents[node], -1) for node in order]


def limbs_joined(names: Sequence[str], joints: list[int], parents: list[int]) -> tuple[list[int], list[int]]:
    """The joints, parents first, and the number of the one above each, with hands and feet below their limbs.

    Rigs that move them by inverse kinematics may hang them beside the limbs, on one root.
    """
    parts, above = [side_and_part(names[node]) for node in joints], list(parents)
    for side, (lower, end) in itertools.product(SIDES, (("shin", "foot"), ("forearm", "hand"))):
        bones = [
            k
            for k, part in enumerate(parts)
            if part[0] == side and part[1] in LIMB_ALIASES[lower] and part[1] != "leg"
        ]
        ends = [k for k, part in enumerate(parts) if part[0] == side and part[1] in LIMB_ALIASES[end]]
        joined = any(set(bones) & set(_climb(k, above)) for k in ends)
        if bones and ends and not joined and ends[0] not in _climb(bones[0], above):
            above[ends[0]] = bones[0]
    order = sorted(range(len(joints)), key=lambda k: len(_climb(k, above)) if above != parents else k)
    number = {k: place for place, k in enumerate(order)}
    return [joints[k] for k in order], [number.get(above[k], -1) for k in order]


def is_flat(parents: Sequence[int]) -> bool:
    """Whether all bones of a rig, as many as a person's, hang on one."""
    return (
        _FEWEST_FLAT <= len(parents) <= _MOST_FLAT
        and max(len(_climb(k, parents)) for k in range(len(parents))) <= 2
    )


def joined_by_skin(
    names: Sequence[str],
    joints: list[int],
    parents: list[int],
    places: Float[Array, "joints 3"],
    shared: Float[Array, "joints joints"],
) -> tuple[list[int], list[int]]:
    """The joints and parents of a rig whose bones all hang on one: neighbours are those that carry the same skin.

    The tree has the shortest bones between such neighbours, the shorter the more skin they share, and none from left to
    right. Its root is the joint from which it is a person. Joints without skin are left out. A rig that is not a person
    stays as it is.
    """
    from scipy.sparse.csgraph import breadth_first_order, minimum_spanning_tree  # slow to import

    worn = np.flatnonzero(np.diag(shared) > 0.0)
    if not len(worn):
        return joints, parents
    own = np.sqrt(np.diag(shared)[worn])
    alike = shared[np.ix_(worn, worn)] / own[:, None] / own
    apart = np.linalg.norm(places[worn, None] - places[None, worn], axis=-1) + 1e-6
    apart = np.where(alike > _ALIKE, apart / np.sqrt(np.maximum(alike, _ALIKE)), _FAR * apart)
    across = places[worn][:, (0, 2)]
    wide = across[:, int(np.argmax(np.ptp(across, axis=0)))]
    wide = wide - np.median(wide)
    side = np.sign(np.where(np.abs(wide) < _MIDDLE * np.ptp(wide), 0.0, wide))
    apart[np.outer(side, side) < 0.0] *= _FAR**2  # left and right meet in the middle only
    apart[np.equal.outer(side, side) & (side == 0.0)] *= _TRUNK  # which is a chain
    bones = minimum_spanning_tree(apart)
    heights = places[worn, 1]
    for root in np.argsort(np.abs(heights - 0.5 * (heights.min() + heights.max()))).tolist():
        order, above = breadth_first_order(bones, root, directed=False)
        number = {joint: k for k, joint in enumerate(order.tolist())}
        up = np.array([number.get(int(above[joint]), -1) for joint in order])
        offsets = places[worn[order]] - np.where(up[:, None] < 0, 0.0, places[worn[order]][up])
        body = Skeleton(tuple(names[joints[k]] for k in worn[order]), up, offsets, len(up) * ("ZYX",))
        roles = guess_roles(body)
        if set(MAIN_ROLES) <= set(roles) and roles["pelvis"] == body.names[0]:
            return [joints[k] for k in worn[order]], up.tolist()
    return joints, parents


def _climb(joint: int, above: Sequence[int]) -> list[int]:
    """A joint and all above it."""
    found = []
    while joint >= 0:
        found.append(joint)
        joint = above[joint]
    return found


def rotations_of(axes: Float[Array, "frames joints 3 3"]) -> Float[Array, "frames joints 4"]:
    """The rotations nearest to axes that may be scaled; NaN if one is not finite."""
    flat = axes.reshape(-1, 3, 3)
    sound = np.isfinite(flat).all(axis=(1, 2))
    found = np.full((len(flat), 4), np.nan)
    found[sound] = nearest_rotation(flat[sound])
    return found.reshape(*axes.shape[:2], 4)


def nearest_rotation(matrices: Float[Array, "n 3 3"]) -> Float[Array, "n 4"]:
    """The quaternions of the rotations nearest to matrices that may be scaled, mirrored or slightly sheared."""
    determinant = np.linalg.det(matrices)
    size = np.cbrt(np.where(determinant == 0.0, 1.0, determinant))
    turns = matrices / size[:, None, None]
    skewed = np.abs(turns @ turns.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2), initial=0.0) > 1e-6
    if np.any(skewed):
        u, _, v = np.linalg.svd(turns[skewed])
        u[:, :, 2] *= np.linalg.det(u @ v)[:, None]
        turns[skewed] = u @ v
    return turning.quaternion_from_matrix(turns)


def rest_places(skeleton: Skeleton) -> Float[Array, "joints 3"]:
    """Joint positions with all rotations at identity and the root at its own offset."""
    places = skeleton.offsets.copy()
    for joint in range(1, len(skeleton)):
        places[joint] += places[skeleton.parents[joint]]
    return places
