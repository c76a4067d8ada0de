"""What library code says to users: the words of the library, never those of the command line."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from poise.cli.main import _one_line
from poise.errors import InvalidValueError
from source_trees import SOURCE, source_trees


def _raised() -> Iterator[tuple[Path, int, str]]:
    """Every text in a raise statement outside the command line."""
    for path, tree in source_trees().items():
        if path.relative_to(SOURCE).parts[0] == "cli":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Raise):
                for part in ast.walk(node):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        yield path, part.lineno, part.value


def test_messages_of_the_library_name_no_flags() -> None:
    found = [
        f"{path.name}:{line}: {text}" for path, line, text in _raised() if re.search(r"(?<!\w)--\w", text)
    ]
    assert found == []


def test_the_command_line_adds_its_flags_to_a_message() -> None:
    error = InvalidValueError("two people; choose one", settings=("subject", "map"))
    assert _one_line(error) == "two people; choose one (see --subject --map)"


@pytest.mark.parametrize("message", ["", "no settings"])
def test_a_message_without_settings_stays_as_it_is(message: str) -> None:
    assert _one_line(InvalidValueError(message)) == message
