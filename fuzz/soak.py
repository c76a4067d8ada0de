"""Soaks the studio: random edits by several pages for a while, and a look at its memory, descriptors and answers.

    python fuzz/soak.py [--minutes 120] [--pages 3] [--seed 0] [--out out/soak]

Pages drag handles, switch and blend models, wander through style spaces, key and scrub, undo and redo, export, perform,
lose their connection, and now and then say something hostile. Every ten seconds a row is added to `soak.csv`; at the
end `soak.png` shows them. It fails if the server complains or dies, if a connection is lost, if a refusal was not
deserved, or if its memory or its descriptors have grown by more than 3 % from the first quarter after warming up to
the last.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import os
import random
import socket as dgram
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from poise.studio import messages as said

WARM_SHARE = 0.25  # of the time, in which caches fill
GROWTH = 0.03
EVERY = 10.0  # seconds between two samples
COLUMNS = ("seconds", "memory_mb", "descriptors", "threads", "drag_median_ms", "drag_p95_ms", "drags", "load")
JOINTS = ("left_hand", "right_hand", "head", "left_foot", "right_foot", "pelvis", "left_forearm", "chest")
DESERVED = (  # parts of what is said of a page's own mistakes
    "nothing to undo",
    "nothing to redo",
    "no handle",
    "no latent space",
    "needs a learned model",
    "still running",
    "not understood",
    "came after number",
    "cannot be blended",
    "has no key",
    "nothing on the timeline",
    "timeline has frames",
    "performance is running",
    "no performance to stop",
)
PATIENCE = 300.0  # seconds that a stay of at most 40 may take
QUIET = 0.15  # seconds without a word, after which everything has been answered
STUDIO = (  # ends with the soak, also if that is killed
    "import sys; from poise.cli import main; from poise.engine import end_with_parent; "
    "end_with_parent(); sys.exit(main())"
)
_DECODER: msgspec.msgpack.Decoder[said.ServerMessage] = msgspec.msgpack.Decoder(said.ServerMessage)


class Page:
    """A simulated person who makes random edits."""

    def __init__(self, address: str, seed: int) -> None:
        self.address, self.random = address, random.Random(seed)
        self.token: str | None = None
        self.heard: Counter[str] = Counter()
        self.undeserved: list[str] = []
        self.lost: list[str] = []  # connections that ended by themselves, or that nothing more came from
        self.born = time.monotonic()
        self.scene: said.Scene | None = None
        self.models: list[said.Model] = []
        self.performing: said.Performing | None = None
        self.seq = 0
        self.sent: dict[int, float] = {}
        self.trips: list[float] = []  # milliseconds from drags to their poses, since the last sample

    async def live(self, until: float) -> None:
        """Connect, edit for a while, leave, and return, also after a lost connection."""
        while time.monotonic() < until:
            try:
                async with (
                    asyncio.timeout(PATIENCE),
                    connect(self.address, max_size=None, compression=None) as socket,
                ):
                    await self.visit(socket, min(until, time.monotonic() + self.random.uniform(5.0, 40.0)))
            except (ConnectionClosed, OSError, TimeoutError) as lost:
                self.lost.append(f"after {time.monotonic() - self.born:.0f} s: {lost!r}")
                await asyncio.sleep(1.0)

    async def visit(self, socket: ClientConnection, leave: float) -> None:
        """One stay: says hello, with the token of the last stay every other time, and edits."""
        again = self.token if self.random.random() < 0.5 else None
        await self.say(socket, said.Hello(protocol=said.PROTOCOL, token=again))
        listening = asyncio.create_task(self.listen(socket))
        try:
            while self.scene is None or time.monotonic() < leave:
                if self.scene is not None:
                    await self.edit(socket)
                await self.answered()
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    async def answered(self) -> None:
        """Wait until nothing more is sent, as people look at what they have done."""
        words = -1
        while words != self.heard.total():
            words = self.heard.total()
            await asyncio.sleep(QUIET)

    async def say(self, socket: ClientConnection, message: said.ClientMessage) -> None:
        await socket.send(msgspec.msgpack.encode(message))

    async def listen(self, socket: ClientConnection) -> None:
        try:
            while True:
                data = await socket.recv()
                assert isinstance(data, bytes)
                self.take(_DECODER.decode(data))
        except ConnectionClosed:
            return

    def take(self, message: said.ServerMessage) -> None:
        self.heard[type(message).__name__] += 1
        if isinstance(message, said.Welcome):
            self.token = message.token
        elif isinstance(message, said.Models):
            self.models = message.models
        elif isinstance(message, said.SceneChanged):
            self.scene = message.scene
        elif isinstance(message, said.Performing):
            self.performing = message
        elif isinstance(message, said.SolvedPose):
            assert np.isfinite(np.frombuffer(message.world, "<f4")).all()
            self.arrived(message.seq)
        elif isinstance(message, said.Refusal) and not any(words in message.words for words in DESERVED):
            self.undeserved.append(message.words)

    def arrived(self, seq: int) -> None:
        """A pose that answers a drag, and those that it overtook."""
        now = time.perf_counter()
        for number in [number for number in self.sent if number <= seq]:
            self.trips.append(1000.0 * (now - self.sent.pop(number)))

    def number(self) -> int:
        self.seq = max(self.seq + 1, time.monotonic_ns() // 1000)
        return self.seq

    def point(self, reach: float = 1.0) -> tuple[float, float, float]:
        return (
            self.random.uniform(-reach, reach),
            self.random.uniform(0.0, 1.8),
            self.random.uniform(-reach, reach),
        )

    async def edit(self, socket: ClientConnection) -> None:
        """A random action, frequent ones more often."""
        does = [self.gesture] * 8 + [
            self.wander,
            self.key,
            self.key,
            self.switch,
            self.small,
            self.small,
            self.perform,
            self.nonsense,
        ]
        await self.random.choice(does)(socket)

    async def gesture(self, socket: ClientConnection) -> None:
        joint = self.random.choice(JOINTS)
        handle = said.SceneHandle(
            id=joint, joint=joint, pinned=self.random.random() < 0.5, hard=self.random.random() < 0.8
        )
        await self.say(socket, said.PutHandle(handle=handle))
        goal, moments = self.point(0.6), self.random.randint(3, 30)
        for moment in range(moments):
            x, y, z = goal
            at = (x + 0.01 * moment, y, z - 0.01 * moment)
            last = moment == moments - 1
            number = self.number()
            self.sent[number] = time.perf_counter()
            await self.say(socket, said.Drag(seq=number, handle=joint, position=at, last=last))
            await asyncio.sleep(1 / 60)

    async def wander(self, socket: ClientConnection) -> None:
        hold = self.random.random() < 0.5
        for moment in range(10):
            point = (self.random.uniform(-2.0, 2.0), self.random.uniform(-2.0, 2.0))
            await self.say(socket, said.HoverLatent(seq=self.number(), point=point))
            await self.say(
                socket, said.DragLatent(seq=self.number(), point=point, hold=hold, last=moment == 9)
            )
            await asyncio.sleep(1 / 60)

    async def key(self, socket: ClientConnection) -> None:
        assert self.scene is not None
        frame = self.random.randrange(0, min(self.scene.timeline.frames, 30))
        handles = [handle.id for handle in self.scene.handles] or ["nobody"]
        chosen = said.Key(handle=self.random.choice(handles), frame=frame, position=self.point(0.5))
        if len(self.scene.timeline.keys) > 8:
            old = self.random.choice(self.scene.timeline.keys)
            await self.say(socket, said.RemoveKey(handle=old.handle, frame=old.frame))
        await self.say(socket, said.SetTimeline(fps=15.0, frames=30))
        await self.say(socket, said.PutKey(key=chosen))
        await self.say(socket, said.SetFrame(frame=frame))

    async def switch(self, socket: ClientConnection) -> None:
        model = self.random.choice(self.models).id
        if self.random.random() < 0.3:
            pair = [
                said.Weight(model=m.id, weight=self.random.random())
                for m in self.random.sample(self.models, 2)
            ]
            await self.say(socket, said.Blend(weights=pair))
        else:
            await self.say(socket, said.ChooseModel(model=model))
            await self.say(socket, said.AskLatentMap(model=model))

    async def small(self, socket: ClientConnection) -> None:
        feet: list[said.Feet] = ["free", "above", "planted"]
        formats: list[said.ExportFormat] = ["bvh", "scene", "glb"]
        message: said.ClientMessage = self.random.choice(
            (
                said.Undo(),
                said.Undo(),
                said.Redo(),
                said.Mirror(),
                said.Reset(),
                said.SetFeet(feet=self.random.choice(feet)),
                said.SetLookAt(target=self.random.choice([None, self.point(2.0)])),
                said.Export(format=self.random.choice(formats)),
            )
        )
        await self.say(socket, message)

    async def perform(self, socket: ClientConnection) -> None:
        """Markers of somebody who jumps about, for a moment."""
        local = [model.id for model in self.models if model.kind == "local"]
        self.performing = None
        await self.say(socket, said.Perform(model=self.random.choice(local), stream="0"))
        while self.performing is None or self.performing.step == "preparing":
            await asyncio.sleep(QUIET)
        port = int(self.performing.source.rpartition(" ")[2])
        with dgram.socket(dgram.AF_INET, dgram.SOCK_DGRAM) as tracker:
            for _ in range(30):
                places = {
                    name: self.point() for name in self.performing.markers if self.random.random() < 0.8
                }
                tracker.sendto(json.dumps(places).encode(), ("127.0.0.1", port))
                await asyncio.sleep(1 / 60)
        await self.say(socket, said.StopPerforming())

    async def nonsense(self, socket: ClientConnection) -> None:
        await socket.send(
            self.random.choice([b"", b"\xff" * 20, msgspec.msgpack.encode({"type": "drag", "seq": -1})])
        )
        await self.say(socket, said.Drag(seq=1, handle="nobody", position=(0.0, 0.0, 0.0)))


def memory(process: int) -> float:
    """What a process holds of its own, in megabytes: files that it reads come and go with the system's needs."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(("RssAnon", "VmSwap"))) / 1000


