"""The parts of the mannequin: the solid of each joint, and its size, by measurements of the skeleton."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from jaxtyping import Float

from poise.pictures import lofts
from poise.pictures.lofts import Solid
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

Profile = tuple[tuple[float, float, float, float], ...]


# Radii along a limb from its joint to the next, as fractions of stature.
_LIMB_RADII = {
    "thigh": (0.041, 0.046, 0.0445, 0.039, 0.032, 0.0255),
    "shin": (0.0255, 0.0305, 0.0315, 0.0265, 0.0205, 0.0165),
    "upper_arm": (0.0245, 0.0275, 0.027, 0.0245, 0.0215, 0.0185),
    "forearm": (0.0185, 0.0225, 0.022, 0.0190, 0.0155, 0.0130),
    "shoulder": (0.026, 0.031, 0.029),
    "neck": (0.0285, 0.028, 0.0285),
}
_BALL_RADII = {
    "thigh": 0.038, "shin": 0.0300, "foot": 0.0205, "upper_arm": 0.0310, "forearm": 0.0228, "hand": 0.0165
}  # fmt: skip
_NEXT_ROLE = {
    "thigh": "shin", "shin": "foot", "shoulder": "upper_arm", "upper_arm": "forearm", "forearm": "hand", "neck": "head"
}  # fmt: skip
# Round bodies: (part of the height, half width, half depth, shift to the front), widths as fractions of stature.
_PELVIS = (
    (0.0, 0.074, 0.060, -0.004),
    (0.4, 0.090, 0.064, -0.006),
    (0.75, 0.086, 0.060, -0.004),
    (1.0, 0.078, 0.056, 0.0),
)
_RIBS = (
    (0.0, 0.086, 0.064, 0.0),
    (0.4, 0.087, 0.062, 0.002),
    (0.7, 0.096, 0.061, 0.0),
    (1.0, 0.092, 0.050, -0.006),
)
_HEAD = (
    (0.0, 0.034, 0.040, 0.014),
    (0.4, 0.0425, 0.053, 0.004),
    (0.7, 0.0470, 0.058, 0.0),
    (1.0, 0.046, 0.056, -0.002),
)
_WAIST = ((0.0, 0.066, 0.053), (0.5, 0.064, 0.053), (1.0, 0.068, 0.054))
_HAND = (
    (0.0, 0.012, 0.010, 0.0),
    (0.3, 0.022, 0.0125, 0.0),
    (0.55, 0.0225, 0.0115, 0.0),
    (0.95, 0.015, 0.008, 0.0),
)
# (part of the way from heel to toe joint, half width, height above the sole)
_FOOT = [
    (-0.30, 0.0165, 0.030),
    (0.0, 0.0195, 0.043),
    (0.3, 0.0205, 0.039),
    (0.65, 0.0235, 0.028),
    (1.0, 0.0255, 0.0215),
]
_TOES = [(0.0, 0.0255, 0.0215), (0.5, 0.0250, 0.0185), (0.9, 0.0195, 0.0150)]
_HEAD_HEIGHT, _CHIN_BELOW_JOINT = 0.134, 0.032
_HAND_LENGTH, _TOES_LENGTH, _FOOT_LENGTH = 0.100, 0.042, 0.078
_SOLE_BELOW_ANKLE = (0.036, 0.062)
_SHORTEST_BONE = 0.005  # of stature; shorter bones get no limb


@dataclass(frozen=True, eq=False)
class BodyPart:
    """A solid that moves with one joint, in that joint's frame; its tone is a side, or a side's joint."""

    joint: int
    tone: str
    solid: Solid


def build_parts(skeleton: Skeleton, rotations: Float[Array, "frames joints 4"] | None) -> list[BodyPart]:
    """Every part of the mannequin of a skeleton."""
    body = MannequinBody(skeleton, rotations)
    parts = [*_limbs(body), *_balls(body), *_pelvis(body), *_waist(body), *_ribs(body), *_head(body)]
    for side in ("left", "right"):
        parts += [*_hand(body, f"{side}_hand"), *_foot(body, side)]
    return parts or [BodyPart(0, "centre", lofts.ball(np.zeros(3), 0.5 * body.stature or 0.05))]


# --- limbs -----------------------------------------------------------------------------------------------------------


def _limbs(body: MannequinBody) -> list[BodyPart]:
    """One tapered solid for each bone that no other part covers."""
    parts, shortest = [], _SHORTEST_BONE * body.stature
    for joint in range(1, len(body.skeleton)):
        parent = int(body.skeleton.parents[joint])
        if body.lengths[joint] > shortest:
            radii = _limb_radii(body, parent, joint)
            if radii is not None:
                solid = lofts.tapered(np.zeros(3), body.skeleton.offsets[joint], radii)
                tone = "centre" if body.region(parent).endswith("_shoulder") else body.tone(parent)
                parts.append(BodyPart(parent, tone, solid))
    return parts


def _limb_radii(body: MannequinBody, parent: int, joint: int) -> Array | None:
    """The radii of the bone between two joints, or None if another part covers it."""
    region, leads_to = body.region(parent), _roles_below(body, joint)
    kind = region.removeprefix("left_").removeprefix("right_")
    if kind in _NEXT_ROLE and (next_joint := body.joint(region.replace(kind, _NEXT_ROLE[kind]))) is not None:
        return _share_of_limb(body, kind, parent, joint, next_joint)
    if kind in ("pelvis", "spine", "chest") and leads_to:
        return None  # inside the trunk
    if kind in ("head", "hand", "foot", "toes") and not _is_finger(body, region, joint):
        return None
    if region == "" and body.joint("pelvis") is not None and "pelvis" in leads_to:
        return None  # a static root that only carries the hips
    return _plain_radii(body, joint)


def _roles_below(body: MannequinBody, joint: int) -> set[str]:
    return {body.role_of[j] for j in (joint, *body.below(joint)) if j in body.role_of}


def _share_of_limb(body: MannequinBody, kind: str, parent: int, joint: int, end: int) -> Array | None:
    """The radii over one bone of a limb that twist joints may split; None for a bone outside the limb."""
    start = body.joint(body.region(parent))
    way = body.path(start, end) if start is not None else []
    if joint not in way[1:]:
        return None
    marks = np.concatenate([[0.0], np.cumsum(body.lengths[way[1:]])])
    at = way.index(joint)
    shares = np.linspace(marks[at - 1], marks[at], 7) / marks[-1]
    profile = np.array(_LIMB_RADII[kind]) * body.stature
    smooth = lofts.smooth_curve(shares, np.linspace(0, 1, len(profile)), profile)
    return np.minimum(smooth, 0.35 * marks[-1])


def _plain_radii(body: MannequinBody, joint: int) -> Array:
    length = float(body.lengths[joint])
    thick = min(max(0.13 * length, 0.006 * body.stature), 0.03 * body.stature, 0.45 * length)
    return thick * np.array([0.85, 1.0, 0.95, 0.85, 0.7])


def _balls(body: MannequinBody) -> list[BodyPart]:
    """The darker spheres at the joints of a wooden figure."""
    parts = []
    for joint, role in body.role_of.items():
        side, _, kind = role.partition("_")
        if side in ("left", "right") and kind in _BALL_RADII:
            solid = lofts.ball(np.zeros(3), _BALL_RADII[kind] * body.stature)
            parts.append(BodyPart(joint, f"{side} joint", solid))
    return parts


# --- trunk and head --------------------------------------------------------------------------------------------------


def _pelvis(body: MannequinBody) -> list[BodyPart]:
    """A block from below the hips to the waist."""
    pelvis, left, right = (body.joint(role) for role in ("pelvis", "left_thigh", "right_thigh"))
    if pelvis is None or left is None or right is None:
        return []
    hips = 0.5 * (body.towards(pelvis, left) + body.towards(pelvis, right))
    top = body.first("neck", "head", "chest")
    up = -hips if top is None else body.towards(pelvis, top) - hips
    if np.linalg.norm(up) < _SHORTEST_BONE * body.stature:
        return []
    side = body.towards(pelvis, left) - body.towards(pelvis, right)
    place = lofts.axes(hips - 0.052 * body.stature * up / np.linalg.norm(up), up, side)
    return [BodyPart(pelvis, "centre", _egg(_PELVIS, place, height=0.145 * body.stature, scale=body.stature))]


def _waist(body: MannequinBody) -> list[BodyPart]:
    """The column between pelvis and rib cage, one piece per bone."""
    pelvis, chest = body.joint("pelvis"), body.joint("chest")
    way = body.path(pelvis, chest) if pelvis is not None and chest is not None else []
    parts = []
    for parent, joint in pairwise(way):
        length = float(body.lengths[joint])
        if length > _SHORTEST_BONE * body.stature:
            place = lofts.axes(np.zeros(3), body.skeleton.offsets[joint], body.local(parent, body.left))
            rings = [(at * length, body.stature * w, body.stature * d, 0.0) for at, w, d in _WAIST]
            parts.append(BodyPart(parent, "centre", lofts.loft(np.array(rings), place)))
    return parts


def _ribs(body: MannequinBody) -> list[BodyPart]:
    """The rib cage, from the waist to the base of the neck."""
    chest, pelvis = body.joint("chest"), body.joint("pelvis")
    neck_joint, arms = (
        body.first("neck", "head"),
        [body.joint(f"{side}_upper_arm") for side in ("left", "right")],
    )
    if chest is None or pelvis is None or neck_joint is None:
        return []
    neck = body.towards(chest, neck_joint)
    shoulders = [body.towards(chest, joint) for joint in arms if joint is not None]
    bottom = body.towards(chest, pelvis)
    trunk = np.mean([neck, *shoulders], axis=0) - bottom
    if np.linalg.norm(trunk) < _SHORTEST_BONE * body.stature:
        return []
    up = trunk / np.linalg.norm(trunk)
    top = max(float((point - bottom) @ up) for point in (neck, *shoulders))
    place = lofts.axes(bottom + 0.20 * top * up, up, body.local(chest, body.left))
    return [BodyPart(chest, "centre", _egg(_RIBS, place, height=0.865 * top, scale=body.stature))]


def _head(body: MannequinBody) -> list[BodyPart]:
    """An egg with a small nose, which shows the gaze direction."""
    head = body.joint("head")
    if head is None:
        return []
    scale, up = body.stature, _head_up(body, head)
    side = np.cross(up, body.local(head, body.forward))
    place = lofts.axes(-_CHIN_BELOW_JOINT * scale * up, up, side)
    skull = _egg(_HEAD, place, height=_HEAD_HEIGHT * scale, scale=scale)
    bridge = place.origin + scale * (0.072 * place.along + 0.054 * place.front)
    tip = place.origin + scale * (0.047 * place.along + 0.063 * place.front)
    nose = lofts.tapered(bridge, tip, scale * np.array([0.004, 0.006, 0.008]), sides=10)
    return [BodyPart(head, "centre", skull), BodyPart(head, "centre joint", nose)]


def _head_up(body: MannequinBody, head: int) -> Float[Array, "3"]:
    """The direction to the crown: the longest bone above the head joint, or the neck's direction."""
    tips = [body.skeleton.offsets[child] for child in body.skeleton.children[head]]
    longest = max(tips, key=lambda tip: float(np.linalg.norm(tip)), default=np.zeros(3))
    if np.linalg.norm(longest) < 0.03 * body.stature:
        longest = -body.towards(head, int(body.skeleton.parents[head])) if head > 0 else UP
    length = float(np.linalg.norm(longest))
    return longest / length if length > 0 else UP


