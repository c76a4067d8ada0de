"""One door: names, lengths, rates, seeds; the same motion however finely it is sampled."""

import numpy as np
import pytest

from poise.errors import InvalidValueError, UnknownNameError
from poise.geometry import rotations
from poise.motion.contacts import foot_contacts
from poise.performer import ACTIONS, PERFORMERS, STYLES, Body, Proportions, Style, act, acted


@pytest.mark.parametrize("action", ACTIONS)
def test_the_frame_rate_only_samples_the_same_motion(action: str) -> None:
    fine, coarse = act(action, seconds=2.0, fps=120.0), act(action, seconds=2.0, fps=30.0)
    assert (len(fine), len(coarse)) == (240, 60)
    np.testing.assert_allclose(coarse.root_positions, fine.root_positions[::4], atol=1e-9)
    apart = rotations.geodesic_distance(coarse.rotations, fine.rotations[::4])
    assert apart.max() < 1e-7


@pytest.mark.parametrize("action", ACTIONS)
def test_a_seed_gives_one_motion_and_another_seed_another(action: str) -> None:
    first, again, other = (act(action, seconds=2.0, fps=30.0, seed=seed) for seed in (4, 4, 5))
    np.testing.assert_array_equal(first.rotations, again.rotations)
    np.testing.assert_array_equal(first.root_positions, again.root_positions)
    assert rotations.geodesic_distance(first.rotations, other.rotations).max() > np.radians(1.0)


def test_a_longer_clip_begins_as_the_shorter_one_does() -> None:
    short, long = act("walk", seconds=2.0, fps=30.0), act("walk", seconds=6.0, fps=30.0)
    np.testing.assert_allclose(long.root_positions[:60], short.root_positions, atol=1e-9)


@pytest.mark.parametrize("performer", PERFORMERS)
def test_every_performer_has_the_height_and_the_roles_of_a_person(performer: str) -> None:
    body = PERFORMERS[performer]
    assert body.skeleton.height == pytest.approx(body.height, rel=0.02)
    for role in ("pelvis", "spine", "chest", "neck", "head"):
        assert role in body.skeleton.roles
    for part in ("shoulder", "upper_arm", "forearm", "hand", "thigh", "shin", "foot", "toes"):
        for side, sign in (("left", 1.0), ("right", -1.0)):
            joint = body.skeleton.index(f"{side}_{part}")
            assert (
                sign
                * sum(body.skeleton.offsets[k, 0] for k in body.skeleton.chain(body.skeleton.names[joint]))
                > 0
            )


def test_a_body_and_a_style_of_ones_own_will_do() -> None:
    body = Body("giant", 2.1, Proportions(thigh=0.25))
    motion = act("walk", style=Style("limp", asymmetry=0.3), performer=body, seconds=1.0)
    assert motion.skeleton == body.skeleton
    assert motion.name == "walk (limp, giant)"


def test_every_action_says_what_it_is_and_moves() -> None:
    for name, action in ACTIONS.items():
        assert action.summary.endswith("."), name
        motion = act(name, fps=30.0)
        assert rotations.geodesic_distance(motion.rotations[0], motion.rotations).max() > np.radians(5.0)


@pytest.mark.parametrize("action", ["walk", "run"])
def test_the_contact_detector_finds_the_planned_contacts(action: str) -> None:
    performance = acted(action, seconds=3.0)
    found = foot_contacts(performance.motion)
    for number, side in enumerate(("left", "right")):
        assert np.mean(found.feet[:, number] == performance.grounded(side)) > 0.85


@pytest.mark.parametrize(
    ("wrong", "parameters"),
    [
        ("wlak", {}),
        ("walk", {"style": "neutrl"}),
        ("walk", {"performer": "alexa"}),
        ("walk", {"sped": 1.0}),
        ("box", {"combination": "jab crss"}),
        ("box", {"stance": "south"}),
        ("throw", {"hand": "foot"}),
        ("kick", {"foot": "hand"}),
        ("reach", {"hand": "both"}),
    ],
)
def test_unknown_names_are_told_with_close_ones(wrong: str, parameters: dict[str, object]) -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean|valid"):
        act(wrong, **parameters)


@pytest.mark.parametrize(
    ("action", "parameters"),
    [
        ("walk", {"speed": 9.0}),
        ("walk", {"speed": float("nan")}),
        ("run", {"speed": 0.5}),
        ("walk", {"turn": 5.0}),
        ("walk", {"path": [(0.0, 0.0)]}),
        ("walk", {"path": [(0.0, 0.0), (0.0, 3.0)], "turn": 0.5}),
        ("walk", {"seconds": 0.0}),
        ("walk", {"seconds": float("inf")}),
        ("walk", {"fps": 1.0}),
        ("walk", {"seed": -1}),
        ("jump", {"height": 3.0}),
        ("sit", {"height": 2.0}),
        ("reach", {"points": [(0.0, 9.0, 0.0)]}),
        ("reach", {"points": [(0.0, 1.0)]}),
        ("reach", {"points": [(0.0, 1.2, 0.1)]}),
        ("reach", {"points": [(0.3, 1.2, -0.5)]}),
        ("box", {"combination": ""}),
        ("walk_to_run", {"slow": 3.0}),
    ],
)
def test_what_cannot_be_done_is_refused_with_what_can(action: str, parameters: dict[str, object]) -> None:
    with pytest.raises(InvalidValueError):
        act(action, **parameters)


def test_bodies_that_cannot_be_are_refused() -> None:
    with pytest.raises(InvalidValueError, match=r"0\.8 to 2\.5 m"):
        Body("ant", 0.01)
    with pytest.raises(InvalidValueError, match="head"):
        Body("headless", 1.8, Proportions(trunk=0.5))


def test_styles_are_all_different() -> None:
    assert len({(s.speed, s.slump, s.crouch) for s in STYLES.values()}) == len(STYLES)
