"""The result of a solve: pose, residuals, status, likelihood and timing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, PoiseError
from poise.priors.abilities import credits_of
from poise.savable import Savable
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import Pose, Positions
from poise.types import Array

if TYPE_CHECKING:
    from poise.priors.known_frames import KnownFrame, KnownFrames
    from poise.priors.prior import Prior
    from poise.solvers.uncertainty import Deviations, Uncertainty


STRANGE = 1.0  # percent: a pose with a percentile below this is out of distribution


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

    q: Float[Array, "size"]
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
