"""Repair: damages of six kinds are mended, sound motions stay, terms have the right gradient."""

from __future__ import annotations

import numpy as np
import pytest

import poise
from poise import performer
from poise.apps import repairing
from poise.evaluation import repair as protocol
from poise.motion.contacts import foot_contacts, foot_handles
from poise.motion.motion import Motion
from poise.motion.world import joint_positions
from poise.priors.terms import System, Unknowns


@pytest.fixture(scope="module")
def walk() -> Motion:
    return performer.act("walk", seconds=4.0, fps=30.0)


def error(found: Motion, true: Motion) -> float:
    return float(np.linalg.norm(joint_positions(found) - joint_positions(true), axis=-1).mean())


@pytest.mark.parametrize("damage", protocol.DAMAGES)
def test_damages_are_mended(walk: Motion, damage: str) -> None:
    broken = protocol.DAMAGES[damage](walk, np.random.default_rng(1))
    found = poise.repair(broken)
    assert error(found.motion, walk) < 0.6 * error(broken, walk)
    contacts = foot_contacts(walk)
    slid, usual = protocol.measured(found.motion, broken, walk)[2:4]
    assert slid < max(1.2 * usual, 0.15)
    assert contacts.feet.any()


def test_a_sound_motion_hardly_changes(walk: Motion) -> None:
    found = poise.repair(walk)
    assert error(found.motion, walk) < 0.01
    assert found.before.repeated == found.after.repeated == 0


def test_missing_frames_are_found_and_reported(walk: Motion) -> None:
    at = np.arange(len(walk))
    at[30:36] = 30
    found = poise.repair(walk.with_frames(walk.root_positions[at], walk.rotations[at]))
    assert found.before.repeated == 5
    assert found.after.repeated == 0
    assert "5 frames that repeat" in str(found)


@pytest.mark.parametrize("frames", [1, 2, 5, 9])
def test_short_motions_stay_whole(walk: Motion, frames: int) -> None:
    found = poise.repair(walk[:frames])
    assert len(found.motion) == frames
    assert np.all(np.isfinite(found.motion.root_positions))


def test_a_motion_that_rests_is_left_alone(walk: Motion) -> None:
    still = walk[np.zeros(40, dtype=int)]
    assert error(poise.repair(still).motion, still) < 1e-3


def test_resting_feet_have_the_gradient_of_their_cost(walk: Motion) -> None:
    part = walk[:4]
    space = repairing.space_of(part)
    q = space.q_from_frames(part.root_positions, part.rotations)
    handles = space.handles(foot_handles(part.skeleton))
    term = repairing.Resting(space, handles, np.array([[1, 0, 1, 1], [1, 1, 0, 0], [0, 0, 0, 1]], dtype=bool))
    now = Unknowns(q)
    system = System(now, reach=1)
    term.add(now, system)
    draw, step = np.random.default_rng(0), 1e-6
    for _ in range(12):
        frame, way = int(draw.integers(4)), draw.normal(size=space.freedoms)
        costs = []
        for sign in (1.0, -1.0):
            moved = q.copy()
            moved[frame] = space.integrate(q[frame], sign * step * way)
            costs.append(term.cost(Unknowns(moved)))
        np.testing.assert_allclose(-system.right[frame] @ way, (costs[0] - costs[1]) / (2 * step), rtol=1e-4)


def test_a_page_shows_both(walk: Motion) -> None:
    page = repairing.compared(walk, walk)
    assert page.height > 200
    assert np.asarray(page).std() > 5.0


def test_the_protocol_has_a_row_of_every_damage_and_method() -> None:
    from poise.evaluation.report import Request

    request = Request("repair", methods=("damaged", "repair"), options=protocol.RepairOptions(stride=4))
    rows = protocol.run(request, lambda *_: None)
    assert [(row["damage"], row["method"]) for row in rows] == [
        (damage, method) for damage in protocol.DAMAGES for method in ("damaged", "repair")
    ]
    for row in rows[::2]:
        assert row["of_damaged"] == 1.0


def test_what_is_repaired_can_be_saved(walk: Motion, tmp_path) -> None:
    file = poise.repair(walk).save(tmp_path / "mended.bvh")
    assert len(poise.read(file)) == len(walk)
