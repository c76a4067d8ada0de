"""Motions on one canonical skeleton, whatever body and rig they were recorded on, so that all can be searched at once.

A clip with the canonical skeleton's joints keeps its rotations exactly; only its way over the floor is scaled. One with
other joints is carried over by roles: every joint is turned, in the world, away from its own neutral pose as its
counterpart was from its own (W' = W N^-1 N'); joints without a counterpart stay as in the neutral pose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.errors import SkeletonError
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.motion.retarget import on_the_same_floor, retarget
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.neutral import neutral_pose, stands_at_rest
from poise.skeleton.retarget import scaled_places
from poise.skeleton.roles import MAIN_ROLES
from poise.skeleton.skeleton import Skeleton

Array = np.ndarray

_SAMPLES = 200  # frames from which a rig's neutral pose is read
_UPRIGHT = 0.3  # of the mean direction from pelvis to head, upwards


@dataclass(frozen=True, eq=False)
class Canonical:
    """The skeleton that all clips of a library share, and a usual pose of it, which tells what its axes mean."""

    skeleton: Skeleton
    usual: Float[Array, "joints 4"]

    @classmethod
    def of(cls, motion: Motion) -> Canonical:
        """The skeleton of a recorded person; a body that is no person's says why."""
        check_person(motion)
        return cls(motion.skeleton, rotations.mean(motion.rotations))


def on_canonical(motion: Motion, canonical: Canonical) -> Motion:
    """The motion on the canonical skeleton; a body that cannot be carried over says why."""
    if motion.skeleton.same_topology(canonical.skeleton):
        return retarget(motion, canonical.skeleton)
    check_person(motion)
    return on_the_same_floor(motion, _by_roles(motion, canonical))


def check_person(motion: Motion) -> None:
    """A SkeletonError that says why a body cannot be carried over by roles."""
    skeleton = motion.skeleton
    which = f"its skeleton ({len(skeleton)} joints below {skeleton.names[0]!r})"
    missing = [role for role in MAIN_ROLES if role not in skeleton.roles]
    if missing:
        raise SkeletonError(f"{which} is not the library's, and as a person it lacks {', '.join(missing)}")
    if not stands_at_rest(skeleton) and _uprightness(motion) < _UPRIGHT:
        raise SkeletonError(
            f"{which} is not the library's, and neither its rest pose nor its motion stands upright as a person does"
        )


def _by_roles(motion: Motion, given: Canonical) -> Motion:
    source, canonical = motion.skeleton, given.skeleton
    ours = neutral_pose(source, motion.rotations[:: max(1, len(motion) // _SAMPLES)])
    theirs = neutral_pose(canonical, given.usual[None])
    shared = [role for role in canonical.roles if role in source.roles]
    partner = {canonical.index(role): source.index(role) for role in shared}
    positions, world = world_transforms(source, motion.root_positions, motion.rotations)
    turned = np.empty((len(motion), len(canonical), 3, 3))
    for joint, parent in enumerate(canonical.parents.tolist()):
        if joint in partner:
            other = partner[joint]
            turned[:, joint] = world[:, other] @ ours.world[other].T @ theirs.world[joint]
        elif parent < 0:
            pelvis = source.index("pelvis")
            turned[:, joint] = world[:, pelvis] @ ours.world[pelvis].T @ theirs.world[joint]
        else:
            turned[:, joint] = turned[:, parent] @ theirs.world[parent].T @ theirs.world[joint]
    local = turned.copy()
    local[:, 1:] = np.swapaxes(turned[:, canonical.parents[1:]], -1, -2) @ turned[:, 1:]
    local[:, canonical.is_end_site] = np.eye(3)
    quaternions = rotations.canonical(rotations.quaternion_from_matrix(local))
    places = _root_places(positions[:, source.index("pelvis")], source, canonical, quaternions)
    return Motion(canonical, motion.fps, places, quaternions, name=motion.name, origin=motion.origin)


def _root_places(
    pelvis: Float[Array, "frames 3"],
    source: Skeleton,
    canonical: Skeleton,
    quaternions: Float[Array, "frames joints 4"],
) -> Float[Array, "frames 3"]:
    """Where the canonical root must be for its pelvis to go the source's way, scaled."""
    still = np.zeros_like(pelvis)
    own = world_transforms(canonical, still, quaternions)[0][:, canonical.index("pelvis")]
    return np.asarray(scaled_places(pelvis, source, canonical) - own)


def _uprightness(motion: Motion) -> float:
    positions, _ = world_transforms(motion.skeleton, motion.root_positions, motion.rotations)
    trunk = positions[:, motion.skeleton.index("head")] - positions[:, motion.skeleton.index("pelvis")]
    mean = trunk.mean(axis=0)
    return float(mean[1] / max(float(np.linalg.norm(mean)), 1e-12))
