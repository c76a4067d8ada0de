"""What a model keeps of its clips: some training frames, and its calibration on held-out ones.

The predicted standard deviation follows from the model's own Gaussian. The distance of the handles from their expected
positions (the *novelty*, a mean of squares in units of the model's deviations) determines how much it must be widened:
the ratio of error to prediction grows with a power of it. `solvers.calibration` fits this when a model is learned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from jaxtyping import Float, Int

from poise.errors import InvalidValueError
from poise.motion.motion import Motion
from poise.priors.poses import motion_hash
from poise.schema import Declared, Indices, Numbers, Schema, real, record, row, several, text
from poise.skeleton.pose_space import PoseSpace
from poise.types import Array, PoseVector

MOST = 400  # largest number of frames that a model keeps, evenly spaced
LIMBS = {
    "left arm": ("left_shoulder", "left_upper_arm", "left_forearm", "left_hand"),
    "right arm": ("right_shoulder", "right_upper_arm", "right_forearm", "right_hand"),
    "left leg": ("left_thigh", "left_shin", "left_foot", "left_toes"),
    "right leg": ("right_thigh", "right_shin", "right_foot", "right_toes"),
    "torso": ("spine", "chest", "neck", "head"),
}


class KnownFrame(NamedTuple):
    """A training frame, and the distance of its joints from a pose, in metres."""

    clip: str
    frame: int
    distance: float


class LearnedClip(NamedTuple):
    """A training clip."""

    name: str
    digest: str
    licence: str


@dataclass(frozen=True, eq=False)
class KnownFrames:
    """A selection of a model's training frames."""

    poses: Float[Array, "known size"]
    clips: Int[Array, "known"]
    numbers: Int[Array, "known"]
    sources: tuple[LearnedClip, ...]

    @classmethod
    def of(cls, space: PoseSpace, motions: Sequence[Motion], licence: str = "") -> KnownFrames:
        """Select frames of clips, in the coordinates of a model's space."""
        clips = np.repeat(np.arange(len(motions)), [len(motion) for motion in motions])
        numbers = np.concatenate([np.arange(len(motion)) for motion in motions])
        kept = np.unique(np.linspace(0, len(clips) - 1, MOST).astype(int))
        poses = np.concatenate([space.q_from_frames(m.root_positions, m.rotations) for m in motions])[kept]
        sources = tuple(LearnedClip(motion.name, motion_hash(motion), licence) for motion in motions)
        return cls(poses, clips[kept], numbers[kept], sources)

    def nearest(self, space: PoseSpace, q: PoseVector, count: int = 3) -> list[KnownFrame]:
        """The frames with the nearest joints, relative to the pelvis and its heading; one of each neighbourhood."""
        gaps = np.sqrt((self._gaps(space, q) ** 2).mean(axis=1))
        found: list[int] = []
        for number in np.argsort(gaps):
            clip, frame = self.clips[number], self.numbers[number]
            if all(clip != self.clips[other] or abs(frame - self.numbers[other]) > 10 for other in found):
                found.append(int(number))
            if len(found) == count:
                break
        names = [self.sources[self.clips[n]].name for n in found]
        return [
            KnownFrame(name, int(self.numbers[n]), float(gaps[n]))
            for name, n in zip(names, found, strict=True)
        ]

    def odd_limb(self, space: PoseSpace, q: PoseVector) -> str:
        """The limb that is farthest from that of the nearest frame."""
        gaps, skeleton, known = self._gaps(space, q), space.skeleton, dict[str, float]()
        own = gaps[np.argmin((gaps**2).mean(axis=1))]
        for limb, roles in LIMBS.items():
            if joints := [skeleton.index(role) for role in roles if role in skeleton.roles]:
                known[limb] = float((own[joints] ** 2).mean())
        return max(known, key=known.__getitem__, default="pose")

    def _gaps(self, space: PoseSpace, q: PoseVector) -> Float[Array, "known joints"]:
        """Distances of joints, relative to the root and rotated about the vertical to one heading."""
        positions, matrices = space.forward(np.vstack([q, self.poses]))
        places = positions - positions[:, :1]
        ahead = np.arctan2(matrices[:, 0, 0, 2], matrices[:, 0, 2, 2])
        cosine, sine = np.cos(ahead)[:, None], np.sin(ahead)[:, None]
        x, y, z = places[..., 0], places[..., 1], places[..., 2]
        places = np.stack([cosine * x - sine * z, y, sine * x + cosine * z], axis=-1)
        return np.asarray(np.linalg.norm(places[1:] - places[0], axis=-1))

    def arrays(self) -> dict[str, Array]:
        """The arrays of a model file."""
        poses = self.poses.astype(np.float32)
        return {"known.poses": poses, "known.clips": self.clips, "known.numbers": self.numbers}

    @classmethod
    def restored(
        cls, arrays: Mapping[str, Array], header: Mapping[str, Any], space: PoseSpace
    ) -> KnownFrames:
        """Create it from the contents of a file, after a check."""
        sources = SCHEMA.checked_header(header)["sources"]
        lengths = {"size": space.size, "sources": len(sources)}
        poses, clips, numbers = SCHEMA.checked_arrays(arrays, {}, lengths).values()
        return cls(poses, clips, numbers, tuple(LearnedClip(*source) for source in sources))


