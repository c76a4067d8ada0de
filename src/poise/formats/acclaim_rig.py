"""The skeleton half of Acclaim, the ASF file: its bones as written, and the skeleton they make.

After M. Schafer, "Acclaim Skeleton File Definition V1.10" (1995). `acclaim` describes the conventions. Limits are on
Euler channels in the file and on exponential maps in Poise: the box is the smallest that contains all rotations of a
grid over the file's ranges, about their middle rotation; it allows a little more than the file does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise.errors import ParseError
from poise.formats.text import finite_numbers, numbers, unused_name
from poise.geometry import rotations
from poise.skeleton.skeleton import JointLimits, Skeleton
from poise.types import Array

Row = tuple[int, list[str]]  # a line's number and words

ROOT = "root"
FREEDOMS = ("tx", "ty", "tz", "rx", "ry", "rz", "l")

_CALLED = re.compile(r'(\S+) is called "(.+)"')
_FULL_TURN = 2 * np.pi - 1e-6
_SAMPLES_PER_RANGE = 9
_AS_SPACES = str.maketrans(",()", "   ")
_LEAST_LENGTH = 1e-9  # smallest plausible unit of length


@dataclass(frozen=True, eq=False)
class Bone:
    """One bone in the file's units; `frame` is its axis rotation C, `limits` are per freedom, in radians."""

    name: str
    offset: Float[Array, "3"]
    frame: Float[Array, "4"]
    freedoms: tuple[str, ...]
    limits: tuple[tuple[float, float], ...]

    def rotations(self, values: Float[Array, "*n k"]) -> Float[Array, "*n 4"]:
        """Rotations relative to the parent, C B C^-1, of channel values in radians."""
        turned = quaternion_from_channels(values, self.freedoms)
        return rotations.multiply(rotations.multiply(self.frame, turned), rotations.conjugate(self.frame))


@dataclass(frozen=True, eq=False)
class AcclaimRig:
    """An ASF file: bones, their hierarchy, the root's settings and the units."""

    bones: Mapping[str, Bone]
    children: Mapping[str, tuple[str, ...]]
    root_freedoms: tuple[str, ...]
    root_position: Float[Array, "3"]
    root_orientation: Float[Array, "4"]
    length: float
    radians_per_angle: float
    warnings: tuple[str, ...]
    called: Mapping[str, str]
    """Names of joints that are not valid in the file, as Poise notes them in :documentation."""


def quaternion_from_channels(values: Float[Array, "*n k"], freedoms: tuple[str, ...]) -> Float[Array, "*n 4"]:
    """The rotation of channels in radians: tokens apply in the order written about fixed axes (rx ry rz: Rz Ry Rx)."""
    turning = [k for k, freedom in enumerate(freedoms) if freedom[0] == "r"][::-1]
    if not turning:
        return np.broadcast_to(rotations.IDENTITY, (*values.shape[:-1], 4))
    return rotations.quaternion_from_euler(values[..., turning], "".join(freedoms[k][1] for k in turning))


def parse_rig(lines: list[str], *, path: Path) -> AcclaimRig:
    """The rig of an ASF file's lines."""
    sections = _sections(lines, path=path)
    for needed in (":root", ":bonedata", ":hierarchy"):
        if needed not in sections:
            raise ParseError(f"an ASF file needs a {needed} section; this one has none", path=path)
    units = {words[0].lower(): (line, words[1:]) for line, words in sections.get(":units", [])}
    line, words = units.get("angle", (0, ["deg"]))
    word = words[0].lower()[:3] if words else ""
    if word not in ("deg", "rad"):
        raise ParseError(f"angle must be deg or rad; got {' '.join(words)!r}", path=path, line=line)
    radians = float(np.pi / 180) if word == "deg" else 1.0
    bones: dict[str, Bone] = {}
    for line, block in _blocks(sections[":bonedata"], path=path):
        bone = _bone(block, line=line, radians=radians, path=path)
        if bone.name in bones or bone.name == ROOT:
            raise ParseError(f"bone {bone.name!r} is defined twice", path=path, line=line)
        bones[bone.name] = bone
    root = {words[0].lower(): (line, words[1:]) for line, words in sections[":root"]}
    line, words = root.get("order", (0, ["tx", "ty", "tz", "rx", "ry", "rz"]))
    freedoms = _freedoms(words, path=path, line=line)
    axis_line, axis = root.get("axis", (0, ["xyz"]))
    position = _vector(root.get("position", (0, ["0"] * 3)), path=path, what="position")
    line, angles = root.get("orientation", (0, ["0"] * 3))
    orientation = _frame(
        (line or axis_line, [*angles, *axis]), radians=radians, path=path, what="orientation"
    )
    children = _hierarchy(sections[":hierarchy"], bones=bones, path=path)
    line, words = units.get("length", (0, ["1.0"]))
    length = next(iter(finite_numbers(words[:1], path=path, line=line, what="length")), 0.0)
    if not length >= _LEAST_LENGTH:
        needed = f"length must be above zero, at least {_LEAST_LENGTH:g}"
        raise ParseError(f"{needed}; got {' '.join(words)!r}", path=path, line=line)
    moving = [name for name, bone in bones.items() if any(freedom[0] != "r" for freedom in bone.freedoms)]
    rigid = f"bones that move or stretch are kept rigid: {', '.join(moving[:5])}"
    return AcclaimRig(
        bones, children, freedoms, position, orientation, length, radians, (rigid,) if moving else (),
        {found[1]: found[2] for text in lines if (found := _CALLED.fullmatch(text.strip()))},
    )  # fmt: skip


