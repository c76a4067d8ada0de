"""Scenes kept for a studio that is killed."""

import os
import time
from pathlib import Path

from poise.studio.keeping import MOST_KEPT, Keeper
from poise.studio.session import Session


def test_only_the_newest_scenes_are_kept(session: Session, tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    for number in range(MOST_KEPT + 5):
        keeper.keep(f"token {number}", session.state)
    oldest = next(iter(tmp_path.glob("*.scene")))
    os.utime(oldest, (0, time.time() - 30 * 86400))
    keeper.tidy()
    assert len(list(tmp_path.glob("*.scene"))) == MOST_KEPT
    assert not oldest.exists()


def test_a_damaged_scene_is_passed_over(session: Session, tmp_path: Path) -> None:
    keeper = Keeper(tmp_path)
    keeper.keep("mine", session.state)
    assert keeper.find("mine", session.shelf, session.state) is not None
    next(iter(tmp_path.glob("*.scene"))).write_bytes(b"{")
    assert keeper.find("mine", session.shelf, session.state) is None
    assert keeper.find("yours", session.shelf, session.state) is None


def test_a_folder_that_cannot_be_written_stops_nobody(session: Session, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    Keeper(tmp_path / "file" / "scenes").keep("mine", session.state)
