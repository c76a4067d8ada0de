"""Classic inverse kinematics: baselines, and a way to pose skeletons that no data exist for.

Every method is one compiled function of the same signature, `CompiledSolver`, that brings handles (points on joints) to
target positions and changes the pose vector in place. A method is imported, and so compiled, when first asked for.
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
    """Move `q` in place until every handle is where the task wants it; returns the iterations it took.

    `q` ends at the best pose met, also when no pose reaches every target.
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
