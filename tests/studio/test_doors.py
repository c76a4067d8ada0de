"""A character, a clip, a video and a photo, opened in any order: the character stays, and motion lands on it."""

from itertools import permutations
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest

from poise.formats import write
from poise.geometry.cameras import Camera
from poise.performer import act
from poise.studio import messages as said
from poise.studio.panels import clips
from poise.studio.session import Session
from running_studio import Heard, foreign, kept, wait_until

ORDERS = list(permutations(("character", "clip", "video", "photo")))[::2][:10]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The four files. What networks see in the video is a walk that is made here."""
    clip = write(act("walk", seconds=0.5, fps=10.0), tmp_path / "walk.bvh")
    clip.write_text(clip.read_text().replace("ROOT Hips", "ROOT Middle"))
    cv2.imwrite(str(tmp_path / "photo.png"), np.full((60, 80, 3), 200, dtype=np.uint8))
    (tmp_path / "video.mp4").write_bytes(b"what the detector is given")
    camera = Camera.looking_at((0.0, 1.0, 0.0), eye=(0.0, 1.2, 4.0))
    people = SimpleNamespace(people=SimpleNamespace(frames=6), cameras=[SimpleNamespace(size=(640, 480))])
    seen = SimpleNamespace(motion=act("reach", seconds=0.6, fps=10.0), cameras=[camera])
    monkeypatch.setattr(clips, "watch_videos", lambda *_args, **_named: people)
    monkeypatch.setattr(clips, "solve_video", lambda *_args, **_named: seen)
    return {
        "character": foreign(tmp_path / "hero.glb"), "clip": clip, "video": tmp_path / "video.mp4",
        "photo": tmp_path / "photo.png",
    }  # fmt: skip


def opened(session: Session, what: str, path: Path) -> None:
    upload = kept(session, path)
    session.answer({
        "character": said.OpenClip(upload=upload), "clip": said.OpenClip(upload=upload),
        "video": said.OpenVideo(upload=upload), "photo": said.OpenPhoto(upload=upload, width=80, height=60),
    }[what])  # fmt: skip
    wait_until(lambda: session.jobs.idle)


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: "-".join(order))
def test_the_character_stays_and_motion_lands_on_it(
    session: Session, files: dict[str, Path], order: tuple[str, ...]
) -> None:
    heard, hero = Heard(session), None
    for what in order:
        opened(session, what, files[what])
        if what == "character":
            hero = session.state.pose.skeleton
        if hero is not None:
            assert session.state.pose.skeleton is hero
            assert session.shows_character
            assert session.motion is None or session.motion.skeleton.same_topology(hero)
    assert [said for said in heard.messages if type(said).__name__ == "Refusal"] == []
    last = [what for what in order if what in ("clip", "video")][-1]
    assert session.state.timeline.clip == {"clip": "walk.bvh", "video": "video"}[last]
    assert session.motion is not None
    walked = session.motion.root_positions
    assert len(walked) == {"clip": 5, "video": 6}[last]
    assert (session.state.video is not None) == (last == "video")
    assert (session.state.photo is not None) == (order.index("photo") > order.index("character"))


def test_a_motion_that_a_character_cannot_take_is_left_with_a_sentence(
    session: Session, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    opened(session, "clip", files["clip"])

    def refuse(*_args: object, **_named: object) -> None:
        raise clips.InvalidValueError("the character has no legs")

    monkeypatch.setattr(clips, "onto", refuse)
    heard = Heard(session)
    session.answer(said.OpenClip(upload=kept(session, files["character"])))
    remark = heard.wait_for(said.Remark)
    assert remark.words == "The motion was not carried over to the character: the character has no legs"
    wait_until(lambda: session.jobs.idle)
    assert session.shows_character
    assert session.motion is None
