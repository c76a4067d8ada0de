"""Files of other programs that are not quite as their formats ask, and ours as other programs want them."""

import struct
from pathlib import Path

import numpy as np
import pytest

from bodies import person
from poise.formats import bvh, c3d, read, trc
from poise.formats.laboratory import chosen_up, infer_up
from poise.geometry import rotations
from poise.motion import Motion
from poise.motion.markers import Markers


def some_markers(frames: int = 4) -> Markers:
    points = np.random.default_rng(3).uniform(0.1, 1.5, (frames, 3, 3))
    return Markers(("A", "B", "C"), points, 100.0)


def test_markers_that_were_not_seen_do_not_say_what_is_up() -> None:
    points = np.full((5, 2, 3), np.nan)
    points[:, 1] = (2.0, 0.4, 0.5)
    assert infer_up(("LFHD", "LTOE"), points, default="+Z")[0] == "+Z"


def test_the_head_of_the_humerus_is_not_a_head() -> None:
    points = np.tile([[1.4, 0.5, 0.5], [0.4, 0.5, 0.6]], (5, 1, 1))
    assert "head" not in infer_up(("R.HeadHum", "R.Foot"), points, default="+Y")[1]
    assert "head" in infer_up(("Head.R", "R.Foot"), points, default="+Y")[1]


def test_a_sprinter_in_the_blocks_stands_on_the_floor() -> None:
    low, high = np.array([-1.0, -0.4, 0.02]), np.array([0.6, 0.4, 0.8])
    points = np.random.default_rng(0).uniform(low, high, (20, 30, 3))
    points[:, 0], points[:, 1] = (0.6, 0.0, 0.7), (-1.0, 0.0, 0.05)
    assert infer_up(("HEAD", "TOE", *map(str, range(28))), points, default="+Y")[0] == "+Z"


def test_points_that_nobody_labelled_are_left_out_of_a_trc(tmp_path: Path) -> None:
    trc.write(some_markers(), tmp_path / "a.trc")
    lines = (tmp_path / "a.trc").read_text().splitlines()
    lines[7] += "\t1.0\t2.0\t3.0"
    (tmp_path / "b.trc").write_text("\n".join(lines))
    np.testing.assert_allclose(read(tmp_path / "b.trc", up="+Y").points, some_markers().points, atol=1e-6)


def test_a_trc_with_commas_is_read(tmp_path: Path) -> None:
    trc.write(some_markers(), tmp_path / "a.trc")
    (tmp_path / "b.trc").write_text((tmp_path / "a.trc").read_text().replace("\t", ","))
    np.testing.assert_allclose(read(tmp_path / "b.trc", up="+Y").points, some_markers().points, atol=1e-6)


def test_a_row_that_ends_in_a_gap_has_all_its_cells_for_every_reader(tmp_path: Path) -> None:
    """OpenSim drops an empty last cell and then the file; pymomentum drops a row that has one tab more for it."""
    markers = some_markers()
    points = markers.points.copy()
    points[1, 2] = np.nan
    trc.write(Markers(markers.labels, points, 100.0), tmp_path / "a.trc")
    row = (tmp_path / "a.trc").read_text().splitlines()[7]
    assert row.split("\t")[-3:] == ["", "", "NaN"]
    assert len(row.split("\t")) == 2 + 3 * len(markers.labels)
    assert np.isnan(read(tmp_path / "a.trc").points[1, 2]).all()


def test_a_c3d_has_the_scale_of_its_points_in_its_header(tmp_path: Path) -> None:
    c3d.write(some_markers(), tmp_path / "a.c3d")
    data = (tmp_path / "a.c3d").read_bytes()
    assert struct.unpack("<f", data[12:16])[0] == pytest.approx(-0.01)


def test_a_c3d_without_a_scale_is_read_with_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("c3d")
    c3d.write(some_markers(), tmp_path / "a.c3d")
    odd = (tmp_path / "a.c3d").read_bytes().replace(b"SCALE", b"SCALX", 1)
    (tmp_path / "b.c3d").write_bytes(odd)
    found = read(tmp_path / "b.c3d")
    np.testing.assert_allclose(found.points, some_markers().points, atol=1e-5)
    assert "no POINT:SCALE" in found.origin.warnings[0]


def test_analog_values_that_only_the_header_counts_do_not_shift_the_points(tmp_path: Path) -> None:
    c3d.write(some_markers(), tmp_path / "a.c3d")
    data = bytearray((tmp_path / "a.c3d").read_bytes())
    start = (struct.unpack("<H", data[16:18])[0] - 1) * 512
    data[4:6] = struct.pack("<H", 2)
    rows = [
        data[start + 48 * frame : start + 48 * (frame + 1)] + struct.pack("<2f", 7.0, -8.0)
        for frame in range(4)
    ]
    (tmp_path / "b.c3d").write_bytes(data[:start] + b"".join(rows))
    found = read(tmp_path / "b.c3d")
    assert "analog" in found.origin.warnings[0]
    np.testing.assert_allclose(found.points, some_markers().points, atol=1e-6)


def test_an_axis_that_the_body_stands_along_goes_before_one_that_the_file_states() -> None:
    low, high = np.array([0.02, -0.6, -0.5]), np.array([1.7, 0.6, 0.5])
    points = np.random.default_rng(0).uniform(low, high, (20, 30, 3))
    labels = tuple(map(str, range(30)))
    up, reason = chosen_up(labels, points, given_up=None, stated_up="+Z", default_up="+Z")
    assert up == "+X"
    assert "although the file says +Z" in reason
    lying = points * (1.0, 1.0, 0.2) + (-1.0, 0.0, 0.2)
    assert chosen_up(labels, lying, given_up=None, stated_up="+Z", default_up="+Z")[0] == "+Z"


def test_a_bvh_that_stands_along_z_is_stood_up(tmp_path: Path) -> None:
    body = person()
    turns = np.tile(rotations.IDENTITY, (10, len(body), 1))
    turns[:, 0] = rotations.quaternion_from_expmap(np.array([np.pi / 2, 0.0, 0.0]))
    roots = np.stack([np.zeros(10), np.linspace(0.0, 1.0, 10), np.full(10, 0.95)], axis=-1)
    bvh.write(Motion(body, 30.0, roots, turns), tmp_path / "a.bvh")
    found = read(tmp_path / "a.bvh")
    assert found.origin.notes == ("+Z is up: the body stands along it",)
    assert found.positions["head"][0, 1] > 1.3
