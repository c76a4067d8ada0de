"""The universal prior: learned from many people, for any handles on any humanoid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.motion.motion import Motion
from poise.performer.bodies import Body
from poise.priors.density import log_density
from poise.priors.evidence import HeldOut, kept_from
from poise.priors.poses import common_frames
from poise.priors.predicting import Predicted
from poise.priors.registry import PriorOptions, Stored
from poise.priors.terms import MotionModel, Targets
from poise.priors.universal import layout
from poise.priors.universal.body import Performers, Zeros, fitted, of_anyone, of_bones, typical_body
from poise.priors.universal.guide import SHARED, UniversalGuide
from poise.priors.universal.network import shipped
from poise.savable import Savable
from poise.schema import Declared, Numbers, Schema, flag
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.limits import table, within_people
from poise.skeleton.pose_space import Handles, PoseSpace
from poise.skeleton.skeleton import JointLimits, Skeleton
from poise.types import Array, PoseVector

SHOWN = ("head", "left_hand", "right_hand", "left_foot", "right_foot")  # handles to learn joint zeros from
APART = 0.5  # seconds between the frames from which joint zeros are learned
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
    stands = True  # without handles: people stand at ease, not as in the mean of their recordings
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
        skeleton, self.weights = Body().skeleton if skeleton is None else skeleton, shipped()
        if not isinstance(skeleton, Skeleton):
            raise InvalidValueError(
                f"the universal prior poses a poise.Skeleton, such as motion.skeleton; got {skeleton!r:.40}"
            )
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
        offsets = [motion.skeleton.offsets.round(4) for motion in motions]
        bodies, whose = np.unique(offsets, axis=0, return_inverse=True)
        learned = []
        for body in range(len(bodies)):
            mine = np.flatnonzero(whose.ravel() == body)
            learned.append(cls(motions[mine[0]].skeleton)._zeros_after([seen[k] for k in mine]))
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
        zeros = Zeros(*(arrays[name] for name in Zeros._fields)) if header["performer"] else None
        several = Performers(*(arrays[name] for name in Performers._fields)) if header["performers"] else None
        return cls(stored.space.skeleton, zeros, several)

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
        """The range of all recordings, mapped to this skeleton, within what people reach."""
        least, most = self.weights.lower.copy(), self.weights.upper.copy()
        for name, range_ in table()["shares"].items():  # of spine and neck
            least[layout.MOVING.index(name)], most[layout.MOVING.index(name)] = np.radians(range_).T
        middle, half = (least + most).ravel() / 2, (most - least).ravel() / 2
        bounds = np.zeros((2, len(self.space.skeleton), 3))
        centre, reach = self.fit.maps @ middle, np.abs(self.fit.maps) @ half
        bounds[:, self.space.moving] = np.stack([centre - reach, centre + reach]).reshape(2, -1, 3)
        return within_people(JointLimits(self.space.references, *bounds), self.space.skeleton)

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

    def motion_model(self, targets: Targets, *, frames: int, fps: float) -> MotionModel | None:
        """How people move from stance to stance, if feet are asked to stand: the motion prior."""
        from poise.priors.motion.points import stepping  # it needs the weights of this prior

        return stepping(self.space, targets, frames=frames, fps=fps)

    def known_poses(self) -> tuple[Float[Array, "poses maps"], Float[Array, "poses 3"]]:
        """A few poses far from each other, and their up directions."""
        return self.weights.poses @ self.fit.maps.T, self.weights.ups @ self.fit.root_turn

    def log_likelihood(self, q: PoseVector) -> float:
        """The log density of a pose without any handles."""
        return log_density(self._unasked.maps, self.space.checked(q)[ROOT_SIZE:])

    def percentile(self, q: PoseVector) -> float:
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
        noise = (gaps - middle).T @ (gaps - middle) / len(gaps) + SHARED * np.eye(len(middle))
        rows = np.pad(self.fit.maps, ((0, 0), (3, 0)))
        return self.zeros.after(rows, middle + rows @ self.zeros.mean, noise / len(gaps))

    @cached_property
    def _unasked(self) -> Predicted:
        """The prediction for an upright body of any size, without handles."""
        guide = UniversalGuide(self, Handles(np.empty(0, np.int64), np.empty((0, 3))), sized=False)
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
