"""The continuous skin: closed, close to the mannequin, and bent by the joints that it follows."""

import numpy as np

from poise.performer.bodies import Body
from poise.pictures.mannequin import build_mannequin
from poise.pictures.skin import skin_of, surface
from poise.skeleton.skeleton import Skeleton

SKELETON = Body().skeleton
MANNEQUIN = build_mannequin(SKELETON)
SKIN = skin_of(MANNEQUIN, SKELETON, None)


def test_a_ball_of_distances_becomes_a_closed_ball() -> None:
    at = np.stack(np.meshgrid(*[np.arange(20.0)] * 3, indexing="ij"), axis=-1)
    points, triangles = surface(np.linalg.norm(at - 9.4, axis=-1) - 6.0)
    np.testing.assert_allclose(np.linalg.norm(points - 9.4, axis=1), 6.0, atol=0.15)
    edges = np.sort(
        np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), axis=1
    )
    assert set(np.unique(edges, axis=0, return_counts=True)[1]) == {2}
    a, b, c = points[triangles].transpose(1, 0, 2)
    assert np.einsum("ti,ti->t", np.cross(b - a, c - a), (a + b + c) / 3 - 9.4).min() > 0  # outwards


def bound(turns: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The skin where the joints are, by linear blending."""
    own = np.einsum("jab,jbc->jac", turns, SKIN.inverses)
    own[..., 3] += places
    matrices = np.einsum("vk,vkab->vab", SKIN.weights, own[SKIN.joints])
    return np.einsum("vab,vb->va", matrices[..., :3], SKIN.vertices) + matrices[..., 3]


def test_the_skin_lies_close_to_the_parts() -> None:
    np.testing.assert_allclose(SKIN.weights.sum(axis=1), 1.0)
    turns = np.linalg.inv(SKIN.inverses[..., :3])
    joints = -np.einsum("jab,jb->ja", turns, SKIN.inverses[..., 3])
    np.testing.assert_allclose(bound(turns, joints), SKIN.vertices, atol=1e-9)  # where it was made
    parts, _ = MANNEQUIN.posed(joints, turns)
    np.testing.assert_allclose(SKIN.vertices.min(axis=0), parts.min(axis=0), atol=0.03)
    np.testing.assert_allclose(SKIN.vertices.max(axis=0), parts.max(axis=0), atol=0.03)


def test_a_bent_elbow_moves_the_forearm_and_nothing_of_the_trunk() -> None:
    turns = np.linalg.inv(SKIN.inverses[..., :3])
    joints = -np.einsum("jab,jb->ja", turns, SKIN.inverses[..., 3])
    elbow = SKELETON.index("left_forearm")
    bend = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
    moved = turns.copy()
    moved[elbow] = bend @ turns[elbow]
    away = np.linalg.norm(bound(moved, joints) - SKIN.vertices, axis=1)
    far = np.linalg.norm(SKIN.vertices - joints[elbow], axis=1) > 0.35
    follows = (SKIN.joints == elbow) & (SKIN.weights > 1e-3)
    assert away[~follows.any(axis=1)].max() < 1e-2
    assert away.max() > 0.1
    assert away[far & (SKIN.vertices[:, 0] < joints[elbow, 0] - 0.35)].max() < 1e-6


def test_a_creature_keeps_its_parts() -> None:
    creature = Skeleton(
        ("a", "b", "c"), np.array([-1, 0, 1]), np.array([[0.0, 0, 0], [0, 0.3, 0], [0, 0.3, 0]])
    )
    body = build_mannequin(creature)
    skin = skin_of(body, creature, None)
    np.testing.assert_array_equal(skin.vertices, body.vertices)
    np.testing.assert_array_equal(skin.joints[:, 0], body.joints)
    np.testing.assert_array_equal(skin.weights[:, 0], 1.0)
