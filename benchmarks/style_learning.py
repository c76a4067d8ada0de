"""Learning a style from 500 frames of walking, against GPy's full GPLVM on the same features (where it is installed).

100 active points and 3 latent dimensions; GPy's GPLVM with an RBF kernel and 200 iterations of L-BFGS, from principal
components. It has no scales of its own, so it learns twice, from plain features and from features of unit variance, and
the better figure of each row is taken. Frames never learned from are placed in each latent space by the same search,
and what the model makes of them is compared with what they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.table import Row, best_seconds
from poise import performer
from poise.formats import read
from poise.gp import latent
from poise.gp.covariance import Kernel
from poise.gp.latent import PlacingLoss, log_evidence, place, place_new
from poise.gp.process import Posterior
from poise.motion.motion import Motion
from poise.motion.recordings import find_recordings
from poise.priors.latent.model import Features, LatentModel
from poise.priors.poses import pose_space_of
from poise.priors.style.prior import (
    TrainingPoses,
    add_poses,
    learn_model,
    placing_loss_of,
    thinned,
    training_poses,
)

FRAMES, ACTIVE, DIMENSIONS, ITERATIONS = 500, 100, 3, 200
LONG_FRAMES = 20_000
RECORDED = {
    "07_01 and 07_02": ("cmu/07_01.bvh", "cmu/07_02.bvh"),
    "124_01": ("cmu/124_01.bvh",),
    "13_18 and 14_02": ("cmu/13_18.bvh", "cmu/14_02.bvh"),
    "an old and a proud walk": ("bandai/*walk_old_001.bvh", "bandai/*walk_proud_001.bvh"),
}

Array = np.ndarray


@dataclass(frozen=True)
class Result:
    """The learning time, and the results on unseen poses."""

    seconds: float
    degrees: float
    log_likelihood: float


def run() -> list[Row]:
    """Learning times, errors and likelihoods on unseen poses, ours and GPy's in one run."""
    poses, unseen = _poses()
    latent.start(poses.centred, dimensions=DIMENSIONS, active=ACTIVE)  # compiles what is compiled
    ours = {name: _ours(poses, unseen, name) for name in ("heuristic", "full")}
    theirs = _gpy(poses, unseen) if find_spec("GPy") else None
    rows = [row for name, result in ours.items() for row in _rows(name, result, theirs)]
    added = [row for name, data in (("the walk", poses), *_recorded()) for row in _adding(name, data)]
    return [*rows, _evaluation(poses), *added, _long(poses)]


def _rows(name: str, ours: Result, theirs: Result | None) -> list[Row]:
    note = "" if theirs else "GPy is not installed: make learning"

    def row(what: str, unit: str, get: Callable[[Result], float]) -> Row:
        peer = None if theirs is None else get(theirs)
        return Row(f"{name}: {what}", get(ours), unit, peer=peer, peer_name="GPy", note=note)

    return [
        row(f"learning {FRAMES} frames", "s", lambda result: result.seconds),
        row("angles of unseen poses, rms", "degrees", lambda result: result.degrees),
        row("log-likelihood of unseen poses (more is better)", "nats", lambda result: result.log_likelihood),
    ]


def _poses() -> tuple[TrainingPoses, Array]:
    clip, other = (_walk(seed=seed, seconds=FRAMES / 30.0) for seed in (1, 2))
    space = pose_space_of([clip])
    poses, _ = training_poses(space, [clip], Features(space))
    unseen, _ = training_poses(space, [other], Features(space))
    return poses, unseen.y[::2]


def _walk(*, seed: int, seconds: float) -> Motion:
    return performer.act("walk", seconds=seconds, fps=30.0, seed=seed)


def _ours(poses: TrainingPoses, unseen: Array, algorithm: str) -> Result:
    seconds, model = _timed(
        lambda: learn_model(poses, dimensions=DIMENSIONS, active=ACTIVE, algorithm=algorithm)
    )
    return _judged(seconds, placing_loss_of(model, poses.varying), poses, unseen)


def _gpy(poses: TrainingPoses, unseen: Array) -> Result:
    """The better of plain features and features of unit variance, row by row."""
    deviations = poses.centred.std(axis=0)
    plain = np.full_like(deviations, np.sqrt(np.mean(deviations**2)))
    results = [_gpy_learned(poses, unseen, 1.0 / unit) for unit in (plain, deviations)]
    return Result(
        min(result.seconds for result in results),
        min(result.degrees for result in results),
        max(result.log_likelihood for result in results),
    )


