"""Naturalness of poses, by measures that no method optimises: the share of frames that could have been recorded.

Each measure is one number per frame, larger for stranger poses: the most extreme joint angle, the most extreme limb
twist, penetration of limbs and body, distance of the centre of mass from the feet, penetration of feet and floor. A
frame is natural by a measure if it is less strange than the strangest 5 % of the recorded frames.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.skeleton.clearance import apart, depths
from poise.skeleton.mass import segment_masses
from poise.skeleton.roles import MAIN_ROLES, SIDES
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

MEASURES = ("joints", "twists", "clear", "balance", "floor")
USUAL = 95.0  # percent of recorded frames that are natural by one measure, by definition
LEAST = np.radians(3.0)  # smallest half range of an angle
SLACK = 0.005  # metres: smaller depths and distances are ignored
_JOINTS = tuple(role for role in MAIN_ROLES if role != "pelvis")
_TWISTED = {f"{side}_{a}": f"{side}_{b}" for side in SIDES for a, b in (
    ("upper_arm", "forearm"), ("forearm", "hand"), ("thigh", "shin"), ("shin", "foot"))}  # fmt: skip


def features(
    skeleton: Skeleton,
    positions: Float[Array, "frames joints 3"],
    matrices: Float[Array, "frames joints 3 3"],
    local: Float[Array, "frames joints 4"],
) -> Float[Array, "frames features"] | None:
    """The inputs of the measures; None for a body without the main roles."""
    if not set(MAIN_ROLES) <= set(skeleton.roles):
        return None
    angles = rotations.expmap_from_quaternion(local[:, [skeleton.index(role) for role in _JOINTS]])
    twists = [_twist(skeleton, local, role, child) for role, child in _TWISTED.items()]
    return np.concatenate(
        [
            angles.reshape(len(local), -1),
            np.stack(twists, axis=1),
            _deepest(skeleton, positions)[:, None],
            _off_balance(skeleton, positions, matrices)[:, None],
            -positions[..., 1].min(axis=1)[:, None],
        ],
        axis=1,
        dtype=np.float32,
    )


def natural_shares(
    found: Float[Array, "frames features"], recorded: Float[Array, "frames features"]
) -> dict[str, float]:
    """The share of frames that are natural by all measures, and by each."""
    within = {}
    for name, part in _PARTS.items():
        own, usual = (_strangeness(which[:, part], recorded[:, part]) for which in (found, recorded))
        within[name] = own <= np.percentile(usual, USUAL) + SLACK
    every = np.all(list(within.values()), axis=0)
    return {
        "natural": float(every.mean()), **{f"natural_{n}": float(w.mean()) for n, w in within.items()}
    }  # fmt: skip


_PARTS = {
    "joints": slice(0, 3 * len(_JOINTS)),
    "twists": slice(3 * len(_JOINTS), 3 * len(_JOINTS) + len(_TWISTED)),
    **{name: slice(at - 3, at - 2 or None) for at, name in enumerate(MEASURES[2:])},
}


def _strangeness(
    of: Float[Array, "frames part"], recorded: Float[Array, "frames part"]
) -> Float[Array, "frames"]:
    """The largest deviation of a component from the middle of the recordings, in half ranges."""
    if of.shape[1] == 1:
        return np.asarray(of[:, 0])
    low, middle, high = np.percentile(recorded, [0.5, 50.0, 99.5], axis=0)
    gaps = of - middle
    return np.asarray(
        (gaps / np.where(gaps > 0, np.maximum(high - middle, LEAST), np.minimum(low - middle, -LEAST))).max(
            axis=1
        )
    )


def _twist(
    skeleton: Skeleton, local: Float[Array, "frames joints 4"], role: str, child: str
) -> Float[Array, "frames"]:
    """The twist of a limb about its own bone."""
    bone = skeleton.offsets[skeleton.index(child)]
    quaternion = local[:, skeleton.index(role)]
    along = quaternion[:, 1:] @ (bone / max(float(np.linalg.norm(bone)), 1e-9))
    turn = 2.0 * np.arctan2(along, quaternion[:, 0])
    return np.asarray((turn + np.pi) % (2.0 * np.pi) - np.pi)


def _deepest(skeleton: Skeleton, positions: Float[Array, "frames joints 3"]) -> Float[Array, "frames"]:
    """Penetration of limbs, as capsules, into each other or the body."""
    return np.maximum(np.max(list(depths(skeleton, positions).values()), axis=0), 0.0)


def _off_balance(
    skeleton: Skeleton,
    positions: Float[Array, "frames joints 3"],
    matrices: Float[Array, "frames joints 3 3"],
) -> Float[Array, "frames"]:
    """Horizontal distance of the centre of mass from the line between the feet."""
    masses = segment_masses(skeleton)
    centre = np.einsum("j,fja->fa", masses.fraction, positions) + np.einsum(
        "j,fjab,jb->fa", masses.fraction, matrices, masses.centre
    )
    flat = np.array([1.0, 0.0, 1.0])
    left, right = (positions[:, skeleton.index(f"{side}_foot")] * flat for side in SIDES)
    return apart(left, right, centre * flat, centre * flat + 1e-9)
