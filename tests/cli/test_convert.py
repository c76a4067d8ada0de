"""`poise convert`: what is written is what was read, cut as asked."""

from pathlib import Path

import numpy as np
import pytest

import poise as library
from poise.motion.markers import Markers
from poise.motion.world import joint_positions


def test_a_round_trip_through_another_format_keeps_the_motion(poise, walk: Path, tmp_path: Path) -> None:
    assert poise("convert", walk, tmp_path / "walk.glb").code == 0
    assert poise("convert", tmp_path / "walk.glb", tmp_path / "walk.bvh").code == 0
    before, after = library.read(walk), library.read(tmp_path / "walk.bvh")
    order = [after.skeleton.index(name) for name in before.skeleton.names if name in after.skeleton.names]
    kept = [before.skeleton.index(after.skeleton.names[joint]) for joint in order]
    assert len(order) >= 20
    np.testing.assert_allclose(joint_positions(after)[:, order], joint_positions(before)[:, kept], atol=1e-4)


def test_trimmed_and_resampled(poise, walk: Path, tmp_path: Path) -> None:
    done = poise("convert", walk, tmp_path / "part.bvh", "--start", 0.25, "--end", 0.75, "--fps", 30)
    part = library.read(tmp_path / "part.bvh")
    assert done.out.startswith(f"{tmp_path / 'part.bvh'}: 15 frames at 30 Hz")
    assert (len(part), part.fps) == (15, 30.0)
    np.testing.assert_allclose(part.root_positions[0], library.read(walk).root_positions[15], atol=1e-6)


def test_mirrored_twice_is_the_motion_again(poise, walk: Path, tmp_path: Path) -> None:
    once, twice = tmp_path / "once.bvh", tmp_path / "twice.bvh"
    poise("convert", walk, once, "--mirror")
    poise("convert", once, twice, "--mirror")
    assert np.abs(joint_positions(library.read(once)) - joint_positions(library.read(walk))).max() > 0.05
    np.testing.assert_allclose(
        joint_positions(library.read(twice)), joint_positions(library.read(walk)), atol=1e-4
    )


def test_the_unit_to_write_is_chosen_and_refused_where_a_format_has_its_own(
    poise, walk: Path, tmp_path: Path
) -> None:
    out = tmp_path / "metres.bvh"
    assert poise("convert", walk, out, "--to-units", "m").code == 0
    assert library.read(out).origin.units == "m"
    np.testing.assert_allclose(library.read(out).root_positions, library.read(walk).root_positions, atol=1e-5)
    assert poise("convert", walk, tmp_path / "out.glb", "--to-units", "cm").code != 0


def test_markers_are_trimmed_too(poise, tmp_path: Path) -> None:
    points = np.random.default_rng(0).normal(size=(50, 2, 3))
    take = library.write(Markers(("A", "B"), points, fps=50.0), tmp_path / "take.trc")
    assert poise("convert", take, tmp_path / "part.trc", "--start", 0.2, "--end", 0.6, "--up", "y").code == 0
    np.testing.assert_allclose(library.read(tmp_path / "part.trc", up="y").points, points[10:30], atol=1e-6)


def test_markers_cannot_be_mirrored_and_it_says_so(poise, tmp_path: Path) -> None:
    take = library.write(Markers(("A",), np.zeros((4, 1, 3)), fps=50.0), tmp_path / "take.trc")
    done = poise("convert", take, tmp_path / "other.trc", "--mirror")
    assert done.code == 2
    assert "these are markers" in done.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--start", "5"], "cannot trim to 5"),
        (["--end", "nan"], "cannot trim to 0 .. nan"),
        (["--up", "north"], "no up axis 'north'"),
        (["--fps", "-3"], "a frame rate must be positive"),
        (["--units", "furlong"], "furlong"),
    ],
)
def test_mistakes_leave_no_file(poise, walk: Path, tmp_path: Path, arguments: list[str], words: str) -> None:
    done = poise("convert", walk, tmp_path / "out.bvh", *arguments)
    assert done.code == 2
    assert words in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_one_line(poise, walk: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = poise("convert", walk, tmp_path / "file" / "out.bvh")
    assert done.code == 2
    assert done.err.startswith("poise: cannot create the folder")


def test_an_output_that_is_a_folder_is_one_line(poise, walk: Path, tmp_path: Path) -> None:
    (tmp_path / "out.bvh").mkdir()
    done = poise("convert", walk, tmp_path / "out.bvh")
    assert done.code == 2
    assert "is a folder" in done.err


def test_a_file_is_never_written_over_itself(poise, walk: Path, tmp_path: Path) -> None:
    (tmp_path / "link.bvh").symlink_to(walk)
    before = walk.read_bytes()
    for target in (walk, walk.parent / "." / walk.name, tmp_path / "link.bvh"):
        done = poise("convert", walk, target, "--mirror")
        assert done.code == 2
        assert "is the file to be read" in done.err
    assert walk.read_bytes() == before


def test_a_pair_is_never_written_over_its_source_nor_over_what_was_not_named(
    poise, walk: Path, tmp_path: Path
) -> None:
    pair = tmp_path / "07_01.amc", tmp_path / "07.asf"
    library.write(library.read(walk), tmp_path / "07.amc")
    (tmp_path / "07.amc").rename(pair[0])
    before = [file.read_bytes() for file in pair]
    for target in ("07_01.asf", "07.amc", "07_01.amc"):
        done = poise("convert", pair[0], tmp_path / target, "--overwrite")
        assert done.code == 2
        assert "is the file to be read" in done.err
    assert [file.read_bytes() for file in pair] == before
    other = tmp_path / "other.asf"
    other.write_text("somebody's")
    done = poise("convert", walk, tmp_path / "other.amc")
    assert done.code == 2
    assert "would be replaced" in done.err
    assert (other.read_text(), (tmp_path / "other.amc").exists()) == ("somebody's", False)
    assert poise("convert", walk, tmp_path / "other.amc", "--overwrite").code == 0
    assert poise("convert", walk, tmp_path / "other.amc").code == 0  # the skeleton stays as it is
    assert len(library.read(tmp_path / "other.amc")) == len(library.read(walk))


@pytest.mark.usefixtures("unchecked_shapes")
def test_markers_do_not_become_a_body(poise, tmp_path: Path) -> None:
    take = library.write(Markers(("A",), np.zeros((4, 1, 3)), fps=50.0), tmp_path / "take.trc")
    done = poise("convert", take, tmp_path / "take.glb")
    assert done.code == 2
    assert "a GLB file holds a motion of a skeleton; got Markers" in done.err
