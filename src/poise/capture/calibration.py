"""Fit a body to its markers: its shape, marker positions on the body, and poses, all at once.

The unknowns of some frames are their poses q, the body's shape and an offset per marker, fixed to its joint. A shape is
a body and ways in which it may differ: the length of each bone (shared by left and right) or, where few markers say
little (Chai and Hodgins 2005, section 4.2), mixtures of a library's skeletons. In rounds of variable projection, poses
are solved by the shared solver with every marker a soft constraint; then shape and offsets take one Gauss-Newton step
with the poses eliminated by their Schur complement, so that the step accounts for the poses that follow. Weak priors
(typical bodies and marker sets) determine what the markers leave open. Outliers, far from where the body can carry
them, are weighted less.

A full set of markers calibrates any motion (`calibrate`). A few calibrate poses that are known: a T-pose, both sides at
once, or the left side and then the right as in the paper; or a short motion, whose poses are those of the library
nearest to its markers, at the size at which they are nearest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.geometry.alignment import rigid_fit
from poise.motion.markers import Markers
from poise.priors.local.control import Control
from poise.priors.local.examples import Examples, Query
from poise.priors.terms import SharedGaussian, Unknowns, WindowGaussian
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.pose_space import Handle, Handles, PoseSpace
from poise.skeleton.skeleton import JointLimits, Skeleton, read_only
from poise.skeleton.symmetry import mirror_joints
from poise.solvers.constraints import Position
from poise.solvers.dual_step import VARIANCE
from poise.solvers.problem import Problem, Settings
from poise.solvers.sequence import Rows, SequenceSolver
from poise.types import Array, ShareProgress

FRAMES = 150
ROUNDS, SETTLED = 40, 1e-3  # most rounds, and nats per frame
MARKER_SIGMA = 0.01  # metres: standard deviation of a marker on skin and cloth from a rigid body
FAR = 0.1  # metres: distance at which a marker's weight is a quarter
WRONG = 0.07  # metres: larger distances are not a marker's noise
LENGTH_SIGMA = 0.12  # relative standard deviation of a bone's length about the scaled template's
OFFSET_SIGMA = 0.03  # metres: standard deviation of a marker about its layout position
LOOSE_SIGMA = 0.2  # metres: the same about its joint, if only the joint is known
POSE_SIGMA = 1.0  # radians about the start pose
STIFF_SIGMA = 0.3  # the same, for joints without markers: a trunk must not fold up to be shorter
KNOWN_SIGMA = 0.05  # radians about a known pose
SHARE_SIGMA = 0.3  # standard deviation of a library skeleton's share in a mixture
PARTS = (0.9, 1.0, 1.1)  # sizes of each library skeleton in a mixture
SCALES = np.linspace(0.8, 1.2, 9)  # sizes at which a motion is compared ...
COMPARED = 24  # ... in this many frames with a library's poses
LEAST_SIGMA = 0.003  # metres: smallest standard deviation of a marker
SIZES = 0.45, 1.6  # of a performer relative to the template; outside this range, the unit is probably wrong
UNITS = 10.0, 100.0, 1000.0, 1e6, 25.4, 39.37  # factors between units of length
ALIKE = 1.35  # ratio to the median within which two of three distances of one body must be
FEWEST_MARKERS = 10
_ALONE = Settings(map_steps=25, step_tolerance=1e-4)


@dataclass(frozen=True, eq=False)
class Calibration:
    """A performer's body, marker positions on it, and their residuals (metres, root mean square per marker)."""

    skeleton: Skeleton
    layout: Mapping[str, Handle]
    sigmas: Float[Array, "markers"]
    rms: float

    def handles(self, space: PoseSpace) -> Handles:
        """The markers on a pose space of this body, in the layout's order."""
        return space.handles(list(self.layout.values()))


