"""The universal prior as a guide: from any handles to a Gaussian over the whole pose, in one compiled call.

A network reads handle positions, relative to a frame F, and bone lengths; it returns the mean of the pose and a
covariance that depends on it. A given root is F itself. A free root is first guessed from the handles; the network
predicts its position and is evaluated again from there. The second result is the expected root and pose, with their
covariance.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from poise.compiled import compiled
from poise.geometry.alignment import quaternion_of
from poise.priors.forms import answer
from poise.priors.predicting import Predicted, PredictedGuide, again, begin, free_of_root, handle_gaps
from poise.priors.prior import Asked, Gaussian, Start
from poise.priors.universal import layout, network
from poise.priors.universal.body import SHORTEST, on_maps
from poise.priors.universal.layout import AT_BONES, AT_FLOOR, AT_FRAME, AT_LOOK, WIDTH
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE, forward, matrix_from_wxyz
from poise.skeleton.pose_space import Handles
from poise.types import Array, Points, PoseVector

if TYPE_CHECKING:
    from poise.priors.universal.prior import UniversalPrior

NEAR = 0.12  # metres: largest handle residual at which the previous root is reused
SEVERAL = 4  # handles that say where a body of the frame before went; so do both feet
LOWEST, HIGHEST = -0.1, 2.5  # metres: if all handles are between these heights, the floor is at y = 0
RULED_OUT = 0.03  # postures less likely than this are skipped
SIDEWAYS = 0.05  # metres: smallest distance between left and right handles that determines the heading
SHARED = 2.5e-3  # rad^2: additional joint variance of other bodies, whose joint axes differ slightly
AHEAD = 0.85  # cosine between a look-at axis and the face's own above which they count as the same
FINISH = {
    "Hand": 0.85, "Finger": 0.85, "Thumb": 0.85, "Back": 0.85, "Spine": 0.85, "Foot": 1.1, "Toe": 1.1, "Leg": 1.25,
    "Neck": 1.25, "Head": 1.25,
}  # factors on the deviations of joints when handles are met, not on those reported; chosen by errors  # fmt: skip
_LEFT = [name for name in layout.POINTS if "Left" in name]
_PAIRS = [(layout.POINTS.index(name), layout.POINTS.index(name.replace("Left", "Right"))) for name in _LEFT]
_FEET = {layout.POINTS.index("LeftFoot"), layout.POINTS.index("RightFoot")}
_TRUNK = np.array([name in ("Hips", "Spine1", "Head") for name in layout.TURNS])
_FRAME = 12  # numbers of an origin and axes


class UniversalPredictor(NamedTuple):
    """The prior for one set of handles, in the arrays of the compiled core."""

    layers: network.NetworkLayers
    tempers: Array
    shifts: Array  # of the network for a posture; empty for none in particular
    blank: Array  # inputs without handles
    rows: Array  # of the handles: their points of the network,
    offsets: Array  # and their places in these points' axes
    pairs: Array  # (pairs, 2): handles on the left and on the right
    placed: bool  # whether the handles say where a body of the frame before went
    turned: Array  # rows of the given rotations,
    turns: Array  # which are these,
    trunk: Array  # and whether they are of the trunk
    gaze: Array  # (1, 3): the point that the face looks at; (0, 3) for none
    head: int  # the joint that looks
    before: Array  # the handles' positions in the frame before; empty if there is none
    fps: float
    root_turn: Array
    root_shift: Array
    maps: Array  # of the body's maps from the canonical ones,
    columns: Array  # transposed,
    plain: bool  # and whether they are the same
    zero_turn: Array  # joint zeros: see `MappedZeros`
    zero_shift: Array
    zero_root: Array
    zero_across: Array
    zero_maps: Array
    finish: Array  # factors on the covariance when handles are met


class UniversalGuide(PredictedGuide):
    """The prior for one set of handles; its state is the network's prediction."""

    faces = True

    def __init__(
        self, prior: UniversalPrior, handles: Handles, fps: float | None = None, *, sized: bool = True
    ) -> None:
        """Without `sized`, the body's proportions are not shown to the network."""
        super().__init__(prior.space, handles)
        self._weights, self._fit, self._free, self._fps = prior.weights, prior.fit, False, fps
        self._predictor = self._plain = _predictor(prior, handles, fps, sized=sized)

    @property
    def predictor(self) -> UniversalPredictor:
        """The network for these handles, in the form of the compiled core."""
        return self._predictor

    def blank(self) -> Predicted:
        """Allocate a prediction, and room for the frame and inputs that a root was guessed from."""
        return Predicted.blank(self.space, own_metric=True, kept=_FRAME + WIDTH)

    def ask(self, asked: Asked) -> None:
        """Use the handles' previous positions for their velocities, and orientation targets."""
        self._free, self._predictor = asked.free_root, self._plain
        if self._fps is not None and len(asked.before) and len(self.handles):
            before = self.space.handle_positions(asked.before[0], self.handles)[0]
            self._predictor = self._predictor._replace(before=before)
        if (facing := asked.facing) is not None:  # rotations of joints that the network knows, and a gaze
            known = self._fit.turned[facing.turned] >= 0
            joints = facing.turned[known]
            rows = self._fit.turned[joints]
            ahead = np.add.reduce(self._fit.turns[facing.looking][:, 2] * facing.axes, axis=1) > AHEAD
            faces = (ahead & (facing.looking == self._plain.head)).nonzero()[0][:1]
            self._predictor = self._predictor._replace(
                turned=rows,
                turns=facing.turns[known] @ self._fit.turns[joints].transpose(0, 2, 1),
                trunk=_TRUNK[rows],
                gaze=np.array(facing.at[faces]),
            )

    def starts(self, q: PoseVector, targets: Points, *, free_root: bool) -> list[Start]:
        """The prediction itself, at a given root or at the predicted one."""
        self._free = free_root
        return super().starts(q, targets, free_root=free_root)

    def modes(self, q: PoseVector, targets: Points, *, free_root: bool) -> list[tuple[float, Start]]:
        """The prediction for each posture that the handles do not rule out, with its probability."""
        self._free, usual = free_root, self._predictor
        frame, space, handles = np.empty(_FRAME), self.space, self.handles
        if free_root:
            best_guess(usual, q.copy(), targets, *space.tree, handles.joints, handles.offsets, frame)
        else:
            frame_of(usual, q, frame)
        shares = network.posture_shares(self._weights, inputs_at(usual, frame, targets, given=not free_root))
        found = []
        for posture in np.flatnonzero(shares > RULED_OUT).tolist():
            self._predictor = usual._replace(shifts=self._weights.postures.shifts[posture])
            near = q
            if free_root:
                near, own = np.empty(space.size), np.empty(_FRAME)
                inputs = inputs_at(self._predictor, frame, targets, False)
                rough_pose(self._predictor, frame, inputs, False, near)
                if len(targets) == 1:  # which does not determine the heading: that of the frame is kept
                    frame_of(self._plain, near, own)
                    turn = heading(frame[3], frame[9]) @ heading(own[3], own[9]).T
                    near[:3] = targets[0] + turn @ (near[:3] - targets[0])
                    quaternion_of(turn @ axes_of(near), near[3:ROOT_SIZE])
            expected = self.seen_from(near, targets, given=not free_root)
            found.append((float(shares[posture]), Start(expected.mean, expected)))
        self._predictor = usual
        return found

    def resumed(self, q: PoseVector, targets: Points) -> Predicted:
        """The prediction relative to the root of a pose."""
        return self.seen_from(q, targets, given=not self._free)

    def seen_from(self, q: PoseVector, targets: Points, *, given: bool) -> Predicted:
        """The prediction for handles relative to the root of a pose, which is given or only approximate."""
        expected = self.blank()
        see_from(self._predictor, q, targets, given, *self.space.tree, expected)
        return expected

    def gaussian(self, q: PoseVector, state: Predicted, *, stage: int = -1) -> Gaussian:
        """The prediction; the variance of a guessed root is at least that which the handles justify."""
        found = super().gaussian(q, state, stage=stage)
        if state.rooted[0]:
            root = found.covariance[:ROOT_FREEDOMS, :ROOT_FREEDOMS]
            own = state.covariance[:ROOT_FREEDOMS, :ROOT_FREEDOMS]
            lacking = root_spread(self._predictor, state.kept) - own
            values, vectors = np.linalg.eigh(0.5 * (lacking + lacking.T))
            root += (vectors * np.maximum(values, 0.0)) @ vectors.T
        return found

    def score(self, q: PoseVector, state: Predicted) -> float:
        """Half the squared Mahalanobis distance from the predicted maps."""
        mean, covariance = state.maps
        gap = q[ROOT_SIZE:] - mean
        return float(0.5 * gap @ np.linalg.solve(covariance, gap))


