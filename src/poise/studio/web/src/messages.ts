// Generated from src/poise/studio/messages/ by `python -m poise.studio.typescript`; do not edit.
// World: metres, Y up, right-handed; quaternions are w, x, y, z; bytes are little-endian arrays.

export const PROTOCOL = 1;

export const CLIPBOARD = "clipboard";

export const LOOK_AT = "look-at";

export const POSES = "poses";

export const EASE = 0.4;

/** The first message of every connection; `known` are tokens of this browser's earlier sessions. */
export interface Hello {
  type: "hello";
  protocol: number;
  token?: string | null;
  known?: string[];
}

/** A point fixed to a joint, and its target. The page chooses the id when it adds a handle. */
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

/** Add or change a handle: its target, pinning, softness. Omitted targets are the current positions. */
export interface PutHandle {
  type: "putHandle";
  handle: SceneHandle;
  seq?: number | null;
  ease?: number | null;
  gesture?: number | null;
}

/** Remove a handle. */
export interface RemoveHandle {
  type: "removeHandle";
  id: string;
}

/** Move a handle (or `look-at`), turn it, or both; the handles of `along` move by the same distance. */
export interface Drag {
  type: "drag";
  seq: number;
  handle: string;
  position?: [number, number, number] | null;
  rotation?: [number, number, number, number] | null;
  along?: string[];
  last?: boolean;
  ease?: number | null;
  gesture?: number | null;
}

/** Turn joints in the world, from where the gesture began; others keep their rotations. `ease` keys the pose. */
export interface TurnJoints {
  type: "turnJoints";
  seq: number;
  joints: string[];
  turn: [number, number, number, number];
  last?: boolean;
  ease?: number | null;
}

/** Copy the current pose, for `takePose`. */
export interface CopyPose {
  type: "copyPose";
}

/** Blend towards a pose of the library or the clipboard, with all joints or some; `ease` keys the result. */
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

/** Ask for the poses of the library that fit this body. */
export interface AskPoses {
  type: "askPoses";
}

/** Add the current pose to the library. */
export interface KeepPose {
  type: "keepPose";
  name: string;
}

/** Remove a pose from the library. */
export interface DropPose {
  type: "dropPose";
  pose: string;
}

/** Write the library as a file; the answer is `file`. */
export interface ExportPoses {
  type: "exportPoses";
}

/** Add the poses of an uploaded file to the library. */
export interface OpenPoses {
  type: "openPoses";
  upload: string;
}

/** An object in the scene; `upload` is the file of its mesh, picture or video. */
export interface Prop {
  id: string;
  kind: "box" | "chair" | "shelf" | "mesh" | "picture" | "video";
  position: [number, number, number];
  size: [number, number, number];
  rotation: [number, number, number, number];
  upload: string | null;
}

/** Add, move or change a prop. Handles that are glued to it move along; `ease` keys the pose. */
export interface PutProp {
  type: "putProp";
  seq: number;
  prop: Prop;
  last?: boolean;
  ease?: number | null;
  gesture?: number | null;
}

/** Remove a prop; handles that were glued to it stay where they are. */
export interface RemoveProp {
  type: "removeProp";
  id: string;
}

/** Whether feet stay planted, stay above the floor, or are free. */
export interface SetFeet {
  type: "setFeet";
  feet: "free" | "above" | "planted";
}

/** The default behaviours: keep heading and balance, let idle arms hang, step, keep limbs apart. */
export interface Bearing {
  heading: boolean;
  balance: boolean;
  arms: boolean;
  step: boolean;
  apart: boolean;
}

/** Switch the default behaviours of the body. */
export interface SetBearing {
  type: "setBearing";
  bearing: Bearing;
}

/** Set what the head looks at, or nothing; `ease` keys the pose. */
export interface SetLookAt {
  type: "setLookAt";
  target: [number, number, number] | null;
  ease?: number | null;
}

