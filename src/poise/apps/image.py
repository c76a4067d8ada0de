"""Save and report the poses that explain a photo, for `poise image` (Grochow et al. 2004, section 7.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poise.apps.outputs import save, save_picture
from poise.capture.people.take import capture_person
from poise.capture.photos import (
    ALTERNATIVES,
    Explanation,
    Points,
    Shot,
    View,
    check_points,
    explain,
    focal_of,
    hides_legs,
    legs_at_rest,
    standing_on,
)
from poise.priors.abilities import standing_pose
from poise.skeleton.skeleton import Pose
from poise.solvers.solution import MotionSolution
from poise.solvers.solve import Model, space_of
from poise.vision.people.person import Person
from poise.vision.people.unknown_camera import with_focal
from poise.vision.people.watching import person_in_photo, points_of, watched_in_photo

if TYPE_CHECKING:
    from PIL import Image


@dataclass(frozen=True, eq=False)
class FoundInPhoto:
    """The person found in a photo, and the body solved from it."""

    person: Person
    points: Points
    body: MotionSolution

    @property
    def pose(self) -> Pose:
        """The pose, of a body of the person's size."""
        return self.body.motion[0]


def find_in_photo(
    photo: Image.Image, *, number: int | None = None, fov: float | None = None, height: float | None = None
) -> FoundInPhoto:
    """Find the person in a photo (number from 1, if there are several), without given points."""
    person = person_in_photo(photo, number)
    focal = None if fov is None and photo.info.get("exif_focal") is None else focal_of(Shot(photo, {}), fov)
    watched = watched_in_photo(person, photo.size, focal)
    body = capture_person(with_focal(watched) if focal is None else watched, known=False, height=height)
    points = points_of(person, photo.size)
    return FoundInPhoto(person, points, _with_legs(body) if hides_legs(body.space.skeleton, points) else body)


def _with_legs(body: MotionSolution) -> MotionSolution:
    """A body whose legs a photo does not show, with those of a standing one, on the floor."""
    (one,), (camera,) = body.solutions, body.cameras
    assert one.prior is not None
    q, down = standing_on(one.space, one.q, standing_pose(one.prior))
    moved = replace(camera, translation=camera.translation - camera.rotation @ down)
    return replace(body, solutions=[replace(one, q=q)], cameras=[moved])


def explained(
    model: Model, photo: Image.Image, found: FoundInPhoto, *, standing: Pose | None = None
) -> list[Explanation]:
    """Poses of a model's own body that explain the found points, the detector's shape first.

    Legs that the photo does not show are those of a `standing` body, the model's own unless given.
    """
    camera, space = found.body.cameras[0], space_of(model)
    first = None
    if found.pose.skeleton.same_topology(space.skeleton):
        first = space.q_from_frames(found.pose.root_position, found.pose.rotations)
    check_points(found.points, photo.size)
    return legs_at_rest(explain(model, [View(camera, found.points)], first=first), standing)[:ALTERNATIVES]


def described(one: Explanation, best: Explanation) -> str:
    """An alternative in words: its residuals, and its likelihood relative to the best."""
    met = f"points within {one.distances.max():.1f} px"
    if one.log_likelihood is None:
        return met
    percentile = one.percentile
    likely = f"likelier than {percentile:.0f} % of the training poses" if percentile is not None else ""
    return f"{met}, {likely}, log posterior {one.posterior - best.posterior:+.1f} relative to the best"


def save_alternatives(found: Sequence[Explanation], path: Path, *, onto: Path | None = None) -> list[Path]:
    """Save the best pose under the path's name, the others with numbers: pose.glb, pose-2.glb, pose-3.glb."""
    saved = []
    for number, one in enumerate(found, start=1):
        name = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        saved.append(save(one.space.pose_from_q(one.q), name, onto=onto))
    return saved


def save_overlay(shot: Shot, found: Sequence[Explanation], path: Path) -> Path:
    """The photo with the best pose over it, and all poses from the side."""
    from poise.pictures.overlay import draw_overlay

    poses = [one.space.pose_from_q(one.q) for one in found]
    return save_picture(draw_overlay(shot.photo, found[0].views[0].camera, shot.points, poses), path)


def save_found(photo: Image.Image, found: FoundInPhoto, path: Path) -> Path:
    """The photo with the points found and the body over it, and the body from the side."""
    from poise.pictures.overlay import draw_overlay

    return save_picture(draw_overlay(photo, found.body.cameras[0], found.points, [found.pose]), path)


def report_found(found: FoundInPhoto) -> dict[str, Any]:
    """The pose and the points, as JSON."""
    names = found.pose.skeleton.names
    return {
        "points_px": {name: pixel.tolist() for name, pixel in found.points.items()},
        "height_m": round(found.pose.skeleton.height, 3),
        "root_position": found.pose.root_position.tolist(),
        "camera_position": found.body.cameras[0].centre.tolist(),
        "rotations_wxyz": dict(zip(names, found.pose.rotations.tolist(), strict=True)),
        "uncertainty_cm": dict(zip(names, (100.0 * found.body.deviations[0]).round(1).tolist(), strict=True)),
    }


def report(found: Sequence[Explanation]) -> dict[str, Any]:
    """The alternatives as JSON."""
    alternatives = []
    for one in found:
        points, skeleton = [name for view in one.views for name in view.points], one.space.skeleton
        turns = one.space.pose_from_q(one.q).rotations.tolist()
        alternatives.append({
            "posterior": one.posterior,
            "log_likelihood": one.log_likelihood,
            "points_px": dict(zip(points, map(float, one.distances), strict=True)),
            "root_position": one.q[:3].tolist(),
            "camera_position": one.views[0].camera.centre.tolist(),
            "rotations_wxyz": dict(zip(skeleton.names, turns, strict=True)),
        })  # fmt: skip
    return {"alternatives": alternatives}
