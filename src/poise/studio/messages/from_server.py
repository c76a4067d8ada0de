"""The messages from the server to the page."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from poise.studio.messages.scene import *


class FromServer(Wire, tag=camel):
    """What the server sends: every class of it is a message, with its name as its type."""


class Joint(Wire):
    """A joint of the skeleton: parent -1 at the root; role such as left_hand where it has one."""

    name: str
    parent: int
    role: str | None
    end: bool


class Model(Wire):
    """A model; `own` if this page learned or opened it."""

    id: str
    name: str
    kind: Kind
    summary: str
    latent: bool
    clips: list[str]
    own: bool


class HandleResidual(Wire):
    """The residual of one constraint, in metres or radians; `handle` is the id of a handle, `look-at`, or null."""

    handle: str | None
    label: str
    value: float
    unit: str
    hard: bool
    met: bool


class LearnableKind(Wire):
    """A kind of model that can be learned, with its description."""

    kind: Kind
    about: str


class Opening(Wire):
    """A file named on the command line, which the page opens as if it had been dropped."""

    name: str
    upload: str


class Welcome(FromServer):
    """The answer to `hello`; keep the token to resume."""

    protocol: int
    version: str
    token: str
    resumed: bool
    largest_upload: int
    kinds: list[LearnableKind]
    motions: list[str]  # extensions of motion files
    takes: list[str]  # and of recordings of markers
    constraints: list[str]  # a table to fill in for each registered kind
    openings: list[Opening]


class Kept(Wire):
    """A saved scene of an earlier session: its age in seconds, and its contents in words."""

    token: str
    age: float
    words: str


class KeptScenes(FromServer):
    """The saved scenes, newest first."""

    scenes: list[Kept]


class Models(FromServer):
    """All models to choose from."""

    models: list[Model]


class Skin(Wire):
    """What carries the mesh of a node of a character's file: joints uint16 (n), to whose frames matrices lead.

    Matrices are float32 (n, 3, 4), from the mesh as it is bound.
    """

    node: int
    joints: bytes
    matrices: bytes


class BodyShown(FromServer, tag="body"):
    """The skeleton, the palms, fingertips and soles it has, and a skin: each vertex follows four joints by weight.

    Vertices and normals are float32 (n, 3), joints uint16 (n, 4), weights float32 (n, 4), tones uint8 (n) into
    `palette` (sRGB, 0 to 1), triangles uint32 (m, 3); inverses, float32 (placed, 3, 4), lead into the joints' frames.
    Poses place more than the joints: after these come the fingers that were made for hands without any.
    A character with meshes of its own has them in the file at the address `character`, which is empty for bare
    skeletons.
    """

    joints: list[Joint]
    surfaces: list[str]
    placed: int
    height: float
    vertices: bytes
    normals: bytes
    vertex_joints: bytes
    vertex_weights: bytes
    vertex_tones: bytes
    palette: list[tuple[float, float, float]]
    triangles: bytes
    inverses: bytes
    character: str = ""
    skins: list[Skin] = []


class SceneChanged(FromServer, tag="scene"):
    """The current scene."""

    scene: Scene


class SolvedPose(FromServer, tag="pose"):
    """The current pose: the world transforms of all joints, the residuals of the handles, and the likelihood.

    Every handle's point in the world is in `handles`, float32 (handles, 3), in the scene's order. `latent` is where the
    pose lies in the style's map, and `beyond` says which part people cannot bend or turn so far. While dragging,
    likelihood and residuals are those of the pose shown. A pose made `by_hand` is not that of the motion's frame. One
    that `jumps` lies further from the last than a drag allows, since a foot steps or a handle cannot be met otherwise:
    the page shows it on its way.
    """

    seq: int
    fine: bool
    world: bytes
    handles: bytes
    status: Status
    words: str
    residuals: list[HandleResidual]
    log_likelihood: float | None
    percentile: float | None
    beyond: str
    latent: tuple[float, float] | None
    microseconds: float
    by_hand: bool
    jumps: bool


class Ghost(FromServer):
    """The previous pose and its model; an empty `world` removes it."""

    world: bytes
    model: str


class HoverPose(FromServer):
    """The pose of the point of the latent space under the pointer."""

    seq: int
    world: bytes


class LatentMap(FromServer):
    """The likelihood map of a latent space: float32 (height, width), from the bottom row up.

    `extent` is left, right, bottom, top. Training points are float32 (n, 2), in order of time, `active` uint8 (n). The
    map of a dynamics model on a cylinder wraps around at left and right.
    """

    model: str
    width: int
    height: int
    extent: tuple[float, float, float, float]
    values: bytes
    points: bytes
    active: bytes
    cylinder: bool


class MotionRange(FromServer, tag="motion"):
    """World transforms of the frames from `first`, float32 (frames, joints, 7), and the status of each frame.

    `unmet` are frames whose hard targets are missed; `paths` hold each keyed handle's way, float32 (frames, 3), in the
    order of `path_handles`.
    """

    seq: int
    fine: bool
    first: int
    frames: int
    world: bytes
    path_handles: list[str]
    paths: bytes
    unmet: list[int]


class KeptPose(Wire):
    """A pose of the library, standing at the origin."""

    id: str
    name: str
    world: bytes


class KeptPoses(FromServer, tag="poses"):
    """The poses of the library for this skeleton; `others` counts those of other skeletons."""

    poses: list[KeptPose]
    others: int


class LeftOpen(FromServer):
    """The joint whose handle would reduce the uncertainty most, in words what to do, and other possible poses.

    The first of these are of other kinds, the likeliest first; `kinds` are their shares.
    """

    joint: str | None
    share: float
    others: list[bytes]
    words: str = ""
    kinds: list[float] = []


class LooksLike(FromServer):
    """The model of one action that the pose clearly looks like, if it is not in use."""

    model: str | None


class AnotherBody(FromServer):
    """The chosen model has another body, and the motion cannot be carried onto it, in words why."""

    model: str
    name: str
    words: str


class Contact(Wire):
    """A foot that stands or a hand that holds, by its role, over a range of frames."""

    part: str
    first: int
    last: int


class ContactsFound(FromServer, tag="contacts"):
    """All contacts of the motion."""

    contacts: list[Contact]


class PhotoSolved(FromServer, tag="photo"):
    """The joints in the photo, float32 (joints, 2) in pixels, and all poses that fit."""

    pixels: bytes
    alternatives: list[bytes]


class Take(FromServer):
    """A recording of markers: names, and positions float32 (frames, markers, 3), NaN where one is missing.

    `filled` is as long, with what was missing filled in where the take has been filled, and `deviations` float32
    (frames, markers) says how uncertain each is, in metres (0 where it was seen).
    """

    name: str
    fps: float
    frames: int
    markers: list[str]
    positions: bytes
    filled: bytes
    deviations: bytes


class Performing(FromServer):
    """The state of a performance: its source, the visible markers, and the latency.

    Latencies are milliseconds from when a frame arrived (or all its pictures had) until its pose was on its way, the
    median and the 95th percentile of the last seconds. Places are float32 (markers, 3), NaN where one is not seen.
    `taken` is when the picture of the newest pose was taken, by the clock of the page whose webcam it is.
    """

    source: str
    step: PerformingStep
    frames: int
    rate: float
    latency: float | None
    slowest: float | None
    markers: list[str]
    places: bytes
    notes: list[str]
    taken: float | None = None

    def __post_init__(self) -> None:
        self.notes = [without_folders(note) for note in self.notes]


class Progress(FromServer):
    """The progress of a long task; at share 1 it is done. `curve` is the learning curve so far, if there is one."""

    task: str
    words: str
    share: float
    curve: list[float]


class FileReady(FromServer, tag="file"):
    """A file to fetch, once, from this address."""

    name: str
    address: str
    size: int


class Remark(FromServer):
    """What the user should know about what was done, in words."""

    words: str


class Refusal(FromServer, tag="error"):
    """An error, in words for the user; `about` is the type of the refused message."""

    words: str
    about: str | None
    seq: int | None

    def __post_init__(self) -> None:
        self.words = without_folders(self.words)


if TYPE_CHECKING:
    ServerMessage = FromServer
else:
    ServerMessage = reduce(or_, FromServer.__subclasses__())
