"""Every real recording loads, in the right unit, with the added T-pose left out and a person's height."""

from pathlib import Path

import numpy as np
import pybvh
import pytest

import poise
from plain_bvh import plain_positions
from poise.motion import Motion
from poise.skeleton.kinematics import world_transforms
from real_data import recording, recordings

CMU_TRAITS = ("cmu", True, 120.0)  # unit, whether a T-pose was left out, frames per second
BANDAI_TRAITS = ("cm", False, 30.0)


def traits(motion: Motion) -> tuple[str, bool, float]:
    return motion.origin.units, motion.origin.dropped_first_frame, motion.fps


def check_cmu(files: list[Path]) -> None:
    for file in files:
        motion = poise.read(file)
        assert traits(motion) == CMU_TRAITS, file.name
        assert 1.5 < motion.skeleton.height < 2.0, file.name
        assert 0.1 < motion.root_positions[:, 1].mean() < 1.6, file.name


def check_bandai(files: list[Path]) -> None:
    for file in files:
        motion = poise.read(file)
        assert traits(motion) == BANDAI_TRAITS, file.name
        assert motion.skeleton.names[0] == "Hips", file.name
        assert 1.5 < motion.skeleton.height < 2.0, file.name
        assert 0.3 < np.median(motion.root_positions[:, 1]) < 1.2, file.name


EVERY = [20, pytest.param(1, marks=pytest.mark.slow)]


@pytest.mark.parametrize("every", EVERY)
def test_all_209_cmu_clips(every: int) -> None:
    files = recordings("cmu")
    assert len(files) == 209
    check_cmu(files[::every])


@pytest.mark.parametrize("every", EVERY)
def test_all_174_bandai_clips(every: int) -> None:
    files = recordings("bandai")
    assert len(files) == 174
    check_bandai(files[::every])


def test_optical_bvh_clips() -> None:
    files = recordings("optical")
    assert len(files) == 6
    check_cmu(files)


def test_optical_c3d_recordings() -> None:
    pytest.importorskip("ezc3d")
    files = recordings("optical", "*.c3d")
    assert len(files) == 3
    for file in files:
        markers = poise.read(file)
        assert len(markers) > 0
        assert 0.5 < np.nanmax(markers.points[..., 1]) < 3.0, file.name  # metres, Y up: heads or raised hands


def test_blank_frames_behind_the_tpose_are_left_out_too() -> None:
    motion = poise.read(recording("cmu", "09_10.bvh"))
    assert motion.origin.frames_in_file == 133
    assert len(motion) == 128
    assert "4 blank frames" in motion.origin.warnings[-1]


def test_performers_of_one_subject_are_one_height() -> None:
    walks = [file for file in recordings("cmu") if file.name.startswith("35_")][:4]
    assert np.ptp([poise.read(file).skeleton.height for file in walks]) < 1e-9


def test_same_take_as_markers_and_as_skeleton_is_the_same_size() -> None:
    pytest.importorskip("ezc3d")
    skeleton = poise.read(recording("optical", "85_02.bvh"))
    markers = poise.read(recording("optical", "85_02.c3d"))
    assert skeleton.fps == pytest.approx(markers.fps)
    assert abs(np.nanmedian(markers.points[..., 1]) - np.median(skeleton.root_positions[:, 1])) < 0.3


def test_another_reader_places_the_joints_where_we_do() -> None:
    file = recording("cmu", "16_15.bvh")
    motion = poise.read(file, keep_first=True)
    theirs = pybvh.read_bvh_file(file, world_up="+y").node_positions()
    ours, _ = world_transforms(motion.skeleton, motion.root_positions, motion.rotations)
    np.testing.assert_allclose(theirs * motion.origin.metres_per_unit, ours, atol=1e-9)


@pytest.mark.parametrize("collection", ["cmu", "bandai", "optical"])
def test_joints_are_where_the_letter_of_the_format_puts_them(collection: str) -> None:
    """Static roots merged, positions settled as offsets, units and T-poses inferred: none of it moves a joint."""
    for file in recordings(collection)[::25]:
        motion = poise.read(file)
        ours, _ = world_transforms(motion.skeleton, motion.root_positions, motion.rotations)
        for name, places in plain_positions(file).items():
            if name in motion.skeleton.names:
                kept = places[len(places) - len(motion) :] * motion.origin.metres_per_unit
                np.testing.assert_allclose(
                    ours[:, motion.skeleton.index(name)], kept, atol=1e-6, err_msg=name
                )
