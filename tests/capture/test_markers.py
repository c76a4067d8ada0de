"""Markers on a body: it is found again from them, followed through gaps, swaps and jumps, with honest uncertainty."""

from dataclasses import replace

import numpy as np
import pytest

from made_once import learned
from poise import performer
from poise.capture.calibration import Calibration, calibrate
from poise.capture.markers import fill
from poise.capture.tracking import ASIS, NOBODY, Confidence, MarkerTracker, assign, confidence_from
from poise.errors import InvalidValueError
from poise.motion import Motion
from poise.motion.gaps import Gap, SplineErrors
from poise.motion.virtual_markers import optical_layout, virtual_markers
from poise.motion.world import joint_positions
from poise.priors.broad import BroadPrior
from poise.priors.gaussian import GaussianPrior
from poise.priors.style.prior import StylePrior
from poise.skeleton.measure import segment_lengths
from poise.skeleton.pose_space import PoseSpace

FPS = 60.0


@pytest.fixture(scope="module")
def motion() -> Motion:
    return performer.act("walk", performer="rosa", seconds=3.0, fps=FPS, seed=3)


@pytest.fixture(scope="module")
def points(motion: Motion) -> np.ndarray:
    clean = virtual_markers(motion).points
    return clean + 0.002 * np.random.default_rng(0).normal(size=clean.shape)


@pytest.fixture(scope="module")
def template() -> PoseSpace:
    return PoseSpace(performer.PERFORMERS["alex"].skeleton)


@pytest.fixture(scope="module")
def fitted(template: PoseSpace, points: np.ndarray) -> Calibration:
    return calibrate(template, optical_layout(template.skeleton), points[:60:2])


@pytest.fixture(scope="module")
def style(fitted: Calibration, motion: Motion) -> StylePrior:
    walk = replace(motion[:90], skeleton=fitted.skeleton)
    return learned(StylePrior, [walk], dimensions=2, active=20, up=False)


def test_limb_lengths_are_found_from_markers_on_another_body(fitted: Calibration, motion: Motion) -> None:
    assert fitted.rms < 0.008
    found, true = segment_lengths(fitted.skeleton), segment_lengths(motion.skeleton)
    for limb in ("left_thigh", "right_shin", "left_upper_arm", "right_forearm"):
        assert found[limb] == pytest.approx(true[limb], rel=0.08), limb
        other = limb.replace("left", "x").replace("right", "left").replace("x", "right")
        assert found[limb] == pytest.approx(found[other])


@pytest.mark.parametrize("factor", [0.001, 1000.0])
def test_a_wrong_unit_is_named(template: PoseSpace, points: np.ndarray, factor: float) -> None:
    with pytest.raises(InvalidValueError, match=r"m tall; the file's unit of length .* mm, cm or m") as told:
        calibrate(template, optical_layout(template.skeleton), factor * points[:5])
    assert told.value.settings == ("units",)


def test_a_body_needs_enough_markers(template: PoseSpace, points: np.ndarray) -> None:
    few = dict(list(optical_layout(template.skeleton).items())[:5])
    with pytest.raises(InvalidValueError, match="at least 10 markers"):
        calibrate(template, few, points[:5, :5])


def test_complete_markers_give_the_recorded_body(
    fitted: Calibration, points: np.ndarray, motion: Motion
) -> None:
    space = PoseSpace(fitted.skeleton)
    tracker = MarkerTracker(BroadPrior(space), fitted, fps=FPS)
    frames = [tracker.step(frame) for frame in points[:40]]
    assert all(frame.seen.all() for frame in frames)
    assert np.mean([frame.misfit for frame in frames]) < 0.012
    solved = Motion(fitted.skeleton, FPS, *space.frames_from_q(np.stack([f.q for f in frames])))
    gaps = np.linalg.norm(joint_positions(solved) - joint_positions(motion[:40]), axis=2)
    hands = [motion.skeleton.index(role) for role in ("left_hand", "right_hand", "left_foot", "right_foot")]
    assert gaps[:, hands].mean() < 0.03


def test_a_body_far_from_its_mean_pose_is_met_at_once_and_followed() -> None:
    """Sharp constraints allow only short steps: from the mean pose to a jump they are too many in one frame."""
    jump = performer.act("jump", performer="rosa", seconds=2.0, fps=FPS, seed=3)
    layout, seen = optical_layout(jump.skeleton), virtual_markers(jump).points
    worn = Calibration(jump.skeleton, layout, np.full(len(layout), 0.003), 0.003)
    tracker = MarkerTracker(BroadPrior(PoseSpace(jump.skeleton)), worn, fps=FPS)
    assert max(tracker.step(points).misfit for points in seen) < 0.003
    for points in seen[::10]:
        tracker.reset()
        assert tracker.step(points).misfit < 0.003


