"""The motion network's weights that come with Poise, and its evaluation in NumPy: a transformer encoder over frames."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.errors import PoiseError
from poise.priors.motion import layout
from poise.priors.universal.network import read_arrays
from poise.types import Array

FILE = Path(__file__).with_name("motion.safetensors")  # by tools/motion/train.py
HEAD = 40  # width of an attention head
LONGEST = 200.0  # frames: the longest wave of the rotary positions
_EPSILON = 1e-5


@dataclass(frozen=True, eq=False)
class MotionWeights:
    """All learned arrays; matrices are (inputs, outputs)."""

    first: tuple[Array, Array]
    blocks: tuple[dict[str, tuple[Array, Array]], ...]  # norm, mix, out, inner, up, down: weight and bias
    norm: tuple[Array, Array]
    last: tuple[Array, Array]
    typical: Float[Array, "bones"]  # lengths of the typical body's bones
    tempers: Float[
        Array, "kinds steps"
    ]  # factors on deviations of roots, turns, points, by frames to the nearest key
    places: Float[Array, "turning 3"]  # deviations of positions over the training clips' windows, for L2P
    header: dict[str, Any]


@cache
def shipped() -> MotionWeights:
    """The trained weights, read once; POISE_MOTION_WEIGHTS names another file."""
    path = Path(os.environ.get("POISE_MOTION_WEIGHTS", FILE))
    if not path.exists():
        raise PoiseError(
            f"the motion prior's weights are not part of this version of Poise: there is no {path}; "
            "`make motion` in a checkout trains them from CMU's clips, and POISE_MOTION_WEIGHTS names another file"
        )
    return from_arrays(*read_arrays(path, "motion"))


def from_arrays(arrays: dict[str, Array], header: dict[str, Any]) -> MotionWeights:
    """Create the weights from the contents of a file."""

    def layer(name: str) -> tuple[Array, Array]:
        weight, bias = (arrays[f"{name}.{part}"].astype(np.float32) for part in ("weight", "bias"))
        return np.ascontiguousarray(weight.T), bias

    count = sum(name.endswith("mix.weight") for name in arrays)
    parts = ("norm", "mix", "out", "inner", "up", "down")
    return MotionWeights(
        first=layer("first"),
        blocks=tuple({part: layer(f"blocks.{k}.{part}") for part in parts} for k in range(count)),
        norm=layer("norm"),
        last=layer("last"),
        typical=arrays["typical"],
        tempers=arrays.get("tempers", np.ones((3, 1))),
        places=arrays.get("places", np.zeros((0, 3))),
        header=header,
    )


def evaluated(
    weights: MotionWeights, inputs: Float[Array, "frames inputs"]
) -> Float[Array, "frames outputs"]:
    """The outputs for one window, in their units."""
    waves = LONGEST ** -np.linspace(0.0, 1.0, HEAD // 2)
    angle = np.arange(len(inputs))[:, None] * waves
    rotary = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    x = (inputs / layout.SIZES).astype(np.float32) @ weights.first[0] + weights.first[1]
    for block in weights.blocks:
        mixed = (_normed(x, block["norm"]) @ block["mix"][0] + block["mix"][1]).reshape(len(x), 3, -1, HEAD)
        asked, keys, values = mixed.transpose(1, 2, 0, 3)
        scores = (
            _rotated(asked, rotary) @ _rotated(keys, rotary).transpose(0, 2, 1) / np.float32(np.sqrt(HEAD))
        )
        np.exp(scores - scores.max(axis=-1, keepdims=True), out=scores)
        seen = (scores / scores.sum(axis=-1, keepdims=True)) @ values
        x = x + seen.transpose(1, 0, 2).reshape(len(x), -1) @ block["out"][0] + block["out"][1]
        hidden = _normed(x, block["inner"]) @ block["up"][0] + block["up"][1]
        gate = 1.0 + np.tanh(
            np.float32(0.7978845608) * (hidden + np.float32(0.044715) * hidden * hidden * hidden)
        )
        x = x + (np.float32(0.5) * hidden * gate) @ block["down"][0] + block["down"][1]
    return (_normed(x, weights.norm) @ weights.last[0] + weights.last[1]) * layout.SCALES


def _normed(x: Array, layer: tuple[Array, Array]) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    spread = np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + np.float32(_EPSILON))
    return centred / spread * layer[0] + layer[1]


def _rotated(x: Array, rotary: tuple[Array, Array]) -> Array:
    cos, sin = rotary
    a, b = np.split(x, 2, axis=-1)
    return np.concatenate([a * cos - b * sin, b * cos + a * sin], axis=-1)
