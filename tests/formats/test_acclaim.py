"""Acclaim files: conventions against an independent computation, round trips, finding the ASF, and broken files."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import poise
from poise.errors import InvalidValueError, ParseError, PoiseError
from poise.formats import acclaim, bvh
from poise.formats.acclaim_rig import Bone, parse_rig, quaternion_from_channels
from poise.geometry import rotations
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.skeleton import Skeleton
from real_data import recording

CMU_UNIT = 0.0254 / 0.45

ARM_ASF = """# a hand-made arm
:version 1.10
:name ARM
:units
  mass 1.0
  length 0.45
  angle deg
:documentation
   begin nothing (here) is data
:root
   order TX TY TZ RX RY RZ
   axis XYZ
   position 0 0 0
   orientation 0 0 0
:bonedata
  begin
     id 1
     name clavicle
     direction 0.6 0.8 0
     length 2.5
     axis 0 0 0  XYZ
  end
  begin
     id 2
     name humerus
     direction 1 0 0
     length 5
     axis 180 -30 -90  XYZ
    dof rx ry rz
    limits (-60.0 90.0)
           (-90.0 90.0)
           (-90.0 90.0)
  end
  begin
     id 3
     name radius
     direction 0 -1 0
     length 4
     axis 20 40 60  ZXY
    dof rx
    limits (-10.0 170.0)
  end
:hierarchy
  begin
    root clavicle
    clavicle humerus
    humerus radius
  end
