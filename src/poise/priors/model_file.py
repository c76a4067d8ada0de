"""Model files: one safetensors file with the arrays and a JSON header; loading one runs no code.

The header holds the kind and version, the skeleton, the clips it was learned from with their hashes, and the settings.
Every kind of prior returns its arrays and its own header from `arrays()` and `header()`, declares them in its
`schema`, and is created again by `restored`, which gets only what the schema has checked.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import lru_cache
from itertools import permutations
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from poise.bounds import FARTHEST, checked_depth, checked_text
from poise.errors import InvalidValueError, ParseError, PoiseError
from poise.formats.files import existing_file, replacing
from poise.priors.evidence import HeldOut, KnownFrames, kept
from poise.priors.prior import Prior
from poise.priors.registry import PRIORS, Storable, Stored
from poise.schema import Declared, Indices, Numbers, Schema, choice, mapping, record, several, text, whole
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import JointLimits, Skeleton
from poise.types import Array

T = TypeVar("T")
VERSION = 1
MOST_JOINTS = 1000
_INCOMPLETE = (KeyError, TypeError, ValueError, IndexError, PoiseError)  # of what does not fit its kind


def save(prior: Storable, path: str | Path) -> None:
    """Write a prior to a file atomically; raise if `load` could not restore it."""
    from safetensors.numpy import save as to_bytes

    arrays, header = packed(prior)
    text = json.dumps(header | {"version": VERSION, "units": "m, rad"})
    arrays = {name: np.asarray(value, order="C") for name, value in arrays.items()}
    try:
        unpacked(arrays, json.loads(text))
    except _INCOMPLETE as error:
        raise InvalidValueError(f"this {prior.kind} model could not be opened again: {error}") from error
    data = to_bytes(arrays, {"poise": text})
    with replacing(path, "wb") as file:
        file.write(data)


def load(path: str | Path | None = None) -> Storable:
    """Read a prior from a file; without a path, return the universal prior, which comes with Poise.

    Raises if the file is not a model, is truncated or is newer than this Poise.
    """
    if path is None:
        return cast(Storable, cast(Any, PRIORS["universal"])())
    path = Path(path)
    arrays, header = _read(path)
    version, kind = header.get("version", 0), header.get("kind")
    if isinstance(version, int) and version > VERSION:
        raise ParseError(
            f"written by a newer Poise (model version {version} > {VERSION}); upgrade Poise", path=path
        )
    if not isinstance(kind, str) or kind not in PRIORS:
        raise ParseError(f"unknown kind of model {kind!r}; this Poise knows: {', '.join(PRIORS)}", path=path)
    try:
        whole(1, VERSION)(version, "version")
        return unpacked(arrays, header)
    except _INCOMPLETE as error:
        raise ParseError(f"not a complete {kind} model: {error}", path=path) from error


def opened(model: T | str | os.PathLike[str]) -> T | Storable:
    """The model; that of a file if a path is given, which is read once for as long as it does not change."""
    if not isinstance(model, str | os.PathLike):
        return model
    state = existing_file(Path(model)).stat()
    return _loaded(Path(model), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=4)
def _loaded(path: Path, _changed: int, _size: int) -> Storable:
    return load(path)


def packed(prior: Storable) -> tuple[dict[str, Array], dict[str, Any]]:
    """A prior as arrays and a header."""
    space, limits, own = prior.space, prior.limits, vars(prior)
    tree = space.skeleton
    names = {"names": tree.names, "orders": tree.orders, "roles": dict(tree.role_overrides)}
    header = {"kind": prior.kind, "skeleton": names, **prior.header()}
    arrays = {"skeleton.parents": tree.parents, "skeleton.offsets": tree.offsets}
    arrays |= {"space.references": space.references, "space.moving": space.moving}
    if limits is not None:
        arrays |= {f"limits.{side}": getattr(limits, side) for side in ("lower", "upper", "references")}
    arrays |= prior.arrays()
    if (held := own.get("held_out")) is not None:
        header["held_out"] = held._asdict()
    if (known := own.get("known_frames")) is not None:
        header["sources"] = known.sources
        arrays |= known.arrays()
    return arrays, header


def unpacked(arrays: Mapping[str, Array], header: Mapping[str, Any]) -> Storable:
    """Create the prior from the result of `packed`, after checking all that its kind declares."""
    _BODY.checked_header(header)
    kind = PRIORS.named(header["kind"])
    schema, (space, limits) = kind.schema, _body(arrays, header["skeleton"])
    own = schema.checked_header(header)
    lengths = {"joints": len(space.skeleton), "maps": 3 * len(space.moving), "size": space.size}
    checked = schema.checked_arrays(arrays, own, lengths)
    prior = kind.restored(Stored(space, limits, checked, own, _parts(arrays, own, schema)))
    if "held_out" in header:
        kept(prior, held_out=HeldOut.checked(header["held_out"]))
    if "sources" in header:
        kept(prior, known_frames=KnownFrames.restored(arrays, header, space))
    return prior


def _parts(arrays: Mapping[str, Array], header: Mapping[str, Any], schema: Schema) -> tuple[Prior, ...]:
    """The models that a model is made of, each with its arrays under its number."""
    found = []
    for number, own in enumerate(header[schema.parts] if schema.parts else ()):
        prefix = f"{number}."
        kept = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
        found.append(unpacked(kept, own))
    return tuple(found)


def _read(path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(existing_file(path), framework="numpy") as file:
            text = (file.metadata() or {}).get("poise", "null")
            header = checked_depth(json.loads(checked_text(text)))
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (
        SafetensorError,
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
        InvalidValueError,
    ) as error:
        raise ParseError(
            f"not a model file, or truncated ({error}); expected a .poise file from poise learn", path=path
        ) from error
    if not isinstance(header, dict):
        raise ParseError("a safetensors file, but not a Poise model", path=path)
    return arrays, header


def _body(arrays: Mapping[str, Array], names: Mapping[str, Any]) -> tuple[PoseSpace, JointLimits | None]:
    lengths = {"joints": len(names["names"])}
    body = _BODY.checked_arrays(arrays, {}, lengths)
    tree = body["skeleton.parents"], body["skeleton.offsets"]
    skeleton = Skeleton(tuple(names["names"]), *tree, tuple(names["orders"]), role_overrides=names["roles"])
    moving = np.zeros(len(skeleton), dtype=np.bool_)
    moving[body["space.moving"]] = True
    limits = None
    if "limits.lower" in arrays:
        kept = _LIMITS.checked_arrays(arrays, {}, lengths)
        limits = JointLimits(_unit(kept["limits.references"]), kept["limits.lower"], kept["limits.upper"])
    space = PoseSpace(skeleton, references=_unit(body["space.references"]), moving=moving)
    if len(space.moving) != len(body["space.moving"]):
        raise InvalidValueError("space.moving must not name the root or an end site")
    return space, limits


def _unit(quaternions: Array) -> Array:
    """Return the quaternions; raise if one is not normalised."""
    if np.any(np.abs(np.linalg.norm(quaternions, axis=-1) - 1.0) > 1e-6):
        raise InvalidValueError("reference rotations must be quaternions of length one")
    return quaternions


_TURNS, _ANGLES = Numbers(axes="joints 4", least=-1.001, most=1.001), Numbers(axes="joints 3", infinite=True)
_BODY_ARRAYS: Declared = {
    "skeleton.parents": Indices(axes="joints", below="joints", least=-1),
    "skeleton.offsets": Numbers(axes="joints 3", least=-FARTHEST, most=FARTHEST),
    "space.references": _TURNS,
    "space.moving": Indices(axes="moving", below="joints", least=1, distinct=True),
}
_LIMIT_ARRAYS: Declared = {"limits.lower": _ANGLES, "limits.upper": _ANGLES, "limits.references": _TURNS}
_SKELETON = {
    "names": several(text(), least=1, most=MOST_JOINTS),
    "orders": several(choice("", *("".join(order) for order in permutations("XYZ"))), most=MOST_JOINTS),
    "roles": mapping(text(), most=MOST_JOINTS),
}
_BODY = Schema({"kind": text(), "skeleton": record(_SKELETON)}, lambda _header, _lengths: _BODY_ARRAYS)
_LIMITS = Schema({}, lambda _header, _lengths: _LIMIT_ARRAYS)
