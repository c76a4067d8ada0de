"""The performer's actions: one function each, from a stage and the action's own parameters to targets."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from poise.performer.actions.ball import kick, throw
from poise.performer.actions.boxing import box
from poise.performer.actions.everyday import idle, reach, sit, stand_up, wave
from poise.performer.actions.jumping import hop, jump
from poise.performer.gait import run, run_to_walk, walk, walk_to_run
from poise.performer.posing import BodyTargets


@dataclass(frozen=True)
class Action:
    """One action of the performer, its default duration at a neutral tempo, and a one-line description."""

    name: str
    direct: Callable[..., BodyTargets]
    seconds: float

    @property
    def summary(self) -> str:
        """The first sentence of the docstring of the action's function."""
        return (self.direct.__doc__ or "").strip().split("\n")[0]


_ACTIONS: dict[Callable[..., BodyTargets], float] = {
    walk: 4.0, run: 3.0, walk_to_run: 5.0, run_to_walk: 5.0, jump: 4.0, hop: 3.0, box: 6.0,
    throw: 3.0, kick: 2.4, reach: 7.6, sit: 3.2, stand_up: 2.6, wave: 3.6, idle: 8.0,
}  # fmt: skip
ACTIONS: Mapping[str, Action] = MappingProxyType(
    {direct.__name__: Action(direct.__name__, direct, seconds) for direct, seconds in _ACTIONS.items()}
)
