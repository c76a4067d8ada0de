"""Write, read and describe files with odd names under odd locales: python fuzz/fuzz_names.py --count 5000 --seed 0"""

from __future__ import annotations

import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path

import numpy as np
from running import Case, parser, run

import poise
from poise.cli import main as command
from poise.performer import act

Random = np.random.Generator
WALK = act("walk", seconds=0.1, fps=30)
MARKERS = poise.virtual_markers(WALK)
ENCODINGS = ("ascii", "latin-1", "utf-8", "cp1252", "utf-16", "shift_jis")
PIECES = (
    "walk", " ", "-", "--help", "~", "$HOME", "%2e", "..", "\n", "\r", "\t", "\x07", "\x1b[31m", "[red]", "[/]", "{x}",
    "'", '"', "\\", ":", "*", "?", "#", "\u202e", "\u0301", "\u00e9", "\u65e5\u672c", "\U0001f57a",
    "\udcff", "\udc80", "\ufeff",
)  # fmt: skip


def main() -> int:
    """Run the fuzzer; return 1 if anything failed."""
    return 1 if run(cases_of(), parser(__doc__, count=5_000).parse_args()) else 0


def cases_of() -> dict[str, Case]:
    """A case for each format."""
    return {f"{extension} {way}": partial(_case, extension, by)
            for extension in (".bvh", ".glb", ".amc", ".trc", ".c3d")
            for way, by in (("by the interface", _by_the_interface), ("by the command", _by_the_command))}  # fmt: skip


def _case(extension: str, by: partial[None], random: Random, folder: Path) -> None:
    pieces = random.choice(len(PIECES), size=int(random.integers(1, 8)))
    stem = "".join(PIECES[k] for k in pieces) * (30 if random.random() < 0.05 else 1)
    path = folder / f"{stem}{extension}"
    poise.write(MARKERS if extension in (".trc", ".c3d") else WALK, path)
    assert [one for one in os.listdir(folder) if one.endswith(extension)], "the file has another name"
    by(path, random)


def _by_the_interface(path: Path, random: Random) -> None:  # noqa: ARG001 - as the other
    found = poise.read(path)
    assert len(found) == len(WALK)
    repr(found), str(found)


def _by_the_command(path: Path, random: Random) -> None:
    encoding = str(random.choice(ENCODINGS))
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding=encoding) for _ in range(2))
    words = ["info", *(["--json"] if random.random() < 0.5 else []), str(path)]
    with redirect_stdout(out), redirect_stderr(err):
        code = command(words)
    err.flush()
    said = err.buffer.getvalue().decode(encoding, "replace")  # type: ignore[attr-defined]
    assert code == 0, f"exit code {code}: {said[:200]}"


if __name__ == "__main__":
    sys.exit(main())
