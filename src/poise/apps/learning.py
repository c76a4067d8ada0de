"""Reads motions and learns a model from them: what `poise learn` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from poise.errors import InvalidValueError, UnknownNameError
from poise.formats import read
from poise.motion.motion import Motion
from poise.priors.gaussian import GaussianPrior

KINDS = ("gaussian",)

Progress = Callable[[float], None]


def learn(
    motions: Sequence[Motion],
    *,
    kind: str = "gaussian",
    clusters: int = 100,
    progress: Progress = lambda _: None,
) -> GaussianPrior:
    """A prior of this kind, learned from clips of one topology."""
    if kind not in KINDS:
        raise UnknownNameError("kind of model", kind, KINDS)
    return GaussianPrior.learn(motions, clusters=clusters, progress=progress)


def read_motion(path: Path, **options: Any) -> Motion:
    """A motion from a file, with the reader's options; a file of markers has no skeleton and is refused."""
    motion = read(path, **options)
    if not isinstance(motion, Motion):
        raise InvalidValueError(f"{path.name} holds markers; this needs the motion of a skeleton")
    return motion
