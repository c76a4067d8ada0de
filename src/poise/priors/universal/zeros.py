"""Joint zeros: how a performer's joints were calibrated, which no handle shows.

The same pose has other rotations for each performer: a constant offset of the root and of every joint. Of a stranger,
his bones say a little of it, since bodies alike were often calibrated alike; clips of him say nearly all. What remains
unknown belongs to the covariance of his poses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.priors.universal import layout
from poise.priors.universal.network import Weights, ZeroWeights
from poise.skeleton.skeleton import Skeleton
from poise.types import Array


class Zeros(NamedTuple):
    """A Gaussian over the offsets of the root's turn and of the canonical maps."""

    mean: Float[Array, "zeros"]
    spread: Float[Array, "zeros zeros"]

    def after(
        self, rows: Float[Array, "maps zeros"], seen: Float[Array, "maps"], noise: Float[Array, "maps maps"]
    ) -> Zeros:
        """What is known once offsets of some maps were seen, with so much noise."""
        shared = rows @ self.spread
        gain = np.linalg.solve(shared @ rows.T + noise, shared).T
        spread = self.spread - gain @ shared
        floor = 1e-8 * np.eye(len(spread))
        return Zeros(self.mean + gain @ (seen - rows @ self.mean), 0.5 * (spread + spread.T) + floor)


def of_anyone(weights: Weights) -> Zeros:
    """The zeros of somebody of whom nothing is known."""
    return Zeros(weights.zeros.mean, weights.zeros.spread)


def of_bones(skeleton: Skeleton, weights: Weights) -> Zeros:
    """What the bones of a body with the canonical joints say of its zeros."""
    figure = layout.figure(skeleton.offsets[[skeleton.index(name) for name in layout.JOINTS]])
    return Zeros(foretold(weights.zeros, figure), weights.zeros.spread)


def foretold(known: ZeroWeights, figures: Float[Array, "*bodies figure"]) -> Float[Array, "*bodies zeros"]:
    """The mean of the zeros of bodies with these figures, by those of the bodies that are most alike."""
    own = (figures - known.centre) / known.scale
    apart = np.sum((own[..., None, :] - known.figures) ** 2, axis=-1)
    kernel = np.exp(-0.5 * apart[..., None] / known.reach)
    return np.asarray(known.mean + np.sum(kernel * known.weight, axis=-2))


class MappedZeros(NamedTuple):
    """Zeros as they change a target's poses: means, and the covariance in its parts."""

    turn: Float[Array, "3 3"]  # of the canonical root
    shift: Float[Array, "maps"]
    root: Float[Array, "3 3"]
    across: Float[Array, "3 maps"]
    maps: Float[Array, "maps maps"]


def on_maps(zeros: Zeros, maps: Float[Array, "maps canonical"]) -> MappedZeros:
    """Zeros of a body whose maps follow from the canonical ones."""
    turn = rotations.matrix_from_quaternion(rotations.quaternion_from_expmap(zeros.mean[:3]))
    own = maps @ zeros.spread[3:]
    return MappedZeros(turn, maps @ zeros.mean[3:], zeros.spread[:3, :3], own[:, :3].T, own[:, 3:] @ maps.T)
