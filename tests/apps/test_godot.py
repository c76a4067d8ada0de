"""The script of the documentation in Godot 3 without a window: it poses a skeleton; skipped where there is no Godot."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from running_server import served

GODOT = next(filter(None, map(shutil.which, ("godot3-server", "godot3"))), None)


@pytest.mark.skipif(GODOT is None, reason="Godot 3 is not installed")
def test_the_script_of_the_documentation_poses_a_skeleton(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "godot.md").read_text(encoding="utf-8")
    (sample,) = re.findall(r"```gdscript\n(.*?)```", text, flags=re.DOTALL)
    (tmp_path / "pose.gd").write_text(sample, encoding="utf-8")
    ran = subprocess.run(
        [str(GODOT), "--no-window", "-s", "pose.gd"],
        cwd=tmp_path,
        env={**os.environ, "POISE_PORT": str(served()), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "right_hand:RightHand" in ran.stdout, ran.stdout + ran.stderr
    (off,) = re.findall(r"off by ([\d.e-]+)", ran.stdout)
    assert float(off) < 0.005
