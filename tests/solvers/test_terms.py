"""The contract of terms: the gradient is that of the cost, the curvature a band, time linear; from outside too."""

import time
from dataclasses import dataclass

import numpy as np
import pytest

from made_once import learned
from poise import performer
from poise.capture.calibration import BodyMarkers, BodyShape
from poise.capture.people.solving import Pixels, Shapes, StandingFeet, Trust
from poise.errors import InvalidValueError
from poise.geometry.cameras import Camera
from poise.motion import Motion
from poise.priors.dynamics.likelihood import MotionLikelihood
from poise.priors.dynamics.prior import DynamicsPrior
from poise.priors.dynamics.structure import MODELS
from poise.priors.prior import Prior
from poise.priors.terms import (
    Accelerations,
    Held,
    SharedGaussian,
    System,
    Term,
    Unknowns,
    WindowGaussian,
)
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.pose_space import PoseSpace
from poise.solvers.constraints import LookAt, Pinned, Position, floor
from poise.solvers.problem import Problem
from poise.solvers.sequence import Constraints, PosePriors, SequenceSolver, Smoother, solve_terms
from poise.vision.people.person import NAMES, handles_of
from poise.vision.people.watched import WatchedPerson

FRAMES, FPS = 8, 30.0
CAMERA = Camera.looking_at((0.0, 0.9, 1.0), eye=(0.8, 1.5, 4.5), size=(640, 480))


class Height(Term):
    """A term from outside: the root at a height."""

    def __init__(self, height: float) -> None:
        self._height = height

    def cost(self, now: Unknowns) -> float:
        return 50.0 * float(((now.q[:, 1] - self._height) ** 2).sum())

    def add(self, now: Unknowns, system: System) -> None:
        system.right[:, 1] += 100.0 * (self._height - now.q[:, 1])
        system.bands[0][:, 1, 1] += 100.0


class Shift(Term):
    """A term from outside with an unknown that all frames share: places seen by a sensor that stands elsewhere."""

    shared = 3

    def __init__(self, seen: np.ndarray) -> None:
        self._seen = seen

    def cost(self, now: Unknowns) -> float:
        return 50.0 * float((self._off(now) ** 2).sum())

    def add(self, now: Unknowns, system: System) -> None:
        pull, own = 100.0 * self._off(now), np.arange(3)
        system.right[:, own] += pull
        system.shared_right[self.common] += pull.sum(axis=0)
        system.bands[0][:, own, own] += 100.0
        system.border[:, own, own + self.common.start] += 100.0
        system.corner[self.common, self.common] += 100.0 * len(now) * np.eye(3)

    def _off(self, now: Unknowns) -> np.ndarray:
        return self._seen - now.q[:, :3] - now.shared[self.common]


@dataclass(frozen=True, eq=False)
class Case:
    """A term at work: the sequence around which it is tested, and its space."""

    term: Term
    now: Unknowns
    space: PoseSpace


@pytest.fixture(scope="module")
def clip() -> Motion:
    return performer.act("walk", seconds=1.0, fps=FPS, seed=3)[5 : 5 + FRAMES]


@pytest.fixture(scope="module")
def dynamics() -> DynamicsPrior:
    walks = [performer.act("walk", speed=speed, seconds=2.5, fps=30, seed=3) for speed in (1.2, 1.5)]
    return learned(DynamicsPrior, walks, topology=MODELS["topology"], steps=20)


def _person(space: PoseSpace, q: np.ndarray) -> tuple[WatchedPerson, np.ndarray]:
    """What a camera sees of a motion, with outliers, and the places of the landmarks."""
    rng, places = np.random.default_rng(0), space.points(q, space.handles(handles_of(space.skeleton)[0]))
    pixels = CAMERA.project(places)[:, None] + rng.normal(0.0, 4.0, (len(q), 1, len(NAMES), 2))
    pixels[2, 0, 4] += 60.0
    seen, sides = np.full((len(q), 1, len(NAMES)), 0.9), np.full((len(q), 1), 300.0)
    shapes = (places - places.mean(axis=1, keepdims=True))[:, None]
    return WatchedPerson([CAMERA], pixels, seen, shapes, sides, FPS), places


