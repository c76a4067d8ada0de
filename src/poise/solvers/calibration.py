"""Calibrate a model on held-out frames: learn it again without parts of its clips, and solve those parts.

With several clips, whole clips are held out in turn; with few, a part of each. Every held-out frame is solved by
itself, from its recorded root and handles. A part of a clip is more like the rest of it than a new clip is, so its
errors are raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from poise.errors import PoiseError
from poise.motion.motion import Motion
from poise.priors.evidence import HeldOut, kept
from poise.priors.prior import Prior
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.skeleton import read_only
from poise.solvers.constraints import Position
from poise.solvers.solution import Solution
from poise.solvers.solve import Solver
from poise.types import Array

Learn = Callable[[Sequence[Motion]], Prior]

HANDLES = ("head", "left_hand", "right_hand", "left_foot", "right_foot")
PARTS = 3  # folds of the cross-validation
TRIED = 150  # held-out frames in total
FEWEST = 30  # smallest number of held-out frames to calibrate from
OPEN = 0.002  # metres: a joint with less uncertainty than this counts as given
FARTHER = (0.8, 1.15, 1.6)  # errors on new clips relative to those on held-out parts, equally likely


class HeldFrames:
    """A prior on the body of a clip, and the solver of the clip's frames from their roots and handles."""

    def __init__(self, prior: Prior, clip: Motion, handles: Sequence[str] = ()) -> None:
        self.prior, self.clip = prior.on_body(clip.skeleton), clip
        self.space = self.prior.space
        self.handles = tuple(handles) or tuple(role for role in HANDLES if role in clip.skeleton.roles)
        self.q = self.space.q_from_frames(clip.root_positions, clip.rotations)
        self.joints = self.space.forward(self.q)[0]
        self.moving = ~clip.skeleton.is_end_site
        self._solvers: dict[str, Solver] = {}

    def solve(self, frame: int, added: str = "") -> Solution:
        """Solve a frame from its root and handles, plus the handle `added` if given."""
        names = (*self.handles, added) if added else self.handles
        if added not in self._solvers:
            constraints = [Position(name, (0.0, 0.0, 0.0)) for name in names]
            self._solvers[added] = Solver(self.prior, constraints, root="given")
        solver = self._solvers[added]
        solver.forget()
        start = np.concatenate([self.q[frame, :ROOT_SIZE], self.prior.mean])
        at = [self.clip.skeleton.index(name) for name in names]
        return solver.solve(start, targets=self.joints[frame, at])

    def error(self, frame: int, solution: Solution) -> Float[Array, "joints"]:
        """Distances of the solution's moving joints from the recorded ones, in metres."""
        return np.linalg.norm(np.asarray(solution.positions) - self.joints[frame], axis=-1)[self.moving]


class Tried(NamedTuple):
    """A held-out frame: joint errors and predicted errors, novelty of its handles, log-likelihood of its pose."""

    errors: Float[Array, "joints"]
    claims: Float[Array, "joints"]
    squares: float
    rows: float
    likelihood: float


def calibrate(prior: Prior, motions: Sequence[Motion], learn: Learn) -> list[Tried]:
    """Attach to `prior` a record of its held-out errors, and percentiles of held-out log-likelihoods.

    The prior is left unchanged if the clips are too short to hold a part out, or if the body has no handles. Returns
    the held-out frames, with the errors expected on new clips.
    """
    if not set(HANDLES) & set(prior.space.skeleton.roles):
        return []
    try:
        tried = [row for own, held in _parted(motions) for row in tries(learn(own), held)]
    except PoiseError:
        return []
    factors = FARTHER if len(motions) <= PARTS else (1.0,)
    expected = [one._replace(errors=factor * one.errors) for factor in factors for one in tried]
    if len(tried) >= FEWEST:
        kept(prior, held_out=record_of(expected))
        if hasattr(prior, "quantiles"):
            prior.quantiles = read_only(np.percentile([one.likelihood for one in tried], np.arange(101)))
    return expected


def record_of(tried: Sequence[Tried]) -> HeldOut:
    """Return the calibration record from held-out frames of bodies with one topology."""
    errors, claims, squares, rows, _ = map(np.array, zip(*tried, strict=True))
    return HeldOut.of(errors, claims, squares, rows)


def _parted(motions: Sequence[Motion]) -> Iterator[tuple[list[Motion], list[Motion]]]:
    """Yield pairs of training clips and held-out clips, one fold after the other."""
    for part in range(PARTS):
        if len(motions) > PARTS:
            held = motions[part::PARTS]
            yield [motion for number, motion in enumerate(motions) if number % PARTS != part], list(held)
        else:
            cuts = [(m, len(m) * part // PARTS, len(m) * (part + 1) // PARTS) for m in motions]
            sides = [side for m, a, b in cuts for side in (m[:a], m[b:]) if len(side) > 1]
            yield sides, [m[a:b] for m, a, b in cuts if b > a]


def tries(prior: Prior, held: Sequence[Motion]) -> Iterator[Tried]:
    """Yield evenly spaced frames of clips that the prior was not trained on."""
    ends = np.cumsum([len(clip) for clip in held])
    chosen = np.unique(np.linspace(0, ends[-1] - 1, TRIED // PARTS).astype(int))
    for clip, end in zip(held, ends, strict=True):
        numbers = chosen[(chosen < end) & (chosen >= end - len(clip))] - (end - len(clip))
        if len(numbers) == 0:
            continue
        frames = HeldFrames(prior, clip)
        for number in numbers.tolist():
            solution = frames.solve(number)
            uncertainty = solution.uncertainty
            claims = np.asarray(uncertainty.deviation)[frames.moving] / uncertainty.widening
            if (
                uncertainty.rows >= 1.0 and (claims > OPEN).any()
            ):  # else its handles leave nothing undetermined
                errors, claims = frames.error(number, solution), np.where(claims > OPEN, claims, np.nan)
                likelihood = frames.prior.log_likelihood(frames.q[number])
                yield Tried(errors, claims, uncertainty.squares, uncertainty.rows, likelihood)
