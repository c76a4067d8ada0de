"""Protocol `handles` (Huang et al. 2017, Table 1 and Fig. 6): five handles of an unseen recording in, the pose out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
from jaxtyping import Float

from poise.engine import Engine
from poise.errors import InvalidValueError, PoiseError
from poise.evaluation.methods import (
    METHODS,
    UNTRAINED,
    Answer,
    Method,
    default_methods,
    method_named,
    training_poses,
)
from poise.evaluation.metrics import Joints, Recovered, Scores
from poise.evaluation.report import (
    ABOUT,
    Protocol,
    RecoveredFrames,
    Report,
    Request,
    Row,
    Step,
    names_from_text,
)
from poise.evaluation.splits import Fold
from poise.formats.tables import Range
from poise.geometry import rotations
from poise.geometry.alignment import rigid_fit
from poise.motion.motion import Motion
from poise.priors.poses import handle_positions
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.solvers.problem import Root
from poise.types import Array, NamedProgress

HANDLES = ("head", "left_hand", "right_hand", "left_foot", "right_foot")
FREE_ROOT_HANDLES = (*HANDLES, "pelvis")


def evaluate_handles(
    folds: Sequence[Fold],
    *,
    methods: Sequence[str],
    stride: int = 1,
    independent: bool = False,
    free_root: bool = False,
    handles: Sequence[str] = (),
    joints: Joints = "all",
    engine: Engine | None = None,
    progress: Callable[[str, int, int], None] = lambda _name, _done, _all: None,
) -> list[Row]:
    """A row of metrics per method, over the test clips of all folds; the engine runs several at once.

    Frames are warm-started from the previous one unless `independent`; `free_root` solves the root too, by default
    from six handles. With several folds, `deg_spread` and `mpjpe_spread_cm` are the standard deviations between them.
    """
    if stride < 1:
        raise InvalidValueError(f"the stride must be at least 1 frame; got {stride}")
    for name in methods:
        method_named(name)  # a wrong name is reported before the work begins
    names = tuple(handles) or (FREE_ROOT_HANDLES if free_root else HANDLES)
    tasks = [
        _HandlesTask(name, alike, stride, independent, free_root, names, joints)
        for name in methods
        for alike in _learned_alike(folds)
    ]
    progress(methods[0], 0, len(tasks))
    scores: dict[str, list[Scores]] = {name: [] for name in methods}
    for count, done in enumerate((engine or Engine()).each(_fold_scores, tasks), start=1):
        if done.value is None:
            raise PoiseError(f"{tasks[done.number].method} was lost: {done.lost}")
        scores[tasks[done.number].method].extend(done.value)
        progress(tasks[done.number].method, count, len(tasks))
    return [{"method": name, **_over_folds(found)} for name, found in scores.items()]


def _learned_alike(folds: Sequence[Fold]) -> list[tuple[Fold, ...]]:
    """Folds with the same training clips, so that every method learns from them once."""
    found: dict[int, list[Fold]] = {}
    for fold in folds:
        found.setdefault(id(fold.train) if fold.train else -id(fold), []).append(fold)
    return [tuple(alike) for alike in found.values()]


def _over_folds(scores: Sequence[Scores]) -> dict[str, float]:
    """The metrics over all frames, and their spread between folds."""
    whole, each = Scores(scores[0].joints), [own.metrics() for own in scores]
    for own in scores:
        whole.take(own)
    metrics = whole.metrics()
    if len(each) > 1:
        for name, of in (("deg_spread", "deg_per_joint"), ("mpjpe_spread_cm", "mpjpe_cm")):
            metrics[name] = float(np.std([own[of] for own in each], ddof=1))
    return metrics


@dataclass(frozen=True)
class _HandlesTask:
    """One method on folds with the same training clips."""

    method: str
    folds: tuple[Fold, ...]
    stride: int
    independent: bool
    free_root: bool
    handles: tuple[str, ...]
    joints: Joints


def _fold_scores(task: _HandlesTask) -> list[Scores]:
    method, scores = method_named(task.method), [Scores(task.joints) for _ in task.folds]
    method.learn(task.folds[0].train)
    moving = training_poses(task.folds[0].train)[0].moving if task.folds[0].train else None
    for fold, own in zip(task.folds, scores, strict=True):
        for clip in fold.test:
            few = clip[:: task.stride]
            found = recover(method, few, task.handles, independent=task.independent, free_root=task.free_root)
            own.add(replace(found, in_training=moving))
    return scores


def recover(
    method: Method,
    clip: Motion,
    names: Sequence[str] = HANDLES,
    *,
    independent: bool = False,
    free_root: bool = False,
) -> Recovered:
    """Evaluate one clip with a learned method; a failed frame is counted, never left out."""
    root: Root = "solved" if free_root else "given"
    space, answer = method.set_up(clip.skeleton, names, root)
    handles = space.handles(names)
    targets = targets_of(clip, handles)
    given = space.q_from_frames(clip.root_positions, clip.rotations)[:, :ROOT_SIZE]
    starts = np.stack([cold_start(space, handles, frame) for frame in targets])
    if not free_root:
        starts[:, :ROOT_SIZE] = given
    poses, seconds, failed = _answers(answer, starts, targets, independent=independent, free_root=free_root)
    roots, quaternions = space.frames_from_q(poses)
    reached = np.stack([space.handle_positions(pose, handles)[0] for pose in poses])
    return Recovered(
        space,
        roots,
        quaternions,
        clip.root_positions,
        clip.rotations,
        np.linalg.norm(reached - targets, axis=-1),
        seconds,
        failed=failed,
    )


def targets_of(clip: Motion, handles: Handles) -> Float[Array, "frames handles 3"]:
    """World positions of a clip's handles."""
    positions, matrices = world_transforms(clip.skeleton, clip.root_positions, clip.rotations)
    turned = np.einsum("fhab,hb->fha", matrices[:, handles.joints], handles.offsets)
    return np.asarray(positions[:, handles.joints] + turned)


