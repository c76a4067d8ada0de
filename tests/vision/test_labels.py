"""Tracks, explanations and swaps: labels that hold when markers meet, hide and come back."""

import numpy as np
import pytest

from poise import performer
from poise.apps.camera_takes import NINE, before_cameras, simulator_of
from poise.capture.cameras import NOISE, CameraPerformance
from poise.capture.performance import Performance
from poise.formats import read
from poise.motion.motion import Motion
from poise.priors.local.prior import LocalPrior
from poise.vision.blobs import Background, Blobs
from poise.vision.label_swaps import LabelSwaps
from poise.vision.rig import Rig
from poise.vision.simulator import front_rig
from poise.vision.tracker import Labeller, MarkerFinder, Wearer
from poise.vision.tracks import Tracks
from tests.real_data import recording

pytest.importorskip("cv2")
RIG = front_rig()
FRAME = 1 / 60


def blobs_of(
    rig: Rig,
    points: np.ndarray,
    visible: np.ndarray | None = None,
    *,
    order: np.ndarray | None = None,
    colours: np.ndarray | None = None,
) -> list[Blobs]:
    """What cameras see of points, in another order each time; the seen ones alone."""
    found = []
    for number, camera in enumerate(rig.cameras):
        kept = np.arange(len(points)) if order is None else order
        if visible is not None:
            kept = kept[visible[number][kept]]
        own = np.ones((len(kept), 3)) if colours is None else colours[kept]
        found.append(Blobs(camera.project(points[kept]), np.full(len(kept), 12), own))
    return found


def labeller(count: int, rig: Rig = RIG) -> Labeller:
    return Labeller(rig, Wearer.unknown(count))


def test_labels_are_those_of_the_expected_body_whatever_the_order_of_blobs():
    points = np.array([[-0.2, 1.0, 0.0], [0.2, 1.0, 0.0], [0.0, 1.5, 0.0]])
    seen = blobs_of(RIG, points, order=np.array([1, 0, 2]))
    sighting, _ = labeller(3).step(seen, points + 0.02, FRAME)
    assert np.allclose(sighting.points, points, atol=1e-3)


def test_what_is_too_far_from_every_track_stays_without_a_label():
    points = np.array([[-0.2, 1.0, 0.0], [0.9, 1.7, 0.4]])
    expected = np.array([[-0.2, 1.0, 0.0], [0.3, 0.5, 0.0]])
    sighting, _ = labeller(2).step(blobs_of(RIG, points), expected, FRAME)
    assert list(sighting.is_placed) == [True, False]
    assert list(sighting.is_seen) == [True, False]


def test_markers_that_cross_keep_their_labels_by_their_velocity():
    labels, points = labeller(2), np.array([[-0.3, 1.2, 0.1], [0.3, 1.2, 0.0]])
    way = FRAME * np.array([[3.0, 0.0, 0.0], [-3.0, 0.0, 0.0]])
    for _ in range(13):
        sighting, _ = labels.step(blobs_of(RIG, points + way), points, FRAME)  # a body that is a frame late
        points = points + way
    assert np.allclose(sighting.points, points, atol=1e-3)
    assert points[0, 0] > points[1, 0]


def test_a_ghost_on_the_same_epipolar_line_is_not_believed():
    """Two markers at one height: with one hidden from the second camera, the lines alone allow a third place."""
    points = np.array([[-0.15, 1.5, 0.0], [0.1, 1.5, 0.0]])
    labels = labeller(2)
    labels.step(blobs_of(RIG, points), points, FRAME)
    visible = np.array([[True, True], [True, False]])
    sighting, _ = labels.step(blobs_of(RIG, points, visible), points, FRAME)
    assert list(sighting.is_placed) == [True, False]
    assert np.allclose(sighting.points[0], points[0], atol=1e-3)
    assert np.allclose(sighting.pixels[0, 1], RIG.cameras[0].project(points[1]), atol=1e-6)


