"""BVH as it is found: every variation that real exporters write is read, with what was decided told on the origin."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import poise
from bvh_text import bvh_text, saved
from poise.formats import bvh
from poise.geometry import rotations
from poise.motion import Motion

ROW = "1 2 3 10 20 30 40 50 60"
ROW_2 = "4 5 6 -10 -20 -30 -40 -50 -60"


def read(folder: Path, text: str | bytes, **options: object) -> Motion:
    return bvh.read(saved(folder, text), **{"units": "cm", **options})


@pytest.fixture
def plain(tmp_path: Path) -> Motion:
    return read(tmp_path, bvh_text(ROW, ROW_2))


def assert_same_frames(one: Motion, other: Motion) -> None:
    np.testing.assert_array_equal(one.root_positions, other.root_positions)
    np.testing.assert_array_equal(one.rotations, other.rotations)
    assert one.skeleton == other.skeleton


def test_a_plain_file(plain: Motion) -> None:
    assert plain.skeleton.names == ("Hips", "Arm", "Arm_end")
    assert plain.skeleton.parents.tolist() == [-1, 0, 1]
    assert plain.skeleton.orders == ("ZYX", "ZXY", "")
    assert plain.fps == 30.0
    np.testing.assert_allclose(plain.skeleton.offsets, [[0, 0, 0], [0, 1, 0], [0, 0.7, 0]])
    np.testing.assert_allclose(plain.root_positions, [[0.01, 0.02, 0.03], [0.04, 0.05, 0.06]])
    expected = rotations.quaternion_from_euler(np.radians([40.0, 50.0, 60.0]), "ZXY")
    np.testing.assert_allclose(plain.rotations[0, 1], expected)
    assert plain.origin.warnings == ()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda text: text.replace("\n", "\r\n"), id="CRLF"),
        pytest.param(lambda text: text.replace("\n", "\r"), id="CR"),
        pytest.param(lambda text: "\ufeff" + text, id="byte-order mark"),
        pytest.param(
            lambda text: text.lower().replace("hips", "Hips").replace("arm", "Arm"), id="lower case"
        ),
        pytest.param(lambda text: text.replace("JOINT", "Joint").replace("ROOT", "Root"), id="mixed case"),
        pytest.param(lambda text: text.replace("End Site", "END SITE"), id="upper-case end site"),
        pytest.param(lambda text: text.replace(" ", "\t"), id="tabs"),
        pytest.param(lambda text: text.replace(" ", "   ").replace("\n", "  \n"), id="spaces"),
        pytest.param(lambda text: text.replace("\n", "\n\n"), id="blank lines"),
        pytest.param(lambda text: text.rstrip("\n"), id="no final newline"),
        pytest.param(lambda text: text + "\n \n\t\n", id="blank end"),
        pytest.param(lambda text: text.replace("\n{", " {"), id="brace on the line"),
        pytest.param(lambda text: text.replace("Frames:", "Frames :"), id="spaced colon"),
        pytest.param(lambda text: text.replace(" 30 40", " 30\n40"), id="wrapped rows"),
        pytest.param(lambda text: text.replace("30 40 50 60", "3e1 4.0E+01 500e-1 +60."), id="exponents"),
        pytest.param(
            lambda text: text.replace("30 40", "0.3000000000000000000000000e2 40"), id="long numbers"
        ),
        pytest.param(lambda text: text.replace("60\n4 5", "60 4 5"), id="rows on one line"),
        pytest.param(
            lambda text: text.replace(" 2 3 10 20", " 2 3\n10 20").replace("60\n4 5 6", "60 4\n5 6"),
            id="lines broken anywhere",
        ),
    ],
)
def test_variations_of_the_same_file_read_the_same(tmp_path: Path, plain: Motion, change: object) -> None:
    text = bvh_text(ROW, ROW_2)
    changed = change(text)  # type: ignore[operator]
    assert changed != text
    varied = read(tmp_path, changed)
    assert_same_frames(varied, plain)
    assert varied.origin.warnings == ()


def test_latin_1_and_utf_8_names(tmp_path: Path) -> None:
    text = bvh_text(ROW).replace("Arm", "Hüfte")
    for encoding in ("utf-8", "latin-1"):
        assert read(tmp_path, text.encode(encoding)).skeleton.names[1] == "Hüfte"


def test_names_with_spaces(tmp_path: Path) -> None:
    assert read(tmp_path, bvh_text(ROW).replace("Arm", "Left Arm")).skeleton.names[1] == "Left Arm"


@pytest.mark.parametrize("order", ["XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX", "ZXZ", "YXY"])
def test_every_rotation_order_is_the_joints_own(tmp_path: Path, order: str) -> None:
    arm = "CHANNELS 3 " + " ".join(f"{axis}rotation" for axis in order)
    motion = read(tmp_path, bvh_text(ROW, arm=arm))
    expected = rotations.quaternion_from_euler(np.radians([40.0, 50.0, 60.0]), order)
    np.testing.assert_allclose(motion.rotations[0, 1], expected)
    np.testing.assert_allclose(
        motion.rotations[0, 0], rotations.quaternion_from_euler(np.radians([10.0, 20, 30]), "ZYX")
    )


@pytest.mark.parametrize(
    ("arm", "angles", "order"),
    [("CHANNELS 1 Yrotation", "40", "Y"), ("CHANNELS 2 Xrotation Zrotation", "40 50", "XZ")],
)
def test_joints_with_fewer_rotations(tmp_path: Path, arm: str, angles: str, order: str) -> None:
    motion = read(tmp_path, bvh_text(f"1 2 3 10 20 30 {angles}", arm=arm))
    expected = rotations.quaternion_from_euler(np.radians([float(a) for a in angles.split()]), order)
    np.testing.assert_allclose(motion.rotations[0, 1], expected)
    assert motion.skeleton.orders[1] == order


@pytest.mark.parametrize("arm", ["CHANNELS 0", ""])
def test_joints_without_channels_stay_still(tmp_path: Path, arm: str) -> None:
    motion = read(tmp_path, bvh_text("1 2 3 10 20 30", arm=arm))
    np.testing.assert_array_equal(motion.rotations[0, 1], rotations.IDENTITY)


def test_channels_in_any_sequence(tmp_path: Path, plain: Motion) -> None:
    root = "CHANNELS 6 Zrotation Yposition Yrotation Xposition Xrotation Zposition"
    assert_same_frames(
        read(tmp_path, bvh_text("10 2 20 1 30 3 40 50 60", "-10 5 -20 4 -30 6 -40 -50 -60", root=root)), plain
    )


SIX = "CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation"


def test_constant_positions_of_a_joint_replace_its_offset(tmp_path: Path) -> None:
    text = bvh_text("1 2 3 10 20 30 5 90 7 40 50 60", "9 9 9 10 20 30 5 90 7 40 50 60", arm=SIX)
    motion = read(tmp_path, text.replace("JOINT Arm", "JOINT Leg { OFFSET 0 -90 0 } JOINT Arm"))
    np.testing.assert_allclose(motion.skeleton.offsets[2], [0.05, 0.9, 0.07])
    assert motion.origin.warnings == ()


def test_moving_positions_of_a_joint_become_their_mean_with_a_warning(tmp_path: Path) -> None:
    text = bvh_text("1 2 3 10 20 30 4 90 7 40 50 60", "9 9 9 10 20 30 6 90 7 40 50 60", arm=SIX)
    motion = read(tmp_path, text.replace("JOINT Arm", "JOINT Leg { OFFSET 0 -90 0 } JOINT Arm"))
    np.testing.assert_allclose(motion.skeleton.offsets[2], [0.05, 0.9, 0.07])
    (warning,) = motion.origin.warnings
    assert "by up to 2 units" in warning
    assert warning.endswith("mean offsets: Arm")


def test_scale_channels_are_passed_over_with_a_warning(tmp_path: Path) -> None:
    arm = "CHANNELS 4 Xscale Zrotation Xrotation Yrotation"
    motion = read(tmp_path, bvh_text("1 2 3 10 20 30 1 40 50 60", arm=arm))
    np.testing.assert_allclose(
        motion.rotations[0, 1], rotations.quaternion_from_euler(np.radians([40.0, 50, 60]), "ZXY")
    )
    assert "scale" in motion.origin.warnings[0]


STATIC_ROOT = """HIERARCHY
ROOT Reference
{{
  OFFSET 0 0 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
  JOINT Hips
  {{
    OFFSET 3 90 -400
    CHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation
    JOINT Leg
    {{
      OFFSET 0 -90 0
      CHANNELS 3 Zrotation Xrotation Yrotation
    }}
    JOINT Spine
    {{
      OFFSET 0 50 0
      CHANNELS 3 Zrotation Xrotation Yrotation
    }}
  }}
}}
MOTION
Frames: 2
Frame Time: 0.01
{0} 1 95 2 10 20 30 0 0 0 0 0 0
{1} 1 96 9 10 20 40 0 0 0 0 0 0
"""


def test_a_static_root_is_merged_into_the_hips(tmp_path: Path) -> None:
    motion = read(tmp_path, STATIC_ROOT.format("0 0 0 0 0 90", "0 0 0 0 0 90"))
    assert motion.skeleton.names[0] == "Hips"
    quarter = rotations.quaternion_from_expmap(np.array([0.0, np.pi / 2, 0.0]))
    hips = rotations.quaternion_from_euler(np.radians([10.0, 20.0, 30.0]), "ZXY")
    np.testing.assert_allclose(motion.rotations[0, 0], rotations.multiply(quarter, hips), atol=1e-12)
    np.testing.assert_allclose(motion.root_positions, [[0.02, 0.95, -0.01], [0.09, 0.96, -0.01]], atol=1e-12)
    assert "Reference" in motion.origin.warnings[0]


def test_a_moving_root_above_moving_hips_is_merged_too(tmp_path: Path) -> None:
    motion = read(tmp_path, STATIC_ROOT.format("0 0 0 0 0 0", "100 0 0 0 0 0"))
    assert motion.skeleton.names[0] == "Hips"
    np.testing.assert_allclose(motion.root_positions, [[0.01, 0.95, 0.02], [1.01, 0.96, 0.09]])


def test_a_moving_root_above_still_hips_stays(tmp_path: Path) -> None:
    text = STATIC_ROOT.format("0 0 0 0 0 0", "100 0 0 0 0 0").replace("1 96 9", "1 95 2")
    motion = read(tmp_path, text)
    assert motion.skeleton.names[0] == "Reference"
    np.testing.assert_allclose(motion.skeleton.offsets[1], [0.01, 0.95, 0.02])


def test_a_chain_that_stands_still_away_from_the_origin_is_left_alone(tmp_path: Path) -> None:
    motion = read(tmp_path, bvh_text("1 90 3 10 20 30 0 100 0 40 50 60", arm=SIX))
    assert motion.skeleton.names[0] == "Hips"


def test_joint_names_that_come_twice_are_numbered(tmp_path: Path) -> None:
    text = bvh_text(ROW).replace("JOINT Arm", "JOINT Arm { OFFSET 1 0 0 } JOINT Arm")
    motion = read(tmp_path, text)
    assert motion.skeleton.names == ("Hips", "Arm", "Arm_2", "Arm_2_end")
    assert "'Arm' at line 6 is now 'Arm_2'" in motion.origin.warnings[0]


def test_end_sites_do_not_take_a_joints_name(tmp_path: Path) -> None:
    text = bvh_text(ROW).replace("}\n}\nMOTION", "}\nJOINT Arm_end { OFFSET 0 0 1 } }\nMOTION")
    motion = read(tmp_path, text)
    assert motion.skeleton.names == ("Hips", "Arm", "Arm_end_2", "Arm_end")
    assert motion.origin.warnings == ()


def test_zero_length_end_sites(tmp_path: Path) -> None:
    motion = read(tmp_path, bvh_text(ROW).replace("OFFSET 0 70 0", "OFFSET 0 0 0"))
    assert motion.skeleton.is_end_site.tolist() == [False, False, True]


@pytest.mark.parametrize("declared", [0, 1, 3, 999_999_999])
def test_frames_declared_and_present_disagree(tmp_path: Path, declared: int) -> None:
    motion = read(tmp_path, bvh_text(ROW, ROW_2, frames=declared))
    assert len(motion) == 2
    assert motion.origin.warnings == (f"the file declares {declared} frames and holds 2; all 2 were read",)


def test_more_rows_than_one_block_holds(tmp_path: Path) -> None:
    count = 30_000  # over two megabytes
    rows = [f"{i}.25 2 3 {i % 360 - 180}.125 20.000001 30 40.123456 50 60 " for i in range(count)]
    motion = read(tmp_path, bvh_text(*rows, frames=10))
    np.testing.assert_allclose(motion.root_positions[:, 0], (np.arange(count) + 0.25) / 100)
    np.testing.assert_array_equal(motion.rotations[0], motion.rotations[360])
    assert f"holds {count}" in motion.origin.warnings[0]


@pytest.mark.parametrize(
    ("printed", "rate"),
    [(".0083333", 120), ("0.008333", 120), ("0.00833", 120), ("0.033333", 30), ("0.0416667", 24), ("0.5", 2)],
)
def test_frame_times_cut_short_are_whole_rates(tmp_path: Path, printed: str, rate: int) -> None:
    assert read(tmp_path, bvh_text(ROW, frame_time=printed)).fps == rate


def test_other_frame_times_are_kept(tmp_path: Path) -> None:
    assert read(tmp_path, bvh_text(ROW, frame_time="0.0333667")).fps == pytest.approx(29.97, abs=0.001)


def test_read_finds_bvh_by_content(tmp_path: Path) -> None:
    motion = poise.read(saved(tmp_path, bvh_text(ROW), "clip.trc"))
    assert motion.origin.format == "bvh"
    assert "extension .trc" in motion.origin.warnings[-1]


def test_long_files_take_less_than_four_times_their_numbers(tmp_path: Path) -> None:
    rows = ["1.2345 2.3456 3.4567 " + " ".join(["10.1234"] * 6)] * 100_000
    file = saved(tmp_path, bvh_text(*rows))
    bvh.read(
        saved(tmp_path, bvh_text(ROW), "short.bvh")
    )  # what importing and compiling takes is not the file's
    tracemalloc.start()
    motion = bvh.read(file)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * len(motion) * 9 * 8
