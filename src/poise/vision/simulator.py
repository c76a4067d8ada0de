"""A camera simulator: synchronised pictures of a mannequin with markers, including the effects of real cameras.

Lens distortion, shot and read noise, motion blur, occlusion by the body, clutter, a moving shadow, a slow change of
light and imperfect synchronisation. The true marker positions and visibilities are included: to plan cameras and
markers, and to measure the whole path from pixels to a pose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float, UInt8

from poise.compiled import compiled
from poise.errors import InvalidValueError
from poise.geometry.cameras import Camera
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.motion.virtual_markers import virtual_markers
from poise.motion.world import joint_transforms
from poise.pictures.mannequin import Mannequin, build_mannequin
from poise.pictures.raster import fill_triangles
from poise.skeleton.pose_space import Handle
from poise.types import Array
from poise.vision.calibrate import Board
from poise.vision.opencv import cv2
from poise.vision.rig import STRAIGHT, LensCamera, Rig

_SUBFRAMES = 5  # of one exposure
_NOISE_TILES = 6  # pictures of noise, shifted at random for every frame
_BEHIND = 0.05  # metres of skin in front of a marker's centre that do not hide it
_CLOTHES = np.array([[62.0, 70.0, 92.0], [48.0, 54.0, 70.0]])  # of limbs and joints, before lighting
_LIGHT = np.array([0.35, 0.8, 0.5]) / np.linalg.norm([0.35, 0.8, 0.5])


@dataclass(frozen=True)
class Conditions:
    """The effects of cameras and room on the picture; all zero is a perfect picture."""

    shot_noise: float = 0.35  # times the square root of the light, in grey levels
    read_noise: float = 1.5  # grey levels
    exposure: float = 1 / 250  # seconds: duration of motion blur
    out_of_step: float = 0.001  # seconds: largest offset between cameras
    clutter: int = 40  # objects behind the performer
    shadow: float = 0.35  # share of the floor's light that the performer blocks
    light_drift: float = 0.08  # relative slow change of the light
    lamp: bool = False  # a bright lamp in view
    marker_radius: float = 0.014  # metres
    marker_colours: Mapping[str, tuple[float, float, float]] = field(default_factory=dict)  # red, green, blue

    @classmethod
    def perfect(cls) -> Conditions:
        """No noise, no blur, and no occlusion but by the body itself."""
        return cls(0.0, 0.0, 0.0, 0.0, 0, 0.0, 0.0)


def front_rig(
    *,
    distance: float = 3.0,
    apart: float = 1.2,
    height: float = 1.5,
    size: tuple[int, int] = (640, 480),
    count: int = 2,
    field_of_view: float = 0.85,
    distortion: tuple[float, ...] = (-0.12, 0.05, 0.0005, -0.0004, 0.0),
    middle: tuple[float, float, float] = (0.0, 0.95, 0.0),
) -> Rig:
    """Cameras side by side that see the performer from the front, like webcams on a desk."""
    cameras, lens = [], np.array(distortion or STRAIGHT)
    for number in range(count):
        eye = (middle[0] + (number - 0.5 * (count - 1)) * apart, height, middle[2] + distance)
        pinhole = Camera.looking_at(middle, eye=eye, size=size, field_of_view=field_of_view)
        cameras.append(LensCamera(f"camera{number + 1}", pinhole, size, lens))
    return Rig(tuple(cameras))


class Simulator:
    """The pictures of a motion by a rig."""

    def __init__(
        self,
        rig: Rig,
        motion: Motion,
        layout: Mapping[str, Handle],
        *,
        conditions: Conditions | None = None,
        seed: int = 0,
    ) -> None:
        if len(motion) < 2:
            raise InvalidValueError("the simulator needs a motion of at least two frames")
        self.rig, self.motion, self.layout = rig, motion, dict(layout)
        self.conditions = conditions or Conditions()
        self.truth: Markers = virtual_markers(motion, layout)
        self._positions, self._turns = joint_transforms(motion)
        self._mannequin: Mannequin = build_mannequin(motion.skeleton, rotations=motion.rotations)
        self._seed, rng = seed, np.random.default_rng(seed)
        shape = (rig.cameras[0].size[1], rig.cameras[0].size[0], 3)
        self._noise = rng.standard_normal((_NOISE_TILES, *shape), dtype=np.float32)
        self._delays = rng.uniform(-0.5, 0.5, len(rig)) * self.conditions.out_of_step
        self._rooms = [self._room(camera, rng) for camera in rig.cameras]
        colours = self.conditions.marker_colours
        self._colours = np.array([colours.get(name, (1.0, 1.0, 1.0)) for name in self.truth.labels])

    def empty_room(self, camera: int, count: int = 30) -> Iterator[UInt8[Array, "height width 3"]]:
        """Pictures without a person, for the background's statistics."""
        for number in range(count):
            yield self._developed(self._rooms[camera].copy(), 0, noise=(camera, -1 - number))

    def picture(self, frame: int, camera: int) -> UInt8[Array, "height width 3"]:
        """One camera's picture of one frame (blue, green, red)."""
        seer, canvas = self.rig.cameras[camera], self._rooms[camera].copy()
        light, nearness = self._body(frame, seer)
        if self.conditions.shadow:
            root, angles = self._positions[frame, 0], np.linspace(0, 2 * np.pi, 24, endpoint=False)
            x, z = root[0] - 0.3 + 0.55 * np.cos(angles), root[2] - 0.3 + 0.35 * np.sin(angles)
            pixels = seer.project(np.stack([x, np.zeros(24), z], axis=1))
            if np.all(np.isfinite(pixels)):
                mask = np.zeros(canvas.shape[:2], dtype=np.float32)
                cv2().fillPoly(mask, [np.rint(pixels).astype(np.int32)], 1.0)
                mask = cv2().GaussianBlur(mask, (31, 31), 9)
                shade = (1.0 - self.conditions.shadow * mask)[..., None]
                canvas = np.asarray(canvas * shade, dtype=np.float32)
        seen = nearness > 0
        canvas[seen] = light[seen]
        times = (np.arange(_SUBFRAMES) / max(_SUBFRAMES - 1, 1) - 0.5) * self.conditions.exposure
        places = np.stack([self.places(frame, camera, delay=delay) for delay in times])
        pixels, depth = seer.project(places), seer.depth(places)
        radii = self.conditions.marker_radius * seer.pinhole.focal_length / np.maximum(depth, 0.05)
        for marker in range(places.shape[1]):
            if np.all(np.isfinite(pixels[:, marker])) and np.all(depth[:, marker] > 0.05):
                _paint_disc(
                    canvas, nearness, pixels[:, marker], radii[:, marker],
                    1.0 / np.maximum(depth[:, marker] - _BEHIND, 0.05), 255.0 * self._colours[marker, ::-1],
                )  # fmt: skip
        return self._developed(canvas, frame, noise=(camera, frame))

    def pictures(self) -> Iterator[tuple[UInt8[Array, "height width 3"], ...]]:
        """All frames, one picture per camera each."""
        for frame in range(len(self.motion)):
            yield tuple(self.picture(frame, camera) for camera in range(len(self.rig)))

    def visible(self, frame: int) -> Bool[Array, "cameras markers"]:
        """Mask of the markers that each camera sees: in the picture and not behind the body."""
        points = self.truth.points[frame]
        found = np.zeros((len(self.rig), len(points)), dtype=np.bool_)
        for number, camera in enumerate(self.rig.cameras):
            nearness = self._body(frame, camera)[1]
            pixels, depth = camera.project(points), camera.depth(points)
            inside = camera.in_picture(pixels) & (depth > 0)
            at = np.rint(np.where(inside[:, None], pixels, 0.0)).astype(int)
            front = nearness[at[:, 1], at[:, 0]]
            found[number] = inside & ((front == 0) | (1.0 / np.maximum(front, 1e-9) > depth - _BEHIND))
        return found

    def places(self, frame: int, camera: int, *, delay: float = 0.0) -> Float[Array, "markers 3"]:
        """Marker positions when a camera takes a frame, including its synchronisation error, `delay` seconds later."""
        at = frame + (self._delays[camera] + delay) * self.motion.fps
        at = float(np.clip(at, 0.0, len(self.motion) - 1))
        low = min(int(at), len(self.motion) - 2)
        part = at - low
        return np.asarray((1 - part) * self.truth.points[low] + part * self.truth.points[low + 1])

    def _body(self, frame: int, camera: LensCamera) -> tuple[Array, Array]:
        """The light from the body and its depth, per pixel."""
        vertices, normals = self._mannequin.posed(self._positions[frame], self._turns[frame])
        depth = camera.depth(vertices)
        near = np.where(depth > 0.05, 1.0 / np.maximum(depth, 0.05), 0.0)
        pixels = np.nan_to_num(camera.project(vertices))
        width, height = camera.size
        nearness, hit = np.zeros((height, width)), np.full((height, width), -1, dtype=np.int64)
        fill_triangles(np.c_[pixels, near], self._mannequin.triangles, nearness, hit)
        light = np.zeros((height, width, 3), dtype=np.float32)
        _paint_body(hit, self._mannequin.triangles, normals, self._mannequin.tones, _CLOTHES, _LIGHT, light)
        return light, nearness

    def _developed(
        self, canvas: Array, frame: int, *, noise: tuple[int, int]
    ) -> UInt8[Array, "height width 3"]:
        """Convert light to bytes: drift, noise, saturation. The noise of a picture does not depend on call order."""
        conditions = self.conditions
        drift = 1.0 + conditions.light_drift * np.sin(2 * np.pi * frame / (20.0 * self.motion.fps))
        canvas = canvas * np.float32(drift)
        if conditions.shot_noise or conditions.read_noise:
            rng = np.random.default_rng([self._seed, noise[0], noise[1] % 2**32])
            tile = self._noise[rng.integers(_NOISE_TILES)]
            tile = np.roll(tile, rng.integers(0, tile.shape[1]), axis=1)[: canvas.shape[0], : canvas.shape[1]]
            strength = np.sqrt(conditions.read_noise**2 + conditions.shot_noise**2 * np.maximum(canvas, 0.0))
            canvas = canvas + strength * tile
        return np.asarray(np.clip(canvas, 0, 255), dtype=np.uint8)

    def _room(self, camera: LensCamera, seeds: np.random.Generator) -> Array:
        """A wall, a floor and clutter, the same for every picture of one camera."""
        width, height = camera.size
        rows = np.linspace(0.0, 1.0, height)[:, None, None]
        canvas = np.asarray((88 + 40 * rows) * np.ones((height, width, 3)), dtype=np.float32)
        rng = np.random.default_rng(seeds.integers(2**31))
        for _ in range(self.conditions.clutter):
            corner, extent = rng.integers(0, (width, height)), rng.integers(8, 90, size=2)
            colour = rng.uniform(25, 165, size=3)
            end = corner + extent
            cv2().rectangle(canvas, tuple(map(int, corner)), tuple(map(int, end)), colour.tolist(), -1)
        if self.conditions.lamp:
            cv2().circle(canvas, (int(0.85 * width), int(0.15 * height)), 16, (255.0, 255.0, 255.0), -1)
        return np.asarray(cv2().GaussianBlur(canvas, (5, 5), 1.0))


