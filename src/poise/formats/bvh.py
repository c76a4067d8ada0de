"""BVH (Biovision hierarchy) files, read and written.

Meredith and Maddock 2001, "Motion capture file formats explained". Angles are degrees; a joint's rotation channels are
intrinsic Euler angles in the order written, and that order is the joint's own. Position channels replace the offset.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.formats.bvh_frames import BvhFrames, read_frames
from poise.formats.bvh_header import Header, read_header, stating_zeros
from poise.formats.files import existing_file, replacing
from poise.formats.laboratory import checked_up, matrix_y_up_from
from poise.formats.tpose import without_added_tpose
from poise.formats.units import choose_unit, metres_per_unit
from poise.geometry import rotations
from poise.motion.motion import Motion, Origin
from poise.skeleton.measure import leg_length
from poise.skeleton.neutral import stands_at_rest
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

_RATE_TOLERANCE = 5e-4  # relative: a frame time of .00833 means 120 Hz, but 29.97 Hz is not 30
_AXES = "XYZ"
_FRAMES_LOOKED_AT = 16
_HIGH = 5.0  # legs: hips are not usually further above the floor
_ALONG_AN_AXIS = 0.85  # smallest cosine between the trunk and an axis that may be up


def read(
    path: str | os.PathLike[str],
    *,
    units: str | float | None = None,
    keep_first: bool = False,
    up: str | None = None,
) -> Motion:
    """Read a BVH file, in metres, Y up.

    `units` is the file's unit of length ("m", "cm", "mm", "inch", "cmu") or metres per unit; by default it is
    inferred from the size of the body. A T-pose added as the first frame is dropped unless `keep_first`. `up` is the
    file's vertical axis; a body that clearly stands along Z, as Blender may write it, is corrected without it. The
    motion's `origin` lists what was inferred, dropped or corrected.
    """
    file, given = existing_file(path), None if up is None else checked_up(up)
    with file.open("rb") as stream:
        header = read_header(stream, path=file)
        frames = read_frames(stream, header, path=file)
    skeleton = Skeleton(frames.names, frames.parents, frames.offsets, frames.orders)
    axis = given or _standing_axis(skeleton, frames)
    if axis != "+Y":
        _turn(frames, axis)
    stated = header.metres_per_unit if units is None else None
    unit = choose_unit(skeleton, frames.root_positions, units=stated or units)
    origin = Origin(
        path=str(file),
        format="bvh",
        metres_per_unit=unit.metres,
        units=unit.name,
        units_reason="the exponents of the root's offset state it" if stated else unit.reason,
        frames_in_file=len(frames.rotations),
        notes=(f"{axis} is up: {'given' if given else 'the body stands along it'}",) if axis != "+Y" else (),
        warnings=(*_warnings(header, frames), *unit.warnings),
    )
    motion = _in_metres(skeleton, frames, fps=_frame_rate(header.frame_time), origin=origin)
    return motion if keep_first else without_added_tpose(motion)


def write(
    motion: Motion, path: str | os.PathLike[str], *, units: str | float = "cm", decimals: int = 6
) -> None:
    """Write a motion as BVH in the given unit of length.

    The root has six channels and every other joint three, in its own rotation order; leaves without rotations become
    end sites, whose names BVH does not store. The root's offset is zero, because some programs add it to the position
    channels. Unless the size of the body shows the unit, these zeros state it (`OFFSET 0e-2 0e0 0e0`: cm).
    """
    if not isinstance(motion, Motion):
        raise InvalidValueError(f"a BVH file holds a motion of a skeleton; got {type(motion).__name__}")
    if len(motion) == 0:
        raise InvalidValueError("a motion without frames cannot be written as BVH")
    metres = metres_per_unit(units)
    scale = 1.0 / metres
    joints = _depth_first(motion.skeleton)
    offsets = [_numbers(offset, decimals) for offset in motion.skeleton.offsets * scale]
    offsets[0] = _root_offset(motion, metres) or _numbers(np.zeros(3), decimals)
    with replacing(path) as file:
        file.write("HIERARCHY\n")
        file.writelines(_hierarchy_lines(motion.skeleton, joints, offsets))
        file.write(f"MOTION\nFrames: {len(motion)}\nFrame Time: {1.0 / motion.fps:.10g}\n")
        file.writelines(_rows(motion, joints, scale=scale, decimals=decimals))


# --- reading -------------------------------------------------------------------------------------------------------


def _in_metres(skeleton: Skeleton, frames: BvhFrames, *, fps: float, origin: Origin) -> Motion:
    """The motion itself; the arrays are not copied."""
    frames.root_positions *= origin.metres_per_unit
    for array in (frames.root_positions, frames.rotations):
        array.flags.writeable = False
    scaled = skeleton.scaled(origin.metres_per_unit)
    motion = Motion(scaled, fps, frames.root_positions, frames.rotations, Path(origin.path).stem, origin)
    doubts = [doubt for doubt in (_doubt_about_up(motion), _doubt_about_places(motion)) if doubt]
    return replace(motion, origin=replace(origin, warnings=(*origin.warnings, *doubts))) if doubts else motion


def _turn(frames: BvhFrames, up: str) -> None:
    """Rotate the world so that this axis of the file is Y; the rest pose is unchanged."""
    matrix = matrix_y_up_from(up)
    frames.root_positions = frames.root_positions @ matrix.T
    turn = rotations.quaternion_from_matrix(matrix)
    frames.rotations[:, 0] = rotations.canonical(rotations.multiply(turn, frames.rotations[:, 0]))


def _doubt_about_up(motion: Motion) -> str | None:
    """A warning if the trunk is along X or Z: the person lies down, or another axis is up."""
    up = _trunk_axis(motion.skeleton, motion.root_positions, motion.rotations)
    if up in (None, "+Y", "-Y"):
        return None
    return f"the trunk points along {up}: the person lies down, or {up} is up here (then give up={up!r})"


def _doubt_about_places(motion: Motion) -> str | None:
    """A warning if the hips are far above any floor for these legs: positions may have another unit than offsets."""
    leg, height = leg_length(motion.skeleton), float(np.median(motion.root_positions[:, 1]))
    if leg == 0.0 or height < _HIGH * leg:
        return None
    return f"the hips are {height:.3g} m high on legs of {leg:.3g} m: do positions and offsets have the same unit?"


def _standing_axis(skeleton: Skeleton, frames: BvhFrames) -> str:
    """The axis along which the body stands: with its rest pose, or on feet near zero; +Y if that is not clear."""
    moving = _trunk_axis(skeleton, frames.root_positions, frames.rotations)
    if moving in (None, "+Y", "-Y"):
        return "+Y"
    still = np.zeros((1, 3)), np.tile(rotations.IDENTITY, (1, len(skeleton), 1))
    if _trunk_axis(skeleton, *still) == moving and _legs_below(
        _some_places(skeleton, *still), skeleton, moving
    ):
        return moving
    return moving if stands_at_rest(skeleton) and _on_its_feet(skeleton, frames, moving) else "+Y"


def _legs_below(points: Float[Array, "_ joints 3"], skeleton: Skeleton, axis: str) -> bool:
    """Whether both legs point down along this axis, as a person's do and a quadruped's do not."""
    if not {"left_thigh", "left_foot", "right_thigh", "right_foot"} <= set(skeleton.roles):
        return False
    legs = [
        points[0, skeleton.index(f"{side}_foot")] - points[0, skeleton.index(f"{side}_thigh")]
        for side in SIDES
    ]
    down = -matrix_y_up_from(axis)[1]
    return all(float(leg @ down) > _ALONG_AN_AXIS * float(np.linalg.norm(leg)) for leg in legs)


def _on_its_feet(skeleton: Skeleton, frames: BvhFrames, axis: str) -> bool:
    """Whether along this axis the feet are always near zero with the pelvis above, and along Y it cannot be lying."""
    points = _some_places(skeleton, frames.root_positions, frames.rotations)
    along = points @ matrix_y_up_from(axis)[1]
    stature = skeleton.height
    feet = along[:, [skeleton.index(f"{side}_foot") for side in SIDES]].min(axis=1)
    pelvis = points[:, skeleton.index("pelvis"), 1]
    lying = np.all((pelvis > 0.04 * stature) & (pelvis < 0.3 * stature))
    above = along[:, skeleton.index("pelvis")] - feet
    return bool(np.all(np.abs(feet) < 0.2 * stature) and np.all(above > 0.35 * stature) and not lying)


def _trunk_axis(
    skeleton: Skeleton, roots: Float[Array, "frames 3"], turns: Float[Array, "frames joints 4"]
) -> str | None:
    """The axis of the trunk, from pelvis to head, if it keeps to one."""
    if not {"pelvis", "head"} <= set(skeleton.roles):
        return None
    points = _some_places(skeleton, roots, turns)
    trunks = points[:, skeleton.index("head")] - points[:, skeleton.index("pelvis")]
    mean = np.mean(trunks / np.maximum(np.linalg.norm(trunks, axis=-1, keepdims=True), 1e-12), axis=0)
    axis = int(np.argmax(np.abs(mean)))
    if np.abs(mean[axis]) < _ALONG_AN_AXIS:
        return None
    return f"{'+' if mean[axis] > 0 else '-'}{_AXES[axis]}"


def _some_places(
    skeleton: Skeleton, roots: Float[Array, "frames 3"], turns: Float[Array, "frames joints 4"]
) -> Float[Array, "some joints 3"]:
    """Joint positions in a few frames, in the file's unit and axes."""
    from poise.skeleton.kinematics import world_transforms

    some = np.linspace(0, len(roots) - 1, _FRAMES_LOOKED_AT).astype(int)
    return world_transforms(skeleton, roots[some], turns[some])[0]


