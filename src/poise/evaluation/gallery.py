"""One page of pictures: the poses of every method for the same five handles, beside the recorded pose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from poise import performer
from poise.errors import PoiseError
from poise.evaluation.handles import HANDLES, cold_start, targets_of
from poise.evaluation.methods import method_named
from poise.evaluation.report import PERFORMER, Request
from poise.evaluation.splits import Fold, load_split, split_of_files
from poise.motion.motion import Motion
from poise.pictures import draw_panels, save
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.skeleton import Pose

PANEL = (250, 330)


@dataclass(frozen=True, eq=False)
class GalleryFrame:
    """A frame of an unseen clip, and its training clips."""

    name: str
    train: tuple[Motion, ...]
    clip: Motion
    frame: int


def draw_gallery(
    path: Path,
    *,
    methods: Sequence[str],
    request: Request,
    step: Callable[[str], None] = lambda _what: None,
) -> Path:
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
    truth = Pose(clip.skeleton, clip.root_positions[0], clip.rotations[0])
    poses = {f"{scene.name}: recorded": truth}
    for name in methods:
        poses[name] = _answer(name, scene.train, clip)
    return draw_panels(
        poses,
        handles=_targets(clip),
        size=PANEL,
        columns=-(-len(poses) // 2) if len(poses) > 6 else len(poses),
    )


def scenes_of(request: Request) -> list[GalleryFrame]:
    """Walk, boxing and golf of recordings if available; else the performer's walk, boxing and throw."""
    if request.train:
        (fold,) = split_of_files(request.train, request.test)
        return [_middle(clip.name, fold, clip) for clip in fold.test[:3]]
    try:
        return _recorded() if request.split != PERFORMER else _performed()
    except (PoiseError, OSError):
        return _performed()


def _recorded() -> list[GalleryFrame]:
    walk, boxing = load_split("walk")[0], load_split("boxing")[0]
    golf = next(fold for fold in load_split("sport") if fold.test[0].name.startswith("63_03"))
    return [
        _middle("walk", walk, walk.test[0]),
        GalleryFrame("boxing", _thinned(boxing.train), boxing.test[0], _reaching_frame(boxing.test[0])),
        GalleryFrame("golf", _thinned(golf.train), golf.test[0], _reaching_frame(golf.test[0])),
    ]


def _thinned(clips: Sequence[Motion]) -> tuple[Motion, ...]:
    """Every eighth frame, so that a page of pictures does not wait for full learning."""
    return tuple(clip[::8] for clip in clips)


def _performed() -> list[GalleryFrame]:
    train = tuple(
        performer.act(action, fps=60, seed=seed) for action in ("walk", "box", "throw") for seed in (0, 1)
    )
    clips = {action: performer.act(action, fps=60, seed=12) for action in ("walk", "box", "throw")}
    return [
        GalleryFrame(action, train, clip, len(clip) // 2 if action == "walk" else _reaching_frame(clip))
        for action, clip in clips.items()
    ]


def _middle(name: str, fold: Fold, clip: Motion) -> GalleryFrame:
    return GalleryFrame(name, fold.train, clip, len(clip) // 2)


def _reaching_frame(clip: Motion) -> int:
    """The frame in which a hand is furthest from the pelvis: mid-punch, or the top of a swing."""
    from poise.skeleton.pose_space import PoseSpace

    space = PoseSpace(clip.skeleton)
    points = targets_of(clip, space.handles(("pelvis", "left_hand", "right_hand")))
    return int(np.argmax(np.linalg.norm(points[:, 1:] - points[:, :1], axis=-1).max(axis=1)))


def _answer(name: str, train: Sequence[Motion], clip: Motion) -> Pose:
    method = method_named(name)
    method.learn(train)
    space, answer = method.set_up(clip.skeleton, HANDLES, "given")
    handles = space.handles(HANDLES)
    targets = targets_of(clip, handles)[0]
    start = cold_start(space, handles, targets)
    start[:ROOT_SIZE] = space.q_from_frames(clip.root_positions, clip.rotations)[0, :ROOT_SIZE]
    return space.pose_from_q(answer(start, targets))


def _targets(clip: Motion) -> dict[str, np.ndarray]:
    from poise.skeleton.pose_space import PoseSpace

    space = PoseSpace(clip.skeleton)
    return dict(zip(HANDLES, targets_of(clip, space.handles(HANDLES))[0], strict=True))
