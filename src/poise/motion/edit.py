"""Trim, resample, place, join and mirror motions, and retarget them. Every function returns a new motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from poise.bounds import checked_rate
from poise.errors import InvalidValueError, SkeletonError
from poise.geometry import rotations
from poise.motion.contacts import floor_height
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.motion.world import headings
from poise.skeleton.retarget import check_same_topology, scaled_places
from poise.skeleton.skeleton import Skeleton, read_only
from poise.skeleton.symmetry import ACROSS, mirror_joints, reflections, without_partner
from poise.types import Array

MOST_ROTATIONS = (
    8_000_000  # joint rotations in total: limit for a resampled motion, unless it already had more
)


def trim(motion: Motion, start: float = 0.0, end: float | None = None) -> Motion:
    """The frames from `start` up to but excluding `end`, in seconds; to the last frame if no end is given."""
    return motion[frames_between(motion, start, end)]


def frames_between(recording: Motion | Markers, start: float = 0.0, end: float | None = None) -> slice:
    """The slice of frames from `start` up to but excluding `end`, in seconds."""
    lasts = recording.seconds
    end = lasts if end is None else end
    if not (np.isfinite(start) and np.isfinite(end)):
        raise InvalidValueError(
            f"cannot trim to {start:g} .. {end:g} s: expected seconds from 0 to {lasts:g}"
        )
    first, last = round(start * recording.fps), round(end * recording.fps)
    if not 0 <= first < last <= len(recording):
        raise InvalidValueError(
            f"cannot trim to {start:g} .. {end:g} s: the clip lasts 0 .. {lasts:g} s and at least one frame must remain"
        )
    return slice(first, last)


def resample(motion: Motion, fps: float) -> Motion:
    """The same motion at another frame rate: rotations by slerp, root positions by linear interpolation.

    The first frame keeps its time. Frames at recorded times are reproduced exactly.
    """
    checked_rate(fps)
    if fps == motion.fps or len(motion) == 1:
        return motion.with_frames(motion.root_positions, motion.rotations, fps=fps)
    count = int(np.floor((len(motion) - 1) * fps / motion.fps + 1e-6)) + 1
    if count * len(motion.skeleton) > max(MOST_ROTATIONS, 4 * len(motion) * len(motion.skeleton)):
        raise InvalidValueError(
            f"{count:,} frames at {fps:g} Hz do not fit in memory; choose a lower frame rate, or trim first"
        )
    at = np.arange(count) * (motion.fps / fps)
    at = np.where(np.abs(at - np.round(at)) < 1e-6, np.round(at), at)
    at = np.minimum(at, len(motion) - 1)
    before = np.minimum(at.astype(np.int64), len(motion) - 2)
    part, roots = at - before, motion.root_positions
    places = roots[before] + part[:, None] * (roots[before + 1] - roots[before])
    turns = rotations.slerp(motion.rotations[before], motion.rotations[before + 1], part[:, None])
    recorded = part == np.round(part)
    nearest = np.round(at[recorded]).astype(np.int64)
    places[recorded], turns[recorded] = roots[nearest], motion.rotations[nearest]
    return motion.with_frames(places, turns, fps=fps)


def moved(
    motion: Motion, *, turn: float = 0.0, shift: Sequence[float] | Float[Array, "3"] = (0.0, 0.0, 0.0)
) -> Motion:
    """The whole motion rotated about the vertical axis through the origin by `turn` radians, then shifted in metres."""
    q = rotations.quaternion_from_expmap(np.array([0.0, turn, 0.0]))
    turned = motion.rotations.copy()
    turned[:, 0] = rotations.multiply(q, turned[:, 0])
    return motion.with_frames(
        rotations.rotate(q, motion.root_positions) + np.asarray(shift, dtype=np.float64), turned
    )


def place(
    motion: Motion, *, at: Sequence[float] = (0.0, 0.0), heading: float = 0.0, frame: int = 0
) -> Motion:
    """The motion moved over the floor so that at `frame` the root is above (x, z) with this heading."""
    turned = moved(motion, turn=heading - float(headings(motion[np.array([frame])])[0]))
    x, _, z = turned.root_positions[frame]
    return moved(turned, shift=(at[0] - x, 0.0, at[1] - z))


def face(motion: Motion, heading: float = 0.0, *, frame: int = 0) -> Motion:
    """The motion rotated about its root's position at `frame` to this heading."""
    x, _, z = motion.root_positions[frame]
    return place(motion, at=(float(x), float(z)), heading=heading, frame=frame)


def concatenate(motions: Sequence[Motion], *, align: bool = True, blend: float = 0.0) -> Motion:
    """Join motions, at the first one's frame rate.

    With `align`, each starts at the position and heading where the previous one ends. With `blend`, the end of one and
    the start of the next overlap for that many seconds and are cross-faded.
    """
    if not motions:
        raise InvalidValueError("concatenate needs at least one motion; got none")
    joined = motions[0]
    overlap = round(blend * joined.fps)
    for motion in motions[1:]:
        check_same_topology(joined.skeleton, motion.skeleton)
        if not np.allclose(joined.skeleton.offsets[1:], motion.skeleton.offsets[1:], atol=1e-4):
            raise SkeletonError(
                "the motions' limb lengths differ; retarget one to the other's skeleton first"
            )
        added = resample(motion, joined.fps)
        if overlap >= min(len(joined), len(added)):
            lengths = f"{len(joined)} and {len(added)} frames"
            raise InvalidValueError(f"a blend of {overlap} frames needs longer motions; got {lengths}")
        if align:
            meeting = joined[np.array([len(joined) - max(overlap, 1)])]
            x, _, z = meeting.root_positions[0]
            added = place(added, at=(float(x), float(z)), heading=float(headings(meeting)[0]))
        keep, t = len(joined) - overlap, (np.arange(overlap) + 1.0) / (overlap + 1.0)
        weight = t * t * (3.0 - 2.0 * t)  # from near 0 to near 1 with zero slope at both ends
        before, after = joined.root_positions, added.root_positions
        places = (1 - weight[:, None]) * before[keep:] + weight[:, None] * after[:overlap]
        turns = rotations.slerp(joined.rotations[keep:], added.rotations[:overlap], weight[:, None])
        joined = joined.with_frames(
            np.concatenate([before[:keep], places, after[overlap:]]),
            np.concatenate([joined.rotations[:keep], turns, added.rotations[overlap:]]),
        )
    return joined


