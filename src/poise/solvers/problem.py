"""A problem in the form of the compiled solver: constraints as arrays, free degrees of freedom, joint limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Float

from poise.bounds import FARTHEST, is_number
from poise.compiled import compiled
from poise.errors import InvalidValueError, UnknownNameError
from poise.geometry import rotations
from poise.priors.forms import fixed, root_gap
from poise.priors.prior import ALL, Facing, Steps
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import Handles, PoseSpace, all_finite
from poise.skeleton.skeleton import JointLimits, read_only
from poise.solvers import core, dual_step
from poise.solvers.constraints import (
    PARAMETERS,
    ROWS,
    Block,
    Constraint,
    Kind,
    Pinned,
    Position,
    finite_vectors,
)
from poise.solvers.measured import MeasuredConstraint
from poise.solvers.rows import evaluate
from poise.solvers.solution import Residual
from poise.types import Array, Points, PoseVector

Root = Literal["solved", "given"]

MOST_LEVELS = 16  # distinct priorities among hard constraints
MOST_STEPS = 1_000_000
ROUNDS = 20  # rounds of solving and remeasuring constraints written in Python
AGREED = 0.1  # of the tolerance: largest difference between the solved and the measured residual
UNIT_SLACK = 1e-9  # largest deviation of a start's squared quaternion norm from one before it is normalised
UNLIKELY = 3.0  # standard deviations beyond which a soft constraint counts as not met
CLOSE_TURN = 0.2  # radians: largest tolerance of an orientation that is passed to a prior
SOFT_STEP = 1e4  # compliance of a soft constraint relative to the last hard one, without a prior


@dataclass(frozen=True)
class Settings:
    """Step limits and tolerances of the solver; the defaults suit a body in metres."""

    tolerance: float = 1e-3  # metres or radians: largest residual of a hard constraint that counts as met
    map_steps: int = 10
    finish_steps: int = 60
    longest_turn: float = 0.8  # radians (metres, for the root) in one step
    longest_pull: float = 0.4  # metres or radians: largest pull of one constraint in one step
    step_tolerance: float = 1e-2  # radians: after a step this short, the next (about its square) is skipped

    def __post_init__(self) -> None:
        for setting in fields(self):
            if not is_number(value := getattr(self, setting.name)):
                raise InvalidValueError(f"the solver's {setting.name} must be a number; got {value!r:.40}")
        if not self.tolerance > 0:
            raise InvalidValueError(f"the solver's tolerance must be positive; got {self.tolerance}")
        if not np.all((self.array() >= 0) & (self.array() <= MOST_STEPS)):
            raise InvalidValueError(f"the solver's settings must be between 0 and {MOST_STEPS:,}; got {self}")

    def array(self) -> Array:
        """The settings in the form that the compiled core takes."""
        of_core = ("tolerance", "finish_steps", "longest_turn", "longest_pull", "step_tolerance")
        return np.array([getattr(self, name) for name in of_core], dtype=np.float64)


class Trail(NamedTuple):
    """States visited by solves from several starts, and the distance below which two count as the same."""

    states: Float[Array, "places state"]
    passed: int
    together: float


NO_TRAIL = Trail(np.empty((0, 0)), 0, 0.0)


class Problem:
    """Constraints on the poses of one space, in the arrays of the compiled core."""

    def __init__(
        self,
        space: PoseSpace,
        constraints: Sequence[Constraint],
        *,
        root: Root = "solved",
        limits: JointLimits | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.space, self.root, self.settings = space, root, settings or Settings()
        if not isinstance(root, str) or root not in get_args(Root):
            raise UnknownNameError("way to treat the `root`,", str(root)[:40], get_args(Root))
        if not isinstance(self.settings, Settings):
            raise InvalidValueError(f"`settings` must be poise.Settings(...); got {settings!r:.60}")
        self._shape = (space.size,)
        for constraint in constraints:
            constraint.check()
        self.pins = tuple(c for c in constraints if isinstance(c, Pinned) and c.hard)
        self.ignored = tuple(c for c in constraints if np.isinf(c.compliance))
        self.constraints = _measured(constraints)
        self.integers, self.floats, self.rows, self._rows_of = self._encode()
        bounds, moving = np.tile(np.array([[-np.inf], [np.inf]]), (1, space.freedoms)), space.moving
        if (limits := limits if limits is not None else space.skeleton.limits) is not None:
            if not np.allclose(limits.references[moving], space.references[moving], atol=1e-9):
                raise InvalidValueError("joint limits and pose space must share their reference rotations")
            bounds[:, ROOT_FREEDOMS:] = limits.lower[moving].ravel(), limits.upper[moving].ravel()
        self.limits = read_only(bounds)
        self.free = np.ones(space.freedoms, dtype=np.bool_)
        self.free[:ROOT_FREEDOMS] = root == "solved"
        for slot in [slot for pin in self.pins for slot in pin.slots(space)]:
            self.free[ROOT_FREEDOMS + 3 * slot : ROOT_FREEDOMS + 3 * slot + 3] = False
        self._inequalities = self.rows[:, dual_step.INEQUALITY] == 1.0  # hold where their error is negative
        self._has_soft_rows = bool(np.any(self.rows[:, dual_step.VARIANCE] > 0.0))
        needs_mass = np.any(self.integers[:, 0] == Kind.CENTRE_OF_MASS)
        self.body = (*space.tree, space.masses if needs_mass else read_only(np.zeros((0, 4))))
        self.blocks = (self.integers, self.floats)
        self.settings_array, self.unfinished = self.settings.array(), self.settings.array()
        self.unfinished[core.FINISH_STEPS] = core.NO_FINISH

    @cached_property
    def position_blocks(self) -> Array:
        """Indices of the position blocks, which a prior can predict from."""
        return np.flatnonzero(self.integers[:, 0] == Kind.POSITION)

    @cached_property
    def handles(self) -> Handles:
        """The handles that have a position constraint."""
        blocks = self.position_blocks
        return Handles(self.integers[blocks, 1], self.floats[blocks, :3])

    @property
    def targets(self) -> Points:
        """Target positions of the handles."""
        return self.floats[self._position_rows, 3:6].copy()

    @property
    def facing(self) -> Facing | None:
        """Orientation and look-at targets with close tolerances; None if there are none."""
        turned, looking = self._facing_blocks
        if len(turned) + len(looking) == 0:
            return None
        turns = self.floats[turned, 3:12].reshape(-1, 3, 3)
        joints, floats = self.integers[:, 1], self.floats[looking]
        return Facing(joints[turned], turns, joints[looking], floats[:, 6:9], floats[:, 3:6])

    @cached_property
    def _facing_blocks(self) -> tuple[Array, Array]:
        """The orientation and look-at blocks with tolerances up to `CLOSE_TURN`."""
        kinds, variances = self.integers[:, 0], self.rows[self.integers[:, 3], dual_step.VARIANCE]
        close = variances <= CLOSE_TURN**2
        turned, looking = (close & (kinds == kind) for kind in (Kind.ORIENTATION, Kind.LOOK_AT))
        return np.flatnonzero(turned), np.flatnonzero(looking)

    @cached_property
    def _position_rows(self) -> Array | slice:
        """The position blocks; as a slice, which is faster to read, if they are contiguous."""
        blocks = self.position_blocks
        together = len(blocks) > 0 and blocks[-1] - blocks[0] == len(blocks) - 1
        return slice(int(blocks[0]), int(blocks[-1]) + 1) if together else blocks

    def with_targets(self, targets: Points) -> Problem:
        """Set new targets for the position constraints, in their order; everything else is kept."""
        targets, expected = np.asarray(targets, dtype=np.float64), (len(self.position_blocks), 3)
        if targets.shape != expected or not _aim(targets, self.position_blocks, self.floats):
            if targets.shape != expected or not all_finite(targets):
                raise InvalidValueError(
                    f"targets must be {expected} finite numbers; got shape {targets.shape}"
                )
            raise InvalidValueError(
                f"targets must be within {FARTHEST:,.0f} m; got {np.abs(targets).max():g}"
            )
        return self

    def retarget(self, constraints: Sequence[Constraint]) -> Problem:
        """Set new targets for all constraints, which must have the same signatures in the same order."""
        constraints = _measured(constraints)
        if [one.signature for one in constraints] != [one.signature for one in self.constraints]:
            raise InvalidValueError("new targets must be for the problem's own constraints, in their order")
        self.floats[:] = self.parameters([constraints])[0]
        return self

    def aim(self, targets: Sequence[Sequence[float] | Array], last: Sequence[Constraint]) -> bool:
        """Move the first positions and the last constraints, if all numbers are valid; return whether they are."""
        blocks = [block for constraint in last for block in constraint.blocks_on(self.space)]
        try:
            points = np.array(targets, dtype=np.float64).reshape(-1, 3)
        except (TypeError, ValueError):
            return False
        if len(points) != len(targets) or not _aim(points, self.position_blocks, self.floats):
            return False
        _write(blocks, self.floats[len(self.floats) - len(blocks) :])
        return True

    def parameters(self, frames: Sequence[Sequence[Constraint]]) -> Float[Array, "frames blocks parameters"]:
        """The parameters of the same constraints with other targets, for many frames."""
        floats = np.repeat(self.floats[None], len(frames), axis=0)
        if all(type(constraint) is Position for constraint in self.constraints):
            targets = [[constraint.target for constraint in frame] for frame in frames]  # type: ignore[attr-defined]
            floats[:, :, 3:6] = finite_vectors(targets, (len(frames), len(self.constraints), 3))
            return floats
        kinds = list(map(tuple, self.integers[:, :2].tolist()))
        for own, frame in zip(floats, frames, strict=True):
            blocks = [block for constraint in frame for block in constraint.blocks_on(self.space)]
            if [(block.kind, block.joint) for block in blocks] != kinds:
                raise InvalidValueError(
                    "new targets must be for the problem's own constraints, in their order"
                )
            _write(blocks, own)
        return floats

    def start(self, q: PoseVector) -> PoseVector:
        """A copy of the start with its root's quaternion at unit length and pinned joints at their rotations."""
        q = np.array(q, dtype=np.float64)
        if q.shape != self._shape or not _plausible(q):
            if np.abs(self.space.checked(q)).max() > FARTHEST:
                raise InvalidValueError(
                    f"the start pose must be within {FARTHEST:,.0f} m of the origin; got {np.abs(q).max():g}"
                )
            q[3:ROOT_SIZE] = rotations.normalize(q[3:ROOT_SIZE])
        return self.pinned(q) if self.pins else q

    def pinned(self, q: PoseVector) -> PoseVector:
        """Set pinned joints to their rotations, in place."""
        for pin in self.pins:
            for first in [ROOT_SIZE + 3 * slot for slot in pin.slots(self.space)]:
                q[first : first + 3] = pin.q[first : first + 3]
        return q

    def run(
        self, q: PoseVector, mean: Float[Array, "maps"], covariance: Float[Array, "rows freedoms"]
    ) -> tuple[int, int, Array]:
        """Solve under one Gaussian; q is moved in place. Returns the status, steps and remaining row errors."""
        return self.through(q, np.empty(0), fixed(mean, covariance), (ALL,))

    def through(
        self,
        q: PoseVector,
        x: Float[Array, "state"],
        forms: tuple[Any, ...],
        steps: Steps,
        *,
        settings: Float[Array, "settings"] | None = None,
        trail: Trail = NO_TRAIL,
    ) -> tuple[int, int, Array]:
        """Solve through the stages of a prior, one compiled call each; q and the prior's state x are moved in place.

        `forms` go from smooth to fine, each for at most its number in `steps`. See `core.solve`.
        """
        errors, total, status = np.empty(len(self.rows)), 0, core.BROKEN
        stages = [stage for stage, count in enumerate(steps) if count]
        final = self.settings_array if settings is None else settings
        for stage in stages:
            count = self.settings.map_steps if steps[stage] == ALL else steps[stage]
            arguments = (
                q, x, self.body, self.blocks, self.rows, forms[stage], count, self.free, self.limits,
                final if stage == stages[-1] else self.unfinished, errors, *trail,
            )  # fmt: skip
            status, taken = self._called(q, errors, core.solve, arguments)
            total += taken
        return status, total, errors

    def _called(
        self,
        q: PoseVector,
        errors: Float[Array, "rows"],
        compiled: Callable[..., tuple[int, int]],
        arguments: tuple[Any, ...],
    ) -> tuple[int, int]:
        """Run a compiled solve and return status and steps; repeatedly if there are constraints in Python."""
        try:
            if self.in_python:
                return self._measured_solve(q, errors, lambda: compiled(*arguments))
            return compiled(*arguments)
        except np.linalg.LinAlgError:  # the prior has no valid Gaussian here, e.g. from a damaged file
            errors[:] = np.inf
            return core.BROKEN, 0

    def finish(
        self,
        q: PoseVector,
        covariance: Float[Array, "rows freedoms"],
        *,
        soft_too: bool = False,
        share: float = 1.0,
    ) -> tuple[int, int, Array]:
        """Meet the hard constraints alone by the smallest change in a metric; q is moved in place. Returns as `run`.

        Without a prior to weigh them, soft constraints may be included with `soft_too`, below all hard ones. It goes
        on until they are met to a `share` of their tolerance.
        """
        errors, settings = np.empty(len(self.rows)), self.settings_array
        if share != 1.0:
            settings = settings.copy()
            settings[core.TOLERANCE] *= share
        arguments = (
            q, self.body, self.blocks, self.rows, covariance, self.limits, settings, errors, soft_too,
        )  # fmt: skip
        status, steps = self._called(q, errors, core.meet, arguments)
        if share < 1.0 and status != core.BROKEN and self.rank(errors)[0] <= self.settings.tolerance:
            status = core.REACHED
        return status, steps, errors

    def farthest(self, q: PoseVector) -> float:
        """The largest row error at a pose, in metres or radians."""
        return float(np.abs(self.errors(q)[0]).max(initial=0.0))

    def errors(self, q: PoseVector) -> tuple[Float[Array, "rows"], Float[Array, "rows freedoms"]]:
        """The error of each row at a pose, and the rows' Jacobian."""
        self._measure(q)
        errors, jacobian = np.empty(len(self.rows)), np.empty((len(self.rows), self.space.freedoms))
        evaluate(q, self.body, self.blocks, errors, jacobian)
        return errors, jacobian

    def cost(self, errors: Float[Array, "rows"]) -> float:
        """Squared errors of the hard constraints, those of lower priority weighted less."""
        hard = self.rows[:, dual_step.VARIANCE] == 0.0
        left = np.where(self._inequalities, np.maximum(errors, 0.0), errors)
        return float(np.sum(left[hard] ** 2 / self.rows[hard, dual_step.COMPLIANCE]))

    def soft_loss(self, errors: Float[Array, "rows"]) -> float:
        """Half the squared errors of soft rows over their variances: their part of the negative log-likelihood."""
        if not self._has_soft_rows:
            return 0.0
        variances = self.rows[:, dual_step.VARIANCE]
        soft = (variances > 0.0) & (~self._inequalities | (errors > 0.0))
        return float(0.5 * np.sum(np.square(errors[soft]) / variances[soft]))

    def _left(self, errors: Float[Array, "rows"]) -> list[float]:
        """The errors, with zero where an inequality holds."""
        return np.where(self._inequalities, np.maximum(errors, 0.0), errors).tolist()

    def residuals(self, errors: Float[Array, "rows"]) -> tuple[Residual, ...]:
        """Residuals of all constraints, with labels and units."""
        tolerance, found, left = self.settings.tolerance, [], self._left(errors)
        for number, (label, unit, deviation) in enumerate(self._words):
            value, hard = math.hypot(*left[self._rows_of[number]]), deviation == 0.0
            parts = [math.hypot(*left[rows]) for rows in self._parts_of[number]]
            met = max(parts, default=0.0) <= tolerance if hard else value <= deviation
            allowed, constraint = tolerance + UNLIKELY * deviation, self.constraints[number]
            found.append(Residual(label, value, unit, hard, met, allowed, constraint))
        return tuple(found)

    def diagonal(self) -> Float[Array, "1 freedoms"]:
        """The metric without a prior: all free degrees of freedom have the same weight."""
        return self.free.astype(np.float64)[None, :]

    @cached_property
    def _words(self) -> list[tuple[str, str, float]]:
        """Label, unit and standard deviation of each constraint; hard ones have a deviation of zero."""
        return [(one.label, one.unit, math.sqrt(one.compliance)) for one in self.constraints]

    @cached_property
    def _parts_of(self) -> list[list[slice]]:
        """The rows of each condition of each constraint."""
        firsts, ends = self.integers[:, 3].tolist(), self.integers[:, 3:5].sum(axis=1).tolist()
        parts = [slice(first, end) for first, end in zip(firsts, ends, strict=True)]
        return [[part for part in parts if rows.start <= part.start < rows.stop] for rows in self._rows_of]

    @cached_property
    def in_python(self) -> list[tuple[MeasuredConstraint, slice]]:
        """The constraints written in Python, each with its one-row blocks."""
        firsts, found = self.integers[:, 3].tolist(), []
        for constraint, rows in zip(self.constraints, self._rows_of, strict=True):
            if isinstance(constraint, MeasuredConstraint):
                block = firsts.index(rows.start)
                found.append((constraint, slice(block, block + rows.stop - rows.start)))
        return found

    def _measure(self, q: PoseVector) -> None:
        """Linearise the constraints written in Python at a pose."""
        for constraint, blocks in self.in_python:
            found = constraint.around(self.space, q)
            if len(found) != blocks.stop - blocks.start:
                raise InvalidValueError(
                    f"{constraint.label}: {blocks.stop - blocks.start} rows at one pose and {len(found)} at another"
                )
            self.floats[blocks, : len(found[0].parameters)] = [block.parameters for block in found]

    def _measured_solve(
        self,
        q: PoseVector,
        errors: Float[Array, "rows"],
        solve: Callable[[], tuple[int, int]],
    ) -> tuple[int, int]:
        """Measure and solve again until the constraints agree with their linearisation; else keep the best round.

        If the linearisation was wrong by more than half the predicted change, the step is halved.
        """
        linear = np.repeat(self.integers[:, 0], self.integers[:, 4]) == Kind.LINEAR
        total, best = 0, None
        for _ in range(ROUNDS):
            begun, (before, _) = q.copy(), self.errors(q)
            status, taken = solve()
            solved, total = errors.copy(), total + taken
            errors[:] = self.errors(q)[0]
            rank, wrong = self.rank(errors), np.linalg.norm((errors - solved)[linear])
            if wrong <= AGREED * self.settings.tolerance or status == core.BROKEN:
                return status, total
            if best is None or rank < best[0]:
                best = rank, q.copy(), errors.copy(), status
            if wrong > 0.5 * np.linalg.norm((solved - before)[linear]):
                q[:] = self.space.integrate(begun, 0.5 * tangent_step(begun, q))
        assert best is not None
        (left, _), q[:], errors[:], status = best
        if left <= self.settings.tolerance or self._met_closely(q, errors):
            return core.REACHED, total
        return max(status, core.RELAXED), total

    def _met_closely(self, q: PoseVector, errors: Float[Array, "rows"]) -> bool:
        """Meet the hard constraints by small, remeasured changes; return whether they are met, else restore q."""
        near, left = q.copy(), np.empty_like(errors)
        for _ in range(ROUNDS):
            self._measure(near)
            core.meet(
                near, self.body, self.blocks, self.rows, self.diagonal(), self.limits, self.settings_array, left, False
            )  # fmt: skip
            left = self.errors(near)[0]
            if self.rank(left)[0] <= self.settings.tolerance:
                q[:], errors[:] = near, left
                return True
        return False

    def rank(self, errors: Float[Array, "rows"]) -> tuple[float, float]:
        """Sort key, lower is better: the largest hard error, then the loss of the soft ones."""
        left, owners = self._left(errors), zip(self.constraints, self._rows_of, strict=True)
        hard = [math.hypot(*left[rows]) for constraint, rows in owners if constraint.hard]
        return max(hard, default=0.0), self.soft_loss(errors)

    def _encode(self) -> tuple[Array, Array, Array, list[slice]]:
        integers, floats, rows_of = list[list[int]](), list[Array](), list[slice]()
        rows: list[tuple[float, float, float]] = []
        levels = sorted({c.priority for c in self.constraints if c.hard}, reverse=True)
        if len(levels) > MOST_LEVELS:
            raise InvalidValueError(
                f"hard constraints can have at most {MOST_LEVELS} different priorities; got {len(levels)}"
            )
        for constraint in self.constraints:
            first = len(rows)
            for block in constraint.blocks(self.space):
                integers.append([block.kind, block.joint, block.other, len(rows), ROWS[block.kind]])
                floats.append(np.asarray(block.parameters, dtype=np.float64))
                level = levels.index(constraint.priority) if constraint.hard else 0
                compliance = core.PRIORITY_STEP**level if constraint.hard else 0.0
                rows += [(constraint.compliance, compliance, float(block.inequality))] * ROWS[block.kind]
            rows_of.append(slice(first, len(rows)))
        table, padded = np.array(rows, dtype=np.float64).reshape(-1, 3), max([PARAMETERS, *map(len, floats)])
        soft = table[:, dual_step.VARIANCE] > 0
        if np.any(soft):  # without a prior: below all hard rows, ordered by variance
            last = table[~soft, dual_step.COMPLIANCE].max() if np.any(~soft) else 1.0 / SOFT_STEP
            variances = table[soft, dual_step.VARIANCE]
            table[soft, dual_step.COMPLIANCE] = last * SOFT_STEP * variances / variances.min()
        parameters = np.zeros((len(floats), padded))
        for row, own in zip(parameters, floats, strict=True):
            row[: len(own)] = own
        return np.array(integers, dtype=np.int64).reshape(-1, 5), parameters, table, rows_of


