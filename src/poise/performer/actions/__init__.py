"""The performer's actions: one function each, from a stage and the action's own parameters to targets."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from poise.performer.actions.ball import kick, throw
from poise.performer.actions.boxing import box
from poise.performer.actions.everyday import idle, reach, sit, stand_up, wave
from poise.performer.actions.jumping import hop, jump
from poise.performer.actions.locomotion import run, run_to_walk, walk, walk_to_run
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


ACTIONS: Mapping[str, Action] = MappingProxyType(
    {
        action.name: action
        for action in (
            Action("walk", walk, 4.0),
            Action("run", run, 3.0),
            Action("walk_to_run", walk_to_run, 5.0),
            Action("run_to_walk", run_to_walk, 5.0),
            Action("jump", jump, 4.0),
            Action("hop", hop, 3.0),
            Action("box", box, 6.0),
            Action("throw", throw, 3.0),
            Action("kick", kick, 2.4),
            Action("reach", reach, 7.6),
            Action("sit", sit, 3.2),
            Action("stand_up", stand_up, 2.6),
            Action("wave", wave, 3.6),
            Action("idle", idle, 8.0),
        )
    }
)
