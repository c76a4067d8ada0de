"""Regression from handles to poses: limbs, held-out blocks, and what is chosen by them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poise import performer
from poise.priors import process
from poise.skeleton.pose_space import Handle, PoseSpace


@pytest.fixture(scope="module")
def space() -> PoseSpace:
    motion = performer.act("walk", seconds=1.0, fps=30)
    return PoseSpace.of_rotations(motion.skeleton, motion.rotations)


def limb_weights(space: PoseSpace, limbs: process.Limbs, role: str) -> list[float]:
    component = 3 * int(np.flatnonzero(space.moving == space.skeleton.index(role))[0])
    place = int(np.flatnonzero(limbs.order == component)[0])
    return list(limbs.weights[np.searchsorted(limbs.ends, place, side="right")])


def test_a_joint_listens_most_to_the_handles_it_moves_or_hangs_from(space: PoseSpace) -> None:
    limbs = process.limbs_between(space, space.handles(["left_hand", "right_hand", "left_foot"]))
    other = process.OTHER_HANDLES
    assert limb_weights(space, limbs, "left_forearm") == [1.0, other, other]
    assert limb_weights(space, limbs, "left_hand") == [1.0, other, other]
    assert limb_weights(space, limbs, "chest") == [1.0, 1.0, other]
    assert limb_weights(space, limbs, "left_thigh") == [other, other, 1.0]
    assert limb_weights(space, limbs, "right_thigh") == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "names", [("head",), ("left_hand", "left_hand"), ("left_forearm", "left_hand", "head")]
)
def test_every_component_belongs_to_one_limb(space: PoseSpace, names: tuple[str, ...]) -> None:
    limbs = process.limbs_between(space, space.handles([Handle(name) for name in names]))
    assert sorted(limbs.order) == list(range(3 * len(space.moving)))
    assert limbs.ends[-1] == len(limbs.order)
    assert np.all(np.diff(limbs.ends) > 0)


@given(st.integers(2, 5), st.integers(0, 1000))
def test_held_out_errors_are_those_of_a_process_without_the_block(parts: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    inputs, outputs = rng.normal(size=(12, 3)), rng.normal(size=(12, 2))
    blocks = np.arange(12) % parts
    apart = np.linalg.norm(inputs[:, None] - inputs, axis=-1)
    kernel = np.exp(-apart) + 0.1 * np.eye(12)
    errors = process.held_out_errors(kernel, outputs, blocks)
    for block in range(parts):
        out, rest = blocks == block, blocks != block
        predicted = np.exp(-apart[np.ix_(out, rest)]) @ np.linalg.solve(
            kernel[np.ix_(rest, rest)], outputs[rest]
        )
        np.testing.assert_allclose(errors[out], outputs[out] - predicted, atol=1e-9)


def test_what_repeats_inside_blocks_only_is_taken_for_noise() -> None:
    """Each block has an offset of its own: neighbours predict each other, blocks do not."""
    rng = np.random.default_rng(0)
    places = np.repeat(rng.normal(size=(8, 1, 3)), 8, axis=0) + 0.01 * rng.normal(size=(64, 1, 3))
    offsets = np.repeat(rng.normal(size=(8, 3)), 8, axis=0) + 0.01 * rng.normal(size=(64, 3))
    limbs, centre = process.Limbs.alike(1, 3), np.zeros(3)
    alone = process.fit(places, offsets, limbs=limbs, blocks=np.arange(64), centre=centre)
    together = process.fit(places, offsets, limbs=limbs, blocks=np.repeat(np.arange(8), 8), centre=centre)
    assert together.noise > alone.noise


def test_one_sample_and_samples_at_one_place_are_harmless() -> None:
    limbs, centre = process.Limbs.alike(1, 3), np.zeros(3)
    for count in (1, 4):
        inputs, outputs = np.ones((count, 1, 3)), np.ones((count, 3))
        fitted = process.fit(
            inputs, outputs, limbs=limbs, blocks=np.zeros(count, dtype=np.int64), centre=centre
        )
        assert np.all(np.isfinite(fitted.weights))
        assert process.spacing(inputs) > 0


def test_the_inverse_of_a_kernel_is_that_of_any_matrix_also_where_it_is_not_positive() -> None:
    spread = np.random.default_rng(0).normal(size=(6, 6))
    for matrix in (spread @ spread.T + np.eye(6), spread + spread.T):
        np.testing.assert_allclose(process.inverse_of(matrix) @ matrix, np.eye(6), atol=1e-9)
