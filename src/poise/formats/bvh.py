"""BVH (Biovision hierarchy) files, read and written.

Meredith and Maddock 2001, "Motion capture file formats explained". Angles are degrees; a joint's rotation channels are
intrinsic Euler angles in the order written, and that order is the joint's own. Position channels replace the offset.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.formats.bvh_text import BvhFrames, read_frames, read_header, stating_zeros
from poise.formats.files import existing_file, replacing
from poise.formats.laboratory import checked_up, matrix_y_up_from
from poise.formats.units import STATED, choose_unit, metres_per_unit
from poise.geometry import rotations
from poise.motion.motion import Doubt, Motion
from poise.skeleton.measure import leg_length
from poise.skeleton.neutral import stands_at_rest
from poise.skeleton.roles import SIDES, path
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
    if axis != "+Y":  # rotate the world so that this axis of the file is Y; the rest pose is unchanged
        matrix = matrix_y_up_from(axis)
        frames.root_positions = frames.root_positions @ matrix.T
        turn = rotations.quaternion_from_matrix(matrix)
        frames.rotations[:, 0] = rotations.canonical(rotations.multiply(turn, frames.rotations[:, 0]))
    doubled = [node for node in header.nodes if len(set(node.order())) < len(node.order())]
    twice = ", ".join(f"{node.name} ({node.order()})" for node in doubled[:5])
    warnings, present = list(header.warnings), len(frames.rotations)
    if doubled:
        warnings.append(Doubt(f"joints with a rotation channel twice: {twice}; they were read as written"))
    if present != header.frames:
        warnings.append(
            Doubt(f"the file declares {header.frames} frames and holds {present}; all {present} were read")
        )
    stated = header.metres_per_unit if units is None else None
    unit = choose_unit(skeleton, frames.root_positions, units=stated or units)
    unit = replace(unit, reason=STATED) if stated else unit
    notes = [f"{axis} is up: {'given' if given else 'the body stands along it'}"] if axis != "+Y" else []
    origin = unit.origin(file, "bvh", present, notes=notes, warnings=(*warnings, *frames.warnings))
    rate = 1.0 / header.frame_time
    if (whole := round(rate)) and abs(rate - whole) <= _RATE_TOLERANCE * whole:
        rate = float(whole)  # the printed frame time is a truncated whole rate
    frames.root_positions *= unit.metres
    for array in (frames.root_positions, frames.rotations):
        array.flags.writeable = False  # so that the motion does not copy it
    body = skeleton.scaled(unit.metres)
    motion = Motion(body, rate, frames.root_positions, frames.rotations, file.stem, origin)
    trunk = _trunk_axis(body, motion.root_positions, motion.rotations)
    doubts = list[str]()
    if trunk not in (None, "+Y", "-Y"):
        lies = f"the person lies down, or {trunk} is up here (then give up={trunk!r})"
        doubts.append(f"the trunk points along {trunk}: {lies}")
    leg, height = leg_length(body), float(np.median(motion.root_positions[:, 1]))
    if leg > 0.0 and height >= _HIGH * leg:
        same = "do positions and offsets have the same unit?"
        doubts.append(Doubt(f"the hips are {height:.3g} m high on legs of {leg:.3g} m: {same}"))
    if doubts:
        motion = replace(motion, origin=replace(origin, warnings=(*origin.warnings, *doubts)))
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
    skeleton, scale = motion.skeleton, 1.0 / metres
    joints, waiting = [], [0]  # in the order of the file's nested braces
    while waiting:
        joints.append(waiting.pop())
        waiting.extend(reversed(skeleton.children[joints[-1]]))
    offsets = [_numbers(offset, decimals) for offset in skeleton.offsets * scale]
    shown = Skeleton(skeleton.names, skeleton.parents, skeleton.offsets / metres, skeleton.orders)
    guess = choose_unit(shown, motion.root_positions / metres)
    clear = np.isclose(guess.metres, metres, atol=0.0) and not guess.warnings
    offsets[0] = (None if clear else stating_zeros(metres)) or _numbers(np.zeros(3), decimals)
    with replacing(path) as file:
        file.write("HIERARCHY\n")
        file.writelines(_hierarchy_lines(skeleton, joints, offsets))
        file.write(f"MOTION\nFrames: {len(motion)}\nFrame Time: {1.0 / motion.fps:.10g}\n")
        turning = [joint for joint in joints if _has_channels(skeleton, joint)]
        angles = np.empty((len(motion), len(turning), 3))
        orders = [_written_order(skeleton.orders[joint]) for joint in turning]
        for order in set(orders):
            places = [place for place, other in enumerate(orders) if other == order]
            quaternions = motion.rotations[:, [turning[place] for place in places]]
            euler = rotations.euler_from_quaternion(quaternions, order)
            angles[:, places] = np.degrees(np.unwrap(euler, axis=0))
        table = np.concatenate([motion.root_positions * scale, angles.reshape(len(motion), -1)], axis=1)
        row_format = " ".join([f"%.{decimals}f"] * table.shape[1]) + "\n"
        file.writelines(row_format % tuple(row) for row in table.tolist())


# --- reading -------------------------------------------------------------------------------------------------------


def _standing_axis(skeleton: Skeleton, frames: BvhFrames) -> str:
    """The axis along which the body stands: with its rest pose, or on feet near zero; +Y if that is not clear."""
    axis = _trunk_axis(skeleton, frames.root_positions, frames.rotations)
    if axis in (None, "+Y", "-Y"):
        return "+Y"
    up = matrix_y_up_from(axis)[1]
    still = np.zeros((1, 3)), np.tile(rotations.IDENTITY, (1, len(skeleton), 1))
    has_legs = {"left_thigh", "left_foot", "right_thigh", "right_foot"} <= set(skeleton.roles)
    if has_legs and _trunk_axis(skeleton, *still) == axis:
        points = _some_places(skeleton, *still)[0]
        legs = [
            points[skeleton.index(f"{side}_foot")] - points[skeleton.index(f"{side}_thigh")] for side in SIDES
        ]
        if all(float(leg @ -up) > _ALONG_AN_AXIS * float(np.linalg.norm(leg)) for leg in legs):
            return axis  # both legs point down along it, as a person's do and a quadruped's do not
    if not stands_at_rest(skeleton):
        return "+Y"
    # Along this axis the feet must always be near zero with the pelvis above, and along Y it cannot be lying.
    points, stature = _some_places(skeleton, frames.root_positions, frames.rotations), skeleton.height
    along = points @ up
    feet = along[:, [skeleton.index(f"{side}_foot") for side in SIDES]].min(axis=1)
    pelvis = points[:, skeleton.index("pelvis"), 1]
    lying = np.all((pelvis > 0.04 * stature) & (pelvis < 0.3 * stature))
    above = along[:, skeleton.index("pelvis")] - feet
    on_its_feet = np.all(np.abs(feet) < 0.2 * stature) and np.all(above > 0.35 * stature) and not lying
    return axis if on_its_feet else "+Y"


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


# --- writing -------------------------------------------------------------------------------------------------------


def _hierarchy_lines(skeleton: Skeleton, joints: list[int], offsets: list[str]) -> Iterator[str]:
    open_joints: list[int] = []
    for joint in joints:
        while open_joints and open_joints[-1] != skeleton.parents[joint]:
            open_joints.pop()
            yield "\t" * len(open_joints) + "}\n"
        indent, channels = "\t" * len(open_joints), _has_channels(skeleton, joint)
        name = "_".join(skeleton.names[joint].replace("{", " ").replace("}", " ").split())
        yield (
            f"{indent}{f'JOINT {name}' if joint else f'ROOT {name}'}\n" if channels else f"{indent}End Site\n"
        )
        yield f"{indent}{{\n{indent}\tOFFSET {offsets[joint]}\n"
        if channels:
            count = "3" if joint else "6 Xposition Yposition Zposition"
            turns = " ".join(f"{axis}rotation" for axis in _written_order(skeleton.orders[joint]))
            yield f"{indent}\tCHANNELS {count} {turns}\n"
        open_joints.append(joint)
    for depth in reversed(range(len(open_joints))):
        yield "\t" * depth + "}\n"


def _numbers(values: Float[Array, "3"], decimals: int) -> str:
    return " ".join(f"{value:.{decimals}f}" for value in values)


def _has_channels(skeleton: Skeleton, joint: int) -> bool:
    return joint == 0 or bool(skeleton.orders[joint]) or bool(skeleton.children[joint])


def _written_order(order: str) -> str:
    """The joint's own order if it has each axis once, else completed: other readers expect that."""
    kept = "".join(dict.fromkeys(order)) or "ZYX"
    return kept + "".join(axis for axis in _AXES if axis not in kept)


