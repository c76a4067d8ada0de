"""Feeds damaged files to Poise's readers: python fuzz/fuzz_formats.py --count 20000 --seed 0

A reader may read a damaged file or refuse it with a PoiseError. Anything else is a failure: another exception, a
warning, more than 5 seconds, or more than half a gigabyte. Inputs that fail are saved. Text formats and GLB are read in
this process; C3D goes through compiled code and is read in a process of its own, which may crash alone.
"""

from __future__ import annotations

import argparse
import faulthandler
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import numpy as np
from mutations import Mutator
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table
from seeds import Files, make_c3d_seeds, make_seeds

import poise
from poise.errors import PoiseError

LONGEST_SECONDS = 5.0
LAST_SECONDS = 20.0  # after which code that cannot be interrupted ends the process
MOST_GROWTH = 512 * 2**20  # bytes that the peak memory may grow by in one read
ADDRESS_SPACE = 4 * 2**30  # bytes beyond what the process has at the start


class TooLongError(BaseException):
    """Raised by the watchdog; no reader's `except Exception` may hold it back."""


@dataclass
class Tally:
    """What came of the inputs of one format."""

    outcomes: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0


@dataclass(frozen=True)
class Failure:
    """An input that a reader could not cope with, and what it did."""

    format: str
    number: int
    what: str


def main() -> int:
    """Fuzzes, prints a summary and returns 1 if anything failed."""
    options = _options()
    console = Console(stderr=True)
    tallies: dict[str, Tally] = {}
    with _working_folder(options) as folder:
        seeds = {"c3d": make_c3d_seeds(folder)} if options.c3d_only else make_seeds(folder)
        _warm_up(seeds, folder)
        failures = list(_fuzz(seeds, folder, options=options, tallies=tallies, console=console))
    if options.c3d and not options.c3d_only:
        failures += _fuzz_c3d_apart(options)
    console.print(_summary(tallies))
    for failure in failures[:20]:
        console.print(f"[red]{failure.format} {failure.number}[/]: {failure.what}", highlight=False)
    peak = _peak_memory() / 2**20
    print(f"{sum(sum(tally.outcomes.values()) for tally in tallies.values())} inputs, {len(failures)} failures, "
          f"slowest {max(tally.slowest for tally in tallies.values()):.2f} s, peak memory {peak:.0f} MB")  # fmt: skip
    return 1 if failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--count", type=int, default=20_000, help="inputs in all, shared out among the formats"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the random numbers; the same seed, the same inputs"
    )
    parser.add_argument(
        "--c3d", type=int, default=500, help="C3D inputs, in a process of their own; 0 for none"
    )
    parser.add_argument(
        "--c3d-only", action="store_true", help="read C3D inputs here; a crash ends this process"
    )
    parser.add_argument("--save", type=Path, default=Path("out/fuzz"), help="where inputs that fail are kept")
    return parser.parse_args()


@contextmanager
def _working_folder(options: argparse.Namespace) -> Iterator[Path]:
    """A folder for the inputs; that of C3D inputs has a name, so that the last one is found after a crash."""
    if not options.c3d_only:
        with tempfile.TemporaryDirectory() as name:
            yield Path(name)
        return
    folder = options.save / "c3d_last"
    folder.mkdir(parents=True, exist_ok=True)
    yield folder
    shutil.rmtree(folder)


# --- one input after another ---------------------------------------------------------------------------------------


