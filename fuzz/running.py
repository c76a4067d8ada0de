"""Run the cases of a fuzzer one after the other, and count the outcomes.

A case makes an input from random numbers and hands it to Poise. It may be taken, or refused with a PoiseError. Anything
else is a failure: another exception, a warning, an answer that is wrong, more than 2 seconds of the processor, half a
gigabyte more memory, or the end of the process, which is a child of its own for that reason. Inputs that fail are
saved, to become seeds. The counts are kept beside them, one JSON file for each fuzzer and seed; `--resume` continues
where that file ends, and `python fuzz/running.py FOLDER` adds up all of them.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import numpy as np
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table

from poise.cli.main import use_one_thread
from poise.errors import PoiseError

LONGEST_SECONDS = 2.0  # of the processor's time: other programs may be busy
LAST_SECONDS = 10.0  # of the processor's time, after which code that cannot be interrupted ends the process
LONGEST_WAIT = 300.0  # seconds of the clock, after which code that waits does
MOST_GROWTH = 512 * 2**20  # bytes that the peak memory may grow by in one case
ADDRESS_SPACE = 4 * 2**30  # bytes beyond what the process has at the start

PASSED = ("taken", "refused")
FAILED = ("crash", "exception", "wrong", "hang", "growth")
ENDED = {
    signal.SIGVTALRM: "hang",
    signal.SIGALRM: "hang",
}  # what the end of a process by a signal is, if not a crash
WIDTH = 110  # of tables
WRITE_EVERY = 10.0  # seconds after which the counts are written

Case = Callable[[np.random.Generator, Path], str | None]  # may say itself that its input was refused


class TooLongError(BaseException):
    """Raised by the watchdog; no `except Exception` may hold it back."""


@dataclass
class Counts:
    """The outcomes of the cases of each kind, as stored in the file of counts."""

    next: int = 0
    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    slowest: dict[str, float] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Counts:
        """The counts of a file."""
        values = json.loads(path.read_text())
        return cls(
            values["next"],
            {kind: Counter(each) for kind, each in values["outcomes"].items()},
            values["slowest"],
        )

    def write(self, path: Path) -> None:
        """Replaces the file of counts."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".new").write_text(json.dumps(vars(self), indent=1))
        path.with_suffix(".new").replace(path)

    def add(self, result: Result) -> None:
        """Count one more case."""
        self.next = result.number + 1
        self.outcomes.setdefault(result.kind, Counter())[result.outcome] += 1
        self.slowest[result.kind] = max(self.slowest.get(result.kind, 0.0), result.seconds)

    def __add__(self, other: Counts) -> Counts:
        kinds = self.outcomes | other.outcomes
        none = Counter[str]()
        return Counts(
            self.next + other.next,
            {kind: self.outcomes.get(kind, none) + other.outcomes.get(kind, none) for kind in kinds},
            {kind: max(self.slowest.get(kind, 0.0), other.slowest.get(kind, 0.0)) for kind in kinds},
        )

    @property
    def failures(self) -> int:
        """The number of failed cases."""
        return sum(each[outcome] for each in self.outcomes.values() for outcome in FAILED)


@dataclass(frozen=True)
class Result:
    """The outcome of one case, and a description of the failure."""

    kind: str
    number: int
    outcome: str
    what: str
    seconds: float


def parser(description: str | None, *, count: int) -> argparse.ArgumentParser:
    """The common options of all fuzzers."""
    if "OMP_NUM_THREADS" not in os.environ:  # NumPy has counted its threads by now: start again with one
        use_one_thread()
        os.execv(sys.executable, [sys.executable, *sys.argv])
    found = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--count", type=int, default=count, help="cases in all, shared out among the kinds")
    found.add_argument("--first", type=int, default=0, help="number of the first case, to try one again")
    found.add_argument("--seconds", type=float, default=np.inf, help="stop after so long")
    found.add_argument("--seed", type=int, default=0, help="of the random numbers; the same, the same cases")
    found.add_argument(
        "--save", type=Path, default=Path("out/fuzz"), help="where inputs that fail and the counts are kept"
    )
    found.add_argument("--resume", action="store_true", help="continue where the counts of this seed end")
    return found