"""
ARM_AMC = """#!OML:ASF
:FULLY-SPECIFIED
:DEGREES
1
root 1 18 -3 10 20 30
humerus -42 18 -90
radius 75
2
root 1 18 -2 0 0 0
humerus 0 0 0
radius 0
"""


def write_pair(folder: Path, *, asf: str = ARM_ASF, amc: str = ARM_AMC, name: str = "07_01") -> Path:
    (folder / f"{name}.asf").write_text(asf)
    (folder / f"{name}.amc").write_text(amc)
    return folder / f"{name}.amc"


def about(axis: str, degrees: float) -> np.ndarray:
    """A 4x4 row-vector rotation, written out as in Lander's article, to be independent of Poise's rotations."""
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    m = np.eye(4)
    i, j = {"x": (1, 2), "y": (2, 0), "z": (0, 1)}[axis]
    m[i, i], m[i, j], m[j, i], m[j, j] = c, s, -s, c
    return m


def moved(x: float, y: float, z: float) -> np.ndarray:
    m = np.eye(4)
    m[3, :3] = x, y, z
    return m


def test_positions_match_an_independent_computation(tmp_path: Path) -> None:
    """Lander: with row vectors, L = C^-1 M C B, where B is the way from the parent's start to the bone's start."""
    motion = acclaim.read(write_pair(tmp_path))
    root = about("x", 10) @ about("y", 20) @ about("z", 30) @ moved(1, 18, -3)
    c_humerus = about("x", 180) @ about("y", -30) @ about("z", -90)
    m_humerus = about("x", -42) @ about("y", 18) @ about("z", -90)
    c_radius = about("z", 60) @ about("x", 20) @ about("y", 40)
    humerus = np.linalg.inv(c_humerus) @ m_humerus @ c_humerus @ moved(1.5, 2.0, 0) @ root
    radius = np.linalg.inv(c_radius) @ about("x", 75) @ c_radius @ moved(5, 0, 0) @ humerus
    hand = moved(0, -4, 0) @ radius
    expected = {"root": root, "clavicle": root, "humerus": humerus, "radius": radius, "radius_end": hand}
    positions, matrices = world_transforms(motion.skeleton, motion.root_positions, motion.rotations)
    for name, transform in expected.items():
        joint = motion.skeleton.index(name)
        np.testing.assert_allclose(positions[0, joint], transform[3, :3] * CMU_UNIT, atol=1e-12)
        np.testing.assert_allclose(matrices[0, joint], transform[:3, :3].T, atol=1e-12)


def test_what_was_decided_is_recorded(tmp_path: Path) -> None:
    motion = acclaim.read(write_pair(tmp_path))
    assert motion.skeleton.names == ("root", "clavicle", "humerus", "radius", "radius_end")
    assert motion.origin.units == "cmu"
    assert "0.45" in motion.origin.units_reason
    assert motion.origin.metres_per_unit == pytest.approx(CMU_UNIT)
    assert motion.fps == 120
    assert any("120 Hz" in warning for warning in motion.origin.warnings)
    assert motion.origin.frames_in_file == len(motion) == 2


def test_options_override(tmp_path: Path) -> None:
    motion = acclaim.read(write_pair(tmp_path), units="cm", fps=60)
    assert motion.fps == 60
    assert motion.origin.units_reason == "given"
    np.testing.assert_allclose(motion.root_positions[0], [0.01, 0.18, -0.03])


@pytest.mark.parametrize(("length", "metres"), [("2.54", 0.01), ("25.4", 0.001), ("0.0254", 1.0)])
def test_lengths_over_the_files_length_are_inches(tmp_path: Path, length: str, metres: float) -> None:
    asf = ARM_ASF.replace("length 0.45", f"length {length}")
    assert acclaim.read(write_pair(tmp_path, asf=asf)).origin.metres_per_unit == pytest.approx(metres)


def test_a_length_of_one_leaves_it_to_the_bodys_size(tmp_path: Path) -> None:
    asf = ARM_ASF.replace("length 0.45", "length 1.0")
    assert "units" in acclaim.read(write_pair(tmp_path, asf=asf)).origin.units_reason


def test_radians_and_a_root_in_another_order(tmp_path: Path) -> None:
    radians = ARM_ASF.replace("angle deg", "angle rad").replace("axis 180 -30 -90", "axis 0 0 0.5")
    radians = radians.replace("axis 20 40 60", "axis 0 0 0").replace("TX TY TZ RX RY RZ", "RZ RX RY TZ TY TX")
    amc = ":FULLY-SPECIFIED\n:RADIANS\n1\nroot 0.3 0.1 0.2 -3 18 1\nhumerus 0 0 0\nradius 0.5\n"
    motion = acclaim.read(write_pair(tmp_path, asf=radians, amc=amc))
    np.testing.assert_allclose(motion.root_positions[0], np.array([1, 18, -3]) * CMU_UNIT)
    expected = rotations.quaternion_from_euler(np.array([0.2, 0.1, 0.3]), "YXZ")
    np.testing.assert_allclose(rotations.geodesic_distance(motion.rotations[0, 0], expected), 0, atol=1e-12)


def test_a_preset_root_turns_and_moves_everything(tmp_path: Path) -> None:
    asf = ARM_ASF.replace("position 0 0 0", "position 1 2 3").replace(
        "orientation 0 0 0", "orientation 0 90 0"
    )
    motion = acclaim.read(write_pair(tmp_path, asf=asf))
    np.testing.assert_allclose(motion.root_positions[1], np.array([2, 20, 1]) * CMU_UNIT)
    quarter = rotations.quaternion_from_euler(np.array([np.pi / 2]), "Y")
    np.testing.assert_allclose(rotations.geodesic_distance(motion.rotations[1, 0], quarter), 0, atol=1e-12)


def test_an_asf_alone_is_a_rest_pose(tmp_path: Path) -> None:
    motion = acclaim.read(write_pair(tmp_path).with_suffix(".asf"))
    assert len(motion) == 1
    np.testing.assert_allclose(motion.rotations[0], np.tile(rotations.IDENTITY, (5, 1)), atol=1e-12)


@pytest.mark.parametrize(
    ("joint", "axis", "channels"),
    [
        ("Hips", (0, 0, 0), (2.02549, 1.77071, -4.33872)),
        ("LowerBack", (0, 0, 0), (16.0608, -0.380636, 1.35189)),
        ("Spine1", (0, 0, 0), (-7.21419, -0.169571, -0.765959)),
        ("RightArm", (180, 30, 90), (-42.619, 18.2084, -90.2387)),
    ],
)
def test_published_lines_of_a_cmu_amc_match_its_bvh_conversion(
    joint: str, axis: tuple[float, ...], channels: tuple[float, ...]
) -> None:
    """Frame 2 of CMU's 09_01.amc, as often printed to explain the format, and the same frame converted to BVH."""
    conversion = bvh.read(recording("cmu", "09_01.bvh"), keep_first=True)
    tokens = ("rx", "ry", "rz")
    bone = Bone(joint, np.zeros(3), quaternion_from_channels(np.radians(axis), tokens), tokens, ())
    turned = bone.rotations(np.radians(channels))
    expected = conversion.rotations[2, conversion.skeleton.index(joint)]
    assert (
        np.degrees(rotations.geodesic_distance(turned, expected)) < 2e-4
    )  # the conversion has four decimals


