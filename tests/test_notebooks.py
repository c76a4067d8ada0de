"""Values show themselves in Jupyter, and the example notebooks run."""

import re
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import poise
from poise.errors import installing
from poise.studio import notebook
from poise.studio.notebook import WIDGET

needs_page = pytest.mark.skipif(not WIDGET.exists(), reason="the studio's page is not built: make page")
NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples" / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def walk() -> poise.Motion:
    return poise.performer.act("walk", seconds=1.5, fps=30, seed=1)


def assert_has_a_picture(*values: Any) -> None:
    for value in values:
        image = Image.open(BytesIO(value._repr_png_()))
        assert image.format == "PNG"
        pixels = np.asarray(image.convert("RGB")).reshape(-1, 3)
        assert len(np.unique(pixels, axis=0)) > 1000  # a body is drawn, not an empty floor


def test_motions_and_poses_have_a_picture(walk: poise.Motion) -> None:
    assert_has_a_picture(walk, walk[0])


@pytest.mark.slow
def test_solutions_and_models_have_a_picture(walk: poise.Motion) -> None:
    model = poise.learn(walk, clusters=5)
    solution = poise.solve(model, {"right_hand": (-0.35, 1.1, 0.4)})
    assert_has_a_picture(solution, model, poise.learn(walk, kind="local"))


@needs_page
def test_a_view_holds_the_body_and_every_frame(walk: poise.Motion) -> None:
    import msgspec

    from poise.studio import messages

    pytest.importorskip("anywidget")
    view = walk.view(height=300)
    body = msgspec.msgpack.decode(view.body, type=messages.BodyShown)
    frames = msgspec.msgpack.decode(view.range, type=messages.MotionRange)
    world = np.frombuffer(frames.world, "<f4").reshape(len(walk), body.placed, 7)
    assert [joint.name for joint in body.joints] == list(walk.skeleton.names)
    assert np.allclose(world[:, : len(body.joints), :3], walk.positions, atol=1e-5)
    assert (view.fps, view.height) == (30.0, 300)
    assert "export" in view._esm


@needs_page
def test_a_view_without_anywidget_says_what_to_install(
    walk: poise.Motion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "anywidget", None)
    notebook._widget.cache_clear()
    with pytest.raises(
        poise.PoiseError, match=re.escape(f"needs anywidget; install it with: {installing('notebook')}")
    ):
        walk[0].view()


@pytest.mark.parametrize(
    ("value", "height", "message"),
    [(3, 300, "expected a motion, a pose or a solution; got int"), (None, 3, "100 to 4000 pixels")],
)
@pytest.mark.usefixtures("unchecked_shapes")
def test_what_cannot_be_viewed_is_refused(
    value: object, height: int, message: str, walk: poise.Motion
) -> None:
    with pytest.raises(poise.PoiseError, match=message):
        poise.view(value or walk, height=height)


@pytest.mark.slow
@needs_page
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs(path: Path, tmp_path: Path) -> None:
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    document = nbformat.read(path, as_version=4)
    assert not any(
        cell.get("outputs") for cell in document.cells
    )  # kept without what it shows: the pictures are large
    nbclient.NotebookClient(document, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output.get("data", {}) for cell in document.cells for output in cell.get("outputs", ())]
    assert any("image/png" in data for data in shown)
