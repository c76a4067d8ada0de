"""The state of a session as a value: every edit makes a new one, so undo is a list of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from jaxtyping import Float

from poise.errors import InvalidValueError, UnknownNameError
from poise.motion.motion import Motion
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import Pose
from poise.studio.layers import Layers
from poise.studio.messages import (
    POSES,
    Bearing,
    Feet,
    Hands,
    Photo,
    Prop,
    SceneHandle,
    Timeline,
    Vec3,
    Video,
    Weight,
)
from poise.types import Array

MOST_HANDLES, MOST_PROPS = 64, 64
FPS, FRAMES = 30.0, 90


@dataclass(frozen=True, eq=False)
class Placed:
    """A pose, and its vector in the space it was solved in: a solver warm-starts only from its own numbers."""

    pose: Pose
    q: Float[Array, "size"] | None = None
    space: PoseSpace | None = None

    def in_space(self, space: PoseSpace) -> Float[Array, "size"]:
        """The pose as a vector of some space."""
        return self.q if self.q is not None and space is self.space else space.q_from_pose(self.pose)


def empty_timeline() -> Timeline:
    """Three seconds of nothing."""
    return Timeline(fps=FPS, frames=FRAMES, frame=0, keys=[], pins=[], styles=[], clip=None)


@dataclass(frozen=True, eq=False)
class State:
    """One moment of a session: the model, the handles, the pose, and the motion as layers, if there is one.

    `anchors` are the positions of planted feet and the hips' heading; a motion that is not `smooth` yet must still be
    solved as a whole. A pose made `by_hand` is not that of the motion's frame.
    """

    model: str
    placed: Placed
    weights: tuple[Weight, ...] = ()
    handles: tuple[SceneHandle, ...] = ()
    feet: Feet = "planted"
    look_at: Vec3 | None = None
    anchors: dict[str, Vec3] = field(default_factory=dict)
    timeline: Timeline = field(default_factory=empty_timeline)
    layers: Layers | None = None
    smooth: bool = True
    photo: Photo | None = None
    bearing: Bearing = field(default_factory=Bearing)
    by_hand: bool = False
    props: tuple[Prop, ...] = ()
    constraints: str = ""  # [[constraints]] in TOML
    hands: Hands = field(default_factory=Hands)
    video: Video | None = None

    @property
    def pose(self) -> Pose:
        """The body."""
        return self.placed.pose

    @property
    def motion(self) -> Motion | None:
        """The motion of the timeline."""
        return None if self.layers is None else self.layers.motion

    @property
    def is_recording(self) -> bool:
        """Whether keys correct a recorded motion, instead of making one."""
        return self.timeline.clip not in (None, POSES) and self.layers is not None

    @property
    def is_posed(self) -> bool:
        """Whether whole poses make the motion."""
        return self.timeline.clip == POSES and self.layers is not None

    def handle(self, name: str) -> SceneHandle:
        """The handle with this id."""
        known = {handle.id: handle for handle in self.handles}
        if name not in known:
            raise UnknownNameError("handle", name, list(known) or ["(there is none yet)"])
        return known[name]

    def with_handle(self, handle: SceneHandle) -> State:
        """Replace the handle with this id, or add it."""
        handles = {each.id: each for each in (*self.handles, handle)}
        if len(handles) > MOST_HANDLES:
            raise InvalidValueError(f"a scene has at most {MOST_HANDLES} handles")
        return self.with_(handles=tuple(handles.values()))

    def without_handle(self, name: str) -> State:
        """Remove a handle."""
        gone = self.handle(name)
        return self.with_(handles=tuple(handle for handle in self.handles if handle is not gone))

    def with_(self, **changes: Any) -> State:
        """The same with these changes."""
        return replace(self, **changes)


def handles_on(timeline: Timeline) -> set[str]:
    """The handles with keys or pins on a timeline."""
    return {key.handle for key in timeline.keys} | {pin.handle for pin in timeline.pins}