_DECLARED: Declared = {
    "known.poses": Numbers(axes="known size"),
    "known.clips": Indices(axes="known", below="sources"),
    "known.numbers": Indices(axes="known"),
}
SCHEMA = Schema(
    {"sources": several(row(text(), text(), text()), least=1)}, lambda _header, _lengths: _DECLARED
)

Kept = TypeVar("Kept")

SHARES = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
KEPT = ("held_out", "known_frames")
STEEPEST = 0.5  # errors grow no faster than the distance from the expected positions
SMALLEST = 1e-4  # lower bound of ratios and novelties in logarithms
BELIEF = 3.0  # pseudo-count: rows of typical novelty added to the observed ones


class HeldOut(NamedTuple):
    """The calibration of a model's predicted deviations from held-out frames."""

    slope: float  # power of the relative novelty by which deviations are widened
    typical: float
    factor: float  # factor on all deviations
    multiples: tuple[float, ...]  # in widened deviations: radii that contain `SHARES` of all joints

    @classmethod
    def of(
        cls,
        errors: Float[Array, "frames joints"],
        claims: Float[Array, "frames joints"],
        squares: Float[Array, "frames"],
        rows: Float[Array, "frames"],
    ) -> HeldOut:
        """Fit to joint errors, predicted deviations (NaN if determined), and the sums and counts of the novelty."""
        ratios = np.maximum(errors / claims, SMALLEST)
        typical = max(float(np.median(squares / rows)), SMALLEST)
        logs = np.log(_novelty(squares, rows, typical))
        against, off = 0.5 * np.log(np.nanmean(ratios**2, axis=1)), logs - logs.mean()
        slope = min(max(float(off @ against / max(off @ off, 1e-9)), 0.0), STEEPEST)
        left = ratios / np.exp(slope * logs)[:, None]
        factor = float(np.sqrt(np.nanmean(left**2) / 3))
        return cls(slope, typical, factor, tuple(np.nanquantile(left / factor, SHARES).tolist()))

    def widening(self, squares: float, rows: float) -> float:
        """The widening factor for this many rows of handles and their sum of squared distances."""
        return float(self.factor * _novelty(squares, rows, self.typical) ** self.slope)

    def multiple(self, share: float) -> float:
        """The radius, in standard deviations, that contains this share of all joints."""
        if not 0.0 < share <= SHARES[-1]:
            raise InvalidValueError(f"the share must be between 0 and {SHARES[-1]:g}; got {share:g}")
        return float(np.interp(share, (0.0, *SHARES), (0.0, *self.multiples)))

    @classmethod
    def checked(cls, fields: Any) -> HeldOut:
        """Create it from the fields of a file, after a check."""
        _FIELDS(fields, "held_out")
        slope, typical, factor = (float(fields[name]) for name in ("slope", "typical", "factor"))
        return cls(slope, typical, factor, tuple(map(float, fields["multiples"])))


def _novelty(squares: Any, rows: Any, typical: float) -> Any:
    """Novelty relative to the typical one, shrunk towards one for few rows."""
    return (squares / typical + BELIEF) / (rows + BELIEF)


_POSITIVE = real(1e-9, 1e6)
_FIELDS = record(
    {
        "slope": real(0.0, STEEPEST), "typical": _POSITIVE, "factor": _POSITIVE,
        "multiples": row(*(_POSITIVE for _ in SHARES)),
    }
)  # fmt: skip
OF_OTHERS = HeldOut(0.419, 0.627, 1.8, (0.556, 0.985, 1.68, 2.62, 3.52, 5.69))
"""From three kinds of models on the splits `sport` and `other-gaits`, by tools/calibrate.py."""


def held_out_of(prior: object) -> HeldOut:
    """A prior's own calibration, or the default from other models of a few clips."""
    return getattr(prior, "held_out", None) or OF_OTHERS


def kept(prior: Kept, **known: object) -> Kept:
    """Attach data about its clips to a prior: `held_out`, and its training frames (`known_frames`)."""
    for name, value in known.items():
        setattr(prior, name, value)
    return prior


def kept_from(other: object, prior: Kept) -> Kept:
    """Copy the data about its clips from another prior, which this one was made from."""
    return kept(prior, **{name: vars(other)[name] for name in KEPT if name in vars(other)})