@dataclass(frozen=True, eq=False)
class BodyShape:
    """A body's offsets: fixed ones, and parts of ways, each usually of one size with one standard deviation."""

    fixed: Skeleton
    ways: Float[Array, "ways joints 3"]
    usual: float
    sigma: float

    @classmethod
    def of_bones(cls, body: Skeleton) -> BodyShape:
        """Bones of any length, the same on both sides; each is usually as long as in the body."""
        partner = mirror_joints(body)
        has_length = (np.linalg.norm(body.offsets, axis=1) > 1e-6) & ~body.is_end_site
        has_length[0] = False
        ways = []
        for joint in np.flatnonzero(has_length & (np.arange(len(body)) <= partner)).tolist():
            way = np.zeros_like(body.offsets)
            way[[joint, partner[joint]]] = body.offsets[[joint, partner[joint]]]
            ways.append(way)
        rest = np.where(np.any(ways, axis=0), 0.0, body.offsets)
        return cls(body.with_offsets(rest), np.array(ways), 1.0, LENGTH_SIGMA)

    @classmethod
    def of_library(cls, skeletons: Sequence[Skeleton], scale: float) -> BodyShape:
        """Mixtures of the distinct skeletons, each at several sizes about this scale."""
        distinct = {np.round(skeleton.offsets, 4).tobytes(): skeleton for skeleton in skeletons}.values()
        parts = np.stack([size * skeleton.offsets for skeleton in distinct for size in PARTS])
        mean = parts.mean(axis=0)
        fixed = skeletons[0].with_offsets(mean).scaled(scale)
        return cls(fixed, scale * (parts - mean), 0.0, SHARE_SIGMA)

    def mixed(self, parts: Float[Array, "ways"]) -> Skeleton:
        """The body of these parts of each way."""
        return self.fixed.with_offsets(self.fixed.offsets + np.tensordot(parts, self.ways, 1))


def calibrate(
    space: PoseSpace,
    layout: Mapping[str, Handle],
    points: Float[Array, "frames markers 3"],
    *,
    start: Float[Array, "maps"] | None = None,
    loose: Collection[str] = (),
    progress: ShareProgress = lambda _: None,
) -> Calibration:
    """Fit the body of this topology to these markers (the layout's, in its order; NaN if not seen).

    The space's skeleton is the template, the layout has the expected marker positions; `start` is an initial pose. For
    `loose` markers only the joint is known, not the position on it.
    """
    seen = np.isfinite(points).all(axis=2).sum(axis=1)
    good = np.flatnonzero(seen >= max(FEWEST_MARKERS, 0.8 * seen.max(initial=0)))  # most markers are seen
    frames = points[good[np.unique(np.linspace(0, len(good) - 1, FRAMES).astype(int))] if len(good) else good]
    if len(layout) < FEWEST_MARKERS or len(frames) == 0:
        raise InvalidValueError(
            f"fitting a body needs at least {FEWEST_MARKERS} markers and one frame; "
            f"got {len(layout)} markers and {len(frames)} usable frames"
        )
    ratios = size_ratios(space, layout, frames, loose=loose)
    ratio = float(np.median(ratios))
    alike = float(np.mean((ratios < ALIKE * ratio) & (ratio < ALIKE * ratios)))
    check_size(ratio, space.skeleton.height, agreeing=alike > 2 / 3)
    shape = BodyShape.of_bones(space.skeleton.scaled(ratio))
    starts = np.tile(np.zeros(space.size - ROOT_SIZE) if start is None else start, (len(frames), 1))
    offsets = np.where([label in loose for label in layout], LOOSE_SIGMA, OFFSET_SIGMA)
    return _fit(space, shape, layout, frames, starts, offsets=offsets, scale=ratio, progress=progress)


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
    own = t_pose_markers(skeletons[0], markers, samples=samples)[seen]
    apart = [np.linalg.norm(at[:, None] - at[None], axis=2) for at in (points[seen], own)]
    far = apart[1] > 0.05 * skeletons[0].height
    ratio = float(np.median(apart[0][far] / apart[1][far])) if np.any(far) else 1.0
    check_size(ratio, skeletons[0].height)
    standing = neutral_pose(skeletons[0], samples).rotations
    maps = PoseSpace(skeletons[0]).q_from_frames(np.zeros(3), standing)[ROOT_SIZE:]
    return _posed_skeleton(skeletons, markers, points[None], maps[None], ratio)


