"""Protocol `reduction` (Chai and Hodgins 2005, Fig. 5): the reconstruction error of poses by number of dimensions.

All clips of a split are one database. Each method reduces poses to B dimensions and reconstructs them; the error is
the mean angle between input and output. `local` reduces every pose in the subspace of its nearest neighbours, without
itself; the Gaussian process latent variable model is learned if the database is small enough, as published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from poise.errors import UnknownNameError
from poise.evaluation.published.subspaces import (
    COUNTS,
    Subspace,
    candidates,
    cluster_subspaces,
    principal_subspace,
)
from poise.evaluation.report import ABOUT, Protocol, Request, Row
from poise.evaluation.splits import Fold
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.priors.local.examples import Examples
from poise.priors.style.prior import StylePrior
from poise.skeleton.kernels import ROOT_SIZE
from poise.types import Array, NamedProgress

Curve = dict[int, float]

DIMENSIONS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 23, 27, 32, 38, 45)
JUDGED = 400  # poses on which the error is measured
LOCAL_DIMENSIONS = tuple(range(1, 11))
CLUSTERS = 40
GPLVM_DIMENSIONS = (1, 2, 3, 4)
GPLVM_POSES = 3000  # larger databases are too much for one model, as in the paper
ENOUGH = 1.0  # degrees


def evaluate_reduction(
    folds: Sequence[Fold],
    *,
    methods: Sequence[str] = (),
    progress: Callable[[str, int, int], None] = lambda _name, _done, _all: None,
) -> list[Row]:
    """A row per method: the dimensions it needs for one degree, and its error at every dimension."""
    names = tuple(methods) or tuple(METHODS)
    for name in names:
        if name not in METHODS:
            raise UnknownNameError("method of reduction", name, METHODS)
    clips = _distinct(folds)
    examples = Examples.of_motions(clips)
    rows: list[Row] = []
    for number, name in enumerate(names):
        progress(name, number, len(names))
        rows.append({"method": name, **_summary(METHODS[name](examples, clips))})
    return rows


def _summary(curve: Curve) -> dict[str, float | str]:
    needed = [dimension for dimension, error in curve.items() if error <= ENOUGH]
    missing = f"over {max(curve)}" if curve else "too large"
    row: dict[str, float | str] = {"dimensions_for_1_deg": min(needed) if needed else missing}
    return row | {f"deg_at_{dimension}": error for dimension, error in curve.items()}


def _distinct(folds: Sequence[Fold]) -> list[Motion]:
    """Every clip of a split once."""
    clips = {id(clip): clip for fold in folds for clip in (*fold.train, *fold.test)}
    return list(clips.values())


def pca(examples: Examples, clips: Sequence[Motion]) -> Curve:
    """One subspace for all poses."""
    del clips
    whole, judged = principal_subspace(examples.maps), _judged(examples)
    return {b: _error(examples, judged, [whole.cut(b)] * len(judged)) for b in DIMENSIONS}


def mixture(examples: Examples, clips: Sequence[Motion]) -> Curve:
    """A subspace per cluster."""
    del clips
    labels, subspaces = cluster_subspaces(examples.maps, CLUSTERS, None)
    judged = _judged(examples)
    return {b: _error(examples, judged, [subspaces[labels[k]].cut(b) for k in judged]) for b in DIMENSIONS}


def local(examples: Examples, clips: Sequence[Motion]) -> Curve:
    """A subspace per pose, with the number of nearest neighbours that leave-one-out finds best."""
    del clips
    judged = _judged(examples)
    subspaces = [_local_subspaces(examples.maps[_neighbours(examples.maps, int(k))]) for k in judged]
    return {
        b: _error(examples, judged, [by_dimension[b] for by_dimension in subspaces]) for b in LOCAL_DIMENSIONS
    }


def gplvm(examples: Examples, clips: Sequence[Motion]) -> Curve:
    """The mean pose of a latent variable model at each training pose's own latent point."""
    if len(examples) > GPLVM_POSES:
        return {}
    curve = {}
    for dimensions in GPLVM_DIMENSIONS:
        prior = StylePrior.learn(clips, dimensions=dimensions)
        q = np.concatenate([prior.space.q_from_frames(c.root_positions, c.rotations) for c in clips])
        q = q[:: max(1, len(q) // JUDGED)]
        found = np.stack([prior.pose_at(prior.place(one)[0]) for one in q])
        curve[dimensions] = _degrees(found, q[:, ROOT_SIZE:])
    return curve


METHODS: Mapping[str, Callable[[Examples, Sequence[Motion]], Curve]] = {
    "pca": pca,
    "mixture": mixture,
    "gplvm": gplvm,
    "local": local,
}


def _judged(examples: Examples) -> Array:
    return np.unique(np.linspace(0, len(examples) - 1, JUDGED).astype(int))


def _neighbours(maps: Float[Array, "poses maps"], pose: int) -> Array:
    """The nearest other poses, in order."""
    gaps = maps - maps[pose]
    distances = np.einsum("ij,ij->i", gaps, gaps)
    distances[pose] = np.inf
    near = np.argpartition(distances, min(COUNTS[-1], len(distances) - 1))[: COUNTS[-1]]
    return near[np.argsort(distances[near])]


def _local_subspaces(near: Float[Array, "neighbours maps"]) -> dict[int, Subspace]:
    """For every dimension, the subspace of the number of neighbours with the least leave-one-out error."""
    best: dict[int, tuple[float, Subspace]] = {}
    for _, whole, errors in candidates(near, LOCAL_DIMENSIONS[-1]):
        for b in LOCAL_DIMENSIONS[: len(errors)]:
            if b not in best or errors[b - 1] < best[b][0]:
                best[b] = float(errors[b - 1]), whole.cut(b)
    return {b: subspace for b, (_, subspace) in best.items()}


def _error(examples: Examples, judged: Array, subspaces: Sequence[Subspace]) -> float:
    found = np.stack([one.project(examples.maps[k]) for one, k in zip(subspaces, judged, strict=True)])
    return _degrees(found, examples.maps[judged])


def _degrees(found: Float[Array, "poses maps"], true: Float[Array, "poses maps"]) -> float:
    """The mean angle between rotations about the same references."""
    turned, meant = (
        rotations.quaternion_from_expmap(maps.reshape(len(maps), -1, 3)) for maps in (found, true)
    )
    return float(np.degrees(rotations.geodesic_distance(turned, meant).mean()))


# --- the protocol --------------------------------------------------------------------------------------------------


def _run(request: Request, progress: NamedProgress) -> list[Row]:
    return evaluate_reduction(request.folds(), methods=request.methods, progress=progress)


PROTOCOL = Protocol(
    "reduction",
    ABOUT["reduction"],
    _run,
    figures={"reduction": "reduction_figure"},
    methods=tuple(METHODS),
)
