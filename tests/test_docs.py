"""The documentation keeps up with the program: every command has its section, every page a place in the contents."""

import ast
import itertools
import re
import tomllib
from functools import cache
from pathlib import Path
from pkgutil import resolve_name

import pytest

import poise
from poise.cli.main import COMMANDS
from source_trees import SOURCE, source_trees

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_section(command: str) -> None:
    page = (DOCS / "api" / "commands.md").read_text(encoding="utf-8")
    assert f"\n## {command}\n" in page
    assert re.search(rf"^    poise {command}\b", page, flags=re.MULTILINE)


def test_every_decision_is_listed() -> None:
    index = (DOCS / "decisions" / "index.md").read_text(encoding="utf-8")
    for page in (DOCS / "decisions").glob("0*.md"):
        assert f"]({page.name})" in index


@cache
def _names_in_code() -> frozenset[str]:
    """Every name that the code defines or uses, modules and packages too, and `Class.member` for every class."""
    found = {"poise"}
    for path, tree in source_trees().items():
        found |= set(path.relative_to(SOURCE).with_suffix("").parts)
        for node in ast.walk(tree):
            names = {getattr(node, field, None) for field in ("name", "id", "attr", "arg", "value")}
            found |= {name for name in names if isinstance(name, str) and name.isidentifier()}
            if isinstance(node, ast.ClassDef):
                found |= {f"{node.name}.{member}" for member in _members(node)}
    return frozenset(found)


def _members(node: ast.ClassDef) -> set[str]:
    functions = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
    fields = {ast.unparse(part.target) for part in node.body if isinstance(part, ast.AnnAssign)}
    own = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return functions | fields | own


def _exists(name: str) -> bool:
    if not name.startswith("poise."):
        return name in _names_in_code()
    try:
        resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


@pytest.mark.parametrize("page", ["notation.md", "architecture.md", "results/notes/papers.md"])
def test_names_on_the_page_exist_in_the_code(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`([A-Za-z_]\w*(?:\.\w+)*)(?:\(\))?(?:\[[^`]*\])?`", text))
    assert len(named) > 20
    assert sorted(name for name in named if not _exists(name)) == []


def test_every_command_on_the_page_of_papers_is_valid() -> None:
    """Each is parsed as the program parses it, methods and splits are looked up; nothing runs."""
    from poise.cli.main import program
    from poise.evaluation.animate import METHODS as ANIMATORS
    from poise.evaluation.methods import method_named
    from poise.evaluation.splits import SPLITS
    from poise.priors.dynamics.structure import MODELS

    text = (DOCS / "results" / "notes" / "papers.md").read_text(encoding="utf-8").replace("\\\n", "")
    commands = {
        line.strip() for line in re.findall(r"^ {4}poise .*$|(?<=`)poise [^`]+(?=`)", text, re.MULTILINE)
    }
    whole = [command.split()[1:] for command in commands if "." in command or "--" in command]
    assert len(whole) > 15
    for tokens in whole:
        program().parse_args(tokens, exit_on_error=False, print_error=False)
        given = dict(itertools.pairwise(tokens))
        assert given.get("--split", "walk") in {*SPLITS, "optical"}
        for method in given["--methods"].split(",") if "--methods" in given else ():
            if method.removeprefix("urtasun2008-") not in {*MODELS, *ANIMATORS, "nearest", "lwr", "chai2005"}:
                method_named(method)


def test_every_room_is_described() -> None:
    settings = tomllib.loads((DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    rooms = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", page, flags=re.MULTILINE) == rooms
    decided = (DOCS / "decisions" / "0002-layers.md").read_text(encoding="utf-8")
    listed = re.search(r"From the bottom up: ([\w,\s]+)\.", decided)
    assert listed is not None
    assert listed[1].replace("\n", " ").split(", ") == rooms[::-1]


@pytest.mark.parametrize("page", [str(path.relative_to(DOCS)) for path in sorted(DOCS.rglob("*.md"))])
def test_code_on_the_page_uses_names_that_exist(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    for line in re.findall(r"^ *((?:from poise[\w.]* )?import [\w, ]+)$", text, flags=re.MULTILINE):
        exec(line, {})
    code = "".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL))
    used = set(re.findall(r"\bpoise\.(\w+)\(", text) + re.findall(r"\bpoise\.(\w+)", code))
    rooms = {path.stem for path in (DOCS.parent / "src" / "poise").iterdir()}
    assert used <= {*poise.__all__} | rooms


def test_the_reference_has_a_page_for_every_room_and_the_contents_list_it() -> None:
    contents = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {path.stem for path in (DOCS / "api").glob("*.md")}
    rooms = {
        path.name for path in (DOCS.parent / "src" / "poise").iterdir() if (path / "__init__.py").exists()
    }
    assert rooms - {"cli", "evaluation", "studio"} <= pages
    assert pages == set(re.findall(r"api/(\w+)\.md", contents))
