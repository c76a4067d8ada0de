"""Protocol `handles` (Huang et al. 2017, Table 1 and Fig. 6): five handles of an unseen recording in, the pose out."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from poise.evaluation.methods import Method, method_named
from poise.evaluation.metrics import Recovered, Scores
from poise.evaluation.splits import Fold
from poise.motion.motion import Motion
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import PoseSpace
from poise.solvers.problem import Root

HANDLES = ("head", "left_hand", "right_hand", "left_foot", "right_foot")


def evaluate_handles(
    folds: Sequence[Fold],
    *,
    methods: Sequence[str],
    stride: int = 1,
    independent: bool = False,
    free_root: bool = False,
    progress: Callable[[str, float], None] = lambda _name, _share: None,
) -> list[dict[str, float | str]]:
    """A row of metrics per method, over the test clips of all folds.

    Frames are warm-started from the one before unless `independent`; `free_root` solves the root too, from six handles.
    """
    rows: list[dict[str, float | str]] = []
    for name in methods:
        scores = Scores()
        for number, fold in enumerate(folds):
            method = method_named(name)
            learned = method.learn(fold.train)
            for clip in fold.test:
                scores.add(
                    recover(method, learned, clip[::stride], independent=independent, free_root=free_root)
                )
            progress(name, (number + 1) / len(folds))
        rows.append({"method": name, **scores.metrics()})
    return rows


def recover(
    method: Method, learned: PoseSpace, clip: Motion, *, independent: bool = False, free_root: bool = False
) -> Recovered:
    """One clip from its handles; a frame without a usable pose is counted and keeps the pose before it."""
    root: Root = "solved" if free_root else "given"
    names = (*HANDLES, "pelvis") if free_root else HANDLES
    space, answer = method.set_up(clip.skeleton, names, root)
    truth = space.q_from_frames(clip.root_positions, clip.rotations)
    handles = space.handles(names)
    positions, matrices = _world(clip)
    targets = positions[:, handles.joints] + np.einsum(
        "fhab,hb->fha", matrices[:, handles.joints], handles.offsets
    )
    poses, seconds, failed = np.empty_like(truth), np.empty(len(clip)), 0
    previous = np.concatenate([truth[0, :ROOT_SIZE], np.zeros(space.size - ROOT_SIZE)])
    answer(previous.copy(), targets[0])  # warm-up: nothing is compiled or prepared during the measurement
    for frame in range(len(clip)):
        start = previous.copy()
        if independent:
            start[ROOT_SIZE:] = 0.0
        if not free_root:
            start[:ROOT_SIZE] = truth[frame, :ROOT_SIZE]
        begun = time.perf_counter()
        found = answer(start, targets[frame])
        seconds[frame] = time.perf_counter() - begun
        usable = bool(np.all(np.isfinite(found)))
        failed += not usable
        poses[frame] = previous = found if usable else start
    roots, quaternions = space.frames_from_q(poses)
    reached = np.stack([space.handle_positions(pose, handles)[0] for pose in poses])
    return Recovered(
        clip.skeleton,
        learned.is_moving,
        roots,
        quaternions,
        clip.root_positions,
        clip.rotations,
        np.linalg.norm(reached - targets, axis=-1),
        seconds,
        failed=failed,
        root_given=not free_root,
    )


def _world(clip: Motion) -> tuple[np.ndarray, np.ndarray]:
    from poise.skeleton.kinematics import world_transforms

    return world_transforms(clip.skeleton, clip.root_positions, clip.rotations)
