"""Feeds damaged datagrams, scenes, uploads, messages and requests to a studio.

    python fuzz/fuzz_studio.py [--count 50000] [--seed 0] [--only datagrams scenes uploads messages requests]

Each may be taken or refused in words. A failure is anything else: an exception that is not a PoiseError, an answer of
HTTP 500, a refusal that names a folder of the server or sends people to its terminal, a pose that is not finite. What
once did harm (`defects/`) is among the seeds.
"""

from __future__ import annotations

import io
import json
import os
import socket
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import httpx
import msgspec
import numpy as np
from mutations import Mutator
from running import LONGEST_SECONDS, parser, run

from poise.errors import PoiseError
from poise.motion.virtual_markers import virtual_markers
from poise.performance.marker_sets import LOCOMOTION, marker_layout
from poise.performance.perform import Performance
from poise.performance.streams import Stream
from poise.performer import act
from poise.priors.local.prior import LocalPrior
from poise.studio import messages as said
from poise.studio.autosave import Autosave
from poise.studio.models import ModelStore
from poise.studio.panels.clips import put_on_timeline
from poise.studio.server import Studio, listen, server_of
from poise.studio.session import Session
from poise.studio.uploads import Uploads

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

SOUND = 0.05  # of the inputs are not damaged
DEFECTS = Path(__file__).parent / "defects"
HARM = (
    "/tmp",
    str(Path.home()),
    str(Path.cwd()),
    str(Path(__file__).parents[1]),
    "terminal",
)  # what no refusal may say
Try = Callable[[bytes], str]


def main() -> int:
    """Fuzzes, and returns 1 if anything failed."""
    found = parser(__doc__, count=10_000)
    found.add_argument("--only", nargs="*", default=list(TARGETS), choices=list(TARGETS))
    options = found.parse_args()
    targets: dict[str, tuple[list[bytes], Try]] = {}

    def prepare() -> None:
        """In the child: a fork takes no threads along."""
        os.environ["POISE_CACHE"] = own = tempfile.mkdtemp(dir=folder)
        place = Place(Path(own))
        targets.update({name: TARGETS[name](place) for name in options.only})
        for seeds, attempt in targets.values():  # what is compiled at first use must not count as slow
            for seed in seeds:
                with suppress(Exception):
                    attempt(seed)

    with tempfile.TemporaryDirectory() as folder:
        cases = {name: partial(_case, targets, name) for name in options.only}
        return 1 if run(cases, options, prepare=prepare) else 0


def _case(
    targets: dict[str, tuple[list[bytes], Try]], name: str, generator: np.random.Generator, folder: Path
) -> str:
    """One of the seeds, seldom as it is, is tried."""
    seeds, attempt = targets[name]
    seed = seeds[int(generator.integers(len(seeds)))]
    data = seed if generator.random() < SOUND else Mutator(generator, tuple(seeds))(seed)
    (folder / "input").write_bytes(data)
    return attempt(data)


