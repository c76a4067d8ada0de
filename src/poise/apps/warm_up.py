"""Everything that is compiled, in one list, so that it can be compiled ahead of its use."""

from collections.abc import Callable
from importlib import import_module
from typing import cast

KERNELS = {
    "kinematics": "poise.skeleton.kinematics:warm_up",
    "motion files": "poise.formats.number_rows:warm_up",
    "pictures": "poise.apps.warm_up:draw_something",
}
"""What a set of kernels does, to the function that compiles it: `module:function`."""


def load(where: str) -> Callable[[], object]:
    """The function that an entry of `KERNELS` names."""
    module, _, function = where.partition(":")
    return cast(Callable[[], object], getattr(import_module(module), function))


def warm_up() -> None:
    """Compiles every kernel, or loads it from the cache of an earlier time."""
    for where in KERNELS.values():
        load(where)()


def draw_something() -> object:
    """A small picture of someone standing: it takes every kernel that draws."""
    from poise.performer import PERFORMERS
    from poise.pictures import draw_pose
    from poise.skeleton import Pose

    body = next(iter(PERFORMERS.values()))
    return draw_pose(Pose.rest(body.skeleton), size=(64, 64))
