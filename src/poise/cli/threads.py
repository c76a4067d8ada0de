"""One thread for linear algebra: Poise's matrices are small, and threads cost them more than they gain.

What is timed does not depend on idle cores then, either. Whoever wants more says so in the environment.
"""

import os

_LIBRARIES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def use_one_thread() -> None:
    """Ask every linear algebra library for one thread; it has to be said before NumPy is first imported."""
    for name in _LIBRARIES:
        os.environ.setdefault(name, "1")
