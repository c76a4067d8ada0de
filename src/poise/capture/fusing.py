"""Fuse several sources into one motion: positions, rotations and pixels of joints, each with its own clock and noise.

A source is compared with the motion of all others: its distance from that, relative to its noise and the motion's own
uncertainty, at the best shift of its clock. The worst source is shifted in time, or left out, until the others agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.geometry.cameras import Camera
from poise.priors.prior import Prior
from poise.skeleton.pose_space import Handle
from poise.skeleton.skeleton import Skeleton
from poise.solvers.constraints import Constraint, Orientation, Position, Projection
from poise.solvers.sequence import Frame, solve_motion
from poise.solvers.solution import MotionSolution, Solution
from poise.solvers.solve import Follower, Solver
from poise.types import Array

PLACES, TURNS, PIXELS = "places", "turns", "pixels"
UNITS = {PLACES: "m", TURNS: "rad", PIXELS: "px"}
MOMENTS = 24  # frames of a take at which sources are compared
SHIFTS = np.linspace(-0.5, 0.5, 51)  # seconds: candidate clock offsets
SHIFTED = 0.08  # seconds: smaller clock offsets are ignored
BETTER = 0.8  # ratio of the deviations with and without a clock shift below which it is accepted
OFF = 1.1  # times the allowed deviation: sources below this keep their clock
EXCESS = 1.5  # times the allowed deviation: sources above this are left out
WILD = 9.0  # most that one value counts for, in squares of the allowed deviation


@dataclass(frozen=True, eq=False)
class Feed:
    """One source's data of joints: their positions, rotations, or pixels in a camera."""

    name: str
    gives: str
    joints: tuple[str, ...]
    values: Float[Array, "frames joints channels"]
    fps: float
    noise: float  # metres, radians or pixels: standard deviation per axis
    camera: Camera | None = None
    shift: float = 0.0  # seconds that its clock is behind the take's
    fixed: bool = False  # whether the shift is known

    def at(self, times: Float[Array, "times"]) -> Float[Array, "times joints channels"]:
        """Its values at times of the take; NaN where it has none."""
        own = (np.asarray(times) - self.shift) * self.fps
        low = np.clip(np.floor(own).astype(int), 0, max(len(self.values) - 2, 0))
        share = (own - low)[:, None, None]
        before, after = self.values[low], self.values[np.minimum(low + 1, len(self.values) - 1)]
        if self.gives == TURNS:
            after = after * np.where((before * after).sum(axis=-1, keepdims=True) < 0.0, -1.0, 1.0)
        inside = (own > -0.5) & (own < len(self.values) - 0.5)
        return np.where(inside[:, None, None], before + share * (after - before), np.nan)

    def constraints(self, values: Float[Array, "joints channels"]) -> list[Constraint]:
        """A frame's values as soft constraints; empty without values."""
        seen = [(j, v) for j, v in zip(self.joints, values, strict=True) if np.all(np.isfinite(v))]
        if self.gives == PLACES:
            return [Position(joint, value, tolerance=self.noise) for joint, value in seen]
        if self.gives == TURNS:
            return [Orientation(joint, value, tolerance=self.noise) for joint, value in seen]
        assert self.camera is not None, "pixels are a camera's"
        return [Projection(Handle(joint), self.camera, value, tolerance=self.noise) for joint, value in seen]

    def off(
        self, skeleton: Skeleton, positions: Array, matrices: Array, values: Array
    ) -> Float[Array, "frames joints axes"]:
        """Deviations of its values from a motion's joints, in its own unit."""
        at = [skeleton.index(joint) for joint in self.joints]
        if self.gives == TURNS:
            unit = values / np.maximum(np.linalg.norm(values, axis=-1, keepdims=True), 1e-9)
            back = rotations.conjugate(rotations.quaternion_from_matrix(matrices[:, at]))
            return rotations.expmap_from_quaternion(rotations.multiply(unit, back))
        found = positions[:, at]
        return values - (self.camera.project(found) if self.camera is not None else found)

    def allowed(self, solution: Solution) -> Float[Array, "joints axes axes"]:
        """The covariance of its deviation from a pose of the others: its noise plus their uncertainty."""
        skeleton, uncertainty = solution.space.skeleton, solution.uncertainty
        at = [skeleton.index(joint) for joint in self.joints]
        places = uncertainty.places.reshape(len(skeleton), 3, len(skeleton), 3)
        own = uncertainty.turns[at] if self.gives == TURNS else places[at, :, at]
        if (camera := self.camera) is not None:
            x, y, z = (np.asarray(solution.positions)[at] @ camera.rotation.T + camera.translation).T
            zero, depth = np.zeros_like(z), np.maximum(z, 0.1)
            into = np.array([[1 / depth, zero, -x / depth**2], [zero, 1 / depth, -y / depth**2]])
            seen = camera.focal_length * into.transpose(2, 0, 1) @ camera.rotation
            own = seen @ own @ seen.transpose(0, 2, 1)
        return own + self.noise**2 * np.eye(own.shape[-1])


