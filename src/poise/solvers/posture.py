"""The posture of a body: what its handles leave open. Every door of Poise solves poses through this module.

`poise.pose`, `poise serve` (and Blender through it), the studio and keyframe scripts give the constraints that are
asked for, and a `Manner`: which defaults hold, and which feet are planted where. The first pass adds what is known
before the pose: floor, heading and hanging arms. The next ones add what depends on it: balance over the feet, limbs out
of the body, all parts above the floor, joints within the ranges of people, and a foot on the floor. They are left out
where nothing would change. While a handle is dragged, the pose before takes the place of the first pass.

A recorded pose is soft constraints too (`as_recorded`), beside those of the prior, the balance and the feet.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.priors.abilities import stands
from poise.priors.prior import Prior
from poise.skeleton.pose_space import Handle, PoseSpace
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Pose, Skeleton
from poise.solvers import bearing, touching
from poise.solvers.bearing import FLOOR_ROLES, LEG, STRAIGHT, Vec3
from poise.solvers.constraints import (
    Against,
    Apart,
    Constraint,
    HalfSpace,
    Inside,
    Line,
    LookAt,
    Orientation,
    Pinned,
    Plane,
    Position,
    Projection,
    floor,
)
from poise.solvers.given import doubtful_units
from poise.solvers.problem import Settings
from poise.solvers.solution import Solution
from poise.solvers.solve import Follower, Solver
from poise.solvers.touching import Touched, touched
from poise.types import Array, PoseVector

Find = Callable[[list[Constraint], "Array | None", bool], Solution]
"""Solves constraints from a start, or cold from None; the flag asks for a longer exact finish."""

FORWARD: Vec3 = (0.0, 0.0, 1.0)
LOOKING = 4.0  # factor on the tolerance of the heading while the head looks at something
LONG_FINISH = 600  # steps of the exact finish, for a body that hangs on a high handle to come down
PASSES = 3  # in which what depends on the pose before is added
ROUNDS = 3  # in which the balance is exact, over feet that move with it
LAST = -100  # priority of what is exact in the last pass
PLACES = (Position.kind, Against.kind)  # kinds with a target position
EXACT = {HalfSpace.kind, Inside.kind}
LEVELS = (0.08, 0.19, 0.35, 0.40)  # of stature: heights of handles that say what a body does
LIFTED, SEATED, KICKS = (
    1,
    (2, 3),
    3,
)  # levels passed: a leg's handle lifts its foot; hips are on a seat; a foot kicks
CALM = ("pelvis", "chest", "head")  # stay as in a recording
CALM_TURN, CALM_PLACE = 0.05, 0.02  # radians and metres: how far these joints and the root may leave it
FAR = 5.0  # heights of the body from the origin: beyond, the units of handles are looked at
NEAR_THE_ORIGIN, COARSE = 50.0, -2  # metres; decimals of the body's position, where only directions matter


@dataclass(frozen=True)
class Manner:
    """How a body stands by default; all of it is soft except the floor and planted feet."""

    floor: float | None = 0.0
    """The height of the floor, if there is one."""
    near: bool = True
    """Feet are near the floor, not only above it."""
    planted: tuple[tuple[str, Vec3], ...] = ()
    """Roles of feet that stay in place, unless a handle has taken their leg."""
    heading: Vec3 | None = FORWARD
    """The heading of the hips, unless handles determine it."""
    keeps_heading: bool = False
    """The body has this heading already: hands on both sides and a gaze do not free it, turned hips or feet do."""
    balance: bool = True
    arms: bool = True
    """Idle arms hang."""
    apart: bool = True
    """Limbs stay out of the body."""
    intent: bool = True
    """Hips with a low handle sit, a foot with a high one kicks; priors of people only, as others learned their own."""


BARE = Manner(near=False, heading=None, balance=False, arms=False, apart=False)
"""Only a floor."""


def posed(asked: Sequence[Constraint], skeleton: Skeleton, manner: Manner, find: Find) -> Solution:
    """Solve constraints together with the default posture, from the prior's own guess."""
    plan = plan_of(skeleton, asked, manner)
    first = [*asked, *plan.defaults]
    return plan.solved(asked, lambda more, start: find([*first, *more], start, _hangs(more)))


def settings_of(tolerance: float, *, patient: bool) -> Settings:
    """The solver's settings; a `patient` one lets a body that hangs on a high handle come down."""
    return Settings(tolerance, finish_steps=LONG_FINISH) if patient else Settings(tolerance)


