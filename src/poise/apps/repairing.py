"""Mend a motion of any origin: frames that repeat, jitter, a floor that sinks, feet that slide, parts inside others.

The motion is the likeliest one by a list of terms of the one solver over time: near the frames that are given, with
accelerations as they have in this motion, and with feet that rest where they touch the floor. Jitter is separated from
movement by third differences: white noise has them twenty times its variance, movement at usual rates hardly any. The
result has no lag, since all frames are solved together. Limbs stay out of the body and above the floor, and standing
feet are kept exactly (`apps.planting`).
"""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from PIL import Image
from scipy.interpolate import PchipInterpolator
from scipy.ndimage import gaussian_filter1d, median_filter

from poise.apps.planting import slides, standing
from poise.apps.skin import skin_of
from poise.formats.registry import read_motion
from poise.geometry import rotations
from poise.geometry.splines import smoothstep
from poise.motion.contacts import foot_contacts, foot_handles, foot_positions
from poise.motion.motion import Motion
from poise.motion.world import joint_positions
from poise.priors.motion.prior import MotionPrior
from poise.priors.terms import Accelerations, System, Term, Unknowns, WindowGaussian, velocities
from poise.savable import Savable
from poise.skeleton.clearance import depths
from poise.skeleton.kernels import ROOT_FREEDOMS
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.ranges import beyond_people
from poise.skeleton.roles import MAIN_ROLES, SIDES
from poise.solvers import bearing
from poise.solvers.constraints import Constraint
from poise.solvers.sequence import solve_terms
from poise.types import Array, Progress, silent

FEWEST = 8  # frames: shorter motions stay as they are
REPEATED = 1e-9  # metres, radians: frames that differ by less repeat the one before
QUIETEST = 2e-4  # metres, radians: least noise of what is given
BRIDGED = 0.5  # seconds: longer gaps are filled by the motion prior
FREE = 1e-6  # precision of missing frames
STRAYS = 3.0  # metres: how far the path over the floor may be wrong
USUAL, PACE = (
    0.06,
    0.015,
)  # metres a second: feet that roll slide so in good recordings, and more if the body is fast
FIRM = 0.001  # radians: how far joints give way while the path over the floor is corrected
SHAKES = 3.0  # per second: how fast jitter of the legs, in metres at the foot, makes it slide
YIELDS = 0.0015  # metres, radians: how far the body gives way to resting feet
RESTS = 0.001  # metres: how far a resting point of a foot moves between frames
LOW = 0.035  # of stature: a point of a foot lower than this above its lowest place may rest
SKATES = 0.025  # metres: feet that still slide by more are kept exactly, as those with a skin always are
TOGETHER = 0.15  # metres a second: points of feet that move so alike rest on the same floor
SLOW = 0.25  # of the square root of gravity times leg length: a faster foot does not rest
SWAY = 4.0  # frames over which the slide of the whole body is averaged
TILTS, ROUGH = (
    0.055,
    0.016,
)  # of stature: a floor that tilts by more is levelled, as 1 of 70 recorded ones does; but not one that is rougher
SUNK = 0.003  # of stature: depth of a foot below its usual height that stays
DRIFTS = 0.1  # metres a second: a path that slides by less stays
QUANTILE = 0.3  # of the heights of the lowest points of feet, where the floor is
BRIEF = 3.0  # seconds: feet that sink for longer stand on another floor
NEARBY = 0.02  # metres: parts that are closer are kept apart
UP, FLOOR = np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0])
MEDIAN_SQUARE = 0.455  # of a normal variable of variance 1
NOISE_OF_THIRDS, NOISE_OF_SECONDS = (
    20.0,
    6.0,
)  # variance of third and second differences of white noise of variance 1


WORDS = (
    "slide of standing feet (cm)", "below the floor (cm)", "parts inside others (cm)", "mean acceleration (m/s2)",
    "frames beyond what people reach (share)", "repeated frames",
)  # fmt: skip


class Faults(NamedTuple):
    """What is wrong with a motion."""

    slide_cm: float  # of the foot that strays farthest from its place in a contact
    sunk_cm: float  # of the part that is lowest below the floor
    inside_cm: float  # of the part that is deepest inside another
    jitter: float  # mean acceleration of joints, metres a second squared
    beyond: float  # share of frames with a part bent further than people reach
    repeated: int  # frames that repeat the one before


