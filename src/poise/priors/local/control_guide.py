"""Guides for performances: local models predict pose and root together from markers, pictures or sensors.

A guide of this kind is shown the observations frame by frame; its prediction is one Gaussian over all degrees of
freedom, including the root's (Chai and Hodgins 2005, sections 5 and 6). Missing signals are filled in from examples
that agree with the others, and then once more from the resulting pose.

A marker that one camera sees is on a ray: two of its coordinates are known, the third is not. Every example, with the
assumed root rotation, is shifted to where its markers are nearest to all rays and positions (a linear problem with the
same matrix for all); the remaining distance measures dissimilarity. The nearest examples, weighted by similarity, give
mean and covariance of the pose: the local model of Chai and Hodgins 2005, section 5, in the picture instead of the
room. It has no memory, so a wrong depth does not persist.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from poise.geometry import rotations
from poise.geometry.alignment import rigid_fit, shifts_across
from poise.priors.forms import fixed, root_gap
from poise.priors.local import regression
from poise.priors.local.control import ROOT_OUTPUTS, Control, Filler, Recent, Sensors, root_from_seen
from poise.priors.local.examples import Examples
from poise.priors.local.regression import Data
from poise.priors.poses import moved_maps
from poise.priors.prior import ALL, Asked, Gaussian, Guide, Plan, Start, Steps
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import Handles
from poise.types import Array, ShareProgress

if TYPE_CHECKING:
    from poise.priors.local.prior import LocalPrior


MOST = 3000  # largest number of examples compared, spread over the library
NEAREST = 600  # examples in the Gaussian
BETA = 1e-3  # radians squared, added to every variance
ROOT_OFF = (0.1, 0.1)  # metres, radians: standard deviation of the root if only pictures show it
CARRIED_ON = 0.8  # fraction of the last frame's change that the next one is expected to have
CHANGE = 0.1  # radians: standard deviation of that expectation, per joint
MODELS_OFF = 0.1  # radians: standard deviation of local models if marker depths come from the body
SMOOTHING = 0.05  # seconds: smoothing of a root taken from the torso

Q = Float[Array, "size"]
Root = Float[Array, "7"]
Targets = Float[Array, "handles 3"]

# --- lookalikes -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Seen:
    """Markers, each with a point that it is at or on a ray through, and the projection of gaps to the known axes."""

    markers: Int[Array, "seen"]
    through: Float[Array, "seen 3"]
    across: Float[Array, "seen 3 3"]


class Lookalikes:
    """The examples of a library, compared by their markers."""

    def __init__(self, examples: Examples, handles: Handles) -> None:
        some = examples.every(-(-len(examples) // MOST))
        self._maps = some.maps
        shapes = some.space.points_in_root_frame(some.maps, handles)
        self._shapes = np.ascontiguousarray(shapes.swapaxes(0, 1))

    def __call__(self, root: Root, seen: Seen) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """Mean and covariance of the pose for an approximate root."""
        squares = self.squared_gaps(root, seen)
        near = np.argpartition(squares, min(NEAREST, len(squares) - 1))[:NEAREST]
        apart = squares[near]
        shares = 1.0 / (apart + 0.1 * apart.mean() + 1e-9) ** 2
        shares /= shares.sum()
        mean = shares @ self._maps[near]
        spread = np.sqrt(shares)[:, None] * (self._maps[near] - mean)
        return mean, spread.T @ spread + BETA * np.eye(len(mean))

    def squared_gaps(self, root: Root, seen: Seen) -> Float[Array, "examples"]:
        """Squared distance of each example's markers from the observations, after the best shift."""
        turn = rotations.matrix_from_quaternion(root[3:ROOT_SIZE])
        placed = self._shapes[seen.markers] @ turn.T + (root[:3] - seen.through)[:, None]
        return shifts_across(placed, seen.across)[1]


# --- guides -----------------------------------------------------------------------------------------------------------


class ControlState(NamedTuple):
    """One Gaussian over all degrees of freedom; `settled` if the resulting pose would add no information."""

    root: Root
    mean: Float[Array, "maps"]
    covariance: Float[Array, "freedoms freedoms"]
    settled: bool = True

    @property
    def q(self) -> Q:
        """The expected pose."""
        return np.concatenate([self.root, self.mean])


