"""Protocol `handles` (Huang et al. 2017, Table 1 and Fig. 6): five handles of an unseen recording in, the pose out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
from jaxtyping import Float
from PIL import Image

from poise import performer
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
    PERFORMER,
    Protocol,
    RecoveredFrames,
    Report,
    Request,
    Row,
    Step,
    names_from_text,
)
from poise.evaluation.splits import Fold, load_split, split_of_files
from poise.formats.tables import Range
from poise.geometry import rotations
from poise.geometry.alignment import rigid_fit
from poise.motion.motion import Motion
from poise.pictures import draw_panels, save
from poise.priors.poses import handle_positions
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import Pose
from poise.types import Array, NamedProgress, silent

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
    progress: NamedProgress = silent,
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
    alike: dict[int, list[Fold]] = {}  # by training clips, so that every method learns from them once
    for fold in folds:
        alike.setdefault(id(fold.train) if fold.train else -id(fold), []).append(fold)
    tasks = [
        _HandlesTask(name, tuple(own), stride, independent, free_root, names, joints)
        for name in methods
        for own in alike.values()
    ]
    progress(methods[0], 0, len(tasks))
    scores: dict[str, list[Scores]] = {name: [] for name in methods}
    for count, done in enumerate((engine or Engine()).each(_fold_scores, tasks), start=1):
        if done.value is None:
            raise PoiseError(f"{tasks[done.number].method} was lost: {done.lost}")
        scores[tasks[done.number].method].extend(done.value)
        progress(tasks[done.number].method, count, len(tasks))
    rows: list[Row] = []
    for name, parts in scores.items():
        whole, each = Scores(joints), [own.metrics() for own in parts]
        for own in parts:
            whole.take(own)
        rows.append({"method": name, **whole.metrics()})
        if len(each) > 1:
            for spread, of in (("deg_spread", "deg_per_joint"), ("mpjpe_spread_cm", "mpjpe_cm")):
                rows[-1][spread] = float(np.std([metrics[of] for metrics in each], ddof=1))
    return rows


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
    method.fps = None if independent else clip.fps
    space, answer = method.set_up(clip.skeleton, names, "solved" if free_root else "given")
    handles = space.handles(names)
    targets = targets_of(clip, handles)
    starts = np.stack([cold_start(space, handles, frame) for frame in targets])
    fixed = 0 if free_root else ROOT_SIZE
    starts[:, :fixed] = space.q_from_frames(clip.root_positions, clip.rotations)[:, :fixed]
    _attempt(answer, starts[0], targets[0])  # warm-up: nothing is compiled or prepared during the measurement
    poses, seconds, failed = np.empty_like(starts), np.empty(len(starts)), 0
    for frame, start in enumerate(starts):
        if frame > 0 and not independent:
            start = np.concatenate([start[:fixed], poses[frame - 1, fixed:]])
        begun = time.process_time()
        found = _attempt(answer, start, targets[frame])
        seconds[frame] = time.process_time() - begun
        failed += found is None
        poses[frame] = start if found is None else found
    reached = np.stack([space.handle_positions(pose, handles)[0] for pose in poses])
    distances = np.linalg.norm(reached - targets, axis=-1)
    solved, true = space.frames_from_q(poses), (clip.root_positions, clip.rotations)
    return Recovered(space, *solved, *true, distances, seconds, failed=failed)


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


def _attempt(answer: Answer, start: Array, targets: Array) -> Float[Array, "size"] | None:
    """The method's pose, or None if it has none."""
    try:
        found = answer(start.copy(), targets)
    except (PoiseError, ArithmeticError, np.linalg.LinAlgError):
        return None
    return found if np.all(np.isfinite(found)) else None


# --- a page of pictures ----------------------------------------------------------------------------------------------

PANEL = (250, 330)


@dataclass(frozen=True, eq=False)
class GalleryFrame:
    """A frame of an unseen clip, and its training clips."""

    name: str
    train: tuple[Motion, ...]
    clip: Motion
    frame: int


