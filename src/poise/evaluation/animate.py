"""Protocol `animate` (Urtasun et al. 2008, Fig. 6): the foot contacts of an unseen motion in, the whole motion out.

The other rows have no reference recording: steps further apart, strides longer. They are evaluated by their
constraints and their smoothness.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float
from scipy.signal import butter, sosfiltfilt

from poise.apps.animate import animate, changed, constraints_of, contacts_in
from poise.errors import InvalidValueError
from poise.evaluation.methods import STYLE, learner_named
from poise.evaluation.report import ABOUT, PERFORMER, Protocol, Report, Request, Row, Step
from poise.evaluation.splits import Fold, performer_gaits
from poise.motion.edit import resample
from poise.motion.motion import Motion
from poise.motion.world import accelerations, joint_positions, second_derivative
from poise.priors.dynamics import structure as layouts
from poise.priors.dynamics.prior import DynamicsPrior
from poise.priors.poses import pose_space_of
from poise.priors.style.prior import StylePrior
from poise.skeleton.pose_space import PoseSpace
from poise.solvers.constraints import Constraint
from poise.solvers.sequence import Frame, frame_by_frame
from poise.solvers.solve import solve
from poise.types import Array, NamedProgress, silent

Answer = Callable[[Motion, Sequence[Sequence[Constraint]]], Float[Array, "frames size"]]

FPS = 60.0
SHEET_POSES = 10
MODEL = "topology"  # the cylinder by back-constraints, as in the paper for walking
WIDER, LONGER = 0.10, 1.2  # metres to either side, and factor on the length, of the changed steps
SLOWER = (5, 10, 15)  # Hz: accelerations of recordings above these are more and more marker noise
MODELS = {"dynamics": layouts.MODELS[MODEL], "urtasun2008": layouts.MODELS[MODEL].as_published()}
METHODS = (*MODELS, "style", "dls")
_WORST = ("handle_max_mm", "slide_cm")


def evaluate_animate(
    folds: Sequence[Fold], *, methods: Sequence[str] = (), progress: NamedProgress = silent
) -> list[Row]:
    """A row per method on the recorded contacts, then one on wider and longer steps for the motion models."""
    names = list(methods or METHODS)
    for name in names:
        if name not in METHODS:
            learner_named(name, protocol="animate", others=METHODS)
    found: dict[str, list[dict[str, float]]] = {}
    total, done = len(names) * sum(len(fold.test) for fold in folds), 0
    for fold in folds:
        for name in names:
            progress(name, done, total)
            space, answer = learned_animator(name, fold.train)
            for clip in fold.test:
                for task, metrics in measure(space, answer, resample(clip, FPS), changes=name in MODELS):
                    found.setdefault(f"{name}{task}", []).append(metrics)
                done += 1
                progress(name, done, total)
    return [
        {"method": name}
        | {  # means over clips; the maximum for largest distances
            metric: float((np.max if metric in _WORST else np.mean)([row[metric] for row in rows]))
            for metric in rows[0]
        }
        for name, rows in found.items()
    ]


def measure(
    space: PoseSpace, answer: Answer, clip: Motion, *, changes: bool
) -> list[tuple[str, dict[str, float]]]:
    """Metrics on a clip's own contacts, and on changed ones."""
    contacts = contacts_in(clip)
    if not contacts:
        raise InvalidValueError(f"{clip.name or 'the clip'} has no foot contacts to animate from")
    along = clip.root_positions[-1] - clip.root_positions[0]
    tasks = {"": contacts}
    if changes:
        tasks[", wider"] = changed(contacts, along=along, wider=WIDER)
        tasks[", longer"] = changed(contacts, along=along, longer=LONGER)
    found = []
    for task, wanted in tasks.items():
        begun = time.perf_counter()
        q = answer(clip, constraints_of(wanted, len(clip)))
        seconds = time.perf_counter() - begun
        own = space.on_body(clip.skeleton)
        motion = Motion(clip.skeleton, clip.fps, *own.frames_from_q(q))
        joints = ~clip.skeleton.is_end_site
        misses, slides = [], []  # of standing points from their targets, frame by frame, and of each contact
        for contact in wanted:
            handles = own.handles([contact.handle])
            poses = q[contact.first : contact.end]
            points = np.stack([own.handle_positions(pose, handles)[0][0] for pose in poses])
            misses.append(np.linalg.norm(points - contact.point, axis=1))
            slides.append(float(np.ptp(points[:, [0, 2]], axis=0).max()))
        metrics: dict[str, float] = {}
        if task == "":
            gaps = np.linalg.norm(joint_positions(motion) - joint_positions(clip), axis=2)[:, joints]
            metrics["mpjpe_cm"] = 100.0 * float(gaps.mean())
        metrics["handle_mm"] = 1000.0 * float(np.concatenate(misses).mean())
        metrics["handle_max_mm"] = 1000.0 * float(np.concatenate(misses).max())
        metrics["slide_cm"] = 100.0 * max(slides)
        metrics["jitter"] = _ratio(accelerations(motion)[:, joints], accelerations(clip)[:, joints])
        for hertz in SLOWER:
            slow = (slow_accelerations(one, hertz)[:, joints] for one in (motion, clip))
            metrics[f"jitter_{hertz}hz"] = _ratio(*slow)
        metrics["ms_per_frame"] = 1000.0 * seconds / len(q)
        found.append((task, metrics))
    return found


