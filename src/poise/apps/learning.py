"""Reads motions and learns a model from them: what `poise learn` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from poise.apps.rhythm import Told
from poise.errors import InvalidValueError, UnknownNameError
from poise.formats import read
from poise.motion.motion import Motion
from poise.priors.dynamics.description import structure_from_text
from poise.priors.dynamics.prior import CYLINDER, DynamicsPrior
from poise.priors.dynamics.sequences import count_bodies
from poise.priors.dynamics.structure import Structure
from poise.priors.gaussian import GaussianPrior
from poise.priors.local.prior import LocalPrior
from poise.priors.style.prior import StylePrior

GAUSSIAN, STYLE, LOCAL, DYNAMICS = "gaussian", "style", "local", "dynamics"
OPTIONS = {
    GAUSSIAN: ("clusters",),
    STYLE: ("dimensions", "active", "kernel", "algorithm"),
    LOCAL: (),
    DYNAMICS: ("topology", "transitions", "activities", "active", "rhythm", "phase"),
}
"""Kinds of model and what each may be told."""

TRANSITIONS = ("auto", "none")
PHASES = ("found", "learned")

Progress = Callable[[float], None]


def learn(
    motions: Sequence[Motion],
    *,
    kind: str = GAUSSIAN,
    progress: Progress = lambda _: None,
    **options: Any,
) -> GaussianPrior | StylePrior | LocalPrior:
    """A prior of this kind, learned from clips of one topology; options that are None are left to the kind."""
    if kind not in OPTIONS:
        raise UnknownNameError("kind of model", kind, OPTIONS)
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in OPTIONS[kind]:
            valid = ", ".join(f"--{own}" for own in OPTIONS[kind]) or "no options"
            raise InvalidValueError(f"a {kind} model has no --{name}; it takes {valid}")
    if kind == LOCAL:
        return LocalPrior.learn(motions, progress=progress)
    if kind == DYNAMICS:
        return _learn_dynamics(motions, progress=progress, **given)
    if kind == STYLE:
        return StylePrior.learn(motions, progress=progress, **given)
    return GaussianPrior.learn(motions, progress=progress, **given)


def _learn_dynamics(
    motions: Sequence[Motion],
    *,
    progress: Progress,
    topology: str | None = None,
    transitions: str = "auto",
    activities: Sequence[str] | None = None,
    active: int | None = None,
    rhythm: Told | None = None,
    phase: str | None = None,
) -> DynamicsPrior:
    """A motion model; transitions are found at the feet's landings, or given with the rhythm, or left out."""
    if rhythm is not None and activities:
        raise InvalidValueError("activities are told by the rhythm file; give them there, or leave it out")
    return DynamicsPrior.learn(
        motions,
        topology=structure_for(motions, topology=topology, transitions=transitions, phase=phase),
        activities=rhythm.activities if rhythm else activities or None,
        phases=rhythm.phases if rhythm else None,
        transitions=rhythm.transitions if rhythm else None,
        inducing=active,
        progress=progress,
    )


def structure_for(
    motions: Sequence[Motion],
    *,
    topology: str | None = None,
    transitions: str = "auto",
    phase: str | None = None,
) -> Structure:
    """The latent space of a motion model of these clips, as described.

    Where it is not described, clips of several bodies have an axis more: people differ in more ways than one.
    """
    if transitions not in TRANSITIONS:
        raise UnknownNameError("way to find transitions", transitions, TRANSITIONS)
    if phase not in (None, *PHASES):
        raise UnknownNameError("phase", phase, PHASES)
    structure = structure_from_text(topology or CYLINDER)
    if topology is None and count_bodies(motions) > 1:
        structure = structure.with_another_axis()
    if transitions == "none":
        structure = structure.without_transitions()
    elif not structure.uses_transitions:
        structure = structure.with_transitions()
    return structure if phase is None else replace(structure, learned_phase=phase == "learned")


def summary(prior: GaussianPrior | StylePrior | LocalPrior) -> str:
    """What has been learned, in a few words."""
    if isinstance(prior, GaussianPrior):
        return f"gaussian, {len(prior.means)} clusters of {prior.means.shape[1]} rotational freedoms"
    if isinstance(prior, LocalPrior):
        return f"local, {len(prior.examples)} examples of {prior.examples.maps.shape[1]} rotational freedoms"
    model = prior.model
    if isinstance(prior, DynamicsPrior):
        labels = ", ".join(each.label for each in prior.structure.dimensions)
        doing = ", ".join(f"{prior.frames.activities.count(name)} x {name}" for name in prior.frames.names)
        return f"dynamics in ({labels}), {doing}, {len(model.active)} of {len(model.latents)} poses active"
    return (
        f"style, {model.dimensions} dimensions, {len(model.active)} of {len(model.latents)} poses active, "
        f"{model.kernel.kind} kernel, L_GP {model.learning_curve[-1]:.0f}"
    )


def read_motion(path: Path, **options: Any) -> Motion:
    """A motion from a file, with the reader's options; a file of markers has no skeleton and is refused."""
    motion = read(path, **options)
    if not isinstance(motion, Motion):
        raise InvalidValueError(f"{path.name} holds markers; this needs the motion of a skeleton")
    return motion
