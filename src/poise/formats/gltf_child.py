"""The process in which `gltf.packing` unpacks data: `gltf_child.py PACKED.npz OUT.npz`, without importing Poise."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def _view(data: Any, mode: str, how: str, count: int, stride: int) -> Any:
    """The bytes of a buffer view that meshopt compressed."""
    import meshoptimizer as meshopt

    if mode != "ATTRIBUTES":
        decode = meshopt.decode_index_buffer if mode == "TRIANGLES" else meshopt.decode_index_sequence
        return np.frombuffer(decode(count, stride, data), np.uint8)[: count * stride]
    plain = meshopt.decode_vertex_buffer(count, stride, data, dtype=np.dtype((np.void, stride)))
    plain = np.frombuffer(plain.tobytes(), np.uint8)
    names = {
        "OCTAHEDRAL": "decode_filter_oct",
        "QUATERNION": "decode_filter_quat",
        "EXPONENTIAL": "decode_filter_exp",
    }
    return getattr(meshopt, names[how])(plain, count, stride) if how in names else plain


def _mesh(data: Any) -> dict[str, Any]:
    """The faces and the attributes, by their numbers, of a mesh that Draco compressed."""
    import DracoPy

    mesh = DracoPy.decode(data.tobytes())
    return {
        "faces": mesh.faces.reshape(-1),
        **{str(one["unique_id"]): one["data"] for one in mesh.attributes},
    }


def _main(packed: str, out: str) -> None:
    found: dict[str, Any] = {}
    with np.load(packed) as jobs:
        for name in jobs.files:
            kind, number, *how = name.split()
            if kind == "view":
                mode, filtered, count, stride = how
                found[f"view {number}"] = _view(jobs[name], mode, filtered, int(count), int(stride))
            else:
                found |= {f"draco {number} {key}": values for key, values in _mesh(jobs[name]).items()}
    np.savez(out, **found)


if __name__ == "__main__":
    try:
        _main(*sys.argv[1:])
    except Exception as error:
        sys.exit(f"refused its compressed data cannot be unpacked: {type(error).__name__} {error}")
