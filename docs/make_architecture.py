"""Writes which room imports which into `architecture.md`, as the code has it: `make architecture`."""

import ast
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
SOURCE = HERE.parent / "src" / "poise"
PAGE = HERE / "architecture.md"
BEGIN, END = "<!-- imports: begin -->\n", "<!-- imports: end -->\n"


def rooms() -> list[str]:
    """The rooms from the top down, as import-linter checks them."""
    settings = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    layers: list[str] = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    return layers


def imported(path: Path) -> set[str]:
    """The rooms that a module imports from."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "poise":
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("poise."):
            names.add((node.module or "").split(".")[1])
    return names & set(rooms())


def table() -> str:
    """A row per room, a column per room by its number: a mark where a module of the row imports from the column."""
    order = rooms()
    edges = {room: set[str]().union(*map(imported, _modules(room))) - {room} for room in order}
    used = [room for room in order if any(room in others for others in edges.values())]
    number = {room: order.index(room) + 1 for room in used}
    lines = [f"| room |{'|'.join(str(number[room]) for room in used)}|", "|---|" + "-|" * len(used)]
    for row, room in enumerate(order, 1):
        marks = ["●" if other in edges[room] else "" for other in used]
        lines.append(f"| {row} **{room}** |{'|'.join(marks)}|")
    return "\n".join(lines) + "\n"


def _modules(room: str) -> list[Path]:
    return list((SOURCE / room).rglob("*.py")) or [SOURCE / f"{room}.py"]


def page(text: str) -> str:
    """The page with the table as the code is now."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + table() + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
