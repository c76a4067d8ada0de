"""Protocol `fusion`: two weak sources of a take, alone and together, and the detection of a wrong one among four.

Sources of each take are simulated with their noise: positions of the head and hands, pixels of joints in one camera,
rotations of six segments, positions of the pelvis and feet. The first two are solved alone and together. Then the
first is displaced by 20 cm, or its clock by 0.3 s, and all are fused: it is detected if it is left out, or its clock
is corrected to 0.1 s, and no other is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

import numpy as np

from poise import performer
from poise.capture.fusing import PIXELS, PLACES, TURNS, Feed, fuse
from poise.evaluation.report import ABOUT, Protocol, ProtocolOptions, Request, Row
from poise.evaluation.splits import Fold
from poise.formats.tables import Range
from poise.geometry import rotations
from poise.geometry.cameras import Camera
from poise.motion.motion import Motion
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.pose_space import PoseSpace
from poise.solvers.solution import MotionSolution
from poise.types import NamedProgress

TAKES = ("walk", "run", "box", "throw", "reach", "jump", "kick", "sit", "wave", "stand_up")
FRESH = (31, 32, 33)  # seeds of takes that no limit was chosen on
FPS, SECONDS = 20.0, 3.0  # 0.3 s are six whole frames
TRACKED = ("head", "left_hand", "right_hand")
BELOW = ("pelvis", "left_foot", "right_foot")
WORN = ("pelvis", "head", "left_forearm", "right_forearm", "left_shin", "right_shin")
SEEN = (
    *("head", "pelvis", "left_upper_arm", "right_upper_arm", "left_forearm", "right_forearm", "left_hand"),
    *("right_hand", "left_shin", "right_shin", "left_foot", "right_foot"),
)
NOISE = {PLACES: 0.03, TURNS: np.radians(8.0), PIXELS: 6.0}
DISPLACED, LATE, CLOSE = 0.2, 0.3, 0.1  # metres; seconds; seconds: largest error of a corrected clock


@dataclass(frozen=True)
class FusionOptions(ProtocolOptions):
    """How many takes."""

    takes: Annotated[int, Range(least=1, most=len(TAKES)), "how many of the ten takes"] = len(TAKES)


def sources_of(clip: Motion, rng: np.random.Generator) -> tuple[Feed, Feed, Feed, Feed]:
    """Trackers, a camera, a suit and lower trackers that observe a clip, each with its noise."""
    space = PoseSpace(clip.skeleton)
    positions, matrices = space.forward(space.q_from_frames(clip.root_positions, clip.rotations))
    middle = positions.mean(axis=(0, 1))
    x, y, z = (float(number) for number in middle)
    camera = Camera.looking_at((x, y, z), eye=(x + 1.5, y + 0.5, z + 4.5))
    at = {names: [clip.skeleton.index(name) for name in names] for names in (TRACKED, SEEN, WORN, BELOW)}
    turned = rotations.quaternion_from_expmap(rng.normal(0.0, NOISE[TURNS], (len(clip), len(WORN), 3)))
    values = {
        PLACES: positions[:, at[TRACKED]] + rng.normal(0.0, NOISE[PLACES], (len(clip), len(TRACKED), 3)),
        PIXELS: camera.project(positions[:, at[SEEN]])
        + rng.normal(0.0, NOISE[PIXELS], (len(clip), len(SEEN), 2)),
        TURNS: rotations.multiply(turned, rotations.quaternion_from_matrix(matrices[:, at[WORN]])),
    }
    below = positions[:, at[BELOW]] + rng.normal(0.0, NOISE[PLACES], (len(clip), len(BELOW), 3))
    return (
        Feed("trackers", PLACES, TRACKED, values[PLACES], clip.fps, NOISE[PLACES]),
        Feed("camera", PIXELS, SEEN, values[PIXELS], clip.fps, NOISE[PIXELS], camera),
        Feed("suit", TURNS, WORN, values[TURNS], clip.fps, NOISE[TURNS]),
        Feed("below", PLACES, BELOW, below, clip.fps, NOISE[PLACES]),
    )


def error_of(fused: MotionSolution, clip: Motion) -> float:
    """The mean error of joints, in centimetres."""
    space = PoseSpace(clip.skeleton)
    true, _ = space.forward(space.q_from_frames(clip.root_positions, clip.rotations))
    found, _ = fused.space.forward(fused.q)
    moving = ~clip.skeleton.is_end_site
    return 100 * float(np.linalg.norm(found - true, axis=-1)[:, moving].mean())


def displaced(feed: Feed, rng: np.random.Generator) -> Feed:
    """A source of positions with a wrong origin."""
    way = rng.normal(size=3)
    return replace(feed, values=feed.values + DISPLACED * way / np.linalg.norm(way))


def late(feed: Feed) -> Feed:
    """A source with a wrong clock."""
    lag = round(LATE * feed.fps)
    return replace(feed, values=np.concatenate([feed.values[lag:], feed.values[-1:].repeat(lag, axis=0)]))


def detected(fused: MotionSolution, name: str, shift: float) -> float:
    """1 if the wrong source was detected, and no other, else 0."""
    right = True
    for one in fused.sources:
        if one.name != name:
            right &= one.used and abs(one.shift) < CLOSE
        else:
            right &= not one.used or (shift > 0.0 and abs(one.shift - shift) < CLOSE)
    return float(right)


def _performer(seed: int = 21) -> list[Fold]:
    """Ten actions of the performer."""
    clips = [performer.act(action, fps=FPS, seed=seed) for action in TAKES]
    return [Fold((), (clip[: round(SECONDS * FPS)],)) for clip in clips]


def _run(request: Request, progress: NamedProgress) -> list[Row]:
    clips = [clip for fold in request.folds() for clip in fold.test][: request.options.takes]
    rows: list[dict[str, float]] = []
    for number, clip in enumerate(clips):
        progress(TAKES[number], number, len(clips))
        rng = np.random.default_rng(number)
        prior, (trackers, camera, *others) = UniversalPrior(clip.skeleton), sources_of(clip, rng)
        solved = partial(fuse, prior, fps=clip.fps, frames=len(clip))
        alone = [replace(feed, fixed=True) for feed in (trackers, camera)]
        row = {
            "trackers_cm": error_of(solved(alone[:1]), clip),
            "camera_cm": error_of(solved(alone[1:]), clip),
            "both_cm": error_of(solved(alone), clip),
        }
        moved, behind = (
            solved([displaced(trackers, rng), camera, *others]),
            solved([late(trackers), camera, *others]),
        )
        row["moved_found"] = detected(moved, "trackers", 0.0)
        row["late_found"] = detected(behind, "trackers", LATE)
        row["none_found"] = detected(solved([trackers, camera, *others]), "", 0.0)
        rows.append(row)
    whole = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    better = [row["both_cm"] < min(row["trackers_cm"], row["camera_cm"]) for row in rows]
    whole["together_better"] = float(np.mean(better))
    named: list[Row] = [{"method": name, **row} for name, row in zip(TAKES, rows, strict=False)]
    return [*named, {"method": "all", **whole}]


SPLITS = {"performer": _performer} | {f"fresh-{seed}": partial(_performer, seed) for seed in FRESH}
PROTOCOL = Protocol("fusion", ABOUT["fusion"], _run, Options=FusionOptions, splits=SPLITS)
