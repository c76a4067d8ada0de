"""Marker sets of laboratories: recognised by their labels, with every marker on its segment and side."""

from dataclasses import replace

import numpy as np
import pytest

from poise import performer
from poise.capture.calibration import check_size
from poise.capture.marker_sets import computed_points, marker_sets, places_of, sites
from poise.capture.markers import fit_body, template
from poise.capture.matching import match
from poise.errors import InvalidValueError
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.motion.virtual_markers import OPTICAL_LABELS, optical_layout, placed_spots, virtual_markers
from poise.skeleton.pose_space import Handle

SEGMENTS = {"pelvis", "chest", "head", *(f"{s}_{p}" for s in ("left", "right") for p in
            ("upper_arm", "forearm", "thigh", "shin", "foot"))}  # fmt: skip
LABELS = {  # as real files have them, with the place of each
    "OpenSim gait2354": {
        "R.ASIS": "RFWT", "L.ASIS": "LFWT", "V.Sacral": "sacrum", "R.Thigh.Upper": "right_thigh",
        "R.Thigh.Front": "right_thigh", "L.Thigh.Rear": "left_thigh", "R.Knee.Lat": "RKNE",
        "R.Knee.Med": "Rknee_medial", "L.Knee.Lat": "LKNE", "L.Shank.Upper": "left_shin", "R.Ankle.Lat": "RANK",
        "L.Ankle.Lat": "LANK", "R.Heel": "RHEE", "L.Heel": "LHEE", "R.Toe.Tip": "Rtoe_tip", "L.Toe.Lat": "LMT5",
        "L.Toe.Med": "LMT1", "Sternum": "sternum", "R.Acromium": "RSHO", "L.Acromium": "LSHO", "R.Bicep": "RUPA",
        "R.Elbow": "RELB", "L.Elbow": "LELB", "R.Wrist.Med": "RWRA", "R.Wrist.Lat": "RWRB", "L.Wrist.Lat": "LWRB",
        "R.Temple": "Rhead_side", "L.Temple": "Lhead_side", "Top.Head": "head_top",
    },
    "Rajagopal": {
        "LPSI": "LBWT", "RTH2": "right_thigh", "LTB1": "left_shin", "RCAL": "RHEE", "RTOE": "RTOE", "LMT5": "LMT5",
        "LACR": "LSHO", "RACR": "RSHO", "CLAV": "CLAV", "C7": "C7", "RUA1": "right_upper_arm", "RLEL": "RELB",
        "LMEL": "Lelbow_medial", "RFAsuperior": "right_forearm", "LFAradius": "LWRA", "RASI": "RFWT",
    },
    "Hamner": {
        "R.Shoulder": "RSHO", "L.Clavicle": "Lclavicle", "R.Biceps": "RUPA", "R.MElbow": "Relbow_medial",
        "R.Forearm": "RFRM", "L.Wrist": "LWRB", "R.PSIS": "RBWT", "S2": "sacrum", "R.TH1": "right_thigh",
        "L.TH4": "left_thigh", "R.Knee": "RKNE", "R.SH4": "right_shin", "L.MAnkle": "Lankle_medial", "R.MT5": "RMT5",
    },
    "Helen Hayes": {
        "R.Shoulder": "RSHO", "R.Offset": "Rblade", "R.Elbow": "RELB", "L.Wrist": "LWRB", "R.ASIS": "RFWT",
        "V.Sacral": "sacrum", "R.Thigh": "right_thigh", "L.Knee": "LKNE", "L.Shank": "left_shin", "R.Ankle": "RANK",
        "R.Knee.Medial": "Rknee_medial", "L.Foot.Lateral": "LMT5", "Top.Head": "head_top",
    },
    "Plug-in Gait (full body)": {
        "LFHD": "LFHD", "RBHD": "RBHD", "C7": "C7", "RBAK": "RBAC", "LSHO": "LSHO", "RFRA": "RFRM", "LASI": "LFWT",
        "RPSI": "RBWT", "LTIB": "LSHN", "LKNEin": "Lknee_medial", "RANK": "RANK", "SACR": "sacrum",
    },
    "Plug-in Gait (lower body)": {
        "LASI": "LFWT", "RASI": "RFWT", "LPSI": "LBWT", "LTHI": "LTHI", "RTIB": "RSHN", "LHEE": "LHEE",
        "RKNE": "RKNE", "LANK": "LANK",
    },
    "Conventional Gait Model": {
        "LASI": "LFWT", "RPSI": "RBWT", "LTHAP": "left_thigh", "RTHAD": "right_thigh", "LTIAP": "left_shin",
        "RSMH": "RTOE", "LFMH": "LMT1", "RVMH": "RMT5", "LMED": "Lankle_medial",
    },
    "CMU 41": {label: label for label in OPTICAL_LABELS},
    "Qualisys Sports": {
        "HeadL": "Lhead_side", "HeadFront": "head_front", "SpineTop": "C7", "Chest": "sternum",
        "RShoulderTop": "RSHO", "LElbowOut": "LELB", "RWristIn": "RWRA", "WaistLFront": "LFWT",
        "WaistR": "Riliac_crest", "RThighFrontLow": "Rknee_front", "LShinFrontHigh": "Ltibia",
        "RForefootIn": "RMT1", "LHeelBack": "LHEE",
    },
    "OptiTrack Baseline": {
        "WaistLFront": "LFWT", "BackTop": "T2", "BackLeft": "Lblade", "HeadSide": "Lhead_side",
        "LUArmHigh": "LUPA", "RElbowOut": "RELB", "RHandOut": "Rhand_little", "LShin": "left_shin", "RToeIn": "RMT1",
        "LShoulderBack": "Lshoulder_back",
    },
    "Rizzoli": {
        "LASIS": "LFWT", "RGTR": "Rtrochanter", "LLE": "LKNE", "RME": "Rknee_medial", "LHF": "Lfibula",
        "RTT": "Rtibia", "LLM": "LANK", "RMM": "Rankle_medial", "LCA": "LHEE", "RFM": "RMT1", "LV5": "L5",
    },
    "CODA": {
        "L.Sac.Wand": "pelvis", "L.PSIS": "LBWT", "L.ASIS": "LFWT", "L.Post.Fem.": "left_thigh",
        "R.Ant.Tib.": "right_shin", "L.Knee": "LKNE", "R.Ankle": "RANK", "R.Heel": "RHEE", "R.Toe": "RMT5",
    },
}  # fmt: skip


