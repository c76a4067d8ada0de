"""OpenSim motions (`.mot`): coordinates of the user's own model fitted to a motion, and a setup that scales it.

Bodies of the model are scaled to the lengths between the motion's joints; `NAME_scale.xml` beside the motion does the
same with OpenSim's Scale Tool. Each frame is then solved by inverse kinematics: joint centres at the motion's, and
body rotations as in `motion.carrying`, by Levenberg-Marquardt within the ranges that the model clamps.
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
from poise.formats.text import finite_numbers, text_lines
from poise.geometry import rotations
from poise.motion.carrying import carried, check_person
from poise.motion.motion import Motion, Origin
from poise.motion.world import joint_transforms
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.roles import SIDES
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

_BODIES = {
    "thigh": "femur", "shin": "tibia", "foot": "talus", "toes": "toes",
    "upper_arm": "humerus", "forearm": "ulna", "hand": "hand",
}  # fmt: skip
_ENDS = {"femur": "tibia", "tibia": "talus", "talus": "toes", "humerus": "ulna", "ulna": "hand"}
_CENTRED = ("thigh", "shin", "foot", "upper_arm", "forearm", "hand")  # parts whose joint centres are targets
_CENTRE, _TURN = 0.01, 0.2  # metres and radians of equal weight
_NECK = np.array([0.0, 0.6, 0.0])  # assumed position of a head on the torso of a model without one
_KEYS = 10.0  # frames per second that are fitted in sequence; those between start from them
_BLOCK = 200  # frames at once
_STEPS, _ENOUGH = 40, 1e-4  # of Levenberg-Marquardt; relative gain below which it stops
_CLEARLY = 0.9  # ratio of the sums of squares
_WORST = 0.1  # metres, root mean square: above this, the model does not suit the body


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
    generic = read_model(onto)
    factors = scale_factors(generic, motion)
    fit = fitted(generic.scaled(factors), motion)
    with replacing_together(*files_written(Path(path))) as (rows, setup):
        rows.write(_rows(fit, motion, Path(path).stem))
        setup.write(_setup(generic, factors, Path(path).stem))


def read(path: str | os.PathLike[str], *, model: str | os.PathLike[str] | None = None) -> Motion:
    """Read a motion from the coordinates of a model, one joint per body; the model is NAME.osim beside unless given."""
    file = existing_file(path)
    source = Path(model) if model is not None else file.with_suffix(".osim")
    if not source.is_file():
        raise InvalidValueError(
            f"{file.name} holds coordinates of an OpenSim model; put that model beside it as {source.name}"
        )
    opened = read_model(source)
    names, rows, degrees = _table(file)
    values = np.tile(opened.defaults, (len(rows), 1))
    for number, one in enumerate(opened.coordinates):
        if one.name in names:
            column = rows[:, names.index(one.name)]
            values[:, number] = np.radians(column) if degrees and one.turns else column
    seconds = np.ptp(rows[:, 0])
    fps = (len(rows) - 1) / seconds if seconds > 0 else 30.0
    return _as_motion(opened, opened.followed(values), fps, file)


def _table(file: Path) -> tuple[list[str], Float[Array, "frames columns"], bool]:
    """The columns' names, the rows, and whether angles are in degrees."""
    lines = text_lines(file)
    end = next((k for k, line in enumerate(lines) if line.strip().lower() == "endheader"), None)
    if end is None or len(lines) < end + 3:
        raise ParseError("expected a line 'endheader', one of names and then rows of numbers", path=file)
    names = [name.removesuffix("/value").rsplit("/", maxsplit=1)[-1] for name in lines[end + 1].split()]
    rows = [
        finite_numbers(line.split(), path=file, line=end + 3 + k, what="a row")
        for k, line in enumerate(lines[end + 2 :])
        if line.strip()
    ]
    if names[:1] != ["time"] or any(len(row) != len(names) for row in rows):
        raise ParseError(f"expected rows of time and {len(names) - 1} coordinates", path=file)
    return names, np.array(rows), "indegrees=yes" in "".join(lines[:end]).lower().replace(" ", "")


