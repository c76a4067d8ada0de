"""The coordinates of an OpenSim model that follow a motion: inverse kinematics for `.mot` files.

Joint centres are put at the motion's, and body rotations as in `motion.carrying`, by Levenberg-Marquardt within the
ranges that the model clamps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.errors import SkeletonError
from poise.formats.mot import MotFit, model_skeleton, roles_of
from poise.formats.osim import OsimModel, placed
from poise.geometry import rotations
from poise.motion.carrying import carried
from poise.motion.motion import Motion
from poise.motion.world import joint_transforms
from poise.types import Array

_CENTRED = ("thigh", "shin", "foot", "upper_arm", "forearm", "hand")  # parts whose joint centres are targets
_CENTRE, _TURN = 0.01, 0.2  # metres and radians of equal weight
_KEYS = 10.0  # frames per second that are fitted in sequence; those between start from them
_BLOCK = 200  # frames at once
_STEPS, _ENOUGH = 40, 1e-4  # of Levenberg-Marquardt; relative gain below which it stops
_CLEARLY = 0.9  # ratio of the sums of squares
_WORST = 0.1  # metres, root mean square: above this, the model does not suit the body


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
            own, found = aims.at(block), _solved(model, aims.at(block), others[block])
            if shift:  # kept only where it is clearly better
                had, has = (
                    np.sum(_residuals(model, own, one) ** 2, axis=-1) for one in (values[block], found)
                )
                found = np.where((has < _CLEARLY * had)[:, None], found, values[block])
            values[block] = found
    whole = model.followed(values)
    distances = np.linalg.norm(placed(model, whole).centres[:, aims.centred] - aims.centres, axis=-1)
    fit, rms = MotFit(model, whole, distances), float(np.sqrt(np.mean(distances**2)))
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
    turned, places = list(shared.values()), motion.positions
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
    damping, diagonal = np.full(len(values), 1e-3), np.arange(len(model.free))
    residuals = _residuals(model, aims, values)
    for _ in range(_STEPS):
        gradient, normal = _normal_equations(model, aims, values, residuals)
        here = values[:, model.free]
        stuck = ((here <= low) & (gradient < 0)) | ((here >= high) & (gradient > 0))
        gradient = np.where(stuck, 0.0, gradient)
        normal[stuck] = 0.0
        np.swapaxes(normal, -1, -2)[stuck] = 0.0
        normal[:, diagonal, diagonal] += damping[:, None] * (1.0 + normal[:, diagonal, diagonal]) + 1e-9
        step = np.clip(np.linalg.solve(normal, gradient[..., None])[..., 0], -1.0, 1.0)
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
    free = {coordinate: column for column, coordinate in enumerate(model.free)}
    rates = np.zeros(
        (len(whole), len(columns), len(free))
    )  # of each axis's coordinate by each free coordinate
    for row, (_, axis) in enumerate(columns):
        leader, curve = model.couplings.get(axis.coordinate, (axis.coordinate, None))
        if leader in free:
            rates[:, row, free[leader]] = 1.0 if curve is None else curve.both(whole[:, leader])[1]
    jacobian = by_axis @ rates
    transposed = np.swapaxes(jacobian, -1, -2)
    return (transposed @ residuals[..., None])[..., 0], transposed @ jacobian
