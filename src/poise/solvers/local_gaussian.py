"""Any prior as a Gaussian around the pose at hand, over all freedoms: what solves over many poses at once stand on.

It comes in information form: the precision P and the pull P (m - q), which add up over the parts of a blend (Eq. 10 of
Grochow et al. 2004) and over the frames of a sequence.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.priors.blend import BlendPrior, Chart
from poise.priors.prior import Prior
from poise.priors.style.prior import StylePrior
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.solvers.map_run import in_root_frame

Array = np.ndarray
Information = tuple[Float[Array, "freedoms"], Float[Array, "freedoms freedoms"]]

FREE = 1.0  # metres and radians squared: no opinion about where the root is and which way it faces
STIFFEST = 2e3  # per radian squared: no prior is surer of a joint than about a degree, or one frame could pop


class LocalGaussian:
    """A prior, or several by weight, seen from poses of one common space."""

    def __init__(self, priors: Sequence[Prior], space: PoseSpace, handles: Handles) -> None:
        self._space = space
        self._parts = [_part(prior, space, handles) for prior in priors]

    def __call__(self, q: Float[Array, "size"], weights: Sequence[float]) -> Information:
        """Pull and precision at a pose, with the priors by these weights; without any, a body that resists nothing."""
        pull, precision = np.zeros(self._space.freedoms), np.eye(self._space.freedoms) / FREE
        for part, weight in zip(self._parts, weights, strict=True):
            if weight > 0.0:
                more, stiffness = part(q)
                pull += weight * more
                precision += weight * stiffness
        return pull, precision


def common_space(priors: Sequence[Prior]) -> BlendPrior | Prior:
    """The prior whose space and limits suit poses of all of them: itself if there is one, else their even blend."""
    return priors[0] if len(priors) == 1 else BlendPrior(priors, [1.0 / len(priors)] * len(priors))


def _part(prior: Prior, space: PoseSpace, handles: Handles) -> _StylePart | _BlendPart | _PredictedPart:
    if isinstance(prior, StylePrior):
        return _StylePart(prior, space)
    if isinstance(prior, BlendPrior):
        return _BlendPart(prior, space, handles)
    return _PredictedPart(prior, space, handles)


class _StylePart:
    """A style at the latent point of the pose itself; it also knows how the root leans."""

    def __init__(self, prior: StylePrior, space: PoseSpace) -> None:
        self._prior, self._chart = prior, Chart(prior.space, space)
        maps, count = prior.mean.size, prior.model.features.pose_count
        self._leans = prior.model.scales[maps:count]

    def __call__(self, q: Float[Array, "size"]) -> Information:
        own = self._chart.own_maps(q[ROOT_SIZE:])
        x, mean, covariance = self._prior.gaussian_around(np.concatenate([q[:ROOT_SIZE], own]))
        pull, precision = _over_maps(q, self._chart, mean, covariance)
        if len(self._leans):
            variance = float(self._prior.model.variance(x))
            across = min(3.0 * variance / float(self._leans @ self._leans), FREE)
            turn, stiffness = _upright(q, self._prior.up_at(x), across)
            pull[3:ROOT_FREEDOMS], precision[3:ROOT_FREEDOMS, 3:ROOT_FREEDOMS] = turn, stiffness
        return pull, precision


class _PredictedPart:
    """A prior that predicts from where the handles are in the pose itself."""

    def __init__(self, prior: Prior, space: PoseSpace, handles: Handles) -> None:
        self._space, self._handles = space, handles
        self._predict, self._chart = prior.prepare(handles), Chart(prior.space, space)

    def __call__(self, q: Float[Array, "size"]) -> Information:
        points, _ = self._space.handle_positions(q, self._handles)
        return _over_maps(q, self._chart, *self._predict(in_root_frame(q, points)))


class _BlendPart:
    """A blend is the sum of its own parts."""

    def __init__(self, prior: BlendPrior, space: PoseSpace, handles: Handles) -> None:
        components, self._weights, _ = zip(*prior.parts, strict=True)
        self._sum = LocalGaussian(components, space, handles)

    def __call__(self, q: Float[Array, "size"]) -> Information:
        return self._sum(q, self._weights)


def _over_maps(
    q: Float[Array, "size"], chart: Chart, mean: Float[Array, "own"], covariance: Float[Array, "own own"]
) -> Information:
    """A Gaussian of a prior's own maps over all freedoms of the common space."""
    precision = np.linalg.inv(covariance + np.eye(len(mean)) / STIFFEST)
    towards, stiffness = chart.information(q[ROOT_SIZE:], mean, precision)
    pull = np.concatenate([np.zeros(ROOT_FREEDOMS), towards])
    whole = np.zeros((len(pull), len(pull)))
    whole[ROOT_FREEDOMS:, ROOT_FREEDOMS:] = stiffness
    return pull, whole


def _upright(
    q: Float[Array, "size"], expected: Float[Array, "3"], variance: float
) -> tuple[Float[Array, "3"], Float[Array, "3 3"]]:
    """Pull and precision of the root's turn: known across the vertical as a style expects it, free about it."""
    up = rotations.matrix_from_quaternion(q[3:ROOT_SIZE])[1]
    across = (np.eye(3) - np.outer(up, up)) / variance
    return across @ np.cross(expected, up), across
