"""Views of a style's latent space, and poses sampled from it, for `poise latent` and `sample`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from poise.apps.outputs import save
from poise.errors import InvalidValueError, UnknownNameError
from poise.formats.files import make_folder
from poise.motion.motion import Motion
from poise.priors.abilities import latent_of, motion_model_of
from poise.priors.latent.prior import LatentPrior
from poise.priors.latent.sampling import sample_latents, standing_pose
from poise.priors.model_file import load
from poise.skeleton.skeleton import Pose

VIEWS = ("map", "annealed", "mixture", "curve")
_COLUMNS = 8  # of a page of samples, at most


def load_style(path: Path) -> LatentPrior:
    """Load a style from a model file; raise for models without a latent space."""
    prior = latent_of(load(path))
    if prior is None:
        raise InvalidValueError(
            f"{path.name} is not a style, so it has no latent space; learn a model of kind style"
        )
    return prior


def draw_latent(prior: LatentPrior, *, view: str = "map", seed: int = 0) -> Image.Image:
    """A map with poses, the three annealed models, a mixture of Gaussians beside it, or the learning curve."""
    from poise.pictures.latent_map import (
        draw_annealed_maps,
        draw_latent_map,
        draw_learning_curve,
        draw_mixture,
    )

    motions = motion_model_of(prior)
    if view == "map" and motions is not None:
        from poise.pictures.latent_paths import draw_latent_paths

        return draw_latent_paths(motions)
    if view == "map":
        return draw_latent_map(prior, seed=seed)
    if view == "annealed":
        return draw_annealed_maps(prior)
    if view == "curve":
        return draw_learning_curve(prior)
    if view == "mixture":
        return draw_mixture(prior, seed=seed)
    raise UnknownNameError("view of a latent space", view, VIEWS)


def save_picture(image: Image.Image, path: Path) -> Path:
    """Write a picture as PNG, creating its folder if needed."""
    from poise import pictures

    make_folder(path.parent)
    return pictures.save(image, path)


def sample_poses(prior: LatentPrior, *, count: int = 8, seed: int = 0) -> list[Pose]:
    """Poses at latent points about as likely as the training poses."""
    places = sample_latents(prior, count, np.random.default_rng(seed))
    return [standing_pose(prior, x) for x in places]


def save_samples(poses: list[Pose], path: Path) -> Path:
    """Save poses as a page of pictures, or as the frames of a motion file."""
    if path.suffix.lower() != ".png":
        return save(Motion.of_poses(poses, name="samples"), path)
    from poise import pictures

    named = {str(number): pose for number, pose in enumerate(poses, start=1)}
    return save_picture(pictures.draw_panels(named, size=(220, 320), columns=min(_COLUMNS, len(named))), path)
