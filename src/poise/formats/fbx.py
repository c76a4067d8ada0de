"""FBX, the format of Autodesk's programs, Mixamo and game engines: skeleton, animations and meshes through ufbx.

https://ufbx.github.io. No permissive library writes FBX; Blender can convert a GLB.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from poise.errors import InvalidValueError
from poise.formats.apart import arrays_of, need
from poise.formats.files import existing_file
from poise.formats.gltf.dressing import dressed
from poise.formats.rigs import motion_of_matrices
from poise.motion.motion import Motion


def read(path: str | os.PathLike[str], *, animation: str | None = None) -> Motion:
    """Read the skeleton and one animation of a file: the named one, else the first; without any, the stored pose."""
    file = existing_file(path)
    return motion_of_matrices(file, _found(file, animation), format="fbx", animation=animation)


def animations(path: str | os.PathLike[str]) -> list[str]:
    """The names of the animations in a file."""
    return [str(name) for name in _found(existing_file(path), "")["animations"]]


def glb(path: str | os.PathLike[str]) -> bytes:
    """The body in a file, with its meshes, as GLB."""
    file = existing_file(path)
    return dressed(file, _found(file, "", "meshes"))


def _found(file: Path, animation: str | None, *meshes: str) -> Mapping[str, Any]:
    need("ufbx", module="ufbx", extra="fbx", purpose="reading FBX files")
    wanted = () if animation is None else (animation, *meshes)
    return arrays_of("fbx", file, *wanted, reason="ufbx cannot read this as FBX: it is damaged or not FBX")


def character(path: str | os.PathLike[str]) -> Motion:
    """The body in a file in its stored pose, ignoring animations."""
    return read(path, animation="")


def check_name(path: Path) -> None:
    """Raise an error that says how to make an FBX: Poise does not write it."""
    raise InvalidValueError(
        f"Poise does not write FBX, because no permissive library does; write {path.with_suffix('.glb')}, "
        "open it in Blender (File, Import, glTF 2.0) and export FBX from there"
    )
