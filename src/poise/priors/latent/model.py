"""A learned style: the scaled Gaussian process latent variable model and its predictions (Eqs. 3 to 6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.errors import InvalidValueError, UnknownNameError
from poise.gp.covariance import KERNELS, Kernel
from poise.gp.exact import Posterior
from poise.gp.sparse import projected
from poise.priors.latent.features import Features
from poise.schema import Check, Declared, Indices, Numbers, choice, flag, record
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import read_only
from poise.types import Array

ALL, ACTIVE = SPEAKERS = ("all", "active")
_BLOCK = 4096  # points of a likelihood map predicted at once

LOGS = Numbers(axes="parameters", least=-40.0, most=40.0)
"""The parameters of a kernel."""
HEADER: Mapping[str, Check] = {
    "kernel": choice(*KERNELS),
    "features": record({"up": flag, "velocity": flag, "acceleration": flag}),
    "speakers": choice(*SPEAKERS),
}
LONGEST = {"latent": 64, "active": 4000}


def declared(header: Mapping[str, Any], lengths: Mapping[str, int]) -> Declared:
    """The arrays of a model with this header, for a body with this many maps."""
    wanted = header["features"]
    pose = lengths["maps"] + 3 * wanted["up"]
    features = str(pose * (1 + wanted["velocity"] + wanted["acceleration"]))
    return {
        "kernel": LOGS,
        "annealed": LOGS,
        "mean": Numbers(axes=features),
        "scales": Numbers(axes=features, least=1e-9, most=1e9),
        "latents": Numbers(axes="poses latent"),
        "active": Indices(axes="active", below="poses", distinct=True),
        "recorded": Numbers(axes=f"poses {features}"),
        "learning_curve": Numbers(axes="steps", least=-1e15, most=1e15, empty=True),
    }


@runtime_checkable
class LatentSpace(Protocol):
    """Latent points of poses and their likelihoods: of a learned model, or of the prior that has one."""

    @property
    def latents(self) -> Float[Array, "poses latent"]:
        """The latent points of the training poses."""
        ...

    @property
    def active(self) -> Int[Array, "active"]:
        """The indices of the active poses."""
        ...

    def likelihood_map(self, x: Float[Array, "points latent"]) -> Float[Array, "points"]:
        """Log-likelihood (up to a constant) of latent points."""
        ...


@dataclass(frozen=True, eq=False)
class LatentModel:
    """A learned style. Scales are such that scaled features have a variance of one on average.

    `recorded` are the features of all poses minus their mean; `speakers` says which poses enter a prediction: all, or
    the active ones alone as in the paper (see `gp.sparse.projected`).
    """

    features: Features
    kernel: Kernel
    mean: Float[Array, "features"]
    scales: Float[Array, "features"]
    latents: Float[Array, "poses latent"]
    active: Int[Array, "active"]
    recorded: Float[Array, "poses features"]
    annealed: Kernel
    learning_curve: Float[Array, "steps"]
    speakers: str = ALL

    def __post_init__(self) -> None:
        for name in ("mean", "scales", "latents", "recorded", "learning_curve"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        object.__setattr__(self, "active", read_only(self.active, dtype=np.int64))
        if self.speakers not in SPEAKERS:
            raise UnknownNameError("choice of poses that speak", self.speakers, SPEAKERS)
        D, N = self.features.dimension, len(self.latents)
        if self.mean.shape != (D,) or self.scales.shape != (D,) or self.recorded.shape != (N, D):
            raise InvalidValueError(
                f"a style of {D} features and {N} poses needs a mean and scales ({D},) and poses ({N}, {D}); "
                f"got {self.mean.shape}, {self.scales.shape}, {self.recorded.shape}"
            )

    def __reduce__(self) -> tuple[type[LatentModel], tuple[Any, ...]]:
        """Rebuild the model from its fields in another process: unpickled arrays would not be read-only."""
        return LatentModel, tuple(getattr(self, field.name) for field in fields(self))

    @property
    def dimensions(self) -> int:
        """The number of dimensions of the latent space."""
        return self.latents.shape[1]

    @cached_property
    def active_latents(self) -> Float[Array, "active latent"]:
        """x of the active set."""
        return read_only(self.latents[self.active])

    @cached_property
    def outputs(self) -> Float[Array, "active features"]:
        """Features of the active set minus their mean."""
        return read_only(self.recorded[self.active])

    @cached_property
    def posterior(self) -> Posterior:
        """The posterior process of the poses under the kernel."""
        if self.speakers == ACTIVE:
            return Posterior.given(self.kernel, self.active_latents, self.outputs)
        return projected(self.kernel, self.active_latents, self.latents, self.recorded)

    @property
    def inverse(self) -> Float[Array, "active active"]:
        """The inverse kernel matrix of the active set, or its replacement if all poses enter."""
        return self.posterior.inverse

    @property
    def weights(self) -> Float[Array, "active features"]:
        """f(x) = mean + k(x) weights."""
        return self.posterior.weights

    def with_kernel(self, kernel: Kernel) -> LatentModel:
        """The same poses at the same latent points under another kernel, for annealing (section 6.2)."""
        return replace(self, kernel=kernel)

    def without(self, left_out: Bool[Array, "poses"]) -> LatentModel:
        """The same style without some of its poses."""
        kept = ~left_out
        active = (np.cumsum(kept) - 1)[self.active[kept[self.active]]]
        return replace(self, latents=self.latents[kept], recorded=self.recorded[kept], active=active)

    def predict(self, x: Float[Array, "*points latent"]) -> Float[Array, "*points features"]:
        """f(x), the predicted features at x (Eq. 4)."""
        return (self.mean + self.posterior.mean(x.reshape(-1, self.dimensions))).reshape(*x.shape[:-1], -1)

    def variance(self, x: Float[Array, "*points latent"]) -> Float[Array, "*points"]:
        """sigma^2(x), the predicted variance of scaled features at x (Eqs. 5, 6)."""
        return self.posterior.variance(x.reshape(-1, self.dimensions)).reshape(x.shape[:-1])

    def likelihood_map(self, x: Float[Array, "points latent"]) -> Float[Array, "points"]:
        """-D/2 ln sigma^2(x) - |x|^2 / 2, the log-likelihood of latent points (Fig. 1)."""
        D = self.features.dimension
        blocks = [x[start : start + _BLOCK] for start in range(0, len(x), _BLOCK)]
        variances = [self.variance(block) for block in blocks]
        return -0.5 * D * np.log(np.concatenate([*variances, np.empty(0)])) - 0.5 * np.einsum(
            "na,na->n", x, x
        )

    def arrays(self) -> dict[str, Array]:
        """The learned arrays, by name."""
        return {
            "kernel": self.kernel.logs,
            "annealed": self.annealed.logs,
            "mean": self.mean,
            "scales": self.scales,
            "latents": self.latents,
            "active": self.active,
            "recorded": self.recorded,
            "learning_curve": self.learning_curve,
        }

    def header(self) -> dict[str, Any]:
        """The kernel's kind, the features, and the poses that enter a prediction."""
        chosen = self.features
        wanted = {"up": chosen.up, "velocity": chosen.velocity, "acceleration": chosen.acceleration}
        return {"kernel": self.kernel.kind, "features": wanted, "speakers": self.speakers}

    @classmethod
    def restored(
        cls, space: PoseSpace, *, arrays: Mapping[str, Array], header: Mapping[str, Any]
    ) -> LatentModel:
        """Create the model from the contents of `arrays` and `header`."""
        wanted = {name: bool(header["features"][name]) for name in ("up", "velocity", "acceleration")}
        return cls(
            features=Features(space, **wanted),
            kernel=Kernel.of(header["kernel"], arrays["kernel"]),
            annealed=Kernel.of(header["kernel"], arrays["annealed"]),
            speakers=header["speakers"],
            **{
                name: arrays[name]
                for name in ("mean", "scales", "latents", "active", "recorded", "learning_curve")
            },
        )