# --- root-relative form --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RootRelative:
    """A motion separated from its travel over the floor: `motion` stays above the origin and always faces +Z.

    `ground` is the root's (x, z) and `headings` the body's heading, per frame, in the world.
    """

    motion: Motion
    ground: Float[Array, "frames 2"]
    headings: Float[Array, "frames"]

    def __post_init__(self) -> None:
        object.__setattr__(self, "ground", read_only(self.ground))
        object.__setattr__(self, "headings", read_only(self.headings))

    @property
    def steps(self) -> Float[Array, "frames 3"]:
        """Steps from each frame to the next in the body's frame: metres left, metres forward, radians turned left.

        The last frame repeats the previous step, so that there is one per frame.
        """
        if len(self.headings) < 2:
            return np.zeros((len(self.headings), 3))
        sine, cosine = np.sin(self.headings[:-1]), np.cos(self.headings[:-1])
        dx, dz = np.diff(self.ground, axis=0).T
        steps = np.stack([cosine * dx - sine * dz, sine * dx + cosine * dz, np.diff(self.headings)], axis=-1)
        return np.concatenate([steps, steps[-1:]])


def root_relative(motion: Motion) -> RootRelative:
    """The motion without its travel over the floor; `world_from_root_relative` restores it."""
    angles = headings(motion)
    turned = motion.rotations.copy()
    turned[:, 0] = rotations.multiply(_about_up(-angles), turned[:, 0])
    height = motion.root_positions * np.array([0.0, 1.0, 0.0])
    return RootRelative(motion.with_frames(height, turned), motion.root_positions[:, [0, 2]], angles)


def world_from_root_relative(relative: RootRelative) -> Motion:
    """The motion with its travel over the floor restored."""
    turned = relative.motion.rotations.copy()
    turned[:, 0] = rotations.multiply(_about_up(relative.headings), turned[:, 0])
    x, z = relative.ground.T
    places = np.stack([x, relative.motion.root_positions[:, 1], z], axis=-1)
    return relative.motion.with_frames(places, turned)


def _about_up(angles: Float[Array, "frames"]) -> Float[Array, "frames 4"]:
    return rotations.quaternion_from_expmap(np.multiply.outer(angles, np.array([0.0, 1.0, 0.0])))


def edited(
    value: Motion | Markers,
    *,
    start: float | None = None,
    end: float | None = None,
    fps: float | None = None,
    mirrored: bool = False,
) -> Motion | Markers:
    """The recording from `start` to `end` (seconds), at that frame rate, mirrored or not; what is not given stays."""
    trimmed = value if start is None and end is None else value[frames_between(value, start or 0.0, end)]
    if fps is None and not mirrored:
        return trimmed
    if isinstance(trimmed, Markers):
        raise InvalidValueError(
            "only the motion of a skeleton can be resampled or mirrored; these are markers"
        )
    resampled = trimmed if fps is None else resample(trimmed, fps)
    return mirror(resampled) if mirrored else resampled


# --- a motion mirrored left to right on the same body ----------------------------------------------------------------


def mirror(motion: Motion) -> Motion:
    """The motion mirrored in the plane X = 0: left and right are exchanged.

    It stays on the same body, so lengths that differ between the sides are kept. The correspondence of left and right
    axes comes from the skeleton's symmetric neutral pose, so any rest pose works (`skeleton.symmetry`). Joints that
    only one side has keep their own rotations.
    """
    skeleton = motion.skeleton
    partner, carries = mirror_joints(skeleton), reflections(skeleton, motion.rotations)
    above = np.concatenate([ACROSS[None], carries[skeleton.parents[1:]]])
    # A reflection on both sides of a rotation: the negatives of both reflections are rotations and give the same.
    before, after = rotations.quaternion_from_matrix(-above), rotations.quaternion_from_matrix(-carries)
    turned = rotations.multiply(
        rotations.multiply(before, motion.rotations[:, partner]), rotations.conjugate(after)
    )
    alone = without_partner(skeleton, partner)
    turned[:, alone] = motion.rotations[:, alone]
    return motion.with_frames(motion.root_positions @ ACROSS, rotations.canonical(turned))


# --- transfer motions to a body with the same joints and other limb lengths ------------------------------------------


def retarget(motion: Motion, target: Skeleton, *, keep_floor: bool = True) -> Motion:
    """The motion on another body of the same topology: rotations kept, root positions scaled by leg length.

    With `keep_floor` the whole motion is then raised or lowered so that its feet stand on the same floor.
    """
    check_same_topology(motion.skeleton, target)
    places = scaled_places(motion.root_positions, motion.skeleton, target)
    moved = Motion(target, motion.fps, places, motion.rotations, name=motion.name, origin=motion.origin)
    return on_the_same_floor(motion, moved) if keep_floor else moved


def on_the_same_floor(motion: Motion, moved: Motion) -> Motion:
    """The moved motion raised or lowered as a whole to the floor height of the original."""
    rise = floor_height(motion) - floor_height(moved)
    return moved.with_frames(moved.root_positions + np.array([0.0, rise, 0.0]), moved.rotations)
