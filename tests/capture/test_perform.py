"""Performances: a few markers in, whole bodies out, whatever markers do meanwhile."""

from pathlib import Path

import numpy as np
import pytest

import poise
from poise import performer
from poise.capture.matching import WITH_HEAD, known_places, marker_layout, match, read_layout
from poise.capture.performance import Glimpse, Performance, PerformedFrame, _pictured, motion_of, shortfall_of
from poise.errors import InvalidValueError, ParseError, UnknownNameError
from poise.geometry import rotations
from poise.geometry.cameras import Camera
from poise.motion import Markers, Motion
from poise.motion.virtual_markers import virtual_markers
from poise.priors.gaussian import GaussianPrior
from poise.priors.local.prior import LocalPrior

Array = np.ndarray


@pytest.fixture(scope="module")
def walks() -> list[Motion]:
    return [
        performer.act("walk", seconds=4.0, fps=60, seed=seed, speed=1.0 + 0.2 * seed) for seed in range(3)
    ]


@pytest.fixture(scope="module")
def test_walk() -> Motion:
    return performer.act("walk", seconds=3.0, fps=60, seed=9, speed=1.3, turn=0.6)


@pytest.fixture(scope="module")
def performance(walks: list[Motion], test_walk: Motion) -> Performance:
    layout = marker_layout(test_walk.skeleton, WITH_HEAD)
    return Performance(LocalPrior.learn(walks), layout, skeleton=test_walk.skeleton, fps=60)


@pytest.fixture(scope="module")
def take(test_walk: Motion) -> Markers:
    return virtual_markers(test_walk, marker_layout(test_walk.skeleton, WITH_HEAD))


def _degrees(frames: list[PerformedFrame], truth: Motion) -> Array:
    moving = frames[0].space.moving
    found = motion_of(frames, truth.fps)
    angles = rotations.geodesic_distance(found.rotations[:, moving], truth.rotations[:, moving])
    return np.asarray(np.degrees(angles).mean(axis=1))


def test_a_walk_comes_back_from_nine_markers(
    performance: Performance, take: Markers, test_walk: Motion
) -> None:
    frames = performance.run(take, stride=3)
    assert _degrees(frames, test_walk[::3]).mean() < 3.0
    off = [
        np.abs(frame.markers - points).max() for frame, points in zip(frames, take.points[::3], strict=True)
    ]
    assert max(off) < 0.002


def test_markers_that_all_vanish_for_two_seconds_come_back(
    performance: Performance, take: Markers, test_walk: Motion
) -> None:
    points = take.points.copy()
    points[30:150] = np.nan
    frames = performance.run(Markers(take.labels, points, take.fps))
    assert all(np.all(np.isfinite(frame.q)) for frame in frames)
    np.testing.assert_array_equal(frames[100].q, frames[29].q)
    assert not frames[100].seen.any()
    assert _degrees(frames, test_walk)[152:].mean() < 4.0
    assert np.abs(frames[160].markers - take.points[160]).max() < 0.002


@pytest.mark.parametrize("missing", [[0], [5], [6, 7], [0, 1, 2, 3]])
def test_some_markers_may_be_missing(
    performance: Performance, take: Markers, test_walk: Motion, missing: list[int]
) -> None:
    points = take.points.copy()
    points[20:, missing] = np.nan
    frames = performance.run(Markers(take.labels, points, take.fps), stride=4)
    assert _degrees(frames, test_walk[::4]).mean() < 8.5
    gaps = np.stack([frame.markers for frame in frames])[:, missing] - take.points[::4, missing]
    assert np.linalg.norm(gaps, axis=-1).mean() < 0.18


def test_a_marker_seen_by_one_camera_is_on_its_ray(performance: Performance, take: Markers) -> None:
    camera = Camera.looking_at((0.0, 1.0, 0.0), eye=(3.0, 1.5, 3.0))
    points = take.points[40].copy()
    pixel = camera.project(points[1])
    points[1] = np.nan
    performance.reset()
    frame = performance.step(points, glimpses=[Glimpse(1, camera, (float(pixel[0]), float(pixel[1])))])
    np.testing.assert_allclose(camera.project(frame.markers[1]), pixel, atol=1.0)
    shown = _pictured(
        points, ~np.isnan(points[:, 0]), [Glimpse(1, camera, (float(pixel[0]), float(pixel[1])))]
    )
    ray = take.points[40, 1] - camera.centre
    np.testing.assert_allclose(shown.across[-1] @ ray, 0.0, atol=1e-9)  # anywhere along the ray is as good
    assert np.trace(shown.across[-1]) == pytest.approx(2.0)


def test_one_camera_alone_tells_the_pose_and_where_it_is(
    performance: Performance, take: Markers, test_walk: Motion
) -> None:
    camera, hidden = Camera.looking_at((0.0, 1.0, 2.0), eye=(2.0, 1.5, 6.0)), np.full((9, 3), np.nan)
    performance.reset()
    frames = [performance.step(take.points[0])]
    for points in take.points[1:]:
        pixels = camera.project(points)
        glimpses = [Glimpse(number, camera, (x, y)) for number, (x, y) in enumerate(pixels.tolist())]
        frames.append(performance.step(hidden, glimpses=glimpses))
        np.testing.assert_allclose(camera.project(frames[-1].markers), pixels, atol=3.0)
    assert _degrees(frames, test_walk).mean() < 4.0
    gaps = np.stack([frame.markers for frame in frames]) - take.points
    assert np.linalg.norm(gaps, axis=-1).mean() < 0.05


