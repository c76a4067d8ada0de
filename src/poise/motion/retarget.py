"""Transfer motions to a body with the same joints and other limb lengths."""

from __future__ import annotations

import numpy as np

from poise.motion.contacts import floor_height
from poise.motion.motion import Motion
from poise.skeleton.retarget import check_same_topology, scaled_places
from poise.skeleton.skeleton import Skeleton


def retarget(motion: Motion, target: Skeleton, *, keep_floor: bool = True) -> Motion:
    """The motion on another body of the same topology: rotations kept, root positions scaled by leg length.

    With `keep_floor` the whole motion is then raised or lowered so that its feet stand on the same floor.
    """
    check_same_topology(motion.skeleton, target)
    places = scaled_places(motion.root_positions, motion.skeleton, target)
    moved = Motion(target, motion.fps, places, motion.rotations, name=motion.name, origin=motion.origin)
    return on_the_same_floor(motion, moved) if keep_floor else moved


def on_the_same_floor(motion: Motion, moved: Motion) -> Motion:
    """The moved motion raised or lowered as a whole to the floor height of the original."""
    rise = floor_height(motion) - floor_height(moved)
    return moved.with_frames(moved.root_positions + np.array([0.0, rise, 0.0]), moved.rotations)
