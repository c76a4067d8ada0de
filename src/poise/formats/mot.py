"""OpenSim motions (`.mot`): coordinates of the user's own model fitted to a motion, and a setup that scales it.

Bodies of the model are scaled to the lengths between the motion's joints; `NAME_scale.xml` beside the motion does the
same with OpenSim's Scale Tool. Each frame is then solved by inverse kinematics (`apps.opensim`).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, ParseError, SkeletonError
from poise.formats.files import existing_file, replacing_together
from poise.formats.osim import GROUND, OsimModel, placed, read_model
from poise.formats.registry import FITTERS
from poise.formats.text import finite_numbers, text_lines
from poise.geometry import rotations
from poise.motion.carrying import check_person
from poise.motion.motion import Motion, Origin
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

_BODIES = {
    "thigh": "femur", "shin": "tibia", "foot": "talus", "toes": "toes",
    "upper_arm": "humerus", "forearm": "ulna", "hand": "hand",
}  # fmt: skip
_ENDS = {"femur": "tibia", "tibia": "talus", "talus": "toes", "humerus": "ulna", "ulna": "hand"}
_NECK = np.array([0.0, 0.6, 0.0])  # assumed position of a head on the torso of a model without one


@dataclass(frozen=True, eq=False)
class MotFit:
    """Values of all coordinates of a model, and the distances of its joint centres from the motion's."""

    model: OsimModel
    values: Float[Array, "frames coordinates"]
    distances: Float[Array, "frames centres"]

    @property
    def at_ends(self) -> str:
        """The coordinates that reach an end of their range in some frame."""
        ranged = zip(self.model.coordinates, self.values.T, strict=True)
        names = [one.name for one, column in ranged if np.any(np.isclose(column[:, None], one.range))]
        return ", ".join(names) or "none"


def write(motion: Motion, path: str | os.PathLike[str], *, onto: str | os.PathLike[str] = "") -> None:
    """Write coordinates that move the scaled model `onto` to the motion, and the setup that scales it."""
    if not isinstance(motion, Motion):
        raise InvalidValueError(f"a .mot file holds a motion; got {type(motion).__name__.lower()}")
    if not os.fspath(onto):
        raise InvalidValueError(
            "a .mot file holds the coordinates of an OpenSim model; give its model (.osim)",
            settings=("onto",),
        )
    check_person(motion, what="the motion's skeleton")
    generic, name = read_model(onto), Path(path).stem
    factors = scale_factors(generic, motion)
    fit = FITTERS["mot"](generic.scaled(factors), motion)
    with replacing_together(*files_written(Path(path))) as (rows, setup):
        turning = np.array([one.turns for one in fit.model.coordinates])
        wraps = [one.wraps for one in fit.model.coordinates]
        wrapped = np.where(wraps, (fit.values + np.pi) % (2.0 * np.pi) - np.pi, fit.values)
        values = np.where(turning, np.degrees(wrapped), wrapped)
        rms, worst = np.sqrt(np.mean(fit.distances**2)), np.max(fit.distances)
        header = [
            name, "version=1", f"nRows={len(values)}", f"nColumns={values.shape[1] + 1}", "inDegrees=yes", "",
            f"Coordinates of {fit.model.path.name}, scaled by {name}_scale.xml.",
            f"Joint centres are within {1000 * rms:.1f} mm of the motion's (root mean square; "
            f"at most {1000 * worst:.1f}).",
            f"At an end of their range in some frame: {fit.at_ends}.",
            "endheader",
            "\t".join(["time", *(one.name for one in fit.model.coordinates)]),
        ]  # fmt: skip
        rows.write("\n".join(header) + "\n")
        for frame, row in enumerate(values.tolist()):
            rows.write("\t".join(f"{value:.8f}" for value in (frame / motion.fps, *row)) + "\n")
        setup.write(_setup(generic, factors, name))


