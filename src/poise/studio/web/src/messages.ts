// Generated from src/poise/studio/messages/ by `python -m poise.studio.typescript`; do not edit.
// World: metres, Y up, right-handed; quaternions are w, x, y, z; bytes are little-endian arrays.

export const PROTOCOL = 1;

export const CLIPBOARD = "clipboard";

export const LOOK_AT = "look-at";

export const EASE = 12;

/** The first message of every connection; `known` are tokens of this browser's earlier sessions. */
export interface Hello {
  type: "hello";
  protocol: number;
  token?: string | null;
  known?: string[];
}

/** A point fixed to a joint, and where it should be. The page chooses the id when it makes one. */
export interface SceneHandle {
  id: string;
  joint: string;
  offset: [number, number, number];
  position: [number, number, number] | null;
  rotation: [number, number, number, number] | null;
  pinned: boolean;
  hard: boolean;
  tolerance: number;
  turnTolerance: number;
  glued: string | null;
}

/** Make a handle, or change one: numeric entry, pinning, softness. Targets left out are where the body is now. */
export interface PutHandle {
  type: "putHandle";
  handle: SceneHandle;
  seq?: number | null;
  gesture?: number | null;
}

/** Take a handle away. */
export interface RemoveHandle {
  type: "removeHandle";
  id: string;
}

/** A handle (or `look-at`) is being moved, turned or both; other handles go along by the same way. */
export interface Drag {
  type: "drag";
  seq: number;
  handle: string;
  position?: [number, number, number] | null;
  rotation?: [number, number, number, number] | null;
  along?: string[];
  last?: boolean;
  gesture?: number | null;
}

/** Joints turned in the world from where the gesture began; all else keeps its rotation. `ease` keys the pose. */
export interface TurnJoints {
  type: "turnJoints";
  seq: number;
  joints: string[];
  turn: [number, number, number, number];
  last?: boolean;
  ease?: number | null;
}

/** Remember the pose shown, for `takePose`. */
export interface CopyPose {
  type: "copyPose";
}

/** Go a share of the way to a pose of the library or the clipboard, with all joints or some; `ease` keys it. */
export interface TakePose {
  type: "takePose";
  seq: number;
  pose?: string;
  share?: number;
  mirrored?: boolean;
  joints?: string[];
  last?: boolean;
  ease?: number | null;
}

/** The poses of the library that this body can take. */
export interface AskPoses {
  type: "askPoses";
}

/** Put the pose shown into the library. */
export interface KeepPose {
  type: "keepPose";
  name: string;
}

/** Take a pose out of the library. */
export interface DropPose {
  type: "dropPose";
  pose: string;
}

/** Write the library as a file; `file` answers. */
export interface ExportPoses {
  type: "exportPoses";
}

/** Add the poses of an uploaded file to the library. */
export interface OpenPoses {
  type: "openPoses";
  upload: string;
}

/** Something in the scene, standing at its position; `upload` is the file of a mesh, picture or video. */
export interface Prop {
  id: string;
  kind: "box" | "chair" | "shelf" | "mesh" | "picture" | "video";
  position: [number, number, number];
  size: [number, number, number];
  rotation: [number, number, number, number];
  upload: string | null;
}

/** Add a prop, or move or change one; handles that are glued to it go along, and with `ease` they are keyed. */
export interface PutProp {
  type: "putProp";
  seq: number;
  prop: Prop;
  last?: boolean;
  ease?: number | null;
  gesture?: number | null;
}

/** Take a prop away; handles that were glued to it stay where they are. */
export interface RemoveProp {
  type: "removeProp";
  id: string;
}

/** Whether feet stay planted where they are, stay above the floor, or go where they will. */
export interface SetFeet {
  type: "setFeet";
  feet: "free" | "above" | "planted";
}

/** What a body does unasked: keep its heading and its balance, let idle arms hang, step, keep its limbs apart. */
export interface Bearing {
  heading: boolean;
  balance: boolean;
  arms: boolean;
  step: boolean;
  apart: boolean;
}

/** Which of the body's defaults hold. */
export interface SetBearing {
  type: "setBearing";
  bearing: Bearing;
}

