"""Within a room no module imports, by whatever way, one that imports it: a room reads from one end to the other.

Import-linter checks the order of the rooms themselves (`make layers`). Imports for annotations alone count too, since a
reader follows them; imports in functions count as well.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "poise"
ROOMS = sorted(folder.name for folder in SOURCE.iterdir() if (folder / "__init__.py").exists())
BEING_MENDED = {"priors": 10, "solvers": 6, "studio": 20}
"""Rooms that still have cycles, and how many modules stand in them: this list only ever gets shorter."""


@cache
def modules(room: str) -> dict[str, Path]:
    found = {}
    for path in (SOURCE / room).rglob("*.py"):
        if "web" not in path.relative_to(SOURCE).parts:
            parts = ("poise", *path.relative_to(SOURCE).with_suffix("").parts)
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


def imports(room: str, module: str) -> Iterator[str]:
    """The other modules of its room that a module names; a package by itself is not meant by `from package import`."""
    known = modules(room)
    for node in ast.walk(ast.parse(known[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for name in (f"{node.module}.{alias.name}" for alias in node.names):
                yield name if name in known else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def in_cycles(room: str) -> list[str]:
    """Modules that can be reached from themselves."""
    edges = {
        module: {other for other in imports(room, module) if other in modules(room)}
        for module in modules(room)
    }
    edges = {module: others - {module} for module, others in edges.items()}

    def reached(module: str) -> set[str]:
        seen, waiting = set[str](), [module]
        while waiting:
            for other in edges[waiting.pop()] - seen:
                seen.add(other)
                waiting.append(other)
        return seen

    return sorted(module for module in edges if module in reached(module))


@pytest.mark.parametrize("room", ROOMS)
def test_no_module_imports_what_imports_it(room: str) -> None:
    found = in_cycles(room)
    assert len(found) <= BEING_MENDED.get(room, 0), found
    assert bool(found) == (room in BEING_MENDED), f"mended: take {room} off the list"
