"""Trackers over time: one to six oriented points in (head, hands, feet, pelvis, others), frame by frame a whole body.

The motion prior sees what the trackers did in the last seconds and expects a pose, the universal prior expects one from
this frame alone; under the product of both, the solver meets the trackers exactly. A tracker that is not seen for a
while is expected too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from jaxtyping import Float

from poise.capture.feeds import LiveFrame
from poise.capture.performance import FollowedFrames, PerformedFrame
from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.priors.motion.following import ROLES, FollowingGuide
from poise.priors.motion.network import MotionWeights
from poise.priors.predicting import Predicted
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.skeleton import Skeleton
from poise.solvers.constraints import Constraint, Orientation, Position
from poise.solvers.solution import Solution, Status, extended
from poise.solvers.solve import Follower, Solver
from poise.solvers.uncertainty import Deviations
from poise.types import Array

ALL = ROLES
"""The roles that the motion prior knows, which feeds of trackers are asked for."""
MOST_STEP = 0.5  # seconds: times of frames that are farther apart start a new window


@dataclass(frozen=True, eq=False)
class Mount:
    """Where a joint is in a tracker's axes, and how it is turned against the tracker."""

    offset: Float[Array, "3"]
    turn: Float[Array, "4"]


JOINT = Mount(np.zeros(3), rotations.IDENTITY)  # a tracker that is the joint itself


@dataclass(eq=False, kw_only=True, repr=False)
class FollowedFrame(PerformedFrame):
    """The pose of one frame of trackers, with the motion prior's deviations."""

    deviations: Float[Array, "joints"] = field(default_factory=lambda: np.zeros(0))

    @property
    def deviation(self) -> Deviations:
        """Uncertainty of each joint's position: one standard deviation per axis, in metres; 0 for trackers."""
        return Deviations(self.space.skeleton, self.deviations)


class TrackerPerformance(FollowedFrames):
    """The motion prior, trackers and a body: `step` takes their positions and rotations and returns a pose."""

    channels, largest = ("x", "y", "z", "qw", "qx", "qy", "qz"), 1e4

    def __init__(
        self,
        trackers: Mapping[str, str] | Sequence[str],
        *,
        skeleton: Skeleton | None = None,
        fps: float = 60.0,
        mounts: Mapping[str, Mount] | None = None,
        t_pose: bool = False,
        weights: MotionWeights | None = None,
    ) -> None:
        """`trackers` are roles of joints, or labels with such roles.

        Rotations are from a T-pose that faces +Z, in which they are the identity; `mounts` say how other trackers are
        worn, by label (`mounts_of`). With `t_pose`, the first frame with a tracker is a T-pose, and says it.
        """
        named = dict(trackers) if isinstance(trackers, Mapping) else {role: role for role in trackers}
        self.prior = UniversalPrior(skeleton)
        self.space, self.fps = self.prior.space, fps
        if unknown := [role for role in named.values() if role not in self.space.skeleton.roles]:
            raise InvalidValueError(f"{unknown[0]!r} is no role of this skeleton; trackers are worn on roles")
        if not set(ROLES) & set(named.values()) or len(set(named.values())) < len(named):
            raise InvalidValueError(
                f"trackers need different roles, and at least one of {', '.join(ROLES)}; "
                f"got {', '.join(named.values()) or 'none'}"
            )
        self.names, self.roles = tuple(named), tuple(named.values())
        self._joints = np.array([self.space.skeleton.index(role) for role in self.roles])
        self._known = [k for k, role in enumerate(self.roles) if role in ROLES]
        self._rows = [ROLES.index(self.roles[k]) for k in self._known]
        self._stands, self._mounts = t_pose, unmoved(self.space.skeleton, named) | dict(mounts or {})
        self.guide = FollowingGuide(self.space, weights)
        self._follower = Follower(partial(Solver, self.prior, guide=self.guide))
        self._frame = Follower(partial(Solver, self.prior))
        self.reset()

    def heard(self, frame: LiveFrame) -> dict[str, Array]:
        """Positions and rotations of a feed's frame, by label; a tracker without both is not seen."""
        both = frame.places.keys() & frame.turns.keys()
        return {name: np.concatenate([frame.places[name], frame.turns[name]]) for name in both}

    def reset(self) -> None:
        """Forget previous frames: the next one is a cold start."""
        self.guide.reset()
        self._last, self._at, self._heard = self.space.standing(self.prior.mean), -np.inf, False

    def observe(self, values: Array, *, at: float | None = None) -> Array:
        """Record a frame without solving it: positions and rotations of the joints."""
        joints = self._checked(values)
        step = 1.0 / self.fps
        when = self._at + step if at is None and np.isfinite(self._at) else float(at or 0.0)
        if not 0.0 < when - self._at <= MOST_STEP and np.isfinite(self._at):  # a clock that was set
            self.reset()
        self._at = when
        self._heard |= bool(np.isfinite(joints[self._known]).all(axis=1).any())
        if self._heard:
            own = np.full((len(ROLES), 7), np.nan)
            own[self._rows] = joints[self._known]
            self.guide.note(when, own[:, :3], own[:, 3:])
        return joints

    def step(self, values: Float[Array, "trackers 7"], *, at: float | None = None) -> FollowedFrame:
        """The pose for one frame: position and rotation (wxyz) per tracker, NaN if not seen; `at` is its time."""
        begun = time.perf_counter()
        joints = self.observe(values, at=at)
        seen = np.isfinite(joints).all(axis=1)
        if not self._heard or not self.guide.expect():
            note = ("no tracker was seen in the last seconds",)
            solution = Solution(self._last, self.space, tuple, Status.REACHED, 0, 0.0, self.prior, note)
            deviations = np.full(len(self.space.skeleton), np.nan)
        else:
            asked = self._constraints(joints, seen)
            if asked:
                self.guide.beside(self._alone(asked))
            solution = self._follower.step(asked)
            self.guide.answered(solution.q)
            deviations = self.guide.deviations.copy()
            deviations[self._joints[seen]] = 0.0
        self._last = solution.q
        places = self.space.forward(solution.q)[0][self._joints]
        took = 1e6 * (time.perf_counter() - begun)
        return extended(
            FollowedFrame, solution, markers=places, seen=seen, microseconds=took, deviations=deviations
        )

    def _checked(self, values: Array) -> Array:
        """Positions and rotations of the joints themselves, from those of the trackers."""
        values = super()._checked(values)
        if self._stands and np.isfinite(values).all(axis=1).any():
            named = dict(zip(self.names, self.roles, strict=True))
            self._stands = False
            self._mounts |= mounts_of(self.space.skeleton, named, values)
        turns, lengths = values[:, 3:], np.linalg.norm(values[:, 3:], axis=1, keepdims=True)
        turns = np.where(lengths > 1e-6, turns / np.where(lengths > 1e-6, lengths, 1.0), np.nan)
        offsets, worn = (
            np.stack([getattr(self._mounts[name], part) for name in self.names])
            for part in ("offset", "turn")
        )
        places = values[:, :3] + rotations.rotate(turns, offsets)
        return np.concatenate([places, rotations.multiply(turns, worn)], axis=1)

    def _alone(self, asked: list[Constraint]) -> Predicted:
        """What the universal prior expects of this frame alone."""
        runner = self._frame.solver(asked).runner
        assert runner is not None
        runner.ask()
        (start,) = runner.guide.starts(self._last.copy(), runner.problem.targets, free_root=True)
        return start.state

    def _constraints(self, joints: Array, seen: Array) -> list[Constraint]:
        """Every tracker that is seen is met, positions before rotations."""
        found: list[Constraint] = []
        for k in np.flatnonzero(seen).tolist():
            found.append(Position(self.roles[k], joints[k, :3], priority=1, name=self.names[k]))
            found.append(Orientation(self.roles[k], joints[k, 3:], name=f"turn of {self.names[k]}"))
        return found