def test_noisy_markers_are_met_roughly_and_a_torso_root_is_smoothed(
    walks: list[Motion], take: Markers, test_walk: Motion
) -> None:
    rng = np.random.default_rng(0)
    noisy = Markers(take.labels, take.points + rng.normal(0, 0.004, take.points.shape), take.fps)
    layout = marker_layout(test_walk.skeleton, WITH_HEAD)
    soft = Performance(
        LocalPrior.learn(walks[:1]), layout, skeleton=test_walk.skeleton, noise=0.01, root="torso"
    )
    frames = soft.run(noisy[:40])
    off = np.stack([frame.markers for frame in frames]) - take.points[:40]
    assert np.linalg.norm(off, axis=-1).mean() < 0.06


def test_half_a_millimetre_of_noise_is_no_motion() -> None:
    """Examples that are exact, and a body that hardly moves: noise must not be taken for what they tell."""
    sits = [performer.act("sit", fps=60, seed=seed) for seed in (0, 1)]
    sitter = performer.act("sit", fps=60, seed=12)[:60]
    layout = marker_layout(sitter.skeleton, WITH_HEAD)
    take, rng = virtual_markers(sitter, layout), np.random.default_rng(0)
    noisy = Markers(take.labels, take.points + 5e-4 * rng.standard_normal(take.points.shape), take.fps)
    performance = Performance(LocalPrior.learn(sits), layout, skeleton=sitter.skeleton, fps=60)
    degrees = _degrees(performance.run(noisy), sitter)
    assert degrees.mean() < 0.8
    assert degrees.max() < 2.0


def test_markers_that_cannot_be_met_are_reported(performance: Performance, take: Markers) -> None:
    points, hand = take.points.copy(), WITH_HEAD.index("left_hand")
    points[10:15, hand] += (0.0, 3.0, 0.0)
    frames = performance.run(Markers(take.labels, points, take.fps)[:30])
    assert [bool(frame.unmet) for frame in frames] == [10 <= number < 15 for number in range(30)]
    worst = max(frames[12].unmet, key=lambda residual: residual.value)
    assert worst.label == "left_hand"
    assert worst.value > 1.0
    shortfall = shortfall_of(frames)
    assert (shortfall.unmet, shortfall.worst_at in range(11, 16)) == (5, True)
    assert "in 5 of 30 frames; the worst is left_hand: " in str(shortfall)
    exact = Performance(performance.prior, dict(zip(WITH_HEAD, performance._places, strict=True)), noise=0.0)
    assert [exact.step(points[number]).reached for number in (0, 12)] == [True, False]


def test_any_model_performs_by_its_ordinary_guide(
    walks: list[Motion], test_walk: Motion, take: Markers
) -> None:
    gaussian = GaussianPrior.learn(walks)
    layout = marker_layout(test_walk.skeleton, WITH_HEAD)
    performance = Performance(gaussian, layout, skeleton=test_walk.skeleton, fps=60)
    points = take.points[:60].copy()
    points[20:40, 2] = np.nan
    points[40:45] = np.nan
    frames = performance.run(Markers(take.labels, points, take.fps))
    assert _degrees(frames, test_walk[:60]).mean() < 6.0
    assert shortfall_of(frames).unmet == 0
    np.testing.assert_array_equal(frames[44].q, frames[39].q)
    with pytest.raises(InvalidValueError, match="only a local model can take the root from the torso"):
        Performance(gaussian, layout, root="torso")


def test_a_take_is_performed_in_one_call(walks: list[Motion], take: Markers, tmp_path: Path) -> None:
    model = GaussianPrior.learn(walks, clusters=10)
    seen = take[:20]
    performed = poise.perform(model, seen)
    assert str(shortfall_of(performed.solutions)) == "all observations are met"
    assert (len(performed.motion), performed.motion.fps) == (20, take.fps)
    off = [frame.markers - points for frame, points in zip(performed.solutions, seen.points, strict=True)]
    assert np.abs(off).max() < 0.005
    files = poise.save(model, tmp_path / "walk.poise"), seen.save(tmp_path / "take.trc")
    again = poise.perform(*files)
    assert np.allclose(again.motion.positions, performed.motion.positions, atol=0.005)
    with pytest.raises(InvalidValueError, match="is live; create a Performance"):
        poise.perform(model, "udp:9000")
    assert poise.perform(None, seen).solutions[-1].prior.kind == "universal"


def test_wrong_frames_are_refused(performance: Performance) -> None:
    with pytest.raises(InvalidValueError, match="a frame must be"):
        performance.step(np.zeros((3, 3)))


def test_mapping_files_name_places_joints_and_props(test_walk: Motion, tmp_path: Path) -> None:
    file = tmp_path / "map.toml"
    file.write_text('[markers]\nA = "left_hand"\nSWORD = { joint = "right_hand", offset = [0, 0.5, 0] }\n')
    layout = read_layout(file, test_walk.skeleton)
    assert layout["SWORD"].offset == (0.0, 0.5, 0.0)
    file.write_text('[markers]\nA = "left_hnad"\n')
    with pytest.raises(UnknownNameError, match="left_hand"):
        read_layout(file, test_walk.skeleton)
    file.write_text("[markers]\nA = 3\n")
    with pytest.raises(ParseError, match=r"markers\.A: expected text in quotes or a table"):
        read_layout(file, test_walk.skeleton)
    assert list(known_places(["left_hand", "junk", "LFWT"], test_walk.skeleton)) == ["left_hand", "LFWT"]
    with pytest.raises(InvalidValueError, match="0 of 1 marker labels are known and 1 are needed"):
        match(Markers(("junk",), np.zeros((3, 1, 3)), 30.0), test_walk.skeleton, fewest=1)