/** What the head looks at, or nothing. */
export interface SetLookAt {
  type: "setLookAt";
  target: [number, number, number] | null;
}

/** What else holds while posing: `[[constraints]]` of any registered kind, as scripts have them, in TOML. */
export interface SetConstraints {
  type: "setConstraints";
  text: string;
}

/** Swap left and right: the pose, its handles and what it looks at. */
export interface Mirror {
  type: "mirror";
}

/** Back by one step. */
export interface Undo {
  type: "undo";
}

/** Forward by one step that was undone. */
export interface Redo {
  type: "redo";
}

/** The model's own pose, without handles; it can be undone. */
export interface Reset {
  type: "reset";
}

/** Another prior on the same handles; the pose before is sent as `ghost`. */
export interface ChooseModel {
  type: "chooseModel";
  model: string;
  clear?: boolean;
}

/** A model's share in a blend; shares need not sum to one. */
export interface Weight {
  model: string;
  weight: number;
}

/** A blend of models of one skeleton, by weight. */
export interface Blend {
  type: "blend";
  weights: Weight[];
}

/** The likelihood map of a style's latent space. */
export interface AskLatentMap {
  type: "askLatentMap";
  model: string;
}

/** The pose of a place in the style's latent space; with `hold`, as near to it as the pinned handles allow. */
export interface DragLatent {
  type: "dragLatent";
  seq: number;
  point: [number, number];
  hold?: boolean;
  last?: boolean;
}

/** Show the pose of a place, without taking it. */
export interface HoverLatent {
  type: "hoverLatent";
  seq: number;
  point: [number, number];
}

/** Length and rate of the timeline, in frames and frames a second. */
export interface SetTimeline {
  type: "setTimeline";
  fps: number;
  frames: number;
}

/** Show a frame: scrub. */
export interface SetFrame {
  type: "setFrame";
  frame: number;
  seq?: number | null;
}

/** Where a handle is at a frame; over a recording the change fades over `ease` frames to either side. */
export interface Key {
  handle: string;
  frame: number;
  position: [number, number, number] | null;
  rotation: [number, number, number, number] | null;
  ease: number;
  easing: "none" | "in" | "out" | "in-out";
  tangent: [number, number, number] | null;
  spin: [number, number, number] | null;
}

/** Key a handle at a frame; targets left out are where the body is at that frame. */
export interface PutKey {
  type: "putKey";
  key: Key;
  gesture?: number | null;
}

/** A key is moved in space; the touched range is solved again. */
export interface DragKey {
  type: "dragKey";
  seq: number;
  key: Key;
  last?: boolean;
}

/** Take a key away. */
export interface RemoveKey {
  type: "removeKey";
  handle: string;
  frame: number;
}

/** Which key: of a handle, or of the whole body. */
export interface KeyPlace {
  handle: string | null;
  frame: number;
}

/** Move keys in time, together. */
export interface MoveKeys {
  type: "moveKeys";
  keys: KeyPlace[];
  by: number;
}

/** Change over how many frames keys fade, how the way to the next is paced, or how the curve passes through them. */
export interface EaseKeys {
  type: "easeKeys";
  keys: KeyPlace[];
  ease?: number | null;
  easing?: "none" | "in" | "out" | "in-out" | null;
  tangents?: "chosen" | "flat" | null;
}

/** Take keys away, together. */
export interface RemoveKeys {
  type: "removeKeys";
  keys: KeyPlace[];
}

/** Change the frames of a range, its ends eased in; "cycle" ends it in the pose that it begins with. */
export interface EditRange {
  type: "editRange";
  first: number;
  last: number;
  edit: "mirror" | "reverse" | "cycle";
  ease?: number;
}

/** What to do next, asked while the hand rests: `leftOpen` answers, with other possible poses where asked for. */
export interface AskAdvice {
  type: "askAdvice";
  others?: boolean;
}

/** Take a pose of another kind, by its place in `leftOpen.kinds`; handles that tell it apart are pinned. */
export interface TakeKind {
  type: "takeKind";
  number: number;
}

/** When feet stand and hands hold on to something; `contacts` answers. */
export interface AskContacts {
  type: "askContacts";
}

/** Hold a foot or hand where it touches, over a contact. */
export interface LockContact {
  type: "lockContact";
  part: string;
  first: number;
  last: number;
  ease?: number;
}

