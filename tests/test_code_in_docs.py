"""What the documentation shows can be typed: commands are valid, no line is wider than a screen."""

import re
import shlex
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
WIDEST = 120


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _commands(text: str) -> list[str]:
    joined = re.sub(r"\\\n\s*", " ", text)
    return re.findall(r"^(?: {4})?(poise [a-z].*)$", joined, flags=re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "extending.md"], ids=_name)
def test_every_command_is_valid(page: Path) -> None:
    """Each is parsed as the program parses it; nothing runs. The page on extending has options of its own."""
    from poise.cli.app import app

    for command in _commands(page.read_text("utf-8")):
        app.parse_args(shlex.split(command, comments=True)[1:], exit_on_error=False, print_error=False)


def test_commands_are_found() -> None:
    assert len(_commands((ROOT / "docs" / "command-line.md").read_text("utf-8"))) > 80


def test_no_line_is_too_wide() -> None:
    wide = [
        f"{_name(page)}:{number}: {len(line)} characters"
        for page in PAGES
        for number, line in enumerate(page.read_text("utf-8").splitlines(), 1)
        if len(line) > WIDEST
    ]
    assert wide == []
