"""Learning a style from clips (Grochow et al. 2004, section 5 and appendix B)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Bool, Float

from poise.errors import InvalidValueError, UnknownNameError
from poise.motion.motion import Motion
from poise.priors.style import choice, fitting, posterior
from poise.priors.style.covariance import PARAMETER_NAMES, Kernel
from poise.priors.style.data import TrainingPoses, pose_space_of, thinned, training_poses
from poise.priors.style.features import Features
from poise.priors.style.fitting import Fit
from poise.priors.style.model import StyleModel
from poise.priors.style.objective import PoseLoss
from poise.priors.style.placing import place_new
from poise.skeleton.pose_space import PoseSpace

Array = np.ndarray
Progress = Callable[[float], None]

ALGORITHMS = ("heuristic", "full")
WORKING_POSES = {"heuristic": 2500, "full": 1000}  # evenly spaced, that are learned from; the rest is placed
LARGE = 1000  # poses from which on a data set is large
NOISE_VARIANCES = (0.05, 0.1)  # that smooth the model of a small and of a large data set (section 6.2)


def learn_style(
    motions: Sequence[Motion],
    *,
    dimensions: int | None = None,
    active: int | None = None,
    kernel: str = "rbf",
    algorithm: str = "heuristic",
    up: bool = True,
    velocity: bool = True,
    acceleration: bool = False,
    speakers: str = posterior.ALL,
    seed: int = 0,
    progress: Progress = lambda _: None,
) -> tuple[PoseSpace, StyleModel, Float[Array, "poses maps"]]:
    """A style, its pose space and the exponential maps of the frames it was learned from.

    The latent dimension, the size of the active set and (for "auto") the kernel are chosen by the data where not given.
    All poses speak in predictions, or, as in the paper, the active ones alone: `speakers="active"`.
    """
    space = pose_space_of(motions)
    features = Features(space, up=up, velocity=velocity, acceleration=acceleration)
    poses, maps = training_poses(space, thinned(motions), features)
    model = learn_model(
        poses,
        dimensions=dimensions,
        active=active,
        kernel=kernel,
        algorithm=algorithm,
        speakers=speakers,
        seed=seed,
        progress=progress,
    )
    return space, model, maps


def learn_model(
    poses: TrainingPoses,
    *,
    dimensions: int | None = None,
    active: int | None = None,
    kernel: str = "rbf",
    algorithm: str = "heuristic",
    speakers: str = posterior.ALL,
    seed: int = 0,
    progress: Progress = lambda _: None,
) -> StyleModel:
    """A style of these poses; see `learn_style`."""
    _check(poses, dimensions=dimensions, active=active, kernel=kernel, algorithm=algorithm)
    working = np.arange(0, len(poses.y), -(-len(poses.y) // WORKING_POSES[algorithm]))
    centred = poses.centred[working]
    is_open = dimensions is None or active is None or kernel == "auto"
    share = 0.6 if is_open else 0.0  # of the progress that choosing takes
    chosen = choice.choose(
        centred,
        dimensions=dimensions,
        active=active,
        kernel=kernel,
        progress=lambda done: progress(share * done),
    )
    fit = fitting.start(centred, dimensions=chosen.dimensions, kind=chosen.kernel, active=chosen.active)
    learn = fitting.heuristic if algorithm == "heuristic" else fitting.full
    fit = learn(
        centred,
        fit,
        active=chosen.active,
        progress=lambda done: progress(share + (0.95 - share) * done),
    )
    placed = _all_placed(poses.centred, fit, working)
    annealed = annealed_kernel(
        placed,
        poses.centred[placed.active],
        pose_count=len(poses.y),
        rng=np.random.default_rng(seed),
    )
    model = model_of(poses, placed, annealed, speakers=speakers)
    progress(1.0)
    return model


def model_of(poses: TrainingPoses, fit: Fit, annealed: Kernel, *, speakers: str) -> StyleModel:
    """The model of a fit, with scales for still features too."""
    return StyleModel(
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


def annealed_kernel(
    fit: Fit,
    outputs: Float[Array, "active features"],
    *,
    pose_count: int,
    rng: np.random.Generator,
    start: Kernel | None = None,
    steps: int = fitting.KERNEL_STEPS,
) -> Kernel:
    """Alpha', beta', gamma' learned again on noisy active poses, x and scales held (section 6.1.1).

    The noise is on scaled features, which vary by one on average, so that one variance suits every feature.
    """
    deviation = np.sqrt(NOISE_VARIANCES[pose_count >= LARGE])
    noisy = outputs + deviation * rng.normal(size=outputs.shape) / fit.scales
    return fitting.fit_kernel(noisy, fit.latents[fit.active], start or fit.kernel, fit.scales, steps=steps)[0]


def pose_loss_of(model: StyleModel, varying: Bool[Array, "features"]) -> PoseLoss:
    """L_IK of a model over some of its features."""
    outputs = np.ascontiguousarray(model.outputs[:, varying])
    said = model.posterior._replace(weights=np.ascontiguousarray(model.weights[:, varying]))
    return PoseLoss(model.kernel, model.active_latents, outputs, model.scales[varying], said)


def _all_placed(centred: Float[Array, "poses features"], fit: Fit, working: Array) -> Fit:
    """A fit of some poses with all others placed by L_IK."""
    latents = np.empty((len(centred), fit.latents.shape[1]))
    others = np.ones(len(centred), dtype=np.bool_)
    others[working] = False
    latents[working] = fit.latents
    if np.any(others):
        latents[others] = place_new(fit.pose_loss(centred[working]), centred[others])[0]
    return replace(fit, latents=latents, active=working[fit.active])


def _check(
    poses: TrainingPoses, *, dimensions: int | None, active: int | None, kernel: str, algorithm: str
) -> None:
    if algorithm not in ALGORITHMS:
        raise UnknownNameError("learning algorithm", algorithm, ALGORITHMS)
    if kernel != "auto" and kernel not in PARAMETER_NAMES:
        raise UnknownNameError("kernel", kernel, ("auto", *PARAMETER_NAMES))
    if dimensions is not None and not 1 <= dimensions <= poses.centred.shape[1]:
        raise InvalidValueError(
            f"a latent space of these poses has 1 to {poses.centred.shape[1]} dimensions; got {dimensions}"
        )
    if active is not None and active < 2:
        raise InvalidValueError(f"an active set needs at least two poses; got {active}")
