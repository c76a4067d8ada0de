"""Map one function over many clips, on this machine's processors (joblib) or on a cluster (dask.distributed).

The function must be defined in a module and its items must be picklable. On a cluster, every machine must see the
files under the same paths. If a worker dies, other workers take its items. An item that keeps killing workers is
reported as lost, and the remaining items are still processed. A task of a cluster has several items, because sending
one costs milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from threading import Thread
from typing import Any, Generic, TypeVar

from poise.errors import InvalidValueError, MissingExtraError, PoiseError

Item = TypeVar("Item")
Result = TypeVar("Result")

PARENT_S = 1.0  # seconds between checks that the parent process is alive
CONNECT_S = 30.0  # seconds: time-out for the connection to a scheduler
CLUSTER_PAYS = 150  # clips of ten seconds: with fewer, loading Poise takes two workers more than they save
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h; set to what they grow to by themselves
_TASKS_EACH, _MOST_A_TASK = 8, 32  # tasks for each worker of a cluster, and items in one


@dataclass(frozen=True)
class Outcome(Generic[Result]):
    """The result of one item, by its number; `lost` gives the reason if there is no value."""

    number: int
    value: Result | None
    lost: str = ""


@dataclass(frozen=True)
class Engine:
    """The workers: `jobs` processes on this machine, or the cluster behind a scheduler's address."""

    jobs: int = 1
    scheduler: str = ""
    retries: int = 2
    """Number of retries for the items of workers that died."""

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise InvalidValueError(f"`jobs` must be at least 1; got {self.jobs}")
        if self.retries < 0:
            raise InvalidValueError(f"`retries` must be 0 or more; got {self.retries}")

    def each(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Outcome[Result]]:
        """Yield every item's outcome as soon as it is ready, in any order. Exceptions of `function` are raised here."""
        if self.scheduler:
            return _on_cluster(self, function, items)
        if self.jobs == 1 or len(items) < 2:
            return (Outcome(number, function(item)) for number, item in enumerate(items))
        return _on_processors(self, function, items)

    def map(
        self, function: Callable[[Item], Result], items: Sequence[Item], *,
        progress: Callable[[int, int], None] = lambda _done, _all: None,
    ) -> list[Result]:  # fmt: skip
        """Return every item's value in the order of the items; raise if an item is lost."""
        values: dict[int, Any] = {}
        for done in self.each(function, items):
            if done.lost:
                raise PoiseError(f"item {done.number + 1} of {len(items)} was lost: {done.lost}")
            values[done.number] = done.value
            progress(len(values), len(items))
        return [values[number] for number in range(len(items))]


def _on_processors(
    engine: Engine, function: Callable[[Item], Result], items: Sequence[Item]
) -> Iterator[Outcome[Result]]:
    """Run on this machine. After a worker dies, the remaining items are retried, in the end one at a time."""
    try:
        import joblib
        from joblib.externals.loky.process_executor import BrokenProcessPool
    except ImportError as error:
        raise MissingExtraError("joblib", extra="library", purpose="work on several processors") from error

    def in_parallel(jobs: int, items: dict[int, Item]) -> Iterator[Outcome[Result]]:
        parallel = joblib.Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")
        yield from parallel(joblib.delayed(_numbered)(function, *item) for item in list(items.items()))

    left = dict(enumerate(items))
    for _attempt in range(engine.retries + 1):
        try:
            for done in in_parallel(engine.jobs, left):
                del left[done.number]
                yield done
            return
        except BrokenProcessPool:
            continue
    for number, item in list(left.items()):
        try:
            yield from in_parallel(2, {number: item})
        except BrokenProcessPool as death:
            words = f"it killed the process that worked on it ({type(death).__name__})"
            yield Outcome(number, None, lost=words)


def _numbered(function: Callable[[Item], Result], number: int, item: Item) -> Outcome[Result]:
    end_with_parent()
    return Outcome(number, function(item))


@cache
def end_with_parent() -> None:
    """End this worker process when its parent process ends."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_S)
        os._exit(1)

    Thread(target=watch, name="poise-parent", daemon=True).start()


def _on_cluster(
    engine: Engine, function: Callable[[Item], Result], items: Sequence[Item]
) -> Iterator[Outcome[Result]]:
    try:
        distributed: Any = import_module("distributed")
    except ImportError as error:
        raise MissingExtraError("distributed", extra="cluster", purpose="work on a cluster") from error
    try:
        connected = distributed.Client(engine.scheduler, timeout=CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise PoiseError(
            f"no scheduler answers at {engine.scheduler!r}: {error}; start one with `dask scheduler` and give "
            "its address, such as tcp://127.0.0.1:8786"
        ) from error
    with connected as client:
        workers = max(1, sum(client.nthreads().values()))
        size = min(max(1, len(items) // (_TASKS_EACH * workers)), _MOST_A_TASK)
        parts = [range(first, min(first + size, len(items))) for first in range(0, len(items), size)]
        work = partial(_several, function)

        def sent(part: range) -> Any:
            return client.submit(work, [items[k] for k in part], pure=False, retries=engine.retries)

        numbers, suspects = {(future := sent(part)).key: (part, future) for part in parts}, list[int]()
        for future in distributed.as_completed([future for _, future in numbers.values()], loop=client.loop):
            part, _ = numbers.pop(future.key)  # lets go of the result
            failure = future.exception()  # waits again if a worker died with its result
            if failure is None:
                yield from (Outcome(k, value) for k, value in zip(part, future.result(), strict=True))
            elif isinstance(failure, distributed.KilledWorker):
                suspects += part  # one of them kills, or another task on the same worker did
            else:
                raise failure
        for k in suspects:  # each alone
            future = sent(range(k, k + 1))
            failure = future.exception()
            if failure is None:
                yield Outcome(k, future.result()[0])
            elif isinstance(failure, distributed.KilledWorker):
                yield Outcome(k, None, lost="every worker that ran it died")
            else:
                raise failure


def _several(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    _keep_freed_memory()
    return [function(item) for item in items]


@cache
def _keep_freed_memory() -> None:
    """Let this process keep the memory that arrays free, as processes do that dask did not start.

    Dask's workers return it to the system at once (MALLOC_TRIM_THRESHOLD_): clips took 1.5 times as long.
    """
    if sys.platform == "linux" and hasattr(library := ctypes.CDLL(None), "mallopt"):
        library.mallopt(_M_MMAP_THRESHOLD, 32 * 2**20)
        library.mallopt(_M_TRIM_THRESHOLD, 64 * 2**20)
