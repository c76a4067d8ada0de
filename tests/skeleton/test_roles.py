"""Roles: the usual naming schemes, skeletons whose names say nothing, contradictions, overrides, real recordings."""

import numpy as np
import pytest

import poise
from bodies import PERSON, person
from poise.errors import UnknownNameError
from poise.skeleton import Skeleton
from poise.skeleton.roles import MAIN_ROLES, ROLES, side_and_part
from real_data import recordings

TRUNK = ("pelvis", "spine", "chest", "neck", "head")
LIMBS = ("shoulder", "upper_arm", "forearm", "hand", "thigh", "shin", "foot", "toes")

# Scheme: the trunk in the order above, the patterns of sided names, the limbs in the order above; "" is no such joint.
SCHEMES = {
    "MotionBuilder": (
        ("Hips", "Spine", "Spine1", "Neck", "Head"),
        ("Left{}", "Right{}"),
        ("Shoulder", "Arm", "ForeArm", "Hand", "UpLeg", "Leg", "Foot", "ToeBase"),
    ),
    "Mixamo": (
        ("mixamorig:Hips", "mixamorig:Spine", "mixamorig:Spine2", "mixamorig:Neck", "mixamorig:Head"),
        ("mixamorig:Left{}", "mixamorig:Right{}"),
        ("Shoulder", "Arm", "ForeArm", "Hand", "UpLeg", "Leg", "Foot", "ToeBase"),
    ),
    "Mixamo with a number": (
        ("mixamorig9:Hips", "mixamorig9:Spine", "mixamorig9:Spine2", "mixamorig9:Neck", "mixamorig9:Head"),
        ("mixamorig9:Left{}", "mixamorig9:Right{}"),
        ("Shoulder", "Arm", "ForeArm", "Hand", "UpLeg", "Leg", "Foot", "ToeBase"),
    ),
    "Mixamo without the colon": (
        ("mixamorigHips", "mixamorigSpine", "mixamorigSpine2", "mixamorigNeck", "mixamorigHead"),
        ("mixamorigLeft{}", "mixamorigRight{}"),
        ("Shoulder", "Arm", "ForeArm", "Hand", "UpLeg", "Leg", "Foot", "ToeBase"),
    ),
    "Biovision": (
        ("Hips", "", "Chest", "Neck", "Head"),
        ("Left{}", "Right{}"),
        ("Collar", "Shoulder", "Elbow", "Wrist", "Hip", "Knee", "Ankle", "Toe"),
    ),
    "Biovision, long": (
        ("Hips", "", "Chest", "Neck", "Head"),
        ("Left{}", "Right{}"),
        ("Collar", "UpArm", "LowArm", "Hand", "UpLeg", "LowLeg", "Foot", "Toe"),
    ),
    "Bandai Namco": (
        ("Hips", "Spine", "Chest", "Neck", "Head"),
        ("{}_L", "{}_R"),
        ("Shoulder", "UpperArm", "LowerArm", "Hand", "UpperLeg", "LowerLeg", "Foot", "Toes"),
    ),
    "Acclaim": (
        ("root", "lowerback", "thorax", "lowerneck", "head"),
        ("l{}", "r{}"),
        ("clavicle", "humerus", "radius", "wrist", "femur", "tibia", "foot", "toes"),
    ),
    "Rokoko": (
        ("Hips", "Spine", "Spine4", "Neck", "Head"),
        ("Left{}", "Right{}"),
        ("Shoulder", "Arm", "ForeArm", "Hand", "Thigh", "Shin", "Foot", "Toe"),
    ),
    "Xsens": (
        ("Pelvis", "L5", "T8", "Neck", "Head"),
        ("Left{}", "Right{}"),
        ("Shoulder", "UpperArm", "ForeArm", "Hand", "UpperLeg", "LowerLeg", "Foot", "Toe"),
    ),
    "Xsens as BVH": (
        ("Hips", "Chest", "Chest4", "Neck", "Head"),
        ("Left{}", "Right{}"),
        ("Collar", "Shoulder", "Elbow", "Wrist", "Hip", "Knee", "Ankle", "Toe"),
    ),
    "Blender Rigify": (
        ("hips", "spine", "spine.003", "neck", "head"),
        ("{}.L", "{}.R"),
        ("shoulder", "upper_arm", "forearm", "hand", "thigh", "shin", "foot", "toe"),
    ),
    "Unreal": (
        ("pelvis", "spine_01", "spine_03", "neck_01", "head"),
        ("{}_l", "{}_r"),
        ("clavicle", "upperarm", "lowerarm", "hand", "thigh", "calf", "foot", "ball"),
    ),
    "Unity": (
        ("Hips", "Spine", "UpperChest", "Neck", "Head"),
        ("Left{}", "Right{}"),
        ("Shoulder", "UpperArm", "LowerArm", "Hand", "UpperLeg", "LowerLeg", "Foot", "Toes"),
    ),
    "VRM": (
        ("J_Bip_C_Hips", "J_Bip_C_Spine", "J_Bip_C_UpperChest", "J_Bip_C_Neck", "J_Bip_C_Head"),
        ("J_Bip_L_{}", "J_Bip_R_{}"),
        ("Shoulder", "UpperArm", "LowerArm", "Hand", "UpperLeg", "LowerLeg", "Foot", "ToeBase"),
    ),
    "3ds Max Biped": (
        ("Bip01 Pelvis", "Bip01 Spine", "Bip01 Spine1", "Bip01 Neck", "Bip01 Head"),
        ("Bip01 L {}", "Bip01 R {}"),
        ("Clavicle", "UpperArm", "Forearm", "Hand", "Thigh", "Calf", "Foot", "Toe0"),
    ),
    "Valve": (
        ("ValveBiped.Bip01_Pelvis", "ValveBiped.Bip01_Spine", "ValveBiped.Bip01_Spine4", "ValveBiped.Bip01_Neck1",
         "ValveBiped.Bip01_Head1"),
        ("ValveBiped.Bip01_L_{}", "ValveBiped.Bip01_R_{}"),
        ("Clavicle", "UpperArm", "Forearm", "Hand", "Thigh", "Calf", "Foot", "Toe0"),
    ),
    "Character Creator": (
        ("CC_Base_Hip", "CC_Base_Waist", "CC_Base_Spine02", "CC_Base_NeckTwist01", "CC_Base_Head"),
        ("CC_Base_L_{}", "CC_Base_R_{}"),
        ("Clavicle", "Upperarm", "Forearm", "Hand", "Thigh", "Calf", "Foot", "ToeBase"),
    ),
    "DAZ": (
        ("hip", "abdomen", "chest", "neck", "head"),
        ("l{}", "r{}"),
        ("Collar", "Shldr", "ForeArm", "Hand", "Thigh", "Shin", "Foot", "Toe"),
    ),
    "DAZ Genesis": (
        ("hip", "abdomenLower", "chestUpper", "neckLower", "head"),
        ("l{}", "r{}"),
        ("Collar", "ShldrBend", "ForearmBend", "Hand", "ThighBend", "Shin", "Foot", "Toe"),
    ),
    "SMPL": (
        ("Pelvis", "Spine1", "Spine3", "Neck", "Head"),
        ("L_{}", "R_{}"),
        ("Collar", "Shoulder", "Elbow", "Wrist", "Hip", "Knee", "Ankle", "Foot"),
    ),
    "SMPL-X": (
        ("pelvis", "spine1", "spine3", "neck", "head"),
        ("left_{}", "right_{}"),
        ("collar", "shoulder", "elbow", "wrist", "hip", "knee", "ankle", "foot"),
    ),
    "Kinect": (
        ("SpineBase", "SpineMid", "SpineShoulder", "Neck", "Head"),
        ("{}Left", "{}Right"),
        ("", "Shoulder", "Elbow", "Wrist", "Hip", "Knee", "Ankle", "Foot"),
    ),
    "HumanIK": (
        ("Character1_Hips", "Character1_Spine", "Character1_Spine2", "Character1_Neck", "Character1_Head"),
        ("Character1_Left{}", "Character1_Right{}"),
        ("Shoulder", "Arm", "ForeArm", "Hand", "UpLeg", "Leg", "Foot", "ToeBase"),
    ),
    "capitals": (
        ("HIPS", "SPINE", "CHEST", "NECK", "HEAD"),
        ("LEFT_{}", "RIGHT_{}"),
        ("SHOULDER", "UPPER_ARM", "LOWER_ARM", "HAND", "UPPER_LEG", "LOWER_LEG", "FOOT", "TOES"),
    ),
    "namespace": (
        ("actor|rig:Hips", "actor|rig:Spine", "actor|rig:Spine1", "actor|rig:Neck", "actor|rig:Head"),
        ("actor|rig:Left{}", "actor|rig:Right{}"),
        ("Shoulder", "Arm", "ForeArm", "Hand", "UpLeg", "Leg", "Foot", "ToeBase"),
    ),
}  # fmt: skip


