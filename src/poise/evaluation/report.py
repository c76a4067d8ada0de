"""What an evaluation reports: one JSON document with the machine, the versions and a row of metrics per method."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from poise.engine import Engine
from poise.errors import InvalidValueError, UnknownNameError
from poise.evaluation.handles import Row, evaluate_handles
from poise.evaluation.machine import machine, versions
from poise.evaluation.methods import DEFAULT_METHODS
from poise.evaluation.splits import Fold, load_split, performer_gaits, split_of_files

PROTOCOLS = (
    "handles",
    "image",
    "markers",
    "performance",
    "cameras",
    "reduction",
    "search",
    "topology",
    "animate",
    "speed",
)
PERFORMER, FILES = "performer", "files"

Progress = Callable[[str, int, int], None]
"""Called with what is under way, how much is done and how much there is in all."""


@dataclass(frozen=True)
class Report:
    """The rows of one protocol on one split, with where and with what they were measured."""

    protocol: str
    split: str
    rows: Sequence[Row]

    def as_json(self) -> dict[str, object]:
        """The whole report, ready for JSON."""
        return {
            "protocol": self.protocol,
            "split": self.split,
            "machine": machine(),
            "versions": versions(),
            "rows": list(self.rows),
        }

    def write(self, path: Path) -> None:
        """As a JSON file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.as_json(), indent=2, allow_nan=False) + "\n", encoding="utf-8")


@dataclass(frozen=True)
class Request:
    """What to evaluate: a protocol, a named split or files of one's own, methods, and how frames are taken."""

    protocol: str
    split: str = PERFORMER
    train: Sequence[Path] = ()
    test: Sequence[Path] = ()
    methods: Sequence[str] = ()
    stride: int = 1
    independent: bool = False
    free_root: bool = False
    cameras: int = 2
    markers: int = 9

    def __post_init__(self) -> None:
        if self.protocol not in PROTOCOLS:
            raise UnknownNameError("protocol", self.protocol, PROTOCOLS)
        if (self.train or self.test) and self.split != PERFORMER:
            raise InvalidValueError(
                "name a split, or clips to train and test on, not both", settings=("split", "train", "test")
            )
        if self.protocol == "markers" and self.train:
            raise InvalidValueError(
                "markers are learned from the first third of every take: give takes to test on alone",
                settings=("test",),
            )
        if self.protocol == "speed" and (self.train or self.test or self.split != PERFORMER):
            raise InvalidValueError(
                "speed measures one problem, taken from the performer: it has no other split"
            )

    @property
    def name(self) -> str:
        """What the clips are called in a report."""
        return FILES if self.train or self.test else self.split

    def folds(self) -> list[Fold]:
        """The training and test clips that are asked for."""
        if self.train or self.test:
            return split_of_files(self.train, self.test)
        gaits = self.protocol in ("topology", "animate")
        return performer_gaits() if gaits and self.split == PERFORMER else load_split(self.split)


def evaluate(
    request: Request, progress: Progress = lambda _what, _done, _all: None, *, engine: Engine | None = None
) -> Report:
    """Run a protocol; the engine is for `handles`, which works on several methods and folds at once."""
    if request.protocol == "handles":
        rows = _handles(request, progress, engine)
    else:
        rows = _RUNS[request.protocol](request, progress)
    return Report(request.protocol, request.name, rows)


def _handles(request: Request, progress: Progress, engine: Engine | None) -> list[Row]:
    return evaluate_handles(
        request.folds(),
        methods=request.methods or DEFAULT_METHODS,
        stride=request.stride,
        independent=request.independent,
        free_root=request.free_root,
        progress=progress,
        engine=engine,
    )


def _image(request: Request, progress: Progress) -> list[Row]:
    from poise.evaluation import image

    methods = request.methods or image.DEFAULT_METHODS
    return image.evaluate_image(request.folds(), methods=methods, stride=request.stride, progress=progress)


def _markers(request: Request, progress: Progress) -> list[Row]:
    from poise.evaluation.markers import evaluate_markers, takes_of

    takes = takes_of(request.split, request.test)
    return evaluate_markers(takes, methods=request.methods, stride=request.stride, progress=progress)


def _performance(request: Request, progress: Progress) -> list[Row]:
    from poise.evaluation import performance

    return performance.evaluate_performance(
        request.folds(),
        methods=request.methods or performance.DEFAULT_METHODS,
        markers=performance.markers_for(request.split),
        stride=request.stride,
        progress=progress,
    )


def _cameras(request: Request, progress: Progress) -> list[Row]:
    from poise.evaluation.cameras import evaluate_cameras

    return evaluate_cameras(
        request.folds(),
        cameras=request.cameras,
        markers=request.markers,
        stride=request.stride,
        progress=progress,
    )


def _reduction(request: Request, progress: Progress) -> list[Row]:
    from poise.evaluation.reduction import evaluate_reduction

    return evaluate_reduction(request.folds(), methods=request.methods, progress=progress)


def _search(request: Request, progress: Progress) -> list[Row]:
    from poise.evaluation.search import evaluate_search

    return evaluate_search(request.folds(), methods=request.methods, stride=request.stride, progress=progress)


def _topology(request: Request, progress: Progress) -> list[Row]:
    from poise.evaluation.topology import evaluate_topology

    draws = [fold.train for fold in request.folds()]
    return evaluate_topology(draws, methods=request.methods, progress=progress)


def _animate(request: Request, progress: Progress) -> list[Row]:
    from poise.evaluation.animate import evaluate_animate

    return evaluate_animate(request.folds(), methods=request.methods, progress=progress)


def _speed(request: Request, progress: Progress) -> list[Row]:
    from poise.evaluation.speed import evaluate_speed

    return evaluate_speed(methods=request.methods, progress=progress)


_RUNS: dict[str, Callable[[Request, Progress], list[Row]]] = {
    "image": _image,
    "markers": _markers,
    "performance": _performance,
    "cameras": _cameras,
    "reduction": _reduction,
    "search": _search,
    "topology": _topology,
    "animate": _animate,
    "speed": _speed,
}
