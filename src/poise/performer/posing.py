"""From targets per frame to joint rotations: trunk, head, arms and legs, all in closed form.

A turn is a vector of angles about x (forward), y (to the left) and z (to the right: left side up), applied yaw first.
The right side is the mirror image of the left, so limbs are solved once, for a left side.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Bool, Float

from poise.geometry import rotations as rot
from poise.performer.bodies import Body
from poise.performer.tracks import ease, soft_minimum, soft_positive
from poise.types import Array

SIDES: Mapping[str, float] = {"left": 1.0, "right": -1.0}
_OTHER = {"left": "right", "right": "left"}
_SPINE_SHARES = {"Spine": 0.30, "Spine1": 0.35, "Spine2": 0.35}
_NECK_SHARE = 0.45
_NECK_LIMIT = np.radians(75.0)
_LONGEST_LEG = 0.998  # of thigh plus shank: the knee keeps 7 degrees of bend
_DEEPEST_ANKLE = np.radians(28.0)  # dorsiflexion from which a planted heel begins to rise
_ANKLE_RANGE = np.radians(-24.0), np.radians(46.0)  # from toes up to toes down, in the air
_STRAIGHT_LEG = 0.9995  # of thigh plus shank: beyond this the pelvis ignores the leg
_LONGEST_ARM = 0.995  # of upper arm plus forearm
_CLEAR_OF_SHOULDER = 0.6  # of upper arm plus forearm: smallest distance of a moving hand from the shoulder
_DEEPEST_ELBOW = np.radians(140.0)


@dataclass(frozen=True)
class Reach:
    """A world target of the wrist, and the elbow's direction; `weight` 0 leaves the arm to its angles."""

    point: Float[Array, "frames 3"]
    elbow: Float[Array, "frames 3"]
    weight: Float[Array, "frames"] | float = 1.0
    fingertips: bool = False  # bring the fingertips of a straight hand to the point, instead of the wrist


@dataclass(frozen=True)
class Arm:
    """One arm's angles in radians, zero hanging at the side with the palm to the thigh; each per frame or constant.

    `flexion` raises it forward, `abduction` sideways, `across` carries it round to the front on the level, `twist`
    turns it inward about itself, `elbow` bends, `pronation` turns the palm inward and down, `wrist` bends the hand
    towards the palm.
    """

    flexion: Array | float = 0.0
    abduction: Array | float = 0.0
    across: Array | float = 0.0
    twist: Array | float = 0.0
    elbow: Array | float = 0.0
    pronation: Array | float = 0.0
    wrist: Array | float = 0.0
    shoulder_up: Array | float = 0.0
    shoulder_forward: Array | float = 0.0
    reach: Reach | None = None


@dataclass(frozen=True)
class Foot:
    """The position of one ankle, the foot's rotation, the bend of the toes, and what touches the floor."""

    ankle: Float[Array, "frames 3"]
    turn: Float[Array, "frames 3"]
    toes: Float[Array, "frames"]
    heel_down: Bool[Array, "frames"]
    ball_down: Bool[Array, "frames"]
    holds_pelvis: Float[Array, "frames"] | float = 1.0  # 1: the pelvis sinks until the leg can reach
    knee_out: Float[Array, "frames"] | float = 0.0


@dataclass(frozen=True)
class BodyTargets:
    """The body's targets per frame. `gaze` is the head's rotation relative to `facing`, a yaw in the world.

    `upright` is the share of a style's crouch and lean that applies: none when sitting.
    """

    pelvis: Float[Array, "frames 3"]
    pelvis_turn: Float[Array, "frames 3"]
    spine: Float[Array, "frames 3"]
    facing: Float[Array, "frames"]
    gaze: Float[Array, "frames 3"]
    feet: Mapping[str, Foot]
    arms: Mapping[str, Arm] = field(default_factory=lambda: {"left": Arm(), "right": Arm()})
    upright: Float[Array, "frames"] | float = 1.0

    def __len__(self) -> int:
        return len(self.pelvis)