@dataclass(frozen=True, eq=False)
class FeedReport:
    """The agreement of a source with the others."""

    name: str
    unit: str
    noise: float
    off: float  # typical deviation from the fused motion
    excess: float  # ratio to the allowed deviation from the motion of the others; NaN if there are none
    shift: float
    used: bool

    def __str__(self) -> str:
        words = f"{self.name}: {self.off:.3g} {self.unit} off (noise {self.noise:.3g})"
        if abs(self.shift) > SHIFTED:
            words += f", its clock is {self.shift:+.2f} s off"
        left_out = f"; left out: {self.excess:.1f} times the allowed deviation from the others"
        return words if self.used else words + left_out


def fuse(
    prior: Prior,
    feeds: Sequence[Feed],
    *,
    fps: float,
    frames: int,
    others: Sequence[Sequence[Constraint]] = (),
) -> MotionSolution:
    """Fuse all sources that agree; `others` are additional constraints of every frame."""
    times, beside = np.arange(frames) / fps, list(others) or [()] * frames
    used, excess = _agreed(prior, list(feeds), times, beside)
    wanted = _wanted([feed for feed in used if feed is not None], times, beside)
    fused = solve_motion([prior], [Frame(one) for one in wanted], fps=fps)
    positions, matrices = fused.space.forward(fused.q)
    reports = []
    for feed, kept, over in zip(feeds, used, excess, strict=True):
        own, unit = kept or feed, UNITS[feed.gives]
        far = np.linalg.norm(own.off(fused.space.skeleton, positions, matrices, own.at(times)), axis=-1)
        typical = float(np.nanmedian(far)) if np.isfinite(far).any() else float("nan")
        reports.append(FeedReport(feed.name, unit, feed.noise, typical, over, own.shift, kept is not None))
    return replace(fused, sources=reports, notes=tuple(map(str, reports)))


def _agreed(
    prior: Prior, feeds: list[Feed], times: Array, beside: Sequence[Sequence[Constraint]]
) -> tuple[list[Feed | None], list[float]]:
    """The sources with corrected clocks, None for those left out, and the deviation of each from the others.

    If the others contradict several, the one farthest from them is handled first.
    """
    moments = np.unique(np.linspace(0, len(times) - 1, MOMENTS).astype(int))
    some, also = times[moments], [beside[number] for number in moments]
    used: list[Feed | None] = list(feeds)
    excess = [float("nan")] * len(feeds)
    while sum(feed is not None for feed in used) > 1:
        found, kept = dict[int, Feed](), [feed for feed in used if feed is not None]
        starts = [solution.q for solution in _followed(prior, _wanted(kept, some, also))]
        for number, feed in enumerate(used):
            if feed is not None:
                wanted = _wanted([other for other in kept if other is not feed], some, also)
                excess[number], found[number] = _judged(_followed(prior, wanted, starts), feed, some)
        late = [number for number, feed in found.items() if feed is not used[number]]
        wrong = [number for number in found if excess[number] > EXCESS and len(found) > 2]
        if not (late or wrong):
            break
        worst = max({*late, *wrong}, key=lambda number: excess[number])
        used[worst] = found[worst] if worst in late else None
    return used, excess


def _followed(
    prior: Prior, wanted: Sequence[Sequence[Constraint]], starts: Sequence[Array] | None = None
) -> list[Solution]:
    """Solve frame after frame, or each from a start: pixels and rotations alone do not determine the position."""
    follower = Follower(partial(Solver, prior))
    given = starts if starts is not None else [None] * len(wanted)
    return [follower.step(one, start=start) for one, start in zip(wanted, given, strict=True)]


def _judged(solutions: Sequence[Solution], feed: Feed, times: Array) -> tuple[float, Feed]:
    """A source's deviation from the motion of the rest, and the source with its corrected clock."""
    space, q = solutions[0].space, np.stack([solution.q for solution in solutions])
    skeleton, (positions, matrices) = space.skeleton, space.forward(q)
    allowed = np.linalg.inv(np.stack([feed.allowed(solution) for solution in solutions]))

    def over(one: Feed) -> float:
        off = one.off(skeleton, positions, matrices, one.at(times))
        squares = np.einsum("fja,fjab,fjb->fj", off, allowed, off) / off.shape[-1]
        seen = squares[np.isfinite(squares)]
        return float(np.sqrt(np.minimum(seen, WILD).mean())) if len(seen) > 0.3 * squares.size else np.inf

    now = over(feed)
    if feed.fixed:
        return now, feed
    moved = [replace(feed, shift=feed.shift + shift, fixed=True) for shift in SHIFTS]
    then = [over(one) for one in moved]
    best = moved[int(np.argmin(then))]
    helps = now > OFF and min(then) < BETTER * now and abs(best.shift - feed.shift) > SHIFTED
    return now, best if helps else feed


def _wanted(
    feeds: Sequence[Feed], times: Array, beside: Sequence[Sequence[Constraint]]
) -> list[list[Constraint]]:
    """The constraints of every frame."""
    wanted = [list(others) for others in beside]
    for feed in feeds:
        for own, values in zip(wanted, feed.at(times), strict=True):
            own += feed.constraints(values)
    return wanted
