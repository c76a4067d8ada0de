"""`poise info`: right numbers, JSON with the promised keys, markers too, one bad file among many."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

import poise as library
from poise.library import datasets
from poise.motion.markers import Markers
from real_data import recordings

PROMISED = {"frames", "fps", "seconds", "joints", "height_m", "roles", "still_joints", "warnings"}


def test_json_has_the_promised_keys_and_the_right_numbers(poise, walk: Path) -> None:
    done = poise("info", walk, "--json")
    about = json.loads(done.out)
    motion = library.performer.act("walk", seconds=1, fps=60)
    assert done.code == 0
    assert set(about) > PROMISED | {"units", "units_reason", "frames_in_file", "format", "name"}
    assert (about["frames"], about["fps"], about["seconds"]) == (60, 60.0, 1.0)
    assert about["joints"] + about["end_sites"] == len(motion.skeleton)
    assert about["height_m"] == pytest.approx(motion.skeleton.height, abs=1e-3)
    assert about["roles"]["left_hand"] in about["joint_names"]
    assert about["units"] == "cm"


def test_a_unit_given_is_not_inferred(poise, walk: Path) -> None:
    about = json.loads(poise("info", walk, "--json", "--units", "mm").out)
    assert about["units"] == "mm"
    assert about["height_m"] < 0.3
    halved = json.loads(poise("info", walk, "--json", "--units", "0.005").out)
    assert halved["height_m"] == pytest.approx(5 * about["height_m"], abs=1e-3)


def test_another_axis_is_up_if_one_says_so(poise, walk: Path) -> None:
    about = json.loads(poise("info", walk, "--json", "--up=-z").out)
    assert about["notes"] == ["-Z is up: given"]


def test_people_read_the_same_facts(poise, walk: Path) -> None:
    done = poise("info", walk)
    assert "60 at 60 Hz, 1.00 s" in done.out
    assert "left_hand=" in done.out
    assert "units" in done.out
    assert all(line == line.rstrip() for line in done.out.splitlines())


def test_several_files_make_a_table_or_a_list(poise, walk: Path) -> None:
    table = poise("info", walk, walk).out.splitlines()
    assert len(table) == 3
    assert table[0].split()[:4] == ["file", "frames", "Hz", "seconds"]
    assert [about["name"] for about in json.loads(poise("info", walk, walk, "--json").out)] == [
        "walk",
        "walk",
    ]


def test_one_bad_file_does_not_hide_the_others(poise, walk: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.bvh"
    bad.write_text("HIERARCHY\nROOT Hips\n{\n")
    done = poise("info", walk, bad, "--json")
    assert done.code == 2
    assert [about["name"] for about in json.loads(done.out)] == ["walk"]
    assert f"1 of 2 files could not be read: {bad}" in done.err


def test_a_bad_file_is_named_with_its_line(poise, tmp_path: Path) -> None:
    bad = tmp_path / "bad.bvh"
    bad.write_text("HIERARCHY\nROOT Hips\n{\n")
    done = poise("info", bad)
    assert done.code == 2
    assert done.err.startswith("poise: bad.bvh:")


def test_markers_show_their_gaps(poise, tmp_path: Path) -> None:
    points = np.random.default_rng(0).normal(size=(20, 2, 3))
    points[:5, 1] = np.nan
    path = library.write(Markers(("LFHD", "RFHD"), points, fps=100.0), tmp_path / "take.trc")
    about = json.loads(poise("info", path, "--json").out)
    assert about["kind"] == "markers"
    assert set(about) > PROMISED
    assert (about["markers"], about["joints"], about["gaps_percent"]) == (2, 0, 12.5)
    assert about["markers_with_gaps"] == ["RFHD"]
    assert about["notes"][0].startswith("+Y is up: ")
    shown = poise("info", path).out
    assert "12.5 % of all points, in 1 markers" in shown
    assert "+Y is up: " in shown


def test_it_asks_for_a_file(poise) -> None:
    done = poise("info")
    assert done.code == 2
    assert "name at least one motion file" in done.err


def test_real_recordings_are_described_as_people(poise) -> None:
    files = [*recordings("cmu")[::20], *recordings("bandai")[::20]]
    abouts = json.loads(poise("info", *files, "--json").out)
    assert [about["name"] for about in abouts] == [file.stem for file in files]
    assert all(1.5 < about["height_m"] < 2.0 for about in abouts)
    assert all({"pelvis", "head", "left_hand", "right_foot"} <= set(about["roles"]) for about in abouts)
    assert all(about["frames_in_file"] == about["frames"] + about["dropped_first_frame"] for about in abouts)
    walk = next(about for about in abouts if about["name"].startswith("02_"))
    assert (walk["joints"], walk["units"], walk["fps"]) == (31, "cmu", 120.0)
    assert {"LHipJoint", "RHipJoint"} <= set(walk["still_joints"])


def test_the_catalogues_checksums_are_those_of_the_recordings() -> None:
    files = {file.stem: file for file in recordings("cmu")}
    for clip in datasets.catalogue()[::20]:
        content = files[clip.name].read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (clip.bytes, clip.sha256)
