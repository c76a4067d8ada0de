"""Scenes kept for a studio that is killed."""

import os
import time
from pathlib import Path

from poise.studio.autosave import MOST_KEPT, Autosave
from poise.studio.session import Session


def test_only_the_newest_scenes_are_kept(session: Session, tmp_path: Path) -> None:
    autosave = Autosave(tmp_path)
    for number in range(MOST_KEPT + 5):
        autosave.keep(f"token {number}", session.state)
    oldest = next(iter(tmp_path.glob("*.scene")))
    os.utime(oldest, (0, time.time() - 30 * 86400))
    autosave.tidy()
    assert len(list(tmp_path.glob("*.scene"))) == MOST_KEPT
    assert not oldest.exists()


def test_a_damaged_scene_is_passed_over(session: Session, tmp_path: Path) -> None:
    autosave = Autosave(tmp_path)
    autosave.keep("mine", session.state)
    assert autosave.find("mine", session.models, session.state) is not None
    next(iter(tmp_path.glob("*.scene"))).write_bytes(b"{")
    assert autosave.find("mine", session.models, session.state) is None
    assert autosave.find("yours", session.models, session.state) is None


def test_a_folder_that_cannot_be_written_stops_nobody(session: Session, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    Autosave(tmp_path / "file" / "scenes").keep("mine", session.state)
