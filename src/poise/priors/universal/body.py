"""Bodies of the universal prior: any humanoid as the canonical body, and the joint zeros of performers.

A humanoid is mapped to the canonical body by name if it has CMU's joints, else by roles and the neutral pose. A
joint's world rotation relative to the neutral pose has the same meaning on every body. So a joint's local rotation on
the target is L = A L_c B, with constant A and B: its reference is A r B and its exponential map B' e, which is linear.
If the target has more or fewer joints between pelvis and chest, or chest and head, the chain shares the maps.

Joint zeros are a performer's joint calibration, which handles do not show. The same pose has different rotations for
each performer: a constant offset of the root and of every joint. For a new person, the bones predict a little of it,
since similar bodies were often calibrated alike; recorded clips determine nearly all. The rest is part of the
covariance of the poses.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.errors import SkeletonError
from poise.geometry import rotations
from poise.priors.poses import SAME_BONES
from poise.priors.universal import layout
from poise.priors.universal.network import Weights, ZeroWeights
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.roles import MAIN_ROLES, SIDES, path
from poise.skeleton.skeleton import Skeleton
from poise.types import Array


class Zeros(NamedTuple):
    """A Gaussian over the offsets of the root's rotation and of the canonical maps."""

    mean: Float[Array, "zeros"]
    spread: Float[Array, "zeros zeros"]

    def after(
        self, rows: Float[Array, "maps zeros"], seen: Float[Array, "maps"], noise: Float[Array, "maps maps"]
    ) -> Zeros:
        """The posterior after offsets of some maps were observed with this noise covariance."""
        shared = rows @ self.spread
        gain = np.linalg.solve(shared @ rows.T + noise, shared).T
        spread = self.spread - gain @ shared
        floor = 1e-8 * np.eye(len(spread))
        return Zeros(self.mean + gain @ (seen - rows @ self.mean), 0.5 * (spread + spread.T) + floor)


class Performers(NamedTuple):
    """The learned zeros of several performers, found by their bones."""

    bodies: Float[Array, "bodies joints 3"]  # offsets of the bones
    means: Float[Array, "bodies zeros"]
    spreads: Float[Array, "bodies zeros zeros"]

    def zeros_of(self, skeleton: Skeleton) -> Zeros | None:
        """The zeros of the performer with these bones; None if nobody has them, as on another kind of skeleton."""
        if self.bodies.shape[1:] != skeleton.offsets.shape:
            return None
        apart = np.linalg.norm((self.bodies - skeleton.offsets).reshape(len(self.bodies), -1), axis=1)
        nearest = int(np.argmin(apart))
        return Zeros(self.means[nearest], self.spreads[nearest]) if apart[nearest] < SAME_BONES else None


def of_anyone(weights: Weights) -> Zeros:
    """The prior over the zeros of an unknown person."""
    return Zeros(weights.zeros.mean, weights.zeros.spread)


def of_bones(skeleton: Skeleton, weights: Weights) -> Zeros:
    """The zeros predicted from the bones of a body with the canonical joints."""
    figure = layout.figure(skeleton.offsets[[skeleton.index(name) for name in layout.JOINTS]])
    return Zeros(predicted_zeros(weights.zeros, figure), weights.zeros.spread)


def predicted_zeros(
    known: ZeroWeights, figures: Float[Array, "*bodies figure"]
) -> Float[Array, "*bodies zeros"]:
    """The predicted mean of the zeros of bodies with these bone features, from the most similar bodies."""
    own = (figures - known.centre) / known.scale
    apart = np.sum((own[..., None, :] - known.figures) ** 2, axis=-1)
    kernel = np.exp(-0.5 * apart[..., None] / known.reach)
    return np.asarray(known.mean + np.sum(kernel * known.weight, axis=-2))


class MappedZeros(NamedTuple):
    """Zeros mapped to a target's poses: means, and the covariance in blocks."""

    turn: Float[Array, "3 3"]  # of the canonical root
    shift: Float[Array, "maps"]
    root: Float[Array, "3 3"]
    across: Float[Array, "3 maps"]
    maps: Float[Array, "maps maps"]


def on_maps(zeros: Zeros, maps: Float[Array, "maps canonical"]) -> MappedZeros:
    """The zeros of a body whose maps are linear in the canonical ones."""
    turn = rotations.matrix_from_quaternion(rotations.quaternion_from_expmap(zeros.mean[:3]))
    own = maps @ zeros.spread[3:]
    return MappedZeros(turn, maps @ zeros.mean[3:], zeros.spread[:3, :3], own[:, :3].T, own[:, 3:] @ maps.T)


