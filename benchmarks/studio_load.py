"""The studio under load: drags over its socket on loopback, answered by the real solver with a style.

The style keeps 100 active points; the server is a process of its own, as `poise studio` starts it. Each client drags a
hand around a loop at a steady rate while the feet stay planted; a round trip is from the sending of a drag to the pose
that answers it or a newer one.

    python -m benchmarks.studio_load [--clients 50] [--seconds 600] [--frames 36000]

drags many hands for long (`make clients`), and once more while another page solves a timeline of so many frames. It
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
from contextlib import contextmanager
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
LOOP = 0.12  # metres, the radius of the hand's way
LOOPS_A_SECOND = 0.5
MOST, MOST_MORE = (
    100.0,
    1.5,
)  # milliseconds of the 95th percentile of many clients; times that beside a long solve
_DECODER: msgspec.msgpack.Decoder[said.ServerMessage] = msgspec.msgpack.Decoder(said.ServerMessage)


def run() -> list[Row]:
    """Median and 95th percentile of round trips: one client at 60 Hz, and ten at 30 Hz each."""
    with tempfile.TemporaryDirectory() as folder, _server(Path(folder)) as (address, _):
        one = asyncio.run(_load(address, clients=1, rate=ONE_RATE))
        many = asyncio.run(_load(address, clients=MANY, rate=MANY_RATE))
    return [
        Row("drag round trip at 60 Hz, median", float(np.median(one)), "ms", note="at most 8"),
        Row("the same, 95th percentile", float(np.percentile(one, 95)), "ms", note="at most 16"),
        Row("10 clients at 30 Hz, median", float(np.median(many)), "ms"),
        Row("the same, 95th percentile", float(np.percentile(many, 95)), "ms", note="at most 50"),
    ]


def main() -> int:
    """Many clients for long, alone and beside a page that solves a long timeline; 1 if they wait too long."""
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
    """The 95th percentile of the round trips of many clients, which is printed with what they cost the server."""
    before, begun = _processor_seconds(process), time.perf_counter()
    share, page = [0.0], None
    if solving:
        page = asyncio.create_task(_solve(address, given.frames, share))
    trips = await _load(address, clients=given.clients, rate=MANY_RATE, seconds=given.seconds)
    beside = f" beside a page that solved {share[0]:.0%} of {given.frames} frames" if page is not None else ""
    if page is not None:
        page.cancel()
    taken, used = time.perf_counter() - begun, _processor_seconds(process) - before
    median, slowest = np.percentile(trips, [50, 95])
    print(
        f"{given.clients} clients at {MANY_RATE:.0f} Hz for {taken:.0f} s{beside}: median {median:.0f} ms, "
        f"95th percentile {slowest:.0f} ms, {len(trips)} drags, {used / taken:.2f} cores, no errors",
        flush=True,
    )
    return float(slowest)


def _processor_seconds(process: int) -> float:
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def _server(folder: Path) -> Iterator[tuple[str, int]]:
    """A studio on a model learned for this, in a process of its own: its address and number."""
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


async def _load(address: str, *, clients: int, rate: float, seconds: float = SECONDS) -> list[float]:
    """Round trips in milliseconds, of all clients together."""
    each = (_client(address, rate, number / clients, seconds) for number in range(clients))
    found = await asyncio.gather(*each)
    return [trip for own in found for trip in own]


async def _client(address: str, rate: float, phase: float, seconds: float) -> list[float]:
    async with connect(address, max_size=None, compression=None, ping_interval=None) as socket:
        await _say(socket, said.Hello(protocol=said.PROTOCOL))
        await _say(socket, said.PutHandle(handle=said.SceneHandle(id="hand", joint="left_hand")))
        while not (isinstance(heard := await _hear(socket), said.SceneChanged) and heard.scene.handles):
            pass
        start = np.array(heard.scene.handles[0].position)
        sent: dict[int, float] = {}
        listening = asyncio.create_task(_listen(socket, sent))
        await asyncio.sleep(phase / rate)
        await _drag(socket, start, rate, seconds, sent)
        await asyncio.sleep(0.5)
        listening.cancel()
        trips = await asyncio.gather(listening, return_exceptions=True)
        assert isinstance(trips[0], list)
        return trips[0]


async def _solve(address: str, frames: int, share: list[float]) -> None:
    """A page that keys a long timeline; how much of it is solved is kept in `share`."""
    async with connect(address, max_size=None, compression=None, ping_interval=None) as socket:
        await _say(socket, said.Hello(protocol=said.PROTOCOL))
        await _say(socket, said.PutHandle(handle=said.SceneHandle(id="hand", joint="left_hand")))
        await _say(socket, said.SetTimeline(fps=MANY_RATE, frames=frames))
        await _say(socket, said.PutKey(key=said.Key(handle="hand", frame=5, position=(0.3, 1.2, 0.2))))
        while True:
            heard = await _hear(socket)
            if isinstance(heard, said.Progress):
                share[0] = heard.share


async def _drag(
    socket: ClientConnection, start: np.ndarray, rate: float, seconds: float, sent: dict[int, float]
) -> None:
    begun = time.perf_counter()
    for number in range(1, int((seconds + WARM_SECONDS) * rate)):
        angle = 2.0 * math.pi * LOOPS_A_SECOND * number / rate
        at = start + LOOP * np.array([math.sin(angle), 1.0 - math.cos(angle), 0.5 * math.sin(angle)])
        x, y, z = at.tolist()
        sent[number] = time.perf_counter()
        await _say(socket, said.Drag(seq=number, handle="hand", position=(x, y, z)))
        await asyncio.sleep(max(0.0, begun + number / rate - time.perf_counter()))


async def _listen(socket: ClientConnection, sent: dict[int, float]) -> list[float]:
    """The round trips of all drags, those that newer ones overtook included; the first second is left out."""
    trips: list[float] = []
    begun = time.perf_counter()
    try:
        while True:
            heard = await _hear(socket)
            if not isinstance(heard, said.SolvedPose):
                assert not isinstance(heard, said.Refusal), heard
                continue
            now = time.perf_counter()
            for number in [number for number in sent if number <= heard.seq]:
                left = sent.pop(number)
                if left > begun + WARM_SECONDS:
                    trips.append(1000.0 * (now - left))
    except asyncio.CancelledError:
        return trips


async def _say(socket: ClientConnection, message: said.ClientMessage) -> None:
    await socket.send(msgspec.msgpack.encode(message))


async def _hear(socket: ClientConnection) -> said.ServerMessage:
    data = await socket.recv()
    assert isinstance(data, bytes)
    return _DECODER.decode(data)


if __name__ == "__main__":
    sys.exit(main())
