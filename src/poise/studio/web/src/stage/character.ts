/** A character's own meshes, with its materials, skinned on the graphics card by the joints of its body. */
import {
  Bone,
  BufferAttribute,
  type BufferGeometry,
  Group,
  Matrix4,
  Mesh,
  type Object3D,
  Skeleton,
  SkinnedMesh,
} from "three";
import type { GLTFParser } from "three/examples/jsm/loaders/GLTFLoader.js";
import { bytesAs } from "../arrays";
import type { BodyShown, Skin } from "../messages";
import { place } from "./body";

export class Character {
  readonly group = new Group();
  private readonly bones: { readonly bone: Bone; readonly joint: number }[] = [];

  /** The meshes of a body's file. */
  static async read(body: BodyShown): Promise<Character> {
    const { GLTFLoader } = await import("three/examples/jsm/loaders/GLTFLoader.js");
    const { scene, parser } = await new GLTFLoader().loadAsync(new URL(body.character, document.baseURI).href);
    const character = new Character();
    const skeletons = new Map(body.skins.map((skin) => [skin.node, character.skeletonOf(skin)]));
    scene.traverse((part) => {
      const skeleton = skeletons.get(nodeOf(part, parser) ?? -1);
      if (part instanceof Mesh && skeleton) character.add(part, skeleton);
    });
    return character;
  }

  pose(world: Float32Array): void {
    for (const { bone, joint } of this.bones) place(bone.matrixWorld, world, joint);
    this.group.visible = true;
  }

  hide(): void {
    this.group.visible = false;
  }

  dispose(): void {
    this.group.removeFromParent();
    for (const mesh of this.group.children as SkinnedMesh[]) {
      mesh.geometry.dispose();
      mesh.skeleton.dispose();
      for (const material of [mesh.material].flat()) material.dispose();
    }
  }

  private skeletonOf(skin: Skin): Skeleton {
    const joints = bytesAs(Uint16Array, skin.joints);
    const numbers = bytesAs(Float32Array, skin.matrices);
    const bones = Array.from(joints, (joint) => {
      const bone = new Bone();
      this.bones.push({ bone, joint });
      return bone;
    });
    return new Skeleton(
      bones,
      bones.map((_, slot) => matrixAt(numbers, slot)),
    );
  }

  private add(part: Mesh, skeleton: Skeleton): void {
    if (!(part instanceof SkinnedMesh)) carry(part.geometry);
    const mesh = new SkinnedMesh(part.geometry, part.material);
    mesh.bind(skeleton, new Matrix4());
    mesh.frustumCulled = false;
    mesh.castShadow = mesh.receiveShadow = true;
    this.group.add(mesh);
  }
}

/** The number of the node that a part of a file belongs to. */
function nodeOf(part: Object3D, parser: GLTFParser): number | undefined {
  const own = parser.associations.get(part)?.nodes;
  return own ?? (part.parent ? parser.associations.get(part.parent)?.nodes : undefined);
}

/** Three rows of four, as the fourth row is always the same. */
function matrixAt(numbers: Float32Array, slot: number): Matrix4 {
  const [a, b, c, d, e, f, g, h, i, j, k, l] = numbers.subarray(slot * 12, slot * 12 + 12);
  return new Matrix4().set(a!, b!, c!, d!, e!, f!, g!, h!, i!, j!, k!, l!, 0, 0, 0, 1);
}

/** A mesh that is fixed to one joint follows that alone. */
function carry(geometry: BufferGeometry): void {
  const count = geometry.getAttribute("position").count;
  const weights = new Float32Array(count * 4).map((_, number) => (number % 4 ? 0 : 1));
  geometry.setAttribute("skinIndex", new BufferAttribute(new Uint16Array(count * 4), 4));
  geometry.setAttribute("skinWeight", new BufferAttribute(weights, 4));
}