# --- the T-pose that some conversions (CMU's to BVH) add before a recording ------------------------------------------

_STRAIGHT = np.cos(np.radians(20.0))  # smallest cosine between limbs and the axes of the T
_LEAST_JUMP = np.radians(2.0)  # mean over joints: more than people rotate all of them in one recorded frame
_JUMP_OVER_USUAL = 4.0
_LATER_FRAMES = 30


def without_added_tpose(motion: Motion) -> Motion:
    """The motion without an added T-pose, if there is one; noted in the origin."""
    added = added_frames(motion)
    if added == 0:
        return motion
    blank = {1: "", 2: ", as was the blank frame after it"}.get(
        added, f", as were the {added - 1} blank frames after it"
    )
    note = f"the first frame is a T-pose that is not part of the motion; it was left out{blank}"
    origin = replace(motion.origin, dropped_first_frame=True, warnings=(*motion.origin.warnings, note))
    return replace(motion[added:], origin=origin)


def added_frames(motion: Motion) -> int:
    """The number of added frames: none, or a T-pose and any blank frames (lost data) after it."""
    if len(motion) < 2 or not stands_in_tpose(motion):
        return 0
    later = motion[1:]
    shown = np.any(later.root_positions != 0, axis=-1) | np.any(later.rotations[..., 1:] != 0, axis=(-2, -1))
    if not shown.any():
        return 0
    first = 1 + int(np.argmax(shown))
    # The joints must rotate much further from frame 0 to that frame than between later frames.
    frames = [0, *range(first, min(first + _LATER_FRAMES, len(motion)))]
    turns = motion.rotations[frames][:, ~motion.skeleton.is_end_site]
    steps = np.mean(rotations.geodesic_distance(turns[:-1], turns[1:]), axis=-1)
    usual = float(np.median(steps[1:])) if len(steps) > 1 else 0.0
    return first if steps[0] > max(_LEAST_JUMP, _JUMP_OVER_USUAL * usual) else 0