@dataclass(frozen=True, eq=False)
class Repaired(Savable):
    """A mended motion, and its condition before and after."""

    motion: Motion
    before: Faults
    after: Faults
    notes: tuple[str, ...]

    def __str__(self) -> str:
        words = zip(WORDS, self.before, self.after, strict=True)
        return "\n".join(
            [*(f"{word}: {old:.3g} before, {new:.3g} now" for word, old, new in words), *self.notes]
        )


class Movement(NamedTuple):
    """How a motion moves: variances of the noise and of the accelerations of every freedom, frame by frame."""

    noise: Float[Array, "freedoms"]
    jolt: Float[Array, "freedoms"]


class Resting(Term):
    """Points of feet that rest do not move from a frame to the next."""

    reach = 1

    def __init__(self, space: PoseSpace, handles: Handles, resting: Bool[Array, "steps handles"]) -> None:
        self._space, self._handles = space, handles
        self._weights = np.repeat(resting.astype(float), 3, axis=1) / RESTS**2
        self._steps = np.flatnonzero(resting.any(axis=1))

    def cost(self, now: Unknowns) -> float:
        """Half the squares of the ways that resting points move."""
        return 0.5 * float((self._weights * np.diff(self._points(now)[0], axis=0) ** 2).sum())

    def add(self, now: Unknowns, system: System) -> None:
        """Pull resting points together."""
        points, jacobians = self._points(now)
        size = system.freedoms
        for step in self._steps:
            weight = self._weights[step][:, None]
            gap = (points[step + 1] - points[step])[:, None] * weight
            old, new = jacobians[step], jacobians[step + 1]
            system.right[step, :size] += (old.T @ gap)[:, 0]
            system.right[step + 1, :size] -= (new.T @ gap)[:, 0]
            system.bands[0][step, :size, :size] += old.T @ (weight * old)
            system.bands[0][step + 1, :size, :size] += new.T @ (weight * new)
            system.bands[1][step, :size, :size] -= new.T @ (weight * old)

    def _points(
        self, now: Unknowns
    ) -> tuple[Float[Array, "frames rows"], Float[Array, "frames rows freedoms"]]:
        found = [self._space.handle_positions(q, self._handles) for q in now.q]
        return np.stack([one.ravel() for one, _ in found]), np.stack([jacobian for _, jacobian in found])


def repair(motion: Motion | str | os.PathLike[str], *, progress: Progress = silent) -> Repaired:
    """Mend a motion or a motion file; see `Repaired`. Frames that repeat the one before count as missing."""
    motion = read_motion(motion)
    given, notes, total = not_repeated(motion), list[str](), 4
    found = raw = bridged(motion, given)
    if len(motion) >= FEWEST:
        known = movement(raw, given)
        found = solved(raw, raw, given, known)
        progress(1, total)
        if stands_on_feet(motion):
            shift = sunk(found)
            if (most := float(np.abs(shift).max())) > SUNK * motion.skeleton.height:
                notes.append(
                    f"the body was moved up or down by up to {100 * most:.1f} cm, onto a level floor"
                )
            raw, found = (moved(one, shift[:, None] * UP) for one in (raw, found))
            drift = drifting(found, given, known)
            before, resting = found.root_positions, resting_points(found, shake=shaking(found, known))
            trusted = Movement(np.minimum(known.noise, FIRM**2), known.jolt) if drift > 0.0 else known
            found = solved(raw, found, given, trusted, resting=resting, drift=drift)
            if drift > 0.0:
                notes.append(f"the path over the floor slid by some {100 * drift:.0f} cm a second")
                raw = moved(raw, (found.root_positions - before) * FLOOR)
            progress(2, total)
            points = foot_contacts(found).points.reshape(len(found), 4)
            known = Movement(known.noise + YIELDS**2, known.jolt)
            found = solved(raw, found, given, known, resting=points[1:] & points[:-1], apart=True)
            if skin_of(found) is not None or max(slides(found), default=0.0) > SKATES:
                found = standing(found)
    if missing := int(np.sum(~given)):
        notes.append(f"{missing} frames that repeat the one before were filled")
    progress(total, total)
    return Repaired(found, faults(motion), faults(found), tuple(notes))


