"""Every constraint's Jacobian against finite differences, and every wrong number refused with words."""

import numpy as np
import pytest

from poise.errors import InvalidValueError, UnknownNameError
from poise.geometry import rotations
from poise.geometry.cameras import Camera
from poise.skeleton.clearance import apart
from poise.skeleton.pose_space import Handle, PoseSpace
from poise.solvers.constraints import (
    Apart,
    CentreOfMass,
    Constraint,
    Distance,
    HalfSpace,
    Line,
    LookAt,
    Orientation,
    Pinned,
    Plane,
    Position,
    Projection,
    floor,
    transform,
)
from poise.solvers.problem import Problem

HAND = Handle("left_hand", (0.02, 0.05, -0.03))


def _gap(space: PoseSpace, q: np.ndarray) -> float:
    """The distance of the left forearm from the right thigh."""
    at = space.pose_from_q(q).positions
    ends = [at[joint][None] for joint in ("left_forearm", "left_hand", "right_thigh", "right_shin")]
    return float(apart(*ends)[0])


def met_constraints(space: PoseSpace, q: np.ndarray) -> dict[str, Constraint]:
    """One constraint of each kind that the pose q meets exactly."""
    handles = space.handles([HAND, "right_foot", "head"])
    (hand, foot, head), _ = space.handle_positions(q, handles)
    turns, _ = space.handle_orientations(q, handles)
    centre, _ = space.centre_of_mass(q)
    camera = Camera.looking_at((0.0, 1.0, 0.0), eye=(1.0, 1.5, 4.0))
    pixel = camera.project(hand)
    return {
        "position": Position(HAND, hand),
        "orientation": Orientation("left_hand", rotations.quaternion_from_matrix(turns[0])),
        "line": Line(HAND, hand - np.array([0.3, 0.1, 0.2]), (0.3, 0.1, 0.2)),
        "plane": Plane(HAND, hand, (0.2, 1.0, -0.4)),
        "half space": HalfSpace("right_foot", foot, (0.1, 1.0, 0.0)),
        "projection in metres": Projection(HAND, camera, pixel),
        "projection in pixels": Projection(HAND, camera, pixel, tolerance=2.0),
        "look-at": LookAt("head", head + 2.0 * turns[2] @ np.array([0.0, 0.6, 0.8]), (0.0, 0.6, 0.8)),
        "distance": Distance(HAND, "right_foot", float(np.linalg.norm(hand - foot))),
        "apart": Apart("left_forearm", "right_thigh", _gap(space, q)),
        "centre of mass": CentreOfMass([(centre[0], centre[2])]),
        "support": CentreOfMass([(centre[0] + x, centre[2] + z) for x, z in ((0, -1), (1, 1), (-1, 1))]),
        "pinned": Pinned(["LeftArm", "Spine1"], q, tolerance=0.1),
    }


