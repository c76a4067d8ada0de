"""The CMU pose table as arrays: unique clips, one body per performer, and the training, validation and test splits.

CMU lists some performers twice; a clip with the body and frames of an earlier one is left out.
"""

from __future__ import annotations

import io
import lzma
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from poise.types import Array

if TYPE_CHECKING:
    from poise.motion.motion import Motion


ARCHIVE = "cmu-all-30hz.npz.xz"
RATE = 30.0  # frames a second
STEP, MILLI = 5e3, 1e3  # integers per radian and per metre

STRANGERS = (  # three sets of performers never used for training; the named splits use no others
    ("02", "13", "35", "56", "05"),
    ("06", "14", "09", "131", "82"),
    ("07", "16", "63", "124", "15"),
)
CHOICE = ("26", "76", "113", "133")  # validation: settings and temperatures are chosen on these


@dataclass(frozen=True, eq=False)
class PoseTable:
    """Every frame of every unique clip, in order."""

    joints: tuple[str, ...]
    parents: Array  # joints
    clips: tuple[str, ...]
    clip_of: Array  # frames
    rotations: Array  # frames, joints, 3: rotation vectors relative to the parent
    roots: Array  # frames, 3: metres
    offsets: Array  # clips, joints, 3: metres

    @property
    def performers(self) -> Array:
        """Per clip, the number of its performer as text."""
        return np.array([clip.split("_")[0] for clip in self.clips])


def read_table(path: Path) -> PoseTable:
    """The archive's unique clips."""
    with lzma.open(path) as stored:
        data = dict(np.load(io.BytesIO(stored.read())))
    ends, seen = np.cumsum(data["frames"]), dict[object, int]()
    for number, (end, count) in enumerate(zip(ends, data["frames"], strict=True)):
        first = data["rotations"][:, end - count : end - count + 20].tobytes()
        seen.setdefault((int(count), data["offsets"][number].tobytes(), first), number)
    kept = list(seen.values())
    parts = [slice(ends[k] - data["frames"][k], ends[k]) for k in kept]
    rotations = np.zeros((sum(part.stop - part.start for part in parts), len(data["joints"]), 3), np.float32)
    vectors = [np.cumsum(data["rotations"][:, part].T.astype(np.int32), axis=0) / STEP for part in parts]
    rotations[:, data["moving"]] = np.concatenate(vectors).reshape(len(rotations), -1, 3)
    roots = [np.cumsum(data["positions"][:, part].T.astype(np.int32), axis=0) / MILLI for part in parts]
    return PoseTable(
        joints=tuple(str(name) for name in data["joints"]),
        parents=data["parents"].astype(np.int64),
        clips=tuple(str(data["clips"][k]) for k in kept),
        clip_of=np.repeat(np.arange(len(kept)), [part.stop - part.start for part in parts]),
        rotations=rotations,
        roots=np.concatenate(roots).astype(np.float32),
        offsets=data["offsets"][kept].astype(np.float32),
    )


def motion_of(table: PoseTable, clip: int, *, every: int = 1, frames: int = 10**9) -> Motion:
    """A clip as a motion: all frames, every `every`-th, or at most `frames` evenly spaced ones."""
    from poise.geometry import rotations
    from poise.motion.motion import Motion
    from poise.skeleton.skeleton import Skeleton

    all_frames = np.flatnonzero(table.clip_of == clip)[::every]
    count = min(frames, len(all_frames))
    kept = all_frames[np.linspace(0, len(all_frames) - 1, count).round().astype(int)]
    orders = tuple("" if name.endswith("_end") else "ZYX" for name in table.joints)
    return Motion(
        Skeleton(table.joints, table.parents, table.offsets[clip].astype(np.float64), orders),
        RATE * count / (every * len(all_frames)),
        table.roots[kept].astype(np.float64),
        rotations.quaternion_from_expmap(table.rotations[kept].astype(np.float64)),
        name=table.clips[clip],
    )
