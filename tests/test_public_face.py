"""What the public face takes: arrays that are what they say, enumerations, plausible units, and errors in words."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import poise
from poise.errors import InvalidValueError, PoiseError, UnknownNameError
from poise.formats.files import FileAccessError
from poise.solvers.problem import Problem

ROOT = Path(__file__).parents[1]
HAND = {"left_hand": (0.3, 1.2, 0.4)}


@pytest.fixture(scope="module")
def walk() -> poise.Motion:
    return poise.performer.act("walk", seconds=0.5, fps=30)


@pytest.fixture(scope="module")
def model(walk: poise.Motion) -> poise.GaussianPrior:
    return poise.GaussianPrior.learn([walk], clusters=3)


# --- rotations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factor", [2.0, 0.5, 0.0, 1e-200, np.nan])
def test_rotations_that_are_not_unit_are_refused(walk: poise.Motion, factor: float) -> None:
    with pytest.raises(InvalidValueError, match=r"must be finite( unit quaternions|; got NaN)"):
        poise.Motion(walk.skeleton, 30.0, walk.root_positions, walk.rotations * factor)
    with pytest.raises(InvalidValueError, match="must be finite unit quaternions"):
        poise.Pose(walk.skeleton, walk.root_positions[0], walk.rotations[0] * factor)


def test_rotations_that_are_almost_unit_are_normalised_with_a_warning(walk: poise.Motion) -> None:
    rough = walk.rotations.astype(np.float16).astype(np.float64)
    with pytest.warns(UserWarning, match="a motion's rotations were normalised"):
        motion = poise.Motion(walk.skeleton, 30.0, walk.root_positions, rough)
    np.testing.assert_allclose(np.linalg.norm(motion.rotations, axis=-1), 1.0, atol=1e-12)
    single = walk.rotations.astype(np.float32).astype(np.float64)
    kept = poise.Motion(walk.skeleton, 30.0, walk.root_positions, single)
    assert np.array_equal(kept.rotations, single)


# --- enumerations and units ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("root", ["free", "fixed", "", None, float("nan"), [], 3])
def test_ways_to_treat_the_root_are_an_enumeration(model: poise.GaussianPrior, root: Any) -> None:
    with pytest.raises(
        UnknownNameError, match=r"way to treat the `root`,.*(did you mean|valid: solved, given)"
    ):
        Problem(model.space, [], root=root)


@pytest.mark.parametrize(
    ("target", "unit"),
    [((30, 120, 40), "centimetres"), ((11.8, 47.2, 15.7), "inches"), ((300, 1200, 400), "milli")],
)
def test_targets_in_other_units_are_told(model: poise.GaussianPrior, target: Any, unit: str) -> None:
    assert any(unit in note for note in poise.solve(model, {"left_hand": target}).notes)
    assert any(unit in note for note in poise.pose({"left_hand": target}, model).notes)


def test_targets_in_metres_are_not_doubted(model: poise.GaussianPrior) -> None:
    assert poise.solve(model, HAND).notes == ()
    start = poise.Pose(model.space.skeleton, (50.0, 1.0, 0.0), model.space.references)
    assert poise.solve(model, {"left_hand": (50.3, 1.2, 0.4)}, start=start).notes == ()


# --- errors in words -----------------------------------------------------------------------------------------------


def test_odd_arguments_are_refused_in_words() -> None:
    """As the fuzzer does, in a process of its own: here the types of arguments are checked before Poise sees them."""
    command = [sys.executable, str(ROOT / "fuzz" / "fuzz_api.py"), "--count", "1000"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_call_that_python_itself_refuses_stays_as_it_is() -> None:
    with pytest.raises(TypeError, match="unexpected keyword"):
        poise.pose(HAND, look=(0, 0, 0))  # type: ignore[call-arg]


# --- names, folders and streams ------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes on Linux only")
@pytest.mark.parametrize("extension", ["bvh", "amc", "trc", "c3d", "glb", "usda"])
def test_names_of_files_need_not_be_utf_8(walk: poise.Motion, tmp_path: Path, extension: str) -> None:
    if extension == "usda":
        pytest.importorskip("pxr")
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe." + extension.encode()))
    value = poise.virtual_markers(walk) if extension in ("trc", "c3d") else walk
    with suppress(PoiseError):
        poise.write(value, path)
        poise.read(path)


def test_a_full_temporary_folder_is_told(
    walk: poise.Motion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pxr")
    file = poise.write(walk, tmp_path / "walk.usda", mannequin=False)

    def full(*_: object, **__: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkdtemp", full)
    with pytest.raises(FileAccessError, match="temporary folder cannot be used: No space left"):
        poise.read(file)
    with pytest.raises(FileAccessError, match="temporary folder cannot be used: No space left"):
        poise.write(walk, tmp_path / "other.usda")


@pytest.mark.skipif(sys.platform == "win32", reason="shells close streams on POSIX systems")
def test_a_command_whose_output_is_closed_ends_in_words(tmp_path: Path) -> None:
    ended = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m poise info {tmp_path}/none.bvh >&-"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert ended.stderr.startswith("poise: ")
    assert "Traceback" not in ended.stderr