def read(path: str | os.PathLike[str], *, model: str | os.PathLike[str] | None = None) -> Motion:
    """Read a motion from the coordinates of a model, one joint per body; the model is NAME.osim beside unless given."""
    file = existing_file(path)
    source = Path(model) if model is not None else file.with_suffix(".osim")
    if not source.is_file():
        raise InvalidValueError(
            f"{file.name} holds coordinates of an OpenSim model; put that model beside it as {source.name}"
        )
    opened = read_model(source)
    lines = text_lines(file)
    end = next((k for k, line in enumerate(lines) if line.strip().lower() == "endheader"), None)
    if end is None or len(lines) < end + 3:
        raise ParseError("expected a line 'endheader', one of names and then rows of numbers", path=file)
    names = [name.removesuffix("/value").rsplit("/", maxsplit=1)[-1] for name in lines[end + 1].split()]
    table = [
        finite_numbers(line.split(), path=file, line=end + 3 + k, what="a row")
        for k, line in enumerate(lines[end + 2 :])
        if line.strip()
    ]
    if names[:1] != ["time"] or any(len(row) != len(names) for row in table):
        raise ParseError(f"expected rows of time and {len(names) - 1} coordinates", path=file)
    degrees = "indegrees=yes" in "".join(lines[:end]).lower().replace(" ", "")
    rows = np.array(table)
    values = np.tile(opened.defaults, (len(rows), 1))
    for number, one in enumerate(opened.coordinates):
        if one.name in names:
            column = rows[:, names.index(one.name)]
            values[:, number] = np.radians(column) if degrees and one.turns else column
    seconds = np.ptp(rows[:, 0])
    fps = (len(rows) - 1) / seconds if seconds > 0 else 30.0
    skeleton, rest = model_skeleton(opened), placed(opened, opened.defaults[None])
    at = placed(opened, opened.followed(values))
    turns = at.turns @ np.swapaxes(rest.turns, -1, -2)
    turns = np.concatenate([turns, turns[:, skeleton.parents[len(opened.bodies) :]]], axis=1)
    local = turns.copy()
    local[:, 1:] = np.swapaxes(turns[:, skeleton.parents[1:]], -1, -2) @ turns[:, 1:]
    roots = at.centres[:, 0] + turns[:, 0] @ (skeleton.offsets[0] - rest.centres[0, 0])
    origin = Origin(
        path=str(file), format="mot", units_reason="as OpenSim has it", frames_in_file=len(values)
    )
    quaternions = rotations.quaternion_from_matrix(local)
    return Motion(skeleton, fps, roots, quaternions, name=file.stem, origin=origin)


def files_written(path: Path) -> tuple[Path, Path]:
    """The motion, and the setup of OpenSim's Scale Tool."""
    return path, path.with_name(f"{path.stem}_scale.xml")


# --- the body in the model -----------------------------------------------------------------------------------------


def model_skeleton(model: OsimModel) -> Skeleton:
    """The model in its default pose as a skeleton: a joint per body, plus a head if it has none."""
    at = placed(model, model.defaults[None])
    bodies = roles_of(model)
    parents = [max(joint.parent, 0) if body else -1 for body, joint in enumerate(model.joints)]
    centres, names = at.centres[0].copy(), list(model.bodies)
    centres[0] = np.mean([centres[bodies[f"{side}_thigh"]] for side in SIDES], axis=0)
    centres[0, 0] = centres[bodies["chest"], 0]  # below the back's joint, so that up is well defined
    if model.joints[0].parent != GROUND or any(joint.parent == GROUND for joint in model.joints[1:]):
        raise SkeletonError(f"{model.path.name} has several bodies on the ground; expected one person")
    roles = {role: names[body] for role, body in bodies.items()}
    if "head" not in bodies:
        centres = np.concatenate([centres, [centres[bodies["chest"]] + at.turns[0, bodies["chest"]] @ _NECK]])
        names, parents = [*names, "head (supposed)"], [*parents, bodies["chest"]]
        roles["head"] = names[-1]
    offsets = centres - np.where(np.array(parents)[:, None] < 0, 0.0, centres[parents])
    return Skeleton(tuple(names), np.array(parents), offsets, role_overrides=roles)


def roles_of(model: OsimModel) -> dict[str, int]:
    """Role to body, by the common names of OpenSim's body models; raise if legs or torso are missing."""
    named = {"pelvis": "pelvis", "chest": "torso", "head": "head"}
    named |= {f"{side}_{part}": f"{body}_{side[0]}" for side in SIDES for part, body in _BODIES.items()}
    found = {role: model.bodies.index(body) for role, body in named.items() if body in model.bodies}
    needed = ["pelvis", "chest", *(f"{side}_{part}" for side in SIDES for part in ("thigh", "shin", "foot"))]
    if missing := [named[role] for role in needed if role not in found]:
        raise SkeletonError(
            f"{model.path.name} lacks the bodies {', '.join(missing)}; "
            "expected those of gait2392, Rajagopal's or Pose2Sim's model"
        )
    return found


