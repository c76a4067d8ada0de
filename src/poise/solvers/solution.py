"""The two results: a `Solution` for a pose, a `MotionSolution` for a motion. Everything that answers returns one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Bool, Float

from poise.errors import InvalidValueError, PoiseError
from poise.geometry.cameras import Camera
from poise.motion.motion import Motion, Origin
from poise.priors.abilities import credits_of
from poise.savable import Savable
from poise.skeleton.pose_space import Handle, PoseSpace
from poise.skeleton.ranges import Overbent, beyond_people
from poise.skeleton.skeleton import Pose, Positions
from poise.solvers.constraints import Constraint, Orientation, Position
from poise.types import Array, PoseVector

if TYPE_CHECKING:
    from poise.priors.evidence import KnownFrame, KnownFrames
    from poise.priors.prior import Prior
    from poise.solvers.uncertainty import Deviations, Uncertainty


STRANGE = 1.0  # percent: a pose with a percentile below this is out of distribution
MISSED = {"m": 0.01, "rad": np.radians(1.0)}  # largest residual of a handle over a motion that counts as met


class NotSolvedError(PoiseError):
    """Raised by `Solution.or_raise` when a hard constraint could not be met."""


class Status(Enum):
    """The outcome of a solve."""

    REACHED = "all hard constraints are met"
    RELAXED = "some hard constraints cannot be met together; they are as close as they get"
    OUT_OF_TIME = "stopped at the step limit before all hard constraints were met"
    BROKEN = "no usable pose was found; this is the start pose"


STATUSES = tuple(Status)  # indexed by the compiled core's status number


@dataclass(frozen=True)
class Residual:
    """The residual of one constraint, in its unit."""

    label: str
    value: float
    unit: str
    hard: bool
    met: bool
    allowed: float  # the tolerance of a hard constraint, or three standard deviations of a soft one
    constraint: Constraint | None = None

    @property
    def excess(self) -> float:
        """The residual as a multiple of the allowed one."""
        return self.value / self.allowed

    def __str__(self) -> str:
        if self.unit == "m":
            return f"{self.label}: {1000 * self.value:{'.3g' if self.value < 1.0 else '.0f'}} mm off"
        if self.unit == "rad":
            return f"{self.label}: {np.degrees(self.value):.3g} degrees off"
        return f"{self.label}: {self.value:.3g} {self.unit} off"


@dataclass(eq=False, repr=False)
class Solution(Savable):
    """A solved pose vector with its residuals, status, steps and time.

    Residuals are computed on first access: a frame of a live performance has no time for texts. The class is not
    frozen, since freezing eight fields would take a twentieth of a tracked frame.
    """

    q: PoseVector
    space: PoseSpace
    measure: Callable[[], tuple[Residual, ...]]
    status: Status
    iterations: int
    microseconds: float
    prior: Prior | None = None
    notes: tuple[str, ...] = ()
    posterior_of: Callable[[], Uncertainty] | None = None

    @cached_property
    def uncertainty(self) -> Uncertainty:
        """The posterior given the constraints: joint standard deviations, samples, and the best handle to add next."""
        if self.posterior_of is None:
            raise InvalidValueError("uncertainty needs a learned prior and the method 'map'")
        return self.posterior_of()

    @property
    def deviation(self) -> Deviations:
        """Uncertainty of each joint's position by name or role: one standard deviation per axis, in metres."""
        return self.uncertainty.deviation

    @cached_property
    def residuals(self) -> tuple[Residual, ...]:
        """The residuals of all constraints, in their order."""
        return self.measure()

    @cached_property
    def pose(self) -> Pose:
        """The solved pose."""
        return self.space.pose_from_q(self.q)

    @property
    def positions(self) -> Positions:
        """Joint positions of the solved pose, by name or role: `solution.positions["right_hand"]`."""
        return self.pose.positions

    @property
    def reached(self) -> bool:
        """Whether every hard constraint is met."""
        return self.status is Status.REACHED

    @property
    def relaxed(self) -> tuple[Residual, ...]:
        """The hard constraints that could not be met, with the remaining distance."""
        return tuple(residual for residual in self.residuals if residual.hard and not residual.met)

    @property
    def unmet(self) -> tuple[Residual, ...]:
        """The constraints, hard and soft, whose residual is larger than allowed."""
        return tuple(residual for residual in self.residuals if residual.excess > 1.0)

    @property
    def seconds(self) -> float:
        """Duration of the solve."""
        return 1e-6 * self.microseconds

    @property
    def log_likelihood(self) -> float | None:
        """The pose's log density under the prior; None without a prior."""
        return None if self.prior is None else self.prior.log_likelihood(self.q)

    @property
    def percentile(self) -> float | None:
        """The percentage of training poses that are less likely than this one; None without a prior."""
        return None if self.prior is None else self.prior.percentile(self.q)

    @property
    def credits(self) -> tuple[str, ...]:
        """Databases and licences of the prior's training data, which exports include."""
        return () if self.prior is None else credits_of(self.prior)

    def nearest(self, count: int = 3) -> list[KnownFrame]:
        """The training frames with the nearest joints; empty if the prior does not keep them."""
        known: KnownFrames | None = getattr(self.prior, "known_frames", None)
        return [] if known is None else known.nearest(self.space, self.q, count)

    @property
    def strangeness(self) -> str:
        """A note that the pose is out of distribution, and in which limb; empty if it is not."""
        percentile = self.percentile
        if percentile is None or percentile >= STRANGE:
            return ""
        known: KnownFrames | None = getattr(self.prior, "known_frames", None)
        limb = f", most in its {known.odd_limb(self.space, self.q)}" if known is not None else ""
        return f"unlike what was learned{limb}"

    @cached_property
    def beyond_people(self) -> list[Overbent]:
        """The parts that are bent or turned further than people reach, the worst first."""
        return beyond_people(self.pose)

    @property
    def summary(self) -> str:
        """The status, with the constraints that could not be met."""
        return str(self)

    def __str__(self) -> str:
        words = [self.status.value, *(str(residual) for residual in self.relaxed), *self.notes]
        return f"{'; '.join(words)} ({self.iterations} steps, {self.microseconds:.0f} us)"

    def or_raise(self) -> Solution:
        """Return this solution, or raise NotSolvedError if a hard constraint could not be met."""
        if not self.reached:
            raise NotSolvedError(str(self))
        return self


