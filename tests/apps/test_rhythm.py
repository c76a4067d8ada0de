"""The rhythm of clips: found, written, corrected, and taken by a motion model."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from poise.errors import InvalidValueError, ParseError, UnknownNameError
from poise.formats import read_motion
from poise.motion import Motion
from poise.performer import act
from poise.pictures.latent_paths import draw_rhythms, rhythm_row
from poise.priors.dynamics.prior import DynamicsOptions, DynamicsPrior
from poise.priors.dynamics.sequences import (
    Rhythm,
    given_rhythm,
    read_rhythms,
    rhythm_of,
    rhythm_text,
    sequences_of,
)
from poise.priors.registry import learn
from real_data import recording


@pytest.fixture(scope="module")
def clips() -> list[Motion]:
    return [act("walk", seconds=2.0, fps=60, seed=1), act("run", speed=3.0, seconds=1.5, fps=60, seed=2)]


@pytest.fixture(scope="module")
def rhythms(clips: list[Motion]) -> list[Rhythm]:
    return [rhythm_of(clip, name=name)[0] for clip, name in zip(clips, ("walk 1", "run.1"), strict=True)]


def test_what_is_written_comes_back_and_says_what_was_found(
    clips: list[Motion], rhythms: list[Rhythm], tmp_path: Path
) -> None:
    (tmp_path / "r.toml").write_text(rhythm_text(rhythms))
    given = given_rhythm(read_rhythms(tmp_path / "r.toml"), ["walk 1", "run.1"], clips)
    found = sequences_of(clips)
    assert given.activities == ["walk", "run"]
    np.testing.assert_allclose(np.concatenate(given.phases), found.phases["phase"], atol=5e-3)
    for own, points in zip(given.transitions, found.transitions, strict=True):
        np.testing.assert_allclose(own, points, atol=1)  # a time between two frames is either


@pytest.mark.parametrize(
    ("action", "activity"),
    [("walk", "walk"), ("run", "run"), ("jump", "jump"), ("hop", "other"), ("idle", "other")],
)
def test_what_the_performer_does_is_told_by_the_feet(action: str, activity: str) -> None:
    assert rhythm_of(act(action, fps=60, seed=3))[0].activity == activity


@pytest.mark.parametrize(
    ("name", "activity"), [("16_02", "jump"), ("13_32", "jump"), ("35_17", "run"), ("35_01", "walk")]
)
def test_what_is_done_in_recordings_is_told_by_the_feet(name: str, activity: str) -> None:
    clip = read_motion(recording("cmu", f"{name}.bvh"))
    assert rhythm_of(clip)[0].activity == activity


def test_a_corrected_phase_and_sets_of_transitions_are_learned_from(
    clips: list[Motion], tmp_path: Path
) -> None:
    (tmp_path / "r.toml").write_text(
        """
        [clips.a]
        activity = "stroll"
        phase = [[0.0, 0.0], [2.0, 2.0]]
        transitions = { up = [0.5], down = [1.0, 1.5] }
        [clips.b]
        activity = "dash"
        phase = [[0.1, 0.0], [1.1, 1.5]]
        transitions = { up = [0.7] }
        """
    )
    named = [replace(clip, name=name) for clip, name in zip(clips, "ab", strict=True)]
    options = DynamicsOptions(
        rhythm=tmp_path / "r.toml", topology="cylinder + transitions", phase="learned", active=20
    )
    prior = learn(named, "dynamics", options)
    assert isinstance(prior, DynamicsPrior)
    assert prior.frames.activity_names == ("stroll", "dash")
    assert [points.tolist() for points in prior.frames.transitions] == [[15, 81], [30, 45]]
    assert 0.0 < np.abs(prior.frames.phases["phase"][:60] - np.arange(60) * 2 * np.pi / 30).max() < 1.5


def test_the_picture_has_a_row_per_clip(clips: list[Motion], rhythms: list[Rhythm]) -> None:
    rows = [rhythm_row(own, rhythm_of(clip)[1], clip) for own, clip in zip(rhythms, clips, strict=True)]
    assert draw_rhythms(rows).height > draw_rhythms(rows[:1]).height


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("clips = {}", "there are no clips"),
        ('[clips.a]\nactivity = "walk"\nphase = [[0, 0]]', "two keys"),
        ('[clips.a]\nactivity = "walk"\nphase = [[0, 0], [1, -1]]', "turns not decreasing"),
        ('[clips.a]\nactivity = "walk"\nphase = [[0, 0], [1e-320, 1], [1, 2]]', "times rising"),
        ('[clips.a]\nactivity = "walk"\nphase = [[0, 0], [1, 1]]\nturns = 2', "turns"),
        (
            '[clips.a]\nactivity = "walk"\nphase = [[0, 0], [1, 1]]\ntransitions = { left = [-1] }',
            "number of at least 0",
        ),
    ],
)
def test_mistakes_in_a_file_are_named(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(text)
    with pytest.raises(ParseError, match=said):
        read_rhythms(tmp_path / "bad.toml")


def test_mistakes_are_named(clips: list[Motion], rhythms: list[Rhythm]) -> None:
    named = {rhythm.name: rhythm for rhythm in rhythms}
    with pytest.raises(UnknownNameError, match="walk 2"):
        given_rhythm(named, ["walk 2"], clips[:1])
    late = Rhythm("late", "walk", np.array([0.0, 1.0]), np.array([0.0, 1.0]), {"left": (99.0,)})
    with pytest.raises(InvalidValueError, match="after the clip's end"):
        given_rhythm({"late": late}, ["late"], clips[:1])
    with pytest.raises(InvalidValueError, match="the rhythm file already has the activities"):
        learn(clips, "dynamics", DynamicsOptions(rhythm=Path("r.toml"), activities="a,b"))
