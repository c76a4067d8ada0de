"""Performances as guides: local models expect pose and root together, from control signals as they come.

A guide of this kind is shown what is observed, frame by frame; what it expects of all freedoms is one Gaussian, the
root's among them (Chai and Hodgins 2005, sections 5 and 6). Where signals are missing, examples that agree with the
others fill them in, and then, once, the pose that came of it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from poise.geometry.alignment import rigid_fit
from poise.priors.forms import fixed, root_gap
from poise.priors.limbs import Limb
from poise.priors.local import regression
from poise.priors.local.control import Control, root_from_seen, touched_outputs
from poise.priors.local.kernels import Data, Signal
from poise.priors.local.lookalikes import Lookalikes, Seen
from poise.priors.local.signals import Filler, Recent
from poise.priors.prior import ALL, Asked, Guide, Information, Plan, Start, Steps
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import Handles
from poise.types import Array, ShareProgress

if TYPE_CHECKING:
    from poise.priors.local.prior import LocalPrior


ROOT_OFF = (0.1, 0.1)  # metres, radians: how far off the root is where only pictures show it
CARRIED_ON = 0.8  # of the last frame's change that the next one is expected to have
CHANGE = 0.1  # radians: how far off that joints are
MODELS_OFF = 0.1  # radians: how far off local models are at markers whose depths are the body's own
SMOOTHING = 0.05  # seconds over which a root taken from the torso is smoothed


class ControlState(NamedTuple):
    """One Gaussian over all freedoms; `settled` where the pose that comes of it would say nothing more."""

    root: Float[Array, "7"]
    mean: Float[Array, "maps"]
    covariance: Float[Array, "freedoms freedoms"]
    settled: bool = True

    @property
    def q(self) -> Float[Array, "size"]:
        """The pose expected."""
        return np.concatenate([self.root, self.mean])


class ControlGuide(Guide):
    """Goes by control signals; its state is what it expects of the frame that it was shown."""

    plan = Plan(finer=((ALL,), (ALL,)))
    noise: float | None = None  # metres by which markers may be off, where the method itself says so

    def __init__(self, prior: LocalPrior) -> None:
        self.space, self.standing = prior.space, prior.standing
        self.reset()

    def learn(
        self,
        data: Data,
        *,
        signal: Signal,
        limbs: Sequence[Limb],
        touched: Bool[Array, "outputs"],
        figures: tuple[Array, Array],
        progress: ShareProgress,
    ) -> None:
        """Local regression from control signals to what is expected."""
        self.inputs = data.inputs
        self.regression = regression.fit(
            data,
            signal=signal,
            limbs=limbs,
            touched=touched,
            figures=figures,
            progress=lambda done: progress(0.4 * done),
        )
        self.regression.fit_everywhere(lambda done: progress(0.4 + 0.6 * done))
        self.fill = Filler(data.inputs, self.regression.scales)

    def reset(self) -> None:
        """Forget what was observed so far."""
        self.recent = Recent()

    @abstractmethod
    def expected(self, before: Sequence[Float[Array, "size"]], *, free_root: bool) -> ControlState:
        """What the frame that was shown last makes likely, after these frames, the newest first."""

    def ask(self, asked: Asked) -> None:
        """Go by the frames before."""
        self._before = asked.before

    def starts(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], *, free_root: bool
    ) -> list[Start]:
        """What is expected, wherever the handles are: what is observed may be more than they are."""
        del q, targets
        expected = self.expected(self._before, free_root=free_root)
        return [Start(expected.q, expected)]

    def resumed(self, q: Float[Array, "size"], targets: Float[Array, "handles 3"]) -> ControlState:
        """What is expected, whatever the pose."""
        del q, targets
        return self.expected(self._before, free_root=True)

    def forms(
        self, q: Float[Array, "size"], state: ControlState, steps: Steps
    ) -> tuple[tuple[Any, ...], Steps]:
        """One Gaussian, of the root too, which is followed from where the steps take it.

        Held to where it was expected, it is as near in walking and 0.3 % farther off in boxing.
        """
        del q
        return fixed(state.mean, state.covariance), steps

    def expectation(
        self, q: Float[Array, "size"], state: ControlState
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """What is expected of the joints."""
        del q
        return state.mean, state.covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:]

    def gaussian(self, q: Float[Array, "size"], state: ControlState, *, stage: int = -1) -> Information:
        """What is expected, around a pose."""
        del stage
        precision = np.linalg.inv(state.covariance)
        return Information(precision @ _gap(q, state), precision)

    def pulled(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], state: ControlState
    ) -> ControlState:
        """As it was: a frame is shown once."""
        del q, targets
        return state

    def misfit(self, q: Float[Array, "size"], state: ControlState) -> float:
        """Half the squared distance from what is expected, in its own metric."""
        gap = _gap(q, state)
        return float(0.5 * gap @ np.linalg.solve(state.covariance, gap))


class MarkerGuide(ControlGuide):
    """Goes by the markers of one set, seen from the torso."""

    def __init__(self, prior: LocalPrior, handles: Handles) -> None:
        super().__init__(prior)
        self.handles, self.control = handles, Control.of(prior.examples, handles)

    def show(self, likely: Float[Array, "markers 3"], pictured: Seen | None = None) -> None:
        """Where markers are likely to be in the next frame, NaN where nothing says so; or what only pictures show."""
        self._likely, self._pictured = likely, pictured

    def torso(
        self, points: Float[Array, "markers 3"], before: Sequence[Float[Array, "size"]]
    ) -> tuple[Float[Array, "3 3"], Float[Array, "3"]]:
        """How the torso is turned and where it is; markers of it that are not seen moved along with the rest."""
        seen = np.isfinite(points).all(axis=1)
        stand_in = (
            points if np.all(seen[self.control.torso.markers]) else self._moved_along(points, seen, before)
        )
        turns, places = self.control.torso.frames(stand_in[None])
        return turns[0], places[0]

    def _moved_along(self, points: Array, seen: Array, before: Sequence[Array]) -> Array:
        """Where all markers are if those not seen moved along with the rest since the last frame."""
        last = self.space.points((before[0] if before else self.standing)[None], self.handles)[0]
        if not np.any(seen):
            return last
        turn, shift, _ = rigid_fit(last[seen], points[seen], upright=not before)
        return np.where(seen[:, None], points, last @ turn.T + shift)


class RegressedMarkers(MarkerGuide):
    """Local regression from places and velocities; where most markers are only pixels, examples that look alike."""

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
            touched=touched_outputs(prior.space, handles),
            figures=examples.figures(),
            progress=progress,
        )

    def expected(self, before: Sequence[Float[Array, "size"]], *, free_root: bool) -> ControlState:
        """By the local models at where markers are likely to be, or by what pictures look like."""
        self._frames_before, self._free_root = before, free_root
        if self._pictured is None or not free_root:
            return self._from_places(self._likely)
        return self._from_pictures(self._pictured, before)

    def follow(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], state: ControlState
    ) -> ControlState:
        """Once more with what a first pose says of the markers that were missing."""
        del targets
        if state.settled:
            return state
        points = self.space.points(q[None], self.handles)[0]
        if self._pictured is None or not self._free_root:
            return self._from_places(np.where(np.isfinite(self._likely), self._likely, points))
        mean, covariance = self.regression(self._signals(points, np.full_like(points, np.nan))[0])
        spread = covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:] + MODELS_OFF**2 * np.eye(len(state.mean))
        return _agreed([*self._opinions, (mean[ROOT_FREEDOMS:], spread)], q[:ROOT_SIZE].copy(), settled=True)

    # --- private ---------------------------------------------------------------------------------------------------

    def _from_places(self, likely: Array) -> ControlState:
        """What the local models make of markers at these places."""
        x, turn, place = self._signals(likely, self._velocities(likely))
        mean, covariance = self.regression(x)
        root = root_from_seen(mean[:ROOT_FREEDOMS], turn, place)
        covariance[:3] = turn @ covariance[:3]  # the root's place in the world's axes instead of the torso's
        covariance[:, :3] = covariance[:, :3] @ turn.T
        if not self._free_root:
            root = self._smoothed(root)
        return ControlState(root, mean[ROOT_FREEDOMS:], covariance, bool(np.isfinite(likely).all()))

    def _from_pictures(self, seen: Seen, before: Sequence[Float[Array, "size"]]) -> ControlState:
        """Examples that look like what is seen, not far from where the last poses lead."""
        q = (before[0] if before else self.standing).copy()
        if len(before) > 1:
            change = CARRIED_ON * (before[0] - before[1])
            q[:3], q[ROOT_SIZE:] = q[:3] + change[:3], q[ROOT_SIZE:] + change[ROOT_SIZE:]
        self._opinions = [self._lookalikes(q[:ROOT_SIZE], seen)]
        if before:
            self._opinions.append((q[ROOT_SIZE:], CHANGE**2 * np.eye(len(q) - ROOT_SIZE)))
        return _agreed(self._opinions, q[:ROOT_SIZE].copy(), settled=False)

    def _signals(self, points: Array, velocities: Array) -> tuple[Array, Array, Array]:
        """Control signals, whole, with the torso's rotation and place."""
        turn, place = self.torso(points, self._frames_before)
        seen = self.control.seen(points[None], velocities[None], turns=turn[None], places=place[None])
        return self.fill(seen[0]), turn, place

    def _velocities(self, points: Array) -> Array:
        """Over the lag of the examples, or as much of it as there is; NaN where a marker was not seen then."""
        before = self.recent.before()
        return np.full_like(points, np.nan) if before is None else (points - before[1]) / before[0]

    def _smoothed(self, root: Array) -> Array:
        """A root on its way from the last frame's, so that a noisy torso does not shake the body."""
        if not self._frames_before:
            return root
        share = 1.0 - np.exp(-self.recent.step / SMOOTHING)
        last = self._frames_before[0][:ROOT_SIZE]
        aligned = np.concatenate([root[:3], root[3:] * (1.0 if root[3:] @ last[3:] >= 0 else -1.0)])
        mixed = last + share * (aligned - last)
        mixed[3:] /= np.linalg.norm(mixed[3:])
        return np.asarray(mixed)


def _agreed(
    opinions: Sequence[tuple[Array, Array]], root: Float[Array, "7"], *, settled: bool
) -> ControlState:
    """What several Gaussians of the pose agree on, the root being about there."""
    mean, spread = opinions[0]
    for other, wide in opinions[1:]:
        gain = np.linalg.solve(spread + wide, spread).T
        mean, spread = mean + gain @ (other - mean), spread - gain @ spread
    covariance = np.diag(np.repeat((*ROOT_OFF, 0.0), (3, 3, len(mean))) ** 2)
    covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:] = 0.5 * (spread + spread.T)
    return ControlState(root, mean, covariance, settled)


def _gap(q: Float[Array, "size"], state: ControlState) -> Float[Array, "freedoms"]:
    """The tangent step from a pose to what is expected."""
    gap = np.empty(len(q) - 1)
    root_gap(q, state.root, gap)
    gap[ROOT_FREEDOMS:] = state.mean - q[ROOT_SIZE:]
    return gap
