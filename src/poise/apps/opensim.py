"""The coordinates of an OpenSim model that follow a motion: inverse kinematics for `.mot` files.

Joint centres are put at the motion's, and body rotations as in `motion.carrying`, within the ranges that the model
clamps. The distances are one term of the solver of sequences, whose unknowns are the coordinates of every frame.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.errors import SkeletonError
from poise.formats.mot import MotFit, model_skeleton, roles_of
from poise.formats.osim import OsimModel, OsimPlacing, placed
from poise.geometry import rotations
from poise.motion.carrying import carried
from poise.motion.motion import Motion
from poise.motion.world import joint_transforms
from poise.priors.terms import System, Term, Unknowns
from poise.solvers.sequence import SequenceSolver
from poise.types import Array

_CENTRED = ("thigh", "shin", "foot", "upper_arm", "forearm", "hand")  # parts whose joint centres are targets
_CENTRE, _TURN = 0.01, 0.2  # metres and radians of equal weight
_KEYS = 10.0  # frames per second that are fitted in sequence; those between start from them
_BLOCK = 200  # frames at once
_ROUNDS, _SETTLED = 40, 1e-3  # most rounds, and nats per frame
_CLEARLY = 0.9  # ratio of the sums of squares
_WORST = 0.1  # metres, root mean square: above this, the model does not suit the body


@dataclass(frozen=True, eq=False)
class Aims:
    """Target positions of body centres, and target rotations of bodies."""

    centred: list[int]
    centres: Float[Array, "frames centred 3"]
    turned: list[int]
    turns: Float[Array, "frames turned 3 3"]

    def at(self, frames: slice | list[int]) -> Aims:
        return Aims(self.centred, self.centres[frames], self.turned, self.turns[frames])


def fitted(model: OsimModel, motion: Motion) -> MotFit:
    """The coordinates for every frame; raise if the model cannot be fitted to the motion."""
    aims = aims_of(model, motion)
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
                had, has = (_squares(model, own, one) for one in (values[block], found))
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


def aims_of(model: OsimModel, motion: Motion) -> Aims:
    """The motion's joint centres and its rotations of the model's bodies, for roles that both have."""
    skeleton, bodies, own = model_skeleton(model), roles_of(model), motion.skeleton.roles
    at_rest = placed(model, model.defaults[None]).turns[0]
    shared = {role: body for role, body in bodies.items() if role in own}
    centred = {role: body for role, body in shared.items() if role.partition("_")[2] in _CENTRED}
    turns = joint_transforms(carried(motion, skeleton))[1]
    turned, places = list(shared.values()), motion.positions
    centres = np.stack([places[role] for role in centred], axis=1)
    return Aims(list(centred.values()), centres, turned, turns[:, turned] @ at_rest[turned])


def _first(model: OsimModel, aims: Aims) -> Float[Array, "coordinates"]:
    """The best of fits to one frame from the model's default pose at eight headings."""
    starts = np.tile(model.defaults, (8, 1))
    upright = [axis.coordinate for axis in model.joints[0].axes if axis.turns and abs(axis.axis[1]) > 0.9]
    starts[:, upright] += np.linspace(-np.pi, np.pi, 8, endpoint=False)[:, None]
    many = Aims(aims.centred, aims.centres.repeat(8, 0), aims.turned, aims.turns.repeat(8, 0))
    found = _solved(model, many, starts)
    return np.asarray(found[np.argmin(_squares(model, many, found))])


def _solved(
    model: OsimModel, aims: Aims, start: Float[Array, "frames coordinates"]
) -> Float[Array, "frames coordinates"]:
    """The coordinates nearest to the aims, from a start near them."""
    term = BodyAims(model, aims, start)
    near = Unknowns.bodiless(term.inside(start[:, model.free]))
    return term.values(SequenceSolver(None, [term]).solve(near, rounds=_ROUNDS, settled=_SETTLED)[0].x)


class BodyAims(Term):
    """Bodies of an OpenSim model near their aims; the latent unknowns of a frame are the free coordinates."""

    def __init__(self, model: OsimModel, aims: Aims, start: Float[Array, "frames coordinates"]) -> None:
        self._model, self._aims, self._start, self.latent = model, aims, start, len(model.free)
        self._low, self._high = np.array([model.coordinates[k].range for k in model.free]).T

    def inside(self, x: Float[Array, "frames free"]) -> Float[Array, "frames free"]:
        """The free coordinates, within their ranges."""
        return np.clip(x, self._low, self._high)

    def values(self, x: Float[Array, "frames free"]) -> Float[Array, "frames coordinates"]:
        """All coordinates."""
        whole = self._start.copy()
        whole[:, self._model.free] = x
        return self._model.followed(whole)

    def cost(self, now: Unknowns) -> float:
        """Half the squared distances from the aims."""
        return 0.5 * float(_squares(self._model, self._aims, self.values(now.x[:, self.own])).sum())

    def add(self, now: Unknowns, system: System) -> None:
        """Add the distances; coordinates at an end of their range that are drawn outwards are held."""
        x, model, aims = now.x[:, self.own], self._model, self._aims
        whole, columns = self.values(x), model.axes
        at = placed(model, whole)
        moves = model.above[:, [body for body, _ in columns]]
        turns = np.array([axis.turns for _, axis in columns])
        arms = at.centres[:, aims.centred, None] - at.pivots[:, None]
        swept = np.where(turns[:, None], np.cross(at.axes[:, None], arms), at.axes[:, None])
        shifts = swept * moves[aims.centred][..., None] / _CENTRE
        spins = at.axes[:, None] * (moves[aims.turned] & turns)[..., None] / _TURN
        by_axis = np.concatenate(
            [np.swapaxes(part, -1, -2).reshape(len(x), -1, len(columns)) for part in (shifts, spins)], axis=1
        )
        free = {coordinate: column for column, coordinate in enumerate(model.free)}
        rates = np.zeros((len(x), len(columns), len(free)))  # of each axis's coordinate by each free one
        for row, (_, axis) in enumerate(columns):
            leader, curve = model.couplings.get(axis.coordinate, (axis.coordinate, None))
            if leader in free:
                rates[:, row, free[leader]] = 1.0 if curve is None else curve.both(whole[:, leader])[1]
        jacobian = by_axis @ rates
        transposed = np.swapaxes(jacobian, -1, -2)
        pull = (transposed @ _residuals(aims, at)[..., None])[..., 0]
        own = slice(system.freedoms + self.own.start, system.freedoms + self.own.stop)
        system.right[:, own] += pull
        system.bands[0][:, own, own] += transposed @ jacobian
        system.held[:, own] |= ((x <= self._low) & (pull < 0)) | ((x >= self._high) & (pull > 0))


def _squares(
    model: OsimModel, aims: Aims, whole: Float[Array, "frames coordinates"]
) -> Float[Array, "frames"]:
    return np.square(_residuals(aims, placed(model, whole))).sum(axis=-1)


def _residuals(aims: Aims, at: OsimPlacing) -> Float[Array, "frames residuals"]:
    """The changes that centres and rotations still need, in their units."""
    apart = (aims.centres - at.centres[:, aims.centred]) / _CENTRE
    turned = aims.turns @ np.swapaxes(at.turns[:, aims.turned], -1, -2)
    askew = rotations.expmap_from_matrix(turned) / _TURN
    return np.concatenate([part.reshape(len(turned), -1) for part in (apart, askew)], axis=-1)
