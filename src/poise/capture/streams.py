"""Live performances: a line of text per frame of markers in, a line per pose out, from a pipe or over UDP.

JSON: {"left_hand": [x, y, z], "head": null, "time": 1.25} gives {"root": [x, y, z, w, x, y, z], "joints": {"Neck":
[w, x, y, z], ...}, "ms": 1.1}. CSV: a header `time,left_hand.x,left_hand.y,left_hand.z,...`, then numbers, empty where
a marker was not seen; poses are returned as CSV with their own header. Sensors send quaternions instead of positions:
{"pelvis": [w, x, y, z], ...} or columns pelvis.w,pelvis.x,pelvis.y,pelvis.z. Oriented trackers send both: {"head": [x,
y, z, w, x, y, z], ...} or columns head.x,head.y,head.z,head.qw,head.qx,head.qy,head.qz. Metres, Y up. A line that
cannot be read is answered with {"error": ...} (CSV: skipped and counted), and the performance continues.
"""

from __future__ import annotations

import math
import re
import select
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec
import numpy as np

from poise.capture.feeds import LiveFrame
from poise.capture.performance import FollowedFrames, PerformedFrame
from poise.errors import InvalidValueError, PoiseError
from poise.types import Array

LONGEST_LINE = 65_507  # bytes: the largest datagram
Value = tuple[float | None, ...] | float | None
_FRAMES: msgspec.json.Decoder[dict[str, Value]] = msgspec.json.Decoder(dict[str, Value])
_NOT_JSON = re.compile(r"\bNaN\b|-?\bInfinity\b")  # written by some senders for unseen markers
POLL = 0.2  # seconds between checks whether to continue
LISTENED = 30  # frames after which labels and movements of the input are judged
MOVES, STILL = 0.1, 1e-3  # metres or radians: an input that moves, and a body that does not


@dataclass
class Stream:
    """A performance that is fed by lines; `labelled` counts frames with a known label.

    `trouble` describes the last skipped line; `keep` is called with every frame and its time, `say` with what the user
    should know: labels that are not matched, and a body that stands still while its input moves.
    """

    performance: FollowedFrames
    frames: list[PerformedFrame] = field(default_factory=list)
    labelled: int = 0
    skipped: int = 0
    trouble: str = ""
    keep: Callable[[PerformedFrame, float], None] = lambda _frame, _at: None
    say: Callable[[str], None] = lambda _words: None
    _header: list[str] | None = None
    _begun: dict[str, Array] = field(default_factory=dict)  # the first value of each label of the input
    _heard: set[str] = field(default_factory=set)
    _said: set[str] = field(default_factory=set)
    _moved: float = 0.0  # of the input, at most, since then: metres, or quaternion units
    _stirred: float = 0.0  # of the body: metres or radians

    def answers(self, lines: Iterable[str]) -> Iterator[str]:
        """A line per pose (for CSV, after a header)."""
        for line in lines:
            yield from self.answer(line)

    def answer(self, line: str) -> Iterator[str]:
        """The reply to one line."""
        text = line.strip()
        if not text:
            return
        if text.startswith("{"):
            try:
                message = _FRAMES.decode(_NOT_JSON.sub("null", text))
                when = message.pop("time", None)
                if when is not None and not isinstance(when, float):
                    raise InvalidValueError(f"a time must be one number of seconds; got {len(when)} values")
                places, channels = dict[str, Array](), self.performance.channels
                for name, value in message.items():
                    if value is not None and (isinstance(value, float) or len(value) != len(channels)):
                        raise InvalidValueError(
                            f"a frame must have {', '.join(channels)} or null for each marker; got {str(value)[:60]}"
                        )
                    numbers = [None] * len(channels) if value is None else value  # null: not seen
                    places[name] = np.array([math.nan if one is None else one for one in numbers])
                yield pose_line(self._step(places, when))
            except (msgspec.DecodeError, PoiseError) as error:
                yield self._refusal(str(error))
        elif self._header is None or ".x" in text:
            self._header = [name.strip() for name in text.split(",")]
            skeleton, moving = self.performance.space.skeleton, self.performance.space.moving
            turned = [f"{skeleton.names[joint]}.{c}" for joint in (0, *moving) for c in "wxyz"]
            yield ",".join(("time", *(f"root.{c}" for c in "xyz"), *turned))
        else:
            yield from self._csv(text, self._header)

    def take(self, frame: LiveFrame) -> str:
        """The reply to a frame of a feed."""
        try:
            return pose_line(self._step(self.performance.heard(frame), frame.seconds))
        except PoiseError as error:
            return self._refusal(str(error))

    @property
    def milliseconds(self) -> Array:
        """The duration of each frame."""
        return 1000.0 * np.array([frame.seconds for frame in self.frames])

    def _csv(self, text: str, header: list[str]) -> Iterator[str]:
        try:
            numbers = [float(cell) if cell.strip() else math.nan for cell in text.split(",")]
            cells, channels = dict(zip(header, numbers, strict=True)), self.performance.channels
            names = {name.rpartition(".")[0] for name in header if name.endswith(".x")}
            places = {name: np.array([cells[f"{name}.{c}"] for c in channels]) for name in names}
            when = cells.get("time", math.nan)
            frame = self._step(places, when if math.isfinite(when) else None)
        except (ValueError, KeyError, PoiseError):
            self._refusal(f"expected {len(header)} numbers as the header says; got {text[:60]!r}")
            return
        values = [cells.get("time", len(self.frames) / self.performance.fps), *frame.q[:3]]
        values += [v for turn in _turns(frame).values() for v in turn]
        yield ",".join(f"{value:.6g}" for value in values)

    def _step(self, places: dict[str, Array], when: float | None) -> PerformedFrame:
        missing = np.full(len(self.performance.channels), np.nan)
        points = np.stack([places.get(name, missing) for name in self.performance.names])
        frame = self.performance.step(points, at=when)
        self.keep(frame, len(self.frames) / self.performance.fps if when is None else when)
        self.frames.append(frame)
        self.labelled += any(name in places for name in self.performance.names)
        self._judge(places, frame)
        return frame

    def _judge(self, places: dict[str, Array], frame: PerformedFrame) -> None:
        """Say which labels are not matched, first and when all have had time to come; warn if only the input moves."""
        count, names = len(self.frames), set(self.performance.names)
        self._heard |= places.keys()
        if (count == 1 and self._heard - names) or (count == LISTENED and self._heard != names):
            self._tell(self.matched)
        for name, value in places.items():
            if np.all(np.abs(value) < self.performance.largest):
                first = self._begun.setdefault(name, value)
                self._moved = max(self._moved, float(np.abs(value - first).max()))
        self._stirred = max(self._stirred, float(np.abs(frame.q - self.frames[0].q).max()))
        if count >= LISTENED and self._moved > MOVES and self._stirred < STILL:
            self._tell(f"the input moves, but the body does not: {self.matched}")

    def _tell(self, words: str) -> None:
        """Say something, once."""
        if words not in self._said:
            self._said.add(words)
            self.say(words)

    @property
    def matched(self) -> str:
        """How many of the input's labels are followed, which are not, and which are missing, in words."""
        names, heard = self.performance.names, sorted(self._heard)
        unknown = [label for label in heard if label not in names]
        missing = [name for name in names if name not in self._heard]
        words = f"{len(heard) - len(unknown)} of {len(heard)} labels matched"
        words += f"; not followed: {', '.join(unknown)}" if unknown else ""
        return words + (f"; never sent: {', '.join(missing)}" if missing else "")

    def _refusal(self, trouble: str) -> str:
        self.skipped, self.trouble = self.skipped + 1, trouble
        return msgspec.json.encode({"error": trouble}).decode()


