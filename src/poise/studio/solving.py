"""From a session's handles to a pose: their constraints, and cached solvers while they move."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.apps.posing import read_constraints
from poise.formats.tables import TYPED
from poise.geometry import rotations
from poise.geometry.splines import smoothstep
from poise.priors.broad import BroadPrior
from poise.priors.prior import Prior
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import Handle as Point
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Pose, Skeleton, kept_for_body
from poise.solvers import bearing
from poise.solvers.bearing import FLOOR_ROLES
from poise.solvers.constraints import Against, Constraint, LookAt, Orientation, Position
from poise.solvers.posture import BARE, PLACES, Manner, Posture, as_recorded, plan_of
from poise.solvers.posture import taken_sides as sides_of_legs
from poise.solvers.solution import Solution
from poise.solvers.solve import DLS, MAP, Solver
from poise.solvers.touching import lunge, touched
from poise.studio.easing import eased
from poise.studio.messages import LOOK_AT, Bearing, Quaternion, SceneHandle, Vec3
from poise.studio.models import PLAIN, Entry, ModelStore
from poise.studio.state import Placed, State
from poise.studio.touching import face_near, standing_at
from poise.types import Array

HELD, DRAGGED = 0, -1  # priorities: dragged handles and gaze give way to held ones and planted feet
KEPT = 4  # cached solvers of earlier sets of handles
LIKELIHOOD_EVERY = 0.1  # seconds between likelihoods during a drag: they cost more than the pose itself
LIKELIHOOD_REST = 40.0  # times the duration of one, until the next of any page: rarer under load
SUPPLE = 0.5  # radians: typical deviation of joints from a recorded pose
SPINE = 0.1  # radians: tolerance of the spine, which would bend to and fro between hips and chest
SWING = 0.2  # radians: tolerance of an idle arm over a recording
CLOSE, APART = 0.14, 0.3
"""Of stature: handles nearer to their recorded place follow the recording, those further away the prior."""
HEADING = "heading"
"""The anchor of the hips' heading."""
REACH = 3.0  # metres that any joint may move per metre of the dragged handle
SETTLING = 0.01  # metres that any joint moves when the hand lets go
LEVER = 0.3  # metres per radian of a handle's rotation
FAR, NEAR = 0.52, 0.30  # of stature, along the ground: handles farther from the feet than this make them step
STRIDE, SHORTEST = 0.45, 0.1  # of stature: the longest and the shortest step
BRACED = 0.12  # of stature: how far feet that brace a push may stand from where they would step
LEAST_TURN = math.radians(10.0)  # by which feet turn to a gaze
UNMET = 0.02  # metres: handle residual above which feet step
_AHEAD = ThreadPoolExecutor(1, thread_name_prefix="poise-ahead")


@dataclass(frozen=True)
class Condition:
    """A constraint and its handle; None for feet."""

    handle: str | None
    constraint: Constraint


@dataclass(frozen=True, eq=False)
class SolvedState:
    """A solved state: the new pose, the handles of its residuals, its likelihood, and what people cannot do in it."""

    placed: Placed
    solution: Solution
    owners: tuple[str | None, ...]
    log_likelihood: float | None
    percentile: float | None
    latents: tuple[Float[Array, "latent"], ...]
    anchors: dict[str, Vec3] | None = None  # positions of the feet, if they stepped
    beyond: str = ""  # the part that is furthest beyond what people reach, and by how much
    jumps: bool = False  # a joint moves further than a drag allows: it is shown with an animation
    strained: bool = False  # the dragged handle is too far for planted feet, and no step helps

    def rested(self) -> SolvedState:
        """The same with measured residuals, and without its solver."""
        residuals = self.solution.residuals
        solution = replace(self.solution, measure=lambda: residuals, posterior_of=None, prior=None)
        return replace(self, solution=solution)