def mirrored(targets: BodyTargets) -> BodyTargets:
    """The same with left and right exchanged."""
    flip, unroll = np.array([-1.0, 1.0, 1.0]), np.array([1.0, -1.0, -1.0])
    feet, arms = {}, {}
    for side, other in _OTHER.items():
        foot, arm = targets.feet[other], targets.arms[other]
        feet[side] = replace(foot, ankle=foot.ankle * flip, turn=foot.turn * unroll)
        if arm.reach is not None:
            point, elbow = arm.reach.point * flip, arm.reach.elbow * flip
            arm = replace(arm, reach=replace(arm.reach, point=point, elbow=elbow))
        arms[side] = arm
    return BodyTargets(
        targets.pelvis * flip,
        targets.pelvis_turn * unroll,
        targets.spine * unroll,
        -targets.facing,
        targets.gaze * unroll,
        feet,
        arms,
        targets.upright,
    )


def turned(turn: Float[Array, "*n 3"]) -> Float[Array, "*n 4"]:
    """The rotation of a turn: yaw about y, then pitch about x, then roll about z."""
    return rot.quaternion_from_euler(np.asarray(turn)[..., [1, 0, 2]], "YXZ")


def yawed(yaw: Float[Array, "*n"], v: Float[Array, "*n 3"]) -> Float[Array, "*n 3"]:
    """Vectors turned about the vertical."""
    cosine, sine = np.cos(yaw), np.sin(yaw)
    v = np.asarray(v, dtype=np.float64)
    return np.stack(
        [
            cosine * v[..., 0] + sine * v[..., 2],
            v[..., 1] + 0.0 * sine,
            cosine * v[..., 2] - sine * v[..., 0],
        ],
        -1,
    )


def pose(
    body: Body, targets: BodyTargets
) -> tuple[Float[Array, "frames 3"], Float[Array, "frames joints 4"]]:
    """Root positions and joint rotations that meet the targets."""
    names = body.skeleton.names
    local = {name: np.broadcast_to(rot.IDENTITY, (len(targets), 4)) for name in names}
    pelvis_rotation = turned(targets.pelvis_turn)
    root = _within_reach(body, targets, pelvis_rotation)
    local["Hips"] = pelvis_rotation
    local |= {name: turned(share * targets.spine) for name, share in _SPINE_SHARES.items()}
    chest, chest_rotation = root, pelvis_rotation
    for name in _SPINE_SHARES:
        offset = body.skeleton.offsets[names.index(name)]
        chest = chest + rot.rotate(chest_rotation, np.broadcast_to(offset, chest.shape))
        chest_rotation = rot.multiply(chest_rotation, local[name])
    zero = np.zeros(len(targets))
    gaze = turned(targets.gaze + np.stack([zero, targets.facing, zero], axis=-1))
    bend = rot.expmap_from_quaternion(rot.multiply(rot.conjugate(chest_rotation), gaze))
    angle = np.linalg.norm(bend, axis=-1, keepdims=True)
    bend = bend * soft_minimum(1.0, _NECK_LIMIT / np.maximum(angle, 1e-9), width=0.02)
    local["Neck"] = rot.quaternion_from_expmap(_NECK_SHARE * bend)
    local["Head"] = rot.quaternion_from_expmap((1.0 - _NECK_SHARE) * bend)
    for side in SIDES:
        local |= _posed_arm(body, side, targets.arms[side], chest, chest_rotation)
        local |= _posed_leg(body, side, targets.feet[side], root, pelvis_rotation)
    return root, rot.continuous(np.stack([local[name] for name in names], axis=1))


def with_heels_raised(body: Body, targets: BodyTargets) -> BodyTargets:
    """The targets with raised heels where a deep knee bend exceeds the range of a planted ankle."""
    pelvis_rotation = turned(targets.pelvis_turn)
    for _ in range(2):
        root = _within_reach(body, targets, pelvis_rotation)
        feet = {}
        for side, foot in targets.feet.items():
            ankle = _posed_leg(body, side, foot, root, pelvis_rotation)[f"{side.capitalize()}Foot"]
            beyond = np.maximum(-rot.expmap_from_quaternion(ankle)[:, 0] - _DEEPEST_ANKLE, 0.0)
            beyond = beyond * (1.0 - _well_above(body, foot))
            beyond = beyond * ease(1.0 + foot.turn[:, 0] / np.radians(4.0))  # not while the heel strikes
            raised = beyond**2 / (beyond + 0.1)
            turn = foot.turn + raised[:, None] * np.array([1.0, 0.0, 0.0])
            ball = np.broadcast_to(body.ball, root.shape)
            moved = foot.ankle + rot.rotate(turned(foot.turn), ball) - rot.rotate(turned(turn), ball)
            heel_down = foot.heel_down & (turn[:, 0] < np.radians(1.5))
            feet[side] = replace(foot, ankle=moved, turn=turn, toes=foot.toes + raised, heel_down=heel_down)
        targets = replace(targets, feet=feet)
    return targets


