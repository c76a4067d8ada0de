"""Protocol `topology` (Urtasun et al. 2008, Figs. 1, 2 and 5): walking and running in one latent space, seven models.

For the latent space: reconstruction error, smoothness of paths, agreement of sequences about the phase, and closeness
of frames of the same transition. For motion simulated from one activity into the other: distance from recorded poses,
foot slide, jerkiness, and whether it arrives within the data's variance. Models have three dimensions, as in the
paper; four if clips are of several bodies, which differ in more ways than one axis can represent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

import numpy as np

from poise.errors import InvalidValueError, UnknownNameError
from poise.evaluation.report import ABOUT, PERFORMER, Protocol, ProtocolOptions, Report, Request, Row, Step
from poise.evaluation.simulated_motion import Recorded, measure_simulations
from poise.evaluation.splits import performer_gaits
from poise.formats.tables import FieldError
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.priors.dynamics.learning import learn_motion
from poise.priors.dynamics.prior import DynamicsPrior
from poise.priors.dynamics.sequences import Sequences, count_bodies, sequences_of
from poise.priors.dynamics.simulation import GUIDED, PLAIN, Inference
from poise.priors.dynamics.structure import MODELS, Structure
from poise.skeleton.kernels import ROOT_SIZE
from poise.types import NamedProgress

RECORDED = "recorded, at 30 Hz"
PUBLISHED = "urtasun2008-"
ROUNDING = 1e-9


def evaluate_topology(
    draws: Sequence[Sequence[Motion]],
    *,
    methods: Sequence[str] = (),
    inference: Sequence[Inference] = (GUIDED,),
    progress: NamedProgress = lambda _what, _done, _all: None,
) -> list[Row]:
    """A row of metrics per model and inference: the mean over choices of clips, and its spread.

    `urtasun2008-NAME` is the model NAME as published.
    """
    names = list(methods or MODELS)
    for name in names:
        if name.removeprefix(PUBLISHED) not in MODELS:
            raise UnknownNameError("motion model", name, MODELS)
    found: dict[str, list[dict[str, float]]] = {RECORDED: []}
    for number, clips in enumerate(draws):
        sequences = _checked(sequences_of(clips))
        recorded = Recorded(sequences)
        for done, name in enumerate(names, start=number * len(names)):
            progress(name, done, len(draws) * len(names))
            prior = learned_model(structure_of(name, clips), sequences)
            for kind in inference:
                called = name if len(inference) == 1 else f"{name}, {kind}"
                found.setdefault(called, []).append(measured(prior, recorded, inference=kind))
        found[RECORDED].append({"slide_cm_s": 100.0 * recorded.slide})
    progress(names[-1], len(draws) * len(names), len(draws) * len(names))
    return [row for name, own in found.items() for row in _rows(name, own)]


def _checked(sequences: Sequences) -> Sequences:
    if len(sequences.activity_names) < 2:
        raise InvalidValueError(
            f"topology needs clips of two activities, such as walks and runs; found {sequences.activity_names}"
        )
    for name in sequences.activity_names:
        if sequences.activities.count(name) < 2:
            raise InvalidValueError(
                f"topology needs two clips or more of every activity, to tell how much they differ; there is one {name}"
            )
    return sequences


def _rows(name: str, draws: Sequence[dict[str, float]]) -> list[Row]:
    """The mean of every metric over draws, and its standard deviation where there are several."""
    values = {metric: [own[metric] for own in draws] for metric in draws[0]}
    rows: list[Row] = [{"method": name, **{metric: float(np.mean(own)) for metric, own in values.items()}}]
    if len(draws) > 1:
        spread = {metric: float(np.std(own, ddof=1)) for metric, own in values.items()}
        rows.append({"method": f"{name}, spread", **spread})
    return rows


def structure_of(name: str, clips: Sequence[Motion]) -> Structure:
    """A model's latent space: three dimensions, or four if clips are of several bodies."""
    structure = MODELS[name.removeprefix(PUBLISHED)]
    structure = structure.as_published() if name.startswith(PUBLISHED) else structure
    return structure.with_another_axis() if count_bodies(clips) > 1 else structure


def learned_model(structure: Structure, sequences: Sequences) -> DynamicsPrior:
    """A model of this structure, learned."""
    return DynamicsPrior.of_learned(learn_motion(sequences, structure))


