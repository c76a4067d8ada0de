"""The learned priors as ONNX files for programs without Python (`poise export`).

`universal_onnx` holds the universal prior on one body: from any handles to the Gaussian over the pose, with the log
density of a pose and its gradient. `motion_onnx` holds the network of the motion prior for one window.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from poise.formats.files import make_folder, replacing
from poise.priors.motion import layout as window
from poise.priors.motion.network import _EPSILON as EPSILON
from poise.priors.motion.network import HEAD, LONGEST_WAVE, MotionWeights
from poise.priors.universal import layout, network
from poise.priors.universal.body import on_maps
from poise.priors.universal.guide import SHARED
from poise.priors.universal.prior import UniversalPrior
from poise.types import Array

OPSET, IR = 17, 8
Value = str | Array | float | Sequence[int]
COUNT = "count"  # the free axis: poses at once, or frames of a window


class Graph:
    """An ONNX graph that is written like NumPy: a method per operator; constants may be arrays."""

    def __init__(
        self, inputs: dict[str, tuple[Any, ...]], *, names: str = "v", outer: Graph | None = None
    ) -> None:
        self.inputs, self._prefix, self._outer = inputs, names, outer
        self.nodes: list[Any] = []
        self.constants: dict[str, Array] = {}

    def __getattr__(self, operator: str) -> Any:
        if operator.startswith("_"):
            raise AttributeError(operator)

        def add(*values: Value, outputs: int = 1, **attributes: Any) -> Any:
            names = [f"{self._prefix}{len(self.nodes)}_{number}" for number in range(outputs)]
            given = [self.constant(value) for value in values]
            self.nodes.append(helper.make_node(operator, given, names, **attributes))
            return names[0] if outputs == 1 else names

        return add

    def constant(self, value: Value) -> str:
        """The name of a value; integers are 64 bits wide, all else is in single precision unless it is double."""
        if isinstance(value, str):
            return value
        array = np.asarray(value)
        if array.dtype.kind in "iu":
            array = array.astype(np.int64)
        elif not isinstance(value, np.ndarray):
            array = array.astype(np.float32)
        name = f"{self._prefix}c{len(self.constants)}"
        self.constants[name] = array
        return name

    def cut(self, value: str, begin: int, end: int, axis: int = 1) -> str:
        """Part of an axis."""
        return str(self.Slice(value, [begin], [end], [axis]))

    def shaped(self, value: str, *shape: int) -> str:
        """Another shape; 0 keeps an axis."""
        return str(self.Reshape(value, list(shape)))

    def summed(self, value: str, axis: int) -> str:
        """The sum over an axis, which is left out."""
        return str(self.ReduceSum(value, [axis], keepdims=0))

    def normed(self, value: str, scale: Array, shift: Array) -> str:
        """A layer's values normalised to mean 0 and deviation 1, then scaled and shifted."""
        return str(self.LayerNormalization(value, scale, shift, axis=-1, epsilon=EPSILON))

    def written(
        self, path: Path, outputs: dict[str, tuple[str, tuple[Any, ...]]], about: dict[str, str]
    ) -> Path:
        """Check the graph and write it."""
        for name, (value, _) in outputs.items():
            self.nodes.append(helper.make_node("Identity", [value], [name]))
        graph = helper.make_graph(
            self.nodes,
            path.stem,
            [
                helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
                for name, shape in self.inputs.items()
            ],
            [
                helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
                for name, (_, shape) in outputs.items()
            ],
            [numpy_helper.from_array(array, name) for name, array in self.constants.items()],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
        helper.set_model_props(model, about)
        onnx.checker.check_model(model, full_check=True)
        make_folder(path.parent)
        with replacing(path, "wb") as file:
            file.write(model.SerializeToString())
        return path


def universal_onnx(path: Path, prior: UniversalPrior | None = None) -> Path:
    """Write the universal prior on a body: of people by default."""
    prior = prior or UniversalPrior.of_people()
    fit, weights, skeleton = prior.fit, prior.weights, prior.space.skeleton
    joints = [_carried(prior, row) for row in range(len(layout.POINTS))]
    size = len(prior.space.moving) * 3
    shapes: dict[str, tuple[Any, ...]] = {
        "points": (COUNT, len(joints), 3), "given": (COUNT, len(joints)), "up": (COUNT, 3), "maps": (COUNT, size)
    }  # fmt: skip
    g = Graph(shapes)
    turn, mask = np.ascontiguousarray(fit.root_turn.T, np.float32), g.Unsqueeze("given", [2])
    seen = g.Add(g.MatMul("points", turn), fit.root_shift.astype(np.float32))  # in the canonical root's axes
    shifts = np.stack([fit.shifts[max(joint, 0)] for joint in joints]).astype(np.float32)
    known = np.array([joint >= 0 for joint in joints], np.float32)[:, None]
    mask = g.Mul(mask, known)
    handle_values = g.shaped(
        g.Concat(mask, g.Mul(seen, mask), g.Mul(mask, shifts), axis=2), 0, 7 * len(joints)
    )
    up = g.MatMul("up", turn)
    rows = g.Gather(g.Shape("points"), [0], axis=0)

    def everywhere(values: Array) -> str:
        """The same values for every pose."""
        return str(g.Expand(values.astype(np.float32)[None], g.Concat(rows, [1], axis=0)))

    before_frame = np.zeros(layout.AT_FRAME - 7 * len(joints))
    after_bones = np.zeros(layout.WIDTH - layout.AT_BONES - len(fit.bones))
    parts = [
        handle_values,
        everywhere(before_frame),
        everywhere(np.ones(1)),
        up,
        everywhere(np.r_[fit.bones, after_bones]),
    ]
    mean, spread = _network(g, g.Concat(*parts, axis=1), weights.layers)

    zeros, matrix, ranks = on_maps(prior.zeros, fit.maps), fit.maps.astype(np.float32), layout.FREEDOMS
    own = g.cut(mean, 9, layout.MEAN)
    middle = g.Add(g.MatMul(own, np.ascontiguousarray(matrix.T)), zeros.shift.astype(np.float32))
    tempers = weights.tempers[6:].astype(np.float32)
    logs = g.Clip(g.cut(spread, 6, ranks), network.LEAST, network.MOST)
    variances = g.Mul(g.Add(g.Exp(logs), network.SMALLEST), tempers**2)
    rank = len(weights.layers.spread_bias) // ranks - 1
    factors = g.shaped(g.cut(spread, ranks + 6 * rank, ranks * (1 + rank)), 0, ranks - 6, rank)
    factors = g.Mul(factors, (network.FACTOR_SCALE * tempers)[:, None])
    inner = g.MatMul(matrix, factors)
    own_noise = g.MatMul(g.Mul(g.Unsqueeze(variances, [1]), matrix), np.ascontiguousarray(matrix.T))
    shared = zeros.maps + (0.0 if fit.is_canonical else SHARED) * np.eye(size)
    low = g.MatMul(inner, g.Transpose(inner, perm=[0, 2, 1]))
    covariance = g.Add(g.Add(low, own_noise), shared.astype(np.float32))
    log_density, gradient = _density(g, middle, covariance, size)
    outputs = {
        "mean": (middle, (COUNT, size)), "covariance": (covariance, (COUNT, size, size)),
        "log_density": (log_density, (COUNT,)), "gradient": (gradient, (COUNT, size)),
    }  # fmt: skip
    moving = [skeleton.names[joint] for joint in prior.space.moving.tolist()]
    references = prior.space.references[prior.space.moving].round(7).tolist()
    about = {
        "points": " ".join(skeleton.names[joint] if joint >= 0 else "-" for joint in joints),
        "maps": " ".join(moving), "references_wxyz": str(references), "credit": prior.credit,
    }  # fmt: skip
    return g.written(path, outputs, about)


def motion_onnx(path: Path, weights: MotionWeights) -> Path:
    """Write the motion prior's network: the inputs of one window to its outputs, in their units."""
    g = Graph({"inputs": (COUNT, window.WIDTH)})
    heads = weights.blocks[0]["out"][0].shape[0] // HEAD
    waves = (LONGEST_WAVE ** -np.linspace(0.0, 1.0, HEAD // 2)).astype(np.float64)[None]
    frames = g.Squeeze(g.Gather(g.Shape("inputs"), [0], axis=0), [0])
    at = g.Cast(g.Range(np.array(0), frames, np.array(1)), to=TensorProto.DOUBLE)
    angle = g.Mul(g.Unsqueeze(at, [1]), waves)
    # Sines and cosines of double precision are not offered everywhere: turns are taken off first.
    turns = g.Floor(g.Div(angle, np.array(2 * np.pi)))
    angle = g.Cast(g.Sub(angle, g.Mul(turns, np.array(2 * np.pi))), to=TensorProto.FLOAT)
    cos, sin = g.Cos(angle), g.Sin(angle)

    def rotated(x: str) -> str:
        a, b = g.cut(x, 0, HEAD // 2, 2), g.cut(x, HEAD // 2, HEAD, 2)
        return str(g.Concat(g.Sub(g.Mul(a, cos), g.Mul(b, sin)), g.Add(g.Mul(b, cos), g.Mul(a, sin)), axis=2))

    def layer(x: str, pair: tuple[Array, Array]) -> str:
        return str(g.Add(g.MatMul(x, pair[0]), pair[1]))

    x = layer(g.Div("inputs", np.asarray(window.SIZES, np.float32)), weights.first)
    for block in weights.blocks:
        mixed = g.shaped(layer(g.normed(x, *block["norm"]), block["mix"]), -1, 3, heads, HEAD)
        mixed = g.Transpose(mixed, perm=[1, 2, 0, 3])
        asked, keys, values = (g.Squeeze(g.cut(mixed, k, k + 1, 0), [0]) for k in range(3))
        scores = g.MatMul(rotated(asked), g.Transpose(rotated(keys), perm=[0, 2, 1]))
        seen = g.MatMul(g.Softmax(g.Div(scores, float(np.sqrt(HEAD))), axis=-1), values)
        seen = g.shaped(g.Transpose(seen, perm=[1, 0, 2]), -1, heads * HEAD)
        x = g.Add(x, layer(seen, block["out"]))
        hidden = layer(g.normed(x, *block["inner"]), block["up"])
        cubic = g.Add(hidden, g.Mul(g.Mul(g.Mul(hidden, hidden), hidden), 0.044715))
        gate = g.Add(g.Tanh(g.Mul(cubic, 0.7978845608)), 1.0)
        x = g.Add(x, layer(g.Mul(g.Mul(hidden, 0.5), gate), block["down"]))
    found = g.Mul(layer(g.normed(x, *weights.norm), weights.last), np.asarray(window.SCALES, np.float32))
    return g.written(
        path, {"outputs": (found, (COUNT, window.LEFT))}, {"credit": str(weights.header.get("database", ""))}
    )


def _carried(prior: UniversalPrior, row: int) -> int:
    """The body's joint that is shown to the network as a point: the nearest of those that move with it; -1 for none."""
    own = np.flatnonzero(prior.fit.rows == row)
    return int(own[np.argmin(np.linalg.norm(prior.fit.shifts[own], axis=-1))]) if len(own) else -1


def _network(g: Graph, x: str, layers: network.NetworkLayers) -> tuple[str, str]:
    """The heads' outputs: the mean of the pose, and its spread."""

    def layer(x: str, matrix: Array, scales: Array, bias: Array) -> str:
        return str(g.Add(g.MatMul(x, np.ascontiguousarray((matrix * scales[:, None]).T, np.float32)), bias))

    h = g.Add(
        g.MatMul(x, (layers.first * layers.first_scales[:, None]).astype(np.float32)), layers.first_bias
    )
    for block in range(len(layers.inner)):
        up, down = (
            (layers.inner[block, k], layers.scales[block, k], layers.biases[block, k]) for k in range(2)
        )
        between = layer(g.normed(h, *layers.norms[block]), *up)
        h = g.Add(h, layer(g.Mul(between, g.Sigmoid(between)), *down))
    hidden = g.normed(h, *layers.norms[-1])
    mean = layer(hidden, layers.mean, layers.mean_scales, layers.mean_bias)
    return mean, layer(hidden, layers.spread, layers.spread_scales, layers.spread_bias)


def _density(g: Graph, mean: str, covariance: str, size: int) -> tuple[str, str]:
    """The log density of `maps` and its gradient, by elimination in double precision."""
    gap = g.Cast(g.Sub(mean, "maps"), to=TensorProto.DOUBLE)
    system = g.Concat(g.Cast(covariance, to=TensorProto.DOUBLE), g.Unsqueeze(gap, [2]), axis=2)
    body = Graph({}, names="loop", outer=g)
    column = body.Gather("left", "step", axis=2)
    row = body.Gather("left", "step", axis=1)
    pivot = body.Gather(row, "step", axis=1)
    others = body.Cast(body.Not(body.Equal(np.arange(size), "step")), to=TensorProto.DOUBLE)
    gone = body.Div(body.Mul(column, others), body.Unsqueeze(pivot, [1]))
    after = body.Sub("left", body.Mul(body.Unsqueeze(gone, [2]), body.Unsqueeze(row, [1])))
    volume = body.Add("volume", body.Log(pivot))
    keeps = body.Identity("going")
    info = helper.make_tensor_value_info
    shape, double = (COUNT, size, size + 1), TensorProto.DOUBLE
    loop = helper.make_graph(
        body.nodes,
        "eliminate",
        [
            info("step", TensorProto.INT64, ()),
            info("going", TensorProto.BOOL, ()),
            info("left", double, shape),
            info("volume", double, (COUNT,)),
        ],
        [info(keeps, TensorProto.BOOL, ()), info(after, double, shape), info(volume, double, (COUNT,))],
        [numpy_helper.from_array(array, name) for name, array in body.constants.items()],
    )
    nothing = g.Mul(g.summed(gap, 1), np.array(0.0))
    solved, volume = g.Loop(np.array(size), np.array(True), system, nothing, outputs=2, body=loop)
    right = g.Squeeze(g.cut(solved, size, size + 1, 2), [2])
    diagonal = g.summed(g.Mul(g.cut(solved, 0, size, 2), np.eye(size)), 2)
    gradient = g.Div(right, diagonal)
    square = g.summed(g.Mul(gap, gradient), 1)
    density = g.Mul(g.Add(g.Add(square, volume), np.array(size * np.log(2 * np.pi))), np.array(-0.5))
    return g.Cast(density, to=TensorProto.FLOAT), g.Cast(gradient, to=TensorProto.FLOAT)
