"""The protocols of the motion models, on the performer."""

from functools import partial

import numpy as np
import pytest

from poise import performer
from poise.errors import InvalidValueError, UnknownNameError
from poise.evaluation import topology
from poise.evaluation.animate import evaluate_animate, learned_animator, measure, slow_accelerations
from poise.evaluation.report import Request
from poise.evaluation.splits import Fold, read_motion
from poise.evaluation.topology import RECORDED, Recorded, evaluate_topology, jitter_off, shakes_of, slide_of
from poise.motion import Motion
from poise.motion.edit import resample, retarget
from poise.motion.world import accelerations
from poise.priors.dynamics.sequences import sequences_of
from poise.priors.dynamics.structure import Structure
from real_data import recordings


@pytest.fixture(scope="module")
def clips() -> list[Motion]:
    return [
        *(performer.act("walk", speed=v, seconds=2.0, fps=30, seed=1) for v in (1.2, 1.4)),
        *(performer.act("run", speed=v, seconds=1.5, fps=30, seed=2) for v in (2.8, 3.2)),
    ]


@pytest.mark.slow
def test_topology_measures_space_and_motion(clips: list[Motion]) -> None:
    floor, row = evaluate_topology([clips], methods=["transitions"])
    assert floor["method"] == RECORDED
    assert 0.0 < float(floor["slide_cm_s"]) < float(row["slide_cm_s"])
    assert 0.0 < float(row["deg_per_joint"]) < 6.0
    assert float(row["phase_deg"]) < 60.0
    assert 0.0 < float(row["transition_gap"]) < 2.0
    assert float(row["nearest_cm"]) < 10.0
    assert 0.0 <= float(row["completed_strict"]) <= float(row["completed"]) <= 1.0
    assert all(np.isfinite(value) for name, value in row.items() if name != "method")


