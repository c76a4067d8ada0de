"""Foot plants: contacts found in one motion are kept exactly in another of the same movement.

After Kovar, Schreiner and Gleicher (2002), "Footskate cleanup for motion capture editing": every contact gets one
position, corrections are eased from one contact to the next, and the body follows by the smallest change of legs and
root: a Gaussian about every frame, under hard constraints. A foot has two points, heel and base of the toes; it may
roll from one to the other, and each stays in place while it is down. Where a foot's skin is known, its lowest point is
on the floor while the foot stands, and never below it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from poise.apps.skin import Sole, skin_of
from poise.geometry import rotations
from poise.geometry.splines import smoothstep
from poise.motion.contacts import Contacts, foot_contacts, foot_joints, foot_positions
from poise.motion.gaps import runs
from poise.motion.motion import Motion
from poise.motion.world import joint_transforms
from poise.priors.terms import HELD, Unknowns, WindowGaussian
from poise.skeleton.kernels import ROOT_FREEDOMS
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.roles import SIDES, path
from poise.skeleton.skeleton import Skeleton
from poise.solvers.constraints import Constraint, transform
from poise.solvers.problem import Settings
from poise.solvers.sequence import solve_terms
from poise.types import Array, Progress, silent

CHANGE = 0.03  # radians: typical change of a joint of metric one
ROOT_VARIANCE = 0.01  # square metres, of the root against square radians of the legs
_NEAR_ZERO = 0.05  # of stature: a floor this close to height 0 is at 0
_AT_ONCE = 32  # frames that are solved together
_TOLERANCE = 1e-5  # metres or radians: frames that differ by more look unsteady at high frame rates


@dataclass(frozen=True, eq=False)
class Ground:
    """The transform between the floors of two motions: lengths scale by `ratio`, standing ankles differ in height."""

    ratio: float = 1.0
    source_ankle: float = 0.0  # height of a standing ankle in the source
    target_ankle: float = 0.0  # the same in the target
    floor: float = 0.0
    """The height of the floor in the target."""
    soles: tuple[Sole, ...] = ()
    """Of the left and the right foot, if known."""

    def placed(self, points: Float[Array, "*n 3"]) -> Float[Array, "*n 3"]:
        """Ankle positions in the other motion."""
        found = points * self.ratio
        found[..., 1] = (points[..., 1] - self.source_ankle) * self.ratio + self.target_ankle
        return found


def planted(
    motion: Motion,
    source: Motion,
    contacts: Contacts,
    ground: Ground | None = None,
    *,
    flat: Float[Array, "2 3"] | None = None,
    progress: Progress = silent,
) -> Motion:
    """The motion with its feet where those of `source` stand, at these contacts.

    `flat` is the up direction in each foot's own axes when it stands flat, if known for the body.
    """
    plans = [_plan(motion, source, contacts, ground or Ground(), side, flat) for side in range(2)]
    names = [motion.skeleton.names[foot_joints(motion.skeleton, side)[0]] for side in SIDES]
    skeleton = motion.skeleton
    limbs = [
        path(skeleton, skeleton.index(f"{side}_thigh"), skeleton.index(f"{side}_foot")) for side in SIDES
    ]
    metric = metric_of(skeleton, {joint for limb in limbs for joint in limb}, root=ROOT_VARIANCE)

    def constraints(frame: int) -> list[Constraint]:
        feet = zip(names, plans, strict=True)
        return [one for name, (places, turns) in feet for one in transform(name, places[frame], turns[frame])]

    return following(motion, constraints, metric, progress)


def following(
    motion: Motion, constraints: Callable[[int], list[Constraint]], metric: Float[Array, "freedoms"],
    progress: Progress = silent,
) -> Motion:  # fmt: skip
    """The motion with every frame changed as little, in this metric, as its constraints allow."""
    space = PoseSpace(motion.skeleton)
    poses = space.q_from_frames(motion.root_positions, motion.rotations)
    for first in range(0, len(poses), _AT_ONCE):  # no term couples frames, and their matrices are large
        part = poses[first : first + _AT_ONCE]
        near = WindowGaussian(0, part, CHANGE**-2 / np.maximum(metric, 1.0 / HELD))
        found = solve_terms(
            None, [constraints(first + frame) for frame in range(len(part))], [near], Unknowns(part), fps=motion.fps,
            space=space, settings=Settings(tolerance=_TOLERANCE),
        )  # fmt: skip
        part[:] = [solution.q for solution in found.solutions]
        progress(first + len(part), len(poses))
    roots, quaternions = space.frames_from_q(poses)
    return motion.with_frames(roots, rotations.continuous(quaternions))


def standing(motion: Motion) -> Motion:
    """The motion without foot slide: every standing foot stays in one position, its skin on the floor."""
    contacts, ground, skin = foot_contacts(motion), Ground(), skin_of(motion)
    if skin is not None:
        heights = np.stack([sole.lowest(motion) for sole in skin.soles], axis=-1)
        lowest = heights[contacts.feet] if contacts.feet.any() else heights.min(keepdims=True)
        ground = Ground(floor=exact_floor(motion, float(np.median(lowest))), soles=skin.soles)
    return planted(motion, motion, contacts, ground)


def exact_floor(motion: Motion, floor: float) -> float:
    """The height of the floor: zero, if it was found near zero."""
    return 0.0 if abs(floor) < _NEAR_ZERO * motion.skeleton.height else floor


def standing_ankle(motion: Motion, contacts: Contacts) -> float:
    """The height of the ankles while their feet are flat, or nearly, on the floor."""
    joints = [foot_joints(motion.skeleton, side)[0] for side in SIDES]
    heights = joint_transforms(motion)[0][:, joints, 1]
    flat = np.all(contacts.points, axis=-1)
    flat = flat if flat.any() else contacts.feet
    return float(np.median(heights[flat])) if flat.any() else float(np.percentile(heights, 5.0))


def metric_of(skeleton: Skeleton, joints: set[int], *, root: float = 0.0) -> Float[Array, "freedoms"]:
    """The diagonal metric: one for these joints, `root` for the root's position, zero for all others."""
    space = PoseSpace(skeleton)
    metric = np.zeros(space.freedoms)
    metric[:3] = root
    for slot, joint in enumerate(space.moving.tolist()):
        if joint in joints:
            metric[ROOT_FREEDOMS + 3 * slot : ROOT_FREEDOMS + 3 * slot + 3] = 1.0
    return metric


