"""Boxing: a guard, and combinations of jab, cross, hook and uppercut.

Each punch starts from the floor: pelvis, then trunk, then hand (Filimonov et al. 1985, "Means of increasing strength of
the punch"). Points are wrists in metres for the reference body, x to the left and z ahead; times are from the impact.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType

import numpy as np
from jaxtyping import Float

from poise.errors import InvalidValueError, UnknownNameError
from poise.performer.posing import Arm, BodyTargets, Foot, Reach, mirrored, yawed
from poise.performer.stage import ALWAYS, Place, Stage, angles, foot, lengths, one_of, posed
from poise.performer.tracks import Key, track
from poise.types import Array

Point = tuple[float, float, float]

_GUARD: Mapping[str, Point] = {"lead": (0.11, 1.31, 0.39), "rear": (-0.09, 1.31, 0.15)}
_ELBOW: Mapping[str, Point] = {"lead": (0.25, -1.0, 0.0), "rear": (-0.3, -1.0, -0.1)}
_BREATH = 0.75  # seconds: a longer pause between punches separates two combinations
_BODY = (-35.0, -8.0, 8.0, 0.0)  # pelvis yaw, trunk twist, trunk bend, weight forward (metres)


@dataclass(frozen=True)
class Punch:
    """One punch: its hand, its path from the guard, the elbow's direction, and the body before and at impact."""

    hand: str
    way: tuple[tuple[float, Point], ...]
    elbow: Point
    load: tuple[float, float, float, float]
    strike: tuple[float, float, float, float]
    rear_heel: float = 22.0
    rear_pivot: float = 0.0
    pronation: float = 85.0  # at impact: rotation of the knuckles


PUNCHES: Mapping[str, Punch] = MappingProxyType(
    {
        "jab": Punch(
            "lead",
            ((-0.12, (0.08, 1.36, 0.52)), (0.0, (0.03, 1.46, 0.80))),
            (0.55, -0.9, 0.0),
            load=(-33.0, -4.0, 8.0, -0.01),
            strike=(-44.0, -24.0, 10.0, 0.07),
        ),
        "cross": Punch(
            "rear",
            ((-0.13, (-0.11, 1.34, 0.32)), (0.0, (0.02, 1.46, 0.84))),
            (-0.7, -0.8, 0.0),
            load=(-42.0, -12.0, 8.0, -0.03),
            strike=(8.0, 34.0, 14.0, 0.10),
            rear_heel=48.0,
            rear_pivot=42.0,
        ),
        "hook": Punch(
            "lead",
            (
                (-0.18, (0.25, 1.32, 0.40)),
                (-0.08, (0.29, 1.41, 0.49)),
                (0.0, (-0.04, 1.45, 0.58)),
                (0.08, (-0.16, 1.43, 0.46)),
            ),
            (1.0, 0.05, 0.3),
            load=(-14.0, 14.0, 10.0, 0.05),
            strike=(-38.0, -16.0, 6.0, 0.02),
        ),
        "uppercut": Punch(
            "rear",
            (
                (-0.19, (-0.20, 1.08, 0.16)),
                (-0.08, (-0.10, 1.12, 0.42)),
                (0.0, (-0.01, 1.50, 0.56)),
                (0.06, (0.0, 1.56, 0.50)),
            ),
            (-0.5, -0.9, -0.7),
            load=(-48.0, -18.0, 20.0, -0.02),
            strike=(0.0, 24.0, 0.0, 0.07),
            rear_heel=42.0,
            rear_pivot=30.0,
            pronation=0.0,
        ),
    }
)


