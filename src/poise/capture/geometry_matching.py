"""Match markers to body parts from the points alone, for takes with uninformative labels.

A mannequin wears the 41-marker set as landmarks. A few frames are tried, each scaled to a person as tall as its
markers: alternately, markers are assigned to their nearest landmarks and the body is posed to bring these landmarks to
their markers, from several headings and arm positions (an articulated iterative closest point). The best candidates
must then explain other frames of the take with the markers fixed to their segments, and the one with the least marker
movement is kept. Finally a marker belongs to the segment it moves least on; markers with constant mutual distances
belong to one segment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.geometry.alignment import rigid_fit
from poise.motion.virtual_markers import optical_layout
from poise.priors.broad import BroadPrior
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import Handle, PoseSpace
from poise.skeleton.skeleton import Skeleton
from poise.solvers.constraints import Position
from poise.solvers.solve import Solver
from poise.types import Array

RIGID = 0.008  # metres: variation of distances within one body part
TRIED = 6  # frames, besides the tallest, in which a person may stand
HEADINGS = 8
STARTS = 12  # starts with the nearest landmarks, of all headings and arm positions
ARMS = (
    (0.0, 0.0),
    (1.2, 0.0),
    (-1.2, 0.0),
    (0.9, 1.8),
)  # radians: lowering of the upper arms and bending of the forearms
ROUNDS, MORE_ROUNDS, KEPT = 3, 6, 5
FRAMES = 12  # frames that a candidate must explain
NEAR = 0.03  # metres: tolerance of the markers
CHANGES = 0.004  # metres by which a marker must move less on a neighbouring segment to be reassigned
SURE = 0.02  # metres: largest movement of a marker on its segment
HONEST = 0.03  # metres, root mean square over all markers: above this the match is rejected
FEWEST = 20  # smallest number of markers for a unique match


@dataclass(frozen=True, eq=False)
class Match:
    """For every marker its joint, its position on it, and its movement there (metres)."""

    joints: Int[Array, "markers"]
    offsets: Float[Array, "markers 3"]
    motion: Float[Array, "markers"]
    skeleton: Skeleton

    @property
    def sure(self) -> Bool[Array, "markers"]:
        """Mask of the markers that move with their segment."""
        return np.asarray(self.motion <= SURE)

    def handles(self) -> list[Handle]:
        """The markers as handles of the mannequin."""
        names = self.skeleton.names
        return [
            Handle(names[j], (x, y, z))
            for j, (x, y, z) in zip(self.joints, self.offsets.tolist(), strict=True)
        ]


def match_by_geometry(skeleton: Skeleton, points: Float[Array, "frames markers 3"]) -> Match:
    """Match unlabelled markers to the mannequin's segments; raise if the points do not determine it."""
    whole = points[np.isfinite(points).all(axis=(1, 2))]
    if len(whole) < 2 or points.shape[1] < FEWEST:
        raise InvalidValueError(
            f"matching by geometry needs at least {FEWEST} markers that are seen together; got {points.shape[1]} "
            f"markers and {len(whole)} frames in which all are seen"
        )
    clusters = rigid_clusters(whole)
    candidates = [found for frame in _tried(whole) for found in _candidates(skeleton, frame, clusters)]
    candidates = sorted(candidates, key=lambda candidate: candidate.cost)[:KEPT]
    chosen = whole[_spread(len(whole), FRAMES)]
    best = min((one.matched(chosen) for one in candidates), key=lambda match: float(np.mean(match.motion)))
    moving = float(np.sqrt(np.mean(best.motion**2)))
    if moving > HONEST:
        raise InvalidValueError(
            f"the markers cannot be identified by geometry: at best they move by {1000 * moving:.0f} mm on their body "
            "parts, where 30 would do; a mapping file says where each is",
            settings=("map",),
        )
    return best


