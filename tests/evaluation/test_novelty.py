"""The protocol `novelty`: unknown actions against unseen frames of known ones."""

import numpy as np
import pytest

from poise.errors import InvalidValueError
from poise.evaluation.novelty import roc_area, unevenness
from poise.evaluation.report import EveryFrame, Request, evaluate


def test_the_roc_area_counts_pairs() -> None:
    known, unknown = np.array([3.0, 4.0, 5.0]), np.array([1.0, 4.0])
    assert roc_area(known, unknown) == pytest.approx((3 + 1.5) / 6)
    assert roc_area(known, known) == pytest.approx(0.5)


def test_even_percentiles_are_even() -> None:
    assert unevenness(np.linspace(0.5, 100.0, 200)) < 1.0
    assert unevenness(np.full(50, 100.0)) == pytest.approx(98.0)


@pytest.mark.slow
def test_other_actions_are_told_from_unseen_frames() -> None:
    request = Request("novelty", methods=("gaussian-10",), options=EveryFrame(stride=5))
    (row,) = evaluate(request).rows
    assert float(row["roc_area"]) > 0.9
    assert float(row["uneven_together_percent"]) < float(row["uneven_percent"]) < 50.0
    assert float(row["unknown_called_strange"]) > 0.5 > float(row["known_called_strange"])


def test_one_action_is_not_enough() -> None:
    with pytest.raises(InvalidValueError, match="several actions"):
        Request("novelty", split="walk", methods=("gaussian-10",))
