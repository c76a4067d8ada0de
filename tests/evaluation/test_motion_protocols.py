"""The protocols of the motion models, on the performer."""

import numpy as np
import pytest

from poise import performer
from poise.errors import InvalidValueError, UnknownNameError
from poise.evaluation.animate import evaluate_animate
from poise.evaluation.report import Request
from poise.evaluation.splits import Fold
from poise.evaluation.topology import evaluate_topology
from poise.motion import Motion


@pytest.fixture(scope="module")
def clips() -> list[Motion]:
    return [
        performer.act("walk", speed=1.3, seconds=2.0, fps=30, seed=1),
        performer.act("run", speed=3.0, seconds=1.5, fps=30, seed=2),
    ]


def test_topology_measures_space_and_motion(clips: list[Motion]) -> None:
    (row,) = evaluate_topology(clips, methods=["hybrid"])
    assert 0.0 < float(row["deg_per_joint"]) < 6.0
    assert float(row["phase_deg"]) < 60.0
    assert 0.0 < float(row["transition_gap"]) < 2.0
    assert float(row["nearest_cm"]) < 10.0
    assert 0.0 <= float(row["completed"]) <= 1.0
    assert all(np.isfinite(value) for name, value in row.items() if name != "method")


def test_topology_needs_two_activities(clips: list[Motion]) -> None:
    with pytest.raises(InvalidValueError, match="two activities"):
        evaluate_topology(clips[:1])
    with pytest.raises(UnknownNameError, match="sphere"):
        evaluate_topology(clips, methods=["sphere"])


def test_animate_has_a_row_per_task_and_meets_contacts(clips: list[Motion]) -> None:
    unseen = performer.act("walk", speed=1.2, seconds=1.0, fps=60, seed=5)
    rows = evaluate_animate([Fold((clips[0],), (unseen,))], methods=["dynamics", "dls"])
    found = {row["method"]: row for row in rows}
    assert list(found) == ["dynamics", "dynamics, wider", "dynamics, longer", "dls"]
    assert float(found["dynamics"]["handle_max_mm"]) < 5.0
    assert float(found["dynamics"]["slide_cm"]) < 1.0
    assert float(found["dynamics"]["mpjpe_cm"]) < float(found["dls"]["mpjpe_cm"])


def test_the_performer_has_gaits_of_its_own() -> None:
    (fold,) = Request("topology").folds()
    assert len(fold.train) == 4
    assert len(fold.test) == 1
