"""Calibrates the motion prior's deviations, and measures what L2P needs; writes both into the file of weights.

`python tools/motion/calibrate.py --data ARCHIVE FILE.safetensors`. Factors on deviations are chosen on the performers
that settings were chosen on: such that 95 % of their errors lie in the claimed 95 % regions, by kind and by frames to
the nearest key; under tracked points by how many are seen. `--only between` or `--only tracked` leaves the other out.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from poise.capture.trackers import JOINT, TrackerPerformance
from poise.evaluation.inbetween import TASKS, WINDOW, place_spread
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.motion.world import joint_transforms
from poise.priors.motion.carrying import AT, Frames
from poise.priors.motion.following import FRAMES
from poise.priors.motion.layout import TURNING
from poise.priors.motion.network import RATE, MotionWeights, alone, expected, from_arrays
from poise.priors.motion.prior import MotionPrior, interpolated
from poise.priors.universal.layout import JOINTS, POINTS
from poise.priors.universal.network import read_arrays
from poise.priors.universal.recordings import CHOICE, STRANGERS, PoseTable, motion_of, read_table

REGION = 7.815  # of three freedoms: 95 %
FARTHEST = 22  # frames to the nearest key
WORN = ("head", "left_hand", "right_hand", "pelvis", "left_foot", "right_foot")  # in the order of wearing
WIDTH = 3  # a factor comes from the frames at distances within this


def main() -> None:
    """Calibrate one file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--stride", type=int, default=40, help="frames between windows")
    parser.add_argument("--only", choices=("between", "tracked"))
    options = parser.parse_args()
    arrays, header = read_arrays(options.file, "motion")
    plain = {name: array for name, array in arrays.items() if name not in ("tempers", "tracked")}
    weights, table, found = from_arrays(plain, header), read_table(options.data), dict[str, np.ndarray]()
    if options.only != "tracked":
        found["tempers"] = between(table, weights, options.stride)
        held = {name for draw in STRANGERS for name in draw} | set(CHOICE)
        known = [motion_of(table, k) for k, who in enumerate(table.performers) if who not in held]
        found["places"] = place_spread(known)[[known[0].skeleton.index(name) for name in TURNING]]
    if options.only != "between":
        found["tracked"] = tracked(table, weights, options.stride)
    with safe_open(options.file, framework="numpy") as file:
        stored, metadata = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    stored |= {name: array.astype(np.float32) for name, array in found.items()}
    save_file(stored, options.file, metadata)


def between(table: PoseTable, weights: MotionWeights, stride: int) -> np.ndarray:
    """Factors between keys, (kinds, frames to the nearest key)."""
    gathered = _cases(table, set(CHOICE), weights, stride)
    tempers = np.ones((3, FARTHEST + 1))
    for distance in range(1, FARTHEST + 1):
        near = [
            values for d in range(distance - WIDTH, distance + WIDTH + 1) for values in gathered.get(d, [])
        ]
        tempers[:, distance] = np.sqrt(np.quantile(np.concatenate(near), 0.95, axis=0) / REGION)
    tempers[:, 0] = tempers[:, 1]
    print(
        "factors (root, turns, points) at 1, 5, 15 and 22 frames:",
        tempers[:, [1, 5, 15, 22]].round(2).tolist(),
    )
    calibrated = replace(weights, tempers=tempers)
    gathered = _cases(table, {name for draw in STRANGERS for name in draw}, calibrated, 4 * stride)
    print(
        "frames to the nearest key: shares of strangers' errors within the 95 % regions (root, turns, points)"
    )
    for first, last in ((1, 1), (2, 4), (5, 9), (10, 15), (16, FARTHEST)):
        cases = np.concatenate([v for d in range(first, last + 1) for v in gathered.get(d, [])])
        print(f"{first} to {last}:", (cases < REGION).mean(axis=0).round(3).tolist())
    return tempers