def _egg(profile: Profile, place: lofts.Axes, *, height: float, scale: float) -> Solid:
    """A round body whose profile is in fractions of stature."""
    return lofts.egg(place, np.array(profile) * np.array([1.0, scale, scale, scale]), height=height)


# --- hands and feet --------------------------------------------------------------------------------------------------


def _fingers(body: MannequinBody, hand: int) -> list[int]:
    """The first joints of the hand's fingers, if it has at least three that bend."""
    first = [child for child in body.skeleton.children[hand] if body.skeleton.children[child]]
    return first if len(first) >= 3 else []


def _is_finger(body: MannequinBody, region: str, joint: int) -> bool:
    hand = body.joint(region)
    if hand is None or not region.endswith("_hand"):
        return False
    fingers = _fingers(body, hand)
    return bool(fingers) and joint not in fingers


def _hand(body: MannequinBody, role: str) -> list[BodyPart]:
    """A mitten, or a palm if there are fingers."""
    hand = body.joint(role)
    if hand is None:
        return []
    fingers, scale = _fingers(body, hand), body.stature
    along = _hand_direction(body, hand, role)
    bases = [float(body.skeleton.offsets[finger] @ along) for finger in fingers]
    length = max(0.8 * max(bases), 0.02 * scale) if bases else _HAND_LENGTH * scale
    side = _thumb_side(body, hand, along)
    stations = np.array(_HAND) * np.array([length, scale, scale, scale])
    if side is None:
        stations[:, 1] = stations[:, 2] = np.sqrt(stations[:, 1] * stations[:, 2])
    return [
        BodyPart(hand, body.tone(hand), lofts.loft(stations, lofts.axes(np.zeros(3), along, side), sides=14))
    ]


