"""Protocol `topology` (Urtasun et al. 2008, Figs. 1, 2 and 5): walking and running in one latent space, seven models.

For the latent space: reconstruction error, smoothness of paths, agreement of sequences about the phase, and closeness
of frames of the same transition. For motion simulated from one activity into the other: distance from recorded poses,
foot slide, jerkiness, and whether it arrives within the data's variance. Models have three dimensions, as in the
paper; four if clips are of several bodies, which differ in more ways than one axis can represent.

No measure of simulated motion uses the simulation's own claims. Foot contacts are those of the nearest recorded pose: a
foot that slides too fast to be detected as standing still counts as sliding. Accelerations are compared with those of
that pose, since recordings differ by style and performer. A path has left the data where the model's uncertainty of the
pose exceeds the difference between recordings of one activity; both are deviations of features relative to the data's,
so that models with different latent spaces are comparable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import permutations
from pathlib import Path
from typing import Annotated, cast

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.spatial.distance import cdist

from poise.errors import InvalidValueError, UnknownNameError
from poise.evaluation.metrics import mean_degrees
from poise.evaluation.report import ABOUT, PERFORMER, Protocol, ProtocolOptions, Report, Request, Row, Step
from poise.evaluation.splits import performer_gaits
from poise.formats.tables import FieldError
from poise.geometry import rotations
from poise.motion.contacts import foot_contacts, foot_positions
from poise.motion.motion import Motion
from poise.motion.world import accelerations, derivative, joint_positions
from poise.priors.dynamics.learning import learn_motion
from poise.priors.dynamics.prior import DynamicsPrior
from poise.priors.dynamics.sequences import RATE, Sequences, count_bodies, poses_from_features, sequences_of
from poise.priors.dynamics.simulation import GUIDED, PLAIN, Inference, plan, simulate, start_points
from poise.priors.dynamics.structure import MODELS, Structure, structure_from_text
from poise.skeleton.kernels import ROOT_SIZE
from poise.types import Array, NamedProgress, silent

RECORDED = "recorded, at 30 Hz"
SHEET_POSES = 10
PUBLISHED = "urtasun2008-"
ROUNDING = 1e-9


def evaluate_topology(
    draws: Sequence[Sequence[Motion]],
    *,
    methods: Sequence[str] = (),
    inference: Sequence[Inference] = (GUIDED,),
    progress: NamedProgress = silent,
) -> list[Row]:
    """A row of metrics per model and inference: the mean over choices of clips, and its spread.

    `urtasun2008-NAME` is the model NAME as published.
    """
    names = list(methods or MODELS)
    for name in names:
        if name.removeprefix(PUBLISHED).split(" + ")[0] not in MODELS:
            raise UnknownNameError("motion model", name, MODELS)
    found: dict[str, list[dict[str, float]]] = {RECORDED: []}
    for number, clips in enumerate(draws):
        sequences = sequences_of(clips)
        doing = sequences.activity_names
        if len(doing) < 2:
            raise InvalidValueError(
                f"topology needs clips of two activities, such as walks and runs; found {doing}"
            )
        for name in doing:
            if sequences.activities.count(name) < 2:
                raise InvalidValueError(
                    "topology needs two clips or more of every activity, to tell how much they differ; "
                    f"there is one {name}"
                )
        recorded = Recorded(sequences)
        for done, name in enumerate(names, start=number * len(names)):
            progress(name, done, len(draws) * len(names))
            prior = learned_model(structure_of(name, clips), sequences)
            for kind in inference:
                called = name if len(inference) == 1 else f"{name}, {kind}"
                found.setdefault(called, []).append(measured(prior, recorded, inference=kind))
        found[RECORDED].append({"slide_cm_s": 100.0 * recorded.slide})
    progress(names[-1], len(draws) * len(names), len(draws) * len(names))
    rows: list[Row] = []
    for name, each in found.items():
        values = {metric: [own[metric] for own in each] for metric in each[0]}
        rows.append({"method": name, **{metric: float(np.mean(own)) for metric, own in values.items()}})
        if len(each) > 1:
            spread = {metric: float(np.std(own, ddof=1)) for metric, own in values.items()}
            rows.append({"method": f"{name}, spread", **spread})
    return rows


def structure_of(name: str, clips: Sequence[Motion]) -> Structure:
    """A model's latent space: three dimensions, or four if clips are of several bodies."""
    structure = structure_from_text(name.removeprefix(PUBLISHED))
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
        for first, second in permutations(prior.frames.activity_names, 2)
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
    return mean_degrees(prior.predict_all(prior.latents)[:, :maps], sequences.y[:, :maps])


