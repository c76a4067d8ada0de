"""Feeds damaged datagrams, scenes, uploads, messages, websocket frames and HTTP requests to a studio.

    python fuzz/fuzz_studio.py [--count 50000] [--seed 0] [--only datagrams scenes uploads messages frames requests]

Each may be taken or refused in words. A failure is anything else: an exception that is not a PoiseError, an answer of
HTTP 500, an error in the server's log, a refusal that names a folder of the server or sends people to its terminal, a
pose that is not finite. What once did harm (`defects/`) is among the seeds. Requests go to every endpoint, in turn of a
studio that asks for a token and of one that does not; half of them are odd but whole.
"""

from __future__ import annotations

import io
import json
import logging
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
from typing import NamedTuple

import httpx
import msgspec
import numpy as np
from mutations import Mutator
from running import LONGEST_SECONDS, parser, run

from poise.capture.matching import LOCOMOTION, marker_layout
from poise.capture.performance import Performance
from poise.capture.streams import Stream
from poise.errors import PoiseError
from poise.motion.virtual_markers import virtual_markers
from poise.performer import act
from poise.priors.local.prior import LocalPrior
from poise.studio import messages as said
from poise.studio import security
from poise.studio.autosave import Autosave
from poise.studio.listening import listen
from poise.studio.models import ModelStore
from poise.studio.panels.clips import put_on_timeline
from poise.studio.security import Access
from poise.studio.server import Studio, server_of
from poise.studio.session import Session
from poise.studio.uploads import Uploads

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

SOUND = {"requests": 0.5}  # share of undamaged inputs; 0.05 for others
PATIENCE = 0.2  # seconds without an answer after which nothing more is sent
DEFECTS = Path(__file__).parent / "defects"
HARM = (
    "/tmp",
    str(Path.home()),
    str(Path.cwd()),
    str(Path(__file__).parents[1]),
    "terminal",
)  # what no refusal may say
Try = Callable[[bytes], str]


class Target(NamedTuple):
    """Valid inputs, their use, and a generator of similar ones, if there are more than a few."""

    seeds: list[bytes]
    attempt: Try
    another: Callable[[np.random.Generator], bytes] | None = None


def main() -> int:
    """Run the fuzzer; return 1 if anything failed."""
    found = parser(__doc__, count=10_000)
    found.add_argument("--only", nargs="*", default=list(TARGETS), choices=list(TARGETS))
    options = found.parse_args()
    targets: dict[str, Target] = {}

    def prepare() -> None:
        """In the child: a fork takes no threads along."""
        os.environ["POISE_CACHE"] = own = tempfile.mkdtemp(dir=folder)
        place = Place(Path(own))
        targets.update({name: TARGETS[name](place) for name in options.only})
        for target in targets.values():  # what is compiled at first use must not count as slow
            for seed in target.seeds:
                with suppress(Exception):
                    target.attempt(seed)

    with tempfile.TemporaryDirectory() as folder:
        cases = {name: partial(_case, targets, name) for name in options.only}
        return 1 if run(cases, options, prepare=prepare) else 0


def _case(targets: dict[str, Target], name: str, generator: np.random.Generator, folder: Path) -> str:
    """Try one of the seeds, seldom unchanged."""
    target = targets[name]
    seeds = target.seeds
    seed = target.another(generator) if target.another else seeds[int(generator.integers(len(seeds)))]
    data = seed if generator.random() < SOUND.get(name, 0.05) else Mutator(generator, tuple(seeds))(seed)
    (folder / "input").write_bytes(data)
    return target.attempt(data)


class Place:
    """A listening studio, a session beside it, and their tokens."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.walk = folder, act("walk", seconds=2.0, fps=20)
        self.local = LocalPrior.learn([self.walk])
        self.models = ModelStore()
        self.models.add(self.local, "steps")
        self.session = Session(self.models, Uploads(), Autosave(folder / "kept"))
        put_on_timeline(self.session, self.walk, "walk.bvh")
        self.ports = [self._started(Access()), self._started(Access("0.0.0.0", TOKEN))]
        self.errors = Errors()  # after the servers have set up their logs
        self.address = f"http://127.0.0.1:{self.ports[0]}"

    def _started(self, access: Access) -> int:
        """The port of one more studio."""
        listener = listen("127.0.0.1", 0)
        server = server_of(Studio(self.models, access=access))
        threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True).start()
        while not server.started:
            time.sleep(0.01)
        return int(listener.getsockname()[1])

    def exchanged(self, port: int, data: bytes) -> bytes:
        """A studio's answer to bytes, until it closes the connection."""
        answer = b""
        line = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        with line as client, suppress(TimeoutError, ConnectionError):  # hung up on
            client.sendall(data)
            with suppress(TimeoutError):
                while part := client.recv(65536):
                    answer += part
            client.shutdown(socket.SHUT_WR)  # whoever waits for more learns that there is none
            while part := client.recv(65536):
                answer += part
        self.errors.check()
        return answer


