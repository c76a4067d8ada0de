"""Makes the pictures and figures of keyframing.md from recordings (POISE_MOCAP says where they are).

The pitch is CMU 124_01; for the side-arm pitch the hand has keys of our own in the middle. The walks are the
performer's, and Bandai Namco's normal and old ones. Writes docs/images/keyframing/*, and scripts and motions into
out/keyframing.
"""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image

from poise import performer, pictures, read
from poise.apps.keyframing import keyframe, script_text
from poise.apps.keyframing_script import read_script
from poise.apps.outputs import save
from poise.motion.edit import resample, trim
from poise.motion.motion import Motion
from poise.motion.recordings import find_recordings
from poise.priors import model_file
from poise.priors.style.prior import StylePrior
from poise.skeleton.kinematics import world_transforms
from poise.solvers.solution import MotionSolution

FOLDER = Path(__file__).parent / "images" / "keyframing"
HANDLES = ("left_foot", "right_foot", "right_hand")
FEET, TOES = ("left_foot", "right_foot"), ("left_toes", "right_toes")
SIDE_ARM = (  # seconds, metres: low and wide, in the pitch's own place
    (1.267, 0.58, 0.8, -0.58),
    (1.4, 0.42, 0.82, -0.56),
    (1.5, 0.12, 0.83, -0.36),
    (1.567, -0.17, 0.86, -0.05),
    (1.633, -0.38, 0.9, 0.38),
    (1.7, -0.3, 0.94, 0.82),
    (1.75, -0.06, 0.95, 1.03),
    (1.817, 0.25, 0.93, 0.96),
    (1.9, 0.33, 0.92, 0.72),
    (2, 0.18, 0.88, 0.6),
)
TOES_TOLERANCE = 0.02  # metres: they say which way the feet point, not where they are


def main() -> None:
    recordings = find_recordings()
    if recordings is None:
        sys.exit("this needs recordings: point POISE_MOCAP at a folder with cmu/124_01.bvh")
    FOLDER.mkdir(parents=True, exist_ok=True)
    work = FOLDER.parents[2] / "out" / "keyframing"
    work.mkdir(parents=True, exist_ok=True)
    _pitches(recordings / "cmu" / "124_01.bvh", work)
    walks = [performer.act("walk", style=style, seconds=5.0, fps=30) for style in ("neutral", "sneaky")]
    _blend(walks[0], walks[1], work, "performer")
    folder = recordings / "bandai"
    real = [read(folder / f"dataset-1_walk_{style}_001.bvh") for style in ("normal", "old")]
    _blend(real[0], real[1], work, "recorded")


def _pitches(path: Path, work: Path) -> None:
    clip = read(path)
    style = StylePrior.learn([resample(clip, 60)], dimensions=3, active=100)
    pitch = trim(clip, 2.0, 4.7)
    overhand, sidearm = work / "overhand.toml", work / "sidearm.toml"
    overhand.write_text(script_text(pitch, HANDLES), encoding="utf-8")
    sidearm.write_text(_with_side_arm(overhand.read_text(encoding="utf-8")), encoding="utf-8")
    rows = []
    for script in (overhand, sidearm):
        made = keyframe(style, read_script(script))
        _tell(script.stem, made, resample(pitch, made.motion.fps))
        save(made.motion, work / f"{script.stem}.glb")
        pictures.save(made.motion, FOLDER / f"{script.stem}.gif", size=(300, 300), fps=15)
        between = trim(made.motion, 1.0, 2.1)
        rows.append(pictures.contact_sheet(between, poses=8, columns=8, width=1400, title=f"{script.stem}"))
    _save(_stacked(rows), "pitches.png")


def _with_side_arm(script: str) -> str:
    """The script with the hand's keys replaced by our own for as long as those last."""
    feet, hand = script.split("[handles.right_hand]")
    kept, own = [], [f"  {{ time = {t:.3f}, at = [{x}, {y}, {z}] }}," for t, x, y, z in SIDE_ARM]
    for line in hand.splitlines():
        key = re.search(r"time = ([0-9.]+)", line)
        if key is None or not 1.2 <= float(key[1]) <= 2.1:
            if own and key is not None and float(key[1]) > 2.1:
                kept, own = [*kept, *own], []
            kept.append(line)
    return feet + "[handles.right_hand]" + "\n".join(kept) + "\n"


def _blend(first: Motion, second: Motion, work: Path, name: str) -> None:
    """The first walk's steps, its style turning into the second's from second 1 to second 3."""
    model_file.save(StylePrior.learn([second], dimensions=3, active=100), work / f"{name}.poise")
    clip = first[: min(len(first), 126)]
    text = script_text(clip, FEET, close=0.01)
    if clip.seconds < 3.6:
        start, over = 0.25 * clip.seconds, 0.5 * clip.seconds
    else:
        start, over = 1.0, 2.0
    text += f'\n[styles]\nother = "{name}.poise"\n[[style]]\ntime = {start:.2f}\nname = "other"\nover = {over:.2f}\n'
    script = work / f"{name}.toml"
    script.write_text(text, encoding="utf-8")
    (work / "toes.toml").write_text(script_text(clip, TOES, close=0.01), encoding="utf-8")
    feet, toes = read_script(script), read_script(work / "toes.toml")
    soft = [replace(path, tolerance=TOES_TOLERANCE) for path in toes.paths]
    steps = replace(feet, paths=[*feet.paths, *soft])
    made = keyframe(StylePrior.learn([first], dimensions=3, active=100), steps)
    _tell(f"blend of walks, {name}", made, clip)
    pictures.save(made.motion, FOLDER / f"blend-{name}.gif", size=(300, 300), fps=15)
    _save(
        pictures.contact_sheet(made.motion, poses=9, width=1400, title=f"from one walk to another, {name}"),
        f"blend-{name}.png",
    )


def _tell(name: str, made: MotionSolution, recorded: Motion) -> None:
    """The largest distance from a path, and accelerations beside those of the recording."""
    found, true = (_accelerations(motion) for motion in (made.motion, recorded))
    print(
        f"{name}: handles within {1000 * _hard(made):.2f} mm, jitter {found.mean() / true.mean():.2f}, "
        f"largest acceleration {found.max():.3f} beside {true.max():.3f} m a frame squared"
    )


def _hard(made: MotionSolution) -> float:
    """The largest distance of a handle that must be met."""
    return max(float(np.nanmax(d)) for handle, d in made.distances.items() if "toes" not in handle.joint)


def _accelerations(motion: Motion) -> np.ndarray:
    positions, _ = world_transforms(motion.skeleton, motion.root_positions, motion.rotations)
    return np.linalg.norm(np.diff(positions[:, ~motion.skeleton.is_end_site], n=2, axis=0), axis=-1)


def _stacked(rows: list[Image.Image]) -> Image.Image:
    page = Image.new("RGB", (rows[0].width, sum(row.height for row in rows)))
    top = 0
    for row in rows:
        page.paste(row, (0, top))
        top += row.height
    return page


def _save(image: Image.Image, name: str) -> None:
    small = image.resize((1000, round(image.height * 1000 / image.width)), Image.Resampling.LANCZOS)
    small.quantize(256, kmeans=1, dither=Image.Dither.NONE).save(FOLDER / name, optimize=True)


if __name__ == "__main__":
    main()
