"""Draws the pictures of performance.md from real recordings; where there are none, it says so and does nothing.

python docs/make_performance_pictures.py
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, ScalarFormatter

from poise import pictures, read
from poise.capture.matching import LOCOMOTION, WITH_HEAD, marker_layout
from poise.capture.performance import OrientationPerformance, Performance, motion_of
from poise.evaluation.metrics import Scores
from poise.evaluation.performance import local_set_up, recover
from poise.evaluation.reduction import evaluate_reduction
from poise.evaluation.report import Row
from poise.evaluation.splits import Fold, load_split
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.motion.recordings import find_recordings
from poise.motion.virtual_markers import virtual_markers
from poise.motion.world import joint_transforms
from poise.priors.local.prior import LocalPrior
from poise.skeleton.skeleton import Pose

IMAGES = Path(__file__).parent / "images"
SHOWN = 6
SIZES = (1, 2, 4, 8, 15)
REDUCED = ("walk", "boxing", "everything")
TIMED = ("06_06", "131_04", "63_17")
LONGEST = 500  # frames of a clip that are timed
AT = "deg_at_"


def main() -> None:
    folder = find_recordings()
    if folder is None:
        print("no recordings: the pictures stay as they are")
        return
    walks = [_clip(folder, f"35_{number:02d}") for number in range(1, 17)]
    boxing = [_clip(folder, "14_03"), _clip(folder, "14_02")]
    _strip(walks[0], walks[1:], LOCOMOTION, IMAGES / "performance-walking.png", slice(40, 320))
    _strip(boxing[0], boxing[1:], WITH_HEAD, IMAGES / "performance-boxing.png", slice(900, 1500))
    _library_size(walks, boxing, IMAGES / "performance-library-size.png")
    _by_sensors(boxing[0], boxing[1:], IMAGES / "performance-sensors.png", slice(900, 1500))
    _latency(load_split("everything")[0], IMAGES / "performance-latency.png")
    draw_reduction(
        {split: evaluate_reduction(load_split(split)) for split in REDUCED},
        IMAGES / "performance-reduction.png",
    )


def _clip(folder: Path, name: str) -> Motion:
    clip = read(folder / "cmu" / f"{name}.bvh")
    assert isinstance(clip, Motion)
    return clip


def _strip(truth: Motion, known: list[Motion], markers: tuple[str, ...], path: Path, part: slice) -> None:
    layout = marker_layout(truth.skeleton, markers, samples=truth.rotations[::20])
    performance = Performance(LocalPrior.learn(known), layout, skeleton=truth.skeleton)
    truth = truth[part]
    found = motion_of(performance.run(virtual_markers(truth, layout)), truth.fps)
    _beside(truth, found, "from markers", path)


def _by_sensors(truth: Motion, known: list[Motion], path: Path, part: slice) -> None:
    performance = OrientationPerformance(LocalPrior.learn(known), skeleton=truth.skeleton, fps=truth.fps)
    truth = truth[part]
    turns = joint_transforms(truth)[1][:, performance.sensors.joints]
    frames = [performance.step(frame) for frame in rotations.quaternion_from_matrix(turns)]
    _beside(truth, motion_of(frames, truth.fps), "from sensors", path)


def _latency(fold: Fold, path: Path) -> None:
    """Every frame of some clips, the first visits of a large library included: how long they took."""
    set_up = local_set_up(LocalPrior.learn(fold.train))
    clips = [clip[:LONGEST] for clip in fold.test if clip.name in TIMED]
    seconds = np.concatenate([recover(set_up, clip, WITH_HEAD, stride=1).seconds for clip in clips])
    milliseconds = np.sort(1000 * seconds)
    print("ms at 50, 95, 99, 100 %:", np.percentile(milliseconds, (50, 95, 99, 100)).round(2), flush=True)
    figure = Figure(figsize=(7, 2.6), dpi=150, layout="constrained")
    axes = figure.subplots()
    axes.plot(milliseconds, np.linspace(0, 100, len(milliseconds)), color="#2a6f97")
    axes.axvline(1000 / 120, color="#888888", linewidth=0.8, linestyle=":")
    axes.annotate("120 Hz", (1000 / 120, 5), fontsize=7, ha="right", rotation=90)
    axes.set(xlabel="milliseconds of one processor", ylabel="% of frames", xlim=(0, 9), ylim=(0, 101))
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


def draw_reduction(rows: Mapping[str, Sequence[Row]], path: Path) -> None:
    """Fig. 5 of the paper: the error of poses reduced to N numbers, for every split."""
    figure = Figure(figsize=(9, 2.8), dpi=150, layout="constrained")
    for axes, (split, methods) in zip(figure.subplots(1, len(rows), sharey=True), rows.items(), strict=True):
        for row in methods:
            curve = {int(key[len(AT) :]): float(row[key]) for key in row if key.startswith(AT)}
            if curve:
                axes.plot(*zip(*sorted(curve.items()), strict=True), ".-", label=str(row["method"]))
        axes.axhline(1.0, color="#888888", linewidth=0.8, linestyle=":")
        axes.set(title=split, xlabel="dimensions", xlim=(0, 45), ylim=(0, None))
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("degrees per joint")
    figure.axes[0].legend(frameon=False, fontsize=7)
    figure.savefig(path)


def _beside(truth: Motion, found: Motion, label: str, path: Path) -> None:
    chosen = np.linspace(5, len(truth) - 1, SHOWN).astype(int)
    panels = {
        f"{name} {frame / truth.fps:.1f} s": _in_place(motion[int(frame)])
        for name, motion in (("recorded", truth), (label, found))
        for frame in chosen
    }
    pictures.save(pictures.draw_panels(panels, columns=SHOWN, size=(240, 340)), path)


def _library_size(walks: list[Motion], boxing: list[Motion], path: Path) -> None:
    """Error against how much there is to learn from."""
    figure = Figure(figsize=(7, 3), dpi=150, layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(
        SIZES, [_degrees(walks[0], walks[1 : n + 1], LOCOMOTION, 4) for n in SIZES], "o-", color="#2a6f97"
    )
    left.set(xlabel="walking clips in the library", ylabel="degrees per joint", xscale="log", xticks=SIZES)
    whole = boxing[1]
    shares = (0.1, 0.25, 0.5, 1.0)
    errors = [_degrees(boxing[0], [whole[: int(len(whole) * share)]], WITH_HEAD, 40) for share in shares]
    right.plot([share * whole.seconds for share in shares], errors, "o-", color="#2a6f97")
    right.set(xlabel="seconds of boxing in the library", xscale="log", xticks=(5, 10, 20, 45))
    for axes, published in ((left, 1.30), (right, 2.31)):
        axes.axhline(published, color="#888888", linewidth=0.8, linestyle=":")
        axes.annotate(
            "published, larger library",
            (0.02, published),
            xycoords=("axes fraction", "data"),
            fontsize=7,
            va="bottom",
        )
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)


def _degrees(truth: Motion, known: list[Motion], markers: tuple[str, ...], stride: int) -> float:
    scores = Scores()
    scores.add(recover(local_set_up(LocalPrior.learn(known)), truth, markers, stride=stride))
    error = scores.metrics()["deg_per_joint"]
    print(f"{sum(map(len, known))} frames: {error:.2f} degrees", flush=True)
    return error


def _in_place(pose: Pose) -> Pose:
    """The pose above the origin, so that one camera sees them all."""
    return Pose(pose.skeleton, pose.root_position * np.array([0.0, 1.0, 0.0]), pose.rotations)


if __name__ == "__main__":
    main()