def names_of(scheme: str) -> dict[str, str]:
    """Role to joint name in a scheme, joints it does not have left out."""
    trunk, sides, parts = SCHEMES[scheme]
    names = dict(zip(TRUNK, trunk, strict=True))
    for side, pattern in zip(("left", "right"), sides, strict=True):
        names.update(
            {
                f"{side}_{part}": pattern.format(word) if word else ""
                for part, word in zip(LIMBS, parts, strict=True)
            }
        )
    return {role: name for role, name in names.items() if name}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_naming_scheme(scheme):
    names = names_of(scheme)
    missing = tuple(role for role in ROLES if role not in names)
    assert dict(person(names, leave_out=missing).roles) == names


@pytest.mark.parametrize("scheme", SCHEMES)
def test_names_alone_tell_the_limbs_apart(scheme):
    """On a skeleton without shape, every bone the same and upward, so that only names and the tree can tell."""
    names = names_of(scheme)
    body = person(names, leave_out=tuple(role for role in ROLES if role not in names))
    shapeless = body.with_offsets(np.tile([0.0, 0.1, 0.0], (len(body), 1)))
    limbs = {role: name for role, name in names.items() if role.startswith(("left", "right"))}
    assert {role: name for role, name in shapeless.roles.items() if role in limbs} == limbs


