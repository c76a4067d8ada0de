"""The studio over its socket: people apart from each other, reconnecting, and all that is refused."""

from __future__ import annotations

import asyncio
import errno
import gc
import io
import logging
import os
import resource
import select
import socket
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NoReturn
from weakref import ref

import httpx
import msgspec
import numpy as np
import pytest
from h11 import LocalProtocolError
from websockets.exceptions import ConnectionClosed, InvalidStatus

from full_disk import full_disk
from poise.formats import write
from poise.motion.motion import Motion
from poise.performer import act
from poise.studio import connection, listening, memory
from poise.studio import messages as said
from poise.studio import uploads as uploads_module
from poise.studio.connection import Connection, Inbox, Sessions
from poise.studio.jobs import Done, Report, Steps
from poise.studio.layers import Layers, held
from poise.studio.listening import MOST_UNREAD, PageProtocol, listen
from poise.studio.models import ModelStore
from poise.studio.security import Access
from poise.studio.session import Session
from poise.studio.timeline_script import AT_ONCE, TimelinePlan
from poise.studio.uploads import OwnFolder, RefusedUploadError, Uploads
from running_studio import PATIENCE, Page, Running, running, wait_until

HAND = said.SceneHandle(id="hand", joint="left_hand")


@pytest.fixture
def studio(models: ModelStore) -> Iterator[Running]:
    with running(models) as started:
        yield started


@pytest.fixture
def page(studio: Running) -> Iterator[Page]:
    with studio.page() as page:
        page.hello()
        yield page


@pytest.fixture
def small_page(models: ModelStore, tmp_path: Path) -> Iterator[Running]:
    """With a page, however small."""
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "index.html").write_text("the page")
    with running(models, page=tmp_path / "dist") as started:
        yield started


def still_well(studio: Running) -> None:
    with studio.page() as page:
        page.hello()
        page.say(said.PutHandle(handle=HAND))
        assert page.hear_until(said.SceneChanged).scene.handles[0].joint == "LeftHand"


def upload(studio: Running, token: str, name: str, content: bytes) -> httpx.Response:
    return httpx.post(
        f"{studio.address}/upload", params={"name": name}, content=content, headers={"X-Poise-Session": token}
    )


def test_a_hand_is_dragged(page: Page) -> None:
    page.say(said.PutHandle(handle=HAND))
    x, y, z = page.hear_until(said.SceneChanged).scene.handles[0].position or (0.0, 0.0, 0.0)
    for number in range(1, 20):
        page.say(said.Drag(seq=number, handle="hand", position=(x, y + 0.01 * number, z), last=number == 19))
    scene = page.hear_until(said.SceneChanged)
    assert scene.scene.undo == 2
    assert page.hear_until(said.SolvedPose).status == "reached"


def test_people_do_not_see_each_other(studio: Running) -> None:
    with studio.page() as one, studio.page() as other:
        assert one.hello().token != other.hello().token
        one.say(said.PutHandle(handle=HAND))
        one.hear_until(said.SceneChanged)
        other.say(said.SetFeet(feet="free"))
        assert other.hear_until(said.SceneChanged).scene.handles == []


def test_a_lost_connection_finds_its_scene_again(studio: Running) -> None:
    with studio.page() as page:
        token = page.hello().token
        page.say(said.PutHandle(handle=HAND))
        page.hear_until(said.SceneChanged)
    with studio.page() as again:
        again.say(said.Hello(protocol=said.PROTOCOL, token=token))
        assert again.hear_until(said.Welcome).resumed
        assert [handle.id for handle in again.hear_until(said.SceneChanged).scene.handles] == ["hand"]


def test_a_page_that_is_gone_leaves_no_solver_in_memory(session: Session) -> None:
    session.answer(said.PutHandle(handle=HAND))
    session.answer(said.Drag(seq=1, handle="hand", position=(0.3, 1.5, 0.4), last=True))
    shown, solver = session.pose(fine=True), ref(session.poser._posture.last)
    session.rest()
    gc.collect()
    assert solver() is None
    assert session.pose(fine=True) == shown
    session.answer(said.Drag(seq=2, handle="hand", position=(0.3, 1.4, 0.4), last=True))


