"""Splits keep training and test apart, and files given by hand are checked before any work."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from poise import performer
from poise.errors import InvalidValueError, PoiseError, SkeletonError, UnknownNameError
from poise.evaluation import splits
from poise.evaluation.report import Request
from poise.evaluation.splits import SPLITS, load_split, split_of_files
from poise.formats import write
from poise.motion import Motion
from poise.performer import PERFORMERS
from poise.performer.bodies import Body
from poise.priors.universal.recordings import PoseTable
from real_data import recordings


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("clips")
    paths = [folder / f"{name}.bvh" for name in PERFORMERS]
    for path in paths:
        write(performer.act("walk", performer=path.stem, seconds=0.5, fps=30), path)
    return paths


def test_the_performer_needs_no_recordings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("POISE_MOCAP", str(tmp_path))
    (fold,) = load_split("performer")
    assert fold.train
    assert fold.test
    with pytest.raises(PoiseError, match="use the split performer") as told:
        load_split("walk")
    assert told.value.settings == ("split",)


def test_strangers_are_tested_against_the_clips_that_the_weights_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = (
        "01_01",
        "26_01",
        "26_02",
        "02_01",
    )  # 26 is among those that settings are chosen on, 02 a stranger
    offsets = np.broadcast_to(Body().skeleton.offsets, (len(names), len(Body().skeleton), 3))
    table = PoseTable(
        joints=Body().skeleton.names,
        parents=Body().skeleton.parents,
        clips=names,
        clip_of=np.repeat(np.arange(len(names)), 2),
        rotations=np.zeros((2 * len(names), *offsets.shape[1:])),
        roots=np.zeros((2 * len(names), 3)),
        offsets=offsets,
    )
    monkeypatch.setattr(splits, "_archive", lambda: table)
    for learned in (["01_01"], ["01_01", "26_02"]):
        weights = replace(splits.shipped(), header={"learned_from": learned})
        monkeypatch.setattr(splits, "shipped", lambda weights=weights: weights)
        first = load_split("strangers")[0]
        assert [clip.name for clip in first.train] == learned
        assert [clip.name for clip in first.test] == ["02_01"]


def test_bodies_of_one_topology_go_together(clips: list[Path]) -> None:
    (fold,) = split_of_files(clips[:1], clips[1:2])
    assert fold.train[0].skeleton.same_topology(fold.test[0].skeleton)


def test_another_topology_is_named(clips: list[Path], tmp_path: Path) -> None:
    text = clips[0].read_text(encoding="utf-8").replace("LeftForeArm", "LeftElbow")
    other = tmp_path / "other.bvh"
    other.write_text(text, encoding="utf-8")
    with pytest.raises(SkeletonError, match=rf"other\.bvh has another skeleton than {clips[0].name}"):
        split_of_files(clips[:1], [other])


def test_a_clip_is_not_on_both_sides(clips: list[Path]) -> None:
    with pytest.raises(InvalidValueError, match=f"{clips[0].name} is in both"):
        split_of_files(clips[:2], clips[:1])
    with pytest.raises(InvalidValueError, match="give both clips") as told:
        split_of_files(clips[:1], [])
    assert told.value.settings == ("train", "test")


@pytest.mark.parametrize(
    ("request_of", "message"),
    [
        ({"protocol": "handels"}, "handles"),
        ({"protocol": "handles", "split": "walk", "train": [Path("a.bvh")]}, "not both"),
        ({"protocol": "speed", "split": "walk"}, "one problem"),
    ],
)
def test_requests_that_make_no_sense_are_refused(request_of: dict[str, object], message: str) -> None:
    with pytest.raises(PoiseError, match=message):
        Request(**request_of)  # type: ignore[arg-type]


def test_unknown_splits_are_named() -> None:
    with pytest.raises(UnknownNameError, match="walk"):
        load_split("wlak")


@pytest.mark.parametrize("name", ["walk", "boxing", "pitch", "sport", "late-gaits"])
def test_recorded_splits_never_test_what_they_learned(name: str) -> None:
    recordings("cmu")
    for fold in SPLITS[name]():
        learned = {_key(clip) for clip in fold.train}
        assert fold.test
        assert not learned & {_key(clip) for clip in fold.test}


def _key(clip: Motion) -> bytes:
    return clip.rotations.tobytes()
