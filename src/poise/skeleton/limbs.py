"""Find arms and legs by the shape of a skeleton's tree, for uninformative joint names.

A body is a tree with five long branches. Going up from the root, the first joint with two long branches besides the
trunk is the pelvis, the next one is the chest. In each limb the two longest consecutive bones are thigh and shin, or
upper arm and forearm.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.types import Array

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


def find_limbs(skeleton: BoneTree, *, side_of: Callable[[int], str]) -> dict[str, dict[str, int]]:
    """Per side, limb part to joint index; sides from the names if they have them, else from the rest pose."""
    tree = _Tree(skeleton)
    pelvis = tree.fork_below(0)
    if pelvis is None:
        return {}
    branches = tree.long_children(pelvis)
    forks = {child: fork for child in branches if (fork := tree.fork_below(child)) is not None}
    if not forks:
        return {}
    trunk = max(forks, key=lambda child: sum(tree.reach[arm] for arm in tree.long_children(forks[child])))
    legs = tree.most_alike([child for child in branches if child != trunk])
    arms = tree.most_alike(tree.long_children(forks[trunk]))
    return _sided(tree, arms=arms, legs=legs, chest=forks[trunk], side_of=side_of)


class _Tree:
    """A skeleton with, per joint, the length of the longest path from its parent through it to a leaf."""

    def __init__(self, skeleton: BoneTree) -> None:
        self.skeleton = skeleton
        self.reach = _reach(skeleton)
        # Only below a fork: a root may be far from the body.
        beside = [child for children in skeleton.children if len(children) > 1 for child in children]
        self.limb = _LIMB * max((self.reach[child] for child in beside), default=0.0)

    def longest_branch(self, joint: int) -> list[int]:
        """Joints from this one down to the farthest leaf."""
        chain = [joint]
        while children := self.skeleton.children[chain[-1]]:
            chain.append(max(children, key=lambda child: self.reach[child]))
        return chain

    def long_children(self, joint: int) -> list[int]:
        """The longest branches below a joint, longest first, at most as many as a body could have."""
        children = sorted(self.skeleton.children[joint], key=lambda child: -self.reach[child])[
            :_MOST_BRANCHES
        ]
        return [child for child in children if self.reach[child] >= _LONG * self.reach[children[0]] > 0]

    def fork_below(self, joint: int) -> int | None:
        """The first joint along the longest branch from this one with two or more branches as long as limbs."""
        chain = self.longest_branch(joint)
        return next(
            (j for j in chain if sum(self.reach[c] > self.limb for c in self.long_children(j)) >= 2), None
        )

    def most_alike(self, branches: list[int]) -> list[int]:
        """The two branches with the most similar length and number of joints."""
        sizes = {branch: len(self.longest_branch(branch)) for branch in branches}

        def difference(pair: tuple[int, int]) -> tuple[float, float]:
            a, b = (float(self.reach[branch]) for branch in pair)
            return abs(a - b) / max(a, b) + 0.5 * (sizes[pair[0]] != sizes[pair[1]]), -(a + b)

        best = min(itertools.combinations(sorted(branches), 2), key=difference, default=())
        return list(best)


def _reach(skeleton: BoneTree) -> list[float]:
    lengths = np.linalg.norm(skeleton.offsets, axis=-1).tolist()
    parents = skeleton.parents.tolist()
    below = [0.0] * len(skeleton)
    for joint in range(len(skeleton) - 1, 0, -1):
        below[parents[joint]] = max(below[parents[joint]], below[joint] + lengths[joint])
    return [way + length for way, length in zip(below, lengths, strict=True)]


def _sided(
    tree: _Tree, *, arms: list[int], legs: list[int], chest: int, side_of: Callable[[int], str]
) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {"left": {}, "right": {}}
    left = _left_direction(tree, legs, chest)
    for pair, words in (
        (arms, ("shoulder", "upper_arm", "forearm", "hand")),
        (legs, ("", "thigh", "shin", "foot")),
    ):
        if len(pair) == 2:
            for side, joint in zip(("left", "right"), _left_first(tree, pair, left, side_of), strict=True):
                found[side].update(_parts_of_limb(tree, joint, words))
    return found


def _parts_of_limb(tree: _Tree, top: int, words: tuple[str, str, str, str]) -> dict[str, int]:
    """The joints at the ends of the limb's two longest consecutive bones, the one before them and the one after."""
    skeleton, chain = tree.skeleton, tree.longest_branch(top)
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


def _left_first(tree: _Tree, pair: list[int], left: np.ndarray, side_of: Callable[[int], str]) -> list[int]:
    sides = [_named_side(tree, joint, side_of) for joint in pair]
    if set(sides) == {"left", "right"}:
        return pair if sides[0] == "left" else pair[::-1]
    places = [_rest_position(tree.skeleton, tree.longest_branch(joint)[-1]) @ left for joint in pair]
    return pair if places[0] >= places[1] else pair[::-1]


def _named_side(tree: _Tree, joint: int, side_of: Callable[[int], str]) -> str:
    sides = [side for below in tree.longest_branch(joint) if (side := side_of(below))]
    return max(set(sides), key=sides.count) if sides else ""


def _left_direction(tree: _Tree, legs: list[int], chest: int) -> np.ndarray:
    """Up times forward: up points from the feet to the chest, forward along the feet; +X if the feet do not show it."""
    skeleton = tree.skeleton
    ends = [tree.longest_branch(joint) for joint in legs]
    forward = sum(
        (skeleton.offsets[chain[-1]] + skeleton.offsets[chain[-2]] for chain in ends if len(chain) > 2),
        np.zeros(3),
    )
    feet = [_rest_position(skeleton, chain[-1]) for chain in ends]
    up = _rest_position(skeleton, chest) - (np.mean(feet, axis=0) if feet else np.zeros(3))
    left: np.ndarray = np.cross(up, forward)
    size = np.linalg.norm(up) * np.linalg.norm(forward)
    return left if np.linalg.norm(left) > 0.2 * size > 0 else np.array([1.0, 0.0, 0.0])


def _rest_position(skeleton: BoneTree, joint: int) -> np.ndarray:
    position, current = np.zeros(3), joint
    while current > 0:
        position, current = position + skeleton.offsets[current], int(skeleton.parents[current])
    return position
