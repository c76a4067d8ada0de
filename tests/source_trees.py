"""Poise's own modules, and their syntax trees, parsed once for all tests of a process that read the source."""

import ast
import gc
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "poise"


@cache
def source_trees() -> dict[Path, ast.Module]:
    """Every module and its tree.

    Python below 3.11.8 confuses two parses if a collection of garbage lets another thread import within the first
    (python/cpython#106905).
    """
    gc.disable()
    try:
        return {file: ast.parse(file.read_text("utf-8")) for file in source_files()}
    finally:
        gc.enable()


def source_files(folder: Path = SOURCE) -> Iterator[Path]:
    """Every module. The page's folder is not entered: it holds no Python, and thousands of files of npm."""
    for path in sorted(folder.iterdir()):
        if path.is_dir() and path.name != "web":
            yield from source_files(path)
        elif path.suffix == ".py":
            yield path
