"""Poses that explain points in one photo or several (Grochow et al. 2004, section 7.4).

A photo does not determine depth: a limb may point towards the camera or away, a body may face either way. Every start
is solved with the handles on the rays through their pixels; results are ranked by their posterior, the prior's
log-likelihood minus half the squared residuals of unmet points, in units of clicking precision.

Starts are known poses, placed at all headings so that their handles project to the pixels. For a pose and a heading the
rays give equations linear in the root's position, with the same matrix for all poses and headings, so that thousands
are placed at once. Every view adds its rays.

A views file lists photos of one moment:

    [[views]]
    photo = "front.jpg"
    camera = "front.toml"
    points = { left_hand = [412, 233], right_foot = [380, 610] }
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, ParseError
from poise.formats.camera_file import focal_from_fov, read_camera
from poise.formats.files import existing_file
from poise.formats.images import check_size, quiet_open
from poise.formats.tables import FieldError, read_declared
from poise.geometry import rotations
from poise.geometry.cameras import Camera
from poise.priors.abilities import standing_pose
from poise.priors.poses import handle_positions, upright
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import Pose, Skeleton
from poise.solvers.bearing import below
from poise.solvers.constraints import Position, Projection
from poise.solvers.sequence import LocalGaussian
from poise.solvers.solution import STATUSES, Solution, extended
from poise.solvers.solve import Model, Solver, prior_of, space_of
from poise.types import Array
from poise.vision.people.unknown_camera import level_camera

if TYPE_CHECKING:
    from PIL import Image

USUAL_FOV = 50.0  # degrees, vertical, of a photo without EXIF data: a phone's main camera held level
FILM_WIDTH = 36.0  # millimetres: long side of the film that equivalent focal lengths refer to
PITCHES = (-10.0, 0.0, 10.0, 20.0, 30.0)  # degrees downwards: candidate pitches of an unknown camera
ALTERNATIVES = 3
FEWEST = 3  # smallest number of points for a pose from a photo
HEADINGS = 24
NEAREST = 0.3  # metres: smallest distance of a person from a camera
PIXELS = 3.0  # standard deviation of a clicked point
STARTS = 12
APART = 0.06  # metres: mean joint distance above which two poses are distinct
ROUNDS = 4  # consecutive solves from one start
SETTLED = 2e-3  # radians or metres: a solve that changes less is the last
LEAN = 0.03  # radians squared: variance of the root's tilt in one solve, if the prior does not predict it
Points = Mapping[str, Float[Array, "2"]]
Poses = tuple[Float[Array, "poses maps"], Float[Array, "poses 3"]]
LIMBS = tuple(
    (f"{side}_{upper}", f"{side}_{lower}", f"{side}_{end}")
    for side in ("left", "right")
    for upper, lower, end in (("upper_arm", "forearm", "hand"), ("thigh", "shin", "foot"))
)
THIGHS = ("left_thigh", "right_thigh")
FLAT = 0.1  # metres of depth along a limb: below this a flip changes nothing


@dataclass(frozen=True, eq=False)
class Shot:
    """A photo with its points, and its camera if known."""

    photo: Image.Image
    points: Points
    camera: Camera | None = None


def read_photo(path: Path) -> Image.Image:
    """Read a photo, rotated by its EXIF orientation."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    try:
        with quiet_open(existing_file(path)) as image:
            check_size(*image.size, path)
            image.load()
            upright = ImageOps.exif_transpose(image)
            upright.info["exif_focal"] = focal_from_exif(image)
            return upright
    except (UnidentifiedImageError, Image.DecompressionBombError) as error:
        raise ParseError("not a photo that can be read (JPEG, PNG, WebP, ...)", path=path) from error
    except (OSError, SyntaxError, ValueError) as error:
        if isinstance(error, ParseError) or getattr(error, "filename", None) is not None:
            raise
        raise ParseError(f"the photo is damaged or truncated: {error}", path=path) from error