KINDS = (
    "position", "orientation", "line", "plane", "half space", "projection in metres", "projection in pixels", "look-at",
    "distance", "apart", "centre of mass", "support", "pinned",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_jacobians_meet_finite_differences(space: PoseSpace, pose_vectors: np.ndarray, kind: str) -> None:
    q = pose_vectors[17]
    problem = Problem(space, [met_constraints(space, q)[kind]])
    errors, jacobian = problem.errors(q)
    if kind not in ("line", "support"):  # the ray and the polygon have rows that hold with room to spare
        np.testing.assert_allclose(errors, 0.0, atol=1e-9)
    step = 1e-6
    columns = []
    for direction in np.eye(space.freedoms) * step:
        ahead, behind = (
            problem.errors(space.integrate(q, direction))[0],
            problem.errors(space.integrate(q, -direction))[0],
        )
        columns.append((behind - ahead) / (2 * step))  # an error shrinks as its measure grows
    scale = max(1.0, float(np.abs(jacobian).max()))
    np.testing.assert_allclose(jacobian, np.stack(columns, axis=1), atol=2e-6 * scale)


def test_errors_say_what_is_missing(space: PoseSpace, pose_vectors: np.ndarray) -> None:
    q = pose_vectors[3]
    (hand,), _ = space.handle_positions(q, space.handles([HAND]))
    errors, _ = Problem(space, [Position(HAND, np.add(hand, (0.1, -0.2, 0.3)))]).errors(q)
    np.testing.assert_allclose(errors, (0.1, -0.2, 0.3), atol=1e-12)
    (turn,), _ = space.handle_orientations(q, space.handles([HAND]))
    half_turn = rotations.quaternion_from_matrix(np.diag([1.0, -1.0, -1.0]) @ turn)
    errors, _ = Problem(space, [Orientation(HAND, half_turn)]).errors(q)
    assert np.linalg.norm(errors) == pytest.approx(np.pi)


def test_transform_is_a_position_and_an_orientation() -> None:
    both = transform("left_hand", (0.0, 1.0, 0.0), (1.0, 0.0, 0.0, 0.0), priority=2)
    assert [type(c) for c in both] == [Position, Orientation]
    assert all(c.priority == 2 for c in both)


def test_floor_holds_every_handle_above() -> None:
    assert [c.label for c in floor(["left_foot", "right_foot"])] == [
        "halfspace of left_foot",
        "halfspace of right_foot",
    ]


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (
            Position("left_hand", (0.0, np.nan, 0.0)),
            r"position of left_hand: target must be finite; got \[0.0, nan, 0.0\]",
        ),
        (Position("left_hand", (0.0, 1.0)), r"target must be 3 numbers; got shape \(2,\)"),
        (Position("left_hand", (0, 0, 0), tolerance=0.0), "tolerance of 0 is a hard constraint"),
        (
            Position("left_hand", (0, 0, 0), tolerance=-1.0),
            "tolerance must be a finite number >= 0; got -1.0",
        ),
        (
            Position("left_hand", (0, 0, 0), tolerance=0.1, weight=2.0),
            "give a tolerance or a weight, not both",
        ),
        (Position("left_hand", (0, 0, 0), weight=np.inf), "weight must be a finite number >= 0; got inf"),
        (Line("left_hand", (0, 0, 0), (0, 0, 0)), "a direction must not be zero"),
        (Distance("left_hand", "head", -0.5), "distance must be a finite number >= 0; got -0.5"),
        (CentreOfMass([(0, 0), (1, 1)]), "a support is one point or a polygon of three or more"),
    ],
)
def test_wrong_numbers_are_refused_before_solving(
    space: PoseSpace, constraint: Constraint, message: str
) -> None:
    with pytest.raises(InvalidValueError, match=message):
        Problem(space, [constraint])


def test_unknown_handles_suggest_close_names(space: PoseSpace) -> None:
    with pytest.raises(UnknownNameError, match="did you mean LeftHand"):
        Problem(space, [Position("LeftHnd", (0, 0, 0))])


HAND_AT = (0.3, 1.2, 0.3)


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        (Position(Handle("left_hand", (np.nan, 0, 0)), HAND_AT), "the handle's offset must be finite"),
        (Distance("head", Handle("left_hand", (0, np.inf, 0)), 0.5), "other handle's offset must be finite"),
        (Position("left_hand", (1e5, 0, 0)), "target must be within 10,000 of zero"),
        (Apart("left_forearm", "head", np.inf), "distance must be finite"),
        (Distance("left_hand", "head", 1e30), "distance must be within 10,000"),
        (
            Position("left_hand", HAND_AT, tolerance=1e200),
            "tolerance must be between 1e-06 and 1e[+]06; got 1e[+]200",
        ),
        (Position("left_hand", HAND_AT, weight=1e-320), "weight must be between 1e-12 and 1e[+]12"),
        (
            Position("left_hand", HAND_AT, priority=10**9),
            "priority must be a whole number between -1000 and 1000",
        ),
        (Position("left_hand", HAND_AT, priority=0.5), "priority must be a whole number"),  # type: ignore[arg-type]
        (
            Projection("head", Camera(np.full((3, 3), np.nan), np.eye(3), np.ones(3)), (0, 0)),
            "the camera's matrix must be finite",
        ),
    ],
)
def test_implausible_numbers_are_refused_before_solving(
    space: PoseSpace, constraint: Constraint, message: str
) -> None:
    with pytest.raises(InvalidValueError, match=message):
        Problem(space, [constraint])


def test_more_priorities_than_can_be_told_apart_are_refused(space: PoseSpace) -> None:
    with pytest.raises(InvalidValueError, match="16 different priorities; got 17"):
        Problem(space, [Position("left_hand", HAND_AT, priority=level) for level in range(17)])


def test_handles_with_offsets_that_are_not_finite_are_refused(space: PoseSpace) -> None:
    with pytest.raises(InvalidValueError, match="offset must be finite"):
        space.handles([Handle("left_hand", (np.nan, 0.0, 0.0))])


def test_a_constraint_of_two_conditions_is_met_when_both_are_as_the_status_says(space: PoseSpace) -> None:
    problem = Problem(space, [CentreOfMass([(0.0, 0.0)])])
    (near,) = problem.residuals(np.array([0.9e-3, 0.9e-3]))
    (far,) = problem.residuals(np.array([0.9e-3, 1.1e-3]))
    assert (near.met, far.met) == (True, False)
    assert near.value == pytest.approx(np.hypot(0.9e-3, 0.9e-3))
