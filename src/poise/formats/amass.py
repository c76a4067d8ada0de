"""AMASS and SMPL motions (`.npz`): rotations of a body whose shape is in a separate file.

AMASS (Mahmood et al. 2019) stores `poses` (axis angles of 22 to 55 joints), `trans` and a frame rate. Bone lengths
follow from `betas` through the SMPL, SMPL-H or SMPL-X model, which has its own licence. Given that file (`model=`),
bones have the subject's lengths; else those of a person of average proportions (Winter 2009, figure 4.1).
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, ParseError
from poise.formats.files import existing_file, replacing
from poise.formats.laboratory import checked_up, matrix_y_up_from
from poise.geometry import rotations
from poise.motion.carrying import carried, check_person
from poise.motion.motion import Doubt, Motion, Origin
from poise.motion.world import joint_positions
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

Body = dict[str, tuple[str, tuple[float, float, float]]]
_STATURE = 1.70  # metres
# Each joint of SMPL with its parent and its offset from there, as fractions of stature; +X is the body's left.
_BODY: Body = {
    "pelvis": ("", (0.0, 0.55, 0.0)),
    "left_hip": ("pelvis", (0.052, -0.02, 0.0)), "right_hip": ("pelvis", (-0.052, -0.02, 0.0)),
    "spine1": ("pelvis", (0.0, 0.065, 0.0)),
    "left_knee": ("left_hip", (0.0, -0.245, 0.0)), "right_knee": ("right_hip", (0.0, -0.245, 0.0)),
    "spine2": ("spine1", (0.0, 0.075, 0.0)),
    "left_ankle": ("left_knee", (0.0, -0.246, 0.0)), "right_ankle": ("right_knee", (0.0, -0.246, 0.0)),
    "spine3": ("spine2", (0.0, 0.035, 0.0)),
    "left_foot": ("left_ankle", (0.0, -0.03, 0.075)), "right_foot": ("right_ankle", (0.0, -0.03, 0.075)),
    "neck": ("spine3", (0.0, 0.12, 0.0)),
    "left_collar": ("spine3", (0.045, 0.07, 0.0)), "right_collar": ("spine3", (-0.045, 0.07, 0.0)),
    "head": ("neck", (0.0, 0.06, 0.02)),
    "left_shoulder": ("left_collar", (0.065, 0.015, 0.0)), "right_shoulder": ("right_collar", (-0.065, 0.015, 0.0)),
    "left_elbow": ("left_shoulder", (0.16, 0.0, 0.0)), "right_elbow": ("right_shoulder", (-0.16, 0.0, 0.0)),
    "left_wrist": ("left_elbow", (0.146, 0.0, 0.0)), "right_wrist": ("right_elbow", (-0.146, 0.0, 0.0)),
}  # fmt: skip
_HANDS = {  # of SMPL: one joint per hand
    "left_hand": ("left_wrist", (0.05, 0.0, 0.0)), "right_hand": ("right_wrist", (-0.05, 0.0, 0.0)),
}  # fmt: skip
_FACE = {
    "jaw": ("head", (0.0, 0.0, 0.02)),
    "left_eye": ("head", (0.018, 0.03, 0.05)), "right_eye": ("head", (-0.018, 0.03, 0.05)),
}  # fmt: skip
_FINGERS = {
    f"{side}_{finger}{part}": (
        f"{side}_wrist" if part == 1 else f"{side}_{finger}{part - 1}",
        (sign * (0.055 if part == 1 else 0.014), 0.0, spread if part == 1 else 0.0),
    )
    for side, sign in (("left", 1.0), ("right", -1.0))
    for finger, spread in zip(
        ("index", "middle", "pinky", "ring", "thumb"), (0.014, 0.0, -0.022, -0.011, 0.02), strict=True
    )
    for part in (1, 2, 3)
}
_BODIES = {22: _BODY, 24: _BODY | _HANDS, 52: _BODY | _FINGERS, 55: _BODY | _FACE | _FINGERS}
_PARTS = ("root_orient", "pose_body", "pose_jaw", "pose_eye", "pose_hand")
_SMPL_PARTS = ("global_orient", "body_pose")  # of what estimates SMPL in pictures
_RATES = ("mocap_framerate", "mocap_frame_rate", "fps", "frame_rate")
_SHAPE = ("v_template", "shapedirs", "J_regressor")
MOST_BYTES = 2 << 30
UNREADABLE = (
    OSError, ValueError, TypeError, AttributeError, EOFError, KeyError, MemoryError, zipfile.BadZipFile, zlib.error,
    NotImplementedError, RuntimeError,
)  # fmt: skip


def read(
    path: str | os.PathLike[str],
    *,
    model: str | os.PathLike[str] | None = None,
    up: str | None = None,
    fps: float | None = None,
) -> Motion:
    """Read an AMASS or SMPL file; `model` is the body model's `.npz`, `up` the world's up axis ("+Z")."""
    file = existing_file(path)
    found = _arrays(file, ("poses", "trans", "transl", "betas", *_PARTS, *_SMPL_PARTS, *_RATES))
    return body_motion(found, file, model=model, up=up, fps=fps)


def body_motion(
    found: Mapping[str, Array],
    file: Path,
    *,
    format: str = "amass",
    model: str | os.PathLike[str] | None = None,
    up: str | None = None,
    fps: float | None = None,
) -> Motion:
    """The motion in arrays of SMPL's parameters."""
    if "poses" not in found and set(_SMPL_PARTS) <= set(found):
        found = {
            **found,
            "poses": np.concatenate(
                [np.reshape(found[one], (len(found[one]), -1)) for one in _SMPL_PARTS], axis=1
            ),
        }
    found = {"trans": found["transl"], **found} if "transl" in found else found
    parts = [found["poses"]] if "poses" in found else [found[name] for name in _PARTS if name in found]
    if not parts or any(part.ndim < 2 or len(part) != len(parts[0]) for part in parts):
        shapes = ", ".join(f"{name} {array.shape}" for name, array in found.items()) or "neither"
        raise ParseError(
            f"expected arrays poses and trans of an AMASS or SMPL motion; got {shapes}", path=file
        )
    whole = np.concatenate([part.reshape(len(part), int(np.prod(part.shape[1:]))) for part in parts], axis=1)
    joints = whole.shape[1] // 3
    if whole.shape[1] % 3 or joints not in _BODIES or not len(whole) or not np.all(np.abs(whole) < 100.0):
        counts = ", ".join(str(3 * count) for count in _BODIES)
        raise ParseError(f"poses have {counts} finite numbers a frame; got {whole.shape}", path=file)
    turns = whole.reshape(len(whole), joints, 3)
    body = _BODIES[turns.shape[1]]
    offsets, pelvis, reason = _offsets(found, body, None if model is None else existing_file(model))
    names = tuple(body)
    parents = [names.index(parent) if parent else -1 for parent, _ in body.values()]
    skeleton = Skeleton(names, np.array(parents), offsets, ("ZYX",) * len(names))
    quaternions = rotations.quaternion_from_expmap(turns)
    places = np.asarray(found.get("trans", np.zeros((len(turns), 3))), dtype=np.float64)
    if places.shape != (len(turns), 3) or not np.all(np.isfinite(places)):
        raise ParseError(f"trans must be ({len(turns)}, 3) finite numbers; got {places.shape}", path=file)
    places = places + pelvis
    mean = rotations.rotate(quaternions[:, 0], np.array([0.0, 1.0, 0.0])).mean(axis=0)
    along = int(np.argmax(np.abs(mean)))
    axis, why = f"{'+' if mean[along] > 0 else '-'}{'XYZ'[along]}", "the body is upright along it"
    if up:
        axis, why = checked_up(up), "given"
    elif abs(mean[along]) < 0.5:
        axis, why = "+Z", "usual for AMASS; the body is not upright most of the time"
    turn = rotations.quaternion_from_matrix(matrix_y_up_from(axis)[None])[0]
    quaternions[:, 0] = rotations.multiply(turn, quaternions[:, 0])
    largest = float(np.max(np.linalg.norm(turns, axis=-1)))
    origin = Origin(
        path=str(file), format=format, units_reason="AMASS is in metres", frames_in_file=len(turns),
        notes=(f"{axis} is up: {why}", reason),
        warnings=(Doubt(f"angles of up to {largest:.3g} radians; are they degrees?"),) if largest > 4 * np.pi else (),
    )  # fmt: skip
    rates = (float(np.ravel(found[name])[0]) for name in _RATES if name in found and found[name].size)
    rate = fps or next(rates, None)
    if rate is None or not (fps or 0.0 < rate < 1e5):
        raise ParseError("the file has no frame rate; give it as fps=", path=file)
    return Motion(
        skeleton, rate, rotations.rotate(turn, places), rotations.continuous(quaternions),
        name=file.stem, origin=origin,
    )  # fmt: skip


