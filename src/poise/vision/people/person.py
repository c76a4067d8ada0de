"""A person in one picture: the 33 landmarks of BlazePose, and the square they were found in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from poise.skeleton.neutral import neutral_pose
from poise.skeleton.pose_space import Handle
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

NAMES = (
    "nose", "left_eye_inner", "left_eye", "left_eye_outer", "right_eye_inner", "right_eye", "right_eye_outer",
    "left_ear", "right_ear", "mouth_left", "mouth_right", "left_shoulder", "right_shoulder", "left_elbow",
    "right_elbow", "left_wrist", "right_wrist", "left_pinky", "right_pinky", "left_index", "right_index",
    "left_thumb", "right_thumb", "left_hip", "right_hip", "left_knee", "right_knee", "left_ankle", "right_ankle",
    "left_heel", "right_heel", "left_foot_index", "right_foot_index",
)  # fmt: skip
INDEX = {name: number for number, name in enumerate(NAMES)}
LINES = tuple(
    (INDEX[f"{side}_{a}"], INDEX[f"{side}_{b}"])
    for side in SIDES
    for a, b in (
        ("shoulder", "elbow"), ("elbow", "wrist"), ("wrist", "index"), ("wrist", "pinky"), ("wrist", "thumb"),
        ("shoulder", "hip"), ("hip", "knee"), ("knee", "ankle"), ("ankle", "heel"), ("ankle", "foot_index"),
        ("heel", "foot_index"), ("ear", "eye"),
    )
) + tuple((INDEX[f"left_{joint}"], INDEX[f"right_{joint}"]) for joint in ("shoulder", "hip", "eye"))  # fmt: skip
TORSO = tuple(INDEX[f"{side}_{joint}"] for joint in ("shoulder", "hip") for side in SIDES)
OTHER_SIDE = tuple(
    INDEX[name.replace("left", "?").replace("right", "left").replace("?", "right")] for name in NAMES
)
UPPER, LOWER = tuple(range(INDEX["left_hip"])), tuple(range(INDEX["left_hip"], len(NAMES)))
VISIBLE = 0.5  # visibility from which a landmark counts as seen

# Role, factor on a joint's standard deviation, and offset: outwards, up and forward, as fractions of stature.
_SITES = {
    "shoulder": ("upper_arm", 1.0, (0.0, 0.0, 0.0)), "elbow": ("forearm", 1.0, (0.0, 0.0, 0.0)),
    "wrist": ("hand", 1.0, (0.0, 0.0, 0.0)), "hip": ("thigh", 1.5, (0.0, 0.0, 0.0)),
    "knee": ("shin", 1.0, (0.0, 0.0, 0.0)), "ankle": ("foot", 1.0, (0.0, 0.0, 0.0)),
    "heel": ("foot", 1.5, (0.0, -0.035, -0.030)), "foot_index": ("toes", 1.5, (0.0, -0.010, 0.035)),
    "index": ("hand", 2.0, (0.050, 0.0, 0.012)), "pinky": ("hand", 2.0, (0.045, 0.0, -0.020)),
    "thumb": ("hand", 2.0, (0.030, -0.005, 0.025)),
    "ear": ("head", 1.5, (0.045, 0.030, 0.010)), "eye": ("head", 1.5, (0.018, 0.050, 0.055)),
    "eye_inner": ("head", 2.0, (0.010, 0.050, 0.058)), "eye_outer": ("head", 2.0, (0.026, 0.050, 0.050)),
    "nose": ("head", 1.5, (0.0, 0.030, 0.072)), "mouth": ("head", 1.5, (0.014, 0.008, 0.058)),
}  # fmt: skip
_ON_HEAD = "head"


def handles_of(skeleton: Skeleton) -> tuple[list[Handle], Float[Array, "33"]]:
    """The position of each landmark on a skeleton, and the factor on its standard deviation."""
    neutral, found, looser = neutral_pose(skeleton), [], []
    for name in NAMES:
        words = name.split("_")
        side = next((word for word in words if word in SIDES), "")
        role, loose, place = _SITES["_".join(word for word in words if word != side)]
        role = role if role == _ON_HEAD else f"{side}_{role}"
        role = role if role in skeleton.roles else f"{side}_foot"  # a body without toes
        out = {"left": 1.0, "right": -1.0, "": 0.0}[side]
        direction = skeleton.height * np.array([out * place[0], place[1], place[2]])
        x, y, z = neutral.local(skeleton.index(role), direction).tolist()
        found.append(Handle(role, (x, y, z)))
        looser.append(loose)
    return found, np.array(looser)


@dataclass(frozen=True, eq=False)
class Region:
    """A rotated square of a picture around one person: its centre, its side in pixels, and its angle in radians."""

    centre: Float[Array, "2"]
    side: float
    turn: float

    @property
    def axes(self) -> Float[Array, "2 2"]:
        """Columns: the square's own right and down, in the picture."""
        cosine, sine = np.cos(self.turn), np.sin(self.turn)
        return np.array([[cosine, -sine], [sine, cosine]])

    def to_picture(self, points: Float[Array, "*n 2"]) -> Float[Array, "*n 2"]:
        """Pixels of points of the square, whose corners are (0, 0) and (1, 1)."""
        return np.asarray(self.centre + self.side * (points - 0.5) @ self.axes.T)


@dataclass(frozen=True, eq=False)
class Person:
    """One person in one picture: pixels, visibilities (0 to 1), and a rough shape in metres.

    The shape has its origin between the hips and the camera's axes: x right, y down, z away. It is an estimate: whole
    bodies of usual size, seen from afar. `next` is the search region in the next picture.
    """

    pixels: Float[Array, "33 2"]
    visibility: Float[Array, "33"]
    shape: Float[Array, "33 3"]
    score: float
    region: Region
    next: Region

    @cached_property
    def box(self) -> Float[Array, "4"]:
        """Left, top, right and bottom of the visible landmarks, in pixels."""
        seen = self.pixels[self.visibility > VISIBLE] if self.visibility.max() > VISIBLE else self.pixels
        return np.concatenate([seen.min(axis=0), seen.max(axis=0)])


def overlap(first: Float[Array, "4"], second: Float[Array, "4"]) -> float:
    """The intersection over union of two boxes."""
    both = _common(first, second)
    return both / max(_area(first) + _area(second) - both, 1e-9)


def shared(first: Float[Array, "4"], second: Float[Array, "4"]) -> float:
    """The share of the smaller of two boxes that is in both."""
    return _common(first, second) / max(min(_area(first), _area(second)), 1e-9)


def _common(first: Float[Array, "4"], second: Float[Array, "4"]) -> float:
    return _area(np.concatenate([np.maximum(first[:2], second[:2]), np.minimum(first[2:], second[2:])]))


def _area(box: Float[Array, "4"]) -> float:
    return float(np.prod(np.maximum(box[2:] - box[:2], 0.0)))