class Errors(logging.Handler):
    """Errors that servers wrote to their logs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._found: list[logging.LogRecord] = []
        for name in ("uvicorn.error", "poise.studio", "asyncio"):
            logging.getLogger(name).addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """One more."""
        self._found.append(record)

    def check(self) -> None:
        """Raise if there was an error since the last call."""
        found, self._found = self._found, []
        if found:
            raise AssertionError(f"an error in the server's log: {self.format(found[0])}")


def datagrams(place: Place) -> Target:
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
    return Target([*known, b'{"a": ' + b"[" * 30_000, *seeds, f"{header}\n{row}".encode()], attempt)


def scenes(place: Place) -> Target:
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

    return Target([whole, text, text], attempt)


def uploads(place: Place) -> Target:
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
        place.errors.check()
        return _answered(answer)

    return Target([content.getvalue(), b"HIERARCHY"], attempt)


def sound_messages() -> list[bytes]:
    hand = said.SceneHandle(id="hand", joint="left_hand", position=(0.2, 1.0, 0.1))
    key = said.Key(handle="hand", frame=5, position=(0.2, 1.0, 0.1))
    seeds: list[said.ClientMessage] = [
        said.PutHandle(handle=hand), said.Drag(seq=1, handle="hand", position=(0.3, 1.0, 0.2)), said.PutKey(key=key),
        said.SetFrame(frame=3), said.DragKey(seq=2, key=key), said.RemoveKey(handle="hand", frame=5), said.Undo(),
        said.SetTimeline(fps=20.0, frames=40), said.SetLookAt(target=(0.0, 1.0, 1.0)), said.Mirror(), said.Redo(),
        said.RemoveHandle(id="hand"), said.Cancel(task="export"), said.RenameModel(model="x", name="y"),
        said.OpenKept(token="x"), said.ChooseModel(model="plain"), said.ChooseModel(model="steps"),
    ]  # fmt: skip
    return [msgspec.msgpack.encode(message) for message in seeds]


def messages(place: Place) -> Target:
    session = place.session
    decoder = msgspec.msgpack.Decoder(said.ClientMessage)

    def attempt(data: bytes) -> str:
        try:
            answer = session.answer(decoder.decode(data))
        except (PoiseError, msgspec.DecodeError, UnicodeDecodeError) as error:
            return _refusal(said.Refusal(words=str(error), about=None, seq=None).words)
        poses = [message for message in answer if isinstance(message, said.SolvedPose)]
        if not all(np.isfinite(np.frombuffer(pose.world, "<f4")).all() for pose in poses):
            raise AssertionError("a pose that is not finite")
        return "taken"

    return Target(sound_messages(), attempt)


def frames(place: Place) -> Target:
    """Bytes of a websocket after a sound hello, to a session that is resumed; a message that is refused ends them."""
    hello = _frame(msgspec.msgpack.encode(said.Hello(protocol=said.PROTOCOL, token=_joined(place))))
    end = _frame(msgspec.msgpack.encode(said.RemoveHandle(id="the-end")))
    seeds = [_frame(message) for message in sound_messages()]
    seeds += [path.read_bytes() for path in sorted(DEFECTS.glob("*.frame"))]

    def attempt(data: bytes) -> str:
        address, answer = ("127.0.0.1", place.ports[0]), b""
        with socket.create_connection(address, timeout=LONGEST_SECONDS) as line, suppress(OSError):
            line.sendall(UPGRADE)
            line.recv(1000)
            line.sendall(hello + data + end)
            while b"the-end" not in answer and (part := line.recv(1 << 20)):
                answer += part
        place.errors.check()
        refused = [part for part in answer.split(b"\xa5error")[1:] if b"the-end" not in part]
        return _refusal(str(refused)) if refused else "taken"

    return Target(seeds, attempt)


def _frame(payload: bytes, kind: int = 0x82) -> bytes:
    """A frame of a client, under a mask of zeros."""
    size = len(payload)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2, "big")
    return bytes([kind]) + length + bytes(4) + payload


def requests(place: Place) -> Target:
    token, security.MOST_GUESSES = (
        _joined(place),
        sys.maxsize,
    )  # else nothing but "too many" would be answered
    known = [line for path in DEFECTS.glob("*.request") for line in path.read_bytes().splitlines()]
    another = partial(_request, paths=[*PATHS, *known], token=token.encode())
    seeds = [another(np.random.default_rng(number)) for number in range(20)]
    asked = [0]

    def attempt(data: bytes) -> str:
        asked[0] += 1
        answer = place.exchanged(place.ports[asked[0] % 2], data)
        if answer.startswith(b"HTTP/1.1 500"):
            raise AssertionError(f"HTTP 500 for {data[:120]!r}")
        taken = answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 101"))
        return "taken" if taken else _refusal(answer.decode("latin-1"))

    return Target(seeds, attempt, another)


def _request(odd: np.random.Generator, paths: list[bytes], token: bytes) -> bytes:
    """A whole request with some of what may be odd about one."""
    headers = [HEADERS[number] for number in odd.permutation(len(HEADERS))[: odd.integers(5)]]
    session = [b"X-Poise-Session: " + token] if odd.random() < 0.3 else []
    host = HOSTS[min(int(odd.exponential(1.0)), len(HOSTS) - 1)]
    body = BODIES[int(odd.integers(len(BODIES)))]
    length = [b"Content-Length: %d" % len(body)] if odd.random() < 0.7 else []
    lines = [b"Host: " + host, *headers, *session, *length, b"Connection: close"]
    way = WAYS[int(odd.integers(len(WAYS)))]
    first = b"%s %s HTTP/1.1" % (way, paths[int(odd.integers(len(paths)))])
    return b"\r\n".join([first, *lines, b"", body])


TOKEN = "a-token-that-nobody-guesses"
WAYS = [*[b"GET", b"POST"] * 6, b"HEAD", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"TRACE", b"get", b"X"]
HOSTS = (b"localhost", b"127.0.0.1:80", b"[::1]", b"evil.example", b"", b"[", b"localhost:99999999", b"\xff")
BODIES = (b"", b"HIERARCHY", b"PK\x03\x04" + bytes(60), b"5\r\nhello\r\n0\r\n\r\n", bytes(3000))
PATHS = [
    *[b"/", b"/index.html", b"/upload?name=a.bvh"] * 4,
    b"/ws", b"/ws?token=x", b"/?token=x", b"/?token=" + TOKEN.encode(), b"/?token=%00&token=",
    b"/upload", b"/upload?name=a.bvh", b"/upload?name=", b"/upload?name=a.zip", b"/upload?name=..%2f..%2fx.bvh",
    b"/upload?name=%00.bvh", b"/upload?name=" + b"a" * 300 + b".bvh", b"/upload?name=a.bvh&name=b.bvh",
    b"/upload?name=\xc3\xa9.bvh", b"/upload?name=CON.bvh", b"/upload/x", b"/files/abc/walk.bvh", b"/files/abc/",
    b"/files//", b"/files/..%2f..%2fetc/passwd", b"/files/%00/a", b"/../../etc/passwd", b"/%2e%2e/%2e%2e/etc/passwd",
    b"//etc/passwd", b"/assets/../../index.html", b"/%ff%fe", b"/" + b"a" * 5000, b"/%", b"*", b"http://localhost/",
    b"/index.html?" + b"a=" * 200, b"/assets", b"/index.html/", b"/;a=b", b"/index.html%00.png",
]  # fmt: skip
UPGRADE = (
    b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
HEADERS = [
    b"Origin: http://localhost", b"Origin: http://evil.example", b"Origin: null", b"Origin: [",
    b"Cookie: poise-studio=x",
    b"Cookie: poise-studio=" + TOKEN.encode(), b"Cookie: a=b; ;; =", b"Range: bytes=0-10", b"Range: bytes=9-1,5-5,-0",
    b"Range: lines=1", b"Range: bytes=" + b"0-0," * 500, b"If-None-Match: *", b"If-Modified-Since: never",
    b"If-Range: x", b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked", b"Content-Length: -1",
    b"Content-Length: 99999999999999999999", b"Expect: 100-continue", b"Upgrade: websocket", b"Connection: Upgrade",
    b"Sec-WebSocket-Key: x", b"Sec-WebSocket-Version: 99",
    b"Sec-WebSocket-Extensions: permessage-deflate; x=" + b"1" * 99,
    b"Sec-WebSocket-Protocol: a, b", b"X-Poise-Session: x", b"X-Poise-Session: \xff",
    b"Content-Type: multipart/form-data",
    b"X-Forwarded-For: 1.2.3.4, x", b"X-Forwarded-Proto: \x01", b"Accept-Encoding: " + b"gzip;q=0," * 200,
]  # fmt: skip
TARGETS = {
    function.__name__: function for function in (datagrams, scenes, uploads, messages, frames, requests)
}


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