class Posture:
    """Solves the postures of a body under one prior, one after the other; its solvers are kept and aimed anew."""

    def __init__(
        self, prior: Prior, *, method: str | None = None, tolerance: float = 1e-3, kept: int = 64
    ) -> None:
        self._space, self._skeleton, self._stands = prior.space, prior.space.skeleton, stands(prior)
        self._make, patient = (
            partial(Solver, prior, method=method, settings=settings_of(tolerance, patient=patient))
            for patient in (False, True)
        )
        self._follower, self._patient = Follower(self._make, kept=kept), Follower(patient, kept=kept)
        self.last: Solver

    def solve(self, asked: Sequence[Constraint], manner: Manner) -> Solution:
        """The likeliest pose, from the prior's own guess."""
        manner, floor = replace(manner, intent=manner.intent and self._stands), manner.floor or 0.0
        try:
            plan = plan_of(self._skeleton, asked, manner)
            if (
                plan.braces
                and (found := touching.lunge(plan.touching, asked, self._skeleton, floor)) is not None
            ):
                heading, feet = found
                asked = [*asked, *bearing.braced(feet, heading, self._skeleton)]
                plan = plan_of(self._skeleton, asked, replace(manner, heading=None))
            elif not plan.placed and manner.near and manner.floor is not None and self._stands:
                heading = plan.manner.heading or FORWARD
                asked = [*asked, *bearing.at_ease(self._skeleton, floor, heading)]
                plan = plan_of(self._skeleton, asked, manner)
        except TypeError:  # a handle that cannot be a key is not valid either: the solver says what it is
            self._make(asked)
            raise
        last = plan.solved(asked, partial(self._cold, plan, asked))
        if max(map(abs, last.q[:3].tolist())) > FAR * self._skeleton.height:
            last.notes += doubtful_units(asked, self._skeleton)
        return last

    def follow(
        self,
        asked: Sequence[Constraint],
        manner: Manner,
        before: Pose,
        start: PoseVector,
        *,
        moves: bool = False,
        fine: bool = True,
    ) -> Solution:
        """The pose nearest to `start`, with the defaults of the pose `before`; if it `moves`, a moment after it."""
        manner = replace(manner, intent=manner.intent and self._stands)
        plan, positions = plan_of(self._skeleton, asked, manner), before.world[0]
        reach = (self._space, start) if self._stands else None
        more = [*plan.then(positions, asked), *plan.firm(positions, reach, moving=True)]
        self.last = solver = self._follower.solver([*asked, *plan.defaults, *more])
        solver.dragging = not fine
        self._follower.begin(solver, start, follows=moves)
        solution = self._follower.solve(solver, start=start)
        solution.notes += plan.notes(asked)
        return solution

    def _cold(
        self, plan: Defaults, asked: Sequence[Constraint], more: Sequence[Constraint], start: Array | None
    ) -> Solution:
        """Solve without previous frames, with the solver for this plan; where only points have moved, it is aimed."""
        follower = self._patient if _hangs(more) else self._follower
        self.last = solver = follower.kept(
            (plan, *[one.signature for one in more]), lambda: [*asked, *plan.defaults, *more]
        )
        if not (plan.points and solver.problem.aim([one.target for one in asked], more)):  # type: ignore[attr-defined]
            solver.problem.retarget([*asked, *plan.defaults, *more])
        solver.dragging = False
        solver.forget()
        return solver.solve(start)


