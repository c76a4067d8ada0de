"""Protocol `topology` (Urtasun et al. 2008, Figs. 1, 2 and 5): walking and running in one latent space, seven models.

Of the latent space: how well poses come back, how smooth paths are, whether sequences agree about the phase, and how
close frames of the same transition lie. Of motion simulated from one activity into the other: how far poses are from
any that was recorded, how much standing feet slide, how jerky it is, and whether it arrives without leaving the data's
variance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float

from poise.errors import InvalidValueError, UnknownNameError
from poise.evaluation.handles import Row
from poise.geometry import rotations
from poise.motion.contacts import foot_contacts, foot_slide
from poise.motion.motion import Motion
from poise.motion.world import accelerations, joint_positions
from poise.priors.dynamics.learning import learn_motion
from poise.priors.dynamics.prior import DynamicsPrior
from poise.priors.dynamics.sequences import RATE, Sequences, sequences_of
from poise.priors.dynamics.simulation import plan, simulate, start_points
from poise.priors.dynamics.structure import MODELS
from poise.skeleton.kernels import ROOT_SIZE

Array = np.ndarray
Progress = Callable[[str, int, int], None]

SECONDS = 5.0  # of every simulation: half of it in each activity
STARTS = 24  # training frames of each activity that simulations start from
ARRIVED = 0.9  # of the last second's frames that must be like the wanted activity's
MOVING = 0.5  # of the recorded speed of the joints, below which a simulation has come to a stop
SURE = 2.0  # times the largest variance at any training point: farther, a path has left the data
ROUNDING = 1e-9


def evaluate_topology(
    clips: Sequence[Motion],
    *,
    methods: Sequence[str] = (),
    progress: Progress = lambda _what, _done, _all: None,
) -> list[Row]:
    """A row of metrics per model, all learned from the same clips."""
    names = list(methods or MODELS)
    for name in names:
        if name not in MODELS:
            raise UnknownNameError("motion model", name, MODELS)
    sequences = sequences_of(clips)
    if len(sequences.activity_names) < 2:
        raise InvalidValueError(
            f"topology needs clips of two activities, such as walks and runs; found {sequences.activity_names}"
        )
    rows: list[Row] = []
    for number, name in enumerate(names):
        progress(name, number, len(names))
        rows.append({"method": name, **measured(learned_model(name, sequences), sequences)})
    progress(names[-1], len(names), len(names))
    return rows


def learned_model(name: str, sequences: Sequences) -> DynamicsPrior:
    """A model by its name, learned."""
    return DynamicsPrior.of_learned(learn_motion(sequences, MODELS[name]))


def measured(prior: DynamicsPrior, sequences: Sequences) -> dict[str, float]:
    """All metrics of one model."""
    simulated = [
        measure_simulations(prior, Recorded(prior, sequences), first, second)
        for first in prior.frames.names
        for second in prior.frames.names
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
    """Mean angle, in degrees, between joints of training poses and what the model expects at their places."""
    maps = prior.space.size - ROOT_SIZE
    found, true = prior.predict_all(prior.model.latents)[:, :maps], sequences.y[:, :maps]
    turned, recorded = (
        rotations.quaternion_from_expmap(each.reshape(len(each), -1, 3)) for each in (found, true)
    )
    return float(np.degrees(rotations.geodesic_distance(turned, recorded).mean()))


def roughness(prior: DynamicsPrior) -> float:
    """Mean length of second differences along the latent paths over that of first ones."""
    paths = [prior.model.latents[first:end] for first, end in prior.frames.bounds()]
    bends = np.concatenate([np.linalg.norm(np.diff(path, n=2, axis=0), axis=1) for path in paths])
    steps = np.concatenate([np.linalg.norm(np.diff(path, axis=0), axis=1) for path in paths])
    return float(bends.mean() / max(steps.mean(), ROUNDING))


def phase_disagreement(prior: DynamicsPrior, sequences: Sequences) -> float:
    """Mean difference of phase, in degrees, between each point and its nearest one in every other sequence."""
    latents, frames, radians = prior.model.latents, prior.frames, sequences.phases["phase"]
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
    """Distance between points of one transition in different activities, over the distance between any two points."""
    latents, doing = prior.model.latents, prior.frames.activity_of
    gaps = [
        np.linalg.norm(latents[a] - latents[b])
        for points in prior.frames.transitions
        for a in points
        for b in points
        if doing[a] < doing[b]
    ]
    spread = np.linalg.norm(latents[:, None] - latents[None], axis=2).mean()
    return float(np.mean(gaps) / max(spread, ROUNDING)) if gaps else 0.0


def sure_variance(prior: DynamicsPrior) -> float:
    """How unsure of poses a model may be where it has not left the data."""
    return float(SURE * prior.model.variance(prior.model.latents).max())


# --- simulated motion ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Recorded:
    """What was recorded, as the simulated is compared with it: the training frames rebuilt from their features."""

    prior: DynamicsPrior
    sequences: Sequences

    @cached_property
    def motions(self) -> list[Motion]:
        """The sequences as motions at 30 Hz."""
        space = self.prior.space
        frames = [
            space.frames_from_q(self.prior.poses_of(self.sequences.y[first:end]))
            for first, end in self.sequences.bounds()
        ]
        return [Motion(space.skeleton, RATE, roots, turns) for roots, turns in frames]

    @cached_property
    def poses(self) -> Float[Array, "frames joints 3"]:
        """Joint positions about the root of all frames."""
        return np.concatenate([about_root(motion) for motion in self.motions])

    @cached_property
    def sure(self) -> float:
        """The variance up to which a path has not left the data."""
        return sure_variance(self.prior)

    def acceleration(self, *activities: str) -> float:
        """Mean acceleration of the joints over activities, each counting the same."""
        return float(np.mean([np.mean([_shake(m) for m in self._doing(name)]) for name in activities]))

    def speed(self, activity: str) -> float:
        """Mean speed of the joints about the root."""
        return float(np.mean([speed_about_root(motion) for motion in self._doing(activity)]))

    def _doing(self, activity: str) -> list[Motion]:
        named = zip(self.motions, self.sequences.activities, strict=True)
        return [motion for motion, name in named if name == activity]


def measure_simulations(
    prior: DynamicsPrior, recorded: Recorded, first: str, second: str
) -> dict[str, float]:
    """Simulations that start in one activity and are led over into another."""
    paths = transition_paths(prior, first, second)
    motions = [prior.motion_of(path) for path in paths]
    nearest = [_nearest(about_root(motion), recorded.poses) for motion in motions]
    standing = [(motion, foot_contacts(motion)) for motion in motions]
    slides = [foot_slide(motion, contacts)[contacts.feet] for motion, contacts in standing]
    whole = recorded.acceleration(first, second)
    return {
        "nearest_cm": float(100.0 * np.mean([distance.mean() for distance, _ in nearest])),
        "slide_cm_s": float(100.0 * np.mean(np.concatenate(slides))),
        "jitter": float(np.mean([_shake(motion) for motion in motions]) / whole),
        "jitter_off": float(np.mean([_jitter_off(motion, recorded, first, second) for motion in motions])),
        "completed": float(np.mean(completed(prior, recorded, paths, second))),
    }


def transition_paths(prior: DynamicsPrior, first: str, second: str) -> Float[Array, "paths frames latent"]:
    """Latent paths from frames of one activity into another."""
    frames = round(SECONDS * RATE)
    doing = np.flatnonzero(prior.frames.activity_of == prior.frames.names.index(first))
    chosen = doing[np.linspace(0, len(doing) - 1, STARTS).round().astype(np.int64)]
    x, before = start_points(prior, chosen)
    return simulate(
        prior, x, before=before, frames=frames, wishes=plan(prior, [first, second], frames=frames)
    ).latents


def completed(
    prior: DynamicsPrior, recorded: Recorded, paths: Float[Array, "paths frames latent"], wanted: str
) -> Bool[Array, "paths"]:
    """Which simulations arrive in the wanted activity, still moving, and were never less sure than the data allow."""
    variances = prior.model.variance(paths)
    number, last = prior.frames.names.index(wanted), round(RATE)
    found = []
    for path, variance in zip(paths, variances, strict=True):
        motion = prior.motion_of(path[-last:])
        _, nearest = _nearest(about_root(motion), recorded.poses)
        arrived = np.mean(prior.frames.activity_of[nearest] == number) >= ARRIVED
        moving = speed_about_root(motion) >= MOVING * recorded.speed(wanted)
        found.append(bool(arrived and moving and variance.max() <= recorded.sure))
    return np.array(found)


def about_root(motion: Motion) -> Float[Array, "frames joints 3"]:
    """Joint positions in the root's own frame."""
    positions = joint_positions(motion) - motion.root_positions[:, None]
    return rotations.rotate(rotations.conjugate(motion.rotations[:, 0])[:, None], positions)


def speed_about_root(motion: Motion) -> float:
    """Mean speed of the joints in the root's frame, in metres per second."""
    return float(np.linalg.norm(np.diff(about_root(motion), axis=0), axis=2).mean() * motion.fps)


def _jitter_off(motion: Motion, recorded: Recorded, first: str, second: str) -> float:
    """The factor by which accelerations differ from the recorded ones, up or down, before and after the transition."""
    quarter = len(motion) // 4
    parts = [
        (_shake(motion[quarter : 2 * quarter]), first),
        (_shake(motion[-quarter:]), second),
    ]
    return float(np.exp(np.mean([abs(np.log(own / recorded.acceleration(name))) for own, name in parts])))


def _shake(motion: Motion) -> float:
    return float(np.linalg.norm(accelerations(motion), axis=2).mean())


def _nearest(
    poses: Float[Array, "frames joints 3"], known: Float[Array, "known joints 3"]
) -> tuple[Float[Array, "frames"], Array]:
    """Per pose the mean distance of joints to those of the recorded pose that is nearest, and which it is."""
    distances = np.stack([np.linalg.norm(known - pose, axis=2).mean(axis=1) for pose in poses])
    return distances.min(axis=1), distances.argmin(axis=1)
