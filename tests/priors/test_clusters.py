"""Clusters of poses: how they are weighed, cut into blocks, and kept in a few directions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poise import performer
from poise.errors import InvalidValueError
from poise.priors import clusters
from poise.priors.gaussian import GaussianPrior, nearest_few
from poise.skeleton.pose_space import PoseSpace


def random_covariances(seed: int, size: int = 9) -> np.ndarray:
    factors = np.random.default_rng(seed).normal(size=(4, size, 3))
    return clusters.shrunk(factors @ factors.transpose(0, 2, 1), np.full(4, 0.25))


@given(st.lists(st.integers(1, 400), min_size=1, max_size=12))
def test_blocks_are_contiguous_and_never_across_clips(lengths: list[int]) -> None:
    blocks = clusters.blocks_of(lengths)
    assert len(blocks) == sum(lengths)
    assert np.all(np.diff(blocks) >= 0)
    for end in np.cumsum(lengths)[:-1]:
        assert blocks[end] > blocks[end - 1]


def test_a_hip_counts_more_than_a_wrist() -> None:
    motion = performer.act("walk", seconds=1.0, fps=30)
    space = PoseSpace.of_rotations(motion.skeleton, motion.rotations)
    weight = dict(zip(space.moving.tolist(), clusters.influence(space)[::3], strict=True))
    assert weight[space.skeleton.index("left_thigh")] > 2 * weight[space.skeleton.index("left_foot")]
    assert min(weight.values()) >= clusters.SHORTEST


@given(st.integers(0, 100), st.integers(1, 9))
def test_low_rank_keeps_variances_and_stays_positive_definite(seed: int, rank: int) -> None:
    full = random_covariances(seed)
    again = clusters.dense(*clusters.low_rank(full, rank))
    assert np.linalg.eigvalsh(again).min() > 0
    np.testing.assert_allclose(
        np.diagonal(again, axis1=1, axis2=2), np.diagonal(full, axis1=1, axis2=2), atol=clusters.BETA
    )


def test_low_rank_comes_closer_with_every_direction_and_is_exact_with_all() -> None:
    full = random_covariances(1)
    gaps = [np.abs(clusters.dense(*clusters.low_rank(full, rank)) - full).max() for rank in (1, 3, 6)]
    assert gaps == sorted(gaps, reverse=True)
    np.testing.assert_allclose(clusters.dense(*clusters.low_rank(full, 9)), full, atol=clusters.BETA)


@pytest.mark.parametrize("rank", [0, -1, 10_000])
def test_a_rank_out_of_range_says_so(rank: int) -> None:
    with pytest.raises(
        InvalidValueError, match=r"the rank must be between 1 and \d+, the degrees of freedom; got"
    ):
        GaussianPrior.learn([performer.act("walk", seconds=1.0, fps=30)], clusters=3, rank=rank)


@given(st.lists(st.floats(0, 10), min_size=1, max_size=40), st.integers(1, 12))
def test_the_nearest_few_are_those_that_sorting_finds(distances: list[float], count: int) -> None:
    values = np.array(distances)
    np.testing.assert_array_equal(values[nearest_few(values, count)], np.sort(values)[:count])
