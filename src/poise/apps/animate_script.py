"""Constraint files of `poise animate`: a short TOML file with contacts, paths of handles, keyframes, any constraint.

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

[[constraints]]                     # anything else: see `constraint_tables`
kind = "look-at"
handle = "head"
target = [0.0, 1.6, 5.0]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
from jaxtyping import Float

from poise.apps.constraint_tables import Timed, check_constraints, check_within, timed_constraints
from poise.apps.foot_targets import FootContact
from poise.apps.keyframing_script import (
    Duration,
    Floor,
    HandleKeys,
    HandlePath,
    HeldHandle,
    Rate,
    TurnPath,
    check_keys,
    follow,
    paths_of,
    pins_within,
)
from poise.errors import InvalidValueError
from poise.formats import read
from poise.formats.tables import FieldError, Range, Read, read_declared
from poise.motion.motion import Motion
from poise.skeleton.pose_space import Handle, PoseSpace
from poise.skeleton.skeleton import Pose
from poise.solvers.bearing import FLOOR_ROLES
from poise.solvers.constraints import Constraint, Pinned, Position, floor, transform
from poise.types import Array


@dataclass(frozen=True, eq=False)
class Keyframe:
    """A whole pose, at a time."""

    time: float
    pose: Pose


@dataclass(frozen=True, eq=False)
class AnimateScript:
    """The constraints of an animation over time."""

    name: str
    duration: float
    fps: float
    contacts: Sequence[HeldHandle]
    paths: Sequence[HandlePath]
    keyframes: Sequence[Keyframe]
    constraints: Sequence[Timed] = ()
    floor: float | None = None
    turns: Sequence[TurnPath] = ()

    @property
    def times(self) -> Float[Array, "frames"]:
        """The time of every frame, from 0 to the duration."""
        return np.arange(int(np.floor(self.duration * self.fps + 1e-6)) + 1) / self.fps

    def frames(self, space: PoseSpace) -> list[list[Constraint]]:
        """The constraints of every frame, on one body."""
        found: list[list[Constraint]] = [[] for _ in self.times]
        for frame, followed in zip(found, follow(self.paths, self.turns, self.times), strict=True):
            frame += followed
        for key in self.keyframes:
            found[int(np.argmin(np.abs(self.times - key.time)))] += whole_pose(space, key.pose)
        for timed in (*map(_standing, self.contacts), *self.constraints):
            for number in np.flatnonzero(timed.holds(self.times)).tolist():
                found[number].append(timed.constraint)
        if self.floor is not None:
            roles = [role for role in FLOOR_ROLES if role in space.skeleton.roles]
            for constraints in found:
                constraints += floor(roles, height=self.floor)
        return found


@dataclass(frozen=True, eq=False)
class _Contact(HeldHandle):
    """A contact; unlike a pin of a keyframe script, it has no path to take its position from."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.at is None:
            raise FieldError("at", "is missing")


@dataclass(frozen=True, eq=False)
class _KeyframeTable:
    time: float
    clip: Path
    frame: Annotated[int, Range(least=0)] = 0

    def keyframe(self) -> Keyframe:
        clip = read(self.clip)
        if not isinstance(clip, Motion):
            raise InvalidValueError(
                f"{self.clip.name} holds markers; a keyframe needs the motion of a skeleton"
            )
        if self.frame >= len(clip):
            raise InvalidValueError(
                f"{self.clip.name} has frames 0 to {len(clip) - 1}; got frame {self.frame}"
            )
        return Keyframe(self.time, clip[self.frame])


@dataclass(frozen=True, eq=False)
class _AnimateFile:
    """A constraint file as it is written."""

    duration: Duration
    fps: Rate = 60.0
    floor: Floor = None
    contacts: tuple[_Contact, ...] = ()
    handles: dict[str, HandleKeys] = field(default_factory=dict)
    keyframes: tuple[_KeyframeTable, ...] = ()
    constraints: Annotated[tuple[Timed, ...], Read(timed_constraints)] = ()

    def __post_init__(self) -> None:
        check_keys(self.duration, self.handles)
        check_constraints(self.duration, self.constraints)
        pins_within(self.duration, self.contacts, "contacts")
        check_within(
            self.duration,
            {f"keyframes[{number}].time": key.time for number, key in enumerate(self.keyframes, start=1)},
        )
        if not (self.contacts or self.handles or self.keyframes or self.constraints):
            raise FieldError(
                "contacts",
                "there are no constraints: give [[contacts]], [handles.NAME], [[keyframes]] or [[constraints]]",
            )


def read_animate_script(path: Path) -> AnimateScript:
    """A constraint file."""
    file = read_declared(_AnimateFile, path)
    paths, turns = paths_of(file.handles)
    return AnimateScript(
        path.stem, file.duration, file.fps, pins_within(file.duration, file.contacts, "contacts"), paths,
        [key.keyframe() for key in file.keyframes], file.constraints, file.floor, turns,
    )  # fmt: skip


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


def whole_pose(space: PoseSpace, pose: Pose) -> list[Constraint]:
    """The root's position, and every joint's rotation of a pose, as constraints: a keyframe."""
    root = space.skeleton.names[0]
    moving = [space.skeleton.names[joint] for joint in space.moving]
    placed = transform(Handle(root), pose.root_position, pose.rotations[0])
    return [*placed, Pinned(moving, space.q_from_pose(pose))]


def _standing(contact: HeldHandle) -> Timed:
    assert contact.at is not None
    return Timed(Position(contact.handle, contact.at), contact.start, contact.end)