# --- where a foot goes ---------------------------------------------------------------------------------------------


def _plan(
    motion: Motion, source: Motion, contacts: Contacts, ground: Ground, side: int, flat: Array | None
) -> tuple[Float[Array, "frames 3"], Float[Array, "frames 4"]]:
    """The ankle position in every frame, and the foot's rotation."""
    foot = foot_joints(motion.skeleton, SIDES[side])[0]
    positions, worlds = joint_transforms(motion)
    turns = rotations.continuous(rotations.quaternion_from_matrix(worlds[:, foot]))
    points = foot_positions(motion)[:, side] - positions[:, foot][:, None]
    arms = np.einsum("fba,fkb->fka", worlds[:, foot], points).mean(
        axis=0
    )  # heel and toes in the foot's own axes
    down = contacts.points[:, side]
    lying = np.all(down, axis=-1)
    if (
        flat is not None and lying.any()
    ):  # rotated in its own axes so that its up direction is vertical when flat
        upward = rotations.rotate(rotations.conjugate(turns[lying]), np.array([0.0, 1.0, 0.0])).mean(axis=0)
        turns = rotations.multiply(turns, rotations.quaternion_between(flat[side], upward))
    ankle = foot_joints(source.skeleton, SIDES[side])[0]
    free = ground.placed(joint_transforms(source)[0][:, ankle])
    there = foot_positions(source)[:, side] * np.array(
        [ground.ratio, 0.0, ground.ratio]
    )  # heights are the ankle's
    turns, shift = _settled(turns, lying), np.full((len(motion), 3), np.nan)
    for stance in runs(np.any(down, axis=-1)):
        places = _stance(there[stance], turns[stance], free[stance], arms, down[stance])
        shift[stance] = places - free[stance]
    placed = free + _eased(shift)
    if ground.soles:
        lowest, stands = ground.floor + ground.soles[side].depth(motion, turns), np.any(down, axis=-1)
        lift = np.where(stands, lowest - placed[:, 1], np.nan)
        placed[:, 1] = np.maximum(placed[:, 1] + _eased(lift[:, None])[:, 0], lowest)
    return placed, turns


