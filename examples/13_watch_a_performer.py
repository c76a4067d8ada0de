"""Two simulated cameras film a boxer; the markers in their pictures drive a whole body again.

    python examples/13_watch_a_performer.py                # the performer's boxing
    python examples/13_watch_a_performer.py unseen.bvh known.bvh

Writes out/watched/: videos, cameras, the truth, the motion that was found, and stages.png from pictures to body.
"""

import sys
from pathlib import Path

import numpy as np

import poise

FPS, EMPTY = 30, 0.5


def main(paths: list[str], folder: Path = Path("out/watched")) -> float:
    clips = [poise.read(path) for path in paths] or [
        poise.performer.act("box", fps=60, seed=seed) for seed in (5, 1)
    ]
    take = poise.apps.before_cameras(clips[0], fps=FPS, seconds=1.0)
    rig, conditions = poise.vision.front_rig(size=(320, 240)), poise.vision.Conditions(marker_radius=0.022)
    simulator = poise.apps.simulator_of(take, rig, conditions=conditions)
    filmed = poise.apps.film(simulator, folder, empty=EMPTY)

    prior = poise.LocalPrior.learn(clips[1:])
    noise = poise.capture.cameras.NOISE
    performance = poise.Performance(prior, simulator.layout, skeleton=take.skeleton, fps=FPS, noise=noise)
    cameras = poise.apps.open_cameras(poise.vision.load_rig(filmed.cameras), filmed.videos)
    watched = poise.apps.perform_take(cameras, performance, empty=EMPTY)
    motion = poise.Motion.of_poses([frame.pose for frame in watched.frames], fps=watched.fps, name="watched")
    motion.save(folder / "watched.bvh")

    middle = len(watched.frames) // 2
    poise.apps.draw_stages(
        simulator.rig,
        [simulator.picture(middle, camera) for camera in range(2)],
        [next(simulator.empty_room(camera, 1)) for camera in range(2)],
        watched.watched[middle].moment,
        labels=simulator.truth.labels,
        joints=motion.positions[middle],
        parents=motion.skeleton.parents.tolist(),
    ).save(folder / "stages.png")
    off = [
        np.linalg.norm(entry.moment.sighting.points - truth, axis=1)
        for entry, truth in zip(watched.watched, simulator.truth.points, strict=False)
    ]
    error = float(np.nanmedian(off))
    print(f"{folder}: {len(motion)} poses; markers placed within {1000 * error:.1f} mm of the truth")
    return error


if __name__ == "__main__":
    main(sys.argv[1:])
