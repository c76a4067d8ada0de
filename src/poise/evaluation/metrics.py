"""The metrics of every protocol, under the same names everywhere, and the naturalness of poses.

Naturalness is the share of frames that could have been recorded, by measures that no method optimises. Each is one
number per frame, larger for stranger poses: the most extreme joint angle, the most extreme limb twist, penetration of
limbs and body, distance of the centre of mass from the feet, penetration of feet and floor. A frame is natural by a
measure if it is less strange than the strangest 5 % of the recorded frames.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Float, Int

from poise.geometry import rotations
from poise.skeleton.clearance import apart, depths
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.mass import segment_masses
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.roles import MAIN_ROLES, SIDES, paper_joints
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

Joints = Literal["all", "paper"]


@dataclass(frozen=True, eq=False)
class Recovered:
    """Recovered poses of a method and the recorded ones, over one clip.

    The space defines the references of exponential maps, and by default the compared joints: methods with other spaces
    are compared on the same joints.
    """

    space: PoseSpace
    root_positions: Float[Array, "frames 3"]
    rotations: Float[Array, "frames joints 4"]
    true_root_positions: Float[Array, "frames 3"]
    true_rotations: Float[Array, "frames joints 4"]
    handle_distances: Float[Array, "frames handles"]
    seconds: Float[Array, "frames"]
    failed: int = 0
    in_training: Int[Array, "moving"] | None = None
    dimensions: Int[Array, "_frames"] | None = None  # of each frame's local subspace, where a method has them

    @property
    def moving(self) -> Int[Array, "moving"]:
        """The joints whose rotations are compared."""
        return self.space.moving if self.in_training is None else self.in_training


@dataclass
class Scores:
    """Measurements per frame, gathered over clips, from which the metrics are computed.

    Angles over the paper's joints are always reported besides those over all; `joints="paper"` uses them for all other
    pose errors too.
    """

    joints: Joints = "all"
    _parts: list[dict[str, Array]] = field(default_factory=list)
    _turns: dict[bytes, list[Array]] = field(default_factory=dict)  # rotation errors by performer
    failed: int = 0

    def add(self, recovered: Recovered) -> None:
        """Add one clip."""
        self.failed += recovered.failed
        self._parts.append(_parts(recovered, self.joints))
        body = recovered.space.skeleton.offsets.tobytes() + recovered.moving.tobytes()
        back = rotations.conjugate(recovered.rotations[:, recovered.moving])
        missed = rotations.multiply(back, recovered.true_rotations[:, recovered.moving])
        self._turns.setdefault(body, []).append(rotations.expmap_from_quaternion(missed))

    def take(self, other: Scores) -> None:
        """Add measurements gathered elsewhere."""
        self.failed += other.failed
        self._parts.extend(other._parts)
        for performer, turns in other._turns.items():
            self._turns.setdefault(performer, []).extend(turns)

    def metrics(self) -> dict[str, float]:
        """The metrics over all frames of all clips."""
        all_of = {name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]}
        milliseconds = 1000 * all_of["seconds"]
        reached = all_of["handles"].max(axis=1)
        # Without a constant offset per joint and performer: the joint zeros.
        gathered = [np.concatenate(turns) for turns in self._turns.values()]
        zeroed = [np.linalg.norm(turns - turns.mean(axis=0), axis=-1).ravel() for turns in gathered]
        moved, truly = all_of["acceleration"], all_of["true_acceleration"]
        metrics = {
            "deg_per_joint": float(np.degrees(all_of["angles"].mean())),
            "deg_paper_joints": float(np.degrees(all_of["paper_angles"].mean())),
            "deg_zeroed": float(np.degrees(np.concatenate(zeroed).mean())),
            **(natural_shares(all_of["look"], all_of["true_look"]) if "look" in all_of else {}),
            "mse_rad2": float(all_of["squares"].mean()),
            "mpjpe_cm": float(100 * all_of["distances"].mean()),
            "rms_cm": float(100 * np.sqrt((all_of["distances"] ** 2).mean())),
            "handle_mm": float(1000 * all_of["handles"].mean()),
            "handle_max_mm": float(1000 * reached.max()),
            "handle_mse_m2": float((all_of["handles"] ** 2).mean()),
            "reached_10mm": float(np.mean(reached <= 0.010)),
            "reached_1mm": float(np.mean(reached <= 0.001)),
            # 1 if clips are too short, or too still, for an acceleration
            "jitter": float(moved.sum() / truly.sum()) if truly.sum() > 0 else 1.0,
            "ms_per_frame": float(milliseconds.mean()),
            "ms_p95": float(np.percentile(milliseconds, 95)),
            "ms_p99": float(np.percentile(milliseconds, 99)),
            "ms_max": float(milliseconds.max()),
            "frames": len(reached),
            "failed": self.failed,
        }
        if (sizes := all_of.get("dimensions")) is not None:
            # The B of Chai and Hodgins 2005, who found it "generally less than seven".
            metrics |= {"b_median": float(np.median(sizes)), "b_below_8": float(np.mean(sizes < 8))}
        return metrics


def _parts(recovered: Recovered, which: Joints) -> dict[str, Array]:
    space, joints = recovered.space, ~recovered.space.skeleton.is_end_site
    skeleton, looks = space.skeleton, {}
    counted, moving = paper_joints(skeleton), recovered.moving
    paper = moving[counted[moving]] if np.any(counted[moving]) else moving
    if which == "paper":
        moving, joints = paper, joints & counted
    found, axes = world_transforms(skeleton, recovered.root_positions, recovered.rotations)
    truth, true_axes = world_transforms(skeleton, recovered.true_root_positions, recovered.true_rotations)
    look = features(skeleton, found, axes, recovered.rotations)
    true_look = features(skeleton, truth, true_axes, recovered.true_rotations)
    if look is not None and true_look is not None:
        looks = {"look": look, "true_look": true_look}
    back = rotations.conjugate(space.references[moving])  # exponential maps are about the references
    turned, true = (
        rotations.expmap_from_quaternion(rotations.multiply(back, turns[:, moving]))
        for turns in (recovered.rotations, recovered.true_rotations)
    )
    angles = rotations.geodesic_distance(recovered.rotations, recovered.true_rotations)
    return {
        "angles": angles[:, moving].ravel(),
        "paper_angles": angles[:, paper].ravel(),
        "squares": np.asarray(((turned - true) ** 2).mean(axis=(1, 2))),
        "distances": np.linalg.norm(found - truth, axis=-1)[:, joints].ravel(),
        "handles": recovered.handle_distances,
        "acceleration": _acceleration(found[:, joints]),
        "true_acceleration": _acceleration(truth[:, joints]),
        "seconds": recovered.seconds,
        **looks,
        **({} if recovered.dimensions is None else {"dimensions": recovered.dimensions}),
    }


def _acceleration(positions: Float[Array, "frames joints 3"]) -> Float[Array, "middle_frames"]:
    """Mean length of second differences of positions; the frame rate cancels in a ratio."""
    return np.linalg.norm(np.diff(positions, n=2, axis=0), axis=-1).mean(axis=1)


def mean_degrees(found: Float[Array, "poses maps"], true: Float[Array, "poses maps"]) -> float:
    """The mean angle between rotations, given as exponential maps about the same references."""
    turned, meant = (
        rotations.quaternion_from_expmap(maps.reshape(len(maps), -1, 3)) for maps in (found, true)
    )
    return float(np.degrees(rotations.geodesic_distance(turned, meant).mean()))


# --- naturalness -----------------------------------------------------------------------------------------------------

MEASURES = ("joints", "twists", "clear", "balance", "floor")
USUAL = 95.0  # percent of recorded frames that are natural by one measure, by definition
LEAST = np.radians(3.0)  # smallest half range of an angle
SLACK = 0.005  # metres: smaller depths and distances are ignored
_JOINTS = tuple(role for role in MAIN_ROLES if role != "pelvis")
_TWISTED = {f"{side}_{a}": f"{side}_{b}" for side in SIDES for a, b in (
    ("upper_arm", "forearm"), ("forearm", "hand"), ("thigh", "shin"), ("shin", "foot"))}  # fmt: skip


def features(
    skeleton: Skeleton,
    positions: Float[Array, "frames joints 3"],
    matrices: Float[Array, "frames joints 3 3"],
    local: Float[Array, "frames joints 4"],
) -> Float[Array, "frames features"] | None:
    """The inputs of the measures; None for a body without the main roles."""
    if not set(MAIN_ROLES) <= set(skeleton.roles):
        return None
    angles = rotations.expmap_from_quaternion(local[:, [skeleton.index(role) for role in _JOINTS]])
    twists = []
    for role, child in _TWISTED.items():  # of a limb about its own bone
        bone = skeleton.offsets[skeleton.index(child)]
        quaternion = local[:, skeleton.index(role)]
        along = quaternion[:, 1:] @ (bone / max(float(np.linalg.norm(bone)), 1e-9))
        turn = 2.0 * np.arctan2(along, quaternion[:, 0])
        twists.append((turn + np.pi) % (2.0 * np.pi) - np.pi)
    # Penetration of limbs, as capsules, into each other or the body.
    deepest = np.maximum(np.max(list(depths(skeleton, positions).values()), axis=0), 0.0)
    # Horizontal distance of the centre of mass from the line between the feet.
    masses = segment_masses(skeleton)
    centre = np.einsum("j,fja->fa", masses.fraction, positions) + np.einsum(
        "j,fjab,jb->fa", masses.fraction, matrices, masses.centre
    )
    flat = np.array([1.0, 0.0, 1.0])
    left, right = (positions[:, skeleton.index(f"{side}_foot")] * flat for side in SIDES)
    off_balance = apart(left, right, centre * flat, centre * flat + 1e-9)
    single = [deepest, off_balance, -positions[..., 1].min(axis=1)]
    columns = [angles.reshape(len(local), -1), np.stack([*twists, *single], axis=1)]
    return np.concatenate(columns, axis=1, dtype=np.float32)


def natural_shares(
    found: Float[Array, "frames features"], recorded: Float[Array, "frames features"]
) -> dict[str, float]:
    """The share of frames that are natural by all measures, and by each."""
    within = {}
    for name, part in _PARTS.items():
        own, usual = (_strangeness(which[:, part], recorded[:, part]) for which in (found, recorded))
        within[name] = own <= np.percentile(usual, USUAL) + SLACK
    every = np.all(list(within.values()), axis=0)
    return {
        "natural": float(every.mean()), **{f"natural_{n}": float(w.mean()) for n, w in within.items()}
    }  # fmt: skip


_PARTS = {
    "joints": slice(0, 3 * len(_JOINTS)),
    "twists": slice(3 * len(_JOINTS), 3 * len(_JOINTS) + len(_TWISTED)),
    **{name: slice(at - 3, at - 2 or None) for at, name in enumerate(MEASURES[2:])},
}


def _strangeness(
    of: Float[Array, "frames part"], recorded: Float[Array, "frames part"]
) -> Float[Array, "frames"]:
    """The largest deviation of a component from the middle of the recordings, in half ranges."""
    if of.shape[1] == 1:
        return np.asarray(of[:, 0])
    low, middle, high = np.percentile(recorded, [0.5, 50.0, 99.5], axis=0)
    gaps = of - middle
    halves = np.where(gaps > 0, np.maximum(high - middle, LEAST), np.minimum(low - middle, -LEAST))
    return np.asarray((gaps / halves).max(axis=1))
