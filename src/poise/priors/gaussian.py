"""The gaussian prior: clusters of poses as Gaussians, predicted by a Gaussian process (Huang et al. 2017, "MGIK").

Learning (section 4.2): poses without their root are clustered by k-medoids; each cluster is a mean and a covariance.
Run time (section 4.3): each cluster's mean gives handle positions T_j; Laplacian kernels over those (Eq. 8) predict
the mean and the covariance of the pose from targets T (Eq. 9). Any handles may be chosen at run time,
since T_j is computed from the means when the prior is prepared for them.

Eq. 9 weights covariances by k' K^-1, whose elements may be negative: far from the data the result need not be a
covariance. Here means are predicted by those weights, but covariances are mixed by positive weights that sum to one,
so the mixture is positive definite for every input, however far from the data. A tenth of the covariance of all data
is added for targets that no cluster is near. In that part, joints that move no handle are independent of those that
do: hand rotations during arm motion differ more from clip to clip than the arm motion does.

The solver uses mean and covariance in the dual form of Eq. 17. The paper scales lambda_2, the prior's weight against
the targets', by the remaining distance, so that the prior fades as the targets get closer. The dual step sets lambda_2
to 0 at once (R = lambda_2 / 2), the limit of that schedule: the most likely of the poses that meet them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from poise.bounds import is_number
from poise.compiled import compiled
from poise.errors import InvalidValueError, UnknownNameError
from poise.formats.tables import Range
from poise.geometry.alignment import closest_root
from poise.gp import regression
from poise.gp.covariance import LAPLACIAN
from poise.gp.regression import add_prediction
from poise.motion.motion import Motion
from poise.priors import clusters as gaussians
from poise.priors import poses, registry
from poise.priors.predicting import PredictingGuide, answer_from_handles
from poise.priors.registry import PriorOptions, Stored
from poise.savable import Savable
from poise.schema import CLIPS, QUANTILES, Declared, Indices, Numbers, Schema, choice, flag, real
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import JointLimits, Skeleton, read_only
from poise.types import Array, MapsGaussian, Points, PoseVector

WHOLE_SHARE = 0.1  # of the covariance of all data in every predicted one
LENDING = 2.0  # in cluster spacings of the target space: distance over which clusters share their covariances
STRONGEST = 4  # clusters in a mixed covariance
OURS, PUBLISHED = "limbs", "huang2017"
PREPARED = 16  # sets of handles whose predictions are cached


@dataclass(frozen=True)
class Balance:
    """The weights of Eq. 10 as published: lambda_1 of the step, and lambda_0, which the residual scales to lambda_2."""

    step: float = 1e-3
    prior: float = 1e-3


@dataclass(frozen=True)
class GaussianOptions(PriorOptions):
    """Resolution and method of the clustering."""

    clusters: Annotated[int | None, Range(least=1), "the number of clusters (default 100)"] = None
    method: Annotated[
        Literal["limbs", "huang2017"] | None,
        "a kernel per limb and an exact finish, or as Huang et al. 2017 published it",
    ] = None
    lambda_1: Annotated[float | None, Range(least=0.0), "λ1 in Eq. 10 of huang2017 (default 0.001)"] = None
    lambda_0: Annotated[float | None, Range(least=0.0), "λ0 in section 4.5 of huang2017 (default 0.001)"] = (
        None
    )


def _declared(header: Mapping[str, Any], _lengths: Mapping[str, int]) -> Declared:
    spread: Declared = {"covariances": Numbers(axes="clusters maps maps", definite=True)}
    if header["low_rank"]:
        diagonals = Numbers(axes="clusters maps", least=1e-9)
        spread = {"factors": Numbers(axes="clusters maps rank"), "diagonals": diagonals}
    shares, blocks = Numbers(axes="clusters", least=1e-12, most=1.0), Indices(axes="clusters")
    means = Numbers(axes="clusters maps")
    return {"means": means, **spread, "shares": shares, "blocks": blocks, "quantiles": QUANTILES}


class GaussianPrior(Savable):
    """Clusters of poses, each a Gaussian over exponential maps."""

    kind = "gaussian"
    about = "clusters of poses, each a Gaussian (seconds for minutes of motion)"
    Options = GaussianOptions
    schema = Schema(
        {"clips": CLIPS, "low_rank": flag},
        _declared,
        {"clusters": 2000},
        later={
            "method": (choice(OURS, PUBLISHED), OURS),
            "lambda_1": (real(0.0, 1e6), Balance.step),
            "lambda_0": (real(0.0, 1e6), Balance.prior),
        },
    )

    def __init__(
        self,
        space: PoseSpace,
        means: Float[Array, "clusters maps"],
        covariances: Float[Array, "clusters maps maps"],
        *,
        shares: Float[Array, "clusters"],
        blocks: Int[Array, "clusters"] | None = None,
        limits: JointLimits | None = None,
    ) -> None:
        self.space, self.limits = space, limits
        self.means, self.covariances = read_only(means), read_only(covariances)
        self.shares = read_only(shares)
        self.blocks = read_only(np.arange(len(means)) if blocks is None else blocks, dtype=np.int64)
        self.factors: tuple[Array, Array] | None = None
        self.method, self.balance = OURS, Balance()
        self._prepared: poses.Prepared[PredictingGuide] = {}
        self._precisions = np.linalg.inv(self.covariances)
        size, (_, logs) = self.covariances.shape[-1], np.linalg.slogdet(self.covariances)
        self._log_normalisers = -0.5 * (size * np.log(2.0 * np.pi) + logs)
        self.quantiles = read_only(np.full(101, -np.inf))
        self.clips: tuple[tuple[str, str], ...] = ()

    @classmethod
    def learn(
        cls,
        motions: Sequence[Motion],
        *,
        clusters: int = 100,
        rank: int | None = None,
        method: str = OURS,
        lambda_1: float = Balance.step,
        lambda_0: float = Balance.prior,
        seed: int = 0,
        progress: Callable[[float], None] = lambda _: None,
    ) -> GaussianPrior:
        """Learn from clips of one topology; the first clip's limb lengths are kept.

        With a rank, each covariance is stored as `rank` directions and a diagonal, in a fraction of the file size.
        With `method="huang2017"`, everything is as published (`evaluation.published.huang2017`).
        """
        if method not in (OURS, PUBLISHED):
            raise UnknownNameError("method of gaussian models", method, (OURS, PUBLISHED))
        if not is_number(clusters) or clusters < 1 or clusters != int(clusters):
            raise InvalidValueError(f"`clusters` must be a whole number of at least 1; got {clusters!r:.40}")
        skeleton, quaternions = poses.common_frames(motions)
        space = PoseSpace.of_rotations(skeleton, quaternions)
        maps = space.q_from_frames(np.zeros((len(quaternions), 3)), quaternions)[:, ROOT_SIZE:]
        if rank is not None and not 1 <= rank <= maps.shape[1]:
            most = f"{maps.shape[1]}, the degrees of freedom"
            raise InvalidValueError(f"the rank must be between 1 and {most}; got {rank}")
        learned = gaussians.learn(
            space, maps, lengths=[len(motion) for motion in motions], count=clusters,
            rng=np.random.default_rng(seed), published=method == PUBLISHED, progress=progress,
        )  # fmt: skip
        factors = None if rank is None else gaussians.low_rank(learned.covariances, rank)
        covariances = learned.covariances if factors is None else gaussians.dense(*factors)
        prior = cls(
            space, learned.means, covariances,
            shares=learned.shares, blocks=learned.blocks, limits=poses.limits_of(space, maps),
        )  # fmt: skip
        prior.factors, prior.method, prior.balance = factors, method, Balance(lambda_1, lambda_0)
        sample = maps[:: max(1, len(maps) // 2000)]
        prior.quantiles = read_only(np.percentile(prior._log_density(sample), np.arange(101)))
        prior.clips = tuple((motion.name, poses.motion_hash(motion)) for motion in motions)
        return prior

    @classmethod
    def restored(cls, stored: Stored) -> GaussianPrior:
        """Create the prior from the contents of `arrays` and `header`."""
        arrays, header = stored.arrays, stored.header
        factors = (arrays["factors"], arrays["diagonals"]) if header["low_rank"] else None
        covariances = arrays["covariances"] if factors is None else gaussians.dense(*factors)
        prior = cls(
            stored.space, arrays["means"], covariances,
            shares=arrays["shares"], blocks=arrays["blocks"], limits=stored.limits,
        )  # fmt: skip
        prior.factors, prior.method = factors, header["method"]
        prior.balance = Balance(header["lambda_1"], header["lambda_0"])
        prior.quantiles, prior.clips = read_only(arrays["quantiles"]), tuple(map(tuple, header["clips"]))
        return prior

    def arrays(self) -> dict[str, Array]:
        """The learned arrays, by name."""
        spread = {"covariances": self.covariances}
        if self.factors is not None:
            spread = dict(zip(("factors", "diagonals"), self.factors, strict=True))
        known = {name: getattr(self, name) for name in ("means", "shares", "blocks", "quantiles")}
        return known | spread

    def header(self) -> dict[str, Any]:
        """The clips it was learned from, and how covariances are stored."""
        weights = {"lambda_1": self.balance.step, "lambda_0": self.balance.prior}
        return {"clips": self.clips, "low_rank": self.factors is not None, "method": self.method, **weights}

    @property
    def summary(self) -> str:
        """A short description of the learned model."""
        return f"{len(self.means)} clusters of {self.means.shape[1]} rotational freedoms"

    @property
    def mean(self) -> Float[Array, "maps"]:
        """The mean pose of the data."""
        return np.asarray(self.shares @ self.means)

    def on_body(self, skeleton: Skeleton) -> GaussianPrior:
        """The same poses on a skeleton of the same topology and other limb lengths."""
        prior = copy.copy(self)
        prior.space = self.space.on_body(skeleton)
        prior._prepared = {}
        return prior

    def guide(self, handles: Handles, *, fps: float | None = None) -> PredictingGuide:
        """Return the guide that predicts poses from the positions of these handles; frames are independent."""
        del fps
        make = GaussianGuide if self.method == OURS else registry.PUBLISHED_GUIDES[self.method]
        return poses.prepared_for(handles, self._prepared, partial(make, self), most=PREPARED)

    def known_poses(self) -> tuple[Float[Array, "poses maps"], Float[Array, "poses 3"]]:
        """The clusters' means, upright."""
        return poses.upright(self.means)

    def log_likelihood(self, q: PoseVector) -> float:
        """The log density of a pose under the mixture of all clusters."""
        return float(self._log_density(self.space.checked(q)[None, ROOT_SIZE:])[0])

    def percentile(self, q: PoseVector) -> float:
        """The percentage of training poses that are less likely than this one."""
        return float(np.interp(self.log_likelihood(q), self.quantiles, np.arange(101)))

    def _log_density(self, maps: Float[Array, "poses maps"]) -> Float[Array, "poses"]:
        from scipy.special import logsumexp

        terms = np.empty((len(maps), len(self.means)))
        for k, (mean, precision) in enumerate(zip(self.means, self._precisions, strict=True)):
            gap = maps - mean
            terms[:, k] = -0.5 * np.einsum("ij,ij->i", gap @ precision, gap) + self._log_normalisers[k]
        return np.asarray(logsumexp(terms + np.log(self.shares), axis=1))