def _fuzz(
    seeds: dict[str, list[Files]],
    folder: Path,
    *,
    options: argparse.Namespace,
    tallies: dict[str, Tally],
    console: Console,
) -> Iterator[Failure]:
    formats = list(seeds)
    contents = tuple(content for files in seeds.values() for seed in files for content in seed.values())
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + ADDRESS_SPACE, resource.RLIM_INFINITY))
    columns = (*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        for number in progress.track(range(options.count), description="fuzzing"):
            chosen = formats[number % len(formats)]
            mutator = Mutator(np.random.default_rng([options.seed, number]), contents)
            seed = seeds[chosen][int(mutator.generator.integers(0, len(seeds[chosen])))]
            path = _write_damaged(seed, mutator, folder)
            what = _read(path, chosen, tally=tallies.setdefault(chosen, Tally()))
            if what:
                _save(folder, options.save / f"{chosen}_{options.seed}_{number}")
                yield Failure(chosen, number, what)


def _write_damaged(seed: Files, mutator: Mutator, folder: Path) -> Path:
    """Writes a damaged copy of a seed; of a pair, one or both files are damaged. Returns the file to read."""
    for old in folder.glob("input.*"):
        old.unlink()
    extensions = list(seed)
    damaged = {extensions[int(mutator.generator.integers(0, len(extensions)))]}
    damaged |= {extension for extension in extensions if mutator.generator.random() < 0.2}
    for extension, content in seed.items():
        (folder / f"input{extension}").write_bytes(mutator(content) if extension in damaged else content)
    return folder / f"input{'.amc' if '.amc' in seed else extensions[0]}"


def _read(path: Path, chosen: str, *, tally: Tally) -> str:
    """Reads one input and counts what came of it; in words what went wrong, else nothing."""
    before, start = _peak_memory(), time.perf_counter()
    what = ""
    try:
        with _watchdog(), warnings.catch_warnings():
            warnings.simplefilter("error")
            poise.read(path, format=chosen)
        outcome = "read"
    except PoiseError:
        outcome = "refused"
    except (Exception, TooLongError) as error:
        outcome, what = "failed", _where(error)
    seconds = time.perf_counter() - start
    tally.slowest = max(tally.slowest, seconds)
    grown = _peak_memory() - before
    if not what and grown > MOST_GROWTH:
        outcome, what = "failed", f"memory grew by {grown / 2**20:.0f} MB"
    tally.outcomes[outcome] += 1
    return what


@contextmanager
def _watchdog() -> Iterator[None]:
    """Interrupts Python code after the longest time; compiled code that goes on ends the process a little later."""
    faulthandler.dump_traceback_later(LAST_SECONDS, exit=True)
    signal.signal(signal.SIGALRM, _too_long)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()


def _too_long(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as signal.signal calls it
    raise TooLongError(f"took more than {LONGEST_SECONDS:g} s")


def _where(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    place = next((frame for frame in reversed(frames) if "poise" in frame.filename), frames[-1])
    return f"{type(error).__name__}: {str(error)[:120]} ({Path(place.filename).name}:{place.lineno})"


def _save(folder: Path, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for file in folder.glob("input.*"):
        (target / file.name).write_bytes(file.read_bytes())


# --- around it -----------------------------------------------------------------------------------------------------


def _warm_up(seeds: dict[str, list[Files]], folder: Path) -> None:
    """Reads every seed: they must be sound, and what is compiled at first use must not count as slow."""
    for chosen, files in seeds.items():
        for seed in files:
            for extension, content in seed.items():
                (folder / f"input{extension}").write_bytes(content)
            poise.read(folder / f"input{'.amc' if '.amc' in seed else next(iter(seed))}", format=chosen)


def _fuzz_c3d_apart(options: argparse.Namespace) -> list[Failure]:
    command = [sys.executable, __file__, "--c3d-only", "--count", str(options.c3d)]
    result = subprocess.run([*command, "--seed", str(options.seed), "--save", str(options.save)], check=False)
    if result.returncode == 0:
        return []
    trouble = (
        f"ended by signal {-result.returncode} at {options.save}/c3d_last/input.c3d"
        if result.returncode < 0
        else "failed, see above"
    )
    return [Failure("c3d", 0, f"the process that reads it {trouble}")]


def _summary(tallies: dict[str, Tally]) -> Table:
    table = Table("format", "inputs", "read", "refused", "failed", "slowest")
    for name, tally in tallies.items():
        counts = [
            sum(tally.outcomes.values()),
            *(tally.outcomes[key] for key in ("read", "refused", "failed")),
        ]
        table.add_row(name, *map(str, counts), f"{tally.slowest:.3f} s")
    return table


def _peak_memory() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _address_space() -> int:
    """The address space in use; where the system does not tell, a generous guess."""
    status = Path("/proc/self/statm")
    return int(status.read_text().split()[0]) * resource.getpagesize() if status.exists() else 8 * 2**30


if __name__ == "__main__":
    sys.exit(main())