def _predictor(
    prior: UniversalPrior, handles: Handles, fps: float | None, *, sized: bool
) -> UniversalPredictor:
    weights, fit, skeleton = prior.weights, prior.fit, prior.space.skeleton
    zeros, joints = on_maps(prior.zeros, fit.maps), handles.joints
    rows = fit.rows[joints]
    at = {row: handle for handle, row in enumerate(rows.tolist())}
    pairs = [(at[left], at[right]) for left, right in _PAIRS if left in at and right in at]
    known = [max((FINISH[word] for word in FINISH if word in name), default=1.0) for name in layout.MOVING]
    parts = np.abs(fit.maps)
    own = (parts @ np.repeat(known, 3) + SHORTEST) / (parts.sum(axis=1) + SHORTEST)
    factors = np.concatenate([np.ones(ROOT_FREEDOMS), own])
    blank = np.zeros(WIDTH, np.float32)
    if sized:
        blank[AT_BONES : AT_BONES + len(fit.bones)] = fit.bones
    return UniversalPredictor(
        layers=weights.layers,
        tempers=weights.tempers,
        shifts=network.ANY,
        blank=blank,
        rows=rows,
        offsets=fit.shifts[joints] + np.einsum("hab,hb->ha", fit.turns[joints], handles.offsets),
        pairs=np.array(pairs, dtype=np.int64).reshape(-1, 2),
        placed=len(joints) >= SEVERAL or set(at) >= _FEET,
        turned=np.empty(0, np.int64),
        turns=np.empty((0, 3, 3)),
        trunk=np.empty(0, np.bool_),
        gaze=np.empty((0, 3)),
        head=skeleton.index("head") if "head" in skeleton.roles else -1,
        before=np.empty((0, 3)),
        fps=fps or 0.0,
        root_turn=np.ascontiguousarray(fit.root_turn),
        root_shift=fit.root_shift,
        maps=np.ascontiguousarray(fit.maps),
        columns=np.ascontiguousarray(fit.maps.T),
        plain=fit.is_canonical,
        zero_turn=zeros.turn,
        zero_shift=zeros.shift,
        zero_root=np.ascontiguousarray(zeros.root),
        zero_across=np.ascontiguousarray(zeros.across),
        zero_maps=np.ascontiguousarray(zeros.maps),
        finish=np.outer(factors, factors),
    )


