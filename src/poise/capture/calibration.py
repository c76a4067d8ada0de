"""Fit a body to its markers: limb lengths, marker positions on the body, and poses, all at once.

The unknowns of a few hundred frames are their poses q, a length per bone (shared by left and right) and an offset per
marker, fixed to its joint. In rounds of variable projection, poses are solved by the shared solver with every marker a
soft constraint; then lengths and offsets take one Gauss-Newton step with the poses eliminated by their Schur
complement, so that the step accounts for the poses that follow. Weak priors (typical bodies and marker sets) determine
what the markers leave open. Outliers, far from where the body can carry them, are weighted less.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.geometry.alignment import rigid_fit
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import Handle, Handles, PoseSpace
from poise.skeleton.skeleton import Skeleton, read_only
from poise.skeleton.symmetry import mirror_joints
from poise.solvers.constraints import Position
from poise.solvers.dual_step import VARIANCE
from poise.solvers.problem import Problem, Settings
from poise.types import Array, ShareProgress

FRAMES = 150
ROUNDS = 8
MARKER_SIGMA = 0.01  # metres: standard deviation of a marker on skin and cloth from a rigid body
FAR = 0.05  # metres: distance from which a marker is weighted less
LENGTH_SIGMA = 0.12  # relative standard deviation of a bone's length about the scaled template's
OFFSET_SIGMA = 0.03  # metres: standard deviation of a marker about its layout position
LOOSE_SIGMA = 0.2  # metres: the same about its joint, if only the joint is known
POSE_SIGMA = 1.0  # radians about the start pose
LEAST_SIGMA = 0.003  # metres: smallest standard deviation of a marker
SIZES = (
    0.45,
    1.6,
)  # range of a performer's size relative to the template; outside it, the unit is probably wrong
FEWEST_MARKERS = 10
_SETTLED = 1e-4  # metres: the rounds end when lengths and offsets change by less


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
    fit = _BodyFit(space, layout, _chosen_frames(points), start)
    fit.trust[[label in loose for label in layout]] = LOOSE_SIGMA**-2.0
    for number in range(ROUNDS):
        fit.solve_poses()
        progress((number + 0.5) / ROUNDS)
        moved = fit.refine()
        progress((number + 1.0) / ROUNDS)
        if moved < _SETTLED:
            break
    fit.solve_poses()
    return fit.result()


def size_ratio(
    space: PoseSpace, layout: Mapping[str, Handle], points: Float[Array, "frames markers 3"]
) -> float:
    """The performer's size relative to the template, from distances of markers on the same or neighbouring joints."""
    handles = space.handles(list(layout.values()))
    own = _own_points(space, handles, np.zeros(space.size - ROOT_SIZE))
    parents = space.skeleton.parents
    pairs = [
        (a, b)
        for a in range(len(own))
        for b in range(a)
        if handles.joints[a] == handles.joints[b]
        or handles.joints[b] == parents[handles.joints[a]]
        or handles.joints[a] == parents[handles.joints[b]]
    ]
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    seen = np.linalg.norm(points[:, first] - points[:, second], axis=2)
    expected = np.linalg.norm(own[first] - own[second], axis=1)
    known = np.isfinite(seen).any(axis=0) & (expected > 0.05 * space.skeleton.height)
    if not np.any(known):
        raise InvalidValueError("no two markers of neighbouring body parts are ever seen together")
    return float(np.median(np.nanmedian(seen[:, known], axis=0) / expected[known]))


def check_size(ratio: float, height: float) -> None:
    """Raise if the size is implausible for a person: the file's unit is then probably wrong."""
    if not SIZES[0] <= ratio <= SIZES[1]:
        raise InvalidValueError(
            f"the markers are those of a person {ratio * height:.3g} m tall; "
            f"the file's unit of length was probably misread; set it to mm, cm or m",
            settings=("units",),
        )


