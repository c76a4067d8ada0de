"""The motion prior: learning, prediction, simulation, files, and the solver's contract."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from made_once import learned
from poise import performer
from poise.apps import simulating
from poise.errors import InvalidValueError, UnknownNameError
from poise.evaluation.topology import transition_gap
from poise.gp.process import descend
from poise.motion import Motion
from poise.priors.dynamics.flow import NO_SURFACE, mixed
from poise.priors.dynamics.layout import Layout
from poise.priors.dynamics.learning import BALANCE, MotionLoss, learn_motion
from poise.priors.dynamics.prior import DynamicsPrior
from poise.priors.dynamics.sequences import Sequences, sequences_of
from poise.priors.dynamics.simulation import Switching, plan, resampled, simulate, start_points
from poise.priors.dynamics.structure import ADDED, MODELS, Structure
from poise.priors.model_file import load, save
from poise.priors.prior import Prior
from poise.solvers.constraints import Position
from poise.solvers.solve import solve


@pytest.fixture(scope="module")
def prior(motions: list[Motion]) -> DynamicsPrior:
    return learned(DynamicsPrior, motions, steps=120)


def test_it_is_a_prior_that_knows_its_training_poses(prior: DynamicsPrior, sequences: Sequences) -> None:
    assert isinstance(prior, Prior)
    found = prior.predict_all(prior.model.latents)
    maps = prior.mean.size
    assert np.degrees(np.sqrt(np.mean((found - sequences.y)[:, :maps] ** 2))) < 3.0


def test_learning_is_deterministic_and_lowers_the_loss(sequences: Sequences) -> None:
    first, second = (learn_motion(sequences, MODELS["hybrid"], steps=15) for _ in range(2))
    np.testing.assert_array_equal(first.latents, second.latents)
    assert first.curve[-1] < first.curve[0]


def test_learning_tries_several_orders_of_styles_and_keeps_the_likeliest(motions: list[Motion]) -> None:
    clips = [performer.act("walk", speed=v, seconds=1.4, fps=30.0, seed=3) for v in (0.8, 1.7)]
    sequences = sequences_of([*clips, motions[1]])
    loss = MotionLoss(Layout(MODELS["transitions"], sequences), None, balance=BALANCE)
    starts = loss.starts()
    assert len(starts) == 3
    axes = [loss.layout.latents(loss.apart(start).parameters)[:, 2] for start in starts]
    apart = [np.diff([own[sequences.sequence_of == number].mean() for number in (0, 1)])[0] for own in axes]
    assert (apart[1] - apart[0]) * (apart[2] - apart[0]) < 0.0
    learned = learn_motion(sequences, MODELS["transitions"], steps=20)
    alone = [descend(loss, start, bounds=loss.bounds(), steps=20)[1][-1] for start in starts]
    assert learned.curve[-1] == pytest.approx(min(alone))
    assert max(alone) > min(alone)
    assert len(MotionLoss(Layout(MODELS["topology"], sequences)).starts()) == 1


def test_landings_lie_closer_with_transitions(sequences: Sequences) -> None:
    without, added, multiplied = (
        transition_gap(DynamicsPrior.of_learned(learn_motion(sequences, structure, steps=80)))
        for structure in (
            MODELS["topology"],
            MODELS["topology"].with_transitions(ADDED),
            MODELS["transitions"],
        )
    )
    assert multiplied < 0.8 * without
    assert multiplied < added


def test_inducing_frames_predict_nearly_as_all_do(sequences: Sequences) -> None:
    sparse = DynamicsPrior.of_learned(learn_motion(sequences, MODELS["gpdm"], steps=60, inducing=50))
    assert len(sparse.model.active) == 50
    maps = sparse.mean.size
    error = (sparse.predict_all(sparse.model.latents) - sequences.y)[:, :maps]
    assert np.degrees(np.sqrt(np.mean(error**2))) < 4.0


def test_walking_leads_over_into_running(prior: DynamicsPrior) -> None:
    x, before = start_points(prior, [prior.start_in("walk") + 5])
    wishes = plan(prior, ["walk", "run"], frames=120)
    np.testing.assert_allclose(wishes.sum(axis=1), 1.0)
    path = simulate(prior, x, before=before, frames=120, wishes=wishes).latents[0]
    nearest = np.linalg.norm(path[:, None] - prior.model.latents, axis=2).argmin(axis=1)
    doing = prior.frames.activity_of[nearest]
    assert np.mean(doing[:30] == 0) > 0.9
    assert np.mean(doing[-30:] == 1) > 0.9
    motion = prior.motion_of(resampled(path, 60.0), fps=60.0)
    assert len(motion) == 239
    speed = np.linalg.norm(np.diff(motion.root_positions[:, [0, 2]], axis=0), axis=1) * 60.0
    assert speed[-60:].mean() > 1.5 * speed[:60].mean()


def test_a_phase_always_goes_on(prior: DynamicsPrior, rng: np.random.Generator) -> None:
    (ring,) = prior.surface.rings
    anywhere = np.column_stack([ring.at(rng.uniform(0.0, 6.0, 20)), rng.uniform(-9.0, 9.0, 20)])
    paths = simulate(prior, anywhere, frames=20).latents
    for path in paths:
        steps = np.diff(np.unwrap(ring.phase_of(path[:, ring.dimensions])))
        assert steps.min() > 0.0


def test_activities_lead_over_where_both_are_known(prior: DynamicsPrior) -> None:
    x, before = start_points(prior, np.arange(40))
    half = np.array([0.5, 0.5])
    _, _, shares = mixed(prior.flows, x, before, wishes=half)
    _, _, alone = mixed(prior.flows, x, before)
    np.testing.assert_array_equal(shares.argmax(axis=1), alone.argmax(axis=1))
    assert np.all(shares.max(axis=1) < alone.max(axis=1))
    _, _, wanted = mixed(prior.flows, x, before, wishes=np.array([0.0, 1.0]))
    np.testing.assert_allclose(wanted, np.tile([0.0, 1.0], (40, 1)))


@pytest.mark.parametrize("there", [["walk", "run"], ["run", "walk"]])
def test_an_activity_leads_over_into_another_in_several_frames(
    prior: DynamicsPrior, there: list[str]
) -> None:
    first, second = (prior.flows[prior.frames.activity_names.index(name)].home[2] for name in there)
    x, before = start_points(prior, prior.start_in(there[0]) + np.arange(5, 25, 5))
    wishes = plan(prior, there, frames=120)
    axis = simulate(prior, x, before=before, frames=120, wishes=wishes).latents[:, :, 2]
    gone = (axis - first) / (second - first)
    assert np.abs(gone[:, -30:].mean(axis=1) - 1.0).max() < 0.3
    assert np.diff(gone, axis=1).max() < 0.35


def test_samples_differ_and_come_again_with_the_seed(prior: DynamicsPrior) -> None:
    x, before = start_points(prior, [3])

    def sampled(seed: int) -> np.ndarray:
        return simulate(prior, x, before=before, frames=20, rng=np.random.default_rng(seed)).latents

    np.testing.assert_array_equal(sampled(1), sampled(1))
    assert np.all(np.abs(sampled(1) - sampled(2)).max(axis=(0, 1)) > 1e-4)


def test_a_sample_stays_in_an_activity_and_changes_both_ways(prior: DynamicsPrior) -> None:
    starts = np.concatenate([prior.start_in(name) + np.arange(5, 30, 5) for name in ("walk", "run")])
    x, before = start_points(prior, starts)
    run = simulate(prior, x, before=before, frames=300, rng=np.random.default_rng(0))
    doing = run.shares.argmax(axis=2)
    assert [set(np.unique(doing[:5])), set(np.unique(doing[5:]))] == [{0, 1}, {0, 1}]
    changes = np.diff(doing, axis=1) != 0
    assert 1.0 < changes.sum(axis=1).mean() < 10.0  # in ten seconds
    assert np.diff(run.shares, axis=1).max() < 0.5  # and none of them at once
    recorded = max(np.linalg.norm(np.diff(path, axis=0), axis=1).max() for path in prior.paths)
    assert np.linalg.norm(np.diff(run.latents, axis=1), axis=2).max() < 2.0 * recorded


def test_a_sample_changes_its_activity_as_often_as_asked(prior: DynamicsPrior) -> None:
    x, before = start_points(prior, prior.start_in("walk") + np.arange(5, 30))

    def changes(stay: float | None) -> float:
        rng = np.random.default_rng(0)
        doing = simulate(prior, x, before=before, frames=240, rng=rng, stay=stay).shares.argmax(axis=2)
        return float(np.mean(np.diff(doing, axis=1) != 0))

    assert changes(60.0) < 0.5 * changes(None) < changes(0.2)
    with pytest.raises(InvalidValueError, match="`stay` must be"):
        simulating.simulate(prior, seed=1, stay=0.0)


def test_activities_are_left_where_another_is_known(prior: DynamicsPrior) -> None:
    for flow in prior.flows:
        own = flow.inputs[:, : len(flow.home)]
        np.testing.assert_allclose(flow.familiarity(own, own), 1.0, atol=0.2)
        assert flow.familiarity(own + 5.0, own + 5.0).max() < 0.05
    x = np.repeat(prior.latents[[10]], 1000, axis=0)
    near = x + 0.5 * (prior.flows[1].home - x) * [0.0, 0.0, 1.0]  # halfway to the run
    left = []
    for points in (x, near):
        switching = Switching(prior, x, x, stay=None, rng=np.random.default_rng(0))
        assert np.all(switching.now == 0)
        assert np.all(
            switching.wishes(points, points)[:, 1] == 0.0
        )  # the share of the new one rises from zero
        left.append(switching.now.sum())
    assert 5 * left[0] < left[1]


def test_a_faster_pace_goes_round_faster(prior: DynamicsPrior) -> None:
    x, before = start_points(prior, [3, 3])
    paths = simulate(prior, x, before=before, frames=12, pace=np.array([0.5, 1.0])).latents
    gone = np.linalg.norm(np.diff(paths, axis=1), axis=2).sum(axis=1)
    assert 0.3 < gone[0] / gone[1] < 0.75


def test_a_faster_pace_goes_as_much_farther(prior: DynamicsPrior) -> None:
    gone = []
    for pace, seconds in ((1.0, 1.5), (1.5, 1.0)):
        roots = simulating.simulate(
            prior, activities=["walk"], frame=3, seconds=seconds, pace=pace
        ).motion.root_positions
        gone.append(float(np.linalg.norm(roots[-1] - roots[0])))
    assert gone[1] == pytest.approx(gone[0], rel=0.1)


def test_it_comes_back_from_its_file(prior: DynamicsPrior, tmp_path: Path) -> None:
    save(prior, tmp_path / "walk.poise")
    again = load(tmp_path / "walk.poise")
    assert isinstance(again, DynamicsPrior)
    x = prior.model.latents[::7]
    np.testing.assert_allclose(again.predict_all(x), prior.predict_all(x), atol=1e-12)
    one, two = (simulate(each, x[:2], frames=10).latents for each in (prior, again))
    np.testing.assert_allclose(one, two, atol=1e-12)
    assert again.structure == prior.structure
    assert again.clips == prior.clips


@pytest.mark.slow
def test_the_shared_solver_takes_it_per_frame(prior: DynamicsPrior) -> None:
    target = (0.25, 0.1, 0.3)
    solution = solve(prior, [Position("left_foot", target), Position("pelvis", (0.2, 0.9, 0.1))])
    assert solution.reached
    assert solution.percentile is not None


def test_mistakes_are_named(prior: DynamicsPrior, motions: list[Motion], sequences: Sequences) -> None:
    with pytest.raises(UnknownNameError, match="swim"):
        prior.start_in("swim")
    with pytest.raises(UnknownNameError, match="swim"):
        plan(prior, ["walk", "swim"], frames=10)
    with pytest.raises(InvalidValueError, match="at least one frame"):
        simulate(prior, prior.model.latents[:1], frames=0)
    with pytest.raises(InvalidValueError, match="at least two inducing"):
        learn_motion(sequences, MODELS["gpdm"], inducing=1)
    still = motions[0].with_frames(motions[0].root_positions[:60], motions[0].rotations[:60] * 1.0)
    frozen = still.with_frames(still.root_positions * 0 + [0, 0.9, 0], still.rotations[:1].repeat(60, axis=0))
    with pytest.raises(InvalidValueError, match=r"no (transition points|rhythm)"):
        DynamicsPrior.learn([motions[0][:20], frozen], topology="transitions", transitions=[])


@pytest.mark.parametrize("name", ["gpdm", "topology"])
def test_steps_beside_the_recorded_ones_lead_back_in_any_model(
    sequences: Sequences, tmp_path: Path, name: str
) -> None:
    off = []
    for beside in (False, True):
        structure = replace(MODELS[name], beside=beside)
        prior = DynamicsPrior.of_learned(learn_motion(sequences, structure, steps=30))
        save(prior, tmp_path / "model.poise")
        again = load(tmp_path / "model.poise")
        assert isinstance(again, DynamicsPrior)
        own, aside = prior.flows[0].inputs, np.array([0.0, 0.0, 0.6])
        (recorded, _), (stepped, _) = (prior.flows[0].predict(x, x) for x in (own, own + aside))
        np.testing.assert_allclose(again.flows[0].predict(own + aside, own)[0], stepped, atol=1e-9)
        off.append(np.abs((stepped - recorded)[:, 2] - 0.5 * aside[2]).mean())
    assert off[1] < off[0]


def test_an_activity_does_not_lead_away_from_itself_where_it_knows_nothing(sequences: Sequences) -> None:
    prior = DynamicsPrior.of_learned(learn_motion(sequences, MODELS["hybrid"], steps=120))
    led_away = 0
    for flow in prior.flows:
        own, home = flow.inputs, flow.home[2]
        np.testing.assert_allclose(flow.lead(own, own)[0], flow.predict(own, own)[0], atol=0.02)
        for shift in (-2.0, -1.5, -1.0, 1.0, 1.5, 2.0):
            x = own + np.array([0.0, 0.0, shift])
            far = np.abs(x[:, 2] - home)
            led_away += np.sum(np.abs(flow.predict(x, x)[0][:, 2] - home) > far + 0.02)
            assert np.all(np.abs(flow.lead(x, x)[0][:, 2] - home) < far + 0.02)
    assert led_away == 0  # nor does the process alone, which knows steps beside the recorded ones


def test_the_dynamics_alone_stays_on_its_limit_cycle(prior: DynamicsPrior) -> None:
    (ring,) = prior.surface.rings
    x, before = start_points(prior, [4, 9])
    x = x + np.array([0.3, -0.2, 0.0])
    path = simulate(prior, x, before=before, frames=90, inference="plain").latents[:, 30:]
    for own in path:
        phases = np.unwrap(ring.phase_of(own[:, ring.dimensions]))
        off = np.linalg.norm(own[:, ring.dimensions] - ring.at(phases), axis=1)
        assert np.all(np.diff(phases) > 0.0)
        assert off.max() < 0.3 * np.linalg.norm(ring.series[1:5, 0])


def test_the_slopes_of_a_limit_cycle(prior: DynamicsPrior, rng: np.random.Generator) -> None:
    x = prior.latents[::20] + 0.1 * rng.normal(size=prior.latents[::20].shape)
    for flow in prior.flows:
        slopes, _ = flow.slopes(x, x)
        for part in range(x.shape[1]):
            step = 1e-5 * np.eye(x.shape[1])[part]
            numeric = (flow.predict(x + step, x)[0] - flow.predict(x - step, x)[0]) / 2e-5
            np.testing.assert_allclose(slopes[:, :, part], numeric, atol=1e-3)


def test_a_flow_of_an_older_file_predicts_the_same_steps(prior: DynamicsPrior) -> None:
    for flow in prior.flows:
        old = flow.about(NO_SURFACE)
        np.testing.assert_allclose(old.expected(old.inputs), old.inputs @ old.turn.T + old.home)
        np.testing.assert_allclose(old.about(prior.surface).outputs, flow.outputs, atol=1e-9)


def test_plain_inference_is_the_mixed_dynamics_alone(prior: DynamicsPrior) -> None:
    x, before = start_points(prior, [4, 9])
    paths = simulate(prior, x, before=before, frames=4, inference="plain").latents
    for frame in range(3):
        expected, _, _ = mixed(prior.flows, paths[:, frame], before)
        np.testing.assert_allclose(paths[:, frame + 1], expected, atol=1e-12)
        before = paths[:, frame]
    guided = simulate(prior, x, frames=4).latents
    assert not np.allclose(paths[:, 1:], guided[:, 1:])


def test_a_sample_of_the_mixture_draws_one_activity(prior: DynamicsPrior) -> None:
    x, before = start_points(prior, np.arange(0, len(prior.model.latents), 5))
    half = np.full(len(prior.flows), 0.5)
    _, _, shares = mixed(prior.flows, x, before, wishes=half, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(np.sort(shares, axis=1)[:, -1], 1.0)
    assert len(np.unique(shares.argmax(axis=1))) == len(prior.flows)


def test_as_published_transitions_are_added_and_dynamics_have_no_mean(sequences: Sequences) -> None:
    structure = MODELS["transitions"].as_published()
    assert {each.transitions for each in structure.dimensions if not each.part} == {"added"}
    assert Structure.restored(structure.header()) == structure
    loss = MotionLoss(Layout(structure, sequences))
    assert all(not np.any(steps.turn) and not np.any(steps.homing) for steps in loss.steps)
