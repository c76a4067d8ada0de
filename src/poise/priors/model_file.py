"""Model files: one safetensors file with the arrays and a JSON header; loading one runs no code.

The header holds the kind and version, the skeleton, the clips it was learned from with their hashes, and the settings.
Every kind of prior states its arrays and its own header by `arrays()` and `header()` and is built again by `restored`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from poise.errors import ParseError, PoiseError
from poise.formats.files import existing_file, replacing
from poise.priors.prior import Prior
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import JointLimits, Skeleton

Array = np.ndarray

VERSION = 1


@dataclass(frozen=True, eq=False)
class Stored:
    """What a file holds of a prior: its body, what its `arrays()` gave and what its `header()` did."""

    space: PoseSpace
    limits: JointLimits | None
    arrays: Mapping[str, Array]
    header: Mapping[str, Any]


@runtime_checkable
class Storable(Prior, Protocol):
    """What a prior offers to be kept in a file."""

    kind: str

    @property
    def summary(self) -> str:
        """What it has learned, in a few words."""
        ...

    def arrays(self) -> dict[str, Array]:
        """What it has learned, by name."""
        ...

    def header(self) -> dict[str, Any]:
        """What else it must remember, as JSON."""
        ...

    @classmethod
    def restored(cls, stored: Stored) -> Storable:
        """The prior again."""
        ...


def save(prior: Storable, path: str | Path) -> None:
    """Write a prior to a file, whole or not at all."""
    from safetensors.numpy import save as to_bytes

    arrays, header = packed(prior)
    header |= {"version": VERSION, "units": "m, rad"}
    data = to_bytes(
        {name: np.ascontiguousarray(value) for name, value in arrays.items()}, {"poise": json.dumps(header)}
    )
    with replacing(path, "wb") as file:
        file.write(data)


def load(path: str | Path) -> Storable:
    """Read a prior from a file; a file that is no model, is cut short or is newer than this Poise says so."""
    from poise.priors.registry import PRIORS  # which imports this module

    path = Path(path)
    arrays, header = _read(path)
    if header.get("version", 0) > VERSION:
        raise ParseError(
            f"written by a newer Poise (model version {header['version']} > {VERSION}); upgrade", path=path
        )
    kind = header.get("kind")
    if kind not in PRIORS:
        raise ParseError(f"a model of kind {kind!r}; this Poise knows: {', '.join(PRIORS)}", path=path)
    try:
        return unpacked(arrays, header)
    except (KeyError, TypeError, ValueError, IndexError, PoiseError) as error:
        raise ParseError(f"not a complete {kind} model: {error}", path=path) from error


def packed(prior: Storable) -> tuple[dict[str, Array], dict[str, Any]]:
    """A prior as arrays and a header."""
    header = {"kind": prior.kind, "skeleton": _skeleton_header(prior.space), **prior.header()}
    return {**_body_arrays(prior), **prior.arrays()}, header


def unpacked(arrays: Mapping[str, Array], header: Mapping[str, Any]) -> Storable:
    """The prior again, from what `packed` gave."""
    from poise.priors.registry import PRIORS

    return PRIORS[header["kind"]].restored(Stored(*_body(arrays, header["skeleton"]), arrays, header))


def _read(path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(existing_file(path), framework="numpy") as file:
            text = (file.metadata() or {}).get("poise")
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
        header = json.loads(text) if text else None
    except (SafetensorError, ValueError) as error:
        raise ParseError(f"not a model file, or cut short: {error}", path=path) from error
    if not isinstance(header, dict):
        raise ParseError("a safetensors file, but not one of Poise's models", path=path)
    return arrays, header


def _skeleton_header(space: PoseSpace) -> dict[str, Any]:
    skeleton = space.skeleton
    return {"names": skeleton.names, "orders": skeleton.orders, "roles": dict(skeleton.role_overrides)}


def _body_arrays(prior: Storable) -> dict[str, Array]:
    space, limits = prior.space, prior.limits
    arrays = {
        "skeleton.parents": space.skeleton.parents,
        "skeleton.offsets": space.skeleton.offsets,
        "space.references": space.references,
        "space.moving": space.moving,
    }
    if limits is not None:
        arrays |= {
            "limits.lower": limits.lower,
            "limits.upper": limits.upper,
            "limits.references": limits.references,
        }
    return arrays


def _body(arrays: Mapping[str, Array], names: Mapping[str, Any]) -> tuple[PoseSpace, JointLimits | None]:
    skeleton = Skeleton(
        tuple(names["names"]),
        arrays["skeleton.parents"],
        arrays["skeleton.offsets"],
        tuple(names["orders"]),
        role_overrides=names["roles"],
    )
    moving = np.zeros(len(skeleton), dtype=np.bool_)
    moving[arrays["space.moving"]] = True
    limits = None
    if "limits.lower" in arrays:
        limits = JointLimits(arrays["limits.references"], arrays["limits.lower"], arrays["limits.upper"])
    return PoseSpace(skeleton, references=arrays["space.references"], moving=moving), limits
