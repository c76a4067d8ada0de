"""Hands that touch: found on a body, and where their palms go on another."""

import numpy as np

from bodies import person
from poise.geometry import rotations
from poise.motion.motion import Motion
from poise.motion.touching import PosedBody, Touch, hand_touches, palm_goals, palm_handles

FRAMES, FPS = 120, 60.0


def still(places):
    """A body whose palms stay at the origin, and touches of its left hand at fixed places."""
    zeros = np.zeros((2, FRAMES, 3))
    body = PosedBody(
        person(), np.zeros((FRAMES, len(person()), 3)), zeros, np.tile(np.eye(3), (FRAMES, 1, 1))
    )
    touches = []
    for at, first, last in places:
        touching = np.zeros(FRAMES, dtype=bool)
        touching[first:last] = True
        touches.append(Touch(0, "a wall", touching, lambda _, at=at: np.tile(at, (FRAMES, 1))))
    return palm_goals(touches, body, body, FPS)


def test_a_palm_is_eased_to_what_it_touches_and_back():
    left, right = still([((0.2, 0.0, 0.0), 50, 60)])
    assert np.all(left[50:60, 0] == 0.2)
    assert np.all(left[:20] == 0.0)
    assert np.abs(np.diff(left[:, 0], 2)).max() * FPS**2 < 6.0
    assert np.all(right == 0.0)


def test_a_palm_stays_on_what_it_touches_while_it_nears_another_thing():
    left, _ = still([((0.2, 0.0, 0.0), 10, 60), ((0.0, 0.3, 0.0), 70, 100)])
    np.testing.assert_allclose(left[10:60], np.tile((0.2, 0.0, 0.0), (50, 1)), atol=1e-12)
    np.testing.assert_allclose(left[70:100], np.tile((0.0, 0.3, 0.0), (30, 1)), atol=1e-12)
    assert np.linalg.norm(np.diff(left, axis=0), axis=-1).max() < 0.06


def test_hands_of_a_t_pose_touch_nothing_and_those_put_together_each_other():
    body = person()
    turns = np.tile((1.0, 0.0, 0.0, 0.0), (3, len(body), 1))
    motion = Motion(body, 30.0, np.tile((0.0, 0.9, 0.0), (3, 1)), turns)
    assert hand_touches(motion, ratio=1.0, floors=(0.0, 0.0)) == []
    for side, sign in (("left", -1.0), ("right", 1.0)):
        for joint, angle in (("upper_arm", 1.4), ("forearm", 0.8)):
            turns[:, body.index(f"{side}_{joint}")] = (np.cos(angle / 2), 0.0, sign * np.sin(angle / 2), 0.0)
    together = motion.with_frames(motion.root_positions, turns)
    first, second = hand_touches(together, ratio=0.5, floors=(0.0, 0.0))
    reach = PosedBody.of(together, palm_handles(body, 2 * [0.05 * body.height]))
    ways = [touch.place(reach) - reach.palms.mean(axis=0) for touch in (first, second)]
    np.testing.assert_allclose(ways[0] - ways[1], 0.5 * (reach.palms[0] - reach.palms[1]))


def passing_a_thigh(angle):
    """A left hand that swings from behind the thigh to before it in 0.4 seconds, by this angle."""
    body = person()
    turns = np.tile((1.0, 0.0, 0.0, 0.0), (FRAMES, len(body), 1))
    swing = np.clip((np.arange(FRAMES) / FPS - 0.8) / 0.4, 0.0, 1.0) - 0.5
    down = rotations.quaternion_from_expmap(np.array([0.0, 0.0, -1.85]))
    forward = rotations.quaternion_from_expmap(np.multiply.outer(angle * swing, (-1.0, 0.0, 0.0)))
    turns[:, body.index("left_upper_arm")] = rotations.multiply(forward, down)
    return Motion(body, FPS, np.tile((0.0, 0.9, 0.0), (FRAMES, 1)), turns)


def test_a_hand_that_only_passes_a_thigh_does_not_touch_it():
    def things(motion):
        touches = hand_touches(motion, ratio=1.0, floors=(0.0, 0.0))
        return [touch.thing for touch in touches if touch.hand == 0]

    assert things(passing_a_thigh(2.0)) == []
    assert "the left thigh" in things(passing_a_thigh(0.1))
