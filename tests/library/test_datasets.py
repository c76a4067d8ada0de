"""The data sets against a server of our own on this machine, faults included; nothing outside is reached."""

import hashlib
import re
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from poise.errors import MissingExtraError, UnknownNameError, installing
from poise.library import datasets
from poise.library.datasets import DownloadError, RemoteClip
from poise.motion.cache import cache_folder

CONTENT = bytes(range(256)) * 1000
CLIP = RemoteClip("07_01", "walk", len(CONTENT), hashlib.sha256(CONTENT).hexdigest())


@dataclass
class Server:
    """What the test's server sends and how it misbehaves; `ranges` are the Range headers it was asked for."""

    files: dict[str, bytes] = field(default_factory=dict)
    cut_after: list[int] = field(default_factory=list)
    honours_ranges: bool = True
    answers: threading.Event = field(default_factory=threading.Event)
    ranges: list[str | None] = field(default_factory=list)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    state = Server(files={"/007/07_01.bvh": CONTENT})
    state.answers.set()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self, state)

        def log_message(self, *_: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("POISE_DATA_URL", f"http://127.0.0.1:{httpd.server_port}/")
    monkeypatch.setenv("POISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield state
    state.answers.set()
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def answer(request: BaseHTTPRequestHandler, state: Server) -> None:
    asked = request.headers.get("Range")
    state.ranges.append(asked)
    state.answers.wait()
    if request.path not in state.files:
        request.send_error(404)
        return
    content, start = state.files[request.path], 0
    if asked and state.honours_ranges:
        start = int(asked.removeprefix("bytes=").removesuffix("-"))
        if start >= len(content):
            request.send_error(416)
            return
        request.send_response(206)
        request.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
    else:
        request.send_response(200)
    request.send_header("Content-Length", str(len(content) - start))
    request.end_headers()
    keep = state.cut_after.pop(0) if state.cut_after else len(content)
    request.wfile.write(content[start : start + keep])


def files_in_cache() -> list[str]:
    return sorted(path.name for path in (cache_folder() / "cmu").iterdir())


def test_a_clip_is_fetched_once_and_then_kept(server: Server) -> None:
    assert datasets.fetch(CLIP).read_bytes() == CONTENT
    assert datasets.fetch(CLIP) == cache_folder() / "cmu" / "07_01.bvh"
    assert server.ranges == [None]
    assert files_in_cache() == ["07_01.bvh"]


@pytest.mark.usefixtures("server")
def test_progress_grows_to_the_whole_size() -> None:
    seen: list[tuple[int, int]] = []
    datasets.fetch(CLIP, progress=lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (len(CONTENT), len(CONTENT))


def test_a_cut_connection_is_taken_up_where_it_broke(server: Server) -> None:
    server.cut_after = [24 * 4096, 12 * 4096]
    assert datasets.fetch(CLIP).read_bytes() == CONTENT
    assert server.ranges == [None, f"bytes={24 * 4096}-", f"bytes={36 * 4096}-"]


def test_a_download_given_up_goes_on_at_the_next_call(server: Server) -> None:
    server.cut_after = [4096, 4096, 4096]
    with pytest.raises(
        DownloadError, match=r"interrupted after 12288 bytes of 07_01.bvh; run the same command"
    ):
        datasets.fetch(CLIP)
    assert files_in_cache() == ["07_01.bvh.part"]
    assert datasets.fetch(CLIP).read_bytes() == CONTENT
    assert server.ranges[-1] == "bytes=12288-"
    assert files_in_cache() == ["07_01.bvh"]


def test_a_server_that_ignores_ranges_is_read_from_the_start(server: Server) -> None:
    server.cut_after, server.honours_ranges = [4096], False
    assert datasets.fetch(CLIP).read_bytes() == CONTENT


@pytest.mark.usefixtures("server")
def test_a_part_longer_than_the_file_is_thrown_away() -> None:
    part = CLIP.path.with_name("07_01.bvh.part")
    part.parent.mkdir(parents=True)
    part.write_bytes(CONTENT + b"left over")
    assert datasets.fetch(CLIP).read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing_behind(server: Server) -> None:
    server.files["/007/07_01.bvh"] = CONTENT[::-1]
    with pytest.raises(
        DownloadError, match=r"07_01: the download from .* does not match the recorded checksum"
    ):
        datasets.fetch(CLIP)
    assert files_in_cache() == []


def test_more_bytes_than_catalogued_are_refused(server: Server) -> None:
    server.files["/007/07_01.bvh"] = CONTENT * 2
    with pytest.raises(DownloadError, match=f"sent more than the expected {len(CONTENT)} bytes of 07_01.bvh"):
        datasets.fetch(CLIP)
    assert files_in_cache() == []


@pytest.mark.usefixtures("server")
def test_a_damaged_file_in_the_cache_is_fetched_again() -> None:
    datasets.fetch(CLIP).write_bytes(b"damaged")
    assert datasets.fetch(CLIP).read_bytes() == CONTENT


def test_a_missing_file_says_so(server: Server) -> None:
    server.files.clear()
    with pytest.raises(DownloadError, match=r"127\.0\.0\.1 answered 404 Not Found for 07_01\.bvh"):
        datasets.fetch(CLIP)
    assert files_in_cache() == []


def test_a_silent_server_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.answers.clear()
    monkeypatch.setattr(datasets, "_TIMEOUT_S", 0.05)
    with pytest.raises(DownloadError, match=r"127\.0\.0\.1 did not answer within 0\.05 s"):
        datasets.fetch(CLIP)


@pytest.mark.usefixtures("server")
def test_offline_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    monkeypatch.setenv("POISE_DATA_URL", f"http://127.0.0.1:{port}")
    with pytest.raises(DownloadError, match=r"cannot reach 127.0.0.1: this machine is offline") as caught:
        datasets.fetch(CLIP)
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("server")
def test_a_nonsense_address_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POISE_DATA_URL", "not a url")
    with pytest.raises(DownloadError, match=r"cannot download not a url/007/07_01.bvh"):
        datasets.fetch(CLIP)


@pytest.mark.usefixtures("server")
def test_a_cache_that_cannot_be_written_names_the_way_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("POISE_CACHE", str(tmp_path / "file"))
    with pytest.raises(DownloadError, match=r"cannot write .*POISE_CACHE"):
        datasets.fetch(CLIP)


def test_a_clip_outside_the_catalogue_is_held_to_its_first_download(server: Server) -> None:
    (clip,) = datasets.find("91_02")
    server.files["/091/91_02.bvh"] = CONTENT
    path = datasets.fetch(clip)
    path.write_bytes(b"damaged")
    server.files["/091/91_02.bvh"] = b"changed at the source"
    with pytest.raises(DownloadError, match="does not match the recorded checksum"):
        datasets.fetch(clip)
    server.files["/091/91_02.bvh"] = CONTENT
    assert datasets.fetch(clip).read_bytes() == CONTENT


@pytest.mark.usefixtures("server")
def test_without_pooch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtraError, match=re.escape(installing("data"))):
        datasets.fetch(CLIP)


def test_the_catalogue_is_whole_and_its_checksums_are_checksums() -> None:
    clips = datasets.catalogue()
    assert len({clip.name for clip in clips}) == len(clips) == 209
    assert all(len(bytes.fromhex(clip.sha256)) == 32 and clip.bytes > 10_000 for clip in clips)
    assert all(clip.description for clip in clips)


def test_addresses_follow_the_mirrors_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POISE_DATA_URL", raising=False)
    (clip,) = datasets.find("124_01")
    assert clip.url == f"{datasets.MIRROR}/124/124_01.bvh"
    assert clip.sha256 == "eee88ea11954d3448e13c847a403ab9a88f264d575c21427f61e722bb0d3cd58"


@pytest.mark.parametrize(("name", "count"), [("07_01", 1), ("07", 12), ("7", 12), ("124", 13), ("131_14", 1)])
def test_names_are_clips_or_subjects(name: str, count: int) -> None:
    assert len(datasets.find(name)) == count


@pytest.mark.parametrize("name", ["", "999", "walk", "../07_01", "07_01.bvh"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(UnknownNameError, match="no clip"):
        datasets.find(name)
