"""The messages from the page to the server."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

from poise.studio.messages.scene import *


class FromPage(Wire, tag=camel):
    """What the page sends: every class of it is a message, with its name as its type."""


class Hello(FromPage):
    """The first message of every connection; `known` are tokens of this browser's earlier sessions."""

    protocol: int
    token: Token | None = None
    known: Annotated[list[Token], Meta(max_length=50)] = []


class PutHandle(FromPage):
    """Add or change a handle: its target, pinning, softness. Omitted targets are the current positions.

    With `ease` the pose is keyed, as part of the same step.
    """

    handle: SceneHandle
    seq: Seq | None = None
    ease: Frame | None = None
    gesture: Seq | None = None


class RemoveHandle(FromPage):
    """Remove a handle."""

    id: Name


class Drag(FromPage):
    """Move a handle (or `look-at`), turn it, or both; the handles of `along` move by the same distance.

    At the `last`, `ease` keys the pose, as part of the same step; before it, the frames between whole poses are shown
    as they would be.
    """

    seq: Seq
    handle: Name
    position: Vec3 | None = None
    rotation: Quaternion | None = None
    along: Annotated[list[Name], Meta(max_length=64)] = []
    last: bool = False
    ease: Frame | None = None
    gesture: Seq | None = None


class TurnJoints(FromPage):
    """Turn joints in the world, from where the gesture began; others keep their rotations. `ease` keys the pose."""

    seq: Seq
    joints: Annotated[list[Name], Meta(min_length=1, max_length=200)]
    turn: Quaternion
    last: bool = False
    ease: Frame | None = None


class CopyPose(FromPage):
    """Copy the current pose, for `takePose`."""


class TakePose(FromPage):
    """Blend towards a pose of the library or the clipboard, with all joints or some; `ease` keys the result.

    The body keeps its place on the floor and its heading.
    """

    seq: Seq
    pose: Name = CLIPBOARD
    share: Share = 1.0
    mirrored: bool = False
    joints: Annotated[list[Name], Meta(max_length=200)] = []
    last: bool = False
    ease: Frame | None = None


class AskPoses(FromPage):
    """Ask for the poses of the library that fit this body."""


class KeepPose(FromPage):
    """Add the current pose to the library."""

    name: Name


class DropPose(FromPage):
    """Remove a pose from the library."""

    pose: Name


class ExportPoses(FromPage):
    """Write the library as a file; the answer is `file`."""


class OpenPoses(FromPage):
    """Add the poses of an uploaded file to the library."""

    upload: Name


class PutProp(FromPage):
    """Add, move or change a prop. Handles that are glued to it move along; `ease` keys the pose."""

    seq: Seq
    prop: Prop
    last: bool = False
    ease: Frame | None = None
    gesture: Seq | None = None


class RemoveProp(FromPage):
    """Remove a prop; handles that were glued to it stay where they are."""

    id: Name


class SetFeet(FromPage):
    """Whether feet stay planted, stay above the floor, or are free."""

    feet: Feet


class SetBearing(FromPage):
    """Switch the default behaviours of the body."""

    bearing: Bearing


class SetLookAt(FromPage):
    """Set what the head looks at, or nothing; `ease` keys the pose."""

    target: Vec3 | None
    ease: Frame | None = None


class SetHands(FromPage):
    """Shape the hands; `ease` keys the pose."""

    hands: Hands
    ease: Frame | None = None


class SetConstraints(FromPage):
    """Set further constraints: `[[constraints]]` of any registered kind in TOML, as in scripts."""

    text: TomlText


class Mirror(FromPage):
    """Mirror the pose, its handles and what the head looks at; `ease` keys the pose."""

    ease: Frame | None = None


class Undo(FromPage):
    """Undo one step."""


class Redo(FromPage):
    """Redo one step."""


class Reset(FromPage):
    """Remove all handles and take the model's own pose; it can be undone."""


class ChooseModel(FromPage):
    """Use another prior with the same handles; the previous pose is sent as `ghost`.

    If the prior has another body, the motion is carried onto it; without one the scene starts again. A motion that
    cannot be carried over is cleared with `clear`, else the answer is `anotherBody`.
    """

    model: Name
    clear: bool = False


