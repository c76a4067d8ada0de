"""Protocol `cameras` (Chai and Hodgins 2005, section 8): pictures of cameras in, the body out, end to end.

A performance is filmed by the simulator with noise, blur, occlusion and clutter; the markers are detected, matched,
triangulated and labelled, and drive the body. The same take with perfect markers shows the cost of the cameras. Plots
show the latency of each frame from picture to pose, and every stage of one frame.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import numpy as np
from jaxtyping import Float, Int
from PIL import Image

from poise.apps.camera_pictures import draw_stages
from poise.apps.camera_takes import MORE, NINE, before_cameras, simulator_of
from poise.capture.cameras import NOISE, CameraPerformance, WatchedMoment
from poise.capture.performance import Performance
from poise.errors import InvalidValueError
from poise.evaluation.metrics import Joints, Recovered, Scores
from poise.evaluation.report import ABOUT, Protocol, RecoveredFrames, Report, Request, Row, Step
from poise.evaluation.splits import Fold
from poise.formats.tables import Range
from poise.motion.motion import Motion
from poise.pictures.plots import Plot
from poise.priors.local.prior import LocalPrior
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.pose_space import PoseSpace
from poise.types import Array, NamedProgress, silent
from poise.vision.blobs import Background
from poise.vision.colours import Colours
from poise.vision.simulator import Conditions, Simulator, front_rig
from poise.vision.tracker import WHITE, MarkerFinder

SETS = {len(NINE): NINE, len(MORE): MORE}
"""Marker sets by their size."""
FPS = 60.0
SECONDS = 8.0  # of each clip, at most
FOUND = 3.0  # pixels: largest distance of a blob from its marker
FALSE = 6.0  # pixels from every marker at which a blob is spurious
SWAPPED = 0.10  # metres from its own position, and nearer to another marker's: a wrong label
WARM_UP = 30  # empty pictures for the background
INK, POSE, VISION = "#1f2933", "#e08e2b", "#4c78a8"
_SECONDS = 2.0  # of the first test clip, filmed again for the pictures


@dataclass
class Sightings:
    """Detection, position and label errors of markers, accumulated over frames."""

    visible: int = 0
    found: int = 0
    false: int = 0
    swaps: int = 0
    distances: list[float] = field(default_factory=list)
    root_depths: list[float] = field(default_factory=list)
    vision_work: list[float] = field(default_factory=list)
    vision_seconds: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, simulator: Simulator, frame: int, watched: WatchedMoment) -> None:
        """Add one moment with its truth."""
        seen = simulator.visible(frame)
        for number, blobs in enumerate(watched.moment.blobs):
            visible = seen[number]
            markers = simulator.rig.cameras[number].project(simulator.places(frame, number))
            gaps = np.linalg.norm(blobs.centres[:, None] - markers[None], axis=-1)
            self.visible += int(visible.sum())
            self.found += int((gaps.min(axis=0, initial=np.inf) < FOUND)[visible].sum())
            self.false += int((gaps.min(axis=1, initial=np.inf) > FALSE).sum())
        truth, sighting = simulator.truth.points[frame], watched.moment.sighting
        placed = np.flatnonzero(np.isfinite(sighting.covariances[:, 0, 0]))
        apart = np.linalg.norm(sighting.points[placed, None] - truth[None], axis=-1)
        self.distances += apart[np.arange(len(placed)), placed].tolist()
        self.swaps += _wrong(apart, placed)
        for camera, pixels in zip(simulator.rig.cameras, sighting.pixels, strict=True):
            lone = np.setdiff1d(np.flatnonzero(np.isfinite(pixels[:, 0])), placed)
            gaps = np.linalg.norm(pixels[lone, None] - camera.project(truth)[None], axis=-1)
            self.swaps += _wrong(gaps * camera.depth(truth) / camera.pinhole.focal_length, lone)
        if watched.frame is not None:
            camera, true = simulator.rig.cameras[0], simulator.motion.root_positions[frame]
            self.root_depths.append(float(abs(camera.depth(watched.frame.q[:3]) - camera.depth(true))))
        self.vision_work.append(watched.vision_work)
        self.vision_seconds.append(watched.vision_seconds)
        self.seconds.append(watched.seconds)

    def metrics(self) -> dict[str, float]:
        """Shares in percent, millimetres, frames per second of one thread and milliseconds from picture to pose."""
        placed = {"place_mm": 1000.0 * float(np.median(self.distances))} if self.distances else {}
        return {
            "found_percent": 100.0 * self.found / max(self.visible, 1),
            "false_percent": 100.0 * self.false / max(self.visible, 1),
            **placed,
            "swaps": float(self.swaps),
            "root_depth_mm": 1000.0 * float(np.mean(self.root_depths or [0.0])),
            "vision_fps": 1.0 / float(np.mean(self.vision_work)),
            "vision_fps_by_clock": 1.0 / float(np.mean(self.vision_seconds)),
            "latency_ms": 1000.0 * float(np.median(self.seconds)),
            "latency_p95_ms": 1000.0 * float(np.percentile(self.seconds, 95)),
        }


def _wrong(apart: Float[Array, "some markers"], markers: Int[Array, "some"]) -> int:
    """The number of markers far from their own position and nearer to another's."""
    own = apart[np.arange(len(markers)), markers]
    return int(np.sum((own > SWAPPED) & (apart.min(axis=1, initial=np.inf) < own)))


