"""The mannequin: a sensible closed body for any skeleton, its sides told apart, its soles where the floor is."""

import numpy as np
import pytest

from bodies import HEIGHT, bone_aligned_axes, person, stepping, with_other_axes
from poise.formats import read
from poise.geometry import rotations
from poise.pictures.lofts import axes, ball, egg, loft, smooth_curve
from poise.pictures.mannequin import TONES, build_mannequin
from poise.skeleton import Skeleton
from poise.skeleton.kinematics import world_transforms
from real_data import recordings


def resting(skeleton):
    """The mannequin of the rest pose, with its vertices in the world."""
    mannequin = build_mannequin(skeleton)
    turns = np.tile(rotations.IDENTITY, (len(skeleton), 1))
    vertices, normals = mannequin.posed(*world_transforms(skeleton, skeleton.offsets[0], turns))
    return mannequin, vertices, normals


def volume(vertices, triangles):
    """The volume inside a closed surface: positive when its triangles run counter-clockwise seen from outside."""
    a, b, c = vertices[triangles].transpose(1, 0, 2)
    return float(np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0)


def of_tone(mannequin, tone):
    return mannequin.tones == list(TONES).index(tone)


def test_solids_enclose_their_volume_with_normals_outwards():
    sphere = ball(np.array([1.0, 2.0, 3.0]), 0.5, sides=32)
    assert volume(sphere.vertices - [1.0, 2.0, 3.0], sphere.triangles) == pytest.approx(np.pi / 6, rel=0.06)
    outwards = np.einsum("ij,ij->i", sphere.vertices - [1.0, 2.0, 3.0], sphere.normals)
    assert np.all(outwards > 0.45)


def test_every_edge_of_a_solid_belongs_to_two_triangles():
    place = axes(np.zeros(3), np.array([0.0, 0.0, 2.0]), np.array([1.0, 0.0, 0.0]))
    profile = np.array([[0.0, 0.2, 0.1, 0.0], [0.5, 0.3, 0.2, 0.05], [1.0, 0.1, 0.1, 0.0]])
    for solid in (loft(profile, place), egg(place, profile, height=1.0)):
        edges = np.sort(solid.triangles[:, [0, 1, 1, 2, 2, 0]].reshape(-1, 2), axis=-1)
        assert np.all(np.unique(edges, axis=0, return_counts=True)[1] == 2)
        assert volume(solid.vertices, solid.triangles) > 0.0


def test_a_smooth_curve_goes_through_its_knots_and_keeps_straight_lines_straight():
    knots = np.array([0.0, 0.3, 0.5, 1.0])
    assert smooth_curve(knots, knots, knots**2) == pytest.approx(knots**2)
    between = np.linspace(0.0, 1.0, 20)
    assert smooth_curve(between, knots, 2.0 * knots + 1.0) == pytest.approx(2.0 * between + 1.0)


def test_a_standing_person_is_as_tall_as_the_skeleton_says_and_stands_on_soles():
    skeleton = person()
    mannequin, vertices, _ = resting(skeleton)
    assert np.ptp(vertices[:, 1]) == pytest.approx(HEIGHT, abs=0.08)
    assert vertices[:, 1].min() == pytest.approx(0.0, abs=0.03)
    soles = vertices[vertices[:, 1] < vertices[:, 1].min() + 0.01]
    assert np.ptp(soles[:, 2]) > 0.15  # flat from heel to toes
    assert soles[:, 2].max() > 0.15 > -soles[:, 2].min()  # toes ahead, heels behind
    assert {skeleton.index("left_toes"), skeleton.index("right_toes")} <= set(mannequin.joints.tolist())


def test_left_and_right_have_their_own_tones_on_their_own_sides_and_mirror_each_other():
    mannequin, vertices, _ = resting(person())
    left, right = vertices[of_tone(mannequin, "left")], vertices[of_tone(mannequin, "right")]
    assert left[:, 0].min() > -0.02
    assert right[:, 0].max() < 0.02
    assert left[:, 0].max() == pytest.approx(-right[:, 0].min(), abs=1e-9)
    assert np.abs(vertices[of_tone(mannequin, "centre"), 0]).max() < 0.25