class Poser:
    """Solves the states of one session, each from the last."""

    rested = 0.0
    """When a likelihood may be computed again during a drag, in any session."""

    def __init__(self, models: ModelStore) -> None:
        self._models = models
        self._foreseen: tuple[Any, ...] = ()
        self._postures: list[tuple[Prior, str, Posture]] = []
        self._posture: Posture
        self._blend: tuple[Any, Prior] | None = None
        self._recorded: BroadPrior | None = None
        self._calm: list[Condition] = []  # over a recording: idle arms as recorded
        self._likelihood: tuple[float, float | None, float | None, str] = (0.0, None, None, "")

    def rest(self) -> None:
        """Drop everything that can be recomputed."""
        self._blend = self._recorded = None
        self._postures = []
        self.__dict__.pop("_posture", None)

    def prior_of(self, state: State) -> Prior:
        """The model or blend of a state."""
        if not state.weights:
            return self.entry_of(state).prior
        key = tuple((weight.model, weight.weight) for weight in state.weights)
        if self._blend is None or self._blend[0] != key:
            self._blend = key, self._models.blend(state.weights)
        return self._blend[1]

    def entry_of(self, state: State) -> Entry:
        """The model of a state; plain IK uses the shown body."""
        if state.model == PLAIN:
            return self._models.plain(state.pose.skeleton)
        return self._models[state.model]

    def solve(
        self,
        state: State,
        *,
        dragged: str | None = None,
        fine: bool = True,
        afresh: bool = False,
        near: Float[Array, "size"] | None = None,
    ) -> SolvedState:
        """The pose of a state, from its own pose or `near` another; `afresh` from the prior's best guesses."""
        if state.motion is not None and state.timeline.clip:
            return self.over(state, state.motion[state.timeline.frame], dragged=dragged)
        if (anchors := _after_bracing(state, dragged) or _after_turning(state)) is not None:
            found = self.solve(state.with_(anchors=anchors), dragged=dragged, fine=fine, afresh=True)
            return replace(found, anchors=anchors, jumps=True)
        prior, asked = self.prior_of(state), asked_of(state, dragged=dragged) + self._calm
        if not state.weights and state.model == PLAIN:  # it changes the pose as little as possible
            return self._solved(state, prior, asked, bare_of(state), method=DLS, follows=dragged is not None)
        solved = self._solved(
            state, prior, asked, manner_of(state), fine=fine, afresh=afresh, near=near, follows=dragged is not None
        )  # fmt: skip
        likelihood, percentile, beyond = self._likelihood_of(prior, solved.solution, fine=fine)
        latents = self._posture.last.latents
        return replace(
            solved, log_likelihood=likelihood, percentile=percentile, beyond=beyond, latents=latents
        )

    def drag(self, state: State, dragged: str, *, moved: float, last: bool) -> SolvedState:
        """The pose a moment later, after a handle has moved: no joint moves much further than the handle does.

        A likelier pose further away is approached while the hand moves, not jumped to. Feet step at once if the handle
        cannot be met in balance otherwise.
        """
        most = max(REACH * moved, SETTLING if last else 0.0)
        if state.motion is not None and state.timeline.clip:
            return self.over(state, state.motion[state.timeline.frame], dragged=dragged, most=most, last=last)
        return self._on_the_way(state, self._aimed(state, dragged, fine=last), most)

    def _aimed(self, state: State, dragged: str, *, fine: bool) -> SolvedState:
        """The pose for a dragged handle, after a step if it cannot be met in balance otherwise."""
        solved = self.solve(state, dragged=dragged, fine=fine)
        problem = self._posture.last.problem
        aims = problem.floats.copy()
        if solved.anchors is not None or not _overreaches(state, dragged, solved):
            return solved
        anchors = _after_a_step(state, state.handle(dragged))
        if anchors is not None:
            ahead = state.with_(anchors=anchors)
            stepped = self.solve(ahead, dragged=dragged, fine=False)
            if not _overreaches(ahead, dragged, stepped):
                return replace(stepped, anchors=anchors, jumps=True)
            problem.floats[:] = aims  # a tried step has left its own
        return replace(solved, strained=True)

    def _on_the_way(self, state: State, solved: SolvedState, most: float) -> SolvedState:
        """The pose on the way to the one that was just solved, with no joint further than `most`; a step is whole."""
        if solved.anchors is not None:
            return solved
        problem, runner = self._posture.last.problem, self._posture.last.runner
        solution, jumps = eased(problem, state.placed.in_space(problem.space), solved.solution, most)
        if solution is solved.solution:
            return replace(solved, jumps=jumps)
        if runner is not None and not solved.strained:
            runner.pause(solution.q)
        placed = Placed(solution.pose, solution.q, problem.space)
        return replace(solved, placed=placed, solution=solution, jumps=jumps)

    def over(
        self,
        state: State,
        recorded: Pose,
        *,
        dragged: str | None = None,
        most: float | None = None,
        last: bool = True,
    ) -> SolvedState:
        """The pose that meets the handles of a state over a recorded pose; in a drag joints move by at most `most`.

        Near its recorded place a handle changes the recorded pose as little as possible. The further away it is, the
        more the pose is the one that the prior, the balance and a step find from there without a recording. On a
        timeline of poses it always is.
        """
        share = 1.0 if state.is_posed else _freedom(state, recorded, dragged)
        if share == 0.0 or (state.model == PLAIN and not state.weights):
            solved = self._bent(state, recorded, recorded, dragged)
            return solved if most is None else self._on_the_way(state, solved, most)
        free = state.with_(timeline=state.timeline.with_(clip=None), bearing=self._stance(state, recorded))
        self._calm = _idle_arms(recorded, {each.joint for each in _active(state, dragged)})
        try:
            if dragged is None or most is None:
                found = self.solve(free, dragged=dragged)
            else:
                found = self._aimed(free, dragged, fine=last)
        finally:
            self._calm = []
        free = free if found.anchors is None else free.with_(anchors=found.anchors)
        solved = found
        if share < 1.0:
            bent = self._bent(free, recorded, between(recorded, found.placed.pose, share), dragged)
            solved = replace(
                bent, anchors=found.anchors, jumps=found.jumps, log_likelihood=found.log_likelihood,
                percentile=found.percentile, latents=found.latents, beyond=found.beyond,
            )  # fmt: skip
        return solved if most is None else self._on_the_way(state, solved, most)

    def _bent(self, state: State, recorded: Pose, goal: Pose, dragged: str | None) -> SolvedState:
        """The pose under a prior around a recorded one that meets the handles, with the trunk as in another pose."""
        busy = {recorded.skeleton.index(each.joint) for each in _active(state, dragged)}
        calm = as_recorded(goal, busy, looks=state.look_at is not None)
        calm += [
            Orientation(joint, turn_of(joint, goal), tolerance=SPINE, name=f"{joint} as recorded")
            for joint in _between_hips_and_chest(recorded.skeleton)
            if recorded.skeleton.index(joint) not in busy
        ]
        asked = asked_of(state, dragged=dragged) + [Condition(None, each) for each in calm]
        balance = self._stance(state, recorded).balance and state.feet != "free" and state.model != PLAIN
        manner = replace(bare_of(state), balance=balance)
        return self._solved(state, self._about(recorded), asked, manner)

    def _stance(self, state: State, recorded: Pose) -> Bearing:
        """The defaults over a recorded pose: arms stay as they are, and a body in balance stays so."""
        space, balance = self._models.plain(recorded.skeleton).prior.space, state.bearing.balance
        if balance:
            centre = space.centre_of_mass(space.q_from_pose(recorded))[0]
            balance = bearing.overhang(recorded, centre) <= bearing.SWAY
        return state.bearing.with_(arms=False, balance=balance)

    def _about(self, recorded: Pose) -> Prior:
        """A prior around a single pose."""
        plain = self._models.plain(recorded.skeleton).prior
        mean = plain.space.q_from_pose(recorded)[ROOT_SIZE:]
        if self._recorded is None or not np.array_equal(self._recorded.mean, mean):
            self._recorded = BroadPrior(plain.space, mean=mean, sigma=SUPPLE, afresh=True)
            self._recorded.limits = plain.limits
        return self._recorded

    def foresee(self, state: State) -> None:
        """Prepare local models for the handles of a state, so that switching to one is instant."""
        asked = [condition.constraint for condition in asked_of(state)]
        constraints = [*asked, *plan_of(state.pose.skeleton, asked, bare_of(state)).defaults]
        wanted = tuple(constraint.signature for constraint in constraints)
        skeleton = state.pose.skeleton
        known = [entry for entry in self._models.learned if entry.source.ready]
        local = [entry.prior for entry in known if entry.kind == "local"]
        alike = [prior for prior in local if prior.space.skeleton.same_topology(skeleton)]
        if wanted == self._foreseen or not alike:
            return
        self._foreseen = wanted

        def prepare() -> None:
            for prior in alike:
                if self._foreseen is wanted:  # else the handles have changed by now
                    Solver(prior, constraints, method=MAP)

        _AHEAD.submit(prepare)

    def _solved(
        self,
        state: State,
        prior: Prior,
        conditions: Sequence[Condition],
        manner: Manner,
        *,
        method: str = MAP,
        fine: bool = True,
        afresh: bool = False,
        near: Float[Array, "size"] | None = None,
        follows: bool = False,
    ) -> SolvedState:
        """The pose from the state's own, a moment later if it `follows`; `afresh` from the prior's guess."""
        known = next((one for one in self._postures if one[0] is prior and one[1] == method), None)
        if known is None:  # over a recording two take turns
            known = prior, method, Posture(prior, method=method, kept=KEPT)
        self._postures = [known, *(one for one in self._postures if one is not known)][:2]
        self._posture = known[2]
        asked = [condition.constraint for condition in conditions]
        if afresh and (manner.planted or any(one.kind in PLACES for one in asked)):
            solution = self._posture.solve(asked, manner)
        else:
            start = near if near is not None else state.placed.in_space(prior.space)
            solution = self._posture.follow(asked, manner, state.pose, start, moves=follows, fine=fine)
        placed = Placed(solution.pose, solution.q, solution.space)
        owners = [condition.handle for condition in conditions]
        unowned = len(solution.residuals) - len(owners)
        return SolvedState(placed, solution, (*owners, *[None] * unowned), None, None, latents=())

    def _likelihood_of(
        self, prior: Prior, solution: Solution, *, fine: bool
    ) -> tuple[float | None, float | None, str]:
        due, *_ = self._likelihood
        now = time.perf_counter()
        if fine or now > max(due, Poser.rested):
            found = prior.log_likelihood(solution.q)
            quantiles = getattr(prior, "quantiles", None)
            if quantiles is None:
                share = prior.percentile(solution.q)
            else:
                share = float(np.interp(found, quantiles, np.arange(101)))
            beyond = str(solution.beyond_people[0]) if solution.beyond_people else ""
            done = time.perf_counter()
            Poser.rested = done + LIKELIHOOD_REST * (done - now)
            self._likelihood = (now + LIKELIHOOD_EVERY, found, share, beyond)
        return self._likelihood[1:]


