"""Scenes: shaded figures on a floor with soft shadows, seen by an upright camera that fits its subject."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int, UInt8

from poise.pictures.lofts import Solid, ball, tapered
from poise.pictures.mannequin import TONES, Colour, Mannequin, build_mannequin
from poise.skeleton.skeleton import Pose, read_only
from poise.types import Array

_SAMPLES = 3  # per pixel and axis
_SHADOW_TEXEL = 0.007  # metres, at least
_SHADOW_TEXELS = 1024  # at most, along one axis
_SHADOW_BLUR = 0.035  # metres


@dataclass(frozen=True)
class Paper:
    """The colours (sRGB) and the grid of a scene's floor."""

    top: Colour = (0.964, 0.964, 0.960)
    bottom: Colour = (0.964, 0.964, 0.960)
    floor: Colour = (0.905, 0.900, 0.890)
    shadow: Colour = (0.52, 0.52, 0.55)
    grid_spacing: float = 0.5
    grid_strength: float = 0.16
    grid_half_width: float = 0.006


@dataclass(frozen=True)
class Floor:
    """The floor: its height, the centre (x, z) of its visible part, and the radius at which it has faded out."""

    height: float = 0.0
    middle: tuple[float, float] = (0.0, 0.0)
    reach: float = 3.0


@dataclass(frozen=True, eq=False)
class Figure:
    """A drawable object: a closed mesh in the world with linear colours per vertex."""

    vertices: Float[Array, "vertices 3"]
    normals: Float[Array, "vertices 3"]
    triangles: Int[Array, "triangles 3"]
    colours: Float[Array, "vertices 3"]
    opacity: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "triangles", read_only(self.triangles, dtype=np.int64))


def figure(
    mannequin: Mannequin,
    positions: Float[Array, "joints 3"],
    matrices: Float[Array, "joints 3 3"],
    *,
    opacity: float = 1.0,
    tint: Colour | None = None,
) -> Figure:
    """A mannequin in a pose, optionally tinted in one colour."""
    vertices, normals = mannequin.posed(positions, matrices)
    tones = np.array(list(TONES.values()) if tint is None else [tint] * len(TONES))
    return Figure(vertices, normals, mannequin.triangles, linear(tones)[mannequin.tones], opacity)


def figure_of(pose: Pose, *, opacity: float = 1.0, tint: Colour | None = None) -> Figure:
    """The mannequin of a pose, made for this pose alone."""
    mannequin = build_mannequin(pose.skeleton, rotations=pose.rotations[None])
    return figure(mannequin, *pose.world, opacity=opacity, tint=tint)


def rod(start: Float[Array, "3"], end: Float[Array, "3"], *, radius: float, colour: Colour) -> Figure:
    """A thin stick between two points, in one colour."""
    return painted(tapered(np.asarray(start), np.asarray(end), np.full(2, radius), sides=8), colour)


def marker(at: Float[Array, "3"], *, radius: float, colour: Colour) -> Figure:
    """A sphere in one colour."""
    return painted(ball(np.asarray(at, dtype=np.float64), radius), colour)


def painted(solid: Solid, colour: Colour) -> Figure:
    """A solid in one colour."""
    colours = np.tile(linear(np.array(colour)), (len(solid.vertices), 1))
    return Figure(solid.vertices, solid.normals, solid.triangles, colours)


def merged(figures: Sequence[Figure]) -> Figure:
    """Several figures as one."""
    starts = np.cumsum([0, *(len(f.vertices) for f in figures[:-1])])
    triangles = [f.triangles + s for f, s in zip(figures, starts, strict=False)]
    vertices, normals, colours = (
        np.concatenate([np.empty((0, 3)), *(getattr(f, name) for f in figures)])
        for name in ("vertices", "normals", "colours")
    )
    return Figure(vertices, normals, np.concatenate([np.empty((0, 3), np.int64), *triangles]), colours)


