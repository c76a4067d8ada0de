"""Classic inverse kinematics: baselines, and solvers for skeletons without training data.

Every method is one compiled function with the signature `CompiledSolver`: it moves handles (points on joints) to
target positions by changing the pose vector in place. A method is imported, and compiled, at first use: the solver
finds it by name (`poise.solvers.solve.METHODS`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from poise.registry import Registry

if TYPE_CHECKING:
    from poise.evaluation.classic.task import CompiledSolver


METHODS: Registry[CompiledSolver] = Registry(
    "classic method", {name: f"{__name__}.{name}:solve" for name in ("transpose", "sdls", "ccd", "fabrik")}
)
