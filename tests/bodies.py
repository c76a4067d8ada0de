"""Small bodies for tests: one person's bones under any names, rest pose and axes."""

from collections.abc import Mapping

import numpy as np

from poise.geometry import rotations
from poise.motion import Motion
from poise.skeleton import Skeleton

# Joint: parent, offset in metres of a person of 1.75 m in a T-pose facing +Z.
PERSON: dict[str, tuple[str, tuple[float, float, float]]] = {
    "pelvis": ("", (0.0, 0.95, 0.0)),
    "left_thigh": ("pelvis", (0.09, -0.03, 0.0)),
    "left_shin": ("left_thigh", (0.0, -0.43, 0.0)),
    "left_foot": ("left_shin", (0.0, -0.43, 0.0)),
    "left_toes": ("left_foot", (0.0, -0.05, 0.13)),
    "left_toes_end": ("left_toes", (0.0, 0.0, 0.07)),
    "right_thigh": ("pelvis", (-0.09, -0.03, 0.0)),
    "right_shin": ("right_thigh", (0.0, -0.43, 0.0)),
    "right_foot": ("right_shin", (0.0, -0.43, 0.0)),
    "right_toes": ("right_foot", (0.0, -0.05, 0.13)),
    "right_toes_end": ("right_toes", (0.0, 0.0, 0.07)),
    "spine": ("pelvis", (0.0, 0.12, 0.0)),
    "chest": ("spine", (0.0, 0.18, 0.0)),
    "neck": ("chest", (0.0, 0.22, 0.0)),
    "head": ("neck", (0.0, 0.11, 0.0)),
    "head_end": ("head", (0.0, 0.18, 0.0)),
    "left_shoulder": ("chest", (0.03, 0.18, 0.0)),
    "left_upper_arm": ("left_shoulder", (0.16, 0.0, 0.0)),
    "left_forearm": ("left_upper_arm", (0.30, 0.0, 0.0)),
    "left_hand": ("left_forearm", (0.26, 0.0, 0.0)),
    "left_hand_end": ("left_hand", (0.18, 0.0, 0.0)),
    "right_shoulder": ("chest", (-0.03, 0.18, 0.0)),
    "right_upper_arm": ("right_shoulder", (-0.16, 0.0, 0.0)),
    "right_forearm": ("right_upper_arm", (-0.30, 0.0, 0.0)),
    "right_hand": ("right_forearm", (-0.26, 0.0, 0.0)),
    "right_hand_end": ("right_hand", (-0.18, 0.0, 0.0)),
}
HEIGHT = 1.75
LEFT_LEG, RIGHT_LEG = (
    tuple(f"{side}{part}" for part in ("UpLeg", "Leg", "Foot")) for side in ("Left", "Right")
)
WITHOUT_ARMS = ("Hips", *LEFT_LEG, *RIGHT_LEG, "Spine", "Neck", "Head")
"""MotionBuilder's names of a simple body's joints, arms left out."""


def person(names: Mapping[str, str] | None = None, *, leave_out: tuple[str, ...] = ()) -> Skeleton:
    """The person with these joint names (role to name); joints left out hand their children to their parents."""
    names = dict(names) if names is not None else {}
    kept = [joint for joint in PERSON if joint not in leave_out]
    parents, offsets = [], []
    for joint in kept:
        parent, offset = PERSON[joint][0], np.array(PERSON[joint][1])
        while parent in leave_out:
            parent, offset = PERSON[parent][0], offset + PERSON[parent][1]
        parents.append(kept.index(parent) if parent else -1)
        offsets.append(offset)
    return Skeleton(
        tuple(names.get(joint, joint) for joint in kept),
        np.array(parents),
        np.array(offsets),
        tuple("" if joint.endswith("_end") else "ZYX" for joint in kept),
    )


def with_other_axes(motion: Motion, axes: np.ndarray) -> Motion:
    """The same movement on a skeleton whose joint axes are turned: column k of axes[j] is its k-th axis on the body.

    The rest pose of such a skeleton, all rotations identity, is no longer a person standing.
    """
    skeleton, parents = motion.skeleton, motion.skeleton.parents
    above = np.concatenate([np.eye(3)[None], axes[parents[1:]]])
    offsets = np.einsum("jba,jb->ja", above, skeleton.offsets)
    into, out_of = (rotations.quaternion_from_matrix(turn) for turn in (np.swapaxes(above, -1, -2), axes))
    turned = rotations.multiply(rotations.multiply(into, motion.rotations), out_of)
    other = Skeleton(skeleton.names, parents, offsets, skeleton.orders)
    return Motion(other, motion.fps, motion.root_positions, turned)