/** A handle held from a first to a last frame, at a place or where it is; over a recording it comes in by `ease`. */
export interface Pin {
  handle: string;
  first: number;
  last: number;
  position: [number, number, number] | null;
  ease: number;
}

/** Hold a handle over a range of frames. */
export interface PutPin {
  type: "putPin";
  pin: Pin;
}

/** Let a held handle go. */
export interface RemovePin {
  type: "removePin";
  handle: string;
  first: number;
}

/** The styles from a frame on; between two of them the weights go over smoothly. */
export interface StyleKey {
  frame: number;
  weights: Weight[];
}

/** Change the lane of styles at a frame. */
export interface PutStyleKey {
  type: "putStyleKey";
  key: StyleKey;
}

/** Take a change of style away. */
export interface RemoveStyleKey {
  type: "removeStyleKey";
  frame: number;
}

/** Solve the whole timeline, with every style of the lane and the fine model. */
export interface SolveTimeline {
  type: "solveTimeline";
}

/** Use an uploaded image; its size in pixels. */
export interface OpenPhoto {
  type: "openPhoto";
  upload: string;
  width: number;
  height: number;
}

/** A joint seen at a pixel of the photo, x to the right and y down. */
export interface PhotoPoint {
  joint: string;
  pixel: [number, number];
}

/** Place or move the point of a joint in the photo. */
export interface MovePoint {
  type: "movePoint";
  seq: number;
  point: PhotoPoint;
  last?: boolean;
}

/** Take a point of the photo away. */
export interface RemovePoint {
  type: "removePoint";
  joint: string;
}

/** Take one of the poses that explain the photo, by its place in `photo.alternatives`. */
export interface ChooseAlternative {
  type: "chooseAlternative";
  number: number;
}

/** Put the photo away; the pose stays. */
export interface ClosePhoto {
  type: "closePhoto";
}

/** Load an uploaded recording of markers (C3D, TRC). */
export interface OpenTake {
  type: "openTake";
  upload: string;
}

/** Solve the body of the person in an uploaded video and put it on the timeline. */
export interface OpenVideo {
  type: "openVideo";
  upload: string;
}

/** Hide a marker of the take over a range of frames, or show it again. */
export interface HideMarker {
  type: "hideMarker";
  marker: string;
  first: number;
  last: number;
  hidden?: boolean;
}

/** Fill what is missing or hidden in the take, by a style learned from where the body is well seen. */
export interface FillTake {
  type: "fillTake";
}

/** Let the body follow a performer by a model: one of a stream of markers, videos, cameras, or the page's webcam. */
export interface Perform {
  type: "perform";
  model: string;
  webcam?: boolean;
  stream?: string | null;
  videos?: string[];
  cameras?: number[];
  rig?: string | null;
  mapping?: string | null;
  sync?: "time" | "flash" | "motion";
  hue?: string;
}

/** One picture of the page's webcam (JPEG), and when it was taken, in milliseconds by the page's clock. */
export interface WebcamPicture {
  type: "webcamPicture";
  jpeg: Uint8Array;
  taken: number;
}

/** End the performance; what was performed is then on the timeline. */
export interface StopPerforming {
  type: "stopPerforming";
}

/** Learn a model from uploaded motions, and use it. */
export interface Learn {
  type: "learn";
  name: string;
  kind: string;
  uploads: string[];
}

/** Put an uploaded model on the shelf, and use it. */
export interface OpenModel {
  type: "openModel";
  upload: string;
}

/** Give a model of this page another name. */
export interface RenameModel {
  type: "renameModel";
  model: string;
  name: string;
}

/** Write a model as a file; `file` answers. */
export interface ExportModel {
  type: "exportModel";
  model: string;
}

/** Put an uploaded motion on the timeline, with a body of its own skeleton or onto the body that is shown. */
export interface OpenClip {
  type: "openClip";
  upload: string;
  ontoBody?: boolean;
}

/** Put the keys and pins of an uploaded keyframe script on the timeline. */
export interface OpenScript {
  type: "openScript";
  upload: string;
}

/** Open an uploaded scene. */
export interface OpenScene {
  type: "openScene";
  upload: string;
}

