"""Few keys per curve: the bound holds at every frame, in files too; the slopes are the best ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import poise
from poise import performer
from poise.errors import InvalidValueError
from poise.motion.keys import KeyedCurve, few_keys
from poise.motion.motion import Motion
from poise.motion.world import joint_transforms


@pytest.fixture(scope="module")
def box() -> Motion:
    return performer.act("box", seconds=3.0, fps=30.0)


def apart(one: Motion, other: Motion) -> tuple[float, float]:
    """Metres and degrees in the world, at most."""
    (places, axes), (theirs, their_axes) = joint_transforms(one), joint_transforms(other)
    traces = np.einsum("fjab,fjab->fj", axes, their_axes)
    turned = np.degrees(np.arccos(np.clip(0.5 * (traces - 1.0), -1.0, 1.0)))
    return float(np.linalg.norm(places - theirs, axis=-1).max()), float(turned.max())


@pytest.mark.parametrize("action", ["box", "walk", "throw"])
def test_a_quarter_of_the_keys_is_within_a_centimetre_and_two_degrees(action: str) -> None:
    motion = performer.act(action, fps=30.0)
    keyed = few_keys(motion)
    off, turned = apart(keyed.motion, motion)
    assert off <= 0.01
    assert turned <= 2.0001
    np.testing.assert_allclose(keyed.deviations, (off, np.radians(turned)), atol=1e-5)
    assert keyed.share < 0.25


def test_keys_have_the_values_of_their_frames(box: Motion) -> None:
    keyed = few_keys(box)
    for joint, curve in enumerate(keyed.joints):
        np.testing.assert_allclose(
            np.abs(np.sum(curve.values * box.rotations[curve.frames, joint], axis=-1)), 1.0, atol=1e-12
        )


def test_a_closer_bound_takes_more_keys(box: Motion) -> None:
    fine = few_keys(box, close=0.001, turned=np.radians(0.3))
    assert fine.keys > few_keys(box).keys
    assert apart(fine.motion, box)[0] <= 0.001


@pytest.mark.parametrize("frames", [1, 2, 3])
def test_short_motions_have_keys_at_most_at_every_frame(box: Motion, frames: int) -> None:
    keyed = few_keys(box[:frames])
    assert keyed.share <= 1.0
    assert apart(keyed.motion, box[:frames])[0] <= 0.01


def test_what_stands_has_one_key(box: Motion) -> None:
    assert few_keys(box[np.zeros(30, dtype=int)]).keys == 1 + len(box.skeleton)


def test_no_bound_is_refused(box: Motion) -> None:
    with pytest.raises(InvalidValueError, match="positive distance"):
        few_keys(box, close=0.0)


def test_a_glb_holds_the_curves(box: Motion, tmp_path: Path) -> None:
    keyed = few_keys(box)
    file, every = keyed.save(tmp_path / "keys.glb"), box.save(tmp_path / "every.glb")
    read = poise.read(file)
    assert isinstance(read, Motion)
    assert apart(read, keyed.motion) < (1e-5, 1e-2)
    assert file.stat().st_size < every.stat().st_size
    assert b"CUBICSPLINE" in file.read_bytes()


def test_the_file_of_a_character_holds_the_curves(box: Motion, tmp_path: Path) -> None:
    character = box[:1].save(tmp_path / "body.glb")
    own = poise.retarget(box, character)
    keyed = few_keys(own)
    read = poise.read(keyed.save(tmp_path / "keys.glb"))
    assert isinstance(read, Motion)
    assert apart(read, own)[0] < 0.0101


def test_other_formats_hold_every_frame_of_the_curves(box: Motion, tmp_path: Path) -> None:
    read = poise.read(few_keys(box).save(tmp_path / "keys.bvh"))
    assert isinstance(read, Motion)
    assert apart(read, few_keys(box).motion)[0] < 1e-3


@given(seed=st.integers(0, 1000), count=st.integers(2, 12))
def test_slopes_are_those_of_least_squares(seed: int, count: int) -> None:
    draw = np.random.default_rng(seed)
    track = np.cumsum(draw.normal(size=(40, 3)), axis=0)
    keys = np.unique(np.r_[0, draw.integers(1, 39, count - 2), 39])
    curve = KeyedCurve.along(track, keys)
    best = np.sum((curve.at(np.arange(40)) - track) ** 2)
    for _ in range(5):
        other = KeyedCurve(keys, curve.values, curve.slopes + 0.05 * draw.normal(size=curve.slopes.shape))
        assert np.sum((other.at(np.arange(40)) - track) ** 2) >= best - 1e-3