def rigid_clusters(points: Float[Array, "frames markers 3"]) -> list[Int[Array, "_"]]:
    """Groups of markers with constant mutual distances, largest first; single markers are their own group."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    distances = np.linalg.norm(points[:, :, None] - points[:, None], axis=3)
    wobble = distances.std(axis=0)
    tree = linkage(squareform(wobble, checks=False), method="complete")
    numbers = fcluster(tree, RIGID, criterion="distance")
    return sorted((np.flatnonzero(numbers == k) for k in np.unique(numbers)), key=len, reverse=True)


class _Candidate:
    """A mannequin posed among the markers of one frame."""

    def __init__(
        self,
        space: PoseSpace,
        start: Float[Array, "size"],
        points: Float[Array, "markers 3"],
        clusters: Sequence[Int[Array, "_"]],
    ) -> None:
        self.space, self.points, self.clusters = space, points, clusters
        self.prior = BroadPrior(space, sigma=0.6)
        self.landmarks = space.handles(list(optical_layout(space.skeleton).values()))
        self.q = start

    @property
    def cost(self) -> float:
        """The mean squared distance of landmarks from their markers, for a person of one metre."""
        return float(np.mean(self._nearest(self.q)[2] ** 2)) / self.space.skeleton.height**2

    def settled(self) -> _Candidate:
        """The candidate after some rounds."""
        self.q = self._posed(self.q, ROUNDS)
        return self

    def matched(self, frames: Float[Array, "n markers 3"]) -> Match:
        """Match segments by the least movement of markers on them in other frames."""
        q = self._posed(self.q, MORE_ROUNDS)
        joints = self._nearest(q)[0]
        (positions,), (turns,) = self.space.forward(q[None])
        for _ in range(2):
            offsets = _local(positions, turns, self.points, joints)
            poses = [self._solved(self._placed(q, points), joints, offsets, points) for points in frames]
            joints, motion = self._steadiest(np.stack(poses), frames, joints)
        return Match(joints, _local(positions, turns, self.points, joints), motion, self.space.skeleton)

    def _posed(self, q: Float[Array, "size"], rounds: int) -> Float[Array, "size"]:
        for _ in range(rounds):
            joints, offsets, _ = self._nearest(q)
            q = self._solved(q, joints, offsets, self.points)
        return q

    def _nearest(self, q: Float[Array, "size"]) -> tuple[Array, Array, Array]:
        """Per marker the joint of its landmark, the landmark's position on it, and the distance."""
        from scipy.optimize import linear_sum_assignment

        there = self.space.points(q[None], self.landmarks)[0]
        squares = np.square(self.points[:, None] - there[None]).sum(axis=2)
        chosen = np.argmin(squares, axis=1)
        rows, columns = linear_sum_assignment(squares)
        chosen[rows] = columns
        gaps = np.sqrt(squares[np.arange(len(chosen)), chosen])
        return self.landmarks.joints[chosen], self.landmarks.offsets[chosen], gaps

    def _solved(self, q: Array, joints: Array, offsets: Array, points: Array) -> Array:
        names = self.space.skeleton.names
        constraints = [
            Position(Handle(names[j], (x, y, z)), point, tolerance=NEAR, name=f"marker {number}")
            for number, (j, (x, y, z), point) in enumerate(zip(joints, offsets.tolist(), points, strict=True))
        ]
        return Solver(self.prior, constraints).solve(q).q

    def _placed(self, q: Float[Array, "size"], points: Float[Array, "markers 3"]) -> Float[Array, "size"]:
        """The pose moved rigidly to another frame's markers."""
        turn, shift, _ = rigid_fit(self.points, points)
        moved = q.copy()
        moved[:3] = turn @ q[:3] + shift
        moved[3:ROOT_SIZE] = rotations.multiply(rotations.quaternion_from_matrix(turn), q[3:ROOT_SIZE])
        return moved

    def _steadiest(
        self,
        poses: Float[Array, "n size"],
        frames: Float[Array, "n markers 3"],
        joints: Int[Array, "markers"],
    ) -> tuple[Int[Array, "markers"], Float[Array, "markers"]]:
        """The segment each marker moves least on, and that movement: its own, a neighbour, or its rigid cluster's."""
        positions, turns = self.space.forward(poses)
        local = np.einsum("fjba,fmjb->fmja", turns, frames[:, :, None] - positions[:, None])
        motion = np.sqrt(np.square(local - local.mean(axis=0)).sum(axis=3).mean(axis=0))
        allowed = self._neighbours(joints) | (np.arange(motion.shape[1]) == self._common(joints)[:, None])
        own = np.arange(motion.shape[1]) == joints[:, None]
        found = np.argmin(np.where(allowed, motion + CHANGES * ~own, np.inf), axis=1)
        return found, motion[np.arange(len(found)), found]

    def _neighbours(self, joints: Int[Array, "markers"]) -> Bool[Array, "markers joints"]:
        """Mask of the segments with landmarks that are a marker's own, its parent or its child."""
        every, parents = np.arange(len(self.space.skeleton)), self.space.skeleton.parents
        near = (every == joints[:, None]) | (every == parents[joints][:, None]) | (parents == joints[:, None])
        return np.asarray(near & np.isin(every, self.landmarks.joints))

    def _common(self, joints: Int[Array, "markers"]) -> Int[Array, "markers"]:
        """The segment of most markers in a marker's rigid cluster; its own without a cluster."""
        common = joints.copy()
        for members in self.clusters:
            values, counts = np.unique(joints[members], return_counts=True)
            if 2 * counts.max() > len(members):
                common[members] = values[counts.argmax()]
        return common


