"""`python -m benchmarks [NAME ...] [--json FILE]`: run the benchmarks and print one table."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.table import Row
from poise.evaluation.report import machine, versions

NOT_BENCHMARKS = ("__init__", "__main__", "table", "latent_models", "gpytorch_models")


def main() -> None:
    """Run the named modules of this folder, or all that have a `run`."""
    names = sorted(
        file.stem for file in Path(__file__).parent.glob("*.py") if file.stem not in NOT_BENCHMARKS
    )
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of: {', '.join(names)}")
    parser.add_argument("--json", type=Path, help="also write the rows to this file")
    given = parser.parse_args()
    console = Console(width=None if sys.stdout.isatty() else 140)
    rows = {}
    for name in given.names or names:
        with console.status(f"measuring {name}"):
            rows[name] = import_module(f"benchmarks.{name}").run()
    show(console, rows)
    if given.json:
        given.json.write_text(json.dumps(as_json(rows), indent=2) + "\n", encoding="utf-8")


def show(console: Console, rows: dict[str, list[Row]]) -> None:
    """One table of all rows, with machine and versions below it."""
    table = Table("", "ours", "peer", "ours / peer", "", box=None, pad_edge=False)
    for name, measured in rows.items():
        table.add_row(f"[bold]{name.replace('_', ' ')}")
        for row in measured:
            table.add_row(row.name, f"{row.ours:,.4g} {row.unit}", _peer(row), _ratio(row), row.note)
    console.print(table)
    console.print(f"\n{machine()}\n" + ", ".join(f"{name} {number}" for name, number in versions().items()))


def as_json(rows: dict[str, list[Row]]) -> dict[str, object]:
    """The measurements with the machine and versions."""
    flat = [
        {"benchmark": name, **asdict(row), "ratio": row.ratio}
        for name, measured in rows.items()
        for row in measured
    ]
    return {"machine": machine(), "versions": versions(), "rows": flat}


def _peer(row: Row) -> str:
    return "" if row.peer is None else f"{row.peer:,.4g} {row.unit} ({row.peer_name})"


def _ratio(row: Row) -> str:
    return "" if row.ratio is None else f"{row.ratio:.2f}"


if __name__ == "__main__":
    main()
