"""Acclaim ASF/AMC, a skeleton file and a motion file: read and written as one motion.

After M. Schafer, "Acclaim Skeleton File Definition V1.10" (1995), J. Lander, "Working with motion capture file formats"
(1998), and Vicon's notes on the lines of an ASF. A bone starts where its parent ends, rotates about its start, and its
children start at its end. Rotation tokens apply in the order written about fixed axes: "rx ry rz" is Rz Ry Rx. A
bone's `axis` gives the frame C of its channels B: relative to its parent it is rotated by C B C^-1. That is the
rotation of Poise's world-aligned joints, so a bone becomes a joint at its start.

Lengths divided by `:units length` are inches (the definition's example is 2.54 for data in centimetres; the CMU
database has 0.45). A length of 1 is often written without meaning; then the unit is inferred from the size of the
body. An AMC has no frame rate unless it has :SAMPLES-PER-SECOND, as Poise's own do; CMU's is 120 Hz.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float

from poise.errors import InvalidValueError, ParseError
from poise.formats.acclaim_rig import (
    ROOT,
    AcclaimRig,
    parse_rig,
    quaternion_from_channels,
    skeleton_from_rig,
    words_of,
)
from poise.formats.files import (
    OVERWRITING,
    FileAccessError,
    existing_file,
    finish_replacing,
    replacing_together,
)
from poise.formats.text import finite_numbers, text_lines, unused_name
from poise.formats.units import METRES, Unit, choose_unit
from poise.geometry import rotations
from poise.motion.motion import Doubt, Motion
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

METRES_PER_INCH = 0.0254
USUAL_FPS = 120.0

_LEAST_HEIGHT, _MOST_HEIGHT = 0.5, 3.0  # metres; outside this range the file's unit is doubtful
_WHOLE_BODY = 10  # bones; fewer may all be still
_HEAD_BYTES = 65536  # longer than the comments and documentation above an ASF file's bones


@dataclass(frozen=True, eq=False)
class _Recording:
    """An AMC file: the channel values of each bone it names, lengths in the file's unit and angles in radians."""

    channels: dict[str, Float[Array, "frames channels"]]
    frames: int
    fps: float | None
    warnings: tuple[str, ...]


def read(
    path: str | os.PathLike[str],
    *,
    asf: str | os.PathLike[str] | None = None,
    units: str | float | None = None,
    fps: float | None = None,
) -> Motion:
    """Read the motion of an AMC file, or the rest pose of an ASF file as a motion of one frame.

    The ASF of an AMC is the one given, else the one of the same name, else of the subject (07 for 07_01), else the
    only one in the folder. `units` and `fps` override the files.
    """
    finish_replacing(*files_written(Path(path)))
    file = existing_file(path)
    is_skeleton = file.suffix.lower() == ".asf" or (asf is None and _holds_skeleton(file))
    skeleton_file = file if is_skeleton else _skeleton_file(file, given=asf)
    rig = parse_rig(text_lines(skeleton_file), path=skeleton_file)
    if is_skeleton:
        channels = {name: np.zeros((1, len(bone.freedoms))) for name, bone in rig.bones.items()}
        channels = {ROOT: np.zeros((1, len(rig.root_freedoms)))} | channels
        recording = _Recording(channels, 1, USUAL_FPS, ())
    else:
        recording = _parse_recording(text_lines(file), rig=rig, path=file)
    return _motion(rig, recording, path=file, units=units, fps=fps)


def files_read(path: Path) -> tuple[Path, ...]:
    """The files needed to read this one: the recording, and its skeleton."""
    is_skeleton = path.suffix.lower() == ".asf" or _holds_skeleton(path)
    return (path,) if is_skeleton else (path, _skeleton_file(path, given=None))


def files_written(path: Path) -> tuple[Path, ...]:
    """The pair of files that is written, whichever of the two is named."""
    return path.with_suffix(".asf"), path.with_suffix(".amc")


