"""All kernels in one list, so that they can be compiled before they are used, with a progress line."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from multiprocessing import get_context
from threading import Event
from typing import cast

import numpy as np

import poise
from poise.compiled import is_kept

KERNELS = {
    "kinematics": "poise.apps.warm_up:move_a_skeleton",
    "motion files": "poise.formats.text:warm_up",
    "pictures": "poise.apps.warm_up:draw_something",
    "solver": "poise.apps.warm_up:solve_something",
    "expectations": "poise.apps.warm_up:expect_people",
    "people": "poise.apps.warm_up:solve_as_people_do",
    "inverse kinematics": "poise.apps.warm_up:solve_without_a_prior",
    "style models": "poise.apps.warm_up:place_in_style",
    "styles": "poise.apps.warm_up:solve_in_style",
    "sequences": "poise.apps.warm_up:solve_a_sequence",
    "libraries": "poise.apps.warm_up:search_something",
    "cameras": "poise.apps.warm_up:watch_something",
    "markers": "poise.apps.warm_up:track_markers",
    "performances": "poise.apps.warm_up:perform_something",
    "blends": "poise.apps.warm_up:solve_in_blends",
    "webcams": "poise.capture.webcam:rehearse",
}
"""Each set of kernels, and the function that compiles it: `module:function`."""

FIRST_POSE = ("kinematics", "pictures", "solver", "expectations", "people")
"""What `poise pose` needs, and the model that a new studio starts with. Wheels may bring these kernels ready."""

SECONDS = {
    "kinematics": 3.4, "motion files": 1.0, "pictures": 2.0, "solver": 14.0, "expectations": 11.0,
    "people": 10.0, "inverse kinematics": 4.0, "style models": 9.0, "styles": 9.0, "sequences": 8.0,
    "libraries": 3.0, "cameras": 4.0, "markers": 6.0, "performances": 8.0, "blends": 8.0, "webcams": 3.0,
}  # fmt: skip
"""About how long each set compiles on a quiet machine; `Pace` adapts them to this one."""

AFTER = {
    "pictures": ("kinematics",),
    "solver": ("kinematics",),
    "expectations": ("pictures",),
    "people": ("solver", "expectations"),
    "inverse kinematics": ("solver",),
    "style models": ("expectations",),
    "styles": ("people", "style models"),
    "sequences": ("styles",),
    "libraries": ("style models",),
    "cameras": ("libraries",),
    "markers": ("sequences",),
    "performances": ("markers", "libraries"),
    "blends": ("performances", "inverse kinematics"),
    "webcams": ("performances", "cameras"),
}
"""The order of the sets: two that share a kernel are never compiled at once, or it would be compiled twice."""

PROCESSES = 2  # as many as there are independent paths through `AFTER`
HAND = {"left_hand": (0.3, 0.9, 0.2)}
PEOPLE = {"left_hand": (0.3, 1.0, 0.3), "right_foot": (-0.1, 0.1, 0.0)}
_LOOK = 0.05  # seconds between progress checks


def load(where: str) -> Callable[[], object]:
    """The function named by an entry of `KERNELS`."""
    module, _, function = where.partition(":")
    return cast(Callable[[], object], getattr(import_module(module), function))


class Pace:
    """How far a task of several steps is, and about how long it still takes; readable from any thread."""

    def __init__(self, seconds: Mapping[str, float]) -> None:
        self._seconds, self._done = dict(seconds), set[str]()
        self._start, self._slowness = time.monotonic(), 1.0
        self._over = Event()

    def finish(self, step: str) -> None:
        """A step is done. How long it took corrects the estimate of the others."""
        self._done.add(step)
        expected = sum(self._seconds[name] for name in self._done)
        self._slowness = (time.monotonic() - self._start) / expected
        if len(self._done) == len(self._seconds):
            self._over.set()

    @property
    def over(self) -> bool:
        """Whether every step is done."""
        return self._over.is_set()

    def wait(self) -> None:
        """Returns when every step is done."""
        self._over.wait()

    def stop(self) -> None:
        """Nobody waits any longer: the task has failed."""
        self._over.set()

    @property
    def share(self) -> float:
        """How much is done, from 0 to 1."""
        elapsed = time.monotonic() - self._start
        return 1.0 if self.over else min(elapsed / (elapsed + self._left), 0.99)

    @property
    def words(self) -> str:
        """The step and the time left, such as `solver (2 of 3), about 25 s left`."""
        step = next((name for name in self._seconds if name not in self._done), "ready")
        number = min(len(self._done) + 1, len(self._seconds))
        return f"{step} ({number} of {len(self._seconds)}), about {self._left:.0f} s left"

    @property
    def _left(self) -> float:
        elapsed = time.monotonic() - self._start
        current = next((name for name in self._seconds if name not in self._done), "")
        begun = sum(self._seconds[name] for name in self._seconds if name in self._done or name == current)
        slowness = max(self._slowness, elapsed / begun)  # of a step that takes longer than expected, too
        return max(slowness * sum(self._seconds.values()) - elapsed, 1.0)


def pace_of(names: Iterable[str] = KERNELS) -> Pace:
    """The pace of compiling sets of kernels."""
    return Pace({name: SECONDS[name] for name in names})


def warm_up(names: Iterable[str] = KERNELS, pace: Pace | None = None) -> None:
    """Compiles all sets of kernels, or some, or loads them from the cache."""
    try:
        for name in names:
            load(KERNELS[name])()
            if pace is not None:
                pace.finish(name)
    finally:
        if pace is not None:
            pace.stop()


def is_compiled() -> bool:
    """Whether the kernels of a first pose are kept, from an earlier use or from the wheel."""
    from poise.solvers.run import _solve_all

    return is_kept(_solve_all)


def compile_all(pace: Pace, names: Sequence[str] = tuple(KERNELS)) -> None:
    """Compiles sets of kernels into the cache, with two processes where there are two processors."""
    waiting, done = list(names), set(KERNELS).difference(names)
    with get_context("spawn").Pool(  # interrupts are ignored: a compiling process is ended by its parent
        min(PROCESSES, os.cpu_count() or 1), signal.signal, (signal.SIGINT, signal.SIG_IGN)
    ) as pool:
        running = {}
        while len(done) < len(KERNELS):
            for name in [name for name in waiting if done.issuperset(AFTER.get(name, ()))]:
                waiting.remove(name)
                running[name] = pool.apply_async(warm_up, ((name,),))
            for name in [name for name, result in running.items() if result.ready()]:
                running.pop(name).get()
                done.add(name)
                pace.finish(name)
            time.sleep(_LOOK)


# The public names are imported when first used: each set of kernels loads only what it needs.


def move_a_skeleton() -> None:
    """Compute positions and Jacobians of two joints, which uses every function of the kinematics."""
    from poise.skeleton.kinematics import turns_in_world
    from poise.skeleton.pose_space import PoseSpace

    skeleton = poise.Skeleton(
        ("root", "end"), np.array([-1, 0]), np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    )
    space = PoseSpace(skeleton)
    q = space.q_from_pose(poise.Pose.rest(skeleton))
    space.forward(q)
    handles = space.handles(["end"])
    space.handle_positions(q, handles)
    space.handle_orientations(q, handles)
    space.centre_of_mass(q)
    space.integrate(q, np.zeros(space.freedoms))
    pose = space.pose_from_q(q)
    pose.world, turns_in_world(skeleton, pose.rotations)


def draw_something() -> object:
    """Draw a small picture of a standing person, which uses every drawing kernel."""
    body = next(iter(poise.performer.PERFORMERS.values()))
    return poise.pictures.draw_pose(poise.Pose.rest(body.skeleton), size=(64, 64))


def _walk(seconds: float = 1.0) -> poise.Motion:
    return poise.performer.act("walk", seconds=seconds, fps=30)


def solve_something() -> None:
    """Solve a walker's hand at its own position, which uses every kernel of the solver."""
    poise.solve(poise.GaussianPrior.learn([_walk()], clusters=3), HAND)


