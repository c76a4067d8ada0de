"""The universal prior: from any handles on any humanoid to a Gaussian over the whole pose, its root included.

A network reads handle positions, relative to a frame F, and bone lengths; it returns the mean of the pose and a
covariance that depends on it. A given root is F itself. A free root is first guessed from the handles; the network
predicts its position and is evaluated again from there. The second result is the expected root and pose, with their
covariance.
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
from poise.priors.predicting import carried, farthest_gap
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
from poise.priors.universal.zeros import Performers, Zeros, of_anyone, of_bones, on_maps
from poise.savable import Savable
from poise.schema import Declared, Numbers, Schema, flag
from poise.skeleton.kernels import ROOT_FREEDOMS, ROOT_SIZE, matrix_from_wxyz
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import JointLimits, Skeleton
from poise.types import Array

NEAR = 0.12  # metres: largest handle residual at which the previous root is reused
SEVERAL = 4  # handles that say where a body of the frame before went; so do both feet
SHOWN = ("head", "left_hand", "right_hand", "left_foot", "right_foot")  # handles to learn joint zeros from
APART = 0.5  # seconds between the frames from which joint zeros are learned
LOWEST, HIGHEST = (
    -0.1,
    2.5,
)  # metres: if all handles are between these heights, the floor is at y = 0
RULED_OUT = 0.03  # postures less likely than this are skipped
SIDEWAYS = 0.05  # metres: smallest distance between left and right handles that determines the heading
FINISH = {
    "Hand": 0.85, "Finger": 0.85, "Thumb": 0.85, "Back": 0.85, "Spine": 0.85, "Foot": 1.1, "Toe": 1.1, "Leg": 1.25,
    "Neck": 1.25, "Head": 1.25,
}  # factors on the deviations of joints when handles are met, not on those reported; chosen by errors  # fmt: skip
AHEAD = 0.85  # cosine between a look-at axis and the face's own above which they count as the same
_PAIRS = tuple(
    (row, layout.POINTS.index(name.replace("Left", "Right")))
    for row, name in enumerate(layout.POINTS)
    if name.startswith("Left")
)
_FEET = {layout.POINTS.index("LeftFoot"), layout.POINTS.index("RightFoot")}
_UP = np.array([0.0, 1.0, 0.0])
_TRUNK = tuple(layout.TURNS.index(name) for name in ("Hips", "Spine1", "Head"))
_ZEROS = layout.FREEDOMS - 3
_PERFORMER: Declared = {
    "mean": Numbers(axes=f"{_ZEROS}"), "spread": Numbers(axes=f"{_ZEROS} {_ZEROS}", definite=True),
}  # fmt: skip
_PERFORMERS: Declared = {
    "bodies": Numbers(axes="bodies joints 3"), "means": Numbers(axes=f"bodies {_ZEROS}"),
    "spreads": Numbers(axes=f"bodies {_ZEROS} {_ZEROS}", definite=True),
}  # fmt: skip


class UniversalPrior(Savable):
    """A prior learned from many people, on one skeleton or on Poise's own body."""

    kind = "universal"
    about = "the universal prior, which Poise ships; it learns the joint calibration of your clips"
    Options = PriorOptions
    held_out = HeldOut(0.257, 0.226, 1.08, (0.577, 1.0, 1.64, 2.52, 3.3, 5.5))
    """On the training performers, with joint zeros predicted from their bones, by tools/calibrate.py."""
    schema = Schema(
        {"performer": flag},
        lambda header, _lengths: {
            **(_PERFORMER if header["performer"] else {}), **(_PERFORMERS if header["performers"] else {})
        },
        later={"performers": (flag, False)},
    )  # fmt: skip

    def __init__(
        self,
        skeleton: Skeleton | None = None,
        zeros: Zeros | None = None,
        performers: Performers | None = None,
    ) -> None:
        skeleton, self.weights = skeleton or Body().skeleton, shipped()
        self.fit = fitted(skeleton, self.weights)
        self.space = PoseSpace(skeleton, references=self.fit.references, moving=self.fit.moving)
        expected = of_bones(skeleton, self.weights) if self.fit.is_canonical else of_anyone(self.weights)
        own = performers.zeros_of(skeleton) if performers is not None else None
        self.zeros, self._learned, self._performers = own or zeros or expected, zeros, performers

    @classmethod
    def learn(
        cls, motions: Sequence[Motion], *, progress: Callable[[float], None] = lambda _: None
    ) -> UniversalPrior:
        """The prior on the clips' skeleton, with the joint zeros of their performers."""
        skeleton, _ = common_frames(motions)
        seen = [cls(motion.skeleton)._seen(motion) for motion in motions]
        bodies, whose = np.unique(
            [motion.skeleton.offsets.round(4) for motion in motions], axis=0, return_inverse=True
        )
        learned = [
            cls(motions[mine[0]].skeleton)._zeros_after([seen[k] for k in mine])
            for mine in (np.flatnonzero(whose.ravel() == body) for body in range(len(bodies)))
        ]
        progress(1.0)
        if len(learned) == 1:
            return cls(skeleton, learned[0])
        performers = Performers(bodies, *map(np.stack, zip(*learned, strict=True)))
        return cls(skeleton, cls(skeleton)._zeros_after(seen), performers)

    @classmethod
    def of_people(cls) -> UniversalPrior:
        """The prior on a typical body."""
        return cls(typical_body(shipped()))

    @classmethod
    def restored(cls, stored: Stored) -> UniversalPrior:
        """Create the prior on the stored body."""
        arrays, header = stored.arrays, stored.header
        return cls(
            stored.space.skeleton,
            Zeros(*(arrays[name] for name in Zeros._fields)) if header["performer"] else None,
            Performers(*(arrays[name] for name in Performers._fields)) if header["performers"] else None,
        )

    def arrays(self) -> dict[str, Array]:
        """The performers' joint zeros, if learned from clips; the weights come with Poise."""
        known = (self._learned, self._performers)
        return {name: array for one in known if one is not None for name, array in one._asdict().items()}

    def header(self) -> dict[str, Any]:
        """Whether joint zeros were learned from clips."""
        return {"performer": self._learned is not None, "performers": self._performers is not None}

    @property
    def summary(self) -> str:
        """A short description of the training data."""
        return f"{len(self.weights.header['learned_from'])} recordings of people, for any humanoid"

    @property
    def credit(self) -> str:
        """The training database."""
        return str(self.weights.header["database"])

    @cached_property
    def limits(self) -> JointLimits:
        """The range of all recordings, mapped to this skeleton."""
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
        """The expected pose of an upright body without any handles."""
        return self._unasked.mean[ROOT_SIZE:]

    def on_body(self, skeleton: Skeleton) -> UniversalPrior:
        """The same prior on another skeleton; joint zeros are those of its performer, if learned, or of all."""
        return kept_from(self, UniversalPrior(skeleton, self._learned, self._performers))

    def guide(self, handles: Handles, *, fps: float | None = None) -> UniversalGuide:
        """Return the guide for these handles; with a frame rate, it uses their velocities."""
        return UniversalGuide(self, handles, fps)

    def known_poses(self) -> tuple[Float[Array, "poses maps"], Float[Array, "poses 3"]]:
        """A few poses far from each other, and their up directions."""
        return self.weights.poses @ self.fit.maps.T, self.weights.ups @ self.fit.root_turn

    def log_likelihood(self, q: Float[Array, "size"]) -> float:
        """The log density of a pose without any handles."""
        _, covariance = self._unasked.maps
        gap = self.space.checked(q)[ROOT_SIZE:] - self.mean
        _, volume = np.linalg.slogdet(covariance)
        return float(-0.5 * (gap @ np.linalg.solve(covariance, gap) + volume + len(gap) * np.log(2 * np.pi)))

    def percentile(self, q: Float[Array, "size"]) -> float:
        """The percentage of recorded poses that are less likely than this one."""
        return float(np.interp(self.log_likelihood(q), self.weights.quantiles, np.arange(101)))

    def _seen(self, motion: Motion) -> tuple[Float[Array, "frames maps"], Float[Array, "frames maps"]]:
        """Recorded maps, and those expected given a clip's handles, every `APART` seconds."""
        handles, every = self.space.handles(SHOWN), max(1, round(motion.fps * APART))
        poses = self.space.q_from_frames(motion.root_positions[::every], motion.rotations[::every])
        guide, shown = self.guide(handles), self.space.points(poses, handles)
        seen = [guide.seen_from(q, targets, given=True) for q, targets in zip(poses, shown, strict=True)]
        return poses[:, ROOT_SIZE:], np.stack([one.mean[ROOT_SIZE:] for one in seen])

    def _zeros_after(self, seen: Sequence[tuple[Array, Array]]) -> Zeros:
        """The joint zeros after recorded and expected maps were seen."""
        gaps = _gaps(*map(np.concatenate, zip(*seen, strict=True)))
        middle = np.median(gaps, axis=0)
        noise = (gaps - middle).T @ (gaps - middle) / len(gaps) + _SHARED * np.eye(len(middle))
        rows = np.pad(self.fit.maps, ((0, 0), (3, 0)))
        return self.zeros.after(rows, middle + rows @ self.zeros.mean, noise / len(gaps))

    @cached_property
    def _unasked(self) -> ExpectedPose:
        """The prediction for an upright body of any size, without handles."""
        guide = self.guide(Handles(np.empty(0, np.int64), np.empty((0, 3))))
        guide._blank[:] = 0.0
        root = np.zeros(self.space.size)
        root[3] = 1.0
        return guide.seen_from(root, np.empty((0, 3)), given=True)