class Blend(FromPage):
    """Use a blend of models of one skeleton, by weight."""

    weights: Annotated[list[Weight], Meta(min_length=1, max_length=16)]


class AskLatentMap(FromPage):
    """Ask for the likelihood map of a style's latent space."""

    model: Name


class DragLatent(FromPage):
    """Take the pose of a point in the latent space; with `hold`, as close to it as the pinned handles allow.

    At the `last`, `ease` keys the pose.
    """

    seq: Seq
    point: Vec2
    hold: bool = False
    last: bool = False
    ease: Frame | None = None


class HoverLatent(FromPage):
    """Show the pose of a point in the latent space, without taking it."""

    seq: Seq
    point: Vec2


class SetTimeline(FromPage):
    """Set the length of the timeline in frames, and its frames per second."""

    fps: Annotated[float, Meta(ge=1.0, le=240.0)]
    frames: Annotated[int, Meta(ge=1, le=36_000)]


class SetFrame(FromPage):
    """Show a frame."""

    frame: Frame
    seq: Seq | None = None


class PutKey(FromPage):
    """Key a handle at a frame; omitted targets are the positions at that frame."""

    key: Key
    gesture: Seq | None = None


class DragKey(FromPage):
    """Move a key in space; the frames that it affects are solved again."""

    seq: Seq
    key: Key
    last: bool = False


class RemoveKey(FromPage):
    """Remove a key."""

    handle: Name
    frame: Frame


class KeyPlace(Wire):
    """A key of a handle, or of the whole body."""

    handle: Name | None
    frame: Frame


class MoveKeys(FromPage):
    """Move several keys in time, or copies of them; `stretch` multiplies their distances from the first of them.

    Keys of the whole body can be mirrored at their own places.
    """

    keys: Annotated[list[KeyPlace], Meta(min_length=1, max_length=2000)]
    by: Annotated[int, Meta(ge=-36_000, le=36_000)] = 0
    stretch: Annotated[float, Meta(gt=0.0, le=100.0)] = 1.0
    copies: bool = False
    mirrored: bool = False


class EaseKeys(FromPage):
    """Change the properties of keys: how they fade, their easing and tangents; of whole poses also kind and tempo."""

    keys: Annotated[list[KeyPlace], Meta(min_length=1, max_length=2000)]
    ease: Frame | None = None
    easing: Easing | None = None
    tangents: Tangents | None = None
    kind: KeyKind | None = None
    hold: Frame | None = None
    tempo: Tempo | None = None


class RemoveKeys(FromPage):
    """Remove several keys."""

    keys: Annotated[list[KeyPlace], Meta(min_length=1, max_length=2000)]


class EditRange(FromPage):
    """Change the frames of a range and ease its ends; "cycle" makes it end in its first pose.

    A motion made of keys becomes a recording.
    """

    first: Frame
    last: Frame
    edit: RangeEdit
    ease: Frame | None = None


class AskAdvice(FromPage):
    """Ask for suggestions while nothing is dragged. The answer is `leftOpen`, with other possible poses if asked for.

    `looksLike` follows if a model fits and the scene has not changed meanwhile.
    """

    others: bool = False


class TakeKind(FromPage):
    """Take another kind of pose, by its index in `leftOpen.kinds`; the joints that distinguish it are pinned."""

    number: Annotated[int, Meta(ge=0, le=100)]
    ease: Frame | None = None


class AskContacts(FromPage):
    """Ask when feet stand and when hands hold something; the answer is `contacts`."""


class LockContact(FromPage):
    """Pin a foot or hand over the frames of a contact."""

    part: Name
    first: Frame
    last: Frame
    ease: Frame | None = None


class PutPin(FromPage):
    """Pin a handle over a range of frames."""

    pin: Pin


class RemovePin(FromPage):
    """Remove a pin."""

    handle: Name
    first: Frame


class PutStyleKey(FromPage):
    """Change the lane of styles at a frame."""

    key: StyleKey


