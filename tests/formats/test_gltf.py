"""GLB: what is written reads back and passes the Khronos validator; strange and broken files are met calmly."""

import base64
import contextlib
import json
import shutil
import struct
import subprocess
import zlib
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from bodies import moving, person, stepping
from poise.errors import InvalidValueError, ParseError, PoiseError
from poise.formats import gltf, read, write
from poise.formats.gltf.container import Container
from poise.formats.gltf.meshes import read_mesh
from poise.geometry import rotations
from poise.motion import Motion
from poise.motion.motion import Origin
from poise.skeleton import Pose, Skeleton
from poise.skeleton.kinematics import world_transforms
from real_data import recordings

TOOLS = Path(__file__).parents[1] / "tools"


def same_motion(found, expected):
    assert found.skeleton.names == expected.skeleton.names
    assert found.skeleton.parents.tolist() == expected.skeleton.parents.tolist()
    assert found.skeleton.orders == expected.skeleton.orders
    assert found.skeleton.offsets == pytest.approx(expected.skeleton.offsets, abs=1e-5)
    assert found.fps == expected.fps
    assert found.root_positions == pytest.approx(expected.root_positions, abs=1e-5)
    assert rotations.geodesic_distance(found.rotations, expected.rotations).max() < 1e-5


def document(path):
    """The JSON and the binary chunk of a GLB."""
    data = path.read_bytes()
    length = struct.unpack_from("<I", data, 12)[0]
    return json.loads(data[20 : 20 + length]), data[28 + length :]


def glb(path, content, binary=b""):
    """Writes a GLB of any JSON."""
    text = json.dumps(content).encode()
    text += b" " * (-len(text) % 4)
    body = struct.pack("<I4s", len(text), b"JSON") + text
    if binary:
        body += struct.pack("<I4s", len(binary), b"BIN\0") + binary
    path.write_bytes(struct.pack("<4sII", b"glTF", 2, 12 + len(body)) + body)
    return path


def packed(*columns):
    """Arrays as a buffer with one view and one accessor each."""
    views, accessors, data = [], [], b""
    for values in columns:
        values = np.asarray(values, dtype=np.float32)
        kind = {1: "SCALAR", 3: "VEC3", 4: "VEC4", 16: "MAT4"}[1 if values.ndim == 1 else values.shape[1]]
        views.append({"buffer": 0, "byteOffset": len(data), "byteLength": values.nbytes})
        accessors.append(
            {"bufferView": len(views) - 1, "componentType": 5126, "count": len(values), "type": kind}
        )
        data += values.tobytes()
    return {"bufferViews": views, "accessors": accessors, "buffers": [{"byteLength": len(data)}]}, data


# --- round trips -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mannequin", [True, False])
def test_a_motion_reads_back(tmp_path, mannequin):
    motion = moving(person(), frames=50, fps=120.0)
    path = gltf.write(motion, tmp_path / "walk.glb", mannequin=mannequin)
    same_motion(gltf.read(path), motion)


def test_name_and_frame_rate_survive_and_the_registry_knows_the_format(tmp_path):
    motion = stepping(person(), fps=59.94).with_frames(
        *_frames(stepping(person())), name="Ünusual name", fps=59.94
    )
    found = read(write(motion, tmp_path / "clip.glb"))
    assert isinstance(found, Motion)
    assert (found.name, found.fps, len(found)) == ("Ünusual name", 59.94, len(motion))
    assert found.origin.units == "m"
    assert found.origin.format == "gltf"


def test_credits_are_the_copyright_of_the_file_beside_that_of_a_character(tmp_path):
    credited = replace(stepping(person()), origin=Origin(credits=("A database", "CC0")))
    character = write(credited, tmp_path / "character.glb")
    assert Container(character).json["asset"]["copyright"] == "A database; CC0"
    other = replace(credited, origin=Origin(credits=("CC0", "by permission"), character=str(character)))
    found = read(write(other, tmp_path / "clip.glb"))
    assert found.origin.credits == ("A database", "CC0", "by permission")
    assert "copyright" not in Container(write(stepping(person()), tmp_path / "plain.glb")).json["asset"]


def _frames(motion):
    return motion.root_positions, motion.rotations