class GaussianGuide(PredictingGuide):
    """The Gaussian process of section 4.3 for one set of handles."""

    def __init__(self, prior: GaussianPrior, handles: Handles) -> None:
        super().__init__(prior.space, handles)
        inputs, gaps = poses.handle_positions(prior.space, prior.means, handles), prior.means - prior.mean
        within = np.einsum("k,kij->ij", prior.shares, prior.covariances)
        whole = within + (prior.shares[:, None] * gaps).T @ gaps  # of the whole mixture
        if len(handles) == 0:
            self._predictor = GaussianPredictor.constant(prior.mean, whole)
            return
        fitted = self.regression = regression.fit(
            inputs.reshape(len(inputs), -1), prior.means, groups=poses.limb_groups(prior.space, handles),
            blocks=prior.blocks, centre=prior.means.mean(axis=0),
        )  # fmt: skip
        groups = fitted.groups
        self._predictor = GaussianPredictor(
            inputs, fitted.columns, groups.unit, groups.weights, fitted.coefficients, groups.order,
            groups.ends, fitted.centre, LENDING * regression.spacing(fitted.columns.T), prior.covariances,
            WHOLE_SHARE * poses.unmoved_apart(prior.space, handles, whole),
        )  # fmt: skip

    @property
    def predictor(self) -> GaussianPredictor:
        """The process in the form of the compiled core."""
        return self._predictor

    def __call__(self, targets: Points) -> MapsGaussian:
        """Mean (Eq. 9) and positive definite covariance of the pose for these targets."""
        return self.resumed(_AT_ORIGIN, np.ascontiguousarray(targets)).maps

    def place_root(self, targets: Points) -> tuple[Float[Array, "3"], Float[Array, "4"]]:
        """The root of the cluster whose handles fit best in a rigid alignment, kept upright if that is enough."""
        root = np.empty(ROOT_SIZE)
        closest_root(self._predictor.points, np.ascontiguousarray(targets), root, False)
        return root[:3], root[3:]


