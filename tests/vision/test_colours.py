"""Coloured markers: found by their hue, told apart by it, and followed from pictures to a pose."""

import numpy as np
import pytest

from poise import performer
from poise.apps.camera_takes import NINE, before_cameras, film, open_cameras, perform_take, simulator_of
from poise.capture.cameras import NOISE
from poise.capture.matching import read_hues
from poise.capture.performance import Performance
from poise.cli import main
from poise.errors import InvalidValueError, ParseError, UnknownNameError
from poise.formats import read, write
from poise.geometry import rotations
from poise.priors.local.prior import LocalPrior
from poise.vision.blobs import Look, find_blobs
from poise.vision.colours import HUES, Colours
from poise.vision.first_labels import fit_layout
from poise.vision.simulator import Conditions, front_rig

cv2 = pytest.importorskip("cv2")
FPS, SIZE = 30.0, (320, 240)
WORN = Colours.from_text("LFHD=yellow,LFIN=red,RFIN=green,LTOE=blue,RTOE=cyan,LSHO=pink")


def test_colours_are_told_by_name_or_hue_for_all_or_some():
    assert Colours.from_text("") == Colours()
    assert Colours.from_text("red, 0.33").others == (0.0, 0.33)
    assert Colours.from_text("LFIN=red,RFIN=0.33").worn == {"LFIN": 0.0, "RFIN": 0.33}
    assert [look.hue for look in Colours.from_text("green").looks(NINE)] == [0.33]
    assert [look.hue for look in WORN.looks(NINE)][-1] is None  # the waist and a shoulder are bright
    assert [look.hue for look in Colours().looks()] == [None]
    assert np.array_equal(WORN.tints(NINE)[NINE.index("RSHO")], np.ones(3))
    assert np.all(np.isnan(Colours.from_text("red,green").tints(NINE)))
    near = Colours.from_text("red,orange").looks()
    assert sum(look.hue_range for look in near) <= HUES["orange"] + 1e-9


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("reddish", "a colour must be red, orange, .* got 'reddish'"),
        ("1.5", "a hue from 0 .* to 1; got '1.5'"),
        ("0.0,0.98", "cannot be distinguished: 0 and 0.98"),
    ],
)
def test_colours_that_cannot_be_are_refused(text, message):
    with pytest.raises(InvalidValueError, match=message):
        Colours.from_text(text)


def test_a_colour_for_no_marker_and_hues_for_nobody_are_told():
    with pytest.raises(UnknownNameError, match="no marker 'LFINN'; did you mean LFIN"):
        Colours.from_text("LFINN=red").tints(NINE)
    with pytest.raises(InvalidValueError, match="assign colours to markers"):
        Colours.from_text("red,green").lights(NINE)


def test_a_mapping_file_may_tell_colours(tmp_path):
    path = tmp_path / "map.toml"
    path.write_text('[markers]\nL = "left_hand"\nR = "right_hand"\n[colours]\nL = "red"\nR = 0.33\n')
    assert read_hues(path) == {"L": 0.0, "R": 0.33}
    path.write_text('[markers]\nL = "left_hand"\n')
    assert read_hues(path) == {}
    path.write_text('[markers]\nL = "left_hand"\n[colours]\nL = [1, 2]\n')
    with pytest.raises(ParseError, match=r"colours\.L: expected text in quotes or a number; got \[1, 2\]"):
        read_hues(path)
    path.write_text('[colours]\nL = "pinkish"\n')
    with pytest.raises(ParseError, match="a colour must be red"):
        read_hues(path)


