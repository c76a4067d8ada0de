"""A take of markers in the page: its gaps, and markers hidden by hand."""

from pathlib import Path

import numpy as np

import poise
from poise.motion.markers import Markers
from poise.motion.virtual_markers import virtual_markers
from poise.performer import act
from studio_page import StudioPage


def test_gaps_are_seen_and_markers_hidden(studio: StudioPage, tmp_path: Path) -> None:
    walk = virtual_markers(act("walk", seconds=1.0, fps=30))
    points = walk.points.copy()
    points[10:15, 3] = np.nan
    path = tmp_path / "walk.trc"
    poise.write(Markers(walk.labels, points, walk.fps), path)
    studio.work_in("Capture")
    studio.page.get_by_label("Open a take").set_input_files(path)
    studio.wait("window.poise.state.take.value")
    assert studio.ask("state.take.value.gaps(3)") == [[10, 14]]
    assert not studio.ask("stage.figure.mesh.visible")
    studio.until(lambda: studio.page.get_by_text(walk.labels[3]).first.is_visible(), "the labels")
    other = walk.labels[5]
    studio.page.get_by_role("button", name=f"Hide {other} from here").click()
    studio.wait("window.poise.state.take.value.gaps(5).length === 1")
    studio.page.get_by_role("button", name=f"Show {other} again").click()
    studio.wait("window.poise.state.take.value.gaps(5).length === 0")
