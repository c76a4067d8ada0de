/** How a latent space lies on a canvas: a plane as a rectangle, a cylinder as one that is turned. */
import { type Vec2, clamp } from "../arrays";
import type { LatentMap } from "../messages";

export interface Layout {
  /** Where a place is drawn; null behind. */
  pixel(place: Vec2): Vec2 | null;
  /** The place under a pixel. */
  place(pixel: Vec2): Vec2;
  paint(pen: CanvasRenderingContext2D, image: HTMLCanvasElement): void;
}

export function layoutOf(map: LatentMap, width: number, height: number, front: number): Layout {
  return map.cylinder ? new Cylinder(map, width, height, front) : new Plane(map, width, height);
}

/** A place within the map; around the cylinder it comes back on the other side. */
export function inside([x, y]: Vec2, map: LatentMap): Vec2 {
  const [left, right, bottom, top] = map.extent;
  const period = right - left;
  const around = left + ((((x - left) % period) + period) % period);
  return [map.cylinder ? around : clamp(x, left, right), clamp(y, bottom, top)];
}

class Plane implements Layout {
  constructor(
    private readonly map: LatentMap,
    private readonly width: number,
    private readonly height: number,
  ) {}

  pixel([x, y]: Vec2): Vec2 {
    const [left, right, bottom, top] = this.map.extent;
    return [((x - left) / (right - left)) * this.width, ((top - y) / (top - bottom)) * this.height];
  }

  place([x, y]: Vec2): Vec2 {
    const [left, right, bottom, top] = this.map.extent;
    return inside([left + (x / this.width) * (right - left), top - (y / this.height) * (top - bottom)], this.map);
  }

  paint(pen: CanvasRenderingContext2D, image: HTMLCanvasElement): void {
    pen.imageSmoothingEnabled = true;
    pen.drawImage(image, 0, 0, this.width, this.height);
  }
}

const TILT = 13; // pixels by which the near rim lies lower: it is seen a little from above
const SIDE = 8;
const DARKEST = 0.45; // of the shade at its sides

class Cylinder implements Layout {
  private readonly radius: number;
  private readonly length: number;

  constructor(
    private readonly map: LatentMap,
    private readonly width: number,
    height: number,
    private readonly front: number,
  ) {
    this.radius = width / 2 - SIDE;
    this.length = height - 2 * TILT - 8;
  }

  pixel([x, y]: Vec2): Vec2 | null {
    const [left, right, bottom, top] = this.map.extent;
    const angle = ((x - this.front) / (right - left)) * 2 * Math.PI;
    if (Math.cos(angle) <= 0) return null;
    return [
      this.width / 2 + this.radius * Math.sin(angle),
      this.rim(angle) + ((top - y) / (top - bottom)) * this.length,
    ];
  }

  place([x, y]: Vec2): Vec2 {
    const [left, right, bottom, top] = this.map.extent;
    const angle = Math.asin(clamp((x - this.width / 2) / this.radius, -1, 1));
    const down = (y - this.rim(angle)) / this.length;
    return inside([this.front + (angle / (2 * Math.PI)) * (right - left), top - down * (top - bottom)], this.map);
  }

  paint(pen: CanvasRenderingContext2D, image: HTMLCanvasElement): void {
    const [left, right] = this.map.extent;
    for (let x = SIDE; x < this.width - SIDE; x += 1) {
      const [phase] = this.place([x + 0.5, 0]);
      const column = clamp(((phase - left) / (right - left)) * image.width, 0, image.width - 1);
      const angle = Math.asin(clamp((x + 0.5 - this.width / 2) / this.radius, -1, 1));
      pen.drawImage(image, Math.floor(column), 0, 1, image.height, x, this.rim(angle), 1.5, this.length);
      pen.fillStyle = `rgb(0 0 0 / ${DARKEST * (1 - Math.cos(angle))})`;
      pen.fillRect(x, this.rim(angle), 1.5, this.length);
    }
    this.paintLid(pen);
  }

  private paintLid(pen: CanvasRenderingContext2D): void {
    pen.beginPath();
    pen.ellipse(this.width / 2, TILT, this.radius, TILT, 0, 0, 2 * Math.PI);
    pen.fillStyle = "rgb(128 134 146 / 30%)";
    pen.fill();
    pen.lineWidth = 1;
    pen.strokeStyle = "rgb(128 134 146 / 70%)";
    pen.stroke();
  }

  /** How far down the upper rim is at an angle from the front. */
  private rim(angle: number): number {
    return TILT * (1 + Math.cos(angle));
  }
}
