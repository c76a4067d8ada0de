"""Every gradient of the motion models meets finite differences."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from poise.errors import InvalidValueError
from poise.gp.covariance import Kernel
from poise.priors.dynamics.flow import Flow, flow_loss, steps_of
from poise.priors.dynamics.layout import Layout
from poise.priors.dynamics.learning import MotionLoss, learn_motion
from poise.priors.dynamics.sequences import Sequences
from poise.priors.dynamics.structure import (
    ADDED,
    LOCAL,
    MODELS,
    Dimension,
    Structure,
    circle,
    structure_from_text,
)
from tests.differences import gradient

CYLINDER_BY_LINES = Structure((*circle("phase", LOCAL), Dimension(LOCAL)), order=2).with_transitions()
TURN = np.array([[0.9, -0.2], [0.3, 0.8]])
STRUCTURES = {
    **MODELS,
    "second-order": CYLINDER_BY_LINES,
    "added": MODELS["topology"].with_transitions(ADDED),
}


def small(sequences: Sequences) -> Sequences:
    """A few frames of each sequence, so that differences are quick."""
    (first, _), (second, _) = sequences.bounds()
    keep = np.r_[first : first + 14, second : second + 12]
    return Sequences(
        sequences.space,
        sequences.y[keep],
        (14, 12),
        sequences.activities,
        {name: radians[keep] for name, radians in sequences.phases.items()},
        (np.array([3, 16]), np.array([9, 22])),
    )


@pytest.mark.parametrize("inducing", [None, np.array([0, 5, 9, 13, 16, 20, 24])], ids=["exact", "sparse"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_the_gradient_of_the_whole_objective(
    name: str, inducing: np.ndarray | None, sequences: Sequences, rng: np.random.Generator
) -> None:
    scaling: Literal["one", "each"] = "one" if name in ("gplvm", "hybrid") else "each"
    loss = MotionLoss(Layout(STRUCTURES[name], small(sequences)), inducing, scaling, balance=1.7)
    at = loss.starts()[0] + 0.05 * rng.normal(size=len(loss.starts()[0]))
    chosen = rng.permutation(len(at))[:25]
    meets_differences(loss, at, np.unique(np.concatenate([np.arange(min(7, len(at))), chosen])))


@pytest.mark.parametrize("inducing", [None, np.array([0, 5, 9, 13, 16, 20, 24])], ids=["exact", "sparse"])
@pytest.mark.parametrize("name", ["topology", "hybrid", "torus"])
def test_the_gradient_in_a_phase_that_is_learned_along(
    name: str, inducing: np.ndarray | None, sequences: Sequences, rng: np.random.Generator
) -> None:
    structure = replace(structure_from_text(name), learned_phase=True)
    layout = Layout(structure, small(sequences))
    loss = MotionLoss(layout, inducing, balance=1.7)
    at = loss.starts()[0] + 0.05 * rng.normal(size=len(loss.starts()[0]))
    weights = layout.warp.shape[1] * len(structure.phases)
    meets_differences(loss, at, np.arange(len(at) - weights, len(at)))


def test_a_learned_phase_moves_little_and_makes_poses_likelier(sequences: Sequences) -> None:
    found, moved = (
        learn_motion(sequences, replace(MODELS["topology"], learned_phase=learned), steps=60)
        for learned in (False, True)
    )
    assert moved.curve[-1] < found.curve[-1]
    change = moved.sequences.phases["phase"] - sequences.phases["phase"]
    assert 1e-3 < np.abs(change).max() < 1.5
    np.testing.assert_array_equal(found.sequences.phases["phase"], sequences.phases["phase"])


def test_a_phase_is_learned_through_back_constraints_only() -> None:
    with pytest.raises(InvalidValueError, match="by back-constraints"):
        replace(CYLINDER_BY_LINES, learned_phase=True)
    with pytest.raises(InvalidValueError, match="describe a circle or a cylinder"):
        structure_from_text("3 free axes + learned phase")


def meets_differences(loss: MotionLoss, at: np.ndarray, chosen: np.ndarray) -> None:
    def along(values: np.ndarray) -> float:
        moved = at.copy()
        moved[chosen] = values
        return loss(moved)[0]

    np.testing.assert_allclose(loss(at)[1][chosen], gradient(along, at[chosen]), rtol=2e-4, atol=2e-3)


def test_with_every_frame_inducing_the_bound_is_the_likelihood(sequences: Sequences) -> None:
    few = small(sequences)
    layout = Layout(MODELS["gpdm"], few)
    exact, sparse = MotionLoss(layout), MotionLoss(layout, np.arange(len(few.y)))
    at = exact.starts()[0]
    assert sparse(at)[0] == pytest.approx(exact(at)[0], rel=2e-3)


@pytest.mark.parametrize("order", [1, 2])
def test_the_slopes_of_a_prediction(order: int, rng: np.random.Generator) -> None:
    path = rng.normal(size=(12, 2)).cumsum(axis=0) * 0.3
    steps = steps_of([(0, 6), (6, 12)], order=order, pace=3.0, turn=TURN, homing=np.array([0.0, 1.0]))
    kernel = Kernel.of("rbf", np.array([0.1, 4.0, -0.5]))
    parts = (steps.inputs(path), steps.outputs(path), order, 3.0, TURN, steps.homes(path))
    flow = Flow("walk", kernel, *parts, np.empty(0), np.empty((len(steps.now), 0)))
    x, before = rng.normal(size=(1, 2)), rng.normal(size=(1, 2))
    in_x, in_before = flow.slopes(x, before)
    for part in range(2):
        numeric = gradient(lambda at, part=part: float(flow.predict(at, before)[0][0, part]), x)
        np.testing.assert_allclose(in_x[0, part], numeric[0], atol=1e-7)
        numeric = gradient(lambda at, part=part: float(flow.predict(x, at)[0][0, part]), before)
        np.testing.assert_allclose(in_before[0, part], numeric[0], atol=1e-7)


@pytest.mark.parametrize("order", [1, 2])
def test_the_gradient_of_the_dynamics(order: int, rng: np.random.Generator) -> None:
    path = rng.normal(size=(11, 2)).cumsum(axis=0)
    steps = steps_of([(0, 6), (6, 11)], order=order, pace=2.0, turn=TURN, homing=np.array([0.0, 1.0]))
    kernel = Kernel.of("rbf", np.array([0.3, 2.0, -0.5]))
    _, in_logs, in_latents = flow_loss(path, steps, kernel)
    np.testing.assert_allclose(
        in_latents, gradient(lambda at: flow_loss(at, steps, kernel)[0], path), rtol=1e-5, atol=1e-5
    )
    slopes = gradient(lambda at: flow_loss(path, steps, Kernel.of("rbf", at))[0], kernel.logs.copy())
    np.testing.assert_allclose(in_logs, slopes, rtol=1e-5, atol=1e-5)
