"""A person in front of one camera, live: the objective of a whole take, over a sliding window.

During the first second the person is only observed: their size, the up direction and the floor are estimated. From
then on each picture gives the newest pose of a window of frames that are solved together; its first two frames are
fixed and carry the past.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from poise.capture.people.solving import Pixels, Shapes, StandingFeet, Trust, priors_of
from poise.capture.people.take import capture_person, rough_poses
from poise.priors.prior import Prior
from poise.priors.terms import Held, Unknowns
from poise.priors.universal.prior import UniversalPrior
from poise.skeleton.pose_space import PoseSpace
from poise.solvers.problem import tangent_step
from poise.solvers.sequence import SequenceSolver
from poise.solvers.solution import MotionSolution, Solution, Status
from poise.types import Array
from poise.vision.people.person import handles_of
from poise.vision.people.unknown_camera import with_focal
from poise.vision.people.watched import WatchedPerson, flattened, rough_places, with_sides

MEASURED = 1.0  # seconds of observation before the first pose ...
FEWEST = 10  # ... and pictures ...
MOST = 12  # ... of which this many are solved, evenly spaced
WINDOW = 12  # frames that are solved together
LEFT = 0.04  # metres that a foot moves across the camera's rays when it leaves the floor
FREE_FOR = 0.2  # seconds for which feet may leave the floor, before contacts are decided
HELD = 2  # of them, that are fixed
ASKED = 2  # newest frames for which the prior is evaluated
HISTORY = 60  # frames used to detect exchanged left and right
FLOOR_WITHIN = 0.3  # seconds in which the floor is moved to standing feet
LONGEST_GAP = 0.5  # seconds of absence after which a person is placed again ...
AWAY = 5.0  # ... and after which one not yet measured is measured again
PLACING = 8  # steps of placing a body
CALM, QUICK, PACE = (
    4.0,
    2.0,
    1.5,
)  # One Euro filter: hertz at rest, increase per unit of speed, and hertz of the speed
TRUST = Trust(memory=0.2)  # chosen on the take of two persons, see docs/video.md


class LivePerson:
    """Takes what a camera sees of one person, moment by moment; returns poses once the person is measured."""

    def __init__(
        self,
        *,
        prior: Prior | None = None,
        height: float | None = None,
        trust: Trust | None = None,
        lens_known: bool = True,
    ) -> None:
        self._prior, self._height, self._trust = prior or UniversalPrior(), height, trust or TRUST
        self._lens_known = lens_known
        self._seen: deque[WatchedPerson] = deque()
        self._times: deque[float] = deque(maxlen=WINDOW)
        self._window: _Window | None = None
        self._calm: _Calm | None = None
        self._first = 0.0

    @property
    def measured(self) -> MotionSolution | None:
        """The measurement of the first second; None before its end."""
        return self._found if self._window is not None else None

    def step(self, seen: WatchedPerson, at: float) -> Solution | None:
        """The pose at the next moment, in seconds; None while the person is measured."""
        gap = at - self._times[-1] if self._times else 0.0
        if gap > AWAY and self._window is None:
            self._seen.clear()
        if not self._seen:
            self._first = at
        self._seen.append(seen)
        self._times.append(at)
        if self._window is not None:
            again = gap > LONGEST_GAP
            q = self._window.follow(seen, again=again)
            if again or self._calm is None:
                self._calm = _Calm(self._body.space, q)
            return self._solution(self._calm.step(q, max(gap, 1e-3)))
        if at - self._first >= MEASURED and len(self._seen) >= FEWEST:
            self._measure((len(self._seen) - 1) / (at - self._first))
        return None

    def _measure(self, fps: float) -> None:
        """Estimate the body, its floor and the up direction from the observations so far."""
        stride = -(-len(self._seen) // MOST)
        some = joined(list(self._seen)[::stride], fps / stride)
        some = some if self._lens_known else with_focal(some)
        self._found = capture_person(
            some, prior=self._prior, known=False, height=self._height, trust=self._trust
        )
        self._body = self._prior.on_body(self._found.motion.skeleton)
        recent = replace(joined(self._seen, fps), cameras=self._found.cameras)
        self._window = _Window(self._body, recent, self._found, self._trust)
        self._seen.clear()

    def _solution(self, q: Float[Array, "size"]) -> Solution:
        return Solution(q, self._body.space, tuple, Status.REACHED, 1, 0.0, self._body)


class _Calm:
    """Smooths poses: degrees of freedom at rest are low-passed, fast ones follow (Casiez et al. 2012, One Euro)."""

    def __init__(self, space: PoseSpace, q: Float[Array, "size"]) -> None:
        self._space, self._q, self._last, self._speed = space, q, q, np.zeros(space.freedoms)

    def step(self, q: Float[Array, "size"], seconds: float) -> Float[Array, "size"]:
        """The next pose, this many seconds after the last."""
        self._speed += _share(PACE, seconds) * (tangent_step(self._last, q) / seconds - self._speed)
        share = _share(CALM + QUICK * np.abs(self._speed), seconds)
        self._last, self._q = q, self._space.integrate(self._q, share * tangent_step(self._q, q))
        return self._q


def _share(hertz: Any, seconds: float) -> Any:
    """The update rate of a low-pass filter with this cut-off."""
    return 1.0 / (1.0 + 1.0 / (2.0 * np.pi * hertz * seconds))


def joined(moments: Sequence[WatchedPerson], fps: float) -> WatchedPerson:
    """Join moments of one camera to one take."""
    pixels, visibility, shapes, sides = (
        np.concatenate([getattr(one, name) for one in moments])
        for name in ("pixels", "visibility", "shapes", "sides")
    )
    return WatchedPerson(moments[0].cameras, pixels, visibility, shapes, sides, fps)


class _Feet(StandingFeet):
    """Feet whose contacts the window decides, picture by picture."""

    def update(self, now: Unknowns, number: int) -> bool:
        """Nothing."""
        del now, number
        return False


class _Window:
    """The last frames of a take without an end."""

    _q: Float[Array, "frames size"]

    def __init__(self, body: Prior, person: WatchedPerson, found: MotionSolution, trust: Trust) -> None:
        """Starts with the body where it was last seen."""
        self._on_body, looser = handles_of(body.space.skeleton)
        self._raw, self._prior, self.space = _filled(person), body, body.space
        self.person = with_sides(self._raw).frames(slice(-WINDOW, None))
        self._pixels = Pixels(body, self._on_body, looser, self.person, trust)
        self._shapes = Shapes(body, self._on_body, looser, WINDOW, trust)
        self._standing, self._told = _Feet(body, self.person, trust), priors_of(body, WINDOW, every=0)
        smooth = trust.smoothness.term(body.space.freedoms, person.fps)
        self._held = Held(slice(HELD))
        terms = [self._pixels, self._shapes, self._standing, self._told, smooth, self._held]
        self._solver = SequenceSolver(body.space, terms, limits=body.limits)
        self._levels = self._standing_levels(found)
        self._floor = 0.0
        self._stood = np.full((WINDOW, 4, 3), np.nan)  # positions of standing heels and toes, frame by frame
        self._place(self._aim())

    def follow(self, seen: WatchedPerson, *, again: bool) -> Float[Array, "size"]:
        """The pose at the next moment; `again` if nothing is known of the previous ones."""
        self._raw = (
            _filled(seen) if again else joined([self._raw.frames(slice(1 - HISTORY, None)), seen], 1.0)
        )
        whole = with_sides(replace(self._raw, cameras=self.person.cameras, fps=self.person.fps))
        self.person = whole.frames(slice(-WINDOW, None))
        places = self._aim()
        if again:
            return self._place(places)
        self._q = np.concatenate([self._q[1:], self._gone_on()[None]])
        for values in (self._told.mean, self._told.pull, self._told.precision):
            values[:-1] = values[1:]
        self._told.ask(self._q, range(WINDOW - ASKED, WINDOW))
        self._stand()
        self._step()
        return self._newest()

    def _aim(self) -> Float[Array, "frames 33 3"]:
        """Take what is seen; return rough positions."""
        places = rough_places(self.person)
        self._pixels.aim(self.person)
        self._shapes.aim(self.person, flattened(self.person.cameras[0], places))
        return places

    def _step(self, rounds: int = 1) -> None:
        """Solve the window, with heels and toes where they stand."""
        self._standing.hold(self._stood)
        self._q = self._solver.solve(Unknowns(self._q), rounds=rounds)[0].q

    def _stand(self) -> None:
        """Decide which heels and toes stand: slow ones, until a step without holding them moves them away."""
        lately = slice(-max(2, round(FREE_FOR * self.person.fps)), None)
        self._stood = np.concatenate([self._stood[1:], self._stood[-1:]])
        held, self._stood[lately] = self._stood[lately].copy(), np.nan
        self._step()
        free = self.space.points(self._q[-1:], self._standing.feet)[0]
        slow = self._standing.found(self._q)[-1].reshape(4)
        gone = self._aside(free, held[-1]) > LEFT
        held[:, gone] = np.nan
        lands = slow & ~gone & np.isnan(held[-1, :, 0])
        held[-1, lands] = free[lands]
        self._stood[lately] = held
        if np.any(slow):
            rises = float(np.mean(free[slow, 1] - self._levels[slow])) - self._floor
            self._floor += rises / (FLOOR_WITHIN * self.person.fps)

    def _aside(self, places: Float[Array, "n 3"], others: Float[Array, "n 3"]) -> Float[Array, "n"]:
        """The distance of positions across the camera's rays, in metres."""
        rays = places - self.person.cameras[0].centre
        rays /= np.linalg.norm(rays, axis=1, keepdims=True)
        gaps = others - places
        return np.linalg.norm(gaps - np.sum(gaps * rays, axis=1, keepdims=True) * rays, axis=1)

    def _gone_on(self) -> Float[Array, "size"]:
        """The newest pose, extrapolated."""
        return self.space.integrate(self._q[-1], tangent_step(self._q[-2], self._q[-1]))

    def _place(self, places: Float[Array, "frames 33 3"]) -> Float[Array, "size"]:
        """Set all frames to the one seen now, from its rough positions, with a foot on the floor."""
        self._q = np.repeat(rough_poses(self._prior, self._on_body, places[-1:]), WINDOW, axis=0)
        self._stood[:], self._held.frames = np.nan, slice(0)
        self._told.ask(self._q, range(WINDOW))
        self._step(PLACING)
        self._held.frames = slice(HELD)
        lowest = self.space.points(self._q[-1:], self._standing.feet)[0, :, 1] - self._levels
        self._floor = float(np.min(lowest))
        return self._newest()

    def _newest(self) -> Float[Array, "size"]:
        """The newest pose on the floor, which seems to rise or sink if the up direction is inexact."""
        q = self._q[-1].copy()
        q[1] -= self._floor
        return q

    def _standing_levels(self, found: MotionSolution) -> Float[Array, "4"]:
        """The heights of standing heels and toes."""
        motion = found.motion
        q = self.space.q_from_frames(motion.root_positions, motion.rotations)
        heights = self.space.points(q, self._standing.feet)[..., 1]
        return np.asarray(np.percentile(heights, 10.0, axis=0))


def _filled(person: WatchedPerson) -> WatchedPerson:
    """A whole window, padded with its first moment if there is no past."""
    first = person.frames(slice(0, 1))
    return joined([*[first] * (WINDOW - len(person)), person], person.fps)
