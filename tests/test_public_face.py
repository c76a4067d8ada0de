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


WRONG_CALLS = {
    "pose({'right_hnd': (0.3, 1.2, 0.4)})": "no joint or role 'right_hnd'; did you mean right_hand",
    "pose({'right_hand': (0.3, 1.2)})": "right_hand: expected a point (x, y, z), a point and a quaternion, or a",
    "pose({'right_hand': (0.3, NAN, 0.4)})": "position of right_hand: target must be finite; got [0.3, nan, 0.4]",
    "pose(['right_hand'])": 'constraints are a mapping such as {"right_hand": (x, y, z)}, or a list of constraints',
    "pose(HAND, 'nowhere.poise')": "nowhere.poise does not exist; check its name",
    "pose(HAND, 'junk.poise')": "not a model file, or truncated",
    "pose(HAND, walk)": "`model` of poise.pose must be Prior | str | os.PathLike[str] | None; got Motion('walk",
    "pose(HAND, look=(0, 1, 3))": "unexpected keyword argument 'look': no argument 'look'; did you mean look_at",
    "pose(HAND, look_at='there')": "target must be 3 numbers; got 'there'",
    "pose(HAND, tolerance=-1)": "the solver's tolerance must be positive; got -1",
    "solve(walk.skeleton, HAND, root='free')": "no way to treat the `root`, 'free'; valid: solved, given",
    "solve(walk.skeleton, HAND, method='mapp')": "no method 'mapp'; did you mean map?",
    "UniversalPrior('me.bvh')": "the universal prior poses a poise.Skeleton, such as motion.skeleton; got 'me.bvh'",
    "BlendPrior((), ())": "a blend needs at least two models, each with a weight; got 0 and 0 weights",
    "read('nowhere.bvh')": "nowhere.bvh does not exist; check its name",
    "read('.')": "is a folder; expected a file. Name a file in it",
    "read(3)": "`path` of poise.read must be str | os.PathLike[str]; got 3",
    "save(walk, 'walk.xyz')": "no file format for the extension '.xyz'; known: .bvh",
    "save(walk, 'walk.c3d')": "a C3D file holds markers; got Motion",
    "save(3, 'walk.bvh')": "expected a model, a motion, markers, a pose or a solution to save; got int",
    "learn([])": "no clips given; give motions, motion files or a folder of them",
    "learn(walk, kind='stile')": "no kind of model 'stile'; did you mean style?",
    "learn(walk, cluster=3)": "a gaussian model has no option cluster; it takes clusters, method, lambda_1, lambda_0",
    "learn(walk, clusters=0)": "a gaussian model: clusters must be a number of at least 1; got 0",
    "inbetween([])": "a motion between keys needs at least two; got 0",
    "retarget(walk, 'nowhere.glb')": "nowhere.glb does not exist; check its name",
    "repair(3)": "expected a motion or a motion file; got int",
    "performer.act('fly')": "no action 'fly'; valid: walk, run",
    "performer.act('walk', seconds=-3)": "a performance's length in seconds must be 0.05 to 600 s; got -3",
    "Camera.looking_at((0, 0, 0), eye=(0, 0, 0))": "a camera needs a target away from its eye and a field of view",
}
"""Thirty wrong calls, with what each is answered; tests/cli/test_wrong_inputs.py has as many of the command line."""


@pytest.mark.usefixtures("unchecked_shapes")
def test_wrong_calls_say_what_is_wrong_and_what_is_valid(
    walk: poise.Motion, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "junk.poise").write_bytes(b"junk" * 30)
    names = {**vars(poise), "HAND": HAND, "NAN": float("nan"), "walk": walk}
    names |= {name: getattr(poise, name) for name in poise.__all__}
    for call, words in WRONG_CALLS.items():
        with pytest.raises((PoiseError, TypeError)) as raised:
            eval(call, names)
        assert words in str(raised.value), call
    with pytest.raises(IndexError, match="no frame 99; the motion has frames 0 to 14"):
        walk[99]
    assert [file.name for file in tmp_path.iterdir()] == ["junk.poise"]


# --- paths or objects ----------------------------------------------------------------------------------------------

KEYS = "duration = 0.1\n[handles.left_hand]\nkeys = [{ time = 0.0, at = [0.3, 1.2, 0.4] }]"