def slow_accelerations(motion: Motion, hertz: float) -> Float[Array, "frames joints 3"]:
    """Joint accelerations below a frequency (a second-order Butterworth filter, forward and backward)."""
    places = joint_positions(motion)
    if motion.fps <= 2.0 * hertz:
        return second_derivative(places, motion.fps)
    sections = butter(2, hertz, fs=motion.fps, output="sos")
    return second_derivative(
        sosfiltfilt(sections, places, axis=0, padlen=min(9, len(places) - 1)), motion.fps
    )


def _ratio(own: Float[Array, "frames joints 3"], usual: Float[Array, "frames joints 3"]) -> float:
    return float(np.linalg.norm(own, axis=2).mean() / np.linalg.norm(usual, axis=2).mean())


def learned_animator(name: str, train: Sequence[Motion]) -> tuple[PoseSpace, Answer]:
    """A learned method or kind of prior by its name: its pose space, and its answer to a clip's constraints."""
    if name == "style":
        style = StylePrior.learn(train, **STYLE)

        def tracked(clip: Motion, frames: Sequence[Sequence[Constraint]]) -> Float[Array, "frames size"]:
            """Each frame tracked from the previous one, as keyframing starts."""
            own = style.on_body(clip.skeleton)
            return frame_by_frame([own], [Frame(constraints) for constraints in frames], own.space)

        return style.space, tracked
    if name == "dls":
        space = pose_space_of(train)

        def rigged(clip: Motion, frames: Sequence[Sequence[Constraint]]) -> Float[Array, "frames size"]:
            """Each frame from the previous one, as in an artist's rig."""
            own, poses = space.on_body(clip.skeleton), list[Array]()
            for constraints in frames:
                poses.append(solve(own, constraints, start=poses[-1] if poses else None).q)
            return np.stack(poses)

        return space, rigged
    layout = MODELS.get(name)
    prior = (
        DynamicsPrior.learn(train, topology=layout) if layout else learner_named(name, others=METHODS)(train)
    )
    return prior.space, lambda clip, frames: animate(prior.on_body(clip.skeleton), frames, fps=clip.fps).q


def _draw(request: Request, report: Report, folder: Path, step: Step) -> list[Path]:
    """Fig. 6: the recording, and each method's motion from its foot contacts."""
    from poise.apps.outputs import save_picture
    from poise.pictures import contact_sheet

    fold = request.folds()[0]
    clip = resample(fold.test[0], FPS)
    frames = constraints_of(contacts_in(clip), len(clip))
    sheet = contact_sheet(clip, poses=SHEET_POSES, title="recorded", layout="row")
    files = [save_picture(sheet, folder / "recorded.png")]
    for name in report.methods:
        step(f"animating by {name}")
        space, answer = learned_animator(name, fold.train)
        moved = clip.with_frames(*space.on_body(clip.skeleton).frames_from_q(answer(clip, frames)))
        sheet = contact_sheet(moved, poses=SHEET_POSES, title=f"{name}, from foot contacts", layout="row")
        files.append(save_picture(sheet, folder / f"{name}.png"))
    return files


PROTOCOL = Protocol(
    "animate",
    ABOUT["animate"],
    lambda request, progress: evaluate_animate(request.folds(), methods=request.methods, progress=progress),
    _draw,
    methods=(*METHODS, "any kind of model"),
    splits={PERFORMER: performer_gaits},
)
