"""Contacts of a motion's feet and hands, and pins that hold them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool

from poise.errors import InvalidValueError
from poise.motion.contacts import foot_contacts, hand_contacts
from poise.motion.motion import Motion
from poise.motion.world import joint_positions
from poise.skeleton.roles import SIDES
from poise.studio.messages import Contact, LockContact, Pin, SceneHandle
from poise.studio.solving import vec3
from poise.studio.state import State
from poise.studio.timeline_script import with_pins
from poise.types import Array

SHORTEST = 2  # frames: shortest contact that can be pinned


def contacts_of(motion: Motion) -> list[Contact]:
    """Standing feet and holding hands, as ranges of frames."""
    return [
        Contact(part=part, first=first, last=last)
        for part, touches in _touches(motion).items()
        for first, last in _runs(np.any(touches, axis=1))
    ]


def locked(state: State, motion: Motion, contact: LockContact) -> State:
    """Add pins that hold a foot's heel and toes, or a hand, during a contact."""
    if contact.last >= len(motion):
        raise InvalidValueError(f"the motion has frames 0 to {len(motion) - 1}; got {contact.last}")
    pins, places = [], joint_positions(motion)
    for joint, first, last in _held_joints(motion, contact):
        at = vec3(np.median(places[first : last + 1, motion.skeleton.index(joint)], axis=0))
        pins.append(Pin(handle=joint, first=first, last=last, position=at, ease=contact.ease))
        if all(handle.id != joint for handle in state.handles):
            state = state.with_handle(SceneHandle(id=joint, joint=joint, position=at, pinned=False))
    if not pins:
        raise InvalidValueError(
            f"{contact.part} touches nothing from frame {contact.first} to {contact.last}"
        )
    return state.with_(timeline=with_pins(state.timeline, pins))


def _touches(motion: Motion) -> dict[str, Bool[Array, "frames points"]]:
    """By role: per frame, the points of a foot (heel, toes) or hand in contact."""
    roles = motion.skeleton.roles
    found: dict[str, Array] = {}
    if all(f"{side}_foot" in roles for side in SIDES):
        points = foot_contacts(motion).points
        found |= {f"{side}_foot": points[:, number] for number, side in enumerate(SIDES)}
    if all(f"{side}_hand" in roles for side in SIDES):
        hands = hand_contacts(motion)
        found |= {f"{side}_hand": hands[:, number, None] for number, side in enumerate(SIDES)}
    return found


def _held_joints(motion: Motion, contact: LockContact) -> Iterator[tuple[str, int, int]]:
    """The joints of a contact, and the range of frames of each."""
    touches, part, first, last = _touches(motion), contact.part, contact.first, contact.last
    if part not in touches:
        raise InvalidValueError(f"{part!r} is not one of {', '.join(touches) or 'any feet or hands'}")
    toes = part.replace("_foot", "_toes")
    roles = [part, toes] if toes in motion.skeleton.roles else [part]
    for role, touching in zip(roles, touches[part].T, strict=False):
        for start, end in _runs(touching[first : last + 1]):
            if end - start >= SHORTEST:
                yield motion.skeleton.names[motion.skeleton.index(role)], first + start, first + end


def _runs(flags: Bool[Array, "frames"]) -> list[tuple[int, int]]:
    """The first and last frames of every run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]])))
    return [(int(start), int(end) - 1) for start, end in zip(edges[::2], edges[1::2], strict=True)]