def _frame_rate(frame_time: float) -> float:
    """Frames per second; rounded if the printed frame time is a truncated whole rate."""
    rate = 1.0 / frame_time
    whole = round(rate)
    return float(whole) if whole and abs(rate - whole) <= _RATE_TOLERANCE * whole else rate


def _warnings(header: Header, frames: BvhFrames) -> Iterator[str]:
    yield from header.warnings
    twice = [
        f"{node.name} ({node.order()})" for node in header.nodes if len(set(node.order())) < len(node.order())
    ]
    if twice:
        yield f"joints with a rotation channel twice: {', '.join(twice[:5])}; they were read as written"
    present = len(frames.rotations)
    if present != header.frames:
        yield f"the file declares {header.frames} frames and holds {present}; all {present} were read"
    yield from frames.warnings


# --- writing -------------------------------------------------------------------------------------------------------


def _depth_first(skeleton: Skeleton) -> list[int]:
    """Joint indices in the order of the file's nested braces."""
    found, waiting = [], [0]
    while waiting:
        joint = waiting.pop()
        found.append(joint)
        waiting.extend(reversed(skeleton.children[joint]))
    return found


def _root_offset(motion: Motion, metres: float) -> str | None:
    """Zeros that state the unit, unless the size of the body in the file clearly suggests it."""
    body = motion.skeleton
    shown = Skeleton(body.names, body.parents, body.offsets / metres, body.orders)
    guess = choose_unit(shown, motion.root_positions / metres)
    clear = np.isclose(guess.metres, metres, atol=0.0) and not guess.warnings
    return None if clear else stating_zeros(metres)


