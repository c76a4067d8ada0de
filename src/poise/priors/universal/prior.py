"""The universal prior: from any handles on any humanoid to a Gaussian over the whole pose, its root included.

A network reads where handles are, as seen from a frame F, and bone lengths; it writes the mean of the pose and a
covariance that depends on it. A given root is F itself. A free root is guessed from the handles, the network says where
it is, and is asked again from there; what it says then is where the root and every joint are expected, and how surely.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from poise.compiled import compiled
from poise.geometry.alignment import quaternion_of
from poise.motion.motion import Motion
from poise.performer.bodies import Body
from poise.priors.forms import FREE_ROOT, fixed, root_gap
from poise.priors.held_out import HeldOut, kept_from
from poise.priors.model_file import Stored
from poise.priors.poses import common_frames
from poise.priors.predicting import farthest_gap
from poise.priors.prior import ALL, Asked, Facing, Guide, Information, Plan, Start, Steps
from poise.priors.registry import PriorOptions
from poise.priors.universal import layout
from poise.priors.universal.body import SHORTEST, fitted, typical_body
from poise.priors.universal.inputs import (
    BONES,
    FLOOR,
    FRAME,
    WIDTH,
    show,
    show_look,
    show_turns,
    show_velocities,
)
from poise.priors.universal.network import ANY, NamedPrediction, asked, mean_of, posture_shares, shipped
from poise.priors.universal.zeros import Zeros, of_anyone, of_bones, on_maps
from poise.savable import Savable
from poise.schema import Declared, Numbers, Schema, flag
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE, matrix_from_wxyz
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import JointLimits, Skeleton
from poise.types import Array

NEAR = 0.12  # metres that handles may lack in a pose whose root is taken for the one before
SHOWN = ("head", "left_hand", "right_hand", "left_foot", "right_foot")  # of clips, to learn joint zeros by
APART = 0.5  # seconds between frames that say something new of joint zeros
LOWEST, HIGHEST = (
    -0.1,
    2.5,
)  # metres above the floor, y = 0: a body whose handles lie between has it under its feet
RULED_OUT = 0.03  # a posture less likely than this is not looked at
SIDEWAYS = 0.05  # metres that handles of both sides must be apart to say which way a body faces
AHEAD = 0.85  # cosine between the axis that looks and the face's own, from which they count as the same
_PAIRS = tuple(
    (row, layout.POINTS.index(name.replace("Left", "Right")))
    for row, name in enumerate(layout.POINTS)
    if name.startswith("Left")
)
_UP = np.array([0.0, 1.0, 0.0])
_TRUNK = tuple(layout.TURNS.index(name) for name in ("Hips", "Spine1", "Head"))
_ZEROS = layout.FREEDOMS - 3
_PERFORMER: Declared = {
    "mean": Numbers(axes=f"{_ZEROS}"), "spread": Numbers(axes=f"{_ZEROS} {_ZEROS}", definite=True),
}  # fmt: skip


class UniversalPrior(Savable):
    """What has been learned from everyone, on one skeleton, or on Poise's own body."""

    kind = "universal"
    about = "people in general: comes with Poise; of clips it learns how joints were calibrated"
    Options = PriorOptions
    held_out = HeldOut(0.24, 0.211, 1.15, (0.536, 0.944, 1.56, 2.49, 3.35, 6.23))
    """On the performers learned from, with joint zeros that their bones foretell, by tools/calibrate.py."""
    schema = Schema({"performer": flag}, lambda header, _lengths: _PERFORMER if header["performer"] else {})

    def __init__(self, skeleton: Skeleton | None = None, zeros: Zeros | None = None) -> None:
        skeleton, self.weights = skeleton or Body().skeleton, shipped()
        self.fit = fitted(skeleton, self.weights)
        self.space = PoseSpace(skeleton, references=self.fit.references, moving=self.fit.moving)
        expected = of_bones(skeleton, self.weights) if self.fit.is_canonical else of_anyone(self.weights)
        self.zeros, self._performer = expected if zeros is None else zeros, zeros is not None

    @classmethod
    def learn(
        cls, motions: Sequence[Motion], *, progress: Callable[[float], None] = lambda _: None
    ) -> UniversalPrior:
        """The prior on the clips' skeleton, with the joint zeros of their performer."""
        skeleton, _ = common_frames(motions)
        prior = cls(skeleton)
        gaps = np.concatenate([prior.on_body(motion.skeleton)._gaps(motion) for motion in motions])
        middle = np.median(gaps, axis=0)
        noise = (gaps - middle).T @ (gaps - middle) / len(gaps) + _SHARED * np.eye(len(middle))
        rows = np.pad(prior.fit.maps, ((0, 0), (3, 0)))
        seen = middle + rows @ prior.zeros.mean
        progress(1.0)
        return cls(skeleton, prior.zeros.after(rows, seen, noise / len(gaps)))

    @classmethod
    def of_people(cls) -> UniversalPrior:
        """The prior on a typical body."""
        return cls(typical_body(shipped()))

    @classmethod
    def restored(cls, stored: Stored) -> UniversalPrior:
        """The prior again, on the body that was kept."""
        return cls(stored.space.skeleton, Zeros(**stored.arrays) if stored.header["performer"] else None)

    def arrays(self) -> dict[str, Array]:
        """What clips said of the performer's joint zeros; the weights come with Poise."""
        return self.zeros._asdict() if self._performer else {}

    def header(self) -> dict[str, Any]:
        """Whether clips have said anything of a performer."""
        return {"performer": self._performer}

    @property
    def summary(self) -> str:
        """What has been learned, in a few words."""
        return f"{len(self.weights.header['learned_from'])} recordings of people, for any humanoid"

    @property
    def credit(self) -> str:
        """The database that was learned from."""
        return str(self.weights.header["database"])

    @cached_property
    def limits(self) -> JointLimits:
        """The range of all recordings, seen on this skeleton."""
        middle = (self.weights.lower + self.weights.upper).ravel() / 2
        half = (self.weights.upper - self.weights.lower).ravel() / 2
        lower, upper = np.zeros((2, len(self.space.skeleton), 3))
        centre, reach = self.fit.maps @ middle, np.abs(self.fit.maps) @ half
        lower[self.space.moving], upper[self.space.moving] = (
            (centre - reach).reshape(-1, 3), (centre + reach).reshape(-1, 3)
        )  # fmt: skip
        return JointLimits(self.space.references, lower, upper)

    @cached_property
    def mean(self) -> Float[Array, "maps"]:
        """The pose expected of a body that stands upright, of which nothing else is known."""
        return self._unasked.mean[ROOT_SIZE:]

    def on_body(self, skeleton: Skeleton) -> UniversalPrior:
        """The same knowledge on another skeleton; what clips said of the performer's joints stays known."""
        return kept_from(self, UniversalPrior(skeleton, self.zeros if self._performer else None))

    def guide(self, handles: Handles, *, fps: float | None = None) -> UniversalGuide:
        """Made ready for these handles; with a frame rate, it goes by how fast they move."""
        return UniversalGuide(self, handles, fps)

    def known_poses(self) -> tuple[Float[Array, "poses maps"], Float[Array, "poses 3"]]:
        """A few poses that are far from each other, as they lean."""
        return self.weights.poses @ self.fit.maps.T, self.weights.ups @ self.fit.root_turn

    def log_likelihood(self, q: Float[Array, "size"]) -> float:
        """The log density of a pose when no handle is known."""
        _, covariance = self._unasked.maps
        gap = self.space.checked(q)[ROOT_SIZE:] - self.mean
        _, volume = np.linalg.slogdet(covariance)
        return float(-0.5 * (gap @ np.linalg.solve(covariance, gap) + volume + len(gap) * np.log(2 * np.pi)))

    def percentile(self, q: Float[Array, "size"]) -> float:
        """The share of recorded poses, in percent, that are less likely than this one."""
        return float(np.interp(self.log_likelihood(q), self.weights.quantiles, np.arange(101)))

    def _gaps(self, motion: Motion) -> Float[Array, "frames maps"]:
        """From what is expected of a clip's handles to what was recorded, every now and then."""
        handles, every = self.space.handles(SHOWN), max(1, round(motion.fps * APART))
        poses = self.space.q_from_frames(motion.root_positions[::every], motion.rotations[::every])
        guide, shown = self.guide(handles), self.space.points(poses, handles)
        seen = [guide.seen_from(q, targets, given=True) for q, targets in zip(poses, shown, strict=True)]
        return np.stack([q[ROOT_SIZE:] - one.mean[ROOT_SIZE:] for q, one in zip(poses, seen, strict=True)])

    @cached_property
    def _unasked(self) -> ExpectedPose:
        """Of a body that stands upright, of any size."""
        guide = self.guide(Handles(np.empty(0, np.int64), np.empty((0, 3))))
        guide._blank[:] = 0.0
        root = np.zeros(self.space.size)
        root[3] = 1.0
        return guide.seen_from(root, np.empty((0, 3)), given=True)


