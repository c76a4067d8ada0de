"""Unity's humanoid, as used by VMC and Rokoko: the names of its bones, and its left-handed world.

Unity's world has Y up and Z forward, and is left-handed. Poise's world is right-handed with left at +X, so X is
mirrored.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from poise.types import Array

_LIMBS = {
    "shoulder": "Shoulder",
    "upper_arm": "UpperArm",
    "forearm": "LowerArm",
    "hand": "Hand",
    "thigh": "UpperLeg",
    "shin": "LowerLeg",
    "foot": "Foot",
    "toes": "Toes",
}
BONES = {"pelvis": "Hips", "spine": "Spine", "chest": "Chest", "neck": "Neck", "head": "Head"} | {
    f"{side}_{part}": side.capitalize() + bone for side in ("left", "right") for part, bone in _LIMBS.items()
}
"""Our roles to Unity's bones."""

ABOVE = {"Spine": "Hips", "Chest": "Spine", "UpperChest": "Chest", "Neck": "UpperChest", "Head": "Neck"} | {
    f"{side}{bone}": above if above in ("Hips", "UpperChest") else f"{side}{above}"
    for side in ("Left", "Right")
    for bone, above in {
        "Shoulder": "UpperChest", "UpperArm": "Shoulder", "LowerArm": "UpperArm", "Hand": "LowerArm",
        "UpperLeg": "Hips", "LowerLeg": "UpperLeg", "Foot": "LowerLeg", "Toes": "Foot",
    }.items()
}  # fmt: skip
"""The parent of each bone; if it is missing, the next ancestor."""


def mirrored_place(place: Float[Array, "3"]) -> Float[Array, "3"]:
    """A point in Unity's left-handed world, or one of it in ours."""
    return np.asarray(place * np.array([-1.0, 1.0, 1.0]))


def mirrored_turn(turn: Float[Array, "4"]) -> Float[Array, "4"]:
    """A rotation (wxyz) in Unity's left-handed world, or one of it in ours."""
    return np.asarray(turn * np.array([1.0, 1.0, -1.0, -1.0]))
