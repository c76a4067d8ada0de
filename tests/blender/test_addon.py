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


def test_actions_are_filled_mended_and_keyed_in_blender(port: int, tmp_path: Path) -> None:
    character = tmp_path / "walk.glb"
    act("walk", seconds=1.5, fps=30).save(character)
    script = Path(__file__).with_name("moving_in_blender.py")
    ran = subprocess.run(
        [BLENDER, str(script), str(FOLDER), str(port), str(character)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    lines = [line for line in ran.stdout.splitlines() if line.startswith("FOUND ")]
    assert lines, ran.stdout[-2000:] + ran.stderr[-4000:]
    found = json.loads(lines[-1].removeprefix("FOUND "))
    way, turn = found["few"]
    assert way < 0.0101
    assert turn < 2.02
    keys, curves = found["keys"]
    assert keys < 0.25 * found["frames"] * curves
    assert found["action"].endswith("by Poise")
    assert found["repaired"][0] < 0.03
    assert found["posed"][0] < 1e-4
    assert found["between"][0] < 1e-3
    assert found["between frames"] == found["span"]
    assert found["moves"] > 0.05