class ExpectedPose(NamedTuple):
    """A pose and the covariance of all its freedoms; `rooted` if the root is expected somewhere, not given."""

    mean: Float[Array, "size"]
    covariance: Float[Array, "freedoms freedoms"]
    rooted: bool

    @property
    def maps(self) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """Mean and covariance of the maps."""
        return self.mean[ROOT_SIZE:], self.covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:]


class UniversalGuide(Guide):
    """The prior for one set of handles; its state is what the network expects."""

    plan = Plan(finer=((ALL,),))

    def __init__(self, prior: UniversalPrior, handles: Handles, fps: float | None = None) -> None:
        self.space, self.handles, self.fps = prior.space, handles, fps
        self._weights, self._fit = prior.weights, prior.fit
        self._zeros = on_maps(prior.zeros, prior.fit.maps)
        fit, joints = prior.fit, handles.joints
        self._rows = fit.rows[joints]
        self._offsets = fit.shifts[joints] + np.einsum("hab,hb->ha", fit.turns[joints], handles.offsets)
        self._plain = fit.is_canonical
        self._blank = np.zeros(WIDTH, np.float32)
        self._blank[BONES : BONES + len(fit.bones)] = fit.bones
        self._head = self.space.skeleton.index("head") if "head" in self.space.skeleton.roles else -1
        self._free, self._turned, self._turns = False, np.empty(0, np.int64), np.empty((0, 3, 3))
        self._slack: Callable[[], Array] = lambda: np.zeros((ROOT_FREEDOMS, ROOT_FREEDOMS))
        self._gaze: Float[Array, "3"] | None = None  # the point that the face looks at
        self._before: Float[Array, "handles 3"] | None = None
        self._posture = ANY  # how what the network expects is shifted

    def ask(self, asked: Asked) -> None:
        """How fast handles move follows from where they were in the frame before."""
        self._before = None
        if self.fps is not None and len(asked.before) and len(self.handles):
            self._before = self.space.handle_positions(asked.before[0], self.handles)[0]
        if asked.facing is not None:
            self._face(asked.facing)

    def _face(self, facing: Facing) -> None:
        """Turned joints that the network knows, as it writes them, and what the face looks at."""
        known = self._fit.turned[facing.turned] >= 0
        joints = facing.turned[known]
        self._turned = self._fit.turned[joints]
        self._turns = facing.turns[known] @ np.swapaxes(self._fit.turns[joints], -1, -2)
        ahead = np.einsum("lb,lb->l", self._fit.turns[facing.looking][:, 2], facing.axes) > AHEAD
        faces = np.flatnonzero(ahead & (facing.looking == self._head))
        self._gaze = facing.at[faces[0]] if len(faces) else None

    def starts(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], *, free_root: bool
    ) -> list[Start]:
        """The expected pose; of a free root it is asked twice, unless the root of the frame before still fits."""
        self._free = free_root
        if not free_root:
            expected = self.seen_from(q, targets, given=True)
            return [Start(expected.mean, expected)]
        if len(targets) and farthest_gap(self.space, q, self.handles, targets) < NEAR:
            expected = self.seen_from(q, targets, given=False)
        else:
            guesses = self._guessed(q, targets)
            first = [self._roughly(*frame, targets) for frame in guesses]
            best = min(range(len(first)), key=lambda number: self._lacking(first[number], targets))
            expected = self.seen_from(first[best], targets, given=False)
            inputs, root = self._inputs(*guesses[best], targets, given=False), expected.covariance
            self._slack = cache(
                partial(self._slack_of, root[:ROOT_FREEDOMS, :ROOT_FREEDOMS].copy(), inputs, *guesses[best])
            )
        return [Start(expected.mean, expected)]

    def modes(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], *, free_root: bool
    ) -> list[tuple[float, Start]]:
        """What is expected of each posture that handles do not rule out, with its share."""
        self._free, frame = free_root, self._frame_of(q)
        if free_root:
            guesses = self._guessed(q, targets)
            frame = min(
                guesses, key=lambda one: self._lacking(self._roughly(one[0], one[1], targets), targets)
            )
        inputs = self._inputs(*frame, targets, given=not free_root)
        shares = posture_shares(self._weights, inputs)
        likely = np.flatnonzero(shares > RULED_OUT)
        return [(float(shares[k]), self._of_posture(k, q, frame, targets)) for k in likely.tolist()]

    def resumed(self, q: Float[Array, "size"], targets: Float[Array, "handles 3"]) -> ExpectedPose:
        """What is expected as seen from the root of a pose."""
        return self.seen_from(q, targets, given=not self._free)

    def seen_from(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], *, given: bool
    ) -> ExpectedPose:
        """What is expected of handles as seen from the root of a pose, which is given or only near."""
        expected = self._asked(*self._frame_of(q), targets, given=given)
        if given:
            expected.mean[:ROOT_SIZE] = q[:ROOT_SIZE]
        return expected

    def forms(
        self, q: Float[Array, "size"], state: ExpectedPose, steps: Steps
    ) -> tuple[tuple[Any, ...], Steps]:
        """One Gaussian over all freedoms."""
        del q
        root = state.mean[:ROOT_SIZE] if state.rooted else None
        return fixed(state.mean[ROOT_SIZE:], state.covariance, root=root), steps

    def expectation(
        self, q: Float[Array, "size"], state: ExpectedPose
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """Of the maps."""
        del q
        return state.maps

    def gaussian(self, q: Float[Array, "size"], state: ExpectedPose, *, stage: int = -1) -> Information:
        """What is expected, around a pose; a given root is without an opinion."""
        del stage
        gap = np.concatenate([np.zeros(ROOT_FREEDOMS), state.mean[ROOT_SIZE:] - q[ROOT_SIZE:]])
        if state.rooted:
            root_gap(q, state.mean, gap)
            precision = np.linalg.inv(state.covariance)
        else:
            precision = np.zeros_like(state.covariance)
            precision[ROOT_FREEDOMS:, ROOT_FREEDOMS:] = np.linalg.inv(state.maps[1])
        return Information(precision @ gap, precision)

    def spread(
        self, q: Float[Array, "size"], state: ExpectedPose
    ) -> tuple[Float[Array, "freedoms"], Float[Array, "freedoms freedoms"]]:
        """What is expected; a guessed root is claimed no closer than handles say it is."""
        covariance = state.covariance.copy()
        gap = np.concatenate([np.zeros(ROOT_FREEDOMS), state.mean[ROOT_SIZE:] - q[ROOT_SIZE:]])
        if state.rooted:
            root_gap(q, state.mean, gap)
            covariance[:ROOT_FREEDOMS, :ROOT_FREEDOMS] += self._slack()
        else:
            covariance[:ROOT_FREEDOMS], covariance[:, :ROOT_FREEDOMS] = 0.0, 0.0
            np.einsum("ii->i", covariance)[:ROOT_FREEDOMS] = FREE_ROOT
        return gap, covariance

    def pulled(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], state: ExpectedPose
    ) -> ExpectedPose:
        """What was expected stays: it was seen from where the root is expected."""
        return state if state.rooted else self.resumed(q, targets)

    def misfit(self, q: Float[Array, "size"], state: ExpectedPose) -> float:
        """Half the squared distance from what is expected, in its own metric."""
        mean, covariance = state.maps
        gap = q[ROOT_SIZE:] - mean
        return float(0.5 * gap @ np.linalg.solve(covariance, gap))

    # --- private ---------------------------------------------------------------------------------------------------

    def _frame_of(self, q: Float[Array, "size"]) -> tuple[Array, Array]:
        """Origin and axes of the canonical root of a pose."""
        axes = _axes_of(q) @ self._fit.root_turn.T
        return q[:3] - axes @ self._fit.root_shift, axes

    def _guessed(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"]
    ) -> list[tuple[Array, Array]]:
        """Frames at the middle of the handles: as the trunk is turned or looks, or as the pose at hand, or by sides."""
        origin, axes = self._frame_of(q)
        if len(targets):
            origin = targets.mean(axis=0)
        trunk = [turn[:, 0] for row, turn in zip(self._turned, self._turns, strict=True) if row in _TRUNK]
        if self._gaze is not None:
            trunk.append(np.cross(_UP, self._gaze - origin))
        known = {int(row): target for row, target in zip(self._rows, targets, strict=True)}
        across = [known[a] - known[b] for a, b in _PAIRS if a in known and b in known]
        sides = trunk or [axes[:, 0], *([np.sum(across, axis=0)] if across else [])]
        wide = [side for side in sides if np.hypot(side[0], side[2]) > SIDEWAYS]
        return [(origin, _heading(side)) for side in wide or [axes[:, 0]]]

    def _of_posture(self, posture: int, q: Array, frame: tuple[Array, Array], targets: Array) -> Start:
        """What is expected if the body has a posture, as seen from a given root or a guessed frame."""
        self._posture = self._weights.postures.shifts[posture]
        if self._free:
            q = self._roughly(*frame, targets)
            if len(targets) == 1:  # which does not say where the body faces
                self._face_as(frame[1], targets[0], q)
        expected = self.seen_from(q, targets, given=not self._free)
        self._posture = ANY
        return Start(expected.mean, expected)

    def _face_as(self, axes: Array, about: Array, q: Array) -> None:
        """Turn a pose about the vertical through a point, to face as axes do."""
        own = _axes_of(q)
        turn = _heading(axes[:, 0]) @ _heading(own @ self._fit.root_turn[0]).T
        q[:3] = about + turn @ (q[:3] - about)
        quaternion_of(turn @ own, q[3:ROOT_SIZE])

    def _slack_of(self, root: Array, inputs: Array, origin: Array, axes: Array) -> Float[Array, "6 6"]:
        """How much less sure handles are of a root than the network is, asked from where it predicts that."""
        named = asked(self._weights, inputs)
        _, turned = self._pose(named.mean, origin, axes, given=False)
        lacking = self._root_covariance(named, axes, turned)[0] - root
        values, vectors = np.linalg.eigh(0.5 * (lacking + lacking.T))
        return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)

    def _lacking(self, q: Float[Array, "size"], targets: Float[Array, "handles 3"]) -> float:
        return farthest_gap(self.space, q, self.handles, targets) if len(targets) else 0.0

    def _roughly(self, origin: Array, axes: Array, targets: Array) -> Float[Array, "size"]:
        """The pose expected from a frame that is guessed."""
        inputs = self._inputs(origin, axes, targets, given=False)
        return self._pose(mean_of(self._weights, inputs, self._posture), origin, axes, given=False)[0]

    def _asked(self, origin: Array, axes: Array, targets: Array, *, given: bool) -> ExpectedPose:
        inputs = self._inputs(origin, axes, targets, given=given)
        if self._gaze is not None:  # from where the head is expected without it
            near = self._pose(mean_of(self._weights, inputs, self._posture), origin, axes, given=given)[0]
            ahead = self._gaze - self.space.forward(near)[0][self._head]
            show_look(inputs, ahead / max(float(np.linalg.norm(ahead)), SHORTEST), axes)
        return self._expected(asked(self._weights, inputs, self._posture), origin, axes, given=given)

    def _inputs(self, origin: Array, axes: Array, targets: Array, *, given: bool) -> Float[Array, "inputs"]:
        """What is shown to the network."""
        inputs = self._blank.copy()
        inputs[FRAME], inputs[FRAME + 1 : FRAME + 4] = given, axes[1]
        show_turns(inputs, self._turned, self._turns, axes)
        if len(targets):
            show(inputs, self._rows, self._offsets, targets, origin, axes)
            if not given and targets[:, 1].min() > LOWEST and targets[:, 1].max() < HIGHEST:
                inputs[FLOOR], inputs[FLOOR + 1] = 1.0, origin[1]
            if self._before is not None:
                show_velocities(inputs, self._rows, (targets - self._before) * self.fps, axes)
        return inputs

    def _expected(self, named: NamedPrediction, origin: Array, axes: Array, *, given: bool) -> ExpectedPose:
        """The network's Gaussian in the world and on this body."""
        mean, root = self._pose(named.mean, origin, axes, given=given)
        placed, into = self._root_covariance(named, axes, root)
        factors, variances = named.factors, named.variances
        low = np.empty((self.space.freedoms, factors.shape[1]))
        low[:ROOT_FREEDOMS] = into @ factors[:ROOT_FREEDOMS]
        low[ROOT_FREEDOMS:] = (
            factors[ROOT_FREEDOMS:] if self._plain else self._fit.maps @ factors[ROOT_FREEDOMS:]
        )
        covariance = low @ low.T
        own = covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:]
        if self._plain:
            np.einsum("ii->i", own)[:] += variances[ROOT_FREEDOMS:]
        else:
            own += (self._fit.maps * variances[ROOT_FREEDOMS:]) @ self._fit.maps.T
            np.einsum("ii->i", own)[:] += _SHARED
        own += self._zeros.maps
        covariance[:ROOT_FREEDOMS, :ROOT_FREEDOMS] = placed
        if not given:
            across = into[:, 3:] @ self._zeros.across
            covariance[:ROOT_FREEDOMS, ROOT_FREEDOMS:] += across
            covariance[ROOT_FREEDOMS:, :ROOT_FREEDOMS] += across.T
        return ExpectedPose(mean, covariance, not given)

    def _root_covariance(self, named: NamedPrediction, axes: Array, root: Array) -> tuple[Array, Array]:
        """Of the root in the world, with its joint zero; and how the target's root follows from the canonical one."""
        into = _root_jacobian(axes, root, self._fit.root_turn, self._fit.root_shift)
        low, turns = into @ named.factors[:ROOT_FREEDOMS], into[:, 3:]
        own = low @ low.T + (into * named.variances[:ROOT_FREEDOMS]) @ into.T
        return own + turns @ self._zeros.root @ turns.T, into

    def _pose(self, named: Array, origin: Array, axes: Array, *, given: bool) -> tuple[Array, Array]:
        """A pose vector from what the network names, and the canonical root's axes."""
        root = axes if given else axes @ _from_columns(named[3:9]) @ self._zeros.turn
        place = origin if given else origin + axes @ named[:3]
        q = np.empty(self.space.size)
        q[:3] = place + root @ self._fit.root_shift
        quaternion_of(root @ self._fit.root_turn, q[3:ROOT_SIZE])
        q[ROOT_SIZE:] = self._zeros.shift
        q[ROOT_SIZE:] += named[9:] if self._plain else self._fit.maps @ named[9:]
        return q, root


