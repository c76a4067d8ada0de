"""The style prior: one performer's way of moving, ready for the solver (Grochow et al. 2004, sections 5 and 6)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from jaxtyping import Float

from poise.errors import UnknownNameError
from poise.formats.tables import Range
from poise.motion.motion import Motion
from poise.priors.latent.model import ACTIVE
from poise.priors.latent.prior import SAMPLED, LatentPrior, residual_correlation
from poise.priors.poses import limits_of, motion_hash
from poise.priors.registry import PriorOptions, Stored
from poise.priors.style.learning import add_poses, learn_style, thinned
from poise.schema import choice
from poise.skeleton.skeleton import read_only
from poise.types import Array

OURS, CORRELATED, PUBLISHED = METHODS = ("handles", "correlated", "grochow2004")
AS_PUBLISHED: dict[str, Any] = {
    "dimensions": 3, "active": 100, "acceleration": True, "speakers": ACTIVE, "active_scales": True
}  # fmt: skip
STRETCHES = 10  # parts of the data, each held out in turn for the percentiles


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
        progress: Callable[[float], None] = lambda _: None,
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
