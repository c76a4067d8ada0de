"""Animation from constraints: what is asked for is met, the rest is the model's; scripts and mistakes."""

from pathlib import Path

import numpy as np
import pytest

from made_once import learned
from poise import performer
from poise.apps import simulating
from poise.apps.animate import (
    animate,
    changed,
    constraints_of,
    contacts_in,
    contacts_text,
    read_animate_script,
)
from poise.apps.simulating import load_dynamics, simulate
from poise.errors import InvalidValueError, ParseError, UnknownNameError
from poise.formats import write
from poise.motion import Motion, joint_positions
from poise.priors.dynamics.prior import DynamicsPrior
from poise.priors.dynamics.simulation import plan
from poise.priors.dynamics.structure import MODELS
from poise.priors.gaussian import GaussianPrior
from poise.priors.local.prior import LocalPrior
from poise.priors.model_file import save
from poise.priors.style.prior import StylePrior
from poise.priors.terms import Unknowns
from poise.priors.universal.prior import UniversalPrior
from poise.solvers.constraints import LookAt, Position
from poise.solvers.problem import Problem
from poise.solvers.sequence import Constraints, SequenceSolver, solve_terms, targets_of
from poise.solvers.solution import MotionSolution


@pytest.fixture(scope="module")
def walks() -> list[Motion]:
    return [performer.act("walk", speed=speed, seconds=2.5, fps=30, seed=3) for speed in (1.2, 1.5)]


@pytest.fixture(scope="module")
def prior(walks: list[Motion]) -> DynamicsPrior:
    return learned(DynamicsPrior, walks, topology="topology", steps=60)


@pytest.fixture(scope="module")
def unseen() -> Motion:
    return performer.act("walk", speed=1.35, seconds=1.5, fps=30, seed=9)


@pytest.fixture(scope="module")
def animated(prior: DynamicsPrior, unseen: Motion) -> MotionSolution:
    frames = constraints_of(contacts_in(unseen), len(unseen))
    return animate(prior.on_body(unseen.skeleton), frames, fps=unseen.fps)


def test_a_walk_comes_back_from_its_foot_contacts(animated: MotionSolution, unseen: Motion) -> None:
    gaps = np.linalg.norm(joint_positions(animated.motion) - joint_positions(unseen), axis=2)
    assert gaps.mean() < 0.06
    assert not animated.unmet
    assert animated.worst < 2e-3
    assert animated.latents.shape == (len(unseen), 3)


def test_wider_steps_are_met_too(prior: DynamicsPrior, unseen: Motion) -> None:
    along = unseen.root_positions[-1] - unseen.root_positions[0]
    wider = changed(contacts_in(unseen), along=along, wider=0.08)
    found = animate(prior.on_body(unseen.skeleton), constraints_of(wider, len(unseen)), fps=unseen.fps)
    assert found.worst < 2e-3


def test_changed_contacts_move_to_their_own_side(unseen: Motion) -> None:
    contacts = contacts_in(unseen)
    along = np.array([0.0, 0.0, 1.0])
    moved = changed(contacts, along=along, wider=0.1)
    for before, after in zip(contacts, moved, strict=True):
        assert after.point[0] - before.point[0] == pytest.approx(0.1 if before.side == "left" else -0.1)
    longer = changed(contacts, along=along, longer=2.0)
    ways = [each[-1].point[2] - each[0].point[2] for each in (contacts, longer)]
    assert ways[1] == pytest.approx(2.0 * ways[0])


def test_any_constraint_may_be_asked_of_any_frame(prior: DynamicsPrior) -> None:
    frames = [[] for _ in range(20)]
    frames[4] = [Position("left_hand", (0.3, 1.1, 0.3))]
    frames[12] = [LookAt("head", (0.5, 1.6, 3.0))]
    found = animate(prior, frames, fps=30.0)
    assert not found.unmet
    steps = np.linalg.norm(np.diff(found.motion.root_positions, axis=0), axis=1)
    assert steps.max() < 0.2


