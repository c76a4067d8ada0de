"""The 33 landmarks of a person detector, in the order of BlazePose, and their positions on a body."""

from __future__ import annotations

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
        side, part = _side_and_part(name)
        role, loose, place = _SITES[part]
        role = role if role == _ON_HEAD else f"{side}_{role}"
        role = role if role in skeleton.roles else f"{side}_foot"  # a body without toes
        out = {"left": 1.0, "right": -1.0, "": 0.0}[side]
        direction = skeleton.height * np.array([out * place[0], place[1], place[2]])
        x, y, z = neutral.local(skeleton.index(role), direction).tolist()
        found.append(Handle(role, (x, y, z)))
        looser.append(loose)
    return found, np.array(looser)


def _side_and_part(name: str) -> tuple[str, str]:
    words = name.split("_")
    side = next((word for word in words if word in SIDES), "")
    return side, "_".join(word for word in words if word != side)