SHORTEST = 1e-6  # metres: a shorter bone has no direction
OTHERWISE = 2.5  # standard deviations to which bone lengths are clipped: rigs place joints differently

_AT = {name: number for number, name in enumerate(layout.JOINTS)}
_ROLES = {
    "Hips": "pelvis", "Head": "head",
    **{f"{side.title()}{part}": f"{side}_{role}" for side in SIDES for part, role in (
        ("UpLeg", "thigh"), ("Leg", "shin"), ("Foot", "foot"), ("ToeBase", "toes"),
        ("Arm", "upper_arm"), ("ForeArm", "forearm"), ("Hand", "hand"),
    )},
}  # fmt: skip
_CARRIERS = {  # canonical joints that are not points themselves: the point that is (nearly) fixed to them
    "LHipJoint": "Hips", "RHipJoint": "Hips", "LowerBack": "Hips", "Neck": "Spine1",
    "LeftShoulder": "Spine1", "RightShoulder": "Spine1",
    **{f"{side}{part}": f"{side}HandIndex1_end" for side in ("Left", "Right") for part in ("FingerBase", "HandIndex1")},
    **{f"{side[0]}Thumb{end}": f"{side}Hand" for side in ("Left", "Right") for end in ("", "_end")},
}  # fmt: skip


