"""Protocol `uncertainty`: calibration of joint uncertainties, and the value of the suggested handle.

The root and five handles of an unseen clip are given, as in `handles`, every frame independently. A joint is covered
if its error is within the radius that the solution claims for the share. Then one more handle is added at its true
position: the suggested one, and each of the others for comparison. The best of them is known only afterwards; what a
choice can attain of it is computed on errors drawn from the claimed distribution itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np
from jaxtyping import Bool, Float

from poise.evaluation.methods import UNTRAINED, Learner, rows_by_method
from poise.evaluation.report import ABOUT, EveryFrame, Protocol, names_from_text
from poise.evaluation.splits import Fold
from poise.formats.tables import Range
from poise.motion.motion import Motion
from poise.priors.evidence import OF_OTHERS, held_out_of
from poise.priors.prior import Prior
from poise.solvers.calibration import HANDLES, OPEN, HeldFrames, calibrate
from poise.solvers.uncertainty import Uncertainty
from poise.types import Array

METHODS = ("gaussian-100", "style", "local", "universal")
GROUPS = {
    "legs": ("thigh", "shin", "foot", "toe", "leg"),
    "arms": ("shoulder", "arm", "hand", "thumb", "finger"),
    "torso": (),  # and everything in no other group
}
SIDED = ("shin", "toes", "upper_arm", "forearm")
CANDIDATES = (*(f"{side}_{part}" for part in SIDED for side in ("left", "right")), "spine", "chest", "neck")
DRAWS = 100  # errors drawn from the claimed distribution of a frame


@dataclass(frozen=True, eq=False)
class Claims:
    """Joints of frames: errors, claimed deviations, and the gain of one more handle."""

    groups: tuple[str, ...]  # of the joints
    errors: Float[Array, "frames joints"]
    deviations: Float[Array, "frames joints"]
    opened: Bool[Array, "frames joints"]  # whether the prior by itself leaves a joint undetermined
    held: dict[float, Float[Array, "frames joints"]]
    gains: Float[Array, "suggested candidates"]  # metres of mean joint error, the suggested candidate first
    constant: Float[Array, "joints"] | None = None  # the deviations of held-out frames, if there are any
    attainable: Float[Array, "suggested 2"] | None = (
        None  # gains of the best choice, and of the best afterwards
    )


def attainable(before: Uncertainty, candidates: Sequence[str], rng: np.random.Generator) -> list[float]:
    """The gain of the best choice, and of the best afterwards, if errors follow the claimed distribution."""
    places, moving = before.places, ~before.space.skeleton.is_end_site
    drawn = rng.multivariate_normal(np.zeros(len(places)), places, size=DRAWS, method="eigh")

    def left(errors: Float[Array, "draws axes"]) -> Float[Array, "draws"]:
        return np.linalg.norm(errors.reshape(DRAWS, -1, 3), axis=2)[:, moving].mean(axis=1)

    after = [left(drawn - drawn[:, own] @ moved) for own, moved in map(before.moved_by, candidates)]
    gains = left(drawn) - np.array(after)
    return [float(gains.mean(axis=1).max()), float(gains.max(axis=0).mean())]


def measure(
    prior: Prior,
    clip: Motion,
    *,
    stride: int,
    suggest: int,
    constant: Float[Array, "joints"] | None = None,
    handles: Sequence[str] = (),
) -> Claims:
    """A clip's frames; every `suggest`-th of them with one more handle."""
    frames, rng = HeldFrames(prior, clip, handles), np.random.default_rng(0)
    candidates = [
        role for role in (*CANDIDATES, *HANDLES) if role in clip.skeleton.roles and role not in frames.handles
    ]
    errors, deviations, opened, gains, drawn = [], [], [], [], []
    held: dict[float, list[Array]] = {0.5: [], 0.95: []}
    for number, frame in enumerate(range(0, len(clip), stride)):
        solution = frames.solve(frame)
        errors.append(frames.error(frame, solution))
        deviations.append(np.asarray(solution.deviation)[frames.moving])
        opened.append(deviations[-1] / solution.uncertainty.widening > OPEN)
        for share, found in held.items():
            found.append(errors[-1] <= np.asarray(solution.uncertainty.radii(share))[frames.moving])
        if suggest and number % suggest == 0:
            suggested = [one.joint for one in solution.uncertainty.suggestions(candidates)]
            left = [float(frames.error(frame, frames.solve(frame, name)).mean()) for name in suggested]
            gains.append([float(errors[-1].mean()) - error for error in left])
            drawn.append(attainable(solution.uncertainty, candidates, rng))
    roles = {joint: role for role, joint in clip.skeleton.roles.items()}
    names = [name for name, moves in zip(clip.skeleton.names, frames.moving, strict=True) if moves]
    groups = tuple(group_of(roles.get(name, name)) for name in names)
    within = {share: np.array(found) for share, found in held.items()}
    own = np.array(errors), np.array(deviations), np.array(opened)
    return Claims(groups, *own, within, np.array(gains), constant, np.array(drawn))


