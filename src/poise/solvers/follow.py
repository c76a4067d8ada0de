"""Frame-by-frame solving: each frame starts from the one before. The only place that keeps previous poses."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING

from jaxtyping import Float

from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import Pose
from poise.solvers.constraints import Constraint
from poise.solvers.solution import Solution
from poise.types import Array

if TYPE_CHECKING:
    from poise.solvers.solve import Solver

HISTORY = 2  # previous frames that a frame's motion can depend on
KEPT = 64  # constraint sets whose solvers are cached


class Follower:
    """Solves frame after frame, with the same solver while only the targets of the constraints change."""

    def __init__(self, make: Callable[[Sequence[Constraint]], Solver], *, kept: int = KEPT) -> None:
        self._recent: list[tuple[PoseSpace, Float[Array, "size"]]] = []
        self._most = kept
        self.use(make)

    def use(self, make: Callable[[Sequence[Constraint]], Solver]) -> None:
        """Create solvers by `make` from now on, e.g. for another model; previous frames are kept."""
        self._make = make
        self._solvers: dict[Hashable, Solver] = {}

    def step(self, constraints: Sequence[Constraint], *, start: Pose | Array | None = None) -> Solution:
        """Solve the next frame, from the one before or from `start`."""
        return self.solve(self.solver(constraints), start=start)

    def solver(self, constraints: Sequence[Constraint]) -> Solver:
        """Return the solver for these constraints, with their targets set."""
        key = tuple(constraint.signature for constraint in constraints)
        solver = self.kept(key, lambda: constraints)
        solver.problem.retarget(constraints)
        return solver

    def kept(self, key: Hashable, constraints: Callable[[], Sequence[Constraint]]) -> Solver:
        """Return the solver cached under a key; if there is none, create it for these constraints."""
        if key not in self._solvers:
            if len(self._solvers) == self._most:
                del self._solvers[next(iter(self._solvers))]
            self._solvers[key] = self._make(constraints())
        return self._solvers[key]

    def solve(
        self,
        solver: Solver,
        *,
        start: Pose | Array | None = None,
        targets: Float[Array, "handles 3"] | None = None,
    ) -> Solution:
        """Solve the next frame with this solver."""
        before = [q if space is solver.space else _seen(q, space, solver.space) for space, q in self._recent]
        if start is None and before:
            start = before[0]
        solution = solver.solve(start, targets=targets, before=before)
        self._recent = [(solution.space, solution.q), *self._recent[: HISTORY - 1]]
        return solution

    @property
    def last(self) -> Float[Array, "size"] | None:
        """The pose of the previous frame, if there is one."""
        return self._recent[0][1] if self._recent else None

    def begin(self, solver: Solver, q: Float[Array, "size"] | None, *, follows: bool = False) -> None:
        """Start the next frame from the pose `q`, or cold if None; if it `follows`, `q` is also the previous frame."""
        self._recent = [(solver.space, q)] if follows and q is not None else []
        if q is None:
            solver.forget()
        else:
            solver.resume(q)

    def restart(self, space: PoseSpace | None = None, q: Float[Array, "size"] | None = None) -> None:
        """Forget the previous frames; `q`, if given, becomes the previous frame."""
        self._recent = [] if space is None or q is None else [(space, q)]
        if not self._recent:
            for solver in self._solvers.values():
                solver.forget()


def _seen(q: Float[Array, "size"], space: PoseSpace, other: PoseSpace) -> Float[Array, "size"]:
    """Convert a pose to the coordinates of another space."""
    return other.q_from_pose(space.pose_from_q(q))
