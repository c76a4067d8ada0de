"""Protocol `image` (Grochow et al. 2004, section 7.4): a few points of an unseen recording in a photo, the pose out.

Every frame is a separate photo: camera known, root unknown, no previous frame. The camera is four metres away, thirty
degrees from the person's mean heading, and follows in steps of half a metre, as people do.

An alternative is *right* if its joints are within eight centimetres of the recorded ones on average, relative to the
root, and every segment of arms and legs that points more than twenty degrees to or from the camera does so correctly.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from poise.capture.photos import LIMBS, View, explain
from poise.errors import InvalidValueError, PoiseError
from poise.evaluation.methods import learner_named, training_poses
from poise.evaluation.report import ABOUT, EveryFrame, Protocol, Row
from poise.evaluation.splits import Fold
from poise.geometry.cameras import Camera
from poise.motion.motion import Motion
from poise.pictures.subject import facing_of
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.skeleton import Skeleton
from poise.solvers.solve import Model
from poise.types import Array, NamedProgress, silent

POINTS = {
    3: ("left_hand", "right_hand", "left_foot"),
    4: ("left_hand", "right_hand", "left_foot", "right_foot"),
    6: ("head", "pelvis", "left_hand", "right_hand", "left_foot", "right_foot"),
}
"""The clicked joints, by their number."""

DEFAULT_METHODS = ("style", "gaussian", "local", "dls")

DISTANCE, HEIGHT, TURN, STEP = 4.0, 1.4, np.radians(30.0), 0.5
SIZE, FIELD_OF_VIEW = (960, 720), 0.7
CLOSE, LEANS = 0.08, np.radians(20.0)
FIRST = 3  # alternatives among which the right one is searched


@dataclass
class _Scores:
    """Measures per frame of one method with one number of points."""

    distances: list[Array] = field(default_factory=list)
    relative: list[float] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    pixels: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    failed: int = 0

    def add(self, model: Model, photo: SimulatedPhoto, points: int) -> None:
        """Explain one photo."""
        begun = time.process_time()
        try:
            found = explain(model, [photo.view(points)])
        except (PoiseError, ArithmeticError, np.linalg.LinAlgError):
            found = []
        self.seconds.append(time.process_time() - begun)
        if not found:
            self.failed += 1
            self.right.append(-1)
            return
        bodies = [one.space.forward(one.q)[0] for one in found]
        joints = ~photo.skeleton.is_end_site
        self.distances.append(np.linalg.norm(bodies[0] - photo.positions, axis=1)[joints])
        self.relative.append(relative_error(photo, bodies[0]))
        self.pixels.append(float(found[0].distances.mean()))
        self.right.append(next((rank for rank, body in enumerate(bodies) if is_right(photo, body)), -1))

    def row(self, method: str, points: int) -> Row:
        """A row of the report; a frame without any pose has no distance but is counted."""
        joints = np.concatenate(self.distances) if self.distances else np.array([np.nan])
        rank, milliseconds = np.array(self.right), 1000 * np.array(self.seconds)
        return {
            "method": method,
            "points": points,
            "mpjpe_cm": float(100 * joints.mean()),
            "rms_cm": float(100 * np.sqrt(np.square(joints).mean())),
            "mpjpe_root_cm": float(100 * np.mean(self.relative)),
            "right_first": float(np.mean(rank == 0)),
            "right_in_3": float(np.mean((rank >= 0) & (rank < FIRST))),
            "point_px": float(np.mean(self.pixels)),
            "ms_per_frame": float(milliseconds.mean()),
            "ms_p95": float(np.percentile(milliseconds, 95)),
            "frames": len(rank),
            "failed": self.failed,
        }


def evaluate_image(
    folds: Sequence[Fold], *, methods: Sequence[str], stride: int = 1, progress: NamedProgress = silent
) -> list[Row]:
    """A row per method and number of points, over every `stride`-th frame of the test clips."""
    if stride < 1:
        raise InvalidValueError(f"the stride must be at least 1 frame; got {stride}")
    for name in methods:
        _learner(name)
    scores = {(name, points): _Scores() for name in methods for points in POINTS}
    frames = sum(len(clip[::stride]) for fold in folds for clip in fold.test)
    done, total = 0, frames * len(methods)
    for fold in folds:
        for name in methods:
            progress(name, done, total)
            model = _learner(name)(fold.train)
            for clip in fold.test:
                photos = photos_of(clip[::stride])
                own = model.on_body(clip.skeleton) if not isinstance(model, Skeleton) else model
                for photo in photos:
                    for points in POINTS:
                        scores[name, points].add(own, photo, points)
                    done += 1
                    progress(name, done, total)
    return [score.row(name, points) for (name, points), score in scores.items()]


def _learner(name: str) -> Callable[[Sequence[Motion]], Model]:
    if name == "dls":
        return lambda clips: training_poses(clips)[0]
    return learner_named(
        "gaussian-100" if name == "gaussian" else name, protocol="image", others=DEFAULT_METHODS
    )


@dataclass(frozen=True, eq=False)
class SimulatedPhoto:
    """One frame as seen by a camera, and its true joint positions."""

    skeleton: Skeleton
    camera: Camera
    positions: Float[Array, "joints 3"]

    def view(self, points: int) -> View:
        """A number of its joints, as clicked in the photo."""
        roles = POINTS[points]
        pixels = self.camera.project(self.positions[[self.skeleton.index(role) for role in roles]])
        return View(self.camera, dict(zip(roles, pixels, strict=True)))


def photos_of(clip: Motion) -> list[SimulatedPhoto]:
    """Every frame of a clip as a photo."""
    positions, _ = world_transforms(clip.skeleton, clip.root_positions, clip.rotations)
    azimuth = facing_of(clip.skeleton, positions) + TURN
    pelvis = positions[:, clip.skeleton.index("pelvis")]
    photos = []
    for body, middle in zip(positions, np.round(pelvis / STEP) * STEP, strict=True):
        x, z = float(middle[0]), float(middle[2])
        eye = (x + DISTANCE * np.sin(azimuth), HEIGHT, z + DISTANCE * np.cos(azimuth))
        camera = Camera.looking_at((x, 0.95, z), eye=eye, size=SIZE, field_of_view=FIELD_OF_VIEW)
        photos.append(SimulatedPhoto(clip.skeleton, camera, body))
    return photos


def is_right(photo: SimulatedPhoto, body: Float[Array, "joints 3"]) -> bool:
    """Whether a body is close to the true one and no limb is flipped in depth."""
    return relative_error(photo, body) <= CLOSE and not flipped_segments(photo, body)


def relative_error(photo: SimulatedPhoto, body: Float[Array, "joints 3"]) -> float:
    """The mean joint distance from the true ones, relative to the root."""
    joints = ~photo.skeleton.is_end_site
    gap = (body - body[0]) - (photo.positions - photo.positions[0])
    return float(np.linalg.norm(gap[joints], axis=1).mean())


def flipped_segments(photo: SimulatedPhoto, body: Float[Array, "joints 3"]) -> list[str]:
    """The segments of arms and legs with the wrong direction in depth, of those with a clear one."""
    wrong = []
    for limb in LIMBS:
        for above, below in pairwise(limb):
            first, last = photo.skeleton.index(above), photo.skeleton.index(below)
            ray = photo.positions[first] - photo.camera.centre
            ray /= np.linalg.norm(ray)
            true, found = (bones[last] - bones[first] for bones in (photo.positions, body))
            if abs(true @ ray) > np.sin(LEANS) * np.linalg.norm(true) and (true @ ray) * (found @ ray) < 0:
                wrong.append(above)
    return wrong


PROTOCOL = Protocol(
    "image",
    ABOUT["image"],
    lambda request, progress: evaluate_image(
        request.folds(),
        methods=request.methods or DEFAULT_METHODS,
        stride=request.options.stride,
        progress=progress,
    ),
    figures={"image": "image_figure"},
    methods=DEFAULT_METHODS,
    Options=EveryFrame,
)
