"""Motions on other characters: contacts kept, roles corrected by a file, and everything else in the file untouched."""

import json
import struct
from dataclasses import replace

import numpy as np
import pytest

import poise
from bodies import PERSON, person
from poise.apps.planting import following, metric_of, slides
from poise.apps.repairing import repair
from poise.apps.retargeting import misses, open_character, retarget, spans, write_roles
from poise.apps.skin import skin_of
from poise.errors import InvalidValueError, ParseError, SkeletonError
from poise.formats import gltf
from poise.geometry import rotations
from poise.motion.contacts import foot_contacts, foot_positions
from poise.motion.motion import Motion
from poise.motion.world import joint_transforms
from poise.skeleton import Pose, Skeleton
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.retarget import size_ratio
from poise.skeleton.roles import MAIN_ROLES
from poise.solvers.constraints import transform

UNREAL = {
    "pelvis": "pelvis", "spine": "spine_01", "chest": "spine_03", "neck": "neck_01", "head": "head",
    **{f"{side}_{role}": f"{bone}_{side[0]}" for side in ("left", "right") for role, bone in (
        ("shoulder", "clavicle"), ("upper_arm", "upperarm"), ("forearm", "lowerarm"), ("hand", "hand"),
        ("thigh", "thigh"), ("shin", "calf"), ("foot", "foot"), ("toes", "ball"),
    )},
}  # fmt: skip


@pytest.fixture(scope="module")
def walk():
    return poise.performer.act("walk", seed=3)


def a_pose(*, size=0.6, names=UNREAL) -> Skeleton:
    """A smaller body with long shins and its arms hanging at an angle, on axes and names of its own."""
    body = person(names).scaled(size)
    offsets = body.offsets.copy()
    down = rotations.quaternion_from_expmap(np.array([0.0, 0.0, -0.8]))
    for side, turn in (("left", down), ("right", rotations.conjugate(down))):
        for role in ("forearm", "hand", "hand_end"):
            joint = body.names.index(names.get(f"{side}_{role}", f"{side}_{role}"))
            offsets[joint] = rotations.rotate(turn, offsets[joint])
        offsets[body.names.index(names.get(f"{side}_foot", f"{side}_foot"))] *= 1.2
    return body.with_offsets(offsets)


def strange_file(path, skeleton, *, animations=()):
    """A character with a mesh as another program writes it: no note of ours, a material, and what nobody knows."""
    gltf.write(Pose.rest(skeleton, root_position=skeleton.offsets[0].tolist()), path)
    content, binary = parts_of(path)
    del content["scenes"][0]["extras"]
    content["materials"][0]["extras"] = {"mine": [1, 2.5, "ü"]}
    content["extensionsUsed"], content["extensions"] = ["MINE_x"], {"MINE_x": {"keep": True}}
    content["animations"] = list(animations)
    return packed(path, content, binary)


def parts_of(path):
    data = path.read_bytes()
    size = struct.unpack_from("<I", data, 12)[0]
    return json.loads(data[20 : 20 + size]), data[28 + size :]


def packed(path, content, binary):
    text = json.dumps(content, ensure_ascii=False).encode()
    text += b" " * (-len(text) % 4)
    body = (
        struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(binary), b"BIN\0") + binary
    )
    path.write_bytes(struct.pack("<4sII", b"glTF", 2, 12 + len(body)) + body)
    return path


def test_a_walk_on_another_body_keeps_its_contacts(walk):
    body = a_pose()
    found, ratio = retarget(walk, body), size_ratio(walk.skeleton, body)
    assert found.skeleton == body
    assert max(slides(found, walk)) < 0.01
    down = foot_contacts(walk).points
    there, here = foot_positions(walk) * ratio, foot_positions(found)
    both = down.all(axis=-1)
    apart = np.linalg.norm((there - here).mean(axis=2)[..., [0, 2]], axis=-1)
    assert apart[both].max() < 0.02


def test_legs_keep_their_directions_wherever_a_rig_has_its_pelvis(walk):
    body = a_pose()
    offsets = body.offsets.copy()
    offsets[0, 1] -= 0.1
    for child in body.children[0]:
        offsets[child, 1] += 0.1
    found = retarget(walk, body.with_offsets(offsets))
    for side in ("left", "right"):
        ways = [m.positions[f"{side}_foot"] - m.positions[f"{side}_shin"] for m in (walk, found)]
        cosines = np.sum(ways[0] * ways[1], axis=-1) / np.prod(np.linalg.norm(ways, axis=-1), axis=0)
        assert np.degrees(np.arccos(cosines)).mean() < 4.0


