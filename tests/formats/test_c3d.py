"""C3D files: round trips, subjects and gaps, real recordings, and files that ezc3d must never see."""

import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import poise
from poise.cli.main import main
from poise.errors import InvalidValueError, MissingExtraError, ParseError, UnknownNameError, installing
from poise.formats import c3d
from poise.formats.c3d_layout import OddLayoutError, check_layout
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.skeleton.skeleton import Pose, Skeleton
from real_data import recording

ezc3d = pytest.importorskip("ezc3d")


def raw_file(
    path: Path,
    points: np.ndarray,
    *,
    labels: list[str],
    residuals: np.ndarray | None = None,
    **parameters: list[Any],
) -> Path:
    """A file by ezc3d alone, (frames, markers, 3) in its own unit and axes."""
    content = ezc3d.c3d()
    content["parameters"]["POINT"]["RATE"]["value"] = [50]
    content["parameters"]["POINT"]["UNITS"]["value"] = ["mm"]
    content["parameters"]["POINT"]["LABELS"]["value"] = labels
    for name, value in parameters.items():
        content.add_parameter("POINT", name, value)
    content["data"]["points"] = np.concatenate([points, np.ones_like(points[..., :1])], axis=2).transpose(
        2, 1, 0
    )
    if residuals is not None:
        content["data"]["meta_points"]["residuals"] = residuals.T[None]
    content.write(str(path))
    return path


def some_points(count: int, frames: int = 4) -> np.ndarray:
    return np.random.default_rng(0).uniform(1, 1500, size=(frames, count, 3))


def test_points_become_metres_with_y_up(tmp_path: Path) -> None:
    points = some_points(2)
    path = raw_file(tmp_path / "a.c3d", points, labels=["A", "B"], Y_SCREEN=["+Z"], X_SCREEN=["+X"])
    markers = poise.read(path)
    assert isinstance(markers, Markers)
    np.testing.assert_allclose(markers.points, points[..., [1, 2, 0]] / 1000, rtol=1e-6)
    assert markers.fps == 50
    assert markers.origin.units_reason == "the file says mm"
    assert markers.origin.notes == ("+Z is up: the file says so",)


def test_up_and_units_are_overridden(tmp_path: Path) -> None:
    points = some_points(1)
    path = raw_file(tmp_path / "a.c3d", points, labels=["A"])
    markers = c3d.read(path, up="+Y", units="cm")
    np.testing.assert_allclose(markers.points, points / 100, rtol=1e-6)


def test_a_negative_residual_or_the_origin_is_a_gap(tmp_path: Path) -> None:
    points = some_points(2)
    points[1, 0] = 0.0
    residuals = np.full((4, 2), 3.0)
    residuals[2, 1] = -1.0
    markers = c3d.read(raw_file(tmp_path / "a.c3d", points, labels=["A", "B"], residuals=residuals))
    gaps = np.isnan(markers.points).all(axis=2)
    assert np.argwhere(gaps).tolist() == [[1, 0], [2, 1]]
    assert markers.residuals is not None
    np.testing.assert_array_equal(np.isnan(markers.residuals), gaps)
    np.testing.assert_allclose(markers.residuals[~gaps], 0.003, rtol=1e-5)


def test_the_prefix_of_one_subject_is_dropped(tmp_path: Path) -> None:
    path = raw_file(tmp_path / "a.c3d", some_points(3), labels=["Anna:LFHD", "Anna:RFHD", "extra"])
    assert c3d.read(path).labels == ("LFHD", "RFHD", "extra")


def test_of_several_subjects_one_is_picked(tmp_path: Path) -> None:
    points = some_points(3)
    path = raw_file(tmp_path / "a.c3d", points, labels=["Anna:C7", "Ben:C7", "Ben:T10"], Y_SCREEN=["+Y"])
    both = c3d.read(path)
    assert both.labels == ("Anna:C7", "Ben:C7", "Ben:T10")
    assert both.origin.warnings == ("markers of several subjects: Anna, Ben; subject= picks one",)
    ben = c3d.read(path, subject="Ben")
    assert ben.labels == ("C7", "T10")
    np.testing.assert_allclose(ben.points, points[:, 1:] / 1000, rtol=1e-6)
    with pytest.raises(UnknownNameError, match="Anna"):
        c3d.read(path, subject="Ana")


