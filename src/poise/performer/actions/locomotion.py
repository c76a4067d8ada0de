"""Walking, running, and from one to the other."""

from collections.abc import Sequence

import numpy as np

from poise.errors import InvalidValueError
from poise.performer.gait import Gait
from poise.performer.posing import BodyTargets
from poise.performer.stage import Stage, within
from poise.performer.steps import Course, Rate, path_course, turning_course
from poise.performer.tracks import ease
from poise.types import Array

Points = Sequence[Sequence[float]]

WALKING_SPEEDS = (0.2, 2.1)  # metres a second
RUNNING_SPEEDS = (2.2, 8.0)
SHARPEST_TURN = 2.0  # radians a second


def walk(
    stage: Stage, *, speed: float | None = None, turn: float = 0.0, path: Points | None = None
) -> BodyTargets:
    """Walks at `speed` metres a second, turning left at `turn` radians a second or along a `path` of (x, z) points."""
    pace = within("a walking speed", _pace(stage, speed, 1.35), WALKING_SPEEDS, "m/s")
    return Gait(stage, _course(stage, lambda times: np.full_like(times, pace), turn, path), "walk").targets()


def run(
    stage: Stage, *, speed: float | None = None, turn: float = 0.0, path: Points | None = None
) -> BodyTargets:
    """Runs at `speed` metres a second, turning left at `turn` radians a second or along a `path` of (x, z) points."""
    pace = _pace(stage, speed, 3.3)
    pace = max(pace, RUNNING_SPEEDS[0]) if speed is None else pace
    pace = within("a running speed", pace, RUNNING_SPEEDS, "m/s")
    return Gait(stage, _course(stage, lambda times: np.full_like(times, pace), turn, path), "run").targets()


def walk_to_run(
    stage: Stage, *, slow: float = 1.4, fast: float = 3.3, turn: float = 0.0, path: Points | None = None
) -> BodyTargets:
    """Walks at `slow` metres a second, speeds up in the middle of the clip and runs on at `fast`."""
    return _change_of_gait(stage, slow, fast, turn, path)


def run_to_walk(
    stage: Stage, *, fast: float = 3.3, slow: float = 1.4, turn: float = 0.0, path: Points | None = None
) -> BodyTargets:
    """Runs at `fast` metres a second, slows down in the middle of the clip and walks on at `slow`."""
    return _change_of_gait(stage, fast, slow, turn, path)


def _change_of_gait(
    stage: Stage, before: float, after: float, turn: float, path: Points | None
) -> BodyTargets:
    slow, fast = min(before, after), max(before, after)
    within("a walking speed", slow, WALKING_SPEEDS, "m/s")
    within("a running speed", fast, RUNNING_SPEEDS, "m/s")
    change = max(0.45 * stage.seconds, 0.8)
    start = 0.5 * (stage.seconds - change)

    def speed(times: Array) -> Array:
        return before + (after - before) * ease((times - start) / change)

    return Gait(stage, _course(stage, speed, turn, path)).targets()


def _pace(stage: Stage, speed: float | None, usual: float) -> float:
    """The given speed, or the natural one of this body and style (dynamic similarity: Alexander 1989)."""
    return usual * stage.style.speed * float(np.sqrt(stage.body.leg / 0.852)) if speed is None else speed


def _course(stage: Stage, speed: Rate, turn: float, path: Points | None) -> Course:
    within("a turn", turn, (-SHARPEST_TURN, SHARPEST_TURN), "rad/s")
    if path is None:
        return turning_course(stage.seconds, speed, lambda times: np.full_like(times, turn))
    if turn:
        raise InvalidValueError("give a turn or a path, not both")
    return path_course(stage.seconds, speed, path)
