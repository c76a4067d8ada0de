/** Likelihood as colour: the map of a latent space as an image. */
import { floats } from "../arrays";
import type { LatentMap } from "../messages";

type Rgb = readonly [number, number, number];

const LIGHT: readonly Rgb[] = [
  [238, 240, 243],
  [196, 218, 238],
  [124, 180, 220],
  [88, 150, 206],
];
const DARK: readonly Rgb[] = [
  [27, 30, 35],
  [33, 54, 82],
  [42, 92, 140],
  [78, 146, 200],
];
const DEEPEST = 0.03; // share of the places below which everything has the lowest colour

export function heatImage(map: LatentMap, dark: boolean): HTMLCanvasElement {
  const values = floats(map.values);
  const sorted = [...values].filter(Number.isFinite).sort((a, b) => a - b);
  const low = sorted[Math.floor(sorted.length * DEEPEST)] ?? 0;
  const high = sorted.at(-1) ?? 1;
  const canvas = document.createElement("canvas");
  canvas.width = map.width;
  canvas.height = map.height;
  const pen = canvas.getContext("2d")!;
  const image = pen.createImageData(map.width, map.height);
  for (let row = 0; row < map.height; row += 1) {
    for (let column = 0; column < map.width; column += 1) {
      const value = values[(map.height - 1 - row) * map.width + column] ?? low;
      const share = Math.min(Math.max((value - low) / (high - low || 1), 0), 1);
      image.data.set([...colourAt(share, dark ? DARK : LIGHT), 255], (row * map.width + column) * 4);
    }
  }
  pen.putImageData(image, 0, 0);
  return canvas;
}

function colourAt(share: number, ramp: readonly Rgb[]): Rgb {
  const at = share * (ramp.length - 1);
  const low = Math.min(Math.floor(at), ramp.length - 2);
  const [from, to] = [ramp[low]!, ramp[low + 1]!];
  const mix = (k: 0 | 1 | 2): number => from[k] + (to[k] - from[k]) * (at - low);
  return [mix(0), mix(1), mix(2)];
}
