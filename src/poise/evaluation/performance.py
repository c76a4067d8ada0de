"""Protocol `performance` (Chai and Hodgins 2005, Fig. 6): a few markers of an unseen recording in, the body out.

Only markers are given; the root follows from those on the torso. Methods: nearest, lwr, pca, mixture, chai2005 (as
published), `local` as in `poise perform`, and the priors of other protocols with the root solved. The methods
`orientations` and `orientations-nearest` use no markers, only the rotations of six segments: the first is `poise
perform` with sensors, the second the example with the most similar signals. Neither gets the performer's position, so
joints are compared relative to the root; the drift of the root over the floor is not part of any figure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from poise.capture.matching import LOCOMOTION, WITH_HEAD, marker_layout
from poise.capture.performance import SIX, OrientationPerformance, Performance
from poise.errors import InvalidValueError
from poise.evaluation.methods import method_named
from poise.evaluation.metrics import Joints, Recovered, Scores
from poise.evaluation.published.subspaces import BASELINES, Baseline
from poise.evaluation.report import ABOUT, Protocol, RecoveredFrames, Request, Row, timed
from poise.evaluation.splits import Fold
from poise.geometry import rotations
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.motion.virtual_markers import virtual_markers
from poise.motion.world import joint_transforms
from poise.priors.abilities import examples_of
from poise.priors.local.control import Control
from poise.priors.local.examples import LAG, Examples
from poise.priors.local.prior import PUBLISHED, LocalPrior
from poise.priors.prior import Prior
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import Handle, PoseSpace
from poise.solvers.constraints import Position
from poise.solvers.solve import Solver
from poise.types import Array, NamedProgress, silent

LOCAL = "local"
DEFAULT_METHODS = (*BASELINES, PUBLISHED, LOCAL, "gaussian-100")
WITHOUT_HEAD = ("walk", "locomotion")


class Answered(NamedTuple):
    """Pose vectors, the seconds of each, and the dimension of each frame's subspace where there is one."""

    poses: Float[Array, "frames size"]
    seconds: Float[Array, "frames"]
    dimensions: Int[Array, "frames"] | None = None


Reconstruction = Callable[[Markers, int], Answered]
"""From a take, with the stride of wanted poses, to the poses."""


def markers_for(split: str) -> tuple[str, ...]:
    """The paper's marker set for a split, with the head only if it adds information to the torso."""
    return LOCOMOTION if split in WITHOUT_HEAD else WITH_HEAD


def evaluate_performance(
    folds: Sequence[Fold],
    *,
    methods: Sequence[str] = DEFAULT_METHODS,
    markers: Sequence[str] = WITH_HEAD,
    stride: int = 1,
    joints: Joints = "all",
    progress: NamedProgress = silent,
) -> list[Row]:
    """A row of metrics per method, over the test clips of all folds."""
    if stride < 1:
        raise InvalidValueError(f"the stride must be at least 1 frame; got {stride}")
    learners = [(name, _learner(name, markers)) for name in methods]
    scores = {name: Scores(joints) for name in methods}
    steps, done = len(methods) * sum(len(fold.test) for fold in folds), 0
    for fold in folds:
        for name, learn in learners:
            progress(name, done, steps)
            recovery = learn(fold.train)
            for clip in fold.test:
                scores[name].add(recovery(clip, stride))
                done += 1
                progress(name, done, steps)
    rows: list[Row] = [{"method": name, **score.metrics()} for name, score in scores.items()]
    for row in rows:
        if row["method"] in ORIENTATION_METHODS:  # without markers, no marker was reached
            for key in [key for key in row if key.startswith(("handle", "reached"))]:
                del row[key]
    return rows


SetUp = Callable[[Motion, dict[str, Handle]], tuple[PoseSpace, Reconstruction]]