def asked_of(state: State, *, dragged: str | None = None) -> list[Condition]:
    """The constraints that a state asks for: pinned handles and the dragged one, the gaze, and typed ones."""
    conditions = [
        Condition(handle.id, constraint)
        for handle in _active(state, dragged)
        for constraint in _of_handle(handle, state, DRAGGED if handle.id == dragged else HELD)
    ]
    if state.look_at is not None and "head" in state.pose.skeleton.roles:
        look = LookAt("head", state.look_at, priority=DRAGGED, name="look-at")
        conditions.append(Condition(LOOK_AT, look))
    return conditions + [Condition(None, constraint) for constraint in typed_constraints(state.constraints)]


def _freedom(state: State, recorded: Pose, dragged: str | None) -> float:
    """The share of the prior in a pose over a recorded one: from 0 to 1 with the distance of its handles from there."""
    far = 0.0
    for handle in _active(state, dragged):
        if handle.position is not None:
            far = max(far, math.dist(handle.position, place_of(handle, recorded)))
    height = recorded.skeleton.height
    return float(smoothstep(np.array((far / height - CLOSE) / (APART - CLOSE))))


@kept_for_body
def _between_hips_and_chest(skeleton: Skeleton) -> list[str]:
    if not {"pelvis", "chest"} <= set(skeleton.roles):
        return []
    hips, chest = skeleton.index("pelvis"), skeleton.chain("chest")
    return [skeleton.names[joint] for joint in chest[chest.index(hips) + 1 : -1]] if hips in chest else []