class _BodyFit:
    """The state of a calibration."""

    def __init__(
        self,
        space: PoseSpace,
        layout: Mapping[str, Handle],
        points: Float[Array, "frames markers 3"],
        start: Float[Array, "maps"] | None,
    ) -> None:
        if len(layout) < FEWEST_MARKERS or len(points) == 0:
            raise InvalidValueError(
                f"fitting a body needs at least {FEWEST_MARKERS} markers and one frame; "
                f"got {len(layout)} markers and {len(points)} usable frames"
            )
        self.labels, self.points = tuple(layout), points
        self.seen = np.isfinite(points).all(axis=2)
        ratio = size_ratio(space, layout, points)
        check_size(ratio, space.skeleton.height)
        self.space = space.on_body(space.skeleton.scaled(ratio))
        handles = self.space.handles(list(layout.values()))
        self.joints, self.expected = handles.joints, ratio * handles.offsets
        self.offsets = self.expected.copy()
        self.template, self.groups, self.lengths = self.space.skeleton.offsets, *_bones(self.space.skeleton)
        self.start = np.zeros(self.space.size - ROOT_SIZE) if start is None else start
        self.q = np.stack([self._rooted(frame) for frame in points])
        self.weights = np.ones(points.shape[:2])
        self.trust = np.full(len(layout), OFFSET_SIGMA**-2.0)

    def solve_poses(self) -> None:
        """Solve every pose from its last; restart those that got stuck from a neighbour's."""
        problem = Problem(
            self.space,
            [
                Position(
                    Handle(self.space.skeleton.names[j], tuple(o)), (0.0, 0.0, 0.0), tolerance=MARKER_SIGMA
                )
                for j, o in zip(self.joints, self.offsets.tolist(), strict=True)
            ],
            settings=Settings(map_steps=25, step_tolerance=1e-4),
        )
        problem.limits = read_only(np.tile([[-np.inf], [np.inf]], (1, self.space.freedoms)))
        costs = np.array([self._solve(problem, f, self.q[f]) for f in range(len(self.q))])
        for frame in np.flatnonzero(costs > 4.0 * np.median(costs) + 1e-4).tolist():
            others = np.flatnonzero(costs <= 2.0 * np.median(costs))
            if len(others):
                before, q = costs[frame], self.q[frame].copy()
                near = self.q[others[np.argmin(np.abs(others - frame))]].copy()
                near[:ROOT_SIZE] = q[:ROOT_SIZE]
                costs[frame] = self._solve(problem, frame, near)
                if costs[frame] > before:
                    self.q[frame], costs[frame] = q, before
        self.weights = self._robust_weights()

    def refine(self) -> float:
        """Take one step of lengths and offsets with the poses eliminated; return the largest change in metres."""
        groups, trust = len(self.lengths), np.repeat(self.trust, 3)
        matrix = np.diag(np.r_[np.full(groups, LENGTH_SIGMA**-2.0), trust])
        right = np.r_[(1.0 - self.lengths) / LENGTH_SIGMA**2, trust * (self.expected - self.offsets).ravel()]
        share = 1.0 / len(self.q)
        _, turns = self.space.forward(self.q)
        prior = np.r_[
            np.full(ROOT_FREEDOMS, 1e-6), np.full(self.space.freedoms - ROOT_FREEDOMS, POSE_SIGMA**-2.0)
        ]
        for frame, q in enumerate(self.q):
            J, own, left, w = self._linearised(frame, q, turns[frame])
            weighed = J.T * w
            pull = weighed @ left
            pull[ROOT_FREEDOMS:] += prior[ROOT_FREEDOMS:] * (self.start - q[ROOT_SIZE:])
            cross = weighed @ own
            solved = np.linalg.solve(weighed @ J + np.diag(prior), np.column_stack([cross, pull]))
            matrix += share * ((own.T * w) @ own - cross.T @ solved[:, :-1])
            right += share * (own.T @ (w * left) - cross.T @ solved[:, -1])
        step = np.linalg.solve(matrix, right)
        self.lengths = np.clip(self.lengths + step[:groups], 0.5, 2.0)
        self.offsets = self.offsets + step[groups:].reshape(-1, 3)
        scales = np.where(self.groups >= 0, self.lengths[self.groups], 1.0)
        self.space = self.space.on_body(self.space.skeleton.with_offsets(self.template * scales[:, None]))
        return float(np.abs(step[groups:]).max())

    def result(self) -> Calibration:
        """The body, its markers and their residuals."""
        gaps = np.where(self.seen, self._gaps(), np.nan)
        good = gaps[self.weights > 0.5]
        squares = np.where(self.weights > 0.5, gaps**2, np.nan)
        usable = np.isfinite(squares).any(axis=0)
        sigmas = np.full(len(self.labels), MARKER_SIGMA)
        sigmas[usable] = np.sqrt(np.nanmean(squares[:, usable], axis=0) / 3.0)
        names = self.space.skeleton.names
        layout = {
            label: Handle(names[j], (x, y, z))
            for label, j, (x, y, z) in zip(self.labels, self.joints, self.offsets.tolist(), strict=True)
        }
        rms = float(np.sqrt(np.nanmean(good**2)))
        return Calibration(self.space.skeleton, layout, read_only(np.maximum(sigmas, LEAST_SIGMA)), rms)

    # --- private ---------------------------------------------------------------------------------------------------

    def _rooted(self, frame: Float[Array, "markers 3"]) -> Float[Array, "size"]:
        """The start pose with its root at the trunk's markers, else at all markers."""
        handles = Handles(self.joints, self.expected)
        own, seen = _own_points(self.space, handles, self.start), np.isfinite(frame).all(axis=1)
        trunk = seen & _on_trunk(self.space.skeleton, self.joints)
        used = trunk if trunk.sum() >= 3 else seen
        turn, shift, _ = rigid_fit(own[used], frame[used])
        return np.concatenate([shift, rotations.quaternion_from_matrix(turn), self.start])

    def _solve(self, problem: Problem, frame: int, start: Float[Array, "size"]) -> float:
        q, seen = start.copy(), self.seen[frame]
        variances = np.where(seen, MARKER_SIGMA**2 / np.maximum(self.weights[frame], 1e-6), np.inf)
        problem.rows[:, VARIANCE] = np.repeat(variances, 3)
        problem.with_targets(np.where(seen[:, None], self.points[frame], 0.0))
        covariance = np.r_[
            np.full(ROOT_FREEDOMS, 1.0), np.full(self.space.freedoms - ROOT_FREEDOMS, POSE_SIGMA**2)
        ]
        _, _, errors = problem.run(q, self.start, covariance[None])
        self.q[frame] = q
        return float(np.mean(errors.reshape(-1, 3)[seen] ** 2))

    def _linearised(self, frame: int, q: Array, turns: Array) -> tuple[Array, Array, Array, Array]:
        """Jacobians of the markers by pose and by (lengths, offsets), their residuals, and the rows' weights."""
        points, J = self.space.handle_positions(q, Handles(self.joints, self.offsets))
        own = np.zeros((len(J), len(self.lengths) + self.offsets.size))
        bones = self._bone_vectors(turns)
        for marker, joint in enumerate(self.joints):
            rows, column = slice(3 * marker, 3 * marker + 3), len(self.lengths) + 3 * marker
            own[rows, column : column + 3] = turns[joint]
            while joint > 0:
                if self.groups[joint] >= 0:
                    own[rows, self.groups[joint]] += bones[joint]
                joint = self.space.skeleton.parents[joint]
        left = np.where(self.seen[frame][:, None], self.points[frame] - points, 0.0).ravel()
        weights = np.where(self.seen[frame], self.weights[frame], 0.0) / MARKER_SIGMA**2
        return J, own, left, np.repeat(weights, 3)

    def _bone_vectors(self, turns: Float[Array, "joints 3 3"]) -> Float[Array, "joints 3"]:
        """World vectors of all bones at the template's length."""
        parents = np.maximum(self.space.skeleton.parents, 0)
        return np.einsum("jab,jb->ja", turns[parents], self.template)

    def _gaps(self) -> Float[Array, "frames markers"]:
        positions, turns = self.space.forward(self.q)
        carried = positions[:, self.joints] + np.einsum("fmab,mb->fma", turns[:, self.joints], self.offsets)
        return np.asarray(np.linalg.norm(np.nan_to_num(self.points) - carried, axis=2))

    def _robust_weights(self) -> Float[Array, "frames markers"]:
        gaps = self._gaps()
        return np.where(gaps > FAR, (FAR / np.maximum(gaps, FAR)) ** 2, 1.0)