# --- compiled: frames are an origin and axes, row by row --------------------------------------------------------------


def _begin(
    p: UniversalPredictor, q: Array, targets: Array, links: Array, rest: Array, joints: Array, offsets: Array,
    free_root: bool, out: Predicted,
) -> bool:  # fmt: skip
    """Predict at a given root, at that of the frame before if it still fits, or at one guessed from the handles."""
    if free_root and not _carried(p, q, targets, links, rest, joints, offsets):
        best_guess(p, q, targets, links, rest, joints, offsets, np.empty(_FRAME))
    see_from(p, q, targets, not free_root, links, rest, out)
    q[:] = out.mean
    return free_root


def _again(
    p: UniversalPredictor, q: Array, targets: Array, links: Array, rest: Array, out: Predicted
) -> None:
    see_from(p, q, targets, True, links, rest, out)


answer(UniversalPredictor, {begin: _begin, again: _again})


@compiled
def see_from(
    p: UniversalPredictor, q: Array, targets: Array, given: bool, links: Array, rest: Array, out: Predicted
) -> None:
    """Write the prediction for handles relative to the root of a pose, which is given or only approximate.

    Of an approximate one it also keeps the frame at the handles, and the inputs there (see `root_spread`).
    """
    frame = np.empty(_FRAME)
    frame_of(p, q, frame)
    inputs = inputs_at(p, frame, targets, given)
    if len(p.gaze) > 0:  # from the head position expected without it
        _look(p, frame, inputs, given, links, rest)
    hidden, named = np.empty(len(p.layers.first_bias), np.float32), np.empty(layout.MEAN, np.float32)
    spread = np.empty(len(p.layers.spread_bias), np.float32)
    network.evaluate(p.layers, inputs, p.shifts, hidden, named, spread)
    root = np.empty((3, 3))
    _pose(p, named, frame, given, out.mean, root)
    _covariance(p, spread, frame, root, given, out.covariance)
    if given:
        out.mean[:ROOT_SIZE] = q[:ROOT_SIZE]
    for i in range(len(out.metric)):
        for k in range(len(out.metric)):
            out.metric[i, k] = out.covariance[i, k] * p.finish[i, k]
    out.rooted[0] = not given
    if not given:
        guess = out.kept[:_FRAME]
        _at_handles(frame, targets, guess)
        guess[3:] = heading(frame[3], frame[9]).ravel()
        out.kept[_FRAME:] = inputs_at(p, guess, targets, False)