def nameless(skeleton: Skeleton) -> Skeleton:
    return Skeleton(
        tuple(f"joint {number}" for number in range(len(skeleton))),
        skeleton.parents,
        skeleton.offsets,
        skeleton.orders,
    )


def test_shape_alone_finds_every_role():
    body = person()
    assert dict(nameless(body).roles) == {role: f"joint {body.index(role)}" for role in ROLES}


def test_shape_tells_left_from_right_whichever_way_the_body_faces():
    body = person()
    half_a_turn = body.with_offsets(body.offsets * [-1.0, 1.0, -1.0])
    assert nameless(half_a_turn).roles == nameless(body).roles


@pytest.mark.parametrize("face", [("face", "nose"), ("brow.L", "jaw")])
def test_a_face_below_a_head_without_its_name_is_not_the_head(face):
    body = person(names={"neck": "spine.004", "head": "spine.005"})
    head = body.index("spine.005")
    below = [head, head] if face[0] != "face" else [head, len(body)]
    faced = Skeleton(
        (*body.names, *face),
        np.concatenate([body.parents, below]),
        np.concatenate([body.offsets, np.full((2, 3), 0.03)]),
        (*body.orders, "ZYX", "ZYX"),
    )
    assert faced.roles["head"] == "spine.005"


def test_names_that_only_say_the_side_are_used_for_the_side():
    body = person()
    swapped = [
        name.replace("left", "RIGHT").replace("right", "L").replace("RIGHT", "R") for name in body.names
    ]
    renamed = [f"{name[0]}_{number}" if name[0] in "LR" and name[1] == "_" else f"bone{number}"
               for number, name in enumerate(swapped)]  # fmt: skip
    other = Skeleton(tuple(renamed), body.parents, body.offsets, body.orders)
    assert other.roles["left_hand"] == other.names[body.index("right_hand")]


def test_arms_hung_on_the_neck_as_in_biped_leave_the_chest_below():
    names = names_of("3ds Max Biped")
    body = person(names)
    parents = body.parents.copy()
    for side in "LR":
        parents[body.index(f"Bip01 {side} Clavicle")] = body.index("Bip01 Neck")
    biped = Skeleton(body.names, parents, body.offsets, body.orders)
    assert biped.roles["chest"] == "Bip01 Spine1"
    assert biped.roles["neck"] == "Bip01 Neck"


def test_static_root_above_the_hips_is_not_the_pelvis():
    body = person({**names_of("MotionBuilder"), "pelvis": "Hips"})
    names, parents = ("joint_Root", *body.names), np.concatenate([[-1], body.parents + 1])
    above = Skeleton(
        names, parents, np.concatenate([[[0.0, 0.0, -4.0]], body.offsets]), ("ZYX", *body.orders)
    )
    assert above.roles["pelvis"] == "Hips"
    assert above.roles["left_hand"] == "LeftHand"


def test_a_joint_called_root_directly_above_the_legs_is_not_the_pelvis():
    body = person({"pelvis": "spine", "spine": "spine.001", "chest": "spine.002"})
    rooted = Skeleton(
        ("root", *body.names), np.r_[-1, body.parents + 1], np.r_[np.zeros((1, 3)), body.offsets]
    )
    assert rooted.roles["pelvis"] == "spine"


def test_a_hand_of_any_name_is_what_hangs_below_the_forearm():
    body = person({**names_of("MotionBuilder"), "left_hand": "Mitten", "right_foot": "Hoof"})
    assert (body.roles["left_hand"], body.roles["right_foot"]) == ("Mitten", "Hoof")


