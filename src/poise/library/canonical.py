"""Motions on one canonical skeleton, whatever body and rig they were recorded on, so that all can be searched at once.

A clip with the canonical skeleton's joints keeps its rotations exactly; only its way over the floor is scaled. One with
other joints is carried over by roles; see `motion.carrying`.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float

from poise.geometry import rotations
from poise.motion.carrying import carried, check_person
from poise.motion.motion import Motion
from poise.motion.retarget import on_the_same_floor, retarget
from poise.skeleton.skeleton import Skeleton
from poise.types import Array


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
    return on_the_same_floor(motion, carried(motion, canonical.skeleton, usual=canonical.usual))
