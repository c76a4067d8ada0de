"""Learns a model again without parts of its clips, and solves those: what held-out frames say of its claims.

Of several clips some are left out in turn; of a few, a part of each. The root and the handles of a held-out frame are
given, every frame by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from poise.errors import PoiseError
from poise.motion.motion import Motion
from poise.priors.held_out import HeldOut, kept
from poise.priors.prior import Prior
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.skeleton import read_only
from poise.solvers.constraints import Position
from poise.solvers.solution import Solution
from poise.solvers.solve import Solver
from poise.types import Array

Learn = Callable[[Sequence[Motion]], Prior]

HANDLES = ("head", "left_hand", "right_hand", "left_foot", "right_foot")
PARTS = 3  # that are left out in turn
TRIED = 150  # held-out frames in all
FEWEST = 30  # held-out frames that say enough
OPEN = 0.002  # metres: a joint less open than this is as good as given


class HeldFrames:
    """A prior on the body of a clip, which solves its frames from their roots and handles."""

    def __init__(self, prior: Prior, clip: Motion) -> None:
        self.prior, self.clip = prior.on_body(clip.skeleton), clip
        self.space = self.prior.space
        self.handles = tuple(role for role in HANDLES if role in clip.skeleton.roles)
        self.q = self.space.q_from_frames(clip.root_positions, clip.rotations)
        self.joints = self.space.forward(self.q)[0]
        self.moving = ~clip.skeleton.is_end_site
        self._solvers: dict[str, Solver] = {}

    def solve(self, frame: int, added: str = "") -> Solution:
        """A frame from its root and handles, and one more."""
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
        """How far the joints of a solution are from the recorded ones, in metres."""
        return np.linalg.norm(np.asarray(solution.positions) - self.joints[frame], axis=-1)[self.moving]


class Tried(NamedTuple):
    """A held-out frame: errors and claims of joints, how new the handles are, how likely the recorded pose is."""

    errors: Float[Array, "joints"]
    claims: Float[Array, "joints"]
    squares: float
    rows: float
    likelihood: float


def calibrate(prior: Prior, motions: Sequence[Motion], learn: Learn) -> list[Tried]:
    """Give a prior learned from clips the record of held-out frames, and percentiles by how likely those are.

    Clips that are too short to learn from without a part of them, or a body without handles, leave it as it is. The
    held-out frames are returned.
    """
    if not set(HANDLES) & set(prior.space.skeleton.roles):
        return []
    try:
        tried = [row for own, held in _parted(motions) for row in tries(learn(own), held)]
    except PoiseError:
        return []
    if len(tried) >= FEWEST:
        kept(prior, held_out=record_of(tried))
        if hasattr(prior, "quantiles"):
            prior.quantiles = read_only(np.percentile([one.likelihood for one in tried], np.arange(101)))
    return tried


def record_of(tried: Sequence[Tried]) -> HeldOut:
    """What held-out frames of bodies of one topology say."""
    errors, claims, squares, rows, _ = map(np.array, zip(*tried, strict=True))
    return HeldOut.of(errors, claims, squares, rows)


def _parted(motions: Sequence[Motion]) -> Iterator[tuple[list[Motion], list[Motion]]]:
    """What is learned from and what is held out, one part after the other."""
    for part in range(PARTS):
        if len(motions) > PARTS:
            held = motions[part::PARTS]
            yield [motion for number, motion in enumerate(motions) if number % PARTS != part], list(held)
        else:
            ends = [(len(m) * part // PARTS, len(m) * (part + 1) // PARTS) for m in motions]
            sides = [side for m, (a, b) in zip(motions, ends, strict=True) for side in (m[:a], m[b:])]
            inside = [m[a:b] for m, (a, b) in zip(motions, ends, strict=True)]
            yield [side for side in sides if len(side) > 1], [middle for middle in inside if len(middle)]


def tries(prior: Prior, held: Sequence[Motion]) -> Iterator[Tried]:
    """Some frames of clips that a prior has not learned, evenly spread."""
    ends = np.cumsum([len(clip) for clip in held])
    chosen = np.unique(np.linspace(0, ends[-1] - 1, TRIED // PARTS).astype(int))
    for clip, end in zip(held, ends, strict=True):
        numbers = chosen[(chosen < end) & (chosen >= end - len(clip))] - (end - len(clip))
        if len(numbers) == 0:
            continue
        frames = HeldFrames(prior, clip)
        for number in numbers.tolist():
            if (found := _tried(frames, number)) is not None:
                yield found


def _tried(frames: HeldFrames, number: int) -> Tried | None:
    """A held-out frame; None where its handles leave nothing open."""
    solution = frames.solve(number)
    uncertainty = solution.uncertainty
    claims = np.asarray(uncertainty.deviation)[frames.moving] / uncertainty.widening
    if uncertainty.rows < 1.0 or not (claims > OPEN).any():
        return None
    return Tried(
        frames.error(number, solution),
        np.where(claims > OPEN, claims, np.nan),
        uncertainty.squares,
        uncertainty.rows,
        frames.prior.log_likelihood(frames.q[number]),
    )