@pytest.fixture(scope="module")
def files(walk: poise.Motion, model: poise.GaussianPrior, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    (folder / "keys.toml").write_text(KEYS)
    walk.save(folder / "walk.bvh")
    poise.save(model, folder / "walk.poise")
    return folder


@pytest.mark.parametrize("kind", [str, Path])
def test_models_are_objects_or_files(files: Path, model: poise.GaussianPrior, kind: type) -> None:
    file, keys = kind(files / "walk.poise"), files / "keys.toml"
    pairs = [
        (poise.pose(HAND, file).pose, poise.pose(HAND, model).pose),
        (poise.solve(file, HAND).pose, poise.solve(model, HAND).pose),
        (poise.solve_batch(file, [HAND])[0].pose, poise.solve_batch(model, [HAND])[0].pose),
        (poise.track(file, [HAND])[0].pose, poise.track(model, [HAND])[0].pose),
        (poise.Solver(file, HAND).solve().pose, poise.Solver(model, HAND).solve().pose),
        (poise.keyframe(file, kind(keys)).motion[0], poise.keyframe(model, keys).motion[0]),
        (
            poise.animate(file, [HAND] * 3, fps=30).motion[1],
            poise.animate(model, [HAND] * 3, fps=30).motion[1],
        ),
    ]
    for found, expected in pairs:
        np.testing.assert_allclose(found.rotations, expected.rotations, atol=1e-6)


def test_a_model_file_is_read_once_until_it_changes(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from poise.priors import model_file

    read: list[Path] = []
    load = model_file.load
    monkeypatch.setattr(model_file, "load", lambda path: read.append(path) or load(path))
    file = files / "again.poise"
    file.write_bytes((files / "walk.poise").read_bytes())
    for _ in range(3):
        poise.solve(file, HAND)
    os.utime(file, ns=(1, 1))
    poise.solve(file, HAND)
    assert len(read) == 2


@pytest.mark.parametrize("kind", [str, Path])
def test_motions_are_objects_or_files(files: Path, walk: poise.Motion, kind: type, tmp_path: Path) -> None:
    file = kind(files / "walk.bvh")
    read = poise.read(file)
    assert isinstance(read, poise.Motion)
    for function in (lambda motion: poise.repair(motion).motion, lambda motion: poise.retarget(motion, walk)):
        np.testing.assert_array_equal(function(file).rotations, function(read).rotations)
    found, expected = poise.virtual_markers(file), poise.virtual_markers(read)
    np.testing.assert_array_equal(found.points, expected.points)
    assert poise.write(file, tmp_path / "written.bvh").stat().st_size > 0
    assert poise.save(file, tmp_path / "sheet.png").stat().st_size > 0


def test_a_file_of_markers_is_no_motion(walk: poise.Motion, tmp_path: Path) -> None:
    file = poise.write(poise.virtual_markers(walk), tmp_path / "walk.trc")
    with pytest.raises(InvalidValueError, match=r"walk.trc holds markers"):
        poise.repair(file)


def test_a_motion_knows_its_length_and_can_be_edited(walk: poise.Motion) -> None:
    assert (walk.frames, walk.duration) == (len(walk), len(walk) / walk.fps)
    assert walk.resample(60.0).fps == 60.0
    np.testing.assert_array_equal(walk.mirrored().rotations, poise.motion.mirror(walk).rotations)


def test_the_docstring_of_pose_names_its_arguments() -> None:
    assert "`look_at` aims the head" in str(poise.pose.__doc__)


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


CALLS = """
import sys, poise
for handles in ({"right_hand": (0.4, 1.2, 0.4)}, {"right_hand": (0.3, 0.1, 0.5)}):
    poise.pose(handles)
    found = []
    sys.setprofile(lambda _frame, event, _: found.append(event) if event == "call" else None)
    poise.pose(handles)
    sys.setprofile(None)
    print(len(found))
"""


def test_a_pose_is_a_short_read() -> None:
    """A warm pose calls at most 250 functions in Python; with a hand near the floor, which takes three passes, 450."""
    ran = subprocess.run(
        [sys.executable, "-c", CALLS], capture_output=True, text=True, timeout=240, check=True
    )
    one, low = map(int, ran.stdout.split())
    assert 50 < one <= 250
    assert one < low <= 450
