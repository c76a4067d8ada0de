"""The terms of a person seen by cameras, for the solver of sequences: a whole take, or a sliding window.

    sum |pixel - seen(q)|^2 / s^2 + sum |shape - carried(q)|^2 / d^2 + prior(q) + sum |q''|^2 / a^2 + standing feet

Outlier pixels are weighted less. The detector's shape is used if a single camera leaves depths undetermined, relative
to its own centre. Standing feet stay: heel and toes of a contact are pulled to one position on the floor, which is
estimated with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from poise.motion.contacts import foot_contacts, foot_handles
from poise.motion.gaps import runs
from poise.motion.motion import Motion
from poise.priors.prior import Prior
from poise.priors.terms import Unknowns
from poise.skeleton.measure import length_between
from poise.skeleton.pose_space import Handle, Handles
from poise.skeleton.roles import SIDES
from poise.solvers.constraints import Constraint, Distance, Position, Projection
from poise.solvers.problem import Problem
from poise.solvers.sequence import PosePriors, Rows, SequenceSolver, Smoothness
from poise.solvers.solution import MotionSolution, Solution, Status
from poise.types import Array, Progress
from poise.vision.people.person import INDEX, NAMES
from poise.vision.people.watched import LEAST_SEEN, WatchedPerson

ROUNDS, SETTLED = 28, 1e-3  # most rounds, and nats per frame: feet that have just landed gain little
ASKED_EVERY = 4  # rounds between evaluations of the prior
CONTACTS = range(4, 16)  # rounds in which contacts are detected; later ones are only added
STRAIGHT = 0.998  # of a leg's length, from hip to ankle, in a stand
FEWEST_FRAMES = 3  # shortest visible contact


@dataclass(frozen=True)
class Trust:
    """Standard deviations of each kind of evidence."""

    pixels: float = 0.008  # of the side of the person's square
    outlier: float = 2.5  # standard deviations at which a pixel has half weight
    shape: float = 0.12  # metres
    memory: float = 0.1  # seconds: correlation time of a detector's errors
    straight: float = 0.01  # metres: how much shorter a leg is than a straight one, seen by one camera
    standing: float = 0.004  # metres: movement of a standing foot
    floor: float = 0.01  # metres: height of standing feet above the floor
    smoothness: Smoothness = field(default_factory=lambda: Smoothness(turning=25.0, moving=4.0))

    def held(self, fps: float) -> float:
        """The factor on deviations of errors that last for several frames."""
        return float(np.sqrt(max(1.0, self.memory * fps)))


class Pixels(Rows):
    """The pixels of all landmarks in all cameras."""

    def __init__(
        self,
        prior: Prior,
        handles: Sequence[Handle],
        looser: Float[Array, "33"],
        person: WatchedPerson,
        trust: Trust,
    ) -> None:
        pairs = [(handle, camera) for camera in person.cameras for handle in handles]
        rows = [Projection(handle, camera, (0.0, 0.0), tolerance=1.0) for handle, camera in pairs]
        super().__init__(Problem(prior.space, rows), len(person), outlier=trust.outlier)
        self._looser, self._trust = looser, trust
        self.aim(person)

    def aim(self, person: WatchedPerson) -> None:
        """Write the pixels and their uncertainties into the rows."""
        count = len(NAMES)
        for k, camera in enumerate(person.cameras):
            matrix, seen = camera.matrix, np.nan_to_num(person.pixels[:, k])
            shifted = np.empty((len(person), count, 3, 4))
            shifted[..., :2, :] = matrix[:2] - seen[..., None] * matrix[2]
            shifted[..., 2, :] = matrix[2]
            self.floats[:, k * count : (k + 1) * count, 3:15] = shifted.reshape(len(person), count, 12)
            with np.errstate(divide="ignore"):
                sides = self._trust.pixels * person.sides[:, k, None]
                deviations = self._trust.held(person.fps) * sides * self._looser / person.weights[:, k]
            self.variances[:, 2 * k * count : 2 * (k + 1) * count] = np.repeat(deviations**2, 2, axis=1)


class Shapes(Rows):
    """The detector's shapes: rough world positions of the landmarks, of which only the form counts."""

    def __init__(
        self, prior: Prior, handles: Sequence[Handle], looser: Float[Array, "33"], frames: int, trust: Trust
    ) -> None:
        rows = [Position(handle, (0.0, 0.0, 0.0), tolerance=1.0) for handle in handles]
        super().__init__(Problem(prior.space, rows), frames)
        self._space, self._handles = prior.space, prior.space.handles(list(handles))
        self._looser, self._trust = looser, trust

    def aim(self, person: WatchedPerson, shapes: Float[Array, "frames 33 3"]) -> None:
        """Take shapes, and write their uncertainties into the rows."""
        self._shapes = shapes
        sure = np.maximum(person.visibility.max(axis=1), LEAST_SEEN)
        off = (self._trust.held(person.fps) * self._trust.shape * self._looser / sure) ** 2
        known = np.isfinite(shapes).all(axis=2)
        self.variances[:] = np.repeat(np.where(known, off, np.inf), 3, axis=1)

    def update(self, now: Unknowns, number: int) -> bool:
        """Move the shapes to the current body."""
        del number
        carried = self._space.points(now.q, self._handles)
        off = carried - self._shapes
        seen = np.maximum(np.isfinite(off).sum(axis=1, keepdims=True), 1)
        self.floats[:, :, 3:6] = np.nan_to_num(self._shapes + np.nansum(off, axis=1, keepdims=True) / seen)
        return False