/** Open the scene that was kept of an earlier session, by its token. */
export interface OpenKept {
  type: "openKept";
  token: string;
}

/** End a long task, by the `task` of its `progress`; what it has found so far stays. */
export interface Cancel {
  type: "cancel";
  task: string;
}

/** Write the pose, or the whole timeline, as a file; `file` answers. */
export interface Export {
  type: "export";
  format: "bvh" | "glb" | "png" | "gif" | "mp4" | "scene";
  whole?: boolean;
}

/** Send every pose as VMC over OSC to HOST:PORT, or stop. */
export interface StreamOut {
  type: "streamOut";
  to: string | null;
}

/** A kind of model that can be learned, and what it is. */
export interface LearnableKind {
  kind: string;
  about: string;
}

/** A file that was named as the studio was started, for the page to open as if it had been dropped. */
export interface Opening {
  name: string;
  upload: string;
}

/** The answer to `hello`; keep the token to resume. */
export interface Welcome {
  type: "welcome";
  protocol: number;
  version: string;
  token: string;
  resumed: boolean;
  largestUpload: number;
  kinds: LearnableKind[];
  motions: string[];
  takes: string[];
  constraints: string[];
  openings: Opening[];
}

/** A scene that was kept of an earlier session: how many seconds ago, and what is in it, in words. */
export interface Kept {
  token: string;
  age: number;
  words: string;
}

/** What can be taken up again, the newest first. */
export interface KeptScenes {
  type: "keptScenes";
  scenes: Kept[];
}

/** Something to solve with; `own` if it came into this page, by learning or as a file. */
export interface Model {
  id: string;
  name: string;
  kind: string;
  summary: string;
  latent: boolean;
  clips: string[];
  own: boolean;
}

/** All models there are to choose from. */
export interface Models {
  type: "models";
  models: Model[];
}

/** A joint of the skeleton: parent -1 at the root; role such as left_hand where it has one. */
export interface Joint {
  name: string;
  parent: number;
  role: string | null;
  end: boolean;
}

/** What carries the mesh of a node of a character's file: joints uint16 (n), to whose frames matrices lead. */
export interface Skin {
  node: number;
  joints: Uint8Array;
  matrices: Uint8Array;
}

/** The skeleton, and a mesh in rigid parts: each vertex is fixed in the frame of its joint. */
export interface BodyShown {
  type: "body";
  joints: Joint[];
  height: number;
  vertices: Uint8Array;
  normals: Uint8Array;
  vertexJoints: Uint8Array;
  vertexTones: Uint8Array;
  palette: [number, number, number][];
  triangles: Uint8Array;
  character: string;
  skins: Skin[];
}

/** A frame at which the whole body was posed by hand; the change fades over `ease` frames to either side. */
export interface PoseKey {
  frame: number;
  ease: number;
}

/** What happens when: keys of handles, pinned ranges, and the lane of styles. `frame` is the one shown. */
export interface Timeline {
  fps: number;
  frames: number;
  frame: number;
  keys: Key[];
  pins: Pin[];
  styles: StyleKey[];
  clip: string | null;
  poses: PoseKey[];
}

/** An image in which points of the body are marked. */
export interface Photo {
  upload: string;
  width: number;
  height: number;
  points: PhotoPoint[];
}

/** All that a session holds but for the pose itself; `moving` says whether there is a motion to play. */
export interface Scene {
  model: string;
  weights: Weight[];
  handles: SceneHandle[];
  feet: "free" | "above" | "planted";
  bearing: Bearing;
  lookAt: [number, number, number] | null;
  undo: number;
  redo: number;
  timeline: Timeline;
  photo: Photo | null;
  streaming: string | null;
  moving: boolean;
  props: Prop[];
  constraints: string;
}

/** The scene as it is now. */
export interface SceneChanged {
  type: "scene";
  scene: Scene;
}

/** What is left of one constraint, in metres or radians; `handle` is the id of a handle, `look-at`, or null. */
export interface HandleResidual {
  handle: string | null;
  label: string;
  value: number;
  unit: string;
  hard: boolean;
  met: boolean;
}

