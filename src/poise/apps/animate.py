"""Animate from constraints at any frames: foot contacts, paths, keyframes (Urtasun et al. 2008, section 5.2).

The constraint files of `poise animate` are short TOML files:

duration = 3.0                      # seconds
fps = 60
floor = true                        # or its height in metres

[[contacts]]                        # a handle that stays put for a while; free before and after
handle = "left_toes"
from = 0.2
to = 0.9
at = [0.1, 0.02, 0.4]

[handles.right_hand]                # a handle that follows a path from its first key to its last
keys = [{ time = 0.0, at = [-0.2, 0.9, 0.2] }, { time = 1.0, at = [-0.6, 1.4, 0.1] }]

[[keyframes]]                       # a pose of a recording, at a time
time = 1.5
clip = "walk.bvh"
frame = 40

[[constraints]]                     # anything else: see `keyframing_script`
kind = "look-at"
handle = "head"
target = [0.0, 1.6, 5.0]
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

import numpy as np
from jaxtyping import Float

from poise.apps import keyframing_script as scripts
from poise.apps.keyframing_script import (
    Duration,
    Floor,
    HandleKeys,
    HeldHandle,
    Rate,
    Timed,
    timed_constraints,
)
from poise.errors import InvalidValueError
from poise.formats.tables import FieldError, Range, Read, read_declared
from poise.motion.contacts import foot_contacts, foot_joints, foot_positions
from poise.motion.gaps import runs
from poise.motion.motion import Motion
from poise.priors.abilities import motion_model_of
from poise.priors.model_file import opened
from poise.priors.prior import Prior
from poise.priors.terms import Unknowns
from poise.skeleton.kinematics import world_transforms
from poise.skeleton.pose_space import Handle, PoseSpace
from poise.skeleton.roles import SIDES
from poise.solvers.bearing import FLOOR_ROLES
from poise.solvers.constraints import Constraint, Pinned, Position, floor, transform
from poise.solvers.given import Given, constraints_from
from poise.solvers.sequence import STIFF, Frame, keyed_frames, solve_motion, solve_terms, targets_of
from poise.solvers.solution import MotionSolution
from poise.types import Array, Progress, silent

HEEL, TOES = 0, 1
SHORTEST = 2  # frames: shortest contact
LATENT_STIFF = 1e-4  # metres, radians: tolerance of constraints while latent points follow a model


def animate(
    prior: Prior | str | os.PathLike[str],
    frames: Sequence[Given] | str | os.PathLike[str],
    *,
    fps: float | None = None,
    name: str = "",
    seed: int = 0,
    progress: Progress = silent,
) -> MotionSolution:
    """Return the most likely motion that meets the constraints of every frame, or those of a constraint file.

    Any prior, or its file, will do; a model of motion (`MotionModel`) gives its own objective and start. Under the
    universal prior, the motion prior says how people move from stance to stance. A file has its own frame rate; for
    frames, give `fps`.
    """
    prior = opened(prior)
    if isinstance(frames, str | os.PathLike):
        script, name = read_animate_script(Path(frames)), name or Path(frames).stem
        frames, fps = script.frames(prior.space), script.fps
    if fps is None:
        raise InvalidValueError("give the frame rate of these frames, such as fps=30")
    wanted = [constraints_from(frame) for frame in frames]
    if not any(wanted):
        raise InvalidValueError(
            "no frame has a constraint; to run the model without constraints, use poise simulate"
        )
    asked, count = [Frame(own) for own in wanted], len(wanted)
    targets = targets_of(prior.space, wanted, fps)
    model = motion_model_of(prior, targets, frames=count, fps=fps)
    if model is None:
        start = keyed_frames(prior, asked, fps=fps)
        found = solve_motion([prior], asked, fps=fps, start=start, progress=progress)
        return replace(found, name=name)
    terms = model.motion_terms(targets, frames=count, fps=fps)
    near = model.motion_start(targets, frames=count, fps=fps, rng=np.random.default_rng(seed))
    near = near or Unknowns(keyed_frames(prior, asked, fps=fps))
    stiff = LATENT_STIFF if any(term.latent for term in terms) else STIFF
    found = solve_terms(prior, wanted, terms, near, fps=fps, stiff=stiff, progress=progress)
    return replace(found, name=name)


@dataclass(frozen=True, eq=False)
class Keyframe:
    """A whole pose of a recording, at a time."""

    time: float
    clip: Path
    frame: Annotated[int, Range(least=0)] = 0


@dataclass(frozen=True, eq=False)
class AnimateScript:
    """The constraints of an animation over time, as a constraint file has them."""

    duration: Duration
    fps: Rate = 60.0
    floor: Floor = None
    contacts: tuple[HeldHandle, ...] = ()
    handles: dict[str, HandleKeys] = field(default_factory=dict)
    keyframes: tuple[Keyframe, ...] = ()
    constraints: Annotated[tuple[Timed, ...], Read(timed_constraints)] = ()

    def __post_init__(self) -> None:
        scripts.check_keys(self.duration, self.handles)
        scripts.check_constraints(self.duration, self.constraints)
        scripts.pins_within(self.duration, self.contacts, "contacts")
        for number, contact in enumerate(self.contacts, start=1):
            if (
                contact.at is None
            ):  # unlike a pin of a keyframe script, it has no path to take its position from
                raise FieldError(f"contacts[{number}].at", "is missing")
        for number, key in enumerate(self.keyframes, start=1):
            scripts.check_within(self.duration, {f"keyframes[{number}].time": key.time})
        if not (self.contacts or self.handles or self.keyframes or self.constraints):
            raise FieldError(
                "contacts",
                "there are no constraints: give [[contacts]], [handles.NAME], [[keyframes]] or [[constraints]]",
            )

    @property
    def times(self) -> Float[Array, "frames"]:
        """The time of every frame, from 0 to the duration."""
        return np.arange(int(np.floor(self.duration * self.fps + 1e-6)) + 1) / self.fps

    def frames(self, space: PoseSpace) -> list[list[Constraint]]:
        """The constraints of every frame, on one body."""
        times, names = self.times, space.skeleton.names
        found = scripts.follow(*scripts.paths_of(self.handles), times)
        for key in self.keyframes:
            pose = scripts.frame_of(key.clip, key.frame, "a keyframe needs the motion of a skeleton")
            found[int(np.argmin(np.abs(times - key.time)))] += [
                *transform(Handle(names[0]), pose.root_position, pose.rotations[0]),
                Pinned([names[joint] for joint in space.moving], space.q_from_pose(pose)),
            ]
        contacts = scripts.pins_within(self.duration, self.contacts, "contacts")
        standing = [
            Timed(Position(one.handle, one.at), one.start, one.end) for one in contacts if one.at is not None
        ]
        for timed in (*standing, *self.constraints):
            for number in np.flatnonzero(timed.holds(times)).tolist():
                found[number].append(timed.constraint)
        if self.floor is not None:
            roles = [role for role in FLOOR_ROLES if role in space.skeleton.roles]
            for constraints in found:
                constraints += floor(roles, height=self.floor)
        return found


def read_animate_script(path: Path) -> AnimateScript:
    """A constraint file."""
    return read_declared(AnimateScript, path)


@dataclass(frozen=True, eq=False)
class FootContact:
    """A point of a foot that stands still at a position from one frame up to but excluding another."""

    handle: Handle
    side: str
    first: int
    end: int
    point: Float[Array, "3"]


def contacts_in(motion: Motion) -> list[FootContact]:
    """The foot contacts of a recording: on the toes while those are down, on the heel before and after.

    Each contact has one position, the mean of the recorded point.
    """
    standing, places = foot_contacts(motion).points, foot_positions(motion)
    positions, matrices = world_transforms(motion.skeleton, motion.root_positions[0], motion.rotations[0])
    found = []
    for number, side in enumerate(SIDES):
        toes = standing[:, number, TOES]
        joints = foot_joints(motion.skeleton, side)
        for point, flags in ((TOES, toes), (HEEL, standing[:, number, HEEL] & ~toes)):
            joint = joints[point]
            x, y, z = (matrices[joint].T @ (places[0, number, point] - positions[joint])).tolist()
            handle = Handle(motion.skeleton.names[joint], (x, y, z))
            found += [
                FootContact(handle, side, run.start, run.stop, places[run, number, point].mean(axis=0))
                for run in runs(flags)
                if run.stop - run.start >= SHORTEST
            ]
    return sorted(found, key=lambda contact: contact.first)


def constraints_of(contacts: Sequence[FootContact], frames: int) -> list[list[Constraint]]:
    """The constraints of each frame."""
    found: list[list[Constraint]] = [[] for _ in range(frames)]
    for contact in contacts:
        for constraints in found[contact.first : contact.end]:
            constraints.append(Position(contact.handle, contact.point))
    return found


def changed(
    contacts: Sequence[FootContact], *, along: Float[Array, "3"], wider: float = 0.0, longer: float = 1.0
) -> list[FootContact]:
    """Contacts moved apart sideways by some metres, and stretched along the walking direction."""
    ahead = along * np.array([1.0, 0.0, 1.0])
    ahead = ahead / np.linalg.norm(ahead)
    left = np.array([ahead[2], 0.0, -ahead[0]])
    origin = contacts[0].point
    out = []
    for contact in contacts:
        gone = float((contact.point - origin) @ ahead)
        aside = wider if contact.side == "left" else -wider
        out.append(replace(contact, point=contact.point + (longer - 1.0) * gone * ahead + aside * left))
    return out


def contacts_text(contacts: Sequence[FootContact], *, frames: int, fps: float) -> str:
    """The text of a constraint file with foot contacts, for editing by hand."""
    lines = [f"duration = {(frames - 1) / fps:.4f}", f"fps = {fps:g}"]
    for contact in contacts:
        offset, at = (
            ", ".join(f"{number:.4f}" for number in each) for each in (contact.handle.offset, contact.point)
        )
        lines += [
            "",
            f"[[contacts]]  # {contact.side}",
            f'handle = "{contact.handle.joint}"',
            f"offset = [{offset}]",
            f"from = {contact.first / fps:.4f}",
            f"to = {(contact.end - 1) / fps:.4f}",
            f"at = [{at}]",
        ]
    return "\n".join(lines) + "\n"
