"""Undo without limit, most of it on disk."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from full_disk import full_disk
from poise.errors import PoiseError
from poise.performer import act
from poise.studio import history as history_module
from poise.studio.history import History
from poise.studio.layers import Layers
from poise.studio.messages import SceneHandle
from poise.studio.state import Placed, State

POSE = act("walk", seconds=0.1, fps=30)[0]


def state(number: int) -> State:
    return State(
        "walk",
        Placed(POSE),
        handles=(SceneHandle(id=str(number), joint="Head", position=(float(number), 0.0, 0.0)),),
    )


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    history = History(state(0), tmp_path, near=3)
    yield history
    history.close()


def test_states_far_back_are_found_again(history: History) -> None:
    for number in range(1, 40):
        history.push(state(number))
    for number in range(38, -1, -1):
        found = history.back()
        assert found.handles == state(number).handles
        assert found.pose.skeleton is POSE.skeleton
        np.testing.assert_array_equal(found.pose.rotations, POSE.rotations)
    assert (history.undos, history.redos) == (0, 39)


@given(st.lists(st.sampled_from(["push", "back", "forward", "amend", "rest"]), max_size=40))
def test_it_is_a_list_with_a_place_in_it(steps: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _walk_through(steps, History(state(0), Path(folder), near=3))


def _walk_through(steps: list[str], history: History) -> None:
    plain, at = [0], 0
    for number, step in enumerate(steps, start=1):
        if step == "push":
            history.push(state(number))
            plain, at = [*plain[: at + 1], number], at + 1
        elif step == "amend":
            history.amend(state(number))
            plain[at] = number
        elif step == "rest":
            history.rest()
        elif step == "back" and at > 0:
            history.back()
            at -= 1
        elif step == "forward" and at < len(plain) - 1:
            history.forward()
            at += 1
        assert history.now.handles == state(plain[at]).handles
        assert (history.undos, history.redos) == (at, len(plain) - 1 - at)
    history.close()


def test_on_a_full_disk_states_wait_in_memory(history: History) -> None:
    with full_disk():
        for number in range(1, 10):
            history.push(state(number))
        assert history.back().handles == state(8).handles
    for number in range(9, 20):
        history.push(state(number))
    for number in range(18, -1, -1):
        assert history.back().handles == state(number).handles


def test_on_a_disk_that_stays_full_the_oldest_steps_are_forgotten(history: History) -> None:
    with full_disk():
        for number in range(1, 40):
            history.push(state(number))
        steps = history.undos
        assert 3 < steps < 39
        for number in range(38, 38 - steps, -1):
            assert history.back().handles == state(number).handles
        with pytest.raises(PoiseError, match="nothing to undo"):
            history.back()
        assert history.redos == steps


def test_a_motion_is_kept_once_and_is_the_same_afterwards(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    clip = act("walk", seconds=1.0, fps=30)
    for number in range(1, 30):
        history.push(state(number).with_(layers=Layers(clip)))
    found = [history.back() for _ in range(28)]
    assert all(each.layers is not None and each.layers.base is clip for each in found)
    monkeypatch.setattr(history_module, "MOST_BYTES", 0)
    copies = [act("walk", seconds=1.0, fps=30) for _ in range(3)]
    rotations = [copy.rotations for copy in copies]
    while copies:
        history.push(state(0).with_(layers=Layers(copies.pop(0))))
    for expected in rotations[1::-1]:
        layers = history.back().layers
        assert layers is not None
        np.testing.assert_array_equal(layers.motion.rotations, expected)


def test_it_stays_within_its_room_on_disk(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when keys are dragged again and again: every edit makes another motion."""
    clip = act("walk", seconds=1.0, fps=30)
    monkeypatch.setattr(history_module, "MOST_ON_DISK", 20 * clip.rotations.nbytes)
    for number in range(1, 200):
        history.push(
            state(number).with_(layers=Layers(clip.with_frames(clip.root_positions, clip.rotations)))
        )
        history.amend(
            state(number).with_(layers=Layers(clip.with_frames(clip.root_positions, clip.rotations)))
        )
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 25 * clip.rotations.nbytes
    steps = history.undos
    assert 10 < steps < 25
    for number in range(198, 198 - steps, -1):
        assert history.back().handles == state(number).handles
    with pytest.raises(PoiseError, match="nothing to undo"):
        history.back()
    assert history.redos == steps
    for number in range(200 - steps, 200):
        found = history.forward()
        assert found.layers is not None
        np.testing.assert_array_equal(found.layers.motion.rotations, clip.rotations)
        assert found.handles == state(number).handles
