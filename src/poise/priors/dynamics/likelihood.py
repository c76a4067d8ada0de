"""The likelihood of a motion under a motion model, as a term of a sequence (Urtasun et al. 2008, Eqs. 10 to 12).

Over poses q_t and latent points x_t of all frames together, with features y of the poses and their expectation m(x),

    sum_t |W (y_t - m(x_t))|^2 / (2 s_t) + D/2 ln s_t            L_pose,  s = sigma^2(x)
    + sum_t |x_(t+1) - f(x_t)|^2 / (2 v_t)                       L_dyn,   f the mixed dynamics at this frame rate
    + sum_t |W (e_(t+1) - e_t)|^2 / (2 r^2 s_t)                  L_smooth, e = y - m(x).

The paper's smoothness term, sum_t sum_j (y_(t+1) - y_t)_j^2 / (2 s_j^2), penalises changes of y itself, which shortens
strides; models learned as published use it. Otherwise only the pose's deviation from the model changes slowly, and
accelerations stay within the recorded ones (a term of its own, `recorded_accelerations`); else latent points would
oscillate when constraints are far from all recordings.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.geometry.block_banded import BlockBanded
from poise.priors.dynamics.sequences import RATE, ROOT_FEATURES, root_jacobians
from poise.priors.terms import System, Term, Unknowns, velocities
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.types import Array

if TYPE_CHECKING:
    from poise.priors.dynamics.prior import DynamicsPrior, ExpectedFeatures

STEPS = ROOT_FEATURES - 1  # root features that depend on two frames; the height depends on one
CHANGE = 0.15  # fraction of a pose's deviation from the model by which it may change in 1/30 s
LEAST_TURNING, LEAST_MOVING = 1.0, 0.1  # rad/s^2 and m/s^2: lower bounds of the recorded accelerations
LEAST_SPREAD = 0.01  # rad and m: lower bound of the deviations s_j of features (as published)
LEAST_CURVATURE = 1e-3


class MotionLikelihood(Term):
    """L_pose, L_dyn and L_smooth over poses and the latent points of all frames."""

    reach = 1

    def __init__(self, prior: DynamicsPrior, fps: float) -> None:
        self.prior, self.fps = prior, fps
        self.freedoms, self.latent = prior.space.freedoms, prior.dimensions
        self.share = RATE / fps  # one frame as a fraction of a step of the dynamics
        self.change = CHANGE * self.share
        self.published = prior.structure.published

    def cost(self, now: Unknowns) -> float:
        """The negative log-likelihood, up to a constant."""
        q, x, prior = now.q, now.x, self.prior
        variance, features = prior.variance(x), prior.features_of(q, self.fps)
        left = features - prior.predict_all(x)
        left[-1, -STEPS:] = 0.0  # the last frame has no step to a next one
        scaled = left * prior.all_scales
        single = features[:, :-STEPS] if self.published else left[:, :-STEPS]
        poses = np.einsum("tk,tk->t", scaled, scaled) / variance + single.shape[1] * np.log(variance)
        changes = np.diff(single, axis=0) ** 2 * self._tying(self._weights(variance))
        here, before = x[:-1], np.concatenate([x[:1], x[:-2]])
        mean, spread = prior.advance(here, before)
        gone = x[1:] - here - self.share * (mean - here)
        steps = np.einsum("tl,tl->t", gone, gone) / (self.share * spread)
        return 0.5 * float(poses.sum() + changes.sum() + steps.sum())

    def add(self, now: Unknowns, system: System) -> None:
        """Add the three sums, each with the poses and latent points that it couples."""
        expected, features = self.prior.expected(now.x), self.prior.features_of(now.q, self.fps)
        self._add_poses(system.matrix, system.right, now.q, features[:, :-STEPS], expected)
        left = features[:-1, -STEPS:] - expected.features[:-1, -STEPS:]
        self._add_roots(system.matrix, system.right, now.q, left, expected)
        self._add_dynamics(system.matrix, system.right, now.x)

    def _weights(self, variance: Float[Array, "frames"]) -> Float[Array, "frames pose"]:
        """Weights of the features of single frames in L_pose."""
        return np.asarray(self.prior.all_scales[:-STEPS] ** 2 / variance[:, None])

    def _tying(self, weights: Float[Array, "frames pose"]) -> Float[Array, "between pose"]:
        """Weights of changes between frames in L_smooth; as published, the same for all."""
        if not self.published:
            return np.asarray(np.sqrt(weights[1:] * weights[:-1]) / self.change**2)
        return np.tile(1.0 / (self.share * self._variances), (len(weights) - 1, 1))

    @cached_property
    def _variances(self) -> Float[Array, "pose"]:
        """The s_j^2 of the paper: variances of the features over the training motions as the model predicts them."""
        recorded = self.prior.predict_all(self.prior.latents)[:, :-STEPS]
        return np.asarray(np.maximum(recorded.var(axis=0), LEAST_SPREAD**2))

    def _add_poses(
        self, system: BlockBanded, right: Array, q: Array, features: Array, expected: ExpectedFeatures
    ) -> None:
        """Add L_pose and L_smooth of the features that depend on one frame: maps, tilt and height."""
        slopes = _FeatureSlopes(
            rotations.skew(rotations.matrix_from_quaternion(q[:, 3:ROOT_SIZE])[:, 1]),
            expected.slopes[:, :, :-STEPS],
            self.freedoms,
        )
        left, weights = features - expected.features[:, :-STEPS], self._weights(expected.variance)
        slopes.add(system.bands[0], right, weights, left)
        changes, tying = np.diff(left, axis=0), self._tying(weights)
        if self.published:
            changes = np.diff(features, axis=0)
            slopes = replace(slopes, expected=np.zeros_like(slopes.expected))
        slopes.part(slice(0, -1)).add(system.bands[0][:-1], right[:-1], tying, -changes)
        slopes.part(slice(1, None)).add(system.bands[0][1:], right[1:], tying, changes)
        slopes.part(slice(1, None)).tie(system.bands[1], slopes.part(slice(0, -1)), -tying)
        # the sigma^2 terms: D/2 ln s pulls towards the data, misfit / s away from overconfident regions
        surplus = 0.5 * (left.shape[1] - np.einsum("tk,tk->t", left**2, weights))
        own, relative = slice(self.freedoms, None), expected.in_variance / expected.variance[:, None]
        right[:, own] -= surplus[:, None] * relative
        curvature = 0.5 * left.shape[1] * np.einsum("ta,tb->tab", relative, relative)
        system.bands[0][:, own, own] += curvature + LEAST_CURVATURE * np.eye(self.latent)

    def _add_roots(
        self, system: BlockBanded, right: Array, q: Array, left: Array, expected: ExpectedFeatures
    ) -> None:
        """Add L_pose of the root's steps, which depend on two frames."""
        weights, root = (
            self.prior.all_scales[-STEPS:] ** 2 / expected.variance[:-1, None],
            slice(ROOT_FREEDOMS),
        )
        for frame in range(len(q) - 1):
            own, after = root_jacobians(q[frame], q[frame + 1], self.fps)
            first = np.zeros((STEPS, self.freedoms + self.latent))
            first[:, root], first[:, self.freedoms :] = own[1:], -expected.slopes[frame, :, -STEPS:].T
            second, weighed = after[1:], first.T * weights[frame]
            system.bands[0][frame] += weighed @ first
            system.bands[0][frame + 1][root, root] += second.T * weights[frame] @ second
            system.bands[1][frame][root] += (weighed @ second).T
            right[frame] -= weighed @ left[frame]
            right[frame + 1, root] -= (second.T * weights[frame]) @ left[frame]

    def _add_dynamics(self, system: BlockBanded, right: Array, x: Float[Array, "frames latent"]) -> None:
        """Add L_dyn: the step from each x to the next, scaled from the model's frame rate to this one."""
        own, now, before = slice(self.freedoms, None), x[:-1], np.concatenate([x[:1], x[:-2]])
        mean, variance = self.prior.advance(now, before)
        slope = self.prior.advance_slopes(now, before)
        forward = (1.0 - self.share) * np.eye(self.latent) + self.share * slope
        left = x[1:] - now - self.share * (mean - now)
        precision = 1.0 / (self.share * variance)
        wide = precision[:, None, None]
        system.bands[0][1:, own, own] += wide * np.eye(self.latent)
        system.bands[0][:-1, own, own] += wide * np.einsum("tba,tbc->tac", forward, forward)
        system.bands[1][:, own, own] -= wide * forward
        right[1:, own] -= precision[:, None] * left
        right[:-1, own] += precision[:, None] * np.einsum("tba,tb->ta", forward, left)


