"""C3D files that are not as the format asks, read all the same, in a process of their own.

ezc3d is compiled and trusts what it reads: in another process it may crash, hang or fill memory and nothing is lost.
What it does not know (SGI's numbers, records of odd types) the pure Python package c3d reads.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from poise.errors import ParseError

_SECONDS = 60
_CHILD = Path(__file__).with_name("c3d_child.py")


def load_apart(file: Path, reason: str) -> dict[str, Any]:
    """What ezc3d would give of a file, by whichever library reads it; a ParseError with the reason where none does."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "content.npz"
        # -I: it imports nothing from its own folder; -O: asserts of the package c3d are about metadata.
        command = [sys.executable, "-I", "-O", str(_CHILD), str(file.resolve()), str(out)]
        try:
            subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise ParseError(reason, path=file) from None
        if not out.is_file():
            raise ParseError(reason, path=file)
        with np.load(out) as found:
            arrays = {name: found[name] for name in found.files}
    points, residuals = arrays.pop("points"), arrays.pop("residuals")
    if points.ndim != 3 or points.shape[1] == 0 or points.nbytes > 32 * file.stat().st_size:
        raise ParseError(reason, path=file)
    group = {name: {"value": value.tolist()} for name, value in arrays.items()}
    data = {"points": points, "meta_points": {"residuals": residuals[None]}}
    return {"parameters": {"POINT": group}, "data": data}
