"""Assign blobs to markers jointly: the most likely explanation in which no blob is two markers.

For every marker all hypotheses are listed: in each camera a nearby blob, or none. The blobs of a hypothesis must fit
the marker's track and each other, camera by camera (a Kalman update each, so that the second camera's blob must be on
the epipolar line of the first one's), have one colour, and the marker's own. Its cost is minus twice its
log-likelihood ratio against "hidden everywhere, and all of these blobs are something else". The cheapest set of
hypotheses is found by branch and bound.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float, Int

from poise.compiled import compiled
from poise.types import Array
from poise.vision.blobs import Blobs
from poise.vision.tracks import Tracks, inverse_of_two, pixel_variance, seen_from

STRAY = 1e-6  # spurious blobs per pixel of a picture
GATE = 30.0  # squared deviations beyond which a blob is not a marker's
COLOUR_OFF = 0.12  # variation of a marker's tint between pictures, 0 to 1 per channel
MOST_WAYS = 64  # largest number of hypotheses of one marker
BURSTS = 0.05  # probability of an unusual acceleration of a marker
LONGEST_SEARCH = 20_000  # largest number of sets examined


def explain(
    matrices: Float[Array, "cameras 3 4"],
    straight: Sequence[Float[Array, "_ 2"]],
    blobs: Sequence[Blobs],
    tracks: Tracks,
    *,
    chances: Float[Array, "cameras markers"],
    tints: Float[Array, "markers 3"],
) -> tuple[Int[Array, "markers cameras"], Bool[Array, "markers"]]:
    """The blob of each marker in each camera, -1 if hidden; and the markers with unusual acceleration.

    `chances` are the probabilities that a marker is seen where it is expected; tints are NaN if unknown.
    """
    # Undistorted pixels of the blobs of each camera, and their tints, padded to the maximum.
    counts = np.array([len(own) for own in blobs])
    most = int(counts.max(initial=1))
    pixels, seen_tints = np.zeros((len(blobs), most, 2)), np.zeros((len(blobs), most, 3))
    for camera, own in enumerate(blobs):
        pixels[camera, : len(own)], seen_tints[camera, : len(own)] = straight[camera], own.tints
    size = tints.shape[0], MOST_WAYS
    ways, costs = np.empty((*size, len(blobs)), dtype=np.int64), np.empty(size)
    bursts, known = np.zeros(size, dtype=np.bool_), np.zeros(size[0], dtype=np.int64)
    places, spreads, noise, burst = tracks.places, tracks.spreads, tracks.noise, tracks.burst
    chances = np.ascontiguousarray(chances.T)
    for marker in range(size[0]):
        known[marker] = _list_ways(
            matrices, pixels, counts, seen_tints, places[marker], spreads[marker], noise[marker], burst[marker],
            chances[marker], tints[marker], ways[marker], costs[marker], bursts[marker],
        )  # fmt: skip
    chosen = _cheapest(ways, costs, known, pixels.shape[1])
    markers, hidden = np.arange(size[0]), chosen < 0
    return np.where(hidden[:, None], -1, ways[markers, chosen]), bursts[markers, chosen] & ~hidden


@compiled
def _list_ways(
    matrices: Array, pixels: Array, counts: Array, seen_tints: Array, place: Array, spread: Array, noise: float,
    burst: float, seen_chance: Array, tint: Array, ways: Array, costs: Array, bursts: Array,
) -> int:  # fmt: skip
    """List the hypotheses of one marker that are likelier than not seeing it, cheapest first; return their number."""
    most, cameras = len(costs), len(matrices)
    points, covariances = np.empty((most, 3)), np.empty((most, 3, 3))
    pixel, jacobian = np.empty(2), np.empty((2, 3))
    ways[:2], points[:2], bursts[0], bursts[1] = -1, place, False, True
    costs[0], costs[1] = 0.0, -2.0 * np.log(BURSTS)
    covariances[0], covariances[1] = spread, spread + burst**2 * np.eye(3)
    total = 2
    for camera in range(cameras):
        for way in range(total):
            if ways[way, camera] >= 0 or not seen_from(matrices[camera], points[way], pixel, jacobian):
                continue
            carried = jacobian @ covariances[way]
            inverse, room = inverse_of_two(carried @ jacobian.T, pixel_variance(jacobian, noise))
            evidence = np.log(4.0 * np.pi**2 * room) + 2.0 * np.log(STRAY)
            evidence -= 2.0 * np.log(seen_chance[camera] / (1.0 - seen_chance[camera]))
            for blob in range(counts[camera]):
                gap = pixels[camera, blob] - pixel
                off = gap @ inverse @ gap
                if off > GATE:
                    continue
                off += _tint_cost(seen_tints, ways[way], camera, blob, tint)
                if total < most:
                    slot = total
                    total += 1
                else:
                    slot = _worst(costs, way)
                    if costs[slot] <= costs[way] + off + evidence:
                        continue
                ways[slot], bursts[slot] = ways[way], bursts[way]
                ways[slot, camera] = blob
                costs[slot] = costs[way] + off + evidence
                _update(
                    matrices[camera], pixels[camera, blob], noise, points[way], covariances[way],
                    points[way] + carried.T @ (inverse @ gap), points[slot], covariances[slot],
                )  # fmt: skip
    order = np.argsort(costs[:total])
    kept = 0
    for way in order:
        kept += costs[way] < 0.0
    ways[:kept], costs[:kept], bursts[:kept] = ways[order[:kept]], costs[order[:kept]], bursts[order[:kept]]
    return kept


@compiled
def _worst(costs: Array, parent: int) -> int:
    """The hypothesis to replace by a better one: not the one being extended, nor those that start all others."""
    worst = -1
    for way in range(2, len(costs)):
        if way != parent and (worst < 0 or costs[way] > costs[worst]):
            worst = way
    return worst


@compiled
def _update(
    matrix: Array, seen: Array, noise: float, place: Array, spread: Array, near: Array, point: Array, covariance: Array
) -> None:  # fmt: skip
    """Update a position and its covariance with a camera's pixel; the projection is linearised at the update."""
    pixel, jacobian = np.empty(2), np.empty((2, 3))
    if not seen_from(matrix, near, pixel, jacobian):
        return
    carried = jacobian @ spread
    inverse, _ = inverse_of_two(carried @ jacobian.T, pixel_variance(jacobian, noise))
    gain = carried.T @ inverse
    moved = place + gain @ (seen - pixel - jacobian @ (place - near))
    covariance[:] = spread - gain @ carried
    point[:] = moved


