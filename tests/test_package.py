"""The package's public face: what it promises is there, quick to import, documented, and does what its names say."""

import ast
import importlib.metadata
import re
import shlex
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import numpy as np
import pytest

import poise
from poise import errors
from source_trees import SOURCE, source_trees

HEAVY = {"matplotlib", "numba", "numpy", "PIL", "safetensors", "scipy"}
ROOT = Path(__file__).parents[1]
REFERENCE = (ROOT / "docs" / "api" / "poise.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def walk() -> poise.Motion:
    return poise.performer.act("walk", seconds=1.5, fps=30, seed=1)


@pytest.fixture(scope="module")
def model(walk: poise.Motion) -> poise.GaussianPrior:
    return poise.learn(walk, clusters=5)


def test_no_modules_import_each_other() -> None:
    """Imports at the top of modules; those inside functions wait until they are needed."""
    trees = {module_of(path, SOURCE): tree for path, tree in source_trees().items()}
    graph = {module: set(imports_of(tree, set(trees))) - {module} for module, tree in trees.items()}
    assert graph["poise.solvers.core"] >= {"poise.solvers.rows", "poise.priors.forms"}
    TopologicalSorter(graph).prepare()  # or an error that names the cycle


def module_of(path: Path, source: Path) -> str:
    return ".".join(path.relative_to(source.parent).with_suffix("").parts).removesuffix(".__init__")


def imports_of(tree: ast.Module, modules: set[str]) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in modules)
        elif isinstance(node, ast.ImportFrom):
            inside = {f"{node.module}.{name.name}" for name in node.names}
            yield from inside & modules or {str(node.module)} & modules


def test_every_class_has_a_name_of_its_own() -> None:
    nodes = (node for tree in source_trees().values() for node in ast.walk(tree))
    names = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert names["Solution"] == 1
    assert [name for name, times in names.items() if times > 1] == []


@pytest.mark.parametrize(
    "path", [*(ROOT / "examples").glob("*.py"), ROOT / "README.md"], ids=lambda path: path.name
)
def test_examples_need_one_import(path: Path) -> None:
    """What they call through rooms, such as `poise.motion.edit`, is there."""
    text = path.read_text(encoding="utf-8")
    assert re.findall(r"^ *(?:from poise|import poise\.).*$", text, flags=re.MULTILINE) == []
    for room, name in set(re.findall(r"\bpoise\.([a-z]+)\.([A-Za-z]\w*)", text)):
        assert hasattr(getattr(poise, room), name)


@pytest.mark.parametrize("name", poise.__all__)
def test_every_promised_name_is_there_and_in_the_reference(name: str) -> None:
    assert getattr(poise, name) is not None
    assert f"`{name}`" in REFERENCE


def test_what_is_listed_is_what_is_promised() -> None:
    assert dir(poise) == sorted(poise.__all__)
    assert set(re.findall(r"\[`(\w+)`\]", REFERENCE)) <= set(poise.__all__)
    assert len(set(poise.__all__)) == len(poise.__all__)


def test_the_version_is_the_installed_one() -> None:
    assert poise.__version__ == importlib.metadata.version("poise")


def test_other_names_are_errors() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'frobnicate'"):
        _ = poise.frobnicate


@pytest.mark.parametrize(
    ("code", "free_of"),
    [("import poise", HEAVY), ("import poise; poise.read, poise.Motion", HEAVY - {"numpy"})],
)
def test_importing_it_brings_in_nothing_heavy(code: str, free_of: set[str]) -> None:
    script = f"{code}; import sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not free_of & set(ran.stdout.split())


# --- positions -----------------------------------------------------------------------------------------------------


def test_positions_are_found_by_role_and_by_joint(walk: poise.Motion) -> None:
    hand = walk.skeleton.roles["right_hand"]
    every = walk.positions["right_hand"]
    assert every.shape == (len(walk), 3)
    assert np.array_equal(every, walk.positions[hand])
    assert np.allclose(walk[7].positions["right_hand"], every[7], atol=1e-12)
    with pytest.raises(poise.PoiseError, match="did you mean right_hand"):
        walk.positions["right_hnd"]


