"""Metrics on poses whose errors are known."""

from dataclasses import replace

import numpy as np
import pytest

from poise import performer
from poise.evaluation.metrics import Joints, Recovered, Scores
from poise.geometry import rotations
from poise.motion import Motion
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.roles import paper_joints

Array = np.ndarray


@pytest.fixture(scope="module")
def clip() -> Motion:
    return performer.act("walk", seconds=1.0, fps=30)


def recovered(
    clip: Motion, *, found: Array | None = None, roots: Array | None = None, failed: int = 0
) -> Recovered:
    return Recovered(
        PoseSpace.of_rotations(clip.skeleton, clip.rotations),
        clip.root_positions if roots is None else roots,
        clip.rotations if found is None else found,
        clip.root_positions,
        clip.rotations,
        np.zeros((len(clip), 5)),
        np.full(len(clip), 0.002),
        failed=failed,
    )


def metrics_of(*clips: Recovered, joints: Joints = "all") -> dict[str, float]:
    scores = Scores(joints)
    for clip in clips:
        scores.add(clip)
    return scores.metrics()


def test_the_recording_itself_has_no_error(clip: Motion) -> None:
    metrics = metrics_of(recovered(clip))
    for name in ("deg_per_joint", "mse_rad2", "mpjpe_cm", "rms_cm", "handle_mm", "handle_max_mm", "failed"):
        assert metrics[name] == pytest.approx(0.0, abs=1e-5)
    assert metrics["jitter"] == pytest.approx(1.0)
    assert metrics["reached_1mm"] == 1.0
    assert metrics["ms_per_frame"] == pytest.approx(2.0)
    assert metrics["frames"] == len(clip)


def test_a_known_turn_of_every_joint_is_that_angle(clip: Motion) -> None:
    turn = rotations.quaternion_from_expmap(np.array([0.0, 0.0, np.radians(7.0)]))
    metrics = metrics_of(recovered(clip, found=rotations.multiply(clip.rotations, turn)))
    assert metrics["deg_per_joint"] == pytest.approx(7.0, abs=1e-6)
    assert metrics["mpjpe_cm"] > 1.0


def test_a_turned_toe_is_not_an_error_of_the_papers_joints(clip: Motion) -> None:
    turn = rotations.quaternion_from_expmap(np.array([0.0, 0.0, np.radians(7.0)]))
    found, toe = clip.rotations.copy(), clip.skeleton.index("left_toes")
    found[:, toe] = rotations.multiply(found[:, toe], turn)
    beside = metrics_of(recovered(clip, found=found))
    assert beside["deg_per_joint"] > 0.1
    assert beside["deg_paper_joints"] == pytest.approx(0.0, abs=1e-5)
    alone = metrics_of(recovered(clip, found=found), joints="paper")
    assert alone["deg_per_joint"] == alone["deg_paper_joints"] == pytest.approx(0.0, abs=1e-5)
    assert alone["mse_rad2"] < 1e-9 < beside["mse_rad2"]


def test_the_papers_joints_are_the_trunk_and_three_of_every_limb(clip: Motion) -> None:
    """A CMU body, whose trunk has six joints and not five, has 18 of them."""
    counted = {
        name for name, one in zip(clip.skeleton.names, paper_joints(clip.skeleton), strict=True) if one
    }
    limbs = {
        side + part
        for side in ("Left", "Right")
        for part in ["Arm", "ForeArm", "Hand", "UpLeg", "Leg", "Foot"]
    }
    assert counted == limbs | {"Spine", "Spine1", "Spine2", "Neck", "Head"}


def test_a_shifted_root_is_a_position_error_alone(clip: Motion) -> None:
    metrics = metrics_of(recovered(clip, roots=clip.root_positions + np.array([0.03, 0.0, 0.04])))
    assert metrics["mpjpe_cm"] == pytest.approx(5.0)
    assert metrics["rms_cm"] == pytest.approx(5.0)
    assert metrics["deg_per_joint"] == pytest.approx(0.0, abs=1e-5)


def test_component_errors_are_taken_about_the_mean_pose(clip: Motion) -> None:
    """A joint near half a turn from rest may jump between two exponential maps; about its mean it does not."""
    space = PoseSpace.of_rotations(clip.skeleton, clip.rotations)
    q = space.q_from_frames(clip.root_positions, clip.rotations)
    q[:, 7] += 0.3
    roots, found = space.frames_from_q(q)
    metrics = metrics_of(recovered(clip, found=found, roots=roots))
    assert metrics["mse_rad2"] == pytest.approx(0.09 / (3 * len(space.moving)), rel=1e-6)


def test_shaking_shows_as_jitter(clip: Motion) -> None:
    shaken = clip.root_positions + 0.02 * (np.arange(len(clip)) % 2)[:, None]
    assert metrics_of(recovered(clip, roots=shaken))["jitter"] > 1.5


def test_frames_and_failures_add_up_over_clips(clip: Motion) -> None:
    metrics = metrics_of(recovered(clip, failed=2), recovered(clip[:10], failed=1))
    assert metrics["failed"] == 3
    assert metrics["frames"] == len(clip) + 10


def test_a_clip_too_short_to_accelerate_does_not_jitter(clip: Motion) -> None:
    assert metrics_of(recovered(clip[:2]))["jitter"] == 1.0


def test_methods_with_other_spaces_are_compared_on_the_joints_that_move_in_training(clip: Motion) -> None:
    turned = clip.rotations.copy()
    hand = clip.skeleton.index("left_hand")
    turned[:, hand] = rotations.multiply(
        turned[:, hand], rotations.quaternion_from_expmap(np.array([0.4, 0.0, 0.0]))
    )
    whole = recovered(clip, found=turned)
    still = replace(whole, space=PoseSpace(clip.skeleton, moving=np.arange(len(clip.skeleton)) == hand))
    alike = replace(still, in_training=whole.space.moving)
    assert metrics_of(still)["deg_per_joint"] > 5 * metrics_of(whole)["deg_per_joint"]
    assert metrics_of(alike)["deg_per_joint"] == pytest.approx(metrics_of(whole)["deg_per_joint"])
    assert metrics_of(alike)["deg_zeroed"] == pytest.approx(metrics_of(whole)["deg_zeroed"], abs=1e-9)