def _hand_direction(body: MannequinBody, hand: int, role: str) -> Float[Array, "3"]:
    """A unit vector from the wrist to the finger tips; without fingers, along the forearm."""
    tips = [body.towards(hand, joint) for joint in body.below(hand) if not _is_thumb(body, joint)]
    furthest = max(tips, key=lambda tip: float(np.linalg.norm(tip)), default=np.zeros(3))
    if np.linalg.norm(furthest) < 0.02 * body.stature:
        elbow = body.joint(role.replace("hand", "forearm"))
        furthest = -body.towards(hand, elbow) if elbow is not None else np.array([1.0, 0.0, 0.0])
    length = float(np.linalg.norm(furthest))
    return furthest / length if length > 0 else np.array([1.0, 0.0, 0.0])


def _is_thumb(body: MannequinBody, joint: int) -> bool:
    return any(
        "thumb" in body.skeleton.names[above].casefold()
        for above in (joint, int(body.skeleton.parents[joint]))
    )


def _thumb_side(body: MannequinBody, hand: int, along: Float[Array, "3"]) -> Float[Array, "3"] | None:
    """The direction across the palm, from the thumb or from the spread of the fingers."""
    thumbs = [body.towards(hand, joint) for joint in body.below(hand) if _is_thumb(body, joint)]
    bases = [body.skeleton.offsets[finger] for finger in _fingers(body, hand)]
    spread = thumbs[-1] if thumbs else (bases[0] - bases[-1] if bases else np.zeros(3))
    spread = spread - along * (spread @ along)
    return spread if np.linalg.norm(spread) > 0.004 * body.stature else None


