"""People in real pictures: found, told apart, followed; and what is refused."""

import numpy as np
import pytest

from poise.errors import InvalidValueError, PoiseError
from poise.vision.people import models
from poise.vision.people.detector import PersonFinder, _merged
from poise.vision.people.person import INDEX, TORSO, overlap, shared
from poise.vision.people.watched import meeting_places
from poise.vision.people.watching import PeopleFollower, chosen, is_cut, people_of, watch_people
from poise.vision.rig import load_rig
from poise.vision.sources import InStep, Step, VideoSource
from pose2sim import BOTH, SINGLE, recordings

pytest.importorskip("cv2")
needs_networks = pytest.mark.skipif(
    not models.available(), reason="the networks that find people: run tools/page.py, install poise[video]"
)


def pictures(demo: str, camera: str, count: int) -> list[np.ndarray]:
    source = VideoSource(recordings() / demo / "videos" / f"{camera}.mp4")
    found = [source.read()[1] for _ in range(count)]
    source.close()
    return found


@pytest.mark.slow
@needs_networks
def test_both_people_of_a_real_picture_are_found_with_head_above_feet():
    people = PersonFinder().find(pictures(BOTH, "cam01", 1)[0])
    assert len(people) == 2
    man, woman = sorted(people, key=lambda one: one.box[0])
    assert 250 < man.pixels[INDEX["nose"], 0] < 560
    assert 750 < woman.pixels[INDEX["nose"], 0] < 1050
    for person in people:
        assert np.median(person.visibility) > 0.8
        ankles = person.pixels[[INDEX["left_ankle"], INDEX["right_ankle"]], 1]
        assert person.pixels[INDEX["nose"], 1] + 400 < ankles.min()
        thigh = np.linalg.norm(person.shape[INDEX["left_hip"]] - person.shape[INDEX["left_knee"]])
        assert 0.3 < thigh < 0.5


@needs_networks
def test_two_people_keep_their_numbers():
    follower = PeopleFollower(PersonFinder())
    seen = [follower.step(picture) for picture in pictures(BOTH, "cam04", 12)]
    assert all(set(people) == {0, 1} for people in seen)
    for number in (0, 1):
        hips = np.stack([people[number].pixels[INDEX["left_hip"]] for people in seen])
        assert np.linalg.norm(np.diff(hips, axis=0), axis=1).max() < 40


@pytest.mark.slow
@needs_networks
def test_who_is_who_is_known_from_camera_to_camera():
    sources = [VideoSource(recordings() / BOTH / "videos" / f"{name}.mp4") for name in ("cam01", "cam04")]
    rig = load_rig(recordings() / BOTH / "calibration" / "Calib.qca.txt")
    cameras = [rig["cam01"], rig["cam04"]]
    with InStep(sources) as steps:
        views, frames = watch_people((step for step, _ in zip(steps, range(4), strict=False)), ["a", "b"])
    people = people_of(views, frames, 60.0, cameras)
    assert len(people.people) == 2
    columns = [[track[0].pixels[INDEX["left_hip"], 0] for track in person] for person in people.people]
    man, woman = sorted(columns)  # from left to right in the first camera, and by chance in the second
    assert man[0] < 500 < woman[0]
    assert man[1] < 600 < woman[1]
    with pytest.raises(InvalidValueError, match="2 people are seen: choose one"):
        chosen(people, None)
    with pytest.raises(InvalidValueError, match="no person 3"):
        chosen(people, 3)


@needs_networks
@pytest.mark.slow
def test_both_people_are_followed_by_two_cameras_while_one_passes_before_the_other():
    names = ("cam02", "cam04")
    sources = [VideoSource(recordings() / BOTH / "videos" / f"{name}.mp4") for name in names]
    rig = load_rig(recordings() / BOTH / "calibration" / "Calib.qca.txt")
    with InStep(sources) as steps:
        views, frames = watch_people((step for k, step in enumerate(steps) if k % 2 == 0), names)
    cameras = [rig[name] for name in names]
    people = people_of(views, frames, 30.0, cameras)
    assert len(people.people) == 2
    watched = [people.watched(k, cameras) for k in range(2)]
    both = [[people.people[k][1][frame].box for k in range(2)] for frame in range(frames)]
    assert max(shared(*boxes) for boxes in both) > 0.8  # one hides the other from the second camera
    paths = [np.nanmean(meeting_places(w)[:, list(TORSO)], axis=1) for w in watched]
    for path in paths:
        assert np.linalg.norm(np.diff(path, axis=0), axis=1).max() < 0.3
    assert np.linalg.norm(paths[0] - paths[1], axis=1).min() > 0.6  # farther apart than anybody goes


@pytest.mark.slow
@needs_networks
def test_nobody_and_darkness_are_refused_in_words():
    grey = np.full((240, 320, 3), 120, np.uint8)
    for picture, words in ((grey, "no person is found"), (grey // 20, "too dark")):
        steps = [Step(k / 30.0, (picture,)) for k in range(3)]
        views, frames = watch_people(steps, ["room.mp4"])
        with pytest.raises(PoiseError, match=words):
            people_of(views, frames, 30.0)


@pytest.mark.slow
@needs_networks
def test_a_cut_is_refused_with_its_time():
    first, other = pictures(SINGLE, "cam02", 1)[0], pictures(SINGLE, "cam03", 1)[0][:, :1080]
    with pytest.raises(PoiseError, match=r"take.mp4: the whole picture changes at 0\.07 s"):
        watch_people([Step(0.0, (first,)), Step(0.03, (first,)), Step(0.07, (other,))], ["take.mp4"])


def test_a_person_who_moves_is_not_a_cut():
    small = np.tile(np.linspace(0.2, 0.9, 32), (24, 1))
    moved = small.copy()
    moved[5:20, 10:16] = 0.1
    assert not is_cut(small, moved)
    assert is_cut(small, small[:, ::-1])


def test_networks_that_are_missing_are_named_with_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setattr(models, "FOLDER", tmp_path)
    assert not models.available()
    with pytest.raises(PoiseError, match=r"pose_detection\.tflite.*make page"):
        PersonFinder()


def test_detections_of_one_person_become_one():
    one = np.array([[100.0, 100.0], [50.0, 80.0], [1, 2], [3, 4], [5, 6], [7, 8]])
    near, far = one.copy(), one.copy()
    near[0] += 4.0
    far[0] += 200.0
    merged = list(_merged(np.stack([one, near, far]), np.array([0.9, 0.9, 0.6])))
    assert len(merged) == 2
    np.testing.assert_allclose(merged[0][0], [102.0, 102.0])


def test_boxes_share():
    box, inside, beside = np.array([0, 0, 4, 4.0]), np.array([1, 1, 3, 3.0]), np.array([5, 0, 6, 4.0])
    assert overlap(box, inside) == pytest.approx(0.25)
    assert shared(box, inside) == pytest.approx(1.0)
    assert overlap(box, beside) == shared(box, beside) == 0.0