def roughness(prior: DynamicsPrior) -> float:
    """Mean length of second differences along the latent paths over that of first ones."""
    bends = np.concatenate([np.linalg.norm(np.diff(path, n=2, axis=0), axis=1) for path in prior.paths])
    steps = np.concatenate([np.linalg.norm(np.diff(path, axis=0), axis=1) for path in prior.paths])
    return float(bends.mean() / max(steps.mean(), ROUNDING))


def phase_disagreement(prior: DynamicsPrior, sequences: Sequences) -> float:
    """Mean difference of phase, in degrees, between each point and its nearest one in every other sequence."""
    latents, frames, radians = prior.latents, prior.frames, sequences.phases["phase"]
    gaps = []
    for (first, end), (from_, to) in permutations(frames.bounds(), 2):
        distances = np.linalg.norm(latents[first:end, None] - latents[None, from_:to], axis=2)
        gaps.append(radians[first:end] - radians[from_ + distances.argmin(axis=1)])
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


# --- what simulated motion is worth ----------------------------------------------------------------------------------

SECONDS = 5.0  # of every simulation: half of it in each activity
STARTS = 24  # training frames of each activity that simulations start from
ARRIVED = 0.9  # share of the last second's frames that must be like the wanted activity's
UNFORCED, UNFORCED_SECONDS = 21, 10.0  # simulations without a wished activity, and their duration
MOVING = 0.5  # of the recorded joint speed: below this a simulation has stopped
USUAL = 95.0  # percent of recorded frames that are closer than this to another recording of the same activity


@dataclass(frozen=True, eq=False)
class Recorded:
    """The recordings for the comparison: the training frames rebuilt from their features."""

    sequences: Sequences

    @cached_property
    def motions(self) -> list[Motion]:
        """The sequences as motions at 30 Hz."""
        space = self.sequences.space
        frames = [
            space.frames_from_q(poses_from_features(space, self.sequences.y[first:end], RATE))
            for first, end in self.sequences.bounds()
        ]
        return [Motion(space.skeleton, RATE, roots, turns) for roots, turns in frames]

    @cached_property
    def poses(self) -> Float[Array, "frames joints 3"]:
        """Joint positions about the root of all frames."""
        return np.concatenate([about_root(motion) for motion in self.motions])

    @cached_property
    def standing(self) -> Bool[Array, "frames 2 2"]:
        """The standing points of the feet, in all frames."""
        return np.concatenate([foot_contacts(motion, brief=True).points for motion in self.motions])

    @cached_property
    def slide(self) -> float:
        """Foot slide of the recordings themselves, in metres per second."""
        parts = zip(self.motions, self.sequences.bounds(), strict=True)
        return float(np.concatenate([slide_of(one, self.standing[a:b]) for one, (a, b) in parts]).mean())

    @cached_property
    def difference(self) -> float:
        """The distance of most frames from the nearest frame of another recording of the same activity, per feature."""
        sequences, distances = self.sequences, []
        for number, (first, end) in enumerate(sequences.bounds()):
            alike = sequences.activity_of == sequences.activity_of[first]
            others = sequences.scaled[alike & (sequences.sequence_of != number)]
            distances.append(cdist(sequences.scaled[first:end], others).min(axis=1))
        return float(np.percentile(np.concatenate(distances), USUAL) / np.sqrt(sequences.scaled.shape[1]))

    @cached_property
    def shakes(self) -> Float[Array, "frames"]:
        """Mean acceleration of the joints, in all frames."""
        return np.concatenate([shakes_of(motion) for motion in self.motions])

    def speed(self, activity: str) -> float:
        """Mean speed of the joints about the root."""
        named = zip(self.motions, self.sequences.activities, strict=True)
        return float(np.mean([speed_about_root(motion) for motion, name in named if name == activity]))

    def nearest(self, motion: Motion) -> tuple[Float[Array, "frames"], Int[Array, "frames"]]:
        """Per frame the mean joint distance to the nearest recorded pose, and its index."""
        own = about_root(motion)
        joints = zip(np.moveaxis(own, 1, 0), np.moveaxis(self.poses, 1, 0), strict=True)
        distances = np.mean([cdist(one, recorded) for one, recorded in joints], axis=0)
        return distances.min(axis=1), distances.argmin(axis=1)