def test_the_nose_points_where_the_body_faces():
    mannequin, vertices, _ = resting(person())
    head = mannequin.joints == person().index("head")
    nose = vertices[head & of_tone(mannequin, "centre joint")]
    assert nose[:, 2].min() > vertices[head & of_tone(mannequin, "centre"), 2].mean()


def test_the_same_body_comes_out_whatever_the_axes_of_its_rest_pose():
    walk = stepping(person(), seconds=1.0)
    turned = with_other_axes(walk, bone_aligned_axes(walk.skeleton))
    shapes = []
    for motion in (walk, turned):
        mannequin = build_mannequin(motion.skeleton, rotations=motion.rotations)
        positions, matrices = world_transforms(motion.skeleton, motion.root_positions[0], motion.rotations[0])
        shapes.append(mannequin.posed(positions, matrices)[0])
    assert np.ptp(shapes[1], axis=0) == pytest.approx(np.ptp(shapes[0], axis=0), abs=0.02)
    assert shapes[1].min(axis=0) == pytest.approx(shapes[0].min(axis=0), abs=0.02)


def test_parts_move_rigidly_with_their_joint():
    motion = stepping(person(), seconds=0.5)
    mannequin = build_mannequin(motion.skeleton, rotations=motion.rotations)
    positions, matrices = world_transforms(motion.skeleton, motion.root_positions, motion.rotations)
    shin = mannequin.joints == motion.skeleton.index("left_shin")
    first, later = (mannequin.posed(positions[f], matrices[f])[0][shin] for f in (0, 20))
    joint = motion.skeleton.index("left_shin")
    carried = (first - positions[0, joint]) @ matrices[0, joint] @ matrices[20, joint].T + positions[
        20, joint
    ]
    assert later == pytest.approx(carried, abs=1e-12)


def test_a_creature_without_roles_gets_plain_limbs_and_no_bone_of_zero_length():
    snake = Skeleton(
        ("a", "b", "c", "d", "d_end"),
        np.array([-1, 0, 1, 2, 3]),
        np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.3], [0.0, 0.0, 0.0], [0.0, 0.0, 0.3], [0.0, 0.0, 0.2]]),
    )
    mannequin, vertices, normals = resting(snake)
    assert set(mannequin.joints.tolist()) == {0, 2, 3}
    assert np.ptp(vertices[:, 2]) == pytest.approx(0.8, abs=0.1)
    assert np.linalg.norm(normals, axis=-1) == pytest.approx(np.ones(len(normals)), abs=1e-6)


def test_a_single_joint_still_shows():
    mannequin, _, _ = resting(Skeleton(("only",), np.array([-1]), np.zeros((1, 3))))
    assert len(mannequin.triangles) > 0


def test_real_hands_have_fingers_and_a_palm():
    body = person()
    names, parents, offsets = list(body.names), body.parents.tolist(), body.offsets.tolist()
    hand = body.index("left_hand")
    for finger, across in (("Index", 0.02), ("Middle", 0.0), ("Ring", -0.02)):
        for number, length in enumerate((0.09, 0.03, 0.025)):
            parents.append(hand if number == 0 else len(names) - 1)
            offsets.append([length, 0.0, across if number == 0 else 0.0])
            names.append(f"LeftHand{finger}{number}")
    skeleton = Skeleton(tuple(names), np.array(parents), np.array(offsets))
    mannequin, _, _ = resting(skeleton)
    assert set(range(len(body), len(skeleton))) & set(mannequin.joints.tolist())


def test_every_kind_of_real_skeleton_is_a_person():
    for path in (recordings("cmu")[0], recordings("bandai")[0]):
        motion = read(path)
        mannequin = build_mannequin(motion.skeleton, rotations=motion.rotations)
        vertices, _ = mannequin.posed(
            *world_transforms(motion.skeleton, motion.root_positions[0], motion.rotations[0])
        )
        assert 1.2 < np.ptp(vertices[:, 1]) < 2.1
        assert np.ptp(vertices[:, [0, 2]], axis=0).max() < 2.0
        assert abs(vertices[:, 1].min()) < 0.15
