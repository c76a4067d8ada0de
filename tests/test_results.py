"""The tables of docs/results can be measured again by the commands that stand beside them."""

import importlib.util
import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "results").glob("*.md"))
spec = importlib.util.spec_from_file_location("results", ROOT / "tools" / "results.py")
assert spec is not None
assert spec.loader is not None
results = importlib.util.module_from_spec(spec)
spec.loader.exec_module(results)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_table_has_its_command_and_columns(page: Path) -> None:
    from poise.cli.main import program

    text = page.read_text("utf-8")
    tables = list(results.TABLE.finditer(text))
    assert len(tables) == len(re.findall(r"^\|---", text, flags=re.MULTILINE))
    for found in tables:
        program().parse_args(shlex.split(found["command"])[1:], exit_on_error=False, print_error=False)
        assert f"| {' | '.join(found['columns'].split())} |" in found[0]
        assert f"`{' '.join(found['command'].split())}`" in re.sub(r"\s+", " ", text)


def test_means_have_their_deviations() -> None:
    rows = [
        {"method": "a", "deg": 1.234, "frames": 3},
        {"method": "a, spread", "deg": 0.5, "frames": 0},
        {"method": "b", "deg": 2.0},
        {"method": "c", "rms": 2.0},
    ]
    made = results.table(rows, ["method", "deg", "frames"]).splitlines()
    assert made == [
        "| method | deg | frames |",
        "|---|---|---|",
        "| a | 1.23 ± 0.50 | 3 |",
        "| b | 2.00 |  |",
    ]