def _foot(body: MannequinBody, side: str) -> list[BodyPart]:
    """A wedge from heel to toe joint with a flat sole, and the toes in front of it."""
    foot, toes, scale = body.joint(f"{side}_foot"), body.joint(f"{side}_toes"), body.stature
    if foot is None:
        return []
    up = _sole_up(body, foot)
    ahead = _toe_direction(body, foot, up)
    tips = [body.towards(foot, joint) for joint in body.below(foot)]
    drop = max([-float(tip @ up) for tip in tips], default=0.0) + 0.010 * scale
    sole = float(np.clip(drop, _SOLE_BELOW_ANKLE[0] * scale, _SOLE_BELOW_ANKLE[1] * scale))
    reach = float(body.towards(foot, toes) @ ahead) if toes is not None else 0.0
    length = reach if reach > 0.03 * scale else _FOOT_LENGTH * scale
    place = lofts.axes(-sole * up, ahead, np.cross(ahead, up))
    parts = [BodyPart(foot, side, _wedge(_FOOT, place, length=length, scale=scale))]
    front = lofts.Axes(place.origin + length * place.along, place.side, place.along, place.front)
    if toes is None or reach <= 0.03 * scale:
        return [*parts, BodyPart(foot, side, _wedge(_TOES, front, length=_TOES_LENGTH * scale, scale=scale))]
    return [
        *parts,
        BodyPart(
            toes,
            side,
            _moved(_wedge(_TOES, front, length=_TOES_LENGTH * scale, scale=scale), body, foot, toes),
        ),
    ]


def _sole_up(body: MannequinBody, foot: int) -> Float[Array, "3"]:
    """The direction away from the sole: the world's up in the foot's frame while it is lowest."""
    height = body.positions[:, foot, 1] - body.positions[:, :, 1].min(axis=1)
    low = height <= np.quantile(height, 0.35)
    up = np.einsum("fi->i", body.matrices[low, foot, 1, :]) / max(1, int(low.sum()))
    length = float(np.linalg.norm(up))
    return up / length if length > 0.3 else UP


def _toe_direction(body: MannequinBody, foot: int, up: Float[Array, "3"]) -> Float[Array, "3"]:
    """The direction along the sole to the toes; without toes, the body's forward direction."""
    tips = [body.towards(foot, joint) for joint in body.below(foot)]
    furthest = max(tips, key=lambda tip: float(np.linalg.norm(tip)), default=np.zeros(3))
    level = furthest - up * (furthest @ up)
    if np.linalg.norm(level) < 0.02 * body.stature:
        level = body.local(foot, body.forward)
        level = level - up * (level @ up)
    return lofts.across(up, level)


def _wedge(
    stations: list[tuple[float, float, float]], place: lofts.Axes, *, length: float, scale: float
) -> Solid:
    """A loft that lies on its sole: (fraction of the length, half width, height above the sole)."""
    rings = [(at * length, w * scale, 0.5 * top * scale, 0.5 * top * scale) for at, w, top in stations]
    return lofts.loft(np.array(rings), place, sides=16, squareness=2.8)


