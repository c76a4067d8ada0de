"""The one follower: frame after frame, each solved from the one before; it keeps the only history of poses."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, Protocol, TypeVar, runtime_checkable

from jaxtyping import Float

from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import Pose
from poise.solvers.constraints import Constraint
from poise.solvers.problem import Problem
from poise.solvers.solution import Solution
from poise.types import Array

HISTORY = 2  # frames before a frame that its motion can depend on
KEPT = 64  # sets of constraints whose solver is kept


@runtime_checkable
class FrameSolver(Protocol):
    """What solves a frame: a `Solver`."""

    space: PoseSpace
    problem: Problem

    def solve(
        self,
        start: Pose | Float[Array, "size"] | None = None,
        *,
        targets: Float[Array, "handles 3"] | None = None,
        before: Sequence[Float[Array, "size"]] = (),
    ) -> Solution:
        """The solution from a start, after the frames before."""
        ...

    def resume(self, q: Float[Array, "size"]) -> None:
        """Take a pose, wherever it came from, as the frame before."""
        ...

    def forget(self) -> None:
        """Forget the frames before."""
        ...


S = TypeVar("S", bound=FrameSolver)


class Follower(Generic[S]):
    """Goes from frame to frame: the same solver while constraints differ in their targets only."""

    def __init__(self, make: Callable[[Sequence[Constraint]], S], *, kept: int = KEPT) -> None:
        self._recent: list[tuple[PoseSpace, Float[Array, "size"]]] = []
        self._most = kept
        self.use(make)

    def use(self, make: Callable[[Sequence[Constraint]], S]) -> None:
        """Make solvers by this from now on, under another model say; the frames before stay."""
        self._make = make
        self._solvers: dict[Hashable, S] = {}

    def step(self, constraints: Sequence[Constraint], *, start: Pose | Array | None = None) -> Solution:
        """The next frame, from the one before or from a start."""
        return self.solve(self.solver(constraints), start=start)

    def solver(self, constraints: Sequence[Constraint]) -> S:
        """The solver of these constraints, which have their targets."""
        key = tuple(constraint.signature for constraint in constraints)
        solver = self.kept(key, lambda: constraints)
        solver.problem.retarget(constraints)
        return solver

    def kept(self, key: Hashable, constraints: Callable[[], Sequence[Constraint]]) -> S:
        """The solver that is kept under a key, made for these constraints where there is none."""
        if key not in self._solvers:
            if len(self._solvers) == self._most:
                del self._solvers[next(iter(self._solvers))]
            self._solvers[key] = self._make(constraints())
        return self._solvers[key]

    def solve(
        self,
        solver: S,
        *,
        start: Pose | Array | None = None,
        targets: Float[Array, "handles 3"] | None = None,
    ) -> Solution:
        """The next frame by a solver at hand."""
        before = [q if space is solver.space else _seen(q, space, solver.space) for space, q in self._recent]
        if start is None and before:
            start = before[0]
        solution = solver.solve(start, targets=targets, before=before)
        self._recent = [(solution.space, solution.q), *self._recent[: HISTORY - 1]]
        return solution

    @property
    def last(self) -> Float[Array, "size"] | None:
        """The pose of the frame before, if there was one."""
        return self._recent[0][1] if self._recent else None

    def begin(self, solver: S, q: Float[Array, "size"] | None, *, follows: bool = False) -> None:
        """Start the next frame from this pose, or from nothing; where it `follows`, the pose is the frame before."""
        self._recent = [(solver.space, q)] if follows and q is not None else []
        if q is None:
            solver.forget()
        else:
            solver.resume(q)

    def restart(self, space: PoseSpace | None = None, q: Float[Array, "size"] | None = None) -> None:
        """Forget the frames before; the next one comes after this pose, if there is one."""
        self._recent = [] if space is None or q is None else [(space, q)]
        if not self._recent:
            for solver in self._solvers.values():
                solver.forget()


def _seen(q: Float[Array, "size"], space: PoseSpace, other: PoseSpace) -> Float[Array, "size"]:
    """A pose in the coordinates of another space."""
    return other.q_from_pose(space.pose_from_q(q))