def tangent_step(q: PoseVector, goal: PoseVector) -> Float[Array, "freedoms"]:
    """The step in the tangent space from one pose to another."""
    step = np.empty(len(q) - 1)
    root_gap(q, goal, step)
    step[ROOT_FREEDOMS:] = goal[ROOT_SIZE:] - q[ROOT_SIZE:]
    return step


@compiled
def _aim(targets: Array, blocks: Array, floats: Array) -> bool:
    """If the targets are finite and plausible, write them into the blocks and return true."""
    squares = 0.0
    for value in targets.flat:
        squares += value * value
    if not squares <= FARTHEST * FARTHEST:
        return False
    for h in range(len(targets)):
        for i in range(3):
            floats[blocks[h], 3 + i] = targets[h, i]
    return True


@compiled
def _plausible(q: Array) -> bool:
    """Whether a pose is finite and near the origin, and its root quaternion is normalised."""
    length = q[3] * q[3] + q[4] * q[4] + q[5] * q[5] + q[6] * q[6]
    return abs(length - 1.0) <= UNIT_SLACK and np.sum(q * q) <= FARTHEST * FARTHEST


def _measured(constraints: Sequence[Constraint]) -> tuple[Constraint, ...]:
    """The constraints that have rows: no hard pins, and none of zero weight."""
    own = (c for c in constraints if not (isinstance(c, Pinned) and c.hard))
    return tuple([c for c in own if math.isfinite(c.compliance)])


def _write(blocks: Sequence[Block], floats: Float[Array, "blocks parameters"]) -> None:
    for row, block in zip(floats, blocks, strict=True):
        row[: len(block.parameters)] = block.parameters