/** Shares of hand shapes, by hand: the rest to one is the hand as it is, which is relaxed where nothing moves it. */
export interface Hands {
  left: Partial<Record<"relaxed" | "fist" | "flat" | "point", number>>;
  right: Partial<Record<"relaxed" | "fist" | "flat" | "point", number>>;
}

/** Shape the hands; `ease` keys the pose. */
export interface SetHands {
  type: "setHands";
  hands: Hands;
  ease?: number | null;
}

/** Set further constraints: `[[constraints]]` of any registered kind in TOML, as in scripts. */
export interface SetConstraints {
  type: "setConstraints";
  text: string;
}

/** Mirror the pose, its handles and what the head looks at; `ease` keys the pose. */
export interface Mirror {
  type: "mirror";
  ease?: number | null;
}

/** Undo one step. */
export interface Undo {
  type: "undo";
}

/** Redo one step. */
export interface Redo {
  type: "redo";
}

/** Remove all handles and take the model's own pose; it can be undone. */
export interface Reset {
  type: "reset";
}

/** Use another prior with the same handles; the previous pose is sent as `ghost`. */
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

/** Use a blend of models of one skeleton, by weight. */
export interface Blend {
  type: "blend";
  weights: Weight[];
}

/** Ask for the likelihood map of a style's latent space. */
export interface AskLatentMap {
  type: "askLatentMap";
  model: string;
}

/** Take the pose of a point in the latent space; with `hold`, as close to it as the pinned handles allow. */
export interface DragLatent {
  type: "dragLatent";
  seq: number;
  point: [number, number];
  hold?: boolean;
  last?: boolean;
  ease?: number | null;
}

/** Show the pose of a point in the latent space, without taking it. */
export interface HoverLatent {
  type: "hoverLatent";
  seq: number;
  point: [number, number];
}

/** Set the length of the timeline in frames, and its frames per second. */
export interface SetTimeline {
  type: "setTimeline";
  fps: number;
  frames: number;
}

/** Show a frame. */
export interface SetFrame {
  type: "setFrame";
  frame: number;
  seq?: number | null;
}

/** The target of a handle at a frame; in a recording the change fades over `ease` frames on each side. */
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

/** Key a handle at a frame; omitted targets are the positions at that frame. */
export interface PutKey {
  type: "putKey";
  key: Key;
  gesture?: number | null;
}

/** Move a key in space; the frames that it affects are solved again. */
export interface DragKey {
  type: "dragKey";
  seq: number;
  key: Key;
  last?: boolean;
}

/** Remove a key. */
export interface RemoveKey {
  type: "removeKey";
  handle: string;
  frame: number;
}

/** A key of a handle, or of the whole body. */
export interface KeyPlace {
  handle: string | null;
  frame: number;
}

/** Move several keys in time, or copies of them; `stretch` multiplies their distances from the first of them. */
export interface MoveKeys {
  type: "moveKeys";
  keys: KeyPlace[];
  by?: number;
  stretch?: number;
  copies?: boolean;
  mirrored?: boolean;
}

/** Change the properties of keys: how they fade, their easing and tangents; of whole poses also kind and tempo. */
export interface EaseKeys {
  type: "easeKeys";
  keys: KeyPlace[];
  ease?: number | null;
  easing?: "none" | "in" | "out" | "in-out" | null;
  tangents?: "chosen" | "flat" | null;
  kind?: "extreme" | "breakdown" | "hold" | null;
  hold?: number | null;
  tempo?: number | null;
}

/** Remove several keys. */
export interface RemoveKeys {
  type: "removeKeys";
  keys: KeyPlace[];
}

/** Change the frames of a range and ease its ends; "cycle" makes it end in its first pose. */
export interface EditRange {
  type: "editRange";
  first: number;
  last: number;
  edit: "mirror" | "reverse" | "cycle";
  ease?: number | null;
}

/** Ask for suggestions while nothing is dragged. The answer is `leftOpen`, with other possible poses if asked for. */
export interface AskAdvice {
  type: "askAdvice";
  others?: boolean;
}

