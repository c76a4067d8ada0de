"""A small compiled software rasteriser: z-buffered triangles, deferred shading, soft shadows and an endless floor."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int, UInt8

from poise.compiled import compiled
from poise.types import Array


@compiled
def fill_triangles(
    points: Float[Array, "vertices 3"],
    triangles: Int[Array, "triangles 3"],
    nearness: Float[Array, "height width"],
    hit: Int[Array, "height width"],
) -> None:
    """Draws triangles that face the viewer: per pixel, which one is nearest and how near it is.

    Points are (column, row, nearness); nearness is larger for nearer points, linear on the screen, and 0 is empty.
    """
    height, width = nearness.shape
    for k in range(len(triangles)):
        i, j, m = triangles[k, 0], triangles[k, 1], triangles[k, 2]
        ax, ay, az = points[i, 0], points[i, 1], points[i, 2]
        bx, by, bz = points[j, 0], points[j, 1], points[j, 2]
        cx, cy, cz = points[m, 0], points[m, 1], points[m, 2]
        area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        if not (area < 0.0 and az > 0.0 and bz > 0.0 and cz > 0.0):  # clockwise: rows run down
            continue
        left, right = max(0, int(np.ceil(min(ax, bx, cx)))), min(width - 1, int(np.floor(max(ax, bx, cx))))
        top, bottom = max(0, int(np.ceil(min(ay, by, cy)))), min(height - 1, int(np.floor(max(ay, by, cy))))
        inverse = 1.0 / area
        step_a, step_b = (by - cy) * inverse, (cy - ay) * inverse
        for row in range(top, bottom + 1):
            wa = ((bx - left) * (cy - row) - (by - row) * (cx - left)) * inverse
            wb = ((cx - left) * (ay - row) - (cy - row) * (ax - left)) * inverse
            for column in range(left, right + 1):
                wc = 1.0 - wa - wb
                if wa >= 0.0 and wb >= 0.0 and wc >= 0.0:
                    near = wa * az + wb * bz + wc * cz
                    if near > nearness[row, column]:
                        nearness[row, column] = near
                        hit[row, column] = k
                wa += step_a
                wb += step_b


@compiled
def sample(texture: Float[Array, "rows columns"], row: float, column: float) -> float:
    """A texture with bilinear interpolation; zero outside."""
    rows, columns = texture.shape
    if not (0.0 <= row < rows - 1 and 0.0 <= column < columns - 1):
        return 0.0
    r, c = int(row), int(column)
    fr, fc = row - r, column - c
    upper = texture[r, c] * (1.0 - fc) + texture[r, c + 1] * fc
    lower = texture[r + 1, c] * (1.0 - fc) + texture[r + 1, c + 1] * fc
    return float(upper * (1.0 - fr) + lower * fr)


@compiled
def soften(texture: Float[Array, "rows columns"], radius: int) -> None:
    """Blurs a texture in place with two box filters along each axis."""
    rows, columns = texture.shape
    line = np.empty(max(rows, columns))
    share = 1.0 / (2 * radius + 1)
    for axis in range(4):
        along_rows = axis % 2 == 0
        for k in range(rows if along_rows else columns):
            count = columns if along_rows else rows
            for n in range(count):
                line[n] = texture[k, n] if along_rows else texture[n, k]
            total = 0.0
            for n in range(min(radius, count)):
                total += line[n]
            for n in range(count):
                if n + radius < count:
                    total += line[n + radius]
                if n - radius - 1 >= 0:
                    total -= line[n - radius - 1]
                if along_rows:
                    texture[k, n] = total * share
                else:
                    texture[n, k] = total * share


@compiled
def shade(
    samples: int,
    nearness: Float[Array, "sub_height sub_width"],
    hit: Int[Array, "sub_height sub_width"],
    triangles: Int[Array, "triangles 3"],
    points: Float[Array, "vertices 3"],
    vertices: Float[Array, "vertices 9"],
    lights: Float[Array, "lights 7"],
    eye: Float[Array, "3"],
    light_axes: Float[Array, "4 3"],
    light_nearness: Float[Array, "rows columns"],
    texel: float,
    opacity: float,
    canvas: Float[Array, "height width 3"],
) -> None:
    """Paint the visible surface of each pixel over a canvas, weighted by its coverage.

    A vertex is (position, normal, colour). A light is (direction towards it, colour, wrap); the first one casts
    shadows. Light axes are an origin, the two axes of the shadow map and the direction towards the light.
    """
    point, colour = np.empty(9), np.empty(3)
    share = 1.0 / (samples * samples)
    for row in range(canvas.shape[0]):
        for column in range(canvas.shape[1]):
            red, green, blue, cover = 0.0, 0.0, 0.0, 0.0
            last, last_near, open_air = -1, 1.0, 1.0
            for sub in range(samples * samples):
                y, x = row * samples + sub // samples, column * samples + sub % samples
                k = hit[y, x]
                if k < 0:
                    continue
                # Samples with one colour and about one depth share the light of the first of them.
                same = last >= 0 and vertices[triangles[k, 0], 6] == vertices[triangles[last, 0], 6]
                if not (same and abs(1.0 / nearness[y, x] - 1.0 / last_near) < 0.03):
                    last, last_near = k, nearness[y, x]
                    _between(x, y, triangles[k], points, vertices, point)
                    lit = 1.0 - _shadowed(point, light_axes, light_nearness, texel)
                    _surface(point, lights, eye, lit, colour)
                    open_air = 1.0 - 0.17 * _crowded(y, x, 2 * samples, nearness)
                red += share * open_air * colour[0]
                green += share * open_air * colour[1]
                blue += share * open_air * colour[2]
                cover += share
            if cover > 0.0:
                through = 1.0 - opacity * cover
                canvas[row, column, 0] = through * canvas[row, column, 0] + opacity * red
                canvas[row, column, 1] = through * canvas[row, column, 1] + opacity * green
                canvas[row, column, 2] = through * canvas[row, column, 2] + opacity * blue


@compiled
def _between(
    x: int,
    y: int,
    corners: Int[Array, "3"],
    points: Float[Array, "vertices 3"],
    vertices: Float[Array, "vertices 9"],
    out: Float[Array, "9"],
) -> None:
    """The position, normal and colour of a triangle at a pixel."""
    i, j, m = corners[0], corners[1], corners[2]
    ax, ay = points[i, 0] - x, points[i, 1] - y
    bx, by = points[j, 0] - x, points[j, 1] - y
    cx, cy = points[m, 0] - x, points[m, 1] - y
    wa, wb, wc = bx * cy - by * cx, cx * ay - cy * ax, ax * by - ay * bx
    whole = 1.0 / (wa + wb + wc)
    for a in range(9):
        out[a] = (wa * vertices[i, a] + wb * vertices[j, a] + wc * vertices[m, a]) * whole


@compiled
def _crowded(y: int, x: int, reach: int, nearness: Float[Array, "sub_height sub_width"]) -> float:
    """The number of four neighbours that belong to something well in front: darkened, so that limbs stand out."""
    height, width = nearness.shape
    crowd = 0.0
    for step in range(4):
        yy = y + (reach if step == 0 else -reach if step == 1 else 0)
        xx = x + (reach if step == 2 else -reach if step == 3 else 0)
        if 0 <= yy < height and 0 <= xx < width and nearness[yy, xx] > nearness[y, x]:
            gap = 1.0 / nearness[y, x] - 1.0 / nearness[yy, xx]
            crowd += min(max((gap - 0.03) / 0.10, 0.0), 1.0)
    return crowd


@compiled
def _surface(
    point: Float[Array, "9"],
    lights: Float[Array, "lights 7"],
    eye: Float[Array, "3"],
    lit: float,
    out: Float[Array, "3"],
) -> None:
    """The light a surface point sends to the eye: wrapped diffuse, a satin highlight and a faint bright rim."""
    length, away, facing, shine = 1e-12, 1e-12, 0.0, 0.0
    for a in range(3):
        length += point[3 + a] ** 2
        away += (eye[a] - point[a]) ** 2
    length, away = np.sqrt(length), np.sqrt(away)
    half = 0.0
    for a in range(3):
        point[3 + a] /= length
        facing += point[3 + a] * (eye[a] - point[a]) / away
        half += ((eye[a] - point[a]) / away + lights[0, a]) ** 2
        shine += point[3 + a] * ((eye[a] - point[a]) / away + lights[0, a])
    shine = max(shine / np.sqrt(half + 1e-12), 0.0) ** 24
    rim = (1.0 - max(facing, 0.0)) ** 3
    for channel in range(3):
        light = 0.0
        for source in range(len(lights)):
            cosine = 0.0
            for a in range(3):
                cosine += point[3 + a] * lights[source, a]
            strength = max((cosine + lights[source, 6]) / (1.0 + lights[source, 6]), 0.0)
            light += strength * lights[source, 3 + channel] * (lit if source == 0 else 1.0)
        out[channel] = point[6 + channel] * light + 0.06 * rim + 0.07 * shine * lit


@compiled
def _shadowed(
    point: Float[Array, "9"],
    light_axes: Float[Array, "4 3"],
    light_nearness: Float[Array, "rows columns"],
    texel: float,
) -> float:
    """The share of the light that is blocked at a point, smoothed over neighbouring texels of the shadow map."""
    facing = 0.0
    for a in range(3):
        facing += point[3 + a] * light_axes[3, a]
    if facing < -0.2:
        return 1.0
    rows, columns = light_nearness.shape
    u, v, near = 0.0, 0.0, 0.0
    for a in range(3):
        from_origin = point[a] + 0.016 * point[3 + a] - light_axes[0, a]
        u += from_origin * light_axes[1, a]
        v += from_origin * light_axes[2, a]
        near += from_origin * light_axes[3, a]
    column, row = u / texel, v / texel
    hidden = 0.0
    for dy in range(-1, 3):
        for dx in range(-1, 3):
            r, c = int(row) + dy, int(column) + dx
            if 0 <= r < rows and 0 <= c < columns and light_nearness[r, c] > near + 0.016:
                weight_r = min(max(1.5 - abs(r - row) * 0.75, 0.0), 1.0)
                weight_c = min(max(1.5 - abs(c - column) * 0.75, 0.0), 1.0)
                hidden += weight_r * weight_c
    return float(min(hidden / 9.0, 1.0))


@compiled
def paint_floor(
    rays: Float[Array, "3 3"],
    eye: Float[Array, "3"],
    floor: Float[Array, "4"],
    colours: Float[Array, "4 3"],
    grid: Float[Array, "3"],
    light_axes: Float[Array, "4 3"],
    shadow: Float[Array, "rows columns"],
    texel: float,
    out: Float[Array, "height width 3"],
) -> None:
    """Paint the backdrop: a floor with a grid and shadows that fades into the background with distance.

    Rays are the direction through pixel (0, 0), the change per column and per row. Floor is (height, centre x, centre
    z, radius at which it has faded); grid is (spacing of lines, strength, half width in metres); colours are background
    at the top, background at the bottom, floor, shadow.
    """
    height, width = out.shape[0], out.shape[1]
    to_map = _map_from_floor(floor[0], light_axes, texel)
    for row in range(height):
        sky = row / max(height - 1, 1)
        for channel in range(3):
            behind = colours[0, channel] * (1.0 - sky) + colours[1, channel] * sky
            for column in range(width):
                out[row, column, channel] = behind
        for column in range(width):
            dx = rays[0, 0] + column * rays[1, 0] + row * rays[2, 0]
            dy = rays[0, 1] + column * rays[1, 1] + row * rays[2, 1]
            dz = rays[0, 2] + column * rays[1, 2] + row * rays[2, 2]
            if dy > -1e-6:
                continue
            t = (floor[0] - eye[1]) / dy
            x, z = eye[0] + t * dx, eye[2] + t * dz
            distance = np.sqrt((x - floor[1]) ** 2 + (z - floor[2]) ** 2) / floor[3]
            if distance >= 1.0 or t < 0.0:
                continue
            fade = max((distance - 0.35) / 0.65, 0.0)
            mix = 1.0 - fade * fade * (3.0 - 2.0 * fade)
            wide_x = abs(t * rays[1, 0]) + abs(t * (rays[2, 0] - rays[2, 1] * dx / dy))
            wide_z = abs(t * rays[1, 2]) + abs(t * (rays[2, 2] - rays[2, 1] * dz / dy))
            line = grid[1] * max(_grid_line(x, grid, wide_x), _grid_line(z, grid, wide_z))
            dark = sample(
                shadow,
                to_map[1, 0] + to_map[1, 1] * x + to_map[1, 2] * z,
                to_map[0, 0] + to_map[0, 1] * x + to_map[0, 2] * z,
            )
            for channel in range(3):
                ground = colours[2, channel] * (1.0 - line)
                ground += (colours[3, channel] - ground) * dark
                out[row, column, channel] += (ground - out[row, column, channel]) * mix


@compiled
def _map_from_floor(height: float, light_axes: Float[Array, "4 3"], texel: float) -> Float[Array, "2 3"]:
    """Column and row of the shadow map as (constant, per x, per z) of a point on the floor."""
    found = np.empty((2, 3))
    for k in range(2):
        axis, origin = light_axes[1 + k], light_axes[0]
        start = axis[1] * height - axis[0] * origin[0] - axis[1] * origin[1] - axis[2] * origin[2]
        found[k, 0], found[k, 1], found[k, 2] = start / texel, axis[0] / texel, axis[2] / texel
    return found


@compiled
def _grid_line(x: float, grid: Float[Array, "3"], footprint: float) -> float:
    """The share of a pixel's footprint that a grid line covers."""
    from_line = abs(x / grid[0] - np.round(x / grid[0])) * grid[0]
    half = 0.5 * footprint
    covered = min(from_line + half, grid[2]) - max(from_line - half, -grid[2])
    return float(min(max(covered / max(footprint, 1e-9), 0.0), 1.0))


@compiled
def bytes_from_light(
    light: Float[Array, "height width 3"], table: UInt8[Array, "steps"], out: UInt8[Array, "height width 3"]
) -> None:
    """Screen bytes of linear light, through a table over the range 0 to 1."""
    steps = len(table) - 1
    for row in range(light.shape[0]):
        for column in range(light.shape[1]):
            for channel in range(3):
                step = int(light[row, column, channel] * steps + 0.5)
                out[row, column, channel] = table[min(max(step, 0), steps)]
