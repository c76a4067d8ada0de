"""The auto prior: clusters of the clips at hand and people in general, weighed by what the clips themselves hold out.

A blend of a gaussian and the universal prior. Its weights are chosen on clips that the gaussian has not seen (or on the
last part of a single clip): those with which hidden joints are recovered best from a few handles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.priors.blend import BlendPrior
from poise.priors.gaussian import GaussianOptions, GaussianPrior
from poise.priors.held_out import kept_from
from poise.priors.poses import common_frames
from poise.priors.prior import Prior
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE

Array = np.ndarray

WEIGHTS = (0.0, 0.1, 0.25, 0.5, 0.75)  # of the universal prior, to choose from
HELD = 4  # one clip in so many is held out, or that part of a single one
TRIED = 60  # frames that the weights are chosen on
HANDLES = ("head", "left_hand", "right_hand", "left_foot", "right_foot")


class AutoPrior(BlendPrior):
    """A gaussian of the clips and the universal prior, by weights that held-out frames have chosen."""

    kind = "auto"
    about = "a gaussian of the clips, and people in general for what they do not show"
    Options = GaussianOptions

    @classmethod
    def learn(
        cls,
        motions: Sequence[Motion],
        *,
        clusters: int = 100,
        progress: Callable[[float], None] = lambda _: None,
    ) -> AutoPrior:
        """Learn from clips of one topology; the first clip's limb lengths are kept."""
        common_frames(motions)  # refuses what is not of one topology
        own, held = _parted(motions)
        weight = _best_weight(UniversalPrior.learn(own), GaussianPrior.learn(own, clusters=clusters), held)
        progress(0.5)
        people, whole = UniversalPrior.learn(motions), GaussianPrior.learn(motions, clusters=clusters)
        progress(1.0)
        return cls([people, whole], [weight, 1.0 - weight])

    def on_body(self, skeleton: Any) -> AutoPrior:
        """The same blend on a skeleton of the same topology and other limb lengths."""
        parts = [part.on_body(skeleton) for part in self.components]
        return kept_from(self, AutoPrior(parts, self.weights.tolist()))


def _parted(motions: Sequence[Motion]) -> tuple[list[Motion], list[Motion]]:
    """What is learned from and what is held out while weights are chosen."""
    if len(motions) >= HELD:
        held = list(motions[HELD - 1 :: HELD])
        return [motion for motion in motions if all(motion is not other for other in held)], held
    ends = [max(1, len(motion) * (HELD - 1) // HELD) for motion in motions]
    parts = list(zip(motions, ends, strict=True))
    return [motion[:end] for motion, end in parts], [
        motion[end:] for motion, end in parts if end < len(motion)
    ]


def _best_weight(people: UniversalPrior, gaussian: GaussianPrior, held: Sequence[Motion]) -> float:
    """The universal prior's weight with which held-out poses are found best from their handles."""
    errors = np.zeros(len(WEIGHTS))
    for clip in held:
        few = clip[:: max(1, len(clip) * len(held) // TRIED)]
        universal, own = people.on_body(clip.skeleton), gaussian.on_body(clip.skeleton)
        for number, weight in enumerate(WEIGHTS):
            blend: Prior = BlendPrior([universal, own], [weight, 1.0 - weight])
            errors[number] += len(few) * _error(blend, few)
    return WEIGHTS[int(np.argmin(errors))]


def _error(prior: Prior, clip: Motion) -> float:
    """The mean angle by which joints are missed, after one step to the handles from what is expected."""
    space = prior.space
    handles = space.handles([role for role in HANDLES if role in space.skeleton.roles])
    guide, missed = prior.guide(handles), []
    for q in space.q_from_frames(clip.root_positions, clip.rotations):
        targets, _ = space.handle_positions(q, handles)
        start = guide.starts(q, targets, free_root=False)[0]
        mean, covariance = guide.expectation(start.q, start.state)
        at = np.concatenate([q[:ROOT_SIZE], mean])
        points, jacobian = space.handle_positions(at, handles)
        rows = jacobian[:, ROOT_FREEDOMS:]
        spread = rows @ covariance
        pull = np.linalg.solve(spread @ rows.T + 1e-6 * np.eye(len(rows)), (targets - points).ravel())
        at[ROOT_SIZE:] += spread.T @ pull
        found, true = (space.frames_from_q(pose)[1] for pose in (at, q))
        missed.append(rotations.geodesic_distance(found, true)[space.moving].mean())
    return float(np.mean(missed)) if missed else 0.0