def unmoved(skeleton: Skeleton, trackers: Mapping[str, str]) -> dict[str, Mount]:
    """Trackers at the joints themselves, whose rotations are the identity in a T-pose."""
    world = neutral_pose(skeleton).world
    turns = {name: world[skeleton.index(role)] for name, role in trackers.items()}
    return {name: Mount(np.zeros(3), rotations.quaternion_from_matrix(turn)) for name, turn in turns.items()}


def mounts_of(
    skeleton: Skeleton, trackers: Mapping[str, str], stood: Float[Array, "trackers 7"]
) -> dict[str, Mount]:
    """How trackers are worn, from one frame of a T-pose: the body stands where the trackers are, and faces as they do.

    The body is placed such that the trackers are nearest to their joints, in the heading of the hands or feet.
    """
    neutral = neutral_pose(skeleton)
    at = np.array([skeleton.index(role) for role in trackers.values()])
    seen = np.isfinite(stood).all(axis=1)
    if not seen.any():
        raise InvalidValueError("the T-pose has no tracker with a position and a rotation")
    places, own = stood[seen, :3], neutral.positions[at[seen]]
    yaw = rotations.quaternion_from_expmap(np.array([0.0, _turn_between(own, places), 0.0]))
    standing = rotations.rotate(yaw, neutral.positions)
    standing = standing + (places - standing[at[seen]]).mean(axis=0) * np.array([1.0, 0.0, 1.0])
    found = {}
    for name, joint, value in zip(trackers, at, stood, strict=True):
        if np.isfinite(value).all():
            turn = rotations.normalize(value[3:])
            back = rotations.conjugate(turn)
            world = rotations.multiply(yaw, rotations.quaternion_from_matrix(neutral.world[joint]))
            offset = rotations.rotate(back, standing[joint] - value[:3])
            found[name] = Mount(offset, rotations.multiply(back, world))
    return found


def _turn_between(own: Float[Array, "points 3"], places: Float[Array, "points 3"]) -> float:
    """The angle about the vertical by which points fit others best; 0 for points on one vertical line."""
    a, b = own - own.mean(axis=0), places - places.mean(axis=0)
    across = float(np.sum(a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2]))
    along = float(np.sum(a[:, 0] * b[:, 0] + a[:, 2] * b[:, 2]))
    return float(np.arctan2(across, along))
