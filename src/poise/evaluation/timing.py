"""Processor time per frame."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from poise.types import Array


def timed(
    answer: Callable[[Array], Array],
    frames: Float[Array, "frames *shape"],
    stride: int = 1,
    between: Callable[[Array], object] = lambda _: None,
) -> tuple[Float[Array, "wanted size"], Float[Array, "wanted"]]:
    """Answer every `stride`-th frame, with its processor time; the frames between are only passed in."""
    poses, seconds = [], []
    for number, markers in enumerate(frames):
        if number % stride:
            between(markers)
            continue
        begun = time.process_time()
        poses.append(answer(markers))
        seconds.append(time.process_time() - begun)
    return np.stack(poses), np.array(seconds)
