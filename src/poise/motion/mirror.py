"""A motion mirrored left to right on the same body."""

from __future__ import annotations

import numpy as np

from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.skeleton.symmetry import ACROSS, mirror_joints, reflections, without_partner


def mirror(motion: Motion) -> Motion:
    """The motion mirrored in the plane X = 0: left and right are exchanged.

    It stays on the same body, so lengths that differ between the sides are kept. The correspondence of left and right
    axes comes from the skeleton's symmetric neutral pose, so any rest pose works (`skeleton.symmetry`). Joints that
    only one side has keep their own rotations.
    """
    skeleton = motion.skeleton
    partner, carries = mirror_joints(skeleton), reflections(skeleton, motion.rotations)
    above = np.concatenate([ACROSS[None], carries[skeleton.parents[1:]]])
    # A reflection on both sides of a rotation: the negatives of both reflections are rotations and give the same.
    before, after = rotations.quaternion_from_matrix(-above), rotations.quaternion_from_matrix(-carries)
    turned = rotations.multiply(
        rotations.multiply(before, motion.rotations[:, partner]), rotations.conjugate(after)
    )
    alone = without_partner(skeleton, partner)
    turned[:, alone] = motion.rotations[:, alone]
    return motion.with_frames(motion.root_positions @ ACROSS, rotations.canonical(turned))
