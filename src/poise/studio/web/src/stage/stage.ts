/** The stage: body, ground, light and camera. It draws when something changed, and only then. */
import {
  Color,
  DirectionalLight,
  HemisphereLight,
  LightProbe,
  NeutralToneMapping,
  PCFShadowMap,
  PMREMGenerator,
  PerspectiveCamera,
  Raycaster,
  Scene,
  SRGBColorSpace,
  TOUCH,
  type Texture,
  Vector2,
  Vector3,
  WebGLRenderer,
} from "three";
import { RoomEnvironment } from "three/examples/jsm/environments/RoomEnvironment.js";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
import { type Vec2, type Vec3, jointPosition } from "../arrays";
import type { BodyShown, Video } from "../messages";
import { notify } from "../state";
import type { Palette } from "../palettes";
import { Figure, GhostFigure, Shape, solidMaterial } from "./body";
import { Character } from "./character";
import { Ground } from "./ground";
import { Pace } from "./pace";
import { Props } from "./props";
import { type Navigation, type ViewName, buttonsOf, standpoint } from "./views";

export type Painter = (pen: CanvasRenderingContext2D, size: Vec2) => void;
export type GhostName = "before" | "hover";

const SHADOW_MAP = 1024;
const HOME = new Vector3(0, 0.86, 0);
const LEASH = 0.6; // metres
const HOME_DISTANCE = 4.3;
/** The light of three's RoomEnvironment as spherical harmonics (Ramamoorthi and Hanrahan 2001); it is grey. */
const ROOM = [3.722, 1.75, 1.589, 0.214, 0.137, 1.021, 1.267, -0.282, -0.672];
const SURROUNDINGS = 0.25; // strength of their light
const LENS = 32; // degrees
const FLAT_LENS = 0.6; // so narrow, and from so far away, that there is no perspective to be seen
const NEAREST = 0.6; // metres from what is looked at
const FURTHEST = 18;
const CLOSE = 0.25; // metres about a single joint that are brought into view
const FRAMED = 1.4; // times the selection's size that is in view
const GHOST_OPACITY: Record<GhostName, number> = { before: 0.3, hover: 0.42 };

export class Stage {
  readonly scene = new Scene();
  readonly camera = new PerspectiveCamera(LENS, 1, 0.05, 100);
  readonly controls: OrbitControls;
  readonly canvas: HTMLCanvasElement;
  private readonly renderer: WebGLRenderer;
  private readonly paper: HTMLCanvasElement;
  private readonly pen: CanvasRenderingContext2D;
  private readonly painters: Painter[] = [];
  private readonly ground = new Ground();
  readonly props = new Props(() => this.invalidate());
  private readonly sun = new DirectionalLight(0xfff4e6, 2.6);
  private readonly probe = new LightProbe(undefined, SURROUNDINGS);
  private surroundings: Texture | null = null;
  private readonly sky = new HemisphereLight(0xffffff, 0x8d8a84, 0.55);
  private shape: Shape | null = null;
  private figure: Figure | null = null;
  private character: Character | null = null;
  private body: BodyShown | null = null;
  private readonly ghosts = new Map<GhostName, Figure>();
  private skins: Figure[] = [];
  private posed: Float32Array | null = null;
  private palette: Palette | null = null;
  private waiting = false;
  private readonly pace = new Pace((share) => this.draw(share));
  private readonly watching = new ResizeObserver(() => this.resize());
  private filmed: Video | null = null;
  private unfilmed = { position: new Vector3(), lens: {} };
  private followed = false;
  private navigation: Navigation = "poise";

  constructor(private readonly host: HTMLElement) {
    this.renderer = new WebGLRenderer({ antialias: true, preserveDrawingBuffer: true });
    this.renderer.outputColorSpace = SRGBColorSpace;
    this.renderer.toneMapping = NeutralToneMapping;
    this.renderer.shadowMap.enabled = true;
    this.renderer.shadowMap.type = PCFShadowMap;
    this.canvas = this.renderer.domElement;
    this.canvas.className = "stage-canvas";
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute(
      "aria-label",
      "Stage: the body. Arrow keys move the selected handle; the panel lists all handles.",
    );
    this.paper = document.createElement("canvas");
    this.paper.className = "stage-paper";
    this.pen = this.paper.getContext("2d")!;
    host.append(this.canvas, this.paper);
    this.light();
    this.scene.add(this.ground.group, this.props.group);
    this.controls = this.orbit();
    this.look("perspective");
    this.watching.observe(host);
    this.resize();
  }

  // --- what is on it ------------------------------------------------------------------------------------------------