@compiled
def _tint_cost(seen_tints: Array, way: Array, camera: int, blob: int, tint: Array) -> float:
    """Squared deviation of a blob's tint from the marker's own, or else from its first blob's."""
    if not np.isnan(tint[0]):
        return _squared_off(seen_tints[camera, blob], tint)
    for other in range(camera):
        if way[other] >= 0:
            return _squared_off(seen_tints[camera, blob], seen_tints[other, way[other]])
    return 0.0


@compiled
def _squared_off(first: Array, second: Array) -> float:
    return (np.abs(first - second).max() / COLOUR_OFF) ** 2


@compiled
def _cheapest(ways: Array, costs: Array, known: Array, blobs: int) -> Array:
    """A hypothesis per marker (-1: hidden) with no blob used twice, at the least total cost: branch and bound."""
    markers, cameras = len(known), ways.shape[2]
    order = np.argsort(np.array([costs[m, 0] if known[m] else 0.0 for m in range(markers)]))
    bounds = np.zeros(markers + 1)
    for depth in range(markers - 1, -1, -1):
        marker = order[depth]
        bounds[depth] = bounds[depth + 1] + (costs[marker, 0] if known[marker] else 0.0)
    taken = np.zeros((cameras, blobs), dtype=np.bool_)
    chosen, best = np.full(markers, -1), np.full(markers, -1)
    tried = np.zeros(markers + 1, dtype=np.int64)
    spent = np.zeros(markers + 1)
    least, depth = np.inf, 0
    for _ in range(LONGEST_SEARCH):
        if depth == markers:
            if spent[depth] < least:
                least = spent[depth]
                best[:] = chosen
            depth -= 1
            continue
        marker = order[depth]
        if chosen[marker] >= 0:
            _mark(taken, ways[marker, chosen[marker]], False)
            chosen[marker] = -1
        way = tried[depth]
        tried[depth] += 1
        cost = costs[marker, way] if way < known[marker] else 0.0
        if way > known[marker] or spent[depth] + cost + bounds[depth + 1] >= least:
            tried[depth] = 0
            depth -= 1
            if depth < 0:
                break
            continue
        if way < known[marker]:
            if not _is_free(taken, ways[marker, way]):
                continue
            chosen[marker] = way
            _mark(taken, ways[marker, way], True)
        spent[depth + 1] = spent[depth] + cost
        depth += 1
    return best


@compiled
def _is_free(taken: Array, way: Array) -> bool:
    free = True
    for camera in range(len(way)):
        free &= way[camera] < 0 or not taken[camera, way[camera]]
    return free


@compiled
def _mark(taken: Array, way: Array, is_taken: bool) -> None:
    for camera in range(len(way)):
        if way[camera] >= 0:
            taken[camera, way[camera]] = is_taken