@settings(max_examples=25)
@given(
    turns=arrays.arrays(np.float64, (3, 7, 3), elements=st.floats(-7.0, 7.0)),
    roots=arrays.arrays(np.float64, (3, 3), elements=st.floats(-50.0, 50.0)),
)
def test_any_rotations_read_back(tmp_path_factory, turns, roots):
    parents = np.array([-1, 0, 1, 2, 0, 4, 5])
    offsets = np.array(
        [[0, 1, 0], [0, 0.3, 0], [0.2, 0, 0], [0.2, 0, 0.1], [0, -0.4, 0], [0, -0.4, 0], [0, 0, 0.1]]
    )
    skeleton = Skeleton(tuple("abcdefg"), parents, offsets, ("ZYX",) * 7)
    motion = Motion(skeleton, 30.0, roots, rotations.quaternion_from_expmap(turns))
    path = tmp_path_factory.mktemp("glb") / "any.glb"
    same_motion(gltf.read(gltf.write(motion, path)), motion)


def test_a_single_pose_has_no_animation_and_stands_in_its_nodes(tmp_path):
    pose = moving(person())[7]
    path = gltf.write(pose, tmp_path / "pose.glb")
    assert "animations" not in document(path)[0]
    found = gltf.read(path)
    assert len(found) == 1
    assert rotations.geodesic_distance(found.rotations[0], pose.rotations).max() < 1e-5
    assert found.root_positions[0] == pytest.approx(pose.root_position, abs=1e-5)