def skeleton_of_sides(left: Skeleton, right: Skeleton) -> Skeleton:
    """The left side of one skeleton and the right side of another; the middle is averaged."""
    sides = {left.index(role): role.startswith("left_") - role.startswith("right_") for role in left.roles}
    side = np.zeros((len(left), 1))
    for joint in range(
        len(left)
    ):  # 1 on the left, -1 on the right: by the first role on the path to the root
        side[joint] = sides.get(joint, side[left.parents[joint], 0] if joint > 0 else 0)
    middle = 0.5 * (left.offsets + right.offsets)
    return left.with_offsets(np.where(side < 0, right.offsets, np.where(side > 0, left.offsets, middle)))


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
    examples: Examples, markers: Mapping[str, Handle], take: Markers, *, skeletons: Sequence[Skeleton] = ()
) -> Skeleton:
    """The mixture of skeletons that explains a motion's markers in the library's poses; without any, only its size."""
    points = take.points[:, [take.index(name) for name in markers]]
    whole = points[np.isfinite(points).all(axis=(1, 2))]
    if len(whole) == 0:
        raise InvalidValueError(
            "calibration from a motion needs a frame in which every marker is seen; got none"
        )
    few = whole[np.linspace(0, len(whole) - 1, min(COMPARED, len(whole))).astype(int)]
    gaps = [_nearest(examples, markers, few, float(scale))[1] for scale in SCALES]
    best = int(np.argmin(gaps))
    scale = float(SCALES[best])
    if 0 < best < len(gaps) - 1:  # the minimum of a parabola through the best scale and its neighbours
        low, middle, high = gaps[best - 1 : best + 2]
        bend = low - 2 * middle + high
        scale += float((SCALES[1] - SCALES[0]) * 0.5 * (low - high) / bend) if bend > 0 else 0.0
    known = [body for body in skeletons if body.same_topology(examples.space.skeleton)]
    if not known:
        return examples.space.skeleton.scaled(scale)
    poses = examples.maps[_nearest(examples, markers, few, scale)[0]]
    return _posed_skeleton([examples.space.skeleton, *known], markers, few, poses, scale)


def size_ratios(
    space: PoseSpace,
    layout: Mapping[str, Handle],
    points: Float[Array, "frames markers 3"],
    *,
    loose: Collection[str] = (),
) -> Float[Array, "pairs"]:
    """The performer's size relative to the template, by each pair of markers on the same or neighbouring joints.

    Of `loose` markers only the joint is known: they count only if there are no others.
    """
    handles = space.handles(list(layout.values()))
    own = _own_points(space, handles, np.zeros(space.size - ROOT_SIZE))
    joint, above = handles.joints, space.skeleton.parents[handles.joints]
    near = (joint[:, None] == joint) | (above[:, None] == joint) | (joint[:, None] == above)
    sure = np.array([label not in loose for label in layout])
    if np.any(both := near & sure & sure[:, None] & ~np.eye(len(sure), dtype=np.bool_)):
        near = both
    first, second = np.nonzero(np.tril(near, -1))
    seen = np.linalg.norm(points[:, first] - points[:, second], axis=2)
    expected = np.linalg.norm(own[first] - own[second], axis=1)
    known = np.isfinite(seen).any(axis=0) & (expected > 0.05 * space.skeleton.height)
    if not np.any(known):
        raise InvalidValueError("no two markers of neighbouring body parts are ever seen together")
    return np.asarray(np.nanmedian(seen[:, known], axis=0) / expected[known])


def check_size(ratio: float, height: float, *, agreeing: bool = True) -> None:
    """Raise if the size is implausible for a person: the file's unit is then wrong, or the labels are.

    Another unit is suggested only if the distances agree with one another (`agreeing`), and one makes them a person's.
    """
    if SIZES[0] <= ratio <= SIZES[1]:
        return
    tall = f"the markers are those of a person {ratio * height:.3g} m tall"
    if agreeing and any(SIZES[0] <= ratio * unit**power <= SIZES[1] for unit in UNITS for power in (-1, 1)):
        raise InvalidValueError(
            f"{tall}; the file's unit of length was probably misread; set it to mm, cm or m",
            settings=("units",),
        )
    raise InvalidValueError(
        f"{tall}, and no unit of length mends that: labels were taken for the wrong places; a mapping file says "
        "where each marker is",
        settings=("map",),
    )