# --- limits --------------------------------------------------------------------------------------------------------


@given(st.tuples(*[st.floats(0, 1)] * 3))
def test_limits_hold_every_rotation_the_file_allows(fractions: tuple[float, float, float]) -> None:
    rig = parse_rig(ARM_ASF.splitlines(), path=Path("arm.asf"))
    bone = rig.bones["humerus"]
    low, high = np.array(bone.limits).T
    turned = bone.rotations(low + np.array(fractions) * (high - low))
    limits = acclaim.skeleton_from_rig(rig).limits
    assert limits is not None
    around = rotations.expmap_from_quaternion(
        rotations.multiply(rotations.conjugate(limits.references[2]), turned)
    )
    slack = 0.05  # radians between the points of the grid
    assert np.all(around >= limits.lower[2] - slack)
    assert np.all(around <= limits.upper[2] + slack)


def test_limits_of_rigid_and_free_joints(tmp_path: Path) -> None:
    limits = acclaim.read(write_pair(tmp_path)).skeleton.limits
    assert limits is not None
    np.testing.assert_allclose(limits.upper[0], np.pi)
    np.testing.assert_allclose(limits.upper[1], 0)
    np.testing.assert_allclose(limits.upper[4], 0)
    assert np.linalg.norm(limits.upper[3] - limits.lower[3]) == pytest.approx(np.pi, rel=1e-6)


# --- writing -------------------------------------------------------------------------------------------------------


@st.composite
def motions(draw: st.DrawFn) -> Motion:
    """Skeletons with several children at different and at equal offsets, with and without end sites, any rotations."""
    count = draw(st.integers(2, 8))
    parents = [-1] + [draw(st.integers(0, joint - 1)) for joint in range(1, count)]
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    offsets = generator.normal(scale=0.3, size=(count, 3)) * generator.choice(
        [0.0, 1.0], size=(count, 1), p=[0.2, 0.8]
    )
    orders = tuple(
        "XYZ" if joint in parents or joint == 0 else draw(st.sampled_from(["", "ZXY"]))
        for joint in range(count)
    )
    names = tuple(["Hips", "my arm", "end", "42", "a_to_b", "root", "Foot", "Toe#2", "b"][:count])
    frames = draw(st.integers(1, 3))
    turned = rotations.quaternion_from_expmap(generator.normal(scale=2.0, size=(frames, count, 3)))
    turned[:, [not order for order in orders]] = rotations.IDENTITY
    skeleton = Skeleton(names, np.array(parents), offsets, orders)
    return Motion(skeleton, 100.0, generator.normal(scale=3.0, size=(frames, 3)), turned)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(motions())
def test_a_written_motion_reads_back(tmp_path: Path, motion: Motion) -> None:
    acclaim.write(motion, tmp_path / "any.amc")
    again = acclaim.read(tmp_path / "any.amc")
    assert again.fps == motion.fps
    before, _ = world_transforms(motion.skeleton, motion.root_positions, motion.rotations)
    after, _ = world_transforms(again.skeleton, again.root_positions, again.rotations)
    turning = [joint for joint, order in enumerate(motion.skeleton.orders) if order]
    names = motion.skeleton.names
    places = [again.skeleton.index(names[joint]) for joint in turning]
    np.testing.assert_allclose(after[:, places], before[:, turning], atol=1e-6)
    apart = rotations.geodesic_distance(again.rotations[:, places], motion.rotations[:, turning])
    assert np.degrees(apart).max() < 1e-4
    parents = [again.skeleton.names[parent] for parent in again.skeleton.parents[places[1:]]]
    assert parents == [names[motion.skeleton.parents[joint]] for joint in turning[1:]]
    assert again.skeleton.limits is None


