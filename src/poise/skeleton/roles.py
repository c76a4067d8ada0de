"""Semantic roles (head, left hand, pelvis, ...) of a skeleton's joints, from the usual naming schemes and from shape.

Names are read first: prefixes, separators, case and side marks differ between MotionBuilder and CMU, Mixamo,
Biovision, Bandai Namco, Acclaim, Rokoko, Xsens, 3ds Max Biped, Unreal, Unity and VRM, DAZ, SMPL, Kinect and Blender
rigs, but the remaining words name the same bones. If a limb's names are uninformative, or contradict the tree, the
shape of the tree decides. The trunk (spine, chest, neck) is the path between the limbs.

By shape, a body is a tree with five long branches. Going up from the root, the first joint with two long branches
besides the trunk is the pelvis, the next one is the chest. In each limb the two longest consecutive bones are thigh and
shin, or upper arm and forearm.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.types import Array

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
_KNOWN_SIDED_PARTS = {"hipjoint", "thumb", "fingers", *itertools.chain(*LIMB_ALIASES.values())}
_LONG = 0.45  # share of the longest sibling branch above which a branch is long
_LIMB = 0.25  # share of the longest branch of all above which it is a limb
_MOST_BRANCHES = 8


@runtime_checkable
class BoneTree(Protocol):
    """The bones of a skeleton: what its limbs and roles are found from."""

    @property
    def names(self) -> tuple[str, ...]:
        """The joints."""
        ...

    @property
    def parents(self) -> Int[Array, "joints"]:
        """The joint above each; -1 for the root."""
        ...

    @property
    def offsets(self) -> Float[Array, "joints 3"]:
        """From the joint above, in metres."""
        ...

    @property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """The joints below each."""
        ...

    @property
    def is_end_site(self) -> Bool[Array, "joints"]:
        """Whether a joint is the end of a bone and does not turn."""
        ...

    def __len__(self) -> int:
        """The number of joints."""
        ...


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
    named: dict[tuple[str, str], int] = {}  # of several (Spine, Spine1, ...) the one nearest the root
    for joint, name in enumerate(skeleton.names):
        if not skeleton.is_end_site[joint]:
            named.setdefault(side_and_part(name), joint)
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
    name = re.split(r"[:|]", name)[-1]
    while (shorter := _PREFIX.sub("", name)) not in (name, ""):
        name = shorter
    words = [word.lower() for word in _WORD.findall(name)]
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
    by_name = {side: _limb_by_name(skeleton, named, side) for side in SIDES}
    if all(set(parts) >= {*ARM_ROLES[1:], *LEG_ROLES[:3]} for parts in by_name.values()):
        return {f"{side}_{part}": joint for side in SIDES for part, joint in by_name[side].items()}
    by_shape = _Tree(skeleton).limbs()
    found: dict[str, int] = {}
    for side in SIDES:
        for limb in (ARM_ROLES, LEG_ROLES):
            named_limb = limb[2] in by_name[side] and limb[1] in by_name[side]
            source = by_name[side] if named_limb else by_shape.get(side, {})
            found.update({f"{side}_{part}": source[part] for part in limb if part in source})
    return found


def _limb_by_name(skeleton: BoneTree, named: Mapping[tuple[str, str], int], side: str) -> dict[str, int]:
    aliased: dict[str, int] = {}
    for part, aliases in LIMB_ALIASES.items():
        joints = [named[side, alias] for alias in aliases if (side, alias) in named]
        free = [joint for joint in joints if joint not in aliased.values()]
        if free:
            aliased[part] = free[0]
    found: dict[str, int] = {}
    for limb, lower, end in ((ARM_ROLES, "forearm", "hand"), (LEG_ROLES, "shin", "foot")):
        parts = {part: aliased[part] for part in limb if part in aliased}
        if not all(is_ancestor(skeleton, *pair) for pair in itertools.pairwise(parts.values())):
            continue  # the names contradict the tree
        if lower in parts and end not in parts:
            # A hand or foot with a name of its own is the one turning joint below.
            below = [j for j in skeleton.children[parts[lower]] if not skeleton.is_end_site[j]]
            parts.update({end: below[0]} if len(below) == 1 else {})
        found.update(parts)
    return found


class _Tree:
    """A skeleton with, per joint, the length of the longest path from its parent through it to a leaf."""

    def __init__(self, skeleton: BoneTree) -> None:
        self.skeleton = skeleton
        lengths, parents = np.linalg.norm(skeleton.offsets, axis=-1).tolist(), skeleton.parents.tolist()
        below = [0.0] * len(skeleton)
        for joint in range(len(skeleton) - 1, 0, -1):
            below[parents[joint]] = max(below[parents[joint]], below[joint] + lengths[joint])
        self.reach = [way + length for way, length in zip(below, lengths, strict=True)]
        # Only below a fork: a root may be far from the body.
        beside = [child for children in skeleton.children if len(children) > 1 for child in children]
        self.limb = _LIMB * max((self.reach[child] for child in beside), default=0.0)

    def limbs(self) -> dict[str, dict[str, int]]:
        """Per side, limb part to joint; sides from the names if they have them, else from the rest pose."""
        pelvis = self.fork_below(0)
        branches = [] if pelvis is None else self.long_children(pelvis)
        forks = {child: fork for child in branches if (fork := self.fork_below(child)) is not None}
        if not forks:
            return {}
        trunk = max(forks, key=lambda child: sum(self.reach[arm] for arm in self.long_children(forks[child])))
        legs = self.most_alike([child for child in branches if child != trunk])
        arms = self.most_alike(self.long_children(forks[trunk]))
        left = self.left_direction(legs, forks[trunk])
        found: dict[str, dict[str, int]] = {side: {} for side in SIDES}
        for pair, words in ((arms, ARM_ROLES), (legs, ("", *LEG_ROLES[:3]))):
            if len(pair) == 2:
                sides = [self.named_side(joint) for joint in pair]
                if set(sides) == set(SIDES):
                    in_order = sides[0] == "left"
                else:
                    places = [self.rest_position(self.longest_branch(joint)[-1]) @ left for joint in pair]
                    in_order = bool(places[0] >= places[1])
                for side, joint in zip(SIDES, pair if in_order else pair[::-1], strict=True):
                    found[side].update(self.parts_of_limb(joint, words))
        return found

    def longest_branch(self, joint: int) -> list[int]:
        """Joints from this one down to the farthest leaf."""
        chain = [joint]
        while children := self.skeleton.children[chain[-1]]:
            chain.append(max(children, key=lambda child: self.reach[child]))
        return chain

    def long_children(self, joint: int) -> list[int]:
        """The longest branches below a joint, longest first, at most as many as a body could have."""
        children = sorted(self.skeleton.children[joint], key=lambda child: -self.reach[child])
        longest = children[:_MOST_BRANCHES]
        return [child for child in longest if self.reach[child] >= _LONG * self.reach[longest[0]] > 0]

    def fork_below(self, joint: int) -> int | None:
        """The first joint along the longest branch from this one with two or more branches as long as limbs."""
        for each in self.longest_branch(joint):
            if sum(self.reach[child] > self.limb for child in self.long_children(each)) >= 2:
                return each
        return None

    def most_alike(self, branches: list[int]) -> list[int]:
        """The two branches with the most similar length and number of joints."""
        sizes = {branch: len(self.longest_branch(branch)) for branch in branches}

        def difference(pair: tuple[int, int]) -> tuple[float, float]:
            a, b = (float(self.reach[branch]) for branch in pair)
            return abs(a - b) / max(a, b) + 0.5 * (sizes[pair[0]] != sizes[pair[1]]), -(a + b)

        return list(min(itertools.combinations(sorted(branches), 2), key=difference, default=()))

    def parts_of_limb(self, top: int, words: tuple[str, ...]) -> dict[str, int]:
        """The joints at the ends of the limb's two longest consecutive bones, the one before them and the one after."""
        chain = self.longest_branch(top)
        lengths = np.linalg.norm(self.skeleton.offsets[chain], axis=-1)
        if len(chain) < 3:
            return {}
        pairs = np.minimum(lengths[1:-1], lengths[2:])
        first = int(np.flatnonzero(pairs >= 0.7 * pairs.max())[-1])  # a clavicle can be as long as a forearm
        before, upper, lower, end = words
        parts = {upper: chain[first], lower: chain[first + 1], end: chain[first + 2]}
        if before and first > 0:
            parts[before] = chain[first - 1]
        if end == "foot" and first + 3 < len(chain) and not self.skeleton.is_end_site[chain[first + 3]]:
            parts["toes"] = chain[first + 3]
        return parts

    def named_side(self, joint: int) -> str:
        """The side that most names along a limb say, or ""."""
        named = (side_and_part(self.skeleton.names[below])[0] for below in self.longest_branch(joint))
        sides = [side for side in named if side]
        return max(set(sides), key=sides.count) if sides else ""

    def left_direction(self, legs: list[int], chest: int) -> Float[Array, "3"]:
        """Up times forward: up points from feet to chest, forward along the feet; +X if the feet do not show it."""
        ends, offsets = [self.longest_branch(joint) for joint in legs], self.skeleton.offsets
        forward = sum((offsets[way[-1]] + offsets[way[-2]] for way in ends if len(way) > 2), np.zeros(3))
        feet = [self.rest_position(way[-1]) for way in ends]
        up = self.rest_position(chest) - (np.mean(feet, axis=0) if feet else np.zeros(3))
        left: Array = np.cross(up, forward)
        size = np.linalg.norm(up) * np.linalg.norm(forward)
        return left if np.linalg.norm(left) > 0.2 * size > 0 else np.array([1.0, 0.0, 0.0])

    def rest_position(self, joint: int) -> Float[Array, "3"]:
        """From the root to the joint, in the rest pose."""
        position = np.zeros(3)
        while joint > 0:
            position, joint = position + self.skeleton.offsets[joint], int(self.skeleton.parents[joint])
        return position


