"""Kills commands and the studio at random moments and looks at what is left: python fuzz/kills.py [--count 210]

A child is killed with SIGKILL after a random time, or as it is about to open, rename or remove a file. After that, what
it was to write is as it was before or as it should be, nothing is mixed, and of takes and scenes nothing that is older
than a second is missing. Then the same is done again, to its end: what is there is new, and no temporary file is left.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from poise import performer
from poise.apps.warm_up import warm_up
from poise.capture.matching import WITH_HEAD, marker_layout
from poise.cli import main as poise
from poise.formats import read, write
from poise.library.store import Library
from poise.motion.virtual_markers import virtual_markers
from poise.priors.local.prior import LocalPrior
from poise.priors.model_file import load, save

OLD_ENOUGH = 1.0  # seconds after which nothing may be lost, those aside in which others had the processor
FILE_EVENTS = ("os.rename", "os.remove", "os.mkdir", "os.chmod", "sqlite3.connect", "tempfile.mkstemp")
LONGEST_RUN = 120.0  # seconds of the processor, which a busy machine gives slowly
LONGEST_WAIT = 1800.0  # seconds of the clock
STRAYS = ("*.part", "*.pair", "*.journal", "*-journal", "*-wal")
WRITES = os.O_WRONLY | os.O_RDWR

Random = np.random.Generator


@dataclass(frozen=True)
class Moment:
    """When to kill: after some seconds, or at a numbered file change."""

    seconds: float = LONGEST_WAIT
    change: int = 0


class Scenario:
    """A scenario that writes files."""

    name: ClassVar[str]

    def __init__(self, shared: Path) -> None:
        self.shared = shared

    def prepare(self, folder: Path) -> None:
        """Create the initial files."""

    def act(self, folder: Path) -> None:
        """The work that is killed, in a separate process."""
        raise NotImplementedError

    def check(self, folder: Path) -> None:
        """Check what must hold after the kill."""

    def check_done(self, folder: Path) -> None:
        """Check what must hold once the same work has completed."""

    def attempt(self, folder: Path, generator: Random) -> bool:
        """Kill it once at a random moment, check, repeat and check; return whether the kill came before the end."""
        self.prepare(folder)
        killed = run(lambda: self.act(folder), self.moment(generator))
        self.check(folder)
        assert not run(lambda: self.act(folder), Moment())
        self.check_done(folder)
        left = [path.name for pattern in STRAYS for path in folder.rglob(pattern)]
        assert not left, f"left behind: {left}"
        return killed

    def moment(self, generator: Random) -> Moment:
        """A random moment of the complete run, which is measured once."""
        if not hasattr(self, "whole"):
            with tempfile.TemporaryDirectory() as name:
                self.prepare(Path(name))
                self.whole = measured(lambda: self.act(Path(name)))
        if generator.random() < 0.5:
            return Moment(change=int(generator.integers(1, self.whole.change + 1)))
        return Moment(seconds=float(generator.uniform(0.0, self.whole.seconds)))


class Output(Scenario):
    """A command with one output file, which exists before and is then replaced."""

    output: ClassVar[str]

    def command(self, folder: Path) -> list[Any]:
        """The command, without its name."""
        raise NotImplementedError

    def prepare(self, folder: Path) -> None:
        shutil.copy(self.before(), folder / self.output)

    def before(self) -> Path:
        """The older file."""
        return self.shared / f"old_{self.output}"

    def act(self, folder: Path) -> None:
        say_nothing()
        assert poise([str(part) for part in [*self.command(folder), "--overwrite"]]) == 0

    def check(self, folder: Path) -> None:
        content = (folder / self.output).read_bytes()
        if content != self.before().read_bytes():
            self.check_done(folder)

    def check_done(self, folder: Path) -> None:
        expected = self.shared / f"new_{self.output}"
        if not expected.exists():  # the first that was written to its end
            shutil.copy(folder / self.output, expected)
        assert (folder / self.output).read_bytes() == expected.read_bytes(), (
            "neither the old file nor the new"
        )


class Learn(Output):
    name, output = "learn", "model.poise"

    def command(self, folder: Path) -> list[Any]:
        return ["learn", folder / self.output, "--kind", "gaussian", self.shared / "walk.bvh"]

    def check_done(self, folder: Path) -> None:
        assert load(folder / self.output).space.skeleton.names, "a model that does not load"


class Convert(Output):
    name, output = "convert", "clip.glb"

    def command(self, folder: Path) -> list[Any]:
        return ["convert", self.shared / "walk.bvh", folder / self.output]


class ConvertPair(Scenario):
    """Two files that belong together: all of the old or all of the new."""

    name = "convert pairs"

    def prepare(self, folder: Path) -> None:
        for extension in ("asf", "amc"):
            shutil.copy(self.shared / f"pair.{extension}", folder / f"pair.{extension}")

    def act(self, folder: Path) -> None:
        say_nothing()
        assert (
            poise(["convert", str(self.shared / "other.bvh"), str(folder / "pair.amc"), "--overwrite"]) == 0
        )

    def check(self, folder: Path) -> None:
        read(folder / "pair.amc")  # finishes what was begun
        old = [(self.shared / f"pair.{extension}").read_bytes() for extension in ("asf", "amc")]
        now = [(folder / f"pair.{extension}").read_bytes() for extension in ("asf", "amc")]
        assert now == old or not set(now) & set(old), "half of the old pair and half of the new"
        if now != old:
            self.check_done(folder)

    def check_done(self, folder: Path) -> None:
        expected = read(self.shared / "other.bvh")
        found = read(folder / "pair.amc")
        assert found.skeleton.names[1:] == expected.skeleton.names[1:]
        assert len(found) == len(expected), "the frames of another recording"


class BuildLibrary(Scenario):
    """Clips that are added while others are already there."""

    name, verb = "library build", "build"

    def prepare(self, folder: Path) -> None:
        shutil.copytree(self.shared / "library", folder / "library")

    def act(self, folder: Path) -> None:
        say_nothing()
        assert poise(["library", self.verb, str(folder / "library"), str(self.shared / "more")]) == 0

    def check(self, folder: Path) -> None:
        found = Library.open(folder / "library")
        with closing(found.catalogue):
            names = {clip.name for clip in found.clips}
            assert "walk" in names, "a clip that was there is gone"
            for name in names:
                assert len(found.motion(name)) > 0
            assert len(found.poses) >= len(found.motion("walk"))
            assert not [finding for finding in found.check() if finding.clip], "a damaged clip"

    def check_done(self, folder: Path) -> None:
        self.check(folder)
        found = Library.open(folder / "library")
        with closing(found.catalogue):
            assert len(found.clips) == 4
            assert not list(found.check()), "files that nothing needs"


# --- performances --------------------------------------------------------------------------------------------------


class Perform(Scenario):
    """A performance over UDP: whatever was answered a second before is in the recovered take."""

    name = "perform UDP"

    def act(self, folder: Path) -> None:
        """The command itself; its port goes through a file."""
        say_nothing(folder / "said")
        poise([*self.command(), "-o", str(folder / "take.bvh")])

    def command(self) -> list[str]:
        return ["perform", str(self.shared / "steps.poise"), "udp:0"]

    def attempt(self, folder: Path, generator: Random) -> bool:
        with child_of(lambda: self.act(folder)) as child:
            answered, sent = self.performed(folder, child, float(generator.uniform(0.5, 3.5)))
            ended = own_time(child)
        self.check_recovered(folder, sum(ended - at > OLD_ENOUGH for at in answered), sent)
        return True

    def performed(self, folder: Path, child: int, seconds: float) -> tuple[list[float], int]:
        """Send frames for some time; return when each was answered, and how many were sent."""
        port = int(waited_for(folder / "said", "listening on").rpartition(":")[2])
        answered, sent, until = list[float](), 0, time.monotonic() + seconds
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as tracker:
            tracker.settimeout(0.01)
            for line in _lines(self.shared):
                if time.monotonic() > until:
                    break
                tracker.sendto(line, ("127.0.0.1", port))
                sent += 1
                with suppress(TimeoutError):
                    while tracker.recv(65536):
                        answered.append(own_time(child))
        return answered, sent

    def check_recovered(self, folder: Path, least: int, most: int) -> None:
        """The next performance recovers the last one."""
        (folder / "said").unlink()  # what the one before said is not an answer of the next
        run(lambda: self.act(folder), Moment(), until=lambda: "listening on" in _text(folder / "said"))
        found = list(folder.glob("take-recovered*.bvh"))
        frames = len(read(found[0])) if found else 0
        assert least <= frames <= most, f"{frames} frames of {least} to {most}"
        assert not list(folder.glob("*.part")), "a part was left"


def _lines(shared: Path) -> Any:
    """Frames of somebody who walks on and on, as JSON."""
    walk = read(shared / "walk.bvh")
    take = virtual_markers(walk, marker_layout(walk.skeleton, WITH_HEAD))
    rows = [dict(zip(take.labels, points.tolist(), strict=True)) for points in take.points]
    number = 0
    while True:
        yield json.dumps(rows[number % len(rows)] | {"time": number / 60.0}).encode()
        number += 1


class PerformVideo(Scenario):
    """A performance of recorded videos: what the journal has is brought back, and the next run writes the whole."""

    name = "perform video"

    def act(self, folder: Path) -> None:
        say_nothing(folder / "said")
        film = self.shared / "film"
        videos = [part for number in (1, 2) for part in ("--video", str(film / f"camera{number}.avi"))]
        assert poise(
            ["perform", str(self.shared / "steps.poise"), *videos, "--cameras", str(film / "cams.toml"),
             "--empty", "0.2", "-o", str(folder / "take.bvh"), "--overwrite"]
        ) == 0  # fmt: skip

    def check(self, folder: Path) -> None:
        journal, output = folder / "take.bvh.journal", folder / "take.bvh"
        self.rows = _rows(journal) if journal.exists() else 0
        if output.exists():
            assert len(read(output)) > 1

    def check_done(self, folder: Path) -> None:
        found = list(folder.glob("take-recovered*.bvh"))
        assert sum(len(read(path)) for path in found) == self.rows, "frames that were performed are missing"
        assert len(read(folder / "take.bvh")) > 1


def _rows(journal: Path) -> int:
    """The whole rows of a journal."""
    head, _, rows = journal.read_bytes().partition(b"\n")
    if not head.endswith(b"}"):
        return 0
    return len(rows) // (8 * (4 + 4 * len(json.loads(head)["names"])))


# --- the studio ----------------------------------------------------------------------------------------------------


class Studio(Scenario):
    """A page that edits: after a kill the next studio has every edit that is older than a second."""

    name = "studio edits and saves"

    def __init__(self, shared: Path) -> None:
        super().__init__(shared)
        warm_up()  # what is compiled at first use would be compiled again after every kill

    def cache(self, folder: Path) -> Path:
        """Where the studio keeps what stays."""
        return folder / "cache"

    def act(self, folder: Path) -> None:
        from poise.studio.defaults import embedded
        from poise.studio.launch import prepared

        say_nothing(folder / "said")
        os.environ["POISE_CACHE"], os.environ["TMPDIR"] = str(self.cache(folder)), str(folder)
        tempfile.tempdir = str(folder)
        models = embedded(named=[self.shared / "steps.poise"])
        with prepared(models, host="127.0.0.1", port=0, token=None) as ready:
            print(ready.address, flush=True)
            ready.serve()

    def attempt(self, folder: Path, generator: Random) -> bool:
        with child_of(lambda: self.act(folder)) as child:
            token, made = self.edited(folder, child, float(generator.uniform(0.2, 4.0)), generator)
            ended = own_time(child)
        least = max((number for number, at in made if ended - at > OLD_ENOUGH), default=0)
        (folder / "said").unlink()
        with child_of(lambda: self.act(folder)):
            self.check_scene(folder, token, least, most=len(made))
            assert len(list(folder.glob("poise-studio-*"))) == 1, "a temporary folder was left"
            assert not list((folder / "cache").rglob("*.part")), "a part was left"
        return True

    def edited(
        self, folder: Path, child: int, seconds: float, generator: Random
    ) -> tuple[str, list[tuple[int, float]]]:
        """Moves a handle to places that are numbered, and saves now and then; when each was answered."""
        from poise.studio import messages as said

        made: list[tuple[int, float]] = []
        with _page(folder) as page:
            token = page.hello().token
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                number = len(made) + 1
                hand = said.SceneHandle(
                    id="hand", joint="left_hand", pinned=True, position=(0.2, 1.0, number / 1000)
                )
                page.say(said.PutHandle(handle=hand))
                while not isinstance(heard := page.hear(), said.SceneChanged):
                    late = (
                        isinstance(heard, said.Refusal) and "still running" in heard.words
                    )  # the last export
                    assert late or not isinstance(heard, said.Refusal), heard.words
                made.append((number, own_time(child)))
                if generator.random() < 0.2:
                    page.say(said.Export(format="scene"))
                time.sleep(float(generator.uniform(0.0, 0.2)))
        return token, made

    def check_scene(self, folder: Path, token: str, least: int, *, most: int) -> None:
        from poise.studio import messages as said

        with _page(folder) as page:
            page.say(said.Hello(protocol=said.PROTOCOL, token=token))
            assert page.hear_until(said.Welcome).resumed or least == 0, "the scene was lost"
            handles = page.hear_until(said.SceneChanged).scene.handles
            number = round(1000 * handles[0].position[2]) if handles else 0
            assert least <= number <= most, f"edit {number} of {least} to {most}"


class SharedFolder(Studio):
    """Two studios on one folder and a converter beside them, all killed at moments of their own: nothing is mixed."""

    name = "two studios and a converter"

    def cache(self, folder: Path) -> Path:
        return folder.parent / "cache"

    def convert(self, folder: Path) -> None:
        """Convert one clip, then the other, into one file."""
        say_nothing()
        while True:
            for name in ("walk", "other"):
                clip = str(self.shared / f"{name}.bvh")
                assert poise(["convert", clip, str(folder / "clip.glb"), "--overwrite"]) == 0

    def attempt(self, folder: Path, generator: Random) -> bool:
        sides = [folder / "left", folder / "right"]
        for side in sides:
            side.mkdir()
        generators = generator.spawn(2)
        with (
            child_of(lambda: self.act(sides[0])) as left,
            child_of(lambda: self.act(sides[1])) as right,
            child_of(lambda: self.convert(folder)) as converter,
            ThreadPoolExecutor() as threads,
        ):
            edits = list(threads.map(self.edited_and_killed, sides, (left, right), generators))
            os.kill(converter, signal.SIGKILL)
        if (folder / "clip.glb").exists():
            assert len(read(folder / "clip.glb")) in (30, 60), "a clip that nobody wrote"
        for side in sides:
            (side / "said").unlink()
        with child_of(lambda: self.act(sides[0])), child_of(lambda: self.act(sides[1])):
            for side, (token, least, most) in zip(sides, edits, strict=True):
                self.check_scene(side, token, least, most=most)
        assert not list(self.cache(sides[0]).rglob("*.part")), "a part was left"
        return True

    def edited_and_killed(self, folder: Path, child: int, generator: Random) -> tuple[str, int, int]:
        """Edit for some time, then kill the studio; the token, and the first and last edit that may be there."""
        token, made = self.edited(folder, child, float(generator.uniform(0.2, 4.0)), generator)
        ended = own_time(child)
        os.kill(child, signal.SIGKILL)
        return token, max((number for number, at in made if ended - at > OLD_ENOUGH), default=0), len(made)


def _page(folder: Path) -> Any:
    from running_studio import Running

    address = waited_for(folder / "said", "http://").split()[0]
    return Running(None, int(address.rstrip("/").rpartition(":")[2])).page()  # type: ignore[arg-type]


# --- killing -------------------------------------------------------------------------------------------------------


def start(act: Callable[[], None]) -> int:
    """A child process that does some work and ends."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    return child