Chain = tuple[tuple[str, ...], tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class BodyFit:
    """The linear map from the canonical body's poses and handles to those of a target skeleton."""

    references: Float[Array, "joints 4"]
    moving: Bool[Array, "joints"]
    maps: Float[Array, "maps canonical"]  # of the target's moving joints, from the canonical ones
    root_turn: Float[Array, "3 3"]  # target root = canonical root @ this
    root_shift: Float[Array, "3"]  # from the canonical root to the target's, in the canonical root's axes
    bones: Float[Array, "bones"]  # lengths in the form that the network reads
    offsets: Float[Array, "canonical 3"]  # of the canonical joints, with the target's proportions
    rows: Int[Array, "joints"]  # the canonical point that each target joint moves with
    shifts: Float[Array, "joints 3"]  # position of the joint relative to that point, in the point's axes
    turns: Float[Array, "joints 3 3"]  # from the joint's axes to the point's
    turned: Int[Array, "joints"]  # the row of the joint's rotation; -1 for none

    @property
    def is_canonical(self) -> bool:
        """Whether the target's maps equal the canonical ones."""
        return self.maps.shape[0] == self.maps.shape[1] and np.array_equal(self.maps, np.eye(len(self.maps)))


@dataclass(frozen=True, eq=False)
class _StandingBody:
    """Both bodies in one pose: axes and positions of the canonical joints and of the target's."""

    own_axes: Float[Array, "canonical 3 3"]
    own_places: Float[Array, "canonical 3"]
    axes: Float[Array, "joints 3 3"]
    places: Float[Array, "joints 3"]
    chains: tuple[Chain, ...]  # canonical joints, and the target joints that share them
    still: Float[Array, "joints 4"]  # rotations of joints that do not move


def fitted(skeleton: Skeleton, weights: Weights) -> BodyFit:
    """Return the fit of a skeleton; raise if it is not a humanoid."""
    standing = _standing(skeleton, weights)
    references, maps, moving = _shared_out(skeleton, standing, weights)
    rows, shifts, turns, turned = _points(skeleton, standing)
    apart = [standing.own_places[_AT[b]] - standing.own_places[layout.PARENTS[_AT[b]]] for b in layout.BONES]
    lengths = np.maximum(np.linalg.norm(apart, axis=-1), 1e-3)
    hips, before = standing.own_axes[0], np.maximum(layout.PARENTS, 0)
    steps = standing.own_places - standing.own_places[before]
    return BodyFit(
        references=references,
        moving=moving,
        maps=maps,
        root_turn=hips.T @ standing.axes[0],
        root_shift=hips.T @ (standing.places[0] - standing.own_places[0]),
        bones=np.clip(np.log(lengths / weights.lengths) / layout.LENGTH_SCALE, -OTHERWISE, OTHERWISE),
        offsets=np.einsum("jba,jb->ja", standing.own_axes[before], steps),
        rows=rows,
        shifts=shifts,
        turns=turns,
        turned=turned,
    )


def typical_body(weights: Weights) -> Skeleton:
    """The canonical body with the mean proportions of the training performers."""
    orders = tuple("" if name.endswith("_end") else "ZYX" for name in layout.JOINTS)
    return Skeleton(layout.JOINTS, np.array(layout.PARENTS), weights.body, orders)


def _has_canonical_joints(skeleton: Skeleton) -> bool:
    parents = ["" if p < 0 else skeleton.names[p] for p in skeleton.parents.tolist()]
    return set(layout.TREE) == set(zip(skeleton.names, parents, strict=True))


def _standing(skeleton: Skeleton, weights: Weights) -> _StandingBody:
    """Both in the target's rest pose if that is the canonical one; else neutral, with the target's proportions."""
    if _has_canonical_joints(skeleton):
        at = [skeleton.index(name) for name in layout.JOINTS]
        eye = np.tile(np.eye(3), (len(skeleton), 1, 1))
        still = np.tile(rotations.IDENTITY, (len(skeleton), 1))
        (places,), _ = world_transforms(skeleton, np.zeros((1, 3)), still[None])
        own = tuple(((name,), (skeleton.index(name),)) for name in layout.MOVING)
        return _StandingBody(eye, places[at], eye, places, own, still)
    if missing := [role for role in MAIN_ROLES if role not in skeleton.roles]:
        raise SkeletonError(
            f"the universal prior needs a humanoid; this skeleton lacks {', '.join(missing)}; assign their roles"
        )
    neutral, canonical = neutral_pose(skeleton), neutral_pose(typical_body(weights)).world
    at_neutral, chains = _own_places(skeleton, neutral.positions, weights), tuple(_chains(skeleton))
    return _StandingBody(canonical, at_neutral, neutral.world, neutral.positions, chains, neutral.rotations)


def _own_places(
    skeleton: Skeleton, neutral: Float[Array, "joints 3"], weights: Weights
) -> Float[Array, "canonical 3"]:
    """Positions of the canonical joints in the target's neutral pose."""
    at = {name: neutral[skeleton.index(role)] for name, role in _ROLES.items() if role in skeleton.roles}
    leg = sum(np.linalg.norm(at[below] - at[above]) for above, below in itertools.pairwise(_LEG))
    scale = float(leg) / float(np.linalg.norm(weights.body[[_AT[name] for name in _LEG[1:]]], axis=-1).sum())
    typical = {name: scale * weights.body[number] for name, number in _AT.items()}
    across = np.array([0.0, 1.0, 1.0])
    for centre, part in (("Hips", "UpLeg"), ("Spine1", "Arm")):
        pair = (f"Left{part}", f"Right{part}")
        at[centre] = np.mean([at[name] - across * typical[name] for name in pair], axis=0)
    at["Spine"] = (at["Hips"] + at["Spine1"]) / 2
    at["Neck1"] = (at["Spine1"] + at["Head"]) / 2
    forward, up = np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0])
    at["Head_end"] = at["Head"] + up * np.linalg.norm(typical["Head_end"])
    for side in ("Left", "Right"):
        ahead = forward * np.linalg.norm(typical[f"{side}ToeBase"]) * 0.95 - up * 0.03 * scale
        at.setdefault(f"{side}ToeBase", at[f"{side}Foot"] + ahead)
        tip = np.linalg.norm(typical[f"{side}ToeBase_end"])
        at[f"{side}ToeBase_end"] = at[f"{side}ToeBase"] + forward * tip
        along = at[f"{side}Hand"] - at[f"{side}ForeArm"]
        fingers = [typical[f"{side}HandIndex1"], typical[f"{side}HandIndex1_end"]]
        share = sum(map(np.linalg.norm, fingers)) / max(float(np.linalg.norm(along)), SHORTEST)
        at[f"{side}HandIndex1_end"] = at[f"{side}Hand"] + along * share
        for inner in ("FingerBase", "HandIndex1"):  # without a length of their own
            at[f"{side}{inner}"] = at[f"{side}Hand"]
    return np.stack([at[name if name in at else _CARRIERS[name]] for name in layout.JOINTS])


_LEG = ("LeftUpLeg", "LeftLeg", "LeftFoot")


def _chains(skeleton: Skeleton) -> list[Chain]:
    """Canonical joints and the target joints that share their rotations."""
    at = {role: skeleton.index(role) for role in skeleton.roles}
    chest = at.get("chest", -1)
    lower = path(skeleton, at["pelvis"], chest)[1:] if chest >= 0 else []
    upper = path(skeleton, chest if chest >= 0 else at["pelvis"], at["head"])[1:]
    found: list[Chain] = [(("LowerBack", "Spine", "Spine1"), tuple(lower))]
    found.append((("Neck", "Neck1", "Head"), tuple(upper)))
    for side in ("Left", "Right"):
        for part in ("UpLeg", "Leg", "Foot", "ToeBase", "Arm", "ForeArm"):
            role = _ROLES[f"{side}{part}"]
            found.append(((f"{side}{part}",), (at[role],) if role in at else ()))
        found.append(((f"{side}Hand", f"{side}FingerBase"), (at[f"{side.lower()}_hand"],)))
    return found


