"""Background, blobs, correspondence and labels, on simulated pictures whose markers are known."""

from dataclasses import replace

import numpy as np
import pytest

from poise import performer
from poise.errors import InvalidValueError
from poise.motion.virtual_markers import optical_layout
from poise.vision.blobs import Background, Blobs, Look, find_blobs
from poise.vision.first_labels import fit_layout
from poise.vision.simulator import Conditions, Simulator, front_rig
from poise.vision.tracker import MarkerFinder
from poise.vision.triangulate import Matcher, exclusive

pytest.importorskip("cv2")
NINE = ("LFHD", "LFIN", "RFIN", "LTOE", "RTOE", "LSHO", "RSHO", "LFWT", "RFWT")
RIG = front_rig()


def simulator(conditions: Conditions | None = None, *, seconds: float = 0.7) -> Simulator:
    motion = performer.act("box", seconds=1.0, fps=60)[: round(60 * seconds)]
    centred = replace(
        motion, root_positions=motion.root_positions - motion.root_positions.mean(axis=0) * (1, 0, 1)
    )
    layout = optical_layout(motion.skeleton, samples=motion.rotations)
    return Simulator(RIG, centred, {name: layout[name] for name in NINE}, conditions=conditions)


@pytest.fixture(scope="module")
def watched():
    sim = simulator()
    backgrounds = [Background.of_frames(sim.empty_room(camera, 12)) for camera in range(2)]
    return sim, MarkerFinder(RIG, backgrounds, NINE, fps=60)


def test_visible_markers_are_found_and_little_else(watched):
    sim, tracker = watched
    seen = found = false = 0
    for frame in range(0, len(sim.motion), 6):
        visible = sim.visible(frame)
        blobs, _ = tracker.blobs([sim.picture(frame, camera) for camera in range(2)])
        for number, camera in enumerate(RIG.cameras):
            expected = camera.project(sim.places(frame, number))
            gaps = np.linalg.norm(blobs[number].centres[:, None] - expected[None], axis=-1)
            seen += int(visible[number].sum())
            found += int((gaps.min(axis=0) < 3.0)[visible[number]].sum())
            false += int((gaps.min(axis=1) > 6.0).sum())
    assert found >= 0.98 * seen
    assert false <= 0.005 * seen


def test_markers_are_placed_within_millimetres_and_keep_their_labels(watched):
    sim, tracker = watched
    predicted, errors = sim.truth.points[0], []
    for frame in range(0, len(sim.motion), 2):
        pictures = [sim.picture(frame, camera) for camera in range(2)]
        moment = tracker.step(pictures, predicted, seconds=2 / 60)
        errors.append(np.linalg.norm(moment.sighting.points - sim.truth.points[frame], axis=1))
        predicted = sim.truth.points[min(frame + 2, len(sim.motion) - 1)]
    assert np.nanmedian(errors) < 0.008
    assert np.nanmax(errors) < 0.06


def test_a_first_frame_is_labelled_by_the_layout_wherever_the_performer_faces(watched):
    sim, tracker = watched
    turn = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    layout = sim.truth.points[0] @ turn.T + np.array([0.5, 0.0, -0.3])
    moment = tracker.begin([sim.picture(0, camera) for camera in range(2)], layout[None])
    errors = np.linalg.norm(moment.sighting.points - sim.truth.points[0], axis=1)
    assert np.sum(np.isfinite(errors)) >= 7
    assert np.nanmax(errors) < 0.03


def test_a_lost_camera_leaves_pixels_of_the_other(watched):
    sim, tracker = watched
    tracker.begin([sim.picture(3, camera) for camera in range(2)], sim.truth.points[3][None])
    moment = tracker.step([sim.picture(4, 0), None], sim.truth.points[4])
    assert not np.any(moment.sighting.is_placed)
    assert np.sum(moment.sighting.is_seen) >= 7
    found = moment.sighting.pixels[0]
    gaps = np.linalg.norm(found - RIG.cameras[0].project(sim.places(4, 0)), axis=1)
    assert np.nanmax(gaps) < 3.0