def test_memory_is_trimmed_from_time_to_time(models: ModelStore, monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed = list[float]()
    monkeypatch.setattr(memory, "TRIM_EVERY", 0.01)
    monkeypatch.setattr(memory, "trim_memory", lambda: trimmed.append(time.monotonic()))
    with running(models):
        wait_until(lambda: len(trimmed) > 2)


def test_what_pages_left_behind_goes_to_disk_where_it_holds_much(
    models: ModelStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "NEARBY", 0.0)
    uploads = Uploads()
    known = Sessions(models, uploads)

    async def left() -> Session:
        session, _ = known.open(None, page := Connection(None, known, None))
        with_motion = session.state.with_(layers=Layers(held(session.state.pose, 90, 30.0)))
        session.commit(with_motion)
        assert session.held_bytes == with_motion.motion.rotations.nbytes + 90 * 3 * 8
        known.leave(session, page)
        return session

    session, autosave = asyncio.run(left()), known._autosave
    autosave.flush()
    known._forget()
    assert session.token in known  # as it fits
    monkeypatch.setattr(connection, "MOST_LEFT_BYTES", session.held_bytes - 1)
    autosave.keep(session.token, session.files, session.state)
    with autosave._writing:  # what is not on disk yet stays
        known._forget()
    assert session.token in known
    autosave.flush()
    known._forget()
    assert session.token not in known
    again, resumed = known.open(session.token, None)
    assert not resumed
    assert again.restore()
    assert again.token == session.token
    np.testing.assert_allclose(again.motion.rotations, session.motion.rotations, atol=1e-6)
    known.close()
    uploads.close()


def test_a_studio_that_was_killed_finds_its_scenes_again(models: ModelStore) -> None:
    with running(models) as studio, studio.page() as page:
        token = page.hello().token
        page.say(said.PutHandle(handle=HAND))
        page.hear_until(said.SceneChanged)
    with running(models) as studio, studio.page() as page:
        page.say(said.Hello(protocol=said.PROTOCOL, token=token))
        welcome = page.hear_until(said.Welcome)
        assert (welcome.resumed, welcome.token) == (True, token)
        assert [handle.id for handle in page.hear_until(said.SceneChanged).scene.handles] == ["hand"]
    with running(models) as studio, studio.page() as page:
        page.say(said.Hello(protocol=said.PROTOCOL, token="somebody else's"))
        assert not page.hear_until(said.Welcome).resumed


def test_the_newest_connection_of_a_session_wins(studio: Running) -> None:
    with studio.page() as page:
        token = page.hello().token
        with studio.page() as newer:
            newer.hello(token)
            with pytest.raises(ConnectionClosed):
                page.socket.recv(timeout=PATIENCE)
            newer.say(said.PutHandle(handle=HAND))
            newer.hear_until(said.SceneChanged)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not understood"),
        (b"\xc1\xff\x00", "not understood"),
        (b"\x93" * 5000, "not understood"),
        (msgspec.msgpack.encode({"type": "drag", "seq": 1}), "handle"),
        (
            msgspec.msgpack.encode({"type": "drag", "seq": 1, "handle": "x", "position": [float("nan")] * 3}),
            "position",
        ),
        (
            msgspec.msgpack.encode({"type": "learn", "name": "x", "kind": "style", "uploads": ["a"] * 99}),
            "length",
        ),
        ("text", "binary"),
    ],
)
def test_malformed_messages_are_refused_and_the_connection_lives_on(
    page: Page, data: bytes | str, why: str
) -> None:
    page.socket.send(data)
    refusal = page.hear()
    assert isinstance(refusal, said.Refusal)
    assert why in refusal.words
    page.say(said.PutHandle(handle=HAND))
    page.hear_until(said.SceneChanged)


def test_a_message_that_is_too_large_ends_only_its_own_connection(studio: Running) -> None:
    with studio.page() as page:
        page.hello()
        # The head of a message that says it is too large: refused before any of it is taken.
        page.socket.socket.sendall(b"\x82\xff" + (3_000_000).to_bytes(8, "big") + bytes(4))
        with pytest.raises(ConnectionClosed) as closed:
            page.socket.recv(timeout=PATIENCE)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009
    still_well(studio)


def test_a_connection_begins_with_hello(studio: Running) -> None:
    with studio.page() as page:
        page.say(said.Undo())
        refusal = page.hear()
        assert isinstance(refusal, said.Refusal)
        assert refusal.words == "a connection begins with hello"
        page.say(said.Hello(protocol=99))
        refusal = page.hear()
        assert isinstance(refusal, said.Refusal)
        assert "reload the page" in refusal.words
        page.hello()


