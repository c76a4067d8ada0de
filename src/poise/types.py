"""Types shared by all packages."""

from collections.abc import Callable

import numpy as np

Array = np.ndarray
Progress = Callable[[int, int], None]
"""Called with the amount done and the total."""
ShareProgress = Callable[[float], None]
"""Called with the fraction done, from 0 to 1."""
NamedProgress = Callable[[str, int, int], None]
"""Called with the name of the current step, the amount done and the total."""


def silent(*_amounts: object) -> None:
    """The progress callback that reports nothing."""
