"""One continuous skin around the parts of a mannequin, which bends with its joints.

The parts are joined where they meet by a smooth minimum of their distances (Quilez 2013), and the surface between
inside and outside is drawn by naive surface nets (Gibson 1998). Every vertex follows the joints of the parts near it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.pictures.mannequin import TONES, Mannequin
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

GRID = 0.007  # of stature: the distance of grid points
ROUND = 0.012  # of stature: how far parts round off where they meet
SOFT = 0.010  # of stature: over what distance a vertex goes from one joint to another
SMALL = 4  # cells: parts of the face are smaller
SMOOTH = 0.8  # cells: of the mean that hides the edges of the parts
BONES = 4  # joints that a vertex follows
FIRST = np.eye(1, BONES)
PERSON = {"pelvis", "head", "left_thigh", "right_thigh", "left_foot", "right_foot"}
_CORNERS = np.array([(i, j, k) for i in (0, 1) for j in (0, 1) for k in (0, 1)])


@dataclass(frozen=True, eq=False)
class BodySkin:
    """A triangle mesh at a pose: every vertex follows some joints, by weight; `inverses` lead into joints' frames."""

    vertices: Float[Array, "vertices 3"]
    normals: Float[Array, "vertices 3"]
    joints: Int[Array, "vertices 4"]
    weights: Float[Array, "vertices 4"]
    tones: Int[Array, "vertices"]
    triangles: Int[Array, "triangles 3"]
    inverses: Float[Array, "joints 3 4"]


def skin_of(body: Mannequin, skeleton: Skeleton, samples: Float[Array, "frames joints 4"] | None) -> BodySkin:
    """The continuous skin of a person's mannequin; other bodies keep their rigid parts.

    `samples` are recorded rotations, for skeletons whose rest pose does not stand like a person.
    """
    if not set(skeleton.roles) >= PERSON:
        return _rigid(body, skeleton)
    neutral = neutral_pose(skeleton, samples)
    return _continuous(body, skeleton, np.asarray(neutral.positions), np.asarray(neutral.world))


def _rigid(body: Mannequin, skeleton: Skeleton) -> BodySkin:
    joints = np.zeros((len(body.vertices), BONES), dtype=np.int64)
    joints[:, 0] = body.joints
    inverses = np.tile(np.eye(3, 4), (len(skeleton), 1, 1))
    return BodySkin(
        body.vertices,
        body.normals,
        joints,
        np.tile(FIRST, (len(joints), 1)),
        body.tones,
        body.triangles,
        inverses,
    )


def _continuous(
    body: Mannequin,
    skeleton: Skeleton,
    places: Float[Array, "joints 3"],
    turns: Float[Array, "joints 3 3"],
) -> BodySkin:
    """The skin at a pose in which parts touch only those beside them. Parts of a few cells are drawn as they are."""
    posed, normals = body.posed(places, turns)
    parts = _parts(body)
    cell, reach = GRID * skeleton.height, ROUND * skeleton.height
    low = posed.min(axis=0) - 3.0 * cell
    shape = np.ceil((posed.max(axis=0) + 3.0 * cell - low) / cell).astype(int)
    field = np.full(shape, 4.0 * cell)
    small = np.zeros(len(posed), dtype=np.bool_)
    for part in range(parts.max() + 1):
        own = parts == part
        small[own] = np.ptp(posed[own], axis=0).max() < SMALL * cell
        if small[own][0]:
            continue
        begin = np.maximum(np.floor((posed[own].min(axis=0) - 2.0 * reach - low) / cell).astype(int), 0)
        end = np.minimum(np.ceil((posed[own].max(axis=0) + 2.0 * reach - low) / cell).astype(int), shape)
        at = np.stack(np.meshgrid(*map(np.arange, begin, end), indexing="ij"), axis=-1)
        away = _distance((low + cell * at).reshape(-1, 3), posed[own], normals[own]).reshape(at.shape[:-1])
        known = field[tuple(map(slice, begin, end))]
        both = np.maximum(reach - np.abs(known - away), 0.0) / reach
        known[...] = np.minimum(known, away) - 0.25 * reach * both * both
    from scipy.ndimage import gaussian_filter  # not with the module: the studio's first page can spare it

    points, triangles = surface(gaussian_filter(field, SMOOTH))
    points = low + cell * points
    large = np.unique(parts[~small])
    joints, weights, tones = _followed(points, posed, normals, parts, large, body, skeleton)
    kept = body.triangles[small[body.triangles[:, 0]]]
    extra = np.unique(kept)
    own_joints = np.zeros((len(extra), BONES), dtype=np.int64)
    own_joints[:, 0] = body.joints[extra]
    inverse = turns.transpose(0, 2, 1)
    return BodySkin(
        vertices=np.concatenate([points, posed[extra]]),
        normals=np.concatenate([_normals(points, triangles), normals[extra]]),
        joints=np.concatenate([joints, own_joints]),
        weights=np.concatenate([weights, np.tile(FIRST, (len(extra), 1))]),
        tones=np.concatenate([tones, body.tones[extra]]),
        triangles=np.concatenate([triangles, len(points) + np.searchsorted(extra, kept)]),
        inverses=np.concatenate([inverse, -inverse @ places[..., None]], axis=-1),
    )


