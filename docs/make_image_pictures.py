"""Makes the pictures of image.md from a recording: `POISE_MOCAP=... python docs/make_image_pictures.py`.

The photos are the mannequin in frames of CMU 124_02, the style is learned from 124_01. Writes docs/images/image/*.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image

from poise import read
from poise.capture.photos import Shot, pose_from_shots
from poise.geometry.cameras import Camera
from poise.motion.edit import resample
from poise.motion.motion import Motion
from poise.motion.recordings import find_recordings
from poise.pictures.overlay import draw_overlay, render_photo
from poise.priors.style.prior import StylePrior
from poise.skeleton.kinematics import world_transforms

FOLDER = Path(__file__).parent / "images" / "image"
SIZE, FIELD_OF_VIEW = (640, 640), 0.5
SIX = ("head", "pelvis", "left_hand", "right_hand", "left_foot", "right_foot")
FOUR = ("left_hand", "right_hand", "left_foot", "right_foot")


def main() -> None:
    recordings = find_recordings()
    if recordings is None:
        sys.exit("this needs recordings: point POISE_MOCAP at a folder with cmu/124_01.bvh and 124_02.bvh")
    FOLDER.mkdir(parents=True, exist_ok=True)
    learned, unseen = (read(recordings / "cmu" / f"{name}.bvh") for name in ("124_01", "124_02"))
    style = StylePrior.learn([resample(learned, 60)], dimensions=3, active=100).on_body(unseen.skeleton)
    for name, seconds, roles, known in (
        ("known", 2.95, SIX, True),
        ("four", 8.65, FOUR, True),
        ("estimated", 3.45, SIX, False),
    ):
        shot, camera, positions = _photo(unseen, seconds, roles, known=known)
        found = pose_from_shots(style, [shot], fov=None if known else float(np.degrees(FIELD_OF_VIEW)))
        true = positions @ camera.rotation.T
        bodies = [one.space.forward(one.q)[0] @ one.views[0].camera.rotation.T for one in found]
        print(name, [f"{100 * _error(body, true):.1f} cm" for body in bodies])
        poses = [one.space.pose_from_q(one.q) for one in found]
        _save(draw_overlay(shot.photo, found[0].views[0].camera, shot.points, poses), f"{name}.png")


def _photo(
    clip: Motion, seconds: float, roles: tuple[str, ...], *, known: bool
) -> tuple[Shot, Camera, np.ndarray]:
    frame = round(seconds * clip.fps)
    positions, _ = world_transforms(clip.skeleton, clip.root_positions[frame], clip.rotations[frame])
    x, z = positions[0, 0], positions[0, 2]
    eye = (x + 4.0 * np.sin(0.5), 1.5, z + 4.0 * np.cos(0.5))
    camera = Camera.looking_at((x, 0.85, z), eye=eye, size=SIZE, field_of_view=FIELD_OF_VIEW)
    points = {role: camera.project(positions[clip.skeleton.index(role)]) for role in roles}
    return Shot(render_photo(clip[frame], camera, SIZE), points, camera if known else None), camera, positions


def _error(body: np.ndarray, true: np.ndarray) -> float:
    """Mean distance of joints, both seen from the root and along the camera's axes."""
    return float(np.linalg.norm((body - body[0]) - (true - true[0]), axis=1).mean())


def _save(image: Image.Image, name: str) -> None:
    small = image.resize((1100, round(image.height * 1100 / image.width)), Image.Resampling.LANCZOS)
    small.quantize(256, kmeans=1, dither=Image.Dither.NONE).save(FOLDER / name, optimize=True)


if __name__ == "__main__":
    main()
