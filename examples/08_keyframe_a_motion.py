"""Keyframe a motion: take the few keys of a throw's feet and hand, keep the hand low, and let a style fill in the body.

    python examples/08_keyframe_a_motion.py                     # the performer
    python examples/08_keyframe_a_motion.py throw.bvh           # your own clip

Writes out/low_throw.toml, the script as recorded, and out/low_throw.png, a strip of the motion with the hand kept low;
prints how well the handles are met.
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import poise

HAND = "right_hand"
HANDLES = ("left_foot", "right_foot", HAND)
HIGHEST = 1.25  # metres; what is higher is brought down by three quarters


def main(paths: list[str], output: Path = Path("out/low_throw.png")) -> float:
    clip = poise.read(paths[0]) if paths else poise.performer.act("throw", fps=30)
    style = poise.learn(clip, kind="style", dimensions=3, active=60)
    output.parent.mkdir(exist_ok=True)
    script_file = output.with_suffix(".toml")
    script_file.write_text(poise.apps.script_text(clip, HANDLES), encoding="utf-8")
    script = poise.apps.read_script(script_file)
    script = replace(script, paths=[_lowered(path) for path in script.paths])
    made = poise.keyframe(style, script)
    made.motion.save(output)
    print(f"{len(made.motion)} frames, handles within {1000 * made.worst:.1f} mm of their paths")
    print("\n".join(made.misses()) or "every handle is on its path")
    return made.worst


def _lowered(path: Any) -> Any:
    """The hand's keys, none of them high up; the feet's as they are."""
    if path.handle.joint != HAND:
        return path
    points = path.points.copy()
    points[:, 1] -= 0.75 * np.maximum(points[:, 1] - HIGHEST, 0.0)
    return replace(path, points=points)


if __name__ == "__main__":
    main(sys.argv[1:])
