"""Every format that is read and written gives back places within 0.1 mm, names, rate and unit, at any size of body."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import poise
from poise.formats.registry import FORMATS
from poise.formats.units import METRES
from poise.geometry import rotations
from poise.motion.markers import Markers
from poise.motion.motion import Motion
from poise.motion.world import joint_positions
from poise.skeleton.skeleton import Skeleton

SIZES = (0.02, 0.3, 1.0, 12.0, 80.0)  # of a person's: an insect, a cat, a giraffe, a whale
UNITS = ("m", "cm", "mm", "inch")
NAMES = ("mixamorig:Hips", "Spine.001", "Head-top", "up", "bip_R_Clavicle", "tail|tip", "out")
MOTIONS = [
    *((".bvh", {"units": unit}) for unit in UNITS),
    (".usda", {"units": "m"}),
    (".usdc", {"units": "cm"}),
    (".usdz", {"units": "m"}),
    (".amc", {}),
    (".glb", {}),
    (".glb", {"mannequin": False}),
]
MARKERS = [(extension, {"units": unit}) for extension in (".c3d", ".trc") for unit in ("m", "cm", "mm")]
ELSEWHERE = {"mot", "amass", "csv", "vrma"}  # for people only: tests/formats/test_mot.py and test_arrays.py
PACKAGES = {".usda": "pxr", ".usdc": "pxr", ".usdz": "pxr", ".c3d": "ezc3d"}


def _motion(size: float) -> Motion:
    offsets = size * np.array(
        [[0, 0, 0], [0, 0.4, 0], [0, 0.3, 0.05], [0, 0.1, 0], [0.2, -0.1, 0], [0.3, 0, 0], [0.1, 0, 0]]
    )
    parents = np.array([-1, 0, 1, 2, 0, 4, 5])
    skeleton = Skeleton(NAMES, parents, offsets, ("ZXY", "ZYX", "XYZ", "", "ZYX", "YXZ", ""))
    generator = np.random.default_rng(1)
    turned = rotations.quaternion_from_expmap(generator.normal(scale=0.5, size=(7, 7, 3)))
    turned[:, skeleton.is_end_site] = rotations.IDENTITY
    roots = size * generator.normal((0.0, 0.9, 0.0), 0.3, size=(7, 3))
    return Motion(skeleton, 48.0, roots, turned)


def _markers(size: float) -> Markers:
    generator = np.random.default_rng(2)
    points = size * (generator.uniform(-0.4, 0.4, (9, 5, 3)) * [1, 2, 1] + [0, 0.9, 0])
    points[2:4, 1] = points[5, 4] = np.nan
    return Markers(("LFHD", "Head 1", "M#7", "a.b-c", "R_TOE"), points, 50.0)


def _check_unit(origin_metres: float, options: dict[str, object]) -> None:
    if "units" in options:
        assert origin_metres == pytest.approx(METRES[str(options["units"])])


def test_every_format_that_is_written_is_here() -> None:
    written = {name for name, known in FORMATS.items() if known.function("write") is not None} - ELSEWHERE
    tried = {
        name
        for name, known in FORMATS.items()
        for extension, _ in [*MOTIONS, *MARKERS]
        if extension in known.extensions
    }
    assert written == tried


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("extension", "options"), MOTIONS)
def test_a_motion_comes_back(tmp_path: Path, extension: str, options: dict[str, object], size: float) -> None:
    pytest.importorskip(PACKAGES.get(extension, "numpy"))
    motion = _motion(size)
    found = poise.read(poise.write(motion, tmp_path / f"clip{extension}", **options))
    assert isinstance(found, Motion)
    named = ~motion.skeleton.is_end_site  # the names of end sites are not part of every format
    assert np.array(found.skeleton.names)[named].tolist() == np.array(NAMES)[named].tolist()
    np.testing.assert_array_equal(found.skeleton.parents, motion.skeleton.parents)
    assert (len(found), found.fps) == (len(motion), motion.fps)
    assert np.abs(joint_positions(found) - joint_positions(motion)).max() < 1e-4 * min(size, 1.0)
    _check_unit(found.origin.metres_per_unit, options)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("extension", "options"), MARKERS)
def test_markers_come_back(tmp_path: Path, extension: str, options: dict[str, object], size: float) -> None:
    pytest.importorskip(PACKAGES.get(extension, "numpy"))
    markers = _markers(size)
    found = poise.read(poise.write(markers, tmp_path / f"take{extension}", **options))
    assert isinstance(found, Markers)
    assert (found.labels, found.fps) == (markers.labels, markers.fps)
    np.testing.assert_allclose(found.points, markers.points, atol=1e-4 * min(size, 1.0), rtol=0)
    _check_unit(found.origin.metres_per_unit, options)