def bone_aligned_axes(skeleton: Skeleton) -> np.ndarray:
    """Axes as animation packages make them: x along the bone, and the right side's axes all reversed."""
    axes = np.tile(np.eye(3), (len(skeleton), 1, 1))
    up = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])  # columns: x up, y right, z forward
    down = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    ahead = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    flip = {"left": np.eye(3), "right": -np.eye(3)}
    for joint, name in enumerate(skeleton.names):
        side = name.split("_")[0]
        if side not in flip:
            axes[joint] = up
        elif "thigh" in name or "shin" in name:
            axes[joint] = down if side == "left" else _mirrored(down)
        elif "foot" in name or "toes" in name:
            axes[joint] = ahead if side == "left" else _mirrored(ahead)
        elif side == "right":
            axes[joint] = _mirrored(np.eye(3))
    return axes


def _mirrored(axes: np.ndarray) -> np.ndarray:
    """The right side's axes: the left's in the mirror, all three reversed so that they stay right-handed."""
    return -(np.diag([-1.0, 1.0, 1.0]) @ axes)


def moving(
    skeleton: Skeleton, *, frames: int = 60, fps: float = 60.0, seed: int = 0, size: float = 0.4
) -> Motion:
    """A smooth aimless motion of every joint, for laws that hold for any motion."""
    generator = np.random.default_rng(seed)
    time = np.linspace(0.0, 2.0 * np.pi, frames, endpoint=False)
    waves = generator.normal(size=(2, len(skeleton), 3)) * size / np.sqrt(2.0)
    expmaps = np.sin(time)[:, None, None] * waves[0] + np.cos(2 * time)[:, None, None] * waves[1]
    expmaps[:, skeleton.is_end_site] = 0.0
    roots = np.stack([0.3 * np.sin(time), 1.0 + 0.05 * np.cos(2 * time), 0.5 * time], axis=-1)
    return Motion(skeleton, fps, roots, rotations.quaternion_from_expmap(expmaps))


def stepping(
    skeleton: Skeleton, *, seconds: float = 4.0, fps: float = 60.0, cadence: float = 1.0, stride: float = 1.2
) -> Motion:
    """A stiff walk along +Z whose standing feet neither slide nor sink, in cycles per second and metres per cycle.

    The left foot lands at whole cycles, the right one halfway between; each stands for 0.6 of a cycle.
    """
    time = np.arange(round(seconds * fps)) / fps
    turns = np.tile(rotations.IDENTITY, (len(time), len(skeleton), 1))
    for side, shift in (("left", 0.0), ("right", 0.5)):
        ahead, lift = _ankle_path(cadence * time - shift, stride=stride)
        hip, knee = _two_bones(ahead, 0.77 - lift, 0.43)
        for role, angle in (("thigh", hip), ("shin", knee), ("foot", -(hip + knee))):
            joint = skeleton.index(f"{side}_{role}")
            turns[:, joint] = rotations.quaternion_from_expmap(np.outer(angle, [1.0, 0.0, 0.0]))
    roots = np.stack([np.zeros_like(time), np.full_like(time, 0.87), stride * cadence * time], axis=-1)
    return Motion(skeleton, fps, roots, turns)


def _ankle_path(cycle: np.ndarray, *, stride: float) -> tuple[np.ndarray, np.ndarray]:
    """Ahead of the hip and above the floor: going back steadily for 0.6 of the cycle, then swinging forward."""
    part = cycle % 1.0
    stance = part < 0.6
    swing = (part - 0.6) / 0.4
    smooth = swing * swing * (3.0 - 2.0 * swing)
    ahead = np.where(stance, 0.3 - part, -0.3 + 0.6 * smooth) * stride
    return ahead, np.where(stance, 0.0, 0.12 * np.sin(np.pi * np.clip(swing, 0.0, 1.0)) ** 2)


def _two_bones(ahead: np.ndarray, below: np.ndarray, length: float) -> tuple[np.ndarray, np.ndarray]:
    """Angles about +X (left) of hip and knee that put the ankle there; a bent knee points forward."""
    reach = np.minimum(np.hypot(ahead, below), 2.0 * length * 0.9999)
    bend = 2.0 * np.arccos(reach / (2.0 * length))
    return -np.arctan2(ahead, below) - bend / 2.0, bend