def focal_from_exif(image: Image.Image) -> float | None:
    """The focal length in pixels from a photo's EXIF data; None if they do not contain it."""
    from PIL.ExifTags import IFD, Base

    tags = image.getexif().get_ifd(IFD.Exif)
    equivalent = tags.get(Base.FocalLengthIn35mmFilm)
    if equivalent and float(equivalent) > 0:
        return float(equivalent) / FILM_WIDTH * max(image.size)
    length, density = tags.get(Base.FocalLength), tags.get(Base.FocalPlaneXResolution)
    unit = {2: 25.4, 3: 10.0, 4: 1.0}.get(tags.get(Base.FocalPlaneResolutionUnit, 2))
    if length and density and unit and float(length) > 0 and float(density) > 0:
        return float(length) * float(density) / unit
    return None


def point_from_text(text: str) -> tuple[str, Float[Array, "2"]]:
    """A joint and its pixel from `LeftHand=412,233`."""
    name, equals, numbers = text.partition("=")
    try:
        pixel = np.array([float(number) for number in numbers.split(",")])
    except ValueError:
        pixel = np.empty(0)
    if not equals or not name.strip() or pixel.shape != (2,):
        raise InvalidValueError(
            f"write a point as NAME=column,row in pixels, such as LeftHand=412,233; got {text!r}"
        )
    return name.strip(), pixel


def check_points(points: Points, size: tuple[int, int]) -> None:
    """Raise if a pixel is not finite or outside the photo."""
    for name, pixel in points.items():
        got = f"got {','.join(f'{number:g}' for number in pixel)}"
        if not np.all(np.isfinite(pixel)):
            raise InvalidValueError(f"the point of {name} must be two finite numbers; {got}")
        if np.any(pixel < 0) or np.any(pixel > np.array(size)):
            raise InvalidValueError(
                f"the point of {name} lies outside the photo of {size[0]} x {size[1]} pixels; {got}"
            )


