"""What the page and the server say to each other: MessagePack maps over one binary websocket at `/ws`.

Every message is a map with a `type`; names are in camelCase on the wire. `web/src/messages.ts` is generated from these
definitions (`python -m poise.studio.typescript`), so the two cannot drift. World: metres, Y up, right-handed, the
person faces +Z, left is +X; quaternions are w, x, y, z. Bytes are little-endian arrays; those of poses ("world") are
float32, per joint its position and its rotation in the world: 3 + 4 numbers.

The flow:
 1. The page opens the socket and sends `hello`, with the token of an earlier session to resume it. The server answers
    `welcome`, `models`, `body` (skeleton and mesh; again whenever the skeleton changes), `scene` and `pose`.
 2. What a person does is one message each. The server changes the scene and answers `scene` when something other than
    the pose changed, and `pose` when that did. The server's scene is the truth; the page draws what it receives.
 3. Messages that stream (`drag`, `turnJoints`, `takePose`, `putProp`, `dragLatent`, `hoverLatent`, `movePoint`,
    `dragKey`) carry `seq`, a number that grows over the session. The newest wins: those that the solver had no time for
    are dropped. `pose.seq` says which one a pose answers. Everything from the first `drag` to the one with `last` is
    one step of undo; the smooth model answers (`fine` false) until the last one, which the fine model answers.
 4. What takes long (learning, exporting, loading, solving) answers with `progress` until its `share` is 1, then with
    its result; `cancel` ends it.
 5. A mistake answers `error`, in words to show to a person; the connection lives on.

Files go in by `POST /upload?name=walk.bvh` with the session token in the header `X-Poise-Session`, answered with
`{"upload": id}` that messages then name; files come out by GET of the address in `file`.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

PROTOCOL = 1
CLIPBOARD = "clipboard"
"""The pose to name in `takePose` for what was copied."""
LOOK_AT = "look-at"
"""The handle to name in `drag` when what the head looks at is dragged."""

EASE = 12
"""Frames to either side over which a key changes a recording, unless it says otherwise."""

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
Metres = Annotated[float, Meta(ge=0.01, le=20.0)]
PropKind = Literal["box", "chair", "shelf", "mesh", "picture", "video"]
PropSize = tuple[Metres, Metres, Metres]
RangeEdit = Literal["mirror", "reverse", "cycle"]
PerformingStep = Literal["preparing", "waiting", "following", "over"]
ExportFormat = Literal["bvh", "glb", "png", "gif", "mp4", "scene"]


class Wire(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """What all messages share."""


class Part(Wire, forbid_unknown_fields=False):
    """What stands in scene files too: a newer Poise may have more to say in it."""


_FOLDERS = re.compile(r"(?<![\w.:/\\])(?:[A-Za-z]:)?[/\\](?:[^\s/\\'\"]+[/\\])+(?=[^\s/\\])")


def without_folders(words: str) -> str:
    """Words in which files of the server go by their names alone."""
    return _FOLDERS.sub("", words)


# --- the scene -------------------------------------------------------------------------------------------------------


class SceneHandle(Part):
    """A point fixed to a joint, and where it should be. The page chooses the id when it makes one.

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
    """Something in the scene, standing at its position; `upload` is the file of a mesh, picture or video."""

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


class Key(Part):
    """Where a handle is at a frame; over a recording the change fades over `ease` frames to either side.

    In a motion made of keys `easing` is how the way to the next key is paced.
    """

    handle: Name
    frame: Frame
    position: Vec3 | None = None
    rotation: Quaternion | None = None
    ease: Frame = EASE
    easing: Easing = "none"


class PoseKey(Part):
    """A frame at which the whole body was posed by hand; the change fades over `ease` frames to either side."""

    frame: Frame
    ease: Frame = EASE


class Pin(Part):
    """A handle held from a first to a last frame, at a place or where it is; over a recording it comes in by `ease`."""

    handle: Name
    first: Frame
    last: Frame
    position: Vec3 | None = None
    ease: Frame = EASE