def tracked(table: PoseTable, weights: MotionWeights, stride: int) -> np.ndarray:
    """Factors on deviations of points when one to six trackers are seen."""
    squares = _tracked_cases(table, set(CHOICE), weights, stride)
    factors = np.sqrt([np.quantile(own, 0.95) / REGION for own in squares])
    print("factors for one to six trackers:", factors.round(2).tolist())
    calibrated = replace(weights, tracked=factors)
    squares = _tracked_cases(table, {name for draw in STRANGERS for name in draw}, calibrated, 4 * stride)
    shares = [round(float((own < REGION).mean()), 3) for own in squares]
    print("shares of strangers' errors within the 95 % regions, for one to six trackers:", shares)
    return factors


def _tracked_cases(
    table: PoseTable, performers: set[str], weights: MotionWeights, stride: int
) -> list[np.ndarray]:
    """Squared errors over claimed variances of the last frames of windows, under one to six trackers in turn."""
    squares: list[list[np.ndarray]] = [[] for _ in WORN]
    number = 0
    for clip in (motion_of(table, k) for k, name in enumerate(table.performers) if name in performers):
        places, axes = joint_transforms(clip)
        turns = rotations.quaternion_from_matrix(axes)
        for start in range(0, len(clip) - FRAMES + 1, stride):
            number += 1
            roles = WORN[: number % len(WORN) + 1]
            at = [clip.skeleton.index(role) for role in roles]
            performance = TrackerPerformance(
                roles, skeleton=clip.skeleton, fps=RATE, mounts=dict.fromkeys(roles, JOINT), weights=weights
            )
            values = np.concatenate([places[:, at], turns[:, at]], axis=-1)[start : start + FRAMES]
            for value in values[:-1]:
                performance.observe(value)
            frame = performance.step(values[-1])
            free = np.setdiff1d([clip.skeleton.index(name) for name in POINTS], at)
            off = performance.space.forward(frame.q)[0] - places[start + FRAMES - 1]
            ratios = np.linalg.norm(off[free], axis=-1) / frame.deviations[free]
            squares[len(roles) - 1].append(np.square(ratios))
    return [np.concatenate(own) for own in squares]


def _cases(
    table: PoseTable, performers: set[str], weights: MotionWeights, stride: int
) -> dict[int, list[np.ndarray]]:
    """Squared errors over claimed variances of some performers' windows, by frames to the nearest key."""
    gathered: dict[int, list[np.ndarray]] = {}
    for clip in (motion_of(table, k) for k, name in enumerate(table.performers) if name in performers):
        prior = MotionPrior(clip.skeleton, weights)
        for start in range(0, len(clip) - WINDOW + 1, stride):
            for task in TASKS:
                if start + task.length <= len(clip):
                    _gather(gathered, clip[start : start + task.length], task.given, prior)
    return gathered


def _gather(
    gathered: dict[int, list[np.ndarray]], window: Motion, given: np.ndarray, prior: MotionPrior
) -> None:
    """Squared errors over claimed variances, (cases, kinds), by frames to the nearest key."""
    at = np.flatnonzero(given)
    true = Frames(window.root_positions, window.rotations)
    base = interpolated(Frames(true.roots[at], true.turns[at]), at, len(given))
    found = expected(alone(base, given), prior.carrier, prior.weights)
    made = prior.carrier.added(base, found.residual)
    places, true_places = (
        prior.carrier.placed(one)[0][:, [JOINTS.index(n) for n in POINTS]] for one in (made, true)
    )
    angles = rotations.geodesic_distance(made.turns[:, AT], true.turns[:, AT])
    root = np.square(made.roots - true.roots) / np.maximum(np.square(found.root_spread), 1e-12)
    turns = np.square(angles) / np.maximum(np.square(found.turn_spread), 1e-12)
    points = np.square(places - true_places).sum(-1) / np.maximum(np.square(found.point_spread), 1e-12)
    for frame in np.flatnonzero(~given):
        distance = int(np.abs(at - frame).min())
        draws = np.random.default_rng(frame).integers(0, 24, 6)  # a few joints of each frame
        cases = np.stack([np.full(6, root[frame].sum()), turns[frame, draws], points[frame, draws]], -1)
        gathered.setdefault(min(distance, FARTHEST), []).append(cases)


if __name__ == "__main__":
    main()