def _idle_arms(recorded: Pose, busy: Collection[str]) -> list[Condition]:
    """Soft constraints: arms without handles stay as recorded, in the world, as arms that hang do."""
    skeleton, found = recorded.skeleton, []
    held = {skeleton.index(joint) for joint in busy}
    for side in SIDES:
        arm = f"{side}_upper_arm"
        if arm not in skeleton.roles or not bearing.below(skeleton, arm).isdisjoint(held):
            continue
        for role in (arm, f"{side}_forearm"):
            if role in skeleton.roles:
                turn = turn_of(skeleton.roles[role], recorded)
                found.append(
                    Condition(None, Orientation(role, turn, tolerance=SWING, name=f"{role} as recorded"))
                )
    return found


def between(pose: Pose, goal: Pose, share: float) -> Pose:
    """A pose on the way from one to another."""
    turns = rotations.slerp(pose.rotations, goal.rotations, np.full(len(pose.rotations), share))
    return Pose(pose.skeleton, pose.root_position + share * (goal.root_position - pose.root_position), turns)


def bare_of(state: State) -> Manner:
    """The feet of a state and nothing else."""
    feet = tuple(feet_of(state.pose.skeleton)) if state.feet == "planted" else ()
    planted = tuple([(role, state.anchors[role]) for role in feet if role in state.anchors])
    return replace(BARE, floor=None if state.feet == "free" else 0.0, planted=planted)