def test_a_lamp_is_background():
    sim = simulator(Conditions(lamp=True), seconds=0.2)
    background = Background.of_frames(sim.empty_room(0, 12))
    picture = sim.picture(3, 0)
    blobs = find_blobs(picture, background.foreground(picture), [Look()])
    lamp = np.array([0.85 * 640, 0.15 * 480])
    assert len(blobs) > 0
    assert np.linalg.norm(blobs.centres - lamp, axis=1).min() > 30


def test_the_background_follows_the_light_but_not_the_performer():
    rng = np.random.default_rng(0)
    empty = [np.clip(100 + rng.normal(0, 2, (60, 80, 3)), 0, 255).astype(np.uint8) for _ in range(20)]
    background = Background.of_frames(empty, fps=30)
    brighter = np.full((60, 80, 3), 112, dtype=np.uint8)
    brighter[20:40, 30:50] = 240
    for _ in range(240):
        mask = background.foreground(brighter)
    assert abs(int(background.mean[5, 5, 0]) - 112) <= 2
    assert mask[30, 40] == 255
    assert mask[5, 5] == 0
    with pytest.raises(InvalidValueError, match="the background is 80x60"):
        background.foreground(np.zeros((10, 10, 3), dtype=np.uint8))
    with pytest.raises(InvalidValueError, match="at least one frame"):
        Background.of_frames([])


@pytest.mark.parametrize("hue", [0.0, 0.33, 0.98])
def test_coloured_markers_are_found_by_their_hue(hue):
    import colorsys

    import cv2

    picture = np.full((120, 160, 3), 90, dtype=np.uint8)
    red, green, blue = (round(255 * part) for part in colorsys.hsv_to_rgb(hue, 0.9, 0.95))
    cv2.circle(picture, (50, 60), 5, (blue, green, red), -1)
    cv2.circle(picture, (110, 60), 5, (255, 255, 255), -1)
    blobs = find_blobs(picture, np.full((120, 160), 255, dtype=np.uint8), [Look(hue=hue)])
    assert len(blobs) == 1
    assert np.allclose(blobs.centres[0], (50, 60), atol=0.2)
    assert np.allclose(blobs.colours[0], colorsys.hsv_to_rgb(hue, 0.9, 0.95), atol=0.02)


def blobs_at(points: np.ndarray, camera: int) -> Blobs:
    centres = RIG.cameras[camera].project(points)
    return Blobs(centres, np.full(len(points), 12), np.ones((len(points), 3)))


def test_colours_tell_apart_what_epipolar_lines_cannot():
    points = np.array([[0.0, 1.0, 0.0], [0.1, 1.0, 0.0]])
    first, second = blobs_at(points, 0), blobs_at(points, 1)
    colours = np.array([[1.0, 0.1, 0.1], [0.1, 1.0, 0.1]])
    coloured = [Blobs(part.centres, part.sizes, colours) for part in (first, second)]
    found = exclusive(Matcher(RIG).candidates(coloured))
    assert sorted(candidate.blobs for candidate in found) == [((0, 0), (1, 0)), ((0, 1), (1, 1))]


def test_a_layout_is_found_among_more_points_than_it_has():
    rng = np.random.default_rng(3)
    layout = rng.uniform((-0.5, 0.1, -0.2), (0.5, 1.7, 0.2), (8, 3))
    angle = 2.0
    turn = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    points = np.concatenate([layout @ turn.T + (1.0, 0.0, -0.5), [[1.5, 1.0, 1.0]]])
    fit = fit_layout(points, layout[None])
    assert dict(zip(fit.markers, fit.numbers, strict=True)) == {marker: marker for marker in range(8)}
    assert fit.cost < 1e-3
