"""Penetration between parts of a body, modelled as capsules."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from poise.skeleton.roles import MAIN_ROLES, SIDES
from poise.skeleton.skeleton import Skeleton, kept_for_body
from poise.types import Array

_RADII = {"torso": 0.065, "head": 0.05, "forearm": 0.018, "thigh": 0.035, "shin": 0.025}  # of stature
_LIMBS = {f"{side}_{a}": (f"{side}_{a}", f"{side}_{b}") for side in SIDES for a, b in (
    ("forearm", "hand"), ("thigh", "shin"), ("shin", "foot"))}  # fmt: skip
_PAIRS = (
    *((f"{side}_forearm", other) for side in SIDES for other in ("torso", "head", "left_thigh", "right_thigh")),
    ("left_forearm", "right_forearm"), ("left_shin", "right_shin"),
    ("left_shin", "right_thigh"), ("right_shin", "left_thigh"),
)  # fmt: skip


def depths(
    skeleton: Skeleton, positions: Float[Array, "frames joints 3"]
) -> dict[tuple[str, str], Float[Array, "frames"]]:
    """Penetration depth of each pair of parts in metres, negative if apart; the body must have the main roles."""
    ends, touching = _pairs(skeleton)
    points = 0.5 * (positions[:, ends[0]] + positions[:, ends[1]])
    found = touching[:, None] - apart(*points.transpose(1, 2, 0, 3))
    return dict(zip(_PAIRS, found, strict=True))


def between(skeleton: Skeleton, a: str, b: str) -> float:
    """The distance between the axes of two parts that touch."""
    return skeleton.height * (_radius(a) + _radius(b))


def apart(a: Array, b: Array, c: Array, d: Array) -> Array:
    """The distances of segments a-b and c-d (Ericson 2005, "Real-Time Collision Detection", 5.1.9)."""
    one, two, gap = b - a, d - c, a - c
    aa, ee, f, cc, bb = (
        np.einsum("...i,...i->...", u, v)
        for u, v in ((one, one), (two, two), (two, gap), (one, gap), (one, two))
    )
    denominator = aa * ee - bb * bb
    s = np.clip(np.where(denominator > 1e-12, (bb * f - cc * ee) / np.maximum(denominator, 1e-12), 0.0), 0, 1)
    t = np.clip((bb * s + f) / np.maximum(ee, 1e-12), 0.0, 1.0)
    s = np.clip((bb * t - cc) / np.maximum(aa, 1e-12), 0.0, 1.0)
    return np.asarray(np.linalg.norm(gap + s[..., None] * one - t[..., None] * two, axis=-1))


def _radius(segment: str) -> float:
    return _RADII[segment.split("_")[-1]]


@kept_for_body
def _pairs(skeleton: Skeleton) -> tuple[Int[Array, "2 4 pairs"], Float[Array, "pairs"]]:
    """For every pair, the ends of both parts, each the mean of two joints; and the distance at which they touch."""
    joint = {role: skeleton.index(role) for role in MAIN_ROLES}
    shoulders = (joint["left_upper_arm"], joint["right_upper_arm"])
    ends = {"torso": ((joint["pelvis"],) * 2, shoulders), "head": ((joint["head"],) * 2,) * 2}
    ends |= {name: ((joint[a],) * 2, (joint[b],) * 2) for name, (a, b) in _LIMBS.items()}
    table = [[ends[pair[part]][end] for pair in _PAIRS] for part in (0, 1) for end in (0, 1)]
    return np.array(table).transpose(2, 0, 1), np.array([between(skeleton, *pair) for pair in _PAIRS])