def solve_without_a_prior() -> None:
    """The same by plain inverse kinematics."""
    poise.solve(_walk().skeleton, HAND)


def expect_people() -> None:
    """What the universal prior expects of two handles, before anything is solved."""
    prior = poise.UniversalPrior.of_people()
    guide, places = prior.guide(prior.space.handles(list(PEOPLE))), np.array(list(PEOPLE.values()))
    for free_root in (True, False):
        guide.starts(
            prior.space.q_from_pose(poise.Pose.rest(prior.space.skeleton)), places, free_root=free_root
        )


def solve_as_people_do() -> None:
    """Solve under the universal prior, on its own kind of body and on another, and compute the uncertainty."""
    for prior in (poise.UniversalPrior.of_people(), poise.UniversalPrior()):
        poise.pose(PEOPLE, prior)
        poise.solve(prior, PEOPLE).uncertainty.suggestions()


def learn_a_style() -> poise.StylePrior:
    """A style of a short walk."""
    return poise.StylePrior.learn([_walk()], dimensions=2, active=10, velocity=False)


def place_in_style() -> None:
    """Place a pose in a style: the kernels of styles that need no solver, which is compiled beside them."""
    style = learn_a_style()
    x, _ = style.place(np.concatenate([[0.0, 0.9, 0.0, 1.0, 0.0, 0.0, 0.0], style.mean]))
    style.gaussian_at(x)