def _gaps(maps: Float[Array, "frames maps"], expected: Float[Array, "frames maps"]) -> Array:
    """Differences from the expected maps; of a rotation's two maps, the one that differs as in the first frame.

    A joint that was calibrated half a turn away would else differ by pi in one frame and by -pi in the next.
    """
    turns = maps.reshape(len(maps), -1, 3)
    angle = np.maximum(np.linalg.norm(turns, axis=-1, keepdims=True), 1e-9)
    gaps, others = (one - expected.reshape(turns.shape) for one in (turns, turns * (1 - 2 * np.pi / angle)))
    apart, other_apart = (np.linalg.norm(one - gaps[0], axis=-1, keepdims=True) for one in (gaps, others))
    return np.asarray(np.where(other_apart < apart, others, gaps).reshape(maps.shape))


class ExpectedPose(NamedTuple):
    """A pose and the covariance of all its degrees of freedom; `rooted` if the root is predicted, not given."""

    mean: Float[Array, "size"]
    covariance: Float[Array, "freedoms freedoms"]
    rooted: bool

    @property
    def maps(self) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """Mean and covariance of the maps."""
        return self.mean[ROOT_SIZE:], self.covariance[ROOT_FREEDOMS:, ROOT_FREEDOMS:]


class UniversalGuide(Guide):
    """The prior for one set of handles; its state is the network's prediction."""

    plan = Plan(finer=((ALL,),))

    def __init__(self, prior: UniversalPrior, handles: Handles, fps: float | None = None) -> None:
        self.space, self.handles, self.fps = prior.space, handles, fps
        self._weights, self._fit = prior.weights, prior.fit
        self._zeros = on_maps(prior.zeros, prior.fit.maps)
        fit, joints = prior.fit, handles.joints
        self._rows = fit.rows[joints]
        self._says_where = len(joints) >= SEVERAL or set(self._rows.tolist()) >= _FEET
        self._offsets = fit.shifts[joints] + np.einsum("hab,hb->ha", fit.turns[joints], handles.offsets)
        self._plain, self._finish = fit.is_canonical, _finish_factors(fit.maps)
        self._blank = np.zeros(WIDTH, np.float32)
        self._blank[BONES : BONES + len(fit.bones)] = fit.bones
        self._head = self.space.skeleton.index("head") if "head" in self.space.skeleton.roles else -1
        self._free, self._turned, self._turns = False, np.empty(0, np.int64), np.empty((0, 3, 3))
        self._slack: Callable[[], Array] = lambda: np.zeros((ROOT_FREEDOMS, ROOT_FREEDOMS))
        self._gaze: Float[Array, "3"] | None = None  # the point that the face looks at
        self._before: Float[Array, "handles 3"] | None = None
        self._posture = ANY  # shifts of the network for a posture

    def ask(self, asked: Asked) -> None:
        """Use the handles' previous positions for their velocities, and orientation targets."""
        self._before = None
        if self.fps is not None and len(asked.before) and len(self.handles):
            self._before = self.space.handle_positions(asked.before[0], self.handles)[0]
        if asked.facing is not None:
            self._face(asked.facing)

    def _face(self, facing: Facing) -> None:
        """Set the orientation targets of joints that the network knows, in its form, and the gaze target."""
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
        """The expected pose; with a free root the network is evaluated twice, unless the previous root still fits."""
        self._free = free_root
        if not free_root:
            expected = self.seen_from(q, targets, given=True)
            return [Start(expected.mean, expected)]
        near = self._carried(q, targets)
        if near is not None:
            expected = self.seen_from(near, targets, given=False)
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
        """The prediction for each posture that the handles do not rule out, with its probability."""
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
        """The prediction relative to the root of a pose."""
        return self.seen_from(q, targets, given=not self._free)

    def seen_from(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"], *, given: bool
    ) -> ExpectedPose:
        """The prediction for handles relative to the root of a pose, which is given or only approximate."""
        expected = self._asked(*self._frame_of(q), targets, given=given)
        if given:
            expected.mean[:ROOT_SIZE] = q[:ROOT_SIZE]
        return expected

    def forms(
        self, q: Float[Array, "size"], state: ExpectedPose, steps: Steps
    ) -> tuple[tuple[Any, ...], Steps]:
        """One Gaussian over all degrees of freedom; its deviations are those that meet handles best."""
        del q
        root = state.mean[:ROOT_SIZE] if state.rooted else None
        return fixed(state.mean[ROOT_SIZE:], state.covariance * self._finish, root=root), steps

    def expectation(
        self, q: Float[Array, "size"], state: ExpectedPose
    ) -> tuple[Float[Array, "maps"], Float[Array, "maps maps"]]:
        """Mean and covariance of the maps."""
        del q
        return state.maps

    def gaussian(self, q: Float[Array, "size"], state: ExpectedPose, *, stage: int = -1) -> Information:
        """The prediction as a Gaussian around a pose; without information about a given root."""
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
        """The prediction; the variance of a guessed root is at least that which the handles justify."""
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
        """The previous prediction, if it was made from the expected root; else a new one."""
        return state if state.rooted else self.resumed(q, targets)

    def misfit(self, q: Float[Array, "size"], state: ExpectedPose) -> float:
        """Half the squared Mahalanobis distance from the prediction."""
        mean, covariance = state.maps
        gap = q[ROOT_SIZE:] - mean
        return float(0.5 * gap @ np.linalg.solve(covariance, gap))

    # --- private ---------------------------------------------------------------------------------------------------

    def _frame_of(self, q: Float[Array, "size"]) -> tuple[Array, Array]:
        """Origin and axes of the canonical root of a pose."""
        axes = _axes_of(q) @ self._fit.root_turn.T
        return q[:3] - axes @ self._fit.root_shift, axes

    def _carried(self, q: Float[Array, "size"], targets: Float[Array, "handles 3"]) -> Array | None:
        """The pose, moved along with its handles, if it still fits; few handles do not say where a body went."""
        if self._says_where:
            near, lacking = carried(self.space, q, self.handles, targets)
        else:
            near, lacking = q, self._lacking(q, targets) if len(targets) else np.inf
        return near if lacking < NEAR else None

    def _guessed(
        self, q: Float[Array, "size"], targets: Float[Array, "handles 3"]
    ) -> list[tuple[Array, Array]]:
        """Frames at the mean of the handles; headings from trunk rotations, gaze, left-right handles or the pose."""
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
        """The prediction for one posture, relative to a given root or a guessed frame."""
        self._posture = self._weights.postures.shifts[posture]
        if self._free:
            q = self._roughly(*frame, targets)
            if len(targets) == 1:  # which does not determine the heading
                self._face_as(frame[1], targets[0], q)
        expected = self.seen_from(q, targets, given=not self._free)
        self._posture = ANY
        return Start(expected.mean, expected)

    def _face_as(self, axes: Array, about: Array, q: Array) -> None:
        """Rotate a pose about the vertical through a point, to the heading of `axes`."""
        own = _axes_of(q)
        turn = _heading(axes[:, 0]) @ _heading(own @ self._fit.root_turn[0]).T
        q[:3] = about + turn @ (q[:3] - about)
        quaternion_of(turn @ own, q[3:ROOT_SIZE])

    def _slack_of(self, root: Array, inputs: Array, origin: Array, axes: Array) -> Float[Array, "6 6"]:
        """The root covariance that the handles justify beyond the network's, evaluated from its own prediction."""
        named = asked(self._weights, inputs)
        _, turned = self._pose(named.mean, origin, axes, given=False)
        lacking = self._root_covariance(named, axes, turned)[0] - root
        values, vectors = np.linalg.eigh(0.5 * (lacking + lacking.T))
        return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)

    def _lacking(self, q: Float[Array, "size"], targets: Float[Array, "handles 3"]) -> float:
        return farthest_gap(self.space, q, self.handles, targets) if len(targets) else 0.0

    def _roughly(self, origin: Array, axes: Array, targets: Array) -> Float[Array, "size"]:
        """The expected pose relative to a guessed frame."""
        inputs = self._inputs(origin, axes, targets, given=False)
        return self._pose(mean_of(self._weights, inputs, self._posture), origin, axes, given=False)[0]

    def _asked(self, origin: Array, axes: Array, targets: Array, *, given: bool) -> ExpectedPose:
        inputs = self._inputs(origin, axes, targets, given=given)
        if self._gaze is not None:  # from the head position expected without it
            near = self._pose(mean_of(self._weights, inputs, self._posture), origin, axes, given=given)[0]
            ahead = self._gaze - self.space.forward(near)[0][self._head]
            show_look(inputs, ahead / max(float(np.linalg.norm(ahead)), SHORTEST), axes)
        return self._expected(asked(self._weights, inputs, self._posture), origin, axes, given=given)

    def _inputs(self, origin: Array, axes: Array, targets: Array, *, given: bool) -> Float[Array, "inputs"]:
        """The input vector of the network."""
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
        """The root's covariance in the world, including its joint zero, and the Jacobian from the canonical root."""
        into = _root_jacobian(axes, root, self._fit.root_turn, self._fit.root_shift)
        low, turns = into @ named.factors[:ROOT_FREEDOMS], into[:, 3:]
        own = low @ low.T + (into * named.variances[:ROOT_FREEDOMS]) @ into.T
        return own + turns @ self._zeros.root @ turns.T, into

    def _pose(self, named: Array, origin: Array, axes: Array, *, given: bool) -> tuple[Array, Array]:
        """The pose vector of a network output, and the canonical root's axes."""
        root = axes if given else axes @ _from_columns(named[3:9]) @ self._zeros.turn
        place = origin if given else origin + axes @ named[:3]
        q = np.empty(self.space.size)
        q[:3] = place + root @ self._fit.root_shift
        quaternion_of(root @ self._fit.root_turn, q[3:ROOT_SIZE])
        q[ROOT_SIZE:] = self._zeros.shift
        q[ROOT_SIZE:] += named[9:] if self._plain else self._fit.maps @ named[9:]
        return q, root


_SHARED = 2.5e-3  # rad^2: additional joint variance of other bodies, whose joint axes differ slightly


def _finish_factors(maps: Float[Array, "maps canonical"]) -> Float[Array, "freedoms freedoms"]:
    """Factors on the covariance of a body whose maps are linear in the canonical ones, to meet handles."""
    known = [max((FINISH[word] for word in FINISH if word in name), default=1.0) for name in layout.MOVING]
    parts = np.abs(maps)
    own = (parts @ np.repeat(known, 3) + SHORTEST) / (parts.sum(axis=1) + SHORTEST)
    factors = np.concatenate([np.ones(ROOT_FREEDOMS), own])
    return np.outer(factors, factors)


def _heading(left: Float[Array, "3"]) -> Float[Array, "3 3"]:
    """Upright axes with this direction on their left."""
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
    """Jacobian of the target's root by the canonical one's: position in F's axes, rotation in its own."""
    x, y, z = shift
    lever = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    into = np.zeros((6, 6))
    into[:3, :3], into[:3, 3:], into[3:, 3:] = axes, -root @ lever, turn.T
    return into