@compiled
def inputs_at(p: UniversalPredictor, frame: Array, targets: Array, given: bool) -> Array:
    """The input vector of the network."""
    inputs, origin, axes = p.blank.copy(), frame[:3], frame[3:].reshape((3, 3))
    inputs[AT_FRAME] = 1.0 if given else 0.0
    for i in range(3):
        inputs[AT_FRAME + 1 + i] = axes[1, i]
    layout.show_turns(inputs, p.turned, p.turns, axes)
    if len(targets) > 0:
        layout.show(inputs, p.rows, p.offsets, targets, origin, axes)
        if not given and targets[:, 1].min() > LOWEST and targets[:, 1].max() < HIGHEST:
            inputs[AT_FLOOR], inputs[AT_FLOOR + 1] = 1.0, origin[1]
        if len(p.before) > 0:
            layout.show_velocities(inputs, p.rows, (targets - p.before) * p.fps, axes)
    return inputs


@compiled
def rough_pose(p: UniversalPredictor, frame: Array, inputs: Array, given: bool, q: Array) -> None:
    """Write the pose that the network expects, without its covariance."""
    hidden, named = np.empty(len(p.layers.first_bias), np.float32), np.empty(layout.MEAN, np.float32)
    network.evaluate(p.layers, inputs, p.shifts, hidden, named, np.empty(0, np.float32))
    _pose(p, named, frame, given, q, np.empty((3, 3)))


@compiled
def best_guess(
    p: UniversalPredictor, q: Array, targets: Array, links: Array, rest: Array, joints: Array, offsets: Array,
    best: Array,
) -> None:  # fmt: skip
    """Move a pose to the one expected at the handles from the heading that fits them best; write that frame."""
    own, frame, near, least = np.empty(_FRAME), np.empty(_FRAME), np.empty_like(q), np.inf
    frame_of(p, q, own)
    _at_handles(own, targets, frame)
    sides = _sides(p, own, frame[:3], targets)
    for side in range(len(sides)):
        frame[3:] = heading(sides[side, 0], sides[side, 2]).ravel()
        rough_pose(p, frame, inputs_at(p, frame, targets, False), False, near)
        lacking = 0.0
        if len(sides) > 1 and len(targets) > 0:
            lacking = np.abs(handle_gaps(near, links, rest, joints, offsets, targets)).max()
        if lacking < least:
            least, q[:], best[:] = lacking, near, frame


@compiled
def _at_handles(own: Array, targets: Array, frame: Array) -> None:
    """Write the origin of a frame at the mean of the handles."""
    for i in range(3):
        frame[i] = own[i] if len(targets) == 0 else targets[:, i].sum() / len(targets)


@compiled
def _sides(p: UniversalPredictor, own: Array, origin: Array, targets: Array) -> Array:
    """Directions to the left: of trunk rotations and a gaze, else of the pose and of left-right handles."""
    sides, count = np.empty((len(p.turned) + 2, 3)), 0
    for t in range(len(p.turned)):
        if p.trunk[t]:
            sides[count] = p.turns[t, :, 0]
            count += 1
    if len(p.gaze) > 0:
        sides[count, 0], sides[count, 1] = p.gaze[0, 2] - origin[2], 0.0
        sides[count, 2] = origin[0] - p.gaze[0, 0]
        count += 1
    if count == 0:
        for i in range(3):
            sides[0, i] = own[3 + 3 * i]
        count = 1
        if len(p.pairs) > 0:
            sides[1] = 0.0
            for k in range(len(p.pairs)):
                sides[1] += targets[p.pairs[k, 0]] - targets[p.pairs[k, 1]]
            count = 2
    kept = 0
    for k in range(count):
        if math.hypot(sides[k, 0], sides[k, 2]) > SIDEWAYS:
            sides[kept] = sides[k]
            kept += 1
    if kept == 0:
        for i in range(3):
            sides[0, i] = own[3 + 3 * i]
        kept = 1
    return sides[:kept]


