"""Walk into a run that nobody recorded: learn a cylinder of gaits, go along it, and walk again from footsteps alone.

    python examples/11_walk_into_run.py                                       # the performer
    python examples/11_walk_into_run.py walk.bvh run.bvh                      # your own clips of one skeleton

Writes out/walk_into_run.png and out/cylinder.png, and prints how fast the simulated person goes, second by second, and
how far a walk made from nothing but its foot contacts is from the recorded one.
"""

import sys
from pathlib import Path

import numpy as np

import poise


def main(paths: list[str], folder: Path = Path("out")) -> tuple[np.ndarray, float]:
    clips = [poise.read(path) for path in paths] or [
        poise.performer.act("walk", speed=1.3, seconds=3.0, fps=30, seed=1),
        poise.performer.act("run", speed=3.0, seconds=2.0, fps=30, seed=2),
    ]
    prior = poise.DynamicsPrior.learn(clips, steps=100)
    walk, run = prior.frames.activity_names[:2]
    simulated = poise.simulate(prior, activities=[walk, run], seconds=5.0)
    simulated.motion.save(folder / "walk_into_run.png", poses=10)
    poise.pictures.draw_latent_paths(prior, {"walk to run": simulated.latents}).save(folder / "cylinder.png")
    speeds = _speeds(simulated.motion.root_positions, simulated.motion.fps)
    print("metres per second, second by second:", " ".join(f"{speed:.1f}" for speed in speeds))
    clip = clips[0][: min(len(clips[0]), 60)]
    footsteps = poise.apps.constraints_of(poise.apps.contacts_in(clip), len(clip))
    again = poise.animate(prior, footsteps, fps=clip.fps)
    error = float(np.linalg.norm(again.motion.positions - clip.positions, axis=2).mean())
    print(f"from foot contacts alone: {100 * error:.1f} cm from the recording")
    return speeds, error


def _speeds(roots: np.ndarray, fps: float) -> np.ndarray:
    steps = np.linalg.norm(np.diff(roots[:, [0, 2]], axis=0), axis=1)
    return np.array([part.mean() * fps for part in np.array_split(steps, 5)])


if __name__ == "__main__":
    main(sys.argv[1:])
