"""Base of priors with a latent space: a Gaussian process to poses, ready for the solver (Grochow et al. 2004).

Also poses sampled from the latent space of a style, and the standing bodies at latent points.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Float, Int

from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.gp.covariance import Kernel
from poise.priors.latent import local_gaussian as shape
from poise.priors.latent import model
from poise.priors.latent.guide import LatentGuide
from poise.priors.latent.model import LatentModel, LatentPoses, LatentSpace, Observed, observed
from poise.priors.registry import Stored
from poise.savable import Savable
from poise.schema import CLIPS, QUANTILES, Declared, Numbers, Schema
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import Handles
from poise.skeleton.skeleton import JointLimits, Pose, Skeleton, read_only
from poise.types import Array

if TYPE_CHECKING:
    from poise.priors.dynamics.flow import Ring


Own = TypeVar("Own", bound="LatentPrior")

INTERMEDIATE = 1.0 - 1.0 / np.sqrt(2.0)  # share of the annealed parameters in the middle stage (section 6.2)
SHARED = 200  # number of training poses at which residual correlations get half weight, the largest
PROJECT_STEPS = 20
SAMPLED = 300  # training poses whose log-likelihoods give the percentiles
NEAREST_STEP, FARTHEST_STEP = 0.05, 1.0  # of the latent points' deviation: steps from active points
ROUNDS = 100  # largest number of draws per sample, before the likeliest rejected ones are taken

Points = Float[Array, "samples latent"]


def declared(header: Mapping[str, Any], lengths: Mapping[str, int]) -> Declared:
    """The arrays of a latent space with this header."""
    correlation = Numbers(axes="maps maps", definite=True)
    return {**model.declared(header, lengths), "quantiles": QUANTILES, "correlation": correlation}


class LatentPrior(Savable):
    """A latent space over the poses of one skeleton, and the process from it to poses."""

    kind = "latent"
    by_handles = False  # whether handles alone predict part of a pose (see `answers`)
    schema = Schema({**model.HEADER, "clips": CLIPS}, declared, model.LONGEST)

    def __init__(
        self,
        model: LatentModel,
        *,
        limits: JointLimits | None = None,
        correlation: Float[Array, "maps maps"] | None = None,
    ) -> None:
        self.model, self.limits = model, limits
        self.space = model.features.space
        maps = self.space.size - ROOT_SIZE
        self.correlation = read_only(np.eye(maps) if correlation is None else correlation)
        self.noise = read_only(self.correlation / np.outer(model.scales[:maps], model.scales[:maps]))
        self.quantiles = read_only(np.full(101, -np.inf))
        self.clips: tuple[tuple[str, str], ...] = ()

    @classmethod
    def restored(cls: type[Own], stored: Stored) -> Own:
        """Create the prior from the contents of `arrays` and `header`."""
        arrays, header = stored.arrays, stored.header
        model = LatentModel.restored(stored.space, arrays=arrays, header=header)
        prior = cls(model, limits=stored.limits, correlation=arrays["correlation"])
        prior.quantiles, prior.clips = read_only(arrays["quantiles"]), tuple(map(tuple, header["clips"]))
        return prior

    def arrays(self) -> dict[str, Array]:
        """The learned arrays, by name."""
        return {**self.model.arrays(), "quantiles": self.quantiles, "correlation": self.correlation}

    def header(self) -> dict[str, Any]:
        """The clips it was learned from, and the settings."""
        return {**self.model.header(), "clips": self.clips}

    @property
    def mean(self) -> Float[Array, "maps"]:
        """The mean pose of the data."""
        return self.model.mean[: self.space.size - ROOT_SIZE].copy()

    def on_body(self: Own, skeleton: Skeleton) -> Own:
        """The same poses on a skeleton of the same topology and other limb lengths."""
        prior = copy.copy(self)
        prior.space = self.space.on_body(skeleton)
        return prior

    # --- the latent space ------------------------------------------------------------------------------------------

    @property
    def latents(self) -> Float[Array, "poses latent"]:
        """The latent points of the training poses."""
        return self.model.latents

    @property
    def active(self) -> Int[Array, "active"]:
        """The indices of the active poses."""
        return self.model.active

    @property
    def dimensions(self) -> int:
        """The number of dimensions of the latent space."""
        return self.model.dimensions

    @property
    def learning_curve(self) -> Float[Array, "steps"]:
        """The loss after every round of learning."""
        return self.model.learning_curve

    def variance(self, x: Float[Array, "*points latent"]) -> Float[Array, "*points"]:
        """sigma^2(x), the predicted variance of scaled features at x (Eqs. 5, 6)."""
        return self.model.variance(x)

    def likelihood_map(self, x: Float[Array, "points latent"]) -> Float[Array, "points"]:
        """Log-likelihood (up to a constant) of latent points (Fig. 1)."""
        return self.model.likelihood_map(x)

    @property
    def kernels(self) -> tuple[Kernel, Kernel, Kernel]:
        """From the smoothest to the model's own (section 6.2)."""
        fine, smooth = self.model.kernel, self.model.annealed
        return smooth, fine.towards(smooth, INTERMEDIATE), fine

    def under(self, kernel: Kernel) -> LatentSpace:
        """The same poses at the same latent points under another kernel."""
        return self.model.with_kernel(kernel)

    @property
    def solving(self) -> str:
        """The default method of its guides for a given root."""
        return "map"

    @property
    def unrolled(self) -> tuple[Ring, int] | None:
        """For a cylinder: its ring and the dimension along it; else None."""
        return None

    def stages(self) -> tuple[shape.LatentArrays, ...]:
        """The model from smoothest to finest (section 6.2), reduced to the features of one pose."""
        return tuple(stage.arrays for stage in self.observed())

    def observed(self, *, fps: float | None = None, known: int = 0) -> tuple[Observed, ...]:
        """The stages for frames with `known` predecessors at a frame rate."""
        return tuple(observed(model, self.correlation, fps=fps, known=known) for model in self._annealed)

    @cached_property
    def _annealed(self) -> tuple[LatentModel, ...]:
        """The model under each of its kernels, with cached results; the last is the model itself."""
        return (*(self.model.with_kernel(kernel) for kernel in self.kernels[:-1]), self.model)

    @cached_property
    def _fine(self) -> shape.LatentArrays:
        return self.stages()[-1]

    def pose_at(self, x: Float[Array, "latent"]) -> Float[Array, "maps"]:
        """The predicted exponential maps at a latent point."""
        return np.asarray(self.model.predict(np.asarray(x, dtype=np.float64))[: self.space.size - ROOT_SIZE])

    def up_at(self, x: Float[Array, "latent"]) -> Float[Array, "3"]:
        """The predicted direction of the world's up in the root's frame at a latent point."""
        return self.ups_at(np.asarray(x, dtype=np.float64)[None])[0]

    def ups_at(self, x: Float[Array, "points latent"]) -> Float[Array, "points 3"]:
        """The same at many latent points."""
        if not self.model.features.up:
            return np.tile([0.0, 1.0, 0.0], (len(x), 1))
        maps = self.space.size - ROOT_SIZE
        ups = self.model.predict(x)[:, maps : maps + 3]
        return np.asarray(ups / np.maximum(np.linalg.norm(ups, axis=1, keepdims=True), 1e-9))

    def gaussian_at(
        self, x: Float[Array, "latent"]
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """Mean and covariance of the poses at and around a latent point."""
        style, local = self._fine, shape.room(self._fine, 0)
        none = np.zeros(style.checks.shape[1])
        shape.local_shape(style, self.mean, none, self.pose_at(x), np.ascontiguousarray(x), local)
        return local.mean, local.covariance

    def place(self, q: Float[Array, "size"]) -> tuple[Float[Array, "latent"], float]:
        """The latent point of a pose and its L_IK there: the best result from the nearest active poses."""
        style = self._fine
        maps = self.space.checked(q)[ROOT_SIZE:].copy()
        aims = up_aims(self.model, q)
        expected = self.model.mean[: len(maps)] + self.model.outputs[:, : len(maps)]
        nearest = np.argsort((((maps - expected) ** 2) * style.precisions).sum(axis=1))[:3]
        found = []
        for start in nearest:
            x = self.model.active_latents[start].copy()
            found.append((x, float(shape.project(style, self.mean, aims, maps, x, PROJECT_STEPS))))
        return min(found, key=lambda one: one[1])

    def log_likelihood(self, q: Float[Array, "size"]) -> float:
        """-L_IK of a pose at its own latent point."""
        return -self.place(q)[1]

    def percentile(self, q: Float[Array, "size"]) -> float:
        """The percentage of training poses that are less likely than this one, each evaluated as if left out."""
        return float(np.interp(self.log_likelihood(q), self.quantiles, np.arange(101)))

    def guide(self, handles: Handles, *, fps: float | None = None) -> LatentGuide:
        """Return the guide for these handles, and for frames that follow each other at this rate."""
        return LatentGuide(self, handles, fps)

    def known_poses(self) -> tuple[Float[Array, "poses maps"], Float[Array, "poses 3"]]:
        """The active poses, and the up direction of each."""
        latents = self.model.active_latents
        return np.stack([self.pose_at(x) for x in latents]), self.ups_at(latents)


def residual_correlation(model: LatentModel, maps: Float[Array, "poses maps"]) -> Float[Array, "maps maps"]:
    """Correlation of the joints' residuals from the style's predictions, shrunk by half or more if poses are few.

    Without shrinkage it would fit the training poses better and new ones worse: a short clip has few independent ones.
    """
    left = maps - model.predict(model.latents)[:, : maps.shape[1]]
    spread = left.std(axis=0)
    scaled = left / np.where(spread > 1e-9, spread, np.inf)
    correlation = max(0.5, len(scaled) / (len(scaled) + SHARED)) * scaled.T @ scaled / len(scaled)
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(correlation)


def up_aims(model: LatentModel, q: Float[Array, "size"]) -> Float[Array, "checks"]:
    """The scaled up features of a pose minus their mean; empty if the style does not use them."""
    maps, count = model.features.space.size - ROOT_SIZE, model.features.pose_count
    up = rotations.matrix_from_quaternion(q[3:7])[1]
    return np.asarray(model.scales[maps:count] * (up[: count - maps] - model.mean[maps:count]))


# --- samples ----------------------------------------------------------------------------------------------------------


def sample_latents(space: LatentSpace, count: int, rng: np.random.Generator) -> Points:
    """Latent points as likely as the training poses' own, each a random step from an active one.

    Active poses cover all of a style, whereas most frames of a clip may show one pose.
    """
    if count < 1:
        raise InvalidValueError(f"ask for at least one sample; got {count}")
    least, size, active = space.likelihood_map(space.latents).min(), 2 * count, space.latents[space.active]
    kept = refused = np.empty((0, space.latents.shape[1]))
    for _ in range(ROUNDS):  # steps, short and long
        origins = active[rng.integers(len(active), size=size)]
        lengths = np.exp(rng.uniform(np.log(NEAREST_STEP), np.log(FARTHEST_STEP), size=(size, 1)))
        drawn = origins + lengths * space.latents.std() * rng.normal(size=origins.shape)
        likely = space.likelihood_map(drawn) >= least
        kept, refused = np.concatenate([kept, drawn[likely]]), np.concatenate([refused, drawn[~likely]])
        if len(kept) >= count:
            return kept[:count]
    likeliest = np.argsort(-space.likelihood_map(refused), kind="stable")[: count - len(kept)]
    return np.concatenate([kept, refused[likeliest]])


def novel_latents(space: LatentSpace, count: int, rng: np.random.Generator) -> Points:
    """Likely latent points far from the training poses and from each other: novel poses of a style."""
    pool = sample_latents(space, 60 * count, rng)
    known = space.latents
    for _ in range(count):
        gaps = np.linalg.norm(pool[:, None] - known[None], axis=2).min(axis=1)
        known = np.concatenate([known, pool[[np.argmax(gaps)]]])
    return known[len(space.latents) :]


def spread_latents(space: LatentSpace, count: int) -> Float[Array, "chosen latent"]:
    """Representative training points: the most central one, then always the one farthest from those chosen."""
    points = space.latents
    chosen = [int(np.argmin(np.linalg.norm(points - points.mean(axis=0), axis=1)))]
    gaps = np.linalg.norm(points - points[chosen[0]], axis=1)
    while len(chosen) < min(count, len(points)):
        chosen.append(int(np.argmax(gaps)))
        gaps = np.minimum(gaps, np.linalg.norm(points - points[chosen[-1]], axis=1))
    return points[chosen]


def standing_pose(prior: LatentPoses, x: Float[Array, "latent"]) -> Pose:
    """The pose at a latent point, with its expected tilt, its lowest joint at height 0."""
    return prior.space.pose_from_q(prior.space.standing(prior.pose_at(x), prior.up_at(x)))
