"""Arms and legs found from the shape of a skeleton's tree alone, for skeletons whose joint names say nothing.

A body is a tree with five long branches. Going up from the root, the first joint with two long branches besides the
trunk is the pelvis, the next one with two is the chest; in each limb the two longest bones in a row are thigh and
shin, or upper arm and forearm.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from poise.skeleton.skeleton import Skeleton

_LONG = 0.45  # a branch is long if it reaches this share of the longest branch beside it


def find_limbs(skeleton: Skeleton, *, side_of: Callable[[int], str]) -> dict[str, dict[str, int]]:
    """Per side, limb part to joint number; sides from the names where they tell, else from the rest pose."""
    reach = branch_reach(skeleton)
    pelvis = _descend_to_fork(skeleton, reach, 0)
    if pelvis is None:
        return {}
    branches = _long_children(skeleton, reach, pelvis)
    forks = {child: _descend_to_fork(skeleton, reach, child) for child in branches}
    trunks = [child for child in branches if forks[child] is not None]
    if not trunks:
        return {}
    trunk = max(trunks, key=lambda child: _reach_of_fork(skeleton, reach, forks[child]))
    chest = forks[trunk]
    assert chest is not None
    legs = _most_alike(skeleton, reach, [child for child in branches if child != trunk])
    arms = _most_alike(skeleton, reach, _long_children(skeleton, reach, chest))
    return _sided(skeleton, arms=arms, legs=legs, chest=chest, side_of=side_of)


def branch_reach(skeleton: Skeleton) -> np.ndarray:
    """Per joint, the length of the longest way down from it to a leaf, its own bone included."""
    lengths = np.linalg.norm(skeleton.offsets, axis=-1)
    below = np.zeros(len(skeleton))
    for joint in range(len(skeleton) - 1, 0, -1):
        parent = skeleton.parents[joint]
        below[parent] = max(below[parent], below[joint] + lengths[joint])
    reach: np.ndarray = below + lengths
    return reach


def longest_branch(skeleton: Skeleton, joint: int) -> list[int]:
    """Joints from this one down to the farthest leaf."""
    reach, chain = branch_reach(skeleton), [joint]
    while children := skeleton.children[chain[-1]]:
        chain.append(max(children, key=lambda child: reach[child]))
    return chain


def _descend_to_fork(skeleton: Skeleton, reach: np.ndarray, joint: int) -> int | None:
    """The first joint, at or below this one along the longest branch, with two or more branches as long as limbs."""
    forks = (
        children for children in skeleton.children if len(children) > 1
    )  # a root may stand far from the body
    limb = 0.25 * max((reach[child] for children in forks for child in children), default=0.0)
    while children := skeleton.children[joint]:
        if sum(reach[child] > limb for child in _long_children(skeleton, reach, joint)) >= 2:
            return joint
        joint = max(children, key=lambda child: reach[child])
    return None


def _long_children(skeleton: Skeleton, reach: np.ndarray, joint: int) -> list[int]:
    children = skeleton.children[joint]
    longest = max((reach[child] for child in children), default=0.0)
    return [child for child in children if reach[child] >= _LONG * longest > 0]


def _reach_of_fork(skeleton: Skeleton, reach: np.ndarray, fork: int | None) -> float:
    return (
        0.0 if fork is None else sum(float(reach[child]) for child in _long_children(skeleton, reach, fork))
    )


def _most_alike(skeleton: Skeleton, reach: np.ndarray, branches: list[int]) -> list[int]:
    """The two branches that differ least, in reach and in number of joints."""
    if len(branches) < 2:
        return []

    def difference(pair: tuple[int, int]) -> tuple[float, float]:
        sizes = [len(longest_branch(skeleton, joint)) for joint in pair]
        a, b = reach[pair[0]], reach[pair[1]]
        return (abs(a - b) / max(a, b) + 0.5 * (sizes[0] != sizes[1]), -float(a + b))

    best = min(itertools.combinations(branches, 2), key=difference)
    return list(best)


def _sided(
    skeleton: Skeleton, *, arms: list[int], legs: list[int], chest: int, side_of: Callable[[int], str]
) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {"left": {}, "right": {}}
    left = _left_direction(skeleton, legs, chest)
    for pair, words in (
        (arms, ("shoulder", "upper_arm", "forearm", "hand")),
        (legs, ("", "thigh", "shin", "foot")),
    ):
        if len(pair) == 2:
            for side, joint in zip(
                ("left", "right"), _left_first(skeleton, pair, left, side_of), strict=True
            ):
                found[side].update(_parts_of_limb(skeleton, joint, words))
    return found


def _parts_of_limb(skeleton: Skeleton, top: int, words: tuple[str, str, str, str]) -> dict[str, int]:
    """The joints at the ends of the limb's two longest bones in a row, the one before them and the one after."""
    chain = longest_branch(skeleton, top)
    lengths = np.linalg.norm(skeleton.offsets[chain], axis=-1)
    if len(chain) < 3:
        return {}
    pairs = np.minimum(lengths[1:-1], lengths[2:])
    first = int(np.flatnonzero(pairs >= 0.7 * pairs.max())[-1])  # a clavicle can be as long as a forearm
    before, upper, lower, end = words
    parts = {upper: chain[first], lower: chain[first + 1], end: chain[first + 2]}
    if before and first > 0:
        parts[before] = chain[first - 1]
    if end == "foot" and first + 3 < len(chain) and not skeleton.is_end_site[chain[first + 3]]:
        parts["toes"] = chain[first + 3]
    return parts


def _left_first(
    skeleton: Skeleton, pair: list[int], left: np.ndarray, side_of: Callable[[int], str]
) -> list[int]:
    sides = [_named_side(skeleton, joint, side_of) for joint in pair]
    if set(sides) == {"left", "right"}:
        return pair if sides[0] == "left" else pair[::-1]
    places = [_rest_position(skeleton, longest_branch(skeleton, joint)[-1]) @ left for joint in pair]
    return pair if places[0] >= places[1] else pair[::-1]


def _named_side(skeleton: Skeleton, joint: int, side_of: Callable[[int], str]) -> str:
    sides = [side for below in longest_branch(skeleton, joint) if (side := side_of(below))]
    return max(set(sides), key=sides.count) if sides else ""


def _left_direction(skeleton: Skeleton, legs: list[int], chest: int) -> np.ndarray:
    """Up times forward: up leads from the feet to the chest, forward along the feet; +X where feet do not tell."""
    ends = [longest_branch(skeleton, joint) for joint in legs]
    forward = sum(
        (skeleton.offsets[chain[-1]] + skeleton.offsets[chain[-2]] for chain in ends if len(chain) > 2),
        np.zeros(3),
    )
    feet = [_rest_position(skeleton, chain[-1]) for chain in ends]
    up = _rest_position(skeleton, chest) - (np.mean(feet, axis=0) if feet else np.zeros(3))
    left: np.ndarray = np.cross(up, forward)
    size = np.linalg.norm(up) * np.linalg.norm(forward)
    return left if np.linalg.norm(left) > 0.2 * size > 0 else np.array([1.0, 0.0, 0.0])


def _rest_position(skeleton: Skeleton, joint: int) -> np.ndarray:
    position, current = np.zeros(3), joint
    while current > 0:
        position, current = position + skeleton.offsets[current], int(skeleton.parents[current])
    return position