def _made(kind: str, prior: Prior, clip: Motion, dynamics: DynamicsPrior) -> Case:
    rng, space, fps = np.random.default_rng(1), prior.space, FPS
    q = space.q_from_frames(clip.root_positions, clip.rotations)
    q = np.stack([space.integrate(pose, 0.05 * rng.normal(size=space.freedoms)) for pose in q])
    now, body = Unknowns(q), space.skeleton
    if kind in ("likelihood", "published"):
        model = (
            dynamics
            if kind == "likelihood"
            else DynamicsPrior(
                dynamics.model, root=dynamics.root, flows=dynamics.flows, frames=dynamics.frames,
                structure=dynamics.structure.as_published(), limits=dynamics.limits,
            )
        )  # fmt: skip
        x = model.latents[:FRAMES] + 0.05 * rng.normal(size=(FRAMES, 3))
        own = model.poses_of(model.predict_all(x))
        return Case(MotionLikelihood(model, fps), Unknowns(own, x), model.space)
    precision = rng.normal(size=(FRAMES, space.freedoms, space.freedoms))
    precision = precision @ precision.transpose(0, 2, 1)
    person, places = _person(space, q)
    handles, looser = handles_of(body)
    near = np.stack([space.integrate(pose, 0.2 * rng.normal(size=space.freedoms)) for pose in q])
    wanted = [Position("left_hand", (0.3, 1.1, 0.3)), LookAt("head", (0.5, 1.6, 3.0), tolerance=0.1)]
    problem = Problem(space, [*wanted, *floor(("left_toes",), height=0.3), Pinned(["Neck"], q[0])])
    made = {
        "height": lambda: Height(1.0),
        "shift": lambda: Shift(q[:, :3] + (0.1, 0.0, 0.2)),
        "held": lambda: Held(slice(2)),
        "smoother": lambda: Smoother(space),
        "accelerations": lambda: Accelerations(rng.uniform(1.0, 2.0, space.freedoms)),
        "window": lambda: WindowGaussian(1, near[1:5], precision[1:5]),
        "diagonal": lambda: WindowGaussian(0, near, rng.uniform(1.0, 2.0, space.freedoms)),
        "velocities": lambda: WindowGaussian(1, near[1:6], precision[:4], order=1),
        "second": lambda: WindowGaussian(2, near[2:7], precision[:3], order=2, pull=near[2:7, 1:]),
        "constraints": lambda: Constraints([problem] * FRAMES),
        "priors": lambda: PosePriors(
            [prior], space, [space.handles(["left_foot"])] * FRAMES, [(1.0,)] * FRAMES
        ),
        "pixels": lambda: Pixels(prior, handles, looser, person, Trust()),
        "shapes": lambda: Shapes(prior, handles, looser, FRAMES, Trust()),
        "feet": lambda: StandingFeet(prior, person, Trust()),
        "body": lambda: BodyMarkers(
            Problem(space, [Position(handle, (0.0, 0.0, 0.0), tolerance=0.01) for handle in handles]),
            BodyShape.of_bones(body),
            np.where(rng.uniform(size=places.shape[:2])[..., None] < 0.1, np.nan, places + 0.03),
        ),
    }
    term = made[kind]()
    if isinstance(term, Shapes):
        term.aim(person, places + 0.1 * rng.normal(size=places.shape))
    if isinstance(term, Shift):
        now = Unknowns(q, shared=np.array([0.1, -0.2, 0.3]))
    if isinstance(term, BodyMarkers):
        ways = term.shared - 3 * len(handles)
        now = Unknowns(q, shared=np.r_[rng.uniform(0.9, 1.1, ways), rng.normal(0.0, 0.05, 3 * len(handles))])
    return Case(term, now, space)


KINDS = (
    *("height", "shift", "held", "smoother", "accelerations", "window", "diagonal", "velocities", "second"),
    *("constraints", "priors", "pixels", "shapes", "feet", "body", "likelihood", "published"),
)


@pytest.fixture(params=KINDS)
def case(request: pytest.FixtureRequest, clip: Motion, dynamics: DynamicsPrior) -> Case:
    case = _made(request.param, UniversalPrior(clip.skeleton), clip, dynamics)
    SequenceSolver(case.space, [case.term])  # gives it its unknowns
    case.term.update(case.now, 5)
    return case


def test_what_it_adds_is_minus_the_gradient_of_its_cost(case: Case) -> None:
    rng, now = np.random.default_rng(2), case.now
    solver = SequenceSolver(case.space, [case.term])
    system = solver.system(now)
    for latent in (0.0, 1.0):
        along = rng.normal(size=system.right.shape)
        along[:, system.freedoms :] *= latent
        along[system.held] = 0.0
        shared = rng.normal(size=now.shared.shape)

        def cost(step: float, along: np.ndarray = along, shared: np.ndarray = shared) -> float:
            ways = step * along
            q = [
                case.space.integrate(pose, way)
                for pose, way in zip(now.q, ways[:, : system.freedoms], strict=True)
            ]
            return solver.cost(
                Unknowns(np.stack(q), now.x + ways[:, system.freedoms :], now.shared + step * shared)
            )

        if isinstance(case.term, Smoother):
            assert not system.right.any()
            return
        if isinstance(case.term, MotionLikelihood) and latent:
            continue  # the slope of variances by latent points is that of Gauss and Newton
        slope = (cost(1e-6) - cost(-1e-6)) / 2e-6
        force = np.vdot(system.right, along) + np.vdot(system.shared_right, shared)
        assert -force == pytest.approx(slope, rel=2e-4, abs=1e-4)


def test_a_point_far_off_costs_no_more_than_its_share(clip: Motion) -> None:
    """The loss of Geman and McClure: at most half the square of the deviation at which a point has half weight."""
    prior, trust = UniversalPrior(clip.skeleton), Trust()
    q = prior.space.q_from_frames(clip.root_positions, clip.rotations)
    person, _ = _person(prior.space, q)
    term, now = Pixels(prior, *handles_of(clip.skeleton), person, trust), Unknowns(q)
    SequenceSolver(prior.space, [term])  # gives it its unknowns
    usual = term.cost(now)
    person.pixels[1, 0, 6] += 1e5
    term.aim(person)
    assert 0.0 < usual < term.cost(now) < usual + 0.5 * trust.outlier**2