def box(
    stage: Stage, *, combination: str | Sequence[str] | None = None, stance: str = "orthodox"
) -> BodyTargets:
    """Boxes: the given combinations, such as "jab cross hook", or random ones; `stance` is "orthodox" or "southpaw"."""
    one_of("stance", stance, ("orthodox", "southpaw"))
    names: Sequence[str] = ()
    if combination is not None:
        names = combination.replace(",", " ").split() if isinstance(combination, str) else list(combination)
        if not names:
            raise InvalidValueError(f"a combination needs at least one of {', '.join(PUNCHES)}")
    for name in names:
        if name not in PUNCHES:
            raise UnknownNameError("punch", str(name), PUNCHES)
    generator, time = stage.generator("punches"), 0.75
    timed: list[tuple[float, Punch]] = []
    while time < stage.beats + 1.0:
        for name in names or _USUAL[int(generator.integers(len(_USUAL)))].split():
            same_hand = bool(timed) and timed[-1][1].hand == PUNCHES[name].hand
            time += (0.62 if same_hand else 0.42) * generator.uniform(0.95, 1.08) if timed else 0.0
            timed.append((time, PUNCHES[name]))
        time += generator.uniform(0.55, 0.9)
    targets = _Bout(stage, timed).targets()
    return targets if stance == "orthodox" else mirrored(targets)


_USUAL = (
    *("jab cross", "jab jab cross", "jab cross hook", "jab cross hook cross"),
    *("jab uppercut hook", "cross hook uppercut"),
)


