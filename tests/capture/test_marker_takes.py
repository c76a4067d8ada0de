"""Takes of markers: read and matched, solved, filled, streamed; and every mistake answered in words."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import poise
from poise import performer
from poise.capture.markers import (
    Capture,
    fill_gaps,
    filled_markers,
    save_report,
    solve,
    summary,
    template,
    well_seen,
    write_filled_take,
)
from poise.capture.matching import MatchedTake, match, read_mapping, read_take
from poise.capture.sources import of_subject
from poise.capture.tracking import MarkerTracker
from poise.errors import InvalidValueError, ParseError, PoiseError, UnknownNameError
from poise.formats import read, write
from poise.motion.marker_names import known_marker, sides_swapped
from poise.motion.markers import Markers
from poise.motion.virtual_markers import virtual_markers
from poise.priors.broad import BroadPrior
from poise.skeleton.pose_space import Handle, PoseSpace
from real_data import recording

FPS = 30.0


@pytest.fixture(scope="module")
def complete() -> Markers:
    motion = performer.act("walk", performer="maya", seconds=4.0, fps=FPS, seed=5)
    markers = virtual_markers(motion)
    noise = 0.001 * np.random.default_rng(0).normal(size=markers.points.shape)
    return Markers(markers.labels, markers.points + noise, FPS, name="walk")


@pytest.fixture(scope="module")
def holed(complete: Markers) -> Markers:
    points = complete.points.copy()
    points[60:110, [3, 12, 20, 30]] = np.nan
    points[70:72, [7, 33]] = np.nan
    return replace(complete, points=points)


@pytest.fixture(scope="module")
def capture(holed: Markers, tmp_path_factory: pytest.TempPathFactory) -> Capture:
    path = tmp_path_factory.mktemp("takes") / "walk.c3d"
    write(holed, path)
    return solve(read_take(path, template()))


def test_a_take_is_filled_and_what_was_measured_stays(
    capture: Capture, complete: Markers, tmp_path: Path
) -> None:
    filled = fill_gaps(capture)
    hidden = ~np.isfinite(capture.take.markers.points).all(axis=2)
    off = np.linalg.norm(filled.points - complete.points, axis=2)
    assert off[hidden].mean() < 0.02
    written = filled_markers(capture, filled)
    source, target = Path(capture.take.markers.origin.path), tmp_path / "filled.c3d"
    write_filled_take(source, written, target)
    before, after = read(source), read(target)
    assert isinstance(before, Markers)
    assert isinstance(after, Markers)
    np.testing.assert_array_equal(after.points[~hidden], before.points[~hidden])
    np.testing.assert_allclose(after.points[hidden], filled.points[hidden], atol=1e-6)
    assert (after.residuals[hidden] > 0).all()  # the take's own residuals are all zero
    assert (after.residuals[~hidden] == 0).all()
    facts = summary(capture, filled)
    assert facts["gaps"] == 6
    assert facts["filled_points"] == hidden.sum()
    assert facts["rms_mm"] < 10


def test_a_filled_take_may_become_another_kind_of_file(capture: Capture, tmp_path: Path) -> None:
    markers = filled_markers(capture, fill_gaps(capture))
    write_filled_take(Path(capture.take.markers.origin.path), markers, tmp_path / "filled.trc")
    assert np.isfinite(read(tmp_path / "filled.trc").points).all()  # type: ignore[union-attr]
    with pytest.raises(UnknownNameError, match=r"extension '\.bvh'"):
        write_filled_take(Path(capture.take.markers.origin.path), markers, tmp_path / "filled.bvh")


@pytest.mark.slow
def test_the_report_is_drawn(capture: Capture, tmp_path: Path) -> None:
    from PIL import Image

    with Image.open(save_report(capture, tmp_path / "report.png")) as picture:
        assert picture.width == 1800
        assert picture.height > 1000
        assert len(picture.resize((90, 60)).getcolors(90 * 60) or ()) > 50


def test_perform_solves_a_full_set_of_markers_as_the_command_for_markers_does(
    capture: Capture, holed: Markers, tmp_path: Path
) -> None:
    path = tmp_path / "walk.c3d"
    write(holed, path)
    performed = poise.perform(None, path)
    np.testing.assert_allclose(performed.motion.positions, capture.motion.positions, atol=1e-6)
    unmet = [sum(bool(frame.unmet) for frame in found.solutions) for found in (performed, capture)]
    assert unmet[0] == unmet[1]


def test_the_motion_is_that_of_the_performer(capture: Capture) -> None:
    assert len(capture.motion) == len(capture.take)
    assert capture.motion.skeleton.height == pytest.approx(1.64, abs=0.06)


def test_a_stream_answers_every_frame_and_goes_on_learning(capture: Capture, complete: Markers) -> None:
    stream = MarkerTracker(capture.prior, capture.calibration, fps=FPS)
    for points in complete.points[:20]:
        frame = stream.step(points)
    assert frame.misfit < 0.015
    before = len(capture.prior.model.latents)  # type: ignore[attr-defined]
    assert stream.learn() == 20
    assert len(stream.prior.model.latents) == before + 20  # type: ignore[attr-defined]
    assert stream.step(complete.points[20]).misfit < 0.015
    assert stream.learn() == 0


def test_only_a_style_goes_on_learning(capture: Capture) -> None:
    broad = BroadPrior(PoseSpace(capture.calibration.skeleton))
    with pytest.raises(InvalidValueError, match="only a style can keep learning; this is a BroadPrior"):
        MarkerTracker(broad, capture.calibration, fps=FPS).learn()


def test_frames_to_learn_from_are_those_well_seen(holed: Markers) -> None:
    assert well_seen(holed) == [slice(0, 70), slice(72, 120)]
    points = holed.points.copy()
    points[40:80, :20] = np.nan
    assert well_seen(replace(holed, points=points)) == [slice(0, 40), slice(80, 120)]


# --- labels ----------------------------------------------------------------------------------------------------------


def test_labels_of_other_laboratories_are_known(complete: Markers) -> None:
    other = {"LFWT": "LASI", "RBWT": "rpsi", "LSHN": "LTIB", "RBAC": "RBAK"}
    take = match(
        replace(complete, labels=tuple(other.get(name, name) for name in complete.labels)), template()
    )
    assert len(take.layout) == 41
    assert "LASI is LFWT" in take.matched


@pytest.mark.parametrize(
    ("label", "marker"),
    [
        *(
            ("LASI", "LFWT"),
            ("R.ASIS", "RFWT"),
            ("r asis", "RFWT"),
            ("L.Knee.Lat", "LKNE"),
            ("RLMAL", "RANK"),
        ),
        *(("LFRA", "LFRM"), ("RCAL", "RHEE"), ("R.Shoulder", "RSHO"), ("LFAulna", "LWRB"), ("IJ", "CLAV")),
    ],
)
def test_other_layouts_name_the_same_places(label: str, marker: str) -> None:
    assert known_marker(label) == marker


@pytest.mark.parametrize("lower", [False, True])
def test_swapped_sides_are_refused(complete: Markers, lower: bool) -> None:
    legs = ("FWT", "BWT", "THI", "KNE", "SHN", "ANK", "HEE", "TOE")
    kept = [k for k, label in enumerate(complete.labels) if not lower or label[1:] in legs]
    labels = [complete.labels[k] for k in kept]
    right = replace(complete, labels=tuple(labels), points=complete.points[:, kept])
    other = {"L": "R", "R": "L"}
    swapped = replace(right, labels=tuple(other.get(label[0], label[0]) + label[1:] for label in labels))
    assert not sides_swapped(right)
    with pytest.raises(InvalidValueError, match="left and right are swapped"):
        solve(match(swapped, template()))


def test_a_marker_of_no_known_name_goes_where_it_moves_along(complete: Markers) -> None:
    head = complete.points[:, [complete.index("LFHD"), complete.index("RFHD")]].mean(axis=1, keepdims=True)
    loose = np.random.default_rng(0).normal(size=head.shape)
    points = np.concatenate([complete.points, head, loose], axis=1)
    take = match(Markers((*complete.labels, "Cap", "Ball"), points, FPS, name="walk"), template())
    assert take.layout["Cap"].joint == "Head"
    assert take.loose == ("Cap",)
    assert "Cap moves along with Head" in take.matched
    assert any("left out" in line and "Ball" in line for line in take.matched)


def test_a_mapping_file_says_what_labels_are(complete: Markers, tmp_path: Path) -> None:
    file = tmp_path / "layout.toml"
    file.write_text('[markers]\n"M0" = "LFHD"\n[joints]\n"M1" = "right_hand"\n')
    names = {"LFHD": "M0", "RFIN": "M1"}
    renamed = replace(complete, labels=tuple(names.get(name, name) for name in complete.labels))
    take = match(renamed, template(), read_mapping(file))
    assert take.layout["M1"] == Handle("right_hand")
    assert "M0 is LFHD" in take.matched
    with pytest.raises(UnknownNameError, match="'M9'"):
        match(renamed, template(), {"M9": "LFHD"})
    with pytest.raises(UnknownNameError, match="41-marker set 'LXXX'"):
        match(renamed, template(), {"M0": "LXXX"})


@pytest.mark.parametrize("text", ["[marks]\n", "not toml", 'markers = "x"'])
def test_a_broken_mapping_file_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "layout.toml"
    file.write_text(text)
    with pytest.raises(ParseError, match=r"layout\.toml"):
        read_mapping(file)


# --- mistakes --------------------------------------------------------------------------------------------------------


def _without_labels(markers: Markers, order: np.ndarray) -> Markers:
    labels = tuple(f"M{k}" for k in range(len(order)))
    return replace(markers, labels=labels, points=markers.points[:, order])


def _right(take: MatchedTake, markers: Markers, order: np.ndarray) -> int:
    """How many markers are on the body part that their own label says."""
    true = match(markers, template()).layout
    return sum(
        f"M{k}" in take.layout and take.layout[f"M{k}"].joint == true[markers.labels[number]].joint
        for k, number in enumerate(order)
    )


def test_a_take_without_known_labels_is_matched_by_geometry(complete: Markers) -> None:
    order = np.random.default_rng(3).permutation(len(complete.labels))[:34]
    take = match(_without_labels(complete[::3], order), template())
    assert _right(take, complete, order) >= 31
    assert "markers by geometry" in take.matched[0]
    assert any(line.startswith("on Head: M") for line in take.matched)
    named = {f"M{k}": complete.labels[number] for k, number in enumerate(order)}
    claims = [
        (named[label][1:], named[reason.rpartition(" ")[2]][1:])
        for label, reason in take.reasons.items()
        if "mirrors" in reason
    ]
    assert len(claims) >= 20
    assert all(one == other for one, other in claims)
    assert solve(take).rms < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("name", ["85_02.c3d"])
def test_recorded_takes_are_matched_by_geometry(name: str) -> None:
    take = read_take(recording("optical", name), template())
    order = np.random.default_rng(0).permutation(len(take.markers.labels))
    thin = take.markers[::24]
    assert _right(match(_without_labels(thin, order), template()), thin, order) >= 37


@pytest.mark.slow
def test_points_that_are_no_body_are_not_matched(complete: Markers) -> None:
    unknown = _without_labels(complete, np.arange(41))
    strewn = 0.5 * np.random.default_rng(0).normal(size=unknown.points[:5].shape)
    message = r"0 of 41 marker labels are known .* mapping file says.* cannot be identified by geometry"
    with pytest.raises(InvalidValueError, match=message) as told:
        match(replace(unknown, points=strewn), template())
    assert told.value.settings == ("map",)
    with pytest.raises(
        InvalidValueError, match=r"at least 20 markers that are seen together; got 12 markers"
    ):
        match(_without_labels(complete, np.arange(12)), template())


def test_two_people_need_a_choice(complete: Markers) -> None:
    both = Markers(
        tuple(f"{who}:{name}" for who in ("Anna", "Ben") for name in complete.labels),
        np.concatenate([complete.points, complete.points + 1.0], axis=1), FPS, name="duo",
    )  # fmt: skip
    with pytest.raises(InvalidValueError, match=r"2 people \(Anna, Ben\); choose one$"):
        of_subject(both, None)
    ben = of_subject(both, "Ben")
    assert ben.labels == complete.labels
    np.testing.assert_array_equal(ben.points, complete.points + 1.0)
    with pytest.raises(UnknownNameError, match="subject 'Carl'"):
        of_subject(both, "Carl")


def test_a_take_without_any_point_says_so(complete: Markers) -> None:
    take = match(replace(complete, points=np.full_like(complete.points, np.nan)), template())
    with pytest.raises(InvalidValueError, match="no marker is seen in any frame"):
        solve(take)


def test_millimetres_taken_for_metres_are_noticed(complete: Markers) -> None:
    take = match(replace(complete, points=1000.0 * complete.points), template())
    with pytest.raises(InvalidValueError, match="unit of length"):
        solve(take)


def test_a_truncated_file_is_refused(capture: Capture, tmp_path: Path) -> None:
    whole = Path(capture.take.markers.origin.path).read_bytes()
    cut = tmp_path / "cut.c3d"
    cut.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(PoiseError, match=r"cut\.c3d"):
        read_take(cut, template())


def test_a_motion_is_no_take(tmp_path: Path) -> None:
    write(performer.act("walk", seconds=0.5, fps=30), tmp_path / "walk.bvh")
    with pytest.raises(InvalidValueError, match="holds the motion of a skeleton"):
        read_take(tmp_path / "walk.bvh", template())


def test_too_little_to_learn_from_is_said(complete: Markers) -> None:
    points = complete.points[:40].copy()
    points[:, ::6] = np.nan
    take: MatchedTake = match(replace(complete, points=points), template())
    capture = solve(take)
    assert "no style is learned" in capture.notes[0]
    assert np.isfinite(capture.motion.rotations).all()
