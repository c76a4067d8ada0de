"""GVHMR results (`hmr4d_results.pt`): SMPL-X parameters in the world.

`smpl_params_global` has `global_orient`, `body_pose` and `transl` (Shen et al. 2024), Y up, of pictures at 30 frames a
second.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from poise.errors import ParseError
from poise.formats.amass import body_motion
from poise.formats.files import existing_file
from poise.formats.torch_file import tensors
from poise.motion.motion import Motion

RATE = 30.0
_WORLD = "smpl_params_global"


def read(
    path: str | os.PathLike[str],
    *,
    model: str | os.PathLike[str] | None = None,
    up: str | None = None,
    fps: float | None = None,
) -> Motion:
    """Read the motion in the world; the options are those of AMASS files, and 30 frames a second are usual."""
    file = existing_file(path)
    found = tensors(file)
    body = found.get(_WORLD) if isinstance(found, Mapping) else None
    if not isinstance(body, Mapping) or not {"global_orient", "body_pose"} <= set(body):
        raise ParseError(f"expected GVHMR's {_WORLD} with global_orient, body_pose and transl", path=file)
    arrays = {
        name: np.asarray(value, dtype=np.float64)
        for name, value in body.items()
        if isinstance(value, np.ndarray)
    }
    return body_motion(arrays, file, format="gvhmr", model=model, up=up, fps=fps or RATE)
