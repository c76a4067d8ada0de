"""A body posed from points in a photo; a take of markers with gaps, hidden by hand and filled."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from poise.errors import PoiseError
from poise.formats import write
from poise.motion.virtual_markers import virtual_markers
from poise.performer import act
from poise.priors.abilities import standing_pose
from poise.skeleton.kinematics import world_transforms
from poise.solvers.bearing import below
from poise.studio import messages as said
from poise.studio.session import Session
from poise.vision.people import models
from poise.vision.people.unknown_camera import level_camera
from poise.vision.sources import VideoSource, write_video
from pose2sim import SINGLE, recordings
from running_studio import Heard, kept

SIZE = (640, 480)
MARKED = ("head", "left_hand", "right_hand", "left_foot", "right_foot")


@pytest.fixture
def photo(session: Session, tmp_path: Path, unchecked_shapes: None) -> Session:
    del unchecked_shapes
    Image.new("RGB", SIZE).save(tmp_path / "someone.png")
    session.answer(said.OpenPhoto(upload=kept(session, tmp_path / "someone.png"), width=1, height=1))
    return session


def pixels_of_someone() -> dict[str, tuple[float, float]]:
    pose = act("reach", seconds=3.0, fps=10)[15]
    positions, _ = world_transforms(pose.skeleton, pose.root_position, pose.rotations)
    seen = level_camera(SIZE, 500.0, 10.0).project(positions + np.array([0.0, 0.0, -4.0]))
    return {role: tuple(seen[pose.skeleton.index(role)].tolist()) for role in MARKED}


def test_the_body_follows_the_points_of_a_photo(photo: Session) -> None:
    heard, numbers = Heard(photo), iter(range(1, 100))
    for joint, pixel in pixels_of_someone().items():
        point = said.PhotoPoint(joint=joint, pixel=pixel)
        photo.answer(said.MovePoint(seq=next(numbers), point=point, last=True))
    solved = heard.wait_for(
        said.PhotoSolved, lambda message: photo.jobs.idle and len(message.alternatives) > 0
    )
    seen = np.frombuffer(solved.pixels, "<f4").reshape(-1, 2)
    skeleton = photo.state.pose.skeleton
    wanted = {skeleton.index(joint): pixel for joint, pixel in pixels_of_someone().items()}
    for joint in (skeleton.index("left_hand"), skeleton.index("right_foot")):
        np.testing.assert_allclose(seen[joint], wanted[joint], atol=10.0)
    x, y = pixels_of_someone()["left_hand"]
    moved = said.PhotoPoint(joint="left_hand", pixel=(x + 5.0, y - 5.0))
    followed = photo.answer(said.MovePoint(seq=next(numbers), point=moved))
    assert [type(message) for message in followed] == [said.SolvedPose, said.PhotoSolved]
    chosen = photo.answer(said.ChooseAlternative(number=len(solved.alternatives) - 1))
    assert isinstance(chosen[0], said.SolvedPose)


def test_legs_that_a_photo_does_not_show_stand_at_rest(photo: Session) -> None:
    heard, numbers, seen = Heard(photo), iter(range(1, 100)), pixels_of_someone()
    standing = standing_pose(photo.poser.prior_of(photo.state))
    for joint in ("head", "left_hand", "right_hand"):
        point = said.PhotoPoint(joint=joint, pixel=seen[joint])
        photo.answer(said.MovePoint(seq=next(numbers), point=point, last=True))
    solved = heard.wait_for(
        said.PhotoSolved, lambda message: photo.jobs.idle and len(message.alternatives) > 0
    )
    pose = photo.state.pose
    legs = [*below(pose.skeleton, "left_thigh"), *below(pose.skeleton, "right_thigh")]
    np.testing.assert_allclose(pose.rotations[legs], standing.rotations[legs], atol=1e-9)
    lowest = [one.world[0][:, 1].min() for one in (pose, standing)]
    assert lowest[0] == pytest.approx(lowest[1], abs=1e-6)
    pixels = np.frombuffer(solved.pixels, "<f4").reshape(-1, 2)
    hand = pixels[pose.skeleton.index("left_hand")]
    np.testing.assert_allclose(hand, seen["left_hand"], atol=10.0)


@pytest.mark.skipif(not models.available(), reason="the networks that find people: run tools/page.py")
def test_the_person_in_a_real_photo_is_found_and_points_can_be_moved(
    session: Session, tmp_path: Path, unchecked_shapes: None
) -> None:
    del unchecked_shapes
    source = VideoSource(recordings() / SINGLE / "videos" / "cam02.mp4")
    Image.fromarray(source.read()[1][::2, ::2, ::-1]).save(tmp_path / "man.png")
    heard = Heard(session)
    session.answer(said.OpenPhoto(upload=kept(session, tmp_path / "man.png"), width=1, height=1))
    solved = heard.wait_for(
        said.PhotoSolved, lambda message: session.jobs.idle and len(message.alternatives) > 0
    )
    skeleton, points = session.state.pose.skeleton, session.state.photo.points
    assert len(points) >= 10
    seen = np.frombuffer(solved.pixels, "<f4").reshape(-1, 2)
    off = [np.hypot(*(seen[skeleton.index(point.joint)] - point.pixel)) for point in points]
    assert np.median(off) < 15.0
    places, _ = world_transforms(skeleton, session.state.pose.root_position, session.state.pose.rotations)
    lean = places[skeleton.index("head")] - places[skeleton.index("pelvis")]
    assert np.degrees(np.arccos(lean[1] / np.linalg.norm(lean))) < 25.0  # he stands
    x, y = points[0].pixel
    moved = said.PhotoPoint(joint=points[0].joint, pixel=(x + 5.0, y - 5.0))
    followed = session.answer(said.MovePoint(seq=1, point=moved))
    assert [type(message) for message in followed] == [said.SolvedPose, said.PhotoSolved]


@pytest.mark.slow
@pytest.mark.skipif(not models.available(), reason="the networks that find people: run tools/page.py")
def test_the_person_in_a_real_video_comes_to_the_timeline(
    session: Session, tmp_path: Path, unchecked_shapes: None
) -> None:
    del unchecked_shapes
    source = VideoSource(recordings() / SINGLE / "videos" / "cam01.mp4")
    pictures = [source.read()[1][::2, ::2].copy() for _ in range(8)]
    write_video(tmp_path / "walk.avi", pictures, fps=30.0, size=(540, 960))
    heard = Heard(session)
    session.answer(said.OpenVideo(upload=kept(session, tmp_path / "walk.avi")))
    heard.wait_for(said.MotionRange, lambda _: session.jobs.idle)
    timeline = session.state.timeline
    assert (timeline.frames, timeline.clip) == (8, "walk")
    positions, _ = world_transforms(
        session.state.pose.skeleton, session.state.pose.root_position, session.state.pose.rotations
    )
    head, foot = (positions[session.state.pose.skeleton.index(role), 1] for role in ("head", "left_foot"))
    assert head - foot > 1.0


def test_photos_are_explained_when_they_cannot_be_used(
    session: Session, photo: Session, tmp_path: Path
) -> None:
    assert photo.state.photo is not None
    assert (
        photo.state.photo.width,
        photo.state.photo.height,
    ) == SIZE  # what the file says, not what the page said
    outside = said.PhotoPoint(joint="head", pixel=(9999.0, 10.0))
    with pytest.raises(PoiseError, match="outside the photo"):
        photo.answer(said.MovePoint(seq=1, point=outside))
    with pytest.raises(PoiseError, match="has no point"):
        photo.answer(said.RemovePoint(joint="Head"))
    with pytest.raises(PoiseError, match="0 poses to choose from"):
        photo.answer(said.ChooseAlternative(number=0))
    photo.answer(said.ClosePhoto())
    with pytest.raises(PoiseError, match="open a photo first"):
        photo.answer(said.MovePoint(seq=2, point=said.PhotoPoint(joint="head", pixel=(1.0, 1.0))))
    (tmp_path / "broken.png").write_bytes(b"\x89PNG nothing")
    with pytest.raises(PoiseError, match=r"broken\.png"):
        session.answer(said.OpenPhoto(upload=kept(session, tmp_path / "broken.png"), width=1, height=1))


@pytest.fixture
def take(session: Session, tmp_path: Path, unchecked_shapes: None) -> Session:
    del unchecked_shapes
    clip = act("walk", seconds=1.5, fps=30)
    path = write(virtual_markers(clip), tmp_path / "walk.trc")
    heard = Heard(session)
    session.answer(said.OpenTake(upload=kept(session, path)))
    heard.wait_for(said.Take)
    return session


def points(message: said.Take) -> np.ndarray:
    return np.frombuffer(message.positions, "<f4").reshape(message.frames, len(message.markers), 3)


@pytest.mark.slow
def test_hidden_markers_are_filled_with_what_they_were(take: Session) -> None:
    heard = Heard(take)
    told = take.answer(said.HideMarker(marker="LFHD", first=10, last=20))[0]
    assert isinstance(told, said.Take)
    number = told.markers.index("LFHD")
    assert np.isnan(points(told)[10:21, number]).all()
    shown = take.answer(said.HideMarker(marker="LFHD", first=15, last=15, hidden=False))[0]
    assert isinstance(shown, said.Take)
    truth = points(shown)[15, number]
    assert np.isfinite(truth).all()
    take.answer(said.HideMarker(marker="LFHD", first=10, last=20))
    take.answer(said.FillTake())
    filled = heard.wait_for(said.Take)
    found = np.frombuffer(filled.filled, "<f4").reshape(filled.frames, -1, 3)[15, number]
    deviations = np.frombuffer(filled.deviations, "<f4").reshape(filled.frames, -1)
    assert np.linalg.norm(found - truth) < 0.02
    assert deviations[15, number] > 0
    assert deviations[0, number] == 0
    moved = heard.wait_for(said.MotionRange)
    assert moved.frames == filled.frames


def test_takes_are_explained_when_they_cannot_be_used(
    session: Session, take: Session, tmp_path: Path
) -> None:
    with pytest.raises(PoiseError, match="marker"):
        take.answer(said.HideMarker(marker="NOSE", first=0, last=1))
    with pytest.raises(PoiseError, match="frames 0 to"):
        take.answer(said.HideMarker(marker="LFHD", first=0, last=9999))
    clip = write(act("walk", seconds=0.5, fps=20), tmp_path / "walk.bvh")
    heard = Heard(session)
    session.answer(said.OpenTake(upload=kept(session, clip)))
    assert "needs markers" in heard.refusal().words


def test_nothing_is_filled_before_it_is_opened(session: Session) -> None:
    with pytest.raises(PoiseError, match="open a take first"):
        session.answer(said.FillTake())


@pytest.mark.slow
def test_a_style_is_learned_from_markers(take: Session, tmp_path: Path) -> None:
    heard = Heard(take)
    dropped = kept(take, tmp_path / "walk.trc")
    take.answer(said.Learn(name="from markers", kind="gaussian", uploads=[dropped]))
    models = heard.wait_for(said.Models).models
    assert "from-markers" in [model.id for model in models]
    assert take.state.model == "from-markers"
