"""The networks that detect people: files of the npm package `@mediapipe/pose` (Apache-2.0), run by LiteRT.

`tools/page.py` packs them from that package into `models/`, which the wheel `poise-people` brings; nothing is
downloaded at run time.
"""

from __future__ import annotations

import lzma
import os
from pathlib import Path
from typing import Any

import numpy as np

from poise.errors import MissingExtraError, PoiseError
from poise.types import Array

FOLDER = Path(__file__).with_name("models")
DETECTOR, LANDMARKS = "pose_detection.tflite.xz", "pose_landmark_full.tflite.xz"


class Network:
    """One network: an array in, its outputs by their last axes out."""

    def __init__(self, name: str, *, threads: int = 1) -> None:
        self._interpreter = _interpreter(model_file(name), threads)
        self._input = self._interpreter.get_input_details()[0]["index"]
        self._outputs = [(one["shape"], one["index"]) for one in self._interpreter.get_output_details()]

    def __call__(self, inputs: Array) -> list[Array]:
        """The network's outputs for one input, without the batch axis, in the order of its file."""
        self._interpreter.set_tensor(self._input, inputs[None].astype(np.float32))
        self._interpreter.invoke()
        return [self._interpreter.get_tensor(index)[0] for _, index in self._outputs]


def model_file(name: str) -> Path:
    """A network's file; raise with instructions if it is missing."""
    path = FOLDER / name
    if not path.is_file():
        raise PoiseError(
            f"finding people in pictures needs the file {name}; `pip install poise-people` brings it, "
            "or in the source folder `make page`, which takes it from npm"
        )
    return path


def available() -> bool:
    """Whether people can be detected here: the networks and their runtime are installed."""
    from importlib.util import find_spec

    files = all((FOLDER / name).is_file() for name in (DETECTOR, LANDMARKS))
    return files and all(find_spec(name) is not None for name in ("ai_edge_litert", "cv2"))


def _interpreter(path: Path, threads: int) -> Any:
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError as error:
        raise MissingExtraError("ai-edge-litert", extra="video", purpose="finding people") from error
    kept = os.dup(2)  # the runtime writes to standard error when it starts
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        interpreter = Interpreter(model_content=lzma.decompress(path.read_bytes()), num_threads=threads)
        interpreter.allocate_tensors()
    finally:
        os.dup2(kept, 2)
        os.close(kept)
    return interpreter
