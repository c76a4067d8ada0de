"""Learn a style from clips: training poses, choice of settings, learning, and more poses afterwards.

Learning is that of Grochow et al. 2004, section 5 and appendix B. The latent dimension, active set size and kernel are
chosen by the likelihood of held-out poses. Contiguous blocks are held out, because neighbouring frames are nearly the
same pose. The likelihood of a held-out pose is its evidence, with x integrated out, so that spaces of different
dimension are comparable. A larger model must earn its cost. Two dimensions are never chosen: in the paper and on unseen
recordings, three are as good or better.

Poses can be added to a learned style without learning it from scratch (a wish in section 7.3). New poses start at the
latent points given by a linear regression of x on features, learned from the old ones: L_IK alone would crowd very
different poses at the edge of the known region. The active set is chosen again once. Then L_GP of it (Eq. 2) is
minimised over the kernel and the x of its new poses, L_IK (Eq. 3) over the x of all inactive poses, and the scales
follow in closed form: one round instead of the ten of learning.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from poise.errors import InvalidValueError, UnknownNameError
from poise.gp import latent
from poise.gp.covariance import KERNELS, Kernel
from poise.gp.latent import Fit, PlacingLoss, place_new
from poise.motion.motion import Motion
from poise.priors.latent.features import REFERENCE_SECONDS, Features, TrainingFeatures
from poise.priors.latent.model import ALL, LatentModel
from poise.priors.poses import pose_space_of
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import PoseSpace
from poise.types import Array, ShareProgress

FEWEST_FRAMES = 200  # below this number no frame is skipped
MOST_FRAMES = 20_000  # above this number more frames are skipped
DIMENSIONS = (3, 4, 5, 6)
ACTIVE_COUNTS = (50, 100, 200)
TRIED_KERNELS = ("rbf", "matern32", "matern52", "rational-quadratic", "rbf+linear", "periodic")
SAMPLE = 500  # evenly spaced poses on which choices are made
BLOCKS = 10  # every second one is held out, then the others
ROUNDS = 4  # of the heuristic per candidate
WORTH = 0.01  # nats per feature of a held-out pose that each further dimension must gain
ACTIVE_WORTH = 0.01  # the same for each step to a larger active set, which slows every solve
ALGORITHMS = ("heuristic", "full")
WORKING_POSES = {"heuristic": 2500, "full": 1000}  # evenly spaced training poses; others are only placed
DESCENT_STEPS = 10  # L-BFGS steps over the kernel and the x of new active poses
ANNEALING_STEPS = 8  # L-BFGS steps over the annealed kernel, from the previous one
RIDGE = 0.1  # ridge of the regression of x on features, of the mean variance of a feature

Centred = Float[Array, "poses features"]

# --- training poses ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TrainingPoses(TrainingFeatures):
    """Features of the kept frames of all clips, one clip after the other."""

    features: Features
    y: Float[Array, "poses features"]

    def __post_init__(self) -> None:
        if len(self.y) < 2 or not np.any(self.varying):
            raise InvalidValueError("a style needs at least two frames with motion")


def thinned(motions: Sequence[Motion]) -> list[Motion]:
    """The clips at about 30 frames a second; all frames of short data, fewer of very long."""
    count = sum(len(motion) for motion in motions)
    most, fewest = max(1, count // FEWEST_FRAMES), -(-count // MOST_FRAMES)
    strides = [max(1, round(motion.fps * REFERENCE_SECONDS)) for motion in motions]
    return [
        motion[:: max(fewest, min(stride, most))]
        for motion, stride in zip(motions, strides, strict=True)
        if len(motion)
    ]


def training_poses(
    space: PoseSpace, motions: Sequence[Motion], features: Features
) -> tuple[TrainingPoses, Float[Array, "poses maps"]]:
    """Features of every frame of the clips, and their exponential maps."""
    clips = [(space.q_from_frames(motion.root_positions, motion.rotations), motion.fps) for motion in motions]
    y = np.concatenate([features.of_frames(q, fps) for q, fps in clips])
    return TrainingPoses(features, y), np.concatenate([q[:, ROOT_SIZE:] for q, _ in clips])


# --- choice of settings -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StyleSettings:
    """The settings of a style."""

    dimensions: int
    active: int
    kernel: str


def choose(
    centred: Centred,
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
        chosen = _best(sample, [replace(chosen, kernel=kind) for kind in TRIED_KERNELS], worth=0.0)
        progress(0.5)
    if dimensions is None:
        possible = [count for count in DIMENSIONS if count < min(sample.shape)]
        chosen = _best(sample, [replace(chosen, dimensions=count) for count in possible or [1]], worth=WORTH)
        progress(0.8)
    if active is None:
        most = ACTIVE_COUNTS[-1]
        if len(sample) // 2 <= most:  # too few poses for a trial, which uses half
            chosen = replace(chosen, active=min(len(centred), most))
        else:
            possible = [replace(chosen, active=count) for count in ACTIVE_COUNTS]
            chosen = _best(sample, possible, worth=ACTIVE_WORTH)
    progress(1.0)
    return chosen


def held_out_likelihood(centred: Centred, settings: StyleSettings) -> float:
    """Mean log-evidence of held-out poses, per feature: every second block by the others, and vice versa."""
    odd = np.arange(len(centred)) * BLOCKS // len(centred) % 2 == 1
    totals = []
    for left_out in (odd, ~odd):
        usable = centred[~left_out].std(axis=0) > 1e-3 * centred.std(axis=0)
        learned, tested = centred[~left_out][:, usable], centred[left_out][:, usable]
        mean = learned.mean(axis=0)
        learned, tested = learned - mean, tested - mean
        fit = latent.start(
            learned, dimensions=settings.dimensions, kind=settings.kernel, active=settings.active
        )
        fit = latent.heuristic(learned, fit, active=settings.active, rounds=ROUNDS)
        loss = fit.placing_loss(learned)
        totals.append(latent.log_evidence(loss, tested, place_new(loss, tested)[0]))
    return float(np.concatenate(totals).mean()) / centred.shape[1]


def _best(centred: Centred, candidates: Sequence[StyleSettings], *, worth: float) -> StyleSettings:
    """The likeliest candidate, with a cost for each step up the list."""
    if len(candidates) == 1:
        return candidates[0]
    likelihoods = [held_out_likelihood(centred, candidate) for candidate in candidates]
    return candidates[int(np.argmax(np.array(likelihoods) - worth * np.arange(len(candidates))))]


# --- learning ---------------------------------------------------------------------------------------------------------


def learn_style(
    motions: Sequence[Motion],
    *,
    up: bool = True,
    velocity: bool = True,
    acceleration: bool = False,
    **options: Any,
) -> tuple[PoseSpace, LatentModel, Float[Array, "poses maps"]]:
    """Return a style, its pose space and the exponential maps of its training frames; see `learn_model`."""
    space = pose_space_of(motions)
    features = Features(space, up=up, velocity=velocity, acceleration=acceleration)
    poses, maps = training_poses(space, thinned(motions), features)
    return space, learn_model(poses, **options), maps


def learn_model(
    poses: TrainingPoses,
    *,
    dimensions: int | None = None,
    active: int | None = None,
    kernel: str = "rbf",
    algorithm: str = "heuristic",
    speakers: str = ALL,
    active_scales: bool = False,
    seed: int = 0,
    progress: ShareProgress = lambda _: None,
) -> LatentModel:
    """Learn a style of these poses.

    By default, the data determine the latent dimension, the size of the active set and (for "auto") the kernel. All
    poses enter predictions, or, as in the paper, the active ones alone: `speakers="active"`. Scales are also of all
    poses, or of the active ones alone: `active_scales`.
    """
    if algorithm not in ALGORITHMS:
        raise UnknownNameError("learning algorithm", algorithm, ALGORITHMS)
    if kernel != "auto" and kernel not in KERNELS:
        raise UnknownNameError("kernel", kernel, ("auto", *KERNELS))
    if dimensions is not None and not 1 <= dimensions <= poses.centred.shape[1]:
        raise InvalidValueError(
            f"the latent space must have 1 to {poses.centred.shape[1]} dimensions; got {dimensions}"
        )
    if active is not None and active < 2:
        raise InvalidValueError(f"an active set needs at least two poses; got {active}")
    working = np.arange(0, len(poses.y), -(-len(poses.y) // WORKING_POSES[algorithm]))
    centred = poses.centred[working]
    is_open = dimensions is None or active is None or kernel == "auto"
    share = 0.6 if is_open else 0.0  # share of the progress for choosing settings
    chosen = choose(
        centred,
        dimensions=dimensions,
        active=active,
        kernel=kernel,
        progress=lambda done: progress(share * done),
    )
    fit = latent.start(centred, dimensions=chosen.dimensions, kind=chosen.kernel, active=chosen.active)
    learn = latent.full if algorithm == "full" else partial(latent.heuristic, active_scales=active_scales)
    fit = learn(
        centred, fit, active=chosen.active, progress=lambda done: progress(share + (0.95 - share) * done)
    )
    latents = np.empty(
        (len(poses.y), fit.latents.shape[1])
    )  # of the working poses; all others are placed by L_IK
    latents[working], others = fit.latents, np.ones(len(latents), dtype=np.bool_)
    others[working] = False
    if np.any(others):
        latents[others] = place_new(fit.placing_loss(centred), poses.centred[others])[0]
    fit = replace(fit, latents=latents, active=working[fit.active])
    annealed = latent.annealed_kernel(poses.centred, fit, rng=np.random.default_rng(seed))
    model = model_of(poses, fit, annealed, speakers=speakers)
    progress(1.0)
    return model


def model_of(poses: TrainingPoses, fit: Fit, annealed: Kernel, *, speakers: str) -> LatentModel:
    """The model of a fit, with scales for still features too."""
    return LatentModel(
        features=poses.features,
        kernel=fit.kernel,
        mean=poses.mean,
        scales=poses.all_scales(fit.scales),
        latents=fit.latents,
        active=fit.active,
        recorded=poses.y - poses.mean,
        annealed=annealed,
        learning_curve=fit.curve,
        speakers=speakers,
    )


def placing_loss_of(model: LatentModel, varying: Bool[Array, "features"]) -> PlacingLoss:
    """L_IK of a model over some of its features."""
    process = replace(model.posterior, weights=np.ascontiguousarray(model.weights[:, varying]))
    return PlacingLoss(process, model.scales[varying])


# --- adding poses -----------------------------------------------------------------------------------------------------


def add_poses(model: LatentModel, y: Float[Array, "new features"], *, seed: int = 0) -> LatentModel:
    """The style with more poses learned, from its current state."""
    if y.shape[-1] != model.features.dimension or not np.all(np.isfinite(y)):
        raise InvalidValueError(
            f"poses added to this style need {model.features.dimension} finite features; got {y.shape[-1]}"
        )
    poses = TrainingPoses(model.features, np.concatenate([model.recorded + model.mean, y]))
    latents = np.concatenate([model.latents, laid_out(model.latents, poses.centred)])
    working = np.arange(0, len(latents), -(-len(latents) // WORKING_POSES["heuristic"]))
    # The previous number of active poses; if all were active, the largest number that the choice by data may give.
    count = len(model.active)
    if count >= len(model.latents):
        count = min(len(latents), max(count, ACTIVE_COUNTS[-1]))
    fit = Fit(
        model.kernel, model.scales[poses.varying], latents[working], np.empty(0, int), model.learning_curve
    ).reselected(count)
    centred, is_new = poses.centred[working], working >= len(model.latents)
    own = latent.descended(
        centred[fit.active],
        replace(fit, latents=fit.latents[fit.active]),
        moving=is_new[fit.active],
        steps=DESCENT_STEPS,
    )
    fit.latents[fit.active] = own.latents
    fit = latent.others_placed(centred, replace(fit, kernel=own.kernel, scales=own.scales))
    fit = latent.rescaled(centred, fit)
    latents[working] = fit.latents
    fit = replace(fit, latents=latents, active=working[fit.active])
    rng = np.random.default_rng(seed)
    annealed = latent.annealed_kernel(
        poses.centred, fit, rng=rng, start=model.annealed, steps=ANNEALING_STEPS
    )
    return model_of(poses, fit, annealed, speakers=model.speakers)


def laid_out(latents: Float[Array, "old latent"], centred: Centred) -> Float[Array, "new latent"]:
    """Initial latent points of the new poses, by ridge regression of x on features."""
    scaled = centred / centred.std(axis=0)
    old, new = scaled[: len(latents)], scaled[len(latents) :]
    middle, average = old.mean(axis=0), latents.mean(axis=0)
    gram = (old - middle).T @ (old - middle)
    np.einsum("kk->k", gram)[:] += RIDGE * np.trace(gram) / len(gram)
    slopes = np.linalg.solve(gram, (old - middle).T @ (latents - average))
    return np.asarray(average + (new - middle) @ slopes)