def skeleton_from_rig(rig: AcclaimRig) -> Skeleton:
    """The skeleton in the file's unit: a joint at the start of each bone, an end site at the end of each last bone."""
    names, parents, offsets = [ROOT], [-1], [rig.root_position]
    taken = {ROOT, *rig.bones}

    def add(name: str, parent: int, offset: Float[Array, "3"]) -> int:
        names.append(name)
        taken.add(name)
        parents.append(parent)
        offsets.append(offset)
        return len(names) - 1

    waiting = [(child, 0, np.zeros(3)) for child in reversed(rig.children.get(ROOT, ()))]
    while waiting:
        name, parent, start = waiting.pop()
        bone, children = rig.bones[name], rig.children.get(name, ())
        # A connector bone of Poise's own writer only carries an offset.
        folded = not bone.freedoms and name.startswith(f"{names[parent]}_to_")
        joint = parent if folded else add(name, parent, start)
        end = start + bone.offset if folded else bone.offset
        if not children:
            add(unused_name(f"{names[joint]}_end", taken), joint, end)
        waiting += [(child, joint, end) for child in reversed(children)]
    orders = tuple("ZYX" if name in rig.bones or name == ROOT else "" for name in names)
    skeleton = Skeleton(tuple(names), np.array(parents), np.array(offsets), orders)
    return skeleton.with_limits(_limits(rig, skeleton))


# --- sections and rows ---------------------------------------------------------------------------------------------


def words_of(line: str) -> list[str]:
    """The words of a line without its comment, with commas and parentheses as spaces."""
    return line.partition("#")[0].translate(_AS_SPACES).split()


def _sections(lines: list[str], *, path: Path) -> dict[str, list[Row]]:
    sections: dict[str, list[Row]] = {}
    current: list[Row] | None = None
    for number, line in enumerate(lines, start=1):
        words = words_of(line)
        if words and words[0].startswith(":"):
            current = sections.setdefault(words[0].lower(), [])
            words = words[1:]
        elif words and current is None:
            raise ParseError(
                f"expected a section such as :units; got {words[0][:40]!r}", path=path, line=number
            )
        if words and current is not None:
            current.append((number, words))
    return sections


def _blocks(rows: list[Row], *, path: Path) -> Iterator[tuple[int, dict[str, Row]]]:
    """The fields between each begin and end; a line that starts with a number continues the previous field."""
    fields: dict[str, Row] | None = None
    start, last = 0, ""
    for line, words in rows:
        key = words[0].lower()
        if key == "begin" and fields is None:
            fields, start, last = {}, line, ""
        elif fields is None:
            raise ParseError(f"expected begin; got {words[0][:40]!r}", path=path, line=line)
        elif key == "end":
            yield start, fields
            fields = None
        elif last and key.lstrip("+-.")[:1].isdigit() | (key.lstrip("+-")[:3] == "inf"):
            fields[last][1].extend(words)
        else:
            fields[key], last = (line, list(words[1:])), key
    if fields is not None:
        raise ParseError("this begin has no end", path=path, line=start)


def _bone(fields: dict[str, Row], *, line: int, radians: float, path: Path) -> Bone:
    if not fields.get("name", (0, []))[1]:
        raise ParseError("this bone has no name", path=path, line=line)
    name = fields["name"][1][0]
    for needed in ("direction", "length"):
        if needed not in fields:
            raise ParseError(f"bone {name!r} has no {needed}", path=path, line=line)
    length_line, length_words = fields["length"]
    length = finite_numbers(length_words[:1] or ["nothing"], path=path, line=length_line, what="length")[0]
    frame = _frame(
        fields.get("axis", (line, ["0", "0", "0", "xyz"])), radians=radians, path=path, what="axis"
    )
    dof_line, dof_words = fields.get("dof", (line, []))
    freedoms = _freedoms(dof_words, path=path, line=dof_line)
    limits: tuple[tuple[float, float], ...] = ()
    if "limits" in fields:
        line, words = fields["limits"]
        values = np.array(numbers(words, path=path, line=line, what="limits"))
        if len(values) != 2 * len(freedoms) or np.isnan(values).any():
            needed = f"{len(freedoms)} freedoms need {2 * len(freedoms)} limits"
            raise ParseError(f"{needed}; got {' '.join(words)[:80]!r}", path=path, line=line)
        pairs = np.sort(values.reshape(-1, 2), axis=1)
        limits = tuple((float(low) * radians, float(high) * radians) for low, high in pairs)
    offset = length * _vector(fields["direction"], path=path, what="direction")
    return Bone(name, offset, frame, freedoms, limits)