def average_body(joints: int) -> tuple[tuple[str, ...], Array, Float[Array, "joints 3"]]:
    """Names, parents and offsets of SMPL's joints, of average proportions."""
    body = _BODIES[joints]
    names = tuple(body)
    parents = [names.index(parent) if parent else -1 for parent, _ in body.values()]
    return names, np.array(parents), _STATURE * np.array([offset for _, offset in body.values()])


def write(motion: Motion, path: str | os.PathLike[str]) -> None:
    """Write a person's motion as AMASS has it, Z up, for the 22 joints of SMPL's body of average shape (zero `betas`).

    A motion of other joints is transferred by roles, its travel scaled to that body; `trans` is the pelvis. The motion
    itself, of any joints, is there too: `joint_names`, `joint_parents`, `joint_offsets`, `joint_positions` (in the
    world, metres, Y up) and `joint_rotations` (wxyz, relative to the parent).
    """
    if not isinstance(motion, Motion) or len(motion) == 0:
        raise InvalidValueError(f"an .npz file holds a motion of a skeleton; got {motion!r:.60}")
    own, body, names = motion.skeleton, motion, tuple(_BODY)
    if own.names[: len(names)] != names:
        check_person(motion)
        offsets = _STATURE * np.array([offset for _, offset in _BODY.values()])
        parents = [names.index(parent) if parent else -1 for parent, _ in _BODY.values()]
        body = carried(motion, Skeleton(names, np.array(parents), offsets, ("ZYX",) * len(names)))
    turn = rotations.conjugate(rotations.quaternion_from_matrix(matrix_y_up_from("+Z")[None])[0])
    turns = body.rotations[:, : len(names)].copy()
    turns[:, 0] = rotations.multiply(turn, turns[:, 0])
    arrays: dict[str, Any] = {
        "poses": rotations.expmap_from_quaternion(turns).reshape(len(motion), -1),
        "trans": rotations.rotate(turn, body.root_positions), "mocap_framerate": np.array(motion.fps),
        "betas": np.zeros(16), "gender": np.array("neutral"), "joint_names": np.array(own.names),
        "joint_parents": own.parents, "joint_offsets": own.offsets,
        "joint_positions": joint_positions(motion), "joint_rotations": motion.rotations,
    }  # fmt: skip
    with replacing(path, "wb") as file:
        np.savez(file, **arrays)


