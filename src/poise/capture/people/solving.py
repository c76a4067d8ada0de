"""Solve the body of a person seen by cameras, over a whole take at once.

Over all frames t it minimises

    sum |pixel - seen(q)|^2 / s^2 + sum |shape - carried(q)|^2 / d^2 + prior(q) + sum |q''|^2 / a^2 + standing feet

by Gauss-Newton steps on all frames together, a block-banded system (see `solvers.trajectory`). Outlier pixels are
weighted less. The detector's shape is used if a single camera leaves depths undetermined, relative to its own centre.
Standing feet stay: heel and toes of a contact are pulled to one position on the floor, which is estimated with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float

from poise.capture.people.landmarks import NAMES
from poise.capture.people.watched import LEAST_SEEN, WatchedPerson
from poise.motion.contacts import foot_contacts, foot_handles
from poise.motion.motion import Motion
from poise.priors.prior import Prior
from poise.skeleton.pose_space import Handle, Handles
from poise.solvers import core
from poise.solvers.block_banded import BlockBanded
from poise.solvers.constraints import Position, Projection
from poise.solvers.problem import Problem
from poise.solvers.rows import evaluate
from poise.solvers.trajectory import (
    ACCELERATIONS,
    LocalGaussian,
    Smoothness,
    rates,
    spread_accelerations,
    tangent_accelerations,
)
from poise.types import Array, Progress

ROUNDS = 28
ASKED_EVERY = 4  # rounds between evaluations of the prior
CONTACTS = range(4, 16)  # rounds in which contacts are detected; later ones are only added
FEWEST_FRAMES = 3  # shortest visible contact
LONGEST_STEP = 0.3  # radians or metres: largest change of a degree of freedom per step
FIXED = 1e12  # precision of fixed frames
SETTLED = 2e-3  # radians or metres: the rounds end when the largest step is shorter


@dataclass(frozen=True)
class Trust:
    """Standard deviations of each kind of evidence."""

    pixels: float = 0.008  # of the side of the person's square
    outlier: float = 2.5  # standard deviations at which a pixel has half weight
    shape: float = 0.12  # metres
    memory: float = 0.1  # seconds: correlation time of a detector's errors
    standing: float = 0.004  # metres: movement of a standing foot
    floor: float = 0.01  # metres: height of standing feet above the floor
    smoothness: Smoothness = field(default_factory=lambda: Smoothness(turning=25.0, moving=4.0))


@dataclass(frozen=True, eq=False)
class SolvedTake:
    """The poses of a take, the uncertainty of each joint's position (metres), and contacts."""

    q: Float[Array, "frames size"]
    sigmas: Float[Array, "frames joints"]
    standing: Bool[Array, "frames 2 2"]


