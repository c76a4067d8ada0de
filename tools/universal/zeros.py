"""Joint zeros: how each performer's joints were calibrated, and what his bones say of that.

Performers were calibrated on different days, so the same pose has other rotations for each: a constant offset of the
root and of every joint, which no handle shows. The training learns it beside the network, so that the network need not.
Of a stranger only his bones are known, from which a ridge regression foretells some of it. What it leaves belongs to
the covariance.
"""

from __future__ import annotations

import numpy as np

from poise.priors.universal import layout

Array = np.ndarray
STIFFNESS = (30.0, 100.0, 300.0, 1000.0)  # of the regression, to choose from
_ACROSS = np.array([-1.0, 1.0, 1.0])


def mirrored_zeros(zeros: Array) -> Array:
    """(…, 1 + moving, 3) of the performers in a mirror."""
    return zeros[..., _swapped(("root", *layout.MOVING)), :] * -_ACROSS


def mirrored_bodies(bodies: Array) -> Array:
    """(…, joints, 3) of the performers in a mirror."""
    return bodies[..., _swapped(layout.JOINTS), :] * _ACROSS


def foretold(bodies: Array, zeros: Array) -> dict[str, Array]:
    """The regression from bones to zeros, and the covariance of what it leaves, each performer judged unseen."""
    figures = layout.figure(np.concatenate([bodies, mirrored_bodies(bodies)]))
    wanted = np.concatenate([zeros, mirrored_zeros(zeros)]).reshape(len(figures), -1)
    who = np.tile(np.unique(bodies.reshape(len(bodies), -1), axis=0, return_inverse=True)[1].ravel(), 2)
    left = {stiffness: _unseen(figures, wanted, who, stiffness) for stiffness in STIFFNESS}
    best = min(STIFFNESS, key=lambda stiffness: float(np.square(left[stiffness]).mean()))
    centre, mean, weight = _ridge(figures, wanted, best)
    return {
        "zeros.centre": centre, "zeros.mean": mean, "zeros.weight": weight,
        "zeros.spread": left[best].T @ left[best] / len(left[best]),
    }  # fmt: skip


def _unseen(figures: Array, wanted: Array, who: Array, stiffness: float) -> Array:
    """What the regression of all others leaves of every performer."""
    left = np.empty_like(wanted)
    for one in range(who.max() + 1):
        own = who == one
        centre, mean, weight = _ridge(figures[~own], wanted[~own], stiffness)
        left[own] = wanted[own] - mean - (figures[own] - centre) @ weight.T
    return left


def _ridge(figures: Array, wanted: Array, stiffness: float) -> tuple[Array, Array, Array]:
    centre, mean, scale = figures.mean(0), wanted.mean(0), np.maximum(figures.std(0), 1e-4)
    x = (figures - centre) / scale
    slope = np.linalg.solve(x.T @ x + stiffness * np.eye(x.shape[1]), x.T @ (wanted - mean))
    return centre, mean, slope.T / scale


def _swapped(names: tuple[str, ...]) -> list[int]:
    def other(name: str) -> str:
        for a, b in (("Left", "Right"), ("Right", "Left"), ("L", "R"), ("R", "L")):
            if name.startswith(a) and b + name[len(a) :] in names:
                return b + name[len(a) :]
        return name

    return [names.index(other(name)) for name in names]