def descriptors(process: int) -> int:
    """How many files and sockets a process has open."""
    return len(os.listdir(f"/proc/{process}/fd"))


def threads(process: int) -> int:
    return len(os.listdir(f"/proc/{process}/task"))


async def watch(process: int, until: float, people: list[Page], out: Path) -> list[list[float]]:
    """A row every so often, on disk at once."""
    seen, begun = list[list[float]](), time.monotonic()
    with (out / "soak.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        while time.monotonic() < until:
            await asyncio.sleep(EVERY)
            trips = [trip for page in people for trip in page.trips] or [np.nan]
            for page in people:
                page.trips.clear()
            own = [memory(process), descriptors(process), threads(process)]
            quick = [np.median(trips), np.percentile(trips, 95), len(trips), os.getloadavg()[0]]
            seen.append([round(float(value), 2) for value in (time.monotonic() - begun, *own, *quick)])
            writer.writerow(seen[-1])
            file.flush()
    return seen


async def soak(process: int, *, minutes: float, people: list[Page], out: Path) -> list[list[float]]:
    until = time.monotonic() + 60.0 * minutes
    seen, *_ = await asyncio.gather(
        watch(process, until, people, out), *(page.live(until) for page in people)
    )
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--pages", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out/soak"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    people = [Page("", given.seed + number) for number in range(given.pages)]
    with tempfile.TemporaryDirectory() as cache, (given.out / "soak.log").open("w+") as log:
        command = [sys.executable, "-c", STUDIO, "studio", "--no-open", "--port", "0"]
        own = os.environ | {"POISE_CACHE": cache}
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=own) as server:
            assert server.stdout is not None
            address = server.stdout.readline().split()[0].replace("http://", "ws://") + "ws"
            for page in people:
                page.address = address
            try:
                seen = asyncio.run(soak(server.pid, minutes=given.minutes, people=people, out=given.out))
                alive = server.poll() is None
            finally:
                server.terminate()
        log.seek(0)
        complaints = log.read().strip()
    draw(seen, given.out / "soak.png")
    return report(seen, people, complaints, alive=alive)


