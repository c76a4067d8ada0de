"""Learning a latent space of two walks and two runs, against GPy and GPyTorch on the same features (where installed).

Three latent dimensions, an RBF kernel, features of unit variance, from principal components; the plain GPLVM of the
motion models, with one scale for all features as the others have it. Beside GPy 200 iterations of L-BFGS; beside
GPyTorch each until it stalls, by one rule: exactly, and on as many inducing points (ours are frames, GPyTorch's move
freely). Walks and runs never seen are placed in each latent space by the same search. Recordings where
there are any, the performer otherwise. Times are of the processor; ours has a dynamics fitted as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from importlib import import_module
from importlib.util import find_spec

import numpy as np

from benchmarks.latent_models import LatentModel, stalled
from benchmarks.table import Row
from poise.evaluation.splits import GAITS, Fold, performer_gaits, split_of_files
from poise.gp import latent
from poise.motion.recordings import find_recordings
from poise.priors.dynamics.learning import Learned, learn_motion
from poise.priors.dynamics.sequences import Sequences, sequences_of
from poise.priors.dynamics.structure import MODELS

DIMENSIONS, ITERATIONS, RUNS = 3, 200, 3
MOST_ITERATIONS = 2000  # within which ours stalls
UNSEEN = tuple(f"35_{number:02d}" for number in (2, 4, 5, 6, 7, 18, 20, 21, 22, 23))  # five walks, five runs
INDUCING = 50  # points, where there are such

Array = np.ndarray


@dataclass(frozen=True)
class Data:
    """The training and evaluation data for all models."""

    fold: Fold

    @cached_property
    def sequences(self) -> Sequences:
        """The training frames."""
        return sequences_of(self.fold.train)

    @cached_property
    def scaled(self) -> Array:
        """Their features, of unit variance."""
        return self.sequences.scaled

    @cached_property
    def unseen(self) -> Array:
        """Features of the unseen frames, in the same units."""
        own, count = self.sequences, len(self.sequences.y)
        everything = sequences_of([*self.fold.train, *self.fold.test]).y
        return np.asarray((everything[count:] - own.mean)[:, own.varying] / own.centred.std(axis=0))

    @cached_property
    def start(self) -> Array:
        """The common initial latent points."""
        return latent.principal_latents(self.scaled, DIMENSIONS)


def run() -> list[Row]:
    """Reconstruction of training and unseen poses, and time, ours and each peer's in one run."""
    (fold,) = _recorded() or performer_gaits()
    data = Data(fold)
    gpy = partial(_gpy, data) if find_spec("GPy") else None
    rows = _rows(data, partial(_ours, data, ITERATIONS), "GPy", gpy)
    return rows + _beside_gpytorch(data) if find_spec("gpytorch") else rows


def _recorded() -> list[Fold]:
    folder = find_recordings()
    if folder is None:
        return []
    return split_of_files(*([folder / "cmu" / f"{name}.bvh" for name in names] for names in (GAITS, UNSEEN)))


def _beside_gpytorch(data: Data) -> list[Row]:
    theirs = import_module("benchmarks.gpytorch_models")
    ours = [partial(_ours, data, _steps_until_stall(data, points), points) for points in (None, INDUCING)]
    exact = partial(theirs.exact, data.scaled, data.start)
    inducing = partial(theirs.inducing, data.scaled, data.start, INDUCING)
    return [
        *_rows(data, ours[0], "GPyTorch", exact),
        *_rows(data, ours[1], f"GPyTorch, {INDUCING} inducing", inducing, runs=1),
    ]


def _rows(
    data: Data,
    our_learn: Callable[[], LatentModel],
    peer_name: str,
    learn: Callable[[], LatentModel] | None,
    *,
    runs: int = RUNS,
) -> list[Row]:
    ours, seconds = _best(our_learn, RUNS)
    theirs, their_seconds = (None, None) if learn is None else _best(learn, runs)
    note = f"{len(data.scaled)} frames, {ours.steps} iterations" + (f" and {theirs.steps}" if theirs else "")

    def row(what: str, unit: str, figure: float, peer: float | None) -> Row:
        return Row(f"gplvm: {what}", figure, unit, peer=peer, peer_name=peer_name, note=note)

    def error(what: str, of: Callable[[LatentModel], float]) -> Row:
        return row(f"rms of {what}", "", of(ours), None if theirs is None else of(theirs))

    return [
        error("poses learned from", lambda model: model.learned_error(data.scaled)),
        error("poses never seen", lambda model: model.unseen_error(data.unseen)),
        row("learning", "s", seconds, their_seconds),
    ]


def _ours(data: Data, steps: int, inducing: int | None = None) -> LatentModel:
    learned, deviations = _learned(data, steps, inducing), data.sequences.centred.std(axis=0)
    active, variance = learned.latents[learned.active], float(learned.scales[0] * deviations[0]) ** -2.0
    noise = learned.kernel.noise_variance * variance
    return LatentModel(
        learned.latents, active, learned.outputs / deviations, variance, noise, len(learned.curve)
    )


def _steps_until_stall(data: Data, inducing: int | None) -> int:
    curve = list(_learned(data, MOST_ITERATIONS, inducing).curve / len(data.scaled))
    return next((steps for steps in range(1, len(curve)) if stalled(curve[:steps])), len(curve))


def _learned(data: Data, steps: int, inducing: int | None) -> Learned:
    return learn_motion(data.sequences, MODELS["gplvm"], steps=steps, scaling="one", inducing=inducing)


def _gpy(data: Data) -> LatentModel:
    gpy = import_module("GPy")
    model = gpy.models.GPLVM(data.scaled, DIMENSIONS, X=data.start.copy(), kernel=gpy.kern.RBF(DIMENSIONS))
    model.optimize("lbfgsb", max_iters=ITERATIONS)
    latents = np.array(model.X) / float(model.kern.lengthscale[0])
    variance, noise = float(model.kern.variance[0]), float(model.likelihood.variance[0])
    return LatentModel(latents, latents, data.scaled, variance, noise, ITERATIONS)


def _best(learn: Callable[[], LatentModel], runs: int) -> tuple[LatentModel, float]:
    """The learned model, and the least processor time of several runs."""
    seconds = []
    for _ in range(runs):
        start = time.process_time()
        learned = learn()
        seconds.append(time.process_time() - start)
    return learned, min(seconds)
