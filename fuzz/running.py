"""Runs cases of a fuzzer, one after the other, and says what came of them.

A case makes an input from random numbers and hands it to Poise. It may be taken, or refused with a PoiseError. Anything
else is a failure: another exception, a warning, more than 2 seconds, half a gigabyte more memory, or the end of the
process, which is a child of its own for that reason. Inputs that fail are saved, to become seeds.
"""

from __future__ import annotations

import argparse
import faulthandler
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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import numpy as np
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table

from poise.cli.threads import use_one_thread
from poise.errors import PoiseError

LONGEST_SECONDS = 2.0  # of the processor's time
LAST_SECONDS = 30.0  # of the clock's: code that waits, or that cannot be interrupted, ends the process
MOST_GROWTH = 512 * 2**20  # bytes that the peak memory may grow by in one case
ADDRESS_SPACE = 4 * 2**30  # bytes beyond what the process has at the start

Case = Callable[[np.random.Generator, Path], None]


class TooLongError(BaseException):
    """Raised by the watchdog; no `except Exception` may hold it back."""


@dataclass
class Tally:
    """What came of the cases of one kind."""

    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0


@dataclass(frozen=True)
class Result:
    """What came of one case: taken, refused, or failed, and then how."""

    kind: str
    number: int
    outcome: str
    what: str
    seconds: float


def parser(description: str | None, *, count: int) -> argparse.ArgumentParser:
    """The options that all fuzzers have."""
    if "OMP_NUM_THREADS" not in os.environ:  # NumPy has counted its threads by now: start again with one
        use_one_thread()
        os.execv(sys.executable, [sys.executable, *sys.argv])
    found = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    found.add_argument("--count", type=int, default=count, help="cases in all, shared out among the kinds")
    found.add_argument("--seconds", type=float, default=np.inf, help="stop after so long")
    found.add_argument("--seed", type=int, default=0, help="of the random numbers; the same, the same cases")
    found.add_argument("--save", type=Path, default=Path("out/fuzz"), help="where inputs that fail are kept")
    return found


def run(cases: Mapping[str, Case], options: argparse.Namespace) -> int:
    """Run cases of all kinds in turn, print a summary and return how many failed."""
    console, tallies, failures = Console(stderr=True), dict[str, Tally](), list[Result]()
    columns = (*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())
    with tempfile.TemporaryDirectory() as folder, Progress(*columns, console=console) as progress:
        for result in progress.track(
            _results(cases, options, Path(folder)), total=options.count, description="fuzzing"
        ):
            tally = tallies.setdefault(result.kind, Tally())
            tally.outcomes[result.outcome] += 1
            tally.slowest = max(tally.slowest, result.seconds)
            if result.what:
                failures.append(result)
                _save(Path(folder), options.save / f"{result.kind}_{options.seed}_{result.number}")
    console.print(_summary(tallies))
    for failure in failures[:20]:
        console.print(f"[red]{failure.kind} {failure.number}[/]: {failure.what}", highlight=False)
    count, slowest = (
        sum(sum(tally.outcomes.values()) for tally in tallies.values()),
        max((tally.slowest for tally in tallies.values()), default=0.0),
    )
    print(f"{count} inputs, {len(failures)} failures, slowest {slowest:.2f} s")
    return len(failures)


# --- one case after another ----------------------------------------------------------------------------------------


def _results(cases: Mapping[str, Case], options: argparse.Namespace, folder: Path) -> Iterator[Result]:
    """What came of every case. They run in a child; where it dies, its case has failed and another goes on."""
    kinds, ends, number = list(cases), time.monotonic() + options.seconds, 0
    while number < options.count and time.monotonic() < ends:
        begun = time.monotonic()
        read, write = os.pipe()
        if (child := os.fork()) == 0:
            os.close(read)
            _child(cases, options, folder, number, write)
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
            ended = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "the watchdog"
            seconds = time.monotonic() - begun
            yield Result(kinds[number % len(kinds)], number, "failed", f"ended by {ended}", seconds)
            number += 1


def _received(pipe) -> Iterator[Result]:  # type: ignore[no-untyped-def]
    while True:
        try:
            yield pickle.load(pipe)
        except EOFError:
            return


def _child(
    cases: Mapping[str, Case], options: argparse.Namespace, folder: Path, first: int, write: int
) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + ADDRESS_SPACE, resource.RLIM_INFINITY))
    kinds = list(cases)
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


def attempt(case: Callable[[], None]) -> tuple[str, str]:
    """Run one case: its outcome, and in words what went wrong, else nothing."""
    before = peak_memory()
    try:
        with _watchdog(), warnings.catch_warnings():
            warnings.simplefilter("error")
            case()
        outcome, what = "taken", ""
    except PoiseError:
        outcome, what = "refused", ""
    except (Exception, TooLongError) as error:
        outcome, what = "failed", _where(error)
    grown = peak_memory() - before
    if not what and grown > MOST_GROWTH:
        return "failed", f"memory grew by {grown / 2**20:.0f} MB"
    return outcome, what


@contextmanager
def _watchdog() -> Iterator[None]:
    """Interrupts Python code after the longest time; compiled code that goes on ends the process a little later."""
    faulthandler.dump_traceback_later(LAST_SECONDS, exit=True)
    signal.signal(signal.SIGPROF, _too_long)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()


def _too_long(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as signal.signal calls it
    raise TooLongError(f"took more than {LONGEST_SECONDS:g} s")


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    place = next((frame for frame in reversed(frames) if "poise" in frame.filename), frames[-1])
    return f"{type(error).__name__}: {str(error)[:120]} ({Path(place.filename).name}:{place.lineno})"


# --- around it -----------------------------------------------------------------------------------------------------


def _summary(tallies: Mapping[str, Tally]) -> Table:
    table = Table("kind", "inputs", "taken", "refused", "failed", "slowest")
    for name, tally in tallies.items():
        counts = [
            sum(tally.outcomes.values()),
            *(tally.outcomes[key] for key in ("taken", "refused", "failed")),
        ]
        table.add_row(name, *map(str, counts), f"{tally.slowest:.3f} s")
    return table


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
