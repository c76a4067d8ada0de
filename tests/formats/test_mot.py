"""OpenSim: models are read as OpenSim reads them, scaled to a body, and posed by the coordinates that are written."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import poise
from poise.apps.opensim import BodyAims, aims_of, fitted
from poise.capture.marker_sets import of_model
from poise.capture.matching import match, read_mapping
from poise.errors import InvalidValueError, ParseError, SkeletonError
from poise.formats import mot
from poise.formats.mot import model_skeleton
from poise.formats.osim import OsimModel, placed, read_model
from poise.motion.virtual_markers import placed_spots, virtual_markers
from poise.performer import act
from poise.priors.terms import Unknowns
from poise.solvers.sequence import SequenceSolver

OPENSIM = os.environ.get("POISE_OPENSIM", "")
Z, X, Y = "0 0 1", "1 0 0", "0 1 0"
FREE = [("tilt", Z), ("list", X), ("rotation", Y), ("tx", X), ("ty", Y), ("tz", Z)]
SPLINE = "<SimmSpline><x>0 0.7 1.4 2.1</x><y>0 0.002 0.005 0.006</y></SimmSpline>"


def _coordinate(name: str, span: str = "-3 3", clamped: str = "false") -> str:
    value = 0.95 if name == "pelvis_ty" else 0.0
    return (
        f'<Coordinate name="{name}"><default_value>{value}</default_value><range>{span}</range>'
        f"<clamped>{clamped}</clamped><locked>false</locked></Coordinate>"
    )


def _axis(kind: str, axis: str, name: str, function: str) -> str:
    inside = f"<coordinates>{name}</coordinates><axis>{axis}</axis>{function}"
    return f'<TransformAxis name="{kind}">{inside}</TransformAxis>'


def _custom(names: list[tuple[str, str]], *, shift: str = "") -> tuple[str, str, str]:
    """A CustomJoint's kind, coordinates and axes; `shift` is a coordinate that moves it forwards by a spline."""
    straight = "<LinearFunction><coefficients>1 0</coefficients></LinearFunction>"
    nothing = "<Constant><value>0</value></Constant>"
    kinds = [f"{kind}{k}" for kind in ("rotation", "translation") for k in (1, 2, 3)]
    given = [(axis, name, straight) for name, axis in names]
    given += [(axis, "", nothing) for axis in (Z, X, Y)[len(names) :]]
    given += [(X, shift, SPLINE if shift else nothing), (Y, "", nothing), (Z, "", nothing)]
    axes = (_axis(kind, *one) for kind, one in zip(kinds, given, strict=False))
    coordinates = "".join(_coordinate(name) for name, _ in names)
    return "CustomJoint", coordinates, f"<SpatialTransform>{''.join(axes)}</SpatialTransform>"


def _ball(*names: str) -> tuple[str, str, str]:
    return _custom(list(zip(names, (Z, X, Y), strict=False)))


def _joints() -> list[tuple[str, str, str, tuple[str, str, str]]]:
    """Body, parent, the joint's place in the parent, and the joint."""
    found = [("pelvis", "ground", "0 0 0", _custom([(f"pelvis_{name}", axis) for name, axis in FREE]))]
    for side, sign in (("r", 1.0), ("l", -1.0)):
        found += [
            (
                f"femur_{side}",
                "pelvis",
                f"-0.07 -0.06 {0.08 * sign}",
                _ball(*(f"hip{k}_{side}" for k in "123")),
            ),
            (
                f"tibia_{side}",
                f"femur_{side}",
                "0 -0.41 0",
                _custom([(f"knee_{side}", "0 0 -1")], shift=f"knee_{side}"),
            ),
            (f"talus_{side}", f"tibia_{side}", "0 -0.42 0", _ball(f"ankle_{side}", f"inversion_{side}")),
            (f"toes_{side}", f"talus_{side}", "0.13 -0.04 0", ("PinJoint", _coordinate(f"mtp_{side}"), "")),
        ]
    found.append(("torso", "pelvis", "-0.1 0.08 0", _ball("lumbar1", "lumbar2", "lumbar3")))
    for side, sign in (("r", 1.0), ("l", -1.0)):
        found += [
            (f"humerus_{side}", "torso", f"0 0.37 {0.17 * sign}", _ball(*(f"arm{k}_{side}" for k in "123"))),
            (
                f"ulna_{side}",
                f"humerus_{side}",
                "0 -0.29 0",
                ("PinJoint", _coordinate(f"elbow_{side}", "0 2.6", "true"), ""),
            ),
            (f"hand_{side}", f"ulna_{side}", "0 -0.25 0", ("WeldJoint", "", "")),
        ]
    return found