def test_the_objective_is_where_its_gradient_vanishes(prior: DynamicsPrior, walks: list[Motion]) -> None:
    """From the training motion itself nothing is gained by moving: more rounds end in the same place."""
    clip = walks[0][:12]
    q = prior.space.q_from_frames(clip.root_positions, clip.rotations)
    start = Unknowns(q, prior.model.latents[:12].copy())
    frames = [
        [Position("left_foot", joint_positions(clip)[f, clip.skeleton.index("left_foot")])] for f in range(12)
    ]
    terms = prior.motion_terms(targets_of(prior.space, frames, 30.0), frames=12, fps=30.0)
    first = solve_terms(prior, frames, terms, start, fps=30.0, rounds=25)
    second = solve_terms(prior, frames, terms, start, fps=30.0, rounds=40)
    assert np.abs(first.q - second.q).max() < 5e-3
    assert np.abs(first.q[:, 7:] - q[:, 7:]).mean() < 0.05


@pytest.mark.parametrize("published", [False, True])
def test_steps_lead_downhill(walks: list[Motion], published: bool) -> None:
    """What the poses are pushed by is minus the gradient of what is minimised; as published, by Eq. 12's smoothness."""
    topology = MODELS["topology"].as_published() if published else MODELS["topology"]
    prior = learned(DynamicsPrior, walks, topology=topology, steps=20)
    wanted = [[Position("left_hand", (0.3, 1.1, 0.3))] for _ in range(6)]
    terms = prior.motion_terms(targets_of(prior.space, wanted, 30.0), frames=6, fps=30.0)
    whole = SequenceSolver(prior.space, [*terms, Constraints([Problem(prior.space, own) for own in wanted])])
    rng = np.random.default_rng(5)
    x = prior.latents[:6] + 0.05 * rng.normal(size=(6, 3))
    q = prior.poses_of(prior.predict_all(x))
    along = rng.normal(size=(6, prior.space.freedoms))
    right = whole.system(Unknowns(q, x)).right

    def value(step: float) -> float:
        moved = [prior.space.integrate(pose, step * way) for pose, way in zip(q, along, strict=True)]
        return whole.cost(Unknowns(np.stack(moved), x))

    slope = (value(1e-5) - value(-1e-5)) / 2e-5
    assert -np.sum(right[:, : prior.space.freedoms] * along) == pytest.approx(slope, rel=1e-4)


def test_a_script_is_read_and_met(prior: DynamicsPrior, unseen: Motion, tmp_path: Path) -> None:
    text = contacts_text(contacts_in(unseen), frames=len(unseen), fps=unseen.fps)
    write(unseen, tmp_path / "walk.bvh")
    path = tmp_path / "steps.toml"
    path.write_text(
        text.replace("fps = 30", "fps = 30\nfloor = true")
        + "\n[handles.left_hand]\nkeys = [{ time = 0.2, at = [0.3, 1.0, 0.4] }]\n"
        + '\n[[keyframes]]\ntime = 0.0\nclip = "walk.bvh"\nframe = 0\n'
    )
    script = read_animate_script(path)
    frames = script.frames(prior.on_body(unseen.skeleton).space)
    assert len(frames) == len(unseen)
    assert len(frames[0]) > len(frames[1])
    assert script.floor == 0.0