def test_a_dark_colour_is_found_to_a_part_of_a_pixel_and_what_is_in_shadow_is_not():
    """A blue marker is darker than the wall behind it; a blue poster in a shadow is still the room's."""
    room = np.full((120, 160, 3), 150.0, dtype=np.float32)
    room[20:60, 100:140] = (180, 60, 40)
    frame = (room * np.where(np.arange(160) > 80, 0.6, 1.0)[None, :, None]).astype(np.uint8)
    big = np.full((960, 1280, 3), 150, dtype=np.uint8)
    cv2.circle(big, (8 * 50 + 3 + 4, 8 * 70 + 3 + 2), 36, (230, 20, 20), -1)
    small = cv2.resize(big, (160, 120), interpolation=cv2.INTER_AREA)
    frame[:, :80] = small[:, :80]
    blobs = find_blobs(
        frame, np.full((120, 160), 255, np.uint8), [Look(brightness=0.35, hue=0.66)], room=room
    )
    assert len(blobs) == 1
    assert np.allclose(blobs.centres[0], (50.4375, 70.1875), atol=0.02)


def test_a_first_frame_goes_by_colours_where_a_body_is_its_own_mirror_image():
    layout = np.array([[0.3, 1.0, 0.0], [-0.3, 1.0, 0.0], [0.0, 1.6, 0.0], [0.0, 0.2, 0.0]])
    turned = layout * (-1.0, 1.0, -1.0)
    unlike = 0.5 * ~np.eye(4, dtype=np.bool_)
    fit = fit_layout(turned, layout[None], unlike=unlike)
    assert dict(zip(fit.markers, fit.numbers, strict=True)) == {marker: marker for marker in range(4)}


@pytest.mark.slow
def test_a_coloured_take_becomes_a_pose(tmp_path):
    """Six colours and three bright markers, through videos that keep colours at half the size of light."""
    motion = before_cameras(performer.act("box", fps=60, seed=5), fps=FPS, seconds=0.8)
    conditions = Conditions(marker_radius=0.022, marker_colours=WORN.lights(NINE))
    sim = simulator_of(motion, front_rig(size=SIZE), conditions=conditions)
    film(sim, tmp_path, empty=0.3)
    prior = LocalPrior.learn([performer.act("box", seconds=2.0, fps=60, seed=1)])
    performance = Performance(prior, sim.layout, skeleton=motion.skeleton, fps=FPS, noise=NOISE)
    cameras = open_cameras(sim.rig, [tmp_path / "camera1.avi", tmp_path / "camera2.avi"])
    take = perform_take(cameras, performance, empty=0.3, colours=WORN)
    assert not take.notes
    assert len(take.frames) == len(motion)
    placed = np.stack([watched.moment.sighting.points for watched in take.watched])
    errors = np.linalg.norm(placed - sim.truth.points, axis=-1)
    assert np.mean(np.isfinite(errors)) > 0.8
    assert np.nanmax(errors) < 0.05
    _, turns = performance.space.frames_from_q(np.stack([frame.q for frame in take.frames]))
    moving = performance.space.moving
    off = rotations.geodesic_distance(turns[:, moving], motion.rotations[:, moving])
    assert np.degrees(off.mean()) < 5


@pytest.mark.slow
def test_the_commands_film_check_and_perform_coloured_markers(tmp_path, capsys):
    write(performer.act("box", seconds=1.0, fps=60, seed=5), tmp_path / "box.bvh")
    hues = ["--hue", "LFIN=red,RFIN=green"]
    options = ["-o", str(tmp_path / "take"), "--fps", "30", "--seconds", "0.6", "--empty", "0.3"]
    assert main(["cameras", "simulate", str(tmp_path / "box.bvh"), *options, *hues]) == 0
    videos = [str(tmp_path / "take" / f"camera{number}.avi") for number in (1, 2)]
    rig = str(tmp_path / "take" / "cams.toml")
    assert main(["cameras", "check", rig, *videos, "--empty", "0.3", *hues]) == 0
    assert main(["learn", str(tmp_path / "box.poise"), "--kind", "local", str(tmp_path / "box.bvh")]) == 0
    both = [word for video in videos for word in ("--video", video)]
    out = tmp_path / "out.bvh"
    line = ["perform", str(tmp_path / "box.poise"), *both, "--cameras", rig, "--empty", "0.3", "-o", str(out)]
    assert main([*line, *hues]) == 0
    assert len(read(out)) >= 16
    capsys.readouterr()
    assert main([*line, "--hue", "LFIN=reddish"]) == 2
    assert "a colour must be red" in capsys.readouterr().err
