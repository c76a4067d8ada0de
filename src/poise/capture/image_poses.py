"""Poses that explain image points: solved from many starts, compared and ranked (Grochow et al. 2004, section 7.4).

A photo does not determine depth: a limb may point towards the camera or away, a body may face either way. Every start
is solved with the handles on the rays through their pixels; results are ranked by their posterior, the prior's
log-likelihood minus half the squared residuals of unmet points, in units of clicking precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float

from poise.capture.image_placing import View, placed
from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.geometry.cameras import Camera
from poise.priors.poses import upright
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import PoseSpace
from poise.solvers.constraints import Position, Projection
from poise.solvers.solution import STATUSES, Solution, extended
from poise.solvers.solve import Model, Solver, prior_of, space_of
from poise.solvers.trajectory import LocalGaussian
from poise.types import Array

PIXELS = 3.0  # standard deviation of a clicked point
STARTS = 12
APART = 0.06  # metres: mean joint distance above which two poses are distinct
ROUNDS = 4  # consecutive solves from one start
SETTLED = 2e-3  # radians or metres: a solve that changes less is the last
LEAN = 0.03  # radians squared: variance of the root's tilt in one solve, if the prior does not predict it
Poses = tuple[Float[Array, "poses maps"], Float[Array, "poses 3"]]
LIMBS = tuple(
    (f"{side}_{upper}", f"{side}_{lower}", f"{side}_{end}")
    for side in ("left", "right")
    for upper, lower, end in (("upper_arm", "forearm", "hand"), ("thigh", "shin", "foot"))
)
_FLAT = 0.1  # metres of depth along a limb: below this a flip changes nothing


@dataclass(eq=False, kw_only=True, repr=False)
class Explanation(Solution):
    """A pose that explains the image points, with its posterior and the residual of each point in pixels."""

    posterior: float
    distances: Float[Array, "points"]
    views: Sequence[View]


def explain(
    model: Model,
    views: Sequence[View],
    *,
    starts: int = STARTS,
    first: Float[Array, "size"] | None = None,
) -> list[Explanation]:
    """Distinct poses that explain the points of all views, likeliest first, after the one from `first` if given."""
    space = space_of(model)
    constraints = [constraint for view in views for constraint in view.constraints()]
    if len({constraint.at.joint for constraint in constraints}) < 2:
        raise InvalidValueError("give image points for at least two joints; three or four determine a pose")
    run = _ImageRun(model, space, constraints, views)
    maps, ups = known_poses(model)
    q, off = placed(space, maps, ups, views)
    found = [run(start) for start in _spread(space, q, off, starts)]
    if found:
        best = max(found, key=lambda one: one.posterior)
        others = [flipped(space, best.q, views[0].camera, limb) for limb in LIMBS]
        found += [run(start) for start in others if start is not None]
    ranked = sorted(found, key=lambda one: -one.posterior)
    return told_apart(ranked if first is None else [run(first), *ranked])


class _ImageRun:
    """Solves from one start after another."""

    def __init__(
        self,
        model: Model,
        space: PoseSpace,
        constraints: Sequence[Projection],
        views: Sequence[View],
    ) -> None:
        self._space = space
        self._views = views
        self._prior = prior_of(model)
        self._solver: Solver | None = Solver(model, constraints)
        if self._prior is not None and not self._solver.resumes:
            handles = space.handles([constraint.at for constraint in constraints])
            self._local = LocalGaussian([self._prior], space, handles)
            self._problem, self._solver = self._solver.problem, None

    def __call__(self, start: Float[Array, "size"]) -> Explanation:
        q = start
        for _ in range(ROUNDS):
            before, solution = q, self._once(q)
            q = solution.q
            if np.abs(q - before).max() < SETTLED:
                break
        return self._explanation(solution)

    def _once(self, q: Float[Array, "size"]) -> Solution:
        if self._solver is not None:
            self._solver.resume(q)
            return self._solver.solve(q)
        pull, precision = self._local(q, (1.0,))
        precision[3:ROOT_FREEDOMS, 3:ROOT_FREEDOMS] += _lean(q)
        covariance = np.linalg.inv(precision)
        mean = q[ROOT_SIZE:] + (covariance @ pull)[ROOT_FREEDOMS:]
        q = self._problem.start(q)
        status, steps, errors = self._problem.run(q, mean, covariance)
        left = partial(self._problem.residuals, errors)
        return Solution(q, self._space, left, STATUSES[status], steps, 0.0, self._prior)

    def _explanation(self, solution: Solution) -> Explanation:
        q, seen = solution.q, []
        for view in self._views:
            joints = self._space.handles(list(view.points)).joints
            pixels = view.camera.project(self._space.forward(q)[0][joints])
            seen.append(np.linalg.norm(pixels - np.stack(list(view.points.values())), axis=1))
        distances = np.nan_to_num(np.concatenate(seen), nan=1e6)
        posterior = (solution.log_likelihood or 0.0) - 0.5 * float(np.square(distances / PIXELS).sum())
        return extended(Explanation, solution, posterior=posterior, distances=distances, views=self._views)


def _lean(q: Float[Array, "size"]) -> Float[Array, "3 3"]:
    """The precision that keeps a root's tilt, free about the vertical."""
    up = rotations.matrix_from_quaternion(q[3:ROOT_SIZE])[1]
    return (np.eye(3) - np.outer(up, up)) / LEAN


def _spread(
    space: PoseSpace, q: Float[Array, "starts size"], off: Float[Array, "starts"], count: int
) -> list[Float[Array, "size"]]:
    """The starts with the least reprojection error, distinct from each other."""
    chosen: list[Array] = []
    bodies: list[Array] = []
    for number in np.argsort(off)[: 40 * count]:
        if not np.isfinite(off[number]):
            break
        body = space.forward(q[number])[0]
        if all(np.linalg.norm(body - other, axis=1).mean() > 2.0 * APART for other in bodies):
            chosen.append(q[number])
            bodies.append(body)
        if len(chosen) == count:
            break
    return chosen


def told_apart(found: Sequence[Explanation]) -> list[Explanation]:
    """The explanations whose body, relative to its root, differs from all before it."""
    kept: list[Explanation] = []
    bodies: list[Array] = []
    for one in found:
        body = one.space.forward(one.q)[0]
        body = body - body[0]
        if all(np.linalg.norm(body - other, axis=1).mean() > APART for other in bodies):
            kept.append(one)
            bodies.append(body)
    return kept


def known_poses(model: Model) -> Poses:
    """Exponential maps of a model's known poses, and the up direction of each in its root's frame."""
    prior = prior_of(model)
    return upright(np.zeros((1, space_of(model).size - ROOT_SIZE))) if prior is None else prior.known_poses()


def flipped(
    space: PoseSpace, q: Float[Array, "size"], camera: Camera, limb: tuple[str, str, str]
) -> Float[Array, "size"] | None:
    """The pose with one limb flipped in depth; None if the limb is parallel to the image or unknown."""
    if not all(role in space.skeleton.roles for role in limb):
        return None
    upper, lower, end = (space.forward(q)[0][space.skeleton.index(role)] for role in limb)
    ray = upper - camera.centre
    ray /= np.linalg.norm(ray)
    if max(abs((lower - upper) @ ray), abs((end - lower) @ ray)) < _FLAT:
        return None
    targets = [
        Position(role, point - 2.0 * ((point - upper) @ ray) * ray)
        for role, point in zip(limb[1:], (lower, end), strict=True)
    ]
    return Solver(space, targets, root="given").solve(q).q
