"""What the performer can do: one function per action, from a stage and the action's own parameters to targets."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from poise.performer.actions.locomotion import run, run_to_walk, walk, walk_to_run
from poise.performer.posing import Targets


@dataclass(frozen=True)
class Action:
    """One thing the performer can do, how long it lasts by default at a neutral tempo, and in one line what it is."""

    name: str
    direct: Callable[..., Targets]
    seconds: float

    @property
    def summary(self) -> str:
        """The first sentence of what the action's function says of itself."""
        return (self.direct.__doc__ or "").strip().split("\n")[0]


ACTIONS: Mapping[str, Action] = MappingProxyType(
    {
        action.name: action
        for action in (
            Action("walk", walk, 4.0),
            Action("run", run, 3.0),
            Action("walk_to_run", walk_to_run, 5.0),
            Action("run_to_walk", run_to_walk, 5.0),
        )
    }
)
