"""Shards: one safetensors file per clip, with its own frames and its frames on the canonical skeleton."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.errors import ParseError
from poise.geometry import rotations
from poise.library.tensor_file import map_tensors, write_tensors
from poise.motion.motion import Motion
from poise.skeleton.skeleton import Skeleton

Array = np.ndarray

FOLDER = "shards"
CANONICAL = "canonical."


def frames_hash(motion: Motion) -> str:
    """A fingerprint of a motion's frames as a shard keeps them: the same recording in another file has the same."""
    digest = hashlib.sha256(str(motion.fps).encode())
    for array in _frames(motion).values():
        digest.update(array.tobytes())
    return digest.hexdigest()


def write_shard(path: Path, motion: Motion, canonical: Motion, *, header: Mapping[str, Any]) -> str:
    """Write a clip, whole or not at all; the SHA-256 of the file. Rotations that are the clip's own are kept once."""
    carried = _frames(canonical)
    if motion.skeleton.same_topology(canonical.skeleton):
        del carried["rotations"]
    arrays = _frames(motion) | {f"{CANONICAL}{name}": array for name, array in carried.items()}
    return write_tensors(path, arrays, {"kind": "clip", "fps": motion.fps, **header})


def read_own(path: Path, skeleton: Skeleton) -> Motion:
    """The clip on its own skeleton."""
    arrays, header = _checked(path)
    return _motion(skeleton, arrays["root_positions"], arrays["rotations"], float(header["fps"]))


def read_canonical(path: Path, skeleton: Skeleton) -> Motion:
    """The clip on the canonical skeleton."""
    arrays, header = _checked(path)
    turns = arrays.get(f"{CANONICAL}rotations", arrays["rotations"])
    return _motion(skeleton, arrays[f"{CANONICAL}root_positions"], turns, float(header["fps"]))


def _frames(motion: Motion) -> dict[str, Array]:
    """Single precision, without the end sites: a ten-thousandth of a millimetre, and half the space."""
    turns = rotations.canonical(motion.rotations[:, ~motion.skeleton.is_end_site])
    return {"root_positions": motion.root_positions.astype(np.float32), "rotations": turns.astype(np.float32)}


def _motion(
    skeleton: Skeleton, places: Float[Array, "frames 3"], turns: Float[Array, "frames turning 4"], fps: float
) -> Motion:
    whole = np.tile(rotations.IDENTITY, (len(places), len(skeleton), 1))
    whole[:, ~skeleton.is_end_site] = rotations.normalize(turns)
    return Motion(skeleton, fps, np.asarray(places, dtype=np.float64), whole)


def _checked(path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    arrays, header = map_tensors(path)
    needed = {"root_positions", "rotations", f"{CANONICAL}root_positions"}
    if header.get("kind") != "clip" or not needed <= set(arrays):
        raise ParseError("not a library's clip", path=path)
    return arrays, header
