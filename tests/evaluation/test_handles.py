"""The handles protocol on the performer, in its quick form."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from poise import performer
from poise.errors import InvalidValueError, UnknownNameError
from poise.evaluation.handles import HANDLES, cold_start, evaluate_handles, recover, targets_of
from poise.evaluation.methods import Answer, Solved
from poise.evaluation.metrics import Scores
from poise.evaluation.splits import Fold
from poise.geometry import rotations
from poise.motion import Motion
from poise.skeleton import Skeleton
from poise.skeleton.pose_space import PoseSpace
from poise.solvers.problem import Root

Array = np.ndarray


@pytest.fixture(scope="module")
def fold() -> Fold:
    train = tuple(
        performer.act("walk", seconds=2.0, fps=30, seed=seed, speed=1.0 + 0.2 * seed) for seed in range(3)
    )
    return Fold(train, (performer.act("walk", seconds=1.0, fps=30, seed=9, speed=1.3),))


@dataclass
class Unreliable:
    """Answers with its start, but on some frames with nothing usable."""

    broken: Sequence[int]
    fps: float | None = None
    _inner: Solved = field(default_factory=lambda: Solved("dls"))

    def learn(self, train: Sequence[Motion]) -> PoseSpace:
        return self._inner.learn(train)

    def set_up(self, skeleton: Skeleton, handles: Sequence[str], root: Root) -> tuple[PoseSpace, Answer]:
        space, _ = self._inner.set_up(skeleton, handles, root)
        calls = iter(range(-1, 10_000))  # the first call is the warm-up

        def answer(start: Array, targets: Array) -> Array:
            number = next(calls)
            if number in self.broken and number % 2:
                raise InvalidValueError(f"no pose for {len(targets)} targets")
            return np.full_like(start, np.nan) if number in self.broken else start

        return space, answer


def test_the_learned_method_beats_the_plain_ones_and_reaches(fold: Fold) -> None:
    rows = evaluate_handles([fold], methods=("dls", "nearest", "gaussian-10"), stride=2)
    dls, nearest, gaussian = ({key: row[key] for key in row if key != "method"} for row in rows)
    assert gaussian["deg_per_joint"] < dls["deg_per_joint"]
    assert gaussian["mpjpe_cm"] < min(dls["mpjpe_cm"], nearest["mpjpe_cm"])
    assert gaussian["reached_1mm"] == dls["reached_1mm"] == 1.0
    assert nearest["reached_1mm"] < 0.5
    assert all(row["failed"] == 0 and row["frames"] == 15 for row in rows)


def test_failing_frames_are_counted_and_keep_their_start(fold: Fold) -> None:
    method = Unreliable(broken=(2, 3, 7))
    method.learn(fold.train)
    found = recover(method, fold.test[0])
    scores = Scores()
    scores.add(found)
    assert found.failed == 3
    assert scores.metrics()["failed"] == 3
    assert scores.metrics()["frames"] == len(fold.test[0])
    assert np.all(np.isfinite(found.rotations))


@pytest.mark.parametrize("independent", [False, True])
def test_a_free_root_is_found_wherever_the_walk_goes(fold: Fold, independent: bool) -> None:
    clip = performer.act("walk", seconds=1.0, fps=10, seed=9, turn=1.5)
    rows = evaluate_handles(
        [Fold(fold.train, (clip,))], methods=("gaussian-10",), free_root=True, independent=independent
    )
    assert rows[0]["reached_10mm"] == 1.0
    assert float(rows[0]["mpjpe_cm"]) < 5.0


def test_a_cold_start_faces_as_the_targets_do() -> None:
    clip = performer.act("walk", seconds=1.0, fps=10)
    space = PoseSpace.of_rotations(clip.skeleton, clip.rotations)
    handles = space.handles(HANDLES)
    turn = rotations.quaternion_from_expmap(np.array([0.0, 2.5, 0.0]))
    q = np.zeros(space.size)
    q[:3], q[3:7] = (1.0, 0.9, -4.0), turn
    targets, _ = space.handle_positions(q, handles)
    np.testing.assert_allclose(cold_start(space, handles, targets), q, atol=1e-9)


def test_targets_are_where_the_clip_has_its_handles() -> None:
    clip = performer.act("walk", seconds=1.0, fps=10)
    space = PoseSpace(clip.skeleton)
    handles = space.handles(HANDLES)
    q = space.q_from_frames(clip.root_positions, clip.rotations)
    np.testing.assert_allclose(
        targets_of(clip, handles)[3], space.handle_positions(q[3], handles)[0], atol=1e-9
    )


def test_wrong_methods_and_strides_are_refused_before_any_work(fold: Fold) -> None:
    with pytest.raises(UnknownNameError, match="gaussian-100"):
        evaluate_handles([fold], methods=("dls", "gausian-100"))
    with pytest.raises(InvalidValueError, match="stride"):
        evaluate_handles([fold], methods=("dls",), stride=0)
