"""The parts of a scene, the same in messages and in scene files, with the bounds of every number."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

PROTOCOL = 1
CLIPBOARD = "clipboard"
"""The name of the copied pose in `takePose`."""
LOOK_AT = "look-at"
"""The name in `drag` of the point that the head looks at."""
POSES = "poses"
"""The `clip` of a timeline that is made of whole poses."""

EASE = 0.4
"""The seconds on each side over which a key changes a recording by default, at any frame rate."""
EASE_FRAMES = 12
"""The same of keys of a scene that do not say it."""

Coordinate = Annotated[float, Meta(ge=-1000.0, le=1000.0)]
Vec2 = tuple[Coordinate, Coordinate]
Pixel = tuple[Annotated[float, Meta(ge=-1e5, le=1e5)], Annotated[float, Meta(ge=-1e5, le=1e5)]]
Vec3 = tuple[Coordinate, Coordinate, Coordinate]
Component = Annotated[float, Meta(ge=-1.5, le=1.5)]
Quaternion = tuple[Component, Component, Component, Component]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Token = Annotated[str, Meta(max_length=200)]
Seq = Annotated[int, Meta(ge=0, le=2**53)]
Frame = Annotated[int, Meta(ge=0, le=36_000)]
Share = Annotated[float, Meta(ge=0.0, le=1.0)]
TomlText = Annotated[str, Meta(max_length=20_000)]
Tolerance = Annotated[float, Meta(gt=0.0, le=10.0)]

Feet = Literal["free", "above", "planted"]
Kind = Annotated[str, Meta(max_length=60)]
Status = Literal["reached", "relaxed", "out_of_time", "broken"]
Easing = Literal["none", "in", "out", "in-out"]
Tangents = Literal["chosen", "flat"]
KeyKind = Literal["extreme", "breakdown", "hold"]
Tempo = Annotated[float, Meta(ge=0.25, le=4.0)]
Metres = Annotated[float, Meta(ge=0.01, le=20.0)]
PropKind = Literal["box", "chair", "shelf", "mesh", "picture", "video"]
HandShape = Literal["relaxed", "fist", "flat", "point"]
PropSize = tuple[Metres, Metres, Metres]
RangeEdit = Literal["mirror", "reverse", "cycle"]
PerformingStep = Literal["preparing", "waiting", "following", "over"]
AnyWire = TypeVar("AnyWire", bound="Wire")
ExportFormat = Literal["bvh", "glb", "png", "gif", "mp4", "usd", "scene"]


class Wire(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """What all messages share."""

    def with_(self: AnyWire, **changes: Any) -> AnyWire:
        """The same with these changes."""
        return msgspec.structs.replace(self, **changes)


def camel(name: str) -> str:
    """The name of a class as it is on the wire."""
    return name[0].lower() + name[1:]


class Part(Wire, forbid_unknown_fields=False):
    """Parts that scene files have too: files of a newer Poise may have more fields."""


_FOLDERS = re.compile(r"(?<![\w.:/\\])(?:[A-Za-z]:)?[/\\](?:[^\s/\\'\"]+[/\\])+(?=[^\s/\\])")


def without_folders(words: str) -> str:
    """Words in which files of the server go by their names alone."""
    return _FOLDERS.sub("", words)


class SceneHandle(Part):
    """A point fixed to a joint, and its target. The page chooses the id when it adds a handle.

    A pinned handle holds its targets; an unpinned one does so only while it is dragged and then follows the body. One
    that is glued to a prop goes where that goes.
    Tolerances (metres, radians) count only where it is soft.
    """

    id: Name
    joint: Name
    offset: Vec3 = (0.0, 0.0, 0.0)
    position: Vec3 | None = None
    rotation: Quaternion | None = None
    pinned: bool = True
    hard: bool = True
    tolerance: Tolerance = 0.02
    turn_tolerance: Tolerance = 0.1
    glued: Name | None = None


class Prop(Part):
    """An object in the scene; `upload` is the file of its mesh, picture or video."""

    id: Name
    kind: PropKind
    position: Vec3
    size: PropSize
    rotation: Quaternion = (1.0, 0.0, 0.0, 0.0)
    upload: Name | None = None


class Weight(Part):
    """A model's share in a blend; shares need not sum to one."""

    model: Name
    weight: Share


