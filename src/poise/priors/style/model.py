"""A learned style: the scaled Gaussian process latent variable model and its predictions (Eqs. 3 to 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from scipy.linalg import cho_factor, cho_solve

from poise.errors import InvalidValueError
from poise.priors.style.covariance import Kernel
from poise.priors.style.features import Features
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import read_only

Array = np.ndarray

VARIANCE_FLOOR = 1e-3  # of the noise, below which rounding must not bring a predicted variance

_BLOCK = 4096  # points of a map predicted at once


@dataclass(frozen=True, eq=False)
class StyleModel:
    """What has been learned of one style. Scales are such that scaled features have a variance of one on average."""

    features: Features
    kernel: Kernel
    mean: Float[Array, "features"]
    scales: Float[Array, "features"]
    latents: Float[Array, "poses latent"]
    active: Int[Array, "active"]
    outputs: Float[Array, "active features"]
    annealed: Kernel
    learning_curve: Float[Array, "steps"]

    def __post_init__(self) -> None:
        for name in ("mean", "scales", "latents", "outputs", "learning_curve"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        object.__setattr__(self, "active", read_only(self.active, dtype=np.int64))
        D, M = self.features.dimension, len(self.active)
        if self.mean.shape != (D,) or self.scales.shape != (D,) or self.outputs.shape != (M, D):
            raise InvalidValueError(
                f"a style of {D} features and {M} active poses needs a mean and scales ({D},) and outputs ({M}, {D}); "
                f"got {self.mean.shape}, {self.scales.shape}, {self.outputs.shape}"
            )

    @property
    def dimensions(self) -> int:
        """How many dimensions the latent space has."""
        return self.latents.shape[1]

    @cached_property
    def active_latents(self) -> Float[Array, "active latent"]:
        """x of the active set."""
        return read_only(self.latents[self.active])

    @cached_property
    def inverse(self) -> Float[Array, "active active"]:
        """The inverse of the active set's kernel matrix."""
        K = self.kernel.noisy(self.active_latents)
        inverse = cho_solve(cho_factor(K, lower=True), np.eye(len(K)))
        return read_only(0.5 * (inverse + inverse.T))

    @cached_property
    def weights(self) -> Float[Array, "active features"]:
        """The inverse times the outputs: f(x) = mean + k(x) weights."""
        return read_only(self.inverse @ self.outputs)

    def with_kernel(self, kernel: Kernel) -> StyleModel:
        """The same poses at the same places under another kernel, as annealing has it (section 6.2)."""
        return replace(self, kernel=kernel)

    def predict(self, x: Float[Array, "*points latent"]) -> Float[Array, "*points features"]:
        """f(x), the features that the model expects at x (Eq. 4)."""
        k = self.kernel.matrix(x.reshape(-1, self.dimensions), self.active_latents)
        return (self.mean + k @ self.weights).reshape(*x.shape[:-1], -1)

    def variance(self, x: Float[Array, "*points latent"]) -> Float[Array, "*points"]:
        """sigma^2(x), how unsure it is of scaled features at x (Eqs. 5, 6)."""
        points = x.reshape(-1, self.dimensions)
        k = self.kernel.matrix(points, self.active_latents)
        left = self.kernel.diagonal(points) - np.einsum("nm,nm->n", k @ self.inverse, k)
        return np.maximum(left, VARIANCE_FLOOR * self.kernel.noise_variance).reshape(x.shape[:-1])

    def likelihood_map(self, x: Float[Array, "points latent"]) -> Float[Array, "points"]:
        """-D/2 ln sigma^2(x) - |x|^2 / 2, how good places of the latent space are (Fig. 1)."""
        D = self.features.dimension
        blocks = [x[start : start + _BLOCK] for start in range(0, len(x), _BLOCK)]
        variances = [self.variance(block) for block in blocks]
        return -0.5 * D * np.log(np.concatenate([*variances, np.empty(0)])) - 0.5 * np.einsum(
            "na,na->n", x, x
        )

    def arrays(self) -> dict[str, Array]:
        """What has been learned, by name."""
        return {
            "kernel": self.kernel.logs,
            "annealed": self.annealed.logs,
            "mean": self.mean,
            "scales": self.scales,
            "latents": self.latents,
            "active": self.active,
            "outputs": self.outputs,
            "learning_curve": self.learning_curve,
        }

    def header(self) -> dict[str, Any]:
        """The kernel's kind and which features there are."""
        chosen = self.features
        wanted = {"up": chosen.up, "velocity": chosen.velocity, "acceleration": chosen.acceleration}
        return {"kernel": self.kernel.kind, "features": wanted}

    @classmethod
    def restored(
        cls, space: PoseSpace, *, arrays: Mapping[str, Array], header: Mapping[str, Any]
    ) -> StyleModel:
        """The model again, from what `arrays` and `header` gave."""
        wanted = {name: bool(header["features"][name]) for name in ("up", "velocity", "acceleration")}
        return cls(
            features=Features(space, **wanted),
            kernel=Kernel(header["kernel"], arrays["kernel"]),
            annealed=Kernel(header["kernel"], arrays["annealed"]),
            **{
                name: arrays[name]
                for name in ("mean", "scales", "latents", "active", "outputs", "learning_curve")
            },
        )
