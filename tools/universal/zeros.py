"""Joint zeros: how each performer's joints were calibrated, and what his bones say of that.

Performers were calibrated on different days, so the same pose has other rotations for each: a constant offset of the
root and of every joint, which no handle shows. The training learns it beside the network, so that the network need not.
Of a stranger only his bones are known, from which a Gaussian process foretells some of it: performers with bones alike
were often calibrated alike. What it leaves belongs to the covariance.
"""

from __future__ import annotations

import itertools

import numpy as np

from poise.priors.universal import layout
from poise.priors.universal.network import ZeroWeights

Array = np.ndarray
# To choose from by leaving out one performer after another, for every part of the body:
LENGTHS = (0.15, 0.6, 2.4)  # squares of the kernel's length, of the median square distance between bodies
NOISES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # variances, of the kernel's
PARTS = (
    ("root", "Back", "Spine"),
    ("Leg",),
    ("Foot", "Toe"),
    ("Neck", "Head"),
    ("Arm",),
    ("Hand", "Finger", "Thumb"),
)
SAME = 0.035  # metres between all joints of two bodies together: one performer under two numbers
_ACROSS = np.array([-1.0, 1.0, 1.0])


def mirrored_zeros(zeros: Array) -> Array:
    """(…, 1 + moving, 3) of the performers in a mirror."""
    return zeros[..., _swapped(("root", *layout.MOVING)), :] * -_ACROSS


def mirrored_bodies(bodies: Array) -> Array:
    """(…, joints, 3) of the performers in a mirror."""
    return bodies[..., _swapped(layout.JOINTS), :] * _ACROSS


def fitted_zeros(bodies: Array, zeros: Array) -> tuple[ZeroWeights, Array]:
    """The Gaussian processes from bones to zeros; and each performer's zeros as predicted from all others' bones."""
    figures = layout.figure(np.concatenate([bodies, mirrored_bodies(bodies)]))
    wanted = np.concatenate([zeros, mirrored_zeros(zeros)]).reshape(len(figures), -1)
    own = bodies.reshape(len(bodies), -1)
    same = np.tile(np.linalg.norm(own[:, None] - own, axis=-1) < SAME, (2, 2))
    centre, scale, mean = figures.mean(0), np.maximum(figures.std(0), 1e-4), wanted.mean(0)
    apart = np.square((figures[:, None] - figures) / scale).sum(-1)
    scale, apart = scale * np.sqrt(np.median(apart)), apart / np.median(apart)
    reach, weight, left = np.empty_like(mean), np.empty_like(wanted), np.empty_like(wanted)
    tried = [(k, *_processes(apart, wanted, same, *k)) for k in itertools.product(LENGTHS, NOISES)]
    for part in range(len(PARTS)):
        at = np.repeat([_part(name) == part for name in ("root", *layout.MOVING)], 3)
        (length, _), weights, missed = min(tried, key=lambda one: _size(one[2][:, at]))
        reach[at], weight[:, at], left[:, at] = length, weights[:, at], missed[:, at]
    spread = left.T @ left / len(left)
    known = ZeroWeights(centre, scale, (figures - centre) / scale, reach, weight, mean, spread)
    return known, (wanted - left)[: len(bodies)]


def _processes(apart: Array, wanted: Array, same: Array, length: float, noise: float) -> tuple[Array, Array]:
    """The weights of a Gaussian process, and what those of all others leave of each performer."""
    kernel = np.exp(-0.5 * apart / length)
    noisy, left = kernel + noise * np.eye(len(kernel)), np.empty_like(wanted)
    for one, own in enumerate(same):
        mean, others = wanted[~own].mean(0), np.ix_(~own, ~own)
        left[one] = (
            wanted[one] - mean - kernel[one, ~own] @ np.linalg.solve(noisy[others], wanted[~own] - mean)
        )
    return np.linalg.solve(noisy, wanted - wanted.mean(0)), left


def _size(zeros: Array) -> float:
    """The mean angle."""
    return float(np.linalg.norm(zeros.reshape(-1, 3), axis=-1).mean())


def _part(name: str) -> int:
    """Which part of the body a joint belongs to."""
    return max(part for part, words in enumerate(PARTS) if any(word in name for word in words))


def _swapped(names: tuple[str, ...]) -> list[int]:
    def other(name: str) -> str:
        for a, b in (("Left", "Right"), ("Right", "Left"), ("L", "R"), ("R", "L")):
            if name.startswith(a) and b + name[len(a) :] in names:
                return b + name[len(a) :]
        return name

    return [names.index(other(name)) for name in names]
