"""The network's weights that come with Poise, and its compiled evaluation for one input.

Matrices are bytes with scales, in the file and in memory: reading them takes most of the time of an evaluation. Of the
first layer, only rows with a nonzero input are read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from poise.compiled import compiled, compiled_sums
from poise.priors.universal import layout
from poise.skeleton.skeleton import read_only
from poise.types import Array

FILE = Path(__file__).with_name("universal.safetensors")  # as trained
TABLES = FILE.with_name("tables.safetensors")  # its calibration, by tools/universal/calibrate.py
POSTURES = FILE.with_name("postures.safetensors")  # shifts for postures, by tools/universal/modes.py
SCALE = ".scales"
SMALLEST = 2e-5  # radians or metres squared: smallest variance
FACTOR_SCALE = 0.3
LEAST, MOST = -14.0, 3.0  # bounds of the logarithm of a variance
_EPSILON = 1e-5


class NetworkLayers(NamedTuple):
    """The arrays of the compiled evaluation; matrices are (outputs, inputs), but the first is (inputs, width)."""

    first: Array
    first_scales: Array  # (inputs,)
    first_bias: Array
    norms: Array  # (blocks + 1, 2, width): scale and shift before each block and before the heads
    inner: Array  # (blocks, 2, width, width)
    scales: Array  # (blocks, 2, width)
    biases: Array  # (blocks, 2, width)
    mean: Array
    mean_scales: Array
    mean_bias: Array
    spread: Array
    spread_scales: Array
    spread_bias: Array


class PostureWeights(NamedTuple):
    """Shifts of the network's values, before each block and the heads, for each posture; and the posture classifier."""

    shifts: Float[Array, "postures blocks width"]
    gate: Float[Array, "postures width"]
    gate_bias: Float[Array, "postures"]


class ZeroWeights(NamedTuple):
    """Prediction of joint zeros from bones (see `zeros`): Gaussian processes over bodies, and the covariance."""

    centre: Float[Array, "figure"]
    scale: Float[Array, "figure"]
    figures: Float[Array, "bodies figure"]  # centred and scaled
    reach: Float[Array, "zeros"]  # the square of the kernel's length
    weight: Float[Array, "bodies zeros"]
    mean: Float[Array, "zeros"]
    spread: Float[Array, "zeros zeros"]


@dataclass(frozen=True, eq=False)
class Weights:
    """All learned arrays."""

    layers: NetworkLayers
    postures: PostureWeights
    zeros: ZeroWeights
    references: Float[Array, "joints 3 3"]
    lengths: Float[Array, "bones"]
    body: Float[Array, "joints 3"]
    lower: Float[Array, "moving 3"]
    upper: Float[Array, "moving 3"]
    tempers: Float[Array, "freedoms"]  # factors on standard deviations, chosen on held-out performers
    poses: Float[Array, "poses maps"]
    ups: Float[Array, "poses 3"]
    quantiles: Float[Array, "101"]
    header: dict[str, Any]


@cache
def shipped() -> Weights:
    """The weights that come with Poise, read once."""
    arrays, header = read_arrays(FILE)
    return from_arrays(arrays | read_arrays(TABLES)[0] | read_arrays(POSTURES)[0], header)


