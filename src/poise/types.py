"""Types shared by all packages."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

Array = np.ndarray
PoseVector = Float[Array, "size"]
"""A pose: the root's position and quaternion (wxyz), then the exponential maps of the moving joints."""
Points = Float[Array, "handles 3"]
"""Positions of handles."""
MapsGaussian = tuple[Float[Array, "maps"], Float[Array, "maps maps"]]
"""Mean and covariance of the exponential maps of a pose."""
Progress = Callable[[int, int], None]
"""Called with the amount done and the total."""
ShareProgress = Callable[[float], None]
"""Called with the fraction done, from 0 to 1."""
NamedProgress = Callable[[str, int, int], None]
"""Called with the name of the current step, the amount done and the total."""


def silent(*_amounts: object) -> None:
    """The progress callback that reports nothing."""
