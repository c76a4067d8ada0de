"""`poise data`: the list, and a clip fetched from a server of our own."""

import http.server
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from poise.library import datasets
from poise.motion.cache import cache_folder


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def mirror(walk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A mirror with one clip, 91_02, which is not in the catalogue and so needs no known checksum."""
    (tmp_path / "served" / "091").mkdir(parents=True)
    (tmp_path / "served" / "091" / "91_02.bvh").write_bytes(walk.read_bytes())
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "served"))
    )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("POISE_DATA_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("POISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_list_can_be_searched(poise) -> None:
    done = poise("data", "list", "BOXING")
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == ["13_17", "13_18", "14_02", "14_03"]
    assert "mocap.cs.cmu.edu" in done.err


@pytest.mark.usefixtures("mirror")
def test_a_fetched_clip_is_printed_as_a_path_and_can_be_read(poise) -> None:
    done = poise("data", "get", "91_02")
    assert done.code == 0
    assert done.out == f"{cache_folder() / 'cmu' / '91_02.bvh'}\n"
    assert "NSF EIA-0196217" in done.err.replace("\n", " ")
    assert poise("info", done.out.strip()).code == 0


@pytest.mark.usefixtures("mirror")
def test_a_clip_that_is_not_there_is_one_line(poise) -> None:
    done = poise("data", "get", "07_01")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"poise: 127.0.0.1 answered 404 File not found for 07_01.bvh ({datasets.find('07_01')[0].url})\n"
    )


def test_unknown_names_list_the_subjects(poise) -> None:
    assert "valid: 02, 06, 07" in poise("data", "get", "everything").err


def test_it_asks_for_a_name(poise) -> None:
    assert "name a clip" in poise("data", "get").err
