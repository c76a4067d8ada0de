"""Motions as the text of Acclaim files. Bones have no own axis and rotate by rx ry rz, in degrees."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from poise.formats.acclaim_rig import ROOT
from poise.formats.text import unused_name
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

LENGTH = 0.45  # CMU's: one unit is 1 / 0.45 inches
METRES_PER_UNIT = 0.0254 / LENGTH

_RESERVED = ("begin", "end", ROOT)


@dataclass(frozen=True, eq=False)
class _Segment:
    """A bone to write: its end relative to its start, in the file's unit, and whether it rotates."""

    name: str
    offset: Float[Array, "3"]
    turns: bool


def bone_names(skeleton: Skeleton) -> tuple[str, ...]:
    """Per joint, a valid Acclaim name: one word, not a number or a keyword, with the root called root."""
    names = [ROOT]
    for name in skeleton.names[1:]:
        word = re.sub(r"[\s,()#:]+", "_", name) or "bone"
        word = f"{word}_" if word.isdecimal() or word.lower() in _RESERVED else word
        names.append(unused_name(word, names))
    return tuple(names)


def asf_text(skeleton: Skeleton, *, names: tuple[str, ...], title: str) -> str:
    """The ASF file of a skeleton."""
    bones, hierarchy = _bones_and_hierarchy(skeleton, names)
    lines = [
        "# Written by Poise.",
        ":version 1.10",
        f":name {re.sub(r'[^A-Za-z0-9_.-]+', '_', title) or 'skeleton'}",
        f":units\n  mass 1.0\n  length {LENGTH}\n  angle deg",
        ":documentation\n  Bones named A_to_B have no freedom: they lead from joint A to where B starts.",
        *(f'  {word} is called "{name}"' for word, name in _renamed(skeleton, names)),
        ":root\n  order TX TY TZ RX RY RZ\n  axis XYZ\n  position 0 0 0\n  orientation 0 0 0",
        ":bonedata",
        *(_bone_text(number, bone) for number, bone in enumerate(bones, start=1)),
        ":hierarchy\n  begin",
        *(f"    {' '.join(family)}" for family in hierarchy if len(family) > 1),
        "  end\n",
    ]
    return "\n".join(lines)


def _renamed(skeleton: Skeleton, names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Names in the file and of joints, where they differ; an ASF has none for end sites."""
    for word, name, site in zip(names, skeleton.names, _is_site(skeleton), strict=True):
        if word != name and not site and name.isprintable():
            yield word, name


def amc_lines(motion: Motion, *, names: tuple[str, ...]) -> Iterator[str]:
    """Yield the AMC file of a motion in pieces."""
    yield f"# Written by Poise.\n:FULLY-SPECIFIED\n:SAMPLES-PER-SECOND {motion.fps:.10g}\n:DEGREES\n"
    turning = np.flatnonzero(~_is_site(motion.skeleton))
    angles = np.degrees(rotations.euler_from_quaternion(motion.rotations[:, turning], "ZYX"))[..., ::-1]
    positions = motion.root_positions / METRES_PER_UNIT
    table = np.concatenate([positions, angles.reshape(len(motion), -1)], axis=1)
    rows = [f"{names[joint].replace('%', '%%')}{' %.7f' * (6 if joint == 0 else 3)}\n" for joint in turning]
    frame_format = "%d\n" + "".join(rows)
    yield from (frame_format % (number, *row) for number, row in enumerate(table.tolist(), start=1))


def _is_site(skeleton: Skeleton) -> Bool[Array, "joints"]:
    """Mask of the joints that are only the end of a bone: no rotation and no children."""
    below = np.array([bool(children) for children in skeleton.children])
    return skeleton.is_end_site & ~below & (np.arange(len(skeleton)) > 0)


def _bones_and_hierarchy(
    skeleton: Skeleton, names: tuple[str, ...]
) -> tuple[list[_Segment], list[list[str]]]:
    """The bones and, per bone, its name and those of its children."""
    offsets, is_site = skeleton.offsets / METRES_PER_UNIT, _is_site(skeleton)
    bones: list[_Segment] = []
    hierarchy: list[list[str]] = []
    for joint in np.flatnonzero(~is_site).tolist():
        end, is_leaf = _bone_end(skeleton.children[joint], is_site, offsets, is_root=joint == 0)
        family = [names[joint]]
        hierarchy.append(family)
        if joint:
            bones.append(_Segment(names[joint], end, turns=True))
        for child in () if is_leaf else skeleton.children[joint]:
            gap, label = offsets[child] - end, "end" if is_site[child] else names[child]
            if np.any(gap) or is_site[child]:
                connector = unused_name(
                    f"{names[joint]}_to_{label}", {*names, *(bone.name for bone in bones)}
                )
                bones.append(_Segment(connector, gap, turns=False))
                hierarchy.append([connector] if is_site[child] else [connector, label])
                label = connector
            family.append(label)
    return bones, hierarchy


def _bone_end(
    children: tuple[int, ...],
    is_site: Bool[Array, "joints"],
    offsets: Float[Array, "joints 3"],
    *,
    is_root: bool,
) -> tuple[Float[Array, "3"], bool]:
    """The end of a joint's bone (the first joint below it, else its only end site), and whether it is the last."""
    turning = [child for child in children if not is_site[child]]
    if is_root:
        return np.zeros(3), False
    if turning:
        return offsets[turning[0]], False
    if len(children) == 1:
        return offsets[children[0]], True
    return np.zeros(3), not children


def _bone_text(number: int, bone: _Segment) -> str:
    length = float(np.linalg.norm(bone.offset))
    x, y, z = bone.offset / length if length > 0 else np.zeros(3)
    ranges = "(-180.0 180.0)\n           (-180.0 180.0)\n           (-180.0 180.0)"
    return (
        f"  begin\n    id {number}\n    name {bone.name}\n    direction {x:.12f} {y:.12f} {z:.12f}\n"
        f"    length {length:.12g}\n    axis 0 0 0 XYZ\n"
        + (f"    dof rx ry rz\n    limits {ranges}\n" if bone.turns else "")
        + "  end"
    )