def test_legs_keep_their_directions_whatever_part_of_them_is_the_thigh():
    source, body = poise.performer.act("sit", seed=3), a_pose()
    offsets = body.offsets.copy()
    for side in ("left", "right"):
        offsets[body.index(f"{side}_shin")] *= 0.7
        offsets[body.index(f"{side}_foot")] *= 1.3
    found = retarget(source, body.with_offsets(offsets))
    for side in ("left", "right"):
        ways = [m.positions[f"{side}_shin"] - m.positions[f"{side}_thigh"] for m in (source, found)]
        cosines = np.sum(ways[0] * ways[1], axis=-1) / np.prod(np.linalg.norm(ways, axis=-1), axis=0)
        assert np.degrees(np.arccos(cosines)).max() < 5.0


def short_arms(part=0.65) -> Skeleton:
    body = a_pose()
    arms = [body.index(f"{side}_{role}") for side in ("left", "right") for role in ("forearm", "hand")]
    return body.with_offsets(body.offsets * np.where(np.isin(np.arange(len(body)), arms), part, 1.0)[:, None])


def quickest(motion, role):
    """The largest acceleration of a joint, in body heights."""
    change = np.diff(motion.positions[role], 2, axis=0) * motion.fps**2
    return np.linalg.norm(change, axis=-1).max() / motion.skeleton.height


@pytest.mark.parametrize("action", ["sit", "throw"])
def test_hands_of_arms_that_are_too_short_touch_the_same_place(action):
    source = poise.performer.act(action, seed=3)
    found = retarget(source, short_arms())
    assert len(misses(source, source)) > 50
    assert max(misses(found, source)) < 0.02
    assert max(slides(found, source)) < 0.01


def test_the_body_leans_without_a_jump_when_arms_are_too_short():
    source = poise.performer.act("sit", seed=3)
    found = retarget(source, short_arms())
    for role in ("pelvis", "head", "left_hand", "right_hand"):
        assert quickest(found, role) < 4.0 * quickest(source, role)


def test_arms_of_an_a_pose_point_where_those_of_a_t_pose_do(walk):
    found = retarget(walk, a_pose())
    for motion in (walk, found):
        reach = motion.positions["left_hand"] - motion.positions["left_upper_arm"]
        motion_reach = reach / np.linalg.norm(reach, axis=-1, keepdims=True)
        if motion is walk:
            wanted = motion_reach
    assert np.degrees(np.arccos(np.clip(np.sum(wanted * motion_reach, axis=-1), -1, 1))).max() < 6.0


def test_the_same_body_keeps_its_motion(walk):
    same = retarget(walk, walk.skeleton)
    np.testing.assert_array_equal(same.rotations, walk.rotations)


def test_legs_alone_are_retargeted(walk):
    legs = person(leave_out=tuple(role for role in PERSON if "arm" in role or "hand" in role))
    joints = [walk.skeleton.index(role) for role in legs.roles]
    turns = np.tile(rotations.IDENTITY, (len(walk), len(legs), 1))
    turns[:, [legs.index(role) for role in legs.roles]] = walk.rotations[:, joints]
    found = retarget(Motion(legs, walk.fps, walk.root_positions, turns), legs.scaled(0.7))
    assert max(slides(found)) < 0.01


def test_a_body_that_is_not_a_person_is_refused_with_what_it_lacks(walk):
    snake = Skeleton(("a", "b", "c"), np.array([-1, 0, 1]), np.array([[0, 0, 0], [0, 1, 0], [0, 1, 0]]))
    with pytest.raises(SkeletonError, match=r"the character's skeleton .* lacks pelvis"):
        retarget(walk, snake)


def test_foot_slide_is_cleaned(walk):
    drift = np.zeros_like(walk.root_positions)
    drift[:, 0] = np.linspace(0.0, 0.4, len(walk))
    sliding = walk.with_frames(walk.root_positions + drift, walk.rotations)
    cleaned = repair(sliding).motion
    assert max(slides(sliding)) > 0.02
    assert max(slides(cleaned, sliding)) < 0.01