@compiled
def _paint_body(
    hit: Array, triangles: Array, normals: Array, tones: Array, clothes: Array, light: Array, canvas: Array
) -> None:
    """Plain light and shade on what each pixel hit."""
    for row in range(hit.shape[0]):
        for column in range(hit.shape[1]):
            k = hit[row, column]
            if k < 0:
                continue
            v = triangles[k, 0]
            facing = normals[v, 0] * light[0] + normals[v, 1] * light[1] + normals[v, 2] * light[2]
            shade = 0.55 + 0.75 * max(facing, 0.0)
            for i in range(3):
                canvas[row, column, i] = clothes[tones[v] % 2, i] * shade


@compiled
def _paint_disc(
    canvas: Array, nearness: Array, centres: Array, radii: Array, nearest: Array, colour: Array
) -> None:
    """A round marker, blurred over an exposure, where the body is not in front of it."""
    reach = radii.max() + 1.5
    height, width = nearness.shape
    left, right = (
        max(0, int(centres[:, 0].min() - reach)),
        min(width - 1, int(centres[:, 0].max() + reach) + 1),
    )
    top, bottom = (
        max(0, int(centres[:, 1].min() - reach)),
        min(height - 1, int(centres[:, 1].max() + reach) + 1),
    )
    for row in range(top, bottom + 1):
        for column in range(left, right + 1):
            cover = 0.0
            for s in range(len(centres)):
                if nearness[row, column] > nearest[s]:
                    continue
                dx, dy = column - centres[s, 0], row - centres[s, 1]
                cover += min(max(radii[s] - np.sqrt(dx * dx + dy * dy) + 0.5, 0.0), 1.0)
            cover /= len(centres)
            for i in range(3):
                canvas[row, column, i] += cover * (colour[i] - canvas[row, column, i])


