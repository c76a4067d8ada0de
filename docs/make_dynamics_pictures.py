"""Draws the pictures of dynamics.md from recordings (POISE_MOCAP): `python docs/make_dynamics_pictures.py`.

No recording is kept: only what the models make of them is.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from poise import pictures
from poise.apps.animate import animate, changed, constraints_of, contacts_in
from poise.apps.simulating import simulate
from poise.evaluation.splits import load_split
from poise.evaluation.topology import learned_model
from poise.formats import read_motion
from poise.motion.edit import resample
from poise.motion.recordings import find_recordings
from poise.motion.world import joint_positions
from poise.pictures.latent_paths import draw_latent_paths, draw_models, draw_rhythms, rhythm_row
from poise.priors.dynamics.prior import CYLINDER, DynamicsOptions, DynamicsPrior
from poise.priors.dynamics.sequences import rhythm_of, sequences_of
from poise.priors.dynamics.structure import MODELS
from poise.priors.registry import learn
from poise.solvers.constraints import Position

FOLDER = Path(__file__).parent / "images" / "dynamics"
WIDTH = 1100
RUNS = {
    "first": ("35_17", "35_19", "35_22"),
    "second": ("09_01", "09_03", "09_05"),
    "third": ("16_35", "16_45", "16_46"),
}
JUMPS = ("13_11", "13_13", "13_19", "13_32")  # the last is never seen


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    fold, *_ = load_split("gaits")
    sequences = sequences_of(fold.train)
    priors = {name: learned_model(structure, sequences) for name, structure in MODELS.items()}
    _save(draw_models(priors, title="Two walks and two runs, seven models"), "models.png")
    chosen = priors[CYLINDER]
    there = simulate(chosen, activities=["run", "walk"], seconds=5.0)
    back = simulate(chosen, activities=["walk", "run", "walk"], seconds=8.0)
    paths = {"run to walk": there.latents, "walk to run to walk": back.latents}
    _save(draw_latent_paths(chosen, paths, title="Two walks and two runs"), "cylinder.png")
    _save(pictures.contact_sheet(there.motion, poses=10, layout="row"), "run_to_walk.png")
    pictures.save(there.motion, FOLDER / "run_to_walk.gif", size=(360, 300), fps=15)
    _styles()
    _animate()
    _jump()
    rows = [rhythm_row(*rhythm_of(clip), clip) for clip in fold.train]
    _save(draw_rhythms(rows), "rhythm.png")


def _styles() -> None:
    """A run that changes its style twice: one performer's, another's, a third one's."""
    folder = find_recordings()
    assert folder is not None
    runs = [(name, clip) for name, clips in RUNS.items() for clip in clips]
    clips = [read_motion(folder / "cmu" / f"{clip}.bvh") for _, clip in runs]
    prior = learn(clips, "dynamics", DynamicsOptions(activities=",".join(name for name, _ in runs)))
    assert isinstance(prior, DynamicsPrior)
    changing = simulate(prior, activities=list(RUNS), seconds=8.0)
    _save(pictures.contact_sheet(changing.motion, poses=14, layout="row"), "styles.png")
    pictures.save(changing.motion, FOLDER / "styles.gif", size=(360, 300), fps=15)


def _jump() -> None:
    """A jump never seen from the paths of its two feet, 1.2 times as long and 10 cm wider to either side."""
    folder = find_recordings()
    assert folder is not None
    *train, clip = (read_motion(folder / "cmu" / f"{name}.bvh") for name in JUMPS)
    clip = resample(clip, 60.0)
    prior = DynamicsPrior.learn(train, topology="3 smooth axes by local linearity", activities=["jump"] * 3)
    ahead = (clip.root_positions[-1] - clip.root_positions[0]) * [1.0, 0.0, 1.0]
    ahead = ahead / np.linalg.norm(ahead)
    aside = 0.1 * np.array([ahead[2], 0.0, -ahead[0]])
    feet = joint_positions(clip)[:, [clip.skeleton.index(foot) for foot in ("left_foot", "right_foot")]]
    gone = (feet - feet[0].mean(axis=0)) @ ahead
    feet = feet + 0.2 * gone[..., None] * ahead + np.stack([aside, -aside])
    frames = [[Position("left_foot", left), Position("right_foot", right)] for left, right in feet]
    found = animate(prior.on_body(clip.skeleton), frames, fps=clip.fps, name="jump")
    _save(pictures.contact_sheet(found.motion, poses=10, layout="row"), "jump.png")


def _animate() -> None:
    """A walk never seen, and wider steps, from foot contacts alone."""
    fold = load_split("strides")[0]
    clip = resample(fold.test[0], 60.0)
    prior = DynamicsPrior.learn(fold.train, topology="topology").on_body(clip.skeleton)
    contacts = contacts_in(clip)
    along = clip.root_positions[-1] - clip.root_positions[0]
    tasks = {"contacts": contacts, "wider": changed(contacts, along=along, wider=0.15)}
    for name, wanted in tasks.items():
        found = animate(prior, constraints_of(wanted, len(clip)), fps=clip.fps, name=name)
        _save(pictures.contact_sheet(found.motion, poses=9, layout="row"), f"{name}.png")


def _save(image: Image.Image, name: str) -> None:
    height = round(image.height * WIDTH / image.width)
    image.resize((WIDTH, height), Image.Resampling.LANCZOS).save(FOLDER / name, optimize=True)


if __name__ == "__main__":
    main()
