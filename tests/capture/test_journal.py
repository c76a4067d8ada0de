"""Takes that are written as they come, and brought back where something cut them off."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from poise import performer
from poise.capture.journal import Journal, brought_back, cut_off, journal_of
from poise.capture.matching import WITH_HEAD, marker_layout
from poise.errors import ParseError
from poise.formats import read
from poise.motion import Markers, Motion
from poise.motion.virtual_markers import virtual_markers
from poise.priors.local.prior import LocalPrior
from poise.priors.model_file import save
from poise.solvers.solution import Solution, Status


@pytest.fixture(scope="module")
def walk() -> Motion:
    return performer.act("walk", seconds=3.0, fps=30, seed=1)


@pytest.fixture(scope="module")
def prior(walk: Motion) -> LocalPrior:
    return LocalPrior.learn([walk])


def frame_of(prior: LocalPrior, number: int) -> Solution:
    q = prior.examples.q[number]
    return Solution(q, prior.space, tuple, Status.REACHED, 0, 0.0)


def test_frames_are_there_before_the_end(prior: LocalPrior, tmp_path: Path) -> None:
    output = tmp_path / "take.bvh"
    with Journal(output, fps=30.0) as journal:
        for number in range(20):
            journal.add(frame_of(prior, number), number / 30)
        assert cut_off(journal_of(output)) is None  # somebody writes it
    motion = cut_off(journal_of(output))
    assert motion is not None
    assert (len(motion), motion.fps) == (20, 30.0)
    np.testing.assert_array_equal(motion.rotations[7], frame_of(prior, 7).pose.rotations)


def test_a_row_that_was_cut_off_and_a_rate_that_nobody_said(prior: LocalPrior, tmp_path: Path) -> None:
    output = tmp_path / "take.bvh"
    with Journal(output) as journal:
        for number in range(20):
            journal.add(frame_of(prior, number), number / 25)
    path = journal_of(output)
    path.write_bytes(path.read_bytes()[:-100])
    found = brought_back(output)
    assert found == (tmp_path / "take-recovered.bvh", 19)
    assert read(found[0]).fps == 25.0
    assert brought_back(output) is None


def test_a_take_that_was_saved_leaves_no_journal(prior: LocalPrior, tmp_path: Path) -> None:
    with Journal(tmp_path / "take.bvh") as journal:
        journal.add(frame_of(prior, 0), 0.0)
        journal.close(saved=True)
    assert list(tmp_path.iterdir()) == []
    with Journal(None) as nowhere:
        nowhere.add(frame_of(prior, 0), 0.0)


@pytest.mark.parametrize("content", [b"", b"{}\n", b"nonsense", b'{"names": ["a"]}\n'])
def test_what_is_no_journal_says_so(tmp_path: Path, content: bytes) -> None:
    path = journal_of(tmp_path / "take.bvh")
    path.write_bytes(content)
    with pytest.raises(ParseError, match=r"take\.bvh\.journal"):
        cut_off(path)


def test_a_performance_that_was_killed_is_brought_back(
    walk: Motion, prior: LocalPrior, tmp_path: Path
) -> None:
    with _performing(walk, prior, tmp_path) as process:
        os.kill(process.pid, signal.SIGKILL)
    assert not (tmp_path / "take.bvh").exists()
    found = brought_back(tmp_path / "take.bvh")
    assert found is not None
    assert found[1] == 30


@pytest.mark.slow
def test_a_performance_that_nobody_listens_to_is_saved(
    walk: Motion, prior: LocalPrior, tmp_path: Path
) -> None:
    with _performing(walk, prior, tmp_path) as process:
        assert process.stderr is not None
        process.stderr.close()
        os.kill(process.pid, signal.SIGINT)
    assert len(read(tmp_path / "take.bvh")) == 30
    assert not journal_of(tmp_path / "take.bvh").exists()


@contextmanager
def _performing(walk: Motion, prior: LocalPrior, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A performance of `take.bvh` that has answered thirty frames; at the end it is waited for."""
    save(prior, folder / "walk.poise")
    markers = virtual_markers(walk, marker_layout(walk.skeleton, WITH_HEAD))
    command = [sys.executable, "-m", "poise", "perform", str(folder / "walk.poise"), "udp:0"]
    with (
        subprocess.Popen(
            [*command, "-o", str(folder / "take.bvh")], stderr=subprocess.PIPE, text=True
        ) as process,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        port = _port(process)
        sender.settimeout(60.0)
        for frame in range(30):
            sender.sendto(_line(markers, frame), ("127.0.0.1", port))
            sender.recv(65536)
        yield process


def _line(markers: Markers, frame: int) -> bytes:
    return json.dumps(dict(zip(markers.labels, markers.points[frame].tolist(), strict=True))).encode()


def _port(process: subprocess.Popen[str]) -> int:
    assert process.stderr is not None
    until = time.monotonic() + 120.0
    for line in process.stderr:
        if "listening on" in line:
            return int(line.split()[-1].rpartition(":")[2])
        assert time.monotonic() < until
    raise AssertionError("it never listened")