def _in_4(body: str, parent: str, place: str, joint: tuple[str, str, str]) -> str:
    kind, coordinates, axes = joint
    path = "/ground" if parent == "ground" else f"/bodyset/{parent}"
    inside = "<socket_parent>{1}</socket_parent><translation>{2}</translation>"
    frame = f'<PhysicalOffsetFrame name="{{0}}">{inside}</PhysicalOffsetFrame>'
    frames = frame.format("above", path, place) + frame.format("below", f"/bodyset/{body}", "0 0 0")
    return (
        f'<{kind} name="{body}_joint"><socket_parent_frame>above</socket_parent_frame>'
        f"<socket_child_frame>below</socket_child_frame><coordinates>{coordinates}</coordinates><frames>"
        f"{frames}</frames>{axes}</{kind}>"
    )


def _in_3(body: str, parent: str, place: str, joint: tuple[str, str, str]) -> str:
    kind, coordinates, axes = joint
    return (
        f'<Body name="{body}"><Joint><{kind} name="{body}_joint"><parent_body>{parent}</parent_body>'
        f"<location_in_parent>{place}</location_in_parent><CoordinateSet><objects>{coordinates}</objects></CoordinateSet>"
        f"{axes}</{kind}></Joint></Body>"
    )


@pytest.fixture
def model(tmp_path: Path) -> Path:
    bodies = "".join(
        f'<Body name="{body}"><mass>1</mass><mass_center>0 0 0</mass_center><inertia>1 1 1 0 0 0</inertia></Body>'
        for body, *_ in _joints()
    )
    joints = "".join(_in_4(*one) for one in _joints())
    path = tmp_path / "person.osim"
    path.write_text(
        f'<OpenSimDocument Version="40000"><Model name="person"><BodySet><objects>{bodies}</objects></BodySet>'
        f"<JointSet><objects>{joints}</objects></JointSet></Model></OpenSimDocument>"
    )
    return path


def _some_values(model: OsimModel) -> np.ndarray:
    return model.defaults + np.random.default_rng(1).normal(0.0, 0.4, (3, len(model.coordinates)))


def _written(path: Path) -> tuple[list[str], np.ndarray]:
    lines = path.read_text().splitlines()
    start = lines.index("endheader")
    rows = np.array([[float(cell) for cell in line.split("\t")] for line in lines[start + 2 :]])
    return lines[start + 1].split("\t"), rows


def test_models_of_opensim_3_and_4_put_their_bodies_alike(model: Path, tmp_path: Path) -> None:
    older = tmp_path / "older.osim"
    bodies = "".join(_in_3(*one) for one in _joints())
    older.write_text(
        f'<OpenSimDocument Version="30000"><Model><BodySet><objects>{bodies}</objects></BodySet></Model>'
        "</OpenSimDocument>"
    )
    new, old = read_model(model), read_model(older)
    assert new.bodies == old.bodies
    values = _some_values(new)
    np.testing.assert_array_equal(placed(new, values).centres, placed(old, values).centres)


def test_a_knee_slides_by_its_spline_and_straight_beyond_it(model: Path) -> None:
    found = read_model(model)
    names, bodies = [one.name for one in found.coordinates], found.bodies
    values = np.tile(found.defaults, (3, 1))
    values[:, names.index("knee_r")] = 1.4, 2.1, 2.6
    at = placed(found, values)
    forward = at.centres[:, bodies.index("tibia_r"), 0] - at.centres[:, bodies.index("femur_r"), 0]
    end = 0.7 * np.polyfit([0, 1, 2, 3], [0.0, 0.002, 0.005, 0.006], 3) @ [27.0, 6.0, 1.0, 0.0] / 0.7
    np.testing.assert_allclose(forward[:2], [0.005, 0.006], atol=1e-12)
    np.testing.assert_allclose(forward[2], 0.006 + end * 0.5 / 0.7, atol=1e-12)


def test_a_motion_becomes_coordinates_of_a_scaled_model(model: Path, tmp_path: Path) -> None:
    walk, out = act("walk", seconds=1.0, fps=30), tmp_path / "walk.mot"
    walk.save(out, onto=model)
    labels, rows = _written(out)
    found = read_model(model)
    factors = {
        one.findtext("segment"): np.array((one.findtext("scales") or "").split(), dtype=float)
        for one in ElementTree.parse(tmp_path / "walk_scale.xml").iter("Scale")
    }
    thigh = np.linalg.norm(walk.positions["left_shin"][0] - walk.positions["left_thigh"][0])
    np.testing.assert_allclose(factors["femur_l"] * 0.41, thigh, rtol=1e-3)
    assert labels == ["time", *(one.name for one in found.coordinates)]
    np.testing.assert_allclose(rows[:, 0], np.arange(len(walk)) / 30.0, atol=1e-6)
    scaled = found.scaled(np.array([factors[body] for body in found.bodies]))
    turning = [one.turns for one in found.coordinates]
    at = placed(scaled, np.where(turning, np.radians(rows[:, 1:]), rows[:, 1:]))
    for role, body in (("left_thigh", "femur_l"), ("right_foot", "talus_r"), ("left_hand", "hand_l")):
        apart = np.linalg.norm(at.centres[:, found.bodies.index(body)] - walk.positions[role], axis=-1)
        assert apart.max() < 0.03, (role, apart.max())
    assert np.all(rows[:, labels.index("elbow_r")] >= 0.0)
    assert np.abs(np.diff(rows[:, 1:], axis=0)).max() < 30.0


