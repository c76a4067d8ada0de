"""Undo without limit, most of it on disk."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poise.performer import act
from poise.studio.history import History
from poise.studio.messages import Handle
from poise.studio.state import Placed, State

POSE = act("walk", seconds=0.1, fps=30)[0]


def state(number: int) -> State:
    return State(
        "walk",
        Placed(POSE),
        handles=(Handle(id=str(number), joint="Head", position=(float(number), 0.0, 0.0)),),
    )


@pytest.fixture
def history() -> Iterator[History]:
    history = History(state(0), near=3)
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
    history, plain, at = History(state(0), near=3), [0], 0
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
