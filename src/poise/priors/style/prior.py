"""The style prior: one performer's way of moving, ready for the solver (Grochow et al. 2004, sections 5 and 6).

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
from typing import Annotated, Any, Literal

import numpy as np
from jaxtyping import Bool, Float
from scipy.linalg import solve_triangular

from poise.errors import InvalidValueError, UnknownNameError
from poise.formats.tables import Range
from poise.gp import latent
from poise.gp.covariance import KERNELS, Kernel
from poise.gp.latent import Fit, PlacingLoss, place_new
from poise.motion.motion import Motion
from poise.priors.latent.model import ACTIVE, ALL, REFERENCE_SECONDS, Features, LatentModel, TrainingFeatures
from poise.priors.latent.prior import SAMPLED, LatentPrior, residual_correlation
from poise.priors.poses import limits_of, motion_hash, pose_space_of
from poise.priors.registry import PriorOptions, Stored
from poise.schema import choice
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import read_only
from poise.types import Array, ShareProgress

OURS, CORRELATED, PUBLISHED = METHODS = ("handles", "correlated", "grochow2004")
AS_PUBLISHED: dict[str, Any] = {
    "dimensions": 3, "active": 100, "acceleration": True, "speakers": ACTIVE, "active_scales": True
}  # fmt: skip
STRETCHES = 10  # parts of the data, each held out in turn for the percentiles
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
EM_STEPS = 200
EM_FLOOR = 1e-4  # of the components' unit variance, added to every covariance, so that no Gaussian collapses
EM_ENOUGH = 1e-6  # nats per pose: EM stops when it gains less

Centred = Float[Array, "poses features"]

# --- the prior --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StyleOptions(PriorOptions):
    """The latent space, the poses that are kept, and the learning algorithm."""

    dimensions: Annotated[
        int | None, Range(least=1), "dimensions of the latent space (default: chosen by the data)"
    ] = None
    active: Annotated[
        int | None, Range(least=1), "the number of active poses (default: chosen by the data)"
    ] = None
    kernel: Annotated[str | None, "the kernel: rbf, another of those below, or auto"] = None
    algorithm: Annotated[str | None, "heuristic or full"] = None
    method: Annotated[
        Literal["handles", "correlated", "grochow2004"] | None,
        "handles: all poses, correlated joints and a regression on the handles; correlated: without the "
        "regression; grochow2004: as published",
    ] = None


class StylePrior(LatentPrior):
    """A learned style over the poses of one skeleton."""

    kind = "style"
    about = "one way of moving as a latent space that can be looked at and blended"
    Options: type[PriorOptions] = StyleOptions
    schema = replace(LatentPrior.schema, later={"method": (choice(*METHODS), CORRELATED)})
    method = CORRELATED

    @classmethod
    def learn(
        cls,
        motions: Sequence[Motion],
        *,
        method: str = OURS,
        progress: ShareProgress = lambda _: None,
        **options: Any,
    ) -> StylePrior:
        """Learn a style from clips of one topology; options are those of `learn_style`.

        With `method="grochow2004"` everything is as published: independent joints, predictions and scales from the
        active poses alone, and L-BFGS over the pose and its latent point if the root is given.
        """
        if method not in METHODS:
            raise UnknownNameError("method of styles", method, METHODS)
        published = method == PUBLISHED
        options = {**AS_PUBLISHED, **options} if published else options
        space, model, maps = learn_style(motions, progress=progress, **options)
        correlation = None if published else residual_correlation(model, maps)
        prior = cls(model, limits=limits_of(space, maps), correlation=correlation)
        prior.method = method
        prior.clips = tuple((motion.name, motion_hash(motion)) for motion in motions)
        prior.quantiles = read_only(np.percentile(left_out_likelihoods(prior, motions), np.arange(101)))
        return prior

    @classmethod
    def restored(cls, stored: Stored) -> StylePrior:
        """Create the prior from the contents of `arrays` and `header`."""
        prior = super().restored(stored)
        prior.method = stored.header["method"]
        return prior

    def header(self) -> dict[str, Any]:
        """The clips it was learned from, and the settings."""
        return {**super().header(), "method": self.method}

    def learned_more(self: LatentPrior, q: Float[Array, "frames size"], *, fps: float) -> StylePrior:
        """The style after training on more poses, from its current state; joint limits are kept."""
        grown = add_poses(self.model, self.model.features.of_frames(q, fps))
        more = StylePrior(grown, limits=self.limits, correlation=self.correlation)
        more.quantiles, more.clips = self.quantiles, self.clips
        return more

    @property
    def solving(self) -> str:
        """The paper's own optimiser for a published style, else the default."""
        return "lbfgs" if self.method == PUBLISHED else super().solving

    @property
    def by_handles(self) -> bool:  # type: ignore[override]
        """Whether handles alone predict part of a pose."""
        return self.method == OURS

    @property
    def summary(self) -> str:
        """A short description of the learned model."""
        model = self.model
        return (
            f"{model.dimensions} dimensions, {len(model.active)} of {len(model.latents)} poses active, "
            f"{model.kernel.kind} kernel, L_GP {model.learning_curve[-1]:.0f}"
        )


