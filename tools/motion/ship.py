"""Writes the file that comes with Poise: `python tools/motion/ship.py TRAINED.npz OUT.safetensors [LEVELS]`.

Matrices become bytes with a scale for each output. With fewer levels than 127, the values are coarser, and the packed
file is smaller.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from poise.priors.universal.network import in_bytes


def main(trained: Path, out: Path, levels: int = 127) -> None:
    """Convert one file."""
    with np.load(trained) as stored:
        arrays = {name: stored[name].astype(np.float32) for name in stored.files if name != "header"}
        header = str(stored["header"])
    kept = dict(arrays)
    for name, array in arrays.items():
        if array.ndim == 2 and name.endswith(".weight"):
            step = np.abs(array).max(axis=1, keepdims=True) / levels
            kept |= in_bytes(name, np.round(array / step) * step)
    save_file({name: np.ascontiguousarray(array) for name, array in kept.items()}, out, {"motion": header})
    print(f"{out}: {out.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:]))
