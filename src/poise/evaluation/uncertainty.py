"""Protocol `uncertainty`: whether joints are where a solution says they may be, and what the suggested handle is worth.

The root and five handles of an unseen clip are given, as in `handles`, every frame by itself. A joint is held when its
error is within the radius that the solution claims for the share. Then one more handle is added at its true place: the
suggested one, and each of the others, to compare with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np
from jaxtyping import Float

from poise.evaluation.handles import HANDLES, targets_of
from poise.evaluation.methods import UNTRAINED, learner_named
from poise.evaluation.report import ABOUT, EveryFrame, Progress, Protocol, Request, Row
from poise.formats.tables import Range
from poise.motion.motion import Motion
from poise.priors.prior import Prior
from poise.skeleton.kernels import ROOT_SIZE
from poise.solvers.constraints import Position
from poise.solvers.solution import Solution
from poise.solvers.solve import Solver
from poise.solvers.uncertainty import OPEN

Array = np.ndarray

METHODS = ("gaussian-100", "style", "local", "universal")
GROUPS = {
    "legs": ("left_shin", "right_shin", "left_toes", "right_toes"),
    "arms": ("left_upper_arm", "right_upper_arm", "left_forearm", "right_forearm"),
    "torso": ("spine", "chest", "neck"),
}
CANDIDATES = tuple(role for roles in GROUPS.values() for role in roles)


@dataclass(frozen=True, eq=False)
class Frames:
    """Joints of frames: how far they are off, what was claimed, and what one more handle brings."""

    errors: Float[Array, "frames joints"]
    deviations: Float[Array, "frames joints"]
    held: dict[float, Float[Array, "frames joints"]]
    gains: Float[Array, "suggested candidates"]  # metres of mean joint error, the suggested candidate first


class _Tester:
    """A prior on the body of a clip, with solvers for the handles and for each candidate beside them."""

    def __init__(self, prior: Prior, clip: Motion) -> None:
        self._prior = prior.on_body(clip.skeleton)
        self.space = self._prior.space
        skeleton = clip.skeleton
        self.candidates = [role for role in CANDIDATES if role in skeleton.roles]
        self._solvers: dict[str, Solver] = {}
        self.q = self.space.q_from_frames(clip.root_positions, clip.rotations)
        self.joints = self.space.forward(self.q)[0]
        self._skeleton, self._clip = skeleton, clip

    def solve(self, frame: int, added: str = "") -> Solution:
        """A frame from its root and handles, and one more."""
        names = (*HANDLES, added) if added else HANDLES
        if added not in self._solvers:
            constraints = [Position(name, (0.0, 0.0, 0.0)) for name in names]
            self._solvers[added] = Solver(self._prior, constraints, root="given")
        solver = self._solvers[added]
        solver.forget()
        start = np.concatenate([self.q[frame, :ROOT_SIZE], self._prior.mean])
        targets = targets_of(self._clip[frame : frame + 1], self.space.handles(names))[0]
        return solver.solve(start, targets=targets)

    def error(self, frame: int, solution: Solution) -> Float[Array, "joints"]:
        """How far the joints of a solution are from the recorded ones, in metres."""
        off = np.linalg.norm(np.asarray(solution.positions) - self.joints[frame], axis=-1)
        return off[~self.space.skeleton.is_end_site]

    def gains(self, frame: int, before: Solution) -> list[float]:
        """How much each candidate lowers the mean joint error, the suggested one first."""
        suggested = [one.joint for one in before.uncertainty.suggestions(self.candidates)]
        start = float(self.error(frame, before).mean())
        return [start - float(self.error(frame, self.solve(frame, name)).mean()) for name in suggested]


def measure(prior: Prior, clip: Motion, *, stride: int, suggest: int) -> Frames:
    """A clip's frames; every `suggest`-th of them with one more handle."""
    tester, moving = _Tester(prior, clip), ~clip.skeleton.is_end_site
    errors, deviations, gains = [], [], []
    held: dict[float, list[Array]] = {0.5: [], 0.95: []}
    for number, frame in enumerate(range(0, len(clip), stride)):
        solution = tester.solve(frame)
        errors.append(tester.error(frame, solution))
        deviations.append(np.asarray(solution.deviation)[moving])
        for share, found in held.items():
            found.append(errors[-1] <= np.asarray(solution.uncertainty.radii(share))[moving])
        if suggest and number % suggest == 0:
            gains.append(tester.gains(frame, solution))
    whole = [row for row in gains if len(row) == len(tester.candidates)]
    return Frames(
        np.array(errors),
        np.array(deviations),
        {share: np.array(found) for share, found in held.items()},
        np.array(whole).reshape(len(whole), -1),
    )


def metrics(parts: Sequence[Frames]) -> dict[str, float]:
    """Shares held, how wide the claims are, what they gain over a constant, and what suggestions are worth."""
    errors, deviations = np.vstack([p.errors for p in parts]), np.vstack([p.deviations for p in parts])
    opened = deviations > OPEN
    found = {
        f"held_{100 * share:.0f}": float(np.vstack([p.held[share] for p in parts])[opened].mean())
        for share in (0.5, 0.95)
    }
    constant = np.broadcast_to(np.sqrt((errors**2).mean(axis=0) / 3), errors.shape)
    found |= {
        "deviation_cm": 100 * float(deviations[opened].mean()),
        "error_cm": 100 * float(errors[opened].mean()),
        "nats_gained": float(np.mean((_surprise(errors, constant) - _surprise(errors, deviations))[opened])),
        "frames": float(len(errors)),
    }
    gains = np.vstack([p.gains for p in parts if p.gains.size])
    if len(gains):
        suggested, others, best = gains[:, 0].mean(), gains.mean(), gains.max(axis=1).mean()
        found |= {"next_over_random": float(suggested / others), "next_of_best": float(suggested / best)}
    return found


def _surprise(errors: Array, deviations: Array) -> Array:
    """-ln of an isotropic Gaussian of three axes, up to a constant."""
    floored = np.maximum(deviations, OPEN)
    return 3 * np.log(floored) + 0.5 * (errors / floored) ** 2


@dataclass(frozen=True)
class UncertaintyOptions(EveryFrame):
    """How frames are taken."""

    suggest: Annotated[int, Range(least=0), "try one more handle on every Nth tested frame; 0 for none"] = 8


def _run(request: Request, progress: Progress) -> list[Row]:
    options: UncertaintyOptions = request.options
    folds, methods = request.folds(), request.methods or METHODS
    rows: list[Row] = []
    for number, name in enumerate(methods):
        learn = learner_named(name, protocol="uncertainty")
        progress(name, number, len(methods))
        measured = partial(measure, stride=options.stride, suggest=options.suggest)
        parts = [
            measured(prior, clip) for fold in folds for prior in [learn(fold.train)] for clip in fold.test
        ]
        rows.append({"method": name, **metrics(parts)})
    return rows


PROTOCOL = Protocol(
    "uncertainty",
    ABOUT["uncertainty"],
    _run,
    methods=(*METHODS, "gaussian-N", "any kind of model"),
    Options=UncertaintyOptions,
    untrained=UNTRAINED,
)