def group_of(name: str) -> str:
    """The group of a joint by its role or name."""
    found = (group for group, words in GROUPS.items() if any(word in name.lower() for word in words))
    return next(found, "torso")


def metrics(parts: Sequence[Claims]) -> dict[str, float]:
    """Coverage, width of the claims, gain over constant deviations, and value of suggestions."""
    errors, deviations = np.vstack([p.errors for p in parts]), np.vstack([p.deviations for p in parts])
    opened, groups = np.vstack([p.opened for p in parts]), np.array(parts[0].groups)
    held = {share: np.vstack([p.held[share] for p in parts]) for share in parts[0].held}
    found = {f"held_{100 * share:.0f}": float(within[opened].mean()) for share, within in held.items()}
    for group in GROUPS:
        members = opened & (groups == group)
        if members.any():
            found |= {f"{group}_{100 * share:.0f}": float(of[members].mean()) for share, of in held.items()}
    own = _constant(errors)
    constant = np.vstack(
        [np.broadcast_to(own if p.constant is None else p.constant, p.errors.shape) for p in parts]
    )
    log_density = []  # of positions in centimetres under an isotropic Gaussian, negative
    for claim in (deviations, constant):
        floored = np.maximum(claim, OPEN)
        each = 3 * np.log(100 * floored) + 1.5 * np.log(2 * np.pi) + 0.5 * (errors / floored) ** 2
        log_density.append(float(each[opened].mean()))
    nats, alike = log_density
    found |= {
        "deviation_cm": 100 * float(deviations[opened].mean()),
        "error_cm": 100 * float(errors[opened].mean()),
        "nats": nats,
        "nats_constant": alike,
        "nats_gained": alike - nats,
        "frames": float(len(errors)),
    }
    if tried := [p.gains for p in parts if p.gains.size]:
        gains = np.vstack(tried)
        suggested, others, best = gains[:, 0].mean(), gains.mean(), gains.max(axis=1).mean()
        found |= {"next_over_random": float(suggested / others), "next_of_best": float(suggested / best)}
    if drawn := [p.attainable for p in parts if p.attainable is not None and p.attainable.size]:
        chosen, afterwards = np.vstack(drawn).sum(axis=0)
        found["next_attainable"] = float(chosen / afterwards)
    return found


def _constant(errors: Float[Array, "frames joints"]) -> Float[Array, "joints"]:
    """The best constant deviations for the errors."""
    return np.sqrt((errors**2).mean(axis=0) / 3)


@dataclass(frozen=True)
class UncertaintyOptions(EveryFrame):
    """How frames are taken."""

    frames: Annotated[int, Range(least=0), "test on at most N frames of each fold, instead of every Nth"] = 0
    suggest: Annotated[int, Range(least=0), "try one more handle on every Nth tested frame; 0 for none"] = 8
    handles: Annotated[str, "other handles than those, by role, with commas: left_hand,right_foot"] = ""


def claims(learn: Learner, folds: Sequence[Fold], options: UncertaintyOptions) -> dict[str, float]:
    """The metrics over all folds; priors are learned once where folds have the same clips."""
    parts: list[Claims] = []
    handles = names_from_text(options.handles)
    learned: Sequence[Motion] | None = None
    for fold in folds:
        if learned is not fold.train:
            learned, prior, constant = fold.train, learn(fold.train), None
            if held_out_of(prior) is OF_OTHERS and (tried := calibrate(prior, learned, learn)):
                constant = None if handles else _constant(np.array([one.errors for one in tried]))
        total = sum(len(clip) for clip in fold.test)
        stride = -(-total // options.frames) if options.frames else options.stride
        parts += [
            measure(prior, clip, stride=stride, suggest=options.suggest, constant=constant, handles=handles)
            for clip in fold.test
        ]
    return metrics(parts)


PROTOCOL = Protocol(
    "uncertainty",
    ABOUT["uncertainty"],
    lambda request, progress: rows_by_method(
        request, progress, METHODS, partial(claims, options=request.options)
    ),
    methods=(*METHODS, "gaussian-N", "any kind of model"),
    Options=UncertaintyOptions,
    untrained=UNTRAINED,
)
