"""C3D files that are not as the format asks, read all the same, in a process of their own.

ezc3d is compiled and trusts what it reads: in another process it may crash, hang or fill memory and nothing is lost.
What it does not know (SGI's numbers, records of odd types) the pure Python package c3d reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from poise.errors import ParseError
from poise.formats.apart import arrays_of


def load_apart(file: Path, reason: str) -> dict[str, Any]:
    """What ezc3d would give of a file, by whichever library reads it; a ParseError with the reason where none does."""
    arrays = arrays_of("c3d", file, reason=reason)
    points, residuals = arrays.pop("points"), arrays.pop("residuals")
    if points.ndim != 3 or points.shape[1] == 0 or points.nbytes > 32 * file.stat().st_size:
        raise ParseError(reason, path=file)
    group = {name: {"value": value.tolist()} for name, value in arrays.items()}
    data = {"points": points, "meta_points": {"residuals": residuals[None]}}
    return {"parameters": {"POINT": group}, "data": data}
