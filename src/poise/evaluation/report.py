"""Protocols by name, requests, and reports: a JSON document with the machine, the versions and rows; time per frame.

A protocol is declared as one `Protocol` in its own module; other packages add theirs with `register_protocol`.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError
from poise.evaluation.metrics import Joints
from poise.evaluation.splits import Fold, load_split, split_of_files
from poise.formats.tables import Range
from poise.registry import Registry
from poise.types import Array, NamedProgress, silent

PERFORMER, FILES = "performer", "files"

Row = dict[str, float | str]
Step = Callable[[str], None]
"""Called with what is being drawn."""


def names_from_text(text: str) -> list[str]:
    """Names with commas between."""
    return [name.strip() for name in text.split(",") if name.strip()]


@dataclass(frozen=True)
class ProtocolOptions:
    """Options of a protocol besides clips and methods."""


@dataclass(frozen=True)
class EveryFrame(ProtocolOptions):
    """For protocols that go through frames."""

    stride: Annotated[int, Range(least=1), "test on every Nth frame"] = 1


@dataclass(frozen=True)
class RecoveredFrames(EveryFrame):
    """For protocols that compare recovered poses with recorded ones."""

    joints: Annotated[
        Joints, "which joints errors are over: all, or the paper's 18 (Chai and Hodgins 2005)"
    ] = "all"


@dataclass(frozen=True)
class Protocol:
    """One way of measuring methods: everything that `poise evaluate NAME` needs."""

    name: str
    about: str
    run: Callable[[Request, NamedProgress], list[Row]]
    draw: Callable[[Request, Report, Path, Step], list[Path]] | None = None
    figures: Mapping[str, str] = field(default_factory=dict)
    """Plots of its report: names of files, and of functions of `evaluation.plots`."""
    methods: Sequence[str] = ()
    """The names of its methods, for the help; it checks them itself."""
    Options: type[ProtocolOptions] = ProtocolOptions
    splits: Mapping[str, Callable[[], list[Fold]]] = field(default_factory=dict)
    """Splits of its own, or others under a common name."""
    untrained: Sequence[str] = ()
    """Methods that need no clips to learn from."""
    check: Callable[[Request], None] = lambda _request: None
    """Raises an error if a request cannot be measured."""
    left_out: Callable[[], str] = lambda: ""
    """What could not be measured here, in words; empty if everything was."""


ABOUT = {
    "handles": "the root and five positions of an unseen clip in, the pose out",
    "image": "3, 4 and 6 points of a frame in one photo in, the pose out",
    "markers": "markers of a take (C3D, TRC, a motion, the split optical) hidden after its first third, and filled",
    "performance": "a few markers, or six inertial sensors, in, the whole body out",
    "cameras": "as performance, filmed by simulated cameras: pictures in, the whole body out",
    "video": "people without markers, filmed by real cameras: one and two of them beside all",
    "reduction": "how many dimensions poses need",
    "search": "nearest frames during a performance",
    "topology": "walks and runs in one latent space; splits gaits, and other-gaits and the like",
    "animate": "the foot contacts of an unseen clip in, the motion out",
    "inbetween": "poses at keys of an unseen clip in, the motion between them out",
    "trackers": "one to six oriented points of an unseen clip in, frame by frame the whole body out",
    "repair": "clips with jitter, slides, sunk floors and dropped frames in, mended motions out",
    "uncertainty": "whether joints are where a solution says they may be, and what the suggested handle is worth",
    "novelty": "whether a model recognises frames of actions that it has not learned",
    "fusion": "two weak sources of a take alone and together, and whether a wrong one among three is found",
    "speed": "one problem, our methods and the installed peers",
}
"""Descriptions of our own protocols; here, so that the help need not import them."""
PROTOCOLS: Registry[Protocol] = Registry(
    "protocol", {name: f"poise.evaluation.{name}:PROTOCOL" for name in ABOUT}
)


def register_protocol(protocol: Protocol) -> None:
    """Register a protocol, for `poise evaluate`."""
    PROTOCOLS.register(protocol.name, protocol)


@dataclass(frozen=True)
class Request:
    """The request: a protocol, a named split or own files, methods, and the protocol's options."""

    protocol: str
    split: str = PERFORMER
    train: Sequence[Path] = ()
    test: Sequence[Path] = ()
    methods: Sequence[str] = ()
    options: Any = None

    def __post_init__(self) -> None:
        protocol = PROTOCOLS.named(self.protocol)
        if (self.train or self.test) and self.split != PERFORMER:
            raise InvalidValueError(
                "name a split, or clips to train and test on, not both", settings=("split", "train", "test")
            )
        if self.options is None:
            object.__setattr__(self, "options", protocol.Options())
        protocol.check(self)

    @property
    def name(self) -> str:
        """The name of the clips in a report."""
        return FILES if self.train or self.test else self.split

    def folds(self) -> list[Fold]:
        """The requested training and test clips."""
        if self.train or self.test:
            free = set(PROTOCOLS[self.protocol].untrained)
            return split_of_files(self.train, self.test, untrained=free.issuperset(self.methods or ("",)))
        own = PROTOCOLS[self.protocol].splits
        return own[self.split]() if self.split in own else load_split(self.split)


@dataclass(frozen=True)
class Report:
    """The rows of one protocol on one split, with the machine and versions."""

    protocol: str
    split: str
    rows: Sequence[Row]

    @property
    def methods(self) -> list[str]:
        """The methods by themselves, without their tasks and spreads."""
        return [str(row["method"]) for row in self.rows if "," not in str(row["method"])]

    def as_json(self) -> dict[str, object]:
        """The whole report, ready for JSON."""
        about: dict[str, object] = {"protocol": self.protocol, "split": self.split}
        return about | {"machine": machine(), "versions": versions(), "rows": list(self.rows)}

    def write(self, path: Path) -> None:
        """As a JSON file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.as_json(), indent=2, allow_nan=False) + "\n", encoding="utf-8")


def evaluate(request: Request, progress: NamedProgress = silent) -> Report:
    """Run a protocol."""
    return Report(request.protocol, request.name, PROTOCOLS[request.protocol].run(request, progress))


# --- machine and time ------------------------------------------------------------------------------------------------

MEASURED = ("poise", "numpy", "scipy", "numba")
PEERS = ("pybvh", "pin", "placo", "mink", "mujoco", "pin-pink", "daqp", "gpy", "torch", "gpytorch")


def machine() -> str:
    """The processor, the number of cores, and the Python version."""
    cpuinfo, processor = Path("/proc/cpuinfo"), platform.processor() or platform.machine()
    for line in cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else ():
        if line.startswith("model name"):
            processor = line.split(":", 1)[1].strip()
            break
    return f"{processor}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def versions() -> dict[str, str]:
    """The installed versions of the packages in a measurement."""
    found = {}
    for package in (*MEASURED, *PEERS):
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


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
