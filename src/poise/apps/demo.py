"""The demo without a screen: a performer acts, and three handles pose a body.

The motion is written and drawn, and the files are read back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from poise.apps.outputs import save
from poise.errors import PoiseError
from poise.formats import read
from poise.formats.files import make_folder
from poise.motion.motion import Motion
from poise.performer import act
from poise.pictures import save as save_picture
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.kinematics import world_transforms
from poise.solvers.constraints import Position
from poise.solvers.solution import Solution
from poise.solvers.solve import solve
from poise.types import silent

LARGEST_DIFFERENCE_MM = 0.1  # between a motion and its file read back; BVH has six decimals
LIFT = np.array([0.0, 0.25, 0.0])  # metres, of the right hand above its position in the middle of the motion

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
    """The acted motion, the written files, and the pose of three handles with its picture."""

    motion: Motion
    acting_seconds: float
    files: tuple[Written, ...]
    posed: Solution
    picture: Path


def demo(folder: Path, *, action: str = "throw", style: str = "energetic", step: Step = silent) -> Demo:
    """Act, write BVH, GLB and a contact sheet into the folder, verify the files, and pose."""
    make_folder(folder)
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
    step("posing by three handles")
    middle = motion[len(motion) // 2]
    places, _ = world_transforms(middle.skeleton, middle.root_position, middle.rotations)
    handles = {
        role: places[middle.skeleton.index(role)] for role in ("left_foot", "right_foot", "right_hand")
    }
    handles["right_hand"] = handles["right_hand"] + LIFT  # both feet stay where they are
    model = UniversalPrior(motion.skeleton)
    constraints = [Position(joint, target) for joint, target in handles.items()]
    solve(model, constraints)  # compiles, so that the next solve shows the time of a pose
    posed = solve(model, constraints)
    picture = save_picture(posed.pose, folder / "pose.png", handles=handles)
    return Demo(motion, acted, tuple(files), posed, picture)


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
