"""Output of commands: results on standard output, progress and notes on standard error."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

_PIPED_WIDTH = 1000
_WATCH_EVERY = 1.0  # seconds
_FIRST_LINE, _LINE_EVERY = 2.0, 5.0  # seconds, where standard error is not a terminal
_DESCRIPTION = TextColumn("{task.description}")

Report = Callable[[int, int], None]
"""Called with the amount done and the total."""


class _Aside(Console):
    """Standard error. If its reader has left, the command continues without words: its work must be saved."""

    def __init__(self, *, highlight: bool = False, soft_wrap: bool = False) -> None:
        super().__init__(stderr=True, highlight=highlight, markup=False, soft_wrap=soft_wrap)

    def on_broken_pipe(self) -> None:
        """Discard this and everything that follows."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


class _Heard:
    """When the user last heard of the command, and how many progress lines are shown."""

    at, shown, over = 0.0, 0, Event()


@contextmanager
def waiting(command: str) -> Iterator[None]:
    """Say after two seconds, and every few, that a command is at work while it shows no progress of its own."""
    over, begun = Event(), time.monotonic()
    _Heard.at, _Heard.over = begun, over

    def tell() -> None:
        while not over.wait(0.25 * _FIRST_LINE):
            now = time.monotonic()
            if _Heard.shown or now < _Heard.at + _FIRST_LINE:
                continue
            compiled = getattr(sys.modules.get("poise.compiled"), "kernels_compiled", int)()
            doing = f"compiling, needed once ({compiled} functions so far)" if compiled else "at work"
            note(f"{command}: {doing}, {now - begun:.0f} s")
            _Heard.at = now + _LINE_EVERY - _FIRST_LINE

    with nullcontext() if os.environ.get("POISE_QUIET") else _beside(tell, over):
        yield


def stay() -> None:
    """From here on, the command waits for others, and its user does not wait for it."""
    _Heard.over.set()


@contextmanager
def _beside(tell: Callable[[], None], over: Event) -> Iterator[None]:
    """Run a function beside the block, until `over` is set at its end."""
    teller = Thread(target=tell, daemon=True, name="poise-progress")
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()


def note(text: str) -> None:
    """Print a note on standard error, separate from piped results."""
    _Heard.at = time.monotonic()
    _Aside().print(text, style="dim")


def warn(text: str) -> None:
    """Print a warning on standard error."""
    _Aside(soft_wrap=True).print(f"warning: {text}", style="yellow")


def print_json(value: Any) -> None:
    """Print the value as JSON on standard output, without NaN and infinity."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table on standard output; number columns are right-aligned."""
    table, lines = Table(box=None, pad_edge=False, header_style="bold"), list(rows)
    for place, column in enumerate(columns):
        numeric = bool(lines) and all(line[place][:1].isdigit() for line in lines)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for line in lines:
        table.add_row(*line)
    _print(table)


def print_facts(title: str, facts: Iterable[tuple[str, str]]) -> None:
    """Print names and values, one per line, on standard output."""
    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, show_header=False
    )
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for fact in facts:
        table.add_row(*fact)
    _print(table)


def size(count: int) -> str:
    """A number of bytes in readable form."""
    return f"{count / 1e6:.1f} MB" if count >= 100_000 else f"{count / 1e3:.1f} kB"


def file_size(path: Path) -> str:
    """The size of a file in readable form."""
    return size(path.stat().st_size)


@contextmanager
def _shown(task: str, *columns: ProgressColumn) -> Iterator[Callable[..., None]]:
    """A progress line on a terminal, erased at the end; elsewhere a line after two seconds, then every few."""
    console = _Aside(highlight=True)
    quiet = not console.is_terminal
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True, disable=quiet) as bar:
        shown = bar.add_task(task, total=None)

        def words() -> str:
            now = bar.tasks[0]
            share = f", {now.percentage:.0f} %" if now.total else ""
            return f"{now.description}{share}, {now.elapsed or 0.0:.0f} s" if now.description else ""

        over = Event()

        def tell() -> None:
            wait = _FIRST_LINE
            while not over.wait(wait):
                if said := words():
                    note(said)
                wait = _LINE_EVERY

        _Heard.shown += 1
        try:
            with _beside(tell, over) if quiet and not os.environ.get("POISE_QUIET") else nullcontext():
                yield partial(bar.update, shown)
        finally:
            _Heard.shown -= 1
            _Heard.at = time.monotonic()


@contextmanager
def steps() -> Iterator[Callable[[str], None]]:
    """Show a line with the current step; call the returned function with each next step. It is erased at the end."""
    with _shown("", SpinnerColumn(), _DESCRIPTION) as update:
        yield lambda step: update(description=step)


@contextmanager
def working(task: str) -> Iterator[None]:
    """Show a line while one task is running."""
    with _shown(task, SpinnerColumn(), _DESCRIPTION):
        yield


@contextmanager
def watching(words: Callable[[], str | None]) -> Iterator[None]:
    """Show progress until `words` returns None."""
    over = Event()

    def watch() -> None:
        with steps() as step:
            while (said := words()) is not None and not over.is_set():
                step(said)
                over.wait(_WATCH_EVERY)

    with _beside(watch, over):
        yield


def compiled_first() -> None:
    """Compile what a first pose needs, on two processors and with its progress, unless that is kept."""
    from poise.apps.warm_up import FIRST_POSE, compile_all, is_compiled, pace_of

    if not is_compiled() and (os.cpu_count() or 1) > 1:  # one processor compiles less by itself
        pace = pace_of(FIRST_POSE)
        with watching(lambda: f"compiling, needed once: {pace.words}"):
            compile_all(pace, FIRST_POSE)


@contextmanager
def counting(task: str, *, download: bool = False) -> Iterator[Report]:
    """A progress bar for a task that reports amounts."""
    amount = DownloadColumn() if download else MofNCompleteColumn()
    with _shown(task, _DESCRIPTION, BarColumn(), amount) as update:
        yield lambda done, total: update(completed=done, total=total or None)


@contextmanager
def naming() -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar for tasks that report their step and amounts."""
    with _shown("", _DESCRIPTION, BarColumn(), MofNCompleteColumn()) as update:
        yield lambda step, done, total: update(description=step, completed=done, total=total or None)


@contextmanager
def sharing(task: str) -> Iterator[Callable[[float], None]]:
    """A progress bar for a task that reports fractions."""
    with counting(task) as report:
        yield lambda share: report(int(100 * share), 100)


def _print(table: Table) -> None:
    """The console of standard output. When piped, lines are neither wrapped nor padded, so they can be searched."""
    if sys.stdout.isatty():
        Console(highlight=False, markup=False).print(table)
        return
    console = Console(highlight=False, markup=False, width=_PIPED_WIDTH)
    with console.capture() as captured:
        console.print(table)
    sys.stdout.writelines(line.rstrip() + "\n" for line in captured.get().splitlines())
