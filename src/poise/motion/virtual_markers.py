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
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.pose_space import Handle
from poise.skeleton.skeleton import Skeleton
from poise.types import Array


@dataclass(frozen=True)
class Spot:
    """A point on the neutral body: between two roles, offset to the skin by (left, up, forward) of stature."""

    on: tuple[str, ...]  # the joint that it moves with: the first role the skeleton has
    start: str
    end: str
    part: float
    skin: tuple[float, float, float]


_CHEST = ("chest", "spine", "pelvis")
_CENTRE = {
    "C7": Spot(_CHEST, "pelvis", "neck", 1.00, (0.0, 0.010, -0.040)),
    "T10": Spot(_CHEST, "pelvis", "neck", 0.62, (0.0, 0.0, -0.065)),
    "CLAV": Spot(_CHEST, "pelvis", "neck", 0.92, (0.0, 0.0, 0.045)),
    "STRN": Spot(_CHEST, "pelvis", "neck", 0.68, (0.0, 0.0, 0.070)),
    "RBAC": Spot(_CHEST, "pelvis", "neck", 0.80, (-0.060, 0.0, -0.065)),
}
_LEFT = {
    "FHD": Spot(("head",), "head", "head", 0.0, (0.043, 0.055, 0.055)),
    "BHD": Spot(("head",), "head", "head", 0.0, (0.040, 0.055, -0.050)),
    "SHO": Spot(("left_shoulder", *_CHEST), "left_upper_arm", "left_upper_arm", 0.0, (-0.010, 0.032, 0.0)),
    "UPA": Spot(("left_upper_arm",), "left_upper_arm", "left_forearm", 0.50, (0.0, 0.028, 0.0)),
    "ELB": Spot(("left_upper_arm",), "left_forearm", "left_forearm", 0.0, (0.0, 0.026, -0.004)),
    "FRM": Spot(("left_forearm",), "left_forearm", "left_hand", 0.45, (0.0, 0.022, 0.0)),
    "WRA": Spot(("left_hand",), "left_hand", "left_hand", 0.0, (0.0, 0.004, 0.026)),
    "WRB": Spot(("left_hand",), "left_hand", "left_hand", 0.0, (0.0, 0.004, -0.026)),
    "FIN": Spot(("left_hand",), "left_hand", "left_hand", 0.0, (0.048, 0.012, 0.0)),
    "FWT": Spot(("pelvis",), "left_thigh", "right_thigh", 0.5, (0.072, 0.075, 0.058)),
    "BWT": Spot(("pelvis",), "left_thigh", "right_thigh", 0.5, (0.032, 0.080, -0.060)),
    "THI": Spot(("left_thigh",), "left_thigh", "left_shin", 0.60, (0.050, 0.0, 0.010)),
    "KNE": Spot(("left_thigh",), "left_shin", "left_shin", 0.0, (0.036, 0.0, 0.0)),
    "SHN": Spot(("left_shin",), "left_shin", "left_foot", 0.55, (0.038, 0.0, 0.0)),
    "ANK": Spot(("left_shin",), "left_foot", "left_foot", 0.0, (0.027, -0.003, 0.004)),
    "HEE": Spot(("left_foot",), "left_foot", "left_foot", 0.0, (0.0, -0.021, -0.042)),
    "TOE": Spot(("left_toes", "left_foot"), "left_toes", "left_toes", 0.0, (0.0, 0.004, 0.030)),
    "MT5": Spot(("left_toes", "left_foot"), "left_toes", "left_toes", 0.0, (0.030, -0.008, 0.0)),
}
_ON_THE_RIGHT = {"THI": 0.40, "SHN": 0.35}  # at other heights than on the left, to distinguish the sides


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
    spots = {**on_both_sides(_LEFT), **_CENTRE}
    return placed_spots(skeleton, {label: spots[label] for label in OPTICAL_LABELS}, samples=samples)


def on_both_sides(left: Mapping[str, Spot]) -> dict[str, Spot]:
    """Spots of the left with L before their names, and their mirrors on the right with R."""
    spots = {f"L{name}": spot for name, spot in left.items()}
    for name, spot in left.items():
        to_end = ("left_", "right_") if "left_" in spot.end else ("right_", "left_")
        on = tuple(role.replace("left_", "right_") for role in spot.on)
        start, end = spot.start.replace("left_", "right_"), spot.end.replace(*to_end)
        x, y, z = spot.skin
        spots[f"R{name}"] = Spot(on, start, end, _ON_THE_RIGHT.get(name, spot.part), (-x, y, z))
    return spots


def placed_spots(
    skeleton: Skeleton, spots: Mapping[str, Spot], *, samples: Float[Array, "frames joints 4"] | None = None
) -> dict[str, Handle]:
    """Spots of the neutral body as points on a skeleton's joints; `samples` as in `optical_layout`."""
    neutral, found = neutral_pose(skeleton, samples), {}
    for label, spot in spots.items():
        joints = list[int]()
        for role in (spot.on[0], spot.start, spot.end):
            stand_ins = spot.on if not joints else (role, _STAND_INS.get(role, role))
            known = [name for name in stand_ins if name in skeleton.roles]
            if not known:
                advice = "assign it with skeleton.with_roles(...)"
                raise SkeletonError(f"marker {label} needs the role {role!r}; {advice}")
            joints.append(skeleton.index(known[0]))
        joint, top, bottom = joints
        between = neutral.positions[top] + spot.part * (neutral.positions[bottom] - neutral.positions[top])
        place = between + skeleton.height * np.array(spot.skin)
        x, y, z = neutral.local(joint, place - neutral.positions[joint]).tolist()
        found[label] = Handle(skeleton.names[joint], (x, y, z))
    return found


_STAND_INS = {"neck": "head", "left_toes": "left_foot", "right_toes": "right_foot"}
OPTICAL_LABELS: tuple[str, ...] = (
    *("LFHD", "RFHD", "LBHD", "RBHD", "C7", "T10", "CLAV", "STRN", "RBAC"),
    *(f"{side}{name}" for side in "LR" for name in ("SHO", "UPA", "ELB", "FRM", "WRA", "WRB", "FIN")),
    *("LFWT", "RFWT", "LBWT", "RBWT"),
    *(f"{side}{name}" for side in "LR" for name in ("THI", "KNE", "SHN", "ANK", "HEE", "TOE", "MT5")),
)
