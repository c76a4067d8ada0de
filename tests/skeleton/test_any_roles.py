"""Whatever roles a user gives, and whatever the offsets, what is known of a body is finite and consistent."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bodies import moving, person
from poise.motion import headings, mirror
from poise.skeleton import human_limits, neutral_pose, segment_masses, standing_height
from poise.skeleton.roles import ROLES
from poise.skeleton.symmetry import mirror_joints

BODY = person()


def check_everything(skeleton):
    assert np.isfinite(standing_height(skeleton))
    assert np.isclose(segment_masses(skeleton).fraction.sum(), 1.0)
    neutral = neutral_pose(skeleton)
    assert np.all(np.isfinite(neutral.rotations))
    assert np.all(np.isfinite(human_limits(skeleton).lower))
    partner = mirror_joints(skeleton)
    np.testing.assert_array_equal(partner[partner], np.arange(len(skeleton)))
    motion = moving(skeleton, frames=5)
    assert np.all(np.isfinite(mirror(motion).rotations))
    assert np.all(np.isfinite(headings(motion)))


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(ROLES), st.sampled_from(BODY.names), max_size=6))
@example({"pelvis": "pelvis", "spine": "pelvis", "left_thigh": "spine"})
def test_any_roles_by_hand(roles):
    check_everything(BODY.with_roles(**roles))


@settings(max_examples=40)
@given(arrays(np.float64, (len(BODY), 3), elements=st.sampled_from([0.0, 0.0, 0.1, -0.3, 1.0])))
def test_any_offsets(offsets):
    check_everything(BODY.with_offsets(offsets))