class Hands(Part):
    """Shares of hand shapes, by hand: the rest to one is the hand as it is, which is relaxed where nothing moves it."""

    left: dict[HandShape, Share] = {}
    right: dict[HandShape, Share] = {}


class Key(Part):
    """The target of a handle at a frame; in a recording the change fades over `ease` frames on each side.

    In a motion made of keys `easing` is how the way to the next key is paced, `tangent` the velocity at the key in
    metres a second, and `spin` the angular velocity in radians a second; without one the curve chooses it.
    """

    handle: Name
    frame: Frame
    position: Vec3 | None = None
    rotation: Quaternion | None = None
    ease: Frame = EASE_FRAMES
    easing: Easing = "none"
    tangent: Vec3 | None = None
    spin: Vec3 | None = None


class BodyKey(Part):
    """A frame at which the whole body is posed, and the ids of the handles that were pinned then.

    Over a recording the change fades over `ease` frames on each side. On a timeline of poses the motion prior moves the
    body to the next key, paced by `easing`; with a `tempo` of 2 as it would in twice the time, only faster. A "hold" is
    held for `hold` frames. A "breakdown" keeps its share of the time between the keys around it when they are moved.
    Shapes of hands change from key to key.
    """

    frame: Frame
    ease: Frame = EASE_FRAMES
    handles: list[Name] = []
    kind: KeyKind = "extreme"
    hold: Frame = 0
    easing: Easing = "none"
    tempo: Tempo = 1.0
    hands: Hands = msgspec.field(default_factory=Hands)


class Pin(Part):
    """A handle held from a first to a last frame, at a target or where it is; in a recording `ease` fades it in."""

    handle: Name
    first: Frame
    last: Frame
    position: Vec3 | None = None
    ease: Frame = EASE_FRAMES


class StyleKey(Part):
    """The styles from a frame on; weights change smoothly between two of them."""

    frame: Frame
    weights: list[Weight]


class Timeline(Part):
    """Keys of handles, pinned ranges, and the lane of styles. `frame` is the current frame.

    `clip` names the recording that keys correct, or says that whole `poses` make the motion, with keys of handles above
    them. Without one, keys of handles make the motion.
    """

    fps: Annotated[float, Meta(gt=0.0, le=1000.0)]
    frames: Annotated[int, Meta(ge=1, le=36_000)]
    frame: Frame
    keys: list[Key]
    pins: list[Pin]
    styles: list[StyleKey]
    clip: str | None
    poses: list[BodyKey] = []

    def eased(self, frames: int | None) -> int:
        """Frames over which a change fades: as given, else EASE seconds."""
        return round(EASE * self.fps) if frames is None else frames


class Bearing(Part):
    """The default behaviours: keep heading and balance, let idle arms hang, step, keep limbs apart."""

    heading: bool = True
    balance: bool = True
    arms: bool = True
    step: bool = True
    apart: bool = True


class PhotoPoint(Part):
    """A joint seen at a pixel of the photo, x to the right and y down."""

    joint: Name
    pixel: Pixel


class Photo(Part):
    """An image in which points of the body are marked."""

    upload: Name
    width: int
    height: int
    points: list[PhotoPoint]


class Video(Part):
    """The video that a motion was found in, and its camera: it looks along its -Z, up is +Y; `fov` is vertical."""

    upload: Name
    size: tuple[Annotated[int, Meta(ge=1, le=20_000)], Annotated[int, Meta(ge=1, le=20_000)]]
    fov: Annotated[float, Meta(gt=0.0, lt=180.0)]
    position: Vec3
    rotation: Quaternion


class Scene(Wire):
    """Everything in a session except the pose; `moving` says whether there is a motion to play."""

    model: Name
    weights: list[Weight]
    handles: list[SceneHandle]
    feet: Feet
    bearing: Bearing
    look_at: Vec3 | None
    undo: int
    redo: int
    timeline: Timeline
    photo: Photo | None
    streaming: str | None
    moving: bool
    props: list[Prop]
    constraints: str
    hands: Hands
    video: Video | None