@contextmanager
def child_of(act: Callable[[], None]) -> Iterator[int]:
    """A child process that works until it is killed at the end."""
    child = start(act)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def run(act: Callable[[], None], moment: Moment, *, until: Callable[[], bool] = lambda: False) -> bool:
    """Run work in a child process that is killed at a moment; return whether it was."""

    def doing() -> None:
        if moment.change:
            _die_at_change(moment.change)
        act()

    child, ends = start(doing), time.monotonic() + moment.seconds
    while time.monotonic() < ends and not until() and worked(child) < LONGEST_RUN:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "it failed"
            return os.WIFSIGNALED(status)
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert moment.seconds < LONGEST_WAIT or until(), "it did not come to its end"
    return True


def worked(child: int) -> float:
    """Seconds of the processor that a child has had."""
    with suppress(OSError):
        words = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0  # where the system does not say


def own_time(child: int) -> float:
    """Wall-clock seconds, without those in which a child's threads waited for the processor."""
    waited = 0
    for task in Path(f"/proc/{child}/task").glob("*/schedstat"):
        with suppress(OSError):
            waited += int(task.read_text().split()[1])
    return time.monotonic() - waited / 1e9


def measured(act: Callable[[], None]) -> Moment:
    """The duration of some work, and its number of file changes."""
    read_end, write_end = os.pipe()

    def doing() -> None:
        changes = [0]
        _at_changes(lambda: changes.__setitem__(0, changes[0] + 1))
        begun = time.monotonic()
        act()
        os.write(write_end, json.dumps([time.monotonic() - begun, changes[0]]).encode())

    assert not run(doing, Moment())
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        return Moment(*json.loads(pipe.read()))


