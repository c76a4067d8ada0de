"""What an objective over time is made of: terms, each of which adds its part of a banded system.

A sequence has unknowns of every frame (a pose, and latent points if a term needs them) and unknowns that all frames
share (lengths of bones, places of markers, cameras). A `Term` gives its cost, and adds minus its gradient and its
Gauss-Newton curvature to a `System`. The solver of sequences (`solvers.sequence`) knows only terms.

A learned model of motion offers its terms by `motion_terms` (`MotionModel`), such as a `WindowGaussian`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.geometry import rotations
from poise.geometry.block_banded import BlockBanded
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import Handles
from poise.types import Array

HELD = 1e12  # precision of unknowns that are held; their steps are zero
DIFFERENCES = ((1.0,), (-1.0, 1.0), (1.0, -2.0, 1.0))  # coefficients from frame to frame, by order
_TURN = slice(3, ROOT_FREEDOMS)


@dataclass(frozen=True, eq=False)
class Unknowns:
    """The unknowns of a sequence: poses, latent points of every frame, and what all frames share."""

    q: Float[Array, "frames size"]
    x: Float[Array, "frames latent"] = field(default_factory=lambda: np.zeros((1, 0)))
    shared: Float[Array, "shared"] = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if self.x.shape[1] == 0:
            object.__setattr__(self, "x", np.zeros((len(self.q), 0)))

    def __len__(self) -> int:
        return len(self.q)

    @classmethod
    def bodiless(cls, x: Float[Array, "frames latent"]) -> Unknowns:
        """Frames whose only unknowns are latent ones: their poses have no freedoms."""
        return cls(np.zeros((len(x), 1)), x)


class System:
    """The Gauss-Newton system of a sequence, H step = right, to which terms add.

    A block has the freedoms of a frame's pose and then its latent unknowns. `border` and `corner` are the curvature
    of the shared unknowns with every frame, and among themselves.
    """

    def __init__(self, now: Unknowns, *, reach: int) -> None:
        frames, shared = len(now), len(now.shared)
        self.freedoms = now.q.shape[1] - 1
        self.matrix = BlockBanded(frames, self.freedoms + now.x.shape[1], reach=reach)
        self.right = np.zeros((frames, self.matrix.size))
        self.border, self.corner = np.zeros((frames, self.matrix.size, shared)), np.zeros((shared, shared))
        self.shared_right = np.zeros(shared)
        self.held: Bool[Array, "frames block"] = np.zeros(self.right.shape, dtype=np.bool_)

    @property
    def bands(self) -> list[Float[Array, "blocks block block"]]:
        """The blocks of the curvature: `bands[k][i]` in row i + k and column i."""
        return self.matrix.bands

    def steps(self, damping: float) -> tuple[Float[Array, "frames block"], Float[Array, "shared"]]:
        """The step of every frame and of the shared unknowns, with the diagonal increased by a share of itself."""
        diagonal = np.einsum("tii->ti", self.bands[0])
        own = diagonal.copy()
        diagonal[:] = np.where(self.held, HELD, (1.0 + damping) * own)
        factor = self.matrix.factored()
        diagonal[:] = own
        steps = factor.solve(np.where(self.held, 0.0, self.right))
        shared = np.zeros(len(self.corner))
        if len(shared):
            border = np.where(self.held[..., None], 0.0, self.border)
            eliminated, flat = factor.solve(border), border.reshape(-1, len(shared))
            corner = self.corner + damping * np.diag(np.diag(self.corner))
            shared = np.linalg.solve(
                corner - flat.T @ eliminated.reshape(flat.shape),
                self.shared_right - flat.T @ steps.ravel(),
            )
            steps = steps - eliminated @ shared
        return np.where(self.held, 0.0, steps), shared


class Term(ABC):
    """One part of an objective over time. An outside term needs `cost` and `add` alone.

    Costs are negative log densities: half the weighted squares. `add` adds minus the gradient to `system.right` and
    the curvature to `system.bands`, up to `reach` frames apart. A term with unknowns of its own declares how many;
    the solver sets `own`, their columns of `now.x`, and `common`, their part of `now.shared`.
    """

    reach: int = 0
    latent: int = 0
    shared: int = 0
    own: slice = slice(0, 0)
    common: slice = slice(0, 0)

    def update(self, now: Unknowns, number: int) -> bool:
        """Look at the sequence before a round, e.g. ask a prior again; true if the rounds must go on."""
        del now, number
        return False

    def inside(self, x: Float[Array, "frames latent"]) -> Float[Array, "frames latent"]:
        """The valid latent points nearest to some: of coordinates with ranges, those within."""
        return x

    @abstractmethod
    def cost(self, now: Unknowns) -> float:
        """The cost at these unknowns."""

    @abstractmethod
    def add(self, now: Unknowns, system: System) -> None:
        """Add minus the gradient and the curvature."""


class WindowGaussian(Term):
    """A Gaussian over a window of frames: mean poses, and a precision for every frame.

    With order 1 or 2 the precision is that of first or second differences of the deviation from the mean, so the
    first one couples frames `first` and `first + 1`. A `pull` is a force besides, as of a Gaussian whose mean is not
    at `mean` (see `Information`).
    """

    def __init__(
        self,
        first: int,
        mean: Float[Array, "window size"],
        precision: Float[Array, "freedoms"] | Float[Array, "terms freedoms freedoms"],
        *,
        order: int = 0,
        pull: Float[Array, "window freedoms"] | None = None,
    ) -> None:
        self.reach = order
        self.first, self.mean, self.order = first, np.array(mean), order
        freedoms, terms = mean.shape[1] - 1, max(0, len(mean) - order)
        blocks = np.diag(precision) if precision.ndim == 1 else precision
        self.precision = np.array(np.broadcast_to(blocks, (terms, freedoms, freedoms)))
        self.pull = np.zeros((len(mean), freedoms)) if pull is None else np.array(pull)

    def cost(self, now: Unknowns) -> float:
        """Half the squared deviation in the precision, less the pull."""
        away = self._away(now)
        changes = np.diff(away, n=self.order, axis=0)
        return 0.5 * float(np.vdot(changes, self._weighed(changes))) - float(np.vdot(self.pull, away))

    def add(self, now: Unknowns, system: System) -> None:
        """Add the pull to the mean, and the precision."""
        away = self._away(now)
        forces = self.pull - spread(self._weighed(np.diff(away, n=self.order, axis=0)), self.order)
        turned = np.swapaxes(rotations.right_jacobian(away[:, _TURN]), 1, 2)
        forces[:, _TURN] = np.linalg.solve(turned, forces[:, _TURN, None])[..., 0]
        system.right[self._frames, : system.freedoms] += forces
        system.matrix.add_differences(DIFFERENCES[self.order], self.precision, first=self.first)

    @property
    def _frames(self) -> slice:
        return slice(self.first, self.first + len(self.mean))

    def _away(self, now: Unknowns) -> Float[Array, "window freedoms"]:
        return tangents(self.mean, now.q[self._frames])

    def _weighed(self, changes: Float[Array, "terms freedoms"]) -> Float[Array, "terms freedoms"]:
        return np.einsum("tab,tb->ta", self.precision, changes)


class Accelerations(Term):
    """Smoothness: second differences of every freedom, each with its precision."""

    reach = 2

    def __init__(self, precision: Float[Array, "freedoms"]) -> None:
        self.precision = precision

    def cost(self, now: Unknowns) -> float:
        """Half the weighted squares of the accelerations."""
        return 0.5 * float((np.diff(velocities(now.q), axis=0) ** 2 @ self.precision).sum())

    def add(self, now: Unknowns, system: System) -> None:
        """Add the forces of the accelerations; the root's rotations are compared in its own frame."""
        speeds = velocities(now.q)
        forces = -spread(self.precision * np.diff(speeds, axis=0), 1)[: len(speeds)]
        ahead, behind = forces, forces.copy()
        if len(speeds):
            turned = rotations.right_jacobian(speeds[:, _TURN])
            behind[:, _TURN] = np.linalg.solve(turned, forces[:, _TURN, None])[..., 0]
            ahead[:, _TURN] = np.linalg.solve(np.swapaxes(turned, 1, 2), forces[:, _TURN, None])[..., 0]
        system.right[1:, : system.freedoms] += ahead
        system.right[:-1, : system.freedoms] -= behind
        system.matrix.add_differences(DIFFERENCES[2], self.precision)


