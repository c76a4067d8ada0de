"""Performances by inertial sensors: signals, poses, missing sensors, streams, the command, the protocol."""

import json
from pathlib import Path

import numpy as np
import pytest

from poise import performer
from poise.capture.performance import SIX, OrientationPerformance, t_pose
from poise.capture.streams import Stream
from poise.cli.main import main
from poise.errors import InvalidValueError
from poise.evaluation.performance import evaluate_performance
from poise.evaluation.splits import Fold
from poise.formats import read
from poise.geometry import rotations
from poise.motion import Motion
from poise.motion.world import joint_transforms
from poise.priors.gaussian import GaussianPrior
from poise.priors.local.control import Sensors
from poise.priors.local.prior import LocalPrior
from poise.priors.model_file import save
from poise.skeleton.neutral import neutral_pose

Array = np.ndarray


@pytest.fixture(scope="module")
def walks() -> list[Motion]:
    return [
        performer.act("walk", seconds=3.0, fps=60, seed=seed, speed=1.1 + 0.2 * seed) for seed in range(2)
    ]


@pytest.fixture(scope="module")
def unseen() -> Motion:
    return performer.act("walk", seconds=1.0, fps=60, seed=7, speed=1.2)


@pytest.fixture(scope="module")
def performance(walks: list[Motion]) -> OrientationPerformance:
    return OrientationPerformance(LocalPrior.learn(walks), fps=60)


def _told(motion: Motion, performance: OrientationPerformance) -> Array:
    return rotations.quaternion_from_matrix(joint_transforms(motion)[1][:, performance.sensors.joints])


def test_signals_do_not_depend_on_where_a_performer_faces(performance: OrientationPerformance) -> None:
    rng = np.random.default_rng(0)
    now, before = (rotations.matrix_from_expmap(rng.normal(size=(4, 6, 3))) for _ in range(2))
    turn = rotations.matrix_from_expmap(np.array([0.0, 1.3, 0.0]))
    np.testing.assert_allclose(
        performance.sensors.signals(turn @ now, turn @ before),
        performance.sensors.signals(now, before),
        atol=1e-9,
    )
    assert len(performance.sensors.signal.unit) == performance.guide.inputs.shape[1]


def test_a_walk_is_told_by_six_sensors(performance: OrientationPerformance, unseen: Motion) -> None:
    performance.reset()
    told = _told(unseen, performance)
    frames = [performance.step(frame) for frame in told]
    places, turns = performance.space.frames_from_q(np.stack([frame.q for frame in frames]))
    wrong = rotations.geodesic_distance(turns, unseen.rotations)[:, performance.space.moving]
    assert np.degrees(wrong.mean()) < 4.0
    found = Motion(performance.space.skeleton, 60.0, places, turns)
    met = rotations.geodesic_distance(_told(found, performance), told)
    assert np.degrees(met.max()) < 0.1
    walked, true = (np.linalg.norm((path[-1] - path[0])[[0, 2]]) for path in (places, unseen.root_positions))
    assert walked == pytest.approx(true, rel=0.25)


def test_any_model_follows_sensors_in_its_place(walks: list[Motion], unseen: Motion) -> None:
    ordinary = OrientationPerformance(GaussianPrior.learn(walks), fps=60)
    told = _told(unseen, ordinary)[:20]
    frames = [ordinary.step(frame) for frame in told]
    places, turns = ordinary.space.frames_from_q(np.stack([frame.q for frame in frames]))
    met = rotations.geodesic_distance(
        _told(Motion(ordinary.space.skeleton, 60.0, places, turns), ordinary), told
    )
    assert np.degrees(met.max()) < 0.1
    assert all(frame.reached for frame in frames)
    np.testing.assert_allclose(places, places[:1].repeat(20, 0))