def draw(seen: list[list[float]], path: Path) -> None:
    """Memory, descriptors and answers over time."""
    import matplotlib.pyplot as plt

    table = dict(zip(COLUMNS, np.array(seen).T, strict=True))
    minutes = table["seconds"] / 60.0
    figure, axes = plt.subplots(4, 1, sharex=True, figsize=(9, 9), layout="constrained")
    for axis, names, label in (
        (axes[0], ("memory_mb",), "memory, MB"),
        (axes[1], ("descriptors", "threads"), "descriptors, threads"),
        (axes[2], ("drag_median_ms", "drag_p95_ms"), "drag to pose, ms"),
        (axes[3], ("load",), "load average"),
    ):
        for name in names:
            axis.plot(minutes, table[name], label=name, linewidth=1.0)
        axis.set_ylabel(label)
        axis.legend(loc="upper left", frameon=False)
        axis.grid(alpha=0.3)
    axes[0].set_ylim(bottom=0.0)
    axes[1].set_ylim(bottom=0.0)
    axes[2].set_yscale("log")
    axes[0].axvline(WARM_SHARE * minutes[-1], color="grey", linestyle=":")
    axes[3].set_xlabel("minutes")
    figure.savefig(path, dpi=110)


def growth(values: list[float]) -> tuple[float, float]:
    """The medians of the first and of the last quarter after warming up."""
    after = values[int(WARM_SHARE * len(values)) :]
    quarter = max(1, len(after) // 4)
    return float(np.median(after[:quarter])), float(np.median(after[-quarter:]))


def report(seen: list[list[float]], people: list[Page], complaints: str, *, alive: bool) -> int:
    """What was seen, in words; 0 if all was well."""
    heard = sum((page.heard for page in people), Counter())
    undeserved = [words for page in people for words in page.undeserved]
    lost = [words for page in people for words in page.lost]
    print(f"{seen[-1][0]:.0f} s; heard {dict(heard.most_common())}")
    grown = False
    for name, column in (("memory, MB", 1), ("descriptors", 2)):
        first, last = growth([row[column] for row in seen])
        grown |= last > first * (1.0 + GROWTH)
        print(
            f"{name}: {first:.1f} after warming up, {last:.1f} at the end: {100 * (last / first - 1):+.1f} %"
        )
    print(f"undeserved refusals: {Counter(undeserved).most_common(5)}; connections lost: {lost[:5]}")
    print(
        f"the server {'lives' if alive else 'has died'}; it complained of: {complaints[-2000:] or 'nothing'}"
    )
    return int(not alive or bool(undeserved) or bool(lost) or bool(complaints) or grown)


if __name__ == "__main__":
    sys.exit(main())
