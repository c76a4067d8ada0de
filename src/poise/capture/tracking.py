"""Poses from markers, frame by frame, with any of them missing (Grochow et al. 2004, section 7.3).

Every visible marker is a soft constraint of the shared solver under any prior. Two more kinds of soft rows carry the
previous frame: the root follows a random walk, and joints follow an Ornstein-Uhlenbeck process with the prior as its
stationary distribution and `RELAXATION` seconds as its time constant, which adds nothing to the prior when nothing has
been seen for long.

A prior from a short recording covers too few of the performer's movements. So its covariance is scaled, frame by
frame, until it allows the poses that visible markers show (expectation-maximisation of one factor on S).

The conditioned covariance P of the pose, through a marker's Jacobian, gives the uncertainty of a hidden marker. Seen
markers calibrate it: each is predicted from the others (leave-one-out, in closed form), and the variances are scaled
by the recent errors of these predictions. That says little about parts far from anything seen: `Confidence`
widens the reported uncertainty by the prior's measured overconfidence when less is seen.

A point farther from its prediction than this uncertainty and plausible accelerations allow is rejected: it may be
another marker's (swapped labels), an unlabelled one's, or an outlier.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.capture.calibration import Calibration
from poise.capture.performance import FollowedFrames, PerformedFrame
from poise.capture.sources import UNLABELLED
from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.geometry.alignment import rigid_fit
from poise.motion.markers import Markers
from poise.priors.abilities import going_on
from poise.priors.poses import handle_positions
from poise.priors.prior import Prior
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import Handle, Handles
from poise.skeleton.skeleton import read_only
from poise.solvers.constraints import Orientation, Pinned, Position
from poise.solvers.dual_step import VARIANCE, conditioned, information
from poise.solvers.problem import Settings
from poise.solvers.solution import Residual, extended
from poise.solvers.solve import Follower, Solver
from poise.solvers.uncertainty import variances
from poise.types import Array

RELAXATION = 1.0  # seconds: time constant with which unseen joints return to the prior
ROOT_SPEED = 0.5, 2.0  # metres and radians per second: random walk of the root
ACCELERATION = 200.0  # metres per second squared: largest sustained acceleration of a marker
DOUBT = 4.0  # standard deviations beyond which a point is rejected
SLACK = 0.03  # metres in addition
FIRST_SIGMA = 0.03  # metres: least deviation of a marker while the mean pose bends to a first frame
SWAPPED = 0.03  # metres: distance from its prediction at which a marker takes a point with another label
CLEAR = 0.5  # largest distance of an unlabelled point from its marker, relative to other missing ones
GHOST = 0.01  # metres: a point this close to a seen marker is its duplicate
LOST = 0.4  # share of rejected points at which the prediction is considered wrong
MEMORY = 0.5  # seconds over which the prior and its uncertainty are compared with the markers
MOST_STRETCH = 1e4  # of the prior's variances
LEAST_FACTOR = 0.1  # of the claimed variances of hidden markers
TOGETHER = 1.5  # times the error of independent markers: skin moves neighbouring markers together
COMPLETE = 0.9  # share of markers seen in a training frame
LEARNING_FPS = 30.0  # frame rate at which styles are learned
MOST_LEARNED = 3600  # newest well-seen poses that are kept to learn from
UNSURE = 0.10  # metres: standard deviation from which a filled marker is flagged
_STEPS = Settings(map_steps=8, finish_steps=0, longest_pull=1.0)
NOBODY = -1
_NEVER = 1e6
SHARES = (0.3, 0.5, 0.7, 0.9)  # shares of the markers that are hidden for the measurement
DRAWS = 2  # random choices of hidden markers per share


@dataclass(frozen=True)
class Confidence:
    """The factor on a tracker's standard deviations, by the share of hidden markers."""

    shares: tuple[float, ...]
    factors: tuple[float, ...]

    def factor(self, hidden: float) -> float:
        """The factor at this share of hidden markers."""
        return float(np.interp(hidden, self.shares, self.factors))


ASIS = Confidence((0.0,), (1.0,))
"""No widening."""
USUAL = Confidence((0.0, 0.5, 0.7, 0.9), (1.0, 1.1, 1.5, 2.5))
"""The average, for takes without data for the measurement."""


