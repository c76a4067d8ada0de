"""Learning 100 clusters of 30,000 poses: time and memory, in a separate process."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.table import Row

POSES, CLUSTERS = 30_000, 100

MEASURE = """
import json, resource, sys, time
from poise import performer
from poise.formats import read
from poise.motion import Motion
from poise.motion.recordings import find_recordings
from poise.priors.gaussian import GaussianPrior


def clips(poses):
    folder = find_recordings()
    files = [] if folder is None else sorted((folder / "cmu").glob("*.bvh"))
    read_so_far = []
    for file in files:
        if sum(map(len, read_so_far)) >= poses:
            break
        motion = read(file)
        if isinstance(motion, Motion) and (not read_so_far or motion.skeleton.same_topology(read_so_far[0].skeleton)):
            read_so_far.append(motion)
    seed = 0
    while not files and sum(map(len, read_so_far)) < poses:
        read_so_far.append(performer.act("walk", speed=1.0 + 0.1 * (seed % 8), seconds=20.0, fps=120, seed=seed))
        seed += 1
    return read_so_far


def memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


poses, clusters = int(sys.argv[1]), int(sys.argv[2])
motions = clips(poses)
extra = sum(map(len, motions)) - poses
if extra > 0:
    motions[-1] = motions[-1][: len(motions[-1]) - extra]
begun = time.perf_counter()
GaussianPrior.learn(motions, clusters=clusters)
print(json.dumps({
    "seconds": time.perf_counter() - begun,
    "bytes": memory(),
    "poses": sum(map(len, motions)),
    "clips": len(motions),
}))
"""


def run() -> list[Row]:
    """Recordings if available, else the procedural performer."""
    command = [sys.executable, "-c", MEASURE, str(POSES), str(CLUSTERS)]
    measured = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    name = f"learning {CLUSTERS} clusters of {measured['poses']:,} poses"
    note = f"{measured['clips']} clips"
    return [
        Row(name, measured["seconds"], "s", note=note),
        Row("the same, memory of the whole process", measured["bytes"] / 1e6, "MB", note=note),
    ]


def main() -> None:
    """Print the results of one run."""
    for row in run():
        print(f"{row.name}: {row.ours:.4g} {row.unit} ({row.note})")


if __name__ == "__main__":
    main()