def clean(motion: Motion | str | os.PathLike[str], *, progress: Progress = silent) -> Motion:
    """The old name of `repair`, for one more version: the mended motion alone."""
    warnings.warn("poise.clean is poise.repair(...).motion now", DeprecationWarning, stacklevel=2)
    return repair(motion, progress=progress).motion


def stands_on_feet(motion: Motion) -> bool:
    """Whether the body has feet whose contacts can be found."""
    return {f"{side}_foot" for side in SIDES} <= set(motion.skeleton.roles)


def compared(before: Motion, after: Motion) -> Image.Image:
    """A picture of both motions, one above the other."""
    from poise import pictures

    sheets = [
        pictures.contact_sheet(one, title=title) for one, title in ((before, "before"), (after, "after"))
    ]
    page = Image.new("RGB", (max(one.width for one in sheets), sum(one.height for one in sheets)), "white")
    for number, sheet in enumerate(sheets):
        page.paste(sheet, (0, number * sheets[0].height))
    return page


def faults(motion: Motion) -> Faults:
    """What is wrong with a motion."""
    places, has_feet = joint_positions(motion), stands_on_feet(motion)
    lowest = foot_positions(motion)[..., 1].min() if has_feet else places[..., 1].min()
    speeds = np.diff(places, n=2, axis=0) * motion.fps**2
    inside = depths(motion.skeleton, places) if set(MAIN_ROLES) <= set(motion.skeleton.roles) else {}
    return Faults(
        slide_cm=100 * max(slides(motion), default=0.0) if has_feet else 0.0,
        sunk_cm=100 * max(0.0, -float(lowest)),
        inside_cm=100 * max((max(0.0, float(each.max())) for each in inside.values()), default=0.0),
        jitter=float(np.linalg.norm(speeds, axis=-1).mean()) if len(speeds) else 0.0,
        beyond=float(np.mean([bool(beyond_people(motion[frame])) for frame in range(len(motion))])),
        repeated=int(np.sum(~not_repeated(motion))),
    )


def not_repeated(motion: Motion) -> Bool[Array, "frames"]:
    """Which frames say something: not those that repeat the one before, unless the whole motion rests."""
    ways = np.abs(np.diff(motion.root_positions, axis=0)).max(axis=1, initial=0.0)
    turns = np.abs(np.diff(motion.rotations, axis=0)).max(axis=(1, 2), initial=0.0)
    moved = np.r_[True, (ways > REPEATED) | (turns > REPEATED)]
    return moved if moved.mean() > 0.02 and moved.sum() > 1 else np.ones(len(motion), dtype=np.bool_)


def bridged(motion: Motion, given: Bool[Array, "frames"]) -> Motion:
    """Missing frames on smooth curves through the given ones; in longer gaps, as people move (`priors.motion`)."""
    if given.all():
        return motion
    at = np.flatnonzero(given)
    if np.diff(at).max(initial=0) > BRIDGED * motion.fps and set(MAIN_ROLES) <= set(motion.skeleton.roles):
        filled = MotionPrior(motion.skeleton).filled(motion[: at[-1] + 1], given[: at[-1] + 1]).motion
        every = np.minimum(np.arange(len(motion)), at[-1])
        return motion.with_frames(filled.root_positions[every], filled.rotations[every])
    every = np.minimum(np.arange(len(motion)), at[-1])  # constant after the last one
    roots = PchipInterpolator(at, motion.root_positions[at])(every)
    turns = PchipInterpolator(at, rotations.continuous(motion.rotations)[at])(every)
    return motion.with_frames(roots, rotations.normalize(turns))


def moved(motion: Motion, ways: Float[Array, "frames 3"]) -> Motion:
    """The motion with its root moved."""
    return motion.with_frames(motion.root_positions + ways, motion.rotations)


