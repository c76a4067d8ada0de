"""Methods under test: each learns from clips and then returns a pose for handles, frame by frame."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from poise.errors import UnknownNameError
from poise.evaluation.report import Request, Row
from poise.evaluation.splits import Fold
from poise.motion.motion import Motion
from poise.priors.auto import EXPERTS, AutoPrior
from poise.priors.clusters import cluster
from poise.priors.gaussian import OURS, GaussianPrior
from poise.priors.poses import handle_positions
from poise.priors.predicting import in_root_frame
from poise.priors.prior import Prior
from poise.priors.registry import learnable
from poise.priors.style.prior import PUBLISHED, StylePrior
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.kernels import ROOT_SIZE
from poise.skeleton.pose_space import PoseSpace
from poise.skeleton.skeleton import Skeleton
from poise.solvers.constraints import Position
from poise.solvers.problem import Root, Settings
from poise.solvers.solution import Status
from poise.solvers.solve import Solver
from poise.types import Array, NamedProgress

TRACKED = "-tracked"
"""Of grochow2004: with the velocities and accelerations since the previous frames."""
Answer = Callable[[Float[Array, "size"], Float[Array, "handles 3"]], Float[Array, "size"]]
Learner = Callable[[Sequence[Motion]], Prior]
Measured = Callable[[Learner, Sequence[Fold]], Mapping[str, float]]

STYLE = EXPERTS["style"]
"""Settings of the method "style": Grochow et al. 2004 found three dimensions suitable for all their data."""


@runtime_checkable
class Method(Protocol):
    """Learns once from training clips, then is set up per test clip."""

    fps: float | None
    """The frame rate of the clip it is set up for; None if every frame is by itself."""

    def learn(self, train: Sequence[Motion]) -> PoseSpace:
        """Learn; return its pose space."""
        ...

    def set_up(self, skeleton: Skeleton, handles: Sequence[str], root: Root) -> tuple[PoseSpace, Answer]:
        """For a body and its handles: a function from (start, targets) to a pose vector, and its space."""
        ...


class Nearest:
    """The training frame with the closest handles, unchanged."""

    fps: float | None = None

    def learn(self, train: Sequence[Motion]) -> PoseSpace:
        self._space, self._maps = training_poses(train)
        return self._space

    def set_up(self, skeleton: Skeleton, handles: Sequence[str], root: Root) -> tuple[PoseSpace, Answer]:
        space = self._space.on_body(skeleton)
        inputs = handle_positions(space, self._maps, space.handles(handles)).reshape(len(self._maps), -1)
        del root

        def answer(start: Array, targets: Array) -> Array:
            wanted = in_root_frame(start, targets).ravel()
            nearest = np.argmin(np.einsum("ij,ij->i", inputs - wanted, inputs - wanted))
            return np.concatenate([start[:ROOT_SIZE], self._maps[nearest]])

        return space, answer


class RegressionMethod:
    """The paper's baseline: Gaussian-process regression from handles to poses on a few samples, without IK."""

    fps: float | None = None

    def __init__(self, samples: int) -> None:
        self._samples = samples

    def learn(self, train: Sequence[Motion]) -> PoseSpace:
        space, maps = training_poses(train)
        chosen, _ = cluster(maps, self._samples, rng=np.random.default_rng(0))
        size = maps.shape[1]
        spread = np.broadcast_to(np.eye(size), (len(chosen), size, size))
        self._prior = GaussianPrior(space, maps[chosen], spread, shares=np.full(len(chosen), 1 / len(chosen)))
        return space

    def set_up(self, skeleton: Skeleton, handles: Sequence[str], root: Root) -> tuple[PoseSpace, Answer]:
        prior = self._prior.on_body(skeleton)
        predict = prior.guide(prior.space.handles(handles))
        del root

        def answer(start: Array, targets: Array) -> Array:
            mean, _ = predict(in_root_frame(start, targets))
            return np.concatenate([start[:ROOT_SIZE], mean])

        return prior.space, answer


