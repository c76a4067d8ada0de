"""The documentation keeps up with the program: every command has its section, every page a place in the contents."""

import re
from pathlib import Path

import pytest

from poise.cli.overview import COMMANDS

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_section(command: str) -> None:
    page = (DOCS / "command-line.md").read_text(encoding="utf-8")
    assert f"\n## {command}\n" in page
    assert re.search(rf"^    poise {command}\b", page, flags=re.MULTILINE)


def test_every_decision_is_listed() -> None:
    index = (DOCS / "decisions" / "index.md").read_text(encoding="utf-8")
    for page in (DOCS / "decisions").glob("0*.md"):
        assert f"]({page.name})" in index
