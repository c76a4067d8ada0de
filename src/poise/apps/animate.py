"""Animate from constraints at any frames: foot contacts, paths, keyframes (Urtasun et al. 2008, section 5.2)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from poise.apps.animate_script import read_animate_script
from poise.errors import InvalidValueError
from poise.priors.abilities import motion_model_of
from poise.priors.prior import Prior
from poise.priors.terms import Unknowns
from poise.solvers.given import Given, constraints_from
from poise.solvers.sequence import Frame, keyed_frames, solve_motion, solve_terms, targets_of
from poise.solvers.solution import MotionSolution
from poise.solvers.terms import STIFF
from poise.types import Progress

LATENT_STIFF = (
    1e-4  # metres, radians: tolerance of constraints in the steps of a model whose latent points follow them
)


def animate(
    prior: Prior,
    frames: Sequence[Given] | str | os.PathLike[str],
    *,
    fps: float | None = None,
    name: str = "",
    seed: int = 0,
    progress: Progress = lambda _done, _all: None,
) -> MotionSolution:
    """Return the most likely motion that meets the constraints of every frame, or those of a constraint file.

    Any prior will do; a model of motion (`MotionModel`) gives its own objective and start. A file has its own frame
    rate; for frames, give `fps`.
    """
    if isinstance(frames, str | os.PathLike):
        script = read_animate_script(Path(frames))
        frames, fps, name = script.frames(prior.space), script.fps, name or script.name
    if fps is None:
        raise InvalidValueError("give the frame rate of these frames, such as fps=30")
    wanted = [constraints_from(frame) for frame in frames]
    if not any(wanted):
        raise InvalidValueError(
            "no frame has a constraint; to run the model without constraints, use poise simulate"
        )
    asked, model = [Frame(own) for own in wanted], motion_model_of(prior)
    if model is None:
        start = keyed_frames(prior, asked, fps=fps)
        found = solve_motion([prior], asked, fps=fps, start=start, progress=progress)
        return replace(found, name=name)
    targets, count = targets_of(prior.space, wanted, fps), len(wanted)
    terms = model.motion_terms(targets, frames=count, fps=fps)
    near = model.motion_start(targets, frames=count, fps=fps, rng=np.random.default_rng(seed))
    near = near or Unknowns(keyed_frames(prior, asked, fps=fps))
    stiff = LATENT_STIFF if any(term.latent for term in terms) else STIFF
    found = solve_terms(prior, wanted, terms, near, fps=fps, stiff=stiff, progress=progress)
    return replace(found, name=name)
