"""Performances from the command line, over pipes and UDP, and calibration."""

import json
import socket
import threading
from pathlib import Path

import numpy as np
import pytest

from poise import performer
from poise.capture import setup
from poise.capture.calibration import (
    markers_from_t_pose,
    skeleton_from_motion,
    skeleton_from_t_pose,
    skeleton_of_sides,
    t_pose_markers,
)
from poise.capture.matching import LOCOMOTION, WITH_HEAD, marker_layout
from poise.capture.performance import Performance
from poise.capture.placement import best_placement
from poise.capture.sources import read_markers, udp_address
from poise.capture.streams import Stream, serve_udp
from poise.cli.main import main
from poise.errors import InvalidValueError, ParseError
from poise.formats import read, write
from poise.library import build
from poise.motion import Markers, Motion
from poise.motion.virtual_markers import virtual_markers
from poise.priors.gaussian import GaussianPrior
from poise.priors.local.prior import LocalPrior
from poise.priors.model_file import save
from poise.skeleton.measure import leg_length
from poise.skeleton.skeleton import Skeleton


@pytest.fixture(scope="module")
def walk() -> Motion:
    return performer.act("walk", seconds=3.0, fps=30, seed=1)


@pytest.fixture(scope="module")
def prior(walk: Motion) -> LocalPrior:
    return LocalPrior.learn([walk])


@pytest.fixture(scope="module")
def performance(prior: LocalPrior) -> Performance:
    return Performance(prior, marker_layout(prior.space.skeleton, LOCOMOTION), fps=30)


@pytest.fixture(scope="module")
def take(walk: Motion) -> Markers:
    return virtual_markers(walk, marker_layout(walk.skeleton, LOCOMOTION))


def _line(take: Markers, frame: int) -> str:
    return json.dumps(dict(zip(take.labels, take.points[frame].tolist(), strict=True)))


def test_json_lines_are_answered_and_bad_ones_do_not_stop_it(performance: Performance, take: Markers) -> None:
    performance.reset()
    stream = Stream(performance)
    lines = [_line(take, 0), "{nonsense", '{"left_hand": [1, 2]}', _line(take, 1), '{"left_hand": null}']
    answers = [json.loads(line) for line in stream.answers(lines)]
    assert ["error" in answer for answer in answers] == [False, True, True, False, False]
    assert len(answers[0]["root"]) == 7
    assert stream.skipped == 2
    assert len(stream.milliseconds) == 3


HOSTILE = [
    '{"left_hand": ' + "[" * 30_000,
    '{"left_hand": [1' + "0" * 400 + ", 1, 1]}",
    '{"left_hand": [1e999, 1, 1]}',
    '{"left_hand": "here"}',
    '{"left_hand": [true, 1, 1]}',
    '{"left_hand": 3.0}',
    '{"time": [1, 2]}',
    '["left_hand"]',
    "{" * 60_000,
]
NOT_SEEN = ["1e30", "-1e5", "3.4028234663852886e38", "NaN", "-Infinity", "null", "1e300"]


def test_hostile_frames_are_answered_and_skipped(performance: Performance, take: Markers) -> None:
    performance.reset()
    stream = Stream(performance)
    for line in HOSTILE:
        answers = [json.loads(answer) for answer in stream.answers([line]) if answer.startswith("{")]
        assert all("error" in answer for answer in answers)
    assert not stream.frames
    assert "root" in json.loads(next(iter(stream.answers([_line(take, 0)]))))


@pytest.mark.parametrize("number", NOT_SEEN)
@pytest.mark.parametrize("markers", ["one", "all"])
def test_what_is_too_far_away_is_not_seen_and_leaves_no_trace(
    performance: Performance, take: Markers, number: str, markers: str
) -> None:
    """FLT_MAX and the like are how some systems say that a marker is missing."""

    def roots(odd: int | None) -> np.ndarray:
        performance.reset()
        stream, found = Stream(performance), []
        for frame in range(12):
            line = _line(take, frame)
            if frame == odd:
                places = dict.fromkeys(take.labels, f"[{number}, 1.0, 1.0]")
                kept = json.loads(line) if markers == "one" else {}
                others = [
                    f'"{name}": {json.dumps(at)}' for name, at in kept.items() if name != take.labels[0]
                ]
                some = take.labels[:1] if markers == "one" else take.labels
                line = "{" + ", ".join([*(f'"{name}": {places[name]}' for name in some), *others]) + "}"
            found.append(json.loads(next(iter(stream.answers([line]))))["root"])
        return np.array(found)

    usual, odd = roots(None), roots(4)
    assert np.isfinite(odd).all()
    assert np.abs(odd - usual)[:, :3].max() < 0.1
    np.testing.assert_allclose(odd[-1], usual[-1], atol=0.01)


