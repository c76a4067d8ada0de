"""Protocol `speed`: one problem, our methods and the installed peers, in one process and on one thread.

The body has 66 degrees of freedom (a free root and 20 spherical joints), the targets are five positions of a walk, and
a pose counts when every handle is within 10 mm. A pose is solved from the rest pose (cold) or from the previous frame
(tracked). All are called from Python, pose by pose, and measured in turns, so that load affects all alike.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from jaxtyping import Float

from poise import performer
from poise.errors import InvalidValueError, UnknownNameError
from poise.evaluation.handles import HANDLES, targets_of
from poise.evaluation.methods import STYLE
from poise.evaluation.peers import PEERS, TOLERANCE, Contender, installed, rest_root
from poise.evaluation.report import ABOUT, PERFORMER, Protocol, Report, Request, Row, Step
from poise.motion.motion import Motion
from poise.priors.gaussian import GaussianPrior
from poise.priors.style.prior import StylePrior
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.pose_space import Handle, PoseSpace
from poise.solvers.constraints import Position
from poise.solvers.problem import Settings
from poise.solvers.solve import Model, Solver
from poise.types import Array, NamedProgress, silent

OURS = ("dls", "transpose", "sdls", "ccd", "fabrik", "gaussian-10", "gaussian-100", "style", "universal")
FIXED = "Spine1"  # with two spine joints instead of three, 20 joints and the root make 66 degrees of freedom
FPS, SECONDS = 30, 10.0
SLICES = 5  # of the targets, so that methods take turns
CLUSTERS = (10, 18, 32, 56, 100, 178, 316, 562, 1000)
ACTIVE_COUNTS = (25, 50, 100, 200, 400)
HANDLE_COUNTS = (1, 2, 3, 5, 8, 13, 21, 41)


class Ours:
    """One of our methods as a contender."""

    def __init__(self, model: Model, handles: Sequence[Handle | str], *, method: str | None = None) -> None:
        constraints = [Position(handle, (0.0, 0.0, 0.0)) for handle in handles]
        self._solver = Solver(model, constraints, method=method, settings=Settings(tolerance=TOLERANCE))
        space = self._solver.space
        self._rest = np.zeros(space.size)
        self._rest[:3], self._rest[3] = rest_root(space), 1.0
        self._handles = space.handles(handles)
        self.reset()

    def reset(self) -> None:
        self._q, self._before = self._rest, list[Array]()

    def solve(self, targets: Float[Array, "handles 3"]) -> None:
        self._q = self._solver.solve(self._q, targets=targets, before=self._before).q
        self._before = [self._q]

    def points(self) -> Float[Array, "handles 3"]:
        return self._solver.space.handle_positions(self._q, self._handles)[0]


@dataclass(frozen=True, eq=False)
class Timing:
    """Seconds per pose and the largest residual, over some targets."""

    seconds: Float[Array, "targets"]
    distances: Float[Array, "targets"]

    @property
    def milliseconds(self) -> float:
        """The mean of the middle half of the poses.

        If about every second frame needs one more step, a median would jump between the two kinds from run to run.
        """
        middle = np.sort(self.seconds)[len(self.seconds) // 4 : -(-3 * len(self.seconds) // 4)]
        return float(1000 * middle.mean())

    @property
    def reached(self) -> float:
        """The share of poses within the tolerance."""
        return float(np.mean(self.distances <= TOLERANCE * (1 + 1e-9)))


def evaluate_speed(*, methods: Sequence[str] = (), progress: NamedProgress = silent) -> list[Row]:
    """A row per method and installed peer, with its times over pinocchio's where that is installed."""
    names = list(methods) if methods else [*OURS, *installed()]
    contenders = {name: contender(name) for name in names}
    recorded = walk(seed=11)
    tracked_targets = targets_of(recorded, body().handles(HANDLES))
    shifts = rest_root(body()) - recorded.root_positions
    cold_targets = tracked_targets + (shifts * (1.0, 0.0, 1.0))[:, None]
    rows: list[Row] = []
    cold = _in_turns(contenders, cold_targets, is_cold=True, progress=progress)
    tracked = _in_turns(contenders, tracked_targets, is_cold=False, progress=progress)
    for name, own in cold.items():
        times: Row = {"method": name, "ms_cold": own.milliseconds, "ms_tracked": tracked[name].milliseconds}
        rows.append(times | {"reached_cold": own.reached, "reached_tracked": tracked[name].reached})
    for peer in ("pinocchio", "placo"):
        for beside in [row for row in rows if row["method"] == peer]:
            for row, kind in product(rows, ("cold", "tracked")):
                row[f"{kind}_over_{peer}"] = float(row[f"ms_{kind}"]) / float(beside[f"ms_{kind}"])
    return rows


def missing_peers() -> str:
    """The peers that are not installed here, in words."""
    missing = [name for name in PEERS if name not in installed()]
    if not missing:
        return ""
    return f"not installed, so not measured: {', '.join(missing)} (the extra poise[bench], or make speed)"


def contender(name: str) -> Contender:
    """One of our methods, or a peer, ready to solve."""
    if name in PEERS:
        return PEERS[name][1](body(), HANDLES)
    if name.startswith("gaussian-"):
        return Ours(prior(int(name.removeprefix("gaussian-"))), HANDLES)
    if name == "style":
        return Ours(style(STYLE["active"]), HANDLES)
    if name == "universal":
        return Ours(UniversalPrior(body().skeleton), HANDLES)
    if name not in OURS:
        raise UnknownNameError("method", name, (*OURS, *PEERS))
    return Ours(body(), HANDLES, method=name)