def _as_motion(model: OsimModel, values: Array, fps: float, file: Path) -> Motion:
    skeleton, rest, at = model_skeleton(model), placed(model, model.defaults[None]), placed(model, values)
    turns = at.turns @ np.swapaxes(rest.turns, -1, -2)
    turns = np.concatenate([turns, turns[:, skeleton.parents[len(model.bodies) :]]], axis=1)
    local = turns.copy()
    local[:, 1:] = np.swapaxes(turns[:, skeleton.parents[1:]], -1, -2) @ turns[:, 1:]
    roots = at.centres[:, 0] + turns[:, 0] @ (skeleton.offsets[0] - rest.centres[0, 0])
    origin = Origin(
        path=str(file), format="mot", units_reason="as OpenSim has it", frames_in_file=len(values)
    )
    return Motion(
        skeleton, fps, roots, rotations.quaternion_from_matrix(local), name=file.stem, origin=origin
    )


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
        names, parents, roles = (
            [*names, "head (supposed)"],
            [*parents, bodies["chest"]],
            {**roles, "head": "head (supposed)"},
        )
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
    ours, theirs = _standing(motion.skeleton), _standing(skeleton)
    factors = np.full((len(model.bodies), 3), np.nan)
    parts = {body: part for part, body in _BODIES.items()}
    for body, end in _ENDS.items():
        ratio = _ratio(ours, theirs, parts[body], parts[end])
        for side in SIDES:
            if ratio and (role := f"{side}_{parts[body]}") in roles:
                factors[roles[role]] = ratio
    legs = (_length(ours, "thigh", "shin") + _length(ours, "shin", "foot")) / (
        _length(theirs, "thigh", "shin") + _length(theirs, "shin", "foot")
    )
    factors[roles["pelvis"]] = legs, legs, _width(ours, "thigh") / _width(theirs, "thigh")
    factors[roles["chest"]] = _torso(ours, theirs | {"back": _back(model, skeleton)}, legs)
    for number, joint in enumerate(model.joints):
        if np.isnan(factors[number, 0]):
            trunk = bool(model.above[roles["chest"], number])
            factors[number] = factors[roles["chest"] if trunk else joint.parent]
    return factors


Places = dict[str, Float[Array, "3"]]


def _standing(skeleton: Skeleton) -> Places:
    """Positions of the joints with roles in the neutral pose."""
    places = neutral_pose(skeleton).positions
    return {role: places[skeleton.index(role)] for role in skeleton.roles}


def _back(model: OsimModel, skeleton: Skeleton) -> Float[Array, "3"]:
    """The position of the lowest joint of the back in the neutral pose."""
    trunk = np.flatnonzero(model.above[roles_of(model)["chest"]])
    return np.asarray(neutral_pose(skeleton).positions[trunk[1]])


def _torso(ours: Places, theirs: Places, legs: float) -> Float[Array, "3"]:
    """The torso's factors: from the trunk length above the pelvis, and the width of the shoulders."""
    if "left_upper_arm" not in theirs:
        return np.full(3, legs)
    below = theirs["back"][1] - _height(theirs, "thigh")
    above = _height(theirs, "upper_arm") - theirs["back"][1]
    trunk = (_height(ours, "upper_arm") - _height(ours, "thigh") - below * legs) / above
    return np.array([trunk, trunk, _width(ours, "upper_arm") / _width(theirs, "upper_arm")])


def _height(places: Places, part: str) -> float:
    return float(np.mean([places[f"{side}_{part}"][1] for side in SIDES]))


def _length(places: Places, top: str, end: str) -> float:
    """The length of a bone, averaged over both sides."""
    return float(
        np.mean([np.linalg.norm(places[f"{side}_{end}"] - places[f"{side}_{top}"]) for side in SIDES])
    )


def _width(places: Places, part: str) -> float:
    return float(np.linalg.norm(places[f"left_{part}"] - places[f"right_{part}"]))


def _ratio(ours: Places, theirs: Places, top: str, end: str) -> float | None:
    known = all(
        f"{side}_{part}" in places for side in SIDES for part in (top, end) for places in (ours, theirs)
    )
    return _length(ours, top, end) / _length(theirs, top, end) if known else None


# --- inverse kinematics --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MotFit:
    """Values of all coordinates of a model, and the distances of its joint centres from the motion's."""

    model: OsimModel
    values: Float[Array, "frames coordinates"]
    distances: Float[Array, "frames centres"]

    @property
    def at_ends(self) -> str:
        """The coordinates that reach an end of their range in some frame."""
        columns = zip(self.model.coordinates, self.values.T, strict=True)
        return (
            ", ".join(one.name for one, column in columns if np.any(np.isclose(column[:, None], one.range)))
            or "none"
        )


@dataclass(frozen=True, eq=False)
class _Aims:
    """Target positions of body centres, and target rotations of bodies."""

    centred: list[int]
    centres: Float[Array, "frames centred 3"]
    turned: list[int]
    turns: Float[Array, "frames turned 3 3"]

    def at(self, frames: slice | list[int]) -> _Aims:
        return _Aims(self.centred, self.centres[frames], self.turned, self.turns[frames])


