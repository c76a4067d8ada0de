"""Limbs: whose handles are whose, and how much they count."""

import numpy as np
import pytest

from poise import performer
from poise.gp.regression import Groups
from poise.priors.poses import OTHER_HANDLES, limb_groups
from poise.skeleton.pose_space import Handle, PoseSpace


@pytest.fixture(scope="module")
def space() -> PoseSpace:
    motion = performer.act("walk", seconds=1.0, fps=30)
    return PoseSpace.of_rotations(motion.skeleton, motion.rotations)


def limb_weights(space: PoseSpace, limbs: Groups, role: str) -> list[float]:
    component = 3 * int(np.flatnonzero(space.moving == space.skeleton.index(role))[0])
    place = int(np.flatnonzero(limbs.order == component)[0])
    return list(limbs.weights[np.searchsorted(limbs.ends, place, side="right")])


def test_a_joint_listens_most_to_the_handles_it_moves_or_hangs_from(space: PoseSpace) -> None:
    limbs = limb_groups(space, space.handles(["left_hand", "right_hand", "left_foot"]))
    other = OTHER_HANDLES
    assert limb_weights(space, limbs, "left_forearm") == [1.0, other, other]
    assert limb_weights(space, limbs, "left_hand") == [1.0, other, other]
    assert limb_weights(space, limbs, "chest") == [1.0, 1.0, other]
    assert limb_weights(space, limbs, "left_thigh") == [other, other, 1.0]
    assert limb_weights(space, limbs, "right_thigh") == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "names", [("head",), ("left_hand", "left_hand"), ("left_forearm", "left_hand", "head")]
)
def test_every_component_belongs_to_one_limb(space: PoseSpace, names: tuple[str, ...]) -> None:
    limbs = limb_groups(space, space.handles([Handle(name) for name in names]))
    assert sorted(limbs.order) == list(range(3 * len(space.moving)))
    assert limbs.ends[-1] == len(limbs.order)
    assert np.all(np.diff(limbs.ends) > 0)
