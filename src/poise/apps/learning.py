"""Learn models from clips; look at a style's latent space, and take poses from it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from PIL import Image

from poise.apps.outputs import save, save_picture
from poise.errors import InvalidValueError, UnknownNameError
from poise.formats import extensions, motion_files, read_motion
from poise.motion.motion import Motion
from poise.priors.abilities import latent_of, learned_space_of, simulator_of
from poise.priors.latent.model import LatentPoses
from poise.priors.latent.prior import sample_latents, standing_pose
from poise.priors.model_file import load
from poise.types import ShareProgress, silent

if TYPE_CHECKING:
    from poise.priors.registry import PriorOptions, Storable

Clip = Motion | str | os.PathLike[str]


def learn(
    clips: Clip | Iterable[Clip],
    kind: str = "gaussian",
    *,
    licence: str = "",
    progress: ShareProgress = silent,
    **options: Any,
) -> Storable:
    """Learn a model of one kind from motions, motion files or folders of them, all of one skeleton.

    Options are those of the kind: `learn(clips, kind="style", dimensions=3)`; each kind's class has its `Options`. The
    model stores the clips' names, hashes and `licence`. `progress` is called with the fraction done.
    """
    from poise.priors import registry  # compiled code, which reading a motion does not need

    chosen = registry.options_for(kind, options)
    return calibrated(motions_from(clips), kind, chosen, licence=licence, progress=progress)


def calibrated(
    motions: Sequence[Motion],
    kind: str,
    options: PriorOptions,
    *,
    licence: str = "",
    progress: ShareProgress = silent,
) -> Storable:
    """A model of a kind with its training frames and its held-out calibration."""
    from poise.priors import registry
    from poise.priors.evidence import KnownFrames, kept
    from poise.solvers.calibration import PARTS, calibrate

    again = getattr(registry.PRIORS.named(kind), "learns_again", True)
    numbers, times = count(), 1 + PARTS * bool(again)

    def learned(own: Sequence[Motion]) -> Storable:
        number = next(numbers)
        return registry.learn(own, kind, options, progress=lambda done: progress((number + done) / times))

    prior = learned(motions)
    if again:
        calibrate(prior, motions, learned)
    progress(1.0)
    return kept(prior, known_frames=KnownFrames.of(prior.space, motions, licence))


def motions_from(clips: Clip | Iterable[Clip]) -> list[Motion]:
    """Motions, and those of files and folders, in order."""
    if isinstance(clips, Motion | str | os.PathLike) or not isinstance(clips, Iterable):
        clips = [clips]
    found: list[Motion] = []
    for clip in clips:
        if isinstance(clip, Motion):
            found.append(clip)
            continue
        if not isinstance(clip, str | os.PathLike):
            raise InvalidValueError(
                f"a clip must be a motion, a motion file or a folder of them; got {clip!r}"
            )
        if not (files := motion_files([Path(clip)], markers=False)):
            known = ", ".join(extensions(markers=False))
            raise InvalidValueError(f"there is no motion file in {clip}; known extensions: {known}")
        found += map(read_motion, files)
    if not found:
        raise InvalidValueError("no clips given; give motions, motion files or a folder of them")
    return found


VIEWS = ("map", "annealed", "mixture", "curve")
_COLUMNS = 8  # of a page of samples, at most


def load_style(path: Path) -> LatentPoses:
    """Load a style from a model file; raise for models without a latent space."""
    prior = latent_of(load(path))
    if prior is None:
        raise InvalidValueError(
            f"{path.name} is not a style, so it has no latent space; learn a model of kind style"
        )
    return prior


def draw_latent(prior: LatentPoses, *, view: str = "map", seed: int = 0) -> Image.Image:
    """A map with poses, the three annealed models, a mixture of Gaussians beside it, or the learning curve."""
    from poise.pictures.latent_map import (
        draw_annealed_maps,
        draw_latent_map,
        draw_learning_curve,
        draw_mixture,
    )

    motions = simulator_of(prior)
    if view == "map" and motions is not None:
        from poise.pictures.latent_paths import draw_latent_paths

        return draw_latent_paths(motions)
    if view not in VIEWS:
        raise UnknownNameError("view of a latent space", view, VIEWS)
    if view == "map":
        return draw_latent_map(prior, seed=seed)
    if (learned := learned_space_of(prior)) is None:
        raise InvalidValueError(f"a model of kind {prior.kind} keeps nothing of its learning; draw its map")
    if view == "annealed":
        return draw_annealed_maps(learned)
    return draw_learning_curve(learned) if view == "curve" else draw_mixture(learned, seed=seed)


def save_samples(prior: LatentPoses, path: Path, *, count: int = 8, seed: int = 0) -> Path:
    """Save poses at latent points about as likely as the training poses: a page of pictures, or a motion file."""
    poses = [standing_pose(prior, x) for x in sample_latents(prior, count, np.random.default_rng(seed))]
    if path.suffix.lower() != ".png":
        return save(Motion.of_poses(poses, name="samples"), path)
    from poise import pictures

    named = {str(number): pose for number, pose in enumerate(poses, start=1)}
    return save_picture(pictures.draw_panels(named, size=(220, 320), columns=min(_COLUMNS, len(named))), path)