def fitted(model: OsimModel, motion: Motion) -> MotFit:
    """The coordinates for every frame; raise if the model cannot be fitted to the motion."""
    aims = _aims(model, motion)
    stride = max(1, round(motion.fps / _KEYS))
    keys = [*range(0, len(motion) - 1, stride), len(motion) - 1]
    at_keys = np.empty((len(keys), len(model.coordinates)))
    last = _first(model, aims.at([0]))
    for row, key in enumerate(keys):
        at_keys[row] = last = _solved(model, aims.at([key]), last[None])[0]
    values = np.stack([np.interp(np.arange(len(motion)), keys, column) for column in at_keys.T], axis=-1)
    for shift in (0, 1, -1):  # from its keys, then also from the previous and the next frame
        others = values[np.clip(np.arange(len(motion)) - shift, 0, len(motion) - 1)]
        for start in range(0, len(motion), _BLOCK):
            block = slice(start, start + _BLOCK)
            values[block] = _better(model, aims.at(block), values[block], others[block], first=shift == 0)
    whole = model.followed(values)
    distances = np.linalg.norm(placed(model, whole).centres[:, aims.centred] - aims.centres, axis=-1)
    return _near_enough(MotFit(model, whole, distances))


def _better(model: OsimModel, aims: _Aims, values: Array, start: Array, *, first: bool) -> Array:
    """The result from a start; if it is not clearly better, the old values unless they are the `first`."""
    found = _solved(model, aims, start)
    if first:
        return found
    had, has = (np.sum(_residuals(model, aims, one) ** 2, axis=-1) for one in (values, found))
    return np.where((has < _CLEARLY * had)[:, None], found, values)


def _near_enough(fit: MotFit) -> MotFit:
    rms = float(np.sqrt(np.mean(fit.distances**2)))
    if rms > _WORST:
        raise SkeletonError(
            f"{fit.model.path.name} cannot be fitted to the motion: joint centres are {100 * rms:.0f} cm apart "
            f"(root mean square; expected at most {100 * _WORST:.0f}); at an end of their range: {fit.at_ends}. "
            "Widen or unclamp those in the model, or use another model"
        )
    return fit


def _aims(model: OsimModel, motion: Motion) -> _Aims:
    """The motion's joint centres and its rotations of the model's bodies, for roles that both have."""
    skeleton, bodies, own = model_skeleton(model), roles_of(model), motion.skeleton.roles
    at_rest = placed(model, model.defaults[None]).turns[0]
    shared = {role: body for role, body in bodies.items() if role in own}
    centred = {role: body for role, body in shared.items() if role.partition("_")[2] in _CENTRED}
    turns = joint_transforms(carried(motion, skeleton))[1]
    turned = list(shared.values())
    places = motion.positions
    centres = np.stack([places[role] for role in centred], axis=1)
    return _Aims(list(centred.values()), centres, turned, turns[:, turned] @ at_rest[turned])


def _first(model: OsimModel, aims: _Aims) -> Float[Array, "coordinates"]:
    """The best of fits to one frame from the model's default pose at eight headings."""
    starts = np.tile(model.defaults, (8, 1))
    upright = [axis.coordinate for axis in model.joints[0].axes if axis.turns and abs(axis.axis[1]) > 0.9]
    starts[:, upright] += np.linspace(-np.pi, np.pi, 8, endpoint=False)[:, None]
    many = _Aims(aims.centred, aims.centres.repeat(8, 0), aims.turned, aims.turns.repeat(8, 0))
    found = _solved(model, many, starts)
    return np.asarray(found[np.argmin(np.sum(_residuals(model, many, found) ** 2, axis=-1))])


def _solved(
    model: OsimModel, aims: _Aims, start: Float[Array, "frames coordinates"]
) -> Float[Array, "frames coordinates"]:
    """Levenberg-Marquardt on all frames at once, each with its own damping."""
    low, high = np.array([model.coordinates[k].range for k in model.free]).T
    values = start.copy()
    values[:, model.free] = np.clip(values[:, model.free], low, high)
    damping = np.full(len(values), 1e-3)
    residuals = _residuals(model, aims, values)
    for _ in range(_STEPS):
        gradient, normal = _normal_equations(model, aims, values, residuals)
        here = values[:, model.free]
        stuck = ((here <= low) & (gradient < 0)) | ((here >= high) & (gradient > 0))
        step = _step(gradient, normal, damping, stuck)
        tried = values.copy()
        tried[:, model.free] = np.clip(here + step, low, high)
        new = _residuals(model, aims, tried)
        gain = np.sum(residuals**2, axis=-1) - np.sum(new**2, axis=-1)
        better = gain > 0
        values[better], residuals[better] = tried[better], new[better]
        damping = np.clip(np.where(better, damping * 0.3, damping * 8.0), 1e-9, 1e9)
        if np.all((gain < _ENOUGH * np.sum(residuals**2, axis=-1)) & (better | (damping > 1.0))):
            break
    return values


