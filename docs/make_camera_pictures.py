"""Makes the pictures of docs/cameras.md from the camera simulator: the stages, the latency, where a board was seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float
from PIL import Image

from poise import performer
from poise.apps.camera_calibration import Calibrated
from poise.apps.camera_pictures import LEFT_OUT, Picture, draw_body, draw_coverage, rgb, stacked
from poise.apps.camera_takes import MORE, NINE
from poise.evaluation.cameras import film, latency_figure, set_up, stages_of
from poise.evaluation.splits import Fold
from poise.geometry.cameras import Camera
from poise.motion.world import joint_transforms
from poise.skeleton.kinematics import world_transforms
from poise.types import Array
from poise.vision.calibrate import Board, BoardView, calibrate_rig
from poise.vision.colours import Colours
from poise.vision.rig import LensCamera
from poise.vision.simulator import Conditions, board_pictures, front_rig

IMAGES = Path(__file__).parent / "images"
BOARD = Board(8, 6, 0.08)


def draw_performance() -> None:
    """The stages of one frame and the latency of all, of a boxer filmed by two cameras."""
    train = tuple(performer.act("box", fps=60, seed=seed) for seed in (0, 1))
    simulator, performance = set_up(Fold(train, ()), performer.act("box", fps=60, seed=12), seconds=3.0)
    filmed = film(simulator, performance)
    stages_of(simulator, filmed, frame=150).save(IMAGES / "camera-stages.png")
    latency_figure(filmed, "boxing").savefig(IMAGES / "camera-latency.png", dpi=100)


def draw_one_camera() -> None:
    """A boxer with nineteen markers before one camera, over its pictures and from the side, where no camera is."""
    train = tuple(performer.act("box", fps=60, seed=seed) for seed in (0, 1))
    clip = performer.act("box", fps=60, seed=12)
    simulator, performance = set_up(Fold(train, ()), clip, cameras=1, markers=len(MORE), seconds=3.0)
    filmed, moments = film(simulator, performance), range(20, 180, 26)
    side = Camera.looking_at((0.0, 0.95, 0.0), eye=(3.4, 1.2, 0.0), field_of_view=0.85)
    q = np.stack([frame.q for watched in filmed if (frame := watched.frame) is not None])
    found, _ = world_transforms(performance.space.skeleton, *performance.space.frames_from_q(q))
    true, _ = joint_transforms(simulator.motion)
    _beside_truth(
        (simulator.rig.cameras[0], replace(simulator.rig.cameras[0], pinhole=side, distortion=np.zeros(5))),
        [simulator.picture(moment, 0) for moment in moments],
        found=found[list(moments)],
        true=true[list(moments)],
        parents=simulator.motion.skeleton.parents.tolist(),
    ).save(IMAGES / "camera-alone.png")


def _beside_truth(
    cameras: tuple[LensCamera, LensCamera],
    pictures: Sequence[Picture],
    *,
    found: Float[Array, "moments joints 3"],
    true: Float[Array, "moments joints 3"],
    parents: Sequence[int],
    height: int = 300,
) -> Image.Image:
    """A column per moment: the body over one camera's picture, and from a free viewpoint, with the truth in grey."""
    columns = []
    for picture, joints, truth in zip(pictures, found, true, strict=True):
        over = draw_body((0.45 * rgb(picture)).astype(np.uint8), cameras[0], joints, parents)
        empty = np.full((*cameras[1].size[::-1], 3), 38, dtype=np.uint8)
        aside = np.asarray(draw_body(empty, cameras[1], truth, parents, colour=LEFT_OUT))
        parts = []
        for camera, part in zip(cameras, (over, draw_body(aside, cameras[1], joints, parents)), strict=True):
            left = int(camera.project(truth[0])[0] - 0.3 * part.height)
            box = (left, 0, left + round(0.6 * part.height), part.height)
            parts.append(part.crop(box).resize((round(0.6 * height), height), Image.Resampling.LANCZOS))
        columns.append(stacked(parts, below=True))
    return stacked(columns)


def draw_colours() -> None:
    """The stages of one frame of a run on the spot, by somebody with a red and a green hand and a yellow forehead."""
    worn = Colours.from_text("LFHD=yellow,LFIN=red,RFIN=green")
    conditions = Conditions(marker_colours=worn.lights(NINE))
    train = tuple(performer.act("run", fps=60, seed=seed) for seed in (0, 1))
    clip = performer.act("run", fps=60, seed=12)
    simulator, performance = set_up(Fold(train, ()), clip, conditions=conditions, seconds=2.0)
    filmed = film(simulator, performance, colours=worn)
    stages_of(simulator, filmed, frame=100).save(IMAGES / "camera-colours.png")


def draw_calibration() -> None:
    """Where two cameras saw a board that was shown to them forty times."""
    rig, views = front_rig(), list[dict[int, BoardView]]([{}, {}])
    for number, pictures in enumerate(board_pictures(rig, BOARD, count=40)):
        for own, picture in zip(views, pictures, strict=True):
            if (view := BOARD.find(picture)) is not None:
                own[number] = view
    found = Calibrated(calibrate_rig(views, names=["left", "right"]), views, ())
    draw_coverage(found).save(IMAGES / "camera-coverage.png")


if __name__ == "__main__":
    draw_performance()
    draw_one_camera()
    draw_colours()
    draw_calibration()
