"""Runs the evaluations whose tables docs/results shows, and writes the tables: `make results`.

A table stands between two comments. The first names its command, which may take several lines, and its columns:

    <!-- poise evaluate handles --methods dls,gaussian-100
    method deg_per_joint mpjpe_cm -->
    <!-- end -->

Rows called "NAME, spread" become the deviations of the row NAME. `--quick` tests on fewer frames and writes to
out/results instead, to see that all of it runs. Pages may be named: tools/results.py topology.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import tempfile
from pathlib import Path
from typing import Any

from poise.cli import main

FOLDER = Path(__file__).parents[1] / "docs" / "results"
TABLE = re.compile(
    r"<!-- (?P<command>poise evaluate [^<]*?)\n(?P<columns>[\w ]+) -->\n.*?<!-- end -->", re.DOTALL
)
STRIDE = "64"  # of a quick run
SPREAD = ", spread"

Rows = list[dict[str, Any]]


def measured(command: str, *, quick: bool) -> Rows:
    """The rows of a command's report."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        tokens = shlex.split(command)[1:]
        if quick and "--stride" in tokens:
            tokens[tokens.index("--stride") + 1] = STRIDE
        if main([*tokens, "--json", str(report)]):
            raise SystemExit(f"results: {command} failed")
        rows: Rows = json.loads(report.read_text("utf-8"))["rows"]
        return rows


def table(rows: Rows, columns: list[str]) -> str:
    """The rows as Markdown, with deviations after their means; rows without a number are left out."""
    spreads = {row["method"].removesuffix(SPREAD): row for row in rows if row["method"].endswith(SPREAD)}
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    for row in rows:
        shown = any(isinstance(row.get(column), int | float) for column in columns)
        if shown and not row["method"].endswith(SPREAD):
            spread = spreads.get(row["method"], {})
            lines.append(f"| {' | '.join(cell(row, spread, column) for column in columns)} |")
    return "\n".join(lines)


def cell(row: dict[str, Any], spread: dict[str, Any], column: str) -> str:
    """One value, with its deviation where there is one."""
    value = row.get(column, "")
    if not isinstance(value, float):
        return str(value)
    digits = 3 if 0.0 < abs(value) < 0.1 else 2
    return f"{value:.2f} ± {spread[column]:.2f}" if column in spread else f"{value:.{digits}f}"


def renewed(text: str, *, quick: bool = False) -> str:
    """A page with all of its tables measured again; each command is run once."""
    known: dict[str, Rows] = {}

    def put(found: re.Match[str]) -> str:
        command = " ".join(found["command"].split())
        if command not in known:
            print(command, flush=True)
            known[command] = measured(command, quick=quick)
        made = table(known[command], found["columns"].split())
        return f"<!-- {found['command']}\n{found['columns']} -->\n\n{made}\n\n<!-- end -->"

    return TABLE.sub(put, text)


def run() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="*", help="names in docs/results; all if none")
    parser.add_argument("--quick", action="store_true", help="fewer frames, into out/results")
    given = parser.parse_args()
    for path in sorted(FOLDER.glob("*.md")):
        if path.stem in (given.pages or [path.stem]):
            target = Path("out/results") / path.name if given.quick else path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(renewed(path.read_text("utf-8"), quick=given.quick), encoding="utf-8")


if __name__ == "__main__":
    run()
