"""Blend two ways of walking: learn a style from each, and pose the same steps with more and more of the second.

    python examples/06_blend_styles.py                          # the performer, old and proud
    python examples/06_blend_styles.py old.bvh proud.bvh        # your own clips of one skeleton

Writes out/blend.png, a strip of one pose from the first style to the second, and prints how posture changes: every
column should rise, or fall, from the top down.
"""

import sys
from pathlib import Path

import numpy as np

import poise

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)
FEET = ("left_foot", "right_foot", "left_toes", "right_toes")
FRAMES = 16  # of the first clip whose steps are taken


def main(paths: list[str], output: Path = Path("out/blend.png")) -> dict[float, tuple[float, float]]:
    clips = [poise.read(path) for path in paths] or [
        poise.performer.act("walk", style=style, seconds=4.0, fps=30) for style in ("old", "proud")
    ]
    one, other = (poise.learn(clip, kind="style", dimensions=3, active=100) for clip in clips)
    steps = _steps(clips[0])
    strip: dict[str, poise.Pose] = {}
    postures: dict[float, tuple[float, float]] = {}
    print("share  trunk forward, degrees  head ahead of pelvis, cm")
    for share in SHARES:
        blend = poise.BlendPrior([one, other], [1.0 - share, share])
        solver = poise.Solver(blend, dict.fromkeys(FEET, (0.0, 0.0, 0.0)))
        poses = [solver.solve(targets=targets).pose for targets in steps]
        strip[f"{share:.2f}"] = poses[0]
        postures[share] = tuple(np.mean([_posture(pose) for pose in poses], axis=0))
        print(f"{share:5.2f}  {postures[share][0]:22.2f}  {postures[share][1]:24.2f}")
    output.parent.mkdir(exist_ok=True)
    poise.pictures.draw_panels(strip, size=(260, 420)).save(output)
    return postures


def _steps(clip: poise.Motion) -> np.ndarray:
    """Where the feet are in frames all along a clip, seen from between them."""
    frames = clip[len(clip) // 4 :: max(1, len(clip) // (2 * FRAMES))][:FRAMES]
    feet = np.stack([frames.positions[foot] for foot in FEET], axis=1)
    return feet - feet.mean(axis=1, keepdims=True) * (1.0, 0.0, 1.0)


def _posture(pose: poise.Pose) -> tuple[float, float]:
    """How far the trunk leans forward, and how far the head is ahead of the pelvis."""
    pelvis, neck, head, left, right = (
        pose.positions[role] for role in ("pelvis", "neck", "head", "left_thigh", "right_thigh")
    )
    ahead = np.cross(left - right, (0.0, 1.0, 0.0))
    ahead /= np.linalg.norm(ahead)
    trunk = neck - pelvis
    return float(np.degrees(np.arctan2(trunk @ ahead, trunk[1]))), float(100 * (head - pelvis) @ ahead)


if __name__ == "__main__":
    main(sys.argv[1:])