class StyleKey(Part):
    """The styles from a frame on; between two of them the weights go over smoothly."""

    frame: Frame
    weights: list[Weight]


class Timeline(Part):
    """What happens when: keys of handles, pinned ranges, and the lane of styles. `frame` is the one shown.

    `clip` names the recording that keys correct; without one, keys make the motion. `poses` are over either.
    """

    fps: Annotated[float, Meta(gt=0.0, le=1000.0)]
    frames: Annotated[int, Meta(ge=1, le=36_000)]
    frame: Frame
    keys: list[Key]
    pins: list[Pin]
    styles: list[StyleKey]
    clip: str | None
    poses: list[PoseKey] = []


class Bearing(Part):
    """What a body does unasked: keep its heading and its balance, let idle arms hang, step, keep its limbs apart."""

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


class Scene(Wire):
    """All that a session holds but for the pose itself; `moving` says whether there is a motion to play."""

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


# --- from the page ---------------------------------------------------------------------------------------------------


class Hello(Wire, tag="hello"):
    """The first message of every connection; `known` are tokens of this browser's earlier sessions."""

    protocol: int
    token: Token | None = None
    known: Annotated[list[Token], Meta(max_length=50)] = []


class PutHandle(Wire, tag="putHandle"):
    """Make a handle, or change one: numeric entry, pinning, softness. Targets left out are where the body is now."""

    handle: SceneHandle


class RemoveHandle(Wire, tag="removeHandle"):
    """Take a handle away."""

    id: Name


class Drag(Wire, tag="drag"):
    """A handle (or `look-at`) is being moved, turned or both; other handles go along by the same way."""

    seq: Seq
    handle: Name
    position: Vec3 | None = None
    rotation: Quaternion | None = None
    along: Annotated[list[Name], Meta(max_length=64)] = []
    last: bool = False


class TurnJoints(Wire, tag="turnJoints"):
    """Joints turned in the world from where the gesture began; all else keeps its rotation. `ease` keys the pose."""

    seq: Seq
    joints: Annotated[list[Name], Meta(min_length=1, max_length=200)]
    turn: Quaternion
    last: bool = False
    ease: Frame | None = None


class CopyPose(Wire, tag="copyPose"):
    """Remember the pose shown, for `takePose`."""


class TakePose(Wire, tag="takePose"):
    """Go a share of the way to a pose of the library or the clipboard, with all joints or some; `ease` keys it.

    The body stays above its place on the floor and keeps its heading.
    """

    seq: Seq
    pose: Name = CLIPBOARD
    share: Share = 1.0
    mirrored: bool = False
    joints: Annotated[list[Name], Meta(max_length=200)] = []
    last: bool = False
    ease: Frame | None = None


class AskPoses(Wire, tag="askPoses"):
    """The poses of the library that this body can take."""


class KeepPose(Wire, tag="keepPose"):
    """Put the pose shown into the library."""

    name: Name


class DropPose(Wire, tag="dropPose"):
    """Take a pose out of the library."""

    pose: Name


class ExportPoses(Wire, tag="exportPoses"):
    """Write the library as a file; `file` answers."""


class OpenPoses(Wire, tag="openPoses"):
    """Add the poses of an uploaded file to the library."""

    upload: Name


class PutProp(Wire, tag="putProp"):
    """Add a prop, or move or change one; handles that are glued to it go along."""

    seq: Seq
    prop: Prop
    last: bool = False


class RemoveProp(Wire, tag="removeProp"):
    """Take a prop away; handles that were glued to it stay where they are."""

    id: Name


class SetFeet(Wire, tag="setFeet"):
    """Whether feet stay planted where they are, stay above the floor, or go where they will."""

    feet: Feet


class SetBearing(Wire, tag="setBearing"):
    """Which of the body's defaults hold."""

    bearing: Bearing


class SetLookAt(Wire, tag="setLookAt"):
    """What the head looks at, or nothing."""

    target: Vec3 | None


class SetConstraints(Wire, tag="setConstraints"):
    """What else holds while posing: `[[constraints]]` of any registered kind, as scripts have them, in TOML."""

    text: TomlText


