"""An artist's mannequin for any skeleton: rigid parts, one joint each.

Lengths come from the skeleton. Other sizes (radii, head, hands, feet) are fractions of stature, chosen by eye to look
like a person in drawn clips; they are not measurements. Directions that offsets do not determine (face, sole) come
from example poses, or else from the rest pose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int

from poise.pictures import lofts
from poise.pictures.lofts import Solid
from poise.skeleton.roles import SIDES, path, subtree
from poise.skeleton.skeleton import Skeleton, read_only
from poise.types import Array

Colour = tuple[float, float, float]  # sRGB, 0 to 1
TONES: dict[str, Colour] = {
    "centre": (0.90, 0.80, 0.64),
    "centre joint": (0.66, 0.53, 0.38),
    "left": (0.30, 0.56, 0.80),
    "left joint": (0.17, 0.36, 0.56),
    "right": (0.93, 0.54, 0.25),
    "right joint": (0.69, 0.34, 0.12),
}


@dataclass(frozen=True, eq=False)
class Mannequin:
    """A triangle mesh in rigid parts: each vertex is fixed in the frame of its joint. `tones` index the palette."""

    vertices: Float[Array, "vertices 3"]
    normals: Float[Array, "vertices 3"]
    joints: Int[Array, "vertices"]
    tones: Int[Array, "vertices"]
    triangles: Int[Array, "triangles 3"]
    palette: Mapping[str, Colour] = field(default_factory=lambda: TONES)

    def __post_init__(self) -> None:
        for name in ("vertices", "normals"):
            object.__setattr__(self, name, read_only(getattr(self, name)))
        for name in ("joints", "tones", "triangles"):
            object.__setattr__(self, name, read_only(getattr(self, name), dtype=np.int64))

    def posed(
        self, positions: Float[Array, "joints 3"], matrices: Float[Array, "joints 3 3"]
    ) -> tuple[Float[Array, "vertices 3"], Float[Array, "vertices 3"]]:
        """Vertices and normals in the world, from the joints' world transforms."""
        turns = matrices[self.joints]
        vertices = np.einsum("vij,vj->vi", turns, self.vertices) + positions[self.joints]
        return vertices, np.einsum("vij,vj->vi", turns, self.normals)


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
_PALM = (
    (0.0, 0.0125, 0.0105, 0.0),
    (0.35, 0.0195, 0.0125, 0.0),
    (0.75, 0.0225, 0.0110, 0.0),
    (0.95, 0.0215, 0.0080, 0.0),
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


UP = np.array([0.0, 1.0, 0.0])
_MAX_EXAMPLES = 64


def build_mannequin(
    skeleton: Skeleton, *, rotations: Float[Array, "frames joints 4"] | None = None
) -> Mannequin:
    """The mannequin of a skeleton.

    `rotations` are example poses, usually the motion's own: they show the directions of soles and face on skeletons
    whose rest pose is not a standing person. Any skeleton gets a body: joints without a role become tapered limbs.
    """
    body = MannequinBody(skeleton, rotations)
    parts = [*_limbs(body), *_balls(body), *_pelvis(body), *_waist(body), *_ribs(body), *_head(body)]
    for side in SIDES:
        parts += [*_hand(body, side), *_foot(body, side)]
    parts = parts or [(0, "centre", lofts.ball(np.zeros(3), 0.5 * body.stature or 0.05))]
    solids = [solid for _, _, solid in parts]
    counts = [len(solid.vertices) for solid in solids]
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
    tones = list(TONES)
    return Mannequin(
        vertices=np.concatenate([solid.vertices for solid in solids]),
        normals=np.concatenate([solid.normals for solid in solids]),
        joints=np.repeat([joint for joint, _, _ in parts], counts),
        tones=np.repeat([tones.index(tone) for _, tone, _ in parts], counts),
        triangles=np.concatenate([solid.triangles + s for solid, s in zip(solids, starts, strict=True)]),
    )


class MannequinBody:
    """A skeleton in a few example poses, with the root at the origin; without examples, in its rest pose."""

    def __init__(self, skeleton: Skeleton, rotations: Float[Array, "frames joints 4"] | None) -> None:
        from poise.skeleton.kinematics import world_transforms

        if rotations is None or len(rotations) == 0:
            rotations = np.tile([1.0, 0.0, 0.0, 0.0], (1, len(skeleton), 1))
        chosen = np.linspace(0, len(rotations) - 1, min(len(rotations), _MAX_EXAMPLES)).astype(np.int64)
        self.skeleton = skeleton
        self.positions, self.matrices = world_transforms(
            skeleton, np.zeros((len(chosen), 3)), rotations[chosen]
        )
        self.role_of = {skeleton.index(role): role for role in skeleton.roles}
        self.lengths = np.linalg.norm(skeleton.offsets, axis=-1)
        # A skeleton that is not a person has the total length of its bones.
        height = skeleton.height
        self.stature = height if np.isfinite(height) and height > 0 else float(self.lengths[1:].sum()) or 1.0

    def joint(self, *roles: str) -> int | None:
        """The index of the joint of the first of these roles that the skeleton has."""
        return next((self.skeleton.index(role) for role in roles if role in self.skeleton.roles), None)

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
        name = self.skeleton.names[joint].casefold()
        return side if side in SIDES else next((word for word in SIDES if word in name), "centre")

    def below(self, joint: int) -> list[int]:
        """Every joint below this one."""
        return subtree(self.skeleton, joint)[1:]

    def is_thumb(self, joint: int) -> bool:
        """Whether the joint or its parent is called thumb."""
        names, parent = self.skeleton.names, int(self.skeleton.parents[joint])
        return "thumb" in names[joint].casefold() or "thumb" in names[parent].casefold()

    def fingers(self, hand: int) -> list[int]:
        """The first joints of the hand's fingers, if it has at least three that bend."""
        children = self.skeleton.children
        first = [child for child in children[hand] if children[child]]
        return first if len(first) >= 3 else []

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
        top, bottom = self.joint("neck", "head"), self.joint("pelvis")
        if top is None or bottom is None:
            return np.cross(self.left, UP)
        return np.cross(self.left, self.positions[:, top] - self.positions[:, bottom])


# --- limbs: a part is its joint, its tone (a side, or a side's joint), and the solid in the joint's frame -------------

_Parts = list[tuple[int, str, Solid]]


def _limbs(body: MannequinBody) -> _Parts:
    """One tapered solid for each bone that no other part covers."""
    parts: _Parts = []
    for joint in range(1, len(body.skeleton)):
        parent = int(body.skeleton.parents[joint])
        if body.lengths[joint] > _SHORTEST_BONE * body.stature:
            radii = _limb_radii(body, parent, joint)
            if radii is not None:
                solid = lofts.tapered(np.zeros(3), body.skeleton.offsets[joint], radii)
                tone = "centre" if body.region(parent).endswith("_shoulder") else body.tone(parent)
                parts.append((parent, tone, solid))
    return parts


def _limb_radii(body: MannequinBody, parent: int, joint: int) -> Array | None:
    """The radii of the bone between two joints, or None if another part covers it."""
    region = body.region(parent)
    leads_to = {body.role_of[j] for j in (joint, *body.below(joint)) if j in body.role_of}
    kind = region.removeprefix("left_").removeprefix("right_")
    if kind in _NEXT_ROLE and (end := body.joint(region.replace(kind, _NEXT_ROLE[kind]))) is not None:
        way = path(body.skeleton, body.skeleton.index(region), end)
        if joint not in way[1:]:
            return None
        # Twist joints may split a limb: a bone has its share of the limb's profile.
        marks = np.concatenate([[0.0], np.cumsum(body.lengths[way[1:]])])
        at = way.index(joint)
        shares = np.linspace(marks[at - 1], marks[at], 7) / marks[-1]
        profile = np.array(_LIMB_RADII[kind]) * body.stature
        smooth = lofts.smooth_curve(shares, np.linspace(0, 1, len(profile)), profile)
        return np.minimum(smooth, 0.35 * marks[-1])
    if kind in ("pelvis", "spine", "chest") and leads_to:
        return None  # inside the trunk
    if kind in ("head", "hand", "foot", "toes"):
        hand = body.skeleton.index(region)
        fingers = body.fingers(hand) if kind == "hand" else []
        if not fingers or joint in body.skeleton.children[hand]:
            return None
    if region == "" and body.joint("pelvis") is not None and "pelvis" in leads_to:
        return None  # a static root that only carries the hips
    length = float(body.lengths[joint])
    thick = min(max(0.13 * length, 0.006 * body.stature), 0.03 * body.stature, 0.45 * length)
    return thick * np.array([0.85, 1.0, 0.95, 0.85, 0.7])


def _balls(body: MannequinBody) -> _Parts:
    """The darker spheres at the joints of a wooden figure."""
    sided = [(joint, *role.partition("_")[::2]) for joint, role in body.role_of.items()]
    return [
        (joint, f"{side} joint", lofts.ball(np.zeros(3), _BALL_RADII[kind] * body.stature))
        for joint, side, kind in sided
        if side in SIDES and kind in _BALL_RADII
    ]


# --- trunk and head --------------------------------------------------------------------------------------------------


def _pelvis(body: MannequinBody) -> _Parts:
    """A block from below the hips to the waist."""
    pelvis, left, right = (body.joint(role) for role in ("pelvis", "left_thigh", "right_thigh"))
    if pelvis is None or left is None or right is None:
        return []
    hips = 0.5 * (body.towards(pelvis, left) + body.towards(pelvis, right))
    top = body.joint("neck", "head", "chest")
    up = -hips if top is None else body.towards(pelvis, top) - hips
    if np.linalg.norm(up) < _SHORTEST_BONE * body.stature:
        return []
    side = body.towards(pelvis, left) - body.towards(pelvis, right)
    place = lofts.axes(hips - 0.052 * body.stature * up / np.linalg.norm(up), up, side)
    return [(pelvis, "centre", _egg(_PELVIS, place, height=0.145 * body.stature, scale=body.stature))]


def _waist(body: MannequinBody) -> _Parts:
    """The column between pelvis and rib cage, one piece per bone."""
    pelvis, chest = body.joint("pelvis"), body.joint("chest")
    parts: _Parts = []
    for parent, joint in pairwise(
        [] if pelvis is None or chest is None else path(body.skeleton, pelvis, chest)
    ):
        length = float(body.lengths[joint])
        if length > _SHORTEST_BONE * body.stature:
            place = lofts.axes(np.zeros(3), body.skeleton.offsets[joint], body.local(parent, body.left))
            rings = [(at * length, body.stature * w, body.stature * d, 0.0) for at, w, d in _WAIST]
            parts.append((parent, "centre", lofts.loft(np.array(rings), place)))
    return parts


def _ribs(body: MannequinBody) -> _Parts:
    """The rib cage, from the waist to the base of the neck."""
    chest, pelvis, neck_joint = body.joint("chest"), body.joint("pelvis"), body.joint("neck", "head")
    if chest is None or pelvis is None or neck_joint is None:
        return []
    arms = [body.joint(f"{side}_upper_arm") for side in SIDES]
    neck = body.towards(chest, neck_joint)
    shoulders = [body.towards(chest, joint) for joint in arms if joint is not None]
    bottom = body.towards(chest, pelvis)
    trunk = np.mean([neck, *shoulders], axis=0) - bottom
    if np.linalg.norm(trunk) < _SHORTEST_BONE * body.stature:
        return []
    up = trunk / np.linalg.norm(trunk)
    top = max(float((point - bottom) @ up) for point in (neck, *shoulders))
    place = lofts.axes(bottom + 0.20 * top * up, up, body.local(chest, body.left))
    return [(chest, "centre", _egg(_RIBS, place, height=0.865 * top, scale=body.stature))]


def _head(body: MannequinBody) -> _Parts:
    """An egg with a small nose and eyes, which show the gaze direction."""
    head, scale = body.joint("head"), body.stature
    if head is None:
        return []
    # The crown is along the longest bone above the head joint, or along the neck.
    tips = [body.skeleton.offsets[child] for child in body.skeleton.children[head]]
    longest = max(tips, key=lambda tip: float(np.linalg.norm(tip)), default=np.zeros(3))
    if np.linalg.norm(longest) < 0.03 * scale:
        longest = -body.towards(head, int(body.skeleton.parents[head])) if head > 0 else UP
    up = _direction(longest, UP)
    place = lofts.axes(-_CHIN_BELOW_JOINT * scale * up, up, np.cross(up, body.local(head, body.forward)))
    skull = _egg(_HEAD, place, height=_HEAD_HEIGHT * scale, scale=scale)
    bridge = place.origin + scale * (0.072 * place.along + 0.054 * place.front)
    tip = place.origin + scale * (0.047 * place.along + 0.063 * place.front)
    nose = lofts.tapered(bridge, tip, scale * np.array([0.004, 0.006, 0.008]), sides=10)
    eyes = [
        lofts.ball(
            place.origin + scale * (0.074 * place.along + side * place.side + 0.0515 * place.front),
            0.0072 * scale,
        )
        for side in (-0.0185, 0.0185)
    ]
    return [(head, "centre", skull), *[(head, "centre joint", part) for part in (nose, *eyes)]]


def _egg(profile: Profile, place: lofts.Axes, *, height: float, scale: float) -> Solid:
    """A round body whose profile is in fractions of stature."""
    return lofts.egg(place, np.array(profile) * np.array([1.0, scale, scale, scale]), height=height)


def _direction(vector: Float[Array, "3"], otherwise: Float[Array, "3"]) -> Float[Array, "3"]:
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0 else otherwise


# --- hands and feet --------------------------------------------------------------------------------------------------


def _hand(body: MannequinBody, side: str) -> _Parts:
    """A mitten, or a palm if there are fingers."""
    hand, scale, ahead = body.joint(f"{side}_hand"), body.stature, np.array([1.0, 0.0, 0.0])
    if hand is None:
        return []
    # From the wrist to the finger tips; without fingers, along the forearm.
    tips = [body.towards(hand, joint) for joint in body.below(hand) if not body.is_thumb(joint)]
    furthest = max(tips, key=lambda tip: float(np.linalg.norm(tip)), default=np.zeros(3))
    if np.linalg.norm(furthest) < 0.02 * scale:
        elbow = body.joint(f"{side}_forearm")
        furthest = -body.towards(hand, elbow) if elbow is not None else ahead
    along = _direction(furthest, ahead)
    knuckles = [finger for finger in body.fingers(hand) if not body.is_thumb(finger)]
    bases = [body.skeleton.offsets[finger] for finger in knuckles]
    along = _direction(np.mean(bases, axis=0), along) if bases else along
    length = max(max(float(b @ along) for b in bases), 0.02 * scale) if bases else _HAND_LENGTH * scale
    # Across the palm is the spread of the fingers, or the thumb's direction.
    thumbs = [body.towards(hand, joint) for joint in body.below(hand) if body.is_thumb(joint)]
    spread = bases[0] - bases[-1] if len(bases) > 1 else (thumbs[-1] if thumbs else np.zeros(3))
    spread = spread - along * (spread @ along)
    stations = np.array(_PALM if bases else _HAND) * np.array([length, scale, scale, scale])
    if np.linalg.norm(spread) > 0.004 * scale:
        place = lofts.axes(np.zeros(3), along, spread)
    else:
        place = lofts.axes(np.zeros(3), along)
        stations[:, 1] = stations[:, 2] = np.sqrt(stations[:, 1] * stations[:, 2])
    return [(hand, body.tone(hand), lofts.loft(stations, place, sides=14))]


def _foot(body: MannequinBody, side: str) -> _Parts:
    """A wedge from heel to toe joint with a flat sole, and the toes in front of it."""
    foot, toes, scale = body.joint(f"{side}_foot"), body.joint(f"{side}_toes"), body.stature
    if foot is None:
        return []
    # Away from the sole is the world's up in the foot's frame while it is lowest.
    height = body.positions[:, foot, 1] - body.positions[:, :, 1].min(axis=1)
    low = height <= np.quantile(height, 0.35)
    up = np.einsum("fi->i", body.matrices[low, foot, 1, :]) / max(1, int(low.sum()))
    size = float(np.linalg.norm(up))
    up = up / size if size > 0.3 else UP
    # Along the sole to the toes; without toes, the body's forward direction.
    tips = [body.towards(foot, joint) for joint in body.below(foot)]
    furthest = max(tips, key=lambda tip: float(np.linalg.norm(tip)), default=np.zeros(3))
    level = furthest - up * (furthest @ up)
    if np.linalg.norm(level) < 0.02 * scale:
        level = body.local(foot, body.forward)
        level = level - up * (level @ up)
    ahead = lofts.across(up, level)
    drop = max([-float(tip @ up) for tip in tips], default=0.0) + 0.010 * scale
    sole = float(np.clip(drop, _SOLE_BELOW_ANKLE[0] * scale, _SOLE_BELOW_ANKLE[1] * scale))
    reach = float(body.towards(foot, toes) @ ahead) if toes is not None else 0.0
    jointed = reach > 0.03 * scale
    length = reach if jointed else _FOOT_LENGTH * scale
    place = lofts.axes(-sole * up, ahead, np.cross(ahead, up))
    front = lofts.Axes(place.origin + length * place.along, place.side, place.along, place.front)
    tip = _wedge(_TOES, front, length=_TOES_LENGTH * scale, scale=scale)
    end = foot
    if toes is not None and jointed:
        end, tip = toes, _moved(tip, body, foot, toes)
    return [(foot, side, _wedge(_FOOT, place, length=length, scale=scale)), (end, side, tip)]


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