def manner_of(state: State) -> Manner:
    """How the body of a state stands."""
    wanted = state.bearing
    heading = state.anchors.get(HEADING) if wanted.heading else None
    return replace(
        bare_of(state), near=state.feet == "above", heading=heading, keeps_heading=True,
        balance=wanted.balance and state.feet != "free", arms=wanted.arms, apart=wanted.apart,
    )  # fmt: skip


def _active(state: State, dragged: str | None) -> list[SceneHandle]:
    return [handle for handle in state.handles if handle.pinned or handle.id == dragged]


@lru_cache(maxsize=8)
def typed_constraints(text: str) -> tuple[Constraint, ...]:
    """The constraints in a text."""
    return tuple(read_constraints(TYPED, text)) if text.strip() else ()


def _overreaches(state: State, dragged: str, solved: SolvedState) -> bool:
    """Whether a hand is dragged too far for planted feet: out of reach, or far from where they stand."""
    if state.feet != "planted" or not state.bearing.step or dragged == LOOK_AT:
        return False
    skeleton, handle = state.pose.skeleton, state.handle(dragged)
    if handle.position is None or _is_hips_or_leg(skeleton, handle.joint):
        return False
    _, way = _from_feet(state, handle.position)
    lacking = [
        left.value for owner, left in zip(solved.owners, solved.solution.residuals, strict=True)
        if owner == dragged and left.unit == "m"
    ]  # fmt: skip
    return math.hypot(*way) > FAR * skeleton.height or max(lacking, default=0.0) > UNMET


