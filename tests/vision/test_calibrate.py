"""Boards and calibration, on simulated pictures whose cameras are known."""

import numpy as np
import pytest

from poise.apps.camera_calibration import board_from_text, calibrate_from
from poise.errors import InvalidValueError
from poise.vision.calibrate import Board, BoardView, calibrate_lens, calibrate_rig, on_floor, scaled
from poise.vision.simulator import board_picture, board_pictures, front_rig

cv2 = pytest.importorskip("cv2")
BOARD = Board(8, 6, 0.08)
RIG = front_rig()


def views_of(board: Board, count: int) -> list[dict[int, BoardView]]:
    views: list[dict[int, BoardView]] = [{}, {}]
    for number, pictures in enumerate(board_pictures(RIG, board, count=count)):
        for own, picture in zip(views, pictures, strict=True):
            if (view := board.find(picture)) is not None:
                own[number] = view
    return views


@pytest.fixture(scope="module")
def views():
    return views_of(BOARD, 10)


@pytest.mark.slow
def test_lenses_and_baseline_are_found_within_half_a_percent():
    found = calibrate_rig(views_of(BOARD, 26), names=["camera1", "camera2"])
    for camera, truth in zip(found.rig.cameras, RIG.cameras, strict=True):
        assert camera.pinhole.focal_length == pytest.approx(truth.pinhole.focal_length, rel=0.005)
        middle, true_middle = camera.pinhole.intrinsics[:2, 2], truth.pinhole.intrinsics[:2, 2]
        assert np.all(np.abs(middle - true_middle) < 0.01 * np.array(truth.size))
    assert found.rig.baseline() == pytest.approx(RIG.baseline(), rel=0.005)
    assert found.error < 0.5


def test_a_spoilt_view_is_left_out(views):
    spoilt = dict(views[0])
    number = next(iter(spoilt))
    bad = spoilt[number]
    shaken = bad.pixels + 4.0 * np.random.default_rng(0).standard_normal(bad.pixels.shape)
    spoilt[number] = BoardView(bad.numbers, bad.on_board, shaken, bad.size)
    assert number in calibrate_lens(spoilt).left_out


def test_too_few_and_mixed_views_are_refused(views):
    few = dict(list(views[0].items())[:3])
    with pytest.raises(InvalidValueError, match="4 different good views"):
        calibrate_lens(few)
    with pytest.raises(InvalidValueError, match="was not found in any picture"):
        calibrate_lens({}, name="left")
    number, view = next(iter(views[0].items()))
    other = BoardView(view.numbers, view.on_board, view.pixels, (1280, 720))
    with pytest.raises(InvalidValueError, match="differ in size"):
        calibrate_lens({**views[0], number: other})


@pytest.fixture(scope="module")
def filmed(tmp_path_factory):
    """A board shown to two cameras in a few ways, as images; and a wall."""
    folder = tmp_path_factory.mktemp("boards")
    for number, pictures in enumerate(board_pictures(RIG, BOARD, count=3)):
        for name, picture in zip(("left", "right"), pictures, strict=True):
            (folder / name).mkdir(exist_ok=True)
            cv2.imwrite(str(folder / name / f"{number}.png"), picture)
            (folder / "wall").mkdir(exist_ok=True)
            cv2.imwrite(str(folder / "wall" / f"{number}.png"), np.full_like(picture, 110))
    return folder


@pytest.mark.parametrize(
    ("board", "message"),
    [
        pytest.param(
            "9x7",
            "left: a board of 9x7 inner corners was not found in any picture, but one of 8x6 was$",
            marks=pytest.mark.slow,
        ),
        ("6x8", "at least 4 different good views of the board; got 3: show it near and far"),
    ],
)
def test_a_board_of_another_size_is_told(filmed, board, message):
    """Turned by a right angle it is the same board."""
    with pytest.raises(InvalidValueError, match=message):
        calibrate_from([filmed / "left", filmed / "right"], board_from_text(board, 0.08))


def test_a_board_that_is_never_shown_or_never_moves_is_told(filmed, tmp_path):
    with pytest.raises(InvalidValueError, match="wall: a board of 8x6 inner corners was not found"):
        calibrate_from([filmed / "left", filmed / "wall"], BOARD)
    picture = cv2.imread(str(filmed / "left" / "0.png"))
    for number in range(6):
        cv2.imwrite(str(tmp_path / f"{number}.png"), picture)
    with pytest.raises(InvalidValueError, match="good views of the board; got 1: show it near and far"):
        calibrate_from([tmp_path], BOARD)


def test_cameras_that_never_see_the_board_together_are_refused(views):
    apart = {1000 + number: view for number, view in views[1].items()}
    with pytest.raises(InvalidValueError, match="never see the board at the same time"):
        calibrate_rig([views[0], apart], names=["left", "right"])


def test_hints_tell_where_the_board_has_not_been(views):
    left = {n: view for n, view in views[0].items() if view.pixels[:, 0].max() < 420}
    assert any("right of the picture" in hint for hint in calibrate_lens(left).hints)


def test_a_charuco_board_may_be_partly_out_of_the_picture():
    board = Board(8, 6, 0.08, markers=0.06)
    camera = RIG.cameras[0]
    place = np.array([0.55, 1.2, 0.6])
    turn = camera.pinhole.rotation.T @ np.eye(3)
    view = board.find(board_picture(camera, board, turn, place))
    assert view is not None
    assert 6 <= len(view.numbers) <= len(board.corners)
    expected = camera.project(view.on_board @ turn.T + place)
    assert np.linalg.norm(view.pixels - expected, axis=1).max() < 1.0


def test_a_board_on_the_floor_makes_the_world():
    camera = RIG.cameras[0]
    axes = np.column_stack([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])  # lies flat, seen from above
    place = np.array([-0.3, 0.0, 0.4])
    pixels = camera.project(BOARD.corners @ axes.T + place)
    view = BoardView(np.arange(48), BOARD.corners, pixels, camera.size)
    placed = on_floor(RIG, view)
    for found, truth in zip(placed.cameras, RIG.cameras, strict=True):
        assert np.allclose(found.pinhole.centre, truth.pinhole.centre - place, atol=2e-3)
    assert np.allclose(
        placed.cameras[0].project(np.array([0.0, 0.5, 0.0])),
        camera.project(place + np.array([0.0, 0.5, 0.0])),
        atol=0.2,
    )


def test_a_rig_is_scaled_as_a_whole():
    assert scaled(RIG, 2.0).baseline() == pytest.approx(2 * RIG.baseline())
    with pytest.raises(InvalidValueError, match="positive"):
        scaled(RIG, -1.0)


@pytest.mark.parametrize("arguments", [(2, 6, 0.1), (8, 6, 0.0), (8, 6, 0.04, 0.05)])
def test_boards_that_cannot_be_are_refused(arguments):
    with pytest.raises(InvalidValueError):
        Board(*arguments)