def write(motion: Motion, path: str | os.PathLike[str], *, overwrite: bool | None = None) -> None:
    """Write a motion as a pair, `name.asf` and `name.amc`, whichever of the two is named; in CMU's unit of length.

    Without `overwrite`, the other file of the pair must not exist, or must already have the same content. Every joint
    gets three rotations. An ASF calls the root "root", cannot store limits on exponential maps, and needs bones
    without degrees of freedom (`A_to_B`) if the children of a joint start at different positions. Names that an ASF
    cannot hold are noted in its documentation, from which `read` restores them.
    """
    if not isinstance(motion, Motion):
        raise InvalidValueError(f"an Acclaim file holds a motion; got {type(motion).__name__}")
    if len(motion) == 0 or len(motion.skeleton) == 1:
        raise InvalidValueError("an Acclaim file needs at least one frame and one joint below the root")
    target, skeleton = Path(path), motion.skeleton
    names = [ROOT]  # one word each, not a number or a keyword
    for name in skeleton.names[1:]:
        word = re.sub(r"[\s,()#:]+", "_", name) or "bone"
        word = f"{word}_" if word.isdecimal() or word.lower() in _RESERVED else word
        names.append(unused_name(word, names))
    turning = np.flatnonzero(~_is_site(skeleton))
    angles = np.degrees(rotations.euler_from_quaternion(motion.rotations[:, turning], "ZYX"))[..., ::-1]
    positions = motion.root_positions / METRES_PER_UNIT
    table = np.concatenate([positions, angles.reshape(len(motion), -1)], axis=1)
    rows = [f"{names[joint].replace('%', '%%')}{' %.7f' * (6 if joint == 0 else 3)}\n" for joint in turning]
    frame_format = "%d\n" + "".join(rows)
    amc = [f"# Written by Poise.\n:FULLY-SPECIFIED\n:SAMPLES-PER-SECOND {motion.fps:.10g}\n:DEGREES\n"]
    amc += [frame_format % (number, *row) for number, row in enumerate(table.tolist(), start=1)]
    asf = _asf_text(skeleton, names=names, title=motion.name or target.stem)
    texts = {".asf": asf, ".amc": "".join(amc)}
    finish_replacing(*files_written(target))
    if not (OVERWRITING.get() if overwrite is None else overwrite):
        for file in files_written(target):
            other = file.suffix != target.suffix.lower() and os.path.isfile(file)
            if other and file.read_text(encoding="utf-8", errors="replace") != texts[file.suffix]:
                raise FileAccessError(
                    f"{file} already exists and would be replaced; choose another name, or overwrite it",
                    settings=("overwrite",),
                )
    with replacing_together(*files_written(target)) as parts:
        for part, text in zip(parts, texts.values(), strict=True):
            part.write(text)


# --- finding the skeleton ------------------------------------------------------------------------------------------


def _holds_skeleton(file: Path) -> bool:
    with file.open("rb") as opened:
        return b":bonedata" in opened.read(_HEAD_BYTES).lower()


def _skeleton_file(file: Path, *, given: str | os.PathLike[str] | None) -> Path:
    if given is not None:
        return existing_file(given)
    beside = sorted(other for other in file.parent.iterdir() if other.suffix.lower() == ".asf")
    for stem in (file.stem, file.stem.partition("_")[0]):
        for other in beside:
            if other.stem.lower() == stem.lower():
                return existing_file(other)
    if len(beside) == 1:
        return existing_file(beside[0])
    found = ", ".join(other.name for other in beside[:5]) or "none"
    raise FileAccessError(
        f"{file.name} needs its skeleton, {file.stem}.asf, in the same folder (.asf files there: {found}); "
        "or say which with asf="
    )


# --- the motion file -----------------------------------------------------------------------------------------------


def _parse_recording(lines: list[str], *, rig: AcclaimRig, path: Path) -> _Recording:
    freedoms = {name: bone.freedoms for name, bone in rig.bones.items()} | {ROOT: rig.root_freedoms}
    settings: dict[str, tuple[int, list[str]]] = {}  # the keywords above the first frame, with their lines
    first = len(lines)
    for number, line in enumerate(lines):
        words = words_of(line)
        if words and not words[0].startswith(":"):
            first = number
            break
        if words:
            settings[words[0].lower()] = (number + 1, words[1:])
    rows, warnings = _rows(lines, first=first, freedoms=freedoms, path=path)
    stated = 1.0 if ":radians" in settings else float(np.pi / 180) if ":degrees" in settings else None
    radians = rig.radians_per_angle if stated is None else stated
    is_angle = {name: np.array([one[0] == "r" for one in freedoms[name]], dtype=bool) for name in rows}
    channels = {name: np.array(rows[name]) * np.where(is_angle[name], radians, 1.0) for name in rows}
    angles = np.concatenate([np.abs(values)[:, is_angle[name]].ravel() for name, values in rows.items()])
    largest = float(angles.max(initial=0.0))
    if radians == 1.0 and largest > 4 * np.pi:
        warnings.append(Doubt(f"angles of up to {largest:.3g} radians; are they degrees (:DEGREES)?"))
    if radians != 1.0 and len(rows) >= _WHOLE_BODY and 1.0 < largest <= 2 * np.pi:
        warnings.append(Doubt(f"all angles are within {largest:.3g} degrees; are they radians (:RADIANS)?"))
    missing = [name for name, tokens in freedoms.items() if tokens and name not in channels]
    warnings += [f"the AMC has no values for {', '.join(missing[:5])}; kept at rest"] if missing else []
    fps = None
    if ":samples-per-second" in settings:
        number, words = settings[":samples-per-second"]
        fps = next(iter(finite_numbers(words[:1], path=path, line=number, what="samples per second")), 0.0)
        if fps <= 0:
            raise ParseError(
                f"samples per second must be above zero; got {' '.join(words)!r}", path=path, line=number
            )
    return _Recording(channels, len(next(iter(rows.values()))), fps, tuple(warnings))