class StandingFeet(Rows):
    """Standing heels and toes are pulled to their places on the floor."""

    def __init__(self, prior: Prior, person: WatchedPerson, trust: Trust) -> None:
        feet = foot_handles(prior.space.skeleton)
        rows = [Position(handle, (0.0, 0.0, 0.0), tolerance=1.0) for handle in feet]
        super().__init__(Problem(prior.space, rows), len(person))
        self._space, self.feet, self._fps = prior.space, prior.space.handles(feet), person.fps
        self._sure = np.square([trust.standing, trust.floor, trust.standing])
        self.standing = np.zeros((len(person), 2, 2), dtype=np.bool_)

    def update(self, now: Unknowns, number: int) -> bool:
        """Detect standing heels and toes, and estimate their places; true while contacts may change."""
        before = self.standing
        if number >= CONTACTS.start and len(now) >= FEWEST_FRAMES:
            self.standing = self.found(now.q)
            if number not in CONTACTS:
                self.standing = self.standing | before
        carried = self._space.points(now.q, self.feet)
        places = np.full(carried.shape, np.nan)  # constant during a contact
        for column, stands in enumerate(self.standing.reshape(len(now), 4).T):
            for run in runs(stands):
                places[run, column] = np.median(carried[run, column], axis=0)
                places[run, column, 1] = np.median(carried[stands, column, 1])
        self.hold(places)
        return number < CONTACTS.stop or not np.array_equal(self.standing, before)

    def found(self, q: Float[Array, "frames size"]) -> Array:
        """The heels and toes that stand, by side."""
        return foot_contacts(Motion(self._space.skeleton, self._fps, *self._space.frames_from_q(q))).points

    def hold(self, places: Float[Array, "frames 4 3"]) -> None:
        """Pull heels and toes to places; NaN where they do not stand."""
        self.floats[:, :, 3:6] = np.nan_to_num(places)
        free = np.isnan(places)
        self.variances[:] = np.where(free, np.inf, self._sure).reshape(len(places), 12)


class StraightLegs(Rows):
    """Legs are straight unless the picture says otherwise: one camera hardly tells a bent knee from a straight one.

    A knee bent by 30 degrees towards the camera shortens a leg by 3 %, as much as a landmark is off. A leg counts less
    the farther its knee is beside the line from hip to ankle, and if it is clearly shorter in the picture.
    """

    def __init__(self, prior: Prior, person: WatchedPerson, trust: Trust) -> None:
        skeleton, rows, beside = prior.space.skeleton, list[Constraint](), list[Array]()
        for side in SIDES:
            top, end = f"{side}_thigh", f"{side}_foot"
            rows.append(Distance(top, end, STRAIGHT * length_between(skeleton, top, end)))
            hip, knee, ankle = (person.pixels[:, 0, INDEX[f"{side}_{at}"]] for at in ("hip", "knee", "ankle"))
            (x, y), (own_x, own_y) = (ankle - hip).T, (knee - hip).T
            beside.append(np.abs(x * own_y - y * own_x) / np.maximum(np.hypot(x, y), 1.0))
        super().__init__(Problem(prior.space, rows), len(person), outlier=trust.outlier)
        sure = trust.pixels * person.sides[:, 0, None]
        seen = np.nan_to_num(np.stack(beside, axis=1)) / (trust.held(person.fps) * sure)
        self.variances[:] = (trust.held(person.fps) * trust.straight) ** 2 * (1.0 + seen**2)


def priors_of(prior: Prior, frames: int, *, every: int = ASKED_EVERY) -> PosePriors:
    """The prior at every frame, which predicts from no handle."""
    none = Handles(np.empty(0, np.int64), np.empty((0, 3)))
    return PosePriors([prior], prior.space, [none] * frames, [(1.0,)] * frames, every=every)


def solve_person(
    prior: Prior,
    handles: Sequence[Handle],
    looser: Float[Array, "33"],
    person: WatchedPerson,
    shapes: Float[Array, "frames 33 3"] | None,
    start: Float[Array, "frames size"],
    trust: Trust,
    progress: Progress = lambda _done, _all: None,
) -> MotionSolution:
    """Solve the take from a rough initial guess; `shapes` are given if a single camera leaves depths open."""
    feet = StandingFeet(prior, person, trust)
    rows: list[Rows] = [Pixels(prior, handles, looser, person, trust), feet]
    if shapes is not None:
        rows.append(form := Shapes(prior, handles, looser, len(person), trust))
        form.aim(person, shapes)
        rows.append(StraightLegs(prior, person, trust))
    smooth = trust.smoothness.term(prior.space.freedoms, person.fps)
    solver = SequenceSolver(prior.space, [*rows, priors_of(prior, len(person)), smooth], limits=prior.limits)
    found, rounds = solver.solve(
        Unknowns(start), rounds=ROUNDS, settled=SETTLED, progress=lambda done: progress(done, ROUNDS)
    )
    solutions = [Solution(q, prior.space, tuple, Status.REACHED, rounds, 0.0, prior) for q in found.q]
    deviations, standing = solver.deviations(found), np.asarray(feet.standing.any(axis=2))
    return MotionSolution(
        solutions, person.fps, deviations=deviations, standing=standing, cameras=person.cameras
    )