def _moved(solid: Solid, body: MannequinBody, source: int, target: int) -> Solid:
    """Convert a solid from one joint's frame to another's, by their mean relative transform."""
    turn = np.einsum("fji,fjk->ik", body.matrices[:, target], body.matrices[:, source])
    u, _, v = np.linalg.svd(turn)
    matrix = u @ np.diag([1.0, 1.0, np.linalg.det(u @ v)]) @ v
    origin = body.towards(source, target)
    return Solid((solid.vertices - origin) @ matrix.T, solid.normals @ matrix.T, solid.triangles)


UP = np.array([0.0, 1.0, 0.0])
_MAX_EXAMPLES = 64


class MannequinBody:
    """A skeleton in a few example poses, with the root at the origin; without examples, in its rest pose."""

    def __init__(self, skeleton: Skeleton, rotations: Float[Array, "frames joints 4"] | None) -> None:
        from poise.skeleton.kinematics import world_transforms

        rotations = _examples(skeleton, rotations)
        self.skeleton = skeleton
        self.positions, self.matrices = world_transforms(skeleton, np.zeros((len(rotations), 3)), rotations)
        self.role_of = {skeleton.index(role): role for role in skeleton.roles}
        self.lengths = np.linalg.norm(skeleton.offsets, axis=-1)

    @cached_property
    def stature(self) -> float:
        """The stature in metres; for a skeleton that is not a person, the total length of its bones."""
        height = self.skeleton.height
        return height if np.isfinite(height) and height > 0 else float(self.lengths[1:].sum()) or 1.0

    def joint(self, role: str) -> int | None:
        """The index of the joint with this role, if there is one."""
        return self.skeleton.index(role) if role in self.skeleton.roles else None

    def first(self, *roles: str) -> int | None:
        """The joint of the first of these roles that the skeleton has."""
        return next((joint for role in roles if (joint := self.joint(role)) is not None), None)

    def region(self, joint: int) -> str:
        """The role of the nearest joint with a role at or above this one, or ""."""
        while joint >= 0:
            if joint in self.role_of:
                return self.role_of[joint]
            joint = int(self.skeleton.parents[joint])
        return ""

    def tone(self, joint: int) -> str:
        """The side a joint is on."""
        side = self.region(joint).split("_")[0]
        if side in ("left", "right"):
            return side
        name = self.skeleton.names[joint].casefold()
        return next((word for word in ("left", "right") if word in name), "centre")

    def path(self, top: int, bottom: int) -> list[int]:
        """Joint indices from one joint down to a descendant, both included; empty if it is not a descendant."""
        found = [bottom]
        while found[-1] != top:
            parent = int(self.skeleton.parents[found[-1]])
            if parent < 0:
                return []
            found.append(parent)
        return found[::-1]

    def below(self, joint: int) -> list[int]:
        """Every joint below this one."""
        found: list[int] = list(self.skeleton.children[joint])
        for child in found:
            found.extend(self.skeleton.children[child])
        return found

    def local(self, joint: int, vectors: Float[Array, "frames 3"]) -> Float[Array, "3"]:
        """The mean over the examples of world vectors in a joint's frame."""
        return np.asarray(np.einsum("fji,fj->i", self.matrices[:, joint], vectors) / len(vectors))

    def towards(self, joint: int, target: int) -> Float[Array, "3"]:
        """The mean position of another joint in a joint's frame."""
        return self.local(joint, self.positions[:, target] - self.positions[:, joint])

    @cached_property
    def left(self) -> Float[Array, "frames 3"]:
        """The body's left direction in the world, per example."""
        for role in ("thigh", "upper_arm", "shoulder"):
            a, b = self.joint(f"left_{role}"), self.joint(f"right_{role}")
            if a is not None and b is not None:
                return np.asarray(self.positions[:, a] - self.positions[:, b])
        return np.tile([1.0, 0.0, 0.0], (len(self.positions), 1))

    @cached_property
    def forward(self) -> Float[Array, "frames 3"]:
        """The body's forward direction in the world, per example."""
        top, bottom = self.first("neck", "head"), self.joint("pelvis")
        if top is None or bottom is None:
            return np.cross(self.left, UP)
        return np.cross(self.left, self.positions[:, top] - self.positions[:, bottom])


def _examples(skeleton: Skeleton, rotations: Float[Array, "frames joints 4"] | None) -> Array:
    if rotations is None or len(rotations) == 0:
        return np.tile([1.0, 0.0, 0.0, 0.0], (1, len(skeleton), 1))
    chosen = np.linspace(0, len(rotations) - 1, min(len(rotations), _MAX_EXAMPLES)).astype(np.int64)
    return rotations[chosen]