_AT_ORIGIN = np.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0])


class GaussianPredictor(NamedTuple):
    """The process of section 4.3 for one set of handles, in the arrays of the compiled core."""

    points: Array  # (clusters, handles, 3): the handle positions of each cluster's mean
    columns: Array  # the same, flat, clusters last; this and the next six as in `gp.regression`
    unit: Array
    weights: Array
    coefficients: Array
    order: Array
    ends: Array
    centre: Array
    lending: float  # metres: distance over which clusters share their covariances
    covariances: Array
    floor: Array  # part of every covariance

    @classmethod
    def constant(cls, mean: Array, covariance: Array) -> GaussianPredictor:
        """Without handles: the mean and covariance of all poses, in arrays of the same types to avoid recompilation."""
        size, none = len(mean), np.empty(0, dtype=np.int64)
        nothing = np.empty((0, 0, 3)), np.empty((0, 0)), none, np.empty((0, 0)), np.empty((0, 0))
        covariances = read_only(np.empty((0, size, size)))
        return cls(*nothing, np.arange(size), none, mean, 1.0, covariances, covariance)


def _predict(predictor: GaussianPredictor, targets: Array, mean: Array, covariance: Array) -> None:
    """Mean (Eq. 9) and positive definite covariance of the pose for these targets."""
    distances = np.empty(len(predictor.points))
    mean[:] = 0.0
    add_prediction(
        LAPLACIAN, 1.0, targets.ravel(), predictor.columns, predictor.unit, predictor.weights,
        predictor.coefficients, predictor.order, predictor.ends, predictor.centre, mean, distances,
    )  # fmt: skip
    mix_covariances(distances, predictor.lending, predictor.covariances, predictor.floor, covariance)