def test_its_curvature_is_a_band_that_a_step_can_use(case: Case) -> None:
    system = SequenceSolver(case.space, [case.term]).system(case.now)
    assert len(system.bands) == min(case.term.reach, FRAMES - 1) + 1
    dense = system.matrix.dense()
    assert np.linalg.eigvalsh(dense).min() > -1e-6 * max(1.0, np.abs(dense).max())
    near = WindowGaussian(0, case.now.q, np.ones(system.freedoms))
    still = SequenceSolver(case.space, [case.term, near]).system(case.now)
    latent = np.arange(still.freedoms, still.right.shape[1])
    still.bands[0][:, latent, latent] += 1.0
    steps, shared = still.steps(1e-4)
    assert np.all(np.isfinite(steps))
    assert not steps[still.held].any()
    assert len(shared) == case.term.shared


def test_steps_lower_its_cost(case: Case) -> None:
    near = WindowGaussian(0, case.now.q, np.ones(case.space.freedoms))
    solver = SequenceSolver(case.space, [case.term, near])
    found, _ = solver.solve(case.now, rounds=3)
    assert np.all(np.isfinite(found.q))
    assert solver.cost(found) <= solver.cost(case.now) + 1e-9 or isinstance(
        case.term, PosePriors | Shapes | StandingFeet | Smoother
    )  # these look again before every round


def test_a_shared_unknown_is_found_with_the_poses(clip: Motion) -> None:
    space = UniversalPrior(clip.skeleton).space
    q = space.q_from_frames(clip.root_positions, clip.rotations)
    terms = [Shift(q[:, :3] + (0.1, -0.2, 0.3)), WindowGaussian(0, q, np.full(space.freedoms, 1e4))]
    solver = SequenceSolver(space, terms)
    found, rounds = solver.solve(Unknowns(q, shared=np.zeros(3)))
    np.testing.assert_allclose(found.shared, (0.1, -0.2, 0.3), atol=1e-4)
    np.testing.assert_allclose(found.q, q, atol=1e-4)
    assert rounds < 5
    with pytest.raises(InvalidValueError, match="3 shared"):
        solver.solve(Unknowns(q))
    expected = SharedGaussian(terms[0], np.zeros(3), np.full(3, 100.0 * FRAMES))  # as sure as all frames are
    terms[1] = WindowGaussian(0, q, np.full(space.freedoms, 1e8))
    found, _ = SequenceSolver(space, [*terms, expected]).solve(Unknowns(q, shared=np.zeros(3)))
    np.testing.assert_allclose(found.shared, (0.05, -0.1, 0.15), atol=1e-4)


def test_a_term_from_outside_works_beside_constraints(clip: Motion) -> None:
    prior = UniversalPrior(clip.skeleton)
    q = prior.space.q_from_frames(clip.root_positions, clip.rotations)
    near = WindowGaussian(0, q, np.full(prior.space.freedoms, 10.0))
    hand = [[Position("left_hand", (0.3, 1.0, 0.3 + 0.02 * k))] for k in range(FRAMES)]
    solved = solve_terms(prior, hand, [Height(0.8), near], Unknowns(q), fps=FPS)
    assert solved.reached
    assert solved.worst < 2e-4
    assert np.abs(solved.q[:, 1] - 0.8).max() < np.abs(q[:, 1] - 0.8).min()


def test_the_mean_of_a_window_is_reached(clip: Motion) -> None:
    """A model of motion predicts some frames in the middle; second differences carry on from there."""
    prior = UniversalPrior(clip.skeleton)
    q = prior.space.q_from_frames(clip.root_positions, clip.rotations)
    start = np.repeat(q[:1], FRAMES, axis=0)
    window = WindowGaussian(2, q[2:6], np.full(prior.space.freedoms, 1e4))
    smooth = Accelerations(np.ones(prior.space.freedoms))
    found, _ = SequenceSolver(prior.space, [window, smooth]).solve(Unknowns(start), rounds=20)
    np.testing.assert_allclose(found.q[2:6], q[2:6], atol=5e-3)
    assert np.linalg.norm(found.q[7] - q[7]) < np.linalg.norm(start[7] - q[7])


def test_time_is_linear_in_frames(clip: Motion) -> None:
    prior = UniversalPrior(clip.skeleton)
    q = prior.space.q_from_frames(clip.root_positions, clip.rotations)

    def seconds(count: int) -> float:
        now = Unknowns(np.resize(q, (count, q.shape[1])))
        ones = np.ones(prior.space.freedoms)
        terms = [Accelerations(ones), WindowGaussian(0, now.q, ones)]
        solver, tries = SequenceSolver(prior.space, terms), []
        for _ in range(3):
            begun = time.process_time()
            solver.solve(now, rounds=1)
            tries.append(time.process_time() - begun)
        return min(tries)

    assert seconds(320) < 3.0 * 4 * seconds(80)
