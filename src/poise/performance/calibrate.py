"""Subject calibration (Chai and Hodgins 2005, section 4.2): the performer's skeleton, and the markers' positions on it.

Skeleton: the markers of a T-pose are explained by a mixture of the library's skeletons, each with its own marker
positions; the same mixture of limb lengths is the performer's skeleton, both sides at once, or the left side and then
the right as in the paper. Without a T-pose, a short motion is enough: first the size of the body (at which its markers
are closest to those of the library's poses), then the mixture that explains them in those poses. Markers: the position
of each on its segment, as in the T-pose.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.geometry.alignment import rigid_fit
from poise.motion.markers import Markers
from poise.priors.local.control import Control
from poise.priors.local.examples import Examples
from poise.priors.local.pca import Query
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.pose_space import Handle, Handles, PoseSpace
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

SIZES = (0.9, 1.0, 1.1)  # sizes of each library skeleton in a mixture
CAUTION = 1e-3  # metres squared: ridge towards equal parts of a mixture
ROUNDS = 8
SCALES = np.linspace(0.8, 1.2, 9)
FRAMES = 24  # frames of a motion that are compared with the library's poses


def skeleton_from_t_pose(
    skeletons: Sequence[Skeleton],
    markers: Mapping[str, Handle],
    points: Float[Array, "markers 3"],
    *,
    samples: Float[Array, "frames joints 4"] | None = None,
) -> Skeleton:
    """The mixture of skeletons whose T-pose fits the observed markers (NaN if not seen)."""
    seen = np.isfinite(points).all(axis=1)
    if seen.sum() < 3:
        raise InvalidValueError(f"a T-pose needs at least three markers to be seen; got {int(seen.sum())}")
    bodies = _bodies(skeletons)
    shapes = np.stack([t_pose_markers(body, markers, samples=samples)[seen] for body in bodies])
    return _mixed(bodies, shapes[:, None], points[None, seen], ROUNDS)


def skeleton_of_sides(left: Skeleton, right: Skeleton) -> Skeleton:
    """The left side of one skeleton and the right side of another; the middle is averaged."""
    side = np.array([_side(left, joint) for joint in range(len(left))])[:, None]
    offsets = np.where(
        side < 0, right.offsets, np.where(side > 0, left.offsets, 0.5 * (left.offsets + right.offsets))
    )
    return left.with_offsets(offsets)


def markers_from_t_pose(
    skeleton: Skeleton,
    markers: Mapping[str, Handle],
    points: Float[Array, "markers 3"],
    *,
    samples: Float[Array, "frames joints 4"] | None = None,
) -> dict[str, Handle]:
    """Each marker's position on its joint, from a T-pose; unseen ones keep theirs."""
    neutral = neutral_pose(skeleton, samples)
    shape = t_pose_markers(skeleton, markers, samples=samples)
    seen = np.isfinite(points).all(axis=1)
    turn, shift, _ = rigid_fit(points[seen], shape[seen])
    placed = {}
    for number, (name, handle) in enumerate(markers.items()):
        joint = skeleton.index(handle.joint)
        there = points[number] @ turn.T + shift if seen[number] else shape[number]
        x, y, z = neutral.local(joint, there - neutral.positions[joint]).tolist()
        placed[name] = Handle(handle.joint, (x, y, z))
    return placed


def t_pose_markers(
    skeleton: Skeleton,
    markers: Mapping[str, Handle],
    *,
    samples: Float[Array, "frames joints 4"] | None = None,
) -> Float[Array, "markers 3"]:
    """Marker positions of a skeleton standing with its arms out."""
    neutral = neutral_pose(skeleton, samples)
    joints = [skeleton.index(handle.joint) for handle in markers.values()]
    offsets = np.array([handle.offset for handle in markers.values()])
    return np.asarray(neutral.positions[joints] + np.einsum("mab,mb->ma", neutral.world[joints], offsets))


def skeleton_from_motion(
    examples: Examples,
    markers: Mapping[str, Handle],
    take: Markers,
    *,
    skeletons: Sequence[Skeleton] = (),
) -> Skeleton:
    """The mixture of skeletons that explains a motion's markers in the library's poses; without any, only its size."""
    columns = [take.index(name) for name in markers]
    points = take.points[:, columns]
    whole = points[np.isfinite(points).all(axis=(1, 2))]
    if len(whole) == 0:
        raise InvalidValueError(
            "calibration from a motion needs a frame in which every marker is seen; got none"
        )
    few = whole[np.linspace(0, len(whole) - 1, min(FRAMES, len(whole))).astype(int)]
    gaps = [_nearest(examples, markers, few, float(scale))[1] for scale in SCALES]
    best = int(np.argmin(gaps))
    scale = float(SCALES[best]) + _vertex(gaps, best)
    sized = examples.space.skeleton.scaled(scale)
    distinct = _distinct([body for body in skeletons if body.same_topology(sized)])
    if len(distinct) < 2:
        return sized
    poses = examples.maps[_nearest(examples, markers, few, scale)[0]]
    bodies = _bodies([sized, *distinct])
    shapes = np.stack([_posed_markers(examples.space.on_body(body), markers, poses) for body in bodies])
    return _mixed(bodies, shapes, few, ROUNDS)


