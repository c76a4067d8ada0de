"""Virtual markers: the 41-marker set sits on the body, moves with it, and matches real markers on the legs."""

import numpy as np
import pytest

import poise
from bodies import HEIGHT, bone_aligned_axes, moving, person, with_other_axes
from poise.errors import SkeletonError, UnknownNameError
from poise.motion import joint_positions, joint_transforms, mirror
from poise.motion.virtual_markers import OPTICAL_LABELS, optical_layout, virtual_markers
from poise.skeleton import Skeleton
from poise.skeleton.pose_space import Handle
from real_data import recording

BODY = person()
REST = moving(BODY, frames=1, size=0.0)


def test_there_are_41_with_their_names():
    markers = virtual_markers(moving(BODY))
    assert markers.labels == OPTICAL_LABELS
    assert len(set(markers.labels)) == 41
    assert markers.points.shape == (60, 41, 3)
    assert markers.fps == 60.0
    assert np.all(np.isfinite(markers.points))


def at_rest(label):
    return virtual_markers(REST).points[0][OPTICAL_LABELS.index(label)] - REST.root_positions[0]


def test_markers_are_where_their_names_say():
    assert at_rest("LFHD")[2] > 0 > at_rest("LBHD")[2]
    assert at_rest("LFHD")[0] > 0 > at_rest("RFHD")[0]
    assert at_rest("C7")[2] < 0 < at_rest("CLAV")[2]
    assert at_rest("STRN")[2] > 0 > at_rest("T10")[2]
    assert at_rest("RBAC")[0] < 0
    assert at_rest("LFWT")[2] > 0 > at_rest("LBWT")[2]
    assert at_rest("LTOE")[2] > at_rest("LANK")[2] > at_rest("LHEE")[2]
    assert at_rest("LMT5")[0] > at_rest("LTOE")[0]
    assert at_rest("LFIN")[0] > at_rest("LWRA")[0] > at_rest("LELB")[0] > at_rest("LSHO")[0]
    assert at_rest("LWRA")[2] > at_rest("LWRB")[2]  # palms down, the thumb is ahead
    heights = [at_rest(label)[1] for label in ("LFHD", "C7", "LFWT", "LTHI", "LKNE", "LSHN", "LANK", "LHEE")]
    assert heights == sorted(heights, reverse=True)


def test_markers_are_on_the_skin_not_far_from_a_bone():
    joints, markers = joint_positions(REST)[0], virtual_markers(REST).points[0]
    starts, ends = joints[BODY.parents[1:]], joints[1:]
    along = ends - starts
    part = np.clip(np.einsum("mbi,bi->mb", markers[:, None] - starts, along) / np.sum(along**2, -1), 0.0, 1.0)
    nearest = np.linalg.norm(markers[:, None] - (starts + part[..., None] * along), axis=-1).min(axis=-1)
    assert np.all(nearest > 0.003 * HEIGHT)
    assert np.all(nearest < 0.10 * HEIGHT)


def test_each_marker_is_fixed_to_its_joint():
    motion = moving(BODY, size=0.8)
    points = virtual_markers(motion).points
    positions, world = joint_transforms(motion)
    for number, handle in enumerate(optical_layout(BODY).values()):
        joint = BODY.index(handle.joint)
        local = np.einsum("fba,fb->fa", world[:, joint], points[:, number] - positions[:, joint])
        np.testing.assert_allclose(local, np.tile(handle.offset, (len(motion), 1)), atol=1e-9)


def test_a_rig_with_other_axes_has_its_markers_in_the_same_places():
    motion = moving(BODY, frames=100, size=0.3)
    rig = with_other_axes(motion, bone_aligned_axes(BODY))
    apart = np.linalg.norm(virtual_markers(rig).points - virtual_markers(motion).points, axis=-1)
    assert apart.max() < 0.04


def test_mirrored_motion_has_mirrored_markers():
    motion = moving(BODY)
    ours, theirs = virtual_markers(motion), virtual_markers(mirror(motion))
    swap = [label if label in ("C7", "T10", "CLAV", "STRN", "RBAC") else "RL"["LR".index(label[0])] + label[1:]
            for label in OPTICAL_LABELS]  # fmt: skip
    order = [OPTICAL_LABELS.index(label) for label in swap]
    same = [
        n for n, label in enumerate(OPTICAL_LABELS) if label[1:] not in ("BAC", "THI", "SHN")
    ]  # set unevenly
    np.testing.assert_allclose(
        theirs.points[:, same], (ours.points[:, order] * [-1, 1, 1])[:, same], atol=1e-6
    )


def test_named_handles_are_joints_and_points_on_them():
    motion = moving(BODY)
    layout = {
        "head": Handle("head"),
        "left_hand": Handle("left_hand"),
        "fingertip": Handle("left_hand", (0.18, 0.0, 0.0)),
    }
    markers = virtual_markers(motion, layout)
    assert markers.labels == ("head", "left_hand", "fingertip")
    positions = joint_positions(motion)
    np.testing.assert_allclose(markers.points[:, 0], positions[:, BODY.index("head")], atol=1e-12)
    np.testing.assert_allclose(markers.points[:, 2], positions[:, BODY.index("left_hand_end")], atol=1e-12)


def test_unknown_handles_suggest_and_missing_roles_are_named():
    with pytest.raises(UnknownNameError, match="left_hand"):
        virtual_markers(moving(BODY), {"hand": Handle("left_hnad")})
    with pytest.raises(SkeletonError, match="LFHD needs the role 'head'"):
        virtual_markers(moving(Skeleton(("a", "b"), np.array([-1, 0]), np.eye(3)[:2])))


def test_real_leg_markers_are_where_the_virtual_ones_are():
    motion, real = (
        poise.read(recording("optical", "135_02.bvh")),
        poise.read(recording("optical", "135_02.c3d")),
    )
    virtual = virtual_markers(motion)
    labels = [label.split(":")[-1] for label in real.labels]
    for side in "LR":
        for name in ("KNE", "SHN", "ANK", "HEE", "TOE", "MT5", "THI"):
            seen = real.points[:, labels.index(side + name)]
            placed = virtual.points[: len(seen), virtual.index(side + name)]
            apart = np.nanmedian(np.linalg.norm(seen[: len(placed)] - placed, axis=-1))
            assert apart < 0.06, f"{side}{name}: {apart:.3f} m"