/** Take another kind of pose, by its index in `leftOpen.kinds`; the joints that distinguish it are pinned. */
export interface TakeKind {
  type: "takeKind";
  number: number;
  ease?: number | null;
}

/** Ask when feet stand and when hands hold something; the answer is `contacts`. */
export interface AskContacts {
  type: "askContacts";
}

/** Pin a foot or hand over the frames of a contact. */
export interface LockContact {
  type: "lockContact";
  part: string;
  first: number;
  last: number;
  ease?: number | null;
}

/** A handle held from a first to a last frame, at a target or where it is; in a recording `ease` fades it in. */
export interface Pin {
  handle: string;
  first: number;
  last: number;
  position: [number, number, number] | null;
  ease: number;
}

/** Pin a handle over a range of frames. */
export interface PutPin {
  type: "putPin";
  pin: Pin;
}

/** Remove a pin. */
export interface RemovePin {
  type: "removePin";
  handle: string;
  first: number;
}

/** The styles from a frame on; weights change smoothly between two of them. */
export interface StyleKey {
  frame: number;
  weights: Weight[];
}

/** Change the lane of styles at a frame. */
export interface PutStyleKey {
  type: "putStyleKey";
  key: StyleKey;
}

/** Remove a change of style. */
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

/** Remove a point of the photo. */
export interface RemovePoint {
  type: "removePoint";
  joint: string;
}

/** Take one of the poses that fit the photo, by its index in `photo.alternatives`. */
export interface ChooseAlternative {
  type: "chooseAlternative";
  number: number;
}

/** Close the photo; the pose stays. */
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

/** Fill the gaps of the take, with a style learned from its well-seen part. */
export interface FillTake {
  type: "fillTake";
}

/** Let the body follow a performer, from one of: a stream of markers, videos, cameras, the page's webcam. */
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

/** One picture of the page's webcam (JPEG), and its time in milliseconds by the page's clock. */
export interface WebcamPicture {
  type: "webcamPicture";
  jpeg: Uint8Array;
  taken: number;
}

/** End the performance, and put it on the timeline. */
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

/** Add an uploaded model, and use it. */
export interface OpenModel {
  type: "openModel";
  upload: string;
}

/** Rename a model of this page. */
export interface RenameModel {
  type: "renameModel";
  model: string;
  name: string;
}

/** Write a model as a file; the answer is `file`. */
export interface ExportModel {
  type: "exportModel";
  model: string;
}

/** Put an uploaded motion on the timeline, with its own skeleton or retargeted to the current body. */
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

/** Open the saved scene of an earlier session, by its token. */
export interface OpenKept {
  type: "openKept";
  token: string;
}

/** End a long task, by the `task` of its `progress`; its results so far are kept. */
export interface Cancel {
  type: "cancel";
  task: string;
}

/** Write the pose, or the whole timeline, as a file; the answer is `file`. */
export interface Export {
  type: "export";
  format: "bvh" | "glb" | "png" | "gif" | "mp4" | "usd" | "scene";
  whole?: boolean;
}

/** Send every pose as VMC over OSC to HOST:PORT, or stop. */
export interface StreamOut {
  type: "streamOut";
  to: string | null;
}

/** A kind of model that can be learned, with its description. */
export interface LearnableKind {
  kind: string;
  about: string;
}

/** A file named on the command line, which the page opens as if it had been dropped. */
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

/** A saved scene of an earlier session: its age in seconds, and its contents in words. */
export interface Kept {
  token: string;
  age: number;
  words: string;
}

/** The saved scenes, newest first. */
export interface KeptScenes {
  type: "keptScenes";
  scenes: Kept[];
}

/** A model; `own` if this page learned or opened it. */
export interface Model {
  id: string;
  name: string;
  kind: string;
  summary: string;
  latent: boolean;
  clips: string[];
  own: boolean;
}

/** All models to choose from. */
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