def test_joints_that_keep_still_are_not_animated_and_signs_do_not_jump(tmp_path):
    motion = stepping(person())
    flipped = motion.rotations * np.where(np.arange(len(motion)) % 2, -1.0, 1.0)[:, None, None]
    path = gltf.write(motion.with_frames(motion.root_positions, flipped), tmp_path / "walk.glb")
    content, binary = document(path)
    channels = content["animations"][0]["channels"]
    moved = {
        content["nodes"][c["target"]["node"]]["name"] for c in channels if c["target"]["path"] == "rotation"
    }
    assert moved == {f"{side}_{part}" for side in ("left", "right") for part in ("thigh", "shin", "foot")}
    for sampler in content["animations"][0]["samplers"][1:]:
        view = content["bufferViews"][content["accessors"][sampler["output"]]["bufferView"]]
        keys = np.frombuffer(binary, np.float32, view["byteLength"] // 4, view["byteOffset"]).reshape(-1, 4)
        assert np.all(np.sum(keys[1:] * keys[:-1], axis=-1) > 0.0)


def test_the_mesh_is_bound_so_that_joints_lie_inside_their_parts(tmp_path):
    motion = stepping(person())
    content, _ = document(gltf.write(motion, tmp_path / "walk.glb"))
    bounds = [content["accessors"][p["attributes"]["POSITION"]] for p in content["meshes"][0]["primitives"]]
    high = np.max([b["max"] for b in bounds], axis=0)
    assert high[1] == pytest.approx(1.75, abs=0.08)  # bound standing, in the rest pose
    assert content["skins"][0]["joints"] == list(range(len(motion.skeleton)))
    assert {m["name"] for m in content["materials"]} >= {"Left", "Right", "Centre"}


def test_values_that_are_not_finite_are_refused_before_anything_is_written(tmp_path):
    motion = moving(person())
    roots = motion.root_positions.copy()
    roots[3, 1] = np.nan
    with pytest.raises(InvalidValueError, match="NaN"):
        gltf.write(motion.with_frames(roots, motion.rotations), tmp_path / "bad.glb")
    assert not (tmp_path / "bad.glb").exists()


# --- the Khronos validator -------------------------------------------------------------------------------------------


def validated(*paths):
    """The validator's report on each file; skips the test where it cannot be run."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    if not (TOOLS / "node_modules" / "gltf-validator").is_dir():
        pytest.skip("the glTF validator is not installed; `npm ci --prefix tests/tools` installs it")
    command = [node, str(TOOLS / "validate_gltf.mjs"), *map(str, paths)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return [json.loads(line)["issues"] for line in done.stdout.splitlines()]


def test_the_khronos_validator_has_nothing_to_say(tmp_path):
    walk = moving(person())
    snake = Skeleton(tuple("abc"), np.array([-1, 0, 1]), np.array([[0.0, 0, 0], [0, 0, 0.3], [0, 0, 0.3]]))
    crowd = Skeleton(
        tuple(f"joint {k}" for k in range(300)), np.arange(300) - 1, np.tile([0.0, 0.05, 0.0], (300, 1))
    )
    files = [
        gltf.write(walk, tmp_path / "walk.glb"),
        gltf.write(walk[4], tmp_path / "pose.glb"),
        gltf.write(Pose.rest(snake), tmp_path / "snake.glb"),
        gltf.write(moving(crowd, frames=5), tmp_path / "crowd.glb"),
        gltf.write(walk, tmp_path / "bare.glb", mannequin=False),
    ]
    reports = validated(*files)
    assert [(r["numErrors"], r["numWarnings"]) for r in reports] == [(0, 0)] * len(files)
    assert [r["messages"] for r in reports[:4]] == [[]] * 4


def test_the_khronos_validator_accepts_real_clips(tmp_path):
    files = []
    for collection in ("cmu", "bandai"):
        motion = read(recordings(collection)[1])
        files.append(gltf.write(motion, tmp_path / f"{collection}.glb"))
        same_motion(gltf.read(files[-1]), motion)
    assert [(r["numErrors"], r["numWarnings"]) for r in validated(*files)] == [(0, 0)] * 2


# --- other exporters' files ------------------------------------------------------------------------------------------

HALF = float(np.sqrt(0.5))


def test_rest_rotations_and_an_armature_in_centimetres_are_folded_away(tmp_path):
    nodes = [
        {"name": "Armature", "scale": [0.01, 0.01, 0.01], "rotation": [-HALF, 0, 0, HALF], "children": [1]},
        {"name": "Hips", "translation": [0, 0, 100], "rotation": [0, 0, HALF, HALF], "children": [2]},
        {"name": "Spine", "translation": [30, 0, 0], "rotation": [HALF, 0, 0, HALF], "children": [3]},
        {"name": "Head", "translation": [0, 40, 0]},
    ]
    buffers, data = packed([0.0, 0.5, 1.0], [[HALF, 0, 0, HALF], [0.0, 0, 0, 1], [-HALF, 0, 0, HALF]])
    animation = {
        "channels": [{"sampler": 0, "target": {"node": 2, "path": "rotation"}}],
        "samplers": [{"input": 0, "output": 1}],
    }
    content = {
        "asset": {"version": "2.0"},
        "nodes": nodes,
        "scenes": [{"nodes": [0]}],
        "animations": [animation],
    }
    found = gltf.read(glb(tmp_path / "rig.glb", content | buffers, data))
    assert found.skeleton.names == ("Armature", "Hips", "Spine", "Head")
    assert np.linalg.norm(found.skeleton.offsets, axis=-1) == pytest.approx([0.0, 1.0, 0.3, 0.4], abs=1e-6)
    assert found.rotations[0] == pytest.approx(np.tile(rotations.IDENTITY, (4, 1)), abs=1e-6)
    positions, _ = world_transforms(found.skeleton, found.root_positions, found.rotations)
    assert positions[0, 1] == pytest.approx([0.0, 1.0, 0.0], abs=1e-6)  # the armature's Z is up
    assert positions[0, 2] == pytest.approx([0.0, 1.0, -0.3], abs=1e-6)
    turned = rotations.geodesic_distance(found.rotations[-1], found.rotations[0])
    assert turned == pytest.approx([0.0, 0.0, np.pi, 0.0], abs=1e-5)


def one_turning_node(tmp_path, interpolation, times, values):
    buffers, data = packed(times, values)
    animation = {
        "channels": [{"sampler": 0, "target": {"node": 0, "path": "rotation"}}],
        "samplers": [{"input": 0, "output": 1, "interpolation": interpolation}],
    }
    content = {"asset": {"version": "2.0"}, "nodes": [{"name": "a"}], "animations": [animation]}
    return gltf.read(glb(tmp_path / "one.glb", content | buffers, data))


def about_y(*angles):
    return [[0.0, float(np.sin(a / 2)), 0.0, float(np.cos(a / 2))] for a in angles]


def test_linear_step_and_cubic_samplers(tmp_path):
    times = [0.0, 1.0]
    linear = one_turning_node(tmp_path, "LINEAR", times, about_y(0.0, 1.2))
    assert (len(linear), linear.fps) == (31, 30.0)
    angles = rotations.expmap_from_quaternion(linear.rotations[:, 0])[:, 1]
    assert angles == pytest.approx(np.linspace(0.0, 1.2, 31), abs=1e-6)
    step = one_turning_node(tmp_path, "STEP", times, about_y(0.0, 1.2))
    assert rotations.expmap_from_quaternion(step.rotations[:, 0])[:, 1] == pytest.approx(
        [0.0] * 30 + [1.2], abs=1e-6
    )
    flat = [0.0, 0.0, 0.0, 0.0]
    keys = about_y(0.0, 1.2)
    cubic = one_turning_node(tmp_path, "CUBICSPLINE", times, [flat, keys[0], flat, flat, keys[1], flat])
    eased = rotations.expmap_from_quaternion(cubic.rotations[:, 0])[:, 1]
    assert eased[[0, 15, 30]] == pytest.approx([0.0, 0.6, 1.2], abs=1e-6)
    assert eased[3] < 0.06
    assert np.all(np.diff(eased) > 0)


def test_linear_rotations_take_the_shorter_way(tmp_path):
    first, last = about_y(0.2, 0.6)
    found = one_turning_node(tmp_path, "LINEAR", [0.0, 1.0], [first, [-x for x in last]])
    angles = rotations.expmap_from_quaternion(found.rotations[:, 0])[:, 1]
    assert angles == pytest.approx(np.linspace(0.2, 0.6, 31), abs=1e-6)


def test_nodes_given_as_matrices_and_buffers_as_data_addresses(tmp_path):
    turn = rotations.matrix_from_expmap(np.array([0.0, 0.7, 0.0])) * 2.0
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = turn, [1.0, 2.0, 3.0]
    buffers, data = packed([0.0], [[1.0, 1.0, 1.0]])
    buffers["buffers"][0]["uri"] = "data:application/octet-stream;base64," + base64.b64encode(data).decode()
    nodes = [
        {"name": "a", "matrix": matrix.T.reshape(-1).tolist(), "children": [1]},
        {"name": "b", "translation": [0, 0, 1]},
    ]
    animation = {
        "channels": [{"sampler": 0, "target": {"node": 1, "path": "translation"}}],
        "samplers": [{"input": 0, "output": 1}],
    }
    path = tmp_path / "text.gltf"
    path.write_text(
        json.dumps({"asset": {"version": "2.0"}, "nodes": nodes, "animations": [animation]} | buffers)
    )
    found = read(path)
    assert found.origin.warnings == ()
    assert found.root_positions[0] == pytest.approx([1.0, 2.0, 3.0])
    assert found.skeleton.offsets[1] == pytest.approx(turn @ [1.0, 1.0, 1.0], abs=1e-6)


def test_the_extension_of_text_is_not_given_to_binary_files(tmp_path):
    with pytest.raises(InvalidValueError, match=r"name it clip\.glb"):
        write(moving(person()), tmp_path / "clip.gltf")


def test_a_skin_chooses_the_joints_and_two_trees_of_them_get_one_root(tmp_path):
    nodes = [
        {"name": "scene", "children": [1, 3, 5]},
        {"name": "left", "translation": [1, 0, 0], "children": [2]},
        {"name": "left tip", "translation": [0, 1, 0]},
        {"name": "right", "translation": [-1, 0, 0], "children": [4]},
        {"name": "right tip", "translation": [0, 1, 0]},
        {"name": "lamp"},
    ]
    content = {"asset": {"version": "2.0"}, "nodes": nodes, "skins": [{"joints": [1, 2, 3, 4]}]}
    found = gltf.read(glb(tmp_path / "two.glb", content))
    assert set(found.skeleton.names) == {"scene", "left", "left tip", "right", "right tip"}
    assert found.skeleton.names[0] == "scene"


def test_bones_that_stretch_are_reported(tmp_path):
    buffers, data = packed([0.0, 0.1], [[0.0, 1.0, 0.0], [0.0, 1.5, 0.0]])
    animation = {
        "channels": [{"sampler": 0, "target": {"node": 1, "path": "translation"}}],
        "samplers": [{"input": 0, "output": 1}],
    }
    nodes = [{"name": "a", "children": [1]}, {"name": "b", "translation": [0, 1, 0]}]
    content = {"asset": {"version": "2.0"}, "nodes": nodes, "animations": [animation]}
    found = gltf.read(glb(tmp_path / "stretch.glb", content | buffers, data))
    assert any("50.0 cm" in warning for warning in found.origin.warnings)


# --- broken and hostile files ----------------------------------------------------------------------------------------


def base_document():
    buffers, data = packed([0.0, 1.0], [[0.0, 0, 0, 1], [0, 0, 0, 1]])
    animation = {
        "channels": [{"sampler": 0, "target": {"node": 0, "path": "rotation"}}],
        "samplers": [{"input": 0, "output": 1}],
    }
    return {"asset": {"version": "2.0"}, "nodes": [{"name": "a"}], "animations": [animation]} | buffers, data


def changed(*path_and_value):
    """The base document with one entry changed."""
    content, data = base_document()
    *path, last, value = path_and_value
    at = content
    for key in path:
        at = at[key]
    at[last] = value
    return content, data


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (changed("nodes", [{"children": [0]}]), "their own ancestors"),
        (changed("nodes", [{"children": [1]}, {"children": [0]}]), "their own ancestors"),
        (changed("nodes", [{"children": [2]}, {"children": [2]}, {}]), "two parents"),
        (changed("nodes", [{}] * 10_001), "10001 nodes"),
        (changed("nodes", []), "0 nodes"),
        (changed("nodes", 0, "children", [-1]), "'children'"),
        (changed("nodes", 0, "children", "abc"), "'children'"),
        (changed("nodes", 0, "rotation", [0, 0, 0, 0]), "no length"),
        (changed("nodes", 0, "matrix", [0] * 16), "singular"),
        (changed("nodes", 0, "translation", [0, "x", 0]), "'translation'"),
        (changed("accessors", 0, "count", 2**40), "'count'"),
        (changed("accessors", 0, "count", 3), "has only"),
        (changed("accessors", 0, "byteOffset", 7), "has only"),
        (changed("accessors", 0, "componentType", 5127), "unknown type"),
        (changed("accessors", 0, "type", "VEC3"), "has only"),
        (changed("accessors", 0, "bufferView", 9), "'bufferView'"),
        (changed("bufferViews", 0, "byteLength", 2**31), "'byteLength'"),
        (changed("bufferViews", 0, "extensions", {"EXT_meshopt_compression": {}}), "unpack them with: gltfpack"),
        (changed("buffers", 0, "uri", "../../etc/passwd"), "not beside"),
        (changed("buffers", 0, "uri", "http://example.com/a.bin"), "not beside"),
        (changed("buffers", 0, "uri", "data:;base64,%%%"), "base64"),
        (changed("animations", 0, "samplers", 0, "interpolation", "MAGIC"), "interpolation"),
        (changed("animations", 0, "samplers", 0, "input", 1), "expected SCALAR"),
        (changed("asset", "version", "1.0"), "glTF 2"),
        (changed("skins", [{"joints": [0], "inverseBindMatrices": 1}]), "expected MAT4"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(tmp_path, content, message):
    with pytest.raises(ParseError, match=message):
        gltf.read(glb(tmp_path / "bad.glb", *content))


def test_meshes_that_are_compressed_by_draco_are_noted(tmp_path):
    content, data = changed("extensionsUsed", ["KHR_draco_mesh_compression"])
    found = gltf.read(glb(tmp_path / "small.glb", content, data))
    assert any("Draco" in note for note in found.origin.notes)


def test_an_animation_of_ten_thousand_hours_is_refused(tmp_path):
    content, _ = base_document()
    buffers, data = packed([0.0, 3.6e7], [[0.0, 0, 0, 1], [0, 0, 0, 1]])
    with pytest.raises(ParseError, match="more than the file can hold"):
        gltf.read(glb(tmp_path / "long.glb", content | buffers, data))


def test_values_beyond_all_range_are_refused(tmp_path):
    nodes = [{"scale": [1e20] * 3, "children": [k + 1]} for k in range(19)] + [{"translation": [1, 1, 1]}]
    with pytest.raises(ParseError, match="zero scale, or are further"):
        gltf.read(glb(tmp_path / "far.glb", {"asset": {"version": "2.0"}, "nodes": nodes}))


@pytest.mark.slow
def test_deeply_nested_json_and_deep_trees_do_not_hang(tmp_path):
    path = tmp_path / "deep.gltf"
    path.write_text('{"asset":' + "[" * 100_000)
    with pytest.raises(ParseError, match="JSON"):
        gltf.read(path)
    nodes = [{"children": [k + 1], "translation": [0, 0.001, 0]} for k in range(2999)] + [{}]
    found = gltf.read(glb(tmp_path / "chain.glb", {"asset": {"version": "2.0"}, "nodes": nodes}))
    assert len(found.skeleton) == 3000


@pytest.mark.parametrize("cut", [4, 12, 19, 21, 200, -4])
def test_truncated_files_are_parse_errors(tmp_path, cut):
    path = gltf.write(moving(person(), frames=3), tmp_path / "whole.glb", mannequin=False)
    short = tmp_path / "short.glb"
    short.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ParseError, match=r"short\.glb"):
        gltf.read(short)


@settings(max_examples=150)
@given(st.data())
def test_bytes_changed_at_random_give_a_motion_or_a_poise_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("fuzz") / "mutated.glb"
    gltf.write(moving(person(leave_out=("spine", "left_shoulder")), frames=2), path, mannequin=False)
    content = bytearray(path.read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=6)):
        content[place] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content))
    with contextlib.suppress(PoiseError):
        assert isinstance(gltf.read(path), Motion)


@pytest.fixture
def red_character(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A GLB file of a mannequin with a red picture on it, as fuzzing starts from."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "fuzz"))
    return import_module("seeds").make_seeds(tmp_path)["mesh"][1][".glb"]


def test_a_character_with_a_huge_picture_is_drawn_without_it(tmp_path: Path, red_character: bytes) -> None:
    (tmp_path / "red.glb").write_bytes(red_character)
    assert np.any(np.all(read_mesh(tmp_path / "red.glb").colours[:, 1:] == 0.0, axis=1))
    start = red_character.index(b"IHDR")
    head = b"IHDR" + struct.pack(">II", 60_000, 60_000) + red_character[start + 12 : start + 17]
    huge = red_character[:start] + head + struct.pack(">I", zlib.crc32(head)) + red_character[start + 21 :]
    (tmp_path / "huge.glb").write_bytes(huge)
    assert not np.any(np.all(read_mesh(tmp_path / "huge.glb").colours[:, 1:] == 0.0, axis=1))


@pytest.mark.parametrize("attribute", ["JOINTS_0", "WEIGHTS_0", "TEXCOORD_0"])
def test_a_mesh_whose_parts_do_not_fit_is_refused(
    tmp_path: Path, red_character: bytes, attribute: str
) -> None:
    (tmp_path / "a.glb").write_bytes(red_character)
    content, binary = document(tmp_path / "a.glb")
    first = content["meshes"][0]["primitives"][0]["attributes"]
    content["accessors"][first[attribute]]["count"] -= 1
    glb(tmp_path / "a.glb", content, binary)
    with pytest.raises(ParseError, match="does not have"):
        read_mesh(tmp_path / "a.glb")


def test_a_skin_without_joints_carries_nothing(tmp_path: Path, red_character: bytes) -> None:
    (tmp_path / "a.glb").write_bytes(red_character)
    content, binary = document(tmp_path / "a.glb")
    content["skins"][0]["joints"] = []
    glb(tmp_path / "a.glb", content, binary)
    with pytest.raises(ParseError, match="no mesh on its joints"):
        read_mesh(tmp_path / "a.glb")


def test_numbers_that_signal_they_are_none_are_refused(tmp_path: Path, red_character: bytes) -> None:
    (tmp_path / "a.glb").write_bytes(red_character)
    binary = red_character.index(b"BIN\0") + 4
    (tmp_path / "a.glb").write_bytes(
        red_character[:binary] + b"\x01\0\x80\x7f" * 9 + red_character[binary + 36 :]
    )
    with pytest.raises(ParseError, match="not finite"):
        read_mesh(tmp_path / "a.glb")
