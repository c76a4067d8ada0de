"""Protocol `reduction` (Chai and Hodgins 2005, Fig. 5): the reconstruction error of poses by number of dimensions.

All clips of a split are one database. Each method reduces poses to B dimensions and reconstructs them; the error is
the mean angle between input and output. `local` reduces every pose in the subspace of its nearest neighbours, without
itself; the Gaussian process latent variable model is learned if the database is small enough, as published.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from poise.errors import UnknownNameError
from poise.evaluation.metrics import mean_degrees
from poise.evaluation.published.subspaces import (
    COUNTS,
    Subspace,
    candidates,
    cluster_subspaces,
    principal_subspace,
)
from poise.evaluation.report import ABOUT, Protocol, Row
from poise.evaluation.splits import Fold
from poise.motion.motion import Motion
from poise.priors.local.examples import Examples
from poise.priors.style.prior import StylePrior
from poise.skeleton.kernels import ROOT_SIZE
from poise.types import Array, NamedProgress, silent

Curve = dict[int, float]

DIMENSIONS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 23, 27, 32, 38, 45)
JUDGED = 400  # poses on which the error is measured
LOCAL_DIMENSIONS = tuple(range(1, 11))
CLUSTERS = 40
GPLVM_DIMENSIONS = (1, 2, 3, 4)
GPLVM_POSES = 3000  # larger databases are too much for one model, as in the paper
ENOUGH = 1.0  # degrees


def evaluate_reduction(
    folds: Sequence[Fold], *, methods: Sequence[str] = (), progress: NamedProgress = silent
) -> list[Row]:
    """A row per method: the dimensions it needs for one degree, and its error at every dimension."""
    names = tuple(methods) or tuple(METHODS)
    for name in names:
        if name not in METHODS:
            raise UnknownNameError("method of reduction", name, METHODS)
    clips = list({id(clip): clip for fold in folds for clip in (*fold.train, *fold.test)}.values())
    examples = Examples.of_motions(clips)
    rows: list[Row] = []
    for number, name in enumerate(names):
        progress(name, number, len(names))
        curve = METHODS[name](examples, clips)
        needed = [dimension for dimension, error in curve.items() if error <= ENOUGH]
        missing = f"over {max(curve)}" if curve else "too large"
        row: Row = {"method": name, "dimensions_for_1_deg": min(needed) if needed else missing}
        rows.append(row | {f"deg_at_{dimension}": error for dimension, error in curve.items()})
    return rows


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
    judged, maps = _judged(examples), examples.maps
    best: list[dict[int, tuple[float, Subspace]]] = []
    for pose in judged:
        gaps = maps - maps[pose]
        distances = np.einsum("ij,ij->i", gaps, gaps)
        distances[pose] = np.inf
        near = np.argpartition(distances, min(COUNTS[-1], len(distances) - 1))[: COUNTS[-1]]
        own: dict[int, tuple[float, Subspace]] = {}
        for _, whole, errors in candidates(maps[near[np.argsort(distances[near])]], LOCAL_DIMENSIONS[-1]):
            for b in LOCAL_DIMENSIONS[: len(errors)]:
                if b not in own or errors[b - 1] < own[b][0]:
                    own[b] = float(errors[b - 1]), whole.cut(b)
        best.append(own)
    return {b: _error(examples, judged, [own[b][1] for own in best]) for b in LOCAL_DIMENSIONS}


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
        curve[dimensions] = mean_degrees(found, q[:, ROOT_SIZE:])
    return curve


METHODS: Mapping[str, Callable[[Examples, Sequence[Motion]], Curve]] = {
    "pca": pca,
    "mixture": mixture,
    "gplvm": gplvm,
    "local": local,
}


def _judged(examples: Examples) -> Array:
    return np.unique(np.linspace(0, len(examples) - 1, JUDGED).astype(int))


def _error(examples: Examples, judged: Array, subspaces: Sequence[Subspace]) -> float:
    found = np.stack([one.project(examples.maps[k]) for one, k in zip(subspaces, judged, strict=True)])
    return mean_degrees(found, examples.maps[judged])


PROTOCOL = Protocol(
    "reduction",
    ABOUT["reduction"],
    lambda request, progress: evaluate_reduction(request.folds(), methods=request.methods, progress=progress),
    figures={"reduction": "reduction_figure"},
    methods=tuple(METHODS),
)