def test_coordinates_are_read_with_the_model_beside_them(model: Path, tmp_path: Path) -> None:
    turns = 'name="pelvis_rotation"><default_value>0.0</default_value>'  # all the way round
    any_way = model.read_text().replace(
        f"{turns}<range>-3 3</range><clamped>false", f"{turns}<range>-3.1416 3.1416</range><clamped>true"
    )
    model.write_text(any_way)
    act("walk", seconds=0.3, fps=30).save(tmp_path / "person.mot", onto=model)
    read = poise.read(tmp_path / "person.mot")
    opened, (_, rows) = read_model(model), _written(tmp_path / "person.mot")
    turning = [one.turns for one in opened.coordinates]
    at = placed(opened, np.where(turning, np.radians(rows[:, 1:]), rows[:, 1:]))
    assert isinstance(read, poise.Motion)
    assert np.isclose(read.fps, 30.0, rtol=1e-4)
    assert np.abs(rows[:, 1:][:, [one.wraps for one in opened.coordinates]]).max() <= 180.0
    for body, most in (("femur_l", 1e-6), ("hand_r", 1e-6), ("toes_l", 0.007)):  # knees slide by up to 6 mm
        apart = read.positions[body] - at.centres[:, opened.bodies.index(body)]
        assert np.abs(apart).max() < most, (body, np.abs(apart).max())


def test_coordinates_without_their_model_or_rows_say_so(model: Path, tmp_path: Path) -> None:
    alone = tmp_path / "alone.mot"
    alone.write_text("alone\nendheader\ntime\tknee_r\n0\t1\n")
    with pytest.raises(InvalidValueError, match=r"as alone\.osim"):
        poise.read(alone)
    for text in (
        "time\tknee_r\n0\t1\n",
        "endheader\ntime\tknee_r\n0\t1\t2\n",
        "endheader\ntime\tknee_r\n0\tx\n",
    ):
        alone.write_text(text)
        with pytest.raises(ParseError):
            poise.read(alone, model=model)


def test_what_cannot_be_written_says_why(model: Path, tmp_path: Path) -> None:
    walk = act("walk", seconds=0.2, fps=30)
    with pytest.raises(InvalidValueError, match="give its model"):
        walk.save(tmp_path / "walk.mot")
    text = model.read_text()
    for broken, message in (
        (text[:500], "not an OpenSim model"),
        (text.replace("<axis>1 0 0<", "<axis>0 0 0<"), "no length"),
        (text.replace("<range>-3 3<", "<range>-3 inf<"), "expected 2 numbers"),
        (text.replace("WeldJoint", "EllipsoidJoint"), "EllipsoidJoint"),
        (text.replace("SimmSpline", "GCVSpline"), "unsupported kind of function"),
    ):
        model.write_text(broken)
        with pytest.raises(ParseError, match=message):
            walk.save(tmp_path / "walk.mot", onto=model)
    model.write_text(text.replace("talus_", "hoof_"))
    with pytest.raises(SkeletonError, match="lacks the bodies talus_l, talus_r"):
        walk.save(tmp_path / "walk.mot", onto=model)
    assert not (tmp_path / "walk.mot").exists()


def test_a_model_whose_ranges_stop_it_far_from_the_motion_is_an_error(model: Path, tmp_path: Path) -> None:
    fixed = _coordinate("pelvis_tx", "5 6", "true")
    model.write_text(model.read_text().replace(_coordinate("pelvis_tx"), fixed))
    with pytest.raises(SkeletonError, match=r"at an end of their range: .*pelvis_tx"):
        act("walk", seconds=0.2, fps=30).save(tmp_path / "walk.mot", onto=model)


def test_folders_of_motions_pass_over_mot_files(model: Path, tmp_path: Path) -> None:
    act("walk", seconds=0.2, fps=30).save(tmp_path / "walk.bvh")
    act("walk", seconds=0.2, fps=30).save(tmp_path / "walk.mot", onto=model)
    assert [file.name for file in poise.formats.registry.motion_files([tmp_path])] == ["walk.bvh"]


