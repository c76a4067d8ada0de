"""What commands print: results on standard output, progress and notes on standard error."""

from __future__ import annotations

import json
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
_WATCH_EVERY, _LINE_EVERY = 1.0, 5.0  # seconds, on a terminal and elsewhere

Report = Callable[[int, int], None]
"""Called with how much is done and how much there is in all."""


def note(text: str) -> None:
    """A remark on standard error, out of the way of results that are piped on."""
    Console(stderr=True, highlight=False, markup=False).print(text, style="dim")


def warn(text: str) -> None:
    """A warning on standard error."""
    Console(stderr=True, highlight=False, markup=False, soft_wrap=True).print(
        f"warning: {text}", style="yellow"
    )


def print_json(value: Any) -> None:
    """The value as JSON on standard output; NaN and infinity have no place in it."""
    sys.stdout.write(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on standard output; columns of numbers are set to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    lines = [tuple(row) for row in rows]
    for place, column in enumerate(columns):
        numeric = bool(lines) and all(line[place][:1].isdigit() for line in lines)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for line in lines:
        table.add_row(*line)
    _print(table)


def print_facts(title: str, facts: Iterable[tuple[str, str]]) -> None:
    """Names and values, one to a line, on standard output."""
    table = Table(
        title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, show_header=False
    )
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, value)
    _print(table)


def size(count: int) -> str:
    """A number of bytes as people write it."""
    return f"{count / 1e6:.1f} MB" if count >= 100_000 else f"{count / 1e3:.1f} kB"


def file_size(path: Path) -> str:
    """The size of a file as people write it."""
    return size(path.stat().st_size)


@contextmanager
def steps() -> Iterator[Callable[[str], None]]:
    """A line that shows what is under way; call what it gives with each next step. It leaves nothing behind."""
    with _bar(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()) as bar:
        shown = bar.add_task("", total=None)
        yield lambda step: bar.update(shown, description=step)


@contextmanager
def working(task: str) -> Iterator[None]:
    """A line that shows that one task is under way."""
    with steps() as step:
        step(task)
        yield


@contextmanager
def watching(words: Callable[[], str | None]) -> Iterator[None]:
    """Shows how far a task is until `words` returns None: one line on a terminal, else a line every few seconds."""
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
    """A bar for a task that reports how far it is."""
    amount = DownloadColumn() if download else MofNCompleteColumn()
    with _bar(TextColumn("{task.description}"), BarColumn(), amount, TimeElapsedColumn()) as bar:
        shown = bar.add_task(task, total=None)
        yield lambda done, total: bar.update(shown, completed=done, total=total or None)


@contextmanager
def sharing(task: str) -> Iterator[Callable[[float], None]]:
    """A bar for a task that reports what share of it is done."""
    with counting(task) as report:
        yield lambda share: report(int(100 * share), 100)


def _print(table: Table) -> None:
    """On standard output. Piped on, lines are neither folded nor padded: whoever reads them may look for a word."""
    if sys.stdout.isatty():
        Console(highlight=False, markup=False).print(table)
        return
    console = Console(highlight=False, markup=False, width=_PIPED_WIDTH)
    with console.capture() as captured:
        console.print(table)
    sys.stdout.writelines(line.rstrip() + "\n" for line in captured.get().splitlines())


def _bar(*columns: ProgressColumn) -> Progress:
    console = Console(stderr=True, markup=False)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