def _bodies(skeletons: Sequence[Skeleton]) -> list[Skeleton]:
    """The distinct skeletons, each at several sizes."""
    return [skeleton.scaled(size) for skeleton in _distinct(skeletons) for size in SIZES]


def _distinct(skeletons: Sequence[Skeleton]) -> list[Skeleton]:
    return list({np.round(skeleton.offsets, 4).tobytes(): skeleton for skeleton in skeletons}.values())


def _posed_markers(space: PoseSpace, markers: Mapping[str, Handle], poses: Array) -> Array:
    return space.points_in_root_frame(poses, space.handles(list(markers.values())))


def _mixed(
    bodies: Sequence[Skeleton],
    shapes: Float[Array, "bodies frames markers 3"],
    points: Float[Array, "frames markers 3"],
    rounds: int,
) -> Skeleton:
    """The mixture of bodies whose markers, aligned rigidly frame by frame, are closest to the observed ones."""
    shares = np.full(len(bodies), 1.0 / len(bodies))
    for _ in range(rounds):
        mixed = np.tensordot(shares, shapes, 1)
        target = np.empty_like(points)
        for frame, (seen, shape) in enumerate(zip(points, mixed, strict=True)):
            turn, shift, _ = rigid_fit(seen, shape)
            target[frame] = seen @ turn.T + shift
        shares = _mixture(shapes / np.sqrt(len(points)), target / np.sqrt(len(points)))
    return bodies[0].with_offsets(np.tensordot(shares, np.stack([body.offsets for body in bodies]), 1))


def _side(skeleton: Skeleton, joint: int) -> int:
    """1 on the left, -1 on the right, 0 in the middle: by the first role on the path to the root."""
    sides = {
        skeleton.index(role): (role.startswith("left_")) - (role.startswith("right_"))
        for role in skeleton.roles
    }
    while joint > 0 and joint not in sides:
        joint = int(skeleton.parents[joint])
    return sides.get(joint, 0)


def _mixture(
    shapes: Float[Array, "bodies *markers 3"], target: Float[Array, "*markers 3"]
) -> Float[Array, "bodies"]:
    """Shares that sum to one and mix the shapes closest to a target, with a ridge towards equal parts."""
    count = len(shapes)
    flat = shapes.reshape(count, -1)
    even = flat.mean(axis=0)
    spread = flat - even
    matrix = spread @ spread.T + CAUTION * np.eye(count)
    return np.asarray(1.0 / count + _centred(np.linalg.solve(matrix, spread @ (target.ravel() - even))))


def _centred(changes: Float[Array, "bodies"]) -> Float[Array, "bodies"]:
    return changes - changes.mean()


def _nearest(
    examples: Examples, markers: Mapping[str, Handle], points: Array, scale: float
) -> tuple[Array, float]:
    """The library's poses nearest to frames at a scale, and their distances, in units of the body's size."""
    body = examples.on_body(examples.space.skeleton.scaled(scale))
    plain = body.space.handles(list(markers.values()))
    handles = Handles(plain.joints, scale * plain.offsets)
    control = Control.of(body, handles)
    shapes = body.space.points(body.q, handles)
    turns, places = control.torso.frames(shapes)
    query = Query(np.einsum("fba,fmb->fma", turns, shapes - places[:, None]) / scale, body.maps)
    turns, places = control.torso.frames(points)
    seen = np.einsum("fba,fmb->fma", turns, points - places[:, None]) / scale
    found = [query(frame, None, 1) for frame in seen]
    return np.array([near[0] for near, _ in found]), float(np.mean([squares[0] for _, squares in found]))


def _vertex(gaps: Sequence[float], best: int) -> float:
    """The offset of the minimum of a parabola through the best scale and its neighbours."""
    if not 0 < best < len(gaps) - 1:
        return 0.0
    low, middle, high = gaps[best - 1 : best + 2]
    bend = low - 2 * middle + high
    return float((SCALES[1] - SCALES[0]) * 0.5 * (low - high) / bend) if bend > 0 else 0.0
