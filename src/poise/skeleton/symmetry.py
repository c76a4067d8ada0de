"""Left and right of a skeleton: the mirror partner of each joint, and the correspondence of their axes.

A mirrored body swaps each joint's world rotation with its partner's: W'_j = S W_m(j) S_j', where S reflects the world
and S_j maps the partner's axes to the joint's own. For a skeleton with a symmetric rest pose every S_j is S; for rigs
with other axes (bone-aligned ones negate a whole side) it follows from the symmetric neutral pose.
"""

from __future__ import annotations

import itertools
import re

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.geometry import rotations
from poise.skeleton.neutral import neutral_pose, stands_at_rest
from poise.skeleton.roles import SIDES, side_and_part, subtree
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

_IMPROPER = [
    reflection
    for order in itertools.permutations(range(3))
    for signs in itertools.product((1.0, -1.0), repeat=3)
    if np.linalg.det(reflection := np.diag(signs)[list(order)]) < 0
]
ACROSS = np.diag([-1.0, 1.0, 1.0])  # the reflection of the world in the plane X = 0


def mirror_joints(skeleton: Skeleton) -> Int[Array, "joints"]:
    """Per joint, the index of its partner on the other side; joints on the midline are their own."""
    # Joints whose names differ only in the side, digits included.
    keys = {}
    for joint, name in enumerate(skeleton.names):
        side, part = side_and_part(name)
        if side:
            keys[side, part, tuple(re.findall(r"\d+", name))] = joint
    other_side = dict(zip(SIDES, SIDES[::-1], strict=True))
    others = {joint: keys.get((other_side[side], part, n)) for (side, part, n), joint in keys.items()}
    partner = {joint: other for joint, other in others.items() if other is not None}
    for part in {role.partition("_")[2] for role in skeleton.roles if role.startswith(SIDES)}:
        pair = [skeleton.index(f"{side}_{part}") for side in SIDES if f"{side}_{part}" in skeleton.roles]
        if len(pair) == 2:
            partner.update({pair[0]: pair[1], pair[1]: pair[0]})
    result = np.arange(len(skeleton))
    for joint, parent in enumerate(skeleton.parents.tolist()):
        if parent >= 0 and result[joint] == joint:
            other, above = partner.get(joint, -1), int(result[parent])
            if other < 0 or result[other] != other or skeleton.parents[other] != above:
                other = joint
                if above != parent:
                    # The unpaired joint there that is most similar: as many descendants, nearest length.
                    size, length = len(subtree(skeleton, joint)), np.linalg.norm(skeleton.offsets[joint])
                    free = [child for child in skeleton.children[above] if result[child] == child]
                    alike = [child for child in free if len(subtree(skeleton, child)) == size]
                    away = np.abs(np.linalg.norm(skeleton.offsets[alike], axis=-1) - length)
                    other = alike[int(np.argmin(away))] if alike else joint
            result[joint], result[other] = other, joint
    return result


def without_partner(skeleton: Skeleton, partner: Int[Array, "joints"]) -> Bool[Array, "joints"]:
    """Joints that only one side has, such as a sword: their parents have partners and they do not."""
    alone = np.zeros(len(skeleton), dtype=np.bool_)
    for joint, parent in enumerate(skeleton.parents.tolist()):
        alone[joint] = (
            parent >= 0 and partner[joint] == joint and (alone[parent] or partner[parent] != parent)
        )
    return alone


def reflections(
    skeleton: Skeleton, samples: Float[Array, "frames joints 4"] | None = None
) -> Float[Array, "joints 3 3"]:
    """Per joint, the matrix S_j from its partner's axes to its own; S_j and S_m(j) are each other's inverse.

    `samples` are recorded rotations, needed if the rest pose does not stand like a person; the axes of such rigs are
    along the bones, so the estimate from the samples' mean is rounded to whole axes.
    """
    neutral, partner = neutral_pose(skeleton, samples), mirror_joints(skeleton)
    if stands_at_rest(skeleton):
        carried = np.swapaxes(neutral.world, -1, -2) @ ACROSS @ neutral.world[partner]
        for joint in range(len(skeleton)):
            bones = [child for child in skeleton.children[joint] if np.any(skeleton.offsets[child])]
            # Several bones, as at the hips, determine the axes by themselves. One bone is mapped to the other side's,
            # because recorded rest poses are tilted: a neck set ten degrees to one side is rotated back in every frame,
            # and a mirror that assumed upright joint axes would tilt the head to the other side by twice that.
            if len(bones) == 1 and np.any(skeleton.offsets[partner[bones[0]]]):
                theirs = carried[joint] @ skeleton.offsets[partner[bones[0]]]
                turn = rotations.quaternion_between(theirs, skeleton.offsets[bones[0]])
                carried[joint] = rotations.matrix_from_quaternion(turn) @ carried[joint]
        return carried
    # Rounded down the tree, so that one joint's asymmetry in the samples does not affect the next.
    back = np.swapaxes(neutral.world, -1, -2)
    found = back @ ACROSS @ neutral.world[partner]
    for joint, parent in enumerate(skeleton.parents.tolist()):
        other = int(partner[joint])
        if other < joint:
            found[joint] = found[other].T
            continue
        above = found[parent] if parent >= 0 else found[joint]
        if parent >= 0:
            own, others = back[joint] @ neutral.world[parent], back[partner[parent]] @ neutral.world[other]
            found[joint] = own @ above @ others
        found[joint] = _whole_axes(skeleton, partner, joint, above=above, sampled=found[joint])
    return found


def _whole_axes(
    skeleton: Skeleton,
    partner: Int[Array, "joints"],
    joint: int,
    *,
    above: Float[Array, "3 3"],
    sampled: Float[Array, "3 3"],
) -> Float[Array, "3 3"]:
    """The most likely of the whole-axis reflections that map the other side's bones to this one's.

    Below a limb's first joint a rig keeps its convention; elsewhere the samples decide, with some weight on the
    parent's convention and on involutions. If no reflection maps the bones, that of the samples is kept.
    """
    other, children = int(partner[joint]), list(skeleton.children[joint])
    middle = joint == other
    bones, others = skeleton.offsets[children], skeleton.offsets[partner[children]]
    lengths = np.linalg.norm(bones, axis=-1) * np.linalg.norm(others, axis=-1)
    fitting = [
        s
        for s in _IMPROPER
        if np.all(np.sum(bones * (others @ s.T), axis=-1) >= 0.97 * lengths)
        and (not middle or np.array_equal(s, s.T))
    ]
    if not fitting and middle:
        # The plane reflection nearest to the samples'; it is its own inverse, as the midline of a body needs.
        values, vectors = np.linalg.eigh(0.5 * (sampled + sampled.T))
        normal = vectors[:, np.argmin(values)]
        return np.eye(3) - 2.0 * np.outer(normal, normal)
    if not fitting:
        return sampled
    if not middle and skeleton.parents[joint] != skeleton.parents[other]:
        kept = [s for s in fitting if np.array_equal(s, above)]
        return kept[0] if kept else max(fitting, key=lambda s: float(np.sum(s * sampled)))
    same = 1.25 if middle else 0.0
    return max(
        fitting,
        key=lambda s: (
            float(np.sum(s * sampled)) + same * np.array_equal(s, above) + 0.5 * np.array_equal(s, s.T)
        ),
    )
