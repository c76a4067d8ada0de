"""Whole sequences: no pops, no handle lost, frames that cannot be met told as such, every prior, blends over time."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from made_once import learned
from poise import performer
from poise.errors import InvalidValueError
from poise.motion import Motion
from poise.priors.gaussian import GaussianPrior
from poise.priors.style.prior import StylePrior
from poise.priors.terms import Unknowns
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.pose_space import PoseSpace
from poise.solvers.constraints import Pinned, Position, floor
from poise.solvers.problem import Problem
from poise.solvers.sequence import (
    Constraints,
    Frame,
    LocalGaussian,
    PosePriors,
    SequenceSolver,
    Smoothness,
    common_space,
    frame_by_frame,
    solve_motion,
)

FEET_AND_HAND = ("left_foot", "right_foot", "left_hand")
SOLES = ("left_foot", "right_foot", "left_toes", "right_toes")


@pytest.fixture(scope="module")
def style(walk: Motion) -> StylePrior:
    return learned(StylePrior, [walk], dimensions=3, active=40)


def _frames(clip: Motion, space: PoseSpace, names: Sequence[str] = FEET_AND_HAND) -> list[Frame]:
    handles, frames = space.handles(names), []
    for pose in space.q_from_frames(clip.root_positions, clip.rotations):
        points, _ = space.handle_positions(pose, handles)
        frames.append(Frame([Position(name, point) for name, point in zip(names, points, strict=True)]))
    return frames


def _roughness(space: PoseSpace, q: np.ndarray) -> float:
    return float(np.linalg.norm(np.diff(space.forward(q)[0], n=2, axis=0), axis=-1).mean())


@pytest.mark.parametrize(("rounds", "moves"), [(6, False), (0, True)])
def test_toes_that_end_in_the_floor_are_lifted_by_the_foot_not_by_the_body(
    walk: Motion, *, rounds: int, moves: bool
) -> None:
    """Between other frames a free root is not free; only frames that are solved on their own may move it."""
    prior, clip = UniversalPrior(walk.skeleton), walk[:5]
    space, feet = prior.space, ("left_foot", "right_foot")
    q, frames = space.q_from_frames(clip.root_positions, clip.rotations), _frames(clip, prior.space, feet)
    toes = float(clip[2].positions["right_toes"][1])
    frames[2] = Frame([*frames[2].constraints, *floor(("right_toes",), height=toes + 0.005)])
    problems = [Problem(space, frame.constraints) for frame in frames]
    told = PosePriors([prior], space, [problem.handles for problem in problems], [(1.0,)] * len(frames))
    told.update(Unknowns(q), 0)
    terms = [told, Smoothness(rounds=rounds).term(space.freedoms, clip.fps)] if rounds else [told]
    met, constraints = q.copy(), Constraints(problems)
    constraints.finish(met, SequenceSolver(space, terms).system(Unknowns(q)), prior, 0)
    assert space.forward(met[2])[0][clip.skeleton.index("right_toes"), 1] > toes + 0.004
    assert (np.linalg.norm(met[2, :3] - q[2, :3]) > 0.003) == moves


def test_handles_that_shake_do_not_shake_the_body(style: StylePrior, other_walk: Motion) -> None:
    """Frame by frame, eight millimetres of noise are followed; together they are not."""
    clip, rng = other_walk[10:40], np.random.default_rng(0)
    frames = [
        Frame(
            [
                replace(c, target=c.target + 0.008 * rng.normal(size=3), tolerance=0.02)
                for c in frame.constraints
            ]
        )
        for frame in _frames(clip, style.space)
    ]
    alone = frame_by_frame([style], frames, style.space, fps=clip.fps)
    together = solve_motion([style], frames, fps=clip.fps)
    assert _roughness(style.space, together.q) < 0.5 * _roughness(style.space, alone)


@pytest.fixture(scope="module")
def still_style(walk: Motion) -> StylePrior:
    """A style that has learned no velocities, and so does nothing for smoothness by itself."""
    return learned(StylePrior, [walk], dimensions=3, active=40, velocity=False)


@pytest.mark.parametrize(("kind", "share"), [("style", 1.0), ("still_style", 0.95), ("prior", 0.95)])
def test_it_takes_pops_away_and_keeps_the_handles(
    kind: str, share: float, other_walk: Motion, request: pytest.FixtureRequest
) -> None:
    """A style that follows learned velocities is smooth already where handles are: it must only not get rougher."""
    model: StylePrior | GaussianPrior = request.getfixturevalue(kind)
    clip = other_walk[10:40]
    frames = _frames(clip, model.space)
    alone = frame_by_frame([model], frames, model.space, fps=clip.fps)
    together = solve_motion([model], frames, fps=clip.fps)
    assert _roughness(model.space, together.q) <= share * _roughness(model.space, alone)
    assert together.unmet == ()
    assert max(max(together.residuals(frame).values()) for frame in range(len(frames))) < 2e-3


def test_a_frame_out_of_reach_is_told_and_the_others_are_met(style: StylePrior, other_walk: Motion) -> None:
    frames = _frames(other_walk[10:20], style.space)
    frames[5] = Frame([Position("left_hand", (9.0, 1.0, 0.0)), Position("left_foot", (0.0, 0.1, 0.0))])
    solved = solve_motion([style], frames, fps=30.0, smoothness=Smoothness(rounds=2))
    assert solved.unmet == (5,)
    assert np.all(np.isfinite(solved.q))


def test_floors_bind_only_from_below_and_pinned_joints_stay(style: StylePrior, other_walk: Motion) -> None:
    clip, space = other_walk[10:18], style.space
    pose = space.q_from_frames(clip.root_positions, clip.rotations)[0]
    extra = [*floor(["left_toes", "right_toes"], height=0.05), Pinned(["Neck"], pose)]
    frames = [Frame([*frame.constraints, *extra]) for frame in _frames(clip, space)]
    solved = solve_motion([style], frames, fps=clip.fps)
    toes = space.forward(solved.q)[0][:, [space.skeleton.index(n) for n in ("left_toes", "right_toes")], 1]
    assert toes.min() > 0.05 - 2e-3
    slot = int(np.flatnonzero(space.moving == space.skeleton.index("Neck"))[0])
    np.testing.assert_allclose(
        solved.q[:, 7 + 3 * slot : 10 + 3 * slot], pose[None, 7 + 3 * slot : 10 + 3 * slot].repeat(8, 0)
    )


def test_styles_blend_over_time_in_one_space(style: StylePrior, other_walk: Motion) -> None:
    sneaky = learned(
        StylePrior, [performer.act("walk", style="sneaky", seconds=2.0, fps=30)], dimensions=3, active=25
    )
    clip = other_walk[10:34]
    shares = np.linspace(-0.2, 1.2, len(clip)).clip(0.0, 1.0)
    frames = [
        Frame(frame.constraints, (1.0 - float(share), float(share)))
        for frame, share in zip(_frames(clip, style.space, SOLES), shares, strict=True)
    ]
    solved = solve_motion([style, sneaky], frames, fps=clip.fps)
    assert solved.space.size == common_space([style, sneaky]).space.size
    assert solved.unmet == ()
    assert _largest_step(solved.space, solved.q) < 2.0 * _largest_step(
        style.space, style.space.q_from_frames(clip.root_positions, clip.rotations)
    )


def _largest_step(space: PoseSpace, q: np.ndarray) -> float:
    return float(np.linalg.norm(np.diff(space.forward(q)[0], n=2, axis=0), axis=-1).max())


def test_the_local_gaussian_of_a_gaussian_prior_pulls_to_its_prediction(
    prior: GaussianPrior,
) -> None:
    handles = prior.space.handles(FEET_AND_HAND)
    local = LocalGaussian([prior], prior.space, handles)
    q = np.zeros(prior.space.size)
    q[3], q[7:] = 1.0, prior.mean + 0.05
    pull, precision = local(q, (1.0,))
    points, _ = prior.space.handle_positions(q, handles)
    mean, _ = prior.guide(handles)(points - q[:3])
    step = np.linalg.solve(precision[6:, 6:] - np.eye(len(mean)), pull[6:])
    np.testing.assert_allclose(q[7:] + step, mean, atol=1e-6)


def test_a_style_expects_its_own_lean(style: StylePrior) -> None:
    q = np.concatenate(
        [np.zeros(3), [np.cos(0.2), np.sin(0.2), 0.0, 0.0], style.pose_at(style.model.active_latents[3])]
    )
    pull, _ = LocalGaussian([style], style.space, style.space.handles(FEET_AND_HAND))(q, (1.0,))
    assert pull[3] < -1.0  # back upright


@pytest.mark.usefixtures("unchecked_shapes")
def test_bad_sequences_are_refused(style: StylePrior) -> None:
    with pytest.raises(InvalidValueError, match="at least one frame"):
        solve_motion([style], [], fps=30.0)
    with pytest.raises(InvalidValueError, match="must be positive"):
        Smoothness(turning=0.0)


def test_one_frame_and_two_frames_are_sequences_too(style: StylePrior, other_walk: Motion) -> None:
    for count in (1, 2):
        solved = solve_motion([style], _frames(other_walk[10 : 10 + count], style.space), fps=30.0)
        assert len(solved.q) == count
        assert solved.unmet == ()
