/** A mannequin on the graphics card: vertices are sent once, joint transforms move them. */
import {
  Bone,
  BufferAttribute,
  BufferGeometry,
  Color,
  EqualDepth,
  Matrix4,
  MeshBasicMaterial,
  MeshStandardMaterial,
  Quaternion,
  Skeleton,
  SkinnedMesh,
  Vector3,
} from "three";
import { STRIDE, bytesAs } from "../arrays";
import type { BodyShown } from "../messages";

export class Shape {
  readonly geometry = new BufferGeometry();
  readonly joints: number;
  /** Into the frame of every joint, from the pose of the vertices. */
  readonly inverses: readonly Matrix4[];
  private readonly tones: Uint8Array;

  constructor(body: BodyShown) {
    this.joints = body.placed;
    this.tones = bytesAs(Uint8Array, body.vertexTones);
    const numbers = bytesAs(Float32Array, body.inverses);
    this.inverses = Array.from({ length: body.placed }, (_, joint) => {
      const [a, b, c, d, e, f, g, h, i, j, k, l] = numbers.subarray(12 * joint, 12 * joint + 12) as unknown as number[];
      return new Matrix4().set(a!, b!, c!, d!, e!, f!, g!, h!, i!, j!, k!, l!, 0, 0, 0, 1);
    });
    this.geometry.setAttribute("position", new BufferAttribute(bytesAs(Float32Array, body.vertices), 3));
    this.geometry.setAttribute("normal", new BufferAttribute(bytesAs(Float32Array, body.normals), 3));
    this.geometry.setAttribute("skinIndex", new BufferAttribute(bytesAs(Uint16Array, body.vertexJoints), 4));
    this.geometry.setAttribute("skinWeight", new BufferAttribute(bytesAs(Float32Array, body.vertexWeights), 4));
    this.geometry.setIndex(new BufferAttribute(bytesAs(Uint32Array, body.triangles), 1));
  }

  paint(palette: readonly string[]): void {
    const table = palette.map((name) => new Color(name));
    const colours = new Float32Array(this.tones.length * 3);
    this.tones.forEach((tone, vertex) => table[tone % table.length]?.toArray(colours, vertex * 3));
    this.geometry.setAttribute("color", new BufferAttribute(this.blended(this.blended(colours)), 3));
  }

  /** Colours that run into each other where they meet: means over the triangles around each vertex. */
  private blended(colours: Float32Array): Float32Array {
    const corners = this.geometry.index!.array;
    const sums = new Float32Array(colours.length);
    const counts = new Float32Array(colours.length / 3);
    for (let at = 0; at < corners.length; at += 3)
      for (let one = 0; one < 9; one += 1) {
        const [to, from] = [corners[at + (one % 3)]!, corners[at + Math.floor(one / 3)]!];
        counts[to]! += 1;
        for (let k = 0; k < 3; k += 1) sums[3 * to + k]! += colours[3 * from + k]!;
      }
    return sums.map((sum, place) => sum / (counts[Math.floor(place / 3)] || 1));
  }
}

export class Figure {
  readonly mesh: SkinnedMesh<BufferGeometry, MeshStandardMaterial>;
  private readonly bones: Bone[];

  constructor(shape: Shape, material: MeshStandardMaterial) {
    this.mesh = new SkinnedMesh(shape.geometry, material);
    this.bones = Array.from({ length: shape.joints }, () => new Bone());
    this.mesh.bind(new Skeleton(this.bones, [...shape.inverses]), new Matrix4());
    this.mesh.frustumCulled = false;
    this.mesh.visible = false;
  }

  pose(world: Float32Array): void {
    this.bones.forEach((bone, joint) => place(bone.matrixWorld, world, joint));
    this.mesh.visible = true;
  }

  hide(): void {
    this.mesh.visible = false;
  }

  dispose(): void {
    this.mesh.removeFromParent();
    this.mesh.skeleton.dispose();
    this.mesh.material.dispose();
  }
}

/** As if two centimetres further away: where ghost and body are in one place, the body is seen whole. */
const BEHIND = { polygonOffset: true, polygonOffsetUnits: 900 } as const;

/** A see-through figure: its depth is drawn first, so that only its outside shows. */
export class GhostFigure extends Figure {
  constructor(shape: Shape, colour: string, opacity: number) {
    super(
      shape,
      new MeshStandardMaterial({
        color: colour,
        roughness: 1,
        transparent: true,
        opacity,
        depthWrite: false,
        depthFunc: EqualDepth,
        ...BEHIND,
      }),
    );
    const depth = new SkinnedMesh(shape.geometry, new MeshBasicMaterial({ colorWrite: false, ...BEHIND }));
    depth.bind(this.mesh.skeleton, new Matrix4());
    depth.frustumCulled = false;
    depth.renderOrder = 1;
    this.mesh.renderOrder = 2;
    this.mesh.add(depth);
  }
}

const position = new Vector3();
const rotation = new Quaternion();
const unit = new Vector3(1, 1, 1);

export function place(matrix: Matrix4, world: Float32Array, joint: number): void {
  const at = joint * STRIDE;
  position.fromArray(world, at);
  rotation.set(world[at + 4]!, world[at + 5]!, world[at + 6]!, world[at + 3]!);
  matrix.compose(position, rotation, unit);
}

export function solidMaterial(): MeshStandardMaterial {
  return new MeshStandardMaterial({ vertexColors: true, roughness: 0.62, metalness: 0 });
}
