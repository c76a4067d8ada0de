"""Errors of a body seen by cameras: joints relative to the hips, limbs, jitter, slide, flips."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from poise.capture.people.take import CapturedPerson, detected_motion
from poise.capture.people.watched import WatchedPerson
from poise.evaluation.report import Row
from poise.geometry.cameras import Camera
from poise.motion.contacts import foot_contacts, foot_positions
from poise.motion.motion import Motion
from poise.skeleton.roles import SIDES
from poise.types import Array

LIMBS = tuple(
    (f"{side}_{a}", f"{side}_{b}")
    for side in SIDES
    for a, b in (("thigh", "shin"), ("shin", "foot"), ("upper_arm", "forearm"), ("forearm", "hand"))
)
ROLES = ("head", *dict.fromkeys(role for limb in LIMBS for role in limb))
LONG_ENOUGH = 4  # frames of a contact whose slide counts


def compared(motion: Motion, camera: Camera, truth: Motion, true_camera: Camera) -> Row:
    """One body beside the true one, each in the axes of the camera that sees it."""
    own, true = _joints(motion) @ camera.rotation.T, _joints(truth) @ true_camera.rotation.T
    return {
        "error_cm": 100.0 * float(np.linalg.norm(own - true, axis=-1).mean()),
        "limbs_deg": _degrees(own, true),
        "jitter_ratio": _jitter(motion) / _jitter(truth),
        "slide_cm": 100.0 * _slide(motion),
        "flipped_frames": float(np.sum(_facing(own) * _facing(true) < 0.0)),
    }


def beside_detector(found: CapturedPerson, seen: WatchedPerson, truth: Motion, true_camera: Camera) -> Row:
    """Errors of the body and of the detector's own shape, fitted with the same body."""
    own = found.cameras[0]
    row = compared(found.motion, own, truth, true_camera)
    detector = compared(detected_motion(seen, found), own, truth, true_camera)["error_cm"]
    lower = 100.0 * (1.0 - float(row["error_cm"]) / float(detector))
    return row | {"detector_cm": detector, "lower_percent": lower}


def hips_of(motion: Motion) -> Float[Array, "frames 3"]:
    """Between the hips."""
    places = np.asarray(motion.positions)
    return np.asarray(places[:, [motion.skeleton.index(f"{side}_thigh") for side in SIDES]].mean(axis=1))


def _joints(motion: Motion) -> Float[Array, "frames roles 3"]:
    """Joints from between the hips."""
    places = np.asarray(motion.positions)[:, [motion.skeleton.index(role) for role in ROLES]]
    return np.asarray(places - hips_of(motion)[:, None])


def _degrees(own: Array, true: Array) -> float:
    """Mean angle of limbs from the true ones."""
    angles = []
    for first, last in LIMBS:
        a, b = (one[:, ROLES.index(last)] - one[:, ROLES.index(first)] for one in (own, true))
        cosine = np.sum(a * b, axis=1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))
        angles.append(np.degrees(np.arccos(np.clip(cosine, -1.0, 1.0))))
    return float(np.mean(angles))


def _facing(joints: Float[Array, "frames roles 3"]) -> Float[Array, "frames"]:
    """Whether the body faces the camera or away: the side of the left shoulder in the picture."""
    left, right = (joints[:, ROLES.index(f"{side}_upper_arm"), 0] for side in ("left", "right"))
    return np.asarray(left - right)


def _jitter(motion: Motion) -> float:
    """Mean jerk of the joints."""
    return float(np.linalg.norm(np.diff(np.asarray(motion.positions), n=3, axis=0), axis=-1).mean())


def _slide(motion: Motion) -> float:
    """The largest travel of a standing heel or toe over the floor during one contact, in metres."""
    stands = foot_contacts(motion).points.reshape(len(motion), 4)
    places, worst = foot_positions(motion).reshape(len(motion), 4, 3), 0.0
    for point in range(4):
        frames = np.flatnonzero(stands[:, point])
        for part in np.split(frames, np.flatnonzero(np.diff(frames) > 1) + 1):
            if len(part) >= LONG_ENOUGH:
                worst = max(worst, float(np.linalg.norm(np.ptp(places[part, point][:, [0, 2]], axis=0))))
    return worst