def test_positions_are_an_array_too(walk: poise.Motion) -> None:
    positions = walk.positions
    assert positions.shape == np.asarray(positions).shape == (len(walk), len(walk.skeleton), 3)
    assert type(positions - positions[0]) is np.ndarray
    assert np.allclose(np.linalg.norm(positions - positions, axis=-1), 0.0)
    assert np.allclose(np.asarray(walk[0].positions)[0], walk.root_positions[0])
    with pytest.raises(ValueError, match="read-only"):
        positions[0][0, 0] = 1.0


# --- constraints as a mapping --------------------------------------------------------------------------------------

HAND, FOOT = (-0.35, 1.1, 0.4), (0.1, 0.1, 0.1)


def test_a_mapping_is_what_constraints_are(model: poise.GaussianPrior) -> None:
    mapped = poise.solve(model, {"right_hand": HAND, "left_foot": FOOT})
    listed = poise.solve(model, [poise.Position("right_hand", HAND), poise.Position("left_foot", FOOT)])
    assert mapped.reached
    assert np.array_equal(mapped.q, listed.q)
    assert np.allclose(mapped.positions["right_hand"], HAND, atol=1e-3)


def test_a_mapping_takes_rotations_constraints_and_handles(model: poise.GaussianPrior) -> None:
    given = {
        poise.Handle("right_hand", (0.0, -0.05, 0.0)): HAND,
        "left_foot": (FOOT, (1.0, 0.0, 0.0, 0.0)),
        "gaze": poise.LookAt("head", (0.0, 1.5, 3.0), tolerance=0.1),
    }
    labels = [residual.label for residual in poise.solve(model, given).residuals]
    assert labels == ["position of right_hand", "position of left_foot", "orientation of left_foot", "gaze"]


def test_mappings_go_to_every_solver(model: poise.GaussianPrior) -> None:
    frames = [{"right_hand": (-0.35, height, 0.4), "left_foot": FOOT} for height in (1.0, 1.1, 1.2)]
    alone = poise.Solver(model, frames[0]).solve()
    assert np.array_equal(alone.q, poise.track(model, frames)[0].q)
    for found in (poise.track(model, frames), poise.solve_batch(model, frames)):
        heights = [solution.positions["right_hand"][1] for solution in found]
        assert np.allclose(heights, [1.0, 1.1, 1.2], atol=1e-3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"right_hand": (1.0, 2.0)}, "right_hand: expected a point .* a constraint; got"),
        ({"right_hand": None}, "right_hand: expected a point"),
        ({"right_hand": "high"}, "right_hand: expected a point"),
        ({"right_hnd": HAND}, "did you mean right_hand"),
        ({3: HAND}, "a handle is a joint's name, a role or a Handle; got 3"),
        ([HAND], "constraints are a mapping such as .* or a list of constraints; got"),
        (3, "constraints are a mapping"),
    ],
)
@pytest.mark.usefixtures("unchecked_shapes")
def test_other_constraints_are_refused(model: poise.GaussianPrior, given: object, message: str) -> None:
    with pytest.raises(poise.PoiseError, match=message):
        poise.solve(model, given)


@pytest.mark.usefixtures("unchecked_shapes")
def test_what_is_not_a_model_is_refused() -> None:
    with pytest.raises(poise.PoiseError, match="must be a learned prior"):
        poise.solve(object(), {"right_hand": HAND})
    with pytest.raises(poise.PoiseError, match=r"walk\.poise"):
        poise.solve("walk.poise", {"right_hand": HAND})


# --- learning, saving and showing ----------------------------------------------------------------------------------


def test_motions_files_and_folders_teach_the_same(walk: poise.Motion, tmp_path: Path) -> None:
    clip = walk.save(tmp_path / "clips" / "walk.bvh")
    (tmp_path / "clips" / "notes.txt").write_text("not a motion")
    learned = [
        poise.learn(clips, clusters=3) for clips in (clip, [str(clip)], tmp_path / "clips", poise.read(clip))
    ]
    for other in learned[1:]:
        assert np.array_equal(other.mean, learned[0].mean)