def pose_line(frame: PerformedFrame, *, at: float | None = None, seconds: float | None = None) -> str:
    """A pose as a line of JSON, with its time if known, and its duration."""
    pose: dict[str, object] = {} if at is None else {"time": round(at, 4)}
    pose["root"] = [round(float(v), 6) for v in frame.q[:7]]
    pose["joints"] = {name: [round(float(v), 6) for v in turn] for name, turn in _turns(frame).items()}
    pose["ms"] = round(1000 * (frame.seconds if seconds is None else seconds), 3)
    return msgspec.json.encode(pose).decode()


def _turns(frame: PerformedFrame) -> dict[str, Array]:
    """The rotation of the root and of every moving joint."""
    _, turns = frame.space.frames_from_q(frame.q)
    joints = [0, *frame.space.moving.tolist()]
    return {frame.space.skeleton.names[joint]: turns[joint] for joint in joints}


def serve_udp(
    stream: Stream,
    port: int,
    *,
    host: str = "127.0.0.1",
    go_on: Callable[[], bool] = lambda: True,
    ready: Callable[[int], None] = lambda _port: None,
    answered: Callable[[float], None] = lambda _arrived: None,
    newest: bool = False,
) -> None:
    """Answer every datagram of lines to its sender, until `go_on` returns false; `ready` receives the port.

    `answered` is called after every datagram with its arrival time (perf_counter). With `newest`, JSON frames that
    were overtaken while the previous one was answered are skipped.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((host, port))
        server.settimeout(POLL)
        ready(server.getsockname()[1])
        while go_on():
            try:
                data, sender = server.recvfrom(LONGEST_LINE)
                # CSV lines are never skipped, since one may be a header.
                while newest and data.startswith(b"{") and select.select([server], [], [], 0.0)[0]:
                    data, sender = server.recvfrom(LONGEST_LINE)
            except OSError:  # a time-out; on Windows also a sender that is gone
                continue
            arrived = time.perf_counter()
            lines = data.decode("utf-8", errors="replace").splitlines()
            for answer in stream.answers(lines):
                with suppress(OSError):  # a sender that cannot be answered: port 0, a broadcast address
                    server.sendto(answer.encode(), sender)
            answered(arrived)
