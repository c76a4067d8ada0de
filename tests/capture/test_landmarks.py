"""Landmarks of other programs: each format gives the same points, and a body that stands as the recorded one."""

from __future__ import annotations

import json
import pickle
import sys
import types
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import poise
from poise import performer
from poise.capture import landmarks
from poise.errors import ParseError
from poise.motion.motion import Motion
from poise.skeleton.pose_space import PoseSpace
from poise.types import Array
from poise.vision.people.person import INDEX, handles_of
from poise.vision.people.unknown_camera import level_camera

SIZE = (1280, 720)


class Filmed:
    """A clip before a camera: places in its axes, and pixels."""

    def __init__(self) -> None:
        self.clip = performer.act("box", seconds=0.5, fps=30.0)
        space = PoseSpace(self.clip.skeleton)
        handles = space.handles(handles_of(self.clip.skeleton)[0])
        q = space.q_from_frames(self.clip.root_positions, self.clip.rotations)
        places = np.stack([space.handle_positions(one, handles)[0] for one in q])
        camera = level_camera(SIZE)
        self.camera = replace(camera, translation=camera.translation + np.array([0.0, 0.0, 3.0]))
        self.pixels = np.stack([self.camera.project(one) for one in places])
        self.places = places @ self.camera.rotation.T + self.camera.translation
        self.hips = self.places[:, [INDEX["left_hip"], INDEX["right_hip"]]].mean(axis=1)
        self.shapes = self.places - self.hips[:, None]

    def points(self, names: str, score: float) -> list[list[float]]:
        """Flat lists of x, y and a score, by frame; zeros for what is not one of BlazePose's."""
        rows = np.zeros((len(self.clip), len(names.split()), 3))
        for number, name in enumerate(names.split()):
            if name in INDEX:
                rows[:, number, :2], rows[:, number, 2] = self.pixels[:, INDEX[name]], score
        return [row.ravel().tolist() for row in rows]


@pytest.fixture(scope="module")
def filmed() -> Filmed:
    return Filmed()


def mediapipe(filmed: Filmed, folder: Path) -> Path:
    scaled = filmed.pixels / SIZE
    frames: list[Any] = [
        {
            "landmarks": [[{"x": x, "y": y, "z": 0.0, "visibility": 0.9} for x, y in flat.tolist()]],
            "worldLandmarks": [[{"x": x, "y": y, "z": z} for x, y, z in deep.tolist()]],
        }
        for flat, deep in zip(scaled, filmed.shapes, strict=True)
    ]
    frames[3] = {"landmarks": [], "worldLandmarks": []}
    file = folder / "mediapipe.json"
    file.write_text(json.dumps({"fps": 25, "width": SIZE[0], "height": SIZE[1], "frames": frames}))
    return file


def openpose(filmed: Filmed, folder: Path) -> Path:
    for number, row in enumerate(filmed.points(landmarks.BODY_25, 0.8)):
        file = folder / f"clip_{number:012d}_keypoints.json"
        file.write_text(json.dumps({"version": 1.3, "people": [{"pose_keypoints_2d": row}]}))
    return file


def coco(filmed: Filmed, folder: Path) -> Path:
    rows = [
        {"image_id": number, "category_id": 1, "keypoints": row}
        for number, row in enumerate(filmed.points(landmarks.COCO_17, 2.0))
    ]
    small = [{**row, "keypoints": (0.1 * np.array(row["keypoints"])).tolist()} for row in rows]
    images = [{"id": number, "width": SIZE[0], "height": SIZE[1]} for number in range(len(rows))]
    file = folder / "coco.json"
    file.write_text(json.dumps({"images": images, "annotations": [*rows, *small]}))
    return file


def sam(filmed: Filmed, folder: Path) -> Path:
    deep, flat = np.zeros((len(filmed.clip), 70, 3)), np.zeros((len(filmed.clip), 70, 2))
    for number, name in enumerate(landmarks.MHR_70.split()):
        if name != "-":
            deep[:, number], flat[:, number] = filmed.shapes[:, INDEX[name]], filmed.pixels[:, INDEX[name]]
    rows = zip(deep.tolist(), flat.tolist(), filmed.hips.tolist(), strict=True)
    focal = float(filmed.camera.intrinsics[0, 0])
    frames = [
        [{"pred_keypoints_3d": a, "pred_keypoints_2d": b, "pred_cam_t": c, "focal_length": focal}]
        for a, b, c in rows
    ]
    file = folder / "sam.json"
    file.write_text(json.dumps(frames))
    return file


