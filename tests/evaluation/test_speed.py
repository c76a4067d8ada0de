"""The speed protocol: the same body for everyone, and nobody is fast by not solving."""

import numpy as np
import pytest

from poise.errors import UnknownNameError
from poise.evaluation import speed
from poise.evaluation.handles import HANDLES
from poise.evaluation.peers import installed, mjcf, rest_root, urdf


def test_everyone_has_66_freedoms() -> None:
    assert speed.body().freedoms == 66
    assert speed.prior(10).space.freedoms == 66
    assert urdf(speed.body()).count('type="revolute"') == 60
    assert mjcf(speed.body()).count('type="ball"') == 20


@pytest.mark.parametrize("name", installed())
def test_peers_stand_in_the_same_rest_pose(name: str) -> None:
    space = speed.body()
    rest = np.zeros(space.size)
    rest[:3], rest[3] = rest_root(space), 1.0
    expected, _ = space.handle_positions(rest, space.handles(HANDLES))
    solver = speed.contender(name)
    solver.reset()
    np.testing.assert_allclose(solver.points(), expected, atol=1e-9)


def test_rows_say_time_and_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "SECONDS", 2.0)
    names = ["dls", "gaussian-10", *(name for name in installed() if name == "pinocchio")]
    rows = {str(row["method"]): row for row in speed.evaluate_speed(methods=names)}
    assert list(rows) == names
    for row in rows.values():
        assert row["reached_cold"] == row["reached_tracked"] == 1.0
        assert 0 < float(row["ms_tracked"]) < 100
        assert 0 < float(row["ms_cold"]) < 100
        if "pinocchio" in rows:
            ratio = float(row["ms_cold"]) / float(rows["pinocchio"]["ms_cold"])
            assert row["cold_over_pinocchio"] == pytest.approx(ratio)


def test_unknown_solvers_are_named() -> None:
    with pytest.raises(UnknownNameError, match="pinocchio"):
        speed.contender("pinochio")


def test_more_handles_than_joints_are_still_different_points() -> None:
    handles = speed._spread_handles(41)
    assert len(set(handles)) == 41
    skeleton = speed.body().skeleton
    assert [handle.joint for handle in handles[:5]] == [
        skeleton.names[skeleton.index(role)] for role in HANDLES
    ]


def test_a_style_is_measured_on_the_same_body() -> None:
    assert speed.style(25).space.freedoms == 66
    assert len(speed.style(25).model.active) == 25
    assert speed.style(25).model.dimensions == 3
    solver = speed.Ours(speed.style(25), HANDLES)
    target = speed.targets_of(speed.walk(seed=11), speed.body().handles(HANDLES))[40]
    solver.solve(target)
    assert np.linalg.norm(solver.points() - target, axis=1).max() <= speed.TOLERANCE