def read_arrays(path: Path, kind: str = "universal") -> tuple[dict[str, Array], dict[str, Any]]:
    """The arrays of a file of weights or tables, with matrices scaled, and its header."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        header = json.loads(file.metadata()[kind])
    scales = {name.removesuffix(SCALE): found.pop(name) for name in list(found) if name.endswith(SCALE)}
    return found | {name: found[name] * scale.astype(np.float32) for name, scale in scales.items()}, header


def in_bytes(name: str, matrix: Float[Array, "rows columns"]) -> dict[str, Array]:
    """A matrix in the form of a file; each input of the first layer has a scale, and each output of the others."""
    size = np.abs(matrix).max(axis=0 if name == "first.weight" else 1, keepdims=True)
    scale = np.maximum(size / 127, 1e-7).astype(np.float16)
    whole = np.rint(matrix / scale.astype(np.float32)).clip(-127, 127).astype(np.int8)
    return {name: whole, name + SCALE: scale}


def from_arrays(arrays: dict[str, Array], header: dict[str, Any]) -> Weights:
    """Create the weights from the contents of a file."""
    found = {name: array.astype(np.float32) for name, array in arrays.items()}
    blocks = range(sum(name.endswith("up.weight") for name in found))
    pairs = [(f"blocks.{k}.up", f"blocks.{k}.down") for k in blocks]
    norms = [*(f"blocks.{k}.norm" for k in blocks), "norm"]
    # the matrices and their scales, by the layer's name; those of a file keep their bytes
    named = {name: array for name, array in found.items() if name.endswith(".weight") and array.ndim == 2}
    stored = {name.removesuffix(".weight"): in_bytes(name, array) for name, array in named.items()}
    matrices = {name: own[f"{name}.weight"] for name, own in stored.items()}
    scales = {name: own[f"{name}.weight{SCALE}"].astype(np.float32).ravel() for name, own in stored.items()}
    layers = NetworkLayers(
        first=np.ascontiguousarray(matrices["first"].T), first_scales=scales["first"], first_bias=found["first.bias"],
        norms=np.stack([[found[f"{name}.weight"], found[f"{name}.bias"]] for name in norms]),
        inner=np.stack([[matrices[name] for name in pair] for pair in pairs]),
        scales=np.stack([[scales[name] for name in pair] for pair in pairs]),
        biases=np.stack([[found[f"{name}.bias"] for name in pair] for pair in pairs]),
        mean=matrices["mean"], mean_scales=scales["mean"], mean_bias=found["mean.bias"],
        spread=matrices["spread"], spread_scales=scales["spread"], spread_bias=found["spread.bias"],
    )  # fmt: skip
    plain = {
        name: read_only(found.get(name, default))
        for name, default in (
            ("references", None), ("lengths", None), ("body", None),
            ("lower", np.full((len(layout.MOVING), 3), -np.pi)), ("upper", np.full((len(layout.MOVING), 3), np.pi)),
            ("tempers", np.ones(layout.FREEDOMS)), ("poses", np.zeros((1, 3 * len(layout.MOVING)))),
            ("ups", np.array([[0.0, 1.0, 0.0]])), ("quantiles", np.zeros(101)),
        )
    }  # fmt: skip
    none, shape = np.zeros(0, np.float32), (-1, len(norms), len(layers.first_bias))
    postures = PostureWeights(*(found.get(f"postures.{name}", none) for name in PostureWeights._fields))
    postures = postures._replace(shifts=postures.shifts.reshape(shape))
    zeros = ZeroWeights(*(found[f"zeros.{name}"].astype(np.float64) for name in ZeroWeights._fields))
    return Weights(layers, postures, zeros, header=header, **plain)


@compiled
def evaluate(
    layers: NetworkLayers, inputs: Array, shifts: Array, hidden: Array, mean: Array, spread: Array
) -> None:
    """Compute the heads' outputs for one input; `hidden` receives the heads' input. An empty `spread` is skipped.

    Nonempty `shifts` select a posture.
    """
    width = len(layers.first_bias)
    h, normed, between = layers.first_bias.copy(), np.empty(width, np.float32), np.empty(width, np.float32)
    for i in range(len(inputs)):
        if inputs[i] != 0.0:
            value, row = np.float32(inputs[i]) * layers.first_scales[i], layers.first[i]
            for k in range(width):
                h[k] += value * np.float32(row[k])
    for block in range(len(layers.inner)):
        if len(shifts) > 0:
            h += shifts[block]
        _normed(h, layers.norms[block], normed)
        _product(layers.inner[block, 0], layers.scales[block, 0], layers.biases[block, 0], normed, between)
        for i in range(width):
            between[i] = between[i] / (np.float32(1.0) + np.exp(-between[i]))
        _product(layers.inner[block, 1], layers.scales[block, 1], layers.biases[block, 1], between, normed)
        h += normed
    if len(shifts) > 0:
        h += shifts[-1]
    _normed(h, layers.norms[-1], hidden)
    _product(layers.mean, layers.mean_scales, layers.mean_bias, hidden, mean)
    if len(spread) > 0:
        _product(layers.spread, layers.spread_scales, layers.spread_bias, hidden, spread)


@compiled_sums
def _product(matrix: Array, scales: Array, bias: Array, inputs: Array, out: Array) -> None:
    """A layer's values: a matrix in bytes, with a scale and a bias per row, times its inputs."""
    for i in range(len(out)):
        row, total = matrix[i], np.float32(0.0)
        for k in range(len(inputs)):
            total += np.float32(row[k]) * inputs[k]
        out[i] = total * scales[i] + bias[i]


@compiled
def _normed(h: Array, norm: Array, out: Array) -> None:
    """A layer's values normalised to mean 0 and deviation 1, then scaled and shifted."""
    count = np.float32(len(h))
    centre = np.float32(0.0)
    for i in range(len(h)):
        centre += h[i]
    centre /= count
    square = np.float32(0.0)
    for i in range(len(h)):
        square += (h[i] - centre) * (h[i] - centre)
    scale = np.float32(1.0) / np.sqrt(square / count + np.float32(_EPSILON))
    for i in range(len(h)):
        out[i] = (h[i] - centre) * scale * norm[0, i] + norm[1, i]


ANY = np.zeros((0, 0), np.float32)  # no posture in particular


def posture_shares(weights: Weights, inputs: Float[Array, "inputs"]) -> Float[Array, "postures"]:
    """The probability of each posture given an input."""
    layers = weights.layers
    hidden, mean = np.empty(len(layers.first_bias), np.float32), np.empty(layout.MEAN, np.float32)
    evaluate(layers, inputs, ANY, hidden, mean, np.empty(0, np.float32))
    score = (weights.postures.gate @ hidden + weights.postures.gate_bias).astype(np.float64)
    shares = np.exp(score - score.max())
    return np.asarray(shares / shares.sum())
