"""Learning a latent space of two walks and two runs, against GPy's GPLVM on the same features (where it is installed).

Three latent dimensions, an RBF kernel, features of unit variance, 200 iterations of L-BFGS from principal components;
the plain GPLVM of the motion models, with one scale for all features as GPy has it. Recordings where there are any, the
performer otherwise. Times are of the processor; ours has a dynamics fitted to the points as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.table import Row
from poise.evaluation.splits import load_split, performer_gaits
from poise.motion.recordings import find_recordings
from poise.priors.dynamics.learning import Learned, learn_motion
from poise.priors.dynamics.prior import DynamicsPrior
from poise.priors.dynamics.sequences import Sequences, sequences_of
from poise.priors.dynamics.structure import MODELS
from poise.priors.style import fitting

DIMENSIONS, ITERATIONS, RUNS = 3, 200, 3

Array = np.ndarray


def run() -> list[Row]:
    """Reconstruction of the training poses, and time, ours and GPy's in one run."""
    recorded = find_recordings() is not None
    (fold,) = load_split("gaits") if recorded else performer_gaits()
    sequences = sequences_of(fold.train)
    ours, seconds = _best(lambda: learn_motion(sequences, MODELS["gplvm"], steps=ITERATIONS, scaling="one"))
    error, their_error, their_seconds = _error(ours, sequences), None, None
    if find_spec("GPy"):
        theirs, their_seconds = _best(lambda: _gpy(sequences.scaled))
        their_error = _rms(theirs.predict(np.array(theirs.X))[0] - sequences.scaled)
    note = f"{len(sequences.y)} frames of {'recordings' if recorded else 'the performer'}"
    return [
        Row("gplvm: rms of unit-variance features", error, "", peer=their_error, peer_name="GPy", note=note),
        Row("gplvm: learning", seconds, "s", peer=their_seconds, peer_name="GPy", note=note),
    ]


def _error(learned: Learned, sequences: Sequences) -> float:
    found = DynamicsPrior.of_learned(learned).predict_all(learned.latents)[:, sequences.varying]
    return _rms((found - sequences.y[:, sequences.varying]) / sequences.centred.std(axis=0))


def _rms(left: Array) -> float:
    return float(np.sqrt(np.mean(left**2)))


def _gpy(scaled: Array) -> Any:
    gpy = import_module("GPy")
    start = fitting.principal_latents(scaled, DIMENSIONS)
    model = gpy.models.GPLVM(scaled, DIMENSIONS, X=start.copy(), kernel=gpy.kern.RBF(DIMENSIONS))
    model.optimize("lbfgsb", max_iters=ITERATIONS)
    return model


def _best(learn: Callable[[], Any]) -> tuple[Any, float]:
    """What is learned, and the least processor time of a few runs."""
    seconds, learned = [], None
    for _ in range(RUNS):
        start = time.process_time()
        learned = learn()
        seconds.append(time.process_time() - start)
    return learned, min(seconds)
