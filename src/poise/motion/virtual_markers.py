"""Virtual markers: points fixed to joints, as optical cameras would record them through a motion.

The 41-marker set is the one used at the Carnegie Mellon motion capture laboratory (a Vicon full-body set with shin and
fifth-metatarsal markers): four on the head, five on the trunk, seven on each arm, four on the waist, seven on each leg.
Each is placed on the neutral body between two joints, with an offset to the skin in fractions of stature.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.errors import SkeletonError
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.motion.world import joint_transforms
from poise.skeleton.neutral import Neutral, neutral_pose
from poise.skeleton.pose_space import Handle
from poise.skeleton.skeleton import Skeleton
from poise.types import Array


@dataclass(frozen=True)
class _Spot:
    """A point on the neutral body: between two roles, offset to the skin by (left, up, forward) of stature."""

    on: tuple[str, ...]  # the joint that it moves with: the first role the skeleton has
    start: str
    end: str
    part: float
    skin: tuple[float, float, float]


_CHEST = ("chest", "spine", "pelvis")
_CENTRE = {
    "C7": _Spot(_CHEST, "pelvis", "neck", 1.00, (0.0, 0.010, -0.040)),
    "T10": _Spot(_CHEST, "pelvis", "neck", 0.62, (0.0, 0.0, -0.065)),
    "CLAV": _Spot(_CHEST, "pelvis", "neck", 0.92, (0.0, 0.0, 0.045)),
    "STRN": _Spot(_CHEST, "pelvis", "neck", 0.68, (0.0, 0.0, 0.070)),
    "RBAC": _Spot(_CHEST, "pelvis", "neck", 0.80, (-0.060, 0.0, -0.065)),
}
_LEFT = {
    "FHD": _Spot(("head",), "head", "head", 0.0, (0.043, 0.055, 0.055)),
    "BHD": _Spot(("head",), "head", "head", 0.0, (0.040, 0.055, -0.050)),
    "SHO": _Spot(("left_shoulder", *_CHEST), "left_upper_arm", "left_upper_arm", 0.0, (-0.010, 0.032, 0.0)),
    "UPA": _Spot(("left_upper_arm",), "left_upper_arm", "left_forearm", 0.50, (0.0, 0.028, 0.0)),
    "ELB": _Spot(("left_upper_arm",), "left_forearm", "left_forearm", 0.0, (0.0, 0.026, -0.004)),
    "FRM": _Spot(("left_forearm",), "left_forearm", "left_hand", 0.45, (0.0, 0.022, 0.0)),
    "WRA": _Spot(("left_hand",), "left_hand", "left_hand", 0.0, (0.0, 0.004, 0.026)),
    "WRB": _Spot(("left_hand",), "left_hand", "left_hand", 0.0, (0.0, 0.004, -0.026)),
    "FIN": _Spot(("left_hand",), "left_hand", "left_hand", 0.0, (0.048, 0.012, 0.0)),
    "FWT": _Spot(("pelvis",), "left_thigh", "right_thigh", 0.5, (0.072, 0.075, 0.058)),
    "BWT": _Spot(("pelvis",), "left_thigh", "right_thigh", 0.5, (0.032, 0.080, -0.060)),
    "THI": _Spot(("left_thigh",), "left_thigh", "left_shin", 0.60, (0.050, 0.0, 0.010)),
    "KNE": _Spot(("left_thigh",), "left_shin", "left_shin", 0.0, (0.036, 0.0, 0.0)),
    "SHN": _Spot(("left_shin",), "left_shin", "left_foot", 0.55, (0.038, 0.0, 0.0)),
    "ANK": _Spot(("left_shin",), "left_foot", "left_foot", 0.0, (0.027, -0.003, 0.004)),
    "HEE": _Spot(("left_foot",), "left_foot", "left_foot", 0.0, (0.0, -0.021, -0.042)),
    "TOE": _Spot(("left_toes", "left_foot"), "left_toes", "left_toes", 0.0, (0.0, 0.004, 0.030)),
    "MT5": _Spot(("left_toes", "left_foot"), "left_toes", "left_toes", 0.0, (0.030, -0.008, 0.0)),
}
_ON_THE_RIGHT = {
    "THI": 0.40,
    "SHN": 0.35,
}  # at other heights than on the left, so that the sides can be distinguished


def virtual_markers(motion: Motion, layout: Mapping[str, Handle] | None = None) -> Markers:
    """The points of a layout through the motion's frames; by default, those of the 41-marker set."""
    layout = optical_layout(motion.skeleton, samples=motion.rotations) if layout is None else layout
    joints = [motion.skeleton.index(handle.joint) for handle in layout.values()]
    offsets = np.array([handle.offset for handle in layout.values()]).reshape(-1, 3)
    positions, turns = joint_transforms(motion)
    points = positions[:, joints] + np.einsum("fmij,mj->fmi", turns[:, joints], offsets)
    return Markers(tuple(layout), points, motion.fps, name=motion.name, origin=motion.origin)


