"""Quality of motion that a model simulates from one activity into another, compared with recordings.

No measure uses the simulation's own claims. Foot contacts are those of the nearest recorded pose: a foot that slides
too fast to be detected as standing still counts as sliding. Accelerations are compared with those of that pose, since
recordings differ by style and performer. A path has left the data where the model's uncertainty of the pose exceeds
the difference between recordings of one activity; both are deviations of features relative to the data's, so that
models with different latent spaces are comparable.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.spatial.distance import cdist

from poise.geometry import rotations
from poise.motion.contacts import foot_contacts, foot_positions
from poise.motion.motion import Motion
from poise.motion.world import accelerations, derivative, joint_positions
from poise.priors.dynamics.prior import DynamicsPrior
from poise.priors.dynamics.root import poses_from_features
from poise.priors.dynamics.sequences import RATE, Sequences
from poise.priors.dynamics.simulation import GUIDED, Inference, plan, simulate, start_points
from poise.types import Array

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
    return float(
        np.mean(
            [
                bool(ok) and _passes(prior, recorded, path, second)
                for ok, path in zip(inside, paths, strict=True)
            ]
        )
    )


def _passes(
    prior: DynamicsPrior, recorded: Recorded, path: Float[Array, "frames latent"], second: str
) -> bool:
    sequences = recorded.sequences
    _, which = recorded.nearest(prior.motion_of(path))
    like = sequences.activity_of[which] == sequences.activity_names.index(second)
    window = np.convolve(like, np.ones(round(RATE)) / round(RATE), mode="valid")
    return bool(np.any(window >= ARRIVED))


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