def test_what_comes_out_of_order_is_refused(page: Page) -> None:
    page.say(said.PutHandle(handle=HAND))
    page.hear_until(said.SolvedPose)
    for seq in (7, 3):
        page.say(said.Drag(seq=seq, handle="hand", position=(0.3, 1.0, 0.2), last=True))
    page.hear_until(said.SolvedPose)
    refusal = page.hear()
    assert isinstance(refusal, said.Refusal)
    assert (refusal.seq, refusal.about) == (3, "drag")


def test_a_flood_is_answered_by_the_newest(page: Page) -> None:
    page.say(said.PutHandle(handle=HAND))
    page.hear_until(said.SolvedPose)
    for number in range(1, 2001):
        page.say(
            said.Drag(seq=number, handle="hand", position=(0.3, 1.0 + number / 1e4, 0.2), last=number == 2000)
        )
    answers = 0
    while not (pose := page.hear_until(said.SolvedPose)).fine:
        answers += 1
    assert pose.seq == 2000
    assert answers < 2000


def test_a_page_is_read_on_until_the_studio_is_behind(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    received, paused, free = PageProtocol.send_receive_event_to_app, list[bool](), asyncio.Event()
    take = Connection._next

    def noted(self: PageProtocol) -> None:
        received(self)
        paused.append(self.read_paused)

    async def when_free(self: Connection) -> tuple[said.ClientMessage, int]:
        await free.wait()
        return await take(self)

    monkeypatch.setattr(PageProtocol, "send_receive_event_to_app", noted)
    page.say(said.PutHandle(handle=HAND))
    page.hear_until(said.SolvedPose)
    assert paused == [False]
    monkeypatch.setattr(Connection, "_next", when_free)
    for number in range(1, MOST_UNREAD + 4):
        page.say(said.Drag(seq=number, handle="hand", position=(0.3, 1.0, 0.2)))
        wait_until(lambda number=number: len(paused) > min(number, MOST_UNREAD + 2))
    assert paused[1:] == [False] * (MOST_UNREAD + 1) + [True]


def a_range(first: int, frames: int, *, size: int = 10, fine: bool = False) -> said.MotionRange:
    return said.MotionRange(
        seq=0, fine=fine, first=first, frames=frames, world=bytes(size), path_handles=[], paths=b"", unmet=[]
    )


def test_of_what_waits_to_be_sent_the_newest_is_kept() -> None:
    async def queued(*said_in_order: said.ServerMessage) -> tuple[list[said.ServerMessage], int]:
        own = Connection(None, None, None)
        own.say(*said_in_order)
        return [message for message, _ in own._unsent], own.unsent_bytes

    around, newest, elsewhere, solved = (
        a_range(4, 30),
        a_range(0, 40),
        a_range(50, 5),
        a_range(0, 40, fine=True),
    )
    kept, size = asyncio.run(queued(around, newest))
    assert kept == [newest]
    assert size == len(msgspec.msgpack.encode(newest))
    for ranges in ((newest, around), (newest, elsewhere), (solved, newest)):
        assert asyncio.run(queued(*ranges))[0] == list(ranges)


def test_a_page_that_does_not_read_is_sent_away_before_it_costs_memory(
    studio: Running, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MOST_UNSENT_BYTES", 4_000_000)
    most, say = [0], Connection.say

    def watched(own: Connection, *messages: said.ServerMessage) -> None:
        say(own, *messages)
        most[0] = max(most[0], own.unsent_bytes)

    monkeypatch.setattr(Connection, "say", watched)
    with studio.page(max_queue=1) as slow:
        token = slow.hello().token
        (session,) = [each for each in studio.studio.sessions.everyone() if each.token == token]
        for number in range(200):
            session.post(a_range(600 * number, 600, size=500_000, fine=True))
        wait_until(lambda: session.outlet is None)
        assert most[0] <= 4_000_000
        page.say(said.PutHandle(handle=HAND))
        page.hear_until(said.SolvedPose)


def test_tasks_wait_while_a_page_does_not_read(session: Session) -> None:
    asked, steps = [], []

    def backlog() -> int:
        asked.append(True)
        return 10**9 if len(asked) < 20 else 0

    def work(_report: Report) -> Steps:
        for _ in range(3):
            steps.append(len(asked))
            yield
        return Done(list)

    session.backlog = backlog
    session.jobs.start("test", "testing", work)
    wait_until(lambda: session.jobs.idle)
    assert len(steps) == 3
    assert steps[0] >= 20


def test_a_page_that_waited_for_others_is_answered_by_its_newest(
    studio: Running, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    free, answer, held = threading.Event(), Session.answer, threading.Semaphore(0)
    put, arrived = Inbox.put, threading.Semaphore(0)

    def held_up(session: Session, message: said.ClientMessage) -> list[said.ServerMessage]:
        if isinstance(message, said.Mirror):
            held.release()
            free.wait()
        return answer(session, message)

    def noted(inbox: Inbox, message: said.ClientMessage, size: int = 0) -> None:
        put(inbox, message, size)
        if isinstance(message, said.Drag):
            arrived.release()

    monkeypatch.setattr(Inbox, "put", noted)
    monkeypatch.setattr(Session, "answer", held_up)
    page.say(said.PutHandle(handle=said.SceneHandle(id="hand", joint="left_hand")))
    page.hear_until(said.SceneChanged)
    with ExitStack() as others:
        for _ in range(max(2, os.cpu_count() or 2)):  # every thread that answers has something to do
            other = others.enter_context(studio.page())
            other.hello()
            other.say(said.Mirror())
            assert held.acquire(timeout=PATIENCE)
        for number in (1, 2, 3):
            page.say(said.Drag(seq=number, handle="hand", position=(0.3, 1.0, 0.1 * number)))
            assert arrived.acquire(timeout=PATIENCE)
        free.set()
        poses = [page.hear_until(said.SolvedPose)]
        while poses[-1].seq < 3:
            poses.append(page.hear_until(said.SolvedPose))
    assert [pose.seq for pose in poses if pose.seq] == [3]


def test_a_long_timeline_does_not_keep_others_waiting(
    studio: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    solved, working, answered, in_time = (
        TimelinePlan.solved,
        threading.Event(),
        threading.Event(),
        list[bool](),
    )

    def held_up(plan: TimelinePlan, *spans: Any, **options: Any) -> Motion:
        if threading.current_thread().name.startswith("poise-job"):
            working.set()
            in_time.append(answered.wait(PATIENCE))
        return solved(plan, *spans, **options)

    monkeypatch.setattr(TimelinePlan, "solved", held_up)
    with studio.page() as animator, studio.page() as poser:
        for page in (animator, poser):
            page.hello()
            page.say(said.PutHandle(handle=said.SceneHandle(id="hand", joint="left_hand")))
            page.hear_until(said.SceneChanged)
        animator.say(said.SetTimeline(fps=30.0, frames=36_000))
        animator.say(said.PutKey(key=said.Key(handle="hand", frame=5, position=(0.3, 1.2, 0.2))))
        assert animator.hear_until(said.MotionRange).frames <= AT_ONCE  # all that its request has solved
        assert working.wait(PATIENCE)
        for number in range(30):
            drag = said.Drag(seq=number, handle="hand", position=(0.3, 1.2 + 0.01 * number, 0.2))
            poser.say(drag)
            while poser.hear_until(said.SolvedPose).seq < number:
                pass
        answered.set()  # all of them, while a piece of the timeline was being solved
        assert animator.hear_until(said.Progress).share > 0.0
        assert not all(session.jobs.idle for session in studio.studio.sessions.everyone())
        assert all(in_time)
        animator.say(said.Cancel(task="solveTimeline"))


def test_the_socket_sends_at_once() -> None:
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0


# --- who may talk to it ---------------------------------------------------------------------------------------------


def test_a_page_from_elsewhere_is_refused(studio: Running) -> None:
    with pytest.raises(InvalidStatus) as refused, studio.page(origin="https://elsewhere.example"):
        pass
    assert refused.value.response.status_code == 403
    assert b"https://elsewhere.example may not use this studio" in (refused.value.response.body or b"")
    with studio.page(origin=f"http://127.0.0.1:{studio.port}") as page:
        page.hello()


def test_a_name_made_to_point_here_is_refused(studio: Running) -> None:
    answer = httpx.get(studio.address, headers={"Host": "rebound.example"})
    assert answer.status_code == 403
    assert "rebound.example" in answer.text
    assert httpx.get(studio.address, headers={"Host": f"localhost:{studio.port}"}).status_code != 403


def test_off_loopback_a_token_is_asked_for(models: ModelStore, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("the page")
    with running(models, access=Access("0.0.0.0", "secret"), page=tmp_path) as studio:
        assert httpx.get(studio.address).status_code == 403
        assert "asks for its token" in httpx.get(f"{studio.address}/?token=guess").text
        with pytest.raises(InvalidStatus), studio.page():
            pass
        with httpx.Client(follow_redirects=True) as browser:
            shown = browser.get(f"{studio.address}/?token=secret")
            assert shown.text == "the page"
            assert str(shown.url) == f"{studio.address}/"
            cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        with studio.page(additional_headers={"Cookie": cookie}) as page:
            page.hello()


# --- pages and files ------------------------------------------------------------------------------------------------


def test_a_page_that_is_not_built_says_so(models: ModelStore, tmp_path: Path) -> None:
    with running(models, page=tmp_path / "nothing") as studio:
        answer = httpx.get(studio.address)
        assert answer.status_code == 503
        assert "make setup" in answer.text


def test_the_page_and_nothing_else_is_served(models: ModelStore, tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "index.html").write_text("the page")
    (tmp_path / "secret.txt").write_text("secret")
    with running(models, page=tmp_path / "dist") as studio:
        answer = httpx.get(studio.address)
        assert answer.text == "the page"
        assert "default-src 'self'" in answer.headers["content-security-policy"]
        for path in ("/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "//etc/passwd", "/nothing"):
            assert httpx.get(f"{studio.address}{path}").status_code == 404


def test_a_model_is_learned_from_a_dropped_clip_and_the_result_exported(
    studio: Running, tmp_path: Path
) -> None:
    clip = write(act("kick", seconds=1.0, fps=20), tmp_path / "kick.bvh")
    with studio.page() as page, studio.page() as other:
        other.hello()
        token = page.hello().token
        dropped = upload(studio, token, "kick.bvh", clip.read_bytes()).json()["upload"]
        page.say(said.Learn(name="my kick", kind="style", uploads=[dropped]))
        models = page.hear_until(said.Models).models
        assert "my-kick" in [model.id for model in models]
        assert page.hear_until(said.SceneChanged).scene.model == "my-kick"
        page.say(said.Export(format="glb"))
        ready = page.hear_until(said.FileReady)
        content = httpx.get(f"{studio.address}/{ready.address}").content
        assert content.startswith(b"glTF")
        assert len(content) == ready.size
        other.say(said.ChooseModel(model="my-kick"))
        refusal = other.hear()
        assert isinstance(refusal, said.Refusal)


def test_uploads_are_their_owners_alone(studio: Running, tmp_path: Path) -> None:
    clip = write(act("kick", seconds=1.0, fps=20), tmp_path / "kick.bvh")
    with studio.page() as page:
        dropped = upload(studio, page.hello().token, "kick.bvh", clip.read_bytes()).json()["upload"]
        with studio.page() as thief:
            thief.hello()
            thief.say(said.Learn(name="mine", kind="style", uploads=[dropped]))
            refusal = thief.hear()
            assert isinstance(refusal, said.Refusal)
            assert "uploaded file" in refusal.words
    assert upload(studio, "no session", "kick.bvh", b"x").status_code == 403


def post(studio: Running, token: str, *, length: int, most: int) -> str:
    """The answer to an upload of that length, of which no more than so much is ever sent."""
    head = (
        f"POST /upload?name=big.bvh HTTP/1.1\r\nHost: 127.0.0.1:{studio.port}\r\n"
        f"X-Poise-Session: {token}\r\nContent-Length: {length}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", studio.port), timeout=PATIENCE) as client:
        client.sendall(head.encode())
        for _ in range(most // 100_000):
            client.sendall(bytes(100_000))
        answer = b""
        while part := client.recv(10_000):
            answer += part
        return answer.decode()


def test_two_gigabytes_are_refused_before_they_arrive(studio: Running) -> None:
    with studio.page() as page:
        answer = post(studio, page.hello().token, length=2 * 10**9, most=0)
        assert answer.startswith("HTTP/1.1 413")
        assert "big.bvh is too large: 2000 MB or more; a file may have 500 MB" in answer
    still_well(studio)


def test_an_upload_is_cut_off_where_it_grows_too_large(studio: Running) -> None:
    studio.studio.uploads.largest = 150_000
    with studio.page() as page:
        token = page.hello().token
        chunked = httpx.post(
            f"{studio.address}/upload?name=big.bvh",
            headers={"X-Poise-Session": token},
            content=iter([bytes(100_000)] * 2),
        )
        assert chunked.status_code == 413
        assert len(studio.studio.uploads) == 0
        assert list(studio.studio.uploads.folder(token).iterdir()) == []
    still_well(studio)


@pytest.mark.parametrize(
    "name",
    [
        "../walk.bvh",
        "/etc/walk.bvh",
        "..\\walk.bvh",
        "C:walk.bvh",
        ".walk.bvh",
        "walk.exe",
        "",
        "a\0.bvh",
        "x" * 300 + ".bvh",
    ],
)
def test_path_tricks_in_names_are_refused(studio: Running, name: str) -> None:
    with studio.page() as page:
        answer = upload(studio, page.hello().token, name, b"HIERARCHY")
        assert answer.status_code == 413
        assert len(studio.studio.uploads) == 0


def zipped(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return content.getvalue()


def test_an_archive_of_clips_is_unpacked(studio: Running) -> None:
    with studio.page() as page:
        archive = zipped({"clips/a.bvh": b"HIERARCHY a", "clips/b.amc": b":FULLY-SPECIFIED"})
        answer = upload(studio, page.hello().token, "clips.zip", archive).json()
        assert [file["name"] for file in answer["files"]] == ["a.bvh", "b.amc"]


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"bomb.bvh": bytes(60_000_000)}, "far more than an archive of its size"),
        ({"../../evil.bvh": b"x"}, "points outside"),
        ({"C:/evil.bvh": b"x"}, "points outside"),
        ({"inner.zip": b"x"}, "another archive"),
        ({"a.bvh": b"x", "tool.exe": b"x"}, "cannot be used here"),
        ({f"{number}.bvh": b"" for number in range(600)}, "holds 600 files"),
        ({}, "holds 0 files"),
    ],
)
def test_hostile_archives_are_refused_and_leave_nothing(
    studio: Running, files: dict[str, bytes], why: str
) -> None:
    with studio.page() as page:
        token = page.hello().token
        answer = upload(studio, token, "clips.zip", zipped(files))
        assert answer.status_code == 413
        assert why in answer.text
        assert list(studio.studio.uploads.folder(token).iterdir()) == []
    still_well(studio)


def test_what_is_no_archive_is_refused(studio: Running) -> None:
    with studio.page() as page:
        answer = upload(studio, page.hello().token, "clips.zip", os.urandom(1000))
        assert answer.status_code == 413
        assert "cannot be unpacked" in answer.text
    assert uploads_module.MOST_TIMES > 1


@pytest.mark.parametrize("count", [20, pytest.param(150, marks=pytest.mark.slow)])
def test_damaged_archives_are_refused_and_take_nothing_along(studio: Running, count: int) -> None:
    rng = np.random.default_rng(0)
    good = zipped({"a.bvh": rng.bytes(3000), "b.bvh": b"HIERARCHY" * 500})
    with studio.page() as page:
        token = page.hello().token
        folder = studio.studio.uploads.folder(token)
        for number in range(count):
            damaged = bytearray(good)
            for place in rng.integers(0, len(good), 1 + number % 5):
                damaged[place] ^= int(rng.integers(1, 256))
            answer = upload(studio, token, "clips.zip", bytes(damaged[: len(good) - 7 * (number % 3)]))
            assert answer.status_code in (200, 413), answer.text
            assert "/tmp" not in answer.text
            if answer.status_code == 200:
                continue
            assert not [path for path in folder.iterdir() if path.suffix not in (".bvh", ".amc")]
    still_well(studio)


def test_a_bad_archive_leaves_what_was_there_before(studio: Running) -> None:
    with studio.page() as page:
        token = page.hello().token
        earlier = upload(studio, token, "a.bvh", b"HIERARCHY earlier").json()["upload"]
        damaged = zipped({"a.bvh": bytes(60_000_000)})
        assert upload(studio, token, "clips.zip", damaged).status_code == 413
        kept = studio.studio.uploads.find(earlier, owner=token)
        assert kept.path.read_bytes() == b"HIERARCHY earlier"
        assert [path.name for path in kept.path.parent.iterdir()] == ["a.bvh"]


def test_files_on_their_way_count_as_those_that_are_there() -> None:
    uploads = Uploads(most_bytes=250)
    first, second = (uploads.arriving(f"{number}.bvh", owner="me") for number in range(2))
    first.grow(200)
    with pytest.raises(RefusedUploadError, match="come at once"):
        second.grow(100)
    uploads.give_up(second)
    first.path.write_bytes(bytes(200))
    uploads.keep_arrived(first)
    third = uploads.arriving("2.bvh", owner="me")
    third.grow(100)
    assert len(uploads) == 0  # the older one made room
    uploads.close()


def test_a_full_disk_is_said(studio: Running) -> None:
    with studio.page() as page:
        token = page.hello().token
        with full_disk():
            answer = upload(studio, token, "a.bvh", b"HIERARCHY")
        assert answer.status_code == 507
        assert "cannot be stored" in answer.text
        assert upload(studio, token, "a.bvh", b"HIERARCHY").status_code == 200


def test_errors_name_files_without_their_folders(studio: Running) -> None:
    with studio.page() as page:
        token = page.hello().token
        folder = str(studio.studio.uploads.folder(token))
        for name, ask in (
            ("bad.bvh", said.OpenClip),
            ("bad.scene", said.OpenScene),
            ("bad.poise", said.OpenModel),
            ("bad.c3d", said.OpenTake),
        ):
            dropped = upload(studio, token, name, b"nonsense").json()["upload"]
            page.say(ask(upload=dropped))
            while not isinstance(refusal := page.hear(), said.Refusal):
                pass
            assert name in refusal.words
            assert folder not in refusal.words
            assert "/" not in refusal.words
    words = f"cannot read '{folder}/my walk.bvh' or C:\\Users\\me\\x.bvh; see and/or"
    assert said.without_folders(words) == "cannot read 'my walk.bvh' or x.bvh; see and/or"


def raw(studio: Running, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", studio.port), timeout=PATIENCE) as client:
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        answer = b""
        while part := client.recv(10_000):
            answer += part
    return answer


@pytest.mark.parametrize(
    "path",
    [
        *("/%00", "/%00.js", "/" + "a" * 5000, "/" + "a/" * 2000, "/%ff%fe", "/..%5c..%5c", "/files/%00/%00"),
        *(
            "/files/x/" + "y" * 4000,
            "/files/..%2f..%2fetc/passwd",
            "/ws",
            "/upload",
            "/upload?name=%00",
            "/~",
            "/.",
        ),
    ],
)
def test_odd_paths_are_not_there(small_page: Running, path: str) -> None:
    for method in ("GET", "HEAD", "POST", "PUT"):
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        status = raw(small_page, head.encode()).split(b" ", 2)[1:2]
        assert not status or not status[0].startswith(b"5"), (method, path, status)


@pytest.mark.parametrize(
    "header",
    [
        "Origin: http://[",
        "Host: [",
        "Cookie: \x7f=;;=\x01",
        "Content-Length: 9" + "9" * 5000,
        "X-Poise-Session: \xff",
    ],
)
def test_odd_headers_are_refused(small_page: Running, header: str) -> None:
    head = f"POST /upload?name=a.bvh HTTP/1.1\r\n{header}\r\nConnection: close\r\n\r\n"
    answer = raw(small_page, head.encode("latin-1"))
    assert not answer.startswith(b"HTTP/1.1 5"), answer


def test_what_is_not_http_leaves_no_traceback_in_the_log(
    small_page: Running, caplog: pytest.LogCaptureFixture
) -> None:
    raw(small_page, b"HEAD / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n")
    for error in (LocalProtocolError("cannot send a response when the connection must close"), ValueError()):
        logging.getLogger("uvicorn.error").error("Exception in ASGI application", exc_info=error)
    still_well(small_page)
    assert [record.exc_info and record.exc_info[0] for record in caplog.records] == [ValueError]


def test_text_that_is_not_utf_8_closes_the_page_and_leaves_no_traceback_in_the_log(
    small_page: Running, caplog: pytest.LogCaptureFixture
) -> None:
    with small_page.page() as page:
        page.socket.send(b"\x83", text=True)
        with pytest.raises(ConnectionClosed):
            page.socket.recv(timeout=PATIENCE)
    still_well(small_page)
    assert caplog.records == []


def test_wrong_tokens_are_counted(models: ModelStore, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("the page")
    with running(models, access=Access("0.0.0.0", "secret"), page=tmp_path) as studio:
        guesses = [httpx.get(f"{studio.address}/?token=guess{number}").status_code for number in range(12)]
        assert guesses == [403] * 10 + [429] * 2
        assert httpx.get(f"{studio.address}/?token=secret").status_code == 429


def test_wrong_tokens_do_not_lock_the_owner_out(models: ModelStore, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("the page")
    embedded = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}
    with running(models, access=Access("0.0.0.0", "secret"), page=tmp_path) as studio:
        for number in range(12):  # ten pictures of any web page, seen with the owner's browser or another
            answer = httpx.get(f"{studio.address}/?token=guess{number}", headers=embedded)
            assert answer.status_code == 403
        assert httpx.get(f"{studio.address}/?token=secret", headers=embedded).status_code == 403
        with httpx.Client(follow_redirects=True) as browser:
            assert browser.get(f"{studio.address}/?token=secret").text == "the page"
            for number in range(12):
                httpx.get(f"{studio.address}/?token=guess{number}")
            assert httpx.get(f"{studio.address}/?token=guess").status_code == 429
            assert browser.get(studio.address).text == "the page"
            cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
            with studio.page(additional_headers={"Cookie": cookie}) as page:
                page.hello()
        again = Access("0.0.0.0", "secret")  # after a restart
        assert again.has_cookie({"cookie": cookie})
        assert not Access("0.0.0.0", "another").has_cookie({"cookie": cookie})
        assert "secret" not in cookie


def test_silent_connections_keep_nobody_out(studio: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "MOST_STRANGERS", 10)
    monkeypatch.setattr(listening, "MOST_CONNECTIONS", 30)
    with studio.page() as page:
        page.hello()
        silent = [socket.create_connection(("127.0.0.1", studio.port), timeout=10) for _ in range(40)]
        try:
            still_well(studio)
            gone = [not select.select([one], [], [], 0)[0] for one in silent].count(False)
            assert gone >= 30
            page.say(said.SetLookAt(target=(0.0, 1.0, 2.0)))
            page.hear_until(said.SceneChanged)
        finally:
            for one in silent:
                one.close()


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n",
        b"POST /upload?name=a.bvh HTTP/1.1\r\nHost: localhost\r\nX-Poise-Session: %s\r\nContent-Length: 9\r\n\r\nabc",
    ],
    ids=["nothing", "headers", "body"],
)
def test_requests_that_are_never_finished_are_given_up(
    studio: Running, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(listening, "HEADERS_WITHIN", 0.3)
    monkeypatch.setattr(listening, "BODY_EVERY", 0.3)
    with studio.page() as page:
        token = page.hello().token
        with socket.create_connection(("127.0.0.1", studio.port), timeout=10) as slow:
            slow.sendall(begun.replace(b"%s", token.encode()))
            with suppress(ConnectionResetError):
                assert slow.recv(1000) == b""
        page.say(said.SetLookAt(target=(0.0, 1.0, 2.0)))
        page.hear_until(said.SceneChanged)
    assert not any(studio.studio.uploads.folder(token).glob(".*.part"))


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_sessions_leave_no_descriptors_behind(studio: Running) -> None:
    def visit(count: int) -> int:
        for _ in range(count):
            with studio.page() as page:
                page.hello()
                page.say(said.PutHandle(handle=HAND))
                page.hear_until(said.SceneChanged)
        wait_until(lambda: not studio.studio.sessions.everyone())
        return descriptors()

    first = visit(3)
    visit(12)
    wait_until(lambda: descriptors() <= first + 2)


def test_more_connections_than_there_is_room_for_do_no_harm(
    studio: Running, caplog: pytest.LogCaptureFixture
) -> None:
    used, (soft, hard) = descriptors(), resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 30, hard))
    idle = []
    try:
        for _ in range(25):
            try:
                idle.append(socket.create_connection(("127.0.0.1", studio.port), timeout=1))
            except OSError:
                break
        time.sleep(1.5)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for connection in idle:
            connection.close()
    cluster = ("tornado", "distributed")  # of other tests, in this process: it has no room either
    said = [record for record in caplog.records if not record.name.startswith(cluster)]
    assert sum(len(caplog.handler.format(record)) for record in said) < 10_000
    still_well(studio)


def test_a_listener_closes_no_file_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its spare descriptor is gone where another thread was faster, and the number may be any file's by then."""

    def full(*_: object) -> NoReturn:
        raise OSError(errno.EMFILE, "too many open files")

    with listen("127.0.0.1", 0) as listener:
        with monkeypatch.context() as crowded:
            crowded.setattr(socket.socket, "accept", full)
            crowded.setattr(os, "open", full)
            with pytest.raises(ConnectionAbortedError):
                listener.accept()
        with tempfile.TemporaryFile() as others:
            listener.close()
            others.write(b"still open")
            others.flush()


def test_what_a_killed_studio_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, other = tmp_path / "poise-studio-left", tmp_path / "poise-studio-new"
    for folder in (left, other):
        folder.mkdir()
    (left / ".lock").touch()
    living = OwnFolder()
    again = OwnFolder()
    assert not left.exists()
    assert other.exists()
    assert living.path.exists()
    for folder in (living, again):
        folder.close()


def test_the_oldest_uploads_make_room() -> None:
    uploads = Uploads(most_bytes=250)
    kept = []
    for number in range(4):
        path = uploads.folder("me") / f"{number}.bvh"
        path.write_bytes(bytes(100))
        kept.append(uploads.keep(path, owner="me"))
    assert len(uploads) == 2
    assert [upload.path.exists() for upload in kept] == [False, False, True, True]
    uploads.close()