def test_topology_shows_every_model_under_both_kinds_of_inference(
    clips: list[Motion], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(topology, "learned_model", lambda structure, _sequences: structure)
    monkeypatch.setattr(
        topology,
        "measured",
        lambda prior, _recorded, inference: {"plain": inference == "plain", "published": prior.published},
    )
    methods = ["gpdm", "urtasun2008-transitions"]
    rows = evaluate_topology([clips], methods=methods, inference=("plain", "guided"))
    assert [(row["method"], row.get("plain"), row.get("published")) for row in rows[1:]] == [
        ("gpdm, plain", 1.0, 0.0),
        ("gpdm, guided", 0.0, 0.0),
        ("urtasun2008-transitions, plain", 1.0, 1.0),
        ("urtasun2008-transitions, guided", 0.0, 1.0),
    ]
    with pytest.raises(InvalidValueError, match="no inference 'guessed'"):
        topology.TopologyOptions("plain,guessed")


def test_topology_tells_how_much_draws_differ(clips: list[Motion], monkeypatch: pytest.MonkeyPatch) -> None:
    errors = iter([1.0, 3.0])
    monkeypatch.setattr(topology, "learned_model", lambda _name, _sequences: None)
    monkeypatch.setattr(
        topology, "measured", lambda _prior, _recorded, **_options: {"nearest_cm": next(errors)}
    )
    rows = evaluate_topology([clips, clips], methods=["gpdm"])
    found = {row["method"]: row.get("nearest_cm") for row in rows}
    assert found["gpdm"] == 2.0
    assert found["gpdm, spread"] == pytest.approx(np.sqrt(2.0))


def test_clips_of_several_bodies_have_an_axis_more(
    clips: list[Motion], monkeypatch: pytest.MonkeyPatch
) -> None:
    structures: list[Structure] = []
    monkeypatch.setattr(topology, "learned_model", lambda structure, _sequences: structures.append(structure))
    monkeypatch.setattr(topology, "measured", lambda _prior, _recorded, **_options: {})
    taller = [retarget(clip, clip.skeleton.scaled(1.1)) for clip in clips[:1]]
    evaluate_topology([clips, [*taller, *clips[1:]]], methods=["hybrid"])
    assert [len(structure.dimensions) for structure in structures] == [3, 4]
    assert structures[1].dimensions[-1] == structures[1].dimensions[-2]


def test_topology_needs_two_of_two_activities(clips: list[Motion]) -> None:
    with pytest.raises(InvalidValueError, match="two activities"):
        evaluate_topology([clips[:2]])
    with pytest.raises(InvalidValueError, match="there is one run"):
        evaluate_topology([clips[:3]])
    with pytest.raises(UnknownNameError, match="sphere"):
        evaluate_topology([clips], methods=["sphere"])


def test_a_foot_that_is_to_stand_slides_however_fast_it_is(clips: list[Motion]) -> None:
    recorded = Recorded(sequences_of(clips))
    walk = recorded.motions[0]
    _, nearest = recorded.nearest(walk)
    np.testing.assert_array_equal(nearest, np.arange(len(walk)))
    pushed = walk.root_positions + np.arange(len(walk))[:, None] * [0.0, 0.0, 0.2]
    skating = walk.with_frames(pushed, walk.rotations)
    distances, nearest = recorded.nearest(skating)
    assert distances.max() < 1e-9
    assert slide_of(skating, recorded.standing[nearest]).mean() > 10.0 * recorded.slide


def test_recordings_shake_as_they_do_and_twice_as_fast_ones_four_times_as_much(clips: list[Motion]) -> None:
    recorded = Recorded(sequences_of(clips))
    for motion in recorded.motions:
        usual = recorded.shakes[recorded.nearest(motion)[1]]
        assert jitter_off(shakes_of(motion), usual) == pytest.approx(1.0)
        faster = Motion(motion.skeleton, 2.0 * motion.fps, motion.root_positions, motion.rotations)
        slower = Motion(motion.skeleton, 0.5 * motion.fps, motion.root_positions, motion.rotations)
        assert jitter_off(shakes_of(faster), usual) == pytest.approx(4.0)
        assert jitter_off(shakes_of(slower), usual) == pytest.approx(4.0)


def test_recordings_differ_by_as_much_as_their_features_do(clips: list[Motion]) -> None:
    alike, unlike = (Recorded(sequences_of([*pair, *clips[2:]])) for pair in ([clips[0]] * 2, clips[:2]))
    assert alike.difference < unlike.difference
    assert 0.05 < unlike.difference < 1.5


def test_slow_accelerations_leave_out_the_noise_of_markers() -> None:
    walk = performer.act("walk", seconds=2.0, fps=60, seed=1)
    roots = walk.root_positions + np.random.default_rng(0).normal(0.0, 0.001, walk.root_positions.shape)
    noisy = Motion(walk.skeleton, walk.fps, roots, walk.rotations)
    sizes = [[np.linalg.norm(of(each), axis=2).mean() for each in (walk, noisy)] for of in _ACCELERATIONS]
    (quiet, shaken), (slow, slow_shaken) = sizes
    assert shaken > 1.5 * quiet
    assert slow_shaken < 1.1 * slow
    assert 0.8 * quiet < slow < quiet


_ACCELERATIONS = (accelerations, partial(slow_accelerations, hertz=10.0))


@pytest.mark.slow
def test_animate_has_a_row_per_task_and_meets_contacts(clips: list[Motion]) -> None:
    unseen = performer.act("walk", speed=1.2, seconds=1.0, fps=60, seed=5)
    rows = evaluate_animate([Fold((clips[0],), (unseen,))], methods=["dynamics", "dls"])
    found = {row["method"]: row for row in rows}
    assert list(found) == ["dynamics", "dynamics, wider", "dynamics, longer", "dls"]
    assert float(found["dynamics"]["handle_max_mm"]) < 5.0
    assert float(found["dynamics"]["slide_cm"]) < 1.0
    assert float(found["dynamics"]["mpjpe_cm"]) < float(found["dls"]["mpjpe_cm"])


@pytest.mark.slow
def test_an_animated_walk_is_as_lively_as_the_recorded_one() -> None:
    unseen, *learned = (read_motion(path) for path in recordings("cmu", "35_0[1-5].bvh"))
    space, answer = learned_animator("dynamics", learned)
    ((_, found),) = measure(space, answer, resample(unseen, 60.0), changes=False)
    assert 0.7 < found["jitter_10hz"] < 1.2
    assert found["jitter"] < 0.5  # of all that was recorded, noise is most
    assert found["handle_max_mm"] < 1.0
    assert found["mpjpe_cm"] < 2.5


def test_the_performer_has_gaits_of_its_own() -> None:
    (fold,) = Request("topology").folds()
    assert len(fold.train) == 4
    assert len(fold.test) == 1
