"""Classic inverse kinematics: baselines, and solvers for skeletons without training data.

Every method is one compiled function with the signature `CompiledSolver`: it moves handles (points on joints) to
target positions by changing the pose vector in place. A method is imported, and compiled, at first use.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Protocol, cast, runtime_checkable

from poise.errors import UnknownNameError
from poise.solvers.classic.task import Task
from poise.types import Array

_NAMES = ("transpose", "sdls", "ccd", "fabrik")


@runtime_checkable
class CompiledSolver(Protocol):
    """Move `q` in place until every handle reaches its target; returns the number of iterations.

    `q` ends at the best pose found, also if no pose reaches every target.
    """

    def __call__(self, q: Array, task: Task) -> int:
        """See the class."""
        ...


class _Methods(Mapping[str, CompiledSolver]):
    """The methods by name, each imported on first use."""

    def __getitem__(self, name: str) -> CompiledSolver:
        if name not in _NAMES:
            raise UnknownNameError("classic method", name, _NAMES)
        return cast(CompiledSolver, import_module(f"{__name__}.{name}").solve)

    def __contains__(self, name: object) -> bool:
        return name in _NAMES

    def __iter__(self) -> Iterator[str]:
        return iter(_NAMES)

    def __len__(self) -> int:
        return len(_NAMES)


METHODS: Mapping[str, CompiledSolver] = _Methods()