def run(
    cases: Mapping[str, Case],
    options: argparse.Namespace,
    *,
    prepare: Callable[[], object] = lambda: None,
    turns: Sequence[str] = (),
) -> int:
    """Runs cases of all kinds in turn, prints a summary and returns how many failed.

    `prepare` is called in the child: for what a fork does not take along, such as threads. `turns` are the kinds in
    turn, where some come more often than others.
    """
    console, failures, place = Console(stderr=True, width=WIDTH), list[Result](), _file_of_counts(options)
    counts = Counts.read(place) if options.resume and place.exists() else Counts(options.first)
    columns = (*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())
    with tempfile.TemporaryDirectory() as name, Progress(*columns, console=console) as progress:
        shown, written = progress.add_task("fuzzing", total=options.count), time.monotonic()
        for result in _results(cases, list(turns or cases), options, Path(name), counts.next, prepare):
            counts.add(result)
            progress.update(shown, completed=counts.next)
            if result.what:
                failures.append(result)
                _save(Path(name), options.save / f"{result.kind}_{options.seed}_{result.number}")
            if result.what or time.monotonic() > written + WRITE_EVERY:
                written = time.monotonic()
                counts.write(place)
    counts.write(place)
    console.print(summary(counts))
    for failure in failures[:20]:
        console.print(f"[red]{failure.kind} {failure.number}[/]: {failure.what}", highlight=False)
    slowest = max(counts.slowest.values(), default=0.0)
    print(f"{counts.next} inputs, {counts.failures} failures, slowest {slowest:.2f} s")
    return counts.failures


def _file_of_counts(options: argparse.Namespace) -> Path:
    """One for each fuzzer and seed, with the compiled code's indices checked or not."""
    checked = "-bounds" if os.environ.get("NUMBA_BOUNDSCHECK") == "1" else ""
    return Path(options.save / f"{Path(sys.argv[0]).stem}-{options.seed}{checked}.json")


# --- one case after another ----------------------------------------------------------------------------------------


def _results(
    cases: Mapping[str, Case],
    kinds: list[str],
    options: argparse.Namespace,
    folder: Path,
    number: int,
    prepare: Callable[[], object],
) -> Iterator[Result]:
    """The outcome of every case. They run in a child process; if it dies, its case has failed and another continues."""
    ends = time.monotonic() + options.seconds
    while number < options.count and time.monotonic() < ends:
        begun = time.monotonic()
        read, write = os.pipe()
        if (child := os.fork()) == 0:
            os.close(read)
            prepare()
            _child(cases, kinds, options, folder, number, write)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            for result in _received(pipe):
                number, begun = result.number + 1, time.monotonic()
                yield result
                if begun > ends:
                    os.kill(child, signal.SIGKILL)
                    break
        _, status = os.waitpid(child, 0)
        if status != 0 and time.monotonic() < ends:
            kind, outcome, what = kinds[number % len(kinds)], *_ended(status)
            yield Result(kind, number, outcome, what, time.monotonic() - begun)
            number += 1


def _ended(status: int) -> tuple[str, str]:
    """How a child process ended, with a description."""
    if not os.WIFSIGNALED(status):
        return "crash", f"ended with exit code {os.waitstatus_to_exitcode(status)}"
    ended = signal.Signals(os.WTERMSIG(status))
    return ENDED.get(ended, "crash"), f"ended by {ended.name}"


def _received(pipe) -> Iterator[Result]:  # type: ignore[no-untyped-def]
    while True:
        try:
            yield pickle.load(pipe)
        except EOFError:
            return