class ControlGuide(Guide):
    """A guide by control signals; its state is the prediction for the frame that it was shown."""

    plan = Plan(finer=((ALL,), (ALL,)))
    noise: float | None = None  # metres: marker noise, if the method itself defines it

    def __init__(self, prior: LocalPrior) -> None:
        self.space, self.standing = prior.space, prior.standing
        self.reset()

    def learn(self, data: Data, *, progress: ShareProgress, **options: Any) -> None:
        """Fit the local regression from control signals to the outputs; options are those of `regression.fit`."""
        self.regression = regression.fit(data, **options, progress=lambda done: progress(0.4 * done))
        self.regression.fit_everywhere(lambda done: progress(0.4 + 0.6 * done))
        self.inputs, self.fill = data.inputs, Filler(data.inputs, self.regression.scales)

    def reset(self) -> None:
        """Forget previous observations."""
        self.recent = Recent()

    @abstractmethod
    def expected(self, before: Sequence[Q], *, free_root: bool) -> ControlState:
        """The prediction for the frame shown last, after the frames `before` (newest first)."""

    def ask(self, asked: Asked) -> None:
        """Use the previous frames."""
        self._before = asked.before

    def starts(self, q: Q, targets: Targets, *, free_root: bool) -> list[Start]:
        """The prediction, wherever the handles are: there may be more observations than handles."""
        del q, targets
        expected = self.expected(self._before, free_root=free_root)
        return [Start(expected.q, expected)]

    def resumed(self, q: Q, targets: Targets) -> ControlState:
        """The prediction, whatever the pose."""
        del q, targets
        return self.expected(self._before, free_root=True)

    def forms(self, q: Q, state: ControlState, steps: Steps) -> tuple[tuple[Any, ...], Steps]:
        """One Gaussian over all degrees of freedom; the root's part is relative to its current position.

        Keeping it relative to the expected position is as accurate in walking and 0.3 % worse in boxing.
        """
        del q
        return fixed(state.mean, state.covariance), steps

    def gaussian(self, q: Q, state: ControlState, *, stage: int = -1) -> Gaussian:
        """The prediction."""
        del stage
        gap = np.empty(len(q) - 1)
        root_gap(q, state.root, gap)
        gap[ROOT_FREEDOMS:] = state.mean - q[ROOT_SIZE:]
        return Gaussian(gap, state.covariance.copy(), rooted=True)


class MarkerGuide(ControlGuide):
    """A guide by the markers of one set, relative to the torso."""

    def __init__(self, prior: LocalPrior, handles: Handles) -> None:
        super().__init__(prior)
        self.handles, self.control = handles, Control.of(prior.examples, handles)

    def show(self, likely: Float[Array, "markers 3"], pictured: Seen | None = None) -> None:
        """Set the likely marker positions of the next frame (NaN if unknown), or what only pictures show."""
        self._likely, self._pictured = likely, pictured

    @property
    def dimension(self) -> int | None:
        """That of the subspace in which the last frame was sought, if it was sought in one."""
        return None

    def torso(
        self, points: Float[Array, "markers 3"], before: Sequence[Q]
    ) -> tuple[Float[Array, "3 3"], Float[Array, "3"]]:
        """The torso's rotation and position; its unseen markers are assumed to have moved with the rest."""
        seen, likely = np.isfinite(points).all(axis=1), points
        if not np.all(seen[self.control.torso.markers]):
            likely = self.space.points((before[0] if before else self.standing)[None], self.handles)[0]
            if np.any(seen):
                turn, shift, _ = rigid_fit(likely[seen], points[seen], upright=not before)
                likely = np.where(seen[:, None], points, likely @ turn.T + shift)
        turns, places = self.control.torso.frames(likely[None])
        return turns[0], places[0]


class RegressedMarkers(MarkerGuide):
    """Local regression from positions and velocities; if most markers are only pixels, examples that look alike."""

    def __init__(
        self, prior: LocalPrior, handles: Handles, *, progress: ShareProgress = lambda _: None
    ) -> None:
        super().__init__(prior, handles)
        examples = prior.examples
        self._lookalikes = Lookalikes(examples, handles)
        self.learn(
            Data(*self.control.of_examples(examples), examples.blocks),
            signal=self.control.signal,
            limbs=self.control.limbs(prior.space),
            touched=np.concatenate([[True] * ROOT_FREEDOMS, moved_maps(prior.space, handles)]),
            figures=examples.figures(),
            progress=progress,
        )

    def expected(self, before: Sequence[Q], *, free_root: bool) -> ControlState:
        """The prediction of local models at the likely marker positions, or of examples that look like the pictures."""
        self._frames_before, self._free_root = before, free_root
        if self._pictured is None or not free_root:
            return self._from_places(self._likely)
        q = (before[0] if before else self.standing).copy()  # near the extrapolation of the last poses
        if len(before) > 1:
            change = CARRIED_ON * (before[0] - before[1])
            q[:3], q[ROOT_SIZE:] = q[:3] + change[:3], q[ROOT_SIZE:] + change[ROOT_SIZE:]
        self._opinions = [self._lookalikes(q[:ROOT_SIZE], self._pictured)]
        if before:
            self._opinions.append((q[ROOT_SIZE:], CHANGE**2 * np.eye(len(q) - ROOT_SIZE)))
        return _agreed(self._opinions, q[:ROOT_SIZE].copy(), settled=False)

    def moved(self, q: Q, targets: Targets, state: ControlState) -> ControlState:
        """Predict once more, with the missing markers filled in from a first pose."""
        del targets
        if state.settled:
            return state
        points = self.space.points(q[None], self.handles)[0]
        if self._pictured is None or not self._free_root:
            return self._from_places(np.where(np.isfinite(self._likely), self._likely, points))
        mean, covariance = self.regression(self._signals(points, np.full_like(points, np.nan))[0])
        spread = covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:] + MODELS_OFF**2 * np.eye(len(state.mean))
        return _agreed([*self._opinions, (mean[ROOT_FREEDOMS:], spread)], q[:ROOT_SIZE].copy(), settled=True)

    def _from_places(self, likely: Array) -> ControlState:
        """The prediction of the local models for markers at these positions."""
        earlier = self.recent.before()  # velocities over the examples' lag, or as much of it as is known
        velocities = np.full_like(likely, np.nan) if earlier is None else (likely - earlier[1]) / earlier[0]
        x, turn, place = self._signals(likely, velocities)
        mean, covariance = self.regression(x)
        root = root_from_seen(mean[:ROOT_FREEDOMS], turn, place)
        covariance[:3] = turn @ covariance[:3]  # the root's position in world axes instead of the torso's
        covariance[:, :3] = covariance[:, :3] @ turn.T
        if self._frames_before and not self._free_root:  # smoothed: a noisy torso must not shake the body
            share, last = 1.0 - np.exp(-self.recent.step / SMOOTHING), self._frames_before[0][:ROOT_SIZE]
            root[3:] *= 1.0 if root[3:] @ last[3:] >= 0 else -1.0
            root = last + share * (root - last)
            root[3:] /= np.linalg.norm(root[3:])
        return ControlState(root, mean[ROOT_FREEDOMS:], covariance, bool(np.isfinite(likely).all()))

    def _signals(self, points: Array, velocities: Array) -> tuple[Array, Array, Array]:
        """Complete control signals, with the torso's rotation and position."""
        turn, place = self.torso(points, self._frames_before)
        seen = self.control.seen(points[None], velocities[None], turns=turn[None], places=place[None])
        return self.fill(seen[0]), turn, place


