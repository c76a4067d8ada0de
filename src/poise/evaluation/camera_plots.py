"""Plots of protocol `cameras`: how long each frame takes from picture to pose, and every stage of one frame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from poise.apps.camera_pictures import draw_stages
from poise.evaluation.cameras import FPS, backgrounds_of, film, set_up
from poise.evaluation.report import Request
from poise.performance.cameras import WatchedMoment
from poise.pictures.plots import Plot
from poise.skeleton.kinematics import world_transforms
from poise.vision.simulator import Simulator

INK, POSE, VISION = "#1f2933", "#e08e2b", "#4c78a8"
_SECONDS = 2.0  # of the first test clip, filmed again for the pictures


def draw_cameras(request: Request, folder: Path, step: Callable[[str], None]) -> list[Path]:
    """latency.png and stages.png, of the first test clip."""
    step("filming for the plots")
    fold = request.folds()[0]
    simulator, performance = set_up(
        fold, fold.test[0], cameras=request.options.cameras, markers=request.options.markers, seconds=_SECONDS
    )
    filmed = film(simulator, performance)
    files = [folder / "latency.png", folder / "stages.png"]
    latency_figure(filmed, simulator.motion.name).savefig(files[0], dpi=110)
    stages_of(simulator, filmed, frame=len(filmed) // 2).save(files[1])
    return files


def latency_figure(filmed: Sequence[WatchedMoment], name: str) -> Plot:
    """Milliseconds over time, and how often which."""
    vision = 1000 * np.array([watched.vision_seconds for watched in filmed])
    whole = 1000 * np.array([watched.seconds for watched in filmed])
    figure = Plot(figsize=(9.0, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2.2, 1.0), sharey=True)
    times = np.arange(len(filmed)) / FPS
    left.fill_between(times, 0, vision, color=VISION, label="vision: pictures to labelled markers")
    left.fill_between(times, vision, whole, color=POSE, label="pose")
    left.axhline(1000 / FPS, color=INK, linewidth=0.8, linestyle=":")
    left.set(xlabel="seconds", ylabel="ms from pictures to pose", title=f"Latency, {name}")
    left.set_ylim(0, 1.15 * max(np.percentile(whole, 99), 1000 / FPS))
    left.legend(frameon=False, fontsize=8, loc="upper right")
    right.hist(whole, bins=40, range=left.get_ylim(), orientation="horizontal", color=INK)
    median, most = np.percentile(whole, (50, 95))
    right.set(xlabel="frames", title=f"median {median:.1f} ms, 95 % within {most:.1f} ms")
    right.title.set_fontsize(9)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def stages_of(simulator: Simulator, filmed: Sequence[WatchedMoment], *, frame: int) -> Image.Image:
    """One frame, stage by stage."""
    watched = filmed[frame]
    assert watched.frame is not None
    pose = watched.frame.pose
    joints, _ = world_transforms(pose.skeleton, pose.root_position, pose.rotations)
    return draw_stages(
        simulator.rig,
        [simulator.picture(frame, camera) for camera in range(len(simulator.rig))],
        [background.mean for background in backgrounds_of(simulator)],
        watched.moment,
        labels=simulator.truth.labels,
        joints=joints,
        parents=pose.skeleton.parents.tolist(),
    )