def solved(
    raw: Motion,
    start: Motion,
    given: Bool[Array, "frames"],
    known: Movement,
    *,
    resting: Bool[Array, "steps points"] | None = None,
    drift: float = 0.0,
    apart: bool = False,
) -> Motion:
    """The likeliest motion near the given frames, without jitter, in which resting points of feet stay.

    With a `drift` in metres a second, the path over the floor may be wrong by as much, but not where it begins. With
    `apart`, limbs stay out of the body and parts above the floor.
    """
    space = space_of(raw)
    q, begin = (space.q_from_frames(one.root_positions, one.rotations) for one in (raw, start))
    near = np.diag(1.0 / known.noise) * np.where(given, 1.0, FREE)[:, None, None]
    terms: list[Term] = [Accelerations(1.0 / known.jolt)]
    if drift > 0.0:
        floor, strays = [0, 2], np.zeros(space.freedoms)
        near[1:, floor, floor] = STRAYS**-2
        strays[floor] = (2.0 * drift / raw.fps) ** -2
        terms.append(WindowGaussian(0, begin, strays, order=1))
    if resting is not None:
        terms.append(Resting(space, space.handles(foot_handles(raw.skeleton)), resting))
    asked = kept_apart(start) if apart else [[] for _ in range(len(q))]
    terms.append(WindowGaussian(0, q, near))
    found = solve_terms(None, asked, terms, Unknowns(begin), fps=raw.fps, space=space)
    roots, turns = space.frames_from_q(found.q)
    return raw.with_frames(roots, rotations.continuous(turns))


def space_of(motion: Motion) -> PoseSpace:
    """The space of its poses, about the mean rotations of its joints."""
    references = rotations.mean(motion.rotations)
    references[0] = rotations.IDENTITY
    return PoseSpace(motion.skeleton, references=references)


def kept_apart(motion: Motion) -> list[list[Constraint]]:
    """What keeps limbs out of the body, and parts above the floor, in every frame in which they are near."""
    if not set(MAIN_ROLES) <= set(motion.skeleton.roles):
        return [[] for _ in range(len(motion))]
    parts, floor = bearing.firm_of(motion.skeleton), foot_contacts(motion).floor
    return [
        [*bearing.apart(motion.skeleton, place, nearby=NEARBY),
         *bearing.above_floor(parts, place, floor=floor, held=(), moving=False)]
        for place in joint_positions(motion)
    ]  # fmt: skip


def movement(motion: Motion, given: Bool[Array, "frames"]) -> Movement:
    """How a motion moves: its noise, and its accelerations without that, alike for all axes of a joint."""
    space = space_of(motion)
    speeds = velocities(space.q_from_frames(motion.root_positions, motion.rotations))
    seconds, thirds = np.diff(speeds, axis=0), np.diff(speeds, n=2, axis=0)
    whole = given[:-3] & given[1:-2] & given[2:-1] & given[3:]

    def of_joints(squares: Float[Array, "freedoms"]) -> Float[Array, "freedoms"]:
        return np.repeat(squares.reshape(-1, 3).mean(axis=1), 3)

    quiet = np.full(space.freedoms, QUIETEST**2)
    if whole.sum() < FEWEST:  # of a motion with few frames a second, each of which stands
        return Movement(quiet, np.maximum(of_joints(np.mean(seconds**2, axis=0)), quiet))
    typical = np.median(thirds[whole] ** 2, axis=0) / MEDIAN_SQUARE
    noise = np.maximum(of_joints(typical) / NOISE_OF_THIRDS, quiet)
    jolt = of_joints(np.mean(seconds[: len(thirds)][whole] ** 2, axis=0)) - NOISE_OF_SECONDS * noise
    return Movement(noise, np.maximum(jolt, 0.05 * noise))


