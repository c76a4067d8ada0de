"""Soaks the studio: random edits by several pages for a while, and a look at its memory and its log.

    python fuzz/soak_studio.py [--minutes 30] [--pages 3] [--seed 0]

Pages drag handles, switch and blend models, wander through style spaces, key and scrub, undo and redo, export, perform,
lose their connection, and now and then say something hostile. It fails if the server complains or dies, if a refusal
was not deserved, or if its memory has grown by more than 5 % from the first quarter after warming up to the last.
"""

from __future__ import annotations

import argparse
import asyncio
import json
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
GROWTH = 0.05
JOINTS = ("left_hand", "right_hand", "head", "left_foot", "right_foot", "pelvis", "left_forearm", "chest")
DESERVED = (  # parts of what is said of a page's own mistakes
    "nothing to undo",
    "nothing to redo",
    "no handle",
    "no latent space",
    "needs a learned model",
    "still under way",
    "not understood",
    "came after number",
    "cannot be blended",
    "has no key",
    "nothing on the timeline",
    "timeline has frames",
    "performance is under way",
    "no performance to stop",
)
QUIET = 0.15  # seconds without a word, after which everything has been answered
_DECODER: msgspec.msgpack.Decoder[said.ServerMessage] = msgspec.msgpack.Decoder(said.ServerMessage)


class Page:
    """A person who does not know what they want."""

    def __init__(self, address: str, seed: int) -> None:
        self.address, self.random = address, random.Random(seed)
        self.token: str | None = None
        self.heard: Counter[str] = Counter()
        self.undeserved: list[str] = []
        self.scene: said.Scene | None = None
        self.models: list[said.Model] = []
        self.performing: said.Performing | None = None
        self.seq = 0

    async def live(self, until: float) -> None:
        """Connects, edits for a while, goes away, and comes back."""
        while time.monotonic() < until:
            async with connect(self.address, max_size=None, compression=None) as socket:
                again = self.token if self.random.random() < 0.5 else None
                await self.say(socket, said.Hello(protocol=said.PROTOCOL, token=again))
                listening = asyncio.create_task(self.listen(socket))
                leave = min(until, time.monotonic() + self.random.uniform(5.0, 40.0))
                while self.scene is None or time.monotonic() < leave:
                    if self.scene is not None:
                        await self.edit(socket)
                    await self.answered()
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)

    async def answered(self) -> None:
        """Waits until nothing more is said: people look at what they have done."""
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
        elif isinstance(message, said.Pose):
            assert np.isfinite(np.frombuffer(message.world, "<f4")).all()
        elif isinstance(message, said.Refusal) and not any(words in message.words for words in DESERVED):
            self.undeserved.append(message.words)

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
        """One of the things that a person does, the frequent ones more often."""
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
        handle = said.Handle(
            id=joint, joint=joint, pinned=self.random.random() < 0.5, hard=self.random.random() < 0.8
        )
        await self.say(socket, said.PutHandle(handle=handle))
        goal, moments = self.point(0.6), self.random.randint(3, 30)
        for moment in range(moments):
            x, y, z = goal
            at = (x + 0.01 * moment, y, z - 0.01 * moment)
            last = moment == moments - 1
            await self.say(socket, said.Drag(seq=self.number(), handle=joint, position=at, last=last))
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


async def watch(process: int, until: float, seen: list[float]) -> None:
    while time.monotonic() < until:
        seen.append(memory(process))
        await asyncio.sleep(1.0)


async def soak(
    address: str, process: int, *, minutes: float, pages: int, seed: int
) -> tuple[list[float], list[Page]]:
    until = time.monotonic() + 60.0 * minutes
    people, seen = [Page(address, seed + number) for number in range(pages)], []
    await asyncio.gather(watch(process, until, seen), *(page.live(until) for page in people))
    return seen, people


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--pages", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryFile("w+") as log:
        command = [sys.executable, "-m", "poise", "studio", "--no-open", "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as server:
            assert server.stdout is not None
            address = server.stdout.readline().split()[0].replace("http://", "ws://") + "ws"
            seen, people = asyncio.run(
                soak(address, server.pid, minutes=given.minutes, pages=given.pages, seed=given.seed)
            )
            alive = server.poll() is None
            server.terminate()
        log.seek(0)
        complaints = log.read().strip()
    return report(seen, people, complaints, alive=alive)


def report(seen: list[float], people: list[Page], complaints: str, *, alive: bool) -> int:
    """What was seen, in words; 0 if all was well."""
    after = seen[int(WARM_SHARE * len(seen)) :]
    quarter = max(1, len(after) // 4)
    first, last = float(np.median(after[:quarter])), float(np.median(after[-quarter:]))
    heard = sum((page.heard for page in people), Counter())
    undeserved = [words for page in people for words in page.undeserved]
    print(f"{len(seen)} s; heard {dict(heard.most_common())}")
    print("memory in MB, over time:", ", ".join(f"{value:.0f}" for value in seen[:: max(1, len(seen) // 12)]))
    print(
        f"memory {first:.1f} MB after warming up, {last:.1f} MB at the end: {100 * (last / first - 1):+.1f} %"
    )
    print(f"undeserved refusals: {Counter(undeserved).most_common(5)}")
    print(
        f"the server {'lives' if alive else 'has died'}; it complained of: {complaints[-2000:] or 'nothing'}"
    )
    return int(not alive or bool(undeserved) or bool(complaints) or last > first * (1.0 + GROWTH))


if __name__ == "__main__":
    sys.exit(main())