def _arrays(file: Path, names: tuple[str, ...]) -> dict[str, Array]:
    """The named arrays that a file has, as numbers; no pickled code is run."""
    try:
        with np.load(file, allow_pickle=False) as opened:
            if sum(entry.file_size for entry in opened.zip.infolist()) > MOST_BYTES:
                raise ParseError(f"it unpacks to more than {MOST_BYTES >> 30} GB", path=file)
            return {name: opened[name].astype(np.float64) for name in names if name in opened.files}
    except UNREADABLE as error:
        raise ParseError(f"it is not a NumPy archive that can be read: {error}", path=file) from error


def _offsets(
    found: Mapping[str, Array], body: Body, model: Path | None
) -> tuple[Float[Array, "joints 3"], Float[Array, "3"], str]:
    """Offsets in metres, the pelvis position for a zero `trans`, and a description of the body's source."""
    average = _STATURE * np.array([offset for _, offset in body.values()])
    if model is None:
        return (
            average,
            np.zeros(3),
            "bones of average length; the subject's lengths need a body model (model=)",
        )
    parts = _arrays(model, _SHAPE)
    try:
        betas = np.ravel(found.get("betas", np.zeros(0)))[: parts["shapedirs"].shape[-1]]
        shaped = parts["v_template"] + parts["shapedirs"][..., : len(betas)] @ betas
        joints = (parts["J_regressor"] @ shaped)[: len(body)]
        above = [joints[list(body).index(parent)] if parent else joints[0] for parent, _ in body.values()]
        offsets = joints - np.stack(above)
    except (KeyError, ValueError, IndexError) as error:
        needed = f"not a body model for {len(body)} joints: expected {', '.join(_SHAPE)}"
        raise ParseError(needed, path=model) from error
    offsets[0] = average[0]
    return offsets, joints[0], f"bone lengths from {model.name} and the file's betas"
