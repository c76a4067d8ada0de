"""The page on extending keeps its word: its code, installed as a plugin, works in the program as it is."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "extending.md"


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's code as a module, and what pip would leave of its entry point."""
    folder = tmp_path_factory.mktemp("plugin")
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), flags=re.M | re.S)
    assert len(blocks) == 5
    (folder / "poise_toys.py").write_text("\n".join(blocks), encoding="utf-8")
    info = folder / "poise_toys-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: poise_toys\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[poise.plugins]\ntoys = poise_toys\n")
    return folder


def run(plugin: Path, *arguments: object, cwd: Path) -> str:
    path = os.pathsep.join([str(plugin), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": path, "POISE_CACHE": str(cwd / "cache")},
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_toys_from_outside_work_everywhere(plugin: Path, tmp_path: Path) -> None:
    assert "everything worked" in run(plugin, ROOT / "tests" / "extension" / "program.py", cwd=tmp_path)


@pytest.mark.slow
def test_the_contract_of_priors_is_run_over_a_prior_from_outside(plugin: Path) -> None:
    suite = ROOT / "tests" / "priors" / "test_contract.py"
    done = run(plugin, "-m", "pytest", suite, "-v", "-k", "average or gliding", cwd=ROOT)
    assert "16 passed" in done
