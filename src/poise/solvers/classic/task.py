"""The problem that a classic method solves, as one compiled value."""

from typing import NamedTuple

from poise.types import Array


class Task(NamedTuple):
    """Move handles (points on joints) to targets, within bounds.

    `links` and `rest` are a `PoseSpace.tree`; `joints`, `offsets` and `targets` have a row per handle. `lower` and
    `upper` bound the tangent coordinates of q by clamping; their first six, the root's, are not used.
    """

    links: Array  # (joints, 2)
    rest: Array  # (joints, 12)
    joints: Array  # (handles,)
    offsets: Array  # (handles, 3)
    targets: Array  # (handles, 3)
    lower: Array  # (freedoms,)
    upper: Array  # (freedoms,)
    free_root: bool  # whether the root moves
    tolerance: float  # metres: largest residual of a handle at convergence
    max_iterations: int