def test_names_that_contradict_the_tree_are_not_believed():
    names = names_of("MotionBuilder")
    names["left_hand"], names["left_upper_arm"] = names["left_upper_arm"], names["left_hand"]
    body = person(names)
    assert body.roles["left_hand"] == "LeftArm"  # the tree says that this is the end of the arm
    assert body.roles["left_upper_arm"] == "LeftHand"


def test_helper_joints_are_passed_over():
    assert side_and_part("LHipJoint") == ("left", "hip")
    assert side_and_part("LeftHandIndex1") == ("left", "handindex")
    body = person({**names_of("MotionBuilder")})
    extra = ("LeftArmTwist", "LeftHandIndex1", "LThumb")
    parents = [body.index("LeftArm"), body.index("LeftHand"), body.index("LeftHand")]
    more = Skeleton(
        (*body.names, *extra),
        np.concatenate([body.parents, parents]),
        np.concatenate([body.offsets, [[0.15, 0.0, 0.0], [0.1, 0.0, 0.0], [0.05, 0.0, 0.05]]]),
        (*body.orders, "ZYX", "ZYX", "ZYX"),
    )
    assert more.roles == body.roles


def test_overrides_win_and_wrong_ones_suggest():
    body = person(names_of("MotionBuilder"))
    assert body.with_roles(left_hand="LeftForeArm").roles["left_hand"] == "LeftForeArm"
    assert body.with_roles(left_hand="LeftForeArm").index("left_hand") == body.index("LeftForeArm")
    with pytest.raises(UnknownNameError, match="LeftForeArm"):
        body.with_roles(left_hand="LeftForarm")


@pytest.mark.parametrize("joints", [1, 2, 5])
def test_a_thing_that_is_no_body_has_no_limbs(joints):
    chain = Skeleton(
        tuple(f"link{number}" for number in range(joints)),
        np.arange(joints) - 1,
        np.tile([0.0, 1.0, 0.0], (joints, 1)),
    )
    assert not [role for role in chain.roles if role.startswith(("left", "right"))]


def test_every_role_has_its_own_joint():
    for scheme in SCHEMES:
        names = names_of(scheme)
        roles = person(
            names, leave_out=tuple(role for role in PERSON if role in ROLES and role not in names)
        ).roles
        assert len(set(roles.values())) == len(roles)


@pytest.mark.parametrize("collection", ["cmu", "bandai", "optical"])
def test_real_recordings_get_every_role(collection):
    for file in recordings(collection)[::7]:
        missing = set(ROLES) - set(poise.read(file).skeleton.roles)
        assert not missing, f"{file.name}: {missing}"


@pytest.mark.parametrize("collection", ["cmu", "bandai"])
def test_real_skeletons_without_their_names_get_the_main_roles(collection):
    skeleton = poise.read(recordings(collection)[0]).skeleton
    found = nameless(skeleton).roles
    for role in MAIN_ROLES:
        assert found[role] == f"joint {skeleton.index(role)}"


def test_a_role_comes_before_a_joint_of_the_same_name() -> None:
    names = (
        "pelvis left_hip right_hip spine1 left_knee right_knee spine2 left_ankle right_ankle spine3 left_foot"
    )
    names += (
        " right_foot neck left_collar right_collar head left_shoulder right_shoulder left_elbow right_elbow"
    )
    names += " left_wrist right_wrist left_hand right_hand"
    parents = [-1, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 12, 13, 14, 16, 17, 18, 19, 20, 21]
    offsets = np.array([
        [0, 0, 0], [0.06, -0.08, 0], [-0.06, -0.08, 0], [0, 0.12, 0], [0.04, -0.38, 0], [-0.04, -0.38, 0], [0, 0.13, 0],
        [-0.01, -0.4, -0.04], [0.01, -0.4, -0.04], [0, 0.05, 0.02], [0.04, -0.06, 0.12], [-0.04, -0.06, 0.12],
        [0, 0.21, -0.03], [0.07, 0.11, -0.02], [-0.08, 0.11, -0.02], [0, 0.08, 0.05], [0.12, 0.04, 0], [-0.11, 0.04, 0],
        [0.25, 0, -0.02], [-0.25, 0, -0.02], [0.26, 0.01, 0], [-0.26, 0.01, 0], [0.08, 0, 0], [-0.08, 0, 0],
    ])  # fmt: skip
    smpl = Skeleton(tuple(names.split()), np.array(parents), offsets, ("ZYX",) * 24)
    assert smpl.roles["left_foot"] == "left_ankle"
    for role, joint in smpl.roles.items():
        assert smpl.names[smpl.index(role)] == joint
    assert smpl.names[smpl.index("left_knee")] == "left_knee"
    assert 1.5 < smpl.height < 1.8