@pytest.mark.parametrize("group", ["ANGLES", "POWERS", "MODELED_MARKERS", "REACTIONS"])
def test_unlabelled_and_modelled_points_are_left_out(tmp_path: Path, group: str) -> None:
    labels = ["*0", "C7", "Knee", "*1"]
    path = raw_file(tmp_path / "a.c3d", some_points(4), labels=labels, **{group: ["Knee"]})
    markers = c3d.read(path)
    assert markers.labels == ("C7",)
    assert len(markers.origin.warnings) == 2
    assert c3d.read(path, keep_unlabelled=True).labels == ("*0", "C7", "*1")


def test_points_beyond_the_labels_are_unlabelled(tmp_path: Path) -> None:
    path = raw_file(tmp_path / "a.c3d", some_points(2), labels=["*0", "*1"])
    markers = c3d.read(path)
    assert markers.labels == ("*0", "*1")
    assert markers.origin.warnings == ("no point has a label; all were kept",)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    count=st.integers(1, 5), frames=st.integers(1, 6), seed=st.integers(0, 2**32 - 1), measured=st.booleans()
)
def test_written_markers_read_back(
    tmp_path: Path, count: int, frames: int, seed: int, measured: bool
) -> None:
    generator = np.random.default_rng(seed)
    points = generator.normal(scale=2, size=(frames, count, 3))
    gaps = generator.random((frames, count)) < 0.3
    points[gaps] = np.nan
    residuals = np.where(gaps, np.nan, generator.uniform(0, 0.01, size=gaps.shape)) if measured else None
    markers = Markers(tuple("ABCDE"[:count]), points, 59.94, residuals=residuals)
    c3d.write(markers, tmp_path / "any.c3d")
    again = c3d.read(tmp_path / "any.c3d")
    assert again.labels == markers.labels
    assert again.fps == pytest.approx(59.94, rel=1e-6)
    np.testing.assert_allclose(again.points, points, atol=1e-6)
    expected = residuals if residuals is not None else np.where(gaps, np.nan, 0.0)
    np.testing.assert_allclose(again.residuals, expected, atol=0.01 / 127 + 1e-6)


@pytest.mark.parametrize("start", [0, 2])
def test_analog_channels_stay_beside_the_frames_that_are_kept(tmp_path: Path, start: int) -> None:
    source = raw_file(tmp_path / "forces.c3d", some_points(2, frames=6), labels=["A", "B"])
    content = ezc3d.c3d(str(source))
    samples = np.arange(1 * 3 * 24, dtype=float).reshape(1, 3, 24)
    content["data"]["analogs"] = samples
    content["parameters"]["ANALOG"]["RATE"]["value"] = [200]
    content["parameters"]["ANALOG"]["LABELS"]["value"] = ["Fx1", "Fy1", "EMG"]
    content.write(str(source))
    target = tmp_path / "cut.c3d"
    assert main(["convert", str(source), str(target), "--start", str(start / 50.0), "--to-units", "m"]) == 0
    kept = ezc3d.c3d(str(target))
    np.testing.assert_allclose(kept["data"]["analogs"], samples[:, :, 4 * start :])
    assert kept["parameters"]["ANALOG"]["LABELS"]["value"] == ["Fx1", "Fy1", "EMG"]
    assert kept["parameters"]["ANALOG"]["RATE"]["value"][0] == 200
    assert kept["parameters"]["POINT"]["UNITS"]["value"] == ["m"]
    np.testing.assert_allclose(c3d.read(target).points, c3d.read(source).points[start:], atol=1e-6)


def test_events_of_the_frames_that_are_kept_stay_at_their_times(tmp_path: Path) -> None:
    source = raw_file(tmp_path / "gait.c3d", some_points(2, frames=50), labels=["A", "B"])
    content = ezc3d.c3d(str(source))
    content["header"]["points"]["first_frame"] = 100  # at 50 Hz, 2 s of the take were cut off before
    content.add_parameter("EVENT", "USED", [3])
    content.add_parameter("EVENT", "LABELS", ["Foot Strike", "Foot Off", "Foot Strike"])
    content.add_parameter("EVENT", "CONTEXTS", ["Left", "Right", "Right"])
    content.add_parameter("EVENT", "TIMES", np.array([[0.0, 0.0, 0.0], [2.1, 2.5, 2.94]]))
    content.write(str(source))
    target = tmp_path / "cut.c3d"
    assert main(["convert", str(source), str(target), "--start", "0.2"]) == 0
    kept = ezc3d.c3d(str(target))
    events = {
        name: one["value"] for name, one in kept["parameters"]["EVENT"].items() if name != "__METADATA__"
    }
    assert events["LABELS"] == ["Foot Off", "Foot Strike"]
    assert events["CONTEXTS"] == ["Right", "Right"]
    np.testing.assert_allclose(events["TIMES"], [[0.0, 0.0], [0.3, 0.74]], atol=1e-6)