def _rows(
    lines: list[str], *, first: int, freedoms: dict[str, tuple[str, ...]], path: Path
) -> tuple[dict[str, list[list[float]]], list[str]]:
    """Per bone, its numbers in every frame, which must have the bones of the first; and doubts about the numbering."""
    rows: dict[str, list[list[float]]] = {}
    frames, last, doubts = 0, "", list[str]()
    for number, line in enumerate(lines[first:], start=first + 1):
        words = words_of(line)
        fail = partial(ParseError, path=path, line=number)
        if not words:
            continue
        if len(words) == 1 and words[0].isdecimal():
            _check_complete(rows, frames=frames, path=path, line=number)
            if last and words[0] != str(int(last) + 1) and not doubts:
                jump = f"frame {last} is followed by {words[0]} (line {number})"
                doubts.append(Doubt(f"{jump}; rows were read in order"))
            frames, last = frames + 1, words[0][:18]
            continue
        name, values = words[0], finite_numbers(words[1:], path=path, line=number, what="channels")
        if frames == 0:
            raise fail(f"expected the number of a frame; got {name[:40]!r}")
        if name not in freedoms:
            raise fail(f"bone {name[:40]!r} is not in the ASF file")
        if len(values) != len(freedoms[name]):
            expected = f"{len(freedoms[name])} ({' '.join(freedoms[name]) or 'it is rigid'})"
            raise fail(f"bone {name!r} has {len(values)} channels; the ASF says {expected}")
        rows.setdefault(name, []).append(values)
        if len(rows[name]) != frames:
            raise fail(f"bone {name!r} is given {len(rows[name])} times in {frames} frames")
    _check_complete(rows, frames=frames, path=path, line=len(lines))
    if not rows:
        raise ParseError("there are no frames", path=path, line=len(lines))
    return rows, doubts


def _check_complete(rows: dict[str, list[list[float]]], *, frames: int, path: Path, line: int) -> None:
    short = [name for name, values in rows.items() if len(values) != frames]
    if short:
        raise ParseError(f"frame {frames} ends here without {', '.join(short[:5])}", path=path, line=line)


# --- rig and recording together ------------------------------------------------------------------------------------


def _motion(
    rig: AcclaimRig, recording: _Recording, *, path: Path, units: str | float | None, fps: float | None
) -> Motion:
    """The motion of a recording; the root's preset orientation is applied to the skeleton before its motion."""
    skeleton = skeleton_from_rig(rig)
    positions = np.tile(rig.root_position, (recording.frames, 1))
    for channel, freedom in enumerate(rig.root_freedoms):
        if freedom[0] == "t" and ROOT in recording.channels:
            positions[:, "xyz".index(freedom[1])] += recording.channels[ROOT][:, channel]
    turned = np.tile(rotations.IDENTITY, (recording.frames, len(skeleton), 1))
    turned[:, 0] = rig.root_orientation
    for joint, name in enumerate(skeleton.names):
        values = recording.channels.get(name)
        if values is not None and name == ROOT:
            moved = quaternion_from_channels(values, rig.root_freedoms)
            turned[:, 0] = rotations.multiply(moved, rig.root_orientation)
        elif values is not None:
            turned[:, joint] = rig.bones[name].rotations(values)
    warnings = (*rig.warnings, *recording.warnings)
    if units is not None or rig.length == 1.0:
        unit = choose_unit(skeleton, positions, units=units)
    else:
        metres = METRES_PER_INCH / rig.length
        known = (name for name, size in METRES.items() if np.isclose(size, metres, rtol=1e-6))
        reason = f"the file's length is {rig.length:g}, and lengths divided by it are inches"
        height = skeleton.height * metres
        doubts = (
            ()
            if _LEAST_HEIGHT <= height <= _MOST_HEIGHT
            else (Doubt(f"that makes the body {height:.3g} m tall"),)
        )
        unit = Unit(next(known, f"{metres:.6g} m"), metres, reason, doubts)
    rate = recording.fps if fps is None else fps
    if rate is None:
        guess = f"{USUAL_FPS:g} Hz assumed, as in the CMU database (fps= overrides)"
        rate, warnings = USUAL_FPS, (*warnings, f"the AMC has no frame rate; {guess}")
    origin = unit.origin(path, "acclaim", recording.frames, warnings=warnings)
    names = tuple(rig.called.get(name, name) for name in skeleton.names)
    named = replace(skeleton, names=names) if len(set(names)) == len(names) else skeleton
    return Motion(
        named.scaled(unit.metres), rate, positions * unit.metres, turned, name=path.stem, origin=origin
    )


