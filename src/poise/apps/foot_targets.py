"""Foot contacts: those of a recording as constraints, and wider or longer ones for new motions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from poise.motion.contacts import foot_contacts, foot_joints, foot_positions
from poise.motion.gaps import runs
from poise.motion.motion import Motion
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.pose_space import Handle
from poise.skeleton.roles import SIDES
from poise.solvers.constraints import Constraint, Position
from poise.types import Array

HEEL, TOES = 0, 1
SHORTEST = 2  # frames: shortest contact


@dataclass(frozen=True, eq=False)
class FootContact:
    """A point of a foot that stands still at a position from one frame up to but excluding another."""

    handle: Handle
    side: str
    first: int
    end: int
    point: Float[Array, "3"]

    def constraint(self) -> Position:
        """The contact as a constraint."""
        return Position(self.handle, self.point)


def contacts_in(motion: Motion) -> list[FootContact]:
    """The foot contacts of a recording: on the toes while those are down, on the heel before and after.

    Each contact has one position, the mean of the recorded point.
    """
    standing, places = foot_contacts(motion).points, foot_positions(motion)
    found = []
    for number, side in enumerate(SIDES):
        toes = standing[:, number, TOES]
        joints = foot_joints(motion.skeleton, side)
        for point, flags in ((TOES, toes), (HEEL, standing[:, number, HEEL] & ~toes)):
            handle = _handle(motion, joints[point], places[0, number, point])
            found += [
                FootContact(handle, side, run.start, run.stop, places[run, number, point].mean(axis=0))
                for run in runs(flags)
                if run.stop - run.start >= SHORTEST
            ]
    return sorted(found, key=lambda contact: contact.first)


def constraints_of(contacts: Sequence[FootContact], frames: int) -> list[list[Constraint]]:
    """The constraints of each frame."""
    found: list[list[Constraint]] = [[] for _ in range(frames)]
    for contact in contacts:
        for frame in range(contact.first, min(contact.end, frames)):
            found[frame].append(contact.constraint())
    return found


def changed(
    contacts: Sequence[FootContact], *, along: Float[Array, "3"], wider: float = 0.0, longer: float = 1.0
) -> list[FootContact]:
    """Contacts moved apart sideways by some metres, and stretched along the walking direction."""
    ahead = along * np.array([1.0, 0.0, 1.0])
    ahead = ahead / np.linalg.norm(ahead)
    left = np.array([ahead[2], 0.0, -ahead[0]])
    origin = contacts[0].point
    out = []
    for contact in contacts:
        gone = float((contact.point - origin) @ ahead)
        aside = wider if contact.side == "left" else -wider
        out.append(replace(contact, point=contact.point + (longer - 1.0) * gone * ahead + aside * left))
    return out


def _handle(motion: Motion, joint: int, place: Float[Array, "3"]) -> Handle:
    """The handle on a joint that is at a position in the first frame."""
    positions, matrices = world_transforms(motion.skeleton, motion.root_positions[0], motion.rotations[0])
    x, y, z = matrices[joint].T @ (place - positions[joint])
    return Handle(motion.skeleton.names[joint], (float(x), float(y), float(z)))
