"""Files of other programs through their own libraries: FBX, USD and AMASS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import poise
from fbx_text import SQUARE, fbx_text
from poise.errors import InvalidValueError, ParseError, PoiseError
from poise.formats.gltf.meshes import read_mesh
from poise.formats.gltf.writing import glb_with
from poise.formats.rigs import hung_as_in_metarig, limbs_joined
from poise.geometry import rotations
from poise.motion.motion import Motion, Origin
from poise.motion.world import joint_positions, joint_transforms
from poise.performer import act
from poise.skeleton.skeleton import Pose, Skeleton

NAMES = ("mixamorig:Hips", "Spine.001", "Head", "Spine 001", "end")


def _motion(size: float = 1.0) -> Motion:
    offsets = size * np.array([[0.1, 0.9, 0.2], [0, 0.4, 0], [0, 0.3, 0.05], [0.2, -0.1, 0], [0.3, 0, 0]])
    skeleton = Skeleton(NAMES, np.array([-1, 0, 1, 0, 3]), offsets, ("ZXY", "ZYX", "XYZ", "ZYX", ""))
    generator = np.random.default_rng(1)
    turned = rotations.quaternion_from_expmap(generator.normal(scale=0.5, size=(7, 5, 3)))
    turned[:, 4] = rotations.IDENTITY
    return Motion(skeleton, 48.0, size * generator.normal(size=(7, 3)), turned)


# --- USD -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("extension", "size", "units"), [(".usda", 1.0, "m"), (".usdz", 0.01, "m"), (".usdc", 30.0, "cm")]
)
def test_a_motion_comes_back_from_usd(tmp_path: Path, extension: str, size: float, units: str) -> None:
    pytest.importorskip("pxr")
    motion = _motion(size)
    file = poise.write(motion, tmp_path / f"clip{extension}", units=units)
    found = poise.read(file)
    assert isinstance(found, Motion)
    assert found.skeleton.names == NAMES
    assert found.skeleton.orders == motion.skeleton.orders
    assert found.fps == motion.fps
    assert np.abs(joint_positions(found) - joint_positions(motion)).max() < 1e-5 * size
    assert found.origin.metres_per_unit == pytest.approx(0.01 if units == "cm" else 1.0)


def test_usd_holds_a_mesh_that_openusd_skins_as_poise_does(tmp_path: Path) -> None:
    pytest.importorskip("pxr")
    from pxr import Gf, Usd, UsdGeom, UsdSkel

    motion = replace(_motion(), origin=Origin(credits=("A database", "CC0")))
    stage = Usd.Stage.Open(str(poise.write(motion, tmp_path / "clip.usdc")))
    assert stage.GetRootLayer().comment == "A database; CC0"
    root = UsdSkel.Root(stage.GetPrimAtPath("/Character"))
    mesh = UsdGeom.Mesh(stage.GetPrimAtPath("/Character/Mannequin"))
    assert UsdSkel.BakeSkinning(root, Gf.Interval(0.0, 6.0))
    points = np.array(mesh.GetPointsAttr().Get(5.0))
    spread = np.linalg.norm(points[:, None] - joint_positions(motion)[5], axis=-1).min(axis=1)
    assert spread.max() < 0.4  # every vertex is near a joint where Poise has it in that frame


def _dressed_usd(file: Path, motion: Motion) -> Path:
    """A stage with two textured triangles, joints that the mesh numbers itself, and a colour for one face."""
    from PIL import Image
    from pxr import Gf, Sdf, Usd, UsdGeom, UsdShade, UsdSkel

    Image.new("RGB", (2, 2), (0, 255, 0)).save(file.with_name("green.png"))
    stage = Usd.Stage.Open(str(poise.write(motion, file, mannequin=False, units="cm")))
    mesh = UsdGeom.Mesh.Define(stage, "/Character/Coat")
    mesh.CreatePointsAttr([(0, 0, 0), (10, 0, 0), (10, 10, 0), (0, 10, 0)])
    mesh.CreateFaceVertexCountsAttr([3, 3])
    mesh.CreateFaceVertexIndicesAttr([0, 1, 2, 0, 2, 3])
    mesh.CreateOrientationAttr("leftHanded")
    places = UsdGeom.PrimvarsAPI(mesh).CreatePrimvar("st", Sdf.ValueTypeNames.TexCoord2fArray, "vertex")
    places.Set([(0, 0), (1, 0), (1, 1), (0, 1)])
    binding = UsdSkel.BindingAPI.Apply(mesh.GetPrim())
    binding.CreateJointsAttr([UsdSkel.Skeleton.Get(stage, "/Character/Skeleton").GetJointsAttr().Get()[2]])
    binding.CreateJointIndicesPrimvar(False, 1).Set([0, 0, 0, 0])
    binding.CreateJointWeightsPrimvar(False, 1).Set([1.0, 1.0, 1.0, 1.0])
    binding.CreateSkeletonRel().SetTargets(["/Character/Skeleton"])
    binding.CreateGeomBindTransformAttr(Gf.Matrix4d().SetTranslate((0, 100, 0)))
    for name, source in (("Red", (1.0, 0.0, 0.0)), ("Green", "green.png")):
        material = UsdShade.Material.Define(stage, f"/Character/{name}")
        shader = UsdShade.Shader.Define(stage, f"/Character/{name}/Surface")
        shader.CreateIdAttr("UsdPreviewSurface")
        given = shader.CreateInput("diffuseColor", Sdf.ValueTypeNames.Color3f)
        material.CreateSurfaceOutput().ConnectToSource(shader.ConnectableAPI(), "surface")
        if isinstance(source, str):
            picture = UsdShade.Shader.Define(stage, f"/Character/{name}/Picture")
            picture.CreateIdAttr("UsdUVTexture")
            picture.CreateInput("file", Sdf.ValueTypeNames.Asset).Set(source)
            given.ConnectToSource(picture.ConnectableAPI(), "rgb")
            UsdShade.MaterialBindingAPI.Apply(mesh.GetPrim()).Bind(material)
        else:
            given.Set(Gf.Vec3f(source))
            subset = UsdShade.MaterialBindingAPI(mesh).CreateMaterialBindSubset("One", [0])
            UsdShade.MaterialBindingAPI.Apply(subset.GetPrim()).Bind(material)
    stage.GetRootLayer().Save()
    return file


@pytest.mark.slow
def test_a_usd_characters_mesh_moves_with_its_joints(tmp_path: Path) -> None:
    pytest.importorskip("pxr")
    motion = _motion()
    file = _dressed_usd(tmp_path / "hero.usda", motion)
    found = poise.read(file)
    assert isinstance(found, Motion)
    assert found.origin.character == str(file)
    mesh = read_mesh(file)
    assert {tuple(np.round(colour, 3)) for colour in mesh.colours} == {(1.0, 0.0, 0.0), (0.0, 1.0, 0.0)}
    head = motion.skeleton.names.index("Head")
    bound = np.array([[0, 1.0, 0], [0.1, 1.0, 0], [0.1, 1.1, 0], [0, 1.1, 0]])
    rest = motion.skeleton.offsets[[0, 1, 2]].sum(axis=0)
    for dressed in (found, poise.read(poise.write(found, tmp_path / "hero.glb"))):
        assert isinstance(dressed, Motion)
        own = read_mesh(dressed.origin.character)
        places, turns = joint_transforms(dressed)
        expected = (bound - rest) @ joint_transforms(motion)[1][5, head].T + joint_positions(motion)[5, head]
        moved, normals = own.posed(places[5], turns[5])
        distances = np.linalg.norm(moved[:, None] - expected, axis=-1).min(axis=1)
        assert distances.max() < 1e-5
        facing = joint_transforms(motion)[1][5, head] @ (0.0, 0.0, -1.0)  # as left-handed faces look
        shown = normals[np.unique(own.triangles)]
        np.testing.assert_allclose(shown, np.tile(facing, (len(shown), 1)), atol=1e-5)
    poise.write(found, tmp_path / "again.usdc")
    assert len(read_mesh(tmp_path / "again.usdc").triangles) == 2


def test_a_stage_without_a_skeleton_says_so(tmp_path: Path) -> None:
    pytest.importorskip("pxr")
    file = tmp_path / "empty.usda"
    file.write_text('#usda 1.0\ndef Xform "A" {\n}\n')
    with pytest.raises(ParseError, match=r"no UsdSkel skeleton; export the character with its armature"):
        poise.read(file)
    file.write_text("#usda 1.0\ndef {{{")
    with pytest.raises(ParseError, match="OpenUSD cannot read it"):
        poise.read(file)


# --- FBX -----------------------------------------------------------------------------------------------------------


def test_an_fbx_in_centimetres_with_z_up_is_read_in_metres_with_y_up(tmp_path: Path) -> None:
    pytest.importorskip("ufbx")
    file = tmp_path / "bend.fbx"
    file.write_text(fbx_text())
    motion = poise.read(file)
    assert isinstance(motion, Motion)
    assert motion.skeleton.names == ("Hips", "mixamorig:Spine", "Head")
    assert motion.fps == 30.0
    assert len(motion) == 3
    places = joint_positions(motion)
    np.testing.assert_allclose(places[0], [[0.1, 0.9, -0.2], [0.1, 1.4, -0.2], [0.1, 1.7, -0.2]], atol=1e-6)
    # about X by 90 degrees, Z goes to -Y of the file, which is +Z here
    np.testing.assert_allclose(places[2, 2], [0.1, 1.4, 0.1], atol=1e-6)
    assert motion.origin.metres_per_unit == pytest.approx(0.01)
    assert len(poise.formats.read_character(file)) == 1
    with pytest.raises(ParseError, match=r"no animation 'run'; valid: bend"):
        poise.read(f"{file}#run")


def test_an_fbx_characters_mesh_moves_with_its_joints(tmp_path: Path) -> None:
    pytest.importorskip("ufbx")
    file = tmp_path / "coat.fbx"
    file.write_text(fbx_text(mesh=True))
    found = poise.read(file)
    assert isinstance(found, Motion)
    assert found.origin.character == str(file)
    square = np.array(SQUARE)[:, [0, 2, 1]] * [0.01, 0.01, -0.01]
    rest, bent = np.array([0.1, 0.0, -0.2]), rotations.matrix_from_euler(np.array([np.pi / 2, 0, 0]), "XYZ")
    # The bones were bound at x = y = 0, and stand at x = 0.1, y = 0.2 of the file; the spine bends about itself.
    spine = np.array([0.1, 1.4, -0.2])
    for dressed in (found, poise.read(poise.write(found, tmp_path / "coat.glb"))):
        assert isinstance(dressed, Motion)
        mesh, (places, turns) = read_mesh(dressed.origin.character), joint_transforms(dressed)
        assert len(mesh.triangles) == 2
        np.testing.assert_allclose(mesh.colours, np.tile([1.0, 0.0, 0.0], (4, 1)), atol=1e-6)
        for frame, turn in ((0, np.eye(3)), (2, bent)):
            expected = (square + rest - spine) @ turn.T + spine
            moved = mesh.posed(places[frame], turns[frame])[0]
            assert np.linalg.norm(moved[:, None] - expected, axis=-1).min(axis=1).max() < 1e-6


def test_fbx_is_not_written_and_the_way_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"clip\.glb, open it in Blender"):
        poise.write(_motion(), tmp_path / "clip.fbx")


def test_what_is_not_fbx_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("ufbx")
    file = tmp_path / "broken.fbx"
    file.write_bytes(b"Kaydara FBX Binary  \x00\x1a\x00" + bytes(100))
    with pytest.raises(ParseError, match=r"broken\.fbx: .*(no skeleton|cannot read)"):
        poise.read(file)


# --- AMASS ---------------------------------------------------------------------------------------------------------


def _amass(file: Path, **changes: object) -> Path:
    frames = 5
    poses = np.zeros((frames, 52, 3))
    poses[:, 0, 0] = np.pi / 2  # SMPL stands along Y, AMASS along Z
    poses[:, 4, 0] = np.linspace(0.0, 1.0, frames)  # the left knee
    trans = np.stack([np.arange(frames), np.zeros(frames), np.full(frames, 0.95)], axis=1)
    content = {
        "poses": poses.reshape(frames, -1),
        "trans": trans,
        "mocap_framerate": 120.0,
        "betas": np.ones(3),
    }
    np.savez(file, **{name: value for name, value in {**content, **changes}.items() if value is not None})
    return file


def test_amass_stands_with_y_up_and_bends_its_knee(tmp_path: Path) -> None:
    motion = poise.read(_amass(tmp_path / "walk.npz"))
    assert isinstance(motion, Motion)
    assert motion.fps == 120.0
    assert len(motion.skeleton) == 52
    np.testing.assert_allclose(motion.positions["pelvis"][:, 1], 0.95)
    np.testing.assert_allclose(np.diff(motion.positions["pelvis"], axis=0), [[0, 0, 1]] * 4, atol=1e-12)
    trunk = motion.positions["head"][0] - motion.positions["pelvis"][0]
    assert trunk[1] > 0.5
    shin = motion.positions["left_foot"] - motion.positions["left_shin"]
    angle = np.arccos(-shin[-1, 1] / np.linalg.norm(shin[-1]))
    assert angle == pytest.approx(1.0)


def test_amass_takes_the_lengths_of_a_body_model(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    template, shapes = generator.normal(size=(80, 3)), generator.normal(size=(80, 3, 10))
    regressor = generator.dirichlet(np.ones(80), size=52)
    np.savez(tmp_path / "model.npz", v_template=template, shapedirs=shapes, J_regressor=regressor)
    file = _amass(tmp_path / "walk.npz")
    motion = poise.read(file, model=tmp_path / "model.npz", up="+Z")
    joints = regressor @ (template + shapes[..., :3].sum(axis=-1))
    np.testing.assert_allclose(
        motion.skeleton.offsets[5], joints[5] - joints[2]
    )  # right knee below right hip
    np.testing.assert_allclose(motion.root_positions[0], np.roll(joints[0] + [0.0, 0.0, 0.95], -1), atol=1e-9)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"poses": None}, "expected arrays poses and trans"),
        ({"poses": np.zeros((5, 50))}, "finite numbers a frame"),
        ({"poses": np.full((5, 156), np.nan)}, "finite numbers a frame"),
        ({"trans": np.zeros((4, 3))}, "trans must be"),
        ({"mocap_framerate": None}, "has no frame rate"),
        ({"poses": np.array(["a", "b"])}, "not a NumPy archive"),
    ],
)
def test_amass_files_that_lack_something_are_refused(
    tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    with pytest.raises(ParseError, match=words):
        poise.read(_amass(tmp_path / "walk.npz", **changes))


# --- rigs whose pelvis moves below a root that stays ------------------------------------------------------------------


def test_a_pelvis_that_moves_below_a_still_root_takes_the_root_with_it() -> None:
    """As game engines animate: the root bone stays on the floor and the pelvis is moved within it."""
    from poise.formats.rigs import from_world

    names, parents = ("root", "pelvis", "head", "hand", "ik"), [-1, 0, 1, 1, 0]
    places = np.zeros((4, 5, 3))
    places[:, 1] = [[0.0, 1.0, 0.1 * k] for k in range(4)]
    places[:, 2] = places[:, 1] + [0.0, 0.6, 0.0]
    places[:, 3] = places[:, 1] + [0.4, 0.3, 0.0]
    turns = np.tile(rotations.IDENTITY, (4, 5, 1))
    skeleton, roots, relative, warnings = from_world(names, parents, turns[0], places, turns)
    found = joint_positions(Motion(skeleton, 30.0, roots, relative))
    np.testing.assert_allclose(found[:, 1:4], places[:, 1:4], atol=1e-12)
    assert warnings == ("pelvis moves within root, which moves with it here",)


# --- rigs that Rigify generated ---------------------------------------------------------------------------------------

_SIDE = ("pelvis", "thigh", "shin", "foot", "toe", "shoulder", "upper_arm", "forearm", "hand")
_UNDER = {"shin": "thigh", "foot": "shin", "toe": "foot", "forearm": "upper_arm", "hand": "forearm"}


def _generated(file: Path) -> Path:
    """The deforming bones of a generated rig as Blender exports them: parts of the body side by side on one root."""
    places = {f"spine.{k:03d}" if k else "spine": (0.0, 1.0 + 0.1 * k, 0.0) for k in range(7)} | {
        "ear.L": (0.1, 1.65, 0.0),
        "ear.R": (-0.1, 1.65, 0.0),
    }
    out = {
        "pelvis": (0.05, 1.0),
        "thigh": (0.1, 0.95),
        "shin": (0.1, 0.5),
        "foot": (0.1, 0.08),
        "toe": (0.1, 0.02),
    }
    out |= {"shoulder": (0.03, 1.4), "upper_arm": (0.18, 1.4), "forearm": (0.45, 1.4), "hand": (0.7, 1.4)}
    for side, sign in (("L", 1.0), ("R", -1.0)):
        places |= {
            f"{part}.{side}": (sign * out[part][0], out[part][1], 0.1 * (part == "toe")) for part in _SIDE
        }
    names = ["rig", *sorted(places)]

    def above(name: str) -> str:
        part, _, side = name.partition(".")
        if part == "spine" and side:
            return "spine" if side == "001" else f"spine.{int(side) - 1:03d}"
        return f"{_UNDER[part]}.{side}" if part in _UNDER else "rig"

    order = sorted(names, key=lambda name: 0 if name == "rig" else len(_climb(name, above)))
    at = {"rig": np.zeros(3), **{name: np.array(place, dtype=float) for name, place in places.items()}}
    offsets = np.array([at[name] - (at[above(name)] if name != "rig" else 0.0) for name in order])
    parents = np.array([order.index(above(name)) if name != "rig" else -1 for name in order])
    called = tuple(name if name == "rig" else f"DEF-{name}" for name in order)
    skeleton = Skeleton(called, parents, offsets, ("ZYX",) * len(order))
    return poise.write(Motion.of_poses([Pose.rest(skeleton)]), file, mannequin=False)


def _climb(name: str, above: Callable[[str], str]) -> list[str]:
    found = [name]
    while found[-1] != "rig":
        found.append(above(found[-1]))
    return found


def test_a_generated_rig_hangs_together_as_its_metarig_does(tmp_path: Path) -> None:
    body = poise.formats.read_character(_generated(tmp_path / "rig.glb")).skeleton
    above = {name: body.names[parent] for name, parent in zip(body.names, body.parents, strict=True)}
    assert body.names[0] == "DEF-spine"
    assert above["DEF-thigh.L"] == "DEF-spine"
    assert above["DEF-shoulder.R"] == "DEF-spine.003"
    assert above["DEF-upper_arm.R"] == "DEF-shoulder.R"
    assert above["DEF-ear.L"] == "DEF-spine.006"
    roles = {
        role: name
        for role, name in body.roles.items()
        if role in ("pelvis", "head", "left_hand", "right_foot")
    }
    assert roles == {
        "pelvis": "DEF-spine", "head": "DEF-spine.006", "left_hand": "DEF-hand.L", "right_foot": "DEF-foot.R",
    }  # fmt: skip


def test_a_motion_on_a_generated_rig_moves_limbs_that_hang_beside_the_trunk(tmp_path: Path) -> None:
    file = _generated(tmp_path / "rig.glb")
    walk = poise.retarget(act("walk", seconds=0.5, fps=30), file)
    written = tmp_path / "walk.glb"
    written.write_bytes(glb_with(walk, file))
    found = poise.read(written)
    assert isinstance(found, Motion)
    np.testing.assert_allclose(joint_positions(found), joint_positions(walk), atol=1e-5)


def test_hands_and_feet_that_hang_beside_their_limbs_are_joined_to_them() -> None:
    names = ["Bone", "Foot.L", "Toe.L", "Hips", "UpperLeg.L", "LowerLeg.L", "LowerArm.R", "Hand.R", "Foot.R"]
    joints, parents = limbs_joined(names, list(range(9)), [-1, 0, 1, 0, 3, 4, 3, 6, 0])
    above = {names[joint]: names[joints[k]] for joint, k in zip(joints, parents, strict=True) if k >= 0}
    assert (above["Foot.L"], above["Toe.L"], above["Hand.R"], above["Foot.R"]) == (
        "LowerLeg.L", "Foot.L", "LowerArm.R", "Bone",
    )  # fmt: skip
    assert all(parent < joint for joint, parent in enumerate(parents))
    straight = list(range(4)), [-1, 0, 1, 2]
    assert limbs_joined(["Hips", "UpperLeg.L", "LowerLeg.L", "Foot.L"], *straight) == straight


def test_a_rig_whose_bones_hang_in_a_circle_is_not_hung_again() -> None:
    names = ["DEF-spine", "DEF-thigh.L", "DEF-thigh.R", "DEF-shoulder.L", "DEF-spine.003"]
    assert hung_as_in_metarig(names, [-1, -1, -1, -1, 3], [0, 1, 2, 3, 4]) is None
    assert hung_as_in_metarig(names[1:], [-1, -1, -1, -1], [0, 1, 2, 3]) is None


# --- formats that Poise does not know --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "instead"), [("me.blend", "GLB"), ("take.tsv", "C3D"), ("take.mvnx", "BVH")]
)
def test_files_of_other_programs_are_told_what_to_use(tmp_path: Path, name: str, instead: str) -> None:
    (tmp_path / name).write_bytes(b"something")
    with pytest.raises(ParseError, match=f"use {instead}, which"):
        poise.read(tmp_path / name)
    with pytest.raises(PoiseError, match=f"use {instead}, which"):
        poise.save(replace(_motion(), name="clip"), tmp_path / name)