def test_sensors_may_fall_silent(performance: OrientationPerformance, unseen: Motion) -> None:
    performance.reset()
    told = _told(unseen, performance)
    told[10:20, 2] = np.nan
    told[20:30, 0] = 0.0
    told[30:40] = np.nan
    frames = [performance.step(frame) for frame in told]
    assert all(np.all(np.isfinite(frame.q)) for frame in frames)
    assert not frames[15].seen[2]
    np.testing.assert_array_equal(frames[35].q, frames[29].q)
    back = rotations.geodesic_distance(
        performance.space.frames_from_q(frames[-1].q[None])[1][0], unseen.rotations[-1]
    )[performance.space.moving]
    assert np.degrees(back.mean()) < 5.0


def test_how_sensors_are_worn_is_learned_from_a_t_pose(
    performance: OrientationPerformance, unseen: Motion
) -> None:
    rng = np.random.default_rng(1)
    worn = rotations.quaternion_from_expmap(rng.normal(size=(6, 3)))
    skeleton = performance.space.skeleton
    standing = rotations.quaternion_from_matrix(
        neutral_pose(skeleton, None).world[performance.sensors.joints]
    )
    learned = t_pose(skeleton, SIX, rotations.multiply(standing, worn))
    other = OrientationPerformance(performance.prior, fps=60, worn=learned)
    told = _told(unseen, performance)[:3]
    performance.reset()
    for frame in told:
        plain, turned = performance.step(frame), other.step(rotations.multiply(frame, worn))
        np.testing.assert_allclose(turned.q, plain.q, atol=1e-6)


def test_mistakes_are_told(performance: OrientationPerformance) -> None:
    for names in (("head", "pelvis"), ("pelvis",), ("pelvis", "head", "head")):
        with pytest.raises(InvalidValueError, match="pelvis\\) first"):
            Sensors.on(performance.space, names)
    with pytest.raises(InvalidValueError, match=r"\(6, 4\)"):
        performance.step(np.zeros((5, 4)))


def test_the_command_takes_orientations(
    performance: OrientationPerformance, unseen: Motion, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(performance.prior, tmp_path / "walk.poise")
    told = _told(unseen, performance)
    header = ["time", *(f"{name}.{channel}" for name in SIX for channel in "wxyz")]
    rows = np.hstack([np.arange(len(told))[:, None] / 60, told.reshape(len(told), -1)])
    lines = [",".join(header), *(",".join(f"{value:.6f}" for value in row) for row in rows)]
    (tmp_path / "imu.csv").write_text("\n".join(lines))
    out = tmp_path / "out.bvh"
    files = [str(tmp_path / "walk.poise"), str(tmp_path / "imu.csv")]
    assert main(["perform", *files, "--sensors", ",".join(SIX), "-o", str(out)]) == 0
    again = read(out)
    assert isinstance(again, Motion)
    assert len(again) == len(unseen)
    assert main(["perform", *files, "--sensors", "pelvis,left_hand", "-o", str(out)]) == 2
    assert "no columns for the sensor 'left_hand'" in capsys.readouterr().err


def test_lines_of_orientations_are_answered(performance: OrientationPerformance, unseen: Motion) -> None:
    performance.reset()
    stream = Stream(performance)
    told = _told(unseen, performance)[0]
    good = json.dumps(dict(zip(SIX, told.tolist(), strict=True)))
    answers = [json.loads(line) for line in stream.answers([good, '{"pelvis": [1, 0, 0]}', good])]
    assert ["error" in answer for answer in answers] == [False, True, False]
    header = ",".join(f"{name}.{channel}" for name in SIX for channel in "wxyz")
    named, row = stream.answers([header, ",".join(str(value) for value in told.ravel())])
    assert len(named.split(",")) == len(row.split(","))


@pytest.mark.slow
def test_the_protocol_has_rows_for_orientations(walks: list[Motion], unseen: Motion) -> None:
    rows = evaluate_performance(
        [Fold(tuple(walks), (unseen,))], methods=("orientations", "orientations-nearest"), stride=6
    )
    local, nearest = (float(row["deg_per_joint"]) for row in rows)
    assert local < nearest
    assert all("handle_mm" not in row and row["failed"] == 0 for row in rows)
