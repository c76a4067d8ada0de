"""The motion prior live: oriented points up to now in, a Gaussian over the whole pose now out.

The network sees the last `FRAMES` frames at 30 Hz, which end now. Its base is the neutral pose at every frame, upright
where the first of the given points (in the order of `HANDLES`) is or last was, as in its training. Windows that end at
different moments differ a little; so what the last answer lacked to the mean of its moment is kept, and is forgotten
over time.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.priors.motion.carrying import HANDLES_AT, Carrier, Frames, given_handles, neutral_points
from poise.priors.motion.network import (
    RATE,
    ExpectedMotion,
    KeyedFrames,
    MotionWeights,
    followed,
    shipped,
)
from poise.priors.motion.prior import STEADY, covariance_of
from poise.priors.predicting import Predicted
from poise.priors.prior import ALL, Gaussian, Guide, Plan, Start
from poise.priors.terms import tangents
from poise.priors.universal.layout import POINTS
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.types import Array, Points, PoseVector

ROLES = ("pelvis", "head", "left_hand", "right_hand", "left_foot", "right_foot")  # of HANDLES
FRAMES = 48  # of a window
PAUSE = 0.2  # seconds: between two moments farther apart nothing is known
FORGETS = 15.0  # per second: how fast what the last answer lacked is forgotten
ASKED = 0.8 / RATE  # seconds from question to question, at least: moments may be early
_SAME = 1e-6  # seconds


class _Answer(NamedTuple):
    """What the network says of a moment and of the frame before it."""

    at: float
    before: PoseVector
    now: PoseVector
    covariance: Float[Array, "freedoms freedoms"]
    deviations: Float[Array, "joints"]


class FollowingGuide(Guide):
    """The Gaussian over the pose now, from the oriented points of the last moments."""

    plan = Plan(finer=((ALL,),))

    def __init__(self, space: PoseSpace, weights: MotionWeights | None = None) -> None:
        self.space, self.weights = space, weights or shipped()
        self.carrier = Carrier(space.skeleton)
        self._joints = np.array([space.skeleton.index(role) for role in ROLES])
        places, self._upright = neutral_points(self.carrier)
        self._rest = places[HANDLES_AT]
        rows = self.carrier.fit.rows
        self._known = np.intersect1d(rows, np.arange(len(POINTS)))
        first = np.array([np.flatnonzero(rows == row)[0] for row in self._known])
        self._points = Handles(first, np.zeros((len(first), 3)))
        self.reset()

    def reset(self) -> None:
        """Forget all moments."""
        self._moments: deque[tuple[float, Array]] = deque()
        self._state: Predicted | None = None
        self._answer: _Answer | None = None
        self._last: tuple[float, PoseVector] | None = None

    def note(self, at: float, places: Float[Array, "handles 3"], turns: Float[Array, "handles 4"]) -> None:
        """Add a moment: world positions and rotations of the joints of `ROLES`, NaN where they are not given."""
        fit, joints = self.carrier.fit, self._joints
        points, canonical = np.full((len(ROLES), 3), np.nan), np.full((len(ROLES), 4), np.nan)
        seen = np.isfinite(turns).all(axis=-1) & np.isfinite(places).all(axis=-1)
        axes = rotations.matrix_from_quaternion(turns[seen]) @ np.swapaxes(fit.turns[joints[seen]], -1, -2)
        points[seen] = places[seen] - np.einsum("hab,hb->ha", axes, fit.shifts[joints[seen]])
        canonical[seen] = rotations.quaternion_from_matrix(axes)
        self._moments.append((at, np.concatenate([points, canonical], axis=-1)))
        while len(self._moments) > 1 and self._moments[1][0] < at - FRAMES / RATE:
            self._moments.popleft()

    def expect(self) -> bool:
        """Expect a pose at the last moment; False if nothing was given in the moments before.

        The network is asked about 30 times a second; at other moments its last answer goes on.
        """
        at = self._moments[-1][0]
        if self._answer is None or at - self._answer.at > ASKED:
            seen = self._sampled()
            self._answer = self._asked(at, seen) if np.isfinite(seen).any() else None
        if self._answer is None:
            self._last = None
            return False
        mean, covariance = self._mean(at), self._answer.covariance
        if self._last is not None:  # what the last pose lacked is forgotten slowly
            when, q = self._last
            lacked = tangents(self._mean(when)[None], q[None])[0]
            mean = self.space.integrate(mean, np.exp(-FORGETS * (at - when)) * lacked)
        self._state = Predicted(mean, covariance, covariance, np.ones(1, dtype=np.bool_), np.empty(0))
        return True

    def beside(self, other: Predicted) -> None:
        """Multiply what is expected by what another model expects of this moment."""
        assert self._state is not None, "no moment has been noted"
        mean = self._state.mean
        gap, own, _ = other.around(mean)
        its = np.linalg.inv(own)
        covariance = np.linalg.inv(np.linalg.inv(self._state.covariance) + its)
        mean = self.space.integrate(mean, covariance @ (its @ gap))
        self._state = Predicted(mean, covariance, covariance, np.ones(1, dtype=np.bool_), np.empty(0))

    @property
    def deviations(self) -> Float[Array, "joints"]:
        """Of the positions of all joints, along each axis."""
        assert self._answer is not None, "no moment has been noted"
        return self._answer.deviations

    def answered(self, q: PoseVector) -> None:
        """Keep the pose that was solved for the last moment."""
        self._last = self._moments[-1][0], q

    # --- as a guide ------------------------------------------------------------------------------------------------

    def starts(self, q: PoseVector, targets: Points, *, free_root: bool) -> list[Start]:
        """The expected pose."""
        del targets, free_root
        state = self.resumed(q, np.empty((0, 3)))
        return [Start(state.mean.copy(), state)]

    def resumed(self, q: PoseVector, targets: Points) -> Predicted:
        """What is expected now, wherever the pose is."""
        del q, targets
        assert self._state is not None, "no moment has been noted"
        return self._state

    def gaussian(self, q: PoseVector, state: Predicted, *, stage: int = -1) -> Gaussian:
        """The expected pose, and how sure it is."""
        del stage
        return state.around(q)

    # --- private ---------------------------------------------------------------------------------------------------

    def _asked(self, at: float, seen: Float[Array, "frames handles 7"]) -> _Answer:
        """The network's answer for the window that ends at a moment."""
        timeline = self._timeline(seen)
        found = followed(timeline, self.carrier, self.weights)
        before, now = self._poses(timeline, found)
        roots, turns = (np.square(part[-1:]) for part in (found.root_spread, found.turn_spread))
        covariance = covariance_of(self.carrier, self.space, roots, turns)[0]
        spread = np.repeat(found.point_spread[-1][self._known], 3)
        _, jacobian = self.space.handle_positions(now, self._points)
        precision = np.linalg.inv(covariance) + (jacobian.T / (np.square(spread) + STEADY**2)) @ jacobian
        covariance = np.linalg.inv(precision)
        return _Answer(at, before, now, covariance, found.point_spread[-1][self.carrier.fit.rows])

    def _mean(self, at: float) -> PoseVector:
        """The network's pose at a moment near its last answer."""
        assert self._answer is not None
        share = float(np.clip(RATE * (self._answer.at - at), -1.0, 1.0))
        back = tangents(self._answer.now[None], self._answer.before[None])[0]
        return self.space.integrate(self._answer.now, share * back)

    def _timeline(self, seen: Float[Array, "frames handles 7"]) -> KeyedFrames:
        """The window that ends at the last moment."""
        there = np.isfinite(seen).all(axis=-1)
        anchor = int(np.argmax(there.any(axis=0)))
        known = np.flatnonzero(there[:, anchor])
        held = known[np.maximum(np.searchsorted(known, np.arange(FRAMES), side="right") - 1, 0)]
        place, turn = seen[held, anchor, :3], seen[held, anchor, 3:]
        upright = rotations.multiply(turn, rotations.conjugate(self._upright[anchor]))
        upright = upright * np.array([1.0, 0.0, 1.0, 0.0]) + np.array([1e-12, 0.0, 0.0, 0.0])
        yaw = rotations.normalize(upright)[:, None]
        roots = place - rotations.rotate(yaw[:, 0], self._rest[anchor])
        turns = np.tile(self.carrier.still, (FRAMES, 1, 1))
        turns[:, :1] = rotations.multiply(yaw, turns[:, :1])
        handles = given_handles(self.carrier, roots, yaw[:, 0], seen)
        every = np.ones(FRAMES, dtype=np.bool_)
        zeros = np.zeros((FRAMES, 3)), np.zeros((FRAMES, 4))
        return KeyedFrames(Frames(roots, turns), every, ~every, handles, *zeros)

    def _sampled(self) -> Float[Array, "frames handles 7"]:
        """What was given at 30 Hz up to now; before the first moment, as at the first."""
        times = np.array([at for at, _ in self._moments])
        values = np.stack([value for _, value in self._moments])
        grid = np.maximum(times[-1] - np.arange(FRAMES)[::-1] / RATE, times[0])
        after = np.searchsorted(times, grid - _SAME)
        before = np.maximum(after - 1, 0)
        exact = np.abs(times[after] - grid) < _SAME
        step = np.where(exact, 1.0, times[after] - times[before])
        share = np.where(exact, 1.0, (grid - times[before]) / step)[:, None]
        low = np.where(exact[:, None, None], values[after], values[before])
        places = low[..., :3] + share[..., None] * (values[after][..., :3] - low[..., :3])
        turns = rotations.slerp(low[..., 3:], values[after][..., 3:], share)
        apart = (~exact & (step > PAUSE))[:, None, None]
        return np.where(apart, np.nan, np.concatenate([places, turns], axis=-1))

    def _poses(self, timeline: KeyedFrames, found: ExpectedMotion) -> Float[Array, "2 size"]:
        """The expected poses of the last two frames of a window, on this body."""
        own = self.carrier.neutral(timeline.base.roots[-2:], timeline.base.turns[-2:, 0])
        return self.space.q_from_frames(*self.carrier.added(own, found.residual))
