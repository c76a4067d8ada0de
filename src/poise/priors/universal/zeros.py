"""Joint zeros: a performer's joint calibration, which handles do not show.

The same pose has different rotations for each performer: a constant offset of the root and of every joint. For a new
person, the bones predict a little of it, since similar bodies were often calibrated alike; recorded clips determine
nearly all. The rest is part of the covariance of the poses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.priors.poses import SAME_BONES
from poise.priors.universal import layout
from poise.priors.universal.network import Weights, ZeroWeights
from poise.skeleton.skeleton import Skeleton
from poise.types import Array


class Zeros(NamedTuple):
    """A Gaussian over the offsets of the root's rotation and of the canonical maps."""

    mean: Float[Array, "zeros"]
    spread: Float[Array, "zeros zeros"]

    def after(
        self, rows: Float[Array, "maps zeros"], seen: Float[Array, "maps"], noise: Float[Array, "maps maps"]
    ) -> Zeros:
        """The posterior after offsets of some maps were observed with this noise covariance."""
        shared = rows @ self.spread
        gain = np.linalg.solve(shared @ rows.T + noise, shared).T
        spread = self.spread - gain @ shared
        floor = 1e-8 * np.eye(len(spread))
        return Zeros(self.mean + gain @ (seen - rows @ self.mean), 0.5 * (spread + spread.T) + floor)


class Performers(NamedTuple):
    """The learned zeros of several performers, found by their bones."""

    bodies: Float[Array, "bodies joints 3"]  # offsets of the bones
    means: Float[Array, "bodies zeros"]
    spreads: Float[Array, "bodies zeros zeros"]

    def zeros_of(self, skeleton: Skeleton) -> Zeros | None:
        """The zeros of the performer with these bones; None if nobody has them, as on another kind of skeleton."""
        if self.bodies.shape[1:] != skeleton.offsets.shape:
            return None
        apart = np.linalg.norm((self.bodies - skeleton.offsets).reshape(len(self.bodies), -1), axis=1)
        nearest = int(np.argmin(apart))
        return Zeros(self.means[nearest], self.spreads[nearest]) if apart[nearest] < SAME_BONES else None


def of_anyone(weights: Weights) -> Zeros:
    """The prior over the zeros of an unknown person."""
    return Zeros(weights.zeros.mean, weights.zeros.spread)


def of_bones(skeleton: Skeleton, weights: Weights) -> Zeros:
    """The zeros predicted from the bones of a body with the canonical joints."""
    figure = layout.figure(skeleton.offsets[[skeleton.index(name) for name in layout.JOINTS]])
    return Zeros(predicted_zeros(weights.zeros, figure), weights.zeros.spread)


def predicted_zeros(
    known: ZeroWeights, figures: Float[Array, "*bodies figure"]
) -> Float[Array, "*bodies zeros"]:
    """The predicted mean of the zeros of bodies with these bone features, from the most similar bodies."""
    own = (figures - known.centre) / known.scale
    apart = np.sum((own[..., None, :] - known.figures) ** 2, axis=-1)
    kernel = np.exp(-0.5 * apart[..., None] / known.reach)
    return np.asarray(known.mean + np.sum(kernel * known.weight, axis=-2))


class MappedZeros(NamedTuple):
    """Zeros mapped to a target's poses: means, and the covariance in blocks."""

    turn: Float[Array, "3 3"]  # of the canonical root
    shift: Float[Array, "maps"]
    root: Float[Array, "3 3"]
    across: Float[Array, "3 maps"]
    maps: Float[Array, "maps maps"]


def on_maps(zeros: Zeros, maps: Float[Array, "maps canonical"]) -> MappedZeros:
    """The zeros of a body whose maps are linear in the canonical ones."""
    turn = rotations.matrix_from_quaternion(rotations.quaternion_from_expmap(zeros.mean[:3]))
    own = maps @ zeros.spread[3:]
    return MappedZeros(turn, maps @ zeros.mean[3:], zeros.spread[:3, :3], own[:, :3].T, own[:, 3:] @ maps.T)
