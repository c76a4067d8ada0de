/** What stands about the body: boxes, chairs, shelves, meshes from files, pictures and videos to work from. */
import {
  Box3,
  BoxGeometry,
  DoubleSide,
  Group,
  Mesh,
  MeshBasicMaterial,
  MeshStandardMaterial,
  type Object3D,
  PlaneGeometry,
  type Raycaster,
  SRGBColorSpace,
  type Texture,
  TextureLoader,
  Vector3,
} from "three";
import type { Vec3 } from "../arrays";
import type { Prop } from "../messages";
import { TimedPicture, timedPicture } from "./video";

const BOARD = 0.03; // metres, of which chairs and shelves are made
const LEG = 0.04;
export const CLEARANCE = 0.03; // metres that a joint is above the surface it lies on
const BOARDS: ReadonlySet<Prop["kind"]> = new Set(["picture", "video"]);
const material = new MeshStandardMaterial({ color: "#b9b2a6", roughness: 0.85 });

export class Props {
  readonly group = new Group();
  private readonly shown = new Map<
    string,
    { readonly made: string; readonly kind: Prop["kind"]; readonly object: Object3D }
  >();

  private readonly videos = new Map<Object3D, TimedPicture>();
  private seconds = 0;

  constructor(private readonly changed: () => void) {}

  show(props: readonly Prop[]): void {
    for (const [id, { object }] of this.shown) if (!props.some((prop) => prop.id === id)) this.take(id, object);
    for (const prop of props) {
      const made = JSON.stringify([prop.kind, prop.size, prop.upload]);
      const known = this.shown.get(prop.id);
      if (known && known.made !== made) this.take(prop.id, known.object);
      const object = known?.made === made ? known.object : this.make(prop, made);
      const [w, x, y, z] = prop.rotation;
      object.position.set(...prop.position);
      object.quaternion.set(x, y, z, w);
    }
    this.changed();
  }

  /** The prop that a ray meets first, and the place at this distance from its surface there. */
  hit(ray: Raycaster, solid: boolean, clearance: number): { readonly id: string; readonly place: Vec3 } | null {
    const objects = [...this.shown.values()]
      .filter(({ kind }) => !solid || !BOARDS.has(kind))
      .map(({ object }) => object);
    const met = ray.intersectObjects(objects)[0];
    if (!met?.face) return null;
    const outwards = met.face.normal.clone().transformDirection(met.object.matrixWorld);
    if (outwards.dot(ray.ray.direction) > 0) outwards.negate();
    let object: Object3D = met.object;
    while (object.parent && object.parent !== this.group) object = object.parent;
    const id = [...this.shown].find(([, known]) => known.object === object)?.[0];
    return id ? { id, place: met.point.addScaledVector(outwards, clearance).toArray() } : null;
  }

  /** Videos show this moment. */
  seek(seconds: number): void {
    this.seconds = seconds;
    this.videos.forEach((video) => video.seek(seconds));
  }

  private take(id: string, object: Object3D): void {
    object.removeFromParent();
    this.videos.get(object)?.dispose();
    this.videos.delete(object);
    this.shown.delete(id);
  }

  private make(prop: Prop, made: string): Object3D {
    const object = new Group();
    if (prop.upload) void this.load(prop, object);
    else for (const part of boxesOf(prop)) object.add(part);
    this.group.add(object);
    this.shown.set(prop.id, { made, kind: prop.kind, object });
    return object;
  }

  /** A file may take a while, and may be gone. */
  private async load(prop: Prop, into: Group): Promise<void> {
    const address = fileOf(prop);
    try {
      if (prop.kind === "mesh") into.add(await fitted(address, prop.size));
      else into.add(board(await this.mapOf(prop, into), prop.size));
    } catch {
      boxesOf({ ...prop, kind: "box" }).forEach((part) => into.add(part));
    }
    this.changed();
  }

  private async mapOf(prop: Prop, on: Object3D): Promise<Texture> {
    if (prop.kind === "picture") return new TextureLoader().loadAsync(fileOf(prop));
    const video = await timedPicture(fileOf(prop), this.changed);
    this.videos.set(on, video);
    video.seek(this.seconds);
    return video;
  }
}

const fileOf = (prop: Prop): string => new URL(`files/${prop.upload}/prop`, document.baseURI).href;

async function readMesh(address: string): Promise<Object3D> {
  const { GLTFLoader } = await import("three/examples/jsm/loaders/GLTFLoader.js");
  const { scene } = await new GLTFLoader().loadAsync(address);
  scene.traverse((part) => {
    part.castShadow = part.receiveShadow = true;
  });
  return scene;
}

const sizeOf = (object: Object3D): Vector3 => new Box3().setFromObject(object).getSize(new Vector3());

/** How large a mesh is in its file, in metres. */
export async function meshSize(address: string): Promise<Vec3> {
  return sizeOf(await readMesh(address)).toArray();
}

async function fitted(address: string, size: Vec3): Promise<Object3D> {
  const mesh = await readMesh(address);
  const own = sizeOf(mesh);
  mesh.scale.set(size[0] / (own.x || 1), size[1] / (own.y || 1), size[2] / (own.z || 1));
  return mesh;
}

function board(map: Texture, [width, height]: Vec3): Object3D {
  map.colorSpace = SRGBColorSpace;
  const look = new MeshBasicMaterial({ map, transparent: true, opacity: 0.85, side: DoubleSide, toneMapped: false });
  const plane = new Mesh(new PlaneGeometry(width, height), look);
  plane.position.y = height / 2;
  return plane;
}

/** A prop as boards: each its middle above the prop's place, and its size. */
function boxesOf({ kind, size: [w, h, d] }: Prop): Mesh[] {
  const parts: [Vec3, Vec3][] = [];
  if (kind === "chair") {
    parts.push(
      [
        [0, h / 2, 0],
        [w, LEG, d],
      ],
      [
        [0, 0.75 * h, -d / 2 + BOARD / 2],
        [w, h / 2, BOARD],
      ],
    );
    for (const x of [-1, 1])
      for (const z of [-1, 1])
        parts.push([
          [(x * (w - LEG)) / 2, h / 4, (z * (d - LEG)) / 2],
          [LEG, h / 2, LEG],
        ]);
  } else if (kind === "shelf") {
    for (const x of [-1, 1])
      parts.push([
        [(x * (w - BOARD)) / 2, h / 2, 0],
        [BOARD, h, d],
      ]);
    for (const level of [0.15, 0.43, 0.71, 0.99])
      parts.push([
        [0, level * h, 0],
        [w, BOARD, d],
      ]);
  } else
    parts.push([
      [0, h / 2, 0],
      [w, h, d],
    ]);
  return parts.map(([at, size]) => {
    const part = new Mesh(new BoxGeometry(...size), material);
    part.position.set(...at);
    part.castShadow = part.receiveShadow = true;
    return part;
  });
}
