"""The studio under load: drags over its socket on loopback, answered by the real solver with a style.

The style keeps 100 active points; the server is a process of its own, as `poise studio` starts it. Each client drags a
hand around a loop at a steady rate while the feet stay planted. As the page does, it sends a drag once the one before
is answered, always the newest; a round trip is from the hand's movement to the pose that answers it or a newer one.

    python -m benchmarks.studio_load [--clients 50] [--seconds 600] [--frames 36000]

drags many hands for long (`make clients`), and once more while another page solves a timeline of `--frames` frames. It
fails where the slowest twentieth takes more than 100 ms, or half as long again beside the page that solves.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.table import Row
from poise.performer import act
from poise.priors.model_file import save
from poise.priors.style.prior import StylePrior
from poise.studio import messages as said

ACTIVE = 100
SECONDS, WARM_SECONDS = 10.0, 1.0
ONE_RATE, MANY_RATE, MANY = 60.0, 30.0, 10
LOOP = 0.12  # metres: radius of the hand's path
LOOPS_A_SECOND = 0.5
MOST, MOST_MORE = (
    100.0,
    1.5,
)  # milliseconds of the 95th percentile of many clients; times that beside a long solve


class _Seen(msgspec.Struct):
    """The fields of an answer that a client needs."""

    type: str
    seq: int | None = None
    words: str = ""


_SEEN = msgspec.msgpack.Decoder(_Seen)
_DECODER: msgspec.msgpack.Decoder[said.ServerMessage] = msgspec.msgpack.Decoder(said.ServerMessage)


def run() -> list[Row]:
    """Median and 95th percentile of round trips: one client at 60 Hz, and ten at 30 Hz each."""
    with tempfile.TemporaryDirectory() as folder, _server(Path(folder)) as (address, process):
        one = asyncio.run(_load(address, process, clients=1, rate=ONE_RATE)).trips
        many = asyncio.run(_load(address, process, clients=MANY, rate=MANY_RATE)).trips
    return [
        Row("drag round trip at 60 Hz, median", float(np.median(one)), "ms", note="at most 8"),
        Row("the same, 95th percentile", float(np.percentile(one, 95)), "ms", note="at most 16"),
        Row("10 clients at 30 Hz, median", float(np.median(many)), "ms"),
        Row("the same, 95th percentile", float(np.percentile(many, 95)), "ms", note="at most 50"),
    ]


def main() -> int:
    """Many clients for a long time, alone and beside a page that solves a long timeline; 1 if they wait too long."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--frames", type=int, default=36_000, help="of the timeline that another page solves")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, _server(Path(folder)) as (address, process):
        slowest = [asyncio.run(_many(address, process, given, solving=solving)) for solving in (False, True)]
    return int(slowest[0] > MOST or slowest[1] > MOST_MORE * slowest[0])


async def _many(address: str, process: int, given: argparse.Namespace, *, solving: bool) -> float:
    """The 95th percentile of the round trips of many clients, printed with their processor cost."""
    share = [0.0]
    page = asyncio.create_task(_solve(address, given.frames, share)) if solving else None
    load = await _load(address, process, clients=given.clients, rate=MANY_RATE, seconds=given.seconds)
    beside = f" beside a page that solved {share[0]:.0%} of {given.frames} frames" if page is not None else ""
    if page is not None:
        assert not page.done(), page.exception()
        page.cancel()
    median, slowest = np.percentile(load.trips, [50, 95])
    print(
        f"{given.clients} clients at {MANY_RATE:.0f} Hz for {load.seconds:.0f} s{beside}: median {median:.0f} ms, "
        f"95th percentile {slowest:.0f} ms; {len(load.trips)} drags, {load.answers} answers, no errors; processor: "
        f"the studio {load.studio / load.seconds:.2f} cores, {1000 * load.studio / load.answers:.2f} ms an answer, "
        f"the clients {load.clients / load.seconds:.2f} cores; memory: {load.memory:.1f} MB a page",
        flush=True,
    )
    return float(slowest)


def _processor_seconds(process: int) -> float:
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _resident(process: int) -> float:
    """Megabytes."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def _server(folder: Path) -> Iterator[tuple[str, int]]:
    """A studio on a model learned for this, in a separate process: its address and process id."""
    model = folder / "reach.poise"
    save(StylePrior.learn([act("reach", fps=30.0)], active=ACTIVE), model)
    command = [sys.executable, "-m", "poise", "studio", str(model), "--no-open", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield line.split()[0].replace("http://", "ws://") + "ws", process.pid
    finally:
        process.terminate()
        process.wait()


@dataclass
class Load:
    """Clients' results: round trips in milliseconds, answers; seconds, processor seconds, megabytes per page."""

    trips: list[float]
    answers: int
    seconds: float
    studio: float
    clients: float
    memory: float