def test_measured_and_filled_points_stay_apart(tmp_path: Path) -> None:
    residuals = np.array([[0.0, 1e-7, 0.02]])
    markers = Markers(("A", "B", "C"), some_points(3, frames=1) / 1000, 100.0, residuals=residuals)
    c3d.write(markers, tmp_path / "a.c3d")
    again = c3d.read(tmp_path / "a.c3d").residuals
    assert again is not None
    assert again[0, 0] == 0.0
    assert again[0, 1] > 0.0
    assert again[0, 2] == pytest.approx(0.02, rel=1e-3)


@pytest.mark.usefixtures("unchecked_shapes")
def test_only_markers_can_be_written(tmp_path: Path) -> None:
    pose = Pose.rest(Skeleton(("root",), np.array([-1]), np.zeros((1, 3))))
    motion = Motion(pose.skeleton, 1.0, pose.root_position[None], pose.rotations[None])
    with pytest.raises(InvalidValueError, match="got Motion"):
        poise.write(motion, tmp_path / "a.c3d")
    with pytest.raises(InvalidValueError, match="1 to 255 markers"):
        c3d.write(Markers((), np.zeros((1, 0, 3)), 100.0), tmp_path / "a.c3d")


def test_without_ezc3d_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = raw_file(tmp_path / "a.c3d", some_points(1), labels=["A"])
    monkeypatch.setitem(sys.modules, "ezc3d", None)
    with pytest.raises(MissingExtraError, match=re.escape(installing("c3d"))):
        c3d.read(path)


# --- real recordings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "frames", "unlabelled"), [("85_02", 810, 0), ("HDM_bd_05-01_01_120", 5920, 3)]
)
def test_a_real_recording(name: str, frames: int, unlabelled: int) -> None:
    file = recording("optical", f"{name}.c3d")
    markers = c3d.read(file)
    assert len(markers.labels) == 41
    assert {"LFHD", "C7", "RTOE", "LFWT"} <= set(markers.labels)
    assert (len(markers), markers.fps) == (frames, 120)
    assert not np.isnan(markers.points).any()
    head = np.median(markers.points[:, markers.index("LFHD"), 1])
    assert 1.5 < head < 2.0
    assert len(markers.origin.warnings) == (1 if unlabelled else 0)
    assert len(c3d.read(file, keep_unlabelled=True).labels) == 41 + unlabelled


@pytest.mark.parametrize("name", ["85_02", "135_02"])
def test_markers_and_the_skeleton_of_the_same_take_coincide(name: str) -> None:
    """The four waist markers lie around the root of the BVH solution of the same take, frame by frame."""
    markers = c3d.read(recording("optical", f"{name}.c3d"))
    motion = poise.read(recording("optical", f"{name}.bvh"))
    assert isinstance(motion, Motion)
    assert abs(len(motion) - len(markers)) <= 1
    waist = markers.points[:, [markers.index(label) for label in ("LFWT", "RFWT", "LBWT", "RBWT")]].mean(
        axis=1
    )
    frames = min(len(motion), len(markers))
    apart = np.linalg.norm((motion.root_positions[:frames] - waist[:frames])[:, [0, 2]], axis=1)
    assert np.median(apart) < 0.03


# --- broken files --------------------------------------------------------------------------------------------------


def broken(path: Path, *, place: int, code: str, value: float) -> Path:
    content = bytearray(path.read_bytes())
    struct.pack_into(code, content, place, value)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("place", "code", "value", "message"),
    [
        (1, "B", 0, "second byte is not 0x50"),
        (0, "B", 200, "are declared in block 200"),
        (515, "B", 7, "unknown processor 7"),
        (514, "B", 255, "255 blocks of parameters do not fit"),
        (2, "<H", 60000, "60000 points but POINT:USED is 2"),
        (2, "<H", 0, "no motion"),
        (8, "<H", 65535, "65535 frames are declared and"),
        (16, "<H", 6000, "0 are present"),
        (12, "<f", 0.0, "scale factor"),
        (302 - 2, "<H", 400, "400 events"),
        (516, "b", 127, "damaged|points outside|no POINT"),
    ],
)
def test_a_damaged_header_is_refused(
    tmp_path: Path, place: int, code: str, value: float, message: str
) -> None:
    path = raw_file(tmp_path / "a.c3d", some_points(2), labels=["A", "B"])
    with pytest.raises(ParseError, match=message):
        c3d.read(broken(path, place=place, code=code, value=value))