def evaluate_cameras(
    folds: Sequence[Fold],
    *,
    cameras: int = 2,
    markers: int = len(NINE),
    stride: int = 1,
    joints: Joints = "all",
    conditions: Conditions | None = None,
    progress: NamedProgress = silent,
) -> list[Row]:
    """Two rows, `local` through the cameras and with perfect markers; the first has the ratio of their errors.

    With a stride, every `stride`-th frame is compared with the truth; all are filmed.
    """
    if stride < 1:
        raise InvalidValueError(f"the stride must be at least 1 frame; got {stride}")
    if cameras < 1 or markers not in SETS:
        raise InvalidValueError(
            f"there are one camera or more, and {' or '.join(map(str, SETS))} markers; got {cameras} and {markers}"
        )
    scores = {name: Scores(joints) for name in ("local, cameras", "local, perfect markers")}
    sightings = Sightings()
    clips = [(fold, clip) for fold in folds for clip in fold.test]
    for number, (fold, clip) in enumerate(clips):
        progress(clip.name, number, len(clips))
        simulator, performance = set_up(fold, clip, cameras=cameras, markers=markers, conditions=conditions)
        take, filmed = simulator.motion, film(simulator, performance)
        for frame, watched in enumerate(filmed):
            sightings.add(simulator, frame, watched)
        first = next((watched.frame.q for watched in filmed if watched.frame is not None), None)
        if first is None:
            raise InvalidValueError(f"the performer of {take.name} was never found in the pictures")
        poses, failed = [first], sum(watched.frame is None for watched in filmed)
        for watched in filmed:  # a frame without a pose keeps the last one
            poses.append(poses[-1] if watched.frame is None else watched.frame.q)
        seconds = np.array([watched.seconds for watched in filmed])
        own = _beside_truth(performance.space, take, np.stack(poses[1:]), seconds, simulator, stride)
        scores["local, cameras"].add(replace(own, failed=failed))
        performance.reset()
        perfect, seconds = [], np.empty(len(simulator.truth.points))
        for frame, points in enumerate(simulator.truth.points):
            begun = time.perf_counter()
            perfect.append(performance.step(points, at=frame / FPS).q)
            seconds[frame] = time.perf_counter() - begun
        own = _beside_truth(performance.space, take, np.stack(perfect), seconds, simulator, stride)
        scores["local, perfect markers"].add(own)
    rows: list[Row] = [{"method": name, **score.metrics()} for name, score in scores.items()]
    rows[0].update(sightings.metrics())
    rows[0]["over_perfect"] = float(rows[0]["deg_per_joint"]) / float(rows[1]["deg_per_joint"])
    return rows


def set_up(
    fold: Fold,
    clip: Motion,
    *,
    cameras: int = 2,
    markers: int = len(NINE),
    conditions: Conditions | None = None,
    seconds: float = SECONDS,
) -> tuple[Simulator, Performance]:
    """A test clip in front of the cameras, and its tracker, learned from the fold's other clips."""
    take = before_cameras(clip, fps=FPS, seconds=seconds)
    simulator = simulator_of(take, front_rig(count=cameras), markers=SETS[markers], conditions=conditions)
    prior = LocalPrior.learn(fold.train)
    return simulator, Performance(prior, simulator.layout, skeleton=take.skeleton, fps=FPS, noise=NOISE)


def backgrounds_of(simulator: Simulator) -> list[Background]:
    """Each camera's empty room."""
    return [
        Background.of_frames(simulator.empty_room(camera, WARM_UP), fps=FPS)
        for camera in range(len(simulator.rig))
    ]


def film(simulator: Simulator, performance: Performance, *, colours: Colours = WHITE) -> list[WatchedMoment]:
    """All frames through the cameras."""
    rooms = backgrounds_of(simulator)
    tracker = MarkerFinder(simulator.rig, rooms, performance.names, fps=FPS, colours=colours)
    performance.reset()
    watcher, found = CameraPerformance(tracker, performance), []
    for number, pictures in enumerate(simulator.pictures()):
        found.append(watcher.step(pictures, number / FPS))
    return found


def _beside_truth(
    space: PoseSpace, take: Motion, q: Array, seconds: Array, simulator: Simulator, stride: int
) -> Recovered:
    places, turns = space.frames_from_q(q)
    reached = space.points(q, space.handles(list(simulator.layout.values())))
    distances = np.linalg.norm(reached - simulator.truth.points, axis=-1)[::stride]
    found, true = (places[::stride], turns[::stride]), take[::stride]
    return Recovered(space, *found, true.root_positions, true.rotations, distances, seconds[::stride])


# --- pictures ------------------------------------------------------------------------------------------------------


def _draw(request: Request, _report: Report, folder: Path, step: Step) -> list[Path]:
    """latency.png and stages.png, of the first test clip."""
    step("filming for the plots")
    fold, worn = request.folds()[0], {"cameras": request.options.cameras, "markers": request.options.markers}
    simulator, performance = set_up(fold, fold.test[0], **worn, seconds=_SECONDS)
    filmed = film(simulator, performance)
    files = [folder / "latency.png", folder / "stages.png"]
    latency_figure(filmed, simulator.motion.name).savefig(files[0], dpi=110)
    stages_of(simulator, filmed, frame=len(filmed) // 2).save(files[1])
    return files


def latency_figure(filmed: Sequence[WatchedMoment], name: str) -> Plot:
    """Milliseconds over time, and their histogram."""
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


@dataclass(frozen=True)
class CamerasOptions(RecoveredFrames):
    """What films, and what is worn."""

    cameras: Annotated[int, Range(least=1), "how many cameras film; 2"] = 2
    markers: Annotated[int, "how many markers are worn, 9 or 19; 9"] = 9


def _run(request: Request, progress: NamedProgress) -> list[Row]:
    return evaluate_cameras(request.folds(), **vars(request.options), progress=progress)


PROTOCOL = Protocol("cameras", ABOUT["cameras"], _run, _draw, Options=CamerasOptions)
