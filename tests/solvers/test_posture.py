"""One posture for every door: the same handles give the same body."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from poise.apps.keyframing import keyframe
from poise.apps.posing import pose
from poise.apps.serving import ServedCharacter
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton import Skeleton
from poise.skeleton.neutral import neutral_pose
from poise.skeleton.skeleton import Pose, Positions
from poise.solvers import bearing
from poise.solvers.constraints import LookAt, Orientation, Position
from poise.solvers.posture import BARE, Manner, Posture, as_recorded, plan_of
from poise.studio.autosave import Autosave
from poise.studio.messages import SceneHandle
from poise.studio.models import ModelStore
from poise.studio.session import Session
from poise.studio.solving import HEADING, Poser
from poise.studio.uploads import Uploads

Handles = dict[str, tuple[float, float, float]]
FEET = {"left_foot": (0.12, 0.1, 0.0), "right_foot": (-0.12, 0.1, 0.15)}
USUAL = Manner()
SCENES: dict[str, Handles] = {
    "a hand": {"right_hand": (-0.3, 1.4, 0.4)},
    "a low hand": {"left_hand": (0.5, 0.3, 0.5)},
    "a hand out of reach": {"right_hand": (-0.2, 2.6, 0.2)},
    "a lifted foot": {"left_foot": (0.15, 0.5, 0.3)},
    "feet and a hand": {**FEET, "left_hand": (0.2, 1.2, 0.9)},
    "hands and head": {"left_hand": (0.4, 1.2, 0.3), "right_hand": (-0.4, 1.0, 0.3), "head": (0.0, 1.5, 0.1)},
    "five": {**FEET, "left_hand": (0.5, 1.2, 0.2), "right_hand": (-0.3, 1.0, 0.4), "head": (0.05, 1.6, 0.0)},
}


@pytest.fixture(scope="module")
def people() -> UniversalPrior:
    return UniversalPrior()


@pytest.fixture
def session(people: UniversalPrior, tmp_path: Path) -> Iterator[Session]:
    models, uploads, autosave = ModelStore(), Uploads(), Autosave(tmp_path)
    models.add(people, "people")
    session = Session(models, uploads, autosave)
    yield session
    session.close()
    autosave.close()
    uploads.close()


def served(skeleton: Skeleton, handles: Handles) -> Pose:
    """The second pose of a conversation: what was posed before does not matter."""
    rest, character = Pose.rest(skeleton), ServedCharacter()
    parents = [skeleton.names[parent] if parent >= 0 else None for parent in skeleton.parents]
    bones = [
        {"name": name, "parent": parent, "head": rest.positions[name].tolist()}
        for name, parent in zip(skeleton.names, parents, strict=True)
    ]
    for message in ({"open": bones}, {"pose": {"head": (0.5, 1.2, 0.5)}}, {"pose": handles}):
        answer = character.answer(json.dumps(message).encode())
        assert "error" not in answer
    turns = np.array([answer["turns"][name] for name in skeleton.names])
    return Pose(skeleton, np.array(answer["place"]), turns)


def in_the_studio(session: Session, handles: Handles) -> Pose:
    found = tuple(
        SceneHandle(id=joint, joint=joint, position=at, pinned=True) for joint, at in handles.items()
    )
    facing = (
        {HEADING: (0.0, 0.0, 1.0)} if len({joint[:4] for joint in handles} & {"left", "righ"}) < 2 else {}
    )
    state = session.state.with_(handles=found, feet="above", anchors=facing)
    return Poser(session.models).solve(state, afresh=True).placed.pose


def keyed(prior: UniversalPrior, handles: Handles, folder: Path) -> Pose:
    keys = "".join(
        f"[handles.{joint}]\nkeys = [{{ time = 0.5, at = {list(at)} }}]\n" for joint, at in handles.items()
    )
    (folder / "script.toml").write_text(f"duration = 1.0\nfps = 10\nfloor = true\n{keys}")
    made = keyframe(prior, folder / "script.toml").motion
    np.testing.assert_array_equal(made.rotations[0], made.rotations[-1])
    return made[5]


@pytest.mark.parametrize("handles", SCENES.values(), ids=SCENES.keys())
def test_the_same_handles_give_the_same_body_through_every_door(
    handles: Handles, people: UniversalPrior, session: Session, tmp_path: Path
) -> None:
    expected = np.asarray(pose(handles, people).positions)
    doors = {
        "serve": served(people.space.skeleton, handles),
        "studio": in_the_studio(session, handles),
        "keyframes": keyed(people, handles, tmp_path),
    }
    off = {door: np.linalg.norm(found.positions - expected, axis=1).max() for door, found in doors.items()}
    assert max(off.values()) < 1e-4, off


def test_where_the_body_is_does_not_matter(people: UniversalPrior) -> None:
    near = np.asarray(pose(SCENES["a hand"], people).positions)
    moved = {joint: (x + 30.0, y, z - 20.0) for joint, (x, y, z) in SCENES["a hand"].items()}
    far = np.asarray(pose(moved, people).positions) - (30.0, 0.0, -20.0)
    assert np.linalg.norm(far - near, axis=1).max() < 0.01


def test_what_handles_say_comes_before_the_defaults(people: UniversalPrior) -> None:
    skeleton, turn = people.space.skeleton, (1.0, 0.0, 0.0, 0.0)

    def defaults(*asked: Position | Orientation | LookAt, manner: Manner = USUAL) -> set[str]:
        return {one.label for one in plan_of(skeleton, asked, manner).defaults}

    hands = [Position(f"{side}_hand", (x, 1.0, 0.3)) for side, x in (("left", 0.3), ("right", -0.3))]
    look, hips = LookAt("head", (0.0, 1.0, 2.0)), Orientation("pelvis", turn)
    assert "heading" in defaults(hands[0])
    assert "heading" not in defaults(*hands) | defaults(look) | defaults(hips)
    known = Manner(keeps_heading=True)
    assert "heading" in defaults(*hands, manner=known) & defaults(look, manner=known)
    assert "heading" not in defaults(hips, manner=known)
    assert "left arm hangs" not in defaults(hands[0])
    assert "right arm hangs" in defaults(hands[0])
    assert "left_toes near the floor" in defaults(Position("left_foot", (0.1, 0.1, 0.0)))
    assert "left_toes near the floor" not in defaults(Position("left_foot", (0.1, 0.6, 0.0)))
    assert len(defaults(manner=BARE)) == 4  # feet and toes above the floor


def test_planted_feet_stay_unless_a_handle_takes_their_leg(people: UniversalPrior) -> None:
    feet = tuple(sorted(FEET.items()))
    manner = Manner(planted=feet)
    found = Posture(people).solve([Position("left_hand", (0.3, 0.6, 0.5))], manner).positions
    for role, at in feet:
        np.testing.assert_allclose(found[role], at, atol=2e-3)
    found = Posture(people).solve([Position("left_shin", (0.1, 0.8, 0.3))], manner).positions
    np.testing.assert_allclose(found["right_foot"], FEET["right_foot"], atol=2e-3)
    assert found["left_foot"][1] > FEET["left_foot"][1] + 0.1


def test_a_recorded_pose_is_soft_terms_beside_the_others(people: UniversalPrior) -> None:
    recorded = pose(SCENES["a low hand"], people).pose
    hand = Position("right_hand", tuple((recorded.positions["right_hand"] + (0.0, 0.05, 0.05)).tolist()))
    calm = as_recorded(recorded, {people.space.skeleton.index("right_hand")})
    found = Posture(people).solve([hand, *calm], Manner())
    alone = Posture(people).solve([hand], Manner())
    away, without = (
        np.linalg.norm(one.positions - recorded.positions, axis=1).mean() for one in (found, alone)
    )
    assert found.reached
    assert away < 0.5 * without


ONE_LOW, BOTH_LOW = (
    {"right_hand": (-0.25, 0.1, 0.45)},
    {"right_hand": (-0.25, 0.05, 0.45), "left_hand": (0.25, 0.05, 0.45)},
)


@pytest.mark.parametrize(
    "handles",
    [ONE_LOW, BOTH_LOW, {"left_hand": (0.5, 0.02, 0.3)}, {"pelvis": (0.0, 0.15, 0.0)}, {"head": (0.0, 0.35, 0.3)},
     {"left_shin": (0.1, 0.05, 0.3)}, {"pelvis": (0.0, 0.12, 0.0), "head": (0.0, 0.2, -0.55)}],
    ids=["a wrist", "both wrists", "a wrist on the floor", "seat", "head", "knee", "lying"],
)  # fmt: skip
def test_no_part_goes_through_the_floor(handles: Handles, people: UniversalPrior) -> None:
    found = pose(handles, people)
    assert found.reached
    assert np.asarray(found.positions)[:, 1].min() > -0.005
    assert not found.notes
    skin = 0.02 * people.space.skeleton.height  # seat, back and knees have flesh
    for role in {"pelvis", "chest", "left_shin", "right_shin"} - handles.keys():
        assert found.positions[role][1] > skin - 0.005


def test_no_part_goes_through_the_floor_whatever_is_asked(people: UniversalPrior) -> None:
    rng, skeleton = np.random.default_rng(0), people.space.skeleton
    roles = [
        "left_hand",
        "right_hand",
        "head",
        "pelvis",
        "left_foot",
        "right_foot",
        "left_shin",
        "right_forearm",
    ]
    for _ in range(60):
        low, high = np.array([[-0.6, 0.05, -0.2], [0.6, 1.8, 0.7]])
        reach = {f"{side}_hand": rng.uniform(low, high) for side in ("left", "right")}
        about = pose({**reach, "pelvis": (0.0, rng.uniform(0.25, 0.95), 0.0)}, people).positions
        chosen = rng.choice(roles, rng.integers(1, 4), replace=False).tolist()
        found = np.asarray(
            pose({role: about[role] + rng.normal(0.0, 0.02, 3) for role in chosen}, people).positions
        )
        free = np.setdiff1d(np.arange(len(skeleton)), [skeleton.index(role) for role in chosen])
        assert found[free, 1].min() > -0.005


def test_a_handle_below_the_floor_is_met_with_a_note(people: UniversalPrior) -> None:
    found = pose({"right_hand": (-0.25, -0.05, 0.45)}, people)
    assert found.reached
    assert found.notes == ("the position of right_hand is 5.0 cm below the floor",)
    assert pose({"right_hand": (-0.25, -0.05, 0.45)}, people, floor=False).notes == ()


def test_fingers_stay_above_the_floor_while_a_wrist_is_dragged_down(people: UniversalPrior) -> None:
    posture, x, z = Posture(people), -0.25, 0.4
    found = posture.solve([Position("right_hand", (x, 0.7, z))], USUAL)
    lowest = []
    for height in np.linspace(0.7, 0.06, 33):
        asked = [Position("right_hand", (x, float(height), z))]
        found = posture.follow(asked, USUAL, found.pose, found.q, fine=False)
        lowest.append(np.asarray(found.positions)[:, 1].min())
    assert found.reached
    assert min(lowest) > -0.005


def bend(positions: Positions, *roles: str) -> float:
    """The angle at the second of three joints, in degrees."""
    one, at, other = (np.asarray(positions[role]) for role in roles)
    cosine = (one - at) @ (other - at) / np.linalg.norm(one - at) / np.linalg.norm(other - at)
    return float(np.degrees(np.arccos(cosine)))


def test_without_handles_a_body_stands_at_ease(people: UniversalPrior) -> None:
    found = pose({}, people)
    assert found.reached
    centre, _ = found.space.centre_of_mass(found.q)
    assert bearing.overhang(found.pose, centre) < 0.0
    for side in ("left", "right"):
        assert bend(found.positions, f"{side}_thigh", f"{side}_shin", f"{side}_foot") > 165.0
        assert bend(found.positions, f"{side}_upper_arm", f"{side}_forearm", f"{side}_hand") > 145.0
        assert found.positions[f"{side}_hand"][1] < found.positions["pelvis"][1]
    heading = bearing.heading_of(found.pose)
    assert heading is not None
    assert heading[2] > 0.99


@pytest.mark.parametrize(
    "handles",
    [{"pelvis": (0.0, 0.4, 0.0), "left_foot": (0.12, 0.08, 0.0), "right_foot": (-0.12, 0.08, 0.0)},
     {"pelvis": (0.0, 0.5, 0.1), "left_foot": (0.12, 0.08, 0.0)},
     {"pelvis": (0.0, 0.4, 0.1), "left_toes": (0.12, 0.02, 0.13), "right_toes": (-0.12, 0.02, 0.13)}],
    ids=["both feet", "one foot", "toes"],
)  # fmt: skip
def test_a_heel_lifts_when_the_ankle_is_spent(handles: Handles, people: UniversalPrior) -> None:
    found, neutral = pose(handles, people), neutral_pose(people.space.skeleton)
    standing = Positions(people.space.skeleton, neutral.positions)
    assert found.reached
    for side in ("left", "right"):
        leg = f"{side}_shin", f"{side}_foot", f"{side}_toes"
        assert bend(standing, *leg) - bend(found.positions, *leg) < 38.0
    if "left_toes" in handles:
        assert found.positions["left_foot"][1] > 0.12  # 6 cm above a flat sole's
