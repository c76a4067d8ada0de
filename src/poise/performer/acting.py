"""The performer's entry points: `act` for a motion, `acted` for a motion with its foot contacts."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Bool

from poise.errors import InvalidValueError, UnknownNameError
from poise.motion.motion import Motion, Origin
from poise.performer.actions import ACTIONS
from poise.performer.bodies import PERFORMERS, Body
from poise.performer.posing import pose, with_heels_raised
from poise.performer.stage import Stage, lively, within
from poise.performer.styles import STYLES, Style
from poise.types import Array

Named = TypeVar("Named")

LONGEST = 600.0  # seconds
FRAME_RATES = (10.0, 1000.0)


@dataclass(frozen=True)
class ActedMotion:
    """A motion and what touches the floor in each frame, known because the feet were planned.

    The contacts are "left_heel", "left_ball", "right_heel" and "right_ball"; the ball is the base of the toes.
    """

    motion: Motion
    contacts: Mapping[str, Bool[Array, "frames"]]

    def grounded(self, side: str) -> Bool[Array, "frames"]:
        """Whether any part of the left or right foot touches the floor."""
        if side not in ("left", "right"):
            raise UnknownNameError("side", side, ("left", "right"))
        return self.contacts[f"{side}_heel"] | self.contacts[f"{side}_ball"]


def act(
    action: str,
    *,
    style: str | Style = "neutral",
    performer: str | Body = "alex",
    seconds: float | None = None,
    fps: float = 120.0,
    seed: int = 0,
    **parameters: Any,
) -> Motion:
    """Return a motion of the named action: `act("walk", style="proud", speed=1.5, turn=0.3)`.

    `ACTIONS`, `STYLES` and `PERFORMERS` list the names; your own `Style` or `Body` also works. The seed determines the
    small irregularities; the frame rate only the sampling of the same motion. `parameters` are the action's own, such
    as `speed`.
    """
    return acted(
        action, style=style, performer=performer, seconds=seconds, fps=fps, seed=seed, **parameters
    ).motion


def acted(
    action: str,
    *,
    style: str | Style = "neutral",
    performer: str | Body = "alex",
    seconds: float | None = None,
    fps: float = 120.0,
    seed: int = 0,
    **parameters: Any,
) -> ActedMotion:
    """Like `act`, with the foot contacts."""
    chosen = _named("action", action, ACTIONS)
    manner = style if isinstance(style, Style) else _named("style", style, STYLES)
    body = performer if isinstance(performer, Body) else _named("performer", performer, PERFORMERS)
    valid = [name for name in inspect.signature(chosen.direct).parameters if name != "stage"]
    for name in parameters:
        if name not in valid:
            raise UnknownNameError(f"parameter of {chosen.name!r} called", name, valid or ["(it has none)"])
    if seconds is None:
        seconds = chosen.seconds / min(manner.tempo, 1.0)
    else:
        seconds = within("a performance's length in seconds", seconds, (0.05, LONGEST), "s")
    fps = within("a frame rate", fps, FRAME_RATES, "Hz")
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0:
        raise InvalidValueError(f"the seed must be a whole number from 0 up; got {seed!r}")
    stage = Stage(body, manner, seconds, fps, int(seed))
    targets = with_heels_raised(body, lively(stage, chosen.direct(stage, **parameters)))
    root, rotations = pose(body, targets)
    origin = Origin(format="performer", units_reason="made in metres", frames_in_file=len(root))
    title = f"{action} ({manner.name}, {body.name})"
    touching: dict[str, Array] = {}
    for side, foot in targets.feet.items():
        touching |= {f"{side}_heel": foot.heel_down, f"{side}_ball": foot.ball_down}
    return ActedMotion(Motion(body.skeleton, stage.fps, root, rotations, title, origin), touching)


def _named(kind: str, name: str, registry: Mapping[str, Named]) -> Named:
    if not isinstance(name, str) or name not in registry:
        raise UnknownNameError(kind, str(name), registry)
    return registry[name]