def test_a_clock_that_jumps_is_forgotten(performance: Performance, take: Markers) -> None:
    performance.reset()
    stream = Stream(performance)
    for frame, at in enumerate((0.0, 1e12, -1e12, 1.0, 1.03, 1.06)):
        line = json.loads(_line(take, frame)) | {"time": at}
        assert "root" in json.loads(next(iter(stream.answers([json.dumps(line)]))))
    assert all(abs(when) < 2.0 for when, _ in performance.guide.recent._seen)


def test_csv_goes_in_and_out(performance: Performance, take: Markers) -> None:
    performance.reset()
    header = "time," + ",".join(f"{label}.{c}" for label in take.labels for c in "xyz")
    rows = [f"{k / 30}," + ",".join(map(str, take.points[k].ravel())) for k in range(3)]
    gap = "0.2," + "," * (3 * len(take.labels) - 1)
    answers = list(Stream(performance).answers([header, *rows, gap, "not,a,row"]))
    assert answers[0].startswith("time,root.x")
    assert len(answers) == 5
    assert {len(answer.split(",")) for answer in answers} == {len(answers[0].split(","))}


@pytest.mark.parametrize("sender", [("127.0.0.1", 0), ("255.255.255.255", 5000)])
def test_a_sender_that_cannot_be_answered_ends_nothing(
    performance: Performance, take: Markers, sender: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Datagrams may come from port 0 or from a broadcast address."""
    performance.reset()
    datagrams = iter([(_line(take, 0).encode(), sender), (_line(take, 1).encode(), ("127.0.0.1", 9))])

    class Forged(socket.socket):
        def recvfrom(self, *_: object) -> tuple[bytes, tuple[str, int]]:  # type: ignore[override]
            return next(datagrams)

    monkeypatch.setattr("poise.capture.streams.socket.socket", Forged)
    stream, answered = Stream(performance), list[float]()
    serve_udp(stream, 0, go_on=lambda: len(answered) < 2, answered=answered.append)
    assert len(stream.frames) == 2


def test_datagrams_are_answered_to_their_sender(performance: Performance, take: Markers) -> None:
    performance.reset()
    bound, done = threading.Event(), threading.Event()
    ports: list[int] = []

    def ready(port: int) -> None:
        ports.append(port)
        bound.set()

    server = threading.Thread(
        target=serve_udp,
        args=(Stream(performance), 0),
        kwargs={"go_on": lambda: not done.is_set(), "ready": ready},
    )
    server.start()
    try:
        assert bound.wait(120)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(120)
            client.sendto(_line(take, 0).encode(), ("127.0.0.1", ports[0]))
            assert "joints" in json.loads(client.recv(65507))
    finally:
        done.set()
        server.join(120)


def test_a_t_pose_tells_the_body_and_the_places_of_its_markers(walk: Motion) -> None:
    layout = marker_layout(walk.skeleton, WITH_HEAD)
    body = walk.skeleton.scaled(1.07)
    points = t_pose_markers(body, layout) + np.array([2.0, 0.0, -1.0])
    found = skeleton_from_t_pose([walk.skeleton], layout, points)
    assert leg_length(found) == pytest.approx(leg_length(body), rel=0.02)
    places = markers_from_t_pose(body, layout, points)
    again = t_pose_markers(body, places) + np.array([2.0, 0.0, -1.0])
    np.testing.assert_allclose(again, points, atol=0.01)
    with pytest.raises(InvalidValueError, match="three markers"):
        skeleton_from_t_pose([walk.skeleton], layout, np.full_like(points, np.nan))


def test_a_short_motion_tells_how_large_the_body_is(prior: LocalPrior, walk: Motion) -> None:
    large = Motion(walk.skeleton.scaled(1.1), walk.fps, 1.1 * walk.root_positions, walk.rotations)
    layout = marker_layout(walk.skeleton, LOCOMOTION)
    shown = virtual_markers(large, marker_layout(large.skeleton, LOCOMOTION))
    found = skeleton_from_motion(prior.examples, layout, shown)
    assert leg_length(found) == pytest.approx(1.1 * leg_length(walk.skeleton), rel=0.03)


def test_a_t_pose_is_explained_by_a_mixture_of_all_the_librarys_skeletons(walk: Motion) -> None:
    layout = marker_layout(walk.skeleton, WITH_HEAD)
    long_legs, long_arms = (_with_long(walk.skeleton, part) for part in ("shin", "forearm"))
    body = walk.skeleton.with_offsets(0.5 * (long_legs.offsets + walk.skeleton.offsets))
    points = t_pose_markers(body, layout)
    plain = skeleton_from_t_pose([walk.skeleton], layout, points)
    mixed = skeleton_from_t_pose([walk.skeleton, long_legs, long_arms], layout, points)
    assert _off(mixed, body) < 0.5 * _off(plain, body)


def test_left_and_right_sides_are_calibrated_one_after_the_other(walk: Motion) -> None:
    left, right = walk.skeleton.scaled(1.1), walk.skeleton.scaled(0.9)
    both = skeleton_of_sides(left, right)
    for role, source in (("left_hand", left), ("right_foot", right)):
        joint = both.index(role)
        np.testing.assert_array_equal(both.offsets[joint], source.offsets[joint])
    spine = both.index("chest")
    np.testing.assert_allclose(both.offsets[spine], walk.skeleton.offsets[spine], atol=1e-12)


def test_a_short_motion_tells_proportions_where_there_are_skeletons(prior: LocalPrior, walk: Motion) -> None:
    long_legs = _with_long(walk.skeleton, "shin")
    shown = virtual_markers(
        Motion(long_legs, walk.fps, walk.root_positions, walk.rotations), marker_layout(long_legs, LOCOMOTION)
    )
    layout = marker_layout(walk.skeleton, LOCOMOTION)
    plain = skeleton_from_motion(prior.examples, layout, shown)
    told = skeleton_from_motion(prior.examples, layout, shown, skeletons=[walk.skeleton, long_legs])
    assert _off(told, long_legs) < 0.7 * _off(plain, long_legs)


def _with_long(skeleton: Skeleton, part: str) -> Skeleton:
    """The same with a part's bones a quarter longer."""
    offsets = skeleton.offsets.copy()
    for side in ("left", "right"):
        joint = skeleton.index(f"{side}_{part}")
        below = np.flatnonzero(skeleton.parents == joint)
        offsets[below] *= 1.25
    return skeleton.with_offsets(offsets)


def _off(found: Skeleton, body: Skeleton) -> float:
    """How much the lengths of bones differ, in all."""
    return float(np.abs(np.linalg.norm(found.offsets, axis=1) - np.linalg.norm(body.offsets, axis=1)).sum())


def test_a_performer_is_calibrated_by_files(prior: LocalPrior, take: Markers, tmp_path: Path) -> None:
    body = prior.space.skeleton.scaled(1.05)
    layout = marker_layout(prior.space.skeleton, LOCOMOTION)
    stood = t_pose_markers(body, layout)
    files = []
    for side, other in (("left", "right_"), ("right", "left_")):
        points = stood.copy()
        points[[name.startswith(other) and "hand" in name for name in layout]] = np.nan
        files.append(tmp_path / f"{side}.trc")
        write(Markers(tuple(layout), points[None], 30.0), files[-1])
    ready = setup.set_up(prior, take, calibration=files)
    assert leg_length(ready.space.skeleton) == pytest.approx(leg_length(body), rel=0.03)
    with pytest.raises(InvalidValueError, match="left side, then right side"):
        setup.set_up(prior, take, calibration=[*files, files[0]])


def test_the_skeletons_of_a_library_are_those_of_its_clips(tmp_path: Path, walk: Motion) -> None:
    bodies = [walk.skeleton, walk.skeleton.scaled(1.1)]
    for number, body in enumerate(bodies):
        moved = Motion(body, walk.fps, (1 + 0.1 * number) * walk.root_positions, walk.rotations)
        write(moved, tmp_path / f"{number}.bvh")
    build(tmp_path / "moves", sorted(tmp_path.glob("*.bvh")))
    found = setup.library_skeletons(tmp_path / "moves")
    assert sorted(leg_length(body) for body in found) == pytest.approx(
        sorted(leg_length(body) for body in bodies), rel=1e-3
    )
    assert setup.library_skeletons(tmp_path / "0.bvh") == []


def test_the_command_animates_a_take(
    prior: LocalPrior, walk: Motion, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(prior, tmp_path / "walk.poise")
    take = virtual_markers(walk, marker_layout(walk.skeleton, WITH_HEAD))
    write(take, tmp_path / "take.trc")
    assert (
        main(
            [
                "perform",
                str(tmp_path / "walk.poise"),
                str(tmp_path / "take.trc"),
                "-o",
                str(tmp_path / "out.bvh"),
            ]
        )
        == 0
    )
    assert "latency" in capsys.readouterr().err
    again = read(tmp_path / "out.bvh")
    assert isinstance(again, Motion)
    assert len(again) == len(walk)
    np.testing.assert_allclose(again.root_positions, walk.root_positions, atol=0.05)


def test_the_command_takes_any_model_and_reports_what_is_not_met(
    walk: Motion, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save(GaussianPrior.learn([walk]), tmp_path / "walk.poise")
    take = virtual_markers(walk[:8], marker_layout(walk.skeleton, WITH_HEAD))
    points = take.points.copy()
    points[5, 0, 1] += 3.0
    write(Markers(take.labels, points, take.fps), tmp_path / "take.trc")
    files = [str(tmp_path / name) for name in ("walk.poise", "take.trc", "out.bvh")]
    assert main(["perform", *files[:2], "-o", files[2]]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "walk.poise is a gaussian model: a local one" in said
    assert f"in 1 of 8 frames; the worst is {WITH_HEAD[0]}: " in said
    assert len(read(tmp_path / "out.bvh")) == 8


def test_without_a_library_a_take_is_performed_by_what_is_known_of_people(
    walk: Motion, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    take = virtual_markers(walk[:8], marker_layout(walk.skeleton, WITH_HEAD))
    write(take, tmp_path / "take.trc")
    assert main(["perform", str(tmp_path / "take.trc"), "-o", str(tmp_path / "out.bvh")]) == 0
    assert "is a universal model" in " ".join(capsys.readouterr().err.split())
    found = read(tmp_path / "out.bvh")
    assert isinstance(found, Motion)
    roles = ("pelvis", "left_shin", "right_forearm", "head")
    places = [
        [motion.positions[:, motion.skeleton.index(role)] for role in roles] for motion in (found, walk[:8])
    ]
    assert np.linalg.norm(np.subtract(*places), axis=-1).mean() < 0.04


def test_mistakes_are_told(tmp_path: Path, prior: LocalPrior) -> None:
    with pytest.raises(InvalidValueError, match="udp:9000"):
        udp_address("udp:here")
    assert udp_address("udp:0.0.0.0:9000") == ("0.0.0.0", 9000)
    file = tmp_path / "a.csv"
    file.write_text("time,a.x,a.y,a.z\n0,1,2,what\n")
    with pytest.raises(ParseError, match=r"a\.csv:2"):
        read_markers(file, fps=30)
    file.write_text("time,a\n")
    with pytest.raises(ParseError, match="header"):
        read_markers(file, fps=30)
    del prior


@pytest.mark.slow
def test_the_best_places_are_found_by_trials_and_drawn(
    prior: LocalPrior, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    four, six = (best_placement(prior.examples, count) for count in (4, 6))
    assert six.error_cm < four.error_cm < 5.0
    assert len(six.finalists) > 1
    assert six.error_cm == min(error for _, error in six.finalists)
    assert dict(six.finalists)[six.markers] == six.error_cm
    assert set(six.markers) >= {"left_waist", "right_waist"}
    assert any("foot" in name or "shin" in name or "toes" in name for name in six.markers)
    with pytest.raises(InvalidValueError, match="3 to"):
        best_placement(prior.examples, 2)
    save(prior, tmp_path / "walk.poise")
    picture = tmp_path / "places.png"
    assert (
        main(["perform", "placement", str(tmp_path / "walk.poise"), "--markers", "4", "-o", str(picture)])
        == 0
    )
    assert "best 4" in capsys.readouterr().out
    assert picture.stat().st_size > 1000


def test_a_stream_says_which_labels_it_does_not_follow(performance: Performance, take: Markers) -> None:
    said: list[str] = []
    stream = Stream(performance, say=said.append)
    foreign = {label: f"Marker{k}" for k, label in enumerate(take.labels)}
    for frame in range(len(take)):
        line = {foreign[label]: at for label, at in json.loads(_line(take, frame)).items()}
        list(stream.answers([json.dumps(line)]))
    count = len(take.labels)
    assert said[0].startswith(f"0 of {count} labels matched; not followed: Marker0")
    assert any("the input moves, but the body does not" in words for words in said)
    assert len(said) == len(set(said))


def test_a_stream_that_is_matched_says_nothing(performance: Performance, take: Markers) -> None:
    said: list[str] = []
    list(Stream(performance, say=said.append).answers(_line(take, frame) for frame in range(40)))
    assert said == []