class Mirror(Wire, tag="mirror"):
    """Left becomes right: the pose, its handles and what it looks at."""


class Undo(Wire, tag="undo"):
    """Back by one step."""


class Redo(Wire, tag="redo"):
    """Forward by one step that was undone."""


class Reset(Wire, tag="reset"):
    """The model's own pose, without handles; it can be undone."""


class ChooseModel(Wire, tag="chooseModel"):
    """Another prior on the same handles; the pose before is sent as `ghost`."""

    model: Name


class Blend(Wire, tag="blend"):
    """A blend of models of one skeleton, by weight."""

    weights: Annotated[list[Weight], Meta(min_length=1, max_length=16)]


class AskLatentMap(Wire, tag="askLatentMap"):
    """The likelihood map of a style's latent space."""

    model: Name


class DragLatent(Wire, tag="dragLatent"):
    """The pose of a place in the style's latent space; with `hold`, as near to it as the pinned handles allow."""

    seq: Seq
    point: Vec2
    hold: bool = False
    last: bool = False


class HoverLatent(Wire, tag="hoverLatent"):
    """Show the pose of a place, without taking it."""

    seq: Seq
    point: Vec2


class SetTimeline(Wire, tag="setTimeline"):
    """Length and rate of the timeline, in frames and frames a second."""

    fps: Annotated[float, Meta(ge=1.0, le=240.0)]
    frames: Annotated[int, Meta(ge=1, le=36_000)]


class SetFrame(Wire, tag="setFrame"):
    """Show a frame: scrub."""

    frame: Frame


class PutKey(Wire, tag="putKey"):
    """Key a handle at a frame; targets left out are where the body is at that frame."""

    key: Key


class DragKey(Wire, tag="dragKey"):
    """A key is moved in space; the touched range is solved again."""

    seq: Seq
    key: Key
    last: bool = False


class RemoveKey(Wire, tag="removeKey"):
    """Take a key away."""

    handle: Name
    frame: Frame


class KeyPlace(Wire):
    """Which key: of a handle, or of the whole body."""

    handle: Name | None
    frame: Frame


class MoveKeys(Wire, tag="moveKeys"):
    """Move keys in time, together."""

    keys: Annotated[list[KeyPlace], Meta(min_length=1, max_length=2000)]
    by: Annotated[int, Meta(ge=-36_000, le=36_000)]


class EaseKeys(Wire, tag="easeKeys"):
    """Change over how many frames keys fade, or how the way to the next is paced."""

    keys: Annotated[list[KeyPlace], Meta(min_length=1, max_length=2000)]
    ease: Frame | None = None
    easing: Easing | None = None


class RemoveKeys(Wire, tag="removeKeys"):
    """Take keys away, together."""

    keys: Annotated[list[KeyPlace], Meta(min_length=1, max_length=2000)]


class EditRange(Wire, tag="editRange"):
    """Change the frames of a range, its ends eased in; "cycle" ends it in the pose that it begins with.

    A motion made of keys becomes a recording by that.
    """

    first: Frame
    last: Frame
    edit: RangeEdit
    ease: Frame = EASE


class AskAdvice(Wire, tag="askAdvice"):
    """What to do next, asked while the hand rests: `leftOpen` answers, with other possible poses where asked for.

    `looksLike` follows where something fits, unless the scene has changed by then.
    """

    others: bool = False


class AskContacts(Wire, tag="askContacts"):
    """When feet stand and hands hold on to something; `contacts` answers."""


class LockContact(Wire, tag="lockContact"):
    """Hold a foot or hand where it touches, over a contact."""

    part: Name
    first: Frame
    last: Frame
    ease: Frame = EASE


class PutPin(Wire, tag="putPin"):
    """Hold a handle over a range of frames."""

    pin: Pin


class RemovePin(Wire, tag="removePin"):
    """Let a held handle go."""

    handle: Name
    first: Frame