class TakeSolver:
    """All frames of one person as one problem."""

    def __init__(
        self,
        prior: Prior,
        handles: Sequence[Handle],
        looser: Float[Array, "33"],
        person: WatchedPerson,
        shapes: Float[Array, "frames 33 3"] | None,
        trust: Trust,
    ) -> None:
        """`shapes` are rough world positions, of which only the shape counts; None if rays meet."""
        self.prior, self.space, self.person, self.trust = prior, prior.space, person, trust
        self.handles: Handles = self.space.handles(list(handles))
        self._shapes, self._looser = shapes, looser
        self._first = len(person.cameras) * len(NAMES)  # the blocks of shapes follow those of pixels
        template = self._template(handles)
        self._body, self._integers = template.body, template.integers
        self._floats = np.repeat(template.floats[None], len(person), axis=0)
        self._variances = np.full((len(person), len(template.rows)), np.inf)
        self._limits = template.limits
        self._local = LocalGaussian([prior], self.space, Handles(np.empty(0, np.int64), np.empty((0, 3))))
        self._aim()
        self.standing = np.zeros((len(person), 2, 2), dtype=np.bool_)
        self.held = 0  # first frames, which are fixed

    def solve(
        self, q: Float[Array, "frames size"], progress: Progress = lambda _done, _all: None
    ) -> SolvedTake:
        """Solve the take from a rough initial guess."""
        q = q.copy()
        for number in range(ROUNDS):
            before = self.standing
            if number >= CONTACTS.start and len(q) >= FEWEST_FRAMES:
                self._find_feet(q)
                if number not in CONTACTS:
                    self.standing = self.standing | before
            self._hold_feet(q)
            if number % ASKED_EVERY == 0:
                self._ask(q)
            went = self._step(q)
            progress(number + 1, ROUNDS)
            if went < SETTLED and number >= CONTACTS.stop and np.array_equal(self.standing, before):
                break
        return SolvedTake(q, self._uncertainty(q), self.standing)

    # --- private ---------------------------------------------------------------------------------------------------

    def _template(self, handles: Sequence[Handle]) -> Problem:
        """The rows of one frame: pixels of every camera, the shape, and feet."""
        pixels = [
            Projection(handle, camera, (0.0, 0.0), tolerance=1.0)
            for camera in self.person.cameras
            for handle in handles
        ]
        feet = foot_handles(self.space.skeleton)
        self._feet = self.space.handles(feet)
        places = [Position(handle, (0.0, 0.0, 0.0), tolerance=1.0) for handle in (*handles, *feet)]
        return Problem(self.space, [*pixels, *places], limits=self.prior.limits)

    def _aim(self) -> None:
        """Write the pixels and their uncertainties into the rows."""
        person, count = self.person, len(NAMES)
        held = np.sqrt(max(1.0, self.trust.memory * person.fps))
        for k, camera in enumerate(person.cameras):
            matrix, seen = camera.matrix, np.nan_to_num(person.pixels[:, k])

            shifted = np.empty((len(person), count, 3, 4))
            shifted[..., :2, :] = matrix[:2] - seen[..., None] * matrix[2]
            shifted[..., 2, :] = matrix[2]
            self._floats[:, k * count : (k + 1) * count, 3:15] = shifted.reshape(len(person), count, 12)
            weights = person.weights[:, k]
            with np.errstate(divide="ignore"):
                deviations = held * self.trust.pixels * person.sides[:, k, None] * self._looser / weights
            self._variances[:, 2 * k * count : 2 * (k + 1) * count] = np.repeat(deviations**2, 2, axis=1)
        self._own = self._variances[:, : 2 * self._first].copy()
        if self._shapes is not None:
            known = np.isfinite(self._shapes).all(axis=2)
            sure = np.maximum(person.visibility.max(axis=1), LEAST_SEEN)
            off = np.where(known, (held * self.trust.shape * self._looser / sure) ** 2, np.inf)
            self._variances[:, 2 * self._first : 2 * self._first + 3 * count] = np.repeat(off, 3, axis=1)

    def _place_shapes(self, q: Float[Array, "frames size"]) -> None:
        """Move the shapes to the current body: only their form counts."""
        if self._shapes is None:
            return
        carried = self.space.points(q, self.handles)
        shift = np.nanmean(carried - self._shapes, axis=1, keepdims=True)
        places = np.nan_to_num(self._shapes + shift)
        self._floats[:, self._first : self._first + len(NAMES), 3:6] = places

    def _ask(self, q: Float[Array, "frames size"]) -> None:
        """Evaluate the prior around every pose."""
        freedoms = self.space.freedoms
        self._pulls, self._precisions = np.empty((len(q), freedoms)), np.empty((len(q), freedoms, freedoms))
        for frame in range(len(q)):
            self._ask_at(q, frame)

    def _ask_at(self, q: Float[Array, "frames size"], frame: int) -> None:
        said = self._local(q[frame], (1.0,))
        self._pulls[frame], self._precisions[frame] = said.pull, said.precision

    def _step(self, q: Float[Array, "frames size"]) -> float:
        """Take one Gauss-Newton step of all frames, in place; return the largest change of a freedom."""
        self._place_shapes(q)
        freedoms = self.space.freedoms
        system, right = BlockBanded(len(q), freedoms), np.zeros((len(q), freedoms))
        for frame in range(len(q)):
            right[frame], system.bands[0][frame] = self._information(q, frame)
        rate = rates(freedoms, self.trust.smoothness, self.person.fps)
        system.add_differences(ACCELERATIONS, rate)
        if len(q) > 2:
            right -= spread_accelerations(rate * tangent_accelerations(q))
        right[: self.held] = 0.0
        system.bands[0][: self.held] += FIXED * np.eye(freedoms)
        steps = system.factored().solve(right)
        largest = np.abs(steps).max(axis=1, keepdims=True)
        steps *= np.minimum(1.0, LONGEST_STEP / np.maximum(largest, 1e-300))
        self._pulls -= np.einsum("fab,fb->fa", self._precisions, steps)
        for frame, step in enumerate(steps):
            q[frame] = self.space.integrate(q[frame], step)
            core.bring_inside(q[frame], self._limits)
        return float(largest.max())

    def _information(self, q: Float[Array, "frames size"], frame: int) -> tuple[Array, Array]:
        """The information of one frame's rows and prior: J' W e and J' W J."""
        errors, jacobian = (
            np.empty(self._variances.shape[1]),
            np.empty((self._variances.shape[1], q.shape[1] - 1)),
        )
        evaluate(q[frame], self._body, (self._integers, self._floats[frame]), errors, jacobian)
        variances = self._variances[frame].copy()
        pixels = slice(0, 2 * self._first)
        off = np.square(errors[pixels].reshape(-1, 2)).sum(axis=1) / self._own[frame, ::2]
        variances[pixels] = self._own[frame] * np.repeat((1.0 + off / self.trust.outlier**2) ** 2, 2)
        used = np.isfinite(variances)
        weighed = jacobian[used].T / variances[used]
        return (
            self._pulls[frame] + weighed @ errors[used],
            self._precisions[frame] + weighed @ jacobian[used],
        )

    def _find_feet(self, q: Float[Array, "frames size"]) -> None:
        """Detect standing heels and toes."""
        motion = Motion(self.space.skeleton, self.person.fps, *self.space.frames_from_q(q))
        self.standing = foot_contacts(motion).points

    def _hold_feet(self, q: Float[Array, "frames size"]) -> None:
        """Pull standing heels and toes to their positions."""
        first, rows = self._first + len(NAMES), 2 * self._first + 3 * len(NAMES)
        places = self._foot_places(q)
        self._floats[:, first : first + 4, 3:6] = np.nan_to_num(places)
        sure = np.square([self.trust.standing, self.trust.floor, self.trust.standing])
        self._variances[:, rows : rows + 12] = np.where(np.isnan(places), np.inf, sure).reshape(len(q), 12)

    def _foot_places(self, q: Float[Array, "frames size"]) -> Float[Array, "frames 4 3"]:
        """The position of every standing heel and toe, constant during a contact; NaN if it does not stand."""
        carried = self.space.points(q, self._feet)
        places = np.full(carried.shape, np.nan)
        for column, stands in enumerate(self.standing.reshape(len(q), 4).T):
            frames = np.flatnonzero(stands)
            for run in np.split(frames, np.flatnonzero(np.diff(frames) > 1) + 1) if len(frames) else ():
                places[run, column] = np.median(carried[run, column], axis=0)
                places[run, column, 1] = np.median(carried[frames, column, 1])
        return places

    def _uncertainty(self, q: Float[Array, "frames size"]) -> Float[Array, "frames joints"]:
        """Standard deviation per axis of each joint's position, from its own frame."""
        every = Handles(np.arange(len(self.space.skeleton)), np.zeros((len(self.space.skeleton), 3)))
        found = np.empty((len(q), len(every)))
        for frame in range(len(q)):
            _, jacobian = self.space.handle_positions(q[frame], every)
            spread = np.linalg.inv(self._information(q, frame)[1])
            found[frame] = np.sqrt(
                np.einsum("ij,jk,ik->i", jacobian, spread, jacobian).reshape(-1, 3).mean(axis=1)
            )
        return found