def _within_reach(body: Body, targets: BodyTargets, pelvis_rotation: Array) -> Float[Array, "frames 3"]:
    """The pelvis lowered, smoothly, until both legs reach their ankles."""
    root = np.array(targets.pelvis)
    for side, foot in targets.feet.items():
        hip = rot.rotate(pelvis_rotation, np.broadcast_to(_offset(body, side, "UpLeg"), root.shape))
        across = root + hip - foot.ankle
        level = across[:, 0] ** 2 + across[:, 2] ** 2
        longest = (_LONGEST_LEG * body.leg) ** 2
        highest = foot.ankle[:, 1] - hip[:, 1] + np.sqrt(np.maximum(longest - level, 0.01 * longest))
        free = (1.0 - np.asarray(foot.holds_pelvis)) * body.leg
        root[:, 1] = soft_minimum(root[:, 1], highest + free, width=0.006 * body.leg)
    return root


# --- limbs ---------------------------------------------------------------------------------------------------------


def _posed_arm(body: Body, side: str, arm: Arm, chest: Array, chest_rotation: Array) -> dict[str, Array]:
    zero = np.zeros(len(chest))
    lifted = np.stack([zero - arm.shoulder_forward, zero + arm.shoulder_up], axis=-1)
    girdle = rot.quaternion_from_euler(lifted, "YZ")
    raised = np.stack([zero - arm.flexion, zero + arm.abduction - np.pi / 2, zero + arm.twist], axis=-1)
    around = rot.quaternion_from_euler((zero - arm.across)[:, None], "Y")
    upper, elbow = rot.multiply(around, rot.quaternion_from_euler(raised, "XZX")), zero + arm.elbow
    if arm.reach is not None:
        frame = rot.multiply(chest_rotation, _mirrored(girdle, side))
        root = np.broadcast_to(_offset(body, side, "Shoulder"), chest.shape)
        joint = np.broadcast_to(_offset(body, side, "Arm"), chest.shape)
        shoulder = chest + rot.rotate(chest_rotation, root) + rot.rotate(frame, joint)
        to_goal = _seen_from(frame, arm.reach.point - shoulder, side)
        to_elbow = _seen_from(frame, arm.reach.elbow, side)
        upper, elbow = _drawn_to(body, upper, elbow, arm.reach, to_goal, _unit(to_elbow))
    forearm = rot.quaternion_from_euler(np.stack([-elbow, zero + arm.pronation], axis=-1), "YX")
    wrist = rot.quaternion_from_euler((zero - arm.wrist)[:, None], "Z")
    posed = {"Shoulder": girdle, "Arm": upper, "ForeArm": forearm, "Hand": wrist}
    return {side.capitalize() + name: _mirrored(rotation, side) for name, rotation in posed.items()}


def _drawn_to(
    body: Body, upper: Array, elbow: Array, reach: Reach, to_goal: Array, to_elbow: Array
) -> tuple[Array, Array]:
    """A left arm moved from its angles' pose to a goal, its end along a straight line, around the shoulder."""
    first, second = body.upper_arm, body.forearm + (body.hand if reach.fingertips else 0.0)
    folded = np.stack([np.cos(elbow), np.zeros_like(elbow), np.sin(elbow)], axis=-1)
    forward = np.broadcast_to([1.0, 0.0, 0.0], folded.shape)
    elbow_now, end_now = rot.rotate(upper, forward), rot.rotate(upper, first * forward + second * folded)
    weight = (np.zeros_like(elbow) + reach.weight)[:, None]
    end = end_now + weight * (to_goal - end_now)
    too_near = soft_positive(_CLEAR_OF_SHOULDER * (first + second) - np.linalg.norm(end, axis=-1), width=0.05)
    end = end + 4 * weight * (1 - weight) * too_near[:, None] * np.array([0.3, 0.0, 1.0])
    to_elbow = elbow_now + weight * (to_elbow - elbow_now)  # the side of the elbow
    distance = np.linalg.norm(end, axis=-1)
    straight = first + second
    stretch = soft_minimum(distance, _LONGEST_ARM * straight, width=0.03 * straight)
    shortest = np.sqrt(first**2 + second**2 + 2 * first * second * np.cos(_DEEPEST_ELBOW))
    stretch = -soft_minimum(-stretch, -shortest, width=0.02 * straight)
    bend, lift = _two_bones(first, second, stretch)
    along = end / distance[:, None]
    outward = _unit(to_elbow - np.sum(to_elbow * along, axis=-1, keepdims=True) * along)
    x = np.cos(lift)[:, None] * along + np.sin(lift)[:, None] * outward
    z = np.sin(lift)[:, None] * along - np.cos(lift)[:, None] * outward
    return rot.quaternion_from_matrix(np.stack([x, np.cross(z, x), z], axis=-1)), bend