class PutStyleKey(Wire, tag="putStyleKey"):
    """Change the lane of styles at a frame."""

    key: StyleKey


class RemoveStyleKey(Wire, tag="removeStyleKey"):
    """Take a change of style away."""

    frame: Frame


class SolveTimeline(Wire, tag="solveTimeline"):
    """Solve the whole timeline, with every style of the lane and the fine model."""


class OpenPhoto(Wire, tag="openPhoto"):
    """Use an uploaded image; its size in pixels."""

    upload: Name
    width: Annotated[int, Meta(ge=1, le=20_000)]
    height: Annotated[int, Meta(ge=1, le=20_000)]


class MovePoint(Wire, tag="movePoint"):
    """Place or move the point of a joint in the photo."""

    seq: Seq
    point: PhotoPoint
    last: bool = False


class RemovePoint(Wire, tag="removePoint"):
    """Take a point of the photo away."""

    joint: Name


class ChooseAlternative(Wire, tag="chooseAlternative"):
    """Take one of the poses that explain the photo, by its place in `photo.alternatives`."""

    number: Annotated[int, Meta(ge=0, le=100)]


class ClosePhoto(Wire, tag="closePhoto"):
    """Put the photo away; the pose stays."""


class OpenTake(Wire, tag="openTake"):
    """Load an uploaded recording of markers (C3D, TRC)."""

    upload: Name


class OpenVideo(Wire, tag="openVideo"):
    """Solve the body of the person in an uploaded video and put it on the timeline."""

    upload: Name


class HideMarker(Wire, tag="hideMarker"):
    """Hide a marker of the take over a range of frames, or show it again."""

    marker: Name
    first: Frame
    last: Frame
    hidden: bool = True


class FillTake(Wire, tag="fillTake"):
    """Fill what is missing or hidden in the take, by a style learned from where the body is well seen."""


class Perform(Wire, tag="perform"):
    """Let the body follow a performer by a model: one of a stream of markers, videos, cameras, or the page's webcam.

    `stream` is a UDP port, or HOST:PORT, on which frames of markers arrive as lines of JSON or CSV, or a feed such as
    vmc:39539; `mapping` is an uploaded file that says what its labels are. `videos` are uploads, `cameras` numbers of
    this machine's cameras; both need `rig`, an uploaded camera file. `sync` puts videos in step that were not started
    together, `hue` tells the colours of markers, as in LFIN=red,RFIN=green. `webcam` needs none of these: pictures come
    as `webcamPicture`.
    """

    model: Name
    webcam: bool = False
    stream: Annotated[str, Meta(max_length=200)] | None = None
    videos: Annotated[list[Name], Meta(max_length=8)] = []
    cameras: Annotated[list[Annotated[int, Meta(ge=0, le=63)]], Meta(max_length=8)] = []
    rig: Name | None = None
    mapping: Name | None = None
    sync: Literal["time", "flash", "motion"] = "time"
    hue: Annotated[str, Meta(max_length=500)] = ""


class WebcamPicture(Wire, tag="webcamPicture"):
    """One picture of the page's webcam (JPEG), and when it was taken, in milliseconds by the page's clock."""

    jpeg: Annotated[bytes, Meta(max_length=900_000)]
    taken: float


class StopPerforming(Wire, tag="stopPerforming"):
    """End the performance; what was performed is then on the timeline."""


class Learn(Wire, tag="learn"):
    """Learn a model from uploaded motions, and use it."""

    name: Name
    kind: Kind
    uploads: Annotated[list[Name], Meta(min_length=1, max_length=50)]


class OpenModel(Wire, tag="openModel"):
    """Put an uploaded model on the shelf, and use it."""

    upload: Name


class RenameModel(Wire, tag="renameModel"):
    """Give a model of this page another name."""

    model: Name
    name: Name


class ExportModel(Wire, tag="exportModel"):
    """Write a model as a file; `file` answers."""

    model: Name


class OpenClip(Wire, tag="openClip"):
    """Put an uploaded motion on the timeline, with a body of its own skeleton or onto the body that is shown.

    A character with a mesh is shown as itself; without a motion it stands as it was made.
    """

    upload: Name
    onto_body: bool = False


