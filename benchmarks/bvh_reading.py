"""Reading a BVH file of 2,750 frames and 96 channels against pybvh, and the memory that a long one takes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pybvh

from benchmarks.table import Row, best_seconds
from poise.formats import bvh
from poise.geometry import rotations
from poise.motion import Motion
from poise.skeleton import Skeleton

FRAMES, JOINTS = 2_750, 31
CHANNELS = 3 + 3 * JOINTS
LONG_FRAMES = 200_000  # rows; a reader's memory per row does not depend on it

MEASURE = """
import resource, sys
from poise.formats import bvh
bvh.read(sys.argv[1])  # what importing and compiling takes is not the file's
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
motion = bvh.read(sys.argv[2])
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)
"""


def run() -> list[Row]:
    """The same file in both readers, in turns; then a long file in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        short, fine, long = (Path(folder) / f"{name}.bvh" for name in ("short", "fine", "long"))
        bvh.write(_motion(FRAMES), short, decimals=4)
        bvh.write(_motion(FRAMES), fine, decimals=15)
        _repeat_rows(short, long)
        name = f"BVH of {FRAMES:,} frames, {CHANNELS} channels"
        return [_time(name, short), _time("the same with 15 decimals", fine), _memory(short, long)]


def main() -> None:
    """Print the ratio of one run."""
    for row in run():
        print(f"{row.name}: {row.ours:.4g} {row.unit}, {row.ratio:.2f} of {row.peer_name}")


def _time(name: str, file: Path) -> Row:
    ours, theirs = best_seconds(
        lambda: bvh.read(file), lambda: pybvh.read_bvh_file(file, world_up="+y"), repeats=9
    )
    return Row(name, ours * 1e3, "ms", peer=theirs * 1e3, peer_name="pybvh", note="ours ends in quaternions")


def _memory(short: Path, long: Path) -> Row:
    """The growth of peak memory over the size of the numbers as one float64 array."""
    command = [sys.executable, "-c", MEASURE, str(short), str(long)]
    grown = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    array = LONG_FRAMES * CHANNELS * 8
    name = f"memory for {LONG_FRAMES:,} rows"
    return Row(name, grown / 1e6, "MB", peer=array / 1e6, peer_name="the numbers as an array")


def _motion(frames: int) -> Motion:
    """Five limbs of six joints at one root, moving smoothly; as many channels as a CMU clip has."""
    parents = np.array([-1, *(0 if joint % 6 == 1 else joint - 1 for joint in range(1, JOINTS))])
    rng = np.random.default_rng(0)
    turns = np.cumsum(rng.normal(scale=0.02, size=(frames, JOINTS, 3)), axis=0)
    positions = np.cumsum(rng.normal(scale=0.01, size=(frames, 3)), axis=0)
    names = tuple(f"joint{joint}" for joint in range(JOINTS))
    skeleton = Skeleton(names, parents, rng.normal(scale=0.2, size=(JOINTS, 3)), ("ZYX",) * JOINTS)
    return Motion(skeleton, 120.0, positions, rotations.quaternion_from_expmap(turns))


def _repeat_rows(short: Path, long: Path) -> None:
    """A file of LONG_FRAMES rows from a short one's."""
    header, rows = short.read_text().split("Frame Time: ")
    frame_time, _, rows = rows.partition("\n")
    lines = rows.splitlines(keepends=True)
    with long.open("w") as file:
        file.write(
            header.replace(f"Frames: {FRAMES}", f"Frames: {LONG_FRAMES}") + f"Frame Time: {frame_time}\n"
        )
        for start in range(0, LONG_FRAMES, FRAMES):
            file.writelines(lines[: LONG_FRAMES - start])


if __name__ == "__main__":
    main()
