"""Clips of motion, and operations and measurements on them.

No compiled code is imported before it is used; virtual markers are in their own module, `virtual_markers`.
"""

from poise.motion.contacts import Contacts, floor_height, foot_contacts, foot_slide
from poise.motion.edit import (
    RootRelative,
    concatenate,
    face,
    mirror,
    moved,
    place,
    resample,
    retarget,
    root_relative,
    trim,
    world_from_root_relative,
)
from poise.motion.keys import KeyedMotion, few_keys
from poise.motion.markers import Markers
from poise.motion.motion import Motion, Origin
from poise.motion.phase import Phase, phase
from poise.motion.ranges import limits_from_motion, still_joints
from poise.motion.world import (
    accelerations,
    angular_velocities,
    facing_directions,
    headings,
    joint_positions,
    joint_transforms,
    velocities,
)

__all__ = [
    "Contacts",
    "KeyedMotion",
    "Markers",
    "Motion",
    "Origin",
    "Phase",
    "RootRelative",
    "accelerations",
    "angular_velocities",
    "concatenate",
    "face",
    "facing_directions",
    "few_keys",
    "floor_height",
    "foot_contacts",
    "foot_slide",
    "headings",
    "joint_positions",
    "joint_transforms",
    "limits_from_motion",
    "mirror",
    "moved",
    "phase",
    "place",
    "resample",
    "retarget",
    "root_relative",
    "still_joints",
    "trim",
    "velocities",
    "world_from_root_relative",
]