def _chosen_frames(points: Float[Array, "frames markers 3"]) -> Float[Array, "chosen markers 3"]:
    """Frames in which most markers are seen, spread over the take."""
    seen = np.isfinite(points).all(axis=2).sum(axis=1)
    good = np.flatnonzero(seen >= max(FEWEST_MARKERS, 0.8 * seen.max(initial=0)))
    return (
        points[good[np.unique(np.linspace(0, len(good) - 1, FRAMES).astype(int))]]
        if len(good)
        else points[:0]
    )


def _bones(skeleton: Skeleton) -> tuple[Int[Array, "joints"], Float[Array, "groups"]]:
    """Per joint the index of its bone's length, shared by both sides (-1: none); and initial lengths of one."""
    partner = mirror_joints(skeleton)
    has_length = (np.linalg.norm(skeleton.offsets, axis=1) > 1e-6) & ~skeleton.is_end_site
    has_length[0] = False
    leaders = [j for j in range(len(skeleton)) if has_length[j] and j <= partner[j]]
    groups = np.full(len(skeleton), -1)
    for number, joint in enumerate(leaders):
        groups[[joint, partner[joint]]] = number
    return groups, np.ones(len(leaders))


def _own_points(space: PoseSpace, handles: Handles, maps: Float[Array, "maps"]) -> Float[Array, "markers 3"]:
    """Marker positions of a pose, relative to its root."""
    return space.handle_positions(np.concatenate([np.zeros(3), [1.0, 0.0, 0.0, 0.0], maps]), handles)[0]


def _on_trunk(skeleton: Skeleton, joints: Int[Array, "markers"]) -> Bool[Array, "markers"]:
    trunk = [skeleton.index(role) for role in ("pelvis", "spine", "chest") if role in skeleton.roles]
    return np.isin(joints, trunk)
