"""Written BVH reads back as it was, here and in other people's readers."""

from pathlib import Path

import bvh as bvh_by_others
import numpy as np
import pybvh
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import poise
from poise.errors import InvalidValueError, PoiseError
from poise.formats import bvh
from poise.formats.laboratory import matrix_y_up_from
from poise.formats.units import METRES
from poise.geometry import rotations
from poise.motion import Motion
from poise.motion.world import joint_positions
from poise.skeleton import Skeleton
from poise.skeleton.kinematics import world_transforms
from real_data import recording

ORDERS = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")


@st.composite
def motions(draw: st.DrawFn) -> Motion:
    """Any tree of a few joints, each with its own rotation order, turned at random."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    parents = [-1, *(draw(st.integers(0, joint - 1)) for joint in range(1, draw(st.integers(2, 9))))]
    leaves = [joint not in parents for joint in range(len(parents))]
    orders = ["" if leaf and joint else draw(st.sampled_from(ORDERS)) for joint, leaf in enumerate(leaves)]
    skeleton = Skeleton(
        tuple(f"j{joint}" for joint in range(len(parents))),
        np.array(parents),
        rng.normal(size=(len(parents), 3)),
        orders,
    )
    frames = draw(st.integers(1, 5))
    turns = rotations.normalize(rng.normal(size=(frames, len(parents), 4)))
    turns[:, skeleton.is_end_site] = rotations.IDENTITY
    return Motion(skeleton, 30.0, rng.normal(size=(frames, 3)), turns)


def degrees_apart(one: Motion, other: Motion) -> float:
    order = [one.skeleton.names.index(name) for name in other.skeleton.names if name in one.skeleton.names]
    kept = [joint for joint, name in enumerate(other.skeleton.names) if name in one.skeleton.names]
    apart = rotations.geodesic_distance(one.rotations[:, order], other.rotations[:, kept])
    return float(np.degrees(apart.max()))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(motion=motions())
def test_written_files_read_back(tmp_path: Path, motion: Motion) -> None:
    bvh.write(motion, tmp_path / "clip.bvh")
    back = bvh.read(tmp_path / "clip.bvh", units="cm", keep_first=True)
    turning = {
        name for name, order in zip(motion.skeleton.names, motion.skeleton.orders, strict=True) if order
    }
    assert turning <= set(back.skeleton.names)
    assert len(back.skeleton) == len(motion.skeleton)
    assert degrees_apart(motion, back) < 1e-4
    np.testing.assert_allclose(back.root_positions, motion.root_positions, atol=1e-7)
    for name in turning:
        here, there = motion.skeleton.index(name), back.skeleton.index(name)
        assert back.skeleton.orders[there] == motion.skeleton.orders[here]
        offset = (
            motion.skeleton.offsets[here] if here else np.zeros(3)
        )  # the channels hold the root's position
        np.testing.assert_allclose(back.skeleton.offsets[there], offset, atol=1e-7)
    assert back.origin.warnings == ()


@pytest.mark.parametrize("order", ["", "X", "ZX", "ZXZ", "ZZX"])
def test_joints_of_other_orders_get_three_axes(tmp_path: Path, order: str) -> None:
    skeleton = Skeleton(("a", "b", "c"), np.array([-1, 0, 1]), np.ones((3, 3)), ("ZYX", order, ""))
    turns = np.tile(rotations.IDENTITY, (2, 3, 1))
    if order:
        turns[:, 1] = rotations.quaternion_from_euler(np.full(len(order), 0.3), order)
    motion = Motion(skeleton, 60.0, np.zeros((2, 3)), turns)
    bvh.write(motion, tmp_path / "clip.bvh")
    back = bvh.read(tmp_path / "clip.bvh", units="cm")
    assert sorted(back.skeleton.orders[1]) == ["X", "Y", "Z"]
    assert degrees_apart(motion, back) < 1e-4


LEG, ARM = ("UpLeg", "Leg", "Foot", "Toe"), ("Arm", "ForeArm", "Hand")


@pytest.fixture
def walker() -> Motion:
    """A person of made-up limbs, swinging; all rotation orders are in it."""
    limbs = [f"{side}{part}" for parts in (LEG, ARM) for side in ("Left", "Right") for part in parts]
    names = ("Hips", *limbs[:8], "Spine", "Neck", "Head", *limbs[8:])
    parents = np.array([-1, 0, 1, 2, 3, 0, 5, 6, 7, 0, 9, 10, 9, 12, 13, 9, 15, 16])
    offsets = np.zeros((18, 3))
    offsets[[2, 3, 6, 7], 1] = -0.42
    offsets[[9, 10, 11], 1] = (0.1, 0.5, 0.2)
    offsets[[1, 5], 0] = (0.1, -0.1)
    offsets[[4, 8], 2] = 0.15
    offsets[12:, 0] = (0.2, 0.3, 0.25, -0.2, -0.3, -0.25)
    orders = ["XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX"] * 3
    for joint in set(range(18)) - set(parents.tolist()):
        orders[joint] = ""
    skeleton = Skeleton(names, parents, offsets, tuple(orders))
    rng = np.random.default_rng(3)
    turns = rotations.quaternion_from_expmap(np.cumsum(rng.normal(scale=0.05, size=(40, 18, 3)), axis=0))
    turns[:, skeleton.is_end_site] = rotations.IDENTITY
    return Motion(skeleton, 120.0, rng.normal(size=(40, 3)), turns)


def test_units_are_found_again_and_frame_rate_kept(tmp_path: Path, walker: Motion) -> None:
    for unit in ("m", "cm", "mm", "inch", "cmu"):
        poise.write(walker, tmp_path / "clip.bvh", units=unit)
        back = poise.read(tmp_path / "clip.bvh")
        assert (back.origin.units, back.fps) == (unit, 120.0)
        np.testing.assert_allclose(back.skeleton.offsets, walker.skeleton.offsets, atol=1e-6)


def resized(walker: Motion, size: float) -> Motion:
    return Motion(walker.skeleton.scaled(size), walker.fps, size * walker.root_positions, walker.rotations)


@pytest.mark.parametrize("unit", METRES)
@pytest.mark.parametrize("size", [0.01, 0.1, 6.0, 60.0])
def test_bodies_of_any_size_come_back_in_their_unit(
    tmp_path: Path, walker: Motion, unit: str, size: float
) -> None:
    motion = resized(walker, size)
    poise.write(motion, tmp_path / "clip.bvh", units=unit)
    back = poise.read(tmp_path / "clip.bvh")
    assert (back.origin.units, back.origin.warnings) == (unit, ())
    np.testing.assert_allclose(joint_positions(back), joint_positions(motion), atol=1e-5)


def test_the_unit_is_stated_only_where_it_would_be_guessed_wrong(tmp_path: Path, walker: Motion) -> None:
    file = tmp_path / "clip.bvh"
    poise.write(walker, file)
    assert "\tOFFSET 0.000000 0.000000 0.000000\n" in file.read_text()
    poise.write(resized(walker, 0.1), file)
    assert "\tOFFSET 0e-2 0e0 0e0\n" in file.read_text()
    assert poise.read(file).origin.units_reason == "the exponents of the root's offset state it"
    assert poise.read(file, units="m").origin.units == "m"
    file.write_text(
        file.read_text().replace("0e-2 0e0 0e0", "0.0 0.0 0.0")
    )  # as other programs would write it again
    assert poise.read(file).origin.units == "dm"


def test_other_readers_take_a_stated_unit_for_zero(tmp_path: Path, walker: Motion) -> None:
    small = resized(walker, 0.1)
    bvh.write(small, tmp_path / "clip.bvh")
    theirs = pybvh.read_bvh_file(tmp_path / "clip.bvh", world_up="+y").node_positions()
    np.testing.assert_allclose(theirs / 100, joint_positions(small), atol=1e-6)
    other = bvh_by_others.Bvh((tmp_path / "clip.bvh").read_text())
    assert other.joint_offset("Hips") == (0.0, 0.0, 0.0)


def test_pybvh_reads_what_is_written(tmp_path: Path, walker: Motion) -> None:
    bvh.write(walker, tmp_path / "clip.bvh")
    theirs = pybvh.read_bvh_file(tmp_path / "clip.bvh", world_up="+y")
    np.testing.assert_allclose(theirs.root_pos, walker.root_positions * 100, atol=1e-5)
    turning = np.flatnonzero(~walker.skeleton.is_end_site)
    for place, joint in enumerate(turning):
        ours = rotations.quaternion_from_euler(theirs.joint_angles[:, place], walker.skeleton.orders[joint])
        assert np.degrees(rotations.geodesic_distance(ours, walker.rotations[:, joint]).max()) < 1e-4


def test_bvh_python_reads_what_is_written(tmp_path: Path, walker: Motion) -> None:
    bvh.write(walker, tmp_path / "clip.bvh")
    theirs = bvh_by_others.Bvh((tmp_path / "clip.bvh").read_text())
    assert (theirs.nframes, theirs.frame_time) == (40, pytest.approx(1 / 120))
    turning = [walker.skeleton.names[joint] for joint in np.flatnonzero(~walker.skeleton.is_end_site)]
    assert theirs.get_joints_names() == turning
    channels = theirs.frame_joint_channels(7, "Neck", ["Xrotation", "Yrotation"])
    assert np.isfinite(channels).all()
    assert theirs.joint_offset("Neck") == pytest.approx((0.0, 50.0, 0.0))


def test_a_real_clip_reads_back(tmp_path: Path) -> None:
    motion = poise.read(recording("bandai", "dataset-1_bow_active_001.bvh"))
    poise.write(motion, tmp_path / "clip.bvh")
    back = poise.read(tmp_path / "clip.bvh")
    assert back.skeleton.names == motion.skeleton.names
    assert degrees_apart(motion, back) < 1e-4


def test_curves_do_not_jump_by_full_turns(tmp_path: Path) -> None:
    turns = np.tile(rotations.IDENTITY, (60, 2, 1))
    turns[:, 0] = rotations.quaternion_from_euler(np.linspace(0, 4 * np.pi, 60)[:, None], "Y")
    skeleton = Skeleton(("a", "b"), np.array([-1, 0]), np.array([[0.0, 0, 0], [0, 1, 0]]), ("YXZ", ""))
    bvh.write(Motion(skeleton, 30.0, np.zeros((60, 3)), turns), tmp_path / "clip.bvh")
    rows = np.loadtxt((tmp_path / "clip.bvh").read_text().splitlines()[-60:])
    assert np.abs(np.diff(rows[:, 3])).max() < 30


@pytest.mark.parametrize("units", ["yard", 0.0, -1.0, float("nan")])
def test_wrong_units_are_refused(tmp_path: Path, walker: Motion, units: object) -> None:
    with pytest.raises(PoiseError):
        bvh.write(walker, tmp_path / "clip.bvh", units=units)
    assert list(tmp_path.iterdir()) == []


def test_a_motion_without_frames_is_refused(tmp_path: Path, walker: Motion) -> None:
    with pytest.raises(InvalidValueError, match="without frames"):
        bvh.write(walker[:0], tmp_path / "clip.bvh")


def test_pybvh_places_the_joints_where_we_do(tmp_path: Path, walker: Motion) -> None:
    bvh.write(walker, tmp_path / "clip.bvh")
    theirs = pybvh.read_bvh_file(tmp_path / "clip.bvh", world_up="+y").node_positions()
    ours, _ = world_transforms(walker.skeleton, walker.root_positions, walker.rotations)
    np.testing.assert_allclose(theirs / 100, ours, atol=1e-6)


@pytest.mark.parametrize("up", ["+Z", "-Z", "+X", "-Y"])
def test_files_with_another_axis_up_are_turned(tmp_path: Path, walker: Motion, up: str) -> None:
    turn = rotations.conjugate(rotations.quaternion_from_matrix(matrix_y_up_from(up)))
    turns = walker.rotations.copy()
    turns[:, 0] = rotations.multiply(turn, turns[:, 0])
    lying = walker.with_frames(rotations.rotate(turn, walker.root_positions), turns)
    bvh.write(lying, tmp_path / "clip.bvh")
    back = bvh.read(tmp_path / "clip.bvh", up=up.lower())
    assert back.origin.notes == (f"{up} is up: given",)
    np.testing.assert_allclose(back.root_positions, walker.root_positions, atol=1e-7)
    assert degrees_apart(walker, back) < 1e-4
    assert back.origin.warnings == ()


def test_a_trunk_along_another_axis_is_remarked(tmp_path: Path, walker: Motion) -> None:
    turns = np.tile(rotations.IDENTITY, (*walker.rotations.shape[:2], 1))
    turns[:, 0] = rotations.quaternion_from_euler(np.array([np.pi / 2]), "X")
    bvh.write(walker.with_frames(walker.root_positions, turns), tmp_path / "clip.bvh")
    (warning,) = bvh.read(tmp_path / "clip.bvh").origin.warnings
    assert "give up='+Z'" in warning