@dataclass(frozen=True, eq=False)
class _View:
    photo: Path
    camera: Path
    points: dict[str, Float[Array, "2"]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Views:
    views: tuple[_View, ...] = ()

    def __post_init__(self) -> None:
        if not self.views:
            raise FieldError("views", "no photo is listed; expected [[views]] with photo, camera and points")


def read_views(path: Path) -> list[Shot]:
    """The photos of a views file, each with its camera."""
    shots = []
    for view in read_declared(_Views, path).views:
        photo, camera = read_photo(view.photo), read_camera(view.camera)
        check_points(view.points, photo.size)
        shots.append(Shot(photo, view.points, camera))
    return shots


@dataclass(frozen=True, eq=False)
class View:
    """One photo: its camera, and the pixels of handles (joints or roles) in it."""

    camera: Camera
    points: Mapping[str, Float[Array, "2"]]

    def constraints(self) -> list[Projection]:
        """Constraints of the handles to the rays through their pixels."""
        points = self.points.items()
        return [Projection(name, self.camera, pixel, name=f"point of {name}") for name, pixel in points]


@dataclass(eq=False, kw_only=True, repr=False)
class Explanation(Solution):
    """A pose that explains the image points, with its posterior and the residual of each point in pixels."""

    posterior: float
    distances: Float[Array, "points"]
    views: Sequence[View]


def pose_from_shots(
    model: Model,
    shots: Sequence[Shot],
    *,
    fov: float | None = None,
    pitch: float | None = None,
    alternatives: int = ALTERNATIVES,
    standing: Pose | None = None,
) -> list[Explanation]:
    """The most likely poses that explain the points, best first; legs without points are those of a `standing` body.

    That is the model's own unless another is given. An unknown camera is assumed to be level except for its pitch, with
    the given field of view (vertical, degrees), that of the photo's EXIF data, or the usual one; the body then stands
    on the floor at the origin.
    """
    if alternatives < 1:
        raise InvalidValueError(f"`alternatives` must be at least 1; got {alternatives}")
    skeleton, joints = space_of(model).skeleton, set()
    for shot in shots:
        joints |= {skeleton.index(name) for name in shot.points}
        check_points(shot.points, shot.photo.size)
    if len(joints) < FEWEST:
        given = len({name for shot in shots for name in shot.points})
        raise InvalidValueError(f"a pose needs points for at least {FEWEST} joints; got {given}")
    if all(shot.camera is not None for shot in shots):
        views = [View(shot.camera, shot.points) for shot in shots if shot.camera is not None]
        return legs_at_rest(explain(model, views), standing, known=True)[:alternatives]
    if len(shots) > 1:
        raise InvalidValueError(
            "several photos need a camera file each; only a single photo's camera can be estimated"
        )
    focal = focal_of(shots[0], fov)
    pitches = PITCHES if pitch is None else (pitch,)
    found = []
    for degrees in pitches:
        camera = level_camera(shots[0].photo.size, focal, degrees)
        for one in explain(model, [View(camera, shots[0].points)]):
            # The same picture with the body on the floor at the origin: body and camera move together.
            shift, q = -np.array([one.q[0], one.space.forward(one.q)[0][:, 1].min(), one.q[2]]), one.q.copy()
            q[:3] += shift
            moved = replace(camera, translation=camera.translation - camera.rotation @ shift)
            found.append(replace(one, q=q, views=[replace(one.views[0], camera=moved)]))
    best = told_apart(sorted(found, key=lambda one: -one.posterior))
    return legs_at_rest(best, standing)[:alternatives]


def hides_legs(skeleton: Skeleton, points: Collection[str]) -> bool:
    """Whether no point is on a leg, below the hips."""
    thighs = [skeleton.index(role) for role in THIGHS if role in skeleton.roles]
    given = {skeleton.index(name) for name in points} - set(thighs)
    return bool(thighs) and not any(not given.isdisjoint(below(skeleton, role)) for role in THIGHS)


def legs_at_rest(
    found: Sequence[Explanation], standing: Pose | None = None, *, known: bool = False
) -> list[Explanation]:
    """The explanations with the legs of a standing body, if no point shows their own.

    They stand on the floor, unless the camera is known. The standing body is the model's own if none is given; without
    a model the legs are left as they are.
    """
    prior = found[0].prior if found else None
    if standing is None and prior is not None:
        standing = standing_pose(prior)
    if standing is None or not hides_legs(
        standing.skeleton, {name for one in found[0].views for name in one.points}
    ):
        return list(found)
    changed = []
    for one in found:
        q, down = standing_on(one.space, one.q, standing, moves=not known)
        moved = [
            replace(view.camera, translation=view.camera.translation - view.camera.rotation @ down)
            for view in one.views
        ]
        views = [replace(view, camera=camera) for view, camera in zip(one.views, moved, strict=True)]
        changed.append(replace(one, q=q, views=views))
    return told_apart(changed)


def standing_on(
    space: PoseSpace, q: Float[Array, "size"], standing: Pose, *, moves: bool = True
) -> tuple[Float[Array, "size"], Float[Array, "3"]]:
    """A pose with the legs of a standing body, and how far it `moves` up or down to be on the floor as that is."""
    skeleton, pose = standing.skeleton, space.pose_from_q(q)
    turns, legs = pose.rotations.copy(), [*below(skeleton, THIGHS[0]), *below(skeleton, THIGHS[1])]
    turns[legs] = standing.rotations[legs]
    at_rest, down = Pose(skeleton, pose.root_position, turns), np.zeros(3)
    if moves:
        down[1] = standing.world[0][:, 1].min() - at_rest.world[0][:, 1].min()
    return space.q_from_pose(Pose(skeleton, pose.root_position + down, turns)), down


def focal_of(shot: Shot, fov: float | None) -> float:
    """The focal length in pixels: from the given field of view, else from EXIF, else the usual one."""
    if fov is None and (known := shot.photo.info.get("exif_focal")) is not None:
        return float(known)
    return focal_from_fov(USUAL_FOV if fov is None else fov, shot.photo.height)


def explain(
    model: Model, views: Sequence[View], *, starts: int = STARTS, first: Float[Array, "size"] | None = None
) -> list[Explanation]:
    """Distinct poses that explain the points of all views, likeliest first, after the one from `first` if given."""
    space = space_of(model)
    constraints = [constraint for view in views for constraint in view.constraints()]
    if len({constraint.at.joint for constraint in constraints}) < 2:
        raise InvalidValueError("give image points for at least two joints; three or four determine a pose")
    run = _ImageRun(model, space, constraints, views)
    q, off = placed(space, *known_poses(model), views)
    found = [run(start) for start in _spread(space, q, off, starts)]
    if found:
        best = max(found, key=lambda one: one.posterior)
        others = [flipped(space, best.q, views[0].camera, limb) for limb in LIMBS]
        found += [run(start) for start in others if start is not None]
    ranked = sorted(found, key=lambda one: -one.posterior)
    return told_apart(ranked if first is None else [run(first), *ranked])


class _ImageRun:
    """Solves from one start after another."""

    def __init__(
        self, model: Model, space: PoseSpace, constraints: Sequence[Projection], views: Sequence[View]
    ) -> None:
        self._space, self._views, self._prior = space, views, prior_of(model)
        self._solver: Solver | None = Solver(model, constraints)
        if self._prior is not None and not self._solver.resumes:
            handles = space.handles([constraint.at for constraint in constraints])
            self._local = LocalGaussian([self._prior], space, handles)
            self._problem, self._solver = self._solver.problem, None

    def __call__(self, start: Float[Array, "size"]) -> Explanation:
        q, seen = start, []
        for _ in range(ROUNDS):
            before, solution = q, self._once(q)
            q = solution.q
            if np.abs(q - before).max() < SETTLED:
                break
        for view in self._views:
            joints = self._space.handles(list(view.points)).joints
            pixels = view.camera.project(self._space.forward(q)[0][joints])
            seen.append(np.linalg.norm(pixels - np.stack(list(view.points.values())), axis=1))
        distances = np.nan_to_num(np.concatenate(seen), nan=1e6)
        posterior = (solution.log_likelihood or 0.0) - 0.5 * float(np.square(distances / PIXELS).sum())
        return extended(Explanation, solution, posterior=posterior, distances=distances, views=self._views)

    def _once(self, q: Float[Array, "size"]) -> Solution:
        if self._solver is not None:
            self._solver.resume(q)
            return self._solver.solve(q)
        pull, precision = self._local(q, (1.0,))
        # The root keeps its tilt, and turns freely about the vertical.
        up = rotations.matrix_from_quaternion(q[3:ROOT_SIZE])[1]
        precision[3:ROOT_FREEDOMS, 3:ROOT_FREEDOMS] += (np.eye(3) - np.outer(up, up)) / LEAN
        covariance = np.linalg.inv(precision)
        mean = q[ROOT_SIZE:] + (covariance @ pull)[ROOT_FREEDOMS:]
        q = self._problem.start(q)
        status, steps, errors = self._problem.run(q, mean, covariance)
        left = partial(self._problem.residuals, errors)
        return Solution(q, self._space, left, STATUSES[status], steps, 0.0, self._prior)


def _spread(
    space: PoseSpace, q: Float[Array, "starts size"], off: Float[Array, "starts"], count: int
) -> list[Float[Array, "size"]]:
    """The starts with the least reprojection error, distinct from each other."""
    chosen: list[Array] = []
    bodies: list[Array] = []
    for number in np.argsort(off)[: 40 * count]:
        if not np.isfinite(off[number]):
            break
        body = space.forward(q[number])[0]
        if all(np.linalg.norm(body - other, axis=1).mean() > 2.0 * APART for other in bodies):
            chosen.append(q[number])
            bodies.append(body)
        if len(chosen) == count:
            break
    return chosen


def told_apart(found: Sequence[Explanation]) -> list[Explanation]:
    """The explanations whose body, relative to its root, differs from all before it."""
    kept: list[Explanation] = []
    bodies: list[Array] = []
    for one in found:
        body = one.space.forward(one.q)[0]
        body = body - body[0]
        if all(np.linalg.norm(body - other, axis=1).mean() > APART for other in bodies):
            kept.append(one)
            bodies.append(body)
    return kept


def known_poses(model: Model) -> Poses:
    """Exponential maps of a model's known poses, and the up direction of each in its root's frame."""
    prior = prior_of(model)
    return upright(np.zeros((1, space_of(model).size - ROOT_SIZE))) if prior is None else prior.known_poses()


def flipped(
    space: PoseSpace, q: Float[Array, "size"], camera: Camera, limb: tuple[str, str, str]
) -> Float[Array, "size"] | None:
    """The pose with one limb flipped in depth; None if the limb is parallel to the image or unknown."""
    if not all(role in space.skeleton.roles for role in limb):
        return None
    upper, lower, end = (space.forward(q)[0][space.skeleton.index(role)] for role in limb)
    ray = upper - camera.centre
    ray /= np.linalg.norm(ray)
    if max(abs((lower - upper) @ ray), abs((end - lower) @ ray)) < FLAT:
        return None
    targets = [
        Position(role, point - 2.0 * ((point - upper) @ ray) * ray)
        for role, point in zip(limb[1:], (lower, end), strict=True)
    ]
    return Solver(space, targets, root="given").solve(q).q


def placed(
    space: PoseSpace, maps: Float[Array, "poses maps"], ups: Float[Array, "poses 3"], views: Sequence[View]
) -> tuple[Float[Array, "starts size"], Float[Array, "starts"]]:
    """Every pose at every heading, at its best position; and its reprojection error in radians.

    `ups` are the directions of the world's up in the root's frame. Starts behind a camera come last.
    """
    tilts = rotations.quaternion_between(ups, np.broadcast_to([0.0, 1.0, 0.0], ups.shape))
    angles = np.arange(HEADINGS) * (2.0 * np.pi / HEADINGS)
    about = np.stack([np.cos(angles / 2), 0.0 * angles, np.sin(angles / 2), 0.0 * angles], axis=-1)
    turns = np.asarray(rotations.multiply(about[None], tilts[:, None]))
    rows, offsets, points = [], [], []
    for view in views:
        handles = space.handles(list(view.points))
        local = handle_positions(space, maps, handles)
        turned = np.einsum("phab,pnb->phna", rotations.matrix_from_quaternion(turns), local)
        # Two unit vectors perpendicular to each pixel's ray, in the world.
        rays = np.stack([view.camera.ray(np.asarray(pixel)) for pixel in view.points.values()])
        right = np.cross(rays, view.camera.rotation[1])
        right /= np.linalg.norm(right, axis=1, keepdims=True)
        across = np.stack([right, np.cross(rays, right)], axis=1)
        rows.append(across.reshape(-1, 3))
        gaps = np.einsum("nra,phna->phnr", across, turned - view.camera.centre)
        offsets.append(gaps.reshape(*turns.shape[:2], -1))
        points.append((turned, view.camera))
    matrix, gaps = np.concatenate(rows), np.concatenate(offsets, axis=-1)
    if np.linalg.matrix_rank(matrix) < 3:
        raise InvalidValueError("the image points do not fix the position of the body; give two or more")
    positions = -gaps @ np.linalg.pinv(matrix).T
    left = gaps + positions @ matrix.T
    q = np.zeros((maps.shape[0], HEADINGS, space.size))
    q[..., :3], q[..., 3:ROOT_SIZE], q[..., ROOT_SIZE:] = positions, turns, maps[:, None]
    squares, start = np.zeros(left.shape[:2]), 0  # of the angles between handles and their rays
    for turned, camera in points:
        depth = (turned + positions[:, :, None] - camera.centre) @ camera.rotation[2]
        ahead, width = depth.min(axis=-1) > NEAREST, 2 * turned.shape[2]
        missed = left[..., start : start + width].reshape(*depth.shape, 2)
        missed = missed / np.maximum(depth, NEAREST)[..., None]
        squares += np.where(ahead, np.square(missed).sum(axis=(-1, -2)), np.inf)
        start += width
    return q.reshape(-1, space.size), np.sqrt(squares / (left.shape[-1] / 2)).ravel()
