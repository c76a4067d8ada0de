"""Motions written as arrays for other programs: AMASS, CSV and VRM animations."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import poise
from poise.errors import ParseError, SkeletonError
from poise.formats.gltf.container import Container
from poise.formats.registry import extensions, motion_files
from poise.motion import joint_positions
from poise.performer import act
from poise.skeleton import Skeleton


@pytest.fixture(scope="module")
def walk() -> poise.Motion:
    return act("walk", seconds=0.5, fps=30)


def _read(path: Path) -> poise.Motion:
    found = poise.read(path)
    assert isinstance(found, poise.Motion)
    return found


def test_an_amass_file_comes_back_as_it_was_written(walk: poise.Motion, tmp_path: Path) -> None:
    first = _read(poise.write(walk, tmp_path / "a.npz"))
    again = _read(poise.write(first, tmp_path / "b.npz"))
    np.testing.assert_allclose(joint_positions(again), joint_positions(first), atol=1e-9)
    assert again.fps == first.fps == 30.0
    assert any("+Z is up" in note for note in first.origin.notes)


def test_an_amass_file_has_the_pose_of_the_motion(walk: poise.Motion, tmp_path: Path) -> None:
    found = _read(poise.write(walk, tmp_path / "a.npz"))
    for limb in ("left_thigh", "right_forearm"):
        joint = {"left_thigh": "left_shin", "right_forearm": "right_hand"}[limb]
        ours, theirs = (motion.positions[joint] - motion.positions[limb] for motion in (walk, found))
        cosines = (
            np.sum(ours * theirs, axis=-1) / np.linalg.norm(ours, axis=-1) / np.linalg.norm(theirs, axis=-1)
        )
        assert cosines.min() > np.cos(np.radians(3.0))


def test_an_amass_file_also_has_the_arrays_of_the_motion_itself(walk: poise.Motion, tmp_path: Path) -> None:
    with np.load(poise.write(walk, tmp_path / "a.npz"), allow_pickle=False) as found:
        assert tuple(found["joint_names"]) == walk.skeleton.names
        np.testing.assert_array_equal(found["joint_positions"], joint_positions(walk))
        np.testing.assert_array_equal(found["joint_rotations"], walk.rotations)
        assert found["poses"].shape == (len(walk), 66)


def test_only_a_person_can_be_written_as_amass(tmp_path: Path) -> None:
    chain = Skeleton(("a", "b"), np.array([-1, 0]), np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]]))
    motion = poise.Motion(chain, 30.0, np.zeros((2, 3)), np.tile([1.0, 0.0, 0.0, 0.0], (2, 2, 1)))
    with pytest.raises(SkeletonError, match="not recognised as a person"):
        poise.write(motion, tmp_path / "a.npz")


def test_csv_has_a_row_of_positions_and_rotations_for_every_frame(walk: poise.Motion, tmp_path: Path) -> None:
    with poise.write(walk, tmp_path / "a.csv").open() as file:
        header, *rows = csv.reader(file)
    assert header[:9] == [
        "frame",
        "time",
        *(f"{walk.skeleton.names[0]}.{part}" for part in ("x", "y", "z", "qw", "qx", "qy", "qz")),
    ]
    table = np.array(rows, dtype=float)
    assert table.shape == (len(walk), 2 + 7 * len(walk.skeleton))
    np.testing.assert_allclose(table[:, 1], np.arange(len(walk)) / 30.0, atol=1e-7)
    cells = table[:, 2:].reshape(len(walk), -1, 7)
    np.testing.assert_allclose(cells[..., :3], joint_positions(walk), atol=1e-8)
    np.testing.assert_allclose(cells[..., 3:], walk.rotations, atol=1e-8)


def test_csv_of_markers_has_empty_cells_at_gaps(walk: poise.Motion, tmp_path: Path) -> None:
    markers = poise.virtual_markers(walk)
    points = markers.points.copy()
    points[1, 0] = np.nan
    gappy = poise.Markers(("a,b", *markers.labels[1:]), points, markers.fps)
    with poise.write(gappy, tmp_path / "a.csv").open() as file:
        header, *rows = csv.reader(file)
    assert header[2:5] == ["a,b.x", "a,b.y", "a,b.z"]
    assert rows[1][2:5] == ["", "", ""]
    np.testing.assert_allclose(float(rows[0][2]), points[0, 0, 0], atol=1e-8)


def test_csv_is_written_and_not_read(walk: poise.Motion, tmp_path: Path) -> None:
    file = poise.write(walk, tmp_path / "a.csv")
    assert ".csv" not in extensions()
    assert ".csv" in extensions(written=True)
    assert motion_files([tmp_path]) == []
    with pytest.raises(ParseError, match=r"use C3D, which the programs that use \.csv files export"):
        poise.read(file)


def test_a_vrma_has_the_motion_on_bones_that_stand_in_a_t_pose(walk: poise.Motion, tmp_path: Path) -> None:
    path = poise.write(walk, tmp_path / "a.vrma")
    found = _read(path)
    assert {"pelvis", "head", "left_hand", "right_foot", "left_upper_arm"} <= set(found.skeleton.roles)
    for role in ("pelvis", "head", "left_hand", "right_foot"):
        np.testing.assert_allclose(found.positions[role], walk.positions[role], atol=1e-5)
    document = Container(path).json
    assert document["extensionsUsed"] == ["VRMC_vrm_animation"]
    human = document["extensions"]["VRMC_vrm_animation"]["humanoid"]["humanBones"]
    assert (
        document["nodes"][human["leftHand"]["node"]]["name"]
        == walk.skeleton.names[walk.skeleton.index("left_hand")]
    )
    rest = poise.formats.read_character(path).positions
    out = rest["left_hand"][0] - rest["left_upper_arm"][0]
    assert out[0] / np.linalg.norm(out) > 0.999
