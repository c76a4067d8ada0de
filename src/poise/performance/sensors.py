"""Performances by a few inertial sensors: how some segments are turned in, frame by frame, a whole body out.

The same local models and the same solver as for markers: what is predicted from the sensors is brought to how they are
turned by the most likely change. Where the performer is follows from the predicted velocity, and drifts as it would.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.performance.perform import PerformedFrame
from poise.performance.signals import Filler, Recent
from poise.priors.local import regression
from poise.priors.local.kernels import Data
from poise.priors.local.orientations import ROOT_OUTPUTS, Sensors
from poise.priors.local.prior import LocalPrior
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.skeleton import Skeleton
from poise.solvers.constraints import Orientation
from poise.solvers.problem import Problem

Array = np.ndarray

LONGEST = 1e6  # of a quaternion's numbers: what is larger is a code for "not heard" or a mistake
SIX = ("pelvis", "head", "left_forearm", "right_forearm", "left_shin", "right_shin")


class OrientationPerformance:
    """A library or model and sensors on a body: `step` takes how they are turned and gives a pose."""

    channels = "wxyz"  # what a frame tells of each sensor

    def __init__(
        self,
        prior: LocalPrior,
        sensors: Sequence[str] = SIX,
        *,
        skeleton: Skeleton | None = None,
        fps: float = 120.0,
        noise: float = 0.0,
        worn: Mapping[str, Float[Array, "4"]] | None = None,
        progress: Callable[[float], None] = lambda _: None,
    ) -> None:
        """`noise` is how far off sensors may be, in radians; `worn` how each is turned on its segment (`t_pose`)."""
        self.prior = prior if skeleton is None else prior.on_body(skeleton)
        self.names, self.space, self.fps, self._noise = tuple(sensors), self.prior.space, fps, noise
        self.sensors = Sensors.on(self.space, self.names)
        self._worn = np.array([(worn or {}).get(name, rotations.IDENTITY) for name in self.names])
        self.inputs, outputs = self.sensors.of_examples(self.prior.examples)
        self.regression = regression.fit(
            Data(self.inputs, outputs, self.prior.examples.blocks),
            signal=self.sensors.signal,
            limbs=self.sensors.limbs,
            touched=self.sensors.touched,
            progress=lambda done: progress(0.4 * done),
        )
        self.regression.fit_everywhere(lambda done: progress(0.4 + 0.6 * done))
        self._filler = Filler(self.inputs, self.regression.cover.scales)
        self._points = self.space.handles(list(self.names))
        self._problems: dict[bytes, Problem] = {}
        self.reset()

    def reset(self) -> None:
        """Forget the frames so far: the next one stands at the origin."""
        q = np.concatenate(
            [[0.0, self.prior.examples.q[:, 1].mean(), 0.0], rotations.IDENTITY, self.prior.mean]
        )
        self._recent, self._placed = Recent(), 0.0
        self._last = self._frame(q, np.zeros(len(self.names), dtype=np.bool_), time.perf_counter())

    def step(self, orientations: Float[Array, "sensors 4"], *, at: float | None = None) -> PerformedFrame:
        """The pose for one frame: a quaternion (wxyz) in the world per sensor, NaN where one is not heard."""
        begun = time.perf_counter()
        turned = self.observe(orientations, at=at)
        heard = np.isfinite(turned).all(axis=1)
        if not np.any(heard):
            self._recent.forget()
            self._last = self._frame(self._last.q, heard, begun)
            return self._last
        mean, covariance = self.regression(self.signals(turned))
        q = np.concatenate([self._root(turned[0], mean), mean[ROOT_OUTPUTS:]])
        self._finish(q, mean[ROOT_OUTPUTS:], covariance[ROOT_OUTPUTS:, ROOT_OUTPUTS:], turned, heard)
        self._last = self._frame(q, heard, begun)
        return self._last

    def observe(
        self, orientations: Float[Array, "sensors 4"], *, at: float | None = None
    ) -> Float[Array, "sensors 4"]:
        """Take note of a frame without finding its pose; how the segments themselves are turned."""
        turned = rotations.multiply(self._checked(orientations), self._worn)
        self._recent.note(turned, step=1.0 / self.fps, at=at)
        return turned

    def signals(self, turned: Float[Array, "sensors 4"]) -> Float[Array, "columns"]:
        """Control signals of a frame that was just observed, whole."""
        known = np.where(np.isfinite(turned[:1]), turned[:1], self._last.q[3:ROOT_SIZE])
        turns = rotations.matrix_from_quaternion(np.concatenate([known, turned[1:]]))
        lag, then = self._recent.before() or (1.0, np.full_like(turned, np.nan))
        before = rotations.matrix_from_quaternion(then)
        return self._filler(self.sensors.signals(turns[None], before[None], lag=lag)[0])

    # --- private ---------------------------------------------------------------------------------------------------

    def _checked(self, orientations: Array) -> Array:
        turned = np.asarray(orientations, dtype=np.float64)
        if turned.shape != (len(self.names), 4):
            raise InvalidValueError(
                f"a frame is ({len(self.names)}, 4): a quaternion for each of {', '.join(self.names)}; "
                f"got {turned.shape}"
            )
        turned = np.where(np.abs(turned) < LONGEST, turned, np.nan)
        lengths = np.linalg.norm(turned, axis=1, keepdims=True)
        usable = np.isfinite(lengths) & (lengths > 1e-6)
        return np.where(usable, turned / np.where(usable, lengths, 1.0), np.nan)

    def _root(self, turned: Array, mean: Array) -> Float[Array, "7"]:
        """The root as its sensor is turned, at the predicted height, where the predicted velocity has led."""
        seconds, self._placed = self._recent.clock - self._placed, self._recent.clock
        turn = turned if np.all(np.isfinite(turned)) else self._last.q[3:ROOT_SIZE]
        moved = self._last.q[:3] + seconds * rotations.rotate(turn, mean[1:ROOT_OUTPUTS])
        return np.concatenate([[moved[0], mean[0], moved[2]], turn])

    def _finish(self, q: Array, mean: Array, covariance: Array, turned: Array, heard: Array) -> None:
        """Turn the sensors' segments by the most likely change; q moves, its root does not."""
        targets = [
            Orientation(self.names[k], turned[k], tolerance=self._noise or None)
            for k in np.flatnonzero(heard)
            if k > 0
        ]
        if not targets:
            return
        key = heard.tobytes()
        if key not in self._problems:
            self._problems[key] = Problem(self.space, targets, root="given", limits=self.prior.limits)
        whole = np.zeros((self.space.freedoms, self.space.freedoms))
        whole[ROOT_FREEDOMS:, ROOT_FREEDOMS:] = covariance
        before = q.copy()
        self._problems[key].retarget(targets).run(q, mean, whole)
        if not np.all(np.isfinite(q)):
            q[:] = before

    def _frame(self, q: Array, heard: Array, begun: float) -> PerformedFrame:
        places = self.space.points(q[None], self._points)[0]
        return PerformedFrame(q, self.space, places, heard, time.perf_counter() - begun)


def t_pose(
    skeleton: Skeleton,
    sensors: Sequence[str],
    orientations: Float[Array, "sensors 4"],
    *,
    samples: Float[Array, "frames joints 4"] | None = None,
) -> dict[str, Float[Array, "4"]]:
    """How each sensor is turned on its segment, from a T-pose that faces +Z; one that was not heard is as it is."""
    world = neutral_pose(skeleton, samples).world
    worn = {}
    for name, turned in zip(sensors, orientations, strict=True):
        segment = rotations.quaternion_from_matrix(world[skeleton.index(name)])
        known = np.all(np.isfinite(turned))
        worn[name] = rotations.multiply(rotations.conjugate(turned), segment) if known else rotations.IDENTITY
    return worn
