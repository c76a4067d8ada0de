"""The demo without a screen: a performer acts, and three handles pose a body.

The motion is written and drawn, and the files are read back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
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


def demo(
    folder: Path, *, action: str = "throw", style: str = "energetic", step: Step = lambda _: None
) -> Demo:
    """Act, write BVH, GLB and a contact sheet into the folder, verify the files, and pose."""
    make_folder(folder)
    step(f"acting: {action}, {style}")
    start = time.perf_counter()
    motion = act(action, style=style)
    acted = time.perf_counter() - start
    files = tuple(_files(motion, folder / action, step))
    step("posing by three handles")
    handles = _reaching_up(motion)
    model = UniversalPrior(motion.skeleton)
    constraints = [Position(joint, target) for joint, target in handles.items()]
    solve(model, constraints)  # compiles, so that the next solve shows the time of a pose
    posed = solve(model, constraints)
    picture = save_picture(posed.pose, folder / "pose.png", handles=handles)
    return Demo(motion, acted, files, posed, picture)


def _reaching_up(motion: Motion) -> dict[str, np.ndarray]:
    """Both feet at their positions in the middle of a motion, and the right hand above its own."""
    middle = motion[len(motion) // 2]
    places, _ = world_transforms(middle.skeleton, middle.root_position, middle.rotations)
    joints = {
        joint: places[middle.skeleton.index(joint)] for joint in ("left_foot", "right_foot", "right_hand")
    }
    return joints | {"right_hand": joints["right_hand"] + LIFT}


def _files(motion: Motion, stem: Path, step: Step) -> Iterator[Written]:
    for extension in (".bvh", ".glb", ".png"):
        path = stem.with_suffix(extension)
        step(f"writing {path}")
        start = time.perf_counter()
        save(motion, path)
        seconds = time.perf_counter() - start
        yield Written(
            path, path.stat().st_size, seconds, None if extension == ".png" else verified_mm(motion, path)
        )


def verified_mm(motion: Motion, path: Path) -> float:
    """The largest distance of a joint after reading the file back; raise if it is too large."""
    again = read(path)
    if not isinstance(again, Motion) or len(again) != len(motion):
        raise PoiseError(f"reading {path} back should give {motion!r}; it gave {again!r}")
    difference = 1000.0 * float(np.abs(_positions(motion, motion) - _positions(again, motion)).max())
    if not difference < LARGEST_DIFFERENCE_MM:
        raise PoiseError(f"reading {path} back moves joints by up to {difference:.3g} mm")
    return difference


def _positions(motion: Motion, like: Motion) -> np.ndarray:
    """World positions of the rotating joints, in the order of the other motion's skeleton."""
    positions, _ = world_transforms(motion.skeleton, motion.root_positions, motion.rotations)
    names = [
        name for name, end in zip(like.skeleton.names, like.skeleton.is_end_site, strict=True) if not end
    ]
    return positions[:, [motion.skeleton.index(name) for name in names]]
