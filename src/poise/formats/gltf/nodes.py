"""The node tree of a glTF file, and the nodes that are the joints of a body."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.formats.gltf.container import Container, Json
from poise.formats.rigs import nearest_rotation
from poise.geometry import rotations as turning
from poise.types import Array

_MOST_NODES = 10_000


@dataclass(frozen=True, eq=False)
class Local:
    """A node's local transform: translation, rotation (wxyz) and scale; one row, or one per frame."""

    translation: Float[Array, "_ 3"]
    rotation: Float[Array, "_ 4"]
    scale: Float[Array, "_ 3"]


@dataclass(frozen=True, eq=False)
class NodeTree:
    """Nodes with one parent each; `order` lists parents before children."""

    names: list[str]
    parents: list[int]
    order: list[int]
    locals: list[Local]

    def nearest_above(self, chosen: set[int]) -> list[int]:
        """For each node its nearest chosen ancestor, or -1."""
        found = [-1] * len(self.parents)
        for node in self.order:
            parent = self.parents[node]
            found[node] = parent if parent in chosen or parent < 0 else found[parent]
        return found

    def with_above(self, nodes: list[int]) -> set[int]:
        """These nodes and all their ancestors."""
        found: set[int] = set()
        for node in nodes:
            while node >= 0 and node not in found:
                found.add(node)
                node = self.parents[node]
        return found


def node_tree(file: Container) -> NodeTree:
    """The tree of all nodes; raise if a node has two parents or is its own ancestor."""
    nodes = file.objects("nodes")
    if not 0 < len(nodes) <= _MOST_NODES:
        file.fail(f"{len(nodes)} nodes; expected 1 to {_MOST_NODES}")
    parents = [-1] * len(nodes)
    children = [file.integers("children", node, below=len(nodes)) for node in nodes]
    for parent, below in enumerate(children):
        for child in below:
            if parents[child] != -1:
                file.fail(f"node {child} has two parents")
            parents[child] = parent
    order = [node for node, parent in enumerate(parents) if parent == -1]
    for node in order:
        order.extend(children[node])
    if len(order) != len(nodes):
        file.fail("some nodes are their own ancestors")
    names: dict[str, None] = {}  # made unique
    for number, entry in enumerate(nodes):
        given = entry.get("name")
        name = given if isinstance(given, str) and given else f"node_{number}"
        unique = name if name not in names else f"{name}_{number}"
        while unique in names:
            unique += "_"
        names[unique] = None
    return NodeTree(list(names), parents, order, [_local(file, node) for node in nodes])


def joints_of(file: Container, tree: NodeTree) -> tuple[list[int], int | None]:
    """The nodes of a body's joints, parents first with one root, and the index of their skin."""
    skins = file.objects("skins")
    listed = [file.integers("joints", skin, below=len(tree.names)) for skin in skins]
    if any(listed):
        number = max(range(len(listed)), key=lambda k: len(listed[k]))
        return _in_order(tree, _under_one_root(tree, set(listed[number])), listed[number]), number
    # Without a skin: the largest tree of nodes, without those that only carry a mesh, a camera or a light.
    nodes, top = file.objects("nodes"), _tops(tree)
    largest = Counter(top).most_common(1)[0][0]
    kept: set[int] = set()
    for node in tree.order:
        bare = not {"mesh", "camera", "extensions"} & nodes[node].keys()
        if node == largest or (bare and tree.parents[node] in kept):
            kept.add(node)
    return _in_order(tree, kept, sorted(kept)), None


def _under_one_root(tree: NodeTree, chosen: set[int]) -> set[int]:
    """The nodes with their nearest common ancestor; without one, the largest of their trees."""
    above, top = tree.nearest_above(chosen), _tops(tree)
    roots = [node for node in chosen if above[node] == -1]
    if len(roots) == 1:
        return chosen
    if len({top[node] for node in roots}) == 1:
        shared = set.intersection(*(tree.with_above([node]) for node in roots))
        return chosen | {next(node for node in reversed(tree.order) if node in shared)}
    largest = Counter(top[node] for node in chosen).most_common(1)[0][0]
    return _under_one_root(tree, {node for node in chosen if top[node] == largest})


def _tops(tree: NodeTree) -> list[int]:
    """For each node the top of its tree."""
    top = [0] * len(tree.parents)
    for node in tree.order:
        top[node] = node if tree.parents[node] == -1 else top[tree.parents[node]]
    return top


def _in_order(tree: NodeTree, chosen: set[int], listed: list[int]) -> list[int]:
    """The chosen nodes in the file's order if parents come first in it, else in the order of the tree."""
    place = {node: number for number, node in enumerate(listed)}
    above = tree.nearest_above(chosen)
    if all(node in place and place.get(above[node], -1) < place[node] for node in chosen):
        return sorted(chosen, key=lambda node: place[node])
    return [node for node in tree.order if node in chosen]


def _local(file: Container, node: Json) -> Local:
    if "matrix" in node:  # which in glTF may contain nothing else than translation, rotation and scale
        matrix = file.numbers("matrix", node, count=16).reshape(4, 4).T
        scale = np.linalg.norm(matrix[:3, :3], axis=0)
        if not np.all((scale > 1e-9) & (scale < 1e9)):
            file.fail("a node's matrix is singular")
        turn = matrix[:3, :3] / scale
        if np.linalg.det(turn) < 0:
            scale, turn = -scale, -turn
        return Local(matrix[None, :3, 3], nearest_rotation(turn[None]), scale[None])
    rotation = np.roll(file.numbers("rotation", node, count=4, default=(0.0, 0.0, 0.0, 1.0)), 1)
    if not np.linalg.norm(rotation) > 1e-6:
        file.fail("a node's rotation has no length")
    return Local(
        file.numbers("translation", node, count=3, default=(0.0, 0.0, 0.0))[None],
        turning.normalize(rotation)[None],
        file.numbers("scale", node, count=3, default=(1.0, 1.0, 1.0))[None],
    )
