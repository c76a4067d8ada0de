"""One thread for linear algebra: what is timed must not depend on how many cores happen to be idle."""

import os

_LIBRARIES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def use_one_thread() -> None:
    """Ask every linear algebra library for one thread; it has to be said before NumPy is first imported."""
    for name in _LIBRARIES:
        os.environ[name] = "1"