_SHARED = 2.5e-3  # rad^2 that other bodies' joints may differ by: their hinges lie a little otherwise


def _heading(left: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """Axes that stand upright with this on their left."""
    size = float(np.hypot(left[0], left[2]))
    x, z = (left[0] / size, left[2] / size) if size > 1e-9 else (1.0, 0.0)
    return np.array([[x, 0.0, -z], [0.0, 1.0, 0.0], [z, 0.0, x]])


@compiled
def _from_columns(six: Float[Array, "6"]) -> Float[Array, "3 3"]:
    """A rotation from its first two columns, made orthonormal."""
    turn = np.empty((3, 3))
    size = max(np.sqrt(six[0] ** 2 + six[1] ** 2 + six[2] ** 2), 1e-9)
    along = (six[0] * six[3] + six[1] * six[4] + six[2] * six[5]) / size
    for i in range(3):
        turn[i, 0] = six[i] / size
        turn[i, 1] = six[3 + i] - along * turn[i, 0]
    size = max(np.sqrt(turn[0, 1] ** 2 + turn[1, 1] ** 2 + turn[2, 1] ** 2), 1e-9)
    for i in range(3):
        turn[i, 1] /= size
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        turn[i, 2] = turn[j, 0] * turn[k, 1] - turn[k, 0] * turn[j, 1]
    return turn


@compiled
def _axes_of(q: Float[Array, "size"]) -> Float[Array, "3 3"]:
    """The axes of a pose's root."""
    axes = np.empty((3, 3))
    m = matrix_from_wxyz(q[3], q[4], q[5], q[6])
    for i in range(3):
        for j in range(3):
            axes[i, j] = m[3 * i + j]
    return axes


def _root_jacobian(axes: Array, root: Array, turn: Array, shift: Array) -> Float[Array, "6 6"]:
    """Of the target's root by the canonical one's: its place along F's axes, its turn about its own."""
    x, y, z = shift
    lever = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    into = np.zeros((6, 6))
    into[:3, :3], into[:3, 3:], into[3:, 3:] = axes, -root @ lever, turn.T
    return into