@compiled
def _carried(
    p: UniversalPredictor, q: Array, targets: Array, links: Array, rest: Array, joints: Array, offsets: Array
) -> bool:
    """Move the pose along with its handles if it still fits; few handles do not say where a body went."""
    if len(targets) == 0:
        return False
    gaps = handle_gaps(q, links, rest, joints, offsets, targets)
    way = np.zeros(3)
    if p.placed:
        for h in range(len(gaps)):
            way += gaps[h] / len(gaps)
    if np.abs(gaps - way).max() >= NEAR:
        return False
    q[:3] += way
    return True


@compiled
def _look(p: UniversalPredictor, frame: Array, inputs: Array, given: bool, links: Array, rest: Array) -> None:
    """Write the direction of the face towards the point it looks at."""
    count, near = len(links), np.empty(len(p.zero_shift) + ROOT_SIZE)
    rough_pose(p, frame, inputs, given, near)
    positions, matrices, turns = np.empty((count, 3)), np.empty((count, 3, 3)), np.empty((count, 3, 3))
    forward(near, links, rest, positions, matrices, turns)
    ahead, axes = p.gaze[0] - positions[p.head], frame[3:].reshape((3, 3))
    ahead /= max(math.sqrt(np.dot(ahead, ahead)), SHORTEST)
    inputs[AT_LOOK] = 1.0
    for i in range(3):
        inputs[AT_LOOK + 1 + i] = axes[0, i] * ahead[0] + axes[1, i] * ahead[1] + axes[2, i] * ahead[2]


@compiled
def _pose(p: UniversalPredictor, named: Array, frame: Array, given: bool, q: Array, root: Array) -> None:
    """Write the pose vector of a network output, and the canonical root's axes."""
    axes, maps = frame[3:].reshape((3, 3)), named[9:].astype(np.float64)
    q[:3], root[:] = frame[:3], axes
    if not given:
        root[:] = np.dot(np.dot(axes, _from_columns(named[3:9].astype(np.float64))), p.zero_turn)
        q[:3] += np.dot(axes, named[:3].astype(np.float64))
    q[:3] += np.dot(root, p.root_shift)
    quaternion_of(np.dot(root, p.root_turn), q[3:ROOT_SIZE])
    q[ROOT_SIZE:] = p.zero_shift + (maps if p.plain else np.dot(p.maps, maps))


@compiled
def _covariance(
    p: UniversalPredictor, spread: Array, frame: Array, root: Array, given: bool, covariance: Array
) -> None:
    """Write the network's covariance in the world and on this body; of the maps alone if the root is given."""
    variances, factors = _named_spread(p, spread)
    inner = factors[ROOT_FREEDOMS:] if p.plain else np.dot(p.maps, factors[ROOT_FREEDOMS:])
    own = np.dot(inner, inner.T)
    if p.plain:
        for i in range(len(own)):
            own[i, i] += variances[ROOT_FREEDOMS + i]
    else:
        for i in range(len(own)):
            own[i, i] += SHARED
            for c in range(p.maps.shape[1]):
                if p.maps[i, c] != 0.0:  # few are not
                    weight, column = p.maps[i, c] * variances[ROOT_FREEDOMS + c], p.columns[c]
                    for k in range(len(own)):
                        own[i, k] += weight * column[k]
    covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:] = own + p.zero_maps
    if given:
        free_of_root(covariance)
        return
    into = _root_jacobian(p, frame, root)
    placed, turns = np.dot(into, factors[:ROOT_FREEDOMS]), into[:, 3:].copy()
    across = np.dot(placed, inner.T) + np.dot(turns, p.zero_across)
    covariance[:ROOT_FREEDOMS, :ROOT_FREEDOMS] = _placed(p, variances, placed, into)
    covariance[:ROOT_FREEDOMS, ROOT_FREEDOMS:] = across
    covariance[ROOT_FREEDOMS:, :ROOT_FREEDOMS] = across.T