def _hierarchy_lines(skeleton: Skeleton, joints: list[int], offsets: list[str]) -> Iterator[str]:
    open_joints: list[int] = []
    for joint in joints:
        while open_joints and open_joints[-1] != skeleton.parents[joint]:
            open_joints.pop()
            yield "\t" * len(open_joints) + "}\n"
        indent = "\t" * len(open_joints)
        yield f"{indent}{_title(skeleton, joint)}\n{indent}{{\n"
        yield f"{indent}\tOFFSET {offsets[joint]}\n"
        if _has_channels(skeleton, joint):
            yield f"{indent}\tCHANNELS {_channel_names(skeleton, joint)}\n"
        open_joints.append(joint)
    for depth in reversed(range(len(open_joints))):
        yield "\t" * depth + "}\n"


def _numbers(values: Float[Array, "3"], decimals: int) -> str:
    return " ".join(f"{value:.{decimals}f}" for value in values)


def _title(skeleton: Skeleton, joint: int) -> str:
    if not _has_channels(skeleton, joint):
        return "End Site"
    name = "_".join(skeleton.names[joint].replace("{", " ").replace("}", " ").split())
    return f"{'ROOT' if joint == 0 else 'JOINT'} {name}"


def _has_channels(skeleton: Skeleton, joint: int) -> bool:
    return joint == 0 or bool(skeleton.orders[joint]) or bool(skeleton.children[joint])


def _channel_names(skeleton: Skeleton, joint: int) -> str:
    turns = " ".join(f"{axis}rotation" for axis in _written_order(skeleton.orders[joint]))
    return f"6 Xposition Yposition Zposition {turns}" if joint == 0 else f"3 {turns}"


def _written_order(order: str) -> str:
    """The joint's own order if it has each axis once, else completed: other readers expect that."""
    kept = "".join(dict.fromkeys(order)) or "ZYX"
    return kept + "".join(axis for axis in _AXES if axis not in kept)


def _rows(motion: Motion, joints: list[int], *, scale: float, decimals: int) -> Iterator[str]:
    turning = [joint for joint in joints if _has_channels(motion.skeleton, joint)]
    angles = np.empty((len(motion), len(turning), 3))
    orders = [_written_order(motion.skeleton.orders[joint]) for joint in turning]
    for order in set(orders):
        places = [place for place, other in enumerate(orders) if other == order]
        quaternions = motion.rotations[:, [turning[place] for place in places]]
        euler = rotations.euler_from_quaternion(quaternions, order)
        angles[:, places] = np.degrees(np.unwrap(euler, axis=0))
    table = np.concatenate([motion.root_positions * scale, angles.reshape(len(motion), -1)], axis=1)
    row_format = " ".join([f"%.{decimals}f"] * table.shape[1]) + "\n"
    return (row_format % tuple(row) for row in table.tolist())
