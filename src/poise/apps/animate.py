"""Animates from constraints at any frames: foot contacts, paths, keyframes (Urtasun et al. 2008, section 5.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.motion.motion import Motion
from poise.priors.abilities import motion_model_of
from poise.priors.dynamics.prior import DynamicsPrior
from poise.priors.model_file import load
from poise.solvers.constraints import Constraint
from poise.solvers.motion_map import solve_motion
from poise.solvers.motion_start import motion_start
from poise.solvers.trajectory import Trajectory

Array = np.ndarray
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Animated:
    """An animation, where it went in the latent space, and what its constraints still lack."""

    motion: Motion
    latents: Float[Array, "frames latent"]
    trajectory: Trajectory

    @cached_property
    def worst(self) -> float:
        """The largest distance left of any constraint, in metres (or radians)."""
        left = (self.trajectory.residuals(frame).values() for frame in range(len(self.motion)))
        return max((value for values in left for value in values), default=0.0)

    @property
    def unmet(self) -> tuple[int, ...]:
        """Frames with a constraint that could not be met."""
        return self.trajectory.unmet


def animate(
    prior: DynamicsPrior,
    frames: Sequence[Sequence[Constraint]],
    *,
    fps: float,
    name: str = "",
    seed: int = 0,
    progress: Progress = lambda _done, _all: None,
) -> Animated:
    """The most likely motion that meets the constraints of every frame."""
    if not any(frames):
        raise InvalidValueError("no frame has a constraint; to let the model move alone use poise simulate")
    start = motion_start(prior, frames, fps=fps, rng=np.random.default_rng(seed))
    trajectory, latents = solve_motion(prior, frames, start, fps=fps, progress=progress)
    return Animated(trajectory.motion(fps, name=name), latents, trajectory)


def load_dynamics(path: Path) -> DynamicsPrior:
    """A motion model from a file; models of other kinds know poses only."""
    prior = load(path)
    found = motion_model_of(prior)
    if found is None:
        raise InvalidValueError(
            f"{path.name} is a {prior.kind} model, which knows poses but no motion; learn one of kind dynamics"
        )
    return found