def _shared_out(
    skeleton: Skeleton, standing: _StandingBody, weights: Weights
) -> tuple[Float[Array, "joints 4"], Float[Array, "maps canonical"], Bool[Array, "joints"]]:
    """References and maps of the target's joints from the canonical ones that they share."""
    references, moving = standing.still.copy(), np.zeros(len(skeleton), dtype=np.bool_)
    blocks: dict[int, Float[Array, "3 canonical"]] = {}
    for own, chain in standing.chains:
        joints = [joint for joint in chain if not skeleton.is_end_site[joint]]  # end sites cannot rotate
        # the fraction of each of `own` equal intervals that lies in each of `joints` equal ones of the same whole
        ends, others = np.arange(len(own) + 1) / len(own), np.arange(len(joints) + 1) / max(len(joints), 1)
        least, most = np.maximum(others[:-1, None], ends[:-1]), np.minimum(others[1:, None], ends[1:])
        shares = np.maximum(most - least, 0.0) * len(own)
        for joint, share in zip(joints, shares, strict=True):
            references[joint], blocks[joint] = _one(joint, own, share, skeleton, standing, weights)
            moving[joint] = True
    for name in ("LeftHandIndex1", "RightHandIndex1"):  # slightly bent in every recording
        if name in skeleton.names:
            references[skeleton.index(name)] = rotations.quaternion_from_matrix(weights.references[_AT[name]])
    return references, np.concatenate([blocks[joint] for joint in sorted(blocks)]), moving


def _one(
    joint: int, own: tuple[str, ...], share: Float[Array, "own"], skeleton: Skeleton, standing: _StandingBody,
    weights: Weights,
) -> tuple[Float[Array, "4"], Float[Array, "3 canonical"]]:  # fmt: skip
    """A joint's reference, and its block of the map from the canonical maps."""
    turn, block = np.eye(3), np.zeros((3, 3 * len(layout.MOVING)))
    axes = standing.axes[joint]
    for name, part in zip(own, share, strict=True):
        at = _AT[name]
        before, after = standing.own_axes[layout.PARENTS[at]], standing.own_axes[at]
        whole = rotations.quaternion_from_matrix(before @ weights.references[at] @ after.T)
        vector = part * rotations.expmap_from_quaternion(whole)
        turn = turn @ rotations.matrix_from_quaternion(rotations.quaternion_from_expmap(vector))
        slot = 3 * layout.MOVING.index(name)
        block[:, slot : slot + 3] = part * (axes.T @ after)
    local = standing.axes[skeleton.parents[joint]].T @ turn @ axes
    return rotations.quaternion_from_matrix(local), block


def _points(
    skeleton: Skeleton, standing: _StandingBody
) -> tuple[Int[Array, "joints"], Float[Array, "joints 3"], Float[Array, "joints 3 3"], Int[Array, "joints"]]:
    """Per target joint: the canonical point it moves with, its position and axes relative to it, its rotation's row."""
    named = {joint: own[-1 if len(joints) > 1 else 0] for own, joints in standing.chains for joint in joints}
    if _has_canonical_joints(skeleton):
        named |= dict(enumerate(skeleton.names))
    for own, joints in standing.chains:
        if (
            len(own) == 3 and joints
        ):  # each has the canonical joint at its position; the last maps to the last
            ends = np.ceil((np.arange(len(joints)) + 1) * len(own) / len(joints)).astype(int) - 1
            named |= {joint: own[end] for joint, end in zip(joints, ends, strict=True)}
    rows, turned = np.zeros((2, len(skeleton)), dtype=np.int64)
    for joint in range(len(skeleton)):
        at = joint
        while at >= 0 and at not in named:
            at = int(skeleton.parents[at])
        name = named[at] if at >= 0 else "Hips"
        rows[joint] = layout.POINTS.index(_CARRIERS.get(name, name))
        turned[joint] = layout.TURNS.index(name) if name in layout.TURNS else -1
    points = [_AT[layout.POINTS[row]] for row in rows]
    into = np.swapaxes(standing.own_axes[points], -1, -2)
    shifts = np.einsum("jab,jb->ja", into, standing.places - standing.own_places[points])
    return rows, shifts, into @ standing.axes, turned