def draw_gallery(path: Path, *, methods: Sequence[str], request: Request, step: Step = silent) -> Path:
    """Rows of scenes, columns of methods; targets are spheres, and a rod shows the residual."""
    rows = []
    for scene in scenes_of(request):
        step(f"pictures of {scene.name}")
        rows.append(draw_scene(scene, methods))
    page = Image.new("RGB", (max(row.width for row in rows), sum(row.height for row in rows)), "white")
    for number, row in enumerate(rows):
        page.paste(row, (0, sum(above.height for above in rows[:number])))
    return save(page, path)


def draw_scene(scene: GalleryFrame, methods: Sequence[str]) -> Image.Image:
    """The recorded pose and every method's pose for its handles, each from a cold start."""
    clip = scene.clip[scene.frame : scene.frame + 1]
    poses = {f"{scene.name}: recorded": Pose(clip.skeleton, clip.root_positions[0], clip.rotations[0])}
    for name in methods:
        method = method_named(name)
        method.learn(scene.train)
        space, answer = method.set_up(clip.skeleton, HANDLES, "given")
        handles = space.handles(HANDLES)
        targets = targets_of(clip, handles)[0]
        start = cold_start(space, handles, targets)
        start[:ROOT_SIZE] = space.q_from_frames(clip.root_positions, clip.rotations)[0, :ROOT_SIZE]
        poses[name] = space.pose_from_q(answer(start, targets))
    shown = targets_of(clip, PoseSpace(clip.skeleton).handles(HANDLES))[0]
    columns = -(-len(poses) // 2) if len(poses) > 6 else len(poses)
    return draw_panels(poses, handles=dict(zip(HANDLES, shown, strict=True)), size=PANEL, columns=columns)


def scenes_of(request: Request) -> list[GalleryFrame]:
    """Walk, boxing and golf of recordings if available; else the performer's walk, boxing and throw.

    Recorded boxing and golf are learned from every eighth frame, so that a page of pictures does not wait.
    """
    if request.train:
        (fold,) = split_of_files(request.train, request.test)
        return [GalleryFrame(clip.name, fold.train, clip, len(clip) // 2) for clip in fold.test[:3]]
    with suppress(PoiseError, OSError):
        if request.split != PERFORMER:
            walk, boxing = load_split("walk")[0], load_split("boxing")[0]
            golf = next(fold for fold in load_split("sport") if fold.test[0].name.startswith("63_03"))
            scenes = [GalleryFrame("walk", walk.train, walk.test[0], len(walk.test[0]) // 2)]
            for name, fold in (("boxing", boxing), ("golf", golf)):
                few = tuple(clip[::8] for clip in fold.train)
                scenes.append(GalleryFrame(name, few, fold.test[0], _reaching_frame(fold.test[0])))
            return scenes
    actions = ("walk", "box", "throw")
    train = tuple(performer.act(action, fps=60, seed=seed) for action in actions for seed in (0, 1))
    clips = {action: performer.act(action, fps=60, seed=12) for action in actions}
    return [
        GalleryFrame(action, train, clip, len(clip) // 2 if action == "walk" else _reaching_frame(clip))
        for action, clip in clips.items()
    ]


def _reaching_frame(clip: Motion) -> int:
    """The frame in which a hand is furthest from the pelvis: mid-punch, or the top of a swing."""
    points = targets_of(clip, PoseSpace(clip.skeleton).handles(("pelvis", "left_hand", "right_hand")))
    return int(np.argmax(np.linalg.norm(points[:, 1:] - points[:, :1], axis=-1).max(axis=1)))


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
    names = [str(row["method"]) for row in report.rows]
    return [draw_gallery(folder / "poses.png", methods=names, request=request, step=step)]


PROTOCOL = Protocol(
    "handles",
    ABOUT["handles"],
    _run,
    _draw,
    figures={"accuracy": "accuracy_figure", "figure6": "errors_figure", "table1": "time_figure"},
    methods=(
        *(*METHODS, "gaussian-N", "huang2017-N", "style", "grochow2004", "grochow2004-tracked", "local"),
        "any kind of model",
    ),
    Options=HandlesOptions,
    untrained=UNTRAINED,
)
