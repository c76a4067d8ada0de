"""Pose a body from a photo: five points in a picture of someone walking, and the likeliest poses for them.

    python examples/09_pose_from_a_photo.py

The photo is drawn by Poise itself, so that the true pose is known. Writes out/photo.png and out/check.png, and prints
how far each alternative is from the truth.
"""

import sys
from pathlib import Path

import numpy as np

import poise

POINTS = ("head", "left_hand", "right_hand", "left_foot", "right_foot")
SIZE = (480, 480)


def main(_arguments: list[str], output: Path = Path("out/check.png")) -> list[float]:
    learned = poise.performer.act("walk", seconds=3.0, fps=30, seed=1)
    style = poise.learn(learned, kind="style", dimensions=3, active=60)
    pose = poise.performer.act("walk", seconds=1.5, fps=30, seed=2)[25]
    x, _, z = (float(number) for number in pose.positions["pelvis"])
    camera = poise.Camera.looking_at((x, 0.9, z), eye=(x + 2.0, 1.4, z + 3.2), size=SIZE, field_of_view=0.6)
    points = {role: camera.project(pose.positions[role]) for role in POINTS}
    shot = poise.capture.Shot(poise.pictures.render_photo(pose, camera, SIZE), points, camera)
    found = poise.capture.pose_from_shots(style.on_body(pose.skeleton), [shot])
    output.parent.mkdir(exist_ok=True)
    shot.photo.save(output.with_name("photo.png"))
    poise.apps.save_overlay(shot, found, output)
    answers = [one.space.pose_from_q(one.q).positions for one in found]
    errors = [float(np.linalg.norm(positions - pose.positions, axis=1).mean()) for positions in answers]
    for number, (one, error) in enumerate(zip(found, errors, strict=True), start=1):
        print(
            f"{number}: joints {100 * error:.1f} cm off, log posterior {one.posterior - found[0].posterior:+.1f}"
        )
    return errors


if __name__ == "__main__":
    main(sys.argv[1:])