@pytest.mark.parametrize("coloured", [False, True])
def test_colours_tell_markers_apart_that_were_hidden_together(coloured):
    """A red and a green hand behind the back, which come out on each other's side: only the colour can tell."""
    colours = np.array([[1.0, 0.2, 0.2], [0.2, 1.0, 0.2]]) if coloured else np.ones((2, 3))
    labels, points = labeller(2), np.array([[-0.1, 1.0, 0.0], [0.1, 1.0, 0.0]])
    for _ in range(4):
        labels.step(blobs_of(RIG, points, colours=colours), points, FRAME)
    hidden = np.zeros((2, 2), dtype=np.bool_)
    for _ in range(12):
        labels.step(blobs_of(RIG, points, hidden, colours=colours), points, FRAME)
    crossed = points[::-1].copy()
    sighting, _ = labels.step(blobs_of(RIG, crossed, colours=colours), points, FRAME)
    assert np.allclose(sighting.points, crossed if coloured else points, atol=1e-3)


def test_a_hidden_marker_is_where_the_body_has_it_and_a_seen_one_where_it_goes():
    start = np.array([[0.0, 1.0, 0.0], [0.5, 1.0, 0.0]])
    tracks = Tracks(start, liveliness=np.ones(2))
    matrices = np.stack([camera.pinhole.matrix for camera in RIG.cameras])
    for frame in range(1, 30):
        moving = start[0] + np.array([1.0, 0.0, 0.0]) * FRAME * frame
        body = np.stack([start[0], start[1] + np.array([0.0, 0.01, 0.0]) * frame])
        tracks.carry_on(FRAME, body)
        straight = np.stack([camera.pinhole.project(np.stack([moving, start[1]])) for camera in RIG.cameras])
        straight[:, 1] = np.nan
        tracks.correct(matrices, straight, bursts=np.zeros(2, dtype=np.bool_))
    assert np.allclose(tracks.places[0], moving, atol=0.01)
    assert np.allclose(tracks.places[1], body[1], atol=0.1)


def test_covariances_of_tracks_stay_covariances():
    """Rounding once drove them apart within a second: symmetric and positive after many, hidden or not."""
    rng, places = np.random.default_rng(2), np.array([[0.1, 1.0, 0.0], [0.4, 1.4, 0.2]])
    tracks = Tracks(places, liveliness=np.array([1.5, 0.2]))
    matrices = np.stack([camera.pinhole.matrix for camera in RIG.cameras])
    for _ in range(1200):
        tracks.carry_on(FRAME, places)
        straight = np.stack([camera.pinhole.project(places) for camera in RIG.cameras])
        straight += 0.3 * rng.standard_normal(straight.shape)
        straight[rng.random((2, 2)) < 0.3] = np.nan
        tracks.correct(matrices, straight, bursts=np.zeros(2, dtype=np.bool_))
    assert np.array_equal(tracks.covariances, tracks.covariances.swapaxes(1, 2))
    assert np.all(np.linalg.eigvalsh(tracks.covariances) > 0)
    assert np.allclose(tracks.places, places, atol=0.03)


CENTRES = np.stack([camera.pinhole.centre for camera in RIG.cameras])


def still(places: np.ndarray) -> Tracks:
    """Tracks of markers that two cameras see."""
    tracks = Tracks(places, liveliness=np.ones(len(places)))
    tracks.covariances[:] = 1e-4 * np.eye(6)
    return tracks


@pytest.fixture(scope="module")
def shapes() -> np.ndarray:
    """Bodies with one hand up, the other down, and a torso."""
    body = np.array(
        [
            [0.0, 1.6, 0.0],
            [0.2, 1.4, 0.0],
            [-0.2, 1.4, 0.0],
            [0.0, 1.0, 0.1],
            [0.3, 1.5, 0.3],
            [-0.3, 0.8, 0.2],
        ]
    )
    return body + 0.03 * np.random.default_rng(0).standard_normal((50, *body.shape))


