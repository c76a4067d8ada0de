/** The ground: a grid of half metres that fades with distance, and the body's shadow on it. */
import {
  BufferAttribute,
  BufferGeometry,
  Color,
  Group,
  LineBasicMaterial,
  LineSegments,
  Mesh,
  PlaneGeometry,
  ShadowMaterial,
} from "three";
import type { Palette } from "../palettes";

const REACH = 8; // metres to where the grid has faded
const SPACING = 0.5;
const PIECE = 1; // metres of a line that have one strength at each end
const SHADE = 3.4; // metres around the body in which its shadow falls; drawing shadows costs, most of all without a graphics card

export class Ground {
  readonly group = new Group();
  private readonly shadow = new ShadowMaterial({ opacity: 0.3, depthWrite: false });
  private readonly shade = new Mesh(new PlaneGeometry(SHADE, SHADE), this.shadow);
  private readonly lines = new LineSegments(
    new BufferGeometry(),
    new LineBasicMaterial({ vertexColors: true, transparent: true, depthWrite: false }),
  );
  private readonly points = gridPoints();

  constructor() {
    this.lines.geometry.setAttribute("position", new BufferAttribute(this.points, 3));
    this.shade.receiveShadow = true;
    this.shade.rotation.x = -Math.PI / 2;
    this.group.add(this.lines, this.shade);
  }

  /** Keeps the part that takes shadows under the body. */
  follow(x: number, z: number): void {
    this.shade.position.set(x, 0.001, z);
  }

  paint(palette: Palette): void {
    this.shadow.opacity = palette.shadow;
    this.lines.geometry.setAttribute("color", new BufferAttribute(gridColours(this.points, palette), 4));
  }
}

function gridPoints(): Float32Array {
  const ends: number[] = [];
  for (let across = -REACH; across <= REACH; across += SPACING) {
    for (let along = -REACH; along < REACH; along += PIECE) {
      ends.push(across, 0, along, across, 0, along + PIECE);
      ends.push(along, 0, across, along + PIECE, 0, across);
    }
  }
  return new Float32Array(ends);
}

function gridColours(points: Float32Array, palette: Palette): Float32Array {
  const fine = new Color(palette.grid);
  const strong = new Color(palette.gridStrong);
  const colours = new Float32Array((points.length / 3) * 4);
  for (let end = 0; end < points.length / 3; end += 1) {
    const first = end - (end % 2);
    const constant = points[first * 3] === points[first * 3 + 3] ? points[first * 3]! : points[first * 3 + 2]!;
    const fade = Math.max(0, 1 - Math.hypot(points[end * 3]!, points[end * 3 + 2]!) / REACH);
    (Number.isInteger(constant) ? strong : fine).toArray(colours, end * 4);
    colours[end * 4 + 3] = fade ** 1.5;
  }
  return colours;
}