def solve_in_style() -> None:
    """The same with a style and with a motion model: the likelihood of the pose, and its uncertainty."""
    for prior in (learn_a_style(), poise.DynamicsPrior.learn([_walk()])):
        solution = poise.solve(prior, HAND)
        solution.percentile  # noqa: B018 - its kernels too
        solution.uncertainty.suggestions()


def solve_a_sequence() -> None:
    """Solve three frames together, and a pose from three points in a picture."""
    from poise.capture.photos import View, explain
    from poise.solvers.sequence import Frame, Smoothness, solve_motion

    style = learn_a_style()
    frames = [Frame([poise.Position("left_hand", (0.3, 0.9 + 0.01 * number, 0.2))]) for number in range(3)]
    solve_motion([style], frames, fps=30.0, smoothness=Smoothness(rounds=1))
    camera = poise.Camera.looking_at((0.0, 0.9, 0.0), eye=(0.0, 1.4, 4.0))
    places = {"head": (0.0, 1.6, 0.0), "left_hand": (0.3, 0.9, 0.1), "right_foot": (-0.1, 0.1, 0.0)}
    points = {role: camera.project(np.array(place)) for role, place in places.items()}
    explain(style, [View(camera, points)], starts=1)


def search_something() -> None:
    """Search the nearest frames of a short walk, from frame to frame and everywhere."""
    from poise.library import CoherentSearch, ExhaustiveSearch, Poses, QueryMetric, find_runs

    poses = Poses.of_motions([_walk()])
    handles = poses.space.handles(["head"])
    rows = QueryMetric.balanced(poses, handles).rows(poses, handles)
    for search in (CoherentSearch(find_runs(poses), rows), ExhaustiveSearch(rows)):
        for row in rows[:2]:
            search.nearest(row, 2)


def track_markers() -> None:
    """Track two frames of a walker's markers."""
    from poise.capture.calibration import Calibration
    from poise.capture.tracking import MarkerTracker
    from poise.motion.virtual_markers import optical_layout
    from poise.priors.broad import BroadPrior
    from poise.skeleton.pose_space import PoseSpace

    walk = _walk(0.2)
    layout = optical_layout(walk.skeleton)
    worn = Calibration(walk.skeleton, layout, np.full(len(layout), 0.01), 0.0)
    tracker = MarkerTracker(BroadPrior(PoseSpace(walk.skeleton)), worn, fps=walk.fps)
    for points in poise.virtual_markers(walk, layout).points[:2]:
        tracker.step(points)


def perform_something() -> None:
    """Perform a frame of a short walk from three markers and one hand, by local models."""
    places = {name: poise.Handle(name) for name in ("left_hand", "right_hand", "head")}
    prior = poise.LocalPrior.learn([_walk()])
    performance = poise.Performance(prior, places)
    performance.step(prior.space.points(prior.examples.q[:1], performance.handles)[0])
    poise.solve(prior, HAND).uncertainty.suggestions()


def solve_in_blends() -> None:
    """Solve under blends: a style with a motion model, and every prior that predicts with another."""
    walk = [_walk()]
    in_latents = learn_a_style(), poise.DynamicsPrior.learn(walk)
    first, second = poise.GaussianPrior.learn(walk, clusters=3), poise.LocalPrior.learn(walk)
    third = poise.UniversalPrior(walk[0].skeleton)
    for components in (in_latents, (first, second), (second, third), (third, first)):
        poise.solve(poise.BlendPrior(components, (0.6, 0.4)), HAND)


def watch_something() -> None:
    """Detect a walker in small pictures of two cameras; does nothing without OpenCV."""
    from poise.apps.camera_takes import before_cameras, simulator_of
    from poise.errors import MissingExtraError
    from poise.vision.blobs import Background
    from poise.vision.simulator import front_rig
    from poise.vision.tracker import MarkerFinder

    try:
        take = before_cameras(_walk(), seconds=0.1)
        simulator = simulator_of(take, front_rig(size=(320, 240)))
    except MissingExtraError:
        return
    rooms = [Background.of_frames(simulator.empty_room(camera, 2)) for camera in range(2)]
    tracker = MarkerFinder(simulator.rig, rooms, simulator.truth.labels, fps=60)
    tracker.step([simulator.picture(0, camera) for camera in range(2)], simulator.truth.points[0])