async def _load(address: str, process: int, *, clients: int, rate: float, seconds: float = SECONDS) -> Load:
    """All clients drag, once all are connected."""
    before = _resident(process)
    async with AsyncExitStack() as stack:
        joined = [await _joined(await stack.enter_async_context(_page(address))) for _ in range(clients)]
        memory = (_resident(process) - before) / clients
        studio, own, begun = _processor_seconds(process), time.process_time(), time.perf_counter()
        each = (_client(*page, rate, number / clients, seconds) for number, page in enumerate(joined))
        found = await asyncio.gather(*each)
        return Load(
            [trip for trips, _ in found for trip in trips], sum(answers for _, answers in found),
            time.perf_counter() - begun, _processor_seconds(process) - studio, time.process_time() - own, memory,
        )  # fmt: skip


def _page(address: str) -> connect:
    return connect(address, max_size=None, compression=None, ping_interval=None)


async def _joined(socket: ClientConnection) -> tuple[ClientConnection, np.ndarray]:
    """A page with a handle on a hand, and the hand's position."""
    await _say(socket, said.Hello(protocol=said.PROTOCOL))
    await _say(socket, said.PutHandle(handle=said.SceneHandle(id="hand", joint="left_hand")))
    while not (isinstance(heard := await _hear(socket), said.SceneChanged) and heard.scene.handles):
        pass
    return socket, np.array(heard.scene.handles[0].position)


class _Hand:
    """A page's hand on its loop: one drag is on its way, and the newest goes when it is answered."""

    def __init__(self, socket: ClientConnection, start: np.ndarray, rate: float) -> None:
        self._socket, self._start, self._rate = socket, start, rate
        self._moved: dict[int, float] = {}
        self._sent: int | None = None
        self.trips: list[float] = []
        self.answers = 0

    async def drag(self, seconds: float) -> None:
        """Move on steadily."""
        begun = time.perf_counter()
        for number in range(1, int((seconds + WARM_SECONDS) * self._rate)):
            self._moved[number] = time.perf_counter()
            if self._sent is None:
                await self._send(number)
            await asyncio.sleep(max(0.0, begun + number / self._rate - time.perf_counter()))

    async def listen(self) -> None:
        """Round trips of all movements, including overtaken ones, without the first second."""
        begun = time.perf_counter()
        while True:
            heard = _SEEN.decode(await self._socket.recv(decode=False))
            assert heard.type != "error", heard.words
            if heard.type != "pose" or heard.seq is None:
                continue
            now = time.perf_counter()
            self.answers += 1
            for number in [number for number in self._moved if number <= heard.seq]:
                left = self._moved.pop(number)
                if left > begun + WARM_SECONDS:
                    self.trips.append(1000.0 * (now - left))
            self._sent = None
            if self._moved:
                await self._send(max(self._moved))

    async def _send(self, number: int) -> None:
        self._sent = number
        angle = 2.0 * math.pi * LOOPS_A_SECOND * number / self._rate
        x, y, z = self._start + LOOP * np.array(
            [math.sin(angle), 1.0 - math.cos(angle), 0.5 * math.sin(angle)]
        )
        await _say(
            self._socket, said.Drag(seq=number, handle="hand", position=(float(x), float(y), float(z)))
        )


async def _client(
    socket: ClientConnection, start: np.ndarray, rate: float, phase: float, seconds: float
) -> tuple[list[float], int]:
    """The round trips of a page's drags, and the number of answers."""
    hand = _Hand(socket, start, rate)
    listening = asyncio.create_task(hand.listen())
    await asyncio.sleep(phase / rate)
    await hand.drag(seconds)
    await asyncio.sleep(0.5)
    listening.cancel()
    (error,) = await asyncio.gather(listening, return_exceptions=True)
    assert isinstance(error, asyncio.CancelledError), error
    return hand.trips, hand.answers


async def _solve(address: str, frames: int, share: list[float]) -> None:
    """A page that keys a long timeline; the solved share is in `share`."""
    async with _page(address) as socket:
        await _joined(socket)
        await _say(socket, said.SetTimeline(fps=MANY_RATE, frames=frames))
        await _say(socket, said.PutKey(key=said.Key(handle="hand", frame=5, position=(0.3, 1.2, 0.2))))
        while True:
            heard = await _hear(socket)
            assert not isinstance(heard, said.Refusal), heard
            if isinstance(heard, said.Progress):
                share[0] = heard.share


async def _say(socket: ClientConnection, message: said.ClientMessage) -> None:
    await socket.send(msgspec.msgpack.encode(message))


async def _hear(socket: ClientConnection) -> said.ServerMessage:
    data = await socket.recv()
    assert isinstance(data, bytes)
    return _DECODER.decode(data)


if __name__ == "__main__":
    sys.exit(main())