  setBody(body: BodyShown): void {
    this.figure?.dispose();
    this.character?.dispose();
    this.character = this.posed = null;
    this.surround(false);
    this.body = body;
    this.ghosts.forEach((ghost) => ghost.dispose());
    this.ghosts.clear();
    this.setSkins([]);
    this.shape = new Shape(body);
    this.figure = new Figure(this.shape, solidMaterial());
    this.figure.mesh.castShadow = true;
    this.figure.mesh.receiveShadow = true;
    this.scene.add(this.figure.mesh);
    if (this.palette) this.paint(this.palette);
    this.followed = false;
    if (body.character) void this.dress(body);
  }

  /** The character's own meshes in the place of the mannequin, once they are read. */
  private async dress(body: BodyShown): Promise<void> {
    const character = await Character.read(body).catch(() => null);
    if (!character || this.body !== body) {
      if (!character) notify("The character's meshes cannot be drawn here; a mannequin is shown instead.");
      character?.dispose();
      return;
    }
    this.character = character;
    this.surround(true);
    this.scene.add(character.group);
    if (this.posed) this.setPose(this.posed);
  }

  setPose(world: Float32Array): void {
    this.posed = world;
    (this.character ?? this.figure)?.pose(world);
    if (this.character) this.figure?.hide();
    const root = jointPosition(world, 0);
    this.sun.target.position.set(root[0], 0.8, root[2]);
    this.sun.position.set(root[0] + 1.7, 4.6, root[2] + 2.4);
    this.ground.follow(root[0], root[2]);
    if (!this.followed) this.centre(root);
    else this.keepInView(root);
    this.invalidate();
  }

  hideBody(): void {
    this.posed = null;
    this.character?.hide();
    this.figure?.hide();
    this.invalidate();
  }

  setGhost(name: GhostName, world: Float32Array | null): void {
    const ghost = this.ghosts.get(name) ?? this.makeGhost(name);
    if (world && world.length) ghost?.pose(world);
    else ghost?.hide();
    this.invalidate();
  }

  /** Onion skin: the same body at other frames, fainter the further away. */
  setSkins(worlds: readonly { world: Float32Array; strength: number }[]): void {
    while (this.skins.length > worlds.length) this.skins.pop()?.dispose();
    worlds.forEach(({ world, strength }, number) => {
      const skin = this.skins[number] ?? this.makeSkin(number);
      if (!skin) return;
      skin.mesh.material.opacity = 0.3 * strength;
      skin.pose(world);
    });
    this.invalidate();
  }

  private makeSkin(number: number): Figure | null {
    if (!this.shape || !this.palette) return null;
    const skin = new GhostFigure(this.shape, this.palette.ghost, 0.2);
    this.scene.add(skin.mesh);
    this.skins[number] = skin;
    return skin;
  }

  private makeGhost(name: GhostName): Figure | null {
    if (!this.shape || !this.palette) return null;
    const colour = name === "hover" ? this.palette.accent : this.palette.ghost;
    const ghost = new GhostFigure(this.shape, colour, GHOST_OPACITY[name]);
    this.scene.add(ghost.mesh);
    this.ghosts.set(name, ghost);
    return ghost;
  }

  paint(palette: Palette): void {
    this.palette = palette;
    this.scene.background = new Color(palette.background);
    this.ground.paint(palette);
    this.shape?.paint(palette.tones);
    this.ghosts.forEach((ghost, name) =>
      ghost.mesh.material.color.set(name === "hover" ? palette.accent : palette.ghost),
    );
    this.skins.forEach((skin) => skin.mesh.material.color.set(palette.ghost));
    this.invalidate();
  }

  // --- looking ------------------------------------------------------------------------------------------------------

  look(view: ViewName): void {
    const distance = HOME_DISTANCE * this.lengthening * Math.max(1, 0.85 / this.camera.aspect);
    this.camera.position.copy(standpoint(view, this.controls.target, distance, this.isFlat));
    this.settle();
  }

  home(root: Vec3, view: ViewName = "perspective"): void {
    this.centre(root);
    this.look(view);
  }

  get isFlat(): boolean {
    return this.camera.fov === FLAT_LENS;
  }

  /** How much further away the camera is than through its usual lens. */
  private get lengthening(): number {
    return Math.tan((LENS * Math.PI) / 360) / Math.tan((this.camera.fov * Math.PI) / 360);
  }