class Solved:
    """A solver with a learned prior, or a classic one that starts from the mean pose of the data."""

    fps: float | None = None

    def __init__(self, method: str | None, learner: Learner | None = None, *, moving: bool = False) -> None:
        """`moving` methods use the velocities and accelerations since the previous frames."""
        self._method, self._learner, self._moving = method, learner, moving
        self.prior: Prior | None = None
        self._space: PoseSpace | None = None

    def learn(self, train: Sequence[Motion]) -> PoseSpace:
        if self._learner is not None:
            self.prior = self._learner(train)
            return self.prior.space
        self._space = training_poses(train)[0] if train else None
        return self._space or UniversalPrior.of_people().space

    def set_up(self, skeleton: Skeleton, handles: Sequence[str], root: Root) -> tuple[PoseSpace, Answer]:
        model: Prior | PoseSpace
        if self.prior is not None:
            model = self.prior.on_body(skeleton)
        else:
            model = UniversalPrior(skeleton).space if self._space is None else self._space.on_body(skeleton)
        constraints = [Position(handle, (0.0, 0.0, 0.0)) for handle in handles]
        fps, before = self.fps if self._moving else None, list[Array]()
        solver = Solver(model, constraints, root=root, method=self._method, settings=Settings(), fps=fps)

        def answer(start: Array, targets: Array) -> Array:
            """The solved pose; NaN if the solver has none, so that it counts as a failure."""
            if before and not np.array_equal(start[ROOT_SIZE:], before[0][ROOT_SIZE:]):
                before.clear()  # the start is not the previous frame
            solution = solver.solve(start, targets=targets, before=before)
            if fps is not None:
                before[:] = [solution.q, *before[:1]]
            return np.full_like(solution.q, np.nan) if solution.status is Status.BROKEN else solution.q

        return solver.space, answer


def method_named(name: str) -> Method:
    """The method of this name; every kind of prior is one, and `gaussian-N` takes any number of clusters."""
    if name in METHODS:
        return METHODS[name]()
    learner = learner_named(PUBLISHED if name == PUBLISHED + TRACKED else name, others=METHODS)
    return Solved(None, learner, moving=name == PUBLISHED + TRACKED)


def learner_named(name: str, *, protocol: str = "", others: Iterable[str] = ()) -> Learner:
    """The learner of a prior for an evaluation, by its kind; a protocol may have other methods too."""
    if name in LEARNERS:
        return LEARNERS[name]
    if found := re.fullmatch(r"(gaussian|huang2017)-([1-9]\d*)", name):
        method = found[1] if found[1] == "huang2017" else OURS
        return partial(GaussianPrior.learn, clusters=int(found[2]), method=method)
    if found := re.fullmatch(r"auto-(gaussian|style|local)", name):
        return partial(AutoPrior.learn, expert=found[1])
    if name not in learnable():
        valid = dict.fromkeys((*others, *_EXAMPLES, *learnable()))
        raise UnknownNameError(f"method of the {protocol} protocol" if protocol else "method", name, valid)
    return learnable()[name].learn


def rows_by_method(
    request: Request, progress: NamedProgress, methods: Sequence[str], measured: Measured
) -> list[Row]:
    """Measure every method's learner on the folds; by default `methods`."""
    folds, names = request.folds(), request.methods or methods
    rows: list[Row] = []
    for number, name in enumerate(names):
        progress(name, number, len(names))
        rows.append({"method": name, **measured(learner_named(name, protocol=request.protocol), folds)})
    return rows


LEARNERS: dict[str, Learner] = {
    "style": partial(StylePrior.learn, **STYLE),
    PUBLISHED: partial(StylePrior.learn, method=PUBLISHED),
    "huang2017": partial(GaussianPrior.learn, clusters=100, method="huang2017"),
    "universal": lambda _: UniversalPrior.of_people(),
    "auto": lambda train: AutoPrior.learn(train) if train else UniversalPrior.of_people(),
}
UNTRAINED = ("transpose", "dls", "sdls", "ccd", "fabrik", "universal", "auto")
"""Methods that need no training clips: classic ones start from the universal prior's mean pose then."""
_EXAMPLES = ("gaussian-10", "gaussian-100")
METHODS: dict[str, Callable[[], Method]] = {
    **{name: partial(Solved, name) for name in ("transpose", "dls", "sdls", "ccd", "fabrik")},
    "nearest": Nearest,
    "gp": lambda: RegressionMethod(100),
}


def default_methods() -> tuple[str, ...]:
    """The default methods."""
    return (*METHODS, *_EXAMPLES, "style", "local", "universal", "auto")


def training_poses(train: Sequence[Motion]) -> tuple[PoseSpace, Float[Array, "poses maps"]]:
    """The pose space of clips and their poses as exponential maps, without roots."""
    quaternions = np.concatenate([motion.rotations for motion in train])
    space = PoseSpace.of_rotations(train[0].skeleton, quaternions)
    return space, space.q_from_frames(np.zeros((len(quaternions), 3)), quaternions)[:, ROOT_SIZE:]