def scale_factors(model: OsimModel, motion: Motion) -> Float[Array, "bodies 3"]:
    """The scale of each body along its axes, from lengths between joint centres.

    Limbs are scaled by their length, the same on both sides; pelvis and torso by the width of hips and shoulders and
    the length of legs and trunk; other bodies like their parent, those between pelvis and torso like the torso.
    """
    skeleton, roles = model_skeleton(model), roles_of(model)
    standing = neutral_pose(skeleton).positions
    theirs = {role: standing[skeleton.index(role)] for role in skeleton.roles}
    places = neutral_pose(motion.skeleton).positions
    ours = {role: places[motion.skeleton.index(role)] for role in motion.skeleton.roles}
    factors = np.full((len(model.bodies), 3), np.nan)
    parts = {body: part for part, body in _BODIES.items()}
    for body, end in _ENDS.items():
        bones = {f"{side}_{parts[one]}" for side in SIDES for one in (body, end)}
        if bones <= ours.keys() & theirs.keys():
            ratio = _length(ours, parts[body], parts[end]) / _length(theirs, parts[body], parts[end])
            for side in SIDES:
                if ratio and (role := f"{side}_{parts[body]}") in roles:
                    factors[roles[role]] = ratio
    legs = (_length(ours, "thigh", "shin") + _length(ours, "shin", "foot")) / (
        _length(theirs, "thigh", "shin") + _length(theirs, "shin", "foot")
    )
    factors[roles["pelvis"]] = legs, legs, _width(ours, "thigh") / _width(theirs, "thigh")
    factors[roles["chest"]] = legs
    if "left_upper_arm" in theirs:
        back = standing[np.flatnonzero(model.above[roles["chest"]])[1]][
            1
        ]  # height of the back's lowest joint
        below, above = back - _height(theirs, "thigh"), _height(theirs, "upper_arm") - back
        trunk = (_height(ours, "upper_arm") - _height(ours, "thigh") - below * legs) / above
        factors[roles["chest"]] = trunk, trunk, _width(ours, "upper_arm") / _width(theirs, "upper_arm")
    for number, joint in enumerate(model.joints):
        if np.isnan(factors[number, 0]):
            on_trunk = bool(model.above[roles["chest"], number])
            factors[number] = factors[roles["chest"] if on_trunk else joint.parent]
    return factors


Places = dict[str, Float[Array, "3"]]


def _height(places: Places, part: str) -> float:
    return float(np.mean([places[f"{side}_{part}"][1] for side in SIDES]))


def _length(places: Places, top: str, end: str) -> float:
    """The length of a bone, averaged over both sides."""
    return float(
        np.mean([np.linalg.norm(places[f"{side}_{end}"] - places[f"{side}_{top}"]) for side in SIDES])
    )


def _width(places: Places, part: str) -> float:
    return float(np.linalg.norm(places[f"left_{part}"] - places[f"right_{part}"]))


# --- writing -------------------------------------------------------------------------------------------------------


def _setup(model: OsimModel, factors: Float[Array, "bodies 3"], name: str) -> str:
    """A setup of OpenSim's Scale Tool: `opensim-cmd run-tool NAME_scale.xml` writes NAME.osim."""
    scales = "\n".join(
        f"<Scale><scales>{' '.join(f'{factor:.8f}' for factor in row)}</scales>"
        f"<segment>{escape(body)}</segment><apply>true</apply></Scale>"
        for body, row in zip(model.bodies, factors.tolist(), strict=True)
    )
    return f"""<?xml version="1.0" encoding="UTF-8" ?>
<OpenSimDocument Version="40000">
<ScaleTool name="{escape(name)}">
<GenericModelMaker><model_file>{escape(str(model.path.resolve()))}</model_file></GenericModelMaker>
<ModelScaler>
<apply>true</apply>
<scaling_order>manualScale</scaling_order>
<ScaleSet><objects>
{scales}
</objects></ScaleSet>
<output_model_file>{escape(name)}.osim</output_model_file>
</ModelScaler>
</ScaleTool>
</OpenSimDocument>
"""