def optical_layout(
    skeleton: Skeleton, *, samples: Float[Array, "frames joints 4"] | None = None
) -> dict[str, Handle]:
    """The 41-marker set on this skeleton; `samples` are recorded rotations, for rigs whose rest pose does not stand."""
    neutral = neutral_pose(skeleton, samples)
    spots = {**{f"L{name}": spot for name, spot in _LEFT.items()}, **_CENTRE}
    spots.update({f"R{name}": _mirrored(name, spot) for name, spot in _LEFT.items()})
    return {label: _placed(skeleton, neutral, label, spots[label]) for label in OPTICAL_LABELS}


def _mirrored(name: str, spot: _Spot) -> _Spot:
    x, y, z = spot.skin
    return _Spot(
        tuple(role.replace("left_", "right_") for role in spot.on),
        spot.start.replace("left_", "right_"),
        spot.end.replace("left_", "right_") if "left_" in spot.end else spot.end.replace("right_", "left_"),
        _ON_THE_RIGHT.get(name, spot.part),
        (-x, y, z),
    )


def _placed(skeleton: Skeleton, neutral: Neutral, label: str, spot: _Spot) -> Handle:
    on = next((role for role in spot.on if role in skeleton.roles), None)
    if on is None:
        raise SkeletonError(
            f"marker {label} needs the role {spot.on[0]!r}; assign it with skeleton.with_roles(...)"
        )
    start, end = (_nearest_role(skeleton, label, role) for role in (spot.start, spot.end))
    between = neutral.positions[start] + spot.part * (neutral.positions[end] - neutral.positions[start])
    place = between + skeleton.height * np.array(spot.skin)
    joint = skeleton.index(on)
    x, y, z = neutral.local(joint, place - neutral.positions[joint]).tolist()
    return Handle(skeleton.names[joint], (x, y, z))


def _nearest_role(skeleton: Skeleton, label: str, role: str) -> int:
    """The role's joint, or that of its substitute."""
    stand_ins = {"neck": "head", "left_toes": "left_foot", "right_toes": "right_foot"}
    for name in (role, stand_ins.get(role, role)):
        if name in skeleton.roles:
            return skeleton.index(name)
    raise SkeletonError(f"marker {label} needs the role {role!r}; assign it with skeleton.with_roles(...)")


OPTICAL_LABELS: tuple[str, ...] = (
    *("LFHD", "RFHD", "LBHD", "RBHD", "C7", "T10", "CLAV", "STRN", "RBAC"),
    *(f"{side}{name}" for side in "LR" for name in ("SHO", "UPA", "ELB", "FRM", "WRA", "WRB", "FIN")),
    *("LFWT", "RFWT", "LBWT", "RBWT"),
    *(f"{side}{name}" for side in "LR" for name in ("THI", "KNE", "SHN", "ANK", "HEE", "TOE", "MT5")),
)