/** The skeleton, the palms, fingertips and soles it has, and a skin: each vertex follows four joints by weight. */
export interface BodyShown {
  type: "body";
  joints: Joint[];
  surfaces: string[];
  placed: number;
  height: number;
  vertices: Uint8Array;
  normals: Uint8Array;
  vertexJoints: Uint8Array;
  vertexWeights: Uint8Array;
  vertexTones: Uint8Array;
  palette: [number, number, number][];
  triangles: Uint8Array;
  inverses: Uint8Array;
  character: string;
  skins: Skin[];
}

/** A frame at which the whole body is posed, and the ids of the handles that were pinned then. */
export interface BodyKey {
  frame: number;
  ease: number;
  handles: string[];
  kind: "extreme" | "breakdown" | "hold";
  hold: number;
  easing: "none" | "in" | "out" | "in-out";
  tempo: number;
  hands: Hands;
}

/** Keys of handles, pinned ranges, and the lane of styles. `frame` is the current frame. */
export interface Timeline {
  fps: number;
  frames: number;
  frame: number;
  keys: Key[];
  pins: Pin[];
  styles: StyleKey[];
  clip: string | null;
  poses: BodyKey[];
}

/** An image in which points of the body are marked. */
export interface Photo {
  upload: string;
  width: number;
  height: number;
  points: PhotoPoint[];
}

/** The video that a motion was found in, and its camera: it looks along its -Z, up is +Y; `fov` is vertical. */
export interface Video {
  upload: string;
  size: [number, number];
  fov: number;
  position: [number, number, number];
  rotation: [number, number, number, number];
}

/** Everything in a session except the pose; `moving` says whether there is a motion to play. */
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
  hands: Hands;
  video: Video | null;
}

/** The current scene. */
export interface SceneChanged {
  type: "scene";
  scene: Scene;
}

/** The residual of one constraint, in metres or radians; `handle` is the id of a handle, `look-at`, or null. */
export interface HandleResidual {
  handle: string | null;
  label: string;
  value: number;
  unit: string;
  hard: boolean;
  met: boolean;
}

/** The current pose: the world transforms of all joints, the residuals of the handles, and the likelihood. */
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
  beyond: string;
  latent: [number, number] | null;
  microseconds: number;
  byHand: boolean;
  jumps: boolean;
}

/** The previous pose and its model; an empty `world` removes it. */
export interface Ghost {
  type: "ghost";
  world: Uint8Array;
  model: string;
}

/** The pose of the point of the latent space under the pointer. */
export interface HoverPose {
  type: "hoverPose";
  seq: number;
  world: Uint8Array;
}

/** The likelihood map of a latent space: float32 (height, width), from the bottom row up. */
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

/** World transforms of the frames from `first`, float32 (frames, joints, 7), and the status of each frame. */
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

/** The poses of the library for this skeleton; `others` counts those of other skeletons. */
export interface KeptPoses {
  type: "poses";
  poses: KeptPose[];
  others: number;
}

/** The joint whose handle would reduce the uncertainty most, in words what to do, and other possible poses. */
export interface LeftOpen {
  type: "leftOpen";
  joint: string | null;
  share: number;
  others: Uint8Array[];
  words: string;
  kinds: number[];
}

/** The model of one action that the pose clearly looks like, if it is not in use. */
export interface LooksLike {
  type: "looksLike";
  model: string | null;
}

/** The chosen model has another body, and the motion cannot be carried onto it, in words why. */
export interface AnotherBody {
  type: "anotherBody";
  model: string;
  name: string;
  words: string;
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

/** The joints in the photo, float32 (joints, 2) in pixels, and all poses that fit. */
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

/** The state of a performance: its source, the visible markers, and the latency. */
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

/** The progress of a long task; at share 1 it is done. `curve` is the learning curve so far, if there is one. */
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

/** What the user should know about what was done, in words. */
export interface Remark {
  type: "remark";
  words: string;
}

/** An error, in words for the user; `about` is the type of the refused message. */
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
  | SetHands
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
  | Remark
  | Refusal;