class RemoveStyleKey(FromPage):
    """Remove a change of style."""

    frame: Frame


class SolveTimeline(FromPage):
    """Solve the whole timeline, with every style of the lane and the fine model."""


class OpenPhoto(FromPage):
    """Use an uploaded image; its size in pixels."""

    upload: Name
    width: Annotated[int, Meta(ge=1, le=20_000)]
    height: Annotated[int, Meta(ge=1, le=20_000)]


class MovePoint(FromPage):
    """Place or move the point of a joint in the photo."""

    seq: Seq
    point: PhotoPoint
    last: bool = False


class RemovePoint(FromPage):
    """Remove a point of the photo."""

    joint: Name


class ChooseAlternative(FromPage):
    """Take one of the poses that fit the photo, by its index in `photo.alternatives`."""

    number: Annotated[int, Meta(ge=0, le=100)]


class ClosePhoto(FromPage):
    """Close the photo; the pose stays."""


class OpenTake(FromPage):
    """Load an uploaded recording of markers (C3D, TRC)."""

    upload: Name


class OpenVideo(FromPage):
    """Solve the body of the person in an uploaded video and put it on the timeline."""

    upload: Name


class HideMarker(FromPage):
    """Hide a marker of the take over a range of frames, or show it again."""

    marker: Name
    first: Frame
    last: Frame
    hidden: bool = True


class FillTake(FromPage):
    """Fill the gaps of the take, with a style learned from its well-seen part."""


class Perform(FromPage):
    """Let the body follow a performer, from one of: a stream of markers, videos, cameras, the page's webcam.

    `stream` is a UDP port, or HOST:PORT, on which frames of markers arrive as lines of JSON or CSV, or a feed such as
    vmc:39539; `mapping` is an uploaded file that maps its labels. `videos` are uploads, `cameras` are numbers of this
    machine's cameras; both need `rig`, an uploaded camera file. `sync` synchronises videos that did not start together.
    `hue` sets the colours of markers, as in LFIN=red,RFIN=green. `webcam` needs none of these: its pictures come as
    `webcamPicture`.
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


class WebcamPicture(FromPage):
    """One picture of the page's webcam (JPEG), and its time in milliseconds by the page's clock."""

    jpeg: Annotated[bytes, Meta(max_length=900_000)]
    taken: float


class StopPerforming(FromPage):
    """End the performance, and put it on the timeline."""


class Learn(FromPage):
    """Learn a model from uploaded motions, and use it."""

    name: Name
    kind: Kind
    uploads: Annotated[list[Name], Meta(min_length=1, max_length=50)]


class OpenModel(FromPage):
    """Add an uploaded model, and use it."""

    upload: Name


class RenameModel(FromPage):
    """Rename a model of this page."""

    model: Name
    name: Name


class ExportModel(FromPage):
    """Write a model as a file; the answer is `file`."""

    model: Name


class OpenClip(FromPage):
    """Put an uploaded motion on the timeline, with its own skeleton or retargeted to the current body.

    A character is shown with its own mesh; without a motion it stands in its rest pose.
    """

    upload: Name
    onto_body: bool = False


class OpenScript(FromPage):
    """Put the keys and pins of an uploaded keyframe script on the timeline."""

    upload: Name


class OpenScene(FromPage):
    """Open an uploaded scene."""

    upload: Name


class OpenKept(FromPage):
    """Open the saved scene of an earlier session, by its token."""

    token: Token


class Cancel(FromPage):
    """End a long task, by the `task` of its `progress`; its results so far are kept."""

    task: Name


class Export(FromPage):
    """Write the pose, or the whole timeline, as a file; the answer is `file`."""

    format: ExportFormat
    whole: bool = False


class StreamOut(FromPage):
    """Send every pose as VMC over OSC to HOST:PORT, or stop."""

    to: Annotated[str, Meta(max_length=200)] | None


if TYPE_CHECKING:
    ClientMessage = FromPage
else:
    ClientMessage = reduce(or_, FromPage.__subclasses__())
