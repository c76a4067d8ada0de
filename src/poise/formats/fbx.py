"""FBX, the files of Autodesk's programs, Mixamo and game engines: read through ufbx, skeleton and animations.

https://ufbx.github.io. No permissive library writes FBX; Blender makes one of a GLB.
"""

from __future__ import annotations

import os

from poise.errors import InvalidValueError
from poise.formats.apart import arrays_of, need
from poise.formats.files import existing_file
from poise.formats.rigs import motion_of_matrices
from poise.motion.motion import Motion


def read(path: str | os.PathLike[str], *, animation: str | None = None) -> Motion:
    """The skeleton and one animation of a file: the one named, else the first; without any, the pose it is in."""
    file = existing_file(path)
    need("ufbx", module="ufbx", extra="fbx", purpose="reading FBX files")
    wanted = () if animation is None else (animation,)
    found = arrays_of("fbx", file, *wanted, reason="ufbx cannot read this as FBX: it is damaged or not FBX")
    return motion_of_matrices(file, found, format="fbx", animation=animation)


def character(path: str | os.PathLike[str]) -> Motion:
    """The body that a file holds, in the one pose that it is in, whatever animations there are."""
    return read(path, animation="")


def write(_value: object, path: str | os.PathLike[str]) -> None:
    """Says how to make an FBX: Poise does not write it."""
    raise InvalidValueError(
        f"Poise does not write FBX, because no permissive library does; write {os.path.splitext(path)[0]}.glb, "
        "open it in Blender (File, Import, glTF 2.0) and export FBX from there"
    )
