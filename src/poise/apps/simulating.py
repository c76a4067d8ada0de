"""Run a motion model by itself: from an activity, through others, at a pace (Urtasun et al. 2008, section 5.1)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.motion.motion import Motion
from poise.priors.abilities import simulator_of
from poise.priors.dynamics import simulation
from poise.priors.dynamics.prior import DynamicsPrior
from poise.priors.dynamics.sequences import RATE
from poise.priors.dynamics.simulation import Inference, plan, resampled, start_points
from poise.priors.model_file import load
from poise.types import Array

LONGEST = 600.0  # seconds


@dataclass(frozen=True, eq=False)
class Simulated:
    """A simulated motion and its path in the latent space, at 30 frames a second."""

    motion: Motion
    latents: Float[Array, "frames latent"]


def simulate(
    prior: DynamicsPrior | str | os.PathLike[str],
    *,
    activities: Sequence[str] = (),
    seconds: float = 6.0,
    frame: int | None = None,
    pace: float = 1.0,
    seed: int | None = None,
    fps: float = 60.0,
    inference: Inference | None = None,
    stay: float | None = None,
) -> Simulated:
    """Return a motion through activities, each for an equal part; with one alone, the model decides what follows.

    The model may be a file. The motion starts at a training frame (by default of the first activity). A seed draws a
    sample instead of the mean; it changes its activity by itself, after `stay` seconds on average (by default as long
    as the clips are). With plain inference the dynamics alone decide (see `simulation.simulate`).
    """
    if isinstance(prior, str | os.PathLike):
        prior = load_dynamics(Path(prior))
    if not isinstance(prior, DynamicsPrior):
        raise InvalidValueError(f"only motion models (kind dynamics) can be simulated; got {prior!r:.60}")
    if not 0.1 <= seconds <= LONGEST:
        raise InvalidValueError(f"`seconds` must be 0.1 to {LONGEST:g}; got {seconds:g}")
    if not 0.1 <= pace <= 4.0:
        raise InvalidValueError(f"`pace` must be 0.1 to 4 times the recorded one; got {pace:g}")
    if not 1.0 <= fps <= 240.0:
        raise InvalidValueError(f"`fps` must be 1 to 240 frames a second; got {fps:g}")
    if stay is not None and not 0.1 <= stay <= LONGEST:
        raise InvalidValueError(f"`stay` must be 0.1 to {LONGEST:g} seconds; got {stay:g}")
    frames = round(seconds * RATE) + 1
    if frame is not None and not 0 <= frame < len(prior.latents):
        raise InvalidValueError(f"training frames are numbered 0 to {len(prior.latents) - 1}; got {frame}")
    first = prior.start_in(activities[0] if activities else None) if frame is None else frame
    x, before = start_points(prior, [first])
    wishes = plan(prior, activities, frames=frames) if len(activities) > 1 else None
    rng = None if seed is None else np.random.default_rng(seed)
    run = simulation.simulate(
        prior,
        x,
        before=before,
        frames=frames,
        wishes=wishes,
        pace=pace,
        rng=rng,
        inference=inference,
        stay=stay,
    )
    path = run.latents[0]
    name = " to ".join(activities) or "simulated"
    return Simulated(prior.motion_of(resampled(path, fps), fps=fps, pace=pace, name=name), path)


def load_dynamics(path: Path) -> DynamicsPrior:
    """Load a motion model from a file; raise if it models poses only."""
    prior = load(path)
    if (found := simulator_of(prior)) is None:
        raise InvalidValueError(
            f"{path.name} is a {prior.kind} model, which has no motion; learn a model of kind dynamics"
        )
    return found