def _local(positions: Array, turns: Array, points: Array, joints: Array) -> Float[Array, "markers 3"]:
    return np.asarray(np.einsum("mba,mb->ma", turns[joints], points - positions[joints]))


def _tried(whole: Float[Array, "frames markers 3"]) -> Float[Array, "tried markers 3"]:
    """Frames in which the person may stand: the tallest, and some spread over the take."""
    tallest = int(np.argmax(np.ptp(whole[..., 1], axis=1)))
    return whole[np.unique(np.r_[_spread(len(whole), TRIED), tallest])]


def _spread(count: int, wanted: int) -> Int[Array, "chosen"]:
    return np.unique(np.linspace(0, count - 1, wanted).astype(np.int64))


def _candidates(
    skeleton: Skeleton, points: Float[Array, "markers 3"], clusters: Sequence[Int[Array, "_"]]
) -> list[_Candidate]:
    """The mannequin standing at the markers, at all headings, with its arms out, down, up and bent."""
    space = PoseSpace(skeleton.scaled(float(np.ptp(points[:, 1])) / skeleton.height))
    found = []
    for maps in (_with_arms(space, *arms) for arms in ARMS):
        for heading in np.linspace(0.0, 2.0 * np.pi, HEADINGS, endpoint=False):
            turn = rotations.quaternion_from_euler(np.array([heading]), "Y")
            q = np.concatenate([np.zeros(3), turn, maps])
            (positions,), _ = space.forward(q[None])
            q[:3] = points.mean(axis=0)
            q[1] = points[:, 1].min() - positions[:, 1].min()
            found.append(_Candidate(space, q, points, clusters))
    return [one.settled() for one in sorted(found, key=lambda one: one.cost)[:STARTS]]


def _with_arms(space: PoseSpace, down: float, bent: float) -> Float[Array, "maps"]:
    maps = np.zeros((len(space.moving), 3))
    for side, sign in (("left", -1.0), ("right", 1.0)):
        upper, lower = (
            int(np.flatnonzero(space.moving == space.skeleton.index(f"{side}_{part}"))[0])
            for part in ("upper_arm", "forearm")
        )
        maps[upper, 2], maps[lower, 1] = sign * down, sign * bent
    return maps.ravel()
