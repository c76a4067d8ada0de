"""The size of a person from rough landmark positions over a whole take: one length per limb, shared by both sides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.geometry.cameras import Camera
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.roles import SIDES, common_ancestor, path
from poise.skeleton.skeleton import Skeleton
from poise.types import Array
from poise.vision.people.person import INDEX

FEWEST = 3  # smallest number of limbs with a visible length
SIZES = (0.5, 1.5)  # range of a limb's length, relative to the template's
_LIMBS = {
    "thigh": ("hip", "knee", "thigh", "shin"), "shin": ("knee", "ankle", "shin", "foot"),
    "upper arm": ("shoulder", "elbow", "upper_arm", "forearm"), "forearm": ("elbow", "wrist", "forearm", "hand"),
}  # fmt: skip
SOLE, ON_FLOOR = (
    0.03,
    0.05,
)  # metres: height of the landmarks of standing feet, and its standard deviation
USUAL_SIZE, OTHER_FLOOR = (
    0.1,
    0.5,
)  # relative standard deviation of sizes, and the limit beyond which the floor is not at zero
_ROUNDS = 4


def fitted_body(
    skeleton: Skeleton, places: Float[Array, "frames 33 3"], *, seen_share: float = 1.0
) -> Skeleton:
    """The template with the person's size; `seen_share` of how proportions differ from its own is believed."""
    seen = _seen_lengths(places)
    if len(seen) < FEWEST:
        raise InvalidValueError(
            "too little of the person is visible to estimate their size; show arms and legs"
        )
    groups, own = _groups(skeleton), _own_lengths(skeleton)
    ratios = {part: float(np.log(np.clip(length / own[part], *SIZES))) for part, length in seen.items()}
    overall = float(np.mean(list(ratios.values())))
    wanted = {
        part: own[part] * np.exp(overall + seen_share * (ratios.get(part, overall) - overall))
        for part in groups
    }
    skeleton = skeleton.scaled(np.exp(overall))
    for _ in range(_ROUNDS):
        own, factors = _own_lengths(skeleton), np.ones(len(skeleton))
        for part, joints in groups.items():
            factors[joints] = wanted[part] / own[part]
        skeleton = skeleton.with_offsets(skeleton.offsets * factors[:, None])
    return skeleton


def size_on_floor(camera: Camera, places: Float[Array, "frames 33 3"]) -> float:
    """The factor on the person's size and distance with which the feet stand on the floor at zero.

    It is more precise for a higher camera; if it is far from one, the floor is assumed to be elsewhere.
    """
    feet = places[:, [[INDEX[f"{side}_{part}"] for part in ("heel", "foot_index")] for side in SIDES], 1]
    lowest = feet.mean(axis=2).min(axis=1)
    above, seen = float(camera.centre[1]) - SOLE, lowest[np.isfinite(lowest)]
    if above <= 0.0 or not len(seen) or camera.centre[1] - np.median(seen) <= 0.0:
        return 1.0
    factor = np.log(above / (float(camera.centre[1]) - float(np.median(seen))))
    exact, usual = (above / ON_FLOOR) ** 2, USUAL_SIZE**-2
    return float(np.exp(factor * exact / (exact + usual))) if abs(factor) < OTHER_FLOOR else 1.0


def _seen_lengths(places: Float[Array, "frames 33 3"]) -> dict[str, float]:
    """The median of each length over all frames in which it is visible."""
    at = {name: places[:, number] for name, number in INDEX.items()}
    spans = {part: [(at[f"{s}_{a}"], at[f"{s}_{b}"]) for s in SIDES] for part, (a, b, _, _) in _LIMBS.items()}
    spans["shoulders"] = [(at["left_shoulder"], at["right_shoulder"])]
    spans["hips"] = [(at["left_hip"], at["right_hip"])]
    middles = [(at[f"left_{joint}"] + at[f"right_{joint}"]) / 2 for joint in ("shoulder", "hip")]
    spans["trunk"] = [(middles[0], middles[1])]
    lengths = {
        part: np.concatenate([np.linalg.norm(a - b, axis=1) for a, b in pairs])
        for part, pairs in spans.items()
    }
    return {part: float(np.nanmedian(found)) for part, found in lengths.items() if np.isfinite(found).any()}


def _own_lengths(skeleton: Skeleton) -> dict[str, float]:
    """The same lengths of a skeleton that stands upright."""
    places = neutral_pose(skeleton).positions
    at = {role: places[skeleton.index(role)] for role in skeleton.roles}
    found = {part: _apart(at[f"left_{a}"], at[f"left_{b}"]) for part, (_, _, a, b) in _LIMBS.items()}
    found["shoulders"] = _apart(at["left_upper_arm"], at["right_upper_arm"])
    found["hips"] = _apart(at["left_thigh"], at["right_thigh"])
    tops, ends = ((at[f"left_{role}"] + at[f"right_{role}"]) / 2 for role in ("upper_arm", "thigh"))
    found["trunk"] = _apart(tops, ends)
    return found


def _groups(skeleton: Skeleton) -> dict[str, list[int]]:
    """The joints whose bones make up each length."""
    at = {role: skeleton.index(role) for role in skeleton.roles}
    groups = {
        part: _below(skeleton, [(at[f"{side}_{a}"], at[f"{side}_{b}"]) for side in SIDES])
        for part, (_, _, a, b) in _LIMBS.items()
    }
    chest = common_ancestor(skeleton, at["left_upper_arm"], at["right_upper_arm"])
    pelvis = common_ancestor(skeleton, at["left_thigh"], at["right_thigh"])
    groups["shoulders"] = _below(skeleton, [(chest, at[f"{side}_upper_arm"]) for side in SIDES])
    groups["hips"] = _below(skeleton, [(pelvis, at[f"{side}_thigh"]) for side in SIDES])
    groups["trunk"] = _below(skeleton, [(pelvis, chest)])
    return groups


def _below(skeleton: Skeleton, ways: Sequence[tuple[int, int]]) -> list[int]:
    return [joint for first, last in ways for joint in path(skeleton, first, last)[1:]]


def _apart(first: Float[Array, "3"], second: Float[Array, "3"]) -> float:
    return max(float(np.linalg.norm(first - second)), 1e-6)
