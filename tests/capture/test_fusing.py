"""Several sources in one motion: clocks, noise, and sources that the others contradict."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from poise.apps.fusing import fuse_take
from poise.capture.fusing import PLACES, TURNS, Feed, fuse
from poise.errors import PoiseError
from poise.evaluation.fusion import displaced, error_of, late, sources_of
from poise.motion.motion import Motion
from poise.performer import act
from poise.priors.gaussian import GaussianPrior


@pytest.fixture(scope="module")
def clip() -> Motion:
    return act("walk", seconds=3.0, fps=15, seed=5)


@pytest.fixture(scope="module")
def prior(clip: Motion) -> GaussianPrior:
    learned = [act("walk", seconds=3.0, fps=30, seed=seed) for seed in range(3)]
    return GaussianPrior.learn(learned, clusters=12).on_body(clip.skeleton)


@pytest.fixture(scope="module")
def feeds(clip: Motion) -> tuple[Feed, ...]:
    return sources_of(clip, np.random.default_rng(0))


def test_values_between_frames_and_none_outside() -> None:
    feed = Feed("a", PLACES, ("head",), np.arange(12.0).reshape(4, 1, 3), 10.0, 0.01, shift=0.1)
    np.testing.assert_allclose(feed.at(np.array([0.15]))[0, 0], [1.5, 2.5, 3.5])
    assert np.isnan(feed.at(np.array([1.0]))).all()
    turns = Feed("b", TURNS, ("head",), np.array([[[1.0, 0, 0, 0]], [[-1.0, 0, 0, 0]]]), 1.0, 0.1)
    np.testing.assert_allclose(np.abs(turns.at(np.array([0.5]))[0, 0]), [1, 0, 0, 0])


def test_two_sources_are_better_than_each(
    prior: GaussianPrior, clip: Motion, feeds: tuple[Feed, ...]
) -> None:
    known = [replace(feed, fixed=True) for feed in feeds]
    alone = [error_of(fuse(prior, [one], fps=15.0, frames=len(clip)), clip) for one in known[:2]]
    together = fuse(prior, known[:2], fps=15.0, frames=len(clip))
    assert error_of(together, clip) < min(alone)
    assert all(report.used for report in together.sources)


def test_a_source_in_the_wrong_place_is_left_out(
    prior: GaussianPrior, clip: Motion, feeds: tuple[Feed, ...]
) -> None:
    wrong = displaced(displaced(feeds[0], np.random.default_rng(3)), np.random.default_rng(3))
    found = fuse(prior, [wrong, feeds[1], feeds[3]], fps=15.0, frames=len(clip))
    assert [report.used for report in found.sources] == [False, True, True]
    assert "left out" in str(found.sources[0])


def test_a_clock_that_is_off_is_set_right(
    prior: GaussianPrior, clip: Motion, feeds: tuple[Feed, ...]
) -> None:
    found = fuse(prior, [late(feeds[0]), feeds[1], feeds[3]], fps=15.0, frames=len(clip))
    assert found.sources[0].used
    assert found.sources[0].shift == pytest.approx(0.27, abs=0.1)  # four frames


def test_a_take_file_is_read(
    prior: GaussianPrior, clip: Motion, feeds: tuple[Feed, ...], tmp_path: Path
) -> None:
    for feed, channels in zip(feeds[:3:2], ("xyz", "wxyz"), strict=True):
        labels = [f"{joint}.{channel}" for joint in feed.joints for channel in channels]
        rows = [[n / 15, *values.ravel()] for n, values in enumerate(feed.values)]
        text = [",".join(["time", *labels]), *(",".join(f"{number:.5f}" for number in row) for row in rows)]
        (tmp_path / f"{feed.name}.csv").write_text("\n".join(text))
    (tmp_path / "take.toml").write_text(
        'fps = 15\n[sources.trackers]\nfile = "trackers.csv"\nnoise = 0.03\n'
        '[sources.suit]\nfile = "suit.csv"\ngives = "turns"\nnoise = 8.0\nshift = 0.0\n'
        '[[constraints]]\nkind = "position"\nhandle = "left_foot"\nat = [0.1, 0.1, 0.0]\ntime = 0.0\ntolerance = 0.1\n'
    )
    found = fuse_take(tmp_path / "take.toml", prior)
    assert [report.name for report in found.sources] == ["trackers", "suit"]
    assert len(found.q) == len(clip)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fps = 30\n[sources]\n", "there are no sources"),
        ('[sources.a]\nfile = "a.csv"\nnoise = 0.0\n', "noise"),
        ('[sources.a]\nfile = "a.csv"\nnoise = 1.0\ngives = "smells"\n', "smells"),
        ('[sources.a]\nfile = "a.csv"\nnoise = 1.0\ngives = "pixels"\n', "camera"),
        ('[sources.a]\nfile = "a.csv"\nnoise = 1.0\n', "names no joint"),
        ('[sources.a]\nfile = "missing.csv"\nnoise = 1.0\n', "missing.csv"),
    ],
)
def test_a_wrong_take_file_says_what_is_wrong(
    text: str, words: str, tmp_path: Path, prior: GaussianPrior
) -> None:
    (tmp_path / "a.csv").write_text("time,nowhere.x,nowhere.y,nowhere.z\n0,0,0,0\n0.1,0,0,0\n")
    (tmp_path / "take.toml").write_text(text)
    with pytest.raises(PoiseError, match=words):
        fuse_take(tmp_path / "take.toml", prior)