def sorted_ends(motion: Motion) -> np.ndarray:
    positions, _ = world_transforms(motion.skeleton, motion.root_positions, motion.rotations)
    ends = positions[0, motion.skeleton.is_end_site]
    return ends[np.lexsort(ends.round(5).T)]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(motions())
def test_end_sites_survive(tmp_path: Path, motion: Motion) -> None:
    """A second round trip changes nothing: after the first, every leaf bone has its end site."""
    acclaim.write(motion, tmp_path / "one.amc")
    once = acclaim.read(tmp_path / "one.amc")
    acclaim.write(once, tmp_path / "two.amc")
    twice = acclaim.read(tmp_path / "two.amc")
    assert twice.skeleton.names == once.skeleton.names
    np.testing.assert_array_equal(twice.skeleton.parents, once.skeleton.parents)
    np.testing.assert_allclose(sorted_ends(twice), sorted_ends(once), atol=1e-6)


def test_children_at_different_places_keep_their_parents(tmp_path: Path) -> None:
    names = (
        "Hips",
        "LeftUpLeg",
        "LeftFoot",
        "LeftFoot_end",
        "RightUpLeg",
        "RightUpLeg_end",
        "Spine",
        "Spine_end",
    )
    parents = np.array([-1, 0, 1, 2, 0, 4, 0, 6])
    offsets = np.arange(24.0).reshape(8, 3) / 10
    skeleton = Skeleton(names, parents, offsets)
    motion = Motion(skeleton, 30.0, np.zeros((1, 3)), np.tile(rotations.IDENTITY, (1, 8, 1)))
    poise.write(motion, tmp_path / "hips.asf")
    again = poise.read(tmp_path / "hips.amc")
    assert isinstance(again, Motion)
    assert again.skeleton.names == names
    np.testing.assert_array_equal(again.skeleton.parents, parents)
    np.testing.assert_allclose(again.skeleton.offsets[1:], offsets[1:], atol=1e-9)


def test_a_real_motion_reads_back(tmp_path: Path) -> None:
    motion = bvh.read(recording("cmu", "35_01.bvh"))
    acclaim.write(motion, tmp_path / "35_01.amc")
    again = acclaim.read(tmp_path / "35_01.amc")
    assert again.skeleton.names == motion.skeleton.names
    np.testing.assert_array_equal(again.skeleton.parents, motion.skeleton.parents)
    before, _ = world_transforms(motion.skeleton, motion.root_positions, motion.rotations)
    after, _ = world_transforms(again.skeleton, again.root_positions, again.rotations)
    np.testing.assert_allclose(after, before, atol=1e-6)
    assert np.degrees(rotations.geodesic_distance(again.rotations, motion.rotations)).max() < 1e-4
    assert again.skeleton.height == pytest.approx(motion.skeleton.height)


@pytest.mark.usefixtures("unchecked_shapes")
def test_only_motions_can_be_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match="Markers"):
        poise.write(Markers(("A",), np.zeros((1, 1, 3)), 100.0), tmp_path / "a.amc")
    alone = Skeleton(("root",), np.array([-1]), np.zeros((1, 3)))
    with pytest.raises(InvalidValueError, match="joint below"):
        acclaim.write(
            Motion(alone, 1.0, np.zeros((1, 3)), rotations.IDENTITY[None, None]), tmp_path / "a.amc"
        )


# --- finding the skeleton ------------------------------------------------------------------------------------------


def test_the_asf_of_the_subject_is_found(tmp_path: Path) -> None:
    write_pair(tmp_path).with_suffix(".asf").rename(tmp_path / "07.ASF")
    (tmp_path / "08.asf").write_text("not this one")
    assert len(acclaim.read(tmp_path / "07_01.amc")) == 2