def recorded_accelerations(prior: DynamicsPrior) -> Float[Array, "freedoms"]:
    """Root-mean-square acceleration of each degree of freedom in the model's reconstruction of its training motions."""
    found = [
        RATE**2 * np.diff(velocities(prior.poses_of(prior.predict_all(path))), axis=0) for path in prior.paths
    ]
    typical = np.sqrt(np.mean(np.concatenate(found) ** 2, axis=0))
    least = np.full(len(typical), LEAST_TURNING)
    least[:3] = LEAST_MOVING
    return np.maximum(typical, least)


@dataclass(frozen=True, eq=False)
class _FeatureSlopes:
    """Jacobians G of (maps, up, height) minus their expected values, by degrees of freedom and latent points.

    A map depends on its own degrees of freedom with slope one, up on the root's rotation; all depend on x.
    """

    up: Float[Array, "frames 3 3"]
    expected: Float[Array, "frames latent pose"]
    freedoms: int

    def part(self, frames: slice) -> _FeatureSlopes:
        """The slopes of a slice of the frames."""
        return _FeatureSlopes(self.up[frames], self.expected[frames], self.freedoms)

    def add(self, blocks: Array, right: Array, weights: Array, left: Array) -> None:
        """Add a least-squares term: G' W G to the diagonal blocks, -G' W left to the right-hand side."""
        self.tie(blocks, self, weights)
        weighed, maps = weights * left, self.freedoms - ROOT_FREEDOMS
        right[:, ROOT_FREEDOMS : self.freedoms] -= weighed[:, :maps]
        right[:, 3:ROOT_FREEDOMS] -= np.einsum("tab,ta->tb", self.up, weighed[:, maps : maps + 3])
        right[:, 1] -= weighed[:, maps + 3]
        right[:, self.freedoms :] += np.einsum("tlp,tp->tl", self.expected, weighed)

    def tie(self, blocks: Array, other: _FeatureSlopes, weights: Array) -> None:
        """Add G' W G_other to blocks with the rows of these frames and the columns of the others."""
        maps = self.freedoms - ROOT_FREEDOMS
        joints, own = np.arange(ROOT_FREEDOMS, self.freedoms), slice(self.freedoms, None)
        tilt, up, height = slice(3, ROOT_FREEDOMS), slice(maps, maps + 3), maps + 3
        rows, columns = self.expected * weights[:, None], other.expected * weights[:, None]
        blocks[:, joints, joints] += weights[:, :maps]
        blocks[:, tilt, tilt] += np.einsum("tab,ta,tac->tbc", self.up, weights[:, up], other.up)
        blocks[:, 1, 1] += weights[:, height]
        blocks[:, own, ROOT_FREEDOMS : self.freedoms] -= rows[:, :, :maps]
        blocks[:, own, tilt] -= rows[:, :, up] @ other.up
        blocks[:, own, 1] -= rows[:, :, height]
        blocks[:, ROOT_FREEDOMS : self.freedoms, own] -= columns[:, :, :maps].transpose(0, 2, 1)
        blocks[:, tilt, own] -= (columns[:, :, up] @ self.up).transpose(0, 2, 1)
        blocks[:, 1, own] -= columns[:, :, height]
        blocks[:, own, own] += rows @ other.expected.transpose(0, 2, 1)