@dataclass(frozen=True)
class _Bout:
    """Punches and their impact times, by the stage's clock, converted to body targets."""

    stage: Stage
    timed: Sequence[tuple[float, Punch]]

    def targets(self) -> BodyTargets:
        """The whole body of an orthodox boxer."""
        body = self.body_keys
        targets = posed(
            self.stage,
            pelvis=[(time, (0.0, -0.075 - 0.6 * abs(weight), weight)) for time, (_, _, _, weight) in body],
            pelvis_turn=[(time - 0.05, (4.0, yaw, 0.0)) for time, (yaw, _, _, _) in body],
            spine=[(time - 0.02, (bend, twist, -0.1 * twist)) for time, (_, twist, bend, _) in body],
            gaze=[(0.0, (9.0, 0.0, 0.0))],
            feet=self._feet(),
            arms={"left": self._arm("lead"), "right": self._arm("rear")},
        )
        return replace(targets, pelvis=targets.pelvis + self.carried)

    @cached_property
    def body_keys(self) -> list[tuple[float, tuple[float, ...]]]:
        """(time, (pelvis yaw, trunk twist, trunk bend, weight)): guard, load, strike, and back if time allows."""
        size = 0.5 + 0.5 * self.stage.style.amplitude
        keys: list[tuple[float, tuple[float, ...]]] = [(-1.0, _BODY), (self.timed[0][0] - 0.45, _BODY)]
        for time, punch in self.timed:
            load, strike = (
                tuple(b + size * (v - b) for b, v in zip(_BODY, pose, strict=True))
                for pose in (punch.load, punch.strike)
            )
            keys += [(time - 0.19, load), (time, strike)]
            keys += [(time + 0.48, _BODY)] if time in self._ends else []
        return sorted([*keys, *((time - 0.36, _BODY) for time in self._begins[1:])])

    # --- footwork ------------------------------------------------------------------------------------------------

    @property
    def _begins(self) -> list[float]:
        """When the first punch of each combination lands."""
        times = [time for time, _ in self.timed]
        return [times[0], *(b for a, b in pairwise(times) if b - a > _BREATH)]

    @property
    def _ends(self) -> list[float]:
        """When the last punch of each combination lands."""
        times = [time for time, _ in self.timed]
        return [*(a for a, b in pairwise(times) if b - a > _BREATH), times[-1]]

    @property
    def _step(self) -> float:
        return 0.13 * self.stage.style.amplitude

    @cached_property
    def carried(self) -> Float[Array, "frames 3"]:
        """The motion of pelvis and hands: a step in with each combination and out after it, and a bounce."""
        keys: list[Key] = []
        for first, last in zip(self._begins, self._ends, strict=True):
            keys += [(first - 0.38, 0.0), (first - 0.10, self._step)]
            keys += [(last + 0.20, self._step), (last + 0.50, 0.0)]
        forward = lengths(self.stage, keys)
        beat = 2 * np.pi * 1.7 * self.stage.clock
        bounce = 0.010 * self.stage.style.bounce * np.sin(beat) * self.stage.body.leg
        return np.stack([np.zeros_like(forward), bounce, forward], axis=-1)

    def _places(self, x: float, z: float, yaw: float, *, steps_in: float, steps_out: float) -> list[Place]:
        """Steps in and out. The foot lifts `steps_in` seconds before the first punch and `steps_out` after the last."""
        places, since = [], -ALWAYS
        for first, last in zip(self._begins, self._ends, strict=True):
            places += [
                Place(since, first - steps_in, x, z, yaw),
                Place(first - steps_in + 0.17, last + steps_out, x, z + self._step, yaw),
            ]
            since = last + steps_out + 0.17
        return [*places, Place(since, ALWAYS, x, z, yaw)]

    def _feet(self) -> dict[str, Foot]:
        lifts: list[Key] = [(-1.0, 0.0)]
        for first, last in zip(self._begins, self._ends, strict=True):
            lifts += [(first - 0.52, 0.0), (first - 0.40, 12.0), (first - 0.20, 0.0)]
            lifts += [(last + 0.22, 0.0), (last + 0.33, 14.0), (last + 0.53, 0.0)]
        heel: list[Key] = [(-1.0, 22.0)]
        pivot: list[Key] = [(-1.0, 0.0)]
        for time, punch in self.timed:
            heel += [(time - 0.12, 22.0), (time - 0.01, punch.rear_heel), (time + 0.16, 22.0)]
            pivot += [(time - 0.13, 0.0), (time - 0.02, punch.rear_pivot), (time + 0.17, 0.0)]
        lead = self._places(0.10, 0.24, -18.0, steps_in=0.40, steps_out=0.33)
        rear = self._places(-0.13, -0.24, -52.0, steps_in=0.32, steps_out=0.24)
        return {
            "left": foot(self.stage, lead, heel=lifts, lift=0.03),
            "right": foot(self.stage, rear, heel=heel, pivot=pivot, lift=0.03),
        }

    # --- hands ---------------------------------------------------------------------------------------------------

    def _arm(self, hand: str) -> Arm:
        """A hand that keeps the guard and punches in turn; `hand` is "lead" or "rear"."""
        guard, down, style = _GUARD[hand], _ELBOW[hand], self.stage.style
        points: list[Key] = [(-1.0, guard)]
        follows: list[Key] = [(-1.0, 1.0)]
        elbows: list[Key] = [(-1.0, down)]
        rolls: list[Key] = [(-1.0, 50.0)]
        share = min(0.5 + 0.5 * style.amplitude, 1.0)  # a weak punch does not reach its points
        for time, punch in self.timed:
            if punch.hand == hand:
                way = [
                    (time + early, tuple(a + share * (b - a) for a, b in zip(guard, point, strict=True)))
                    for early, point in punch.way
                ]
                points += [(time - 0.28, guard), *way, (time + 0.30, guard)]
                follows += [(time - 0.24, 1.0), (time - 0.06, 0.0), (time + 0.04, 0.0), (time + 0.28, 1.0)]
                elbows += [(time - 0.24, down), (time - 0.06, punch.elbow)]
                elbows += [(time + 0.04, punch.elbow), (time + 0.28, down)]
                rolls += [(time - 0.20, 50.0), (time, punch.pronation), (time + 0.25, 50.0)]
        # The chest turns from the guard, and the hand that does not punch stays with it.
        chest = [(time, yaw + twist - (_BODY[0] + _BODY[1])) for time, (yaw, twist, _, _) in self.body_keys]
        turn = track(self.stage.clock, follows) * (0.8 * angles(self.stage, chest))
        # The wrist's path has small irregularities; a bent style lowers it and brings it forward.
        path = lengths(self.stage, points)
        unrest = 0.008 * style.variation * self.stage.drift("guard", hertz=0.9, channels=3)(self.stage.times)
        lean, slump = np.radians(style.lean), np.radians(style.slump)
        path[:, 1] -= style.crouch * self.stage.body.leg + 0.2 * abs(lean) + 0.12 * abs(slump)
        path[:, 2] += 0.5 * lean + 0.35 * slump
        wrist = yawed(turn, path + unrest) + self.carried
        reach = Reach(wrist, yawed(turn, track(self.stage.clock, elbows)))
        return Arm(pronation=angles(self.stage, rolls), wrist=np.radians(12.0), reach=reach)