# --- simulated pictures of a printed board, for practising and measuring calibration ---------------------------------
_PRINTED = 40  # pixels of the printed picture per square
_WALL = 110  # grey around the board
_NOISE = 2.0  # grey levels


def board_picture(
    camera: LensCamera,
    board: Board,
    turn: Float[Array, "3 3"],
    place: Float[Array, "3"],
    *,
    plane: Float[Array, "pixels 2"] | None = None,
) -> UInt8[Array, "height width"]:
    """A camera's distorted picture of a board in the world: p_world = turn p_board + place.

    `plane` is `pixel_plane(camera)`, for many pictures by one camera.
    """
    width, height = camera.size
    plane = pixel_plane(camera) if plane is None else plane
    turned = camera.pinhole.rotation @ turn
    shift = camera.pinhole.rotation @ place + camera.pinhole.translation
    plane_from_board = np.column_stack([turned[:, 0], turned[:, 1], shift])
    on_board = np.linalg.solve(plane_from_board, np.c_[plane, np.ones(len(plane))].T)
    # The first inner corner is two squares in: one square of white rim, one of the board.
    printed = (on_board[:2] / on_board[2] / board.square + 2) * _PRINTED - 0.5
    at = printed.T.reshape(height, width, 2).astype(np.float32)
    cv = cv2()
    seen = cv.remap(board.picture(_PRINTED), at[..., 0], at[..., 1], cv.INTER_AREA, borderValue=_WALL)
    return np.asarray(cv.GaussianBlur(seen, (3, 3), 0.7))


