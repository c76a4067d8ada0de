"""The gaussian prior: clusters of poses as Gaussians, predicted by a Gaussian process (Huang et al. 2017, "MGIK").

Learning (section 4.2): poses without their root are clustered by k-medoids; each cluster is a mean and a covariance.
Run time (section 4.3): each cluster's mean puts the handles somewhere, T_j; a Laplacian kernel over those (Eq. 8)
predicts from wanted targets T the mean and the covariance of the pose (Eq. 9). Any handles may be chosen at run time,
since T_j is computed from the means when the prior is prepared for them.

Eq. 9 weighs covariances by k' K^-1, whose weights may be negative: far from the data its "covariance" need not be one.
Here means are predicted by those weights, but covariances are mixed by weights that are positive and sum to one, so
the mixture of positive definite matrices is positive definite for every input, however far from the data.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from poise.compiled import compiled
from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.priors import medoids
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import JointLimits, Skeleton, read_only

Array = np.ndarray

JITTER = 1e-3  # on the kernel's diagonal: cluster means are averages, not exact observations
BETA = 1e-3  # radians squared, added to every covariance (section 4.2)
POOLED_SHARE = (
    0.5  # of the covariance pooled over all clusters in each cluster's: few poses say little in 60 dimensions
)
REACH = 0.4  # metres: how far, in target space, clusters lend each other their covariance
LIMIT_MARGIN = 0.1  # radians that poses may go beyond the range of the data
STRONGEST = 12  # clusters that take part in a mixed covariance


class GaussianPrior:
    """Clusters of poses, each a Gaussian over exponential maps."""

    kind = "gaussian"

    def __init__(
        self,
        space: PoseSpace,
        means: Float[Array, "clusters maps"],
        covariances: Float[Array, "clusters maps maps"],
        *,
        shares: Float[Array, "clusters"],
        limits: JointLimits | None = None,
    ) -> None:
        self.space, self.limits = space, limits
        self.means, self.covariances = read_only(means), read_only(covariances)
        self.shares = read_only(shares)
        self._precisions, self._log_normalisers = _density_terms(self.covariances)
        self.quantiles = read_only(np.full(101, -np.inf))
        self.clips: tuple[tuple[str, str], ...] = ()

    @classmethod
    def learn(
        cls,
        motions: Sequence[Motion],
        *,
        clusters: int = 100,
        seed: int = 0,
        progress: Callable[[float], None] = lambda _: None,
    ) -> GaussianPrior:
        """Learn from clips of one topology; the first clip's limb lengths are kept."""
        skeleton, quaternions = _common_frames(motions)
        space = PoseSpace.of_rotations(skeleton, quaternions)
        maps = space.q_from_frames(np.zeros((len(quaternions), 3)), quaternions)[:, ROOT_SIZE:]
        _, labels = medoids.cluster(maps, clusters, rng=np.random.default_rng(seed), progress=progress)
        means, covariances, shares = _gaussians(maps, labels)
        prior = cls(space, means, covariances, shares=shares, limits=_limits_of(space, maps))
        sample = maps[:: max(1, len(maps) // 2000)]
        prior.quantiles = read_only(np.percentile(prior._log_density(sample), np.arange(101)))
        prior.clips = tuple((motion.name, motion_hash(motion)) for motion in motions)
        return prior

    @classmethod
    def restored(
        cls,
        space: PoseSpace,
        limits: JointLimits | None,
        *,
        arrays: Mapping[str, Array],
        header: Mapping[str, Any],
    ) -> GaussianPrior:
        """The prior again, from what `arrays` and `header` gave."""
        prior = cls(space, arrays["means"], arrays["covariances"], shares=arrays["shares"], limits=limits)
        prior.quantiles, prior.clips = read_only(arrays["quantiles"]), tuple(map(tuple, header["clips"]))
        return prior

    def arrays(self) -> dict[str, Array]:
        """What has been learned, by name."""
        return {
            "means": self.means,
            "covariances": self.covariances,
            "shares": self.shares,
            "quantiles": self.quantiles,
        }

    def header(self) -> dict[str, Any]:
        """What it was learned from."""
        return {"clips": self.clips}

    @property
    def mean(self) -> Float[Array, "maps"]:
        """The mean pose of the data."""
        return np.asarray(self.shares @ self.means)

    def on_body(self, skeleton: Skeleton) -> GaussianPrior:
        """The same poses on a skeleton of the same topology and other limb lengths."""
        prior = copy.copy(self)
        prior.space = self.space.on_body(skeleton)
        return prior

    def prepare(self, handles: Handles) -> GaussianPrediction:
        """Ready to predict poses from the positions of these handles."""
        return GaussianPrediction(self, handles)

    def log_likelihood(self, q: Float[Array, "size"]) -> float:
        """The log density of a pose under the mixture of all clusters."""
        return float(self._log_density(self.space.checked(q)[None, ROOT_SIZE:])[0])

    def percentile(self, q: Float[Array, "size"]) -> float:
        """The share of training poses, in percent, that are less likely than this one."""
        return float(np.interp(self.log_likelihood(q), self.quantiles, np.arange(101)))

    def _log_density(self, maps: Float[Array, "poses maps"]) -> Float[Array, "poses"]:
        from scipy.special import logsumexp

        terms = np.empty((len(maps), len(self.means)))
        for k, (mean, precision) in enumerate(zip(self.means, self._precisions, strict=True)):
            gap = maps - mean
            terms[:, k] = -0.5 * np.einsum("ij,ij->i", gap @ precision, gap) + self._log_normalisers[k]
        return np.asarray(logsumexp(terms + np.log(self.shares), axis=1))


class GaussianPrediction:
    """The Gaussian process of section 4.3 for one set of handles."""

    def __init__(self, prior: GaussianPrior, handles: Handles) -> None:
        self.prior = prior
        self._inputs = handle_positions(prior.space, prior.means, handles).reshape(len(prior.means), -1)
        self._centre = prior.mean
        if len(handles) == 0:
            return
        distances = cdist(self._inputs, self._inputs)
        self.reach = choose_reach(distances, prior.means - self._centre)
        kernel = np.exp(-distances / self.reach) + JITTER * np.eye(len(distances))
        self._weights = cho_solve(cho_factor(kernel), prior.means - self._centre)

    def __call__(
        self, targets: Float[Array, "handles 3"]
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """Mean (Eq. 9) and positive definite covariance of the pose for these targets."""
        if targets.size == 0:
            return self._centre, total_covariance(self.prior)
        size = self._centre.size
        mean, covariance = np.empty(size), np.empty((size, size))
        predict(
            np.ascontiguousarray(targets).ravel(), self._inputs, self._weights, self._centre, self.prior.covariances,
            self.reach, mean, covariance,
        )  # fmt: skip
        return mean, covariance

    def place_root(self, targets: Float[Array, "handles 3"]) -> tuple[Float[Array, "3"], Float[Array, "4"]]:
        """The root of the cluster whose handles, moved rigidly and kept upright where that is enough, fit best."""
        best, root = np.inf, (targets.mean(axis=0), rotations.IDENTITY.copy())
        for own in self._inputs.reshape(len(self._inputs), -1, 3):
            turn, shift, distance = rigid_fit(own, targets)
            if distance < best:
                best, root = distance, (shift, rotations.quaternion_from_matrix(turn))
        return root


@compiled
def predict(
    targets: Array,
    inputs: Array,
    weights: Array,
    centre: Array,
    covariances: Array,
    reach: float,
    mean: Array,
    covariance: Array,
) -> None:
    """Eq. 9 with the Laplacian kernel of Eq. 8; covariances mixed by positive weights of the strongest clusters."""
    count, size = len(inputs), len(centre)
    distances = np.empty(count)
    for j in range(count):
        total = 0.0
        for i in range(len(targets)):
            gap = targets[i] - inputs[j, i]
            total += gap * gap
        distances[j] = np.sqrt(total)
    mean[:] = centre
    for j in range(count):
        kernel = np.exp(-distances[j] / reach)
        for i in range(size):
            mean[i] += kernel * weights[j, i]
    order = np.argsort(distances)[:STRONGEST]
    total = 0.0
    covariance[:] = 0.0
    for j in order:
        share = np.exp((distances[order[0]] - distances[j]) / REACH)
        total += share
        for i in range(size):
            for k in range(size):
                covariance[i, k] += share * covariances[j, i, k]
    for i in range(size):
        for k in range(size):
            covariance[i, k] /= total


def choose_reach(
    distances: Float[Array, "clusters clusters"], outputs: Float[Array, "clusters maps"]
) -> float:
    """The kernel's delta: the one whose leave-one-out predictions of the cluster means are best (closed form)."""
    typical = float(np.median(distances[distances > 0])) if np.any(distances > 0) else 1.0
    best, chosen = np.inf, typical
    for factor in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0):
        kernel = np.exp(-distances / (factor * typical)) + JITTER * np.eye(len(distances))
        inverse = np.linalg.inv(kernel)
        error = float(np.mean((inverse @ outputs / np.diag(inverse)[:, None]) ** 2))
        if error < best:
            best, chosen = error, factor * typical
    return chosen


def total_covariance(prior: GaussianPrior) -> Float[Array, "maps maps"]:
    """The covariance of the whole mixture: within clusters and between their means."""
    gaps = prior.means - prior.mean
    return np.asarray(
        np.einsum("k,kij->ij", prior.shares, prior.covariances) + (prior.shares[:, None] * gaps).T @ gaps
    )


def handle_positions(
    space: PoseSpace, maps: Float[Array, "poses maps"], handles: Handles
) -> Float[Array, "poses handles 3"]:
    """Where poses put handles, in the root's frame."""
    q = np.zeros((len(maps), space.size))
    q[:, 3] = 1.0
    q[:, ROOT_SIZE:] = maps
    positions, matrices = space.forward(q)
    return positions[:, handles.joints] + np.einsum(
        "phab,hb->pha", matrices[:, handles.joints], handles.offsets
    )


def rigid_fit(
    source: Float[Array, "points 3"], target: Float[Array, "points 3"]
) -> tuple[Float[Array, "3 3"], Float[Array, "3"], float]:
    """The rotation and translation that bring source closest to target (Kabsch 1976), and the distance that is left.

    Fewer than three points leave turns free; they are taken about the vertical alone.
    """
    centre, goal = source.mean(axis=0), target.mean(axis=0)
    moment = (target - goal).T @ (source - centre)
    if len(source) < 3:
        angle = np.arctan2(moment[0, 2] - moment[2, 0], moment[0, 0] + moment[2, 2])
        turn = rotations.matrix_from_expmap(np.array([0.0, angle, 0.0]))
    else:
        left, _, right = np.linalg.svd(moment)
        turn = left @ np.diag([1.0, 1.0, np.sign(np.linalg.det(left @ right))]) @ right
    shift = goal - turn @ centre
    return turn, shift, float(np.linalg.norm(source @ turn.T + shift - target))


def motion_hash(motion: Motion) -> str:
    """A fingerprint of a motion's frames, by which a model names what it was learned from."""
    digest = hashlib.sha256(motion.rotations.tobytes())
    digest.update(motion.root_positions.tobytes())
    return digest.hexdigest()


def _common_frames(motions: Sequence[Motion]) -> tuple[Skeleton, Float[Array, "frames joints 4"]]:
    if not motions or sum(len(motion) for motion in motions) < 2:
        raise InvalidValueError("learning needs at least two frames of motion")
    skeleton = motions[0].skeleton
    for motion in motions[1:]:
        if not motion.skeleton.same_topology(skeleton):
            raise InvalidValueError(
                f"{motion.name or 'a clip'} has another skeleton than {motions[0].name or 'the first'}"
            )
    return skeleton, np.concatenate([motion.rotations for motion in motions])


def _gaussians(
    maps: Float[Array, "poses maps"], labels: Array
) -> tuple[Float[Array, "clusters maps"], Float[Array, "clusters maps maps"], Float[Array, "clusters"]]:
    """Means, covariances (section 4.2, each partly pooled) and shares of the poses of all clusters."""
    count, size = int(labels.max()) + 1, maps.shape[1]
    means, covariances, shares = np.empty((count, size)), np.empty((count, size, size)), np.empty(count)
    for k in range(count):
        own = maps[labels == k]
        means[k], shares[k] = own.mean(axis=0), len(own) / len(maps)
        covariances[k] = (own - means[k]).T @ (own - means[k]) / len(own)
    pooled = np.einsum("k,kij->ij", shares, covariances)
    covariances = (1.0 - POOLED_SHARE) * covariances + POOLED_SHARE * pooled + BETA * np.eye(size)
    return means, covariances, shares


def _limits_of(space: PoseSpace, maps: Float[Array, "poses maps"]) -> JointLimits:
    lower, upper = np.zeros((len(space.skeleton), 3)), np.zeros((len(space.skeleton), 3))
    lower[space.moving] = (maps.min(axis=0) - LIMIT_MARGIN).reshape(-1, 3)
    upper[space.moving] = (maps.max(axis=0) + LIMIT_MARGIN).reshape(-1, 3)
    return JointLimits(space.references, lower, upper)


def _density_terms(covariances: Float[Array, "clusters maps maps"]) -> tuple[Array, Array]:
    """Precisions and log normalisers of the clusters."""
    size = covariances.shape[-1]
    _, logs = np.linalg.slogdet(covariances)
    return np.linalg.inv(covariances), -0.5 * (size * np.log(2.0 * np.pi) + logs)
