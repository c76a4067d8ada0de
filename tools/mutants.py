"""Change operators of Poise at random, one at a time, and count the changes that the tests notice.

    python tools/mutants.py --count 100 --seed 7

A mutant is a copy of the package with one comparison, sum, product or condition turned into its opposite, in code that
is not compiled. The fast tests of its own room run against it, those that name its module first. Fewer than 85 of 100
noticed is a failure.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "poise"
LEAST = 0.85
SECONDS = 900.0  # of one run of the tests; a mutant that hangs is noticed
OPPOSITES: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


def main() -> int:
    """The sampled share of mutants that tests notice."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chance, files, missed, sound = random.Random(given.seed), testable(), 0, set[tuple[str, ...]]()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "poise"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("web"))
        shutil.copytree(PACKAGE / "studio" / "web" / "dist", copy / "studio" / "web" / "dist")
        for number in range(1, given.count + 1):
            file = chance.choice(files)
            source, where = mutant(file, chance)
            changed, noticed = copy / file.relative_to(PACKAGE), False
            for tests in tests_of(file):
                if tests not in sound and is_noticed(tests, Path(folder)):
                    sys.exit(f"{' '.join(tests)}: tests fail without a change")
                sound.add(tests)
                changed.write_text(source, encoding="utf-8")
                noticed = is_noticed(tests, Path(folder))
                shutil.copy(file, changed)
                if noticed:
                    break
            missed += not noticed
            print(f"{number}: {'noticed' if noticed else 'MISSED '} {where}", flush=True)
    print(f"{given.count - missed} of {given.count} mutants are noticed")
    return int(given.count - missed < LEAST * given.count)


def testable() -> list[Path]:
    """Modules with operators to change, whose room has tests, and without compiled code."""
    return [
        file
        for file in sorted(PACKAGE.glob("*/**/*.py"))
        if (ROOT / "tests" / file.relative_to(PACKAGE).parts[0]).is_dir()
        and "poise.compiled" not in (text := file.read_text(encoding="utf-8"))
        and operators(ast.parse(text))
    ]


def operators(tree: ast.Module) -> list[tuple[ast.AST, str]]:
    """Nodes with an operator that has an opposite, and the name of its field; not those in annotations."""
    notes = {id(part) for node in ast.walk(tree) for note in annotations(node) for part in ast.walk(note)}
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and type(node.ops[0]) in OPPOSITES:
            found.append((node, "ops"))
        elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in OPPOSITES:
            found.append((node, "op"))
    return [(node, field) for node, field in found if id(node) not in notes]


def annotations(node: ast.AST) -> list[ast.AST]:
    """The annotations of a node."""
    return [note for name in ("annotation", "returns") if (note := getattr(node, name, None)) is not None]


def mutant(file: Path, chance: random.Random) -> tuple[str, str]:
    """The source of a module with one operator changed, and which."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    node, field = chance.choice(operators(tree))
    before = ast.unparse(node)
    if field == "ops":
        node.ops[0] = OPPOSITES[type(node.ops[0])]()  # type: ignore[attr-defined]
    else:
        node.op = OPPOSITES[type(node.op)]()  # type: ignore[attr-defined]
    line = getattr(node, "lineno", 0)
    return ast.unparse(tree), f"{file.relative_to(ROOT)}:{line}: {before} became {ast.unparse(node)}"


def tests_of(file: Path) -> list[tuple[str, ...]]:
    """The tests that name a module, then all others of its room."""
    module = ".".join(file.relative_to(PACKAGE).with_suffix("").parts)
    folder = ROOT / "tests" / file.relative_to(PACKAGE).parts[0]
    every = [test for test in sorted(folder.rglob("test_*.py")) if "browser" not in test.parts]
    near = [
        test for test in every if re.search(rf"\b{re.escape(module)}\b", test.read_text(encoding="utf-8"))
    ]
    parts = near, [test for test in every if test not in near]
    return [tuple(str(test.relative_to(ROOT)) for test in part) for part in parts if part]


def is_noticed(tests: tuple[str, ...], folder: Path) -> bool:
    """Whether fast tests fail with the package of a folder."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    try:
        ran = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return True
    return ran.returncode not in (0, 5)  # 5: all of them are slow ones


if __name__ == "__main__":
    sys.exit(main())
