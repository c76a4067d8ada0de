"""Feeds damaged motion libraries to Poise and uses those that it opens: python fuzz/fuzz_libraries.py --count 5000

The catalogue is damaged as bytes or cell by cell; shards, poses and the neighbour graph as bytes, arrays or headers,
with their checksums put right or not. Whatever a library says, nothing outside its folder is touched.
"""

from __future__ import annotations

import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
from fuzz_models import damaged
from mutations import Mutator, changed_json
from running import Case, parser, run

from poise import performer
from poise.errors import PoiseError
from poise.evaluation.searches import graph_of
from poise.formats import write
from poise.library.build import build
from poise.library.catalogue import FILE
from poise.library.store import POSES_FILE, Library

ACTIONS = ("walk", "reach")
TABLES = {
    "clips": ("name", "variant", "performer", "tags", "skeleton", "fps", "frames", "source", "source_sha256",
              "frames_sha256", "shard", "shard_sha256", "provenance"),
    "skeletons": ("key", "description"),
    "facts": ("name", "value"),
    "refused": ("source", "reason"),
    "damaged": ("clip",),
}  # fmt: skip
STRANGE_CELLS = (
    "", "x", b"\xff\x00", 0, -1, 2**62, 1e308, -1e-320, "../victim", "shards/../../victim", "/victim", "shards/x\0y",
    "walk", "reach", "x" * 100_000, "[" * 5000, "{}", "[]", "null", "NaN", "1e999", "\ud800".encode("utf-8", "replace"),
)  # fmt: skip


def main() -> int:
    """Run the fuzzer; return 1 if anything failed."""
    options = parser(__doc__, count=5_000).parse_args()
    with tempfile.TemporaryDirectory() as name:
        seed = make_library(Path(name))
        ways = {"catalogue": _cells, "bytes": _bytes, "arrays": _arrays}
        cases: dict[str, Case] = {kind: partial(_case, seed, damage) for kind, damage in ways.items()}
        return 1 if run(cases, options) else 0


def make_library(folder: Path) -> Path:
    """A small valid library, with its poses and its graph."""
    for action in ACTIONS:
        write(performer.act(action, seconds=1.0, fps=30), folder / f"{action}.bvh")
    build(folder / "library", [folder / f"{action}.bvh" for action in ACTIONS])
    library = Library.open(folder / "library")
    with closing(library.catalogue):
        graph_of(library)
    _case(folder / "library", lambda *_: None, np.random.default_rng(0), folder / "used")
    return folder / "library"


def _case(
    seed: Path,
    damage: Callable[[Path, np.random.Generator], None],
    generator: np.random.Generator,
    folder: Path,
) -> None:
    place, victim = folder / "library", folder / "victim"
    shutil.copytree(seed, place)
    victim.write_text("safe")
    damage(place, generator)
    try:
        use(place)
    finally:
        assert victim.read_text() == "safe", "a file outside the library was touched"


def use(place: Path) -> None:
    """Typical uses of a library; a refused part does not prevent the use of the others."""
    library = Library.open(place)
    with closing(library.catalogue):
        list(library.check())
        names = [clip.name for clip in library.search(["a"])] + ["walk"]
        for name in names:
            for read in (library.motion, library.canonical_motion):
                with suppress(PoiseError):
                    assert np.isfinite(read(name).root_positions).all(), "a motion that is not finite"
        with suppress(PoiseError):
            poses = library.poses
            assert np.isfinite(poses.maps).all(), "poses that are not finite"
            graph_of(library)
            poses.motion(slice(0, 2))
        with suppress(PoiseError):
            library.remove(names[:1])
        library.repair()
        library.refresh()


# --- damage --------------------------------------------------------------------------------------------------------


def _cells(place: Path, generator: np.random.Generator) -> None:
    """Change some cells to strange values, through SQL."""
    with closing(sqlite3.connect(place / FILE)) as catalogue, catalogue:
        for _ in range(int(generator.integers(1, 4))):
            table = str(generator.choice(list(TABLES)))
            column = str(generator.choice(TABLES[table]))
            rows = catalogue.execute(f"SELECT rowid, {column} FROM {table} ORDER BY rowid").fetchall()
            with suppress(sqlite3.Error):
                if rows:
                    number, cell = rows[int(generator.integers(len(rows)))]
                    change = f"UPDATE {table} SET {column} = ? WHERE rowid = ?"
                    catalogue.execute(change, (_strange(cell, generator), number))
                else:
                    cells = [_strange(None, generator) for _ in TABLES[table]]
                    marks = ", ".join("?" * len(cells))
                    catalogue.execute(f"INSERT INTO {table} VALUES ({marks})", cells)


def _strange(cell: object, generator: np.random.Generator) -> object:
    if isinstance(cell, str) and generator.random() < 0.4:
        return changed_json(cell, generator)
    return STRANGE_CELLS[int(generator.integers(len(STRANGE_CELLS)))]


def _bytes(place: Path, generator: np.random.Generator) -> None:
    """Change some bytes of one file, or remove it."""
    files = sorted(path for path in place.rglob("*") if path.is_file())
    file = files[int(generator.integers(len(files)))] if generator.random() < 0.5 else place / FILE
    if generator.random() < 0.05:
        file.unlink()
        return
    content = file.read_bytes()
    file.write_bytes(Mutator(generator, (content,))(content))


def _arrays(place: Path, generator: np.random.Generator) -> None:
    """Change the arrays or the header of a file, and usually the checksum too."""
    files = sorted(place.rglob("*.safetensors"))
    file = files[int(generator.integers(len(files)))]
    file.write_bytes(damaged(file.read_bytes(), generator))
    if generator.random() < 0.8:
        digest = sha256(file.read_bytes()).hexdigest()
        with closing(sqlite3.connect(place / FILE)) as catalogue, catalogue:
            shard = str(file.relative_to(place))
            catalogue.execute("UPDATE clips SET shard_sha256 = ? WHERE shard = ?", (digest, shard))
            if file.name == POSES_FILE:
                catalogue.execute("UPDATE facts SET value = ? WHERE name = 'poses_sha256'", (digest,))


if __name__ == "__main__":
    sys.exit(main())
