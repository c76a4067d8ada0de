"""Simulated takes: cameras that were started one after the other, each with the empty room first."""

from pathlib import Path

import pytest

from poise.apps.camera_takes import before_cameras, film, simulator_of
from poise.performer import act


def test_cameras_that_start_later_film_less_of_the_empty_room(tmp_path: Path) -> None:
    cv2 = pytest.importorskip("cv2")
    from poise.vision.simulator import front_rig

    take = before_cameras(act("walk", seconds=1.0, fps=30), fps=30.0, seconds=0.2)
    simulator = simulator_of(take, front_rig(size=(64, 48)))
    progress: list[tuple[int, int]] = []
    filmed = film(simulator, tmp_path, empty=0.5, late=0.2, progress=lambda *so_far: progress.append(so_far))
    counts = [cv2.VideoCapture(str(video)).get(cv2.CAP_PROP_FRAME_COUNT) for video in filmed.videos]
    assert counts == [15 + 6 + 6, 15 + 6]  # empty, later, taken
    assert progress == [(done, 48) for done in range(1, 49)]
