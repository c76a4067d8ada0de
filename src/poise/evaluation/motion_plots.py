"""Pictures of the protocols `topology` and `animate`: latent spaces side by side, transitions as contact sheets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from poise.apps.foot_targets import constraints_of, contacts_in
from poise.apps.latent import save_picture
from poise.apps.simulating import simulate
from poise.evaluation.animate import FPS, learned_animator
from poise.evaluation.report import Report
from poise.evaluation.simulated_motion import transition_paths
from poise.evaluation.topology import learned_model, structure_of
from poise.motion.edit import resample
from poise.motion.motion import Motion
from poise.pictures import contact_sheet
from poise.pictures.latent_paths import draw_latent_paths, draw_models
from poise.priors.dynamics.sequences import sequences_of

Step = Callable[[str], None]
POSES = 10


def draw_topology(clips: Sequence[Motion], names: Sequence[str], folder: Path, step: Step) -> list[Path]:
    """Fig. 2: the latent spaces; per model a path from one activity to the other, and its motion."""
    sequences = sequences_of(clips)
    priors = {}
    for name in names:
        step(f"learning {name} again for its picture")
        priors[name] = learned_model(structure_of(name, clips), sequences)
    files = [save_picture(draw_models(priors), folder / "models.png")]
    first, second = sequences.activity_names[:2]
    for name, prior in priors.items():
        step(f"drawing {name}")
        paths = {
            f"{a} to {b}": transition_paths(prior, a, b)[0] for a, b in ((first, second), (second, first))
        }
        files.append(save_picture(draw_latent_paths(prior, paths, title=name), folder / f"{name}.png"))
        moved = simulate(prior, activities=[second, first], seconds=5.0).motion
        sheet = contact_sheet(moved, poses=POSES, title=f"{name}: {moved.name}", layout="row")
        files.append(save_picture(sheet, folder / f"{name}_motion.png"))
    return files


def draw_animate(
    train: Sequence[Motion], clip: Motion, names: Sequence[str], folder: Path, step: Step
) -> list[Path]:
    """Fig. 6: the recording, and each method's motion from its foot contacts."""
    clip = resample(clip, FPS)
    frames = constraints_of(contacts_in(clip), len(clip))
    files = [
        save_picture(
            contact_sheet(clip, poses=POSES, title="recorded", layout="row"), folder / "recorded.png"
        )
    ]
    for name in names:
        step(f"animating by {name}")
        space, answer = learned_animator(name, train)
        roots, turns = space.on_body(clip.skeleton).frames_from_q(answer(clip, frames))
        sheet = contact_sheet(
            clip.with_frames(roots, turns), poses=POSES, title=f"{name}, from foot contacts", layout="row"
        )
        files.append(save_picture(sheet, folder / f"{name}.png"))
    return files


def drawn_methods(report: Report) -> list[str]:
    """The methods of a report by themselves, without their tasks and spreads."""
    return [str(row["method"]) for row in report.rows if "," not in str(row["method"])]