def board_pictures(
    rig: Rig, board: Board, *, count: int = 40, seed: int = 0
) -> Iterator[tuple[UInt8[Array, "height width"], ...]]:
    """Pictures by all cameras of a board at various positions and tilts, with noise."""
    rng = np.random.default_rng(seed)
    middle = np.mean([camera.pinhole.centre for camera in rig.cameras], axis=0)
    forward = np.mean([camera.pinhole.rotation[2] for camera in rig.cameras], axis=0)
    axes = rig.cameras[0].pinhole.rotation.T  # columns: right, down, forward
    planes = [pixel_plane(camera) for camera in rig.cameras]
    for _ in range(count):
        distance = rng.uniform(1.3, 3.2)
        sideways, down = rng.uniform(-0.35, 0.35) * distance, rng.uniform(-0.3, 0.3) * distance
        place = middle + distance * forward + sideways * axes[:, 0] + down * axes[:, 1]
        turn = axes @ cv2().Rodrigues(rng.uniform(-0.6, 0.6, 3))[0]
        place = place - turn @ board.corners.mean(axis=0)
        pictures = []
        for camera, plane in zip(rig.cameras, planes, strict=True):
            clean = board_picture(camera, board, turn, place, plane=plane)
            noisy = clean + rng.normal(0.0, _NOISE, clean.shape)
            pictures.append(np.clip(noisy, 0, 255).astype(np.uint8))
        yield tuple(pictures)


def pixel_plane(camera: LensCamera) -> Float[Array, "pixels 2"]:
    """Where the ray of every pixel meets the plane at distance one, row by row."""
    width, height = camera.size
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float64)
    return camera.plane_from_pixels(np.stack([columns.ravel(), rows.ravel()], axis=1))