  /** Parallel lines stay parallel, or meet as the eye sees them; what is looked at keeps its size. */
  setFlat(flat: boolean): void {
    if (flat === this.isFlat || this.filmed) return;
    const away = this.camera.position.clone().sub(this.controls.target);
    const before = this.lengthening;
    this.camera.fov = flat ? FLAT_LENS : LENS;
    this.controls.minDistance = NEAREST * this.lengthening;
    this.controls.maxDistance = FURTHEST * this.lengthening;
    const distance = (away.length() * this.lengthening) / before;
    Object.assign(this.camera, flat ? { near: distance / 2, far: distance * 2 } : { near: 0.05, far: 100 });
    this.camera.updateProjectionMatrix();
    this.camera.position.copy(this.controls.target).add(away.setLength(distance));
    this.settle();
  }

  /** The body as the camera of a video sees it, which then does not move; null: as before. */
  film(video: Video | null): void {
    if (video === this.filmed || (!video && !this.filmed)) return;
    const { position, fov, near, far } = this.camera;
    if (!this.filmed) this.unfilmed = { position: position.clone(), lens: { fov, near, far } };
    this.filmed = video;
    this.controls.enableRotate = this.controls.enablePan = this.controls.enableZoom = !video;
    if (video) {
      const [w, x, y, z] = video.rotation;
      this.camera.position.set(...video.position);
      this.camera.quaternion.set(x, y, z, w);
      this.widen();
    } else {
      Object.assign(this.camera, this.unfilmed.lens);
      this.camera.position.copy(this.unfilmed.position);
      this.camera.updateProjectionMatrix();
      this.settle();
    }
  }

  /** The video is as large as fits on the stage: so is what its camera sees. */
  private widen(): void {
    if (!this.filmed) return;
    const [width, height] = this.filmed.size;
    const larger = Math.max(1, width / height / this.camera.aspect);
    const half = Math.tan((this.filmed.fov * Math.PI) / 360) * larger;
    Object.assign(this.camera, { fov: (360 / Math.PI) * Math.atan(half), near: 0.05, far: 100 });
    this.camera.updateProjectionMatrix();
    this.camera.updateMatrixWorld();
    this.invalidate();
  }

  setNavigation(navigation: Navigation): void {
    this.navigation = navigation;
  }

  /** Brings points into view, from where the camera looks now. */
  frame(points: readonly Vec3[]): void {
    const all = points.map((point) => new Vector3(...point));
    const middle = all.reduce((sum, point) => sum.add(point), new Vector3()).divideScalar(all.length);
    const reach = Math.max(...all.map((point) => point.distanceTo(middle)), CLOSE);
    const away = this.camera.position.clone().sub(this.controls.target);
    const distance = (FRAMED * reach) / Math.tan((this.camera.fov * Math.PI) / 360);
    this.controls.target.copy(middle);
    this.camera.position.copy(middle).add(away.setLength(distance));
    this.settle();
  }

  /** The camera goes along once the body has walked a step away from its middle. */
  keepInView([x, , z]: Vec3): void {
    if (this.filmed) return;
    const away = new Vector3(x - this.controls.target.x, 0, z - this.controls.target.z);
    const excess = away.length() - LEASH;
    if (excess > 0) this.shift(away.setLength(excess));
  }

  /** The camera stands elsewhere: what is asked of it before the next drawing is true already. */
  private settle(): void {
    if (!this.filmed) this.controls.update();
    this.camera.updateMatrixWorld();
    this.invalidate();
  }

  private shift(by: Vector3): void {
    this.controls.target.add(by);
    this.camera.position.add(by);
    this.settle();
  }

  private centre(root: Vec3): void {
    this.shift(new Vector3(root[0], HOME.y, root[2]).sub(this.controls.target));
    this.followed = true;
  }

  // --- between the world and the screen -----------------------------------------------------------------------------

  /** Where a point of the world is on the stage, in CSS pixels; null behind the camera. */
  project(point: Vec3): Vec2 | null {
    const seen = new Vector3(...point).project(this.camera);
    if (seen.z > 1) return null;
    return [((seen.x + 1) / 2) * this.host.clientWidth, ((1 - seen.y) / 2) * this.host.clientHeight];
  }

  /** How far before the camera a point is. */
  depthOf(point: Vec3): number {
    return -new Vector3(...point).applyMatrix4(this.camera.matrixWorldInverse).z;
  }

  /** The point under a pixel in the plane through `through` that faces the camera. */
  unproject(pixel: Vec2, through: Vec3): Vec3 {
    const x = (pixel[0] / this.host.clientWidth) * 2 - 1;
    const y = 1 - (pixel[1] / this.host.clientHeight) * 2;
    const ray = new Vector3(x, y, 0.5).unproject(this.camera).sub(this.camera.position).normalize();
    const forward = this.camera.getWorldDirection(new Vector3());
    const depth = new Vector3(...through).sub(this.camera.position).dot(forward) / ray.dot(forward);
    return this.camera.position.clone().addScaledVector(ray, depth).toArray();
  }

