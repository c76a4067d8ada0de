"""A small motion network with random weights, for tests of what must hold with any weights."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from poise.priors.motion import layout
from poise.priors.motion.network import HEAD, MotionWeights, from_arrays
from poise.priors.universal.layout import BONES


def small_weights() -> MotionWeights:
    """The network."""
    return from_arrays(_arrays(), {})


def lines_saved(path: Path) -> Path:
    """The file of a network that adds nothing to straight lines."""
    still = {name: 0.0 * array if name.startswith("last") else array for name, array in _arrays().items()}
    save_file(
        {name: array.astype(np.float32) for name, array in still.items()}, path, {"motion": json.dumps({})}
    )
    return path


def _arrays() -> dict[str, np.ndarray]:
    draw, width = np.random.default_rng(5), 2 * HEAD
    sizes = {
        "first": (width, layout.WIDTH), "last": (layout.LEFT, width), "norm": (width,), "blocks.0.norm": (width,),
        "blocks.0.inner": (width,), "blocks.0.mix": (3 * width, width), "blocks.0.out": (width, width),
        "blocks.0.up": (4 * width, width), "blocks.0.down": (width, 4 * width),
    }  # fmt: skip
    arrays = {f"{name}.weight": draw.normal(0.0, 0.1, size) for name, size in sizes.items()}
    arrays |= {f"{name}.bias": draw.normal(0.0, 0.1, size[0]) for name, size in sizes.items()}
    return arrays | {"typical": np.full(len(BONES), 0.2)}
