"""Choose the latent dimension, active set size and kernel by the likelihood of held-out poses.

Contiguous blocks are held out, because neighbouring frames are nearly the same pose. The likelihood of a held-out pose
is its evidence, with x integrated out, so that spaces of different dimension are comparable. A larger model must earn
its cost. Two dimensions are never chosen: in the paper and on unseen recordings, three are as good or better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float

from poise.gp.latent import heuristic, start
from poise.gp.placing import log_evidence, place_new
from poise.types import Array, ShareProgress

DIMENSIONS = (3, 4, 5, 6)
ACTIVE_COUNTS = (50, 100, 200)
KERNELS = ("rbf", "matern32", "matern52", "rational-quadratic", "rbf+linear", "periodic")
SAMPLE = 500  # evenly spaced poses on which choices are made
BLOCKS = 10  # every second one is held out, then the others
ROUNDS = 4  # of the heuristic per candidate
WORTH = 0.01  # nats per feature of a held-out pose that each further dimension must gain
ACTIVE_WORTH = 0.01  # the same for each step to a larger active set, which slows every solve


@dataclass(frozen=True)
class StyleSettings:
    """The settings of a style."""

    dimensions: int
    active: int
    kernel: str


def choose(
    centred: Float[Array, "poses features"],
    *,
    dimensions: int | None,
    active: int | None,
    kernel: str,
    progress: ShareProgress = lambda _: None,
) -> StyleSettings:
    """Fill in the open settings (None, or a kernel "auto"): kernel, then dimension, then active set."""
    sample = centred[:: -(-len(centred) // SAMPLE)]
    most = min(active or 100, len(sample))
    chosen = StyleSettings(dimensions or 3, most, "rbf" if kernel == "auto" else kernel)
    if kernel == "auto":
        chosen = _best(sample, [replace(chosen, kernel=kind) for kind in KERNELS], worth=0.0)
        progress(0.5)
    if dimensions is None:
        possible = [count for count in DIMENSIONS if count < min(sample.shape)]
        chosen = _best(sample, [replace(chosen, dimensions=count) for count in possible or [1]], worth=WORTH)
        progress(0.8)
    if active is None:
        chosen = _with_active_count(sample, chosen, len(centred))
    progress(1.0)
    return chosen


def held_out_likelihood(centred: Float[Array, "poses features"], settings: StyleSettings) -> float:
    """Mean log-evidence of held-out poses, per feature: every second block by the others, and vice versa."""
    odd = np.arange(len(centred)) * BLOCKS // len(centred) % 2 == 1
    totals = [_likelihood(centred, left_out, settings) for left_out in (odd, ~odd)]
    return float(np.concatenate(totals).mean()) / centred.shape[1]


def _likelihood(
    centred: Float[Array, "poses features"], left_out: Bool[Array, "poses"], settings: StyleSettings
) -> Float[Array, "tested"]:
    learned = centred[~left_out]
    deviations = learned.std(axis=0)
    usable = deviations > 1e-3 * centred.std(axis=0)
    mean = learned[:, usable].mean(axis=0)
    learned, tested = learned[:, usable] - mean, centred[left_out][:, usable] - mean
    fit = start(learned, dimensions=settings.dimensions, kind=settings.kernel, active=settings.active)
    loss = heuristic(learned, fit, active=settings.active, rounds=ROUNDS).placing_loss(learned)
    placed, _ = place_new(loss, tested)
    return log_evidence(loss, tested, placed)


def _with_active_count(
    sample: Float[Array, "poses features"], settings: StyleSettings, pose_count: int
) -> StyleSettings:
    """The best active set size; if there are too few poses for a trial, which uses half, the largest possible."""
    if len(sample) // 2 <= ACTIVE_COUNTS[-1]:
        return replace(settings, active=min(pose_count, ACTIVE_COUNTS[-1]))
    return _best(sample, [replace(settings, active=count) for count in ACTIVE_COUNTS], worth=ACTIVE_WORTH)


def _best(
    centred: Float[Array, "poses features"], candidates: Sequence[StyleSettings], *, worth: float
) -> StyleSettings:
    """The likeliest candidate, with a cost for each step up the list."""
    if len(candidates) == 1:
        return candidates[0]
    likelihoods = [held_out_likelihood(centred, candidate) for candidate in candidates]
    return candidates[int(np.argmax(np.array(likelihoods) - worth * np.arange(len(candidates))))]
