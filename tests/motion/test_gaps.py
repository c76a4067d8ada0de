"""Gaps of marker recordings and splines across them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from poise.motion.gaps import Gap, gaps_of, spline_errors, spline_filled


@given(hnp.arrays(np.bool_, st.tuples(st.integers(1, 30), st.integers(1, 4))))
def test_gaps_are_exactly_what_is_not_seen(seen: np.ndarray) -> None:
    covered = np.zeros_like(seen)
    for gap in gaps_of(seen):
        assert not covered[gap.start : gap.end, gap.marker].any()
        covered[gap.start : gap.end, gap.marker] = True
        assert gap.closed == (gap.start > 0 and gap.end < len(seen))
    np.testing.assert_array_equal(covered, ~seen)


def test_a_spline_follows_a_cubic_exactly_and_holds_at_the_ends() -> None:
    t = np.linspace(-1.0, 1.0, 60)
    track = np.stack([t**3 - t, t**2, 2 * t], axis=1)[:, None]
    measured = track.copy()
    measured[:3], measured[20:35], measured[55:] = np.nan, np.nan, np.nan
    filled = spline_filled(measured)
    np.testing.assert_allclose(filled[20:35], track[20:35], atol=1e-9)
    np.testing.assert_allclose(filled[:3], np.repeat(track[3:4], 3, axis=0))
    np.testing.assert_allclose(filled[55:], np.repeat(track[54:55], 5, axis=0))


def test_a_marker_never_seen_stays_missing() -> None:
    assert np.isnan(spline_filled(np.full((5, 1, 3), np.nan))).all()


def test_the_errors_of_splines_grow_into_the_gap_and_with_the_motion() -> None:
    t = np.arange(400) / 100.0
    slow, fast = np.sin(3 * t), np.sin(12 * t)
    points = np.stack([np.stack([wave] * 3, axis=1) for wave in (slow, fast)], axis=1)
    errors = spline_errors(points, 100.0)
    assert errors.scales[1] > 5 * errors.scales[0]
    short, long = (errors.sigma(Gap(1, 50, 50 + length, closed=True), 100.0) for length in (5, 50))
    assert long.max() > 10 * short.max()
    assert (
        errors.sigma(Gap(1, 50, 60, closed=False), 100.0)[1:]
        > errors.sigma(Gap(1, 50, 60, closed=False), 100.0)[:-1]
    ).all()