@pytest.mark.parametrize("title", LABELS)
def test_labels_of_a_laboratory_are_known(title: str) -> None:
    found, best = places_of(list(LABELS[title]))
    assert best is not None
    assert best.title == title
    assert found == LABELS[title]


def test_every_set_names_places_that_exist() -> None:
    layout = optical_layout(template())
    placed = placed_spots(template(), sites())
    for one in marker_sets():
        for label, place in one.sided.items():
            assert {f"L{place}", f"R{place}"} <= {*layout, *placed}, (one.title, label)
        assert {*one.middle.values()} <= {*layout, *placed}, one.title
        assert {one.place(f"L{label}") for label in one.clusters} <= SEGMENTS, one.title
    assert len(marker_sets()) == 12


def test_points_computed_by_a_model_are_no_markers() -> None:
    real = ["LASI", "LFHD", "CLAV", "LTOE", "LTHI", "LFIN", "RTIB", "LANK", "STRN"]
    axes = [f"{stem}{axis}" for stem in ("PEL", "LFE", "RHU", "TRX", "HED") for axis in "OALP"]
    others = [
        "CentreOfMass",
        "CentreOfMassFloor",
        "R_HJC",
        "MidASIS",
        "L.AnkleJointGround",
        "LeftHipCenterGamage",
    ]
    assert computed_points([*real, *axes, *others]) == [*axes, *others]
    assert computed_points([*LABELS["CODA"], "L.Hip", "R.Hip"]) == ["L.Hip", "R.Hip"]
    assert computed_points([*LABELS["Helen Hayes"], "L.Hip", "R.Hip"]) == []  # markers on the trochanters
    assert computed_points(["LTOP", "LFEA", *real]) == []  # markers, since no origin goes with them


def _worn(motion: Motion, places: dict[str, str]) -> Markers:
    """The markers of a set on a moving body, clusters beside the middle of their bones."""
    body = motion.skeleton
    spots = {**optical_layout(body), **placed_spots(body, sites())}
    layout = {}
    for number, (label, place) in enumerate(places.items()):
        beside = tuple(0.03 * np.array([np.sin(2.0 * number), -2.0 - number % 3, np.cos(2.0 * number)]))
        layout[label] = spots.get(place) or Handle(place, beside)
    return replace(virtual_markers(motion, layout), name="worn")


@pytest.fixture(scope="module")
def walk() -> Motion:
    return performer.act("walk", performer="maya", seconds=2.0, fps=30.0, seed=5)


@pytest.mark.parametrize("title", ["OpenSim gait2354", "Hamner"])
def test_a_body_is_as_tall_as_its_markers_say(walk: Motion, title: str) -> None:
    take = match(_worn(walk, LABELS[title]), template())
    assert f"marker set: {title}" in take.matched
    fitted = fit_body(take)
    assert fitted.skeleton.height == pytest.approx(walk.skeleton.height, abs=0.04)
    assert fitted.rms < 0.015


def test_of_a_still_body_no_marker_is_said_to_move_along(walk: Motion) -> None:
    worn = _worn(walk, LABELS["OpenSim gait2354"] | {"Cap": "head_front"})
    still = replace(worn, points=np.repeat(worn.points[:1], 30, axis=0))
    take = match(still, template())
    assert "Cap" not in take.layout
    assert any("left out" in line and "Cap" in line for line in take.matched)


def test_units_are_blamed_only_if_another_unit_mends_the_size() -> None:
    with pytest.raises(InvalidValueError, match="set it to mm, cm or m"):
        check_size(1000.0, 1.7)
    for ratio, agreeing in ((3.5, True), (1000.0, False)):
        with pytest.raises(InvalidValueError, match="no unit of length mends that"):
            check_size(ratio, 1.7, agreeing=agreeing)