class OpenScript(Wire, tag="openScript"):
    """Put the keys and pins of an uploaded keyframe script on the timeline."""

    upload: Name


class OpenScene(Wire, tag="openScene"):
    """Open an uploaded scene."""

    upload: Name


class OpenKept(Wire, tag="openKept"):
    """Open the scene that was kept of an earlier session, by its token."""

    token: Token


class Cancel(Wire, tag="cancel"):
    """End a long task, by the `task` of its `progress`; what it has found so far stays."""

    task: Name


class Export(Wire, tag="export"):
    """Write the pose, or the whole timeline, as a file; `file` answers."""

    format: ExportFormat
    whole: bool = False


class StreamOut(Wire, tag="streamOut"):
    """Send every pose as VMC over OSC to HOST:PORT, or stop."""

    to: Annotated[str, Meta(max_length=200)] | None


ClientMessage = (
    Hello
    | PutHandle
    | RemoveHandle
    | Drag
    | TurnJoints
    | CopyPose
    | TakePose
    | AskPoses
    | KeepPose
    | DropPose
    | ExportPoses
    | OpenPoses
    | PutProp
    | RemoveProp
    | SetFeet
    | SetBearing
    | SetLookAt
    | SetConstraints
    | Mirror
    | Undo
    | Redo
    | Reset
    | ChooseModel
    | Blend
    | AskLatentMap
    | DragLatent
    | HoverLatent
    | SetTimeline
    | SetFrame
    | PutKey
    | DragKey
    | RemoveKey
    | MoveKeys
    | EaseKeys
    | RemoveKeys
    | EditRange
    | AskAdvice
    | AskContacts
    | LockContact
    | PutPin
    | RemovePin
    | PutStyleKey
    | RemoveStyleKey
    | SolveTimeline
    | OpenPhoto
    | MovePoint
    | RemovePoint
    | ChooseAlternative
    | ClosePhoto
    | OpenTake
    | OpenVideo
    | HideMarker
    | FillTake
    | Perform
    | WebcamPicture
    | StopPerforming
    | Learn
    | OpenModel
    | RenameModel
    | ExportModel
    | OpenClip
    | OpenScript
    | OpenScene
    | OpenKept
    | Cancel
    | Export
    | StreamOut
)


# --- from the server -------------------------------------------------------------------------------------------------


class Joint(Wire):
    """A joint of the skeleton: parent -1 at the root; role such as left_hand where it has one."""

    name: str
    parent: int
    role: str | None
    end: bool


class Model(Wire):
    """Something to solve with; `own` if it came into this page, by learning or as a file."""

    id: str
    name: str
    kind: Kind
    summary: str
    latent: bool
    clips: list[str]
    own: bool


class HandleResidual(Wire):
    """What is left of one constraint, in metres or radians; `handle` is the id of a handle, `look-at`, or null."""

    handle: str | None
    label: str
    value: float
    unit: str
    hard: bool
    met: bool


class LearnableKind(Wire):
    """A kind of model that can be learned, and what it is."""

    kind: Kind
    about: str


class Opening(Wire):
    """A file that was named as the studio was started, for the page to open as if it had been dropped."""

    name: str
    upload: str


class Welcome(Wire, tag="welcome"):
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
    """A scene that was kept of an earlier session: how many seconds ago, and what is in it, in words."""

    token: str
    age: float
    words: str


class KeptScenes(Wire, tag="keptScenes"):
    """What can be taken up again, the newest first."""

    scenes: list[Kept]


class Models(Wire, tag="models"):
    """All models there are to choose from."""

    models: list[Model]


class Skin(Wire):
    """What carries the mesh of a node of a character's file: joints uint16 (n), to whose frames matrices lead.

    Matrices are float32 (n, 3, 4), from the mesh as it is bound.
    """

    node: int
    joints: bytes
    matrices: bytes