def _stance(
    there: Float[Array, "frames 2 3"],
    turns: Float[Array, "frames 4"],
    free: Float[Array, "frames 3"],
    arms: Float[Array, "2 3"],
    down: Bool[Array, "frames 2"],
) -> Float[Array, "frames 3"]:
    """One contact from its first frame to its last: the ankle positions."""
    seen = there + np.array([0.0, 1.0, 0.0]) * (free[:, None] + rotations.rotate(turns[:, None], arms))
    for run, ankle, reach in _flat_phases(there, turns, arms, down):
        seen[run] = ankle + reach + np.array([0.0, free[run, 1].mean(), 0.0])
    pivots = np.zeros_like(seen)
    for point in range(2):
        for run in runs(down[:, point]):
            frames = np.arange(run.start, run.stop)
            lying = frames[np.all(down[frames], axis=-1)]
            pivots[run, point] = seen[lying if len(lying) else frames, point].mean(axis=0)
    ankles = pivots - rotations.rotate(turns[:, None], arms)
    return np.einsum("fk,fkx->fx", _weights(down), ankles)


def _flat_phases(
    there: Float[Array, "frames 2 3"],
    turns: Float[Array, "frames 4"],
    arms: Float[Array, "2 3"],
    down: Bool[Array, "frames 2"],
) -> Iterator[tuple[slice, Float[Array, "3"], Float[Array, "2 3"]]]:
    """The phases of a contact in which the foot is flat: frames, ankle in the ground plane, and heel and toes from it.

    The heel or the toes may stay down from one phase to the next; the foot then turns about them.
    """
    flat = runs(np.all(down, axis=-1))
    reaches = [rotations.rotate(turns[run.start], arms) for run in flat]
    ways, chains = np.zeros((len(flat), 3)), list(range(len(flat)))
    for one in range(1, len(flat)):
        stays = np.all(down[flat[one - 1].start : flat[one].stop], axis=0)
        if stays.any():
            ways[one] = ways[one - 1] + (reaches[one - 1] - reaches[one])[stays][0]
            chains[one] = chains[one - 1]
    for chain in set(chains):
        members = [one for one in range(len(flat)) if chains[one] == chain]
        ankle = np.concatenate([there[flat[one]] - reaches[one] - ways[one] for one in members]).mean(
            axis=(0, 1)
        )
        for one in members:
            yield flat[one], (ankle + ways[one]) * np.array([1.0, 0.0, 1.0]), reaches[one]


def _settled(turns: Float[Array, "frames 4"], flat: Bool[Array, "frames"]) -> Float[Array, "frames 4"]:
    """The rotations of a foot, constant while it is flat, and eased from there to the next flat phase."""
    change = np.full((len(turns), 3), np.nan)
    for run in runs(flat):
        away = rotations.multiply(rotations.mean(turns[run])[None], rotations.conjugate(turns[run]))
        change[run] = rotations.expmap_from_quaternion(rotations.canonical(away))
    return rotations.multiply(rotations.quaternion_from_expmap(_eased(change)), turns)


def _weights(down: Bool[Array, "frames 2"]) -> Float[Array, "frames 2"]:
    """The weights of heel and toes: of the one that is down; if both are, moving from one to the other."""
    alone = np.where(np.all(down, axis=-1), np.nan, np.where(down[:, 1], 1.0, 0.0))
    known = np.flatnonzero(np.isfinite(alone))
    toes = np.interp(np.arange(len(down)), known, alone[known]) if len(known) else np.full(len(down), 0.5)
    return np.stack([1.0 - toes, toes], axis=-1)


def _eased(shift: Float[Array, "frames axes"]) -> Float[Array, "frames axes"]:
    """Corrections, eased between contacts; constant before the first and after the last."""
    known = np.flatnonzero(np.isfinite(shift[:, 0]))
    if len(known) == 0:
        return np.zeros_like(shift)
    frames = np.arange(len(shift))
    after = np.clip(np.searchsorted(known, frames), 0, len(known) - 1)
    before = np.clip(after - (known[after] > frames), 0, None)
    first, last = known[before], known[after]
    part = np.where(last > first, (frames - first) / np.maximum(last - first, 1), 0.0)
    eased = smoothstep(part)[:, None]
    found: Array = (1.0 - eased) * shift[first] + eased * shift[last]
    return np.where(np.isfinite(shift), shift, found)


def slides(motion: Motion, source: Motion | None = None) -> list[float]:
    """The distance that each foot point strays from its mean position per contact, in metres.

    Contacts are those of `source`, the same motion before it was changed, if given.
    """
    down = foot_contacts(source or motion).points.reshape(len(motion), 4)
    points = foot_positions(motion).reshape(len(motion), 4, 3)
    found = []
    for point in range(4):
        for run in runs(down[:, point]):
            places = points[run, point][:, [0, 2]]
            found.append(float(np.linalg.norm(places - places.mean(axis=0), axis=-1).max()))
    return found