def test_the_only_asf_of_the_folder_is_found(tmp_path: Path) -> None:
    write_pair(tmp_path).with_suffix(".asf").rename(tmp_path / "body.asf")
    assert len(acclaim.read(tmp_path / "07_01.amc")) == 2


def test_an_asf_elsewhere_is_given(tmp_path: Path) -> None:
    amc = write_pair(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    amc.with_suffix(".asf").rename(elsewhere / "a.asf")
    assert len(poise.read(amc, asf=elsewhere / "a.asf")) == 2
    with pytest.raises(PoiseError, match=r"asf="):
        acclaim.read(amc)


# --- broken files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (":bonedata", ":bones", ":bonedata"),
        ("length 0.45", "length -1", r":6: length must be above zero"),
        ("length 0.45", "length 1e-320", r":6: length must be above zero"),
        ("angle deg", "angle turns", r":7: angle must be deg or rad"),
        ("direction 1 0 0", "direction 1 nan 0", r":26: direction must be finite"),
        ("direction 1 0 0", "direction 1 0", r":26: direction needs three numbers"),
        ("name radius", "name humerus", "defined twice"),
        ("dof rx ry rz", "dof rx ry rq", r":29: unknown freedom 'rq'"),
        ("dof rx ry rz", "dof rx ry", r":30: 2 freedoms need 4 limits"),
        ("-90  XYZ", "-90  XYY", "order must be made of x, y and z"),
        ("clavicle humerus", "clavicle femur", "'femur' is not in :bonedata"),
        ("humerus radius", "humerus radius clavicle", "two parents"),
        ("    humerus radius\n", "", "not attached to the root: radius"),
        ("  end\n:hierarchy", ":hierarchy", "no end"),
        ("name clavicle", "", "no name"),
        ("# a hand-made arm", "garbage", r":1: expected a section"),
    ],
)
def test_a_broken_asf_names_the_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in ARM_ASF
    with pytest.raises(ParseError, match=message):
        acclaim.read(write_pair(tmp_path, asf=ARM_ASF.replace(old, new, 1)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "humerus -42 18 -90",
            "humerus -42 18",
            r":6: bone 'humerus' has 2 channels; the ASF says 3 \(rx ry rz\)",
        ),
        ("humerus -42 18 -90", "humerus -42 18 x", r":6: channels must be numbers; got 'x'"),
        ("humerus -42 18 -90", "humerus -42 18 inf", r":6: channels must be finite"),
        ("humerus -42", "femur -42", r":6: bone 'femur' is not in the ASF"),
        ("radius 0\n", "", "frame 2 ends here without radius"),
        ("radius 0\n", "radius 0\nradius 0\n", "'radius' is given 3 times in 2 frames"),
        ("1\nroot 1", "root 1", "expected the number of a frame"),
        (ARM_AMC[ARM_AMC.index("1\nroot") :], "", "no frames"),
    ],
)
def test_a_broken_amc_names_the_place(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in ARM_AMC
    with pytest.raises(ParseError, match=message):
        acclaim.read(write_pair(tmp_path, amc=ARM_AMC.replace(old, new, 1)))


def test_a_bone_without_values_stays_at_rest(tmp_path: Path) -> None:
    amc = ARM_AMC.replace("radius 75\n", "").replace("radius 0\n", "")
    motion = acclaim.read(write_pair(tmp_path, amc=amc))
    assert any("no values for radius" in warning for warning in motion.origin.warnings)


def test_bones_that_stretch_are_reported(tmp_path: Path) -> None:
    asf = ARM_ASF.replace("dof rx\n", "dof l rx\n").replace("(-10.0 170.0)", "(0 9) (-10.0 170.0)")
    amc = ARM_AMC.replace("radius 75", "radius 1 75").replace("radius 0", "radius 1 0")
    motion = acclaim.read(write_pair(tmp_path, asf=asf, amc=amc))
    assert any("kept rigid: radius" in warning for warning in motion.origin.warnings)
    plain = acclaim.read(write_pair(tmp_path, name="plain"))
    np.testing.assert_allclose(motion.rotations, plain.rotations)
