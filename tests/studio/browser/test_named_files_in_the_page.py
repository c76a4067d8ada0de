"""Files that are named as the studio is started: each opens where a person expects it."""

from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser

import poise
from poise.motion.virtual_markers import virtual_markers
from poise.performer import act
from poise.priors.prior import Prior
from poise.studio.autosave import Autosave
from poise.studio.models import ModelStore
from poise.studio.session import Session
from poise.studio.uploads import Uploads
from running_studio import SCRIPT, foreign, running
from studio_page import StudioPage

KINDS = {
    "walk.bvh": "state.workspace.value === 'animate' && state.scene.value.timeline.clip === 'walk.bvh'",
    "hero.glb": "state.workspace.value === 'pose' && state.body.value.character && stage.character?.group.visible",
    "keys.toml": "state.workspace.value === 'animate' && state.scene.value.timeline.keys.length === 3",
    "walk.trc": "state.workspace.value === 'capture' && state.take.value",
    "me.png": "state.workspace.value === 'photo' && state.scene.value.photo",
    "one.scene": "state.scene.value.lookAt?.[2] === 7",
}


def made(path: Path, models: ModelStore) -> Path:
    """A file of each kind."""
    walk = act("walk", seconds=0.5, fps=20)
    if path.suffix == ".glb":
        foreign(path)
    elif path.suffix == ".toml":
        path.write_text(SCRIPT)
    elif path.suffix == ".png":
        import matplotlib.image

        matplotlib.image.imsave(path, np.full((30, 20, 3), 0.5))
    elif path.suffix == ".scene":
        session = Session(models, Uploads(), Autosave())
        session.files.write(session.state.with_(look_at=(0.0, 1.5, 7.0)), path)
    else:
        poise.write(virtual_markers(walk) if path.suffix == ".trc" else walk, path)
    return path


@pytest.mark.parametrize("name", KINDS)
def test_a_named_file_opens_where_it_belongs(
    name: str, priors: dict[str, Prior], chromium_browser: Browser, tmp_path: Path
) -> None:
    models = ModelStore()
    models.add(priors["both"], "both")
    with running(models, files=[made(tmp_path / name, models)]) as studio:
        context = chromium_browser.new_context(viewport={"width": 1000, "height": 640})
        page = StudioPage(context.new_page(), studio.address + "/")
        page.until(lambda: bool(page.ask(KINDS[name])), KINDS[name])
        context.close()
        assert page.problems == []