@compiled
def root_spread(p: UniversalPredictor, kept: Array) -> Array:
    """The covariance of a root predicted from the frame and inputs in `kept`."""
    frame, inputs = kept[:_FRAME], kept[_FRAME:].astype(np.float32)
    hidden, named = np.empty(len(p.layers.first_bias), np.float32), np.empty(layout.MEAN, np.float32)
    spread, root = np.empty(len(p.layers.spread_bias), np.float32), np.empty((3, 3))
    network.evaluate(p.layers, inputs, p.shifts, hidden, named, spread)
    _pose(p, named, frame, False, np.empty(len(p.zero_shift) + ROOT_SIZE), root)
    variances, factors = _named_spread(p, spread)
    into = _root_jacobian(p, frame, root)
    return _placed(p, variances, np.dot(into, factors[:ROOT_FREEDOMS]), into)


@compiled
def _named_spread(p: UniversalPredictor, spread: Array) -> tuple[Array, Array]:
    """Variances and factors of the canonical freedoms."""
    count = len(p.tempers)
    rank = len(spread) // count - 1
    variances, factors = np.empty(count), np.empty((count, rank))
    for i in range(count):
        log = min(max(np.float64(spread[i]), network.LEAST), network.MOST)
        variances[i] = (math.exp(log) + network.SMALLEST) * p.tempers[i] ** 2
        for k in range(rank):
            factors[i, k] = network.FACTOR_SCALE * np.float64(spread[count + rank * i + k]) * p.tempers[i]
    return variances, factors


@compiled
def _placed(p: UniversalPredictor, variances: Array, placed: Array, into: Array) -> Array:
    """The root's covariance in the world, including its joint zero."""
    turns = into[:, 3:].copy()
    own = np.dot(placed, placed.T) + np.dot(into * variances[:ROOT_FREEDOMS], into.T)
    return own + np.dot(np.dot(turns, p.zero_root), turns.T)


@compiled
def _root_jacobian(p: UniversalPredictor, frame: Array, root: Array) -> Array:
    """Jacobian of the target's root by the canonical one's: position in F's axes, rotation in its own."""
    x, y, z = p.root_shift
    lever = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    into = np.zeros((6, 6))
    into[:3, :3], into[:3, 3:], into[3:, 3:] = frame[3:].reshape((3, 3)), -np.dot(root, lever), p.root_turn.T
    return into


@compiled
def frame_of(p: UniversalPredictor, q: Array, frame: Array) -> None:
    """Write origin and axes of the canonical root of a pose."""
    axes = np.dot(axes_of(q), p.root_turn.T)
    frame[:3] = q[:3] - np.dot(axes, p.root_shift)
    frame[3:] = axes.ravel()


@compiled
def axes_of(q: Array) -> Array:
    """The axes of a pose's root."""
    return np.array(matrix_from_wxyz(q[3], q[4], q[5], q[6])).reshape((3, 3))


@compiled
def heading(x: float, z: float) -> Array:
    """Upright axes with this direction on their left."""
    size = math.hypot(x, z)
    if size > 1e-9:
        x, z = x / size, z / size
    else:
        x, z = 1.0, 0.0
    return np.array([[x, 0.0, -z], [0.0, 1.0, 0.0], [z, 0.0, x]])


@compiled
def _from_columns(six: Array) -> Array:
    """A rotation from its first two columns, made orthonormal."""
    turn = np.empty((3, 3))
    size = max(math.sqrt(six[0] ** 2 + six[1] ** 2 + six[2] ** 2), 1e-9)
    along = (six[0] * six[3] + six[1] * six[4] + six[2] * six[5]) / size
    for i in range(3):
        turn[i, 0] = six[i] / size
        turn[i, 1] = six[3 + i] - along * turn[i, 0]
    size = max(math.sqrt(turn[0, 1] ** 2 + turn[1, 1] ** 2 + turn[2, 1] ** 2), 1e-9)
    for i in range(3):
        turn[i, 1] /= size
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        turn[i, 2] = turn[j, 0] * turn[k, 1] - turn[k, 0] * turn[j, 1]
    return turn
