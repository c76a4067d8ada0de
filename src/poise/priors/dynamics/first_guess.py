"""Initial latent points: circles at their phases, axes along the pose variation that the phase does not explain.

If the model has transitions between activities, axes start along the differences between activities. Otherwise
performers, who may differ more than activities do, would lie between one performer's walking and running. If no axis
is left for the styles of one activity, they share the last axis: they start together, or separated in one direction or
the other, because learning rarely moves one past another.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int

from poise.gp.latent import principal_latents
from poise.priors.dynamics.local_linearity import LocalWeights
from poise.priors.dynamics.measures import circle_coordinate
from poise.priors.dynamics.sequences import Sequences
from poise.priors.dynamics.structure import Structure
from poise.priors.dynamics.surface import waves
from poise.types import Array

RADIUS = 1.5  # radius of a circle, in the latent space's unit: the width of the pose kernel
SMOOTHING = 100.0  # of a locally linear axis: weight of agreement with neighbours against staying in place
STYLES_APART = 0.5  # initial distance between styles of one activity, relative to that between activities
HARMONICS = 3  # of the phase, whose mean poses are removed before an axis is found


def first_guesses(
    structure: Structure, sequences: Sequences, local: Sequence[LocalWeights | None]
) -> list[Float[Array, "frames latent"]]:
    """Initial latent points; several alternatives if styles share an axis with activities."""
    dimensions = structure.dimensions
    circles = [number for number, each in enumerate(dimensions) if each.part]
    plain = [number for number, each in enumerate(dimensions) if not each.part]
    guess = np.empty((len(sequences.scaled), len(dimensions)))
    for number in circles:
        radians = sequences.phases[dimensions[number].source]
        guess[:, number] = RADIUS * circle_coordinate(radians, dimensions[number].part)
    guesses = []
    for axes in _axes(structure, sequences, len(plain)):
        guess[:, plain] = axes
        for number in plain:
            if (weights := local[number]) is not None and dimensions[number].transitions:
                guess[:, number] = weights.smoothed(guess[:, number], SMOOTHING)
        guesses.append(guess.copy())
    return guesses


def _axes(structure: Structure, sequences: Sequences, count: int) -> list[Float[Array, "frames {count}"]]:
    """Alternative initial values of all axes."""
    doing, names = sequences.activity_of, sequences.activity_names
    beside = sequences.scaled
    for source in structure.phases:
        beside = beside - _explained(sequences.phases[source], beside)
    telling = min(count, len(names) - 1) if structure.uses_transitions else 0
    means = _means(beside, doing)
    directions = np.linalg.svd(means - means.mean(axis=0), full_matrices=False)[2][:telling]
    along = beside @ directions.T
    rest = beside - along @ directions
    axes = np.hstack([_unit(along), principal_latents(rest, count - telling)])
    if not 0 < telling == count or max(map(sequences.activities.count, names)) == 1:
        return [axes]
    within = rest - _means(rest, doing)[doing]
    styles = within @ _leading(_means(within, sequences.sequence_of))
    last = np.eye(count)[-1] * STYLES_APART * _unit(styles)[:, None]
    return [axes, axes + last, axes - last]


def _means(
    values: Float[Array, "frames features"], group_of: Int[Array, "frames"]
) -> Float[Array, "groups features"]:
    """The mean of every group of frames."""
    member = np.eye(group_of.max() + 1)[group_of]
    return np.asarray(member.T @ values / member.sum(axis=0)[:, None])


def _unit(values: Float[Array, "frames *n"]) -> Float[Array, "frames *n"]:
    """Values scaled to unit standard deviation."""
    return np.asarray(values / np.maximum(values.std(axis=0), 1e-12))


def _leading(rows: Float[Array, "rows features"]) -> Float[Array, "features"]:
    """The leading right singular vector of the rows."""
    return np.asarray(np.linalg.svd(rows, full_matrices=False)[2][0])


def _explained(
    radians: Float[Array, "frames"], scaled: Float[Array, "frames features"]
) -> Float[Array, "frames features"]:
    """The part of the poses that the phase explains: their mean over sequences, as a Fourier series."""
    design = waves(radians, HARMONICS)
    return np.asarray(design @ np.linalg.lstsq(design, scaled, rcond=None)[0])