@kept_for_body
def _is_hips_or_leg(skeleton: Skeleton, joint: str) -> bool:
    roles = ("pelvis", "left_thigh", "right_thigh")
    hips = {skeleton.index(role) for role in roles if role in skeleton.roles}
    return skeleton.index(joint) in hips or not hips.isdisjoint(skeleton.chain(joint)[1:])


def _after_a_step(state: State, handle: SceneHandle) -> dict[str, Vec3] | None:
    """Anchors with the rear foot moved forward, towards a handle; None if it is close already."""
    assert handle.position is not None
    skeleton = state.pose.skeleton
    feet, way = _from_feet(state, handle.position)
    length = min(float(np.linalg.norm(way)) - NEAR * skeleton.height, STRIDE * skeleton.height)
    if len(feet) < 2 or length < SHORTEST * skeleton.height:
        return None
    along = way / np.linalg.norm(way)
    step = length * along
    ahead = feet["left_foot"] @ along - feet["right_foot"] @ along
    arm = skeleton.index("right_upper_arm") if "right_upper_arm" in skeleton.roles else -1
    own = "right" if arm in skeleton.chain(handle.joint) else "left"
    side = own if abs(ahead) < SHORTEST * skeleton.height else "right" if ahead > 0.0 else "left"
    x, _, z = state.anchors.get(HEADING, (0.0, 0.0, 1.0))
    apart = feet["left_foot"] - feet["right_foot"] + (step if side == "left" else -step)
    if float(apart @ np.array([z, 0.0, -x])) < 0.0:  # the feet would cross
        side = "left" if side == "right" else "right"
    moved = {role: vec3(np.array(at) + step) for role, at in state.anchors.items() if role.startswith(side)}
    return state.anchors | moved


def _after_bracing(state: State, dragged: str | None) -> dict[str, Vec3] | None:
    """Anchors with one foot ahead and the other behind, if hands push against a prop and the feet stand elsewhere."""
    if not state.props or state.model == PLAIN or state.feet != "planted" or not state.bearing.step:
        return None
    skeleton, asked = state.pose.skeleton, [one.constraint for one in asked_of(state, dragged=dragged)]
    found = lunge(touched(asked, skeleton, 0.0), asked, skeleton, 0.0)
    if found is None or taken_sides(skeleton, _active(state, dragged)):
        return None
    heading, feet = found
    away = [math.dist(state.anchors.get(role, (math.inf,) * 3), place) for role, place in feet.items()]
    if max(away) < BRACED * skeleton.height:
        return None
    return standing_at(feet, heading, skeleton) | {HEADING: heading}


def _after_turning(state: State) -> dict[str, Vec3] | None:
    """Anchors with the feet turned about their middle, towards a gaze that neck and trunk do not reach; else None."""
    heading = state.anchors.get(HEADING)
    if state.look_at is None or heading is None or state.feet != "planted" or not state.bearing.step:
        return None
    feet, way = _from_feet(state, state.look_at)
    if state.model == PLAIN or len(feet) < 2 or abs(turn := bearing.turn_towards(heading, way)) < LEAST_TURN:
        return None
    middle = np.array(list(feet.values())).mean(axis=0)
    around = {
        role: middle + bearing.turned(np.subtract(at, middle), turn) for role, at in state.anchors.items()
    }
    return {role: vec3(at) for role, at in around.items()} | {HEADING: bearing.turned(heading, turn)}


def _from_feet(state: State, place: Vec3) -> tuple[dict[str, Array], Float[Array, "3"]]:
    """The positions of planted feet, and the vector along the ground from their middle to a point."""
    feet = {role: np.array(at) for role, at in state.anchors.items() if role.endswith("_foot")}
    way = np.subtract(place, np.array(list(feet.values())).mean(axis=0)) if feet else np.zeros(3)
    return feet, way * (1.0, 0.0, 1.0)