def dragging_a_heel():
    """A stand in which the right foot is dragged to another place by its heel, then rises on its toes."""
    body = person()
    motion = Motion.of_poses([Pose(body, (0.0, 0.9, 0.0), neutral_pose(body).rotations)] * 100, fps=60.0)
    positions, turns = joint_transforms(motion)
    foot, toes = body.index("right_foot"), positions[0, body.index("right_toes")]
    drag, rise = (np.clip((np.arange(100) - start) / 20, 0.0, 1.0) for start in (30, 75))
    angles = 0.5 * rise - 0.6 * np.sin(np.pi * drag)
    turn = rotations.quaternion_from_expmap(np.multiply.outer(angles, np.array([1.0, 0.0, 0.0])))
    heel = body.height * np.array([0.0, -0.035, -0.04])
    pivot = np.where(rise[:, None] > 0, toes - positions[0, foot], heel)
    places = positions[:, foot] + pivot - rotations.rotate(turn, pivot) + drag[:, None] * [0.05, 0.0, 0.12]
    turned = rotations.multiply(turn, rotations.quaternion_from_matrix(turns[:, foot]))
    return following(
        motion,
        lambda frame: transform("right_foot", places[frame], turned[frame]),
        metric_of(body, {body.index(f"right_{role}") for role in ("thigh", "shin", "foot")}),
    )


def test_a_foot_that_is_dragged_by_its_heel_is_cleaned():
    dragged = dragging_a_heel()
    heel, toes = foot_contacts(dragged).points[:, 1].T
    assert heel[5:75].all()
    assert not toes[35:45].any()
    assert not heel[90:].any()
    assert max(slides(dragged)) > 0.05
    assert max(slides(repair(dragged).motion, dragged)) < 0.002


def test_a_motion_goes_into_the_characters_own_file(tmp_path, walk):
    file = strange_file(tmp_path / "bob.glb", a_pose())
    before, bytes_before = parts_of(file)
    found = retarget(walk, file)
    found.save(tmp_path / "out.glb")
    after, bytes_after = parts_of(tmp_path / "out.glb")
    assert (
        bytes_after[: before["buffers"][0]["byteLength"]]
        == bytes_before[: before["buffers"][0]["byteLength"]]
    )
    for key, value in before.items():
        if key in ("accessors", "bufferViews"):
            assert after[key][: len(value)] == value
        elif key not in ("animations", "buffers"):
            assert after[key] == value
    again = poise.read(tmp_path / "out.glb")
    gap = joint_transforms(again)[0] - joint_transforms(found)[0]
    assert again.fps == walk.fps
    assert np.abs(gap).max() < 1e-5


def test_animations_are_chosen_by_name(tmp_path, walk):
    file = strange_file(tmp_path / "bob.glb", a_pose())
    first = replace(retarget(walk, file)[:20], name="first")
    first.save(tmp_path / "one.glb")
    second = replace(retarget(walk, tmp_path / "one.glb")[20:50], name="second")
    second.save(tmp_path / "two.glb")
    assert [len(poise.read(f"{tmp_path / 'two.glb'}{name}")) for name in ("", "#first")] == [30, 20]
    assert "of 2 animations (second, first)" in poise.read(tmp_path / "two.glb").origin.notes[0]
    with pytest.raises(poise.PoiseError, match="no animation 'third'; valid: second, first"):
        poise.read(f"{tmp_path / 'two.glb'}#third")
    assert len(open_character(tmp_path / "two.glb")) == 1


def test_a_vrm_says_which_bone_is_which(tmp_path, walk):
    names = {role: f"bone{number}" for number, role in enumerate(UNREAL)}
    file = strange_file(tmp_path / "anon.glb", a_pose(names=names))
    content, binary = parts_of(file)
    bones = {
        "hips": "pelvis",
        "head": "head",
        "leftUpperArm": "left_upper_arm",
        "rightUpperLeg": "right_thigh",
    }
    nodes = {name: number for number, name in enumerate(node.get("name") for node in content["nodes"])}
    listed = {bone: {"node": nodes[names[role]]} for bone, role in bones.items()}
    content["extensions"] = {"VRMC_vrm": {"specVersion": "1.0", "humanoid": {"humanBones": listed}}}
    avatar = packed(tmp_path / "anon.vrm", content, binary)
    roles = open_character(avatar).skeleton.roles
    assert all(roles[role] == names[role] for role in bones.values())
    retarget(walk[:5], avatar).save(tmp_path / "out.vrm")
    assert "VRMC_vrm" in parts_of(tmp_path / "out.vrm")[0]["extensions"]
    with pytest.raises(InvalidValueError, match=r"such as avatar\.vrm"):
        walk.save(tmp_path / "walk.vrm")