def render(
    figures: Sequence[Figure],
    view: PictureView,
    *,
    floor: Floor | None = None,
    paper: Paper | None = None,
    over: Sequence[Figure] = (),
) -> UInt8[Array, "height width 3"]:
    """The picture of figures on a floor from a view.

    Transparent figures are below the solid ones; those in `over` shine faintly through what hides them.
    """
    from poise.pictures import raster

    paper, floor = paper or Paper(), floor or floor_under(figures)
    solid = merged([f for f in (*figures, *over) if f.opacity >= 1.0])
    # The main light is above, in front and to the left of the viewer, so that no picture is dark.
    level_back = np.array([view.back[0], 0.0, view.back[2]]) / np.hypot(view.back[0], view.back[2])
    light = -0.55 * view.right + np.array([0.0, 1.0, 0.0]) + 0.50 * level_back
    light = light / np.linalg.norm(light)
    # (direction, colour, wrap): the main light, a cool fill from the right, the sky above and the floor's glow
    lights = np.array([
        [*light, 0.78, 0.76, 0.72, 0.15],
        [*(0.8 * view.right + 0.5 * view.back + 0.2 * view.up), 0.13, 0.14, 0.16, 0.4],
        [0.0, 1.0, 0.0, 0.26, 0.27, 0.29, 1.0],
        [0.0, -1.0, 0.0, 0.10, 0.095, 0.09, 1.0],
    ])  # fmt: skip
    light_axes, light_nearness, shadow, texel = _shadow_map(solid, light)
    canvas = np.empty((view.size[1], view.size[0], 3), dtype=np.float32)
    grid = np.array([paper.grid_spacing, paper.grid_strength, paper.grid_half_width])
    extent = np.array([floor.height, *floor.middle, floor.reach])
    colours = linear(np.array([paper.top, paper.bottom, paper.floor, paper.shadow]))
    raster.paint_floor(view.rays(), view.eye, extent, colours, grid, light_axes, shadow, texel, canvas)
    see_through = [f for f in figures if f.opacity < 1.0]
    for layer in [*see_through, solid, *(replace(f, opacity=0.45) for f in over)]:
        _blend(canvas, layer, view, (lights, light_axes, light_nearness, texel))
    picture = np.empty(canvas.shape, dtype=np.uint8)
    raster.bytes_from_light(canvas, _SRGB_BYTES, picture)
    return picture


def floor_under(figures: Sequence[Figure], height: float = 0.0) -> Floor:
    """A floor slightly larger than what stands on it."""
    figures = [f for f in figures if len(f.vertices)]
    if not figures:
        return Floor(height)
    low = np.min([f.vertices.min(axis=0) for f in figures], axis=0)
    high = np.max([f.vertices.max(axis=0) for f in figures], axis=0)
    middle, spread = 0.5 * (low + high), high - low
    return Floor(height, (float(middle[0]), float(middle[2])), 2.2 + 0.75 * float(max(spread[0], spread[2])))


def linear(colour: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """Linear light from sRGB values."""
    colour = np.asarray(colour, dtype=np.float64)
    return np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)


_LIGHT = np.linspace(0.0, 1.0, 4096)
_SRGB_BYTES = np.round(
    255.0 * np.where(_LIGHT <= 0.0031308, 12.92 * _LIGHT, 1.055 * _LIGHT ** (1 / 2.4) - 0.055)
).astype(np.uint8)


def _shadow_map(solid: Figure, light: Float[Array, "3"]) -> tuple[Float[Array, "4 3"], Array, Array, float]:
    """The shadow map: its axes, the depth per texel, a blurred shadow, and the texel's size."""
    from poise.pictures import raster

    across = np.cross([0.0, 1.0, 0.0], light) / np.linalg.norm(np.cross([0.0, 1.0, 0.0], light))
    down = np.cross(across, light)
    if len(solid.vertices) == 0:
        axes = np.stack([np.zeros(3), across, down, light])
        return axes, np.zeros((2, 2), np.float32), np.zeros((2, 2)), _SHADOW_TEXEL
    seen = solid.vertices @ np.stack([across, down, light], axis=-1)
    low, high = seen.min(axis=0), seen.max(axis=0)
    border = 4 * _SHADOW_BLUR
    texel = max(_SHADOW_TEXEL, float((high - low)[:2].max() + 2 * border) / _SHADOW_TEXELS)
    origin = np.array([low[0] - border, low[1] - border, low[2] - 1.0])
    shape = tuple(int((high[k] - low[k] + 2 * border) / texel) + 2 for k in (1, 0))
    points = (seen - origin) / np.array([texel, texel, 1.0])
    nearness = np.zeros(shape, np.float32)
    raster.fill_triangles(points, solid.triangles, nearness, np.full(shape, -1, np.int32))
    shadow = np.where(nearness > 0.0, 1.0, 0.0)
    raster.soften(shadow, max(1, round(_SHADOW_BLUR / texel)))
    axes = np.stack([origin @ np.stack([across, down, light]), across, down, light])
    return axes, nearness, shadow, texel


