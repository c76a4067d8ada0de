"""What the page says."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from poise.studio.messages.scene import (
    CLIPBOARD,
    EASE,
    Bearing,
    Easing,
    ExportFormat,
    Feet,
    Frame,
    Key,
    Kind,
    Name,
    PhotoPoint,
    Pin,
    Prop,
    Quaternion,
    RangeEdit,
    SceneHandle,
    Seq,
    Share,
    StyleKey,
    Tangents,
    Token,
    TomlText,
    Vec2,
    Vec3,
    Weight,
    Wire,
)  # fmt: skip


class Hello(Wire, tag="hello"):
    """The first message of every connection; `known` are tokens of this browser's earlier sessions."""

    protocol: int
    token: Token | None = None
    known: Annotated[list[Token], Meta(max_length=50)] = []


class PutHandle(Wire, tag="putHandle"):
    """Make a handle, or change one: numeric entry, pinning, softness. Targets left out are where the body is now."""

    handle: SceneHandle
    seq: Seq | None = None
    gesture: Seq | None = None


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
    gesture: Seq | None = None


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
    """Add a prop, or move or change one; handles that are glued to it go along, and with `ease` they are keyed."""

    seq: Seq
    prop: Prop
    last: bool = False
    ease: Frame | None = None
    gesture: Seq | None = None


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
    """Swap left and right: the pose, its handles and what it looks at."""


class Undo(Wire, tag="undo"):
    """Back by one step."""


class Redo(Wire, tag="redo"):
    """Forward by one step that was undone."""


class Reset(Wire, tag="reset"):
    """The model's own pose, without handles; it can be undone."""


class ChooseModel(Wire, tag="chooseModel"):
    """Another prior on the same handles; the pose before is sent as `ghost`.

    On another body the scene starts again: where that clears a motion, only with `clear`; otherwise `anotherBody` asks.
    """

    model: Name
    clear: bool = False


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
    seq: Seq | None = None


class PutKey(Wire, tag="putKey"):
    """Key a handle at a frame; targets left out are where the body is at that frame."""

    key: Key
    gesture: Seq | None = None


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
    """Change over how many frames keys fade, how the way to the next is paced, or how the curve passes through them."""

    keys: Annotated[list[KeyPlace], Meta(min_length=1, max_length=2000)]
    ease: Frame | None = None
    easing: Easing | None = None
    tangents: Tangents | None = None


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


class TakeKind(Wire, tag="takeKind"):
    """Take a pose of another kind, by its place in `leftOpen.kinds`; handles that tell it apart are pinned."""

    number: Annotated[int, Meta(ge=0, le=100)]


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
    | TakeKind
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
