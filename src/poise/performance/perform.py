"""Performance animation: the markers of a performer in, frame by frame, a whole body out (Chai and Hodgins 2005).

Every frame: see the markers from the torso, predict pose and root by the local models of a library, and let the solver
meet the markers exactly by the most likely change. Markers that are missing are normal: what they would have said is
filled in from the examples that agree with those that are seen, and then from the pose itself, once. Where most markers
are only pixels of one camera, there is no torso to see them from: examples that look like the picture predict instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Bool, Float

from poise.errors import InvalidValueError
from poise.geometry.alignment import rigid_fit
from poise.geometry.cameras import Camera
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.performance.signals import Filler, Recent
from poise.priors.local import regression
from poise.priors.local.control import Control, root_from_seen, touched_outputs
from poise.priors.local.kernels import Data
from poise.priors.local.lookalikes import Lookalikes, Seen
from poise.priors.local.prior import LocalPrior
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import Handle, PoseSpace
from poise.skeleton.skeleton import Pose, Skeleton
from poise.solvers.constraints import Constraint, Position, Projection
from poise.solvers.problem import Problem, Settings

Array = np.ndarray
Root = Literal["solved", "torso"]

FARTHEST = 1e4  # metres: what is farther is a code for "not seen" (FLT_MAX, 9999999) or a mistake
KEPT_PROBLEMS = 64  # sets of visible markers whose problem is kept
ROOT_OFF = (0.1, 0.1)  # metres, radians: how far off the root is where only pictures tell
CARRIED_ON = 0.8  # of the last frame's change that the next one is expected to have
CHANGE = 0.1  # radians: how far off that joints are
MODELS_OFF = 0.1  # radians: how far off local models are at markers whose depths are the body's own
NOISE = (
    2e-4  # metres by which markers may be off: those that meet exactly bend a body to meet what is no motion
)
SMOOTHING = 0.05  # seconds over which a root taken from the torso is smoothed


@dataclass(frozen=True, eq=False)
class Glimpse:
    """A marker seen by one camera only: its number and its pixel."""

    marker: int
    camera: Camera
    pixel: tuple[float, float]


@dataclass(frozen=True, eq=False)
class PerformedFrame:
    """The pose found for one frame of markers."""

    q: Float[Array, "size"]
    space: PoseSpace
    markers: Float[Array, "markers 3"]  # where the pose has the markers, also those that were not seen
    seen: Bool[Array, "markers"]
    seconds: float

    @property
    def pose(self) -> Pose:
        """The pose itself."""
        return self.space.pose_from_q(self.q)


class Performance:
    """A library or model, a marker set and a body: `step` takes markers and gives a pose, as fast as they come."""

    channels = "xyz"  # what a frame tells of each marker

    def __init__(
        self,
        prior: LocalPrior,
        markers: Mapping[str, Handle],
        *,
        skeleton: Skeleton | None = None,
        fps: float = 120.0,
        noise: float = NOISE,
        root: Root = "solved",
        progress: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`noise` is how far off markers may be, in metres; with none, they are met exactly where they can be."""
        self.prior = prior if skeleton is None else prior.on_body(skeleton)
        self.names, self._places = tuple(markers), tuple(markers.values())
        self.space, self.fps, self._noise, self._root = self.prior.space, fps, noise, root
        self.handles = self.space.handles(self._places)
        self.control = Control.of(self.prior.examples, self.handles)
        inputs, outputs = self.control.of_examples(self.prior.examples)
        self._regression = regression.fit(
            Data(inputs, outputs, self.prior.examples.blocks),
            signal=self.control.signal,
            limbs=self.control.limbs(self.space),
            touched=touched_outputs(self.space, self.handles),
            progress=lambda done: progress(0.4 * done),
        )
        self._regression.fit_everywhere(lambda done: progress(0.4 + 0.6 * done))
        self._filler = Filler(inputs, self._regression.cover.scales)
        self._lookalikes = Lookalikes(self.prior.examples, self.handles)
        self._problems: dict[bytes, Problem] = {}
        self.reset()

    def reset(self) -> None:
        """Forget the frames so far: the next one starts from nothing."""
        q = np.zeros(self.space.size)
        q[3], q[ROOT_SIZE:] = 1.0, self.prior.mean
        q[:3] = self.prior.examples.q[:, :3].mean(axis=0)
        self._recent, self._started, self._before = Recent(), False, q
        self._last = PerformedFrame(
            q, self.space, self._marker_points(q), np.zeros(len(self.names), dtype=np.bool_), 0.0
        )

    def step(
        self,
        markers: Float[Array, "markers 3"],
        *,
        glimpses: Sequence[Glimpse] = (),
        guesses: Float[Array, "markers 3"] | None = None,
        at: float | None = None,
    ) -> PerformedFrame:
        """The pose for one frame of markers, NaN where one is not seen; `at` is its time where frames are uneven.

        `guesses` are where markers not placed may be: they tell what examples are like this, and bind nothing.
        """
        begun = time.perf_counter()
        points = self._checked(markers)
        seen = np.isfinite(points).all(axis=1)
        likely = self.observe(points if guesses is None else np.where(seen[:, None], points, guesses), at=at)
        glimpses = [glimpse for glimpse in glimpses if not seen[glimpse.marker]]
        if not np.any(seen) and not glimpses:
            self._recent.forget()
            return self._keep(self._last.q, seen, begun)
        problem = self._problem(seen, glimpses).with_targets(points[seen])
        if self._root == "solved" and len(glimpses) > np.sum(seen):
            q = self._from_pictures(_seen(points, seen, glimpses), problem)
        else:
            q = self._from_places(likely, problem)
            if not np.all(np.isfinite(likely)):
                likely = np.where(np.isfinite(likely), likely, self._marker_points(q))
                q = self._from_places(likely, problem)
        frame = self._keep(q, seen, begun)
        self._started = True
        return frame

    def observe(
        self, markers: Float[Array, "markers 3"], *, at: float | None = None
    ) -> Float[Array, "markers 3"]:
        """Take note of a frame without finding its pose: the next one's velocities follow from it."""
        points = self._checked(markers)
        self._recent.note(points, step=1.0 / self.fps, at=at)
        return points

    def exchange(self, first: int, second: int) -> None:
        """Two markers had each other's label until now: what was noted of their past is exchanged."""
        self._recent.exchange(first, second)

    def run(
        self,
        take: Markers,
        *,
        stride: int = 1,
        progress: Callable[[int, int], None] = lambda _done, _all: None,
    ) -> list[PerformedFrame]:
        """All frames of a recording that has at least these markers, from its start; or every so-manieth pose of it."""
        columns = [take.index(name) for name in self.names]
        self.reset()
        self.fps = take.fps
        frames = []
        for number, points in enumerate(take.points[:, columns]):
            if number % stride:
                self.observe(points)
            else:
                frames.append(self.step(points))
            progress(number + 1, len(take))
        return frames

    # --- private ---------------------------------------------------------------------------------------------------

    def _checked(self, markers: Array) -> Array:
        points = np.asarray(markers, dtype=np.float64)
        if points.shape != (len(self.names), 3):
            raise InvalidValueError(
                f"a frame is ({len(self.names)}, 3): a place for each of {', '.join(self.names)}; got {points.shape}"
            )
        with np.errstate(invalid="ignore"):
            plausible = (np.abs(points) < FARTHEST).all(axis=1, keepdims=True)
        return np.where(plausible, points, np.nan)

    def _from_places(self, likely: Array, problem: Problem) -> Float[Array, "size"]:
        """The pose by the local models at where markers are likely to be, brought to those that are seen."""
        x, turn, place = self._signals(likely, self._velocities(likely))
        mean, covariance = self._regression(x)
        q = np.concatenate([root_from_seen(mean[:ROOT_FREEDOMS], turn, place), mean[ROOT_FREEDOMS:]])
        if self._root == "torso":
            q[:ROOT_SIZE] = self._smoothed(q[:ROOT_SIZE])
        self._finish(q, mean[ROOT_FREEDOMS:], _turned(covariance, turn), problem)
        return q

    def _from_pictures(self, seen: Seen, problem: Problem) -> Float[Array, "size"]:
        """The pose by examples that look like what is seen, not far from where the last ones lead.

        The local models at where that pose has the markers then tell it once more, as one opinion among the others.
        """
        q = self._last.q.copy()
        change = CARRIED_ON * (q - self._before)
        q[:3], q[ROOT_SIZE:] = q[:3] + change[:3], q[ROOT_SIZE:] + change[ROOT_SIZE:]
        opinions = [self._lookalikes(q[:ROOT_SIZE], seen)]
        if self._started:
            opinions.append((q[ROOT_SIZE:].copy(), CHANGE**2 * np.eye(len(self.prior.mean))))
        self._finish_by(opinions, q, problem)
        points = self._marker_points(q)
        mean, covariance = self._regression(self._signals(points, np.full_like(points, np.nan))[0])
        spread = covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:] + MODELS_OFF**2 * np.eye(len(self.prior.mean))
        self._finish_by([*opinions, (mean[ROOT_FREEDOMS:], spread)], q, problem)
        return q

    def _finish_by(self, opinions: Sequence[tuple[Array, Array]], q: Array, problem: Problem) -> None:
        """Meet what is seen by what several Gaussians of the pose agree on, the root being about where q has it."""
        mean, spread = opinions[0]
        for other, wide in opinions[1:]:
            gain = np.linalg.solve(spread + wide, spread).T
            mean, spread = mean + gain @ (other - mean), spread - gain @ spread
        q[ROOT_SIZE:] = mean
        covariance = np.diag(np.repeat((*ROOT_OFF, 0.0), (3, 3, len(mean))) ** 2)
        covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:] = 0.5 * (spread + spread.T)
        self._finish(q, mean, covariance, problem)

    def _signals(self, points: Array, velocities: Array) -> tuple[Array, Array, Array]:
        """Control signals, whole, with the torso's rotation and place."""
        seen, torso = np.isfinite(points).all(axis=1), self.control.torso.markers
        stand_in = points if np.all(seen[torso]) else self._moved_along(points, seen)
        turns, places = self.control.torso.frames(stand_in[None])
        x = self.control.seen(points[None], velocities[None], turns=turns, places=places)[0]
        return self._filler(x), turns[0], places[0]

    def _velocities(self, points: Array) -> Array:
        """Over the lag of the examples, or as much of it as there is; NaN where a marker was not seen then."""
        before = self._recent.before()
        return np.full_like(points, np.nan) if before is None else (points - before[1]) / before[0]

    def _moved_along(self, points: Array, seen: Array) -> Array:
        """Where all markers are if those not seen moved along with the rest since the last frame."""
        if not np.any(seen):
            return self._last.markers
        turn, shift, _ = rigid_fit(self._last.markers[seen], points[seen], upright=not self._started)
        return np.where(seen[:, None], points, self._last.markers @ turn.T + shift)

    def _finish(self, q: Array, mean: Array, covariance: Array, problem: Problem) -> None:
        """Meet the markers by the most likely change; q moves."""
        if len(problem.constraints) == 0:
            return
        if self._root == "torso":
            covariance[:ROOT_FREEDOMS], covariance[:, :ROOT_FREEDOMS] = 0.0, 0.0
        before = q.copy()
        problem.run(q, mean, covariance)
        if not np.all(np.isfinite(q)):
            q[:] = before

    def _problem(self, seen: Array, glimpses: Sequence[Glimpse]) -> Problem:
        key = seen.tobytes()
        if not glimpses and key in self._problems:
            return self._problems[key]
        tolerance = self._noise if self._noise > 0 else None
        constraints: list[Constraint] = [
            Position(self._places[k], (0.0, 0.0, 0.0), tolerance=tolerance) for k in np.flatnonzero(seen)
        ]
        constraints += [
            Projection(
                self._places[glimpse.marker],
                glimpse.camera,
                glimpse.pixel,
                tolerance=None
                if tolerance is None
                else max(tolerance * glimpse.camera.focal_length / 3.0, 0.5),
            )
            for glimpse in glimpses
        ]
        root: Literal["solved", "given"] = "solved" if self._root == "solved" else "given"
        problem = Problem(self.space, constraints, root=root, limits=self.prior.limits, settings=Settings())
        if not glimpses and len(self._problems) < KEPT_PROBLEMS:
            self._problems[key] = problem
        return problem

    def _smoothed(self, root: Array) -> Array:
        """A root on its way from the last frame's, so that a noisy torso does not shake the body."""
        if not self._started:
            return root
        share = 1.0 - np.exp(-1.0 / (self.fps * SMOOTHING))
        last = self._last.q[:ROOT_SIZE]
        aligned = np.concatenate([root[:3], root[3:] * (1.0 if root[3:] @ last[3:] >= 0 else -1.0)])
        mixed = last + share * (aligned - last)
        mixed[3:] /= np.linalg.norm(mixed[3:])
        return np.asarray(mixed)

    def _marker_points(self, q: Array) -> Array:
        return self.space.points(q[None], self.handles)[0]

    def _keep(self, q: Array, seen: Array, begun: float) -> PerformedFrame:
        self._before = self._last.q if self._started else q
        self._last = PerformedFrame(q, self.space, self._marker_points(q), seen, time.perf_counter() - begun)
        return self._last