@pytest.mark.parametrize("write", [mediapipe, openpose, coco, sam])
def test_points_are_where_they_were_seen(filmed: Filmed, tmp_path: Path, write: Any) -> None:
    found = landmarks._parsed(write(filmed, tmp_path))
    assert len(found.pixels) == len(filmed.clip)
    seen = found.visibility > 0.0
    assert seen.sum(axis=1).max() >= 11
    np.testing.assert_allclose(found.pixels[seen], filmed.pixels[seen], atol=1e-6)
    if write is sam:
        assert found.focal == pytest.approx(filmed.camera.intrinsics[0, 0])
        np.testing.assert_allclose(found.size, SIZE, atol=1)
    if write is mediapipe:
        assert found.fps == 25
        assert not seen[3].any()
    if np.isfinite(found.shapes).any():
        own = np.isfinite(found.shapes).all(axis=-1) & seen
        np.testing.assert_allclose(found.shapes[own], filmed.shapes[own], atol=1e-6)


def test_a_body_stands_as_the_recorded_one(filmed: Filmed, tmp_path: Path) -> None:
    found = poise.read(sam(filmed, tmp_path), height=filmed.clip.skeleton.height)
    assert isinstance(found, Motion)
    assert "SAM 3D Body" in " ".join(found.origin.notes)
    roles = ("left_hand", "right_hand", "left_foot", "right_foot", "head")

    def about_hips(motion: Motion) -> Array:
        return np.stack([motion.positions[role] - motion.positions["pelvis"] for role in roles])

    assert np.linalg.norm(about_hips(found) - about_hips(filmed.clip), axis=-1).mean() < 0.15


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"people": [{}]}', '{"annotations": [{"image_id": 1}]}', '{"a": 1}']
)
def test_files_without_landmarks_are_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "wrong.json"
    file.write_text(content)
    with pytest.raises((ParseError, poise.PoiseError)):
        poise.read(file)


class _Tensors(pickle.Pickler):
    """Writes arrays as torch does: a call that rebuilds each from its numbers in the archive."""

    arrays: dict[str, Array]

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, tuple) and obj and obj[0] == "numbers":
            return ("storage", sys.modules["torch"].FloatStorage, obj[1], "cpu", self.arrays[obj[1]].size)
        return None

    def reducer_override(self, obj: Any) -> Any:
        if not isinstance(obj, np.ndarray):
            return NotImplemented
        key = str(len(self.arrays))
        self.arrays[key] = obj.astype("<f4")
        steps = tuple(step // 8 for step in obj.strides)
        rebuild = sys.modules["torch._utils"]._rebuild_tensor_v2
        return rebuild, (("numbers", key), 0, obj.shape, steps, False, {})


def test_gvhmr_is_read_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def _rebuild_tensor_v2() -> None: ...

    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    _rebuild_tensor_v2.__module__, _rebuild_tensor_v2.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
    storage = type("FloatStorage", (), {"__module__": "torch"})
    torch.FloatStorage, utils._rebuild_tensor_v2 = storage, _rebuild_tensor_v2  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch._utils", utils)
    draw = np.random.default_rng(0)
    body = {
        "global_orient": 0.1 * draw.normal(size=(6, 3)), "body_pose": 0.1 * draw.normal(size=(6, 63)),
        "transl": draw.normal(size=(6, 3)), "betas": np.zeros((6, 10)),
    }  # fmt: skip
    file = tmp_path / "hmr4d_results.pt"
    with zipfile.ZipFile(file, "w") as archive:
        with archive.open("hmr4d_results/data.pkl", "w") as stream:
            pickler = _Tensors(stream, protocol=2)
            pickler.arrays = {}
            pickler.dump({"smpl_params_global": body})
        for key, numbers in pickler.arrays.items():
            archive.writestr(f"hmr4d_results/data/{key}", numbers.tobytes())
    found = poise.read(file)
    assert isinstance(found, Motion)
    assert (len(found), found.fps, found.origin.format) == (6, 30.0, "gvhmr")
    np.testing.assert_allclose(
        np.diff(found.root_positions, axis=0), np.diff(body["transl"], axis=0), atol=1e-5
    )


def test_code_in_a_torch_file_does_not_run(tmp_path: Path) -> None:
    class Wrong:
        def __reduce__(self) -> Any:
            return (print, ("run",))

    file = tmp_path / "wrong.pt"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a/data.pkl", pickle.dumps(Wrong()))
    with pytest.raises(ParseError, match="only arrays are read"):
        poise.read(file)