AnySolution = TypeVar("AnySolution", bound=Solution)


def extended(kind: type[AnySolution], solution: Solution, **more: Any) -> AnySolution:
    """Convert a solution to a subclass; `more` adds or replaces fields."""
    return kind(**{each.name: getattr(solution, each.name) for each in fields(Solution)} | more)


@dataclass(eq=False, repr=False)
class MotionSolution(Savable):
    """A solved motion: a solution of every frame, what is unmet in words, and what it was solved from."""

    solutions: Sequence[Solution]
    fps: float
    name: str = ""
    notes: tuple[str, ...] = ()
    deviations: Float[Array, "_frames _joints"] = field(default_factory=lambda: np.zeros((0, 0)))
    """One standard deviation of each joint's position per axis, in metres; empty if not known."""
    standing: Bool[Array, "_frames _feet"] = field(default_factory=lambda: np.zeros((0, 0), dtype=np.bool_))
    """Whether the left and the right foot stand; empty unless contacts were estimated."""
    latents: Float[Array, "_frames _latent"] = field(default_factory=lambda: np.zeros((0, 0)))
    """The path through the latent space of a motion model; empty without one."""
    cameras: Sequence[Camera] = ()
    """The cameras that saw it, in its world."""
    sources: Sequence[Any] = ()
    """A report on each source that it was fused from."""

    def __len__(self) -> int:
        return len(self.solutions)

    @property
    def space(self) -> PoseSpace:
        """The pose space of its poses."""
        return self.solutions[0].space

    @cached_property
    def q(self) -> Float[Array, "frames size"]:
        """The pose vectors of all frames."""
        return np.stack([solution.q for solution in self.solutions])

    @cached_property
    def motion(self) -> Motion:
        """The motion."""
        frames, origin = self.space.frames_from_q(self.q), Origin(credits=self.credits)
        return Motion(self.space.skeleton, self.fps, *frames, name=self.name, origin=origin)

    @property
    def credits(self) -> tuple[str, ...]:
        """Databases and licences of the prior's training data, which exports include."""
        return self.solutions[0].credits

    @property
    def unmet(self) -> tuple[int, ...]:
        """The frames with a hard constraint that could not be met."""
        return tuple(frame for frame, solution in enumerate(self.solutions) if not solution.reached)

    @property
    def reached(self) -> bool:
        """Whether every hard constraint of every frame is met."""
        return not self.unmet

    def residuals(self, frame: int) -> dict[str, float]:
        """Residuals of a frame's constraints by label, each in its unit."""
        return {residual.label: residual.value for residual in self.solutions[frame].residuals}

    @cached_property
    def distances(self) -> dict[Handle, Float[Array, "frames"]]:
        """Each handle's distance in metres from the position asked of it, in every frame; NaN where it is free."""
        return self._over_time(Position)

    @cached_property
    def angles(self) -> dict[str, Float[Array, "frames"]]:
        """Each joint's angle in radians from the rotation asked of it, in every frame; NaN where it is free."""
        return {handle.joint: left for handle, left in self._over_time(Orientation).items()}

    @property
    def worst(self) -> float:
        """The largest distance of any handle from its position, in metres; 0 without positions."""
        return max((float(np.nanmax(left)) for left in self.distances.values()), default=0.0)

    @property
    def worst_turn(self) -> float:
        """The largest angle of any joint from its rotation, in radians; 0 without rotations."""
        return max((float(np.nanmax(left)) for left in self.angles.values()), default=0.0)

    def misses(self) -> list[str]:
        """What was not met, when and by how much, in words."""
        found = []
        for handle, left in self.distances.items():
            if np.any(late := left > MISSED["m"]):
                most = f"it misses by up to {1000 * np.nanmax(left):.0f} mm"
                found.append(f"{handle.joint} cannot reach its path {self._when(late)}; {most}")
        for joint, left in self.angles.items():
            if np.any(late := left > MISSED["rad"]):
                most = f"up to {np.degrees(np.nanmax(left)):.0f} degrees are missing"
                found.append(f"{joint} cannot rotate to its keys {self._when(late)}; {most}")
        others: dict[str, list[tuple[int, Residual]]] = {}
        for frame in self.unmet:
            for residual in self.solutions[frame].relaxed:
                if not isinstance(residual.constraint, Position | Orientation):
                    others.setdefault(residual.label, []).append((frame, residual))
        for missed in others.values():
            worst = max((residual for _, residual in missed), key=lambda residual: residual.value)
            late = np.isin(np.arange(len(self)), [frame for frame, _ in missed])
            found.append(f"{worst} {self._when(late)}")
        return found

    @property
    def summary(self) -> str:
        """The status of all frames, with what could not be met."""
        return str(self)

    def __str__(self) -> str:
        status = Status.REACHED if self.reached else Status.RELAXED
        return "; ".join([f"{len(self)} frames: {status.value}", *self.misses(), *self.notes])

    def or_raise(self) -> MotionSolution:
        """Return this solution, or raise NotSolvedError if a hard constraint of any frame could not be met."""
        if not self.reached:
            raise NotSolvedError(str(self))
        return self

    def _over_time(self, kind: type[Position | Orientation]) -> dict[Handle, Array]:
        """The residuals of one kind of constraint by handle, frame by frame."""
        found: dict[Handle, Array] = {}
        for frame, solution in enumerate(self.solutions):
            for residual in solution.residuals:
                if isinstance(residual.constraint, kind):
                    left = found.setdefault(residual.constraint.at, np.full(len(self), np.nan))
                    left[frame] = np.fmax(left[frame], residual.value)
        return found

    def _when(self, late: Bool[Array, "frames"]) -> str:
        frames = np.flatnonzero(late)
        first, last = frames[[0, -1]] / self.fps
        several = f"in {len(frames)} frames from {first:.2f} to {last:.2f} s"
        return f"at {first:.2f} s" if len(frames) == 1 else several
