"""Take files of `poise fuse`: several sources of one performance, as TOML.

fps = 30
model = "walk.poise"                # default: the universal prior

[sources.trackers]
file = "trackers.trc"               # positions: C3D, TRC, or CSV with time, head.x, head.y, head.z, ...
noise = 0.03                        # metres

[sources.suit]
file = "suit.csv"                   # world rotations: time, pelvis.w, pelvis.x, pelvis.y, pelvis.z, ...
gives = "turns"
noise = 8.0                         # degrees
shift = 0.0                         # seconds that its clock is behind; estimated if not given

[sources.camera]
file = "camera.csv"                 # pixels: time, head.u, head.v, ...
gives = "pixels"
camera = "camera.toml"
noise = 6.0                         # pixels

[[constraints]]                     # keys, contacts and others, as in other scripts
kind = "position"
handle = "left_foot"
at = [0.1, 0.08, 0.0]
from = 0.0
to = 1.2
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from poise.apps.keyframing_script import Rate, Timed, timed_constraints
from poise.capture.fusing import PIXELS, PLACES, TURNS, Feed, fuse
from poise.capture.sources import read_columns, read_markers
from poise.errors import InvalidValueError
from poise.formats.camera_file import read_camera
from poise.formats.tables import Among, FieldError, Range, Read, read_declared
from poise.priors.model_file import load
from poise.priors.prior import Prior
from poise.skeleton.skeleton import Skeleton
from poise.solvers.solution import MotionSolution

CHANNELS = {PLACES: "xyz", TURNS: "wxyz", PIXELS: "uv"}


@dataclass(frozen=True, eq=False)
class _SourceFile:
    file: Path
    noise: Annotated[float, Range(above=0.0)]
    gives: Annotated[str, Among(tuple(CHANNELS))] = PLACES
    camera: Path | None = None
    shift: float | None = None

    def __post_init__(self) -> None:
        if (self.gives == PIXELS) != (self.camera is not None):
            raise FieldError("camera", "a source of pixels needs a camera; no other source may have one")

    def feed(self, name: str, skeleton: Skeleton, fps: float) -> Feed:
        """The source's data for the joints that the body has."""
        if self.gives == PLACES:
            take = read_markers(self.file, fps=fps)
            labels, values, rate = list(take.labels), take.points, take.fps
        else:
            labels, values, rate = read_columns(self.file, fps, CHANNELS[self.gives])
        known = [number for number, label in enumerate(labels) if label in {*skeleton.roles, *skeleton.names}]
        if not known:
            raise InvalidValueError(
                f"{self.file.name} names no joint or role of the body; it has {', '.join(labels[:8])}"
            )
        return Feed(
            name, self.gives, tuple(labels[number] for number in known), values[:, known], rate,
            np.radians(self.noise) if self.gives == TURNS else self.noise,
            None if self.camera is None else read_camera(self.camera), self.shift or 0.0, self.shift is not None,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _TakeFile:
    sources: dict[str, _SourceFile]
    fps: Rate = 30.0
    model: Path | None = None
    constraints: Annotated[tuple[Timed, ...], Read(timed_constraints)] = ()

    def __post_init__(self) -> None:
        if not self.sources:
            raise FieldError("sources", "there are no sources: give [sources.NAME] with a file and its noise")


def fuse_take(path: Path, model: Prior | None = None) -> MotionSolution:
    """Fuse the sources of a take file into a motion; a given model replaces the file's own."""
    file = read_declared(_TakeFile, path)
    prior = model or load(file.model)
    feeds = [source.feed(name, prior.space.skeleton, file.fps) for name, source in file.sources.items()]
    frames = max(2, round(max(len(feed.values) / feed.fps for feed in feeds) * file.fps))
    times = np.arange(frames) / file.fps
    holds = [(timed.constraint, timed.holds(times)) for timed in file.constraints]
    others = [[one for one, when in holds if when[number]] for number in range(frames)]
    return fuse(prior, feeds, fps=file.fps, frames=frames, others=others)
