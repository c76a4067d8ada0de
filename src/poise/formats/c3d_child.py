"""The process in which `c3d_apart` reads a file: `c3d_child.py FILE OUT.npz`, without importing Poise."""

from __future__ import annotations

import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np

_BLOCK = 512
_DEC, _MIPS = 85, 86
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
        found = {name: reader.get(f"POINT:{name}") for name in ("UNITS", "Y_SCREEN")}
        texts = {name: str(one.string_value).strip() if one else "" for name, one in found.items()}
        labels, rate = [label.strip() for label in reader.point_labels], float(reader.point_rate)
    return {
        "LABELS": np.array(labels), "RATE": np.array([rate]), **{k: np.array([v]) for k, v in texts.items()},
        "points": frames[:, :, :3].transpose(2, 1, 0), "residuals": frames[:, :, 3].T,
    }  # fmt: skip


def _data(file: str, shape: tuple[int, ...]) -> dict[str, Any]:
    """The points of a file in ezc3d's layout, from its header and length; empty if these are inconsistent.

    Libraries take the number of analog values from the parameters. If that differs from the bytes between the points
    of two frames, they return shifted points.
    """
    raw, (_, points, frames) = Path(file).read_bytes(), shape
    processor = raw[(raw[0] - 1) * _BLOCK + 3]
    order = ">" if processor == _MIPS else "<"
    (analogs,) = struct.unpack(f"{order}H", raw[4:6])
    block, samples = struct.unpack(f"{order}2H", raw[16:20])
    scale, data = float(_numbers(raw[12:16], processor)[0]), raw[(block - 1) * _BLOCK :]
    width = 4 if scale < 0.0 else 2
    for values in (analogs, analogs * samples, 0):
        size = width * (4 * points + values)
        if 0 <= len(data) - frames * size < _BLOCK:
            rows = np.frombuffer(data[: frames * size], np.uint8).reshape(frames, size)
            kept = np.ascontiguousarray(rows[:, : 4 * points * width]).tobytes()
            found = _numbers(kept, processor) if width == 4 else np.frombuffer(kept, f"{order}i2")
            found = found.astype(np.float64).reshape(len(rows), points, 4)
            places, masks = found[..., :3] * (1.0 if width == 4 else scale), found[..., 3]
            residuals = np.where(masks < 0.0, -1.0, np.mod(np.nan_to_num(masks), 256.0) * abs(scale))
            return {"points": places.transpose(2, 1, 0), "residuals": residuals.T}
    return {}


def _numbers(raw: bytes, processor: int) -> Any:
    if processor == _DEC:
        return np.frombuffer(np.frombuffer(raw, "<u2").reshape(-1, 2)[:, ::-1].tobytes(), "<f4") / 4.0
    return np.frombuffer(raw, ">f4" if processor == _MIPS else "<f4")


def _main(file: str, out: str) -> None:
    for read in (_by_ezc3d, _by_c3d):
        try:
            content = read(file)
            content.update(_data(file, content["points"].shape))
            if np.isfinite(content["points"]).any():
                np.savez(out, **content)
                return
        except Exception as error:
            print(f"{read.__name__}: {error}", file=sys.stderr)


if __name__ == "__main__":
    _main(*sys.argv[1:])
