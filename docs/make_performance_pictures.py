"""Draws the pictures of performance.md from real recordings; where there are none, it says so and does nothing.

python docs/make_performance_pictures.py
"""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, ScalarFormatter

from poise import pictures, read
from poise.apps.perform import Performance, motion_of
from poise.apps.perform_markers import LOCOMOTION, WITH_HEAD, marker_layout
from poise.evaluation.metrics import Scores
from poise.evaluation.performance import local_set_up, recover
from poise.motion.motion import Motion
from poise.motion.recordings import find_recordings
from poise.motion.virtual_markers import virtual_markers
from poise.priors.local.prior import LocalPrior
from poise.skeleton.skeleton import Pose

IMAGES = Path(__file__).parent / "images"
SHOWN = 6
SIZES = (1, 2, 4, 8, 15)


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


def _clip(folder: Path, name: str) -> Motion:
    clip = read(folder / "cmu" / f"{name}.bvh")
    assert isinstance(clip, Motion)
    return clip


def _strip(truth: Motion, known: list[Motion], markers: tuple[str, ...], path: Path, part: slice) -> None:
    layout = marker_layout(truth.skeleton, markers, samples=truth.rotations[::20])
    performance = Performance(LocalPrior.learn(known), layout, skeleton=truth.skeleton)
    truth = truth[part]
    found = motion_of(performance.run(virtual_markers(truth, layout)), truth.fps)
    chosen = np.linspace(5, len(truth) - 1, SHOWN).astype(int)
    panels = {
        f"{name} {frame / truth.fps:.1f} s": _in_place(motion[int(frame)])
        for name, motion in (("recorded", truth), ("from markers", found))
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