@pytest.mark.parametrize("kept", [1, 100, 512, 600, 1000, 1500, -1])
def test_a_truncated_file_is_refused(tmp_path: Path, kept: int) -> None:
    path = raw_file(tmp_path / "a.c3d", some_points(4, frames=200), labels=list("ABCD"))
    path.write_bytes(path.read_bytes()[: kept if kept > 0 else -600])
    with pytest.raises(ParseError):
        c3d.read(path)


@pytest.mark.parametrize("is_whole", [True, False])
@pytest.mark.parametrize(
    ("processor", "scale", "width"),
    [(84, struct.pack("<f", -1.0), 4), (84, struct.pack("<f", 0.1), 2), (85, b"\x80\xc0\x00\x00", 4)],
)
def test_the_size_of_the_data_follows_the_scale(
    tmp_path: Path, processor: int, scale: bytes, width: int, is_whole: bool
) -> None:
    """A scale below zero means floats, twice the size of integers; DEC's -1 is 80 C0 00 00."""
    path = raw_file(tmp_path / "a.c3d", some_points(4, frames=64), labels=list("ABCD"))
    content = bytearray(path.read_bytes())
    content[12:16], content[515] = scale, processor
    data_start = 512 * (struct.unpack_from("<H", content, 16)[0] - 1)
    path.write_bytes(content[: data_start + 64 * 4 * 4 * width - (0 if is_whole else 1)])
    if is_whole:
        check_layout(path)
    else:
        with pytest.raises(ParseError, match="64 frames are declared and 63 are present"):
            check_layout(path)


@pytest.mark.parametrize(
    ("group", "name"),
    [("POINT", "FRAMES"), ("ROTATION", "USED"), ("ROTATION", "DATA_START"), ("ROTATION", "RATIO")],
)
def test_a_parameter_without_a_value_does_not_reach_ezc3d(tmp_path: Path, group: str, name: str) -> None:
    """Its dimensions are zero by zero: ezc3d would take the first of no values, and end the process."""
    path = raw_file(tmp_path / "a.c3d", some_points(2), labels=["A", "B"])
    content = bytearray(path.read_bytes())
    kind = content.index(name.encode(), content.index(group.encode())) + len(name) + 2
    assert content[kind : kind + 2] == b"\x02\x00"  # a single integer
    content[kind + 1 : kind + 4] = b"\x02\x00\x00"
    path.write_bytes(content)
    with pytest.raises(OddLayoutError, match=f"{name} has no value"):
        check_layout(path)


_READ_ALL = """
import sys
from poise.errors import PoiseError
from poise.formats import c3d
for path in sys.argv[1:]:
    try:
        c3d.read(path)
    except PoiseError:
        pass
print("read all")
"""


@pytest.mark.slow
def test_mutated_files_never_crash_the_interpreter(tmp_path: Path) -> None:
    """In a process of its own, because what is compiled can take the interpreter down with it."""
    content = raw_file(tmp_path / "a.c3d", some_points(3), labels=list("ABC")).read_bytes()
    generator = np.random.default_rng(1)
    paths = []
    for number in range(200):
        mutated = bytearray(content)
        for place in generator.integers(0, len(content) - 512, size=generator.integers(1, 6)):
            mutated[place] = generator.integers(0, 256)
        paths.append(tmp_path / f"{number}.c3d")
        paths[-1].write_bytes(mutated)
    result = subprocess.run(
        [sys.executable, "-c", _READ_ALL, *map(str, paths)], capture_output=True, text=True
    )
    assert result.stdout.strip() == "read all", result.stderr


def test_labels_in_latin_1_are_read_and_can_be_written_again(tmp_path: Path) -> None:
    path = tmp_path / "take.c3d"
    c3d.write(Markers(("HueAfte", "B"), np.zeros((4, 2, 3)), fps=50.0), path)
    path.write_bytes(path.read_bytes().replace(b"HueAfte", b"H\xfc\x66te  "))
    again = c3d.read(path)
    assert "Hüfte" in again.labels
    poise.write(again, tmp_path / "take.trc")
    assert "Hüfte" in poise.read(tmp_path / "take.trc").labels