def surface(field: Float[Array, "x y z"]) -> tuple[Float[Array, "points 3"], Int[Array, "triangles 3"]]:
    """The surface on which a field is zero, in cells of its grid; inside it is negative."""
    inside = field < 0.0
    size = np.array(field.shape) - 1
    cells = [inside[tuple(slice(c, c + n) for c, n in zip(corner, size, strict=True))] for corner in _CORNERS]
    mixed = np.any(cells, axis=0) & ~np.all(cells, axis=0)
    at = np.argwhere(mixed)
    number = np.full(mixed.shape, -1)
    number[tuple(at.T)] = np.arange(len(at))
    sums, count = np.zeros((len(at), 3)), np.zeros((len(at), 1))
    for one in range(8):
        for other in range(one + 1, 8):
            a, b = _CORNERS[one], _CORNERS[other]
            if np.abs(a - b).sum() == 1:
                here, there = (field[tuple((at + corner).T)] for corner in (a, b))
                crosses = ((here < 0.0) != (there < 0.0))[:, None]
                share = np.where(crosses[:, 0], here / np.where(here == there, 1.0, here - there), 0.0)[
                    :, None
                ]
                sums += np.where(crosses, a + share * (b - a), 0.0)
                count += crosses
    points = at + sums / count
    triangles = []
    for axis in range(3):  # a face of four cells around every edge of the grid that the surface crosses
        one, two = (axis + 1) % 3, (axis + 2) % 3
        inner = [slice(1, -1)] * 3
        inner[axis] = slice(0, -1)
        ahead = list(inner)
        ahead[axis] = slice(1, None)
        begin, end = inside[tuple(inner)], inside[tuple(ahead)]
        edges = np.argwhere(begin != end) + np.where(np.arange(3) == axis, 0, 1)
        outwards = begin[begin != end]
        steps = np.zeros((4, 3), dtype=int)
        steps[[1, 2], one] = -1
        steps[[2, 3], two] = -1
        quads = number[tuple((edges[:, None] + steps).transpose(2, 0, 1))]
        quads = np.where(outwards[:, None], quads, quads[:, ::-1])
        triangles += [quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]
    return points, np.concatenate(triangles)


def _parts(body: Mannequin) -> Int[Array, "vertices"]:
    """The number of the part of every vertex: parts share no triangle."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    a, b, c = body.triangles.T
    count = len(body.vertices)
    edges = coo_matrix((np.ones(2 * len(a)), (np.r_[a, b], np.r_[b, c])), shape=(count, count))
    return np.asarray(connected_components(edges, directed=False)[1])


def _distance(
    points: Float[Array, "points 3"],
    vertices: Float[Array, "vertices 3"],
    normals: Float[Array, "vertices 3"],
) -> Float[Array, "points"]:
    """Signed distances from a part, inside negative: along the normals of its nearest vertices."""
    from scipy.spatial import cKDTree

    away, near = cKDTree(vertices).query(points, k=3)
    along = np.einsum("pki,pki->pk", points[:, None] - vertices[near], normals[near])
    weights = 1.0 / (away + 1e-4)
    return np.asarray(np.sum(weights * along, axis=1) / weights.sum(axis=1))


def _followed(
    points: Float[Array, "points 3"],
    vertices: Float[Array, "vertices 3"],
    normals: Float[Array, "vertices 3"],
    parts: Int[Array, "vertices"],
    large: Int[Array, "parts"],
    body: Mannequin,
    skeleton: Skeleton,
) -> tuple[Int[Array, "points 4"], Float[Array, "points 4"], Int[Array, "points"]]:
    """The joints that points follow, their weights, and the points' tones, from the parts near them."""
    count = len(skeleton)
    nearest, tones = np.full(len(points), np.inf), np.zeros(len(points), dtype=np.int64)
    away = np.full((len(points), count), np.inf)
    plain = np.array([list(TONES).index(name.removesuffix(" joint")) for name in TONES])
    for part in large:
        own = np.flatnonzero(parts == part)
        joint, tone = int(body.joints[own[0]]), int(plain[body.tones[own[0]]])
        gap = _distance(points, vertices[own], normals[own])
        tones = np.where(gap < nearest, tone, tones)
        nearest = np.minimum(nearest, gap)
        away[:, joint] = np.minimum(away[:, joint], gap)
    main = away.argmin(axis=1)
    beside: Bool[Array, "joints joints"] = np.eye(count, dtype=np.bool_)
    used = np.flatnonzero(np.isin(np.arange(count), body.joints))
    for joint in used.tolist():  # the next joints that have parts, towards the root
        parent = int(skeleton.parents[joint])
        while parent >= 0 and parent not in used:
            parent = int(skeleton.parents[parent])
        if parent >= 0:
            beside[joint, parent] = beside[parent, joint] = True
    away = np.where(beside[main], away, np.inf)
    weights = np.exp(-(away - away.min(axis=1, keepdims=True)) / (SOFT * skeleton.height))
    joints = np.argsort(-weights, axis=1)[:, :BONES]
    chosen = np.take_along_axis(weights, joints, axis=1)
    return joints, chosen / chosen.sum(axis=1, keepdims=True), tones


def _normals(
    points: Float[Array, "points 3"], triangles: Int[Array, "triangles 3"]
) -> Float[Array, "points 3"]:
    corners = points[triangles]
    faces = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    sums = np.zeros_like(points)
    for corner in range(3):
        np.add.at(sums, triangles[:, corner], faces)
    return sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
