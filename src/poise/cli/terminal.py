"""Output of commands: results on standard output, progress and notes on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
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
_WATCH_EVERY, _LINE_EVERY = 1.0, 5.0  # seconds, on a terminal and otherwise

Report = Callable[[int, int], None]
"""Called with the amount done and the total."""


class _Aside(Console):
    """Standard error. If its reader has left, the command continues without words: its work must be saved."""

    def __init__(self, *, highlight: bool = False, soft_wrap: bool = False) -> None:
        super().__init__(stderr=True, highlight=highlight, markup=False, soft_wrap=soft_wrap)

    def on_broken_pipe(self) -> None:
        """Discard this and everything that follows."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def note(text: str) -> None:
    """Print a note on standard error, separate from piped results."""
    _Aside().print(text, style="dim")


def warn(text: str) -> None:
    """Print a warning on standard error."""
    _Aside(soft_wrap=True).print(f"warning: {text}", style="yellow")


def print_json(value: Any) -> None:
    """Print the value as JSON on standard output, without NaN and infinity."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table on standard output; number columns are right-aligned."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    lines = [tuple(row) for row in rows]
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
    for name, value in facts:
        table.add_row(name, value)
    _print(table)


def size(count: int) -> str:
    """A number of bytes in readable form."""
    return f"{count / 1e6:.1f} MB" if count >= 100_000 else f"{count / 1e3:.1f} kB"


def file_size(path: Path) -> str:
    """The size of a file in readable form."""
    return size(path.stat().st_size)


@contextmanager
def steps() -> Iterator[Callable[[str], None]]:
    """Show a line with the current step; call the returned function with each next step. It is erased at the end."""
    with _bar(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()) as bar:
        shown = bar.add_task("", total=None)
        yield lambda step: bar.update(shown, description=step)


@contextmanager
def working(task: str) -> Iterator[None]:
    """Show a line while one task is running."""
    with steps() as step:
        step(task)
        yield


@contextmanager
def watching(words: Callable[[], str | None]) -> Iterator[None]:
    """Show progress until `words` returns None: one line on a terminal, else a line every few seconds."""
    over, shown = Event(), sys.stderr.isatty()

    def show(step: Callable[[str], None]) -> None:
        while not over.wait(_WATCH_EVERY if shown else _LINE_EVERY) and (said := words()) is not None:
            step(said)

    def watch() -> None:
        if shown:
            with steps() as step:
                show(step)
        else:
            show(note)

    watcher = Thread(target=watch, daemon=True, name="poise-progress")
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


@contextmanager
def counting(task: str, *, download: bool = False) -> Iterator[Report]:
    """A progress bar for a task that reports amounts."""
    amount = DownloadColumn() if download else MofNCompleteColumn()
    with _bar(TextColumn("{task.description}"), BarColumn(), amount, TimeElapsedColumn()) as bar:
        shown = bar.add_task(task, total=None)
        yield lambda done, total: bar.update(shown, completed=done, total=total or None)


@contextmanager
def naming() -> Iterator[Callable[[str, int, int], None]]:
    """A progress bar for tasks that report their step and amounts."""
    with _bar(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    ) as bar:
        shown = bar.add_task("", total=None)
        yield lambda step, done, total: bar.update(
            shown, description=step, completed=done, total=total or None
        )


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


def _bar(*columns: ProgressColumn) -> Progress:
    console = _Aside(highlight=True)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