@pytest.mark.parametrize("kind", ["style", "gaussian"])
def test_hidden_markers_are_found_and_their_uncertainty_is_honest(
    fitted: Calibration, points: np.ndarray, motion: Motion, style: StylePrior, kind: str
) -> None:
    clip = replace(motion[:90], skeleton=fitted.skeleton)
    prior = style if kind == "style" else GaussianPrior.learn([clip], clusters=10)
    hidden = np.random.default_rng(1).permutation(points.shape[1])[:20]
    seen = points[80:150].copy()
    seen[10:, hidden] = np.nan
    tracker = MarkerTracker(prior, fitted, fps=FPS)
    frames = [tracker.step(frame) for frame in seen]
    off = np.stack([frame.markers for frame in frames])[10:, hidden] - points[90:150, hidden]
    claimed = np.stack([frame.sigmas for frame in frames])[10:, hidden]
    assert np.linalg.norm(off, axis=2).mean() < 0.025
    assert 0.3 < np.sqrt((np.square(off).mean(axis=2) / claimed**2).mean()) < 2.0


def test_joints_are_less_sure_while_their_markers_are_hidden(
    fitted: Calibration, points: np.ndarray, motion: Motion
) -> None:
    prior = GaussianPrior.learn([replace(motion[:90], skeleton=fitted.skeleton)], clusters=10)
    arm, other = (fitted.skeleton.index(name) for name in ("left_forearm", "right_forearm"))
    left = [label.startswith(("LUPA", "LELB", "LFRM", "LWR", "LFIN", "LTHM")) for label in fitted.layout]
    seen = points[80:120].copy()
    seen[15:, left] = np.nan
    tracker = MarkerTracker(prior, fitted, fps=FPS)
    frames = [tracker.step(frame) for frame in seen]
    sigmas = np.stack([frame.joint_sigmas for frame in frames])
    known, hidden = np.median(sigmas[5:15], axis=0), np.median(sigmas[20:], axis=0)
    assert hidden[arm] > 2.0 * known[arm]
    assert hidden[other] < 1.5 * known[other]


def test_swapped_unlabelled_and_jumping_markers_are_told(
    fitted: Calibration, points: np.ndarray, style: StylePrior
) -> None:
    labels = list(fitted.layout)
    left, right, lost, jumping = (labels.index(name) for name in ("LFHD", "RKNE", "RFIN", "LANK"))
    tracker = MarkerTracker(style, fitted, fps=FPS)
    for frame in points[:20]:
        tracker.step(frame)
    frame = points[20].copy()
    frame[[left, right]] = frame[[right, left]]
    frame[lost] = np.nan
    frame[jumping] += 0.5
    found = tracker.step(frame, points[20, [lost]])
    assert found.sources[left] == right
    assert found.sources[right] == left
    assert found.sources[lost] == len(labels)
    assert found.sources[jumping] == NOBODY
    after = tracker.step(points[21])
    assert after.seen.all()
    assert after.misfit < 0.02


def test_a_frame_is_a_solution_that_names_the_markers_it_is_off(
    fitted: Calibration, points: np.ndarray, style: StylePrior
) -> None:
    labels = list(fitted.layout)
    tracker = MarkerTracker(style, fitted, fps=FPS)
    frame = points[0].copy()
    frame[labels.index("RFIN")] = np.nan
    found = tracker.step(frame)
    assert [residual.label for residual in found.residuals] == [name for name in labels if name != "RFIN"]
    gaps = np.linalg.norm(found.markers - frame, axis=1)[found.seen]
    np.testing.assert_allclose([residual.value for residual in found.residuals], gaps, atol=1e-9)
    assert found.reached


def test_nothing_seen_for_a_second_goes_on_and_is_flagged(
    fitted: Calibration, points: np.ndarray, style: StylePrior
) -> None:
    tracker = MarkerTracker(style, fitted, fps=FPS)
    for frame in points[:10]:
        tracker.step(frame)
    blank = [tracker.step(np.full_like(points[0], np.nan)) for _ in range(60)]
    assert all(np.isfinite(frame.q).all() for frame in blank)
    assert blank[-1].flagged.all()
    assert np.isnan(blank[-1].misfit)
    back = [tracker.step(frame) for frame in points[70:75]]
    assert back[-1].seen.all()
    assert back[-1].misfit < 0.02


def test_a_stream_can_begin_with_nothing(fitted: Calibration, points: np.ndarray, style: StylePrior) -> None:
    tracker = MarkerTracker(style, fitted, fps=FPS)
    tracker.step(np.full_like(points[0], np.nan))
    for frame in points[:3]:
        last = tracker.step(frame)
    assert last.misfit < 0.02


