"""The valid seed files of fuzzing: a small synthetic motion and its markers, in all formats and variants."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
from mutations import glb, glb_parts
from PIL import Image

import poise
from poise.geometry import rotations
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.skeleton import Skeleton

Files = dict[str, bytes]  # contents by extension: an Acclaim seed has two

_BONES = {
    "Hips": ("", (0.0, 0.0, 0.0)),
    "LeftUpLeg": ("Hips", (0.1, -0.05, 0.0)),
    "LeftLeg": ("LeftUpLeg", (0.0, -0.4, 0.0)),
    "LeftLeg_end": ("LeftLeg", (0.0, -0.4, 0.1)),
    "RightUpLeg": ("Hips", (-0.1, -0.05, 0.0)),
    "RightLeg": ("RightUpLeg", (0.0, -0.4, 0.0)),
    "RightLeg_end": ("RightLeg", (0.0, -0.4, 0.1)),
    "Spine": ("Hips", (0.0, 0.3, 0.0)),
    "Head": ("Spine", (0.0, 0.3, 0.0)),
    "Head_end": ("Head", (0.0, 0.2, 0.0)),
}


def make_seeds(folder: Path) -> dict[str, list[Files]]:
    """Seeds by format, made by Poise's own writers."""
    motion = _motion(frames=6)
    markers = _markers(motion)
    bvh = _written(motion, folder / "seed.bvh")
    acclaim = _written(motion, folder / "seed.amc") | {".asf": (folder / "seed.asf").read_bytes()}
    trc = _written(markers, folder / "seed.trc")
    bare = _written(motion, folder / "bare.glb", mannequin=False)
    dressed = _written(motion, folder / "dressed.glb")
    crlf = {".bvh": bvh[".bvh"].replace(b"\n", b"\r\n")}
    spaced = {
        ".trc": re.sub(rb"\t+", b" ", _written(_markers(motion, gaps=False), folder / "full.trc")[".trc"])
    }
    rich = {".asf": _with_axes(acclaim[".asf"]), ".amc": acclaim[".amc"]}
    return {
        "bvh": [bvh, crlf, {".bvh": _with_six_channels(bvh[".bvh"])}],
        "acclaim": [acclaim, rich, {".asf": rich[".asf"]}],
        "trc": [trc, spaced],
        "gltf": [bare, bare, bare, dressed],
        "amass": [_amass(folder / "seed.npz")],
        "mesh": [dressed, {".glb": _with_picture(dressed[".glb"])}],
    }


def _amass(path: Path) -> Files:
    np.savez(path, poses=np.zeros((4, 66)), trans=np.zeros((4, 3)), mocap_framerate=30.0, betas=np.zeros(4))
    return {".npz": path.read_bytes()}


def make_c3d_seeds(folder: Path) -> list[Files]:
    """Seeds of the format that is read by compiled code, without and with analog channels."""
    plain = _written(_markers(_motion(frames=6)), folder / "seed.c3d")
    return [plain, {".c3d": _with_analog_channels(folder / "seed.c3d")}]


def _with_analog_channels(path: Path) -> bytes:
    import ezc3d

    content = ezc3d.c3d(str(path))
    rate = content["parameters"]["POINT"]["RATE"]["value"][0]
    content["parameters"]["ANALOG"]["RATE"]["value"] = [2 * rate]
    content["parameters"]["ANALOG"]["LABELS"]["value"] = ["Fx", "Fy"]
    content["data"]["analogs"] = np.ones((1, 2, 2 * content["data"]["points"].shape[2]))
    content.write(str(path))
    return path.read_bytes()


def _motion(*, frames: int) -> Motion:
    names = tuple(_BONES)
    parents = np.array([names.index(parent) if parent else -1 for parent, _ in _BONES.values()])
    skeleton = Skeleton(names, parents, np.array([offset for _, offset in _BONES.values()]))
    generator = np.random.default_rng(0)
    turned = rotations.quaternion_from_expmap(generator.normal(scale=0.3, size=(frames, len(names), 3)))
    turned[:, skeleton.is_end_site] = rotations.IDENTITY
    return Motion(skeleton, 30.0, generator.normal([0.0, 0.9, 0.0], 0.1, size=(frames, 3)), turned)


def _markers(motion: Motion, *, gaps: bool = True) -> Markers:
    points, _ = world_transforms(motion.skeleton, motion.root_positions, motion.rotations)
    hidden = np.zeros(points.shape, dtype=bool)
    hidden[2, 3] = gaps
    points = np.where(hidden, np.nan, points)
    return Markers(motion.skeleton.names, points, motion.fps)


def _written(value: Motion | Markers, path: Path, **options: bool) -> Files:
    poise.write(value, path, **options)
    return {path.suffix: path.read_bytes()}


def _with_six_channels(bvh: bytes) -> bytes:
    """The first joint below the root gets positions too; each row then lacks three numbers, which come at its end."""
    head, motion, rows = bvh.partition(b"MOTION")
    head = head.replace(b"CHANNELS 3 ", b"CHANNELS 6 Xposition Yposition Zposition ", 1)
    lines = rows.rstrip(b"\n").split(b"\n")
    return head + motion + b"\n".join([*lines[:3], *(line + b" 1 2 3" for line in lines[3:])]) + b"\n"


def _with_picture(content: bytes) -> bytes:
    """The first material gets a picture, and the first mesh its places in it."""
    text, binary = glb_parts(content)
    document, picture = json.loads(text), io.BytesIO()
    Image.new("RGB", (4, 4), "red").save(picture, "png")
    view = {"buffer": 0, "byteOffset": len(binary), "byteLength": len(picture.getvalue())}
    document["bufferViews"].append(view)
    document["images"] = [{"bufferView": len(document["bufferViews"]) - 1, "mimeType": "image/png"}]
    document["textures"] = [{"source": 0}]
    document["materials"][0]["pbrMetallicRoughness"]["baseColorTexture"] = {"index": 0}
    first = document["meshes"][0]["primitives"][0]["attributes"]
    flat = dict(document["accessors"][first["POSITION"]], type="VEC2")  # some numbers
    document["accessors"].append({key: flat[key] for key in ("bufferView", "componentType", "count", "type")})
    first["TEXCOORD_0"] = len(document["accessors"]) - 1
    whole = binary + picture.getvalue()
    document["buffers"][0]["byteLength"] = len(whole)
    return glb(json.dumps(document).encode(), whole)


def _with_axes(asf: bytes) -> bytes:
    """Bones with axes of their own and with limits."""
    return asf.replace(b"axis 0 0 0 XYZ", b"axis 20 -30 90 ZXY").replace(b"(-180.0 180.0)", b"(-60.0 90.0)")
