"""Optional abilities of priors beyond the protocol; for a prior without one, the result is None or a fallback.

A prior of another package offers an ability by having a method or attribute of the name given here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from poise.priors.prior import Prior
from poise.priors.terms import MotionModel, Targets
from poise.skeleton.pose_space import Handles
from poise.skeleton.skeleton import Pose
from poise.types import ShareProgress

if TYPE_CHECKING:
    from poise.priors.dynamics.prior import DynamicsPrior
    from poise.priors.latent.model import LatentPoses
    from poise.priors.latent.prior import LatentPrior
    from poise.priors.local.control_guide import MarkerGuide, SensorGuide
    from poise.priors.local.examples import Examples


def marker_guide(
    prior: Prior, handles: Handles, *, progress: ShareProgress = lambda _: None
) -> MarkerGuide | None:
    """A guide that uses a performer's markers, their velocities, and estimates of missing ones (`marker_guide`)."""
    make = getattr(prior, "marker_guide", None)
    return None if make is None else make(handles, progress=progress)


def made_for_performing(prior: Prior) -> bool:
    """Whether the prior has its own guides for performances; other priors track markers with their ordinary guides."""
    return hasattr(prior, "marker_guide")


def sensor_guide(
    prior: Prior, names: Sequence[str], *, progress: ShareProgress = lambda _: None
) -> SensorGuide | None:
    """A guide that uses the orientations of sensors on some segments (`sensor_guide`)."""
    make = getattr(prior, "sensor_guide", None)
    return None if make is None else make(names, progress=progress)


def examples_of(prior: Prior) -> Examples:
    """The poses that the prior keeps (`examples`), each with the previous one; else its known poses, at rest."""
    from poise.priors.local.examples import Examples

    own: Examples | None = getattr(prior, "examples", None)
    if own is not None:
        return own
    q = np.stack([prior.space.standing(maps, up) for maps, up in zip(*prior.known_poses(), strict=True)])
    return Examples.by_one(prior.space, q, q, np.zeros(len(q), dtype=np.int64))


def credits_of(prior: Prior) -> tuple[str, ...]:
    """The database (`credit`) and licences of the training data, including those of a blend's parts."""
    known = getattr(prior, "known_frames", None)
    clips = [clip.licence for clip in (known.sources if known is not None else ())]
    parts = (credit for part in getattr(prior, "components", ()) for credit in credits_of(part))
    return tuple(dict.fromkeys(filter(None, (getattr(prior, "credit", ""), *clips, *parts))))


def latent_of(prior: Prior) -> LatentPoses | None:
    """The prior if it has a latent space with poses and likelihoods (`LatentPoses`), else None."""
    from poise.priors.latent.model import LatentPoses

    return prior if isinstance(prior, LatentPoses) else None


def learned_space_of(prior: Prior) -> LatentPrior | None:
    """The prior if its latent space was learned here, with annealed kernels and a learning curve, else None."""
    from poise.priors.latent.prior import LatentPrior

    return prior if isinstance(prior, LatentPrior) else None


def motion_model_of(prior: Prior, targets: Targets, *, frames: int, fps: float) -> MotionModel | None:
    """The prior if it models motion and not only poses (`motion_start`, `motion_terms`); else its model of a motion
    through these targets (`motion_model`), if it has one."""
    if isinstance(prior, MotionModel):
        return prior
    make = getattr(prior, "motion_model", None)
    return None if make is None else make(targets, frames=frames, fps=fps)


def simulator_of(prior: Prior) -> DynamicsPrior | None:
    """The prior if it moves by itself, by dynamics in a latent space (`poise simulate`), else None."""
    from poise.priors.dynamics.prior import DynamicsPrior

    return prior if isinstance(prior, DynamicsPrior) else None


def stands(prior: Prior) -> bool:
    """Whether the body stands at ease when nothing is asked, since the prior knows no posture of its own (`stands`)."""
    return getattr(prior, "stands", False)


def going_on(prior: Prior) -> Callable[..., Prior] | None:
    """The method that continues training with more frames (`learned_more(q, fps=...)`), if the prior has one."""
    return getattr(prior, "learned_more", None)


def standing_pose(prior: Prior) -> Pose:
    """The most central training pose of a latent space, or the mean, standing on the floor."""
    from poise.priors.latent import prior as spaces

    latent = latent_of(prior)
    if latent is not None:
        return spaces.standing_pose(latent, spaces.spread_latents(latent, 1)[0])
    return prior.space.pose_from_q(prior.space.standing(prior.mean))