class BodyMarkers(Rows):
    """Markers of some frames; shared unknowns are the parts of the body's shape and the places of its markers."""

    def __init__(self, template: Problem, shape: BodyShape, points: Float[Array, "frames markers 3"]) -> None:
        super().__init__(template, len(points), outlier=FAR / MARKER_SIGMA)
        self.space, self._shape, self._joints = template.space, shape, template.handles.joints
        self.points, self._masses = points, template.body[2]
        self.shared = len(shape.ways) + 3 * len(self._joints)
        self.floats[:, :, 3:6] = np.nan_to_num(points)
        seen = np.isfinite(points).all(axis=2)
        self.variances[:] = np.repeat(np.where(seen, MARKER_SIGMA**2, np.inf), 3, axis=1)

    def take(self, shared: Float[Array, "shared"]) -> None:
        """Give the body its shape, and the markers their places."""
        ways = len(self._shape.ways)
        self.space = self.space.on_body(self._shape.mixed(shared[:ways]))
        self.body = (*self.space.tree, self._masses)
        self.floats[:, :, :3] = shared[ways:].reshape(-1, 3)

    def by_shared(self, q: Float[Array, "frames size"]) -> Float[Array, "frames rows shared"]:
        """How the markers move with each way of the shape, and with their own places."""
        ways, parents, turns = len(self._shape.ways), self.space.skeleton.parents, self.space.forward(q)[1]
        moved = np.einsum("fjab,kjb->fjak", turns[:, np.maximum(parents, 0)], self._shape.ways)
        moved[:, 0] = 0.0
        for joint in range(1, len(parents)):
            moved[:, joint] += moved[:, parents[joint]]
        found = np.zeros((len(q), len(self._joints), 3, self.shared))
        found[..., :ways] = moved[:, self._joints]
        for marker, joint in enumerate(self._joints):
            found[:, marker, :, ways + 3 * marker : ways + 3 * marker + 3] = turns[:, joint]
        return found.reshape(len(q), -1, self.shared)

    def gaps(self, now: Unknowns) -> Float[Array, "frames markers"]:
        """Distances of the markers from their places on the body; NaN if not seen."""
        self.take(now.shared[self.common])
        carried = self.space.points(now.q, Handles(self._joints, self.floats[0, :, :3]))
        return np.asarray(np.linalg.norm(self.points - carried, axis=2))


def _fit(
    space: PoseSpace,
    shape: BodyShape,
    layout: Mapping[str, Handle],
    points: Float[Array, "frames markers 3"],
    starts: Float[Array, "frames maps"],
    *,
    offsets: Float[Array, "markers"],
    scale: float,
    pose_sigma: float = POSE_SIGMA,
    progress: ShareProgress = lambda _: None,
) -> Calibration:
    """Fit shape, marker places and poses; these are near `starts`, and the places deviate by `offsets`."""
    space = space.on_body(shape.mixed(np.full(len(shape.ways), shape.usual)))
    names, joints = space.skeleton.names, space.handles(list(layout.values())).joints
    expected = scale * np.array([handle.offset for handle in layout.values()])
    rows = [
        Position(Handle(names[joint], tuple(place)), (0.0, 0.0, 0.0), tolerance=MARKER_SIGMA)
        for joint, place in zip(joints, expected.tolist(), strict=True)
    ]
    anywhere = np.full((len(names), 3), np.inf)
    free = JointLimits(space.references, -anywhere, anywhere)
    problem = Problem(space, rows, limits=free, settings=_ALONE)
    bare = np.repeat(~np.isin(space.moving, joints), 3)
    variances = np.where(bare, min(pose_sigma, STIFF_SIGMA), pose_sigma) ** 2
    q = _poses_alone(problem, points, starts, variances)
    markers = BodyMarkers(problem, shape, points)
    usual = np.r_[np.full(len(shape.ways), shape.usual), expected.ravel()]
    # As if every frame had its own expectation of the body: many frames of a wrong body are not evidence for it.
    trust = len(q) * np.r_[np.full(len(shape.ways), shape.sigma**-2), np.repeat(offsets**-2.0, 3)]
    mean = np.hstack([q[:, :ROOT_SIZE], starts])
    near = WindowGaussian(0, mean, np.r_[np.full(ROOT_FREEDOMS, 1e-6), 1.0 / variances])
    solver = SequenceSolver(space, [markers, SharedGaussian(markers, usual, trust), near], limits=free)
    found, _ = solver.solve(
        Unknowns(q, shared=usual),
        rounds=ROUNDS,
        settled=SETTLED,
        progress=lambda done: progress(done / ROUNDS),
    )
    gaps = markers.gaps(found)
    squares = np.where(gaps < WRONG, gaps**2, np.nan)
    usable, sigmas = np.isfinite(squares).any(axis=0), np.full(len(joints), MARKER_SIGMA)
    sigmas[usable] = np.sqrt(np.nanmean(squares[:, usable], axis=0) / 3.0)
    places = {
        label: Handle(names[joint], (x, y, z))
        for label, joint, (x, y, z) in zip(layout, joints, markers.floats[0, :, :3].tolist(), strict=True)
    }
    return Calibration(
        markers.space.skeleton,
        places,
        read_only(np.maximum(sigmas, LEAST_SIGMA)),
        float(np.sqrt(np.nanmean(squares))),
    )


