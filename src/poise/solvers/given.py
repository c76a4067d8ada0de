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
    shapes = [np.shape(part) for part in target] if isinstance(target, Iterable) else []
    if shapes == [(3,), (4,)]:
        return transform(handle, *target)
    if shapes != [()] * 3:
        raise InvalidValueError(
            f"{name}: expected a point (x, y, z), a point and a quaternion, or a constraint; got {target!r}"
        )
    return [Position(handle, target)]