def test_roles_are_corrected_by_a_file_beside_the_character(tmp_path):
    file = strange_file(tmp_path / "bob.glb", a_pose())
    beside = write_roles(tmp_path / "bob.roles.toml", open_character(file).skeleton)
    beside.write_text(beside.read_text().replace('chest = "spine_03"', 'chest = "spine_01"'))
    assert open_character(file).skeleton.roles["chest"] == "spine_01"
    beside.write_text('left_hand = "hand_left"')
    with pytest.raises(ParseError, match="left_hand: no joint 'hand_left'; did you mean"):
        open_character(file)


def test_bones_that_never_move_stay_bones(tmp_path):
    skeleton = open_character(strange_file(tmp_path / "bob.glb", a_pose())).skeleton
    still = [name for name, end in zip(skeleton.names, skeleton.is_end_site, strict=True) if end]
    assert still == ["left_toes_end", "right_toes_end", "head_end", "left_hand_end", "right_hand_end"]


def test_fingers_and_twist_bones_follow():
    def with_fingers(style):
        body = person()
        names = [*body.names, style.format(1), style.format(2), "forearm_twist_l"]
        hand, forearm = body.names.index("left_hand"), body.names.index("left_forearm")
        parents = [*body.parents, hand, len(body), forearm]
        offsets = np.vstack([body.offsets, [[0.1, 0, 0], [0.04, 0, 0], [0.1, 0, 0]]])
        return Skeleton(tuple(names), np.array(parents), offsets, ("ZYX",) * len(names))

    source, target = with_fingers("LeftHandIndex{}"), with_fingers("index_0{}_l")
    turns = np.tile(rotations.IDENTITY, (5, len(source), 1))
    curl = rotations.quaternion_from_expmap(np.array([0.0, 0.0, -0.7]))
    turns[:, source.names.index("LeftHandIndex1")] = curl
    motion = poise.Motion(source, 30.0, np.tile(source.offsets[0], (5, 1)), turns)
    found = retarget(motion, target)
    np.testing.assert_allclose(found.rotations[2, target.names.index("index_01_l")], curl, atol=1e-3)
    twist = found.rotations[:, target.names.index("forearm_twist_l")]
    np.testing.assert_allclose(np.abs(twist[:, 0]), 1.0, atol=1e-9)


def lean(motion):
    """The way from the hips to the head."""
    hips = np.mean([motion.positions[f"{side}_thigh"] for side in ("left", "right")], axis=0)
    way = motion.positions["head"] - hips
    return way / np.linalg.norm(way, axis=-1, keepdims=True)


def test_hands_bend_the_trunk_only_so_far():
    source = poise.performer.act("sit", seed=3)
    found = retarget(source, short_arms(0.45))
    assert np.degrees(np.arccos(np.sum(lean(found) * lean(source), axis=-1))).max() < 15.5
    assert max(misses(found, source)) > 0.02
    assert max(slides(found, source)) < 0.01


def test_contacts_that_are_not_asked_for_are_not_kept(walk):
    source = poise.performer.act("sit", seed=3)
    assert max(misses(retarget(source, short_arms(), contacts="feet"), source)) > 0.02
    kept, free = (retarget(walk, a_pose(), contacts=contacts) for contacts in ("feet", "none"))
    assert max(slides(kept, walk)) < 0.001 < max(slides(free, walk))


def test_contacts_are_listed():
    source = poise.performer.act("sit", seed=3)
    listed = dict(spans(source))
    assert set(dict(spans(source, "feet"))) == {"left foot on the floor", "right foot on the floor"}
    assert "left hand on the left thigh" in listed
    assert all(0.0 <= start < end <= source.seconds for when in listed.values() for start, end in when)


