"""A guide for inertial sensors: pose, height and velocity predicted from the orientations of segments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.priors.local.control_guide import ControlGuide, ControlState
from poise.priors.local.kernels import Data
from poise.priors.local.orientations import ROOT_OUTPUTS, Sensors
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.types import Array

if TYPE_CHECKING:
    from poise.priors.local.prior import LocalPrior


class SensorGuide(ControlGuide):
    """Predictions from sensors; the root has its sensor's rotation, at the position integrated from the velocity."""

    def __init__(
        self, prior: LocalPrior, sensors: Sensors, *, progress: Callable[[float], None] = lambda _: None
    ) -> None:
        self.sensors = sensors
        inputs, outputs = sensors.of_examples(prior.examples)
        super().__init__(prior)
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

    def expected(self, before: Sequence[Float[Array, "size"]], *, free_root: bool) -> ControlState:
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
