"""The fingers of a skeleton: the joint of each segment, by the usual names."""

from __future__ import annotations

import re

from poise.skeleton.roles import SIDES, subtree
from poise.skeleton.skeleton import Skeleton

_FINGERS = {
    "thumb": "thumb",
    "index": "index",
    "mid": "middle",
    "ring": "ring",
    "pinky": "little",
    "little": "little",
}
_PALM = re.compile(r"inhand|metacarpal|meta\b|palm|carpal", re.IGNORECASE)


def finger_joints(skeleton: Skeleton) -> dict[tuple[str, str, int], int]:
    """Joint by side, finger (thumb, index, middle, ring, little) and segment, counted from the hand outwards."""
    found: dict[tuple[str, str, int], int] = {}
    for side in SIDES:
        if f"{side}_hand" not in skeleton.roles:
            continue
        counted: dict[str, int] = {}
        for joint in subtree(skeleton, skeleton.index(f"{side}_hand"))[1:]:
            finger = _finger_of(skeleton.names[joint])
            if finger and not skeleton.is_end_site[joint]:
                counted[finger] = counted.get(finger, 0) + 1
                found[side, finger, counted[finger]] = joint
    return found


def _finger_of(name: str) -> str:
    """The finger in a joint's name; empty for other joints, and for bones inside the palm."""
    plain = name.lower()
    finger = next((finger for word, finger in _FINGERS.items() if word in plain), "")
    return "" if finger != "thumb" and _PALM.search(name) else finger