@dataclass(frozen=True, eq=False)
class Defaults:
    """The defaults for one set of handles on one body."""

    skeleton: Skeleton
    manner: Manner
    defaults: tuple[Constraint, ...]
    """What is known before the pose."""
    held: tuple[tuple[str, int], ...]
    """Roles with a target position, and the number of the constraint that has it."""
    planted: dict[str, Vec3]
    stands: tuple[str, ...]
    """The sides whose foot may come down to the floor, if nothing else puts one there."""

    points: bool
    """Whether only positions are asked for."""

    placed: bool
    """Whether something asked for, or a planted foot, places the body."""

    taken: frozenset[int]
    """The joints that something asked for places, which the floor does not move."""
    firmness: bearing.Firm
    """What the body cannot do."""
    touching: tuple[Touched, ...]
    """What the body touches."""
    braces: bool
    """Whether it is against something, and both feet are free to brace it."""

    def solved(
        self, asked: Sequence[Constraint], find: Callable[[list[Constraint], Array | None], Solution]
    ) -> Solution:
        """Solve in passes: `find` adds constraints to what is known before the pose, and solves from a start.

        What soft constraints leave below the floor or beyond people is exact in the last pass, if all else can be met.
        """
        first = last = find([], None)
        more = dict[str, Constraint]()
        for _ in range(PASSES):
            found = {one.label: one for one in self.after(last, asked, again=last is not first)}
            if all(more.get(label) is one for label, one in found.items()):
                break
            more |= found
            last = find(list(more.values()), last.q)
        if more and (exact := self.exact(last)):
            more |= exact
            firmer = find(list(more.values()), last.q)
            better = (not last.reached, len(exact)) >= (not firmer.reached, len(self.exact(firmer)))
            last = firmer if better else last
        for _ in range(ROUNDS if "balance" in more else 0):
            if (upright := self.upright(last, asked)) is None:
                break
            near = self.firm(_positions(last), _judged(last), moving=True)
            more = {one.label: one for one in near} | more | {upright.label: upright}
            other = find(list(more.values()), last.q)
            if other.reached < last.reached or not self.exact(other).keys() <= self.exact(last).keys():
                break
            last = other
        if last is not first:
            last.notes += tuple([note for note in first.notes if note not in last.notes])
        last.notes += self.notes(asked)
        return last

    def exact(self, solution: Solution) -> dict[str, Constraint]:
        """What keeps a body together that soft constraints have not kept, as exact constraints."""
        positions = _positions(solution)
        left = [one for one in self.firm(positions, _judged(solution)) if one.kind in EXACT]
        if self.manner.apart:
            left += bearing.apart(self.skeleton, positions, nearby=-bearing.TOUCH)
        return {one.label: replace(one, tolerance=None, priority=LAST) for one in left}

    def upright(self, solution: Solution, asked: Sequence[Constraint]) -> Constraint | None:
        """The balance as an exact constraint, if a soft one has left the centre of mass outside the support."""
        centre, _ = solution.space.centre_of_mass(solution.q)
        places = bearing.places_among(self.skeleton, _positions(solution))
        loads = touching.loads(self.touching, asked) if self.touching else ()
        held, margin = dict(self.held), bearing.MARGIN / 2
        support = bearing.support(places, self.skeleton, held=held, loads=loads, margin=margin)
        if support is None or bearing.outside(support, centre) <= margin:
            return None
        return replace(bearing.balance_over(support), tolerance=None, priority=LAST - 1)

    def notes(self, asked: Sequence[Constraint]) -> tuple[str, ...]:
        """What is asked for below the floor, in words."""
        return () if self.manner.floor is None else bearing.below_floor(asked, self.manner.floor)

    def after(
        self, solution: Solution, asked: Sequence[Constraint], *, again: bool = False
    ) -> list[Constraint]:
        """The defaults that depend on a pass, and would change it; a foot comes down to the floor."""
        positions, (centre, _) = _positions(solution), solution.space.centre_of_mass(solution.q)
        found = self.then(positions, asked, centre, slack=bearing.MARGIN if again else 0.0)
        if self.stands:
            floor = self.manner.floor or 0.0
            found = bearing.standing(self.skeleton, positions, self.stands, floor=floor) + found
        return found + self.firm(positions, _judged(solution))

    def then(
        self,
        positions: Float[Array, "joints 3"],
        asked: Sequence[Constraint],
        centre: Float[Array, "3"] | None = None,
        *,
        slack: float = 0.0,
    ) -> list[Constraint]:
        """Balance, and limbs out of the body; with the centre of mass, only what would change the pose."""
        found: list[Constraint] = []
        if self.manner.balance:
            held = {role: asked[number].target for role, number in self.held}  # type: ignore[attr-defined]
            places: bearing.Places = bearing.places_among(self.skeleton, positions) | self.planted | held
            loads = touching.loads(self.touching, asked) if self.touching else ()
            support = bearing.support(places, self.skeleton, held=held, loads=loads)
            if support is not None and centre is not None:
                if bearing.outside(support, centre) <= slack:
                    support = None
                else:
                    kept = {*held, *self.planted}
                    places, steps = bearing.stepped(places, support, centre, held=kept)
                    support = bearing.support(places, self.skeleton, held=held, loads=loads)
                    found += steps
            if support is not None:
                found.append(bearing.balance_over(support))
        if self.manner.apart:
            found += bearing.apart(self.skeleton, positions, nearby=0.0 if centre is None else bearing.NEARBY)
        return found

    def firm(
        self,
        positions: Float[Array, "joints 3"],
        reach: tuple[PoseSpace, PoseVector] | None,
        *,
        moving: bool = False,
    ) -> list[Constraint]:
        """What keeps parts above the floor and within their ranges, where a pose (or the next one) would not."""
        found = bearing.heels(self.firmness, positions, nearby=bearing.NEARBY if moving else 0.0)
        if (floor := self.manner.floor) is not None:
            found += bearing.above_floor(
                self.firmness, positions, floor=floor, held=self.taken, moving=moving
            )
        if reach is not None:
            found += bearing.within_people(*reach, nearby=bearing.CLOSE if moving else -2.0 * bearing.EDGE)
        return found


