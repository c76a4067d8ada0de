"""Claims against held-out frames: what is learned of them, kept in files, and used by solutions."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

import poise
from poise.errors import PoiseError
from poise.performer import act
from poise.priors.evidence import OF_OTHERS, HeldOut, held_out_of
from poise.priors.gaussian import GaussianPrior
from poise.priors.model_file import save
from poise.priors.registry import Storable
from poise.solvers.calibration import FARTHER, HeldFrames, _parted, calibrate, tries


@pytest.fixture(scope="module")
def model() -> Storable:
    return poise.learn([act("walk", seed=seed, seconds=2.0, fps=30) for seed in range(6)], clusters=10)


def test_the_record_finds_what_claims_lack() -> None:
    """Errors twice as wide as claimed, and wider the newer the handles are."""
    rng = np.random.default_rng(2)
    squares = 15 * np.exp(rng.normal(size=400))
    claims = np.exp(rng.normal(-4.0, 0.5, size=(400, 8)))
    wider = 2.0 * ((squares / 15 + 3 / 15) / (1 + 3 / 15)) ** 0.3
    errors = wider[:, None] * claims * np.linalg.norm(rng.normal(size=(400, 8, 3)), axis=2)
    record = HeldOut.of(errors, claims, squares, np.full(400, 15.0))
    assert record.slope == pytest.approx(0.3, abs=0.05)
    assert record.factor == pytest.approx(2.0, rel=0.05)
    assert record.multiple(0.95) == pytest.approx(2.80, rel=0.05)  # of a Gaussian of three axes
    assert record.widening(60.0, 15.0) > record.widening(15.0, 15.0) > record.widening(1.0, 15.0)


def test_parts_of_few_clips_count_as_closer_than_new_clips() -> None:
    clips = [act("walk", seed=seed, seconds=2.0, fps=30) for seed in range(4)]
    learn = partial(GaussianPrior.learn, clusters=10)
    whole, parts = (calibrate(learn(clips), given, learn) for given in (clips, clips[:2]))
    plain = [row for own, held in _parted(clips[:2]) for row in tries(learn(own), held)]
    assert len(parts) == len(FARTHER) * len(plain)
    raised = np.mean([row.errors for row in parts], axis=0)
    assert raised == pytest.approx(np.mean(FARTHER) * np.mean([row.errors for row in plain], axis=0))
    untouched = next(row for own, held in _parted(clips) for row in tries(learn(own), held))
    assert np.array_equal(whole[0].errors, untouched.errors)


def test_a_learned_model_knows_its_record_on_other_bodies_and_in_files(
    model: Storable, tmp_path: Path
) -> None:
    record = held_out_of(model)
    assert record is not OF_OTHERS
    assert held_out_of(model.on_body(model.space.skeleton.scaled(1.1))) == record
    save(model, tmp_path / "m.poise")
    assert held_out_of(poise.load(tmp_path / "m.poise")) == record


def test_claims_hold_on_other_clips(model: Storable) -> None:
    within = []
    for seed in range(10, 16):
        frames = HeldFrames(model, act("walk", seed=seed, seconds=2.0, fps=30))
        for number in range(0, 60, 6):
            solution = frames.solve(number)
            claims = np.asarray(solution.deviation)[frames.moving] / solution.uncertainty.widening
            radii = np.asarray(solution.uncertainty.radii(0.95))[frames.moving]
            within.extend((frames.error(number, solution) <= radii)[claims > 0.002])
    assert 0.9 < np.mean(within) < 0.99


def test_percentiles_spread_over_unseen_frames(model: Storable) -> None:
    clip = act("walk", seed=9, seconds=2.0, fps=30)
    found = [model.percentile(q) for q in model.space.q_from_frames(clip.root_positions, clip.rotations)]
    assert np.quantile(found, 0.1) < 40.0 < np.quantile(found, 0.9)
    plain = GaussianPrior.learn(
        [act("walk", seed=seed, seconds=2.0, fps=30) for seed in range(4)], clusters=10
    )
    untested = [plain.percentile(q) for q in plain.space.q_from_frames(clip.root_positions, clip.rotations)]
    assert abs(np.mean(found) - 50.0) < abs(np.mean(untested) - 50.0)


def test_few_frames_leave_the_record_of_others() -> None:
    short = poise.learn(act("walk", seconds=0.5, fps=30), clusters=3)
    assert held_out_of(short) is OF_OTHERS


@pytest.mark.parametrize("wrong", [{"slope": 0.9}, {"typical": -1.0}, {"multiples": [1.0]}])
def test_a_damaged_record_is_refused(wrong: dict[str, object]) -> None:
    assert HeldOut.checked(OF_OTHERS._asdict()) == OF_OTHERS
    with pytest.raises(PoiseError, match="held_out"):
        HeldOut.checked({**OF_OTHERS._asdict(), **wrong})
    with pytest.raises(PoiseError, match="held_out"):
        HeldOut.checked([])


def test_a_record_with_factors_for_parts_of_the_body_as_older_files_have_is_read() -> None:
    assert HeldOut.checked({**OF_OTHERS._asdict(), "parts": {"hand": 1.3}}) == OF_OTHERS


def test_it_names_the_frames_that_it_was_learned_from(model: Storable, tmp_path: Path) -> None:
    clip = act("walk", seed=2, seconds=2.0, fps=30)
    joints = clip[20].positions
    solution = poise.solve(
        model, {name: tuple(joints[name]) for name in ("head", "left_hand", "right_hand", "left_foot")}
    )
    nearest = solution.nearest()
    assert nearest[0].clip == clip.name
    assert nearest[0].distance < 0.05
    save(model, tmp_path / "m.poise")
    again = poise.solve(poise.load(tmp_path / "m.poise"), {"head": (0.0, 1.6, 0.0)})
    assert len(again.nearest(2)) == 2


def test_a_pose_that_was_not_learned_is_called_strange(model: Storable) -> None:
    feet = {"left_foot": (0.1, 0.1, 0.0), "right_foot": (-0.1, 0.1, 0.0)}
    high = poise.solve(model, {"left_hand": (0.2, 2.1, 0.3), **feet})
    assert high.strangeness == "unlike what was learned, most in its left arm"
    frames = HeldFrames(model, act("walk", seed=1, seconds=2.0, fps=30))
    assert [frames.solve(number).strangeness for number in (10, 20, 30)] == ["", "", ""]