def confidence_from(errors: dict[float, list[Float[Array, "_"]]]) -> Confidence:
    """The factors from ratios of errors to claimed deviations (lengths in three dimensions), by hidden share.

    Factors are at least one, and do not decrease as less is seen.
    """
    wrong = [float(np.sqrt(np.mean(np.concatenate(errors[share]) ** 2) / 3.0)) for share in sorted(errors)]
    factors = np.maximum.accumulate([1.0, *wrong])
    return Confidence((0.0, *sorted(errors)), tuple(factors.tolist()))


@dataclass(eq=False, kw_only=True, repr=False)
class TrackedFrame(PerformedFrame):
    """One solved frame: the pose, and for every marker its position on the body, its uncertainty and its source."""

    sigmas: Float[Array, "markers"]  # metres: standard deviation per axis of an unused marker
    joint_sigmas: Float[Array, "joints"]  # the same for joint positions
    sources: Int[Array, "markers"]  # the index of the point that was used; -1: none
    misfit: float  # root mean square distance of the points used, in metres; NaN without any

    @property
    def flagged(self) -> Bool[Array, "markers"]:
        """Markers without a point whose position is too uncertain to be given without a warning."""
        return np.asarray(~self.seen & (self.sigmas > UNSURE))


class MarkerTracker(FollowedFrames):
    """Follows one performer from frames of markers as they arrive; a style keeps learning from them by `learn`."""

    channels, largest = "xyz", 1e4

    def __init__(
        self, prior: Prior, calibration: Calibration, *, fps: float, confidence: Confidence = USUAL
    ) -> None:
        if not fps > 0:
            raise InvalidValueError(f"the frame rate must be positive; got {fps}")
        self.calibration, self.fps, self.confidence = calibration, fps, confidence
        self.names = tuple(calibration.layout)
        self.count = len(self.names)
        self._follower = Follower(lambda _: self._solver)
        self._well_seen: deque[Float[Array, "size"]] = deque(maxlen=MOST_LEARNED)
        self.use(prior)
        self.reset()

    def use(self, prior: Prior) -> None:
        """Continue with another prior of the same body, such as one that has learned more."""
        self.prior = prior
        self.space = prior.space.on_body(self.calibration.skeleton)
        self._handles = self.calibration.handles(self.space)
        names, sigmas = self.space.skeleton.names, self.calibration.sigmas
        self._joints = Handles(np.arange(len(names)), np.zeros((len(names), 3)))
        root, nowhere = names[0], (0.0, 0.0, 0.0)
        still = np.concatenate([np.zeros(3), rotations.IDENTITY, np.zeros(self.space.size - ROOT_SIZE)])
        markers = [
            Position(handle, nowhere, tolerance=float(sigma), name=name)
            for (name, handle), sigma in zip(self.calibration.layout.items(), sigmas, strict=True)
        ]
        before = [
            Orientation(root, rotations.IDENTITY, tolerance=1.0),
            Position(Handle(root), nowhere, tolerance=1.0),
            Pinned([names[joint] for joint in self.space.moving], still, tolerance=1.0),
        ]
        own = prior.on_body(self.calibration.skeleton)
        self._solver = Solver(own, [*markers, *before], settings=_STEPS)
        self._problem, self._own_squares = self._solver.problem, sigmas**2
        self._problem.limits = read_only(np.tile([[-np.inf], [np.inf]], (1, self.space.freedoms)))
        self._follower.use(lambda _: self._solver)

    def reset(self) -> None:
        """Forget previous frames: the next one is a cold start."""
        self._follower.restart()
        self._last: TrackedFrame | None = None
        self._before: TrackedFrame | None = None
        freedoms = self.space.freedoms
        self._spread, self._prior_variances = np.zeros((freedoms, freedoms)), np.ones(freedoms)
        self._jacobian, self._factor, self._stretch = np.zeros((3 * self.count, freedoms)), 1.0, 1.0
        self._time: float | None = None

    def step(
        self,
        values: Float[Array, "markers 3"],
        unlabelled: Float[Array, "points 3"] | None = None,
        *,
        at: float | None = None,
    ) -> TrackedFrame:
        """The pose of the next frame from labelled points (NaN if not seen) and unlabelled points.

        `at` is its time in seconds if frames are uneven. Indices in `sources` count the labelled points first, then the
        unlabelled ones.
        """
        begun, points = time.perf_counter(), self._checked(values)
        since = None if at is None or self._time is None else at - self._time
        self._time, self._seconds = at, since if since is not None and 0.0 < since < 1.0 else 1.0 / self.fps
        everyone = points if unlabelled is None else np.concatenate([points, unlabelled])
        seen = np.isfinite(everyone).all(axis=1)
        sources = np.where(seen[: self.count], np.arange(self.count), NOBODY)
        if (last := self._last) is not None:
            before = self._before if self._before is not None else last
            expected = 2.0 * last.markers - before.markers if np.isfinite(last.misfit) else last.markers
            reach = ACCELERATION * self._seconds**2  # the change that constant velocity does not predict
            believed = self._believed(everyone, seen, expected, DOUBT * self._claims() + SLACK + reach)
            if (believed != NOBODY).sum() >= (1.0 - LOST) * (sources != NOBODY).sum():
                return self._solve(everyone, believed, expected, begun)
        return self._begin(everyone, sources, begun)

    def run(
        self,
        take: Markers,
        *,
        stride: int = 1,
        progress: Callable[[int, int], None] = lambda _done, _all: None,
    ) -> list[PerformedFrame]:
        """All frames, or every `stride`-th, of a recording; its unlabelled points may be those of missing markers."""
        columns = [take.index(name) for name in self.names]
        others = [k for k, label in enumerate(take.labels) if label.startswith(UNLABELLED)]
        self.reset()
        self.fps, frames = take.fps / stride, list[PerformedFrame]()
        for points in take.points[::stride]:
            frames.append(self.step(points[columns], points[others]))
            progress(len(frames), len(take) // stride)
        return frames

    def learn(self) -> int:
        """Train the style on the well-seen poses since the last call; return their number. The next frame uses it."""
        learned_more = going_on(self.prior)
        if learned_more is None:
            raise InvalidValueError(f"only a style can keep learning; this is a {type(self.prior).__name__}")
        stride = max(1, int(self.fps / LEARNING_FPS))
        poses = list(self._well_seen)[::stride]
        if len(poses) < 2:
            return 0
        self.use(learned_more(np.stack(poses), fps=self.fps / stride))
        self._well_seen.clear()
        return len(poses)

    @property
    def _share(self) -> float:
        """The share of a new frame in what is remembered."""
        return min(1.0, self._seconds / MEMORY)

    def _begin(
        self, points: Float[Array, "all 3"], sources: Int[Array, "markers"], begun: float
    ) -> TrackedFrame:
        """Solve a first frame: the mean pose moved to the markers, bent to them, then solved under the prior."""
        used = sources != NOBODY
        if self._last is not None:
            q = self._last.q.copy()
        else:
            turn, shift = np.eye(3), np.zeros(3)
            if np.any(used):
                own = handle_positions(self.space, self.prior.mean[None], self._handles)[0]
                turn, shift, _ = rigid_fit(own[used], points[sources[used]])
            q = np.concatenate([shift, rotations.quaternion_from_matrix(turn), self.prior.mean])
        self._last = self._before = None
        expected = self.space.handle_positions(q, self._handles)[0]
        self._set_rows(np.where(used[:, None], points[sources], expected), used)
        # Small deviations allow only short steps far from the markers: a run's frame would take too many.
        variances = self._problem.rows[: 3 * self.count, VARIANCE]
        np.maximum(variances, FIRST_SIGMA**2, out=variances)
        self._problem.run(q, self.prior.mean, np.ones((1, self.space.freedoms)))
        self._follower.restart(self.space, q)
        return self._solve(points, sources, self.space.handle_positions(q, self._handles)[0], begun)

    def _believed(
        self,
        points: Float[Array, "all 3"],
        seen: Bool[Array, "all"],
        expected: Float[Array, "markers 3"],
        gates: Float[Array, "markers"],
    ) -> Int[Array, "markers"]:
        """The point of every marker: its own if it is close enough, else one of the remaining points."""
        own, (joints, offsets) = np.arange(self.count), (self._handles.joints, self._handles.offsets)
        near = seen[own] & (np.linalg.norm(np.nan_to_num(points[own]) - expected, axis=1) <= gates)
        sources = np.where(near, own, NOBODY)
        # Assigned points, and those that coincide with one: a file may contain the same point twice.
        ghosts = (np.linalg.norm(points[:, None] - points[None, own[near]], axis=2) <= GHOST).any(axis=1)
        left, wanting = np.flatnonzero(seen & ~ghosts), np.flatnonzero(~near)
        if not (len(left) and len(wanting)):
            return sources
        given = assign(expected[wanting], gates[wanting], points[left])
        found, taken = wanting[given != NOBODY], left[given[given != NOBODY]]
        gaps = np.linalg.norm(expected[wanting, None] - points[None, taken], axis=2)
        own_gaps = np.linalg.norm(expected[found] - points[taken], axis=1)
        clear = (gaps * CLEAR < own_gaps).sum(axis=0) <= 1  # no other marker is nearly as likely
        # Labels are overruled only by much better ones.
        sure = np.where(taken >= self.count, clear, own_gaps <= SWAPPED)
        for number, (marker, point) in enumerate(zip(found, points[taken], strict=True)):
            # A point keeps the known distances to the seen markers of the same body part.
            fellows = np.flatnonzero(near & (joints == joints[marker]))
            known = np.linalg.norm(offsets[fellows] - offsets[marker], axis=1)
            apart = np.linalg.norm(points[fellows] - point, axis=1)
            sure[number] &= bool(np.all(np.abs(apart - known) <= SLACK))
        sources[found[sure]] = taken[sure]
        return sources

    def _solve(
        self,
        points: Float[Array, "all 3"],
        sources: Int[Array, "markers"],
        expected: Float[Array, "markers 3"],
        begun: float,
    ) -> TrackedFrame:
        used = sources != NOBODY
        targets = np.where(used[:, None], points[sources], expected)
        self._set_rows(targets, used)
        solution = self._follower.solve(self._solver)
        q, problem = solution.q, self._problem
        errors, jacobian = problem.errors(q)
        gaps, self._jacobian = errors[: 3 * self.count].reshape(-1, 3), jacobian[: 3 * self.count]
        misfit = float(np.sqrt((gaps[used] ** 2).sum(axis=1).mean())) if np.any(used) else np.nan
        self._condition(q, jacobian)
        if np.any(used):
            self._compare(gaps, used)
        if used.mean() >= COMPLETE:
            self._well_seen.append(q)
        self._before = self._last
        factor = self.confidence.factor(1.0 - used.mean())
        moved = variances(self.space.handle_positions(q, self._joints)[1], self._spread)

        def residuals() -> tuple[
            Residual, ...
        ]:  # of the used markers; positions of the others are only expected
            found = problem.residuals(np.r_[gaps.ravel(), np.zeros(len(problem.rows) - gaps.size)])
            return tuple(found[k] for k in np.flatnonzero(used))

        self._last = extended(
            TrackedFrame, solution, measure=residuals, markers=targets - gaps, sigmas=factor * self._claims(),
            joint_sigmas=factor * np.asarray(TOGETHER * np.sqrt(self._factor * moved)), seen=used,
            sources=sources, misfit=misfit, microseconds=1e6 * (time.perf_counter() - begun),
        )  # fmt: skip
        return self._last

    def _set_rows(self, targets: Float[Array, "markers 3"], used: Bool[Array, "markers"]) -> None:
        """Set the rows of the seen markers, and of the previous frame as far as it still counts."""
        floats, last, count = self._problem.floats, self._last, self.count
        variances = self._problem.rows[:, VARIANCE]
        floats[:count, 3:6] = targets
        variances[: 3 * count] = np.repeat(np.where(used, self._own_squares / self._stretch, np.inf), 3)
        if last is None:
            variances[3 * count :] = np.inf
            floats[count + 1, 3:6] = targets[used].mean(axis=0) if np.any(used) else 0.0
            return
        floats[count, 3:12] = rotations.matrix_from_quaternion(last.q[3:7]).ravel()
        floats[count + 1, 3:6] = last.q[:3]
        floats[count + 2 :, 3:6] = last.q[ROOT_SIZE:].reshape(-1, 3)
        spread = np.diag(self._spread)
        root = spread[:ROOT_FREEDOMS] + np.square(np.repeat(ROOT_SPEED, 3)) * self._seconds
        variances[3 * count : 3 * count + 6] = np.r_[root[3:], root[:3]] / self._stretch
        # Joint angles keep their values, in addition to the prior: the process goes from N(q, P) to N(.., V), with
        # V = a^2 P + (1 - a^2) S; 1/V = 1/S + 1/T gives T for the rows.
        keep = np.exp(-2.0 * self._seconds / RELAXATION)
        S, P = self._prior_variances[ROOT_FREEDOMS:], spread[ROOT_FREEDOMS:]
        V = keep * P + (1.0 - keep) * S
        variances[3 * count + 6 :] = S * V / np.maximum(keep * (S - P), 1e-9 * S) / self._stretch

    def _condition(self, q: Float[Array, "size"], jacobian: Float[Array, "rows freedoms"]) -> None:
        """The covariance of the pose under the stretched prior and all rows."""
        runner = self._solver.runner
        assert runner is not None, "a prior has a runner"
        (mean, prior), variances = runner.expectation, self._problem.rows[:, VARIANCE].copy()
        everyone, nothing = np.ones(len(variances), dtype=np.bool_), np.zeros(len(variances))
        matrix, _ = information(jacobian, nothing, variances, everyone, np.zeros(self.space.freedoms))
        self._prior_variances = self._stretch * np.diag(prior)
        self._spread = self._stretch * conditioned(prior, matrix)
        # E[(q - m)' S^-1 (q - m)] per degree of freedom: one if the prior expects what is seen.
        S, P = prior[ROOT_FREEDOMS:, ROOT_FREEDOMS:], self._spread[ROOT_FREEDOMS:, ROOT_FREEDOMS:]
        gap = q[ROOT_SIZE:] - mean
        solved = np.linalg.solve(S, np.column_stack([P, gap]))
        wanted = (np.trace(solved[:, :-1]) + gap @ solved[:, -1]) / len(gap)
        self._stretch += self._share * (float(np.clip(wanted, 1.0, MOST_STRETCH)) - self._stretch)

    def _compare(self, gaps: Float[Array, "markers 3"], used: Bool[Array, "markers"]) -> None:
        """Leave-one-out: without its own row a marker with residual r would be r R / (R - J P J') off."""
        own = self._own_squares
        left = np.maximum(own - self._marker_variances(), 0.05 * own)
        off = np.square(gaps).sum(axis=1) / 3.0 * (own / left) ** 2
        ratio = float(np.minimum((off / (own**2 / left))[used], DOUBT**2).mean())
        self._factor += self._share * (max(ratio, LEAST_FACTOR) - self._factor)

    def _claims(self) -> Float[Array, "markers"]:
        """Standard deviation per axis of each marker's position if it were not seen."""
        return np.asarray(TOGETHER * np.sqrt(self._factor * self._marker_variances() + self._own_squares))

    def _marker_variances(self) -> Float[Array, "markers"]:
        """Mean variance per axis of each marker's position, from the covariance of the pose."""
        moved = self._jacobian @ self._spread
        return np.asarray(np.einsum("ij,ij->i", moved, self._jacobian).reshape(-1, 3).mean(axis=1))


def assign(
    expected: Float[Array, "markers 3"], gates: Float[Array, "markers"], points: Float[Array, "points 3"]
) -> Int[Array, "markers"]:
    """Per marker the index of its point, or -1: least total squared distance, in units of each marker's gate."""
    from scipy.optimize import linear_sum_assignment

    found = np.full(len(expected), NOBODY)
    if len(expected) == 0 or len(points) == 0:
        return found
    distances = np.linalg.norm(expected[:, None] - points[None], axis=2) / gates[:, None]
    near = distances <= 1.0
    rows, columns = linear_sum_assignment(np.where(near, distances**2, _NEVER))
    kept = near[rows, columns]
    found[rows[kept]] = columns[kept]
    return found