def motion_of(frames: Sequence[PerformedFrame], fps: float, name: str = "") -> Motion:
    """The frames of a performance as a motion."""
    if not frames:
        raise InvalidValueError("a performance without frames is no motion")
    places, turns = frames[0].space.frames_from_q(np.stack([frame.q for frame in frames]))
    return Motion(frames[0].space.skeleton, fps, places, turns, name=name)


def _seen(
    points: Float[Array, "markers 3"], seen: Bool[Array, "markers"], glimpses: Sequence[Glimpse]
) -> Seen:
    """Places of markers, and the rays of those that are only glimpsed."""
    placed = np.flatnonzero(seen)
    rays = np.array([glimpse.camera.ray(np.array(glimpse.pixel)) for glimpse in glimpses])
    return Seen(
        np.concatenate([placed, [glimpse.marker for glimpse in glimpses]]).astype(np.int64),
        np.concatenate([points[placed], [glimpse.camera.centre for glimpse in glimpses]]),
        np.concatenate(
            [np.tile(np.eye(3), (len(placed), 1, 1)), np.eye(3) - rays[:, :, None] * rays[:, None]]
        ),
    )


def _turned(covariance: Float[Array, "outputs outputs"], turn: Float[Array, "3 3"]) -> Array:
    """The covariance with the root's place in the world's axes instead of the torso's."""
    covariance[:3] = turn @ covariance[:3]
    covariance[:, :3] = covariance[:, :3] @ turn.T
    return covariance