def in_boots(path, *, thick=0.08):
    """A character whose feet are boxes of skin that reach this far below its ankles, and whose hands are flat ones."""
    body = a_pose()
    gltf.write(Pose.rest(body, root_position=body.offsets[0].tolist()), path)
    content, binary = parts_of(path)
    del content["scenes"][0]["extras"]
    nodes = {node.get("name"): number for number, node in enumerate(content["nodes"])}
    places = joint_transforms(Motion.of_poses([Pose.rest(body, root_position=body.offsets[0].tolist())]))[0][
        0
    ]
    corners, joints, listed = [], [], list(content["skins"][0]["joints"])
    for name in ("foot_l", "foot_r", "hand_l", "hand_r"):
        x, y, z = places[body.index(name)]
        reach = (0.04, thick, 0.15) if "foot" in name else (0.12, 0.01, 0.03)
        corners += [
            (x + a * reach[0], y - c * reach[1], z + b * reach[2])
            for a in (-1, 1) for b in (-1, 1) for c in (0, 1)
        ]  # fmt: skip
        joints += 8 * [listed.index(nodes[name])]
    points = np.array(corners, dtype=np.float32)
    chunks = [
        (points, "VEC3", 5126),
        (np.pad(np.array(joints, dtype=np.uint16)[:, None], ((0, 0), (0, 3))), "VEC4", 5123),
        (np.tile(np.array([1.0, 0, 0, 0], dtype=np.float32), (len(points), 1)), "VEC4", 5126),
    ]
    names = {}
    for name, (values, kind, component) in zip(("POSITION", "JOINTS_0", "WEIGHTS_0"), chunks, strict=True):
        start = len(binary)
        binary += values.tobytes()
        content["bufferViews"].append({"buffer": 0, "byteOffset": start, "byteLength": values.nbytes})
        view = len(content["bufferViews"]) - 1
        entry = {"bufferView": view, "componentType": component, "count": len(values), "type": kind}
        if name == "POSITION":
            entry |= {"min": points.min(axis=0).tolist(), "max": points.max(axis=0).tolist()}
        content["accessors"].append(entry)
        names[name] = len(content["accessors"]) - 1
    content["buffers"][0]["byteLength"] = len(binary)
    content["meshes"] = [{"primitives": [{"attributes": names}]}]
    return packed(path, content, binary)


def soles(motion):
    """The lowest skin of each foot."""
    skin = skin_of(motion)
    return np.stack([sole.lowest(motion) for sole in skin.soles], axis=-1)


def test_the_skin_of_a_standing_foot_is_on_the_floor_and_never_below(tmp_path, walk):
    found = retarget(walk, in_boots(tmp_path / "boots.glb"))
    heights, standing = soles(found) / found.skeleton.height, foot_contacts(walk).feet
    assert np.abs(heights[standing]).max() < 0.001
    assert heights.min() > -0.001
    assert max(slides(found, walk)) < 0.001
    assert np.mean(found.positions["left_foot"][standing[:, 0], 1]) > 0.08


def test_the_soles_of_a_cleaned_motion_are_on_the_floor(tmp_path, walk):
    found = retarget(walk, in_boots(tmp_path / "boots.glb"))
    sunk = found.with_frames(found.root_positions - (0.0, 0.02, 0.0), found.rotations)
    assert soles(sunk).min() < -0.019
    mended = repair(sunk).motion
    standing = foot_contacts(mended).feet
    off = np.abs(soles(mended)[standing])
    assert np.quantile(off, 0.98) < 0.001
    assert off.max() < 0.01


def test_palms_are_in_the_middle_of_the_hands_skin(tmp_path):
    file = in_boots(tmp_path / "boots.glb")
    left, right = skin_of(open_character(file)).palms
    assert 0.46 * 0.05 < min(left, right) <= max(left, right) < 0.46 * 0.13


def flat_file(path):
    """A character whose bones are all side by side below one node, named by numbers."""
    body = person()
    gltf.write(Pose.rest(body, root_position=body.offsets[0].tolist()), path)
    content, binary = parts_of(path)
    del content["scenes"][0]["extras"]
    places = joint_transforms(Motion.of_poses([Pose.rest(body, root_position=body.offsets[0].tolist())]))[0][
        0
    ]
    joints = {
        name: k for k, name in enumerate(node.get("name") for node in content["nodes"]) if name in body.names
    }
    for name, node in joints.items():
        place = places[body.names.index(name)].tolist()
        entry = {"name": f"node_{node}", "translation": place}
        content["nodes"][node] = entry | {
            key: value for key, value in content["nodes"][node].items() if key in ("mesh", "skin")
        }
    content["scenes"][0]["nodes"] = [
        node for node in content["scenes"][0]["nodes"] if node not in joints.values()
    ] + [len(content["nodes"])]
    content["nodes"].append({"name": "all", "children": sorted(joints.values())})
    return packed(path, content, binary), body, joints


def test_bones_that_all_hang_on_one_node_are_joined_by_their_skin_and_places(tmp_path, walk):
    file, body, joints = flat_file(tmp_path / "flat.glb")
    found = open_character(file).skeleton
    for role in MAIN_ROLES:
        assert found.roles[role] == f"node_{joints[body.roles[role]]}", role
    moved = retarget(walk[:20], file)
    moved.save(tmp_path / "out.glb")
    again = poise.read(tmp_path / "out.glb")
    gap = joint_transforms(again)[0] - joint_transforms(moved)[0]
    assert np.abs(gap).max() < 1e-4
