"""The image protocol: what is right, who wins, and mistakes."""

import numpy as np
import pytest

from poise import performer
from poise.errors import InvalidValueError, UnknownNameError
from poise.evaluation import image
from poise.evaluation.plots import image_figure
from poise.evaluation.report import Report
from poise.evaluation.splits import Fold
from poise.motion.motion import Motion


@pytest.fixture(scope="module")
def walk() -> Motion:
    return performer.act("walk", seconds=1.0, fps=30, seed=3)


def test_the_truth_is_right_and_its_mirror_in_depth_is_not(walk: Motion) -> None:
    for photo in image.photos_of(walk)[::7]:
        assert image.is_right(photo, photo.positions)
        assert image.flipped_segments(photo, photo.positions) == []
        ahead = photo.camera.rotation[2]
        depth = (photo.positions - photo.positions[0]) @ ahead
        mirrored = photo.positions - 2.0 * depth[:, None] * ahead
        assert image.flipped_segments(photo, mirrored)
        assert not image.is_right(photo, mirrored)


def test_points_are_seen_within_the_photo(walk: Motion) -> None:
    for photo in image.photos_of(walk):
        for pixel in photo.view(6).points.values():
            assert np.all(pixel > 0)
            assert np.all(pixel < image.SIZE)


def test_a_style_beats_plain_least_squares(walk: Motion) -> None:
    train = performer.act("walk", seconds=3.0, fps=30, seed=1)
    rows = image.evaluate_image([Fold((train,), (walk,))], methods=("style", "dls"), stride=10)
    found = {(row["method"], row["points"]): row for row in rows}
    assert found["style", 6]["mpjpe_cm"] < 0.6 * found["dls", 6]["mpjpe_cm"]
    assert found["style", 6]["right_in_3"] >= found["dls", 6]["right_in_3"]
    assert all(row["failed"] == 0 and row["frames"] == 3 for row in rows)
    assert len(image_figure(Report("image", "walk", rows)).axes) == 2


def test_mistakes_are_told(walk: Motion) -> None:
    folds = [Fold((walk,), (walk,))]
    with pytest.raises(UnknownNameError, match="method of the image protocol 'styl'; did you mean style"):
        image.evaluate_image(folds, methods=["styl"])
    with pytest.raises(InvalidValueError, match="stride must be at least 1"):
        image.evaluate_image(folds, methods=["dls"], stride=0)
