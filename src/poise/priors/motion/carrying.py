"""Carry poses from any humanoid to the canonical body, and what the motion network adds to them back."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from poise.geometry import rotations
from poise.priors.motion.layout import HANDLES, TURNING
from poise.priors.universal import layout
from poise.priors.universal import network as universal
from poise.priors.universal.body import fitted
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.skeleton import Skeleton, kept_for_body
from poise.types import Array

AT = [layout.JOINTS.index(name) for name in TURNING]
HANDLES_AT = [layout.JOINTS.index(name) for name in HANDLES]
ABOVE = [AT.index(_at) if (_at := layout.PARENTS[at]) in AT else -1 for at in AT]


class Frames(NamedTuple):
    """Frames of one body: positions of the root, and local rotations of all joints."""

    roots: Float[Array, "frames 3"]
    turns: Float[Array, "frames joints 4"]

    def between(self, before: Array, after: Array, share: Float[Array, "frames"]) -> Frames:
        """Frames on the shortest way between others: positions on lines, rotations at constant speed."""
        roots = self.roots[before] + share[:, None] * (self.roots[after] - self.roots[before])
        return Frames(roots, rotations.slerp(self.turns[before], self.turns[after], share[:, None]))


class Change(NamedTuple):
    """What is added to interpolated frames; zero at keys."""

    shift: Float[Array, "frames 3"]  # of the root, in the world
    turn: Float[Array, "frames 3"]  # of the root, a rotation vector in the world
    turns: Float[Array, "frames moving 3"]  # of the other joints, in their own axes


class Carrier:
    """The linear maps between a skeleton and the canonical body with its proportions."""

    def __init__(self, skeleton: Skeleton) -> None:
        self.weights = universal.shipped()
        self.skeleton, self.fit = skeleton, fitted(skeleton, self.weights)
        orders = tuple("" if name.endswith("_end") else "ZYX" for name in layout.JOINTS)
        self.body = Skeleton(layout.JOINTS, np.array(layout.PARENTS), self.fit.offsets, orders)
        self.still = rotations.quaternion_from_matrix(self.weights.references)

    @cached_property
    def _back(self) -> Float[Array, "canonical maps"]:
        return np.linalg.pinv(self.fit.maps)

    def canonical(self, frames: Frames) -> Frames:
        """The same poses on the canonical body."""
        fit, moving = self.fit, self.fit.moving
        local = rotations.multiply(rotations.conjugate(fit.references[moving]), frames.turns[:, moving])
        vectors = rotations.expmap_from_quaternion(local)
        own = (vectors.reshape(len(vectors), -1) @ self._back.T).reshape(len(vectors), -1, 3)
        root = rotations.matrix_from_quaternion(frames.turns[:, 0]) @ fit.root_turn.T
        turns = np.tile(self.still, (len(vectors), 1, 1))
        turns[:, AT[1:]] = rotations.multiply(self.still[AT[1:]], rotations.quaternion_from_expmap(own))
        turns[:, 0] = rotations.quaternion_from_matrix(root)
        return Frames(frames.roots - root @ fit.root_shift, turns)

    def neutral(self, roots: Float[Array, "frames 3"], turns: Float[Array, "frames 4"]) -> Frames:
        """The skeleton in the neutral pose where the canonical body's root is, so turned."""
        root = rotations.matrix_from_quaternion(turns)
        found = np.tile(self.fit.references, (len(root), 1, 1))
        found[:, 0] = rotations.quaternion_from_matrix(root @ self.fit.root_turn)
        return Frames(roots + root @ self.fit.root_shift, found)

    def added(self, frames: Frames, residual: Change) -> Frames:
        """Frames of the skeleton with what the network adds to their canonical ones."""
        fit, turns, moving = self.fit, frames.turns.copy(), np.flatnonzero(self.fit.moving)
        vectors = (residual.turns.reshape(len(turns), -1) @ fit.maps.T).reshape(len(turns), -1, 3)
        turns[:, moving] = rotations.multiply(turns[:, moving], rotations.quaternion_from_expmap(vectors))
        turn = rotations.quaternion_from_expmap(residual.turn)
        turns[:, 0] = rotations.multiply(turn, turns[:, 0])
        arm = rotations.rotate(frames.turns[:, 0], fit.root_turn.T @ fit.root_shift)
        return Frames(frames.roots + residual.shift + rotations.rotate(turn, arm) - arm, turns)

    def placed(
        self, frames: Frames
    ) -> tuple[Float[Array, "frames canonical 3"], Float[Array, "frames turning 3 3"]]:
        """Positions of all joints of the canonical body, and rotations of those that turn, in the world."""
        places, axes = world_transforms(self.body, *frames)
        return places, axes[:, AT]


def neutral_points(carrier: Carrier) -> tuple[Float[Array, "canonical 3"], Float[Array, "handles 4"]]:
    """Where the canonical body's joints are, and how its handles are turned, in the neutral pose."""
    places, axes = carrier.placed(Frames(np.zeros((1, 3)), carrier.still[None]))
    return places[0], rotations.quaternion_from_matrix(axes[0, [AT.index(at) for at in HANDLES_AT]])


def given_handles(
    carrier: Carrier,
    roots: Float[Array, "frames 3"],
    yaws: Float[Array, "frames 4"],
    seen: Float[Array, "frames handles 7"],
) -> Float[Array, "frames handles 8"]:
    """What the network reads of handles whose positions and rotations are seen (NaN where they are not).

    The base is the neutral pose at these roots, turned by these headings.
    """
    places, upright = neutral_points(carrier)
    there, yaws = np.isfinite(seen).all(axis=-1), yaws[:, None]
    offsets = seen[..., :3] - roots[:, None] - rotations.rotate(yaws, places[HANDLES_AT])
    base = rotations.conjugate(rotations.multiply(yaws, upright))
    turns = np.where(there[..., None], seen[..., 3:], rotations.IDENTITY)
    off = rotations.expmap_from_quaternion(rotations.canonical(rotations.multiply(base, turns)))
    known = there[..., None].astype(np.float64)
    return np.concatenate([known, np.nan_to_num(offsets) * known, known, off * known], axis=-1)


@kept_for_body
def carrier_on(skeleton: Skeleton) -> Carrier:
    """The maps between a skeleton and the canonical body, made once."""
    return Carrier(skeleton)