class BodyShown(Wire, tag="body"):
    """The skeleton, and a mesh in rigid parts: each vertex is fixed in the frame of its joint.

    Vertices and normals are float32 (n, 3), joints uint16 (n), tones uint8 (n) into `palette` (sRGB, 0 to 1), triangles
    uint32 (m, 3). A character with meshes of its own has them in the file at the address `character`, which is empty
    for bare skeletons.
    """

    joints: list[Joint]
    height: float
    vertices: bytes
    normals: bytes
    vertex_joints: bytes
    vertex_tones: bytes
    palette: list[tuple[float, float, float]]
    triangles: bytes
    character: str = ""
    skins: list[Skin] = []


class SceneChanged(Wire, tag="scene"):
    """The scene as it is now."""

    scene: Scene


class SolvedPose(Wire, tag="pose"):
    """The body as it is now: the world transforms of all joints, how well the handles are met, how likely it is.

    Every handle's point in the world is in `handles`, float32 (handles, 3), in the scene's order. `latent` is where the
    pose lies in the style's map. While dragging, likelihood and residuals are those of the pose shown. A pose made
    `by_hand` is not that of the motion's frame. One that `jumps` lies further from the last than a drag allows, since
    a foot steps or a handle cannot be met otherwise: the page shows it on its way.
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
    latent: tuple[float, float] | None
    microseconds: float
    by_hand: bool
    jumps: bool


class Ghost(Wire, tag="ghost"):
    """The previous result, under which model; `world` is empty to take it away."""

    world: bytes
    model: str


class HoverPose(Wire, tag="hoverPose"):
    """The pose of a place in the latent space that is hovered over."""

    seq: int
    world: bytes


class LatentMap(Wire, tag="latentMap"):
    """How likely the places of a latent space are: float32 (height, width), from the bottom row up.

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


class MotionRange(Wire, tag="motion"):
    """World transforms of frames `first` and on, float32 (frames, joints, 7), and how the solve went per frame.

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


class KeptPoses(Wire, tag="poses"):
    """The library, as far as this body can take it; `others` are of other skeletons."""

    poses: list[KeptPose]
    others: int


class LeftOpen(Wire, tag="leftOpen"):
    """The joint on which a handle would settle the largest share of what is open, and poses that are possible too."""

    joint: str | None
    share: float
    others: list[bytes]


class LooksLike(Wire, tag="looksLike"):
    """The model of one action that the pose looks like, where that is clear and it is not in use."""

    model: str | None


class Contact(Wire):
    """A foot that stands or a hand that holds, by its role, over a range of frames."""

    part: str
    first: int
    last: int


class ContactsFound(Wire, tag="contacts"):
    """All contacts of the motion."""

    contacts: list[Contact]


class PhotoSolved(Wire, tag="photo"):
    """Where the body's joints appear in the photo, float32 (joints, 2) in pixels, and all poses that fit."""

    pixels: bytes
    alternatives: list[bytes]


class Take(Wire, tag="take"):
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


class Performing(Wire, tag="performing"):
    """How a performance goes: what it follows, how many markers it sees, and how long they take to become a pose.

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


class Progress(Wire, tag="progress"):
    """How far a long task is; `curve` is the learning curve so far, where it has one. At share 1 the task is over."""

    task: str
    words: str
    share: float
    curve: list[float]


class FileReady(Wire, tag="file"):
    """A file to fetch, once, from this address."""

    name: str
    address: str
    size: int


class Refusal(Wire, tag="error"):
    """What went wrong, in words to show; `about` is the type of the message refused."""

    words: str
    about: str | None
    seq: int | None

    def __post_init__(self) -> None:
        self.words = without_folders(self.words)


ServerMessage = (
    Welcome
    | KeptScenes
    | Models
    | BodyShown
    | SceneChanged
    | SolvedPose
    | Ghost
    | HoverPose
    | LatentMap
    | MotionRange
    | KeptPoses
    | LeftOpen
    | LooksLike
    | ContactsFound
    | PhotoSolved
    | Take
    | Performing
    | Progress
    | FileReady
    | Refusal
)
