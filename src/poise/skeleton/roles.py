"""Semantic roles (head, left hand, pelvis, ...) of a skeleton's joints, from the usual naming schemes and from shape.

Names are read first: prefixes, separators, case and side marks differ between MotionBuilder and CMU, Mixamo,
Biovision, Bandai Namco, Acclaim, Rokoko, Xsens, 3ds Max Biped, Unreal, Unity and VRM, DAZ, SMPL, Kinect and Blender
rigs, but the remaining words name the same bones. If a limb's names are uninformative, or contradict the tree, the
shape of the tree decides (`skeleton.limbs`). The trunk (spine, chest, neck) is the path between the limbs.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool

from poise.skeleton.limbs import BoneTree, find_limbs

SIDES = ("left", "right")
TRUNK_ROLES = ("pelvis", "spine", "chest", "neck", "head")
ARM_ROLES = ("shoulder", "upper_arm", "forearm", "hand")
LEG_ROLES = ("thigh", "shin", "foot", "toes")
ROLES = (*TRUNK_ROLES, *(f"{side}_{part}" for side in SIDES for part in (*ARM_ROLES, *LEG_ROLES)))
MAIN_ROLES = tuple(
    role
    for role in ROLES
    if role not in {"spine", "chest", "neck"} and not role.endswith(("_shoulder", "_toes"))
)

# The first alias present wins. A joint has one role: "shoulder" is the clavicle only if the arm has its own name.
LIMB_ALIASES: dict[str, tuple[str, ...]] = {
    "upper_arm": ("upperarm", "uparm", "humerus", "arm", "shldr", "shoulder"),
    "forearm": ("forearm", "lowerarm", "lowarm", "loarm", "radius", "elbow"),
    "hand": ("wrist", "hand", "palm", "fist"),
    "shoulder": ("clavicle", "collar", "collarbone", "clav", "scapula", "shoulder"),
    "thigh": ("upleg", "upperleg", "thigh", "femur", "hip", "leg"),
    "shin": ("lowerleg", "lowleg", "loleg", "shin", "calf", "tibia", "knee", "leg"),
    "foot": ("ankle", "foot"),
    "toes": ("toes", "toebase", "toe", "ball", "foot"),
}
_CENTRE_ALIASES: dict[str, tuple[str, ...]] = {
    "pelvis": ("pelvis", "hips", "hip", "spinebase", "root"),
    "spine": ("spine", "lowerback", "abdomen", "waist", "torso"),
    "head": ("head",),
}
_PREFIX = re.compile(
    r"^(mixamorig\d*|valvebiped|bip\d*|cc_?base|j_(?:bip|sec|adj)|character\d*|def|org|mch|jnt|joint|bone|"
    r"sk|rig|skeleton)[ _.\-]+"
    r"|^mixamorig\d*",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SIDE_OF_WORD = {"left": "left", "l": "left", "right": "right", "r": "right"}
_NOISE = {"c", "m", "bend", "jnt", "joint", "bone"}


@runtime_checkable
class RoledTree(BoneTree, Protocol):
    """A tree whose joints have roles, and can be found by them."""

    @property
    def roles(self) -> Mapping[str, str]:
        """Role to the name of its joint."""
        ...

    def index(self, name: str) -> int:
        """The number of a joint, by its name or role."""
        ...


def guess_roles(skeleton: BoneTree) -> dict[str, str]:
    """Role to joint name, as far as names and shape determine it; every role has a different joint."""
    named = _joints_by_part(skeleton)
    found = _limb_roles(skeleton, named)
    found.update(_trunk_roles(skeleton, named, found))
    return {role: skeleton.names[found[role]] for role in ROLES if role in found}


def paper_joints(skeleton: RoledTree) -> Bool[np.ndarray, "joints"]:
    """The 18 joints of Chai and Hodgins 2005, section 3: from the root up to the head, and three of every limb.

    They exclude collar bones, fingers, thumbs and toes. For a skeleton without such roles, all of its joints.
    """
    limbs = [part for part in (*ARM_ROLES, *LEG_ROLES) if part not in {"shoulder", "toes"}]
    roles = [f"{side}_{part}" for side in SIDES for part in limbs]
    counted = {skeleton.index(role) for role in roles if role in skeleton.roles}
    above = skeleton.index("head") if "head" in skeleton.roles else 0
    while above > 0:
        counted.add(above)
        above = int(skeleton.parents[above])
    return np.isin(np.arange(len(skeleton)), list(counted or range(len(skeleton))))


def side_and_part(name: str) -> tuple[str, str]:
    """A joint's name as its side ("left", "right" or "") and the rest, in lower case without prefixes and digits."""
    words = [word.lower() for word in _WORD.findall(_without_prefix(name))]
    side = ""
    for position in (0, -1):
        if words and words[position] in _SIDE_OF_WORD and not side:
            side = _SIDE_OF_WORD[words.pop(position)]
    part = "".join(word for word in words if word not in _NOISE) or "".join(words)
    if not side and part[:1] in {"l", "r"} and part[1:] in _KNOWN_SIDED_PARTS:
        side, part = _SIDE_OF_WORD[part[0]], part[1:]
    return side, part


