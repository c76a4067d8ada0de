"""The motion prior: from poses at times to a Gaussian over the motion between them, for any humanoid.

Between the keys, poses are interpolated; a network adds what people do otherwise, which is zero at the keys. So keys
are met exactly. The network sees 30 frames a second; other rates are interpolated from its answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.errors import InvalidValueError, SkeletonError
from poise.motion.motion import Motion
from poise.performer.bodies import Body
from poise.priors.motion.carrying import Carrier, Change, Frames, carrier_on
from poise.priors.motion.layout import TURNING
from poise.priors.motion.network import LONGEST, RATE, MotionWeights, alone, expected, lines, shipped
from poise.priors.terms import Held, Term, WindowGaussian
from poise.skeleton.kernels import ROOT_FREEDOMS
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import Pose, Skeleton
from poise.types import Array

PACE = 5.0  # per second: how fast deviations from the mean forget
STEADY = 0.005  # metres, radians: least deviation, also of joints that the network does not know


@dataclass(frozen=True, eq=False)
class Between:
    """A motion through keys, and what is known about it."""

    motion: Motion
    keys: Int[Array, "keys"]  # frames
    contacts: Float[Array, "frames 2"]  # probability that each foot stands
    root_deviations: Float[Array, "frames 3"]  # metres along each axis
    point_deviations: Float[Array, "frames points"]  # metres along each axis; of the canonical points
    turn_deviations: Float[Array, "frames turning"]  # radians about each axis; of the canonical joints

    def sampled(self, when: Float[Array, "samples"], keys: Int[Array, "keys"]) -> Between:
        """The frames at these places between its frames, as a motion with other keys."""
        low = np.minimum(when.astype(int), max(len(self.motion) - 2, 0))
        high, share = np.minimum(low + 1, len(self.motion) - 1), when - low
        frames = Frames(self.motion.root_positions, self.motion.rotations).between(low, high, share)
        parts = (self.contacts, self.root_deviations, self.point_deviations, self.turn_deviations)
        blended = [part[low] + share[:, None] * (part[high] - part[low]) for part in parts]
        return Between(self.motion.with_frames(*frames), keys, *blended)


class MotionPrior:
    """How people get from one pose to the next, on one skeleton."""

    def __init__(self, skeleton: Skeleton | None = None, weights: MotionWeights | None = None) -> None:
        self.skeleton = skeleton or Body().skeleton
        self.weights = weights or shipped()

    @cached_property
    def carrier(self) -> Carrier:
        """The maps to the canonical body."""
        return carrier_on(self.skeleton)

    def between(self, keys: Sequence[tuple[float, Pose]], *, fps: float = RATE) -> Between:
        """The motion through poses at times, in seconds; it begins at the first and ends at the last."""
        return self.through(*on_frames(keys, self.skeleton, fps), fps=fps)

    def filled(self, motion: Motion, given: Bool[Array, "frames"]) -> Between:
        """A motion of which only some frames are given, the first and the last among them."""
        if len(given) != len(motion) or not (given[0] and given[-1]):
            raise InvalidValueError("a motion's first and last frames must be given")
        at = np.flatnonzero(given)
        return self.through(at, Frames(motion.root_positions[at], motion.rotations[at]), fps=motion.fps)

    def through(self, at: Int[Array, "keys"], poses: Frames, *, fps: float) -> Between:
        """The motion through poses at frames."""
        steps = np.rint(at * (RATE / fps)).astype(int)
        grid = np.r_[0, np.cumsum(np.minimum(np.diff(steps), LONGEST - 6))]  # longer gaps run faster inside
        places = np.interp(np.arange(at[-1] + 1), at, grid)
        chosen = np.r_[True, np.diff(grid) > 0]  # of several keys on one frame inside, the first
        keys = np.zeros(grid[-1] + 1, dtype=np.bool_)
        keys[grid[chosen]] = True
        canonical = self.carrier.canonical(poses)
        own = Frames(canonical.roots[chosen], canonical.turns[chosen])
        found = expected(alone(interpolated(own, grid[chosen], len(keys)), keys), self.carrier, self.weights)
        base = interpolated(poses, at, int(at[-1]) + 1)
        added = self.carrier.added(base, Change(*(self._at(part, at, places) for part in found.residual)))
        parts = (found.contacts, found.root_spread, found.point_spread, found.turn_spread)
        others = [lines(places, np.arange(len(keys)), part) for part in parts]
        return Between(Motion(self.skeleton, fps, *added), at, *others)

    def terms(self, found: Between, space: PoseSpace) -> list[Term]:
        """The Gaussian around a motion through keys, for the solver of sequences; the keys are held.

        A deviation from the mean is a Matern process of order 3/2 over time: a constraint at one frame moves the
        frames about it too, smoothly.
        """
        motion, rate = found.motion, PACE / found.motion.fps
        mean = space.q_from_frames(motion.root_positions, motion.rotations)
        precision = self._precision(found, space) / (4.0 * rate**3)
        weights = (rate**4, 2.0 * rate**2, 1.0)
        terms: list[Term] = [Held(found.keys)]
        for order, weight in enumerate(weights[: max(len(mean) - 1, 1)]):
            part = precision[order // 2 : len(mean) - (order + 1) // 2]
            terms.append(WindowGaussian(0, mean, weight * part, order=order))
        return terms

    def another(self, found: Between, rng: np.random.Generator) -> Between:
        """A motion drawn from the Gaussian around a motion through keys, which it meets too."""
        from scipy.ndimage import gaussian_filter1d

        frames, sigma = len(found.motion), found.motion.fps / PACE
        white = rng.standard_normal((frames + round(8 * sigma), 3 * len(TURNING) + 3))
        noise = gaussian_filter1d(white, sigma, axis=0)
        noise = (noise / noise.std())[round(4 * sigma) :][:frames]
        noise -= lines(np.arange(frames), found.keys, noise[found.keys])
        shift, turns = noise[:, :3] * found.root_deviations, noise[:, 3:].reshape(frames, -1, 3)
        turns = turns * found.turn_deviations[..., None]
        own = Frames(found.motion.root_positions, found.motion.rotations)
        drawn = self.carrier.added(own, Change(shift, turns[:, 0], turns[:, 1:]))
        return replace(found, motion=found.motion.with_frames(*drawn))

    def _precision(self, found: Between, space: PoseSpace) -> Float[Array, "frames freedoms freedoms"]:
        """Of every frame's pose; at keys, which are held, that of the frames beside them."""
        every = np.arange(len(found.motion))
        free = np.setdiff1d(every, found.keys)
        squares = [np.square(part) for part in (found.root_deviations, found.turn_deviations)]
        variances = [lines(every, free, part[free]) if len(free) else part for part in squares]
        return np.linalg.inv(covariance_of(self.carrier, space, *variances))

    def _at(self, part: Float[Array, "steps *n"], at: Int[Array, "keys"], places: Array) -> Array:
        """A part of the residual at frames, zero at keys."""
        # not with the module: it imports scipy.optimize, which the studio's first page can spare
        from scipy.interpolate import CubicSpline

        flat, every = part.reshape(len(part), -1), np.arange(len(part))
        if len(part) <= 3:
            flat = lines(places, every, flat)
        else:
            flat = CubicSpline(every, flat)(places) if np.any(places % 1) else flat[places.astype(int)]
        return (flat - lines(np.arange(len(places)), at, flat[at])).reshape(len(places), *part.shape[1:])


