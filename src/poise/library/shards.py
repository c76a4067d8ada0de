"""Shards: one safetensors file per clip, with its own frames and its frames on the canonical skeleton."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.bounds import FARTHEST, FASTEST, SLOWEST
from poise.errors import InvalidValueError, ParseError
from poise.geometry import rotations
from poise.library.tensor_file import map_tensors, write_tensors
from poise.motion.carrying import carried, check_person
from poise.motion.edit import on_the_same_floor, retarget
from poise.motion.motion import Motion
from poise.schema import Numbers, Schema, choice, real
from poise.skeleton.skeleton import Skeleton
from poise.types import Array

# --- the canonical skeleton: motions from any body and rig are transferred to it, so that all can be searched at once -
#
# A clip with the canonical skeleton's joints keeps its rotations exactly; only its travel is scaled. One with other
# joints is transferred by roles; see `motion.carrying`.


@dataclass(frozen=True, eq=False)
class Canonical:
    """The common skeleton of a library's clips, and a typical pose of it that shows the meaning of its axes."""

    skeleton: Skeleton
    usual: Float[Array, "joints 4"]

    @classmethod
    def of(cls, motion: Motion) -> Canonical:
        """The skeleton of a recorded person; raise with the reason if it is not a person."""
        check_person(motion)
        return cls(motion.skeleton, rotations.mean(motion.rotations))


def on_canonical(motion: Motion, canonical: Canonical) -> Motion:
    """The motion on the canonical skeleton; raise with the reason if it cannot be transferred."""
    if motion.skeleton.same_topology(canonical.skeleton):
        return retarget(motion, canonical.skeleton)
    check_person(motion)
    return on_the_same_floor(motion, carried(motion, canonical.skeleton, usual=canonical.usual))


# --- shards ----------------------------------------------------------------------------------------------------------

FOLDER = "shards"
CANONICAL = "canonical."


def frames_hash(motion: Motion) -> str:
    """A fingerprint of a motion's frames as stored in a shard: the same recording in another file has the same."""
    digest = hashlib.sha256(str(motion.fps).encode())
    for array in _frames(motion).values():
        digest.update(array.tobytes())
    return digest.hexdigest()


def write_shard(path: Path, motion: Motion, canonical: Motion, *, header: Mapping[str, Any]) -> str:
    """Write a clip atomically; return the file's SHA-256. Rotations equal to the clip's own are stored once."""
    carried = _frames(canonical)
    if motion.skeleton.same_topology(canonical.skeleton):
        del carried["rotations"]
    arrays = _frames(motion) | {f"{CANONICAL}{name}": array for name, array in carried.items()}
    return write_tensors(path, arrays, {"kind": "clip", "fps": motion.fps, **header})


def _frames(motion: Motion) -> dict[str, Array]:
    """The frames in single precision, without end sites: exact to 0.1 micrometres, and half the size."""
    turns = rotations.canonical(motion.rotations[:, ~motion.skeleton.is_end_site])
    return {"root_positions": motion.root_positions.astype(np.float32), "rotations": turns.astype(np.float32)}


_CLIP = Schema(
    {"kind": choice("clip"), "fps": real(SLOWEST, FASTEST)},
    lambda _header, _lengths: {
        "root_positions": Numbers(axes="frames 3", least=-FARTHEST, most=FARTHEST),
        "rotations": Numbers(axes="frames turning 4", least=-1.001, most=1.001),
    },
)


def read_clip(path: Path, skeleton: Skeleton, prefix: str = "", *, name: str = "") -> Motion:
    """The clip on its own skeleton, or with the prefix CANONICAL on that one."""
    arrays, header = map_tensors(path)
    own = {key: arrays.get(f"{prefix}{key}", arrays.get(key)) for key in ("root_positions", "rotations")}
    known = {key: array for key, array in own.items() if array is not None}
    try:
        _CLIP.checked_header(header)
        found = _CLIP.checked_arrays(known, header, {"turning": int((~skeleton.is_end_site).sum())})
    except InvalidValueError as error:
        raise ParseError(f"not a library's clip: {error}", path=path) from error
    places = np.asarray(found["root_positions"], dtype=np.float64)
    whole = np.tile(rotations.IDENTITY, (len(places), len(skeleton), 1))
    whole[:, ~skeleton.is_end_site] = rotations.normalize(found["rotations"])
    return Motion(skeleton, float(header["fps"]), places, whole, name)
