"""The performance and reduction protocols on the performer, in their quick form."""

from pathlib import Path

import pytest

from poise import performer
from poise.errors import InvalidValueError, UnknownNameError
from poise.evaluation.performance import evaluate_performance
from poise.evaluation.plots import draw_report
from poise.evaluation.published.subspaces import MOST_DIMENSIONS
from poise.evaluation.reduction import evaluate_reduction
from poise.evaluation.report import Report, Request
from poise.evaluation.splits import Fold
from poise.motion.edit import resample


@pytest.fixture(scope="module")
def fold() -> Fold:
    train = tuple(
        performer.act("walk", seconds=2.0, fps=60, seed=seed, speed=1.0 + 0.2 * seed) for seed in range(3)
    )
    return Fold(train, (performer.act("walk", seconds=1.0, fps=60, seed=9, speed=1.3),))


def test_local_models_beat_their_rivals(fold: Fold, tmp_path: Path) -> None:
    rows = evaluate_performance(
        [fold], methods=("nearest", "lwr", "chai2005", "local", "gaussian-10"), stride=6
    )
    degrees = {str(row["method"]): float(row["deg_per_joint"]) for row in rows}
    assert degrees["local"] < 0.75 * degrees["nearest"]
    assert degrees["local"] < 0.95 * degrees["lwr"]
    assert all(row["frames"] == 10 and row["failed"] == 0 for row in rows)
    assert float(rows[3]["handle_max_mm"]) < 1.5
    assert [row["method"] for row in rows if "b_median" in row] == ["chai2005"]
    assert 1 <= float(rows[2]["b_median"]) <= MOST_DIMENSIONS
    assert 0.0 <= float(rows[2]["b_below_8"]) <= 1.0
    files = draw_report(Request("performance"), Report("performance", "performer", rows), tmp_path)
    assert [path.name for path in files] == ["performance.png"]


def test_every_method_of_the_reduction_sees_the_same_frames(fold: Fold) -> None:
    """Frames that a recording has four times as often do not make local subspaces better than others."""
    clip = fold.test[0]
    often = resample(clip, 4 * clip.fps)
    for method in ("pca", "local"):
        rows = [evaluate_reduction([Fold((), (one,))], methods=(method,))[0] for one in (clip, often)]
        assert float(rows[1]["deg_at_2"]) == pytest.approx(float(rows[0]["deg_at_2"]), rel=0.1)


def test_local_subspaces_need_the_fewest_dimensions(fold: Fold, tmp_path: Path) -> None:
    rows = {
        str(row["method"]): row for row in evaluate_reduction([fold], methods=("pca", "mixture", "local"))
    }
    assert int(rows["local"]["dimensions_for_1_deg"]) <= int(rows["pca"]["dimensions_for_1_deg"])
    assert float(rows["local"]["deg_at_2"]) < float(rows["pca"]["deg_at_2"])
    report = Report("reduction", "performer", list(rows.values()))
    assert [path.name for path in draw_report(Request("reduction"), report, tmp_path)] == ["reduction.png"]


def test_unknown_methods_and_strides_are_refused(fold: Fold) -> None:
    with pytest.raises(UnknownNameError, match="did you mean nearest"):
        evaluate_performance([fold], methods=("nerest",))
    with pytest.raises(InvalidValueError, match="no learned prior"):
        evaluate_performance([fold], methods=("dls",))
    with pytest.raises(InvalidValueError, match="stride"):
        evaluate_performance([fold], stride=0)
    with pytest.raises(UnknownNameError, match="did you mean pca"):
        evaluate_reduction([fold], methods=("pcaa",))