def _child(
    cases: Mapping[str, Case],
    kinds: list[str],
    options: argparse.Namespace,
    folder: Path,
    first: int,
    write: int,
) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + ADDRESS_SPACE, resource.RLIM_INFINITY))
    with os.fdopen(write, "wb") as pipe:
        for number in range(first, options.count):
            kind = kinds[number % len(kinds)]
            _empty(folder)
            generator, begun = np.random.default_rng([options.seed, number]), time.process_time()
            outcome, what = attempt(lambda: cases[kind](generator, folder))  # noqa: B023 - called at once
            pickle.dump(Result(kind, number, outcome, what, time.process_time() - begun), pipe)
            pipe.flush()
            if what:
                break  # its inputs are saved before they are written over
    os._exit(0)


def attempt(case: Callable[[], str | None]) -> tuple[str, str]:
    """Run one case: its outcome, and a description of the failure, if any."""
    before = peak_memory()
    try:
        with _watchdog(), warnings.catch_warnings():
            warnings.simplefilter("error")
            outcome, what = case() or "taken", ""
    except PoiseError:
        outcome, what = "refused", ""
    except TooLongError as error:
        outcome, what = "hang", _where(error)
    except AssertionError as error:
        outcome, what = "wrong", _where(error)
    except Exception as error:
        outcome, what = "exception", _where(error)
    grown = peak_memory() - before
    if not what and grown > MOST_GROWTH:
        return "growth", f"memory grew by {grown / 2**20:.0f} MB"
    return outcome, what


@contextmanager
def _watchdog() -> Iterator[None]:
    """Interrupts Python code after the longest time; compiled code that continues ends the process a little later."""
    signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_SECONDS)
    signal.setitimer(signal.ITIMER_VIRTUAL, LAST_SECONDS)  # its signal ends the process
    signal.setitimer(signal.ITIMER_REAL, LONGEST_WAIT)  # and so does this one's
    try:
        yield
    finally:
        for timer in (signal.ITIMER_PROF, signal.ITIMER_VIRTUAL, signal.ITIMER_REAL):
            signal.setitimer(timer, 0)


def _too_long(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as signal.signal calls it
    raise TooLongError(f"took more than {LONGEST_SECONDS:g} s")


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    place = next((frame for frame in reversed(frames) if "poise" in frame.filename), frames[-1])
    return f"{type(error).__name__}: {str(error)[:120]} ({Path(place.filename).name}:{place.lineno})"


# --- around it -----------------------------------------------------------------------------------------------------


def summary(counts: Counts) -> Table:
    """The counts as a table."""
    table = Table("kind", "inputs", *PASSED, *FAILED, "slowest")
    for kind, outcomes in counts.outcomes.items():
        found = (sum(outcomes.values()), *(outcomes[outcome] for outcome in (*PASSED, *FAILED)))
        table.add_row(kind, *(f"{each:,}" for each in found), f"{counts.slowest[kind]:.3f} s")
    return table


def total(folder: Path) -> None:
    """Prints the counts of all seeds of every fuzzer."""
    files = {path: path.stem.split("-") for path in sorted(folder.glob("fuzz_*.json"))}
    for name in sorted({words[0] for words in files.values()}):
        for checked in (False, True):
            found = [
                Counts.read(path)
                for path, words in files.items()
                if words[0] == name and ("bounds" in words) == checked
            ]
            if found:
                print(f"{name}{', indices checked' if checked else ''}: {len(found)} seeds")
                Console(width=WIDTH).print(summary(sum(found, Counts())))


def _empty(folder: Path) -> None:
    for old in folder.iterdir():
        shutil.rmtree(old) if old.is_dir() else old.unlink()


def _save(folder: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)


def peak_memory() -> int:
    """The most memory that this process has had, in bytes."""
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _address_space() -> int:
    """The address space in use; where the system does not say, a generous guess."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[0]) * resource.getpagesize() if status.exists() else 8 * 2**30


if __name__ == "__main__":
    total(Path(sys.argv[1] if len(sys.argv) > 1 else "out/fuzz"))