class SharedGaussian(Term):
    """A Gaussian on the shared unknowns of another term, with a precision for each."""

    def __init__(self, of: Term, mean: Float[Array, "shared"], precision: Float[Array, "shared"]) -> None:
        self._of, self._mean, self._precision = of, mean, precision

    def cost(self, now: Unknowns) -> float:
        """Half the weighted squared deviation."""
        return 0.5 * float(self._precision @ np.square(now.shared[self._of.common] - self._mean))

    def add(self, now: Unknowns, system: System) -> None:
        """Add the pull to the mean, and the precision."""
        common = self._of.common
        system.shared_right[common] += self._precision * (self._mean - now.shared[common])
        system.corner[common, common] += np.diag(self._precision)


class Held(Term):
    """Some frames stay as they are: whole poses that are given, or the past of a motion that continues."""

    def __init__(self, frames: slice | Int[Array, "held"]) -> None:
        self.frames = frames

    def cost(self, now: Unknowns) -> float:
        """None: what is held costs nothing."""
        del now
        return 0.0

    def add(self, now: Unknowns, system: System) -> None:
        """Hold the frames."""
        del now
        system.held[self.frames] = True


@dataclass(frozen=True, eq=False)
class Targets:
    """Positions that handles should have over time: what is asked of a motion, as models of motion see it."""

    times: Float[Array, "targets"]
    handles: Handles
    points: Float[Array, "targets 3"]

    def within(self, first: float, end: float) -> Targets:
        """The targets from time `first` up to `end`."""
        kept = (self.times >= first) & (self.times < end)
        handles = Handles(self.handles.joints[kept], self.handles.offsets[kept])
        return Targets(self.times[kept], handles, self.points[kept])

    def thinned(self, most: int) -> Targets:
        """Evenly spaced ones, if there are more than this."""
        kept = slice(None, None, max(1, -(-len(self) // most)))
        handles = Handles(self.handles.joints[kept], self.handles.offsets[kept])
        return Targets(self.times[kept], handles, self.points[kept])

    def __len__(self) -> int:
        return len(self.times)


@runtime_checkable
class MotionModel(Protocol):
    """A prior that models motion: an initial guess and the terms of the objective, instead of a Gaussian per frame."""

    def motion_start(
        self, targets: Targets, *, frames: int, fps: float, rng: np.random.Generator
    ) -> Unknowns | None:
        """Poses and latent points near the targets; None for frames that are solved one after the other."""

    def motion_terms(self, targets: Targets, *, frames: int, fps: float) -> Sequence[Term]:
        """The terms of the likelihood of a motion at this frame rate."""


def tangents(
    first: Float[Array, "frames size"], second: Float[Array, "frames size"]
) -> Float[Array, "frames freedoms"]:
    """The steps in the tangent space from poses to others; root rotations in the first ones' own frames."""
    turns = rotations.multiply(rotations.conjugate(first[:, 3:ROOT_SIZE]), second[:, 3:ROOT_SIZE])
    gaps, turned = second - first, rotations.expmap_from_quaternion(rotations.canonical(turns))
    return np.hstack([gaps[:, :3], turned, gaps[:, ROOT_SIZE:]])


def velocities(q: Float[Array, "frames size"]) -> Float[Array, "between freedoms"]:
    """First differences in the tangent space."""
    return tangents(q[:-1], q[1:])


def spread(forces: Float[Array, "terms freedoms"], order: int) -> Float[Array, "frames freedoms"]:
    """The adjoint of differences of an order: distribute them to the frames that they are computed from."""
    found = np.zeros((len(forces) + order, forces.shape[1]))
    for k, coefficient in enumerate(DIFFERENCES[order]):
        found[k : k + len(forces)] += coefficient * forces
    return found
