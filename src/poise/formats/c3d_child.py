"""The process in which `c3d_apart` reads a file: `c3d_child.py FILE OUT.npz`, with nothing of Poise imported."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

_NAMES = ("LABELS", "UNITS", "RATE", "Y_SCREEN", "ANGLES", "FORCES", "MOMENTS", "POWERS", "SCALARS")


def _by_ezc3d(file: str) -> dict[str, Any]:
    import ezc3d

    content = ezc3d.c3d(file)
    group = content["parameters"]["POINT"]
    names = (*_NAMES, *(f"LABELS{page}" for page in range(2, 20)))
    listed = {name: np.array(group[name]["value"]) for name in names if name in group}
    data = content["data"]
    return {**listed, "points": data["points"][:3], "residuals": data["meta_points"]["residuals"][0]}


def _by_c3d(file: str) -> dict[str, Any]:
    import c3d

    with open(file, "rb") as opened:
        reader = c3d.Reader(opened)
        frames = np.stack([points for _, points, _ in reader.read_frames()]).astype(np.float64)
        units, screen = (_text(reader, name) for name in ("POINT:UNITS", "POINT:Y_SCREEN"))
        labels, rate = [label.strip() for label in reader.point_labels], float(reader.point_rate)
    return {
        "LABELS": np.array(labels), "RATE": np.array([rate]), "UNITS": np.array([units]),
        "Y_SCREEN": np.array([screen]),
        "points": frames[:, :, :3].transpose(2, 1, 0), "residuals": frames[:, :, 3].T,
    }  # fmt: skip


def _text(reader: Any, name: str) -> str:
    found = reader.get(name)
    return str(found.string_value).strip() if found is not None else ""


def _main(file: str, out: str) -> None:
    for read in (_by_ezc3d, _by_c3d):
        try:
            content = read(file)
            if np.isfinite(content["points"]).any():
                np.savez(out, **content)
                return
        except Exception as error:
            print(f"{read.__name__}: {error}", file=sys.stderr)


if __name__ == "__main__":
    _main(*sys.argv[1:])