def test_every_kind_of_constraint_is_read_and_met(prior: DynamicsPrior, tmp_path: Path) -> None:
    path = tmp_path / "all.toml"
    path.write_text(
        """
        duration = 0.5
        fps = 30
        constraints = [
          { kind = "position", handle = "pelvis", at = [0.0, 0.95, 0.0], time = 0.0 },
          { kind = "look-at", handle = "head", target = [1.0, 1.6, 3.0], from = 0.2, tolerance = 0.05 },
          { kind = "orientation", handle = "pelvis", rotation = [1.0, 0.0, 0.0, 0.0], time = 0.0 },
          { kind = "line", handle = "right_hand", origin = [-0.3, 0.0, 0.0], direction = [0.0, 1.0, 0.0], time = 0.0 },
          { kind = "plane", handle = "left_hand", point = [0.0, 1.0, 0.0], time = 0.4 },
          { kind = "above", handle = "left_toes", point = [0.0, 0.0, 0.0], normal = [0.0, 1.0, 0.0] },
          { kind = "distance", handle = "left_hand", other = "right_hand", distance = 0.6, time = 0.5 },
          { kind = "centre-of-mass", inside = [[-1, -1], [1, -1], [1, 3], [-1, 3]], name = "balance" },
          { kind = "centre-of-mass", at = [0.0, 0.02], tolerance = 0.1, to = 0.1 },
        ]
        """
    )
    script = read_animate_script(path)
    frames = script.frames(prior.space)
    assert [len(each) for each in frames[:2]] == [6, 3]
    assert "balance" in [each.label for each in frames[-1]]
    assert not animate(prior, frames, fps=30.0).unmet


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("duration = 1.0", "there are no constraints"),
        ('duration = 1.0\n[[constraints]]\nkind = "look"\nhandle = "head"', "did you mean look-at"),
        (
            'duration = 1.0\n[[constraints]]\nkind = "plane"\nhandle = "head"\npoint = [0, 0, 0]\ntime = 3',
            "0 to 1 s",
        ),
        (
            'duration = 1.0\n[[constraints]]\nkind = "centre-of-mass"\ninside = 3',
            "expected several rows of 2 finite numbers; got 3",
        ),
        ("duration = -1.0", "above 0"),
        ('duration = 1.0\n[[contacts]]\nhandle = "left_foot"', "at: is missing"),
        ('duration = 1.0\n[[contacts]]\nhandle = "left_foot"\nat = [0, 0, 0]\nfrm = 1', "frm"),
        ('duration = 1.0\n[[keyframes]]\ntime = 2.0\nclip = "no.bvh"', "0 to 1 s"),
    ],
)
def test_mistakes_in_a_script_are_named(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(ParseError, match=said):
        read_animate_script(tmp_path / "bad.toml")


def test_mistakes_are_named(prior: DynamicsPrior, walks: list[Motion], tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="no frame has a constraint"):
        animate(prior, [[], []], fps=30.0)
    with pytest.raises(InvalidValueError, match="give the frame rate of these frames, such as fps=30"):
        animate(prior, [{"left_hand": (0.3, 1.0, 0.2)}])
    with pytest.raises(InvalidValueError, match="at least 2"):
        animate(prior, [{"left_hand": (0.3, 1.0, 0.2)}], fps=30.0)
    save(GaussianPrior.learn(walks, clusters=3), tmp_path / "poses.poise")
    with pytest.raises(InvalidValueError, match="which has no motion"):
        load_dynamics(tmp_path / "poses.poise")
    with pytest.raises(UnknownNameError, match="swim"):
        simulate(prior, activities=["swim"])
    for wrong in ({"seconds": 0.0}, {"pace": 9.0}, {"fps": 0.0}, {"frame": 10_000}):
        with pytest.raises(InvalidValueError):
            simulate(prior, **wrong)


def test_a_simulation_goes_on_and_forward(prior: DynamicsPrior, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = []

    def planning(prior: DynamicsPrior, activities: list[str], *, frames: int) -> np.ndarray:
        planned.append(activities)
        return plan(prior, activities, frames=frames)

    monkeypatch.setattr(simulating, "plan", planning)
    simulate(prior, activities=["walk", "walk"], seconds=0.1)
    simulated = simulate(prior, activities=["walk"], seconds=2.0)
    assert planned == [["walk", "walk"]]  # one activity alone needs no plan
    assert len(simulated.motion) == 121
    way = simulated.motion.root_positions[-1] - simulated.motion.root_positions[0]
    assert np.linalg.norm(way[[0, 2]]) > 1.5


def test_a_body_that_nobody_learned_walks_from_its_foot_contacts(unseen: Motion) -> None:
    """The motion prior says how people get from stance to stance: the arms swing, and the body goes over its feet."""
    frames = constraints_of(contacts_in(unseen), len(unseen))
    found = animate(UniversalPrior(unseen.skeleton), frames, fps=unseen.fps)
    gaps = np.linalg.norm(joint_positions(found.motion) - joint_positions(unseen), axis=2)
    assert gaps.mean() < 0.14  # 0.18 without it
    assert found.worst < 1e-3


@pytest.mark.parametrize("kind", ["universal", "gaussian", "style", "local"])
def test_every_prior_animates_from_contacts(kind: str, walks: list[Motion], unseen: Motion) -> None:
    """Contacts are met, the body stays near where it walked, and frames without constraints lie between the others."""
    made = {
        "universal": lambda: UniversalPrior(unseen.skeleton),
        "gaussian": lambda: GaussianPrior.learn(walks, clusters=10),
        "style": lambda: learned(StylePrior, walks, dimensions=3, active=40),
        "local": lambda: LocalPrior.learn(walks),
    }
    frames = constraints_of(contacts_in(unseen), len(unseen))
    frames[7] = []
    found = animate(made[kind]().on_body(unseen.skeleton), frames, fps=unseen.fps)
    assert found.reached, str(found)
    assert found.worst < 1e-3
    assert np.linalg.norm(found.motion.root_positions - unseen.root_positions, axis=1).max() < 0.8
    assert found.latents.shape[1] == 0
