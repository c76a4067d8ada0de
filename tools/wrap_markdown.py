"""Wraps the paragraphs and list items of Markdown files at 100 columns; tables, code, comments and headings stay.

python tools/wrap_markdown.py README.md docs/*.md            --check only names files with lines that are too long
"""

import re
import sys
import textwrap
from pathlib import Path

COLUMNS = 100
MOST = 120  # for what cannot be wrapped: code and tables
ITEM = re.compile(r"( *)([-*+]|\d+\.) +")
STAYS = re.compile(r"\||#|```|~~~|!!!|:::|---$|<|\[\w+\]:")


def wrapped(text: str) -> str:
    """The text with its paragraphs wrapped."""
    out: list[str] = []
    block: list[str] = []
    fenced = commented = False

    def flush() -> None:
        if block:
            out.extend(_paragraph(block))
            block.clear()

    in_list = False
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith(("```", "~~~")):
            flush()
            fenced = not fenced
            out.append(line)
        elif fenced or commented or not stripped or STAYS.match(stripped):
            flush()
            out.append(line)
            commented = (commented or stripped.startswith("<!--")) and "-->" not in stripped
            in_list = in_list and (not stripped or line.startswith(" "))
        elif ITEM.match(line):
            flush()
            block.append(line)
            in_list = True
        elif line.startswith("    ") and not block and not in_list:
            out.append(line)  # code
        else:
            in_list = in_list and (bool(block) or line.startswith(" "))
            block.append(line)
    flush()
    return "\n".join(out) + "\n"


def _paragraph(lines: list[str]) -> list[str]:
    """One paragraph or list item, wrapped under its own indent."""
    if any(line.endswith("  ") for line in lines):
        return list(lines)  # it has line breaks of its own
    item = ITEM.match(lines[0])
    first = item[0] if item else re.match(" *", lines[0])[0]  # type: ignore[index]
    words = " ".join(line.strip() for line in [lines[0][len(first) :], *lines[1:]])
    rest = " " * len(first)
    found = textwrap.wrap(
        words,
        COLUMNS,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return (
        found
        if all(not ITEM.match(line) and not STAYS.match(line.strip()) for line in found[1:])
        else list(lines)
    )


def main(arguments: list[str]) -> int:
    """Wrap the files, or only look for lines that are too long."""
    check = "--check" in arguments
    bad = 0
    for name in (argument for argument in arguments if argument != "--check"):
        path = Path(name)
        text = path.read_text(encoding="utf-8")
        if not check:
            path.write_text(wrapped(text), encoding="utf-8")
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if len(line) > MOST:
                bad += 1
                print(f"{name}:{number}: {len(line)} columns; at most {MOST}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
