"""Body sizes from bone lengths, for any rest pose and units.

Parts that a capture skeleton lacks (the sole below the ankle, the crown above the last head joint) are added with the
proportions of Drillis and Contini (1966), as tabulated by Winter (2009), "Biomechanics and Motor Control of Human
Movement", figure 4.1: of a stature of 1, the thigh is 0.245, the shin 0.246, the ankle 0.039 above the floor.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from poise.skeleton.roles import SIDES, RoledTree, path
from poise.types import Array

THIGH, SHIN, ANKLE = 0.245, 0.246, 0.039
NECK_TO_CROWN = 0.160  # from the base of the neck (C7) to the top of the head
HEAD_TO_CROWN = 0.100  # from the joint of the skull on the neck to the top of the head
LONGEST_LEGS = 0.54  # largest hip height over stature; the mean is 0.530

# Each segment from one role to the next.
SEGMENTS: dict[str, tuple[str, str]] = {
    "trunk": ("pelvis", "neck"),
    "neck": ("neck", "head"),
    **{f"{side}_{name}": (f"{side}_{top}", f"{side}_{end}") for side in SIDES for name, top, end in (
        ("shoulder", "shoulder", "upper_arm"),
        ("upper_arm", "upper_arm", "forearm"),
        ("forearm", "forearm", "hand"),
        ("thigh", "thigh", "shin"),
        ("shin", "shin", "foot"),
        ("foot", "foot", "toes"),
    )},
}  # fmt: skip


def standing_height(skeleton: RoledTree) -> float:
    """The stature of the body, in the skeleton's own unit: sole to hip, hip to neck, neck to crown.

    The upper body is at least that of people with the longest legs, because many capture skeletons start above the
    hips' true height and end inside the skull. Without legs, it is the longest path through the tree.
    """
    leg = leg_length(skeleton)
    if leg == 0.0:
        return longest_way(skeleton)
    hip_height = leg + _sole_to_ankle(skeleton, leg)
    upper = _hip_to_neck(skeleton) + _neck_to_crown(skeleton, stature=leg / (THIGH + SHIN))
    return float(max(hip_height + upper, hip_height / LONGEST_LEGS))


def leg_length(skeleton: RoledTree) -> float:
    """Hip to ankle along the bones, the mean of both sides; zero if no leg is found."""
    sides = [
        length for side in SIDES if (length := length_between(skeleton, f"{side}_thigh", f"{side}_foot"))
    ]
    return float(np.mean(sides)) if sides else 0.0


def segment_lengths(skeleton: RoledTree) -> dict[str, float]:
    """The length along the bones of every segment with both ends known: trunk, left_thigh, right_forearm, ..."""
    roles = skeleton.roles
    return {
        segment: length_between(skeleton, top, end)
        for segment, (top, end) in SEGMENTS.items()
        if top in roles and end in roles
    }


def length_between(skeleton: RoledTree, upper: str, lower: str) -> float:
    """The length along the bones from one joint or role down to another; zero if there is no such path."""
    known = {*skeleton.names, *skeleton.roles}
    if upper not in known or lower not in known:
        return 0.0
    joints = path(skeleton, skeleton.index(upper), skeleton.index(lower))
    return float(np.sum(np.linalg.norm(skeleton.offsets[joints[1:]], axis=-1)))


def offset_between(skeleton: RoledTree, upper: str, lower: str) -> Float[Array, "3"]:
    """The offset from one joint or role to a descendant, in the rest pose."""
    joints = path(skeleton, skeleton.index(upper), skeleton.index(lower))
    total: Array = np.sum(skeleton.offsets[joints[1:]], axis=0)
    return total


def longest_way(skeleton: RoledTree) -> float:
    """The longest path from leaf to leaf along the bones."""
    lengths = np.linalg.norm(skeleton.offsets, axis=-1)
    deepest, longest = np.zeros(len(skeleton)), 0.0
    for joint in range(len(skeleton) - 1, 0, -1):
        parent, reach = skeleton.parents[joint], deepest[joint] + lengths[joint]
        longest = max(longest, deepest[parent] + reach)
        deepest[parent] = max(deepest[parent], reach)
    return float(longest)


# --- the parts of stature ------------------------------------------------------------------------------------------


def _sole_to_ankle(skeleton: RoledTree, leg: float) -> float:
    """The depth of the foot's lowest point below the ankle along the shin, at least a person's."""
    depths = [leg * ANKLE / (THIGH + SHIN)]
    for side in SIDES:
        shin, foot = f"{side}_shin", f"{side}_foot"
        if shin in skeleton.roles and foot in skeleton.roles:
            ankle = skeleton.index(foot)
            joints, below = [ankle], {ankle: np.zeros(3)}
            for joint in joints:
                for child in skeleton.children[joint]:
                    joints.append(child)
                    below[child] = below[joint] + skeleton.offsets[child]
            down = offset_between(skeleton, shin, foot)
            down = down / max(float(np.linalg.norm(down)), 1e-12)
            farthest = max(below.values(), key=lambda point: float(np.linalg.norm(point)))
            # Toes that point along the shin are not those of a standing foot.
            if farthest @ down <= 0.8 * np.linalg.norm(farthest):
                depths.append(max(float(point @ down) for point in below.values()))
    return max(depths)


def _hip_to_neck(skeleton: RoledTree) -> float:
    """The length of the trunk from the base of the neck to the pelvis, and down to the level of the hips."""
    roles = skeleton.roles
    if "pelvis" not in roles:
        return 0.0
    top = next((role for role in ("neck", "head", "chest", "spine") if role in roles), "pelvis")
    trunk = path(skeleton, skeleton.index("pelvis"), skeleton.index(top))[1:]
    up = np.sum(skeleton.offsets[trunk], axis=0)
    thighs = [f"{side}_thigh" for side in SIDES if f"{side}_thigh" in roles]
    hips = [offset_between(skeleton, "pelvis", thigh) for thigh in thighs]
    middle = np.mean(hips, axis=0) if hips else np.zeros(3)
    drop = -float(middle @ up) / max(float(np.linalg.norm(up)), 1e-12)
    return float(np.sum(np.linalg.norm(skeleton.offsets[trunk], axis=-1))) + max(drop, 0.0)


def _neck_to_crown(skeleton: RoledTree, *, stature: float) -> float:
    """The length of neck and head along the bones; a head without a bone gets a person's."""
    roles = skeleton.roles
    if "head" not in roles:
        return NECK_TO_CROWN * stature
    neck = length_between(skeleton, "neck", "head")
    ends = skeleton.children[skeleton.index("head")]
    head = max((float(np.linalg.norm(skeleton.offsets[end])) for end in ends), default=0.0)
    if head < 0.3 * HEAD_TO_CROWN * stature:
        head = max((NECK_TO_CROWN * stature - neck), HEAD_TO_CROWN * stature)
    return neck + head
