"""Makes the pictures of results/inbetween.md: twelve pairs of poses of performers that the motion prior never saw.

Of each clip it shows the window in which plain interpolation errs most: recorded, interpolated, and by the motion
prior from the same two poses. Writes docs/images/inbetween/*, and films of all three into out/inbetween. The clips are
those of cmu-all-30hz.npz.xz under POISE_MOCAP.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import poise
from poise import pictures
from poise.apps.inbetweening import PoseKey, Walk
from poise.motion.motion import Motion
from poise.motion.recordings import find_file
from poise.motion.world import joint_positions
from poise.performer.bodies import Body
from poise.pictures.labels import arranged
from poise.priors.motion.carrying import Frames
from poise.priors.motion.prior import interpolated
from poise.priors.universal.recordings import ARCHIVE, motion_of, read_table

FOLDER = Path(__file__).parent / "images" / "inbetween"
PAIRS = {  # clips of performers held out, and the frames between the two poses
    "sit down": ("13_01", 40), "reach up": ("15_07", 30), "step over": ("113_22", 40), "turn about": ("131_10", 30),
    "pick up": ("26_10", 40), "kick": ("113_13", 30), "climb": ("13_34", 30), "throw": ("124_01", 30),
    "crouch and rise": ("13_31", 40), "jump": ("16_01", 30), "dance": ("05_04", 30), "jump off a ledge": ("82_04", 30),
}  # fmt: skip
CURVE = ((0.0, 0.0), (0.9, 1.5), (-0.9, 3.5), (0.0, 5.0))


def main() -> None:
    archive = find_file(ARCHIVE)
    if archive is None:
        sys.exit(f"this needs {ARCHIVE} in the folder that POISE_MOCAP names")
    work = FOLDER.parents[2] / "out" / "inbetween"
    for place in (FOLDER, work):
        place.mkdir(parents=True, exist_ok=True)
    table = read_table(archive)
    rows = []
    for name, (clip, between) in PAIRS.items():
        true = hardest(motion_of(table, table.clips.index(clip)), between + 2)
        made = poise.inbetween([(0.0, true[0]), ((between + 1) / true.fps, true[-1])], fps=true.fps).motion
        strips = {"recorded": true, "interpolated": straight(true), "motion prior": made}
        rows += [
            [pictures.contact_sheet(one, poses=7, columns=7, width=1000, title=f"{name}: {how}")]
            for how, one in strips.items()
        ]
        for how, one in strips.items():
            pictures.save(one, work / f"{name} {how}.gif".replace(" ", "-"), size=(240, 240), fps=15)
        print(f"{name}: {off(true, strips['interpolated']):.1f} and {off(true, made):.1f} cm", flush=True)
    arranged(rows).save(FOLDER / "pairs.webp", quality=60)
    walk()


def walk() -> None:
    """A walk along a curve on three bodies."""
    rows = []
    for height in (1.2, 1.75, 2.1):
        body = Body(height=height)
        stand = poise.performer.act("idle", performer=body, seconds=1.0, fps=30)[0]
        made = poise.inbetween([PoseKey(0.0, stand, walk=Walk(CURVE, 1.3))]).motion
        rows.append([pictures.contact_sheet(made, poses=9, columns=9, width=1000, title=f"{height:g} m")])
    arranged(rows).save(FOLDER / "walk.webp", quality=60)


def hardest(clip: Motion, length: int) -> Motion:
    """The window whose interpolation is farthest from it."""
    starts = range(0, max(len(clip) - length, 0) + 1, 5)
    return max((clip[start : start + length] for start in starts), key=lambda one: off(one, straight(one)))


def straight(motion: Motion) -> Motion:
    """The motion interpolated between its ends."""
    ends = Frames(motion.root_positions[[0, -1]], motion.rotations[[0, -1]])
    return motion.with_frames(*interpolated(ends, np.array([0, len(motion) - 1]), len(motion)))


def off(true: Motion, found: Motion) -> float:
    """The mean distance of joints in centimetres."""
    return 100.0 * float(np.linalg.norm(joint_positions(found) - joint_positions(true), axis=-1).mean())


if __name__ == "__main__":
    main()