# --- trunk ---------------------------------------------------------------------------------------------------------


def _trunk_roles(
    skeleton: BoneTree, named: Mapping[tuple[str, str], int], limbs: Mapping[str, int]
) -> dict[str, int]:
    """Pelvis and head by name or position; spine, chest and neck between them."""
    pelvis, spine, head = (
        next((named["", alias] for alias in aliases if ("", alias) in named), None)
        for aliases in _CENTRE_ALIASES.values()
    )
    thighs = [limbs[role] for role in ("left_thigh", "right_thigh") if role in limbs]
    if len(thighs) == 2:
        junction = common_ancestor(skeleton, *thighs)
        # A joint called pelvis is the legs' junction, or directly below or, unless called root, above it.
        near = pelvis is not None and (
            pelvis == junction
            or junction == skeleton.parents[pelvis]
            or (skeleton.parents[junction] == pelvis and side_and_part(skeleton.names[pelvis])[1] != "root")
        )
        pelvis = pelvis if near else junction
    arms = [limbs[role] for role in ("left_upper_arm", "right_upper_arm") if role in limbs]
    fork = common_ancestor(skeleton, *arms) if len(arms) == 2 else -1
    if head is None and fork >= 0:
        head = _head_by_shape(skeleton, fork, set(limbs.values()))
    if pelvis is not None and head is not None and not is_ancestor(skeleton, pelvis, head):
        pelvis = common_ancestor(skeleton, pelvis, head)  # some rigs attach hips and spine to one root
    found = {role: joint for role, joint in (("pelvis", pelvis), ("head", head)) if joint is not None}
    if pelvis is None or head is None or not is_ancestor(skeleton, pelvis, head):
        return found
    # The chest carries the arms, the neck comes after it, the spine before.
    between = path(skeleton, pelvis, head)[1:-1]
    at = between.index(fork) if fork in between else max(len(between) - 2, 0)
    if fork in between[-1:] and side_and_part(skeleton.names[fork])[1] == "neck":
        at -= 1  # 3ds Max's Biped attaches the arms to the neck
    if 0 <= at < len(between):
        found["chest"] = between[at]
    if at + 1 < len(between):
        found["neck"] = between[at + 1]
    if at > 0 and between[:at]:
        found["spine"] = spine if spine in between[:at] else between[0]
    return found


def _head_by_shape(skeleton: BoneTree, fork: int, taken: set[int]) -> int | None:
    """The last rotating joint before a face, on the longest branch from the arms' junction without a limb."""
    free = [child for child in skeleton.children[fork] if not skeleton.is_end_site[child]]
    branches = [branch for child in free if not taken & set(branch := subtree(skeleton, child))]
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