def left_out_likelihoods(prior: StylePrior, motions: Sequence[Motion]) -> list[float]:
    """Log-likelihoods of a sample of training poses, each without the part of the data around it.

    A training pose is explained down to its noise: compared with such poses every new one, however natural, would seem
    unlikely.
    """
    clips = thinned(motions)
    q = np.concatenate([prior.space.q_from_frames(clip.root_positions, clip.rotations) for clip in clips])
    is_sampled = np.arange(len(q)) % max(1, len(q) // SAMPLED) == 0
    stretches = np.arange(len(q)) * min(STRETCHES, len(q)) // len(q)
    likelihoods = []
    for stretch in range(stretches[-1] + 1):
        out = stretches == stretch
        if np.all(out[prior.model.active]):
            continue  # no data would remain
        without = LatentPrior(prior.model.without(out), correlation=prior.correlation)
        likelihoods += [without.log_likelihood(pose) for pose in q[out & is_sampled]]
    return likelihoods


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
            sizes = [replace(chosen, active=count) for count in ACTIVE_COUNTS]
            chosen = _best(sample, sizes, worth=ACTIVE_WORTH)
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


# --- a mixture, for comparison ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Mixture:
    """A mixture of Gaussians on principal components, by EM (Bishop 1995; Redner and Walker 1984): for Fig. 2.

    Its density is less smooth than the style's; it is not a prior for solving.
    """

    means: Float[Array, "gaussians latent"]
    covariances: Float[Array, "gaussians latent latent"]
    shares: Float[Array, "gaussians"]
    points: Float[Array, "poses latent"]
    learning_curve: Float[Array, "steps"]

    @classmethod
    def fit(
        cls, y: Float[Array, "poses features"], *, gaussians: int = 10, dimensions: int = 2, seed: int = 0
    ) -> Mixture:
        """Reduce poses by PCA to components of unit variance, and fit Gaussians to them by EM."""
        if not 1 <= gaussians <= len(y):
            raise InvalidValueError(f"{len(y)} poses allow 1 to {len(y)} Gaussians; got {gaussians}")
        from scipy.special import logsumexp  # only now: styles themselves start without it

        points, rng = latent.principal_latents(y - y.mean(axis=0), dimensions), np.random.default_rng(seed)
        chosen = [int(rng.integers(len(points)))]  # poses far apart, as in k-means++
        while len(chosen) < gaussians:
            squared = np.square(points[:, None] - points[chosen]).sum(axis=2).min(axis=1) + 1e-12
            chosen.append(int(rng.choice(len(points), p=squared / squared.sum())))
        means, shares = points[chosen], np.full(gaussians, 1.0 / gaussians)
        floor = np.eye(points.shape[1])
        covariances = np.tile(floor * max(1.0 / gaussians, EM_FLOOR), (gaussians, 1, 1))
        curve: list[float] = []
        for _ in range(EM_STEPS):
            terms = _gaussian_terms(points, means, covariances, shares)
            total = logsumexp(terms, axis=1)
            curve.append(float(total.mean()))
            belongs = np.exp(terms - total[:, None])
            weights = belongs.sum(axis=0) + 1e-12
            means = belongs.T @ points / weights[:, None]
            gaps = points[:, None] - means
            covariances = np.einsum("nk,nka,nkb->kab", belongs, gaps, gaps) / weights[:, None, None]
            covariances, shares = covariances + EM_FLOOR * floor, weights / weights.sum()
            if len(curve) > 1 and curve[-1] - curve[-2] < EM_ENOUGH:
                break
        return cls(means, covariances, shares, points=points, learning_curve=np.array(curve))

    def log_likelihood(self, x: Float[Array, "points latent"]) -> Float[Array, "points"]:
        """The log density at points in the space of principal components."""
        from scipy.special import logsumexp

        return np.asarray(logsumexp(_gaussian_terms(x, self.means, self.covariances, self.shares), axis=1))


def _gaussian_terms(
    x: Float[Array, "points latent"],
    means: Float[Array, "k latent"],
    covariances: Float[Array, "k latent latent"],
    shares: Float[Array, "k"],
) -> Float[Array, "points k"]:
    """The log of each Gaussian's term in the density at each point."""
    terms = np.empty((len(x), len(means)))
    for number, (mean, covariance) in enumerate(zip(means, covariances, strict=True)):
        factor = np.linalg.cholesky(covariance)
        whitened = solve_triangular(factor, (x - mean).T, lower=True)
        terms[:, number] = -0.5 * np.square(whitened).sum(axis=0) - np.log(np.diag(factor)).sum()
    return terms + np.log(shares) - 0.5 * x.shape[1] * np.log(2.0 * np.pi)