def recover(set_up: SetUp, clip: Motion, markers: Sequence[str], *, stride: int = 1) -> Recovered:
    """One clip from its markers."""
    layout = marker_layout(clip.skeleton, markers, samples=clip.rotations[:: max(1, len(clip) // 50)])
    space, reconstruct = set_up(clip, layout)
    take = virtual_markers(clip, layout)
    poses, seconds, dimensions = reconstruct(take, stride)
    failed = int((~np.isfinite(poses).all(axis=1)).sum())
    reached = space.points(np.nan_to_num(poses), space.handles(list(layout.values())))
    distances = np.linalg.norm(reached - take.points[::stride], axis=-1)
    true = clip.root_positions[::stride], clip.rotations[::stride]
    found = space.frames_from_q(np.nan_to_num(poses))
    return Recovered(space, *found, *true, distances, seconds, failed=failed, dimensions=dimensions)


def _learner(name: str, markers: Sequence[str]) -> Callable[[Sequence[Motion]], Recovery]:
    if name in ORIENTATION_METHODS:
        return ORIENTATION_METHODS[name]
    method = None if name in (*BASELINES, LOCAL, PUBLISHED) else method_named(name)

    def learn(train: Sequence[Motion]) -> Recovery:
        if method is not None:
            method.learn(train)
            prior = getattr(method, "prior", None)
            if prior is None:
                raise InvalidValueError(f"{name} has no learned prior to perform with")
            set_up = _solved(prior, Examples.of_motions(train))
        elif name in BASELINES:
            set_up = _baseline(name, Examples.of_motions(train))
        elif name == LOCAL:
            set_up = local_set_up(LocalPrior.learn(train))
        else:
            set_up = local_set_up(LocalPrior.learn(train, method=PUBLISHED), every_frame=True)
        return lambda clip, stride: recover(set_up, clip, markers, stride=stride)

    return learn


def local_set_up(prior: LocalPrior, *, every_frame: bool = False) -> SetUp:
    """The method of `poise perform`, ready for any clip and markers.

    One that uses the last two poses must answer `every_frame` that predicts the next.
    """

    def set_up(clip: Motion, layout: dict[str, Handle]) -> tuple[PoseSpace, Reconstruction]:
        performance = Performance(prior, layout, skeleton=clip.skeleton)

        def reconstruct(take: Markers, stride: int) -> Answered:
            performance.step(take.points[0])
            performance.reset()
            every = _smooth_stride(stride, take.fps) if every_frame else 1
            performance.fps = take.fps / every
            between = performance.step if every_frame else performance.observe
            sizes: list[int | None] = []

            def answer(points: Array) -> Array:
                q = performance.step(points).q
                sizes.append(None if performance.guide is None else performance.guide.dimension)
                return q

            found = timed(answer, take.points[::every], stride // every, between)
            return Answered(*found, None if None in sizes else np.array(sizes))

        return performance.space, reconstruct

    return set_up


def _baseline(name: str, examples: Examples) -> SetUp:
    learned: list[Baseline] = []  # pose models are shared by all bodies

    def set_up(clip: Motion, layout: dict[str, Handle]) -> tuple[PoseSpace, Reconstruction]:
        body = examples.on_body(clip.skeleton)
        handles = body.space.handles(list(layout.values()))
        if not learned:
            learned.append(BASELINES[name](body, handles))
        baseline = learned[0].worn(body, handles)

        def reconstruct(take: Markers, stride: int) -> Answered:
            baseline.step(take.points[0])
            baseline.reset()
            every = _smooth_stride(stride, take.fps)
            return Answered(*timed(baseline.step, take.points[::every], stride // every, baseline.step))

        return body.space, reconstruct

    return set_up


def _solved(prior: Prior, examples: Examples) -> SetUp:
    """Another prior, whose solver finds the root too, starting from the torso."""

    def set_up(clip: Motion, layout: dict[str, Handle]) -> tuple[PoseSpace, Reconstruction]:
        model = prior.on_body(clip.skeleton)
        body = examples.on_body(clip.skeleton)
        control = Control.of(body, body.space.handles(list(layout.values())))
        constraints = [Position(handle, (0.0, 0.0, 0.0)) for handle in layout.values()]
        solver = Solver(model, constraints, root="solved")
        last = np.concatenate([np.zeros(ROOT_SIZE), model.mean])

        def answer(markers: Array) -> Array:
            turns, places = control.torso.frames(markers[None])
            last[:ROOT_SIZE] = np.concatenate([places[0], rotations.quaternion_from_matrix(turns[0])])
            last[:] = solver.solve(last.copy(), targets=markers).q
            return last.copy()

        def reconstruct(take: Markers, stride: int) -> Answered:
            answer(take.points[0])
            last[ROOT_SIZE:] = model.mean
            return Answered(*timed(answer, take.points[::stride]))

        return model.space, reconstruct

    return set_up


def _smooth_stride(stride: int, fps: float) -> int:
    """The largest step within a stride at which two frames predict the next."""
    most = max(1, round(fps * LAG))
    return next(step for step in range(min(stride, most), 0, -1) if stride % step == 0)


Recovery = Callable[[Motion, int], Recovered]
"""From a clip, with the stride at which poses are wanted, to what was recovered."""

# --- from the orientations of six segments ---------------------------------------------------------------------------

_Answer = Callable[[Float[Array, "sensors 4"]], Float[Array, "size"]]


def recover_turned(
    prior: LocalPrior, clip: Motion, stride: int, answer: Callable[[OrientationPerformance], _Answer]
) -> Recovered:
    """Evaluate one clip from the rotations of six of its segments."""
    performance = OrientationPerformance(prior, SIX, skeleton=clip.skeleton, fps=clip.fps)
    turns = joint_transforms(clip)[1][:, performance.sensors.joints]
    orientations = rotations.quaternion_from_matrix(turns)
    performance.step(orientations[0])
    performance.reset()
    poses, seconds = timed(answer(performance), orientations, stride, performance.observe)
    _, found = performance.space.frames_from_q(poses)
    truth = clip[::stride]
    places, unseen = truth.root_positions, np.zeros((len(poses), 1))
    return Recovered(performance.space, places, found, places, truth.rotations, unseen, seconds)


def _nearest(performance: OrientationPerformance) -> _Answer:
    guide, examples = performance.guide, examples_of(performance.prior)
    assert guide is not None, "a local model follows sensors"
    scales = guide.regression.scales
    scaled = guide.inputs * scales

    def answer(orientations: Float[Array, "sensors 4"]) -> Float[Array, "size"]:
        turned = performance.observe(orientations)
        gaps = scaled - scales * guide.signals(turned, turned[0])
        nearest = int(np.argmin(np.einsum("ij,ij->i", gaps, gaps)))
        return np.concatenate([np.zeros(3), turned[0], examples.q[nearest, ROOT_SIZE:]])

    return answer


def _method(answer: Callable[[OrientationPerformance], _Answer]) -> Callable[[Sequence[Motion]], Recovery]:
    def learn(train: Sequence[Motion]) -> Recovery:
        prior = LocalPrior.learn(train)
        return lambda clip, stride: recover_turned(prior, clip, stride, answer)

    return learn


ORIENTATION_METHODS: Mapping[str, Callable[[Sequence[Motion]], Recovery]] = {
    "orientations": _method(lambda performance: lambda turns: performance.step(turns).q),
    "orientations-nearest": _method(_nearest),
}


def _run(request: Request, progress: NamedProgress) -> list[Row]:
    methods, markers = request.methods or DEFAULT_METHODS, markers_for(request.split)
    return evaluate_performance(
        request.folds(), methods=methods, markers=markers, progress=progress, **vars(request.options)
    )


PROTOCOL = Protocol(
    "performance",
    ABOUT["performance"],
    _run,
    figures={"performance": "accuracy_figure"},
    methods=(*DEFAULT_METHODS, *ORIENTATION_METHODS),
    Options=RecoveredFrames,
)