def _posed_leg(body: Body, side: str, foot: Foot, root: Array, pelvis_rotation: Array) -> dict[str, Array]:
    hip = root + rot.rotate(pelvis_rotation, np.broadcast_to(_offset(body, side, "UpLeg"), root.shape))
    foot_rotation = turned(foot.turn)
    to_ankle = _seen_from(pelvis_rotation, foot.ankle - hip, side)
    toes = _seen_from(
        pelvis_rotation, rot.rotate(foot_rotation, np.broadcast_to([0.0, 0.0, 1.0], root.shape)), side
    )
    # The knee is a pure hinge that points half way between the pelvis and the toes.
    distance = np.linalg.norm(to_ankle, axis=-1)
    softness = 1e-6 + 0.05 * body.leg * (1.0 - np.asarray(foot.holds_pelvis))
    reach = soft_minimum(distance, _STRAIGHT_LEG * body.leg, width=softness)
    flex, lift = _two_bones(body.thigh, body.shank, reach)
    swing = rot.quaternion_between(np.broadcast_to([0.0, -1.0, 0.0], to_ankle.shape), to_ankle)
    ahead = rot.rotate(rot.conjugate(swing), toes)
    twist = 0.5 * np.arctan2(ahead[:, 0], np.maximum(np.hypot(ahead[:, 2], 0.2), ahead[:, 2])) + foot.knee_out
    thigh = rot.multiply(swing, rot.quaternion_from_euler(np.stack([twist, -lift], axis=-1), "YX"))
    knee = rot.quaternion_from_euler(flex[:, None], "X")
    shank = rot.multiply(rot.multiply(pelvis_rotation, _mirrored(thigh, side)), knee)
    # The ankle is kept within its range while the foot is well above the floor.
    bend = rot.expmap_from_quaternion(rot.multiply(rot.conjugate(shank), foot_rotation))
    lowest, highest = _ANKLE_RANGE
    kept = lowest + soft_positive(bend[:, 0] - lowest, width=0.1)
    bend[:, 0] += _well_above(body, foot) * (soft_minimum(kept, highest, width=0.1) - bend[:, 0])
    posed = {
        "UpLeg": _mirrored(thigh, side),
        "Leg": knee,
        "Foot": rot.quaternion_from_expmap(bend),
        "ToeBase": rot.quaternion_from_euler(-foot.toes[:, None], "X"),
    }
    return {side.capitalize() + name: rotation for name, rotation in posed.items()}


def _well_above(body: Body, foot: Foot) -> Array:
    """1 for a foot that swings well above the floor, 0 for one on the floor or near it."""
    return (1.0 - np.asarray(foot.holds_pelvis)) * ease((foot.ankle[:, 1] / body.ankle_height - 1.3) / 2.0)


def _two_bones(first: float, second: float, reach: Array) -> tuple[Array, Array]:
    """The bend at the middle joint (0 straight) and the angle between the first bone and the line to the end."""
    cosine = (reach**2 - first**2 - second**2) / (2 * first * second)
    bend = np.arccos(np.clip(cosine, -1.0, 1.0))
    return bend, np.arctan2(second * np.sin(bend), first + second * np.cos(bend))


# --- left and right ------------------------------------------------------------------------------------------------


def _offset(body: Body, side: str, name: str) -> Array:
    offset: Array = body.skeleton.offsets[body.skeleton.names.index(side.capitalize() + name)]
    return offset


def _mirrored(q: Array, side: str) -> Array:
    return q * np.array([1.0, 1.0, SIDES[side], SIDES[side]])


def _seen_from(frame: Array, v: Array, side: str) -> Array:
    """World vectors in a joint's frame, as a left side sees them."""
    return rot.rotate(rot.conjugate(frame), v) * np.array([SIDES[side], 1.0, 1.0])


def _unit(v: Array) -> Array:
    return v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-9)