@cache
def body() -> PoseSpace:
    """The performer's body with 20 moving joints."""
    skeleton = performer.act("walk", seconds=1.0, fps=FPS).skeleton
    moving = ~skeleton.is_end_site
    moving[skeleton.index(FIXED)] = False
    return PoseSpace(skeleton, moving=moving)


@cache
def prior(clusters: int) -> GaussianPrior:
    """Learned from other walks of the same performer, with the same joint fixed."""
    return GaussianPrior.learn(_walks(), clusters=clusters)


@cache
def style(active: int) -> StylePrior:
    """Learned from the same walks, in as many dimensions as the method "style" has everywhere."""
    return StylePrior.learn(_walks(), dimensions=STYLE["dimensions"], active=active)


def walk(*, seed: int, speed: float = 1.35) -> Motion:
    """A walk of the performer with one joint fixed, for the 66 freedoms."""
    motion = performer.act("walk", seconds=SECONDS, fps=FPS, seed=seed, speed=speed)
    rotations = motion.rotations.copy()
    rotations[:, motion.skeleton.index(FIXED)] = (1.0, 0.0, 0.0, 0.0)
    return replace(motion, rotations=rotations)


def _walks() -> list[Motion]:
    """The training clips: other walks of the same performer, slower and faster."""
    return [walk(seed=seed, speed=1.0 + 0.1 * seed) for seed in range(6)]


def _in_turns(
    contenders: dict[str, Contender],
    targets: Float[Array, "targets handles 3"],
    *,
    is_cold: bool,
    progress: NamedProgress,
) -> dict[str, Timing]:
    """Run all on every slice of the targets, one slice after the other."""
    parts: dict[str, list[Timing]] = {name: [] for name in contenders}
    kind, total = "cold" if is_cold else "tracked", SLICES * len(contenders)
    for turn, own in enumerate(np.array_split(np.arange(len(targets)), SLICES)):
        for number, (name, solver) in enumerate(contenders.items()):
            progress(f"{name}, {kind}", turn * len(contenders) + number, total)
            parts[name].append(_timed(solver, targets[own], is_cold=is_cold))
    return {
        name: Timing(np.concatenate([p.seconds for p in own]), np.concatenate([p.distances for p in own]))
        for name, own in parts.items()
    }


def _timed(solver: Contender, targets: Float[Array, "targets handles 3"], *, is_cold: bool) -> Timing:
    seconds, distances = np.empty(len(targets)), np.empty(len(targets))
    solver.reset()
    solver.solve(targets[0])  # nothing is compiled during the measurement, and tracking starts on its track
    for number, target in enumerate(targets):
        if is_cold:
            solver.reset()
        begun = time.perf_counter()
        solver.solve(target)
        seconds[number] = time.perf_counter() - begun
        distances[number] = np.linalg.norm(solver.points() - target, axis=1).max()
    return Timing(seconds, distances)


def _cold_milliseconds(model: GaussianPrior | StylePrior, handles: Sequence[Handle | str]) -> float:
    recorded = walk(seed=11)
    targets = targets_of(recorded, model.space.handles(handles))
    return _timed(Ours(model, handles), targets[::3], is_cold=True).milliseconds


def _spread_handles(count: int) -> list[Handle]:
    """Points all over the body, those of the protocol first; a second round is off the joints, like markers."""
    names = body().skeleton.names
    first = [names[body().skeleton.index(role)] for role in HANDLES]
    ordered = [*first, *(name for name in names if name not in first)]
    rounds = [divmod(number, len(ordered)) for number in range(count)]
    return [Handle(ordered[place], (0.0, 0.0, 0.05 * lap)) for lap, place in rounds]


def _draw(_request: Request, _report: Report, folder: Path, step: Step) -> list[Path]:
    """What poses cost against sizes."""
    from poise.evaluation import plots

    measured: dict[str, tuple[Sequence[int], Callable[[int], float]]] = {
        "clusters, gaussian": (CLUSTERS, lambda count: _cold_milliseconds(prior(count), HANDLES)),
        "handles, gaussian of 100 clusters": (
            HANDLE_COUNTS,
            lambda count: _cold_milliseconds(prior(100), _spread_handles(count)),
        ),
        "active poses, style": (ACTIVE_COUNTS, lambda count: _cold_milliseconds(style(count), HANDLES)),
        "handles, style of 100 active poses": (
            HANDLE_COUNTS,
            lambda count: _cold_milliseconds(style(100), _spread_handles(count)),
        ),
    }
    curves = {}
    for name, (sizes, cost) in measured.items():
        step(f"cost against {name}")
        curves[name] = sizes, [cost(size) for size in sizes]
    return [plots.saved(plots.scaling_figure(curves), folder / "scaling.png")]


def _check(request: Request) -> None:
    if request.train or request.test or request.split != PERFORMER:
        raise InvalidValueError("speed measures one problem, taken from the performer: it has no other split")


PROTOCOL = Protocol(
    "speed",
    ABOUT["speed"],
    lambda request, progress: evaluate_speed(methods=request.methods, progress=progress),
    _draw,
    figures={"speed": "speed_figure"},
    methods=(*OURS, *PEERS),
    check=_check,
    left_out=missing_peers,
)