def _poses_alone(
    problem: Problem,
    points: Float[Array, "frames markers 3"],
    starts: Float[Array, "frames maps"],
    variances: Float[Array, "maps"],
) -> Float[Array, "frames size"]:
    """Every frame solved by itself on one body, as the initial guess; stuck ones again from a neighbour's."""
    seen, covariance = np.isfinite(points).all(axis=2), np.r_[np.ones(ROOT_FREEDOMS), variances][None]
    left = np.empty(len(points))

    def solved(frame: int, start: Float[Array, "size"]) -> tuple[Float[Array, "size"], float]:
        q = start.copy()
        problem.rows[:, VARIANCE] = np.repeat(np.where(seen[frame], MARKER_SIGMA**2, np.inf), 3)
        problem.with_targets(np.where(seen[frame][:, None], points[frame], 0.0))
        _, _, errors = problem.run(q, starts[frame], covariance)
        return q, float(np.mean(errors.reshape(-1, 3)[seen[frame]] ** 2))

    q = np.stack([_rooted(problem, *frame) for frame in zip(points, starts, strict=True)])
    for frame in range(len(q)):
        q[frame], left[frame] = solved(frame, q[frame])
    good = np.flatnonzero(left <= 2.0 * np.median(left))
    for frame in np.flatnonzero(left > 4.0 * np.median(left) + 1e-4).tolist():
        near = q[good[np.argmin(np.abs(good - frame))]]
        again, cost = solved(frame, np.r_[q[frame, :ROOT_SIZE], near[ROOT_SIZE:]])
        if cost < left[frame]:
            q[frame] = again
    return q


def _rooted(
    problem: Problem, frame: Float[Array, "markers 3"], start: Float[Array, "maps"]
) -> Float[Array, "size"]:
    """The start pose with its root at the trunk's markers, else at all markers."""
    own, skeleton = _own_points(problem.space, problem.handles, start), problem.space.skeleton
    seen = np.isfinite(frame).all(axis=1)
    trunk = [skeleton.index(role) for role in ("pelvis", "spine", "chest") if role in skeleton.roles]
    used = seen & np.isin(problem.handles.joints, trunk)
    used = used if used.sum() >= 3 else seen
    turn, shift, _ = rigid_fit(own[used], frame[used])
    return np.concatenate([shift, rotations.quaternion_from_matrix(turn), start])


def _posed_skeleton(
    skeletons: Sequence[Skeleton],
    markers: Mapping[str, Handle],
    points: Float[Array, "frames markers 3"],
    poses: Float[Array, "frames maps"],
    scale: float,
) -> Skeleton:
    """The mixture of skeletons, at about this scale, whose markers in known poses are the observed ones."""
    space, shape = PoseSpace(skeletons[0]), BodyShape.of_library(skeletons, scale)
    offsets = np.full(len(markers), MARKER_SIGMA)
    fit = _fit(space, shape, markers, points, poses, offsets=offsets, scale=scale, pose_sigma=KNOWN_SIGMA)
    return fit.skeleton


def _own_points(space: PoseSpace, handles: Handles, maps: Float[Array, "maps"]) -> Float[Array, "markers 3"]:
    """Marker positions of a pose, relative to its root."""
    return space.handle_positions(np.concatenate([np.zeros(3), [1.0, 0.0, 0.0, 0.0], maps]), handles)[0]


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
