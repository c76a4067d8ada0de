"""Names of types that all rooms share."""

from collections.abc import Callable

import numpy as np

Array = np.ndarray
Progress = Callable[[int, int], None]
"""Called with how much is done and how much there is in all."""
ShareProgress = Callable[[float], None]
"""Called with the share that is done, from 0 to 1."""
NamedProgress = Callable[[str, int, int], None]
"""Called with what is under way, how much of it is done and how much there is in all."""
