"""TRC files: round trips, the variants that programs write, and broken files."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import poise
from poise.errors import InvalidValueError, ParseError, UnknownNameError
from poise.formats import trc
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.skeleton.skeleton import Pose, Skeleton

HEADER = (
    "PathFileType\t4\t(X/Y/Z)\twalk.trc\t\t\n"
    "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate\tOrigDataStartFrame\tOrigNumFrames\n"
    "60.00\t60.00\t2\t2\tmm\t60.00\t1\t2\n"
    "Frame#\tTime\tR.ASIS\t\t\tL.Heel\t\t\t\n"
    "\t\tX1\tY1\tZ1\tX2\tY2\tZ2\t\n"
)
WALK = HEADER + "\n1\t0.000\t1\t1000\t3\t4\t5\t6\t\n2\t0.017\t\t\t\t7\t8\t9\t\n"


def saved(folder: Path, text: str) -> Path:
    path = folder / "walk.trc"
    path.write_bytes(text.encode())
    return path


def check_walk(markers: Markers) -> None:
    assert markers.labels == ("R.ASIS", "L.Heel")
    assert markers.fps == 60
    np.testing.assert_allclose(markers.points[0], [[0.001, 1, 0.003], [0.004, 0.005, 0.006]])
    assert np.isnan(markers.points[1, 0]).all()
    np.testing.assert_allclose(markers.points[1, 1], [0.007, 0.008, 0.009])


def test_a_gap_is_nan(tmp_path: Path) -> None:
    markers = trc.read(saved(tmp_path, WALK))
    check_walk(markers)
    assert markers.origin.units_reason == "the file says mm"
    assert markers.origin.notes[0].startswith("+Y is up: ")
    assert markers.origin.warnings == ()


@pytest.mark.parametrize(
    "text",
    [
        WALK.replace("\n", "\r\n"),
        "\ufeff" + WALK,
        WALK.rstrip("\n"),
        WALK.replace("\n\n", "\n"),
        WALK.replace("\t\n", "\n"),
        WALK.replace("\t\t\t\t7", "\tNaN\tnan\t5\t7"),
        WALK.replace("mm", "MM"),
        WALK.replace("\t\t\t\t7", "\tnan\tnan\tnan\t7").replace("\t\t", "\t").replace("\t", " "),
        WALK.replace("1000", "1e3"),
    ],
    ids=["crlf", "bom", "no end", "no blank", "trailing", "nan words", "case", "spaces", "exponent"],
)
def test_variants_read_alike(tmp_path: Path, text: str) -> None:
    check_walk(trc.read(saved(tmp_path, text)))


def test_missing_cells_at_the_end_are_gaps(tmp_path: Path) -> None:
    markers = trc.read(saved(tmp_path, HEADER + "1\t0\t1\t2\t3\n2\t0.1\n"))
    assert np.isnan(markers.points[0, 1]).all()
    assert not np.isnan(markers.points[0, 0]).any()
    assert np.isnan(markers.points[1]).all()


@pytest.mark.parametrize(
    ("unit", "metres"), [("m", 1.0), ("cm", 0.01), ("mm", 0.001), ("meters", 1.0), ("inches", 0.0254)]
)
def test_units(tmp_path: Path, unit: str, metres: float) -> None:
    markers = trc.read(saved(tmp_path, WALK.replace("mm", unit)))
    np.testing.assert_allclose(markers.points[0, 0], np.array([1, 1000, 3]) * metres)
    assert markers.origin.metres_per_unit == metres


def test_units_and_up_are_overridden(tmp_path: Path) -> None:
    markers = poise.read(saved(tmp_path, WALK), units="cm", up="z")
    assert isinstance(markers, Markers)
    np.testing.assert_allclose(markers.points[0, 0], [10, 0.03, 0.01])
    assert markers.origin.units_reason == "given"
    assert markers.origin.notes == ("+Z is up: given",)
    with pytest.raises(UnknownNameError, match="up axis"):
        trc.read(saved(tmp_path, WALK), up="north")


def test_z_up_is_seen_from_head_and_feet(tmp_path: Path) -> None:
    text = WALK.replace("R.ASIS", "Head").replace("1\t1000\t3\t4\t5\t6", "4\t5\t1706\t4\t5\t6")
    markers = trc.read(saved(tmp_path, text))
    np.testing.assert_allclose(markers.points[0, 0], [0.005, 1.706, 0.004])
    assert "+Z is up: head markers are above" in markers.origin.notes[0]


def test_written_bodies_longer_than_high_stay_upright(tmp_path: Path) -> None:
    fox = np.random.default_rng(1).uniform([0, 0, 0], [0.03, 0.08, 0.2], size=(5, 20, 3))
    markers = Markers(tuple(f"M{number}" for number in range(20)), fox, 60.0)
    poise.write(markers, tmp_path / "fox.trc")
    again = poise.read(tmp_path / "fox.trc")
    assert isinstance(again, Markers)
    np.testing.assert_allclose(again.points, fox, atol=1e-8)
    assert again.origin.notes == ("+Y is up: the file says so",)


def test_counts_that_disagree_are_warnings(tmp_path: Path) -> None:
    markers = trc.read(saved(tmp_path, WALK.replace("\t2\t2\tmm", "\t5\t3\tmm")))
    assert markers.origin.warnings == (
        "the header's nummarkers is 3 but 2 markers are named",
        "the header's numframes is 5 but 2 rows are there",
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("PathFileType", "Path", r"walk.trc:1: a TRC file starts with PathFileType"),
        ("60.00\t60.00", "0\t60.00", r":3: DataRate must be above zero"),
        ("60.00\t60.00", "fast\t60.00", r":3: the header's datarate must be numbers; got 'fast'"),
        ("mm", "furlong", "unit of length 'furlong'"),
        ("DataRate\t", "Rate\t", r":2: the header has no datarate"),
        ("R.ASIS\t\t\tL.Heel", "", r":4: the fourth line has no marker names"),
        ("4\t5\t6\t", "4\t5", r":7: 2 markers need 6 coordinates; got 5"),
        ("4\t5\t6", "4\t5\t6\t7", r":7: 2 markers need 6 coordinates; got 7"),
        ("4\t5\t6", "4\tfive\t6", r":7: coordinates must be numbers; got 'five'"),
        ("4\t5\t6", "4\tinf\t6", r":7: a coordinate is infinite"),
        (WALK[len(HEADER) :], "", "no frames"),
        (WALK[40:], "", "the header needs 5 lines"),
    ],
)
def test_a_broken_file_names_the_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in WALK
    with pytest.raises(ParseError, match=message):
        trc.read(saved(tmp_path, WALK.replace(old, new, 1)))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    points=arrays(
        float, st.tuples(st.integers(1, 4), st.integers(1, 3), st.just(3)), elements=st.floats(-50, 50)
    ),
    unit=st.sampled_from(["mm", "cm", "m"]),
    fps=st.floats(1, 1000),
    gaps=st.integers(0, 2**12 - 1),
)
def test_written_markers_read_back(
    tmp_path: Path, points: np.ndarray, unit: str, fps: float, gaps: int
) -> None:
    hidden = np.array([bool(gaps >> k & 1) for k in range(points.shape[0] * points.shape[1])])
    points[hidden.reshape(points.shape[:2])] = np.nan
    markers = Markers(("Left heel", "C7", "RKNE")[: points.shape[1]], points, fps)
    trc.write(markers, tmp_path / "any.trc", units=unit)
    again = trc.read(tmp_path / "any.trc", up="Y")
    assert again.labels == markers.labels
    assert again.fps == pytest.approx(fps, rel=1e-9)
    np.testing.assert_allclose(again.points, points, atol=1e-7)


@pytest.mark.usefixtures("unchecked_shapes")
def test_only_markers_can_be_written(tmp_path: Path) -> None:
    pose = Pose.rest(Skeleton(("root",), np.array([-1]), np.zeros((1, 3))))
    motion = Motion(pose.skeleton, 1.0, pose.root_position[None], pose.rotations[None])
    with pytest.raises(InvalidValueError, match="holds markers; got a Motion"):
        poise.write(motion, tmp_path / "a.trc")
    with pytest.raises(InvalidValueError, match="at least one marker"):
        trc.write(Markers((), np.zeros((1, 0, 3)), 100.0), tmp_path / "a.trc")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["a\tb", "a\nb", "a\x1cb", "a\u2028b"])
def test_odd_names_of_files_and_markers_do_not_break_the_header(tmp_path: Path, name: str) -> None:
    markers = Markers((name, "RFHD"), np.ones((2, 2, 3)), 30.0)
    poise.write(markers, tmp_path / f"{name}.trc")
    assert poise.read(tmp_path / f"{name}.trc").labels == ("a b", "RFHD")