def _agreed(opinions: Sequence[tuple[Array, Array]], root: Root, *, settled: bool) -> ControlState:
    """The product of several Gaussians of the pose, with this approximate root."""
    mean, spread = opinions[0]
    for other, wide in opinions[1:]:
        gain = np.linalg.solve(spread + wide, spread).T
        mean, spread = mean + gain @ (other - mean), spread - gain @ spread
    covariance = np.diag(np.repeat((*ROOT_OFF, 0.0), (3, 3, len(mean))) ** 2)
    covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:] = 0.5 * (spread + spread.T)
    return ControlState(root, mean, covariance, settled)


# --- sensors ----------------------------------------------------------------------------------------------------------


class SensorGuide(ControlGuide):
    """Predictions from sensors; the root has its sensor's rotation, at the position integrated from the velocity."""

    def __init__(
        self, prior: LocalPrior, sensors: Sensors, *, progress: ShareProgress = lambda _: None
    ) -> None:
        super().__init__(prior)
        self.sensors = sensors
        inputs, outputs = sensors.of_examples(prior.examples)
        self.learn(
            Data(inputs, outputs, prior.examples.blocks),
            signal=sensors.signal,
            limbs=sensors.limbs,
            touched=sensors.touched,
            figures=prior.examples.figures(),
            progress=progress,
        )
        self.standing[:ROOT_SIZE] = [0.0, prior.examples.q[:, 1].mean(), 0.0, *rotations.IDENTITY]

    def reset(self) -> None:
        """Forget previous observations; the next frame is at the origin."""
        super().reset()
        self._placed = 0.0

    def show(self, turned: Float[Array, "sensors 4"]) -> None:
        """Set the segments' orientations in the next frame, NaN for a sensor without data."""
        self._turned = turned

    def expected(self, before: Sequence[Q], *, free_root: bool) -> ControlState:
        """The prediction of the local models from the sensors' orientations and angular velocities."""
        del free_root
        last, turned = (before[0] if before else self.standing), self._turned[0]
        turn = turned if np.all(np.isfinite(turned)) else last[3:ROOT_SIZE]
        mean, covariance = self.regression(self.signals(self._turned, turn))
        seconds, self._placed = self.recent.clock - self._placed, self.recent.clock
        moved = last[:3] + seconds * rotations.rotate(turn, mean[1:ROOT_OUTPUTS])
        whole = np.zeros((self.space.freedoms, self.space.freedoms))
        whole[ROOT_FREEDOMS:, ROOT_FREEDOMS:] = covariance[ROOT_OUTPUTS:, ROOT_OUTPUTS:]
        return ControlState(np.array([moved[0], mean[0], moved[2], *turn]), mean[ROOT_OUTPUTS:], whole)

    def signals(self, turned: Float[Array, "sensors 4"], root: Float[Array, "4"]) -> Float[Array, "columns"]:
        """Complete control signals of the frame just noted, for a root with this rotation."""
        turns = rotations.matrix_from_quaternion(np.concatenate([root[None], turned[1:]]))
        lag, then = self.recent.before() or (1.0, np.full_like(turned, np.nan))
        before = rotations.matrix_from_quaternion(then)
        return self.fill(self.sensors.signals(turns[None], before[None], lag=lag)[0])
