"""Let studios share one store while clocks jump and processes die: python fuzz/fuzz_stores.py --count 500 --seed 0

Each case starts two or three writers of one store: they keep poses and scenes, tidy, and each has a clock of its own
that jumps by up to ten years. Some are killed. What a writer reported as stored must be there
afterwards, in its newest version.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
from running import Case, parser, run

from poise.performer import act
from poise.studio import store as store_module
from poise.studio.store import MOST_SCENES, Store

Random = np.random.Generator
WALK = act("walk", seconds=0.1, fps=30)
YEARS = 10 * 365 * 86400.0


def main() -> int:
    """Run the fuzzer; return 1 if anything was lost or mixed."""
    return 1 if run(cases_of(), parser(__doc__, count=500).parse_args()) else 0


def cases_of() -> dict[str, Case]:
    """Writers that come to their end, and writers that are killed."""
    return {"ended": lambda random, folder: _case(random, folder, killed=False),
            "killed": lambda random, folder: _case(random, folder, killed=True)}  # fmt: skip


def _case(random: Random, folder: Path, *, killed: bool) -> None:
    seeds = random.integers(0, 2**32, size=int(random.integers(2, 4)))
    writers = [_started(folder, f"writer {k}", int(seed)) for k, seed in enumerate(seeds)]
    for child, _ in writers if killed else ():
        time.sleep(float(random.uniform(0.0, 0.05)))
        os.kill(child, signal.SIGKILL)
    said = {f"writer {k}": _said(*writer, killed=killed) for k, writer in enumerate(writers)}
    store = Store(folder)
    poses = [saved.name for saved in store.poses]
    assert len(poses) == len(set(poses)), "a pose is there twice"
    for name, (kept, scenes) in said.items():
        own = {pose for pose in poses if pose.startswith(name)}
        assert {f"{name} pose {n}" for n in range(kept)} <= own, "a pose was lost"
        assert len(own) <= kept + 1, "a pose that nobody kept"
        for number, version in scenes.items():
            found = store.scene(f"{name} scene {number}")
            assert found is not None, "a scene was lost"
            content = json.loads(found[-1])
            assert content["of"] == f"{name} scene {number}", "scenes are mixed"
            assert content["version"] >= version, "an older version of a scene came back"
    store.close()


def _started(folder: Path, name: str, seed: int) -> tuple[int, int]:
    """A child that writes, and the end of the pipe through which it says what is kept."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.close(read)
            _write(Store(folder), name, np.random.default_rng(seed), write)
            os._exit(0)
        except BaseException as error:
            os.write(2, f"{name}: {error!r}\n".encode())
            os._exit(1)
    os.close(write)
    return child, read


def _write(store: Store, name: str, random: Random, to: int) -> None:
    begun, jump, poses = time.time(), 0.0, 0
    store_module.time.time = lambda: begun + jump  # type: ignore[assignment]
    for version in range(int(random.integers(3, 15))):
        if random.random() < 0.3:
            jump = float(random.uniform(-YEARS, YEARS))
        choice = random.random()
        if choice < 0.45:
            store.add_pose(f"{name} pose {poses}", WALK[0])
            poses += 1
            os.write(to, b'{"pose": 1}\n')
        elif choice < 0.9:
            number = int(random.integers(MOST_SCENES // 4))
            content = {"of": f"{name} scene {number}", "version": version}
            store.put_scene(f"{name} scene {number}", json.dumps(content).encode())
            os.write(to, json.dumps({"scene": number, "version": version}).encode() + b"\n")
        else:
            store.tidy()


def _said(child: int, read: int, *, killed: bool) -> tuple[int, dict[int, int]]:
    """How many poses a writer had kept, and the version of each scene, as far as it said so."""
    with os.fdopen(read) as pipe:
        lines = [json.loads(line) for line in pipe if line.endswith("\n")]
    _, status = os.waitpid(child, 0)
    assert killed or status == 0, "a writer failed"
    return sum("pose" in line for line in lines), {
        line["scene"]: line["version"] for line in lines if "scene" in line
    }


if __name__ == "__main__":
    sys.exit(main())
