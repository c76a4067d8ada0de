"""Protocol `novelty`: whether a model recognises frames of actions that it has not learned.

Each fold of a split is one action. A model of one action evaluates its own test clips and those of all other actions,
by the likelihood of their poses. If its percentiles are calibrated, those of its own test frames are uniform.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from jaxtyping import Float

from poise import performer
from poise.errors import InvalidValueError
from poise.evaluation.methods import Learner, rows_by_method
from poise.evaluation.report import ABOUT, EveryFrame, Protocol, Request
from poise.evaluation.splits import Fold, load_split
from poise.motion.motion import Motion
from poise.priors.prior import Prior
from poise.solvers.calibration import calibrate
from poise.solvers.solution import STRANGE
from poise.types import Array

METHODS = ("gaussian-100", "style", "local")


def roc_area(known: Float[Array, "known"], unknown: Float[Array, "unknown"]) -> float:
    """The share of pairs in which the unknown frame is less likely (ROC area)."""
    ordered = np.sort(known)
    below = np.searchsorted(ordered, unknown, side="left")
    above = len(known) - np.searchsorted(ordered, unknown, side="right")
    return float(np.mean(above + 0.5 * (len(known) - above - below)) / len(known))


def unevenness(percentiles: Float[Array, "frames"]) -> float:
    """The largest difference between the share of frames below a percentile and the percentile, in percent."""
    shares = 100.0 * np.arange(1, len(percentiles) + 1) / len(percentiles)
    return float(np.abs(np.sort(percentiles) - shares).max())


def metrics(learn: Learner, folds: Sequence[Fold], stride: int) -> dict[str, float]:
    """Over all actions: ROC areas, uniformity of percentiles, and the share of frames flagged as strange."""
    areas, uneven, spread, called = [], [], [], []
    for fold in folds:
        prior = learn(fold.train)
        calibrate(prior, fold.train, learn)
        own, own_percent = _judged(prior, fold.test, stride)
        others = [_judged(prior, other.test, stride) for other in folds if other is not fold]
        unknown, percent = (np.concatenate(part) for part in zip(*others, strict=True))
        areas.append(roc_area(own, unknown))
        uneven.append(unevenness(own_percent))
        spread.append(np.percentile(own_percent, np.arange(101)))
        called.append((np.mean(own_percent < STRANGE), np.mean(percent < STRANGE)))
    known, unknown_called = np.mean(called, axis=0)
    return {
        "roc_area": float(np.mean(areas)),
        "roc_area_least": float(np.min(areas)),
        "uneven_percent": float(np.mean(uneven)),
        "uneven_together_percent": unevenness(np.concatenate(spread)),
        "known_called_strange": float(known),
        "unknown_called_strange": float(unknown_called),
    }


def _judged(prior: Prior, clips: Sequence[Motion], stride: int) -> tuple[Array, Array]:
    """Log-likelihoods of frames, and their percentiles."""
    found: list[tuple[float, float]] = []
    for clip in clips:
        own = prior.on_body(clip.skeleton)
        poses = own.space.q_from_frames(clip.root_positions[::stride], clip.rotations[::stride])
        found += [(own.log_likelihood(q), own.percentile(q)) for q in poses]
    likely, percent = np.array(found).T
    return likely, percent


def _performer() -> list[Fold]:
    """Four actions of the performer, other seeds in the test."""
    acted = {
        action: [performer.act(action, fps=30, seed=seed) for seed in (0, 1, 2, 3, 11)]
        for action in ("walk", "box", "throw", "reach")
    }
    return [Fold(tuple(clips[:4]), tuple(clips[4:])) for clips in acted.values()]


SPLITS: dict[str, Callable[[], list[Fold]]] = {
    "performer": _performer,
    "actions": partial(load_split, "actions"),
}


def _check(request: Request) -> None:
    if request.name not in SPLITS:
        raise InvalidValueError(
            f"novelty needs several actions: a split of {', '.join(SPLITS)}; got {request.name}",
            settings=("split",),
        )


PROTOCOL = Protocol(
    "novelty",
    ABOUT["novelty"],
    lambda request, progress: rows_by_method(
        request, progress, METHODS, partial(metrics, stride=request.options.stride)
    ),
    methods=(*METHODS, "gaussian-N", "any kind of model"),
    Options=EveryFrame,
    splits=SPLITS,
    check=_check,
)
