/** The ground: a grid of metres that fades with distance, and the body's shadow on it. */
import { Color, Group, Mesh, PlaneGeometry, ShaderMaterial, ShadowMaterial } from "three";
import type { Palette } from "../theme";

const EXTENT = 24; // metres

const VERTEX = /* glsl */ `
  varying vec2 at;
  void main() {
    at = position.xy;
    gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0);
  }`;

const FRAGMENT = /* glsl */ `
  varying vec2 at;
  uniform vec3 fine;
  uniform vec3 strong;
  float lines(float spacing) {
    vec2 cell = at / spacing;
    vec2 distance = abs(fract(cell - 0.5) - 0.5) / fwidth(cell);
    return 1.0 - min(min(distance.x, distance.y), 1.0);
  }
  void main() {
    float fade = 1.0 - smoothstep(2.0, 9.0, length(at));
    float half_metre = lines(0.5) * 0.45;
    float metre = lines(1.0) * 0.8;
    float alpha = max(half_metre, metre) * fade;
    if (alpha < 0.004) discard;
    gl_FragColor = vec4(mix(fine, strong, step(half_metre, metre - 0.01)), alpha);
    #include <colorspace_fragment>
  }`;

export class Ground {
  readonly group = new Group();
  private readonly shadow = new ShadowMaterial({ opacity: 0.3 });
  private readonly grid = new ShaderMaterial({
    vertexShader: VERTEX,
    fragmentShader: FRAGMENT,
    uniforms: { fine: { value: new Color() }, strong: { value: new Color() } },
    transparent: true,
    depthWrite: false,
  });

  constructor() {
    const lattice = new Mesh(new PlaneGeometry(EXTENT, EXTENT), this.grid);
    const shade = new Mesh(new PlaneGeometry(EXTENT, EXTENT), this.shadow);
    shade.receiveShadow = true;
    shade.position.z = 0.001;
    this.group.add(lattice, shade);
    this.group.rotation.x = -Math.PI / 2;
  }

  paint(palette: Palette): void {
    (this.grid.uniforms["fine"]!.value as Color).set(palette.grid);
    (this.grid.uniforms["strong"]!.value as Color).set(palette.gridStrong);
    this.shadow.opacity = palette.shadow;
  }
}
