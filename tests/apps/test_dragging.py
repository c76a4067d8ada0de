"""Dragging a handle's path: the handle follows it, the rest stays natural, and no edit changes nothing."""

from pathlib import Path

import numpy as np
import pytest

from made_once import learned
from poise import performer
from poise.apps.dragging import EASE, Path3, displacements, drag, read_path
from poise.errors import InvalidValueError, ParseError
from poise.motion import Motion
from poise.priors.gaussian import GaussianPrior
from poise.priors.style.prior import StylePrior
from poise.skeleton.kinematics import world_transforms


@pytest.fixture(scope="module")
def walk() -> Motion:
    return performer.act("walk", seconds=3.0, fps=30, seed=5)


@pytest.fixture(scope="module")
def prior(walk: Motion) -> GaussianPrior:
    return GaussianPrior.learn([walk], clusters=20)


def positions(motion: Motion) -> np.ndarray:
    return world_transforms(motion.skeleton, motion.root_positions, motion.rotations)[0]


def test_the_handle_follows_its_path_and_the_feet_stay(prior: GaussianPrior, walk: Motion) -> None:
    path = Path3(
        np.array([1.0, 1.5, 2.0]),
        np.array([[0.0, 0.0, 0.0], [0.0, 0.2, 0.1], [0.0, 0.0, 0.0]]),
        relative=True,
    )
    edit = drag(prior, walk, "left_hand", path)
    assert edit.unmet == ()
    assert edit.handle_distances.max() < 1e-3
    before, after = positions(walk), positions(edit.motion)
    hand, foot = walk.skeleton.index("left_hand"), walk.skeleton.index("right_foot")
    np.testing.assert_allclose(after[45, hand] - before[45, hand], (0.0, 0.2, 0.1), atol=1e-3)
    assert np.linalg.norm(after[:, foot] - before[:, foot], axis=-1).max() < 2e-3
    assert np.array_equal(edit.motion.rotations[:20], walk.rotations[:20]) or np.allclose(
        after[:20], before[:20], atol=1e-9
    )
    steps = np.linalg.norm(np.diff(after, axis=0), axis=-1).max()
    assert steps < 1.5 * np.linalg.norm(np.diff(before, axis=0), axis=-1).max()  # nothing pops


def test_an_edit_that_asks_for_nothing_changes_nothing(prior: GaussianPrior, walk: Motion) -> None:
    path = Path3(np.array([0.0, 2.9]), np.zeros((2, 3)), relative=True)
    edit = drag(prior, walk, "left_hand", path)
    np.testing.assert_allclose(positions(edit.motion), positions(walk), atol=1e-9)


def test_paths_ease_in_and_out(walk: Motion) -> None:
    recorded = positions(walk)[:, walk.skeleton.index("left_hand")]
    path = Path3(np.array([1.0, 2.0]), np.array([[0.0, 0.3, 0.0], [0.0, 0.3, 0.0]]), relative=True)
    heights = displacements(path, recorded, walk.fps)[:, 1]
    times = np.arange(len(walk)) / walk.fps
    np.testing.assert_allclose(heights[(times >= 1.0) & (times <= 2.0)], 0.3)
    np.testing.assert_allclose(heights[(times <= 1.0 - EASE) | (times >= 2.0 + EASE)], 0.0, atol=1e-12)
    assert np.all(np.diff(heights[: int(1.0 * walk.fps)]) >= 0)


def test_absolute_paths_are_followed_in_the_world(walk: Motion) -> None:
    recorded = positions(walk)[:, walk.skeleton.index("left_hand")]
    path = Path3(np.array([1.0]), np.array([[0.5, 1.2, 2.0]]))
    moved = recorded + displacements(path, recorded, walk.fps)
    np.testing.assert_allclose(moved[30], (0.5, 1.2, 2.0), atol=1e-9)
    with pytest.raises(InvalidValueError, match="the clip lasts"):
        displacements(Path3(np.array([50.0]), np.zeros((1, 3))), recorded, walk.fps)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no points"),
        ("time,x,y,z\n", "no points"),
        ("0,1,2\n", r"path\.csv:1: expected four finite numbers"),
        (
            "time,x,y,z\n0,1,2,3\nsoon,1,2,3\n",
            r"path\.csv:3: expected four numbers time,x,y,z; got 'soon,1,2,3'",
        ),
        ("0,1,2,nan\n", "expected four finite numbers"),
        ("1,0,0,0\n1,0,0,0\n", "the times must increase"),
        ("0,0,0,0\n1e-320,1,0,0\n1,0,0,0\n", "the times must increase"),
        ("0,1e308,0,0\n1,-1e308,0,0\n", "expected four finite numbers time,x,y,z within 10,000"),
        ("0,1,2,3\n1," + "9" * 200_000 + ",0,0\n", "expected four finite numbers"),
        ("0,1,2,3\n" * 1_000_001, "at most 8,000,000"),
    ],
)
def test_paths_that_are_none_say_where(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "path.csv"
    file.write_text(text)
    with pytest.raises(ParseError, match=message):
        read_path(file)


def test_a_path_is_read_with_and_without_a_heading(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("time,x,y,z\n0,1,2,3\n1.5,2,3,4\n")
    (tmp_path / "b.csv").write_text("0,1,2,3\n\n1.5,2,3,4")
    for name in ("a.csv", "b.csv"):
        path = read_path(tmp_path / name)
        np.testing.assert_array_equal(path.times, [0.0, 1.5])
        np.testing.assert_array_equal(path.points, [[1, 2, 3], [2, 3, 4]])


def test_a_style_drags_too(walk: Motion) -> None:
    style = learned(StylePrior, [walk], dimensions=2, active=40)
    path = Path3(
        np.array([1.0, 1.5, 2.0]), np.array([[0.0, 0, 0], [0, 0.15, 0.05], [0, 0, 0]]), relative=True
    )
    edit = drag(style, walk, "left_hand", path)
    assert edit.unmet == ()
    before, after = positions(walk), positions(edit.motion)
    hand, head = walk.skeleton.index("left_hand"), walk.skeleton.index("head")
    np.testing.assert_allclose(after[45, hand] - before[45, hand], (0.0, 0.15, 0.05), atol=1e-3)
    assert np.linalg.norm(after[:, head] - before[:, head], axis=-1).max() < 0.2
    assert np.abs(np.diff(after - before, axis=0)).max() < 0.1  # what is added changes without a jump
