"""The parts of the motion models: descriptions, local linearity, transitions, roots, surfaces."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poise.errors import InvalidValueError, UnknownNameError
from poise.geometry import rotations
from poise.motion import Motion
from poise.priors.dynamics import layout as layouts
from poise.priors.dynamics.flow import surface_through
from poise.priors.dynamics.layout import Layout, local_loss, local_weights
from poise.priors.dynamics.sequences import (
    Sequences,
    root_features,
    root_jacobians,
    root_path,
    rotation_from,
    sequences_of,
    yaw_slope,
    yaws,
)
from poise.priors.dynamics.structure import (
    ADDED,
    BACK,
    FREE,
    LOCAL,
    MODELS,
    MULTIPLIED,
    Structure,
    structure_from_text,
)
from poise.skeleton.pose_space import PoseSpace
from tests.differences import gradient


def test_the_paper_s_description_is_read() -> None:
    structure = structure_from_text(
        "cylinder(phase) by back-constraints + smooth style axis by local linearity + transitions"
    )
    assert [each.means for each in structure.dimensions] == [BACK, BACK, LOCAL]
    assert [each.part for each in structure.dimensions] == ["cos", "sin", ""]
    assert structure.dimensions[2].name == "style"
    assert structure.uses_transitions


def test_transitions_are_multiplied_beside_a_circle_unless_it_is_said_that_they_are_added() -> None:
    def joined(text: str) -> list[str]:
        return [each.transitions for each in structure_from_text(text).dimensions]

    assert joined("cylinder(phase) + transitions") == ["", "", MULTIPLIED]
    assert joined("cylinder(phase) + added transitions") == ["", "", ADDED]
    assert joined("2 smooth axes by back-constraints + transitions") == [ADDED, ADDED]
    assert joined("2 smooth axes by local linearity + free axis + transitions") == [
        MULTIPLIED,
        MULTIPLIED,
        "",
    ]
    with pytest.raises(InvalidValueError, match="or write 'added transitions'"):
        structure_from_text("2 smooth axes by back-constraints + multiplied transitions")


def test_a_torus_is_two_circles_and_a_cylinder_has_an_axis() -> None:
    assert structure_from_text("torus(phase, frequency)").phases == ("phase", "frequency")
    assert len(structure_from_text("torus(phase, frequency)").dimensions) == 4
    assert len(structure_from_text("cylinder(phase)").dimensions) == 3
    assert len(structure_from_text("circle(phase) + 2 free axes + second order").dimensions) == 4
    assert structure_from_text("three free axes + no dynamics") == MODELS["gplvm"]


def test_a_description_may_begin_with_a_model() -> None:
    assert structure_from_text("gpdm + second order") == structure_from_text("3 free axes + second order")
    assert structure_from_text("hybrid + no steps beside") == replace(MODELS["hybrid"], beside=False)
    assert structure_from_text("topology + transitions") == MODELS["transitions"]
    beside = structure_from_text("gpdm + steps beside")
    assert beside == replace(MODELS["gpdm"], beside=True)
    assert Structure.restored(beside.header()) == beside


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "description is empty"),
        ("sphere(phase)", "'sphere' is not a shape"),
        ("torus(phase)", "needs 2 phases"),
        ("cylinder(phase) by magic", "'magic' is unknown"),
        ("a banana", "is not understood"),
        ("free axis by local linearity", "either free or constrained"),
        ("second order", "has no dimensions"),
        ("0 free axes", "at least 1"),
    ],
)
def test_mistakes_in_a_description_are_named(text: str, said: str) -> None:
    with pytest.raises(InvalidValueError, match=said):
        structure_from_text(text)


@pytest.mark.parametrize("name", MODELS)
def test_structures_come_back_from_their_header(name: str) -> None:
    assert Structure.restored(MODELS[name].header()) == MODELS[name]


def test_local_weights_rebuild_points_on_a_plane(rng: np.random.Generator) -> None:
    points = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 5))
    squared = layouts.pose_distances(points, points)
    local = local_weights(squared, neighbours=6)
    np.testing.assert_allclose(local.weights.sum(axis=1), 1.0)
    inside = np.argsort(((points - points.mean(axis=0)) ** 2).sum(axis=1))[:30]
    for coordinate in points.T:
        assert np.abs(local.left_over(coordinate))[inside].max() < 0.05 * np.ptp(coordinate)


def test_the_gradient_of_the_locally_linear_prior(rng: np.random.Generator) -> None:
    points = rng.normal(size=(15, 3))
    local = local_weights(layouts.pose_distances(points, points), neighbours=4)
    at = rng.normal(size=15)
    np.testing.assert_allclose(
        local_loss(local, at)[1], gradient(lambda x: local_loss(local, x)[0], at), rtol=1e-5, atol=1e-6
    )


def test_frames_at_the_same_transition_are_close_and_others_are_not(sequences: Sequences) -> None:
    distances = layouts.transition_distances(sequences.times, sequences.transitions)
    left, right = sequences.transitions
    assert distances[left[0], left[-1]] == pytest.approx(layouts.TRACE)
    assert distances[left[0], right[0]] == 1.0
    bumps = layouts.transition_bumps(sequences.times, sequences.transitions)
    kernel = bumps @ bumps.T
    assert kernel[left[0], left[-1]] > 0.9
    assert kernel[left[0], right[0]] < 0.1
    assert np.linalg.eigvalsh(kernel).min() > -1e-9


def test_an_axis_keeps_little_of_its_width_at_the_phase_of_a_transition(sequences: Sequences) -> None:
    radians = sequences.phases["phase"]
    shares = layouts.transition_shares(radians, sequences.transitions)
    np.testing.assert_allclose(shares[np.concatenate(sequences.transitions)], layouts.KEPT, atol=0.05)
    between = np.abs(np.cos(radians)) < 0.2  # a quarter of a turn from either landing
    assert shares[between].min() > 0.85
    turned = layouts.transition_shares(radians + 2.0 * np.pi, sequences.transitions)
    np.testing.assert_allclose(turned, shares)


def test_distances_are_multiplied_or_added(sequences: Sequences) -> None:
    plain, multiplied, added = (
        Layout(structure_from_text(f"smooth axis by local linearity{also}"), sequences)
        for also in ("", " + transitions", " + added transitions")
    )
    left, right = sequences.transitions
    pairs = np.array([[left[0], left[-1]], [left[0], right[0]]])
    apart, product, total = (
        layout._distances(layout.structure.dimensions[0])[tuple(pairs.T)]
        for layout in (plain, multiplied, added)
    )
    alone = np.array([layouts.TRACE, 1.0])
    np.testing.assert_allclose(product, apart * alone)
    np.testing.assert_allclose(total, apart + alone)


def test_walking_and_running_are_told_apart_by_flight(sequences: Sequences) -> None:
    assert sequences.activities == ("walk", "run")
    assert sequences.activity_names == ("walk", "run")
    assert all(len(points) >= 2 for points in sequences.transitions)


def test_an_unknown_phase_lists_those_there_are(sequences: Sequences) -> None:
    with pytest.raises(UnknownNameError, match="arms"):
        Layout(structure_from_text("circle(arms)"), sequences)


def test_too_few_names_for_the_clips_are_refused(motions: list[Motion]) -> None:
    with pytest.raises(InvalidValueError, match="2 clips need as many activities"):
        sequences_of(motions, activities=["walk"])


def test_the_root_comes_back_from_its_features(motions: list[Motion]) -> None:
    motion = motions[0]
    space = PoseSpace(motion.skeleton)
    q = space.q_from_frames(motion.root_positions, motion.rotations)
    features = root_features(q, motion.fps)
    at, yaw = (float(q[0, 0]), float(q[0, 2])), float(yaws(q[0, 3:7]))
    positions, turned = root_path(features, motion.fps, at=at, yaw=yaw)
    np.testing.assert_allclose(positions, q[:, :3], atol=1e-9)
    up = rotations.matrix_from_quaternion(q[:, 3:7])[:, 1]
    again = rotation_from(up, turned)
    assert rotations.geodesic_distance(again, q[:, 3:7]).max() < 1e-6


quaternions = st.lists(st.floats(-0.8, 0.8), min_size=3, max_size=3).map(
    lambda e: rotations.quaternion_from_expmap(np.array(e))
)


@settings(max_examples=15)
@given(first=quaternions, second=quaternions)
def test_the_slopes_of_the_root_s_features(first: np.ndarray, second: np.ndarray) -> None:
    q = np.zeros((2, 7))
    q[0, :3], q[1, :3], q[0, 3:], q[1, 3:] = (0.1, 0.9, 0.2), (0.3, 1.0, 0.5), first, second

    def moved(step: np.ndarray, frame: int) -> np.ndarray:
        out = q.copy()
        out[frame, :3] += step[:3]
        turn = rotations.quaternion_from_expmap(step[3:])
        out[frame, 3:] = rotations.multiply(out[frame, 3:], turn)
        return root_features(out, 60.0)[0]

    own, after = root_jacobians(q[0], q[1], 60.0)
    for part in range(4):
        slopes = gradient(lambda d, part=part: float(moved(d, 0)[part]), np.zeros(6))
        np.testing.assert_allclose(own[part], slopes, atol=1e-6)
        slopes = gradient(lambda d, part=part: float(moved(d, 1)[part]), np.zeros(6))
        np.testing.assert_allclose(after[part], slopes, atol=1e-6)
    assert np.isfinite(yaw_slope(first)).all()


def test_points_come_onto_the_cylinder_at_their_phase(sequences: Sequences) -> None:
    structure = MODELS["topology"]
    phase = sequences.phases["phase"]
    latents = np.column_stack([1.5 * np.cos(phase), 1.2 * np.sin(phase), np.zeros(len(phase))])
    surface = surface_through(structure, latents, dict(sequences.phases))
    inside = latents * np.array([0.7, 0.7, 1.0]) + np.array([0.0, 0.0, 0.4])
    radians = surface.phases_of(inside)
    found = surface.at(radians, inside)
    np.testing.assert_allclose(found[:, 2], 0.4)
    np.testing.assert_allclose((found[:, 0] / 1.5) ** 2 + (found[:, 1] / 1.2) ** 2, 1.0, atol=1e-3)
    moves = surface.at(radians + 1e-3, inside) - found
    np.testing.assert_allclose(surface.along(radians, moves), 1e-3, rtol=1e-2)
    plain = surface_through(MODELS["gpdm"], latents, {})
    assert plain.at(plain.phases_of(inside), inside) == pytest.approx(inside)
    assert MODELS["gpdm"].dimensions[0].means == FREE