def covariance_of(
    carrier: Carrier, space: PoseSpace, roots: Float[Array, "frames 3"], turns: Float[Array, "frames turning"]
) -> Float[Array, "frames freedoms freedoms"]:
    """Of the freedoms of a body, from variances of the root's position and of the canonical body's rotations."""
    fit = carrier.fit
    moved = np.flatnonzero(np.isin(space.moving, np.flatnonzero(fit.moving)))
    slots = (ROOT_FREEDOMS + 3 * moved[:, None] + np.arange(3)).ravel()
    covariance = np.zeros((len(roots), space.freedoms, space.freedoms))
    diagonal = np.einsum("tii->ti", covariance)
    diagonal[:] = STEADY**2
    diagonal[:, :3] += roots
    diagonal[:, 3:ROOT_FREEDOMS] += turns[:, :1]
    own = np.einsum("ac,tc,bc->tab", fit.maps, np.repeat(turns[:, 1:], 3, axis=1), fit.maps, optimize=True)
    covariance[:, slots[:, None], slots] += own
    return covariance


def interpolated(poses: Frames, at: Int[Array, "keys"], count: int) -> Frames:
    """Frames between poses: positions on lines, rotations at constant speed on the shorter way."""
    every = np.arange(count)
    before = np.clip(np.searchsorted(at, every, side="right") - 1, 0, max(len(at) - 2, 0))
    after = np.minimum(before + 1, len(at) - 1)
    share = (every - at[before]) / np.maximum(at[after] - at[before], 1)
    return poses.between(before, after, share)


def on_frames(
    keys: Sequence[tuple[float, Pose]], skeleton: Skeleton, fps: float
) -> tuple[Int[Array, "keys"], Frames]:
    """Frames of keys in order of time, and their poses."""
    if len(keys) < 2:
        raise InvalidValueError(f"a motion between keys needs at least two; got {len(keys)}")
    ordered = sorted(keys, key=lambda key: key[0])
    times = np.array([time for time, _ in ordered], dtype=np.float64)
    if not np.all(np.isfinite(times)):
        raise InvalidValueError("the times of keys must be numbers of seconds")
    at = np.rint((times - times[0]) * fps).astype(int)
    if np.any(same := np.diff(at) < 1):
        time = times[1:][same][0]
        raise InvalidValueError(
            f"two keys are on one frame, at {time:g} s; give different times, or a higher frame rate"
        )
    for _, pose in ordered:
        if not pose.skeleton.same_topology(skeleton):
            raise SkeletonError("all keys need the skeleton of the motion prior; retarget the others first")
    roots = np.stack([pose.root_position for _, pose in ordered])
    return at, Frames(roots, np.stack([pose.rotations for _, pose in ordered]))