def plan_of(skeleton: Skeleton, asked: Sequence[Constraint], manner: Manner) -> Defaults:
    """The plan for such constraints; their targets matter only where they lift a foot or are far away."""
    places = [one.target for one in asked if one.kind in PLACES]  # type: ignore[attr-defined]
    height, ground, at = skeleton.height, manner.floor or 0.0, (0.0, 0.0, 0.0)
    levels = [ground + level * height for level in LEVELS]
    try:
        lifted = tuple([bisect(levels, place[1]) for place in places])
        if places and np.abs(places).max() > NEAR_THE_ORIGIN:
            x, y, z = np.round(np.array(places, dtype=np.float64).mean(axis=0), COARSE)
            at = float(x), float(y), float(z)
        gazes = [one.target for one in asked if one.kind == LookAt.kind and one.handle == "head"]  # type: ignore[attr-defined]
        if manner.heading is not None and len(gazes) == 1:
            turn = bearing.turn_towards(manner.heading, np.subtract(gazes[0], at).tolist())
            manner = replace(manner, heading=bearing.turned(manner.heading, turn))
    except (TypeError, ValueError, IndexError):
        lifted = ()  # the problem says what is wrong with them
    shapes = tuple([one.signature for one in asked])
    touches = touched(asked, skeleton, manner.floor)
    return _plan(skeleton.given_roles, skeleton, shapes, lifted, at, manner, touches)


def _positions(solution: Solution) -> Float[Array, "joints 3"]:
    return solution.space.forward(solution.q)[0]


def _judged(solution: Solution) -> tuple[PoseSpace, PoseVector] | None:
    """A pose that is kept within the ranges of people: other priors than those of people have learned their own."""
    return (solution.space, solution.q) if solution.prior is not None and stands(solution.prior) else None


def _hangs(more: Sequence[Constraint]) -> bool:
    return bool(more) and more[0].kind == Plane.kind


def as_recorded(recorded: Pose, busy: Collection[int], *, looks: bool = False) -> list[Constraint]:
    """Hips, chest, head and root softly stay as recorded, except those with a handle; a head that `looks` turns."""
    skeleton = recorded.skeleton
    found: list[Constraint] = []
    if 0 not in busy:
        x, y, z = recorded.root_position.tolist()
        found.append(Position(skeleton.names[0], (x, y, z), tolerance=CALM_PLACE, name="as recorded"))
    for role in CALM:
        if role in skeleton.roles and skeleton.index(role) not in busy and not (looks and role == "head"):
            turn = rotations.quaternion_from_matrix(recorded.world[1][skeleton.index(role)])
            found.append(Orientation(role, turn, tolerance=CALM_TURN, name=f"{role} as recorded"))
    return found


def taken_sides(skeleton: Skeleton, joints: Iterable[int]) -> set[str]:
    """The sides whose shin, foot or toes are among these joints."""
    return {side for side in SIDES if not bearing.below(skeleton, f"{side}_shin").isdisjoint(joints)}