def _gpy_learned(poses: TrainingPoses, unseen: Array, scales: Array) -> Result:
    gpy, scaled = import_module("GPy"), poses.centred * scales
    start = latent.principal_latents(scaled, DIMENSIONS)

    def learn() -> Any:
        model = gpy.models.GPLVM(scaled, DIMENSIONS, X=start.copy(), kernel=gpy.kern.RBF(DIMENSIONS))
        model.optimize("lbfgsb", max_iters=ITERATIONS)
        return model

    seconds, model = _timed(learn)
    variance, width = float(model.kern.variance[0]), float(model.kern.lengthscale[0])
    logs = np.log([variance, 1.0 / float(model.likelihood.variance[0]), width**-2.0])
    loss = PlacingLoss(Posterior.given(Kernel.of("rbf", logs), np.array(model.X), poses.centred), scales)
    return _judged(seconds, loss, poses, unseen)


def _judged(seconds: float, loss: PlacingLoss, poses: TrainingPoses, unseen: Array) -> Result:
    centred = (unseen - poses.mean)[:, poses.varying]
    placed, _ = place_new(loss, centred)
    made = loss.process.mean(placed)
    angles = poses.features.groups[poses.varying] == 0
    degrees = np.degrees(np.sqrt(np.mean((made - centred)[:, angles] ** 2)))
    return Result(seconds, float(degrees), float(log_evidence(loss, centred, placed).mean()))


def _evaluation(poses: TrainingPoses) -> Row:
    fit = latent.start(poses.centred, dimensions=DIMENSIONS, active=ACTIVE)
    (seconds,) = best_seconds(lambda: latent.training_loss(poses.centred, fit.latents, fit.kernel))
    return Row(f"L_GP of {FRAMES} poses with its gradient", seconds * 1e3, "ms")


def _adding(name: str, poses: TrainingPoses) -> list[Row]:
    """The last fifth added to a style of the rest, against learning all with the same settings."""
    first = replace(poses, y=poses.y[: len(poses.y) * 4 // 5])
    settings: dict[str, Any] = {"dimensions": DIMENSIONS, "active": ACTIVE}
    model = learn_model(first, **settings)
    adding, added = _cheapest(lambda: add_poses(model, poses.y[len(first.y) :]))
    learning, again = _cheapest(lambda: learn_model(poses, **settings))
    ours, theirs = (_own_likelihood(one, poses) for one in (added, again))
    what = f"adding {len(poses.y) - len(first.y)} poses of {name}"
    return [
        Row(what, adding, "s", peer=learning, peer_name="learning all again"),
        Row(f"{what}: log-likelihood of all", ours, "nats", peer=theirs, peer_name="learning all again"),
    ]


def _recorded() -> list[tuple[str, TrainingPoses]]:
    """Recorded clips, if available."""
    folder = find_recordings()
    found = []
    for name, patterns in RECORDED.items():
        files = [file for pattern in patterns for file in sorted(folder.glob(pattern))[:1]] if folder else []
        if len(files) == len(patterns):
            clips = thinned([clip for clip in map(read, files) if isinstance(clip, Motion)])
            space = pose_space_of(clips)
            found.append((name, training_poses(space, clips, Features(space))[0]))
    return found


def _own_likelihood(model: LatentModel, poses: TrainingPoses) -> float:
    loss = placing_loss_of(model, poses.varying)
    placed, _ = place(loss, poses.centred, model.latents)
    return float(log_evidence(loss, poses.centred, placed).mean())


def _long(poses: TrainingPoses) -> Row:
    clips = [_walk(seed=seed, seconds=LONG_FRAMES / 300.0) for seed in range(10)]
    space = poses.features.space
    many, _ = training_poses(space, clips, poses.features)
    seconds, _ = _timed(lambda: learn_model(many))
    return Row(f"learning {len(many.y):,} frames, all choices left open", seconds, "s")


def _timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = function()
    return time.perf_counter() - start, result


def _cheapest(function: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds, the least of three, and the result."""
    seconds, result = [], None
    for _ in range(3):
        start = time.process_time()
        result = function()
        seconds.append(time.process_time() - start)
    return min(seconds), result
