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
_BLOCK = 4096  # points of a map predicted at once

LOGS = Numbers(axes="parameters", least=-40.0, most=40.0)
"""The parameters of a kernel."""
HEADER: Mapping[str, Check] = {
    "kernel": choice(*KERNELS),
    "features": record({"up": flag, "velocity": flag, "acceleration": flag}),
    "speakers": choice(*SPEAKERS),
}
LONGEST = {"latent": 64, "active": 4000}


def declared(header: Mapping[str, Any], lengths: Mapping[str, int]) -> Declared:
    """The arrays of a model with this header, of a body with so many maps."""
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
    """Where poses lie, and how likely places there are: of a learned model, or of the prior that has one."""

    @property
    def latents(self) -> Float[Array, "poses latent"]:
        """Where the training poses lie."""
        ...

    @property
    def active(self) -> Int[Array, "active"]:
        """The numbers of the active ones."""
        ...

    def likelihood_map(self, x: Float[Array, "points latent"]) -> Float[Array, "points"]:
        """How good places of the latent space are."""
        ...


@dataclass(frozen=True, eq=False)
class LatentModel:
    """What has been learned of one style. Scales are such that scaled features have a variance of one on average.

    `recorded` are the features of all poses, their mean subtracted; `speakers` says whose they are in a prediction: all
    poses', or those of the active ones alone as in the paper (see `gp.sparse.projected`).
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
        """What another process makes the same model from: arrays that came along would not be read-only there."""
        return LatentModel, tuple(getattr(self, field.name) for field in fields(self))

    @property
    def dimensions(self) -> int:
        """How many dimensions the latent space has."""
        return self.latents.shape[1]

    @cached_property
    def active_latents(self) -> Float[Array, "active latent"]:
        """x of the active set."""
        return read_only(self.latents[self.active])

    @cached_property
    def outputs(self) -> Float[Array, "active features"]:
        """Features of the active set, their mean subtracted."""
        return read_only(self.recorded[self.active])

    @cached_property
    def posterior(self) -> Posterior:
        """What the poses say under the kernel."""
        if self.speakers == ACTIVE:
            return Posterior.given(self.kernel, self.active_latents, self.outputs)
        return projected(self.kernel, self.active_latents, self.latents, self.recorded)

    @property
    def inverse(self) -> Float[Array, "active active"]:
        """Of the active set's kernel matrix, or what stands in its place when all poses speak."""
        return self.posterior.inverse

    @property
    def weights(self) -> Float[Array, "active features"]:
        """f(x) = mean + k(x) weights."""
        return self.posterior.weights

    def with_kernel(self, kernel: Kernel) -> LatentModel:
        """The same poses at the same places under another kernel, as annealing has it (section 6.2)."""
        return replace(self, kernel=kernel)

    def without(self, left_out: Bool[Array, "poses"]) -> LatentModel:
        """The same style, but that it has not seen some of its poses."""
        kept = ~left_out
        active = (np.cumsum(kept) - 1)[self.active[kept[self.active]]]
        return replace(self, latents=self.latents[kept], recorded=self.recorded[kept], active=active)

    def predict(self, x: Float[Array, "*points latent"]) -> Float[Array, "*points features"]:
        """f(x), the features that the model expects at x (Eq. 4)."""
        return (self.mean + self.posterior.mean(x.reshape(-1, self.dimensions))).reshape(*x.shape[:-1], -1)

    def variance(self, x: Float[Array, "*points latent"]) -> Float[Array, "*points"]:
        """sigma^2(x), how unsure it is of scaled features at x (Eqs. 5, 6)."""
        return self.posterior.variance(x.reshape(-1, self.dimensions)).reshape(x.shape[:-1])

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
            "recorded": self.recorded,
            "learning_curve": self.learning_curve,
        }

    def header(self) -> dict[str, Any]:
        """The kernel's kind, which features there are, and whose are in a prediction."""
        chosen = self.features
        wanted = {"up": chosen.up, "velocity": chosen.velocity, "acceleration": chosen.acceleration}
        return {"kernel": self.kernel.kind, "features": wanted, "speakers": self.speakers}

    @classmethod
    def restored(
        cls, space: PoseSpace, *, arrays: Mapping[str, Array], header: Mapping[str, Any]
    ) -> LatentModel:
        """The model again, from what `arrays` and `header` gave."""
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
