"""The protocol `uncertainty`: claims against errors, and what a suggested handle is worth."""

from dataclasses import replace

import numpy as np
import pytest

from poise.errors import UnknownNameError
from poise.evaluation.report import Request, evaluate
from poise.evaluation.uncertainty import Claims, UncertaintyOptions, attainable, metrics
from poise.performer import act
from poise.priors.gaussian import GaussianPrior
from poise.solvers.solve import solve


def test_claims_are_held_against_errors_on_unseen_clips() -> None:
    options = UncertaintyOptions(stride=40, suggest=3)
    (row,) = evaluate(Request("uncertainty", methods=("gaussian-10",), options=options)).rows
    assert 0.0 <= float(row["held_50"]) < float(row["held_95"]) <= 1.0
    assert float(row["next_of_best"]) <= 1.0
    assert 0.3 < float(row["next_attainable"]) < 1.0


def test_other_handles_may_be_given_and_the_rest_of_the_five_are_candidates_then() -> None:
    """With one hand and one foot given, far more is open than with five handles."""
    five, two = (
        UncertaintyOptions(frames=8, suggest=2, handles=names) for names in ("", "left_hand,right_foot")
    )
    rows = [
        evaluate(Request("uncertainty", methods=("gaussian-10",), options=options)).rows[0]
        for options in (five, two)
    ]
    assert float(rows[1]["error_cm"]) > 2 * float(rows[0]["error_cm"])
    with pytest.raises(UnknownNameError, match="left_hind"):
        evaluate(Request("uncertainty", methods=("gaussian-10",), options=replace(two, handles="left_hind")))


def test_what_a_choice_attains_is_known_where_one_joint_is_open() -> None:
    """One open joint leaves no doubt; with many, the best one afterwards is better than any choice."""
    prior = GaussianPrior.learn([act("throw", fps=15)], clusters=5)
    uncertainty = solve(prior, {"right_hand": (-0.3, 1.2, 0.4)}).uncertainty
    candidates = ("left_hand", "left_foot", "right_foot", "head")
    chosen, afterwards = attainable(uncertainty, candidates, np.random.default_rng(0))
    assert 0.0 < chosen < afterwards
    alone = attainable(uncertainty, candidates[:1], np.random.default_rng(0))
    assert alone[0] == pytest.approx(alone[1])


def test_a_right_claim_beats_a_constant_one() -> None:
    rng = np.random.default_rng(1)
    deviations = np.exp(rng.normal(-4.0, 0.7, size=(500, 6)))
    errors = deviations * np.linalg.norm(rng.normal(size=(500, 6, 3)), axis=2)
    held = {share: errors < factor * deviations for share, factor in ((0.5, 1.54), (0.95, 2.80))}
    found = metrics(
        [Claims(("legs",) * 6, errors, deviations, deviations > 0.002, held, np.array([[2.0, 1.0, 3.0]]))]
    )
    assert found["nats_gained"] > 0.2
    assert found["held_95"] == pytest.approx(0.95, abs=0.02)
    assert found["next_over_random"] == pytest.approx(1.0)
    assert found["next_of_best"] == pytest.approx(2 / 3)


def test_so_many_frames_of_each_fold_are_tested_and_a_constant_goes_by_held_out_frames() -> None:
    options = UncertaintyOptions(frames=9, suggest=0)
    (row,) = evaluate(Request("uncertainty", methods=("gaussian-10",), options=options)).rows
    assert 4 <= float(row["frames"]) <= 9 + 4
    assert all(
        0.0 <= float(row[f"{group}_{share}"]) <= 1.0 for group in ("legs", "arms") for share in (50, 95)
    )


def test_a_constant_of_held_out_frames_is_judged_on_the_test_frames() -> None:
    errors = np.full((4, 2), 0.02)
    claims = Claims(("legs",) * 2, errors, errors / 2, errors > 0.0, {0.95: errors > 0.0}, np.empty(0))
    own, small = metrics([claims]), metrics([replace(claims, constant=np.full(2, 0.004))])
    assert small["nats_constant"] > own["nats_constant"] + 5.0
    assert small["nats"] == own["nats"]