def planted(pose: Pose, *, but: dict[str, Vec3] | None = None) -> dict[str, Vec3]:
    """Positions of a pose's feet, by role, and the hips' heading; given ones are kept."""
    feet, heading = feet_of(pose.skeleton), bearing.heading_of(pose)
    points = points_of(pose, [Point(role) for role in feet])
    found = {role: vec3(point) for role, point in zip(feet, points, strict=True)}
    return found | ({} if heading is None else {HEADING: vec3(heading)}) | (but or {})


def replanted(state: State, *, dragged: str | None = None) -> dict[str, Vec3]:
    """Anchors after a solve: those that held are kept, those of feet moved by hand follow."""
    active, skeleton = _active(state, dragged), state.pose.skeleton
    taken = taken_sides(skeleton, active)
    turned = {skeleton.index(handle.joint) for handle in active if handle.rotation is not None}
    hips_and_feet = [role for role in ("pelvis", *FLOOR_ROLES) if role in skeleton.roles]
    if state.look_at is not None or any(skeleton.index(role) in turned for role in hips_and_feet):
        taken = {*taken, HEADING}
    kept = {role: point for role, point in state.anchors.items() if not role.startswith(tuple(taken))}
    return planted(state.pose, but=kept)


def points_of(pose: Pose, points: Sequence[Point]) -> Float[Array, "points 3"]:
    """World positions of points fixed to joints."""
    positions, matrices = pose.world
    joints = [pose.skeleton.index(point.joint) for point in points]
    offsets = np.array([point.offset for point in points], dtype=np.float64).reshape(-1, 3)
    return np.asarray(positions[joints] + np.einsum("pij,pj->pi", matrices[joints], offsets))


def following(handle: SceneHandle, pose: Pose) -> SceneHandle:
    """A handle with targets at the body's current values."""
    return handle.with_(
        position=None if handle.position is None else place_of(handle, pose),
        rotation=None if handle.rotation is None else turn_of(handle.joint, pose),
    )


def place_of(handle: SceneHandle, pose: Pose) -> Vec3:
    """The position of a handle on a body."""
    return vec3(points_of(pose, [point_of(handle)])[0])


def point_of(handle: SceneHandle) -> Point:
    """The point of the body of a handle."""
    return Point(handle.joint, handle.offset)


def _of_handle(handle: SceneHandle, state: State, priority: int) -> list[Constraint]:
    """The targets of a handle; a palm, fingertips or a sole on a prop are against it."""
    found: list[Constraint] = []
    point, at = point_of(handle), handle.position
    if at is not None:
        soft = None if handle.hard else handle.tolerance
        skin = point.surface(state.pose.skeleton)
        normal = face_near(state.props, at) if skin is not None else None
        name = skin[0] if skin else handle.joint
        given: dict[str, Any] = {"tolerance": soft, "priority": priority, "name": name}
        found.append(Position(point, at, **given) if normal is None else Against(point, at, normal, **given))
    if handle.rotation is not None:
        soft, name = None if handle.hard else handle.turn_tolerance, f"turn of {handle.joint}"
        found.append(Orientation(point, handle.rotation, tolerance=soft, priority=priority, name=name))
    return found


def taken_sides(skeleton: Skeleton, handles: Sequence[SceneHandle]) -> set[str]:
    """The sides whose shin, foot or toes have a handle with a position."""
    placed = [skeleton.index(each.joint) for each in handles if each.position is not None]
    return sides_of_legs(skeleton, placed)


def turn_of(joint: str, pose: Pose) -> Quaternion:
    """The world rotation of a joint."""
    w, x, y, z = rotations.quaternion_from_matrix(pose.world[1][pose.skeleton.index(joint)]).tolist()
    return w, x, y, z


def feet_of(skeleton: Skeleton) -> list[str]:
    """The roles of a skeleton that stand on the floor."""
    return [role for role in FLOOR_ROLES if role in skeleton.roles]


def vec3(point: Float[Array, "3"]) -> Vec3:
    """A point in the form of messages."""
    x, y, z = (float(value) for value in point)
    return x, y, z
