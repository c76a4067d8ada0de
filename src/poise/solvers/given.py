"""Constraints as users write them: a list of constraints, or a mapping from handles to targets.

```python
{
    "right_hand": (0.2, 1.4, 0.3),  # a point
    "left_foot": ((0.1, 0.1, 0.0), (1, 0, 0, 0)),  # a point and a unit quaternion (wxyz)
    "gaze": LookAt("head", (0, 1.6, 3)),  # any constraint; the key is its name in reports
}
```
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from poise.errors import InvalidValueError
from poise.skeleton.pose_space import Handle
from poise.skeleton.skeleton import Skeleton
from poise.solvers.constraints import Constraint, Position, Vector, transform

Target = Vector | tuple[Vector, Vector] | Constraint
Given = Sequence[Constraint] | Mapping[Handle | str, Target] | Mapping[str, Target]


def constraints_from(given: Given) -> list[Constraint]:
    """Return the constraints in the order given."""
    if isinstance(given, Mapping):
        return [found for handle, target in given.items() for found in _on(handle, target)]
    found = list(given) if isinstance(given, Iterable) else [None]
    if not all(isinstance(one, Constraint) for one in found):
        raise InvalidValueError(
            'constraints are a mapping such as {"right_hand": (x, y, z)}, or a list of constraints; '
            f"got {given!r:.200}"
        )
    return found


def _on(handle: Handle | str, target: Any) -> list[Constraint]:
    if not isinstance(handle, str | Handle):
        raise InvalidValueError(f"a handle is a joint's name, a role or a Handle; got {handle!r}")
    name = handle if isinstance(handle, str) else handle.joint
    if isinstance(target, Constraint):
        return [target if target.name else replace(target, name=name)]
    try:
        shapes = [np.shape(part) for part in target]
    except (TypeError, ValueError):  # not a sequence, or of ragged lists
        shapes = []
    if shapes == [(3,), (4,)]:
        return transform(handle, *target)
    if shapes != [()] * 3:
        raise InvalidValueError(
            f"{name}: expected a point (x, y, z), a point and a quaternion, or a constraint; got {target!r}"
        )
    return [Position(handle, target)]


def doubtful_units(constraints: Sequence[Constraint], skeleton: Skeleton) -> tuple[str, ...]:
    """A note if a target is so far from the origin, in heights of the body, that it is hardly in metres."""
    placed = [one for one in constraints if isinstance(one, Position)]
    distances = {one.label: float(np.linalg.norm(one.target)) for one in placed}
    label = max(distances, key=distances.__getitem__, default="")
    heights = distances.get(label, 0.0) / skeleton.height if skeleton.height > 0 else 0.0
    if not _DOUBTFUL[0] <= heights <= _DOUBTFUL[1]:
        return ()
    unit = next(name for name, most in _UNITS.items() if heights <= most)
    return (
        f"the {label} is {distances[label]:.3g} m from the origin, {heights:.0f} heights of the body: "
        f"are these {unit}? Targets are in metres",
    )


_DOUBTFUL = (10.0, 2000.0)  # heights of the body
_UNITS = {"centimetres or inches": 150.0, "millimetres": np.inf}  # up to how many heights
