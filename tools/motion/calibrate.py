"""Calibrates the motion prior's deviations, and measures what L2P needs; writes both into the file of weights.

`python tools/motion/calibrate.py --data ARCHIVE FILE.safetensors`. Factors on deviations are chosen on the performers
that settings were chosen on: such that 95 % of their errors lie in the claimed 95 % regions, by kind and by frames to
the nearest key.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from poise.evaluation.inbetween import TASKS, WINDOW, place_spread
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.priors.motion.carrying import AT, Frames
from poise.priors.motion.layout import TURNING
from poise.priors.motion.network import MotionWeights, alone, expected, from_arrays
from poise.priors.motion.prior import MotionPrior, interpolated
from poise.priors.universal.layout import JOINTS, POINTS
from poise.priors.universal.network import read_arrays
from poise.priors.universal.recordings import CHOICE, STRANGERS, PoseTable, motion_of, read_table

REGION = 7.815  # of three freedoms: 95 %
FARTHEST = 22  # frames to the nearest key
WIDTH = 3  # a factor comes from the frames at distances within this


def main() -> None:
    """Calibrate one file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--stride", type=int, default=40, help="frames between windows")
    options = parser.parse_args()
    arrays, header = read_arrays(options.file, "motion")
    weights = from_arrays({name: array for name, array in arrays.items() if name != "tempers"}, header)
    table = read_table(options.data)
    held = {name for draw in STRANGERS for name in draw} | set(CHOICE)
    numbers = range(len(table.clips))
    gathered = _cases(table, set(CHOICE), weights, options.stride)
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
    known = [motion_of(table, k) for k in numbers if table.performers[k] not in held]
    places = place_spread(known)[[known[0].skeleton.index(name) for name in TURNING]]
    with safe_open(options.file, framework="numpy") as file:
        stored, metadata = {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118
    stored |= {"tempers": tempers.astype(np.float32), "places": places.astype(np.float32)}
    save_file(stored, options.file, metadata)

    calibrated = replace(weights, tempers=tempers)
    gathered = _cases(table, {name for draw in STRANGERS for name in draw}, calibrated, 4 * options.stride)
    print(
        "frames to the nearest key: shares of strangers' errors within the 95 % regions (root, turns, points)"
    )
    for first, last in ((1, 1), (2, 4), (5, 9), (10, 15), (16, FARTHEST)):
        cases = np.concatenate([v for d in range(first, last + 1) for v in gathered.get(d, [])])
        print(f"{first} to {last}:", (cases < REGION).mean(axis=0).round(3).tolist())


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
