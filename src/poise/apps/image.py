"""Saves and reports the poses that explain a photo: what `poise image` does (Grochow et al. 2004, section 7.4)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from poise.apps.outputs import save
from poise.capture.image_files import Shot
from poise.capture.image_poses import Explanation
from poise.formats.files import make_folder


def described(one: Explanation, best: Explanation) -> str:
    """An alternative in words: how well its points are met, and how likely it is beside the best."""
    met = f"points within {one.distances.max():.1f} px"
    if one.log_likelihood is None:
        return met
    percentile = one.percentile
    likely = f"likelier than {percentile:.0f} % of the poses learned from" if percentile is not None else ""
    return f"{met}, {likely}, log posterior {one.posterior - best.posterior:+.1f} beside the best"


def save_alternatives(found: Sequence[Explanation], path: Path) -> list[Path]:
    """The best pose under the path's name, the others with their numbers: pose.glb, pose-2.glb, pose-3.glb."""
    saved = []
    for number, one in enumerate(found, start=1):
        name = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        saved.append(save(one.space.pose_from_q(one.q), name))
    return saved


def save_overlay(shot: Shot, found: Sequence[Explanation], path: Path) -> Path:
    """The photo with the best pose over it, and all poses from the side."""
    from poise import pictures
    from poise.pictures.overlay import draw_overlay

    make_folder(path.parent)
    poses = [one.space.pose_from_q(one.q) for one in found]
    return pictures.save(draw_overlay(shot.photo, found[0].views[0].camera, shot.points, poses), path)


def report(found: Sequence[Explanation]) -> dict[str, Any]:
    """The alternatives as JSON."""
    return {
        "alternatives": [
            {
                "posterior": one.posterior,
                "log_likelihood": one.log_likelihood,
                "points_px": {
                    name: float(distance)
                    for name, distance in zip(
                        [name for view in one.views for name in view.points], one.distances, strict=True
                    )
                },
                "root_position": one.q[:3].tolist(),
                "camera_position": one.views[0].camera.centre.tolist(),
                "rotations_wxyz": dict(
                    zip(
                        one.space.skeleton.names, one.space.pose_from_q(one.q).rotations.tolist(), strict=True
                    )
                ),
            }
            for one in found
        ]
    }
