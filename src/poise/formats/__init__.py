"""Motion files: BVH, Acclaim, C3D, TRC and GLB, one file each, behind one `read` and one `write`."""

from poise.formats.registry import (
    FORMATS,
    Format,
    each_animation,
    extensions,
    motion_files,
    read,
    read_character,
    read_motion,
    register_format,
    write,
)

__all__ = [
    "FORMATS",
    "Format",
    "each_animation",
    "extensions",
    "motion_files",
    "read",
    "read_character",
    "read_motion",
    "register_format",
    "write",
]