def _place_root(predictor: GaussianPredictor, targets: Array, root: Array) -> None:
    closest_root(predictor.points, targets, root, False)


answer_from_handles(GaussianPredictor, predict_by=_predict, place_root_by=_place_root)


@compiled
def mix_covariances(
    distances: Array, lending: float, covariances: Array, floor: Array, covariance: Array
) -> None:
    """Add the floor and the nearest clusters' covariances, by positive weights that sum to one, after the root's."""
    size, root = len(floor), len(covariance) - len(floor)
    nearest = nearest_few(distances, STRONGEST)
    shares = np.exp((distances[nearest[:1]] - distances[nearest]) / lending)
    shares /= shares.sum()
    for i in range(size):
        row = covariance[root + i, root:]
        for k in range(size):
            row[k] = floor[i, k]
        for which in range(len(nearest)):
            share, own = shares[which], covariances[nearest[which], i]
            for k in range(size):
                row[k] += share * own[k]


@compiled
def nearest_few(distances: Array, count: int) -> Array:
    """Indices of the smallest distances, in order, by insertion: for a few of many."""
    found = np.empty(min(count, len(distances)), dtype=np.int64)
    held = 0
    for j in range(len(distances)):
        if held == len(found) and distances[j] >= distances[found[held - 1]]:
            continue
        place = held if held < len(found) else held - 1
        while place > 0 and distances[found[place - 1]] > distances[j]:
            found[place] = found[place - 1]
            place -= 1
        found[place] = j
        held = min(held + 1, len(found))
    return found
