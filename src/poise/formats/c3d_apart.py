"""Read C3D files that do not follow the format, in a separate process.

ezc3d is compiled and does not check its input: in another process it may crash, hang or exhaust memory without harm.
What it does not support (SGI's numbers, records of odd types) is read by the pure Python package c3d.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from poise.errors import ParseError
from poise.formats.apart import arrays_of


def load_apart(file: Path, reason: str) -> dict[str, Any]:
    """The contents of a file in ezc3d's form, from whichever library can read it; raise with the reason if none can."""
    arrays = arrays_of("c3d", file, reason=reason)
    points, residuals = arrays.pop("points"), arrays.pop("residuals")
    if points.ndim != 3 or points.shape[1] == 0 or points.nbytes > 32 * file.stat().st_size:
        raise ParseError(reason, path=file)
    group = {name: {"value": value.tolist()} for name, value in arrays.items()}
    data = {"points": points, "meta_points": {"residuals": residuals[None]}}
    return {"parameters": {"POINT": group}, "data": data}
