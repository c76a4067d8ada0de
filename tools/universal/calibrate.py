"""Measures the tables that come with Poise beside the trained weights.

`python tools/universal/calibrate.py --data ARCHIVE --weights FOLDER/universal.safetensors`. From the recordings learned
from: the range of each joint, a few poses far apart, how likely poses are, what bones say of joint zeros. From
performers that were held out for this: by how much its deviations are too small. A network that learned from those too
takes this from another one, trained alike without them (`--unseen FILE`).
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(Path(__file__).parent)]

from zeros import fitted_zeros  # noqa: E402

from poise.geometry import rotations  # noqa: E402
from poise.motion.motion import Motion  # noqa: E402
from poise.priors.clusters import cluster  # noqa: E402
from poise.priors.universal import layout, network  # noqa: E402
from poise.priors.universal import prior as prior_module  # noqa: E402
from poise.priors.universal.network import ZeroWeights  # noqa: E402
from poise.priors.universal.prior import UniversalPrior  # noqa: E402
from poise.priors.universal.recordings import CHOICE, PoseTable, motion_of, read_table  # noqa: E402
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE  # noqa: E402
from poise.solvers.constraints import Position  # noqa: E402
from poise.solvers.solve import Solver  # noqa: E402

Array = np.ndarray
HANDLES = ("head", "left_hand", "right_hand", "left_foot", "right_foot")
FRAMES = 8  # frames per clip on which settings are chosen
POSES = 24
SEEN = 120  # smallest number of frames of each performer for the joint zeros
WITHIN = 7.815  # squared distance that contains 95 % of a three-dimensional Gaussian
GROUPS = (("LeftHand", "RightHand", "LeftFingerBase", "RightFingerBase", "LThumb", "RThumb"), ("LeftFoot", "RightFoot",
          "LeftToeBase", "RightToeBase"), ("LeftUpLeg", "LeftLeg", "RightUpLeg", "RightLeg"), ("LowerBack", "Spine",
          "Spine1"), ("Neck", "Neck1", "Head"), ("LeftArm", "LeftForeArm", "RightArm", "RightForeArm"))  # fmt: skip


def main() -> None:
    """Measure and write."""
    options = _options()
    table = read_table(options.data)
    judged = options.unseen or options.weights
    fitted = _fitted(table, judged)
    chosen = [
        [motion_of(table, k, frames=FRAMES) for k in np.flatnonzero(table.performers == who)]
        for who in CHOICE
    ]
    grown = tempers(chosen)
    again = judged != options.weights
    arrays, tables, header, own = _fitted(table, options.weights) if again else fitted
    tables["tempers"] = grown
    tables["zeros.spread"] = tables["zeros.spread"] * np.outer(grown[3:], grown[3:])
    _use(arrays | tables, header)
    tables["quantiles"] = quantiles(table, header)
    _write(tables, own | {"measured_on": CHOICE}, options.out)
    print(f"{options.out}: tempers {np.round(tables['tempers'][6::3], 2).tolist()}")


def _fitted(table: PoseTable, path: Path) -> tuple[dict[str, Array], dict[str, Array], dict, dict]:
    """Weights, their tables without growth, and the headers of both; the prior then uses them."""
    arrays, header = network.read_arrays(path)
    tables = ranges(table, arrays, header) | {"tempers": np.ones(layout.FREEDOMS)} | _named(_no_zeros())
    _use(arrays | tables, header)
    who, (known, unseen) = zeros(table, header)
    tables |= _named(known)
    _use(arrays | tables, header)
    return arrays, tables | {"unseen": unseen}, header, {"performers": who}


def ranges(table: PoseTable, arrays: dict[str, Array], header: dict) -> dict[str, Array]:
    """The range of every joint's map in what was learned from, a thousandth at each end left out; poses far apart."""
    clips = set(header["learned_from"])
    kept = np.isin(table.clip_of, [k for k, clip in enumerate(table.clips) if clip in clips])
    frames = np.flatnonzero(kept)[::29]
    moving = [layout.JOINTS.index(name) for name in layout.MOVING]
    own = rotations.quaternion_from_matrix(arrays["references"][moving].astype(float))
    turns = rotations.quaternion_from_expmap(table.rotations[frames][:, moving].astype(float))
    maps = rotations.expmap_from_quaternion(rotations.multiply(rotations.conjugate(own), turns))
    lower, upper = np.percentile(maps, [0.1, 99.9], axis=0)
    margin = 0.1 + 0.25 * (upper - lower)
    flat = maps.reshape(len(maps), -1)
    few = flat[:: max(1, len(flat) // 3000)]
    picked, _ = cluster(few, POSES, rng=np.random.default_rng(0))
    roots = rotations.matrix_from_quaternion(
        rotations.quaternion_from_expmap(table.rotations[frames, 0].astype(float))
    )
    ups = roots[:: max(1, len(flat) // 3000), 1]
    return {"lower": lower - margin, "upper": upper + margin, "poses": few[picked], "ups": ups[picked]}


def zeros(table: PoseTable, header: dict) -> tuple[list[str], tuple[ZeroWeights, Array]]:
    """The prediction of joint zeros from bones, fitted to the recordings' deviations from the network."""
    names = np.array([clip.split("_")[0] if clip in header["learned_from"] else "" for clip in table.clips])
    bodies, seen = [], []
    performers = sorted(set(names) - {""})
    for who in performers:
        clips = np.flatnonzero(names == who)
        motions = [motion_of(table, k, frames=-(-SEEN // len(clips))) for k in clips]
        bodies.append(table.offsets[clips[0]].astype(float))
        seen.append(np.median(np.concatenate([_offsets(motion) for motion in motions]), axis=0))
    return performers, fitted_zeros(np.stack(bodies), np.stack(seen).reshape(len(seen), -1, 3))


def _offsets(clip: Motion) -> Array:
    """Per frame, the deviation of the root's rotation and the maps from the prediction."""
    prior = UniversalPrior(clip.skeleton)
    space, found = prior.space, []
    known, free = (space.handles(names) for names in (HANDLES, (*HANDLES, "pelvis")))
    guides = prior.guide(known), prior.guide(free)
    for q in space.q_from_frames(clip.root_positions, clip.rotations):
        expected = guides[0].seen_from(q, space.handle_positions(q, known)[0], given=True).mean
        turned = guides[1].seen_from(q, space.handle_positions(q, free)[0], given=False).mean[3:ROOT_SIZE]
        turn = rotations.expmap_from_quaternion(
            rotations.multiply(rotations.conjugate(turned), q[3:ROOT_SIZE])
        )
        found.append(np.concatenate([turn, _nearest(q[ROOT_SIZE:], expected[ROOT_SIZE:])]))
    return np.stack(found)


def tempers(chosen: list[list[Motion]]) -> Array:
    """Per freedom, by how much deviations must grow for 95 % regions to hold 95 % of the truths of unseen performers.

    By groups of joints, and of the performers' growths the median: the neck of one of them was calibrated wrongly.
    """
    distances = [np.array([_distances(*one) for clip in clips for one in solved(clip)]) for clips in chosen]
    found = np.ones(layout.FREEDOMS)
    for group in GROUPS:
        slots = [layout.MOVING.index(name) for name in group]
        grown = np.median([np.sqrt(np.percentile(own[:, slots], 95) / WITHIN) for own in distances])
        for slot in slots:
            found[6 + 3 * slot : 9 + 3 * slot] = grown
    return found


def _distances(gap: Array, covariance: Array) -> Array:
    """Per joint, the squared Mahalanobis distance of the truth from the prediction."""
    blocks = np.einsum("jajb->jab", covariance.reshape(len(layout.MOVING), 3, -1, 3)) + 1e-7 * np.eye(3)
    own = gap.reshape(-1, 3)
    return np.einsum("ja,ja->j", own, np.linalg.solve(blocks, own[..., None])[..., 0])


def solved(clip: Motion) -> list[tuple[Array, Array]]:
    """Per frame, from five handles and the root: the error, and the claimed covariance."""
    prior = UniversalPrior(clip.skeleton)
    space, handles = prior.space, prior.space.handles(HANDLES)
    solver = Solver(prior, [Position(name, (0.0, 0.0, 0.0)) for name in HANDLES], root="given")
    guide, found = prior.guide(handles), []
    for q in space.q_from_frames(clip.root_positions, clip.rotations):
        targets, _ = space.handle_positions(q, handles)
        answer = solver.solve(np.concatenate([q[:ROOT_SIZE], prior.mean]), targets=targets).q
        _, covariance = guide.seen_from(q, targets, given=True).maps
        rows = space.handle_positions(answer, handles)[1][:, ROOT_FREEDOMS:]
        gain = np.linalg.solve(rows @ covariance @ rows.T + 1e-6 * np.eye(len(rows)), rows @ covariance)
        found.append((_nearest(q[ROOT_SIZE:], answer[ROOT_SIZE:]), covariance - covariance @ rows.T @ gain))
    return found


def quantiles(table: PoseTable, header: dict) -> Array:
    """Percentiles of the log-likelihoods of recorded poses."""
    clips = [k for k, clip in enumerate(table.clips) if clip in set(header["learned_from"])][::4]
    values = []
    for clip in (motion_of(table, k, frames=4) for k in clips):
        prior = UniversalPrior(clip.skeleton)
        poses = prior.space.q_from_frames(clip.root_positions, clip.rotations)
        values += [prior.log_likelihood(q) for q in poses]
    return np.percentile(values, np.arange(101))


def _nearest(truth: Array, answer: Array) -> Array:
    """The gap to the truth; of a map's two representations the nearer one is used."""
    true, own = truth.reshape(-1, 3), answer.reshape(-1, 3)
    size = np.maximum(np.linalg.norm(true, axis=-1, keepdims=True), 1e-9)
    wound = true * (1 - 2 * np.pi / size)
    nearer = np.linalg.norm(wound - own, axis=-1) < np.linalg.norm(true - own, axis=-1)
    return (np.where(nearer[:, None], wound, true) - own).ravel()


def _use(arrays: dict[str, Array], header: dict) -> None:
    """Make the prior use these weights."""
    weights = network.from_arrays(arrays, header)
    prior_module.shipped = lambda: weights


def _no_zeros() -> ZeroWeights:
    """Zeros of identically calibrated performers."""
    figure, count = layout.figure(np.zeros((len(layout.JOINTS), 3))).size, layout.FREEDOMS - 3
    nobody = np.zeros((0, figure)), np.ones(count), np.zeros((0, count))
    return ZeroWeights(np.zeros(figure), np.ones(figure), *nobody, np.zeros(count), 1e-8 * np.eye(count))


def _named(known: ZeroWeights) -> dict[str, Array]:
    return {f"zeros.{name}": table for name, table in known._asdict().items()}


def _write(tables: dict[str, Array], header: dict, path: Path) -> None:
    from safetensors.numpy import save_file

    kept = {name: np.ascontiguousarray(table.astype(np.float32)) for name, table in tables.items()}
    save_file(kept, path, {"universal": json.dumps(header)})


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--unseen", type=Path, help="weights trained alike, without the held-out performers")
    parser.add_argument("--out", type=Path, default=network.TABLES)
    return parser.parse_args()


if __name__ == "__main__":
    main()