/** The body as it is now: the world transforms of all joints, how well the handles are met, how likely it is. */
export interface SolvedPose {
  type: "pose";
  seq: number;
  fine: boolean;
  world: Uint8Array;
  handles: Uint8Array;
  status: "reached" | "relaxed" | "out_of_time" | "broken";
  words: string;
  residuals: HandleResidual[];
  logLikelihood: number | null;
  percentile: number | null;
  latent: [number, number] | null;
  microseconds: number;
  byHand: boolean;
  jumps: boolean;
}

/** The previous result, under which model; `world` is empty to take it away. */
export interface Ghost {
  type: "ghost";
  world: Uint8Array;
  model: string;
}

/** The pose of a place in the latent space that is hovered over. */
export interface HoverPose {
  type: "hoverPose";
  seq: number;
  world: Uint8Array;
}

/** How likely the places of a latent space are: float32 (height, width), from the bottom row up. */
export interface LatentMap {
  type: "latentMap";
  model: string;
  width: number;
  height: number;
  extent: [number, number, number, number];
  values: Uint8Array;
  points: Uint8Array;
  active: Uint8Array;
  cylinder: boolean;
}

/** World transforms of frames `first` and on, float32 (frames, joints, 7), and how the solve went per frame. */
export interface MotionRange {
  type: "motion";
  seq: number;
  fine: boolean;
  first: number;
  frames: number;
  world: Uint8Array;
  pathHandles: string[];
  paths: Uint8Array;
  unmet: number[];
}

/** A pose of the library, standing at the origin. */
export interface KeptPose {
  id: string;
  name: string;
  world: Uint8Array;
}

/** The library, as far as this body can take it; `others` are of other skeletons. */
export interface KeptPoses {
  type: "poses";
  poses: KeptPose[];
  others: number;
}

/** The joint on which a handle would settle the largest share of what is open, and poses that are possible too. */
export interface LeftOpen {
  type: "leftOpen";
  joint: string | null;
  share: number;
  others: Uint8Array[];
  kinds: number[];
}

/** The model of one action that the pose looks like, where that is clear and it is not in use. */
export interface LooksLike {
  type: "looksLike";
  model: string | null;
}

/** A model that was chosen has another body, on which the motion of the timeline would be lost. */
export interface AnotherBody {
  type: "anotherBody";
  model: string;
  name: string;
}

/** A foot that stands or a hand that holds, by its role, over a range of frames. */
export interface Contact {
  part: string;
  first: number;
  last: number;
}

/** All contacts of the motion. */
export interface ContactsFound {
  type: "contacts";
  contacts: Contact[];
}

/** Where the body's joints appear in the photo, float32 (joints, 2) in pixels, and all poses that fit. */
export interface PhotoSolved {
  type: "photo";
  pixels: Uint8Array;
  alternatives: Uint8Array[];
}

/** A recording of markers: names, and positions float32 (frames, markers, 3), NaN where one is missing. */
export interface Take {
  type: "take";
  name: string;
  fps: number;
  frames: number;
  markers: string[];
  positions: Uint8Array;
  filled: Uint8Array;
  deviations: Uint8Array;
}

/** How a performance goes: what it follows, how many markers it sees, and how long they take to become a pose. */
export interface Performing {
  type: "performing";
  source: string;
  step: "preparing" | "waiting" | "following" | "over";
  frames: number;
  rate: number;
  latency: number | null;
  slowest: number | null;
  markers: string[];
  places: Uint8Array;
  notes: string[];
  taken: number | null;
}

/** How far a long task is; `curve` is the learning curve so far, where it has one. At share 1 the task is over. */
export interface Progress {
  type: "progress";
  task: string;
  words: string;
  share: number;
  curve: number[];
}

/** A file to fetch, once, from this address. */
export interface FileReady {
  type: "file";
  name: string;
  address: string;
  size: number;
}

/** What went wrong, in words to show; `about` is the type of the message refused. */
export interface Refusal {
  type: "error";
  words: string;
  about: string | null;
  seq: number | null;
}

export type ClientMessage =
  | Hello
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
  | StreamOut;

export type ServerMessage =
  | Welcome
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
  | AnotherBody
  | ContactsFound
  | PhotoSolved
  | Take
  | Performing
  | Progress
  | FileReady
  | Refusal;