class Place:
    """A studio that listens, a session beside it, and what they know."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.walk = folder, act("walk", seconds=2.0, fps=20)
        self.local = LocalPrior.learn([self.walk])
        self.models = ModelStore()
        self.models.add(self.local, "steps")
        self.session = Session(self.models, Uploads(), Autosave(folder / "kept"))
        put_on_timeline(self.session, self.walk, "walk.bvh")
        self._listener = listen("127.0.0.1", 0)
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.studio = Studio(self.models)
        self._server = server_of(self.studio)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._listener]}, daemon=True
        )
        self._thread.start()
        while not self._server.started:
            time.sleep(0.01)


def datagrams(place: Place) -> tuple[list[bytes], Try]:
    layout = marker_layout(place.walk.skeleton, LOCOMOTION)
    performance = Performance(place.local, layout, fps=20.0)
    take = virtual_markers(place.walk, layout)
    seeds = [
        json.dumps(dict(zip(take.labels, points.tolist(), strict=True)) | {"time": number / 20}).encode()
        for number, points in enumerate(take.points[:5])
    ]
    header = "time," + ",".join(f"{label}.{axis}" for label in take.labels for axis in "xyz")
    row = "0.1," + ",".join(map(str, take.points[0].ravel()))
    stream = Stream(performance)

    def attempt(data: bytes) -> str:
        answers = list(stream.answers(data.decode("utf-8", errors="replace").splitlines()))
        bad = [frame for frame in stream.frames if not np.isfinite(frame.q).all()]
        stream.frames.clear()
        if bad or any("root" not in answer for answer in stream.answers([seeds[0].decode()])):
            raise AssertionError("a frame was poisoned")
        return "refused" if any("error" in answer for answer in answers) else "taken"

    known = [path.read_bytes() for path in sorted(DEFECTS.glob("*.datagram"))]
    return [*known, b'{"a": ' + b"[" * 30_000, *seeds, f"{header}\n{row}".encode()], attempt


def scenes(place: Place) -> tuple[list[bytes], Try]:
    session, path = place.session, place.folder / "odd.scene"
    session.files.write(session.state, path)
    whole = path.read_bytes()
    text = msgspec.json.encode(session.files.saved(session.state))

    def attempt(data: bytes) -> str:
        path.write_bytes(data)
        try:
            state = session.files.opened(path, session.state)
        except PoiseError as error:
            return _refusal(said.Refusal(words=str(error), about=None, seq=None).words)
        if not np.isfinite(state.pose.rotations).all():
            raise AssertionError("a pose that is not finite")
        return "taken"

    return [whole, text, text], attempt


def uploads(place: Place) -> tuple[list[bytes], Try]:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("a.bvh", "clips/b.amc"):
            archive.writestr(name, b"HIERARCHY\n" * 50)
    token, client = _joined(place), httpx.Client()

    def attempt(data: bytes) -> str:
        names = ("clips.zip", "a.bvh", data[:12].decode("latin-1") + ".bvh")
        answer = client.post(
            f"{place.address}/upload", params={"name": names[len(data) % 3]}, content=data,
            headers={"X-Poise-Session": token},
        )  # fmt: skip
        return _answered(answer)

    return [content.getvalue(), b"HIERARCHY"], attempt


def messages(place: Place) -> tuple[list[bytes], Try]:
    session = place.session
    decoder = msgspec.msgpack.Decoder(said.ClientMessage)
    hand = said.SceneHandle(id="hand", joint="left_hand", position=(0.2, 1.0, 0.1))
    key = said.Key(handle="hand", frame=5, position=(0.2, 1.0, 0.1))
    seeds: list[said.ClientMessage] = [
        said.PutHandle(handle=hand), said.Drag(seq=1, handle="hand", position=(0.3, 1.0, 0.2)), said.PutKey(key=key),
        said.SetFrame(frame=3), said.DragKey(seq=2, key=key), said.RemoveKey(handle="hand", frame=5), said.Undo(),
        said.SetTimeline(fps=20.0, frames=40), said.SetLookAt(target=(0.0, 1.0, 1.0)), said.Mirror(), said.Redo(),
        said.RemoveHandle(id="hand"), said.Cancel(task="export"), said.RenameModel(model="x", name="y"),
        said.OpenKept(token="x"), said.ChooseModel(model="plain"), said.ChooseModel(model="steps"),
    ]  # fmt: skip

    def attempt(data: bytes) -> str:
        try:
            answer = session.answer(decoder.decode(data))
        except (PoiseError, msgspec.DecodeError, UnicodeDecodeError) as error:
            return _refusal(said.Refusal(words=str(error), about=None, seq=None).words)
        poses = [message for message in answer if isinstance(message, said.SolvedPose)]
        if not all(np.isfinite(np.frombuffer(pose.world, "<f4")).all() for pose in poses):
            raise AssertionError("a pose that is not finite")
        return "taken"

    return [msgspec.msgpack.encode(message) for message in seeds], attempt


def requests(place: Place) -> tuple[list[bytes], Try]:
    port = int(place.address.rpartition(":")[2])
    known = [line for path in DEFECTS.glob("*.request") for line in path.read_bytes().splitlines()]
    paths = [b"/", b"/index.html", b"/ws", b"/upload?name=a.bvh", b"/files/abc/walk.bvh", *known]
    headers = (
        b"Host: localhost",
        b"Origin: http://localhost",
        b"Cookie: poise-studio=x",
        b"Content-Length: 0",
    )
    head = b" HTTP/1.1\r\n" + b"".join(header + b"\r\n" for header in headers)
    ways = (b"GET ", b"POST ", b"HEAD ", b"PUT ")
    seeds = [way + path + head + b"Connection: close\r\n\r\n" for path in paths for way in ways]

    def attempt(data: bytes) -> str:
        answer = b""
        with socket.create_connection(("127.0.0.1", port), timeout=LONGEST_SECONDS) as client:
            try:
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
                while part := client.recv(65536):
                    answer += part
            except (TimeoutError, ConnectionError):
                return "refused"  # hung up on
        if answer.startswith(b"HTTP/1.1 500"):
            raise AssertionError(f"HTTP 500 for {data[:120]!r}")
        refused = _refusal(answer.decode("latin-1"))
        return "taken" if answer.startswith(b"HTTP/1.1 200") else refused

    return seeds, attempt


TARGETS = {function.__name__: function for function in (datagrams, scenes, uploads, messages, requests)}


def _joined(place: Place) -> str:
    """The token of a session of the studio, as a page would have it."""
    from websockets.sync.client import connect

    from running_studio import Page

    address = place.address.replace("http", "ws") + "/ws"
    with connect(address, max_size=None) as line:
        return Page(line).hello().token


def _answered(answer: httpx.Response) -> str:
    if answer.status_code == 500:
        raise AssertionError(f"HTTP 500: {answer.text[:200]}")
    return "taken" if answer.status_code == 200 else _refusal(answer.text)


def _refusal(words: str) -> str:
    if any(harm in words for harm in HARM):
        raise AssertionError(f"a refusal that says too much: {words[:200]}")
    return "refused"


if __name__ == "__main__":
    sys.exit(main())