@pytest.mark.parametrize(
    ("clips", "options", "message"),
    [
        ([], {}, "no clips given; give motions, motion files or a folder"),
        (3, {}, "a clip must be a motion, a motion file or a folder of them; got 3"),
        ("nowhere.bvh", {}, "nowhere.bvh does not exist"),
        (".", {}, "there is no motion file in"),
        ([], {"kind": "stile"}, "did you mean style"),
        ([], {"clusterz": 3}, "has no option clusterz; it takes clusters"),
    ],
)
@pytest.mark.usefixtures("unchecked_shapes")
def test_what_cannot_be_learned_from_is_refused(
    clips: object, options: dict[str, object], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(poise.PoiseError, match=message):
        poise.learn(clips, **options)


def test_models_are_saved_and_loaded(model: poise.GaussianPrior, tmp_path: Path) -> None:
    again = poise.load(poise.save(model, tmp_path / "new" / "walk.poise"))
    assert np.array_equal(again.mean, model.mean)
    with pytest.raises(poise.PoiseError, match=r"call it walk.poise"):
        poise.save(model, tmp_path / "walk.png")
    with pytest.raises(poise.PoiseError, match="to save; got int"):
        poise.save(3, tmp_path / "walk.poise")


STARTS = {".png": b"\x89PNG", ".gif": b"GIF8", ".glb": b"glTF", ".bvh": b"HIERARCHY"}


@pytest.mark.parametrize("extension", STARTS)
def test_everything_is_saved_as_its_extension_says(
    extension: str, walk: poise.Motion, model: poise.GaussianPrior, tmp_path: Path
) -> None:
    solution = poise.solve(model, {"right_hand": HAND})
    for value in (walk[:4], walk[0], solution):
        path = value.save(tmp_path / type(value).__name__ / f"x{extension}")
        assert path.read_bytes().startswith(STARTS[extension])
    saved = poise.read(solution.save(tmp_path / "pose.bvh"))
    assert np.allclose(saved.positions["right_hand"][0], solution.positions["right_hand"], atol=1e-4)


def test_an_unknown_extension_lists_the_known_ones(walk: poise.Motion, tmp_path: Path) -> None:
    with pytest.raises(poise.PoiseError, match=r"no file format for the extension '\.xyz'; .*bvh"):
        walk.save(tmp_path / "walk.xyz")


def test_showing_opens_the_picture_that_saving_writes(
    walk: poise.Motion, monkeypatch: pytest.MonkeyPatch
) -> None:
    from PIL import Image, ImageShow

    shown: list[Image.Image] = []
    monkeypatch.setattr(ImageShow, "show", lambda image: shown.append(image) or True)
    walk[0].show(size=(64, 48))
    assert [image.size for image in shown] == [(64, 48)]
    monkeypatch.setattr(ImageShow, "show", lambda _image: False)
    with pytest.raises(poise.PoiseError, match="no picture viewer"):
        walk[0].show(size=(64, 48))


def test_poses_make_a_motion(walk: poise.Motion) -> None:
    again = poise.Motion.of_poses(list(walk), fps=walk.fps)
    assert np.array_equal(again.rotations, walk.rotations)
    with pytest.raises(
        poise.PoiseError, match="at least one pose, and all poses must have the same skeleton"
    ):
        poise.Motion.of_poses([])


def test_a_wheel_names_the_packages_of_a_missing_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No index needs to have Poise for that."""
    monkeypatch.setattr(errors, "__file__", str(tmp_path / "site-packages" / "poise" / "errors.py"))
    said = errors.installing("c3d")
    assert said.startswith("pip install '")
    assert {"ezc3d", "c3d"} == {re.split(r"[<>=]", one)[0] for one in shlex.split(said)[2:]}