@pytest.mark.usefixtures("unchecked_shapes")
def test_a_frame_of_other_markers_is_refused(fitted: Calibration, style: StylePrior) -> None:
    with pytest.raises(InvalidValueError, match=r"a frame must be \(41, 3\)"):
        MarkerTracker(style, fitted, fps=FPS).step(np.zeros((40, 3)))
    with pytest.raises(InvalidValueError, match="frame rate must be positive"):
        MarkerTracker(style, fitted, fps=0.0)


def test_assignment_keeps_to_the_gates() -> None:
    expected = np.array([[0.0, 0, 0], [1.0, 0, 0], [2.0, 0, 0]])
    points = np.array([[1.01, 0, 0], [0.02, 0, 0], [5.0, 0, 0]])
    assert assign(expected, np.full(3, 0.1), points).tolist() == [1, 0, NOBODY]
    assert assign(expected, np.full(3, 0.1), points[:0]).tolist() == [NOBODY] * 3


def test_a_fill_meets_what_was_measured_at_both_ends() -> None:
    fps, t = 100.0, np.arange(100) / 100.0
    track = np.stack([np.sin(3 * t), np.cos(2 * t), t], axis=1)[:, None]
    carried = track + np.array([0.03, -0.02, 0.01])  # a model that is off by the same everywhere
    measured = track.copy()
    measured[30:70] = np.nan
    errors = SplineErrors(np.array([5.0]), 2.0, np.array([3.0]), np.array([9.0]))
    filled = fill(measured, carried, np.full((100, 1), 0.02), errors=errors, fps=fps)
    assert np.linalg.norm(filled.points - track, axis=2).max() < 0.03
    assert np.linalg.norm(filled.points[[30, 69]] - track[[30, 69]], axis=2).max() < 0.003
    assert filled.sigmas[30, 0] < filled.sigmas[50, 0] <= 0.02
    np.testing.assert_array_equal(filled.points[filled.measured], track[filled.measured])
    assert errors.sigma(Gap(0, 30, 70, closed=True), fps).argmax() in (19, 20)


def test_doubles_and_points_at_a_wrong_distance_are_nobodys(
    fitted: Calibration, points: np.ndarray, style: StylePrior
) -> None:
    """A file may hold a seen marker twice; a hidden neighbour must not take the second for itself."""
    labels = list(fitted.layout)
    hidden, seen = labels.index("RFHD"), labels.index("LFHD")
    tracker = MarkerTracker(style, fitted, fps=FPS)
    for frame in points[:20]:
        tracker.step(frame)
    frame = points[20].copy()
    frame[hidden] = np.nan
    double, astray = frame[seen], points[20, hidden] + 0.3 * (points[20, seen] - points[20, hidden])
    assert tracker.step(frame, np.stack([double, astray])).sources[hidden] == NOBODY
    frame = points[21].copy()
    frame[hidden] = np.nan
    found = tracker.step(frame, np.stack([frame[seen], points[21, hidden]]))
    assert found.sources[hidden] == len(labels) + 1


def test_a_marker_that_stood_still_until_it_was_lost_goes_with_the_body() -> None:
    """Where nothing comes after a gap, staying is as wrong as the body says it moved."""
    frames, fps = 60, 30.0
    carried = np.zeros((frames, 1, 3))
    carried[20:, 0, 0] = np.linspace(0.0, 1.0, 40)
    measured = carried.copy()
    measured[20:] = np.nan
    errors = SplineErrors(np.array([0.01]), 2.0, np.array([0.001]), np.array([0.01]))
    filled = fill(measured, carried, np.full((frames, 1), 0.02), errors=errors, fps=fps)
    assert np.linalg.norm(filled.points - carried, axis=2)[20:].max() < 0.02


def test_claims_widen_by_how_wrong_they_were_and_never_narrow() -> None:
    rng = np.random.default_rng(0)
    lengths = {share: [factor * np.linalg.norm(rng.normal(size=(4000, 3)), axis=1)] for share, factor in
               [(0.3, 0.5), (0.5, 2.0), (0.9, 1.5)]}  # fmt: skip
    confidence = confidence_from(lengths)
    assert confidence.factor(0.0) == confidence.factor(0.3) == 1.0
    assert confidence.factor(0.5) == pytest.approx(2.0, rel=0.05)
    assert confidence.factor(0.4) == pytest.approx(1.5, rel=0.05)
    assert confidence.factor(0.9) == confidence.factor(0.5)


def test_a_tracker_reports_what_its_confidence_says(
    fitted: Calibration, points: np.ndarray, style: StylePrior
) -> None:
    seen = points[0].copy()
    seen[::2] = np.nan
    share = np.isnan(seen[:, 0]).mean()
    plain = MarkerTracker(style, fitted, fps=FPS, confidence=ASIS).step(seen)
    wider = MarkerTracker(style, fitted, fps=FPS, confidence=Confidence((0.0, share), (1.0, 3.0))).step(seen)
    np.testing.assert_allclose(wider.sigmas, 3.0 * plain.sigmas)