def test_what_a_fit_adds_is_minus_the_gradient_of_its_cost(model: Path) -> None:
    generic, walk = read_model(model), act("walk", seconds=0.2, fps=30)
    rng, start = np.random.default_rng(0), np.tile(generic.defaults, (len(walk), 1))
    solver = SequenceSolver(None, [BodyAims(generic, aims_of(generic, walk), start)])
    x = start[:, generic.free] + 0.1 * rng.normal(size=(len(walk), len(generic.free)))
    system = solver.system(Unknowns.bodiless(x))
    along = np.where(system.held, 0.0, rng.normal(size=x.shape))
    before, after = (solver.cost(Unknowns.bodiless(x + step * along)) for step in (-1e-6, 1e-6))
    assert -np.vdot(system.right, along) == pytest.approx((after - before) / 2e-6, rel=0.02)


@pytest.mark.skipif(not OPENSIM, reason="POISE_OPENSIM does not name a Python with opensim")
def test_opensim_scales_and_poses_the_model_alike(model: Path, tmp_path: Path) -> None:
    walk, out = act("walk", seconds=0.5, fps=30), tmp_path / "walk.mot"
    walk.save(out, onto=model)
    script = Path(__file__).with_name("in_opensim.py")
    ran = subprocess.run(
        [OPENSIM, str(script), str(out)], capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]
    generic = read_model(model)
    fit = fitted(generic.scaled(mot.scale_factors(generic, walk)), walk)
    theirs = json.loads(ran.stdout.splitlines()[-1])
    ours = placed(fit.model, fit.values).centres
    np.testing.assert_allclose(
        [[frame[body] for body in generic.bodies] for frame in theirs], ours, atol=1e-6
    )


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("<value>0</value>", "<value>nan</value>", "got 'nan'"),
        ("0 -0.41 0", "0 -1e300 0", "numbers up to 1e"),
        ("0 0.7 1.4 2.1", "0 0.7 0.7 2.1", "x values of a spline must increase"),
    ],
)
def test_numbers_that_cannot_be_are_refused(model: Path, good: str, bad: str, words: str) -> None:
    model.write_text(model.read_text().replace(good, bad, 1))
    with pytest.raises(ParseError, match=words):
        read_model(model)


WORN = {
    "R.KNE": ("femur_r", "0 -0.41 0.06"), "L.KNE": ("femur_l", "0 -0.41 -0.06"), "L.HEE": ("talus_l", "-0.05 -0.03 0"),
    "R.ASI": ("pelvis", "0.02 0.03 0.12"), "TOP": ("torso", "0.05 0.75 0"), "STRN": ("torso", "0.1 0.3 0"),
    "R.WRA": ("hand_r", "0.02 0 0"), "GROUND": ("ground", "0 0 0"),
}  # fmt: skip


@pytest.mark.parametrize(
    "where", ["<body>{}</body>", "<socket_parent_frame>/bodyset/{}</socket_parent_frame>"]
)
def test_the_markers_of_a_model_are_a_marker_set(model: Path, where: str) -> None:
    with pytest.raises(ParseError, match="the model has no markers"):
        of_model(model)
    markers = "".join(
        f'<Marker name="{label}">{where.format(body)}<location>{place}</location></Marker>'
        for label, (body, place) in WORN.items()
    )
    whole = f"<MarkerSet><objects>{markers}</objects></MarkerSet></Model>"
    model.write_text(model.read_text().replace("</Model>", whole))
    spots = of_model(model)
    assert set(spots) == set(WORN) - {"GROUND"}
    carriers = {label: spot.on[0] for label, spot in spots.items()}
    assert carriers == {
        "R.KNE": "right_thigh", "L.KNE": "left_thigh", "L.HEE": "left_foot", "R.ASI": "pelvis", "TOP": "head",
        "STRN": "chest", "R.WRA": "right_hand",
    }  # fmt: skip
    assert spots["R.KNE"].part == pytest.approx(1.0)
    assert spots["R.KNE"].skin[0] < -0.02
    assert spots["L.KNE"].skin[0] == pytest.approx(-spots["R.KNE"].skin[0])
    own = model_skeleton(read_model(model))  # on the model itself, every marker is where the model has it
    heights = {label: handle.offset for label, handle in placed_spots(own, spots).items()}
    up, forward = np.array(heights["R.KNE"]) @ np.array([[0, 1, 0], [1, 0, 0]]).T
    assert (up, forward) == pytest.approx((-0.41, 0.0), abs=1e-6)
    walk = act("walk", seconds=1.0, fps=30)
    recording = virtual_markers(walk, placed_spots(walk.skeleton, spots, samples=walk.rotations))
    found = match(recording, walk.skeleton, read_mapping(model), samples=walk.rotations, fewest=3)
    assert list(found.layout) == list(recording.labels)
    assert {found.layout[label].joint for label in ("R.KNE", "L.HEE")} == {
        walk.skeleton.roles["right_thigh"], walk.skeleton.roles["left_foot"],
    }  # fmt: skip
    assert "R.KNE on right_thigh, as the mapping says" in found.matched