def _die_at_change(number: int) -> None:
    left = [number]

    def die() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    _at_changes(die)


def _at_changes(call: Callable[[], None]) -> None:
    """Calls something whenever a file is about to be opened for writing, renamed or removed."""

    def hook(event: str, details: tuple[Any, ...]) -> None:
        flags = details[2] if event == "open" and len(details) > 2 else 0
        if event in FILE_EVENTS or (isinstance(flags, int) and flags & WRITES):
            call()

    sys.addaudithook(hook)


def say_nothing(into: Path = Path(os.devnull)) -> None:
    """Redirect what this process prints."""
    file = os.open(into, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(file, 1)
    os.dup2(file, 2)


def waited_for(path: Path, words: str) -> str:
    """The line of a file that has these words, once it is there."""
    ends = time.monotonic() + LONGEST_WAIT
    while time.monotonic() < ends:
        found = [
            line for line in _text(path).splitlines(keepends=True) if words in line and line.endswith("\n")
        ]
        if found:
            return found[-1].strip()
        time.sleep(0.01)
    raise AssertionError(f"{words!r} was never said; but: {_text(path)[-500:]}")


def _text(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


# --- all of them ---------------------------------------------------------------------------------------------------

SCENARIOS: dict[str, type[Scenario]] = {
    kind.name: kind
    for kind in (Learn, Convert, ConvertPair, BuildLibrary, Perform, PerformVideo, Studio, SharedFolder)
}


def make_shared(folder: Path) -> None:
    """The data of the scenarios."""
    walk, other = performer.act("walk", seconds=1.0, fps=30), performer.act("reach", seconds=2.0, fps=30)
    write(walk, folder / "walk.bvh")
    write(other, folder / "other.bvh")
    write(walk, folder / "pair.amc")
    write(other, folder / "old_clip.glb")
    local = LocalPrior.learn([walk])
    save(local, folder / "steps.poise")
    save(local, folder / "old_model.poise")
    (folder / "more").mkdir()
    for number in range(3):
        write(performer.act("walk", seconds=1.0, fps=30, seed=number + 5), folder / "more" / f"{number}.bvh")
    film = ["--seconds", "0.3", "--empty", "0.2", "--size", "320", "240"]
    for command in (
        ["library", "build", str(folder / "library"), str(folder / "walk.bvh")],
        ["cameras", "simulate", str(folder / "walk.bvh"), "-o", str(folder / "film"), *film],
    ):
        assert not run(lambda: _silent(command), Moment())  # noqa: B023 - called at once


def _silent(command: list[str]) -> None:
    say_nothing()
    assert poise(command) == 0


def kill(name: str, count: int, seed: int, shared: Path, *, seconds: float) -> list[str]:
    """Kill one scenario repeatedly; return what went wrong."""
    scenario, failures, tally = SCENARIOS[name](shared), list[str](), Counter[bool]()
    ends = time.monotonic() + seconds
    for number in range(count):
        if time.monotonic() > ends:
            break
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            try:
                tally[scenario.attempt(Path(folder), np.random.default_rng([seed, number]))] += 1
            except (Exception, AssertionError) as error:
                failures.append(f"{name} {number}: {type(error).__name__}: {error}")
                print(failures[-1], flush=True)
    print(
        f"{name}: {tally.total()} kills, {tally[False]} of them after the end, {len(failures)} failures",
        flush=True,
    )
    return failures


def main() -> int:
    """Run all scenarios; return 1 if anything was lost, mixed or left behind."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=210, help="kills in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of each kind, at most")
    parser.add_argument("--only", nargs="*", default=list(SCENARIOS), choices=list(SCENARIOS))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        make_shared(Path(name))
        each = -(-given.count // len(given.only))
        failures = [
            failure
            for kind in given.only
            for failure in kill(kind, each, given.seed, Path(name), seconds=given.seconds)
        ]
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
