"""A whole body from nine markers: learn from a few walks, hide a hand for a second, and follow another walk.

    python examples/12_perform.py                                # the performer's walks
    python examples/12_perform.py unseen.bvh known_1.bvh ...     # your own clips of one skeleton

Writes out/perform.png, the recorded walk above and the reconstructed one below, and prints how far apart they are.
"""

import sys
from pathlib import Path

import numpy as np

import poise

SHOWN = 6


def main(paths: list[str], output: Path = Path("out/perform.png")) -> float:
    clips = [poise.read(path) for path in paths] or [
        poise.performer.act(
            "walk", seconds=3.0, fps=60, seed=seed, speed=1.3 if seed == 0 else 0.9 + 0.2 * seed
        )
        for seed in range(4)
    ]
    truth, known = clips[0], clips[1:]
    places = poise.capture.WITH_HEAD
    layout = poise.capture.marker_layout(truth.skeleton, places, samples=truth.rotations[:50])
    performance = poise.Performance(
        poise.LocalPrior.learn(known), layout, skeleton=truth.skeleton, fps=truth.fps
    )

    take = poise.virtual_markers(truth, layout)
    points = take.points.copy()
    points[len(points) // 3 : len(points) // 3 + int(truth.fps), 0] = np.nan  # the left hand is hidden
    frames = performance.run(poise.Markers(take.labels, points, take.fps))
    found = poise.Motion.of_poses([frame.pose for frame in frames], fps=truth.fps)

    moving = performance.space.moving
    apart = poise.geometry.rotations.geodesic_distance
    angles = apart(found.rotations[:, moving], truth.rotations[:, moving])
    degrees = float(np.degrees(angles).mean())
    milliseconds = 1000 * np.median([frame.seconds for frame in frames])
    print(f"{degrees:.2f} degrees per joint from {len(layout)} markers, {milliseconds:.1f} ms a frame")

    chosen = np.linspace(0, len(truth) - 1, SHOWN).astype(int)
    rows = [
        {f"{name} {frame / truth.fps:.1f} s": _in_place(motion[int(frame)]) for frame in chosen}
        for name, motion in (("recorded", truth), ("from markers", found))
    ]
    output.parent.mkdir(parents=True, exist_ok=True)
    poise.pictures.draw_panels({**rows[0], **rows[1]}, columns=SHOWN).save(output)
    return degrees


def _in_place(pose: poise.Pose) -> poise.Pose:
    """The pose above the origin, so that one camera sees them all."""
    return poise.Pose(pose.skeleton, pose.root_position * np.array([0.0, 1.0, 0.0]), pose.rotations)


if __name__ == "__main__":
    main(sys.argv[1:])