def measure_simulations(
    prior: DynamicsPrior, recorded: Recorded, first: str, second: str, *, inference: Inference
) -> dict[str, float]:
    """Simulations from one activity into another."""
    paths = transition_paths(prior, first, second, inference)
    motions = [prior.motion_of(path) for path in paths]
    nearest = [recorded.nearest(motion) for motion in motions]
    met = [(motion, which) for motion, (_, which) in zip(motions, nearest, strict=True)]
    slides = [slide_of(motion, recorded.standing[which]) for motion, which in met]
    arrived = np.array([arrives(motion, which, recorded, second) for motion, which in met])
    unsure = unsureness(prior, recorded.sequences, paths).max(axis=1)
    known = float(unsureness(prior, recorded.sequences, prior.latents).max())
    shaking = [(shakes_of(motion), recorded.shakes[which]) for motion, which in met]
    return {
        "nearest_cm": float(100.0 * np.mean([distance.mean() for distance, _ in nearest])),
        "slide_cm_s": float(100.0 * np.concatenate(slides).mean()),
        "jitter": float(np.mean([own.mean() / usual.mean() for own, usual in shaking])),
        "jitter_off": float(np.mean([jitter_off(own, usual) for own, usual in shaking])),
        "unsure": float(np.median(unsure) / recorded.difference),
        "completed": float(np.mean(arrived & (unsure <= recorded.difference))),
        "completed_strict": float(np.mean(arrived & (unsure <= known))),
        "unforced": passing(prior, recorded, first, second, inference),
    }


def passing(prior: DynamicsPrior, recorded: Recorded, first: str, second: str, inference: Inference) -> float:
    """The share of samples of the dynamics that pass from one activity into another unprompted (Fig. 3).

    They have ten seconds, must stay within the data, and must be like the other activity for a whole second.
    """
    chosen = _starts(prior, first, UNFORCED)
    x, before = start_points(prior, chosen)
    rng = np.random.default_rng(0)
    frames = round(UNFORCED_SECONDS * RATE)
    paths = simulate(prior, x, before=before, frames=frames, rng=rng, inference=inference).latents
    inside = unsureness(prior, recorded.sequences, paths).max(axis=1) <= recorded.difference
    there, window = recorded.sequences.activity_names.index(second), np.ones(round(RATE)) / round(RATE)

    def passes(path: Float[Array, "frames latent"]) -> bool:
        like = recorded.sequences.activity_of[recorded.nearest(prior.motion_of(path))[1]] == there
        return bool(np.any(np.convolve(like, window, mode="valid") >= ARRIVED))

    return float(np.mean([bool(ok) and passes(path) for ok, path in zip(inside, paths, strict=True)]))


def unsureness(
    prior: DynamicsPrior, sequences: Sequences, latents: Float[Array, "*n latent"]
) -> Float[Array, "*n"]:
    """The predicted standard deviation of poses at latent points, per feature, relative to the data's."""
    scales = prior.all_scales[sequences.varying] * sequences.centred.std(axis=0)
    return np.asarray(np.sqrt(prior.variance(latents) * np.mean(scales**-2.0)))


def transition_paths(
    prior: DynamicsPrior, first: str, second: str, inference: Inference = GUIDED
) -> Float[Array, "paths frames latent"]:
    """Latent paths from frames of one activity into another."""
    frames = round(SECONDS * RATE)
    x, before = start_points(prior, _starts(prior, first, STARTS))
    wishes = plan(prior, [first, second], frames=frames)
    return simulate(prior, x, before=before, frames=frames, wishes=wishes, inference=inference).latents


