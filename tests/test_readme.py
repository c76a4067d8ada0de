"""The README keeps its word: its code runs, its links lead somewhere."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_code_runs_and_writes_what_it_says(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert "all hard constraints are met" in ran.stdout
    assert (tmp_path / "pose.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_links_lead_to_files_of_the_repository(target: str) -> None:
    assert (ROOT / target).exists()


def test_every_command_it_shows_exists() -> None:
    from poise.cli.main import COMMANDS

    shown = set(re.findall(r"^poise ([a-z-]+)", README, flags=re.MULTILINE))
    assert shown
    assert shown <= set(COMMANDS)
