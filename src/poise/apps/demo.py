"""The demo without a screen: a few handles pose a body, and a performer acts.

The poses are drawn on one page. The motion is written and drawn, and its files are read back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from poise.apps.outputs import save
from poise.apps.posing import pose
from poise.errors import PoiseError
from poise.formats import read
from poise.formats.files import make_folder, replacing
from poise.motion.motion import Motion
from poise.performer import act
from poise.pictures import draw_pose
from poise.pictures.labels import arranged
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.measure import standing_height
from poise.solvers.solution import Solution
from poise.types import silent

LARGEST_DIFFERENCE_MM = 0.1  # between a motion and its file read back; BVH has six decimals
PANEL = (230, 300)
Place = tuple[float, float, float]
_FEET: dict[str, Place] = {"left_foot": (0.06, 0.045, 0.0), "right_foot": (-0.06, 0.045, 0.0)}
TASKS: dict[str, dict[str, Place]] = {
    "lift": {**_FEET, "left_hand": (0.1, 0.14, 0.22), "right_hand": (-0.1, 0.14, 0.22)},
    "sit": {"pelvis": (0.0, 0.27, -0.12), "left_foot": (0.08, 0.045, 0.14), "right_foot": (-0.08, 0.045, 0.14)},
    "kick": {"left_foot": (0.05, 0.045, 0.0), "right_foot": (-0.05, 0.45, 0.4)},
    "wave": {**_FEET, "right_hand": (-0.26, 0.95, 0.08)},
    "climb": {"left_foot": (0.07, 0.3, 0.18), "right_foot": (-0.07, 0.045, 0.0),
              "left_hand": (0.1, 0.8, 0.26), "right_hand": (-0.1, 1.05, 0.22)},
}  # fmt: skip
"""All that is given of five poses: handles, to the left, up and forward, in shares of the stature."""

Step = Callable[[str], None]
"""Called with the next step."""


@dataclass(frozen=True)
class Written:
    """A file of the demo: its size, the writing time, and the error after reading it back."""

    path: Path
    bytes: int
    seconds: float
    difference_mm: float | None


@dataclass(frozen=True)
class Demo:
    """The poses by name with their picture, the acted motion, and the written files."""

    poses: dict[str, Solution]
    picture: Path
    motion: Motion
    acting_seconds: float
    files: tuple[Written, ...]


def demo(folder: Path, *, action: str = "throw", style: str = "energetic", step: Step = silent) -> Demo:
    """Pose a body by handles; act, write BVH, GLB and a contact sheet into the folder, and verify the files."""
    make_folder(folder)
    step("posing by a few handles")
    people = UniversalPrior.of_people()
    height, poses, panels = standing_height(people.space.skeleton), dict[str, Solution](), list[Image.Image]()
    for task, places in TASKS.items():
        handles = {role: height * np.array(place) for role, place in places.items()}
        poses[task] = pose(handles, people)
        panels.append(draw_pose(poses[task].pose, handles=handles, size=PANEL, title=task, floor=0.0))
    with replacing(picture := folder / "poses.png", "wb") as file:
        arranged([panels]).save(file, "png")
    step(f"acting: {action}, {style}")
    start = time.perf_counter()
    motion = act(action, style=style)
    acted = time.perf_counter() - start
    files = []
    for extension in (".bvh", ".glb", ".png"):
        path = (folder / action).with_suffix(extension)
        step(f"writing {path}")
        start = time.perf_counter()
        save(motion, path)
        seconds = time.perf_counter() - start
        off = None if extension == ".png" else verified_mm(motion, path)
        files.append(Written(path, path.stat().st_size, seconds, off))
    return Demo(poses, picture, motion, acted, tuple(files))


def verified_mm(motion: Motion, path: Path) -> float:
    """The largest distance of a joint after reading the file back; raise if it is too large."""
    again = read(path)
    if not isinstance(again, Motion) or len(again) != len(motion):
        raise PoiseError(f"reading {path} back should give {motion!r}; it gave {again!r}")
    skeleton = motion.skeleton
    names = [name for name, end in zip(skeleton.names, skeleton.is_end_site, strict=True) if not end]
    places = []
    for one in (motion, again):
        positions, _ = world_transforms(one.skeleton, one.root_positions, one.rotations)
        places.append(positions[:, [one.skeleton.index(name) for name in names]])
    difference = 1000.0 * float(np.abs(places[0] - places[1]).max())
    if not difference < LARGEST_DIFFERENCE_MM:
        raise PoiseError(f"reading {path} back moves joints by up to {difference:.3g} mm")
    return difference
