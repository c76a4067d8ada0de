"""Measures of naturalness: recorded poses pass, poses that nobody takes do not."""

import numpy as np

from poise import performer
from poise.evaluation.handles import evaluate_handles
from poise.evaluation.metrics import MEASURES, USUAL, Recovered, Scores
from poise.evaluation.splits import Fold
from poise.geometry import rotations
from poise.motion import Motion
from poise.skeleton.pose_space import PoseSpace

WALK = performer.act("walk", seconds=2.0, fps=30, seed=3)


def scored(rotated: np.ndarray, motion: Motion = WALK, *, lifted: float = 0.0) -> dict[str, float]:
    space = PoseSpace.of_rotations(motion.skeleton, motion.rotations)
    roots = motion.root_positions + np.array([0.0, lifted, 0.0])
    frames, scores = len(motion), Scores()
    true = motion.root_positions, motion.rotations
    scores.add(Recovered(space, roots, rotated, *true, np.zeros((frames, 1)), np.zeros(frames)))
    return scores.metrics()


def turned(role: str, vector: tuple[float, float, float]) -> np.ndarray:
    found = WALK.rotations.copy()
    joint = WALK.skeleton.index(role)
    found[:, joint] = rotations.multiply(found[:, joint], rotations.quaternion_from_expmap(np.array(vector)))
    return found


def test_what_was_recorded_is_natural() -> None:
    metrics = scored(WALK.rotations)
    assert all(metrics[f"natural_{name}"] >= USUAL / 100 - 0.02 for name in MEASURES)
    assert metrics["natural"] > 0.75


def test_a_broken_elbow_a_twisted_thigh_and_sunken_feet_are_not() -> None:
    assert scored(turned("left_forearm", (1.5, 1.5, 0.0)))["natural_joints"] < 0.1
    bone = WALK.skeleton.offsets[WALK.skeleton.index("left_shin")]
    twist = tuple(1.2 * bone / np.linalg.norm(bone))
    assert scored(turned("left_thigh", twist))["natural_twists"] < 0.1
    assert scored(WALK.rotations, lifted=-0.3)["natural_floor"] < 0.1
    assert scored(WALK.rotations, lifted=-0.3)["natural_joints"] > 0.9


def test_a_constant_offset_of_a_joint_counts_only_with_zeros() -> None:
    metrics = scored(turned("head", (0.0, 0.3, 0.0)))
    assert metrics["deg_per_joint"] > 0.3
    assert metrics["deg_zeroed"] < 0.05


def test_handles_may_be_named_and_folds_have_a_spread() -> None:
    train = (WALK[::3],)
    folds = [Fold(train, (WALK[10:16],)), Fold(train, (WALK[30:36],))]
    names = ("head", "left_hand", "right_hand")
    (row,) = evaluate_handles(folds, methods=("gaussian-10",), handles=names, free_root=True)
    (six,) = evaluate_handles(folds, methods=("gaussian-10",), free_root=True)
    assert float(row["mpjpe_cm"]) > float(six["mpjpe_cm"])
    assert float(row["deg_spread"]) > 0.0