@pytest.mark.parametrize("swapped", [False, True])
def test_a_swap_is_proved_by_the_library_and_undone_once(shapes, swapped):
    swaps, order = LabelSwaps(shapes), [0, 1, 2, 3, 5, 4] if swapped else list(range(6))
    points, whole = shapes[7][order], np.tile(np.eye(3), (6, 1, 1))
    together = points.copy()
    together[4] = together[5] + 0.02
    swaps.note(still(together), CENTRES)
    found = [swaps.judged(points, whole, FRAME) for _ in range(60)]
    assert [pair for pairs in found for pair in pairs] == ([(4, 5)] if swapped else [])


def test_markers_that_never_met_are_not_exchanged(shapes):
    """Somebody who boxes the other way round than the whole library keeps their hands."""
    swaps, mirrored = LabelSwaps(shapes), shapes[7][[0, 1, 2, 3, 5, 4]]
    swaps.note(still(mirrored), CENTRES)
    assert not any(swaps.judged(mirrored, np.tile(np.eye(3), (6, 1, 1)), FRAME) for _ in range(60))


class _Blobs(MarkerFinder):
    """Looks at no pictures: what cameras see comes as blobs."""

    def blobs(self, pictures):
        return tuple(pictures), (None,) * len(pictures)


def wrong_labels(take: Motion, train: list[Motion], cameras: int) -> list[int]:
    """How many labels are wrong in each frame of a performance before cameras."""
    sim = simulator_of(take, front_rig(count=cameras, size=(320, 240)), markers=NINE)
    performance = Performance(
        LocalPrior.learn(train), sim.layout, skeleton=take.skeleton, fps=take.fps, noise=NOISE
    )
    rooms = [Background.of_frames(sim.empty_room(camera, 2)) for camera in range(cameras)]
    watching = CameraPerformance(_Blobs(sim.rig, rooms, NINE, fps=take.fps), performance)
    wrong = []
    for frame, truth in enumerate(sim.truth.points):
        seen = watching.step(blobs_of(sim.rig, truth, sim.visible(frame)), frame / take.fps).moment.sighting
        off = np.linalg.norm(seen.points - truth, axis=1) > 0.1
        lone = np.stack([camera.project(truth) for camera in sim.rig.cameras]) - seen.pixels
        wrong.append(int(np.sum(off | (np.linalg.norm(lone, axis=-1) > 6).any(axis=0))))
    return wrong


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize(("cameras", "longest"), [pytest.param(2, 30, marks=pytest.mark.slow), (3, 3)])
def test_a_boxer_s_labels_hold_or_recover(cameras, longest):
    """Hands before the shoulders, now and then behind each other: no label is wrong for long."""
    take = before_cameras(performer.act("box", fps=60, seed=12), seconds=2.0)[40:]
    wrong = wrong_labels(take, [performer.act("box", fps=60, seed=seed) for seed in (0, 1)], cameras)
    lengths = [len(part) for part in "".join("x" if count else " " for count in wrong).split()]
    assert max(lengths, default=0) <= longest
    assert sum(wrong[-3:]) == 0


def test_the_best_way_to_see_a_marker_outlives_all_others():
    """Nine blobs near a track that is not sure are far more ways in three cameras than are kept at once."""
    rig, rng = front_rig(count=3), np.random.default_rng(0)
    points = np.array([0.1, 1.3, 0.1]) + rng.uniform(-0.12, 0.12, (9, 3))
    sighting, _ = labeller(9, rig).step(blobs_of(rig, points), points, FRAME)
    assert np.allclose(sighting.points, points, atol=1e-3)
    assert np.all(np.isfinite(sighting.pixels))


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_shapes")
def test_a_recorded_boxer_s_labels_hold_before_three_cameras():
    """In this second a hand passes the shoulder; it once took its label, and both hands were swapped from there on."""
    clips = [read(recording("cmu", f"14_0{number}.bvh")) for number in (3, 2)]
    assert all(isinstance(clip, Motion) for clip in clips)
    take = before_cameras(clips[0], seconds=3.0)[75:135]
    assert sum(wrong_labels(take, [clips[1]], 3)) == 0