def _vector(row: Row, *, path: Path, what: str) -> Float[Array, "3"]:
    line, words = row
    if len(words) < 3:
        raise ParseError(f"{what} needs three numbers; got {' '.join(words)!r}", path=path, line=line)
    return np.array(finite_numbers(words[:3], path=path, line=line, what=what))


def _frame(row: Row, *, radians: float, path: Path, what: str) -> Float[Array, "4"]:
    """The rotation of three angles given for x, y and z, applied about fixed axes in the order of the fourth word."""
    line, words = row
    order = words[3].lower() if len(words) > 3 else "xyz"
    if sorted(order) != ["x", "y", "z"]:
        raise ParseError(f"{what} order must be made of x, y and z; got {order[:40]!r}", path=path, line=line)
    angles = _vector(row, path=path, what=what) * radians
    in_order = angles[["xyz".index(letter) for letter in order]]
    return quaternion_from_channels(in_order, tuple(f"r{letter}" for letter in order))


def _freedoms(words: list[str], *, path: Path, line: int) -> tuple[str, ...]:
    freedoms = tuple(word.lower() for word in words)
    for freedom in freedoms:
        if freedom not in FREEDOMS:
            raise ParseError(
                f"unknown freedom {freedom[:40]!r}; valid: {', '.join(FREEDOMS)}", path=path, line=line
            )
    if len(set(freedoms)) != len(freedoms):
        raise ParseError(f"a freedom is given twice: {' '.join(freedoms)}", path=path, line=line)
    return freedoms


def _hierarchy(rows: list[Row], *, bones: Mapping[str, Bone], path: Path) -> dict[str, tuple[str, ...]]:
    children: dict[str, list[str]] = {}
    parented: set[str] = set()
    for line, words in rows:
        if len(words) == 1 and words[0].lower() in ("begin", "end"):
            continue
        for name in words[1:]:
            if name not in bones or name in parented:
                trouble = "has two parents" if name in parented else "is not in :bonedata"
                raise ParseError(f"bone {name!r} {trouble}", path=path, line=line)
            parented.add(name)
        children.setdefault(words[0], []).extend(words[1:])
    reached, waiting = {ROOT}, [ROOT]
    while waiting:
        below = children.get(waiting.pop(), [])
        reached.update(below)
        waiting += below
    lost = [name for name in bones if name not in reached]
    if lost or not bones:
        raise ParseError(
            f"not attached to the root: {', '.join(lost[:5])}" if lost else "there are no bones", path=path
        )
    return {name: tuple(found) for name, found in children.items()}


# --- the skeleton --------------------------------------------------------------------------------------------------


def _limits(rig: AcclaimRig, skeleton: Skeleton) -> JointLimits | None:
    """Limits of all joints if the file has any: free joints may rotate fully, rigid ones not at all."""
    references = np.tile(rotations.IDENTITY, (len(skeleton), 1))
    upper, any_limited = np.zeros((len(skeleton), 3)), False
    lower = -upper
    for joint, name in enumerate(skeleton.names):
        bone = rig.bones.get(name)
        if name == ROOT or (bone is not None and any(freedom[0] == "r" for freedom in bone.freedoms)):
            lower[joint], upper[joint] = -np.pi, np.pi
        if bone is not None:
            pairs = zip(bone.limits, bone.freedoms, strict=False)
            ranges = [pair for pair, freedom in pairs if freedom[0] == "r"]
            if ranges and all(high - low < _FULL_TURN for low, high in ranges):
                references[joint], lower[joint], upper[joint] = _limit_box(bone)
                any_limited = True
    return JointLimits(references, lower, upper) if any_limited else None


def _limit_box(bone: Bone) -> tuple[Float[Array, "4"], Float[Array, "3"], Float[Array, "3"]]:
    """The middle rotation of a bone's ranges and the box of exponential maps about it that contains them."""
    turning = [freedom[0] == "r" for freedom in bone.freedoms]
    ranges = [pair if turns else (0.0, 0.0) for pair, turns in zip(bone.limits, turning, strict=True)]
    reference = bone.rotations(np.mean(ranges, axis=1))
    steps = [
        np.linspace(low, high, _SAMPLES_PER_RANGE if turns else 1)
        for (low, high), turns in zip(ranges, turning, strict=True)
    ]
    grid = np.stack([axis.ravel() for axis in np.meshgrid(*steps, indexing="ij")], axis=1)
    turned = rotations.multiply(rotations.conjugate(reference), bone.rotations(grid))
    around = rotations.expmap_from_quaternion(turned)
    return reference, around.min(axis=0), around.max(axis=0)