# --- limbs ---------------------------------------------------------------------------------------------------------


def _limb_roles(skeleton: BoneTree, named: Mapping[tuple[str, str], int]) -> dict[str, int]:
    """The roles of arms and legs: by name if the names form a chain down the tree, else by shape."""
    by_name = {side: {**_limb_by_name(skeleton, named, side)} for side in SIDES}
    if all(_is_complete(parts) for parts in by_name.values()):
        return {f"{side}_{part}": joint for side in SIDES for part, joint in by_name[side].items()}
    by_shape = find_limbs(skeleton, side_of=lambda joint: side_and_part(skeleton.names[joint])[0])
    found: dict[str, int] = {}
    for side in SIDES:
        for limb in (ARM_ROLES, LEG_ROLES):
            source = (
                by_name[side]
                if limb[2] in by_name[side] and limb[1] in by_name[side]
                else by_shape.get(side, {})
            )
            found.update({f"{side}_{part}": source[part] for part in limb if part in source})
    return found


def _limb_by_name(skeleton: BoneTree, named: Mapping[tuple[str, str], int], side: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for part, aliases in LIMB_ALIASES.items():
        for alias in aliases:
            joint = named.get((side, alias))
            if joint is not None and joint not in found.values():
                found[part] = joint
                break
    return {
        part: joint
        for limb in (ARM_ROLES, LEG_ROLES)
        for part, joint in _with_end(
            skeleton, _longest_descent(skeleton, {p: found[p] for p in limb if p in found}), limb
        ).items()
    }


def _with_end(skeleton: BoneTree, parts: dict[str, int], limb: tuple[str, ...]) -> dict[str, int]:
    """The limb with the hand or foot that has a name of its own: the one turning joint below forearm or shin."""
    lower = parts.get(limb[2] if limb is ARM_ROLES else limb[1])
    end = limb[3] if limb is ARM_ROLES else limb[2]
    below = [] if lower is None else [j for j in skeleton.children[lower] if not skeleton.is_end_site[j]]
    return {**parts, end: below[0]} if len(below) == 1 and end not in parts else parts


def _longest_descent(skeleton: BoneTree, parts: dict[str, int]) -> dict[str, int]:
    """The limb's parts if each is below the one before it; empty if they contradict the tree."""
    joints = list(parts.values())
    below = all(is_ancestor(skeleton, upper, lower) for upper, lower in itertools.pairwise(joints))
    return parts if below else {}


def _is_complete(parts: Mapping[str, int]) -> bool:
    return all(part in parts for part in ("upper_arm", "forearm", "hand", "thigh", "shin", "foot"))


# --- trunk ---------------------------------------------------------------------------------------------------------


def _trunk_roles(
    skeleton: BoneTree, named: Mapping[tuple[str, str], int], limbs: Mapping[str, int]
) -> dict[str, int]:
    """Pelvis and head by name or position; spine, chest and neck between them."""
    found: dict[str, int] = {}
    pelvis = _first_alias(named, _CENTRE_ALIASES["pelvis"])
    thighs = [limbs[role] for role in ("left_thigh", "right_thigh") if role in limbs]
    if len(thighs) == 2:
        junction = common_ancestor(skeleton, *thighs)
        pelvis = pelvis if pelvis is not None and _near(skeleton, pelvis, junction) else junction
    head = _first_alias(named, _CENTRE_ALIASES["head"])
    head = head if head is not None else _head_by_shape(skeleton, limbs)
    if pelvis is not None and head is not None and not is_ancestor(skeleton, pelvis, head):
        pelvis = common_ancestor(skeleton, pelvis, head)  # some rigs attach hips and spine to one root
    if pelvis is not None:
        found["pelvis"] = pelvis
    if head is not None:
        found["head"] = head
    if pelvis is None or head is None or not is_ancestor(skeleton, pelvis, head):
        return found
    between = path(skeleton, pelvis, head)[1:-1]
    return {**found, **_spine_roles(skeleton, named, between, limbs)}


def _spine_roles(
    skeleton: BoneTree, named: Mapping[tuple[str, str], int], between: list[int], limbs: Mapping[str, int]
) -> dict[str, int]:
    """Between pelvis and head: the chest carries the arms, the neck comes after it, the spine before."""
    arms = [limbs[role] for role in ("left_upper_arm", "right_upper_arm") if role in limbs]
    junction = common_ancestor(skeleton, *arms) if len(arms) == 2 else -1
    at = between.index(junction) if junction in between else max(len(between) - 2, 0)
    if (
        junction in between
        and at == len(between) - 1
        and side_and_part(skeleton.names[junction])[1] == "neck"
    ):
        at -= 1  # 3ds Max's Biped attaches the arms to the neck
    found: dict[str, int] = {}
    if 0 <= at < len(between):
        found["chest"] = between[at]
    if at + 1 < len(between):
        found["neck"] = between[at + 1]
    below = between[:at] if at > 0 else []
    by_name = _first_alias(named, _CENTRE_ALIASES["spine"])
    if below:
        found["spine"] = by_name if by_name in below else below[0]
    return found


def _head_by_shape(skeleton: BoneTree, limbs: Mapping[str, int]) -> int | None:
    """The last rotating joint before a face, on the longest branch from the arms' junction without a limb."""
    arms = [limbs[role] for role in ("left_upper_arm", "right_upper_arm") if role in limbs]
    if len(arms) < 2:
        return None
    junction, taken = common_ancestor(skeleton, *arms), set(limbs.values())
    branches = [
        branch
        for child in skeleton.children[junction]
        if not taken & set(branch := subtree(skeleton, child)) and not skeleton.is_end_site[child]
    ]
    if not branches:
        return None
    joint = max(branches, key=len)[0]
    while len(below := [child for child in skeleton.children[joint] if not skeleton.is_end_site[child]]) == 1:
        if side_and_part(skeleton.names[below[0]])[1] == "face":
            break
        joint = below[0]
    return joint


# --- the tree ------------------------------------------------------------------------------------------------------


def path(skeleton: BoneTree, ancestor: int, descendant: int) -> list[int]:
    """Joint indices from the ancestor down to the descendant, both included; empty if it is not an ancestor."""
    joints = [descendant]
    while joints[-1] != ancestor:
        joints.append(int(skeleton.parents[joints[-1]]))
        if joints[-1] < 0:
            return []
    return joints[::-1]


def is_ancestor(skeleton: BoneTree, ancestor: int, descendant: int) -> bool:
    """Whether the first joint is on the path from the second to the root."""
    return ancestor != descendant and bool(path(skeleton, ancestor, descendant))


def common_ancestor(skeleton: BoneTree, first: int, second: int) -> int:
    """The deepest joint that is an ancestor of both."""
    above = set(path(skeleton, 0, first))
    return next(joint for joint in reversed(path(skeleton, 0, second)) if joint in above)


def subtree(skeleton: BoneTree, joint: int) -> list[int]:
    """The joint and all its descendants."""
    joints = [joint]
    for current in joints:
        joints.extend(skeleton.children[current])
    return joints


# --- names ---------------------------------------------------------------------------------------------------------

_KNOWN_SIDED_PARTS = {alias for aliases in LIMB_ALIASES.values() for alias in aliases} | {
    "hipjoint",
    "thumb",
    "fingers",
}


def _joints_by_part(skeleton: BoneTree) -> dict[tuple[str, str], int]:
    """Rotating joints by side and part; of several (Spine, Spine1, ...) the one nearest the root."""
    named: dict[tuple[str, str], int] = {}
    for joint, name in enumerate(skeleton.names):
        if not skeleton.is_end_site[joint]:
            named.setdefault(side_and_part(name), joint)
    return named


def _without_prefix(name: str) -> str:
    name = re.split(r"[:|]", name)[-1]
    while (shorter := _PREFIX.sub("", name)) not in (name, ""):
        name = shorter
    return name


def _first_alias(named: Mapping[tuple[str, str], int], aliases: Iterable[str]) -> int | None:
    return next((named["", alias] for alias in aliases if ("", alias) in named), None)


def _near(skeleton: BoneTree, pelvis: int, junction: int) -> bool:
    """Whether a joint called pelvis is the legs' junction, or directly below or, unless called root, above it."""
    above = skeleton.parents[junction] == pelvis and side_and_part(skeleton.names[pelvis])[1] != "root"
    return pelvis == junction or junction == skeleton.parents[pelvis] or above
