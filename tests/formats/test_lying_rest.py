"""BVH whose rest pose stands along Z, as Blender and MakeHuman write it, in decimetres."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import poise
from poise.capture.markers import check_fit
from poise.errors import InvalidValueError
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.performer import Body
from poise.skeleton.skeleton import Skeleton

FROM_Y_UP = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])


def _lying(tmp_path: Path, *, legs: float = 1.0) -> Path:
    """A body that stands along Z, with its legs turned up where `legs` is -1."""
    body = Body().skeleton
    offsets = body.offsets @ FROM_Y_UP.T
    below = [joint for joint, name in enumerate(body.names) if any(w in name for w in ("Leg", "Foot", "Toe"))]
    offsets[below] *= [1.0, 1.0, legs]
    skeleton = Skeleton(body.names, body.parents, offsets, body.orders)
    turns = np.tile(rotations.IDENTITY, (3, len(body), 1))
    file = tmp_path / "lying.bvh"
    poise.write(Motion(skeleton, 30.0, np.zeros((3, 3)), turns), file, units="dm")
    return file


def test_a_body_whose_rest_pose_stands_along_z_is_stood_up(tmp_path: Path) -> None:
    motion = poise.read(_lying(tmp_path), keep_first=True)
    assert isinstance(motion, Motion)
    assert motion.origin.notes == ("+Z is up: the body stands along it",)
    assert motion.origin.units == "dm"
    assert motion.positions["head"][0, 1] - motion.positions["left_foot"][0, 1] > 1.2
    assert motion.origin.warnings == ()


def test_a_body_whose_legs_do_not_go_down_along_z_is_left_as_it_is(tmp_path: Path) -> None:
    motion = poise.read(_lying(tmp_path, legs=-1.0), keep_first=True)
    assert motion.origin.notes == ()


def test_a_bad_fit_is_an_error_that_says_what_to_check() -> None:
    check_fit(0.025, "take.c3d")
    for rms in (0.0251, np.nan):
        with pytest.raises(
            InvalidValueError, match=r"take\.c3d: the body does not fit .* left and right are swapped"
        ):
            check_fit(rms, "take.c3d")
