"""Animate from constraints at any frames: foot contacts, paths, keyframes (Urtasun et al. 2008, section 5.2)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.apps.animate_script import read_animate_script
from poise.errors import InvalidValueError
from poise.motion.motion import Motion
from poise.priors.abilities import motion_model_of
from poise.priors.dynamics.prior import DynamicsPrior
from poise.priors.model_file import load
from poise.solvers.given import Given, constraints_from
from poise.solvers.motion_map import solve_motion
from poise.solvers.motion_start import motion_start
from poise.solvers.trajectory import Trajectory
from poise.types import Array, Progress


@dataclass(frozen=True, eq=False)
class Animated:
    """An animation, its latent path, and the residuals of its constraints."""

    motion: Motion
    latents: Float[Array, "frames latent"]
    trajectory: Trajectory

    @cached_property
    def worst(self) -> float:
        """The largest residual of any constraint, in metres (or radians)."""
        left = (self.trajectory.residuals(frame).values() for frame in range(len(self.motion)))
        return max((value for values in left for value in values), default=0.0)

    @property
    def unmet(self) -> tuple[int, ...]:
        """Frames with a constraint that could not be met."""
        return self.trajectory.unmet


def animate(
    prior: DynamicsPrior,
    frames: Sequence[Given] | str | os.PathLike[str],
    *,
    fps: float | None = None,
    name: str = "",
    seed: int = 0,
    progress: Progress = lambda _done, _all: None,
) -> Animated:
    """Return the most likely motion that meets the constraints of every frame, or those of a constraint file.

    A file has its own frame rate; for frames, give `fps`.
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
    start = motion_start(prior, wanted, fps=fps, rng=np.random.default_rng(seed))
    trajectory, latents = solve_motion(prior, wanted, start, fps=fps, progress=progress)
    return Animated(trajectory.motion(fps, name=name), latents, trajectory)


def load_dynamics(path: Path) -> DynamicsPrior:
    """Load a motion model from a file; raise if it models poses only."""
    prior = load(path)
    found = motion_model_of(prior)
    if found is None:
        raise InvalidValueError(
            f"{path.name} is a {prior.kind} model, which has no motion; learn a model of kind dynamics"
        )
    return found