  /** The prop under a pixel, and the place on its surface there; where only solid ones count, no picture or video. */
  propAt([x, y]: Vec2, solid = false, clearance = 0): { readonly id: string; readonly place: Vec3 } | null {
    const { clientWidth, clientHeight } = this.host;
    const ray = new Raycaster();
    ray.setFromCamera(new Vector2((2 * x) / clientWidth - 1, 1 - (2 * y) / clientHeight), this.camera);
    return this.props.hit(ray, solid, clearance);
  }

  /** The world's length of one pixel at a point. */
  pixelAt(point: Vec3): number {
    const depth = new Vector3(...point).distanceTo(this.camera.position);
    return (2 * depth * Math.tan((this.camera.fov * Math.PI) / 360)) / this.host.clientHeight;
  }

  /** Right and up of the screen, in the world. */
  screenAxes(): { right: Vector3; up: Vector3 } {
    const right = new Vector3().setFromMatrixColumn(this.camera.matrixWorld, 0);
    return { right, up: new Vector3().setFromMatrixColumn(this.camera.matrixWorld, 1) };
  }

  pixelOf(event: PointerEvent | MouseEvent): Vec2 {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  // --- drawing ------------------------------------------------------------------------------------------------------

  addPainter(painter: Painter): void {
    this.painters.push(painter);
  }

  invalidate = (): void => {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => this.draw());
  };

  draw(share = this.pace.tick(performance.now())): void {
    this.waiting = false;
    const pixels = share * Math.min(devicePixelRatio, 2);
    if (this.renderer.getPixelRatio() !== pixels) this.renderer.setPixelRatio(pixels);
    this.renderer.render(this.scene, this.camera);
    const ratio = this.paper.width / Math.max(this.host.clientWidth, 1);
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.pen.clearRect(0, 0, this.host.clientWidth, this.host.clientHeight);
    for (const painter of this.painters) painter(this.pen, [this.host.clientWidth, this.host.clientHeight]);
  }

  /** Gives the graphics card back: a browser keeps about sixteen contexts, a notebook may have more cells. */
  dispose(): void {
    this.watching.disconnect();
    this.controls.dispose();
    this.renderer.dispose();
    this.renderer.forceContextLoss();
    this.canvas.remove();
    this.paper.remove();
  }

  private resize(): void {
    const { clientWidth: width, clientHeight: height } = this.host;
    if (!width || !height) return;
    const ratio = Math.min(devicePixelRatio, 2);
    this.renderer.setSize(width, height);
    this.paper.width = width * ratio;
    this.paper.height = height * ratio;
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
    this.widen();
    this.draw();
  }

  private orbit(): OrbitControls {
    const controls = new OrbitControls(this.camera, this.canvas);
    controls.target.copy(HOME);
    controls.minDistance = NEAREST;
    controls.maxDistance = FURTHEST;
    controls.maxPolarAngle = Math.PI / 2;
    controls.zoomSpeed = 0.8;
    controls.touches = { ONE: TOUCH.ROTATE, TWO: TOUCH.DOLLY_ROTATE };
    controls.addEventListener("change", this.invalidate);
    const prepare = (event: PointerEvent): void => {
      controls.mouseButtons = buttonsOf(this.navigation, event.altKey);
    };
    this.canvas.addEventListener("pointerdown", prepare, { capture: true });
    return controls;
  }

  private light(): void {
    const { sun } = this;
    sun.castShadow = true;
    sun.shadow.mapSize.set(SHADOW_MAP, SHADOW_MAP);
    sun.shadow.radius = 5;
    sun.shadow.bias = -0.0004;
    sun.shadow.normalBias = 0.015;
    Object.assign(sun.shadow.camera, { left: -1.7, right: 1.7, top: 1.9, bottom: -1.7, near: 1, far: 9 });
    const rim = new DirectionalLight(0xdfeaff, 0.8);
    rim.position.set(-3, 2.4, -3);
    this.scene.add(this.sky, sun, sun.target, rim);
    this.probe.sh.coefficients.forEach((each, number) => each.setScalar(ROOM[number]!));
    this.scene.add(this.probe);
    this.scene.environmentIntensity = SURROUNDINGS;
  }

  /** Metal mirrors its surroundings, which takes seconds to prepare without a graphics card: only for characters. */
  private surround(mirrored: boolean): void {
    if (mirrored && !this.surroundings) {
      const generator = new PMREMGenerator(this.renderer);
      this.surroundings = generator.fromScene(new RoomEnvironment(), 0.04).texture;
      generator.dispose();
    }
    this.scene.environment = mirrored ? this.surroundings : null;
    this.probe.intensity = mirrored ? 0 : SURROUNDINGS;
  }
}