def measured(prior: DynamicsPrior, recorded: Recorded, *, inference: Inference = GUIDED) -> dict[str, float]:
    """All metrics of one model."""
    sequences = recorded.sequences
    simulated = [
        measure_simulations(prior, recorded, first, second, inference=inference)
        for first in prior.frames.activity_names
        for second in prior.frames.activity_names
        if first != second
    ]
    return {
        "deg_per_joint": reconstruction(prior, sequences),
        "roughness": roughness(prior),
        "phase_deg": phase_disagreement(prior, sequences),
        "transition_gap": transition_gap(prior),
        **{name: float(np.mean([each[name] for each in simulated])) for name in simulated[0]},
    }


# --- the latent space ----------------------------------------------------------------------------------------------


def reconstruction(prior: DynamicsPrior, sequences: Sequences) -> float:
    """Mean angle, in degrees, between joints of training poses and the model's prediction at their latent points."""
    maps = prior.space.size - ROOT_SIZE
    found, true = prior.predict_all(prior.latents)[:, :maps], sequences.y[:, :maps]
    turned, recorded = (
        rotations.quaternion_from_expmap(each.reshape(len(each), -1, 3)) for each in (found, true)
    )
    return float(np.degrees(rotations.geodesic_distance(turned, recorded).mean()))


def roughness(prior: DynamicsPrior) -> float:
    """Mean length of second differences along the latent paths over that of first ones."""
    bends = np.concatenate([np.linalg.norm(np.diff(path, n=2, axis=0), axis=1) for path in prior.paths])
    steps = np.concatenate([np.linalg.norm(np.diff(path, axis=0), axis=1) for path in prior.paths])
    return float(bends.mean() / max(steps.mean(), ROUNDING))


def phase_disagreement(prior: DynamicsPrior, sequences: Sequences) -> float:
    """Mean difference of phase, in degrees, between each point and its nearest one in every other sequence."""
    latents, frames, radians = prior.latents, prior.frames, sequences.phases["phase"]
    gaps = []
    for own, (first, end) in enumerate(frames.bounds()):
        for other, (from_, to) in enumerate(frames.bounds()):
            if other != own:
                distances = np.linalg.norm(latents[first:end, None] - latents[None, from_:to], axis=2)
                nearest = from_ + distances.argmin(axis=1)
                gaps.append(radians[first:end] - radians[nearest])
    turned = np.concatenate(gaps)
    return float(np.degrees(np.abs(np.remainder(turned + np.pi, 2.0 * np.pi) - np.pi).mean()))


def transition_gap(prior: DynamicsPrior) -> float:
    """Distance between points of one transition in different activities, relative to that between any two points."""
    latents, doing = prior.latents, prior.frames.activity_of
    gaps = [
        np.linalg.norm(latents[a] - latents[b])
        for points in prior.frames.transitions
        for a in points
        for b in points
        if doing[a] < doing[b]
    ]
    spread = np.linalg.norm(latents[:, None] - latents[None], axis=2).mean()
    return float(np.mean(gaps) / max(spread, ROUNDING)) if gaps else 0.0


# --- the protocol --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TopologyOptions(ProtocolOptions):
    """How motion is simulated."""

    inference: Annotated[
        str, "guided (on the surface, by the phase, homing), plain (the dynamics alone), or plain,guided"
    ] = GUIDED

    def __post_init__(self) -> None:
        for kind in self.kinds:
            if kind not in (GUIDED, PLAIN):
                raise FieldError("inference", f"no inference {kind!r}; valid: {GUIDED}, {PLAIN}")

    @property
    def kinds(self) -> list[str]:
        """One by one."""
        return [kind.strip() for kind in self.inference.split(",")]


def _run(request: Request, progress: NamedProgress) -> list[Row]:
    draws = [fold.train for fold in request.folds()]
    kinds = [cast(Inference, kind) for kind in request.options.kinds]
    return evaluate_topology(draws, methods=request.methods, inference=kinds, progress=progress)


def _draw(request: Request, report: Report, folder: Path, step: Step) -> list[Path]:
    from poise.evaluation.motion_plots import draw_topology, drawn_methods

    names = request.methods or drawn_methods(report) or tuple(MODELS)
    return draw_topology(request.folds()[0].train, names, folder, step)


PROTOCOL = Protocol(
    "topology",
    ABOUT["topology"],
    _run,
    _draw,
    methods=(*MODELS, f"{PUBLISHED}MODEL"),
    Options=TopologyOptions,
    splits={PERFORMER: performer_gaits},
)
