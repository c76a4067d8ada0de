"""Which way is up in a laboratory, and the turn to Y up."""

import numpy as np
import pytest

from poise.formats.laboratory import UP_AXES, infer_up, matrix_y_up_from


@pytest.mark.parametrize("up", UP_AXES)
def test_up_goes_to_y_by_a_rotation(up: str) -> None:
    axis = np.zeros(3)
    axis["XYZ".index(up[1])] = 1.0 if up[0] == "+" else -1.0
    matrix = matrix_y_up_from(up)
    np.testing.assert_array_equal(matrix @ axis, [0, 1, 0])
    np.testing.assert_array_equal(matrix @ matrix.T, np.eye(3))
    assert np.linalg.det(matrix) == pytest.approx(1)


@pytest.mark.parametrize("up", UP_AXES)
def test_a_head_above_the_feet_tells_up(up: str) -> None:
    body = np.array([[[0.3, 1.7, 0.1], [0.9, 0.1, 0.2]]])
    points = body @ matrix_y_up_from(up)
    assert infer_up(("LFHD", "RTOE"), points, default="+Z")[0] == up


@pytest.mark.parametrize("up", ["+X", "+Y", "+Z"])
def test_a_standing_body_without_names_tells_up(up: str) -> None:
    generator = np.random.default_rng(0)
    body = generator.uniform([4.7, 0.0, -2.2], [5.3, 1.7, -1.8], size=(20, 30, 3))
    points = body @ matrix_y_up_from(up)
    labels = tuple(f"M{number}" for number in range(30))
    assert infer_up(labels, points, default="+Z")[0] == up


def test_what_tells_nothing_gets_the_default() -> None:
    gaps = np.full((3, 2, 3), np.nan)
    found, reason = infer_up(("HEAD", "TOE"), gaps, default="+Z")
    assert found == "+Z"
    assert "usual" in reason
