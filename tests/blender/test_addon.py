"""The add-on in Blender itself, where POISE_BPY names a Python that has bpy; without it, these tests are skipped."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from poise.performer import act
from running_server import served

BLENDER = os.environ.get("POISE_BPY", "")
FOLDER = Path(__file__).parents[2] / "blender"
pytestmark = pytest.mark.skipif(not BLENDER, reason="POISE_BPY does not name a Python with bpy")


@pytest.fixture(scope="module")
def port() -> int:
    return served()


@pytest.mark.parametrize("character", ["metarig", "rig", "person"])
def test_an_armature_follows_its_handles_in_blender(port: int, character: str, tmp_path: Path) -> None:
    if character == "person":
        character = str(tmp_path / "person.glb")
        act("walk", seconds=0.1, fps=30)[:1].save(character)
    script = Path(__file__).with_name("in_blender.py")
    ran = subprocess.run(
        [BLENDER, str(script), str(FOLDER), str(port), character],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    found = [line for line in ran.stdout.splitlines() if line.startswith("ERRORS ")]
    assert found, ran.stdout[-2000:] + ran.stderr[-4000:]
    errors = json.loads(found[-1].removeprefix("ERRORS "))
    assert len(errors["handles"]) == 6
    assert max(errors["posed"].values()) < 0.005
    assert errors["live"] < 0.005
    assert max(errors["baked"]) < 0.005
    assert errors["action"].endswith("by Poise")
