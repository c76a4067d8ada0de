"""Transfer motions from any body and rig to one canonical skeleton, so that all can be searched at once.

A clip with the canonical skeleton's joints keeps its rotations exactly; only its travel is scaled. One with other
joints is transferred by roles; see `motion.carrying`.
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
    """The common skeleton of a library's clips, and a typical pose of it that shows the meaning of its axes."""

    skeleton: Skeleton
    usual: Float[Array, "joints 4"]

    @classmethod
    def of(cls, motion: Motion) -> Canonical:
        """The skeleton of a recorded person; raise with the reason if it is not a person."""
        check_person(motion)
        return cls(motion.skeleton, rotations.mean(motion.rotations))


def on_canonical(motion: Motion, canonical: Canonical) -> Motion:
    """The motion on the canonical skeleton; raise with the reason if it cannot be transferred."""
    if motion.skeleton.same_topology(canonical.skeleton):
        return retarget(motion, canonical.skeleton)
    check_person(motion)
    return on_the_same_floor(motion, carried(motion, canonical.skeleton, usual=canonical.usual))