def _step(gradient: Array, normal: Array, damping: Array, stuck: Array) -> Float[Array, "frames free"]:
    gradient, normal = np.where(stuck, 0.0, gradient), normal.copy()
    normal[stuck] = 0.0
    np.swapaxes(normal, -1, -2)[stuck] = 0.0
    diagonal = np.arange(normal.shape[-1])
    normal[:, diagonal, diagonal] += damping[:, None] * (1.0 + normal[:, diagonal, diagonal]) + 1e-9
    return np.clip(np.linalg.solve(normal, gradient[..., None])[..., 0], -1.0, 1.0)


def _residuals(model: OsimModel, aims: _Aims, values: Array) -> Float[Array, "frames residuals"]:
    at = placed(model, model.followed(values))
    apart = (aims.centres - at.centres[:, aims.centred]) / _CENTRE
    turned = aims.turns @ np.swapaxes(at.turns[:, aims.turned], -1, -2)
    askew = rotations.expmap_from_matrix(turned) / _TURN
    return np.concatenate([apart.reshape(len(values), -1), askew.reshape(len(values), -1)], axis=-1)


def _normal_equations(
    model: OsimModel, aims: _Aims, values: Array, residuals: Array
) -> tuple[Float[Array, "frames free"], Float[Array, "frames free free"]]:
    """J'r and J'J of the free coordinates."""
    whole = model.followed(values)
    at, columns = placed(model, whole), model.axes
    moves = model.above[:, [body for body, _ in columns]]
    turns = np.array([axis.turns for _, axis in columns])
    arms = at.centres[:, aims.centred, None] - at.pivots[:, None]
    swept = np.where(turns[:, None], np.cross(at.axes[:, None], arms), at.axes[:, None])
    shifts = swept * moves[aims.centred][..., None] / _CENTRE
    spins = at.axes[:, None] * (moves[aims.turned] & turns)[..., None] / _TURN
    by_axis = np.concatenate(
        [np.swapaxes(part, -1, -2).reshape(len(values), -1, len(columns)) for part in (shifts, spins)], axis=1
    )
    jacobian = by_axis @ _chain(model, whole, [axis.coordinate for _, axis in columns])
    transposed = np.swapaxes(jacobian, -1, -2)
    return (transposed @ residuals[..., None])[..., 0], transposed @ jacobian


def _chain(model: OsimModel, whole: Array, coordinates: list[int]) -> Float[Array, "frames axes free"]:
    """The derivative of each axis's coordinate by each free coordinate."""
    free = {coordinate: column for column, coordinate in enumerate(model.free)}
    rates = np.zeros((len(whole), len(coordinates), len(free)))
    for row, coordinate in enumerate(coordinates):
        leader, curve = model.couplings.get(coordinate, (coordinate, None))
        if leader in free:
            rates[:, row, free[leader]] = 1.0 if curve is None else curve.both(whole[:, leader])[1]
    return rates


# --- writing -------------------------------------------------------------------------------------------------------


def _rows(fit: MotFit, motion: Motion, name: str) -> str:
    turning = np.array([one.turns for one in fit.model.coordinates])
    wrapped = np.where(
        [one.wraps for one in fit.model.coordinates], (fit.values + np.pi) % (2.0 * np.pi) - np.pi, fit.values
    )
    values = np.where(turning, np.degrees(wrapped), wrapped)
    rms, worst = np.sqrt(np.mean(fit.distances**2)), np.max(fit.distances)
    header = [
        name, "version=1", f"nRows={len(values)}", f"nColumns={values.shape[1] + 1}", "inDegrees=yes", "",
        f"Coordinates of {fit.model.path.name}, scaled by {name}_scale.xml.",
        f"Joint centres are within {1000 * rms:.1f} mm of the motion's (root mean square; at most {1000 * worst:.1f}).",
        f"At an end of their range in some frame: {fit.at_ends}.",
        "endheader",
        "\t".join(["time", *(one.name for one in fit.model.coordinates)]),
    ]  # fmt: skip
    rows = (
        "\t".join(f"{value:.8f}" for value in (frame / motion.fps, *row))
        for frame, row in enumerate(values.tolist())
    )
    return "\n".join([*header, *rows, ""])


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