def sunk(motion: Motion) -> Float[Array, "frames"]:
    """How far each frame must go up for resting feet to be at their usual heights, on a level floor.

    A floor that tilts over time is a line through the lowest points of the feet, unless they are rough, as on stairs.
    Every point of a foot has its own usual height: the body is lifted where resting ones are deeper for a moment.
    """
    stature, frames = motion.skeleton.height, np.arange(len(motion))
    heights = foot_positions(motion).reshape(len(motion), 4, 3)[..., 1]
    slant = np.column_stack([np.ones(len(motion)), np.linspace(0.0, 1.0, len(motion))])
    line, weight, lowest = np.zeros(2), np.ones(len(motion)), heights.min(axis=1)
    for _ in range(40):  # a low quantile, by weighted least squares
        line = np.linalg.solve(slant.T @ (weight[:, None] * slant), slant.T @ (weight * lowest))
        left = lowest - slant @ line
        weight = np.where(left < 0.0, 1.0 - QUANTILE, QUANTILE) / np.maximum(np.abs(left), 1e-3)
    tilted = (
        abs(line[1]) > TILTS * stature and float(np.median(np.abs(lowest - slant @ line))) < ROUGH * stature
    )
    shift = -line[1] * slant[:, 1] if tilted else np.zeros(len(motion))
    heights = heights + shift[:, None]
    steps = resting_points(moved(motion, shift[:, None] * UP))
    rests = np.r_[steps[:1], steps] | np.r_[steps, steps[-1:]]
    known = np.flatnonzero(rests.any(axis=1))
    if len(known) < FEWEST:
        return shift
    usual = np.array(
        [np.median(column[on]) if on.any() else 0.0 for column, on in zip(heights.T, rests.T, strict=True)]
    )
    away = np.nanmean(np.where(rests, heights - usual, np.nan)[known], axis=1)
    deviation = gaussian_filter1d(np.interp(frames, known, away), 1.0)
    width = min(len(motion), round(BRIEF * motion.fps)) | 1
    deep = np.maximum(median_filter(deviation, width, mode="nearest") - deviation, 0.0)
    return np.asarray(shift + deep * smoothstep(np.clip(deep / (SUNK * stature) - 1.0, 0.0, 1.0)))


def resting_points(motion: Motion, *, shake: float = 0.0) -> Bool[Array, "steps points"]:
    """Which points of the feet rest between each frame and the next, even where the whole body slides.

    `shake` is how far the feet jitter, in metres.
    """
    points = foot_positions(motion).reshape(len(motion), 4, 3)
    height = points[..., 1] - np.percentile(points[..., 1], 5.0, axis=0)
    low = np.maximum(height[:-1], height[1:]) < LOW * motion.skeleton.height + 0.5 * shake
    ways = np.diff(points[..., [0, 2]], axis=0) * motion.fps
    pace = np.where(low, np.linalg.norm(ways, axis=-1), np.inf)
    own = np.take_along_axis(ways, pace.argmin(axis=1)[:, None, None], axis=1)
    alike = np.linalg.norm(ways - own, axis=-1) < TOGETHER + SHAKES * shake
    fastest = SLOW * np.sqrt(9.81 * 0.5 * motion.skeleton.height) + SHAKES * shake
    return np.asarray(low & alike & (pace.min(axis=1) < fastest)[:, None])


def drifting(motion: Motion, given: Bool[Array, "frames"], known: Movement) -> float:
    """How fast the whole body slides over the floor, in metres a second, beyond what rolling and jittering feet do."""
    rests = resting_points(motion) & (given[1:] & given[:-1])[:, None]
    frames = rests.any(axis=1)
    if frames.sum() < FEWEST:
        return 0.0
    ways = np.diff(foot_positions(motion).reshape(len(motion), 4, 3)[..., [0, 2]], axis=0) * motion.fps
    slowest = np.where(rests, np.linalg.norm(ways, axis=-1), np.inf).argmin(axis=1)
    own = np.where(frames[:, None], ways[np.arange(len(ways)), slowest], 0.0)
    share = gaussian_filter1d(frames.astype(float), SWAY)[:, None]
    slide = np.linalg.norm(gaussian_filter1d(own, SWAY, axis=0) / np.maximum(share, 1e-9), axis=1)[frames]
    pace = np.median(np.linalg.norm(np.diff(motion.root_positions[:, [0, 2]], axis=0), axis=1)) * motion.fps
    usual = (USUAL + PACE * pace) ** 2 + (SHAKES * shaking(motion, known)) ** 2
    found = float(np.sqrt(max(0.0, np.median(slide) ** 2 - usual)))
    return found if found > DRIFTS else 0.0


def shaking(motion: Motion, known: Movement) -> float:
    """How far the noise of the hips moves the feet, in metres."""
    joints = [motion.skeleton.index(f"{side}_thigh") for side in SIDES]
    slots = np.flatnonzero(np.isin(space_of(motion).moving, joints))
    hips = [known.noise[ROOT_FREEDOMS + 3 * slot] for slot in slots]
    return float(0.5 * motion.skeleton.height * np.sqrt(2.0 * np.mean(hips)))
