"""Learning from corrections of solved poses, as a layer over a model that stays unchanged.

Each correction is a solved pose and the same pose as a person fixed it. A Gaussian process over poses predicts the
correction of a newly solved pose: the common part of all corrections applies everywhere, the rest to similar poses.
The constraints are then met again by the smallest change.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.bounds import checked_depth, checked_text
from poise.errors import InvalidValueError, ParseError
from poise.formats.files import existing_file, replacing
from poise.geometry import rotations
from poise.skeleton.skeleton import Pose
from poise.solvers.given import Given, constraints_from
from poise.solvers.solution import Solution
from poise.solvers.solve import Model, solve
from poise.types import Array

VERSION = 1
MOST = 1000  # largest number of corrections in a file
SHARED, SIMILAR = 4.0, 1.0  # variances of what all corrections share, and of what only similar poses share
ALIKE = 0.3  # radians per joint (root mean square): length scale of pose similarity
NOISE = 0.02  # variance of a person's imprecision, relative to the two above
TOUCHED = np.radians(2.0)  # a joint rotated by less counts as untouched


@dataclass(frozen=True, eq=False)
class Corrections:
    """Solved poses and their corrections: rotations of the named joints relative to their parents."""

    joints: tuple[str, ...] = ()
    before: Float[Array, "corrections joints 4"] = field(default_factory=lambda: np.empty((0, 0, 4)))
    after: Float[Array, "corrections joints 4"] = field(default_factory=lambda: np.empty((0, 0, 4)))

    def __len__(self) -> int:
        return len(self.before)

    def added(self, solved: Pose | Solution, fixed: Pose | Solution) -> Corrections:
        """Return these corrections and one more, from a solved pose to the fixed one."""
        poses = [one.pose if isinstance(one, Solution) else one for one in (solved, fixed)]
        names = poses[0].skeleton.names
        if poses[1].skeleton.names != names or (self.joints and self.joints != names):
            raise InvalidValueError(
                "both poses of a correction, and all corrections of one layer, must have the same skeleton"
            )
        before, after = (one.rotations[None] for one in poses)
        if len(self):
            before, after = np.vstack([self.before, before]), np.vstack([self.after, after])
        return Corrections(names, before, after)

    def without_last(self) -> Corrections:
        """Return these corrections without the last."""
        return replace(self, before=self.before[:-1], after=self.after[:-1])

    def predicted(self, pose: Pose) -> Float[Array, "joints 4"]:
        """Return the predicted corrected rotations of a solved pose."""
        if self.joints and pose.skeleton.names != self.joints:
            raise InvalidValueError("these corrections belong to another skeleton")
        gaps = rotations.multiply(rotations.conjugate(self.before), self.after)  # in each joint's own frame
        turns = rotations.expmap_from_quaternion(gaps)
        touched = np.linalg.norm(turns, axis=-1).max(axis=0) > TOUCHED
        touched[0] = False  # the root is placed by the constraints
        kernel = _kernel(self.before, self.before) + NOISE * np.eye(len(self))
        weights = np.linalg.solve(kernel, turns.reshape(len(self), -1))
        asked = (_kernel(pose.rotations[None], self.before) @ weights).reshape(-1, 3)
        return rotations.multiply(pose.rotations, rotations.quaternion_from_expmap(asked * touched[:, None]))

    def solve(self, model: Model, constraints: Given, **options: Any) -> Solution:
        """Solve the constraints under the model and correct the pose; options are those of `poise.solve`."""
        asked = constraints_from(constraints)
        first = solve(model, asked, **options)
        if not len(self):
            return first
        wanted = first.space.q_from_frames(first.pose.root_position, self.predicted(first.pose))
        kept = {name: options[name] for name in ("root", "settings") if name in options}
        met = solve(first.space, asked, start=wanted, **kept)
        return replace(met, prior=first.prior, posterior_of=first.posterior_of)

    def save(self, path: str | Path) -> None:
        """Write a JSON file atomically."""
        pairs = zip(self.before.round(6).tolist(), self.after.round(6).tolist(), strict=True)
        corrections = [{"before": before, "after": after} for before, after in pairs]
        content = {
            "poise": "corrections",
            "version": VERSION,
            "joints": self.joints,
            "corrections": corrections,
        }
        with replacing(path, "w") as file:
            json.dump(content, file)

    @classmethod
    def load(cls, path: str | Path) -> Corrections:
        """Read a file that `save` wrote."""
        path = existing_file(path)
        try:
            content = checked_depth(json.loads(checked_text(path.read_text(encoding="utf-8"))))
            joints = tuple(str(name) for name in content["joints"])
            before, after = (
                _checked(content["corrections"], key, len(joints)) for key in ("before", "after")
            )
            if content["poise"] != "corrections" or content["version"] > VERSION:
                raise InvalidValueError("written by a newer Poise, or not a file of corrections")
        except (ValueError, TypeError, KeyError, RecursionError, InvalidValueError) as error:
            raise ParseError(f"not a file of corrections: {error}", path=path) from error
        return cls(joints, before, after)


def _checked(entries: Sequence[Any], key: str, joints: int) -> Float[Array, "corrections joints 4"]:
    if len(entries) > MOST:
        raise InvalidValueError(f"a file may hold at most {MOST} corrections; got {len(entries)}")
    found = np.array([entry[key] for entry in entries], dtype=np.float64).reshape(len(entries), joints, 4)
    lengths = np.linalg.norm(found, axis=-1)
    if not np.all(np.abs(lengths - 1.0) < 1e-3):
        raise InvalidValueError("rotations must be unit quaternions")
    return found / lengths[..., None]


def _kernel(a: Array, b: Array) -> Float[Array, "a b"]:
    """Prior covariance between the corrections of two sets of poses."""
    angles = rotations.geodesic_distance(a[:, None, 1:], b[None, :, 1:])
    return SHARED + SIMILAR * np.exp(-0.5 * (angles**2).mean(axis=-1) / ALIKE**2)