def _blend(
    canvas: Float[Array, "height width 3"],
    shown: Figure,
    view: PictureView,
    lit: tuple[Array, Array, Array, float],
) -> None:
    """Draw one figure over the canvas, several samples per pixel, within its bounding box."""
    from poise.pictures import raster

    points = view.project(shown.vertices)
    visible = points[points[:, 2] > 0.0, :2]
    if len(visible) == 0:
        return
    left, top = np.maximum(np.floor(visible.min(axis=0)).astype(np.int64) - 1, 0).tolist()
    right, bottom = np.minimum(np.ceil(visible.max(axis=0)).astype(np.int64) + 2, view.size).tolist()
    if left >= right or top >= bottom:
        return
    shape = (bottom - top, right - left)
    fine = (shape[0] * _SAMPLES, shape[1] * _SAMPLES)
    points[:, :2] = (points[:, :2] - (left, top) + 0.5) * _SAMPLES - 0.5
    nearness, hit = np.zeros(fine, np.float32), np.full(fine, -1, np.int32)
    raster.fill_triangles(points, shown.triangles, nearness, hit)
    lights, light_axes, light_nearness, texel = lit
    surface = np.concatenate([shown.vertices, shown.normals, shown.colours], axis=-1)
    raster.shade(
        _SAMPLES, nearness, hit, shown.triangles, points, surface,
        lights, view.eye, light_axes, light_nearness, texel, shown.opacity, canvas[top:bottom, left:right],
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class PictureView:
    """A pinhole camera at `eye` with its axes in the world; `focal` in pixels, `middle` the pixel it looks at."""

    eye: Float[Array, "3"]
    right: Float[Array, "3"]
    up: Float[Array, "3"]
    back: Float[Array, "3"]
    focal: float
    middle: tuple[float, float]
    size: tuple[int, int]

    def project(self, points: Float[Array, "*n 3"]) -> Float[Array, "*n 3"]:
        """Columns and rows in pixels, and nearness (one over the distance along the view; 0 behind the camera)."""
        local = (np.asarray(points) - self.eye) @ np.stack([self.right, self.up, -self.back], axis=-1)
        distance = local[..., 2]
        near = np.where(distance > 0.05, 1.0 / np.where(distance > 0.05, distance, 1.0), 0.0)
        column = self.middle[0] + self.focal * local[..., 0] * near
        row = self.middle[1] - self.focal * local[..., 1] * near
        return np.stack([column, row, near], axis=-1)

    def rays(self) -> Float[Array, "3 3"]:
        """The world direction through pixel (0, 0) and how it changes per column and per row."""
        across, down = self.right / self.focal, -self.up / self.focal
        return np.stack([-self.back - self.middle[0] * across - self.middle[1] * down, across, down])


def looking(
    at: Float[Array, "3"],
    *,
    azimuth: float,
    elevation: float,
    distance: float,
    focal: float,
    size: tuple[int, int],
) -> PictureView:
    """A view of a point from an azimuth about the vertical (0 is from +Z, positive towards +X), in radians."""
    level = np.cos(elevation)
    back = np.array([np.sin(azimuth) * level, np.sin(elevation), np.cos(azimuth) * level])
    right = np.array([np.cos(azimuth), 0.0, -np.sin(azimuth)])
    up = np.cross(back, right)
    middle = (0.5 * (size[0] - 1), 0.5 * (size[1] - 1))
    return PictureView(np.asarray(at) + distance * back, right, up, back, focal, middle, size)


def fitted(
    points: Float[Array, "n 3"],
    *,
    azimuth: float,
    elevation: float,
    size: tuple[int, int],
    margins: tuple[float, float, float, float] = (0.06, 0.06, 0.06, 0.06),
    lens: float = 5.0,
) -> PictureView:
    """A view in which all points are inside the margins (left, top, right, bottom, as fractions of the size).

    `lens` is the distance in units of the subject's size: larger is flatter, like a longer lens.
    """
    points = np.asarray(points, dtype=np.float64).reshape(-1, 3)
    centre = 0.5 * (points.min(axis=0) + points.max(axis=0))
    reach = max(float(np.linalg.norm(points - centre, axis=-1).max()), 0.05)
    view = looking(centre, azimuth=azimuth, elevation=elevation, distance=lens * reach, focal=1.0, size=size)
    seen = view.project(points)[:, :2] - view.middle
    low, high = seen.min(axis=0), np.maximum(seen.max(axis=0), seen.min(axis=0) + 1e-6)
    room = (size[0] * (1.0 - margins[0] - margins[2]), size[1] * (1.0 - margins[1] - margins[3]))
    focal = min(room[0] / (high[0] - low[0]), room[1] / (high[1] - low[1]))
    half = 0.5 * (low + high)
    x = size[0] * (0.5 + 0.5 * (margins[0] - margins[2])) - focal * half[0]
    y = size[1] * (0.5 + 0.5 * (margins[1] - margins[3])) - focal * half[1]
    return replace(view, focal=focal, middle=(float(x), float(y)))