@lru_cache(maxsize=512)
def _plan(
    _roles: Hashable,
    skeleton: Skeleton,
    shapes: tuple[tuple[Any, ...], ...],
    lifted: tuple[int, ...],
    at: Vec3,
    manner: Manner,
    touches: tuple[Touched, ...],
) -> Defaults:
    kinds = [shape[0].kind for shape in shapes]
    joints = [_joints(skeleton, shape) for shape in shapes]
    placing = [number for number, kind in enumerate(kinds) if kind in PLACES]
    placed = {joints[number][0]: number for number in placing}
    legs = taken_sides(skeleton, placed)
    planted = {role: place for role, place in manner.planted if not role.startswith(tuple(legs))}
    defaults: list[Constraint] = []
    defaults += [Position(role, place, name=role.replace("_", " ")) for role, place in planted.items()]
    if manner.floor is not None:
        up = [joints[number] for number, level in zip(placing, lifted, strict=False) if level >= LIFTED]
        lifted_legs = taken_sides(skeleton, [joint for own in up for joint in own])
        free = [role for role in FLOOR_ROLES if role in skeleton.roles and role not in planted]
        near = [role for role in free if manner.near and not role.startswith(tuple(lifted_legs))]
        defaults += [*bearing.near_the_floor(near, skeleton, manner.floor), *floor(free, height=manner.floor)]
    heading = manner.heading if "pelvis" in skeleton.roles else None
    if manner.keeps_heading:  # until the hips or feet are turned
        base = {skeleton.index(role) for role in ("pelvis", *FLOOR_ROLES) if role in skeleton.roles}
        turned = [at for kind, at in zip(kinds, joints, strict=True) if kind == Orientation.kind]
        heading = heading if all(base.isdisjoint(at) for at in turned) else None
    else:
        turning = not {Orientation.kind, LookAt.kind, Projection.kind}.isdisjoint(kinds)
        roles = [role for role in skeleton.roles if skeleton.index(role) in placed]
        sides = {role[:4] for role in roles if role.startswith(SIDES)}
        heading = None if turning or len(sides) == 2 else heading
    if heading is not None:
        tolerance = bearing.TURN * (LOOKING if LookAt.kind in kinds else 1.0)
        defaults.append(bearing.facing(heading, skeleton, at=at, tolerance=tolerance))
    at_role = {role: skeleton.index(role) for role in skeleton.roles}
    level = {joints[number][0]: level for number, level in zip(placing, lifted, strict=False)}
    feet_up = [role for role in FLOOR_ROLES[:2] if level.get(at_role.get(role, -1), 0) >= KICKS]
    if manner.balance and manner.intent:
        kicking = [role.partition("_")[0] for role in feet_up]
        defaults += [one for side in kicking for one in bearing.stretched(skeleton, side, LEG, STRAIGHT)]
        defaults += bearing.seated(skeleton, at=at) if level.get(at_role.get("pelvis", -1)) in SEATED else []
    if manner.arms:
        busy = [joint for own in joints for joint in own]
        defaults += bearing.hanging(
            skeleton,
            busy=busy,
            at=at,
            heading=heading,
            spread=manner.balance and manner.intent and len(feet_up) == 1,
        )
    held = tuple((role, placed[joint]) for role, joint in at_role.items() if joint in placed)
    low = {joint for joint in placed if level.get(joint, 0) < LIFTED}
    standing = bearing.free_sides(skeleton, placed) if low.isdisjoint(map(at_role.get, FLOOR_ROLES)) else ()
    stands = standing if manner.floor is not None and manner.near and not planted else ()
    taking = {*PLACES, Line.kind, Plane.kind}
    taken = frozenset([own[0] for own, kind in zip(joints, kinds, strict=True) if kind in taking])
    points = all(shape[0] is Position and shape[4] != 0 for shape in shapes)  # all of them have rows
    places = bool(planted) or not {LookAt.kind, Orientation.kind}.issuperset(kinds)
    firm = bearing.firm_of(skeleton)
    braces = any(one.against for one in touches) and manner.near and not planted and not legs
    defaults += touching.flat(touches, at=at)
    if touches and manner.balance:
        defaults += touching.propped(touches, skeleton, legs=not legs)
    return Defaults(
        skeleton, manner, tuple(defaults), held, planted, stands, points, places, taken, firm, touches, braces
    )


def _joints(skeleton: Skeleton, shape: tuple[Any, ...]) -> list[int]:
    """The joints that a constraint with this signature is about."""
    kind, handle, other, *_ = shape
    named = [each for each in (handle, other) if each is not None]
    named += list(shape[7]) if kind is Pinned else [shape[7]] if kind is Apart else []
    handles = [Handle(each) if isinstance(each, str) else each for each in named]
    return [each.on(skeleton)[0] for each in handles]