def _starts(prior: DynamicsPrior, activity: str, count: int) -> Int[Array, "{count}"]:
    """Training frames all over an activity."""
    doing = np.flatnonzero(prior.frames.activity_of == prior.frames.activity_names.index(activity))
    return np.asarray(doing[np.linspace(0, len(doing) - 1, count).round().astype(np.int64)])


def arrives(motion: Motion, nearest: Int[Array, "frames"], recorded: Recorded, wanted: str) -> bool:
    """Whether a simulation does the wanted activity in its last second, and still moves."""
    sequences, last = recorded.sequences, round(RATE)
    like = np.mean(sequences.activity_of[nearest[-last:]] == sequences.activity_names.index(wanted))
    return bool(like >= ARRIVED and speed_about_root(motion[-last:]) >= MOVING * recorded.speed(wanted))


def slide_of(motion: Motion, standing: Bool[Array, "frames 2 2"]) -> Float[Array, "_standing"]:
    """Foot slide, given the standing points, by each foot's slower point, in metres per second."""
    speed = np.linalg.norm(derivative(foot_positions(motion)[..., [0, 2]], motion.fps), axis=-1)
    return np.asarray(np.where(standing, speed, np.inf).min(axis=-1)[standing.any(axis=-1)])


def about_root(motion: Motion) -> Float[Array, "frames joints 3"]:
    """Joint positions in the root's own frame."""
    positions = joint_positions(motion) - motion.root_positions[:, None]
    return rotations.rotate(rotations.conjugate(motion.rotations[:, 0])[:, None], positions)


def speed_about_root(motion: Motion) -> float:
    """Mean speed of the joints in the root's frame, in metres per second."""
    return float(np.linalg.norm(np.diff(about_root(motion), axis=0), axis=2).mean() * motion.fps)


def jitter_off(own: Float[Array, "frames"], usual: Float[Array, "frames"]) -> float:
    """The factor by which accelerations differ from the usual ones, up or down, around the transition."""
    quarter = len(own) // 4
    parts = (slice(quarter, 2 * quarter), slice(-quarter, None))
    return float(np.exp(np.mean([abs(np.log(own[part].mean() / usual[part].mean())) for part in parts])))


def shakes_of(motion: Motion) -> Float[Array, "frames"]:
    """Mean acceleration of the joints, frame by frame, in metres per second squared."""
    return np.asarray(np.linalg.norm(accelerations(motion), axis=2).mean(axis=1))


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
    """Fig. 2: the latent spaces; per model a path from one activity to the other, and its motion."""
    from poise.apps.outputs import save_picture
    from poise.apps.simulating import simulate as simulation
    from poise.pictures import contact_sheet
    from poise.pictures.latent_paths import draw_latent_paths, draw_models

    clips = request.folds()[0].train
    sequences = sequences_of(clips)
    priors = {}
    for name in request.methods or report.methods or MODELS:
        step(f"learning {name} again for its picture")
        priors[name] = learned_model(structure_of(name, clips), sequences)
    files = [save_picture(draw_models(priors), folder / "models.png")]
    first, second = sequences.activity_names[:2]
    for name, prior in priors.items():
        step(f"drawing {name}")
        both = ((first, second), (second, first))
        paths = {f"{a} to {b}": transition_paths(prior, a, b)[0] for a, b in both}
        files.append(save_picture(draw_latent_paths(prior, paths, title=name), folder / f"{name}.png"))
        moved = simulation(prior, activities=[second, first], seconds=5.0).motion
        sheet = contact_sheet(moved, poses=SHEET_POSES, title=f"{name}: {moved.name}", layout="row")
        files.append(save_picture(sheet, folder / f"{name}_motion.png"))
    return files


PROTOCOL = Protocol(
    "topology",
    ABOUT["topology"],
    _run,
    _draw,
    methods=(*MODELS, f"{PUBLISHED}MODEL"),
    Options=TopologyOptions,
    splits={PERFORMER: performer_gaits},
)
