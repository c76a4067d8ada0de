"""Find good marker placements: the set that predicts a behaviour best, by search over synthetic trials.

Chai and Hodgins (2005, section 9) chose their places by hand and propose to find them by trials on synthetic data. A
trial predicts the poses of a library from the positions and velocities of a set of markers, by ridge regression, with
each block of the recordings held out in turn; its error is the mean joint distance. Sets grow by the marker that helps
most, then exchange one marker for another as long as that helps. The best few of all tried sets are then performed:
held-out poses are found from their markers by the local models themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int

from poise.capture.matching import marker_layout
from poise.capture.performance import Performance
from poise.errors import InvalidValueError
from poise.priors.local.examples import LAG, Examples
from poise.priors.local.prior import LocalPrior
from poise.types import Array

_LIMBS = ("upper_arm", "forearm", "hand", "thigh", "shin", "foot", "toes")
CANDIDATES = (
    *("forehead", "left_waist", "right_waist", "chest", "spine"),
    *(f"{side}_{part}" for side in ("left", "right") for part in _LIMBS),
)
TRIAL_POSES = 1200
RIDGE = 1e-3  # of the mean variance of a set's signals
FOLDS = 5
FINALISTS = 6  # sets that are performed
PERFORMED = 150  # held-out poses of each
ALWAYS = ("left_waist", "right_waist")  # the torso defines the frame of everything else


@dataclass(frozen=True)
class Placement:
    """A set of markers and its mean joint error in centimetres when performed.

    `growth` are the trial errors in centimetres after each added marker, `finalists` the performed sets.
    """

    markers: tuple[str, ...]
    error_cm: float
    growth: tuple[tuple[str, float], ...]
    finalists: tuple[tuple[tuple[str, ...], float], ...]


def best_placement(
    examples: Examples, count: int, *, progress: Callable[[int, int], None] = lambda _done, _all: None
) -> Placement:
    """The set of `count` markers that predicts the examples best; two of them are on the waist."""
    there = {"forehead", *ALWAYS, *examples.space.skeleton.roles}
    trials = _Trials(examples, [name for name in CANDIDATES if name in there])
    fixed = [name for name in ALWAYS if name in trials.names]
    if not len(fixed) < count <= len(trials.names):
        raise InvalidValueError(
            f"the number of markers must be {len(fixed) + 1} to {len(trials.names)}; got {count}"
        )
    chosen, growth = list(fixed), []
    steps = count + FINALISTS
    while len(chosen) < count:
        progress(len(chosen), steps)
        others = (name for name in trials.names if name not in chosen)
        chosen.append(min(others, key=lambda name: trials.error([*chosen, name])))
        growth.append((chosen[-1], trials.error(chosen)))
    best, changed = trials.error(chosen), True
    while changed:  # exchange one marker for another as long as that helps; the trials cache what was tried
        changed = False
        for place in range(len(fixed), len(chosen)):
            for name in trials.names:
                other = [*chosen[:place], name, *chosen[place + 1 :]]
                if name not in chosen and trials.error(other) < best - 1e-9:
                    chosen, best, changed = other, trials.error(other), True
    finalists: list[tuple[tuple[str, ...], float]] = []
    for names in trials.best(count):
        progress(count + len(finalists), steps)
        finalists.append((names, trials.performed_error(names)))
    markers, error = min(finalists, key=lambda finalist: finalist[1])
    return Placement(markers, error, tuple(growth), tuple(finalists))


class _Trials:
    """Signals of all candidates and the outputs to predict, for any set."""

    def __init__(self, examples: Examples, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._examples = examples.every(max(1, len(examples) // TRIAL_POSES))
        samples = examples.space.frames_from_q(examples.q[:50])[1]
        self._layout = marker_layout(examples.space.skeleton, self.names, samples=samples)
        self._errors: dict[frozenset[str], float] = {}

    def error(self, names: Sequence[str]) -> float:
        """Mean joint error in centimetres when predicted from these markers."""
        key = frozenset(names)
        if key in self._errors:
            return self._errors[key]
        markers, wrong = [self.names.index(name) for name in names], np.empty_like(self._joints)
        signals = self._signals[:, markers].reshape(len(self._signals), -1)
        signals = np.hstack([signals, np.ones((len(signals), 1))])
        for fold in range(FOLDS):
            own = self._folds == fold
            gram = signals[~own].T @ signals[~own]
            gram[np.diag_indices_from(gram)] += RIDGE * np.trace(gram) / len(gram)
            predicted = signals[own] @ np.linalg.solve(gram, signals[~own].T @ self._joints[~own])
            wrong[own] = predicted - self._joints[own]
        self._errors[key] = float(100 * np.linalg.norm(wrong.reshape(len(wrong), -1, 3), axis=-1).mean())
        return self._errors[key]

    def best(self, count: int) -> list[tuple[str, ...]]:
        """The best sets of `count` markers among those tried."""
        tried = [names for names in self._errors if len(names) == count]
        return [
            tuple(sorted(names, key=self.names.index))
            for names in sorted(tried, key=lambda names: self._errors[names])[:FINALISTS]
        ]

    def performed_error(self, names: Sequence[str]) -> float:
        """Mean joint error in centimetres when held-out poses are performed with these markers."""
        held, layout = self._folds == 0, {name: self._layout[name] for name in names}
        performance = Performance(LocalPrior(self._examples[~held]), layout)
        tests = self._examples[held].every(max(1, int(held.sum()) // PERFORMED))
        poses = np.empty_like(tests.q)
        for number, (now, before) in enumerate(zip(*tests.markers(performance.handles), strict=True)):
            performance.reset()
            performance.observe(before, at=0.0)
            poses[number] = performance.step(now, at=LAG).q
        joints = tests.space.handles(list(tests.space.skeleton.names))
        wrong = tests.space.points(poses, joints) - tests.space.points(tests.q, joints)
        return float(100 * np.linalg.norm(wrong, axis=-1).mean())

    @cached_property
    def _signals(self) -> Float[Array, "poses markers 6"]:
        """Positions and velocities of all candidates, in the root's frame."""
        handles = self._examples.space.handles(list(self._layout.values()))
        _, turns = self._examples.space.forward(self._examples.q)
        now, before = self._examples.markers(handles)
        root, places = turns[:, 0], self._examples.q[:, None, :3]
        seen = np.einsum("fba,fmb->fma", root, now - places)
        moving = np.einsum("fba,fmb->fma", root, (now - before) / LAG)
        return np.concatenate([seen, 0.1 * moving], axis=-1)

    @cached_property
    def _joints(self) -> Float[Array, "poses coordinates"]:
        """Joint positions in the root's frame."""
        space = self._examples.space
        at = space.handles(list(space.skeleton.names))
        return space.points_in_root_frame(self._examples.maps, at).reshape(len(self._examples), -1)

    @cached_property
    def _folds(self) -> Int[Array, "poses"]:
        """Blocks of the recordings, in as many groups as there are folds."""
        blocks = np.unique(self._examples.blocks, return_inverse=True)[1]
        if blocks.max() + 1 < FOLDS:
            return np.arange(len(blocks)) * FOLDS // len(blocks)
        return np.asarray(blocks % FOLDS)