def cold_start(
    space: PoseSpace, handles: Handles, targets: Float[Array, "handles 3"]
) -> Float[Array, "size"]:
    """The mean pose of the data, rigidly aligned to the targets."""
    q = np.zeros(space.size)
    own = handle_positions(space, q[None, ROOT_SIZE:], handles)[0]
    turn, q[:3], _ = rigid_fit(own, targets)
    q[3:ROOT_SIZE] = rotations.quaternion_from_matrix(turn)
    return q


def _answers(
    answer: Answer,
    starts: Float[Array, "frames size"],
    targets: Float[Array, "frames handles 3"],
    *,
    independent: bool,
    free_root: bool,
) -> tuple[Float[Array, "frames size"], Float[Array, "frames"], int]:
    """Poses, processor seconds and failures frame by frame; a failed frame keeps its start."""
    _attempt(answer, starts[0], targets[0])  # warm-up: nothing is compiled or prepared during the measurement
    poses, seconds, failed = np.empty_like(starts), np.empty(len(starts)), 0
    for frame, start in enumerate(starts):
        if frame > 0 and not independent:
            fixed = 0 if free_root else ROOT_SIZE
            start = np.concatenate([start[:fixed], poses[frame - 1, fixed:]])
        begun = time.process_time()
        found = _attempt(answer, start, targets[frame])
        seconds[frame] = time.process_time() - begun
        failed += found is None
        poses[frame] = start if found is None else found
    return poses, seconds, failed


def _attempt(answer: Answer, start: Array, targets: Array) -> Float[Array, "size"] | None:
    """The method's pose, or None if it has none."""
    try:
        found = answer(start.copy(), targets)
    except (PoiseError, ArithmeticError, np.linalg.LinAlgError):
        return None
    return found if np.all(np.isfinite(found)) else None


# --- the protocol --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HandlesOptions(RecoveredFrames):
    """How frames are taken, and who works on them."""

    independent: Annotated[bool, "solve every frame from a cold start, not from the frame before"] = False
    free_root: Annotated[bool, "solve the root too, from six handles"] = False
    handles: Annotated[str, "other handles than those, by role, with commas: head,left_hand,right_hand"] = ""
    regenerate: Annotated[bool, "test on the clips learned from, as Huang et al. 2017 do"] = False
    jobs: Annotated[int, Range(least=1), "how many processes of this machine work"] = 1
    scheduler: Annotated[str, "work on the dask cluster with this address (tcp://host:8786) instead"] = ""


def _run(request: Request, progress: NamedProgress) -> list[Row]:
    options: HandlesOptions = request.options
    folds = request.folds()
    if options.regenerate:
        folds = [Fold(fold.train, fold.train) for fold in folds]
    return evaluate_handles(
        folds,
        methods=request.methods or default_methods(),
        stride=options.stride,
        independent=options.independent,
        free_root=options.free_root,
        handles=names_from_text(options.handles),
        joints=options.joints,
        progress=progress,
        engine=Engine(options.jobs, options.scheduler),
    )


def _draw(request: Request, report: Report, folder: Path, step: Step) -> list[Path]:
    from poise.evaluation import plots
    from poise.evaluation.gallery import draw_gallery

    step("plots")
    figures = {"accuracy": plots.accuracy_figure, "figure6": plots.errors_figure, "table1": plots.time_figure}
    files = [plots.saved(figure(report), folder / f"{name}.png") for name, figure in figures.items()]
    names = [str(row["method"]) for row in report.rows]
    return [*files, draw_gallery(folder / "poses.png", methods=names, request=request, step=step)]


PROTOCOL = Protocol(
    "handles",
    ABOUT["handles"],
    _run,
    _draw,
    methods=(*METHODS, "gaussian-N", "huang2017-N", "style", "grochow2004", "local", "any kind of model"),
    Options=HandlesOptions,
    untrained=UNTRAINED,
)