# --- motions as the text of Acclaim files. Bones have no own axis and rotate by rx ry rz, in degrees -----------------


LENGTH = 0.45  # CMU's: one unit is 1 / 0.45 inches
METRES_PER_UNIT = 0.0254 / LENGTH

_RESERVED = ("begin", "end", ROOT)
_FREE = "    dof rx ry rz\n    limits" + "\n          ".join([" (-180.0 180.0)"] * 3) + "\n"


def _asf_text(skeleton: Skeleton, *, names: Sequence[str], title: str) -> str:
    offsets, is_site = skeleton.offsets / METRES_PER_UNIT, _is_site(skeleton)
    bones: dict[str, str] = {}  # their text
    hierarchy: list[list[str]] = []  # per bone, its name and those of its children

    def add(name: str, offset: Float[Array, "3"], freedoms: str) -> None:
        length = float(np.linalg.norm(offset))
        x, y, z = offset / length if length > 0 else np.zeros(3)
        bones[name] = (
            f"  begin\n    id {len(bones) + 1}\n    name {name}\n    direction {x:.12f} {y:.12f} {z:.12f}\n"
            f"    length {length:.12g}\n    axis 0 0 0 XYZ\n{freedoms}  end"
        )

    for joint in np.flatnonzero(~is_site).tolist():
        children = skeleton.children[joint]
        turning = [child for child in children if not is_site[child]]
        is_leaf = joint > 0 and not turning and len(children) <= 1
        # A bone ends at the first joint below it, else at its only end site; the root has no length.
        ends = turning or (children if is_leaf else ())
        end = offsets[ends[0]] if joint and ends else np.zeros(3)
        family = [names[joint]]
        hierarchy.append(family)
        if joint:
            add(names[joint], end, _FREE)
        for child in () if is_leaf else children:
            gap, label = offsets[child] - end, "end" if is_site[child] else names[child]
            if np.any(gap) or is_site[child]:
                connector = unused_name(f"{names[joint]}_to_{label}", {*names, *bones})
                add(connector, gap, "")
                hierarchy.append([connector] if is_site[child] else [connector, label])
                label = connector
            family.append(label)
    called = zip(names, skeleton.names, is_site, strict=True)
    lines = [
        "# Written by Poise.",
        ":version 1.10",
        f":name {re.sub(r'[^A-Za-z0-9_.-]+', '_', title) or 'skeleton'}",
        f":units\n  mass 1.0\n  length {LENGTH}\n  angle deg",
        ":documentation\n  Bones named A_to_B have no freedom: they lead from joint A to where B starts.",
        *(
            f'  {word} is called "{name}"'
            for word, name, site in called
            if word != name and not site and name.isprintable()
        ),
        ":root\n  order TX TY TZ RX RY RZ\n  axis XYZ\n  position 0 0 0\n  orientation 0 0 0",
        ":bonedata",
        *bones.values(),
        ":hierarchy\n  begin",
        *(f"    {' '.join(family)}" for family in hierarchy if len(family) > 1),
        "  end\n",
    ]
    return "\n".join(lines)


def _is_site(skeleton: Skeleton) -> Bool[Array, "joints"]:
    """Mask of the joints that are only the end of a bone: no rotation and no children."""
    below = np.array([bool(children) for children in skeleton.children])
    return skeleton.is_end_site & ~below & (np.arange(len(skeleton)) > 0)
