"""The studio under load: drags over its socket on loopback, answered by the real solver with a style.

The style keeps 100 active points; the server is a process of its own, as `poise studio` starts it. Each client drags a
hand around a loop at a steady rate while the feet stay planted; a round trip is from the sending of a drag to the pose
that answers it or a newer one.
"""

from __future__ import annotations

import asyncio
import math
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
_DECODER: msgspec.msgpack.Decoder[said.ServerMessage] = msgspec.msgpack.Decoder(said.ServerMessage)


def run() -> list[Row]:
    """Median and 95th percentile of round trips: one client at 60 Hz, and ten at 30 Hz each."""
    with tempfile.TemporaryDirectory() as folder, _server(Path(folder)) as address:
        one = asyncio.run(_load(address, clients=1, rate=ONE_RATE))
        many = asyncio.run(_load(address, clients=MANY, rate=MANY_RATE))
    return [
        Row("drag round trip at 60 Hz, median", float(np.median(one)), "ms", note="at most 8"),
        Row("the same, 95th percentile", float(np.percentile(one, 95)), "ms", note="at most 16"),
        Row("10 clients at 30 Hz, median", float(np.median(many)), "ms"),
        Row("the same, 95th percentile", float(np.percentile(many, 95)), "ms", note="at most 50"),
    ]


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    """A studio on a model learned for this, in a process of its own."""
    model = folder / "reach.poise"
    save(StylePrior.learn([act("reach", fps=30.0)], active=ACTIVE), model)
    command = [sys.executable, "-m", "poise", "studio", str(model), "--no-open", "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        yield line.split()[0].replace("http://", "ws://") + "ws"
    finally:
        process.terminate()
        process.wait()


async def _load(address: str, *, clients: int, rate: float) -> list[float]:
    """Round trips in milliseconds, of all clients together."""
    found = await asyncio.gather(*(_client(address, rate, number / clients) for number in range(clients)))
    return [trip for own in found for trip in own]


async def _client(address: str, rate: float, phase: float) -> list[float]:
    async with connect(address, max_size=None, compression=None) as socket:
        await _say(socket, said.Hello(protocol=said.PROTOCOL))
        await _say(socket, said.PutHandle(handle=said.SceneHandle(id="hand", joint="left_hand")))
        while not (isinstance(heard := await _hear(socket), said.SceneChanged) and heard.scene.handles):
            pass
        start = np.array(heard.scene.handles[0].position)
        sent: dict[int, float] = {}
        listening = asyncio.create_task(_listen(socket, sent))
        await asyncio.sleep(phase / rate)
        await _drag(socket, start, rate, sent)
        await asyncio.sleep(0.5)
        listening.cancel()
        trips = await asyncio.gather(listening, return_exceptions=True)
        assert isinstance(trips[0], list)
        return trips[0]


async def _drag(socket: ClientConnection, start: np.ndarray, rate: float, sent: dict[int, float]) -> None:
    begun = time.perf_counter()
    for number in range(1, int((SECONDS + WARM_SECONDS) * rate)):
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