def stands_in_tpose(motion: Motion, frame: int = 0) -> bool:
    """Whether the arms point sideways and away from each other and the legs down, all straight."""
    from poise.skeleton.kinematics import world_transforms

    roles = motion.skeleton.roles
    if any(
        f"{side}_{part}" not in roles for side in SIDES for part in ("upper_arm", "hand", "thigh", "foot")
    ):
        return False
    points, _ = world_transforms(motion.skeleton, motion.root_positions[frame], motion.rotations[frame])
    arms = [_direction(motion, points, f"{side}_upper_arm", f"{side}_hand") for side in SIDES]
    legs = [_direction(motion, points, f"{side}_thigh", f"{side}_foot") for side in SIDES]
    level = all(abs(arm[1]) < np.sqrt(1 - _STRAIGHT**2) for arm in arms)
    return bool(level and arms[0] @ arms[1] < -_STRAIGHT and all(-leg[1] > _STRAIGHT for leg in legs))


def _direction(motion: Motion, points: Float[Array, "joints 3"], upper: str, lower: str) -> Float[Array, "3"]:
    """The direction from one role's joint to another's, shortened according to the bend of the limb between them."""
    joints = path(motion.skeleton, motion.skeleton.index(upper), motion.skeleton.index(lower))
    if not joints:  # roles given by hand contradict the tree
        return np.zeros(3)
    length = float(np.linalg.norm(np.diff(points[joints], axis=0), axis=1).sum())
    return np.asarray(points[joints[-1]] - points[joints[0]]) / max(length, 1e-12)
