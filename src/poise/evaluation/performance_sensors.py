"""The performance protocol without markers: orientations of six segments of an unseen clip in, the body out.

`orientations` is `poise perform` with sensors; `orientations-nearest` the example with the most similar signals.
Neither gets the performer's position, so joints are compared relative to the root; the drift of the root over the
floor is not part of any figure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from poise.evaluation.metrics import Recovered
from poise.evaluation.timing import timed
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.motion.world import joint_transforms
from poise.performance.sensors import SIX, OrientationPerformance
from poise.priors.abilities import examples_of
from poise.priors.local.prior import LocalPrior
from poise.skeleton.kernels import ROOT_SIZE
from poise.types import Array

Recovery = Callable[[Motion, int], Recovered]
"""From a clip, with the stride at which poses are wanted, to what was recovered."""

_Answer = Callable[[Float[Array, "sensors 4"]], Float[Array, "size"]]


def recover(
    prior: LocalPrior, clip: Motion, stride: int, answer: Callable[[OrientationPerformance], _Answer]
) -> Recovered:
    """Evaluate one clip from the rotations of six of its segments."""
    performance = OrientationPerformance(prior, SIX, skeleton=clip.skeleton, fps=clip.fps)
    turns = joint_transforms(clip)[1][:, performance.sensors.joints]
    orientations = rotations.quaternion_from_matrix(turns)
    performance.step(orientations[0])
    performance.reset()
    poses, seconds = timed(answer(performance), orientations, stride, performance.observe)
    _, found = performance.space.frames_from_q(poses)
    truth = clip[::stride]
    places, unseen = truth.root_positions, np.zeros((len(poses), 1))
    return Recovered(performance.space, places, found, places, truth.rotations, unseen, seconds)


def _local(performance: OrientationPerformance) -> _Answer:
    return lambda orientations: performance.step(orientations).q


def _nearest(performance: OrientationPerformance) -> _Answer:
    guide, examples = performance.guide, examples_of(performance.prior)
    assert guide is not None, "a local model follows sensors"
    scales = guide.regression.scales
    scaled = guide.inputs * scales

    def answer(orientations: Float[Array, "sensors 4"]) -> Float[Array, "size"]:
        turned = performance.observe(orientations)
        gaps = scaled - scales * guide.signals(turned, turned[0])
        nearest = int(np.argmin(np.einsum("ij,ij->i", gaps, gaps)))
        return np.concatenate([np.zeros(3), turned[0], examples.q[nearest, ROOT_SIZE:]])

    return answer


def _method(
    answer: Callable[[OrientationPerformance], _Answer],
) -> Callable[[Sequence[Motion]], Recovery]:
    def learn(train: Sequence[Motion]) -> Recovery:
        prior = LocalPrior.learn(train)
        return lambda clip, stride: recover(prior, clip, stride, answer)

    return learn


ORIENTATION_METHODS: Mapping[str, Callable[[Sequence[Motion]], Recovery]] = {
    "orientations": _method(_local),
    "orientations-nearest": _method(_nearest),
}
